# Two bytes: the application of Starlet's published figures
use strict;
use warnings;

sub { return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => 2 ], ['OK'] ] }
