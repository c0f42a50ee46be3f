use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use JSON::PP   qw(encode_json);
use Test::More;
use Sirius::Test;
use Sirius::Test::Live;

# Sirius::WebSocket and event streams with --hold: the same application, and the same tests, as behind Pushpin

my $dir    = File::Temp->newdir;
my $server = start_server( Sirius::Test::Live->app, qw(--workers 2 --hold --control), "$dir/control" );
my $live   = Sirius::Test::Live->new(
    address => $server->address,
    server  => $server,
    publish => sub {
        my $body   = encode_json( { items => [shift] } );
        my $client = Sirius::Test::Client->new( "unix:$dir/control", plain => 1 );
        return $client->ask( 'POST /publish/', 'Content-Type: application/json', \$body )->status;
    },
);
$live->streams;
$live->websockets;
$server->stop;
done_testing;
