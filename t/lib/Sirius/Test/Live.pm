package Sirius::Test::Live;

# An application with event streams, long polling and WebSockets, and what clients see of it. The same behind
# Pushpin (xt/deploy/pushpin.t) and under --hold (xt/live/handler.t).
#
#   my $live = Sirius::Test::Live->new( address => $address, server => $server, control => $path );
#   $live->streams;
#   $live->websockets;

use strict;
use warnings;
use JSON::PP qw(encode_json);
use Test::More;
use Sirius::Test;
use Sirius::Test::WebSocket;

# With this key for Grip-Sig, or none
sub app {
    my ( $class, $key ) = @_;
    my $signed = defined $key ? "key => '$key'," : '';
    return <<"APP" . <<'APP';
my \@key = ($signed);
APP
use Plack::Builder;
use Sirius::WebSocket;

my $chat = Sirius::WebSocket->new(
    @key,
    on_open => sub {
        my ($ws) = @_;
        return $ws->reject( 401, "sign in\n" ) if $ws->env->{QUERY_STRING} eq 'nobody';
        my ($protocol) = split /, */, $ws->env->{HTTP_SEC_WEBSOCKET_PROTOCOL} || '';
        $ws->accept( $protocol ? ( 'Sec-WebSocket-Protocol' => $protocol ) : () )->subscribe( 'room', 'all' );
        $ws->subscribe( 'own', { skip_self => $ws->env->{QUERY_STRING} } );
    },
    on_message => sub {
        my ( $ws, $content, $is_binary ) = @_;
        return $ws->send_binary($content) if $is_binary;
        my ( $order, $rest ) = split / /, $content, 2;
        my %do = (
            close  => sub { $ws->send('before')->close( 4001, 'bye' )->send('late') },
            die    => sub { $ws->send('never'); die "on purpose\n" },
            detach => sub { $ws->detach },
            keep   => sub { $ws->keep_alive( 1, 'still here' ) },
            leave  => sub { $ws->unsubscribe($rest); $ws->send("left $rest") },
            rename => sub { $ws->meta( user => $rest ); $ws->send('renamed') },
            who    => sub { $ws->send( join ' ', $ws->meta('user'), $ws->id ) },
        );
        return ( $do{ $order // '' } || sub { $ws->send("echo $content") } )->();
    },
    on_close      => sub { my ( $ws, $code, $reason ) = @_; warn 'closed by ', $ws->meta('user'), " $code $reason\n" },
    on_disconnect => sub { my ($ws) = @_; warn $ws->meta('user'), " is gone\n" },
);

my %page = (
    '/events' => sub {
        [   200,
            [ 'Content-Type' => 'text/event-stream', 'Grip-Hold' => 'stream', 'Grip-Channel' => 'news, all',
              'Grip-Keep-Alive' => ':\n\n; format=cstring; timeout=20', 'X-Accel-Buffering' => 'no' ],
            ["data: first\n\n"]
        ];
    },
    '/own' => sub {
        [   200,
            [ 'Content-Type' => 'text/event-stream', 'Grip-Hold' => 'stream', 'Grip-Channel' => 'own; filter=skip-self',
              'Grip-Set-Meta' => qq(user="$_[0]") ],
            ["data: first\n\n"]
        ];
    },
    '/poll' => sub {
        [   200,
            [ 'Content-Type' => 'text/plain', 'Grip-Hold' => 'response', 'Grip-Channel' => 'poll', 'Grip-Timeout' => $_[0] ],
            ['nothing new']
        ];
    },
    '/plain' => sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['plain'] ] },
);
builder {
    mount '/chat' => $chat->to_app;
    mount '/'     => sub {
        my $env = shift;
        my $page = $page{ $env->{PATH_INFO} } or return [ 404, [], [] ];
        return $page->( $env->{QUERY_STRING} );
    };
};
APP
}

# address: where clients connect; server: that has the log; control: the control socket to which items are
# posted, or publish: a sub that gets an item
sub new {
    my ( $class, %arg ) = @_;
    return bless { publish => sub { return _post( $arg{control}, shift ) }, %arg }, $class;
}

sub _post {
    my ( $path, $item ) = @_;
    my $body   = encode_json( { items => [$item] } );
    my $client = Sirius::Test::Client->new( "unix:$path", plain => 1 );
    return $client->ask( 'POST /publish/', 'Content-Type: application/json', \$body )->status;
}

sub publish {
    my ( $self, $channel, %formats ) = @_;
    return $self->{publish}->( { channel => $channel, formats => \%formats } );
}

sub publish_as {
    my ( $self, $sender, $channel, %formats ) = @_;
    return $self->{publish}->( { channel => $channel, meta => { sender => $sender }, formats => \%formats } );
}

sub websocket {
    my ( $self, $query, @field ) = @_;
    return Sirius::Test::WebSocket->new(
        $self->{address},
        path   => "/chat?$query",
        fields => \@field,
        tls    => $Sirius::Test::Client::TLS
    );
}

