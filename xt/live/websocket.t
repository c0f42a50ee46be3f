# WebSockets that the edge holds, for an application that is asked by requests
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::WebSocket;

# What an application answers is in the message, or in the path for OPEN: /accept, /refuse, ...
my $APP = <<'APP';
use strict;
use warnings;
my $TYPE = 'application/websocket-events';
sub event { my ( $name, $bytes ) = @_; return defined $bytes ? sprintf( "%s %x\r\n%s\r\n", $name, length $bytes, $bytes ) : "$name\r\n" }
sub {
    my $env = shift;
    my ( $path, $body ) = ( $env->{PATH_INFO}, '' );
    1 while $env->{'psgi.input'}->read( $body, 65536, length $body );
    return [ 200, [ 'X-Env' => join ' ', map {"$_=$env->{$_}"} sort grep { /GRIP|META|CONNECTION_ID/ } keys %$env ], ["page\n"] ]
        if ( $env->{CONTENT_TYPE} // '' ) ne $TYPE;
    my $said = $body =~ s/\r\n/|/gr;
    print STDERR "event $path $said\n" if $path =~ /log/;
    my @answer = ( 200, [ 'Content-Type' => $TYPE ] );
    if ( $body =~ /\AOPEN\r\n/ ) {
        return [ 403, [ 'Content-Type' => 'text/plain', 'X-Own' => 1 ], ["no\n"] ] if $path eq '/refuse';
        return [ 200, [ 'Content-Type' => 'text/plain' ], [ 'x' x 400_000 ] ] if $path eq '/large';
        return [ 500, [], ['broken'] ] if $path eq '/500';
        return [ @answer, ["TEXT 1\r\nx\r\n"] ] if $path eq '/noopen';
        die "no\n" if $path eq '/die';
        push @{ $answer[1] }, 'Sec-WebSocket-Protocol' => 'two', 'X-Own' => 'yes', 'Set-Meta-User' => 'alice', 'Set-Meta-Gone' => '';
        push @{ $answer[1] }, Date => 'Thu, 01 Jan 1970 00:00:00 GMT', Server => 'own', 'X-Id' => 'mine' if $path eq '/own';
        push @{ $answer[1] }, 'Sec-WebSocket-Extensions' => 'grip' if $path =~ /grip/;
        push @{ $answer[1] }, 'Sec-WebSocket-Extensions' => 'grip; message-prefix="p-"' if $path =~ /prefix/;
        my $first = $path =~ /early/ ? event( TEXT => 'first' ) : '';
        my $filters = $path =~ m{/filter-(.+)} ? qq(,"filters":["$1"]) : '';
        $first .= event( TEXT => qq(c:{"type":"subscribe","channel":"news"$filters}) ) if $path =~ /grip/;
        return [ @answer, [ "OPEN\r\n$first" ] ];
    }
    return [ @answer, [$body] ] if $path =~ /events/;
    my $out = '';
    while ( $body =~ /\G(\w+)(?: ([0-9a-f]+))?\r\n/gc ) {
        my ( $kind, $len ) = ( $1, $2 );
        my $bytes = '';
        if ( defined $len ) { $bytes = substr $body, pos $body, hex $len; pos($body) += 2 + hex $len }
        next if $kind !~ /TEXT|BINARY/;
        die "told to\n" if $bytes eq 'die';
        kill KILL => $$ if $bytes eq 'kill';
        sleep 1 if $bytes eq 'slow';
        return [ 404, [], ['gone'] ] if $bytes eq '404';
        return [ @answer, ['garbage'] ] if $bytes eq 'garbage';
        return [ @answer, [ event( TEXT => "\xff" ) ] ] if $bytes eq 'bytes';
        return [ @answer, [ event( CLOSE => pack 'n', 1005 ) ] ] if $bytes eq 'badclose';
        return [ @answer, [ $out . event( TEXT => 'bye' ) . event( CLOSE => pack 'n a*', 4001, 'enough' ) . event( TEXT => 'never' ) ] ] if $bytes eq 'close';
        return [ @answer, [ event('DISCONNECT') ] ] if $bytes eq 'drop';
        $bytes = join ' ', map {"$_=$env->{$_}"} sort grep { /HTTP_|CONTENT_TYPE|REQUEST_|QUERY|PROTOCOL|REMOTE_ADDR/ } keys %$env if $bytes eq 'env';
        if ( $bytes eq 'detach' ) {
            $out .= event( TEXT => 'c:{"type":"detach"}' ) . event( TEXT => 'm:done' );
            next;
        }
        $bytes = exists $env->{'psgix.io'} ? 'a socket' : 'no socket' if $bytes eq 'io';
        $bytes = ( $env->{HTTP_META_USER} // '' ) if $bytes eq 'meta';
        $out .= $bytes =~ /\A(?:c:|m:|p-)/ ? event( $kind => $bytes ) : event( $kind => ( $path =~ /grip/ ? 'm:' : $path =~ /prefix/ ? 'p-' : '' ) . $bytes );
    }
    if ( $path =~ /file/ ) {
        open my $in, '+>', undef or die;
        print {$in} $out;
        seek $in, 0, 0;
        return [ @answer, $in ];
    }
    return [ @answer, [$out] ];
}
APP

my $dir    = File::Temp->newdir( 'sirius-websocket-XXXXXX', TMPDIR => 1 );
my $log    = "$dir/access.log";
my $server = start_server(
    $APP,
    qw(--hold --workers 2 --request-id-header X-Id --access-log-format),
    '%r %>s %{Referer}i',
    '--access-log' => $log
);

sub ws {
    my ( $path, %option ) = @_;
    return Sirius::Test::WebSocket->new( $server->address, path => $path, %option );
}

subtest 'the opening' => sub {
    my $ws = ws( '/echo?a=b', fields => ['Sec-WebSocket-Protocol: one, two'] );
    is $ws->status, 101, 'is accepted';
    like $ws->head,   qr/^Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r$/m, 'the answer to the key';
    like $ws->head,   qr/^Sec-WebSocket-Protocol: two\r$/m, 'the subprotocol of the application';
    like $ws->head,   qr/^X-Own: yes\r$/m,                  'its other fields';
    unlike $ws->head, qr/Set-Meta|Content-|Extensions/i,    'but not those for the server';
    $ws->text('env');
    my $env = $ws->next;
    like $env,   qr/REQUEST_METHOD=POST/,                       'an event is a POST';
    like $env,   qr{REQUEST_URI=/echo\?a=b },                   'to the same URI';
    like $env,   qr{CONTENT_TYPE=application/websocket-events}, 'of this type';
    like $env,   qr/HTTP_CONNECTION_ID=[0-9a-f]{32} /,          'with an id';
    like $env,   qr/HTTP_META_USER=alice/,                      'and what was set by the answer to OPEN';
    like $env,   qr/HTTP_SEC_WEBSOCKET_PROTOCOL=one, two/,      'subprotocols';
    unlike $env, qr/UPGRADE|HTTP_CONNECTION=|WEBSOCKET_KEY|META_GONE/, 'nothing of the opening';
    like $env,   qr{SERVER_PROTOCOL=HTTP/1\.1},                        'the protocol is that of the client';
    $ws->text('io');
    is $ws->next, 'text no socket', 'no psgix.io: nobody is at its other end';
    my ($id) = $env =~ /CONNECTION_ID=(\S+)/;
    $ws->text('env');
    like $ws->next, qr/CONNECTION_ID=$id /, 'the id stays';
    my $other = ws('/echo');
    $other->text('env');
    unlike $other->next, qr/CONNECTION_ID=$id /, 'another one has another';
};

subtest 'what is refused' => sub {
    my $ask   = sub { $server->ask( 'GET /echo', 'Upgrade: websocket', 'Connection: upgrade', @_ ) };
    my @valid = ( 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' );
    is $ask->( $valid[1] )->status,                              426, 'no version';
    is $ask->( $valid[1] )->header('Sec-WebSocket-Version'),     13,  'it says which';
    is $ask->( $valid[1], 'Sec-WebSocket-Version: 12' )->status, 426, 'another one';
    is $ask->( $valid[0] )->status,                              400, 'no key';
    is $ask->( $valid[0], 'Sec-WebSocket-Key: short' )->status,  400, 'an invalid key';
    is $server->ask( 'POST /echo', 'Upgrade: websocket', 'Connection: upgrade', @valid, \'' )->status, 200,
        'POST opens none';
    is $server->ask( 'GET /echo', 'Upgrade: websocket', @valid )->status, 200,
        'nor does a request without Connection: upgrade';
};

subtest 'what the application does not accept' => sub {
    my $client = $server->connect;
    $client->send( request(
        'GET /refuse',
        'Upgrade: websocket',
        'Connection: upgrade',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
    ) );
    my $answer = $client->response;
    is $answer->status,                 403,      'its response';
    is $answer->body,                   "no\n",   'is sent as it is';
    is $client->ask('GET /page')->body, "page\n", 'and the connection goes on';
    is length $server->ask(
        'GET /large',
        'Upgrade: websocket',
        'Connection: upgrade',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
        )->body,
        400_000, 'a large one';
    is ws('/500')->status,    500, 'an error of its own';
    is ws('/die')->status,    500, 'an exception';
    is ws('/noopen')->status, 502, 'events without OPEN';
    ok $server->wait_log(qr/a response to events of a WebSocket does not begin with OPEN/), 'which is logged';
};

subtest 'messages' => sub {
    my $ws = ws('/early');
    is $ws->next, 'text first', 'a message with the answer to OPEN';
    $ws->put( join '', map { $ws->frame( text => "number $_" ) } 1 .. 50 );
    is $ws->next, "text number $_", "message $_" for 1 .. 50;
    $ws->send( binary => "\0\xff" );
    is $ws->next, "binary \0\xff", 'bytes';
    $ws->text('');
    is $ws->next, 'text ', 'an empty one';
    $ws->text('slow');
    $ws->text("behind $_") for 1 .. 3;
    $ws->send( ping => 'now' );
    is $ws->next, 'pong now', 'a ping is answered while the application is busy';
    is $ws->next, "text $_", 'in order' for 'slow', map {"behind $_"} 1 .. 3;
    my $file = ws('/file');
    $file->text('from a file');
    is $file->next, 'text from a file', 'a response that is a file';
};

subtest 'together and in order' => sub {
    my $ws = ws('/log-together');
    $ws->text('slow');
    ok $server->wait_log(qr{event /log-together TEXT 4\|slow\|$}m), 'the application is busy';
    $ws->text($_) for qw(a b c);
    $ws->next for 1 .. 4;
    ok $server->wait_log(qr{event /log-together TEXT 1\|a\|TEXT 1\|b\|TEXT 1\|c\|$}m),
        'what comes meanwhile is told by one request';
};

subtest 'closes' => sub {
    my $ws = ws('/log-close');
    $ws->text('last');
    $ws->send( close => pack 'n a*', 4000, 'bye' );
    is $ws->all, 'text last, close 4000', 'the code comes back, behind the answer';
    is $ws->end, 'eof',                   'then the connection ends';
    ok $server->wait_log(qr{event /log-close (?:TEXT 4\|last\|)?CLOSE 5\|\x0f\xa0bye\|$}m),
        'the application is told';
    $ws = ws('/log-app');
    $ws->text('close');
    is $ws->all, 'text bye, close 4001 enough', 'the application closes';
    $ws->send( close => pack 'n', 4001 );
    is $ws->end, 'eof', 'and when the client has done so, it is over';
    ok $server->wait_log(qr{event /log-app CLOSE 2\|}), 'as the application hears';
    $ws = ws('/log-drop');
    $ws->text('drop');
    like $ws->end, qr/\A(?:eof|reset)\z/, 'the application drops it without CLOSE';
    $ws = ws('/log-gone');
    $ws->text('x');
    $ws->next;
    $ws->close;
    ok $server->wait_log(qr{event /log-gone DISCONNECT\|$}m), 'a client that leaves without CLOSE';
    $ws = ws('/log-half');
    $ws->finish;
    like $ws->end, qr/\A(?:eof|reset)\z/, 'one that ends its side';
    ok $server->wait_log(qr{event /log-half DISCONNECT\|$}m), 'which the application hears';
    $ws = ws('/log-broken');
    $ws->send( text => "\xff" );
    is $ws->all, 'close 1007 the text is not UTF-8', 'one that breaks a rule';
    ok $server->wait_log(qr{event /log-broken DISCONNECT\|$}m), 'for the application it is gone';
    $ws = ws('/echo');
    $ws->send( close => pack 'n', 4001 );
    is $ws->all, 'close 4001', 'an application that does not answer CLOSE';
};

subtest 'an application that fails' => sub {
    $server->{may_crash} = 1;    # it kills its worker
    for my $how (qw(die 404 garbage bytes badclose kill)) {
        my $ws = ws('/log-fail');
        $ws->text($how);
        is $ws->all, 'close 1011', qq(it answers $how);
        is $ws->end, 'eof',        'and its connection ends';
    }
    ok $server->wait_log(qr/a response to events of a WebSocket /), 'the log says why';
    my $ws = ws('/echo');
    $ws->text('still there');
    is $ws->next, 'text still there', 'others go on';
};

subtest 'GRIP' => sub {
    my $ws = ws('/grip');
    $ws->text('c:{"type":"set-meta","name":"user","value":"bob"}');
    $ws->text('next');
    $ws->next;    # or both could be told together
    $ws->text('meta');
    is $ws->next, 'text bob', 'an order is obeyed, and not sent; the prefix of messages is cut off';
    $ws->text('c:{"type":"keep-alive","timeout":1,"content":"still"}');
    is $ws->next(5), 'text still', 'what keeps it alive';
    is $ws->next(5), 'text still', 'and again';
    $ws->text('c:{"type":"keep-alive"}');
    $ws->text('c:{"type":"fly"}');
    is $ws->all,                         'close 1011', 'an order that is unknown';
    is ws('/grip/filter-build-id')->all, 'close 1011', 'a filter that is unknown';
    $ws = ws('/grip/filter-skip-self');
    $ws->text('x');
    is $ws->next, 'text x', 'one that is not';
    $ws = ws('/prefix');
    $ws->text('p-x');
    is $ws->next, 'text x', 'another prefix';
    $ws = ws('/grip-log-detach');
    $ws->text('detach');
    is $ws->next, 'text done', 'the answer';
    $ws->text('nobody hears');
    $ws->send( close => pack 'n', 1000 );
    is $ws->all, 'close 1000', 'detached';
    unlike $server->log, qr/grip-log-detach (?:.*nobody|CLOSE|DISCONNECT)/,
        'the application hears nothing more';
    $ws = ws('/echo');
    $ws->text('c:{"type":"detach"}');
    is $ws->next, 'text c:{"type":"detach"}', 'without the extension such a text is a message';
};

subtest 'what only the server says' => sub {
    my $answer
        = $server->ask( 'GET /page', 'Connection-Id: forged', 'Meta-User: root', 'Grip-Sig: x', 'X-Fine: 1' );
    is $answer->header('X-Env'), '', 'fields of a client are dropped';
    $answer = $server->ask( 'POST /page', 'Content-Type: application/websocket-events', \"OPEN\r\n" );
    is $answer->status, 400, 'events of a client are refused';
    my $ws = ws(
        '/echo',
        fields => [
            'Meta-User: root',
            'Connection-Id: forged',
            'Grip-Sig: x', 'Content-Type: application/websocket-events'
        ]
    );
    isnt $ws->status, 101, 'likewise with the opening';
    $ws = ws( '/echo', fields => [ 'Meta-Role: root', 'Connection-Id: forged', 'Grip-Sig: x' ] );
    $ws->text('env');
    unlike $ws->next, qr/root|forged|GRIP_SIG/, 'and in events';
};

subtest 'the end behind a message whose handler dies' => sub {
    my $ws = ws('/log-end');
    $ws->put( $ws->frame( text => 'die' ) . $ws->frame( close => pack 'n', 1000 ) );
    $ws->all;
    ok $server->wait_log(qr{^event /log-end TEXT 3\|die\|$}m), 'the message';
    ok $server->wait_log(qr{^event /log-end CLOSE 2\|}m),      'and the end, in a request of its own';
};

subtest 'fields that the server adds' => sub {
    my $ws = ws('/echo');
    is scalar( () = $ws->head =~ /^(?:Date|Server|X-Id): \S.*\r$/mg ), 3,
        'Date, Server and --request-id-header';
    $ws = ws('/own');
    is join( '|', sort $ws->head =~ /^((?:Date|Server|X-Id): .*)\r$/mg ),
        'Date: Thu, 01 Jan 1970 00:00:00 GMT|Server: own|X-Id: mine',
        'not beside those of the application';
};

subtest 'without a supervisor' => sub {
    my $alone = start_server( $APP, qw(--hold --workers 0) );
    my $ws    = Sirius::Test::WebSocket->new( $alone->address, path => '/echo' );
    $ws->text('garbage');
    $ws->all;
    $alone->wait_log(qr/a response to events/);
    like $alone->log,
        qr/^\[sirius [0-9]+\] warn: a response to events of a WebSocket [^\n]+: the connection was closed$/m,
        'an edge that writes to the log itself says so as others do';
    $alone->stop;
};

subtest 'the access log' => sub {
    my $ws = ws( '/logged', fields => ['Referer: here'] );
    $ws->text('x');
    $ws->next;
    $ws->send( close => pack 'n', 1000 );
    $ws->end;
    until_true( 10, sub { Sirius::Test::Server::slurp($log) =~ m{^GET /logged HTTP/1\.1 101 here$}m } );
    like Sirius::Test::Server::slurp($log), qr{^GET /logged HTTP/1\.1 101 here$}m,
        'a line for each WebSocket';
    unlike Sirius::Test::Server::slurp($log), qr/^POST .logged/m,                 'none for events';
    like Sirius::Test::Server::slurp($log),   qr{^GET /refuse HTTP/1\.1 403 -$}m, 'one that is refused';
};

subtest 'workers come and go' => sub {
    my @ws = map { ws('/echo') } 1 .. 20;
    $server->signal('HUP');
    for my $n ( 1 .. 20 ) {
        $_->text("message $n") for @ws;
        is join( ',', map { $_->next } @ws ), join( ',', ("text message $n") x @ws ), "message $n to all";
    }
    $_->send( close => pack 'n', 1000 ) for @ws;
    is join( ',', map { $_->all } @ws ), join( ',', ('close 1000') x @ws ), 'none was lost';
};
$server->stop;

subtest 'limits' => sub {
    $server = start_server( $APP,
        qw(--hold --workers 1 --websocket-max-message 1000 --websocket-rate 20 --hold-per-client 3) );
    my $ws = ws('/echo');
    $ws->text( 'x' x 1000 );
    is length $ws->next, 1005, 'as large as it may be';
    $ws->put( substr $ws->frame( text => '', length => 1_000_000 ), 0, 14 );
    is $ws->all, 'close 1009 the message is too large',
        'one that announces a million bytes is closed before they come';
    $ws = ws('/echo');
    $ws->send( text => 'x' x 600, fin => 0 );
    $ws->send( more => 'x' x 600 );
    is $ws->all, 'close 1009 the message is too large', 'in fragments';
    $ws = ws('/echo');
    $ws->put( $ws->frame( text => 'x' ) x 100 );
    like $ws->all, qr/close 1008 too many messages\z/, 'more than --websocket-rate';
    my @ws = map { ws('/echo') } 1 .. 4;
    is join( ' ', map { $_->status } @ws ), '101 101 101 503', '--hold-per-client';
    $_->close for @ws;
    ok until_true( 10, sub { ws('/echo')->status == 101 } ), 'a place is free again';
    $server->stop;
};

subtest 'a client that sends more than the application takes' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --websocket-max-message 64k) );
    my $ws = ws('/echo');
    $ws->text('slow');
    my $text = 'y' x 60_000;
    $ws->text($text) for 1 .. 100;
    is $ws->next, 'text slow',  'the first answer';
    is $ws->next, "text $text", "answer $_" for 1 .. 100;
    $ws->text('slow');
    $ws->put( $ws->frame( text => 'x' ) x 5000 . $ws->frame( ping => 'p' ) x 5000 );
    my %got;
    $got{ $ws->next }++ for 1 .. 10_001;
    is_deeply \%got, { 'text slow' => 1, 'text x' => 5000, 'pong p' => 5000 }, '10,000 tiny frames';
    $server->stop;
};

