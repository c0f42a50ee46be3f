# Handshakes of all kinds, half of them broken: no memory and no descriptor is lost. "dev/soak --tls" is the
# same, 100,000 times
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Soak::Handshakes;

Sirius::Soak::Handshakes->run( handshakes => $ENV{SIRIUS_TEST_LONG} ? 20_000 : 700, seed => $$ );
done_testing;
