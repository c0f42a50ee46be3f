# A body too large for the small buffers servers join head and body in
use strict;
use warnings;

my $body = 'x' x 8000;
sub { return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => 8000 ], [$body] ] }
