# For the measurements of fairness: / sleeps 1 ms, /sleep 100 ms, /slow 500 ms, /long 10 s; /burn computes for
# 5 ms; /hello answers at once, /big with 1 MB; /order sleeps 1 ms and tells when its request was complete and
# when it was begun, /report does so for the seconds of its query; /stream sends its head at once and the rest
# after 100 ms
use strict;
use warnings;

use Time::HiRes qw(clock sleep time);

my %seconds = ( '/' => 0.001, '/sleep' => 0.1, '/slow' => 0.5, '/long' => 10, '/order' => 0.001 );

sub {
    my $env     = shift;
    my $begun   = time;
    my $path    = $env->{PATH_INFO};
    my $seconds = $path eq '/report' ? $env->{QUERY_STRING} : $seconds{$path};
    sleep $seconds if $seconds;
    if ( $path eq '/burn' ) {
        my $until = clock() + 0.005;
        1 while clock() < $until;
    }
    if ( $path eq '/stream' ) {
        return sub {
            my $writer = shift->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
            $writer->write("$$");
            sleep 0.1;
            $writer->close;
        };
    }
    return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => 1_000_000 ], [ 'x' x 1_000_000 ] ]
        if $path eq '/big';
    my $body
        = $path =~ m{\A/(?:order|report)\z}
        ? sprintf '%.6f %.6f', $env->{'psgix.request_start'}, $begun
        : "$$";
    return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => length $body ], [$body] ];
};
