package Sirius::Test::Patient;

# For tests that installers run, on machines that may be slow and busy: all waiting may take twelve times as
# long as in xt/. Used before the rest of the harness.

use strict;
use warnings;

BEGIN { $ENV{SIRIUS_TEST_PATIENCE} ||= 12 }

1;
