use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP qw(encode_json);
use Test::More;
use Sirius::Test;
use Sirius::Test::Live;
use Sirius::Test::Pushpin;

# Pushpin with the files of deploy/pushpin holds the connections, and Sirius does not know of them

plan skip_all => 'pushpin is not installed' if !Sirius::Test::Pushpin->available;
http1_only('Pushpin speaks HTTP/1.1 to applications');
plan skip_all => 'the routes have no TLS' if $Sirius::Test::Client::TLS;

my ($key)
    = Sirius::Test::Server::slurp("$Sirius::Test::Server::ROOT/deploy/pushpin/routes")
    =~ /^[^#].*proto=ws,.*sig_key=(\S+)/m;
my $server  = start_server( Sirius::Test::Live->app($key), qw(--workers 2) );
my $pushpin = Sirius::Test::Pushpin->start( $server->address );
is $pushpin->connect->ask('GET /plain')->body, 'plain', 'an ordinary request';

my $live = Sirius::Test::Live->new(
    address => '127.0.0.1:' . $pushpin->port,
    server  => $server,
    publish => sub {
        my $body = encode_json( { items => [shift] } );
        return $pushpin->control->ask( 'POST /publish/', 'Content-Type: application/json', \$body )->status;
    },
);
$live->streams;
$live->websockets;
$pushpin->stop;
$server->stop;
done_testing;
