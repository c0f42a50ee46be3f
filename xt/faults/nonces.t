# Each response carries what its request has sent, whatever is killed, renewed or too late. "dev/soak
# --nonces" is the same, ten million times
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Soak::Nonces;

Sirius::Soak::Nonces->run(
    pace     => $ENV{SIRIUS_TEST_LONG} ? 1         : 0.1,
    requests => $ENV{SIRIUS_TEST_LONG} ? 1_000_000 : 30_000,
    seed     => $$
);
done_testing;
