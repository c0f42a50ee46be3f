# The smallest application
use strict;
use warnings;

sub {
    return [ 200, [ 'Content-Type' => 'text/plain' ], ['Hello World'] ];
};
