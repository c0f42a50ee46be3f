# What is tested over HTTP/1.1 holds over HTTP/2: a few tests, as they are. dev/test --h2 runs all of them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

runs_with( SIRIUS_TEST_H2 => qw(http/expect.t http/sendfile.t http/static.t psgi/body.t psgi/streaming.t) );

done_testing;
