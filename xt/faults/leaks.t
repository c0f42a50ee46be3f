use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Soak::Leaks;

# Requests of all kinds leave nothing behind: no memory, no descriptor, no file, no process. "dev/soak
# --leaks" is the same with a million

Sirius::Soak::Leaks->run( requests => $ENV{SIRIUS_TEST_LONG} ? 200_000 : 20_000 );
done_testing;
