use strict;
use warnings;
use Test::More;
use Sirius::WebSocket::Connection;

# What a handler can do with its connection

sub connection {
    my %arg = @_;
    my $ws  = Sirius::WebSocket::Connection->new( { HTTP_CONNECTION_ID => 'c1', %{ $arg{env} || {} } },
        is_opening => $arg{opening} );
    return $ws;
}

# Events of its response
sub events {
    my $ws = shift;
    my ( $status, undef, $body ) = @{ $ws->response };
    is $status, 200, 'status';
    return
        map { defined $_->[1] ? "$_->[0] $_->[1]" : $_->[0] }
        Sirius::WebSocket::Events->decode( join q(), @$body );
}

sub fields {
    my %field = @{ shift->response->[1] };
    delete @field{qw(Content-Type Content-Length)};
    return \%field;
}

{

    package Sirius::Test::Text;
    use overload q("") => sub {'an object'};
    sub new { return bless {}, shift }
}

sub dies {
    my ( $code, $like, $name ) = @_;
    ok !eval { $code->(); 1 }, $name;
    return like $@, $like, 'why';
}

is connection()->id,                          'c1', 'its id';
is connection( env => { A => 1 } )->env->{A}, 1,    'its environment';

subtest 'opening' => sub {
    my $ws = connection( opening => 1 );
    is $ws->accept( 'Sec-WebSocket-Protocol' => 'chat' ), $ws, 'returns itself';
    is_deeply fields($ws), { 'Sec-WebSocket-Extensions' => 'grip', 'Sec-WebSocket-Protocol' => 'chat' },
        'fields';
    is join( q( ), events($ws) ), 'OPEN', 'the event';
    dies( sub { $ws->accept },                             qr/already/,       'twice' );
    dies( sub { $ws->reject },                             qr/already/,       'and rejected' );
    dies( sub { connection()->accept },                    qr/does not open/, 'another event' );
    dies( sub { connection()->reject },                    qr/does not open/, 'likewise' );
    dies( sub { connection( opening => 1 )->accept('x') }, qr/pairs/,         'a field without a value' );
    dies( sub { connection( opening => 1 )->send('x') },   qr/not accepted/,  'before it is accepted' );
    dies( sub { connection( opening => 1 )->reject(200) }, qr/not a status of an error/, 'a status' );
    is connection( opening => 1 )->reject( 302, 'x' )->response->[0], 302, 'rejected';
    my $refused = connection( opening => 1 )->reject(401);
    dies( sub { $refused->accept }, qr/rejected already/, 'then accepted' );
    dies( sub { $refused->reject }, qr/rejected already/, 'twice' );
    is $refused->response->[0], 401, 'it stays rejected';
};

subtest 'messages' => sub {
    my $bytes = "gr\xc3\xbcn";
    is_deeply [ events( connection()->send($bytes) ) ], ["TEXT m:$bytes"], 'text';
    my $upgraded = $bytes;
    utf8::upgrade($upgraded);
    is_deeply [ events( connection()->send($upgraded) ) ],     ["TEXT m:$bytes"], 'however perl keeps it';
    is_deeply [ events( connection()->send_binary("\xff") ) ], ["BINARY m:\xff"], 'bytes';
    dies( sub { connection()->send("\xfc") },            qr/not UTF-8/,                  'other bytes' );
    dies( sub { connection()->send("\x{263A}") },        qr/encode it as UTF-8/,         'characters' );
    dies( sub { connection()->send_binary("\x{263A}") }, qr/encode it as UTF-8/,         'likewise' );
    dies( sub { connection()->send(undef) },             qr/undefined/,                  'none' );
    dies( sub { connection()->send( [1] ) },             qr/the message is a reference/, 'an array' );
    my $object = Sirius::Test::Text->new;
    is_deeply [ events( connection()->send($object) ) ], ['TEXT m:an object'], 'an object that has a text';
};