sub client { return Sirius::Test::Client->new( shift->{address} ) }

# The next message; in one frame or several
sub whole {
    my $ws = shift;
    my ( $text, $more ) = ( '', 1 );
    while ($more) {
        my $frame = $ws->next;
        $more = $frame =~ s/\Apart //;
        $text .= length $text ? $frame =~ s/\Amore //r : $frame;
    }
    return $text;
}

sub streams {
    my $self = shift;
    subtest 'event streams' => sub {
        my @client = map { $self->client } 1 .. 3;
        for my $client (@client) {
            $client->send( request('GET /events') );
            my $in = $client->comes(qr/data: first\n\n/);
            like $in,   qr/^Content-Type: text\/event-stream\r$/m, 'begins';
            unlike $in, qr/^Grip-/mi,                              'without fields for the server';
        }
        $self->publish( news => 'http-stream' => { content => "data: gr\x{fc}n\n\n" } );
        like $_->comes(qr/data: gr/), qr/data: gr\xc3\xbcn\n\n/, 'gets what is published' for @client;
        $self->publish( all => 'http-stream' => { 'content-bin' => 'ZGF0YTogYmluCgo=' } );
        like $_->comes(qr/data: bin/), qr/data: bin\n\n/, 'on another channel' for @client;
        $self->publish( news => 'http-stream' => { action => 'close' } );
        ok until_true( 10, sub { my $in = $_->rest(0.5); $_->{end} || $in =~ /^0\r\n\r\n/m } ), 'and ends'
            for @client;
    };
    subtest 'skip-self' => sub {
        my ( $ann, $bob ) = map { $self->client } 1, 2;
        $ann->send( request('GET /own?Ann') );
        $bob->send( request('GET /own?Bob') );
        $_->comes(qr/data: first\n\n/) for $ann, $bob;
        $self->publish_as( 'Ann', own => 'http-stream' => { content => "data: of Ann\n\n" } );
        $self->publish( own => 'http-stream' => { content => "data: of nobody\n\n" } );
        my ( $heard, $said ) = map { $_->comes(qr/data: of nobody/) } $bob, $ann;
        like $heard,  qr/of Ann.*of nobody/s, 'others get what a user publishes';
        like $said,   qr/of nobody/,          'he gets what others do';
        unlike $said, qr/of Ann/,             'and nothing of his own';
    };
    subtest 'long polling' => sub {
        my $client = $self->client;
        is $client->ask('GET /poll?1')->body, 'nothing new', 'the time is over';
        $client = $self->client;
        $client->send( request('GET /poll?20') );
        ok !$client->begins(1), 'it waits';
        $self->publish(
            poll => 'http-response' => { code => 201, headers => { 'X-Name' => 'value' }, body => 'news' } );
        my $answer = $client->response;
        is_deeply [ $answer->status, $answer->header('X-Name'), $answer->body ], [ 201, 'value', 'news' ],
            'an answer';
    };
    return;
}

