use strict;
use warnings;
use Test::More skip_all => q(being written);
