# Responds in each way that an application can: a status, a file, a stream, not at all
use strict;
use warnings;

sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    if ( $path =~ m{/status/(\d+)} ) { return [ $1, [], [] ] }
    if ( $path =~ m{/own/(.+)} ) {    # fields of these names, with the query as their value
        return [ 200, [ map { ( $_ => $env->{QUERY_STRING} ) } split /,/, $1 ], ['own'] ];
    }
    if ( $path eq '/env' ) { return [ 200, [], [ $env->{'psgix.request_id'} ] ] }
    if ( $path eq '/stream' ) {
        return sub { my $writer = shift->( [ 200, [] ] ); $writer->write('x') for 1 .. 3; $writer->close };
    }
    if ( $path eq '/hints' ) { $env->{'psgix.informational'}->( 103, [ Link => '</a>' ] ) }
    if ( $path eq '/file' )  { open my $file, '<', $0 or die; return [ 200, [], $file ] }
    if ( $path eq '/die' )   { die 'broken' }
    if ( $path eq '/bad' )   { return [ 200, [ "X\n" => 1 ], [] ] }
    if ( $path eq '/exit' )  { kill KILL => $$ }
    if ( $path eq '/sleep' ) { select undef, undef, undef, 30 }
    return [ 200, [ 'Content-Type' => 'text/plain' ], ['hello'] ];
    }