sub websockets {
    my $self = shift;
    subtest 'a WebSocket' => sub {
        my $ws = $self->websocket( 'Ann', 'Sec-WebSocket-Protocol: chat, other' );
        is $ws->status, 101, 'opens' or return;
        like $ws->head, qr/^Sec-WebSocket-Protocol: chat\r$/mi, 'with its protocol';
        unlike $ws->head, qr/^(?:Sec-WebSocket-Extensions|Set-Meta|Grip|Keep-Alive)/mi,
            'and nothing for the server';
        $self->_talk( $ws, $_, "echo $_" )
            for 'hello', "gr\xc3\xbcn \xf0\x9f\x98\x80", '', 'c:{"type":"detach"}', 'm:x', 'x' x 20_000;
        $ws->send( binary => "\0\xff" );
        is $ws->next, "binary \0\xff", 'bytes';
        $ws->send( ping => 'beat' );
        is $ws->next, 'pong beat', 'a ping';
        $ws->put( $ws->frame( text => 'in ', fin => 0 ) . $ws->frame( more => 'two' ) );
        is $ws->next, 'text echo in two', 'a message in two frames';
        $ws->put( join '', map { $ws->frame( text => "$_" ) } 1 .. 50 );
        is join( ' ', map { $ws->next } 1 .. 50 ), join( ' ', map {"text echo $_"} 1 .. 50 ),
            'many, in their order';
        $ws->send( close => pack 'n a*', 1000, 'done' );
        is $ws->next, 'close 1000', 'closes';
        ok $self->{server}->wait_log(qr/closed by Ann 1000 done/), 'and the application knows';
    };
    subtest 'what belongs to a connection' => sub {
        my ( $ann, $bob ) = map { $self->websocket($_) } qw(Ann Bob);
        my ( $first, $second ) = map { $_->text('who')->next } $ann, $bob;
        like $first,  qr/\Atext Ann \S{8,}\z/, 'values and an id';
        like $second, qr/\Atext Bob \S{8,}\z/, 'of each its own';
        isnt $first =~ s/.* //r, $second =~ s/.* //r, 'another id';
        $self->_talk( $ann, "rename Zo\xc3\xab", 'renamed' );
        $self->_talk( $ann, 'who',               $first =~ s/text Ann/Zo\xc3\xab/r );
        $_->{client}->abort for $ann, $bob;
        ok $self->{server}->wait_log(qr/Zo\xc3\xab is gone/), 'the application learns who is gone';
    };
    subtest 'channels' => sub {
        my @ws = map { $self->websocket($_) } 1 .. 3;
        $self->_talk( $_, 'ready', 'echo ready' ) for @ws;
        $self->publish( room => 'ws-message' => { content => "gr\x{fc}n" } );
        is $_->next, "text gr\xc3\xbcn", 'a message to all' for @ws;
        $self->publish( all => 'ws-message' => { 'content-bin' => '/wA=' } );
        is $_->next, "binary \xff\0", 'bytes' for @ws;
        $self->_talk( $ws[0], 'leave room', 'left room' );
        my $times    = 0;      # Pushpin does not say when it has done what an order says
        my $has_left = sub {
            $times++;
            $self->publish( room => 'ws-message' => { content => "again $times" } );
            is $_->next, "text again $times", 'to those that are there' for @ws[ 1, 2 ];
            return $ws[0]->next(0.5) eq 'timeout';
        };
        ok until_true( 10, $has_left ), 'not to the one that has left';
        $ws[1]->text('detach');
        is $ws[1]->next(1), 'timeout', 'detached';
        $ws[1]->text('hello');
        is $ws[1]->next(0.5), 'timeout', 'the application is not asked any more';
        $self->publish( all => 'ws-message' => { content => 'still' } );
        is $ws[1]->next, 'text still', 'what is published comes';
        $self->publish( all => 'ws-message' => { action => 'close', code => 4002 } );
        $ws[0]->next;
        like $ws[0]->next, qr/\Aclose 4002/, 'closed by a publisher';
    };
    subtest 'skip-self' => sub {
        my ( $ann, $bob ) = map { $self->websocket($_) } qw(Ann Bob);
        $self->_talk( $_, 'ready', 'echo ready' ) for $ann, $bob;
        $self->publish_as( 'Ann', own => 'ws-message' => { content => 'of Ann' } );
        $self->publish( own => 'ws-message' => { content => 'of nobody' } );
        is $bob->next, 'text of Ann', 'others get what a user publishes';
        is $_->next, 'text of nobody', 'and he gets what others do' for $bob, $ann;
    };
    subtest 'keep-alive' => sub {
        my $ws = $self->websocket('Ann');
        $ws->text('keep');
        is $ws->next, 'text still here', "message $_" for 1, 2;
    };
    subtest 'the application closes' => sub {
        my $ws = $self->websocket('Ann');
        $ws->text('close');
        is $ws->next, 'text before',    'after a message';
        is $ws->next, 'close 4001 bye', 'with a code';
        $ws = $self->websocket('Ann');
        $ws->text('die');
        like $ws->next, qr/\A(?:close 1011|eof)/, 'after an exception';
        ok $self->{server}->wait_log(qr/on purpose/), 'which is in the log';
    };
    subtest 'what is refused' => sub {
        my $refused = $self->websocket('nobody');
        is $refused->status, 401, 'by the application';
        $refused->end(1) if $refused->{in} !~ /sign in/;
        like $refused->{in}, qr/sign in\n/, 'in its words';
        is $self->websocket( 'Ann', 'Origin: https://evil.example' )->status, 403, 'a page of another site';
        is $self->websocket( 'Ann', 'Origin: http://a' )->status,             101, 'and not one of this';
        my $client = $self->client;
        is $client->ask('GET /chat?Ann')->status, 426, 'an ordinary request';
        my $body = "OPEN\r\nTEXT 3\r\nwho\r\n";
        $client = $self->client;
        my $answer = $client->ask(
            'POST /chat?Ann',
            'Content-Type: application/websocket-events',
            'Connection-Id: 1',
            'Meta-User: admin',
            'Sec-WebSocket-Extensions: grip', \$body
        );
        like $answer->status, qr/\A40[03]\z/, 'an event that a client has written';
        unlike $answer->body, qr/admin/,      'reaches no handler';
        my $ws = $self->websocket( 'Ann', 'Meta-User: admin', 'Connection-Id: 1' );
        $ws->text('who');
        like $ws->next, qr/\Atext Ann (?!1\z)/, 'nor do its fields';
    };
    return;
}

sub _talk {
    my ( $self, $ws, $text, $want ) = @_;
    return is whole( $ws->text($text) ), "text $want", substr $text, 0, 40;
}

1;
