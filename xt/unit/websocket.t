use strict;
use warnings;
use Test::More;
use MIME::Base64 qw(encode_base64url);
use Digest::SHA  qw(hmac_sha256);
use JSON::PP     qw(decode_json encode_json);
use Sirius::WebSocket;

# A handler of WebSockets, by the requests that a gateway makes and the responses that it gets

sub event {
    my ( $type, $content ) = @_;
    return defined $content ? sprintf( "%s %x\r\n%s\r\n", $type, length $content, $content ) : "$type\r\n";
}

sub env {
    my ( $body, %more ) = @_;
    open my $input, '<', \$body or die $!;
    return {
        REQUEST_METHOD     => 'POST',
        CONTENT_TYPE       => 'application/websocket-events',
        HTTP_CONNECTION_ID => 'c1',
        HTTP_HOST          => 'shop.example:5000',
        CONTENT_LENGTH     => length $body,
        'psgi.input'       => $input,
        %more,
    };
}

my @called;
my $chat = Sirius::WebSocket->new(
    unsigned   => 1,
    on_open    => sub { my ($ws) = @_; push @called, 'open'; $ws->accept->subscribe('room') },
    on_message => sub {
        my ( $ws, $text, $is_binary ) = @_;
        push @called, ( $is_binary ? 'binary ' : 'text ' ) . $text;
        die "on purpose\n"               if $text eq 'die';
        return $ws->close( 4001, 'bye' ) if $text eq 'close';
        return $is_binary ? $ws->send_binary("echo $text") : $ws->send("echo $text");
    },
    on_close      => sub { my ( $ws, $code, $reason ) = @_; push @called, "close $code $reason" },
    on_disconnect => sub { push @called,                                  'disconnect' },
);

# Status, body, the fields that are not always the same; and what was called
sub ask {
    my ( $handler, @arg ) = @_;
    @called = ();
    my ( $status, $fields, $body ) = @{ $handler->call( env(@arg) ) };
    my %field = @$fields;
    is delete $field{'Content-Length'}, length join( q(), @$body ), 'the length'
        if exists $field{'Content-Length'};
    my $type = delete $field{'Content-Type'};
    is $type, 'application/websocket-events', 'the type' if $status == 200;
    return ( $status, join( q(), @$body ), \%field );
}

is ref $chat->to_app, 'CODE', 'an application';

subtest 'the end behind a message whose handler closes' => sub {
    ask( $chat,
        event( TEXT => 'close' ) . event( TEXT => 'more' ) . event( CLOSE => pack 'n a*', 1001, 'off' ) );
    is "@called", 'text close close 1001 off', 'is told, what comes before it is not';
    my ( $status, $body ) = ask( $chat, event( TEXT => 'close' ) . event('DISCONNECT') );
    is "@called", 'text close disconnect',                    'so is a disconnection';
    is $body,     event( CLOSE => pack 'n a*', 4001, 'bye' ), 'the answer is that of the handler';
};

subtest 'a connection' => sub {
    is_deeply [ ask( $chat, event('OPEN') ) ],
        [
        200,
        event('OPEN') . event( TEXT => 'c:{"channel":"room","type":"subscribe"}' ),
        { 'Sec-WebSocket-Extensions' => 'grip' }
        ],
        'opens';
    is_deeply [ ask( $chat, event( TEXT => "gr\xc3\xbc\xc3\x9fe" ) ) ],
        [ 200, event( TEXT => "m:echo gr\xc3\xbc\xc3\x9fe" ), {} ], 'gets a message back';
    is_deeply [ ask( $chat, event( BINARY => "\0\xff\r\n" ) ) ],
        [ 200, event( BINARY => "m:echo \0\xff\r\n" ), {} ], 'and bytes';
    is_deeply [ ask( $chat, event( TEXT => q() ) ) ], [ 200, event( TEXT => 'm:echo ' ), {} ],
        'and an empty one';
    is_deeply [ ask( $chat, event( TEXT => 'c:{}' ) ) ], [ 200, event( TEXT => 'm:echo c:{}' ), {} ],
        'what a client sends is no order to the gateway';
    is_deeply [ ask( $chat, event('PING') . event( PING => 'x' ) . event('PONG') ) ],
        [ 200, event('PONG') . event( PONG => 'x' ), {} ], 'pings are answered';
    is_deeply [ ask( $chat, q() ) ],             [ 200, q(), {} ], 'no event';
    is_deeply [ ask( $chat, event('FUTURE') ) ], [ 200, q(), {} ], 'one that is not known';
    is "@called", q(), 'is not passed on';
};

