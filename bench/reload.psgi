# Tells which process answers, and when it loaded this file
use strict;
use warnings;

use Time::HiRes qw(time);

my $loaded = time;
sub {
    my $body = sprintf '%d %.6f', $$, $loaded;
    return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => length $body ], [$body] ];
};
