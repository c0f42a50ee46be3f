# Catalyst with DBI and SQLite
use strict;
use warnings;

use lib $ENV{HOTTEST};
use Shop;

Shop->psgi_app;
