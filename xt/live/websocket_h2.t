# WebSockets on streams of HTTP/2: extended CONNECT (RFC 8441)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::HTTP2;
use Sirius::Test::WebSocket;

my $APP = <<'APP';
use Sirius::WebSocket;
my $echo = Sirius::WebSocket->new(
    on_open => sub {
        my $ws = shift;
        select undef, undef, undef, 1 if $ws->env->{PATH_INFO} =~ /slow/;
        $ws->env->{PATH_INFO} =~ /no/ ? $ws->reject( 403, "no\n" ) : $ws->accept( 'X-Own' => 1 );
    },
    on_message => sub {
        my ( $ws, $text ) = @_;
        select undef, undef, undef, 0.5 if $text eq 'slow';
        $text = join ' ', @{ $ws->env }{qw(REQUEST_METHOD SERVER_PROTOCOL REQUEST_URI HTTP_HOST)} if $text eq 'env';
        $ws->send($text);
    },
    on_disconnect => sub { print STDERR 'gone ', $_[0]->env->{PATH_INFO}, "\n" },
)->to_app;
sub { my $env = shift; return $env->{REQUEST_METHOD} eq 'POST' ? $echo->($env) : [ 200, [], ['page'] ] };
APP

my $server
    = start_server( $APP, qw(--hold --workers 2 --websocket /ws --websocket /no --websocket-max-message 64k),
    @Sirius::Test::HTTP2::LISTEN );
my $address = $server->address;

sub ws {
    my ( $path, %option ) = @_;
    return Sirius::Test::WebSocket->new( $address, h2 => 1, path => $path, %option );
}

subtest 'the opening' => sub {
    my $ws = ws('/ws/a?b=c');
    ok $ws->{extended}, 'SETTINGS_ENABLE_CONNECT_PROTOCOL';
    is $ws->status, 200, 'is accepted';
    $ws->text('env');
    is $ws->next, 'text POST HTTP/2.0 /ws/a?b=c a', 'what the application sees';
    $ws->send( close => pack 'n', 1000 );
    is $ws->all, 'close 1000', 'closed';
    is $ws->end, 'eof',        'and the stream ends';
};

subtest 'what is refused' => sub {
    my $ws = ws('/no');
    is $ws->status,          403,          'by the application';
    is $ws->end,             "bytes no\n", 'with its response';
    is ws('/other')->status, 501,          'another path, by an application that does not speak it';
    my $raw = Sirius::Test::HTTP2->new($address)->greet;
    my $ask = sub {
        my ( $stream, $flags, @field ) = @_;
        $raw->send( $raw->make(
            'HEADERS',
            $flags, $stream,
            $raw->fields(
                ':method'    => 'CONNECT',
                ':scheme'    => 'http',
                ':path'      => '/ws',
                ':authority' => 'a',
                @field
            )
        ) );
        my $frame;
        do { $frame = $raw->frame } while $frame && $frame->{stream} != $stream;
        return $frame->{status} // $frame->{error};
    };
    is $ask->( 1, 4, ':protocol' => 'websocket' ), 426, 'no version';
    is $ask->( 3, 5, ':protocol' => 'websocket', 'sec-websocket-version' => 13 ), 400,
        'one that ends with its head';
    like $ask->( 5, 4, ':protocol' => 'connect-udp' ), qr/\A[45]/, 'another protocol';
    is $ask->( 7, 4, ':protocol' => 'websocket', 'sec-websocket-version' => 13 ), 200,
        'the connection goes on';
};

