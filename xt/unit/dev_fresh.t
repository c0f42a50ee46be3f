use strict;
use warnings;
use lib 't/lib';
use Test::More;
use Sirius::Dev::Fresh;

# Which responses browsers have to ask about again

sub cache_of {
    my @headers = @_;
    my @given   = @headers;
    my @seen;
    for my $app (
        sub { [ 200, [@given], ['x'] ] },
        sub {
            sub { shift->( [ 200, [@given], ['x'] ] ) }
        },
        sub {
            sub { shift->( [ 200, [@given] ] )->close }
        },
        )
    {
        my $got = Sirius::Dev::Fresh->wrap($app)->( { REQUEST_METHOD => 'GET' } );
        if ( ref $got eq 'CODE' ) {
            my $later = $got;
            $later->( sub { $got = shift; return bless [], 'Writer' } );
        }
        my %header = @{ $got->[1] };
        push @seen, defined $header{'Cache-Control'} ? $header{'Cache-Control'} : 'none';
    }
    sub Writer::close { }
    sub Writer::write { }
    my %seen = map { $_ => 1 } @seen;
    return join '|', sort keys %seen;
}

my @DATE = ( 'Last-Modified' => 'Wed, 25 Nov 2026 12:00:00 GMT' );
is cache_of(@DATE),                                        'no-cache',  'a file with its date alone';
is cache_of( 'last-modified' => $DATE[1], ETag => '"a"' ), 'no-cache',  'in lower case';
is cache_of( @DATE, 'Cache-Control' => 'max-age=5' ),      'max-age=5', 'what the application says counts';
is cache_of( @DATE, Expires => $DATE[1] ),                 'none',      'Expires, too';
is cache_of( 'Content-Type' => 'text/html' ), 'none', 'without a date no browser keeps it unasked';

done_testing;
