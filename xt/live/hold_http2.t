# The tests of held responses over HTTP/2
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";

BEGIN { $ENV{SIRIUS_TEST_H2} = 1 }
use Sirius::Test;

do "$FindBin::Bin/hold.t" or die $@ || $!;
