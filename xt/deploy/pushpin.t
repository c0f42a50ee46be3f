use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
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

subtest 'eg/chat.psgi and eg/progress.psgi, unchanged' => sub {
    my $control = free_port();
    local @ENV{qw(GRIP_URL GRIP_KEY)} = ( "http://127.0.0.1:$control", $key );
    my $chat  = start_server( "$Sirius::Test::Server::ROOT/eg/chat.psgi", qw(--workers 2) );
    my $proxy = Sirius::Test::Pushpin->start( $chat->address, control => $control );
    my ( $ann, $bob ) = map {
        my $ws = Sirius::Test::WebSocket->new( '127.0.0.1:' . $proxy->port, path => "/chat?name=$_" );
        is $ws->next, "text Hello $_", $_;
        $ws;
    } qw(Ann Bob);
    is $ann->next, 'text Bob is here', 'one knows of the other';
    $bob->text("gr\xc3\xbcn");
    is $_->next, "text Bob: gr\xc3\xbcn", 'a message' for $ann, $bob;
    $proxy->stop;
    $chat->stop;

    my $jobs = start_server( "$Sirius::Test::Server::ROOT/eg/progress.psgi", qw(--workers 4) );
    $proxy = Sirius::Test::Pushpin->start( $jobs->address, control => $control );
    my $job = $proxy->connect->ask( 'POST /jobs', \'' )->body;
    my $in  = '';
    for ( 1 .. 10 ) {    # Pushpin may not be ready yet
        my $client = $proxy->connect;
        $client->send( request("GET /jobs?$job") );
        $in = $client->some( 1, 20 );
        next if $in !~ m{\AHTTP/1[.]1 200 };
        until_true( 20, sub { $in .= $client->some( 1, 0.5 ); $in =~ /^data: 100\n/m } );
        last;
    }
    like $in, qr/^id: \d+\n.*^id: 20\ndata: 100\n\n/ms, 'progress';
    $proxy->stop;
    $jobs->stop;
};
done_testing;
