# WebSockets that the edge holds: what clients and pages of others can't do
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::WebSocket;

my $APP = <<'APP';
use strict;
use warnings;
my $TYPE = 'application/websocket-events';
sub {
    my $env = shift;
    my ( $path, $body ) = ( $env->{PATH_INFO}, '' );
    1 while $env->{'psgi.input'}->read( $body, 65536, length $body );
    sleep 2 if $path eq '/sleep';
    my $said = join ' ', map {"$_=$env->{$_}"} sort grep { /GRIP|META|CONNECTION_ID/ } keys %$env;
    return [ 200, [ 'X-Env' => $said ], ["page\n"] ] if ( $env->{CONTENT_TYPE} // '' ) ne $TYPE;
    print STDERR "event $path ", $body =~ s/\r\n/|/gr, "\n" if $path =~ /log/;
    sleep 2 if $path eq '/log-slow-open' && $body =~ /\AOPEN/;
    my @answer = ( 200, [ 'Content-Type' => $TYPE, 'Set-Meta-User' => 'ann' ] );
    return [ 403, [], ["no\n"] ] if $path eq '/refuse';
    return [ @answer, ["OPEN\r\n"] ] if $body =~ /\AOPEN/;
    return [ @answer, [] ] if $body !~ /^TEXT [0-9a-f]+\r\n(.*?)\r\n/m;
    my $text = $1 eq 'env' ? $said : $1;
    sleep 2 if $text eq 'slow';
    sleep 5 if $text eq 'slower';
    return [ @answer, [ sprintf "TEXT %x\r\n%s\r\n", length $text, $text ] ];
}
APP
my @OPENING = (
    'Upgrade: websocket',
    'Connection: upgrade',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
);
my $server;

sub ws {
    my ( $path, @fields ) = @_;
    return Sirius::Test::WebSocket->new( $server->address, path => $path, fields => \@fields );
}

subtest 'what only the server says' => sub {
    my @names  = qw(Connection-Id Connection_Id Meta-Role META_ROLE Meta_Role Grip-Sig Grip_Sig);
    my @forged = map {"$_: forged"} @names;
    $server
        = start_server( $APP, qw(--hold --workers 1 --underscores-in-headers on --trust-proxy 127.0.0.1) );
    is $server->ask( 'GET /page', @forged )->header('X-Env'), q(), 'nobody else, were it a trusted proxy';
    is $server->ask( 'POST /', 'Content-Type: application/websocket-events', \"OPEN\r\n" )->status, 400,
        'neither sends it events';
    my $ws = ws( '/echo', @forged );
    $ws->text('env');
    like $ws->next, qr/\Atext HTTP_CONNECTION_ID=[0-9a-f]{32} HTTP_META_USER=ann\z/,
        'nor says so in an opening';
    $server->stop;
    $server = start_server( $APP, qw(--hold --workers 1 --websocket off --trust-proxy 127.0.0.1) );
    like $server->ask( 'GET /page', @forged )->header('X-Env'), qr/META_ROLE=forged/,
        'without WebSockets of its own, what a trusted proxy says stays';
    $server->stop;
    $server = start_server( $APP, qw(--hold --workers 1 --websocket off) );
    is $server->ask( 'GET /page', @forged )->header('X-Env'), q(), 'what others say does not';
    $server->stop;
};

subtest 'pages of others' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --trust-proxy 127.0.0.1) );
    is ws( '/echo', 'Origin: http://a' )->status, 101, 'a page of this site';
    is ws( '/echo', $_ )->status, 403, $_
        for 'Origin: https://a', 'Origin: http://b', 'Origin: null', 'Origin: http://a:81';
    is ws( '/echo', 'Origin: https://a', 'X-Forwarded-Proto: https', 'X-Forwarded-For: 192.0.2.1' )->status,
        101,
        'a proxy that has the certificate';
    is ws( '/echo', 'Origin: http://a', 'X-Forwarded-Proto: https', 'X-Forwarded-For: 192.0.2.1' )->status,
        403,
        'and a page that had none';
    $server->stop;
    $server = start_server( $APP, qw(--hold --workers 1 --websocket /) );
    is ws( '/echo', 'Origin: http://b' )->status, 101, 'with --websocket the application decides';
    $server->stop;
};

subtest 'requests behind an opening that is refused' => sub {
    $server = start_server( $APP, qw(--hold --workers 1) );
    my $client = $server->connect;
    $client->send( request( 'GET /refuse', @OPENING ) . request('GET /page') . request('GET /page') );
    is join( '', map { $client->response->body } 1 .. 3 ), "no\npage\npage\n", 'are answered';
    $client = $server->connect;
    my ( $half, $rest ) = unpack 'a20 a*', request('GET /page');
    $client->send( request( 'GET /refuse', @OPENING ) . $half );
    is $client->response->body, "no\n", 'one of which a part has come';
    $client->send($rest);
    is $client->response->body, "page\n", 'is whole';
    $server->stop;
};

subtest 'a full queue' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --max-queue 2) );
    my ( $gone, $ws ) = map { ws('/log') } 1 .. 2;
    my @others = map { $server->connect } 1 .. 3;
    $others[0]->send( request('GET /sleep') );
    $server->wait_busy( 1, qr{GET /sleep} );
    $_->send( request('GET /sleep') ) for @others[ 1, 2 ];
    $server->wait_waiting(2);
    is $server->ask('GET /page')->status, 503, 'has no room';
    $gone->close;
    $ws->text('hello');
    is $ws->next(20), 'text hello', 'a message waits for room';
    ok $server->wait_log(qr{event /log DISCONNECT}), 'so does the end of another';
    is join( ' ', map { $_->response->status } @others ), '200 200 200', 'the requests that were there first';
    is scalar( () = $server->log =~ /\b503\b/g ), 1, 'the edge has not tried all the time'
        or diag $server->log;
    $server->stop;
};