subtest 'more WebSockets than the queue has room' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --max-queue 30) );
    my @ws = map { ws('/echo') } 1 .. 80;
    $ws[0]->text('slow');
    $_->text('x') for @ws[ 1 .. 79 ];
    is $server->ask('GET /page')->status, 200, 'other requests find room';
    is join( ',', map { $_->next } @ws ), join( ',', 'text slow', ('text x') x 79 ), 'all are answered';
    $server->stop;
};

subtest 'pings' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --websocket-ping 1) );
    my $ws = ws('/log-ping');
    is $ws->next(5), 'ping ', 'a silent client is pinged';
    $ws->send('pong');
    is $ws->next(5), 'ping ', 'and again';
    is $ws->next(5), 'ping ', 'one that does not answer';
    like $ws->next(5), qr/\A(?:eof|reset)/, 'is dropped';
    ok $server->wait_log(qr{event /log-ping DISCONNECT}), 'and the application is told';
    $server->stop;
};

subtest '--websocket' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --websocket /chat --websocket /live/) );
    is ws($_)->status, 101, $_ for '/chat', '/chat/room', '/live/x';
    isnt ws($_)->status, 101, $_ for '/chatter', '/other', '/live', '/';
    $server->stop;
    $server = start_server( $APP, qw(--hold --workers 1 --websocket off) );
    isnt ws('/chat')->status, 101, 'off';
    $server->stop;
};

