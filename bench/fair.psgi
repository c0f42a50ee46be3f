# For the measurements of fairness: / sleeps 1 ms, /sleep 100 ms, /slow 500 ms, /long 10 s, /hello answers at once,
# /big with 1 MB
use strict;
use warnings;

use Time::HiRes qw(sleep);

my %seconds = ( '/' => 0.001, '/sleep' => 0.1, '/slow' => 0.5, '/long' => 10 );

sub {
    my $env     = shift;
    my $seconds = $seconds{ $env->{PATH_INFO} };
    sleep $seconds if $seconds;
    return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => 1_000_000 ], [ 'x' x 1_000_000 ] ]
        if $env->{PATH_INFO} eq '/big';
    return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => length $$ ], ["$$"] ];
};
