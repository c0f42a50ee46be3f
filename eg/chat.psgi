# A chat: WebSockets that the server holds, with an application that blocks. Any number of people, as few
# workers as you like.
#
# Each event is a request: somebody comes, says something, goes. Messages to all go through a channel. They
# reach those who are there, and are kept nowhere.
use strict;
use warnings;
use Plack::Builder;
use Sirius::Channel;
use Sirius::WebSocket;

my $PAGE = <<'HTML';
<!DOCTYPE html>
<title>Chat</title>
<form><input id="text" placeholder="your name" autocomplete="off" autofocus></form>
<ul id="said"></ul>
<script>
const text = document.getElementById('text'), said = document.getElementById('said');
let socket, name;
function show(line) {
    const item = document.createElement('li');
    item.textContent = line;
    said.prepend(item);
}
function connect() {
    socket = new WebSocket(location.origin.replace(/^http/, 'ws') + '/chat?name=' + encodeURIComponent(name));
    socket.onopen = () => { text.placeholder = 'say something'; };
    socket.onmessage = event => show(event.data);
    socket.onclose = () => setTimeout(connect, 1000 + 4000 * Math.random());
}
document.forms[0].onsubmit = event => {
    event.preventDefault();
    if (name !== undefined && socket.readyState !== WebSocket.OPEN) return;
    if (name !== undefined) socket.send(text.value);
    else if (/^[A-Za-z0-9]{1,20}$/.test(text.value)) { name = text.value; connect(); }
    text.value = '';
};
</script>
HTML

my $chat = Sirius::WebSocket->new(
    key     => $ENV{GRIP_KEY},    # where Pushpin holds the connections: deploy/pushpin
    on_open => sub {
        my ($ws)   = @_;
        my ($name) = $ws->env->{QUERY_STRING} =~ /\Aname=([A-Za-z0-9]{1,20})\z/
            or return $ws->reject( 400, "a name has letters and digits\n" );
        $ws->accept->subscribe('chat');
        $ws->meta( name => $name );    # comes again with each event of this connection
        $ws->send("Hello $name");
        Sirius::Channel->publish( chat => "$name is here" );
    },
    on_message => sub {
        my ( $ws, $text ) = @_;
        Sirius::Channel->publish( chat => $ws->meta('name') . ": $text" );
    },
    on_close => sub {
        my ($ws) = @_;
        Sirius::Channel->publish( chat => $ws->meta('name') . ' has left' );
    },
);

builder {
    mount '/chat' => $chat->to_app;
    mount '/'     => sub { return [ 200, [ 'Content-Type' => 'text/html; charset=utf-8' ], [$PAGE] ] };
};
