# The benchmark everybody quotes. Content-Length is given, so that no server has to guess or to chunk.
use strict;
use warnings;

sub { return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => 11 ], ['Hello World'] ] }