subtest 'channels' => sub {
    is_deeply [ events( connection()->subscribe( 'a', "\xc3\xbc\"" )->unsubscribe('b') ) ],
        [
        map {"TEXT c:$_"} '{"channel":"a","type":"subscribe"}',
        qq({"channel":"\xc3\xbc\\"","type":"subscribe"}),
        '{"channel":"b","type":"unsubscribe"}'
        ],
        'orders';
    dies( sub { connection()->subscribe },              qr/no channel/,                          'none' );
    dies( sub { connection()->subscribe(q()) },         qr/1 to 255/,                            'empty' );
    dies( sub { connection()->subscribe( 'x' x 256 ) }, qr/1 to 255/,                            'too long' );
    dies( sub { connection()->subscribe("\xfc") },      qr/not UTF-8/,                           'bytes' );
    dies( sub { connection()->subscribe("a\nb") }, qr/the channel contains a control character/, 'a line' );
    dies( sub { connection()->subscribe(undef) },  qr/the channel is undefined/,                 'undef' );
    is_deeply [ events( connection()->subscribe( 'a', 'b', { skip_self => "Zo\xc3\xab" } ) ) ],
        [
        map {"TEXT c:$_"} qq({"name":"user","type":"set-meta","value":"Zo\xc3\xab"}),
        map {qq({"channel":"$_","filters":["skip-self"],"type":"subscribe"})} qw(a b)
        ],
        'skip_self';
    is_deeply [ events( connection()->subscribe( 'a', {} ) ) ], ['TEXT c:{"channel":"a","type":"subscribe"}'],
        'nothing else';
    dies( sub { connection()->subscribe( 'a', { skip_self => q() } ) },   qr/the name of a user/, 'no name' );
    dies( sub { connection()->subscribe( 'a', { skip_self => "a\n" } ) }, qr/control character/,  'a line' );
    dies(
        sub { connection()->subscribe( 'a', { filter => 'x' } ) },
        qr/unknown argument 'filter'/,
        'another word'
    );
    is_deeply [ events( connection()->detach ) ], ['TEXT c:{"type":"detach"}'], 'detached';
};

subtest 'keep-alive' => sub {
    my $order
        = sub { my @arg = @_; return ( events( connection()->keep_alive(@arg) ) )[0] =~ s/\ATEXT c://r };
    is $order->(30), '{"content":"","message-type":"ping","timeout":30,"type":"keep-alive"}', 'a ping';
    is $order->( 30, 'x' ), '{"content":"x","message-type":"text","timeout":30,"type":"keep-alive"}', 'text';
    is $order->( 30, "\xff", 'binary' ),
        '{"content-bin":"/w==","message-type":"binary","timeout":30,"type":"keep-alive"}', 'bytes';
    is $order->($_), '{"type":"keep-alive"}', 'none' for 0, undef;
    dies( sub { connection()->keep_alive('1m') },   qr/number of seconds/,            'a time' );
    dies( sub { connection()->keep_alive(86_401) }, qr/seconds from 0 to 86400/,      'more than a day' );
    dies( sub { connection()->keep_alive( 1, 'x', 'pong' ) }, qr/text, binary, ping/, 'a type' );
    dies( sub { connection()->keep_alive( 1, "\xff" ) },      qr/not UTF-8/,          'text' );
};

subtest 'the end' => sub {
    is_deeply [ events( connection()->close ) ], [ 'CLOSE ' . pack 'n', 1000 ], 'normal';
    my $ws = connection()->close( 4999, 'x' x 123 );
    ok $ws->is_over, 'it is over';
    is_deeply [ events( $ws->send('late')->close(1001) ) ], [ 'CLOSE ' . pack 'n a*', 4999, 'x' x 123 ],
        'nothing after it';
    for my $code ( 0, 999, 1004, 1005, 1006, 1015, 2999, 5000, '1000x', 'x' ) {
        dies( sub { connection()->close($code) }, qr/cannot be sent/, "code $code" );
    }
    is scalar( events( connection()->close($_) ) ), 1, "code $_" for 1001, 1011, 1014, 3000;
    dies( sub { connection()->close( 1000, 'x' x 124 ) }, qr/123 bytes/, 'a reason' );
};

subtest 'meta' => sub {
    my $ws = connection( env => { HTTP_META_USER => 'Ann', HTTP_META_LAST_ID => 7 } );
    is $ws->meta('User'),           'Ann', 'a value';
    is $ws->meta('last-id'),        7,     'another';
    is $ws->meta('other'),          undef, 'none';
    is $ws->meta( 'last_id' => 8 ), 8,     'set';
    is $ws->meta('last-id'),        8,     'and read';
    is $ws->meta( user => undef ),  undef, 'removed';
    is $ws->meta('user'),           undef, 'and not read';
    is_deeply fields($ws), { 'Set-Meta-last-id' => 8, 'Set-Meta-user' => q() }, 'fields';
    dies( sub { connection()->meta( $_ => 1 ) }, qr/a name consists/, 'a name' )
        for q(), 'a b', "a\n", "a\r\nX: y", undef;
    dies( sub { connection()->meta( a => $_ ) }, qr/control character/, 'a value' )
        for "a\r\nX: y", "\0", ' a', 'a ';
    dies( sub { connection()->meta( a => "\x{263A}" ) }, qr/encode it/, 'characters' );
    is connection()->meta( a => "\xc3\xbc" ), "\xc3\xbc", 'text is UTF-8';
};

done_testing;
