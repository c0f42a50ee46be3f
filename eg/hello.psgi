# The smallest application: sirius eg/hello.psgi
use strict;
use warnings;

sub {
    return [ 200, [ 'Content-Type' => 'text/plain' ], ['Hello World'] ];
};