subtest 'a body that a framework has read' => sub {
    my $env = env( event( TEXT => 'hello' ), 'psgix.input.buffered' => 1 );
    $env->{'psgi.input'}->read( my $body, 100 );
    is $chat->call($env)->[2][0], event( TEXT => 'm:echo hello' ), 'is read again';
};

subtest 'several events' => sub {
    my ( undef, $body ) = ask( $chat, join q(), map { event( TEXT => $_ ) } 1 .. 3 );
    is $body, join( q(), map { event( TEXT => "m:echo $_" ) } 1 .. 3 ), 'in their order';
    ( undef, $body ) = ask( $chat, event('OPEN') . event( TEXT => 'first' ) . event('DISCONNECT') );
    like $body, qr/\AOPEN\r\nTEXT .*m:echo first\r\n\z/s, 'an opening and more';
    is "@called", 'open text first disconnect', 'in their order';
    ( undef, $body ) = ask( $chat, event( TEXT => 'close' ) . event( TEXT => 'late' ) );
    is $body,     event( CLOSE => pack 'n a*', 4001, 'bye' ), 'the application closes';
    is "@called", 'text close',                               'and is not asked about what comes later';
};

subtest 'the end' => sub {
    is_deeply [ ask( $chat, event( CLOSE => pack 'n a*', 1001, 'away' ) ) ],
        [ 200, event( CLOSE => pack 'n', 1001 ), {} ], 'the code comes back';
    is "@called", 'close 1001 away', 'to a handler';
    is_deeply [ ask( $chat, event('CLOSE') ) ], [ 200, event('CLOSE'), {} ], 'without a code';
    is "@called", 'close 1005 ', 'is 1005';
    is_deeply [ ask( $chat, event('DISCONNECT') ) ], [ 200, q(), {} ], 'a client that is gone';
    is "@called", 'disconnect', 'to its handler';
    my $other = Sirius::WebSocket->new( unsigned => 1, on_close => sub { push @called, $_[1] } );
    ask( $other, event('DISCONNECT') );
    is "@called", 1006, 'or to that of the end';
};

subtest 'exceptions' => sub {
    ok !eval { $chat->call( env( event( TEXT => 'die' ) ) ) }, 'are those of the application';
    is $@, "on purpose\n", 'as they are';
};

subtest 'what is refused' => sub {
    my ( $status, $body, $field ) = ask( $chat, q(), REQUEST_METHOD => 'GET', CONTENT_TYPE => undef );
    is_deeply [ $status, $field ], [ 426, { Upgrade => 'websocket' } ], 'a request that is no event';
    is( ( ask( $chat, q(), CONTENT_TYPE => $_ ) )[0], 426, "the type $_" )
        for 'text/plain', 'application/websocket-eventss';
    is( ( ask( $chat, q(), CONTENT_TYPE => 'Application/WebSocket-Events; a=b' ) )[0],
        200, 'a type with a parameter' );
    is( ( ask( $chat, $_ ) )[0], 400, 'a malformed body' ) for "OPEN", "TEXT 5\r\nab\r\n", "TEXT g\r\n";
    is( ( ask( $chat, event('OPEN') x 2 ) )[0], 400, 'two openings' );
    is( ( ask( $chat, event('OPEN'), HTTP_CONNECTION_ID => undef ) )[0], 400, 'no id' );
    is "@called", q(), 'and no handler knows of it';
    my $never = Sirius::WebSocket->new(
        unsigned => 1,
        on_open  => sub { my ($ws) = @_; $ws->reject( 401, "sign in\n" ) }
    );
    is_deeply [ ( ask( $never, event('OPEN') . event( TEXT => 'x' ) ) )[ 0, 1 ] ], [ 401, "sign in\n" ],
        'by the application';
    $never = Sirius::WebSocket->new( unsigned => 1, on_open => sub { } );
    is( ( ask( $never, event('OPEN') ) )[0], 403, 'one that is not accepted' );
    my $all = Sirius::WebSocket->new( unsigned => 1 );
    is( ( ask( $all, event('OPEN') . event( TEXT => 'x' ) ) )[1],
        event('OPEN'), 'without a handler all are accepted' );
    ok !eval {
        Sirius::WebSocket->new( unsigned => 1, on_opne => sub { } );
    }, 'a handler that there is not';
    like $@, qr/does not know on_opne/, 'by its name';
    ok !eval { Sirius::WebSocket->new( unsigned => 1, on_open => 'main::open' ) }, 'a handler that is no sub';
};