subtest 'a message and an end that no worker has heard of' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --queue-timeout 1) );
    my $gone   = ws('/log');
    my $before = $server->connect;
    $before->send( request('GET /sleep') );
    $server->wait_busy( 1, qr{GET /sleep} );
    $gone->close;
    ok $server->wait_log( qr{event /log DISCONNECT}, 20 ), 'the end is told again after --queue-timeout';
    is $before->response->status,                                200, 'the request before';
    is scalar( () = $server->log =~ /event \/log DISCONNECT/g ), 1,   'once';

    # a message waits too long, whose client leaves meanwhile
    my $late = ws('/log-late');
    my $busy = $server->connect;
    $busy->send( request('GET /sleep') );
    $server->wait_busy( 1, qr{GET /sleep} );
    $late->text('hello');
    $server->wait_waiting(1);
    $late->close;
    ok $server->wait_log( qr{event /log-late DISCONNECT}, 20 ),
        'an end behind a message that nobody has heard';
    $busy->response;
    is $server->ask('GET /page')->status,                             200, 'and nothing else';
    is scalar( () = $server->log =~ /event \/log-late DISCONNECT/g ), 1,   'once as well';
    $server->stop;
};

subtest 'a message that has come in parts' => sub {
    $server = start_server( $APP, qw(--hold --workers 1) );
    my @all = map { ws('/echo') } 1 .. 280;
    for my $ws (@all) {
        $ws->text( 'x' x 1_040_000 );
        is length $ws->next(20), 1_040_005, 'is answered' or last;
    }
    $all[0]->text('y');
    is $all[0]->next,    'text y',  'and takes no memory then: nobody is closed for it';
    is $all[1]->next(0), 'timeout', 'nor another one';
    $server->stop;
};

subtest 'a client that is not read for long' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --websocket-ping 1 --websocket-max-message 1000) );
    my $ws = ws('/echo');
    $ws->text('slower');
    $server->wait_busy(1);
    $ws->text( 'x' x 900 ) for 1 .. 3;
    my @got = grep { !/\Aping/ } map { $ws->next(10) } 1 .. 8;
    is $got[0], 'text slower', 'is not taken for silent' or diag "@got";
    $server->stop;
};

subtest 'messages that do not end' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --body-timeout 1) );
    my $ws = ws('/echo');
    $ws->put( substr $ws->frame( text => 'x' x 1000 ), 0, 20 );
    is $ws->next, 'close 1008 the message comes too slowly', '--body-timeout';
    $ws = ws('/echo');
    my $frame = $ws->frame( text => 'x' x 1000 );
    for ( 1 .. 4 ) {
        $ws->put( substr $frame, 0, 250, q() );
        sleep 0.6;
    }
    $ws->put($frame);
    is length $ws->next, 1005, 'one that is fast enough';
    $ws->text('x');
    is $ws->next(3), 'text x', 'and the next one';
    sleep 2.5;
    is $ws->next(0), 'timeout', 'between two of them there is no limit';
    $server->stop;
};

subtest 'more messages than there is memory for' => sub {
    $server = start_server( $APP, qw(--hold --workers 1) );
    my $part   = 'x' x 1_040_000;
    my @others = map { ws('/echo') } 1 .. 10;
    my $first  = shift @others;
    my $bytes  = $first->frame( text => $part, length => 1 << 20, mask => "\0\0\0\0" );
    $first->put($bytes);
    sleep 3;
    for ( 1 .. 270 ) {
        push @others, ws('/echo');
        $others[-1]->put($bytes);
    }
    my $ws = ws('/echo');
    $ws->send( text => 'x' x 500_000, fin => 0 );
    is $first->next, 'close 1013 the server has too many messages',
        'who has most, and for longest, is closed';
    $ws->send( more => 'y' );
    is length $ws->next, 500_006, 'others go on';
    ok $server->wait_log(qr/need more than 256 MiB: the WebSocket of 127\.0\.0\.1.* was closed/),
        'it is in the log';
    $server->stop;
};

subtest 'a stop' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --graceful-timeout 60) );
    my $ws = ws('/echo');
    $ws->text('slow');
    $server->wait_busy(1);
    $server->signal('TERM');
    is $ws->all(20), 'text slow, close 1001', 'comes behind the answer that is being made';
    $server->stop;
    $server = start_server( $APP, qw(--hold --workers 1 --graceful-timeout 60) );
    my $pid = fork // die "fork: $!\n";

    if ( !$pid ) {
        $server->wait_log(qr{event /log-slow-open OPEN});
        $server->signal('TERM');
        POSIX::_exit(0);
    }
    $ws = ws('/log-slow-open');
    is $ws->status, 101,          'one that was being opened';
    is $ws->all,    'close 1001', 'is closed';
    waitpid $pid, 0;
    $server->stop;
};

subtest 'a worker that takes too long' => sub {
    $server = start_server( $APP, qw(--hold --workers 1 --request-timeout 1) );
    my $ws = ws('/echo');
    $ws->text('slow');
    is $ws->all, 'close 1011', 'ends the WebSocket';
    ok $server->wait_log(qr/ran for .* s, the WebSocket was closed/), 'as the log says';
    $server->stop;
};

done_testing;
