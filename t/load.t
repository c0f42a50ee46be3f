use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# What was built, and the modules that applications use

use_ok $_ for qw(Sirius Plack::Handler::Sirius Sirius::Channel Sirius::WebSocket Sirius::Edge::Program);
my $edge = Sirius::Edge::Program->path;
ok -x $edge, 'the program that owns the connections';
diag "Sirius $Sirius::VERSION, perl $], Plack " . eval { require Plack; Plack->VERSION };
done_testing;
