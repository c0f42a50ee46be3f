# What is tested without TLS holds with it: a few tests of HTTP and PSGI, as they are. dev/test --tls runs all
# of them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

runs_with( SIRIUS_TEST_TLS => qw(http/keepalive.t http/chunked_response.t psgi/body.t psgi/env.t) );

done_testing;