subtest 'psgix.io beside it' => sub {
    $server = start_server( <<'IO', qw(--hold --workers 1 --websocket /held) );
use Sirius::WebSocket;
my $held = Sirius::WebSocket->new( on_open => sub { shift->accept }, on_message => sub { $_[0]->send("held $_[1]") } )->to_app;
sub {
    my $env = shift;
    return $held->($env) if $env->{PATH_INFO} =~ m{^/held};
    my $io = $env->{'psgix.io'} or die;
    syswrite $io, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x02io";
    sysread $io, my $frame, 100;
    syswrite $io, "\x88\x00";
    close $io;
    return sub { };
}
IO
    my $ws = ws('/own');
    is $ws->status, 101,       'the application speaks by itself';
    is $ws->next,   'text io', 'its message';
    $ws->text('x');
    is $ws->all, 'close', 'its end';
    $ws->close;
    $ws = ws('/held');
    $ws->text('x');
    is $ws->next, 'text held x', 'the server for the other path';
    $server->stop;
};

subtest 'a stop' => sub {
    $server = start_server( $APP, qw(--hold --workers 1) );
    my $busy = ws('/log-stop');
    $busy->text('slow');
    ok $server->wait_log(qr{event /log-stop TEXT}), 'a message is answered';
    $server->signal('TERM');
    ok $server->wait_log(qr/stopping: TERM/), 'while the server stops';
    $busy->close;
    ok $server->wait_log(qr{event /log-stop DISCONNECT}), 'its client leaves: that is told';
    is $server->wait_exit, 'exit 0', 'the server stops';
    $server = start_server( $APP, qw(--hold --workers 1) );
    my $ws = ws('/echo');
    $ws->text('x');
    $ws->next;
    $server->signal('TERM');
    is $ws->all, 'close 1001', 'the server goes away';
    is $ws->end, 'eof',        'and its connection ends';
    $server->stop;
};

done_testing;