subtest 'origins' => sub {
    my $status = sub {
        my ( $handler, $origin, @host ) = @_;
        return ( ask( $handler, event('OPEN'), HTTP_ORIGIN => $origin, @host ) )[0];
    };
    is $status->( $chat, $_ ), 200, $_ // 'none'
        for undef, 'http://shop.example:5000', 'https://Shop.example';
    is $status->( $chat, $_ ), 403, $_
        for 'https://evil.example', 'null', 'https://shop.example.evil.example',
        'https://evilshop.example', 'https://shop.example@evil.example', q(), "https://shop.example\n";
    is $status->( $chat, 'http://[::1]:80', HTTP_HOST => '[::1]:5000' ), 200, 'IPv6';
    is $status->( $chat, 'http://a',        HTTP_HOST => undef ),        403, 'no host';
    my $listed = Sirius::WebSocket->new( unsigned => 1, origins => ['https://shop.example'] );
    for my $same (qw(https://shop.example/ HTTPS://Shop.example:443)) {
        my $other = Sirius::WebSocket->new( unsigned => 1, origins => $same );
        is $status->( $other, 'https://shop.example' ), 200, "$same is the same";
    }
    for my $wrong ( 'shop.example', 'https://shop.example/chat', q(), undef, {} ) {
        ok !eval { Sirius::WebSocket->new( unsigned => 1, origins => [$wrong] ) }, 'no origin';
        like $@, qr/\Aorigins: '.*' is not an origin, such as/, 'why';
    }
    ok !eval { Sirius::WebSocket->new( unsigned => 1, origins => {} ) }, 'a hash';
    is $status->( $listed, 'https://shop.example' ), 200, 'one that is listed';
    is $status->( $listed, $_ ), 403, "not $_" for 'http://shop.example', 'https://shop.example:5000';
    is $status->( Sirius::WebSocket->new( unsigned => 1, origins => q(*) ), 'https://evil.example' ), 200,
        'all of them';
    is( ( ask( $chat, event( TEXT => 'x' ), HTTP_ORIGIN => 'https://evil.example' ) )[0],
        200, 'it was asked when the connection was opened' );
};

subtest 'signatures' => sub {
    my $signed = Sirius::WebSocket->new( key => 'secret', issuer => 'pushpin' );
    my $token  = sub {
        my ( $key, %claim ) = @_;
        my $text = join q(.), map { encode_base64url($_) } '{"alg":"HS256","typ":"JWT"}',
            encode_json( \%claim );
        return $text . q(.) . encode_base64url( hmac_sha256( $text, $key ) );
    };
    my @good = ( iss => 'pushpin', exp => time + 60 );
    my %with = (
        'a good one'      => [ $token->( 'secret', @good ),                  200 ],
        'none'            => [ undef,                                        403 ],
        'another key'     => [ $token->( 'other', @good ),                   403 ],
        'one that is old' => [ $token->( 'secret', @good, exp => time - 1 ), 403 ],
        'another issuer'  => [ $token->( 'secret', @good, iss => 'me' ),     403 ],
    );
    for ( sort keys %with ) {
        my ( $signature, $want ) = @{ $with{$_} };
        is( ( ask( $signed, event('OPEN'), HTTP_GRIP_SIG => $signature ) )[0], $want, $_ );
    }
    ok !eval { Sirius::WebSocket->new( key => q() ) }, 'a key that is empty';
    local $Sirius::WebSocket::is_held = 1;
    is( ( ask( $signed, event('OPEN') ) )[0], 200, 'by the server itself, which signs nothing' );
};

subtest 'neither a server that holds connections nor a key' => sub {
    my $app = Sirius::WebSocket->new( key => undef, on_message => sub { push @called, 'message' } );
    is( ( ask( $app, event( TEXT => 'x' ), HTTP_META_USER => 'admin' ) )[0],
        403, 'a client may have written it' );
    is "@called", q(), 'no handler knows of it';
};

done_testing;
