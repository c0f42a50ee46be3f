# Dancer2 with Template Toolkit
package Report;
use strict;
use warnings;

use lib $ENV{HOTTEST};
use Dancer2 appname => 'Report';
use Work;

set views    => "$ENV{HOTTEST}/views";
set engines  => { template => { template_toolkit => { start_tag => '[%', end_tag => '%]' } } };
set template => 'template_toolkit';
set logger   => 'null';
get '/' => sub { template 'report', { title => 'Report', %{ Work::all() } }, { layout => undef } };

Report->to_app;
