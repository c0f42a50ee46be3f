use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;
use Sirius::Test::WebSocket;

# --hold: WebSockets, whose messages are requests to the application

my $server = start_server( <<'APP', qw(--workers 2 --hold) );
use Plack::Builder;
use Sirius::WebSocket;
my $echo = Sirius::WebSocket->new( on_open => sub { $_[0]->accept }, on_message => sub { $_[0]->send("echo $_[1]") } );
builder { mount '/ws' => $echo->to_app; mount '/' => sub { [ 200, [], ['plain'] ] } };
APP
my @ws = map { Sirius::Test::WebSocket->new( $server->address, path => '/ws' ) } 1 .. 5;
is $_->status, 101, 'opened' for @ws;
for my $n ( 1 .. 5 ) {
    $_->text("message $n") for @ws;
    is $_->next, "text echo message $n", 'a message comes back' for @ws;
}
is $server->ask('GET /')->body, 'plain', 'other requests are served';
$ws[0]->send( close => pack 'n', 1000 );
like $ws[0]->next, qr/\Aclose 1000/, 'the close is answered';
$server->stop;
done_testing;