subtest 'streams of one connection' => sub {
    my $raw = Sirius::Test::HTTP2->new($address)->greet;
    my @open
        = ( ':method' => 'CONNECT', ':protocol' => 'websocket', ':scheme' => 'http', ':authority' => 'a' );
    for my $stream ( 1, 3, 5 ) {
        $raw->send( $raw->make(
            'HEADERS', 4, $stream,
            $raw->fields( @open, ':path' => "/ws/$stream", 'sec-websocket-version' => 13 )
        ) );
        is $raw->await( 'HEADERS', $stream )->{status}, 200, "stream $stream";
    }
    my $frame = sub { Sirius::Test::WebSocket->frame(@_) };
    $raw->send( $raw->make( 'DATA', 0, 1, $frame->( text => 'slow' ) ) );
    $raw->send( $raw->make( 'DATA', 0, $_, $frame->( text => "on $_" ) ) ) for 3, 5;
    is $raw->await( 'DATA', $_ )->{payload}, "\x81\x04on $_", "stream $_ is answered" for 3, 5;
    $raw->open( 7, 'GET /page' );
    is $raw->await( 'DATA', 7 )->{payload}, 'page',         'and a request';
    is $raw->await( 'DATA', 1 )->{payload}, "\x81\x04slow", 'then the slow one';
    $raw->send( $raw->make( 'RST_STREAM', 0, 3, pack 'N', 8 ) );
    ok $server->wait_log(qr{gone /ws/3}), 'a stream that is reset is told';
    $raw->send( $raw->make( 'DATA', 1, 5, '' ) );
    ok $server->wait_log(qr{gone /ws/5}), 'one that ends without CLOSE';
    close $raw->{socket};
    ok $server->wait_log(qr{gone /ws/1}), 'and the end of the connection';
};

subtest 'a client that sends more than the application takes' => sub {
    my $ws = ws('/ws');
    $ws->text('slow');
    my $text = 'y' x 60_000;
    $ws->text($text) for 1 .. 50;
    is $ws->next, 'text slow', 'the first answer';
    my @same = grep { $ws->next eq "text $text" } 1 .. 50;
    is @same, 50, 'all others';
    my $client = ws('/ws');
    $client->text('slow');
    my $bytes = $client->frame( text => $text ) x 100;
    my ( $sent, $until ) = ( 0, time + 10 );

    while ( !length $client->{in} && time <= $until && $sent < length $bytes ) {
        my $is_open = $client->_window >= 16_384;
        $client->_more( $is_open ? time : time + 0.05 );    # frames that open its window
        next if !$is_open;
        $client->{window}[$_] -= 16_384 for 0, 1;
        $client->{client}->send( $client->{client}->make( 'DATA', 0, 1, substr $bytes, $sent, 16_384 ) );
        $sent += 16_384;
    }
    is $client->next, 'text slow', 'while the application is busy';
    cmp_ok $sent, '<', 2_000_000, 'its window is not opened without end';
};

subtest 'a client that does not wait for the answer' => sub {
    for my $size ( 1000, 65_000 ) {    # its window ends at 65,535
        my $raw = Sirius::Test::HTTP2->new($address)->greet;
        $raw->await('SETTINGS');
        $raw->send( $raw->make( 'SETTINGS', 1, 0 ) );    # the windows are those of the server from now on
        $raw->send( $raw->make(
            'HEADERS',
            4, 1,
            $raw->fields(
                ':method'               => 'CONNECT',
                ':protocol'             => 'websocket',
                ':scheme'               => 'http',
                ':authority'            => 'a',
                ':path'                 => '/ws/slow',
                'sec-websocket-version' => 13
            )
        ) );
        my $bytes = Sirius::Test::WebSocket->frame( text => 'early' )
            . Sirius::Test::WebSocket->frame( binary => 'x' x $size );
        $raw->send( $raw->make( 'DATA', 0, 1, substr $bytes, 0, 10_000, '' ) ) while length $bytes;
        like $raw->await( 'DATA', 1 )->{payload}, qr/\A\x81\x05early/,
            "is served when it is open: $size bytes";
    }
};

subtest 'a stop' => sub {
    my $ws = ws('/ws');
    $ws->text('x');
    $ws->next;
    $server->signal('TERM');
    is $ws->all, 'close 1001', 'the server goes away';
    $server->stop;
};

subtest 'without --hold' => sub {
    $server  = start_server( $APP, @Sirius::Test::HTTP2::LISTEN );
    $address = $server->address;
    my $ws = ws('/ws');
    ok $ws->{extended}, 'SETTINGS_ENABLE_CONNECT_PROTOCOL all the same';
    is $ws->status, 501, 'an application that does not speak it opens none';
    $server->stop;
};
done_testing;
