use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Live;
use Sirius::Test::Nginx;

# Event streams and WebSockets through nginx, with the configuration of docs/LIVE.md

plan skip_all => 'nginx is not installed' if !Sirius::Test::Nginx->available;
http1_only('nginx speaks HTTP/1.1 to applications');
plan skip_all => 'nginx speaks plain HTTP to applications here' if $Sirius::Test::Client::TLS;

my ($block)
    = Sirius::Test::Server::slurp("$Sirius::Test::Server::ROOT/docs/LIVE.md") =~ /^```nginx\n(.*?)^```\n/ms
    or die 'docs/LIVE.md has no configuration of nginx';
my $dir = File::Temp->newdir;
my $server
    = start_server( Sirius::Test::Live->app, qw(--workers 2 --hold --trust-proxy 127.0.0.0/8 --control),
    "$dir/control" );
my $address = $server->address;
$block =~ s/listen \S+:8080;/listen 127.0.0.1:PORT;/                           or die 'listen';
$block =~ s{proxy_pass http://127\.0\.0\.1:5000;}{proxy_pass http://$address;} or die 'proxy_pass';
my $nginx = Sirius::Test::Nginx->start($block);

my $live = Sirius::Test::Live->new(
    address => '127.0.0.1:' . $nginx->port,
    server  => $server,
    control => "$dir/control",
);
$live->streams;
$live->websockets;
$nginx->stop;
$server->stop;
done_testing;
