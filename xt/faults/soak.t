use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Soak::Storm;

# Requests of all kinds while workers are killed and stopped, reloads and rotations happen, descriptors and
# the disk run short: no acknowledged response is lost, none comes twice. "dev/soak" is the same for ten
# minutes

Sirius::Soak::Storm->run( seconds => $ENV{SIRIUS_TEST_LONG} ? 120 : 8, each => 0.3, seed => $$ );
done_testing;
