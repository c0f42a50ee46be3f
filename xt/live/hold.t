# --hold: an application leaves a response with the server, and its worker is free
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(time);
use Sirius::Test;

my $APP = <<'APP';
use strict;
use warnings;
my %PAGE = (
    '/stream'   => [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'a' ],
    '/alive'    => [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'a', 'Grip-Keep-Alive' => ':\n\n; format=cstring; timeout=1' ],
    '/length'   => [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'a', 'Content-Length' => 6 ],
    '/poll'     => [ 'Grip-Hold' => 'response', 'Grip-Channel' => 'a', 'Grip-Timeout' => 1, 'X-Own' => 'yes' ],
    '/bad'      => [ 'Grip-Hold' => 'bogus', 'Grip-Channel' => 'a' ],
    '/long'     => [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'a' x 65536 ],
    '/gzip'     => [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'a', 'Content-Encoding' => 'gzip' ],
    '/md5'      => [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'a', 'Content-MD5' => 'x', 'Content-Encoding' => 'identity' ],
    '/leftover' => [ 'Grip-Channel' => 'a', 'grip-status' => 4 ],
);
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    my $page = $PAGE{ $path =~ s{\A/(?:writer|file|large|later)}{}r };
    my $head = [ 'Content-Type' => 'text/plain', @{ $page || [] } ];
    return [ 200, $head, [ 'x' x 300_000 ] ] if $path =~ m{\A/large};
    return [ 200, $head, [ 'x' x 20_000_000 ] ] if $env->{QUERY_STRING} eq 'huge';
    if ( $path =~ m{\A/file} ) {
        open my $in, '<', $0 or die;
        open $in, '<', \"from memory\n" or die if $path =~ /memory/;
        return [ 200, $head, $in ];
    }
    return sub {
        my $writer = $_[0]->( [ 200, $head ] );
        $writer->write("one\n");
        $writer->write("two\n");
        $writer->close;
        }
        if $path =~ m{\A/writer};
    if ( $path eq '/later/poll' ) {
        return sub {
            my $writer = $_[0]->( [ 200, $head ] );
            $writer->write('whole');
            my $io = $env->{'psgix.io'};
            fileno $io if $io;
            close $io if $io;
            $writer->close;
        };
    }
    return [ $1, [ @$head[ 2 .. $#$head ] ], [] ] if $env->{QUERY_STRING} =~ /\A([23]04)\z/;
    return [ 200, $head, ["hello\n"] ];
}
APP

my $server = start_server( $APP, qw(--hold --workers 1) );
sub held { return $server->board->{held} }

subtest 'a stream' => sub {
    my $client = $server->connect;
    $client->send( request('GET /stream') );
    like $client->comes(qr/\AHTTP\/1\.1 200 .*hello\n/s), qr/\AHTTP\/1\.1 200 .*hello\n/s,
        'the response of the application';
    ok until_true( 5, sub { held()->{stream} == 1 } ), 'it is held';
    is $server->ask("GET /$_")->status, 200, 'the only worker is free' for 1 .. 3;
    is $client->some( 1, 0.2 ),         '',  'nothing more comes';
    $client->close;
    ok until_true( 5, sub { held()->{stream} == 0 } ), 'the client has gone';
    is $server->board->{totals}{aborted}, 0, 'which is no fault';
};

subtest 'its fields' => sub {
    my $client = $server->connect;
    $client->send( request('GET /stream') );
    unlike $client->comes(qr/hello\n/), qr/grip/i, 'are not sent';
    is $server->ask('GET /leftover')->header('Grip-Channel'), undef, 'nor without Grip-Hold';
    is $server->ask('GET /leftover')->header('Grip-Status'),  undef, 'whatever they are';
    is $server->ask('HEAD /stream')->status,                  200,   'HEAD is not held';
    for my $path (qw(/bad /long /stream?204 /gzip)) {
        is $server->ask("GET $path")->status, 500, "$path is a fault of the application";
    }
    ok $server->wait_log(qr/GET \/bad .*Grip-Hold is neither stream nor response/), 'which is logged';
    ok $server->wait_log(qr/GET \/long .*the Grip fields have more than 12 KiB/),   'with its reason';
    ok $server->wait_log(qr/GET \/stream\?204 .*a status that has no body/),        'a stream needs a body';
    ok $server->wait_log(qr/GET \/gzip .*do not compress it/),
        'and one whose bytes are those that are published';
    $client = $server->connect;
    $client->send( request('GET /md5') );
    my $head = $client->comes(qr/hello\n/);
    like $head,   qr/^Content-Encoding: identity\r$/m, 'which is the same';
    unlike $head, qr/^Content-MD5/mi,                  'the checksum is that of the beginning';
};

subtest 'bodies of all kinds' => sub {
    my $client = $server->connect;
    $client->send( request('GET /length') );
    like $client->comes(qr/chunked.*hello\n/is), qr/chunked.*hello\n/is,
        'the length that the application gives is that of the beginning';
    $client = $server->connect;
    $client->send( request('GET /writer/stream') );
    like $client->comes(qr/one\n.*two\n/s), qr/one\n.*two\n/s, 'of a writer';
    $client = $server->connect;
    $client->send( request('GET /file/stream') );
    like $client->comes(qr/HTTP.*\r\n\r\n.+/s), qr/HTTP.*\r\n\r\n.+/s, 'of a file';
    $client = $server->connect;
    $client->send( request('GET /large/stream') );
    cmp_ok length $client->some(300_000), '>', 300_000, 'a large one';
    ok until_true( 5, sub { held()->{stream} >= 1 } ), 'held';
};

subtest 'what keeps a stream alive' => sub {
    my $client = $server->connect;
    $client->send( request('GET /alive') );
    like $client->comes(qr/hello\n/),          qr/hello\n/,          'the beginning';
    like $client->comes(qr/\A3\r\n:\n\n\r\n/), qr/\A3\r\n:\n\n\r\n/, 'comes after a second or two';
    like $client->comes(qr/\A3\r\n:\n\n\r\n/), qr/\A3\r\n:\n\n\r\n/, 'again';
};

subtest 'a response that waits' => sub {
    my $client = $server->connect;
    my $before = time;
    my $answer = $client->ask('GET /poll');
    is $answer->body, "hello\n", 'the response of the application, after its timeout';
    cmp_ok time - $before, '>=', 1, 'not earlier';
    is $answer->header('X-Own'),      'yes', 'with its fields';
    is $client->ask('GET /')->status, 200,   'the connection is kept';
    for my $status ( 204, 304 ) {
        $before = time;
        is $client->ask("GET /poll?$status")->status, $status, "$status says that there is nothing new";
        cmp_ok time - $before, '>=', 1, 'after the timeout';
    }
    is $server->ask('GET /writer/poll')->body,       "one\ntwo\n", 'of a writer';
    is length $server->ask('GET /large/poll')->body, 300_000,      'a large one is sent at once';
    is held()->{response},                           0,            'nothing is held';
};

subtest 'an application that asks for psgix.io when the response is to be held' => sub {
    my $answer = $server->ask('GET /later/poll');
    is $answer->body, 'whole', 'gets none, and the response is whole';
};

subtest 'a client that has ended its side' => sub {
    http1_only('with HTTP/2 that is the end of all streams');
    for my $case (
        [ tcp  => q(),     qw(--half-closed refuse) ],
        [ tcp  => 'hello', qw(--half-closed serve) ],
        [ unix => 'hello' ]
        )
    {
        my ( $kind, $body, @options ) = @$case;
        my $path   = File::Temp->newdir;
        my @listen = $kind eq 'unix' ? ( '--listen', "unix:$path/socket" ) : ();
        my $other  = start_server( $APP, qw(--hold --workers 1), @listen, @options );
        my $client = $other->connect;
        $client->send( request('GET /poll') );
        ok until_true( 5, sub { $other->board->{held}{response} == 1 } ), "held ($kind @options)";
        $client->finish;
        my $got = $client->some( 10_000, 3 );
        like $got, $body ? qr/\r\n\r\n$body\n\z/ : qr/\A\z/, $body ? 'is answered' : 'is taken for gone';
        is $other->board->{held}{response}, 0, 'and held no longer';
        $client = $other->connect;
        $client->send( request('GET /stream') );
        ok until_true( 5, sub { $other->board->{held}{stream} == 1 } ), 'a stream';
        $client->close;
        ok until_true( 5, sub { $other->board->{held}{stream} == 0 } ), 'whose client is gone';
    }
};

subtest 'a client that ends its side while the response of the application is sent' => sub {
    http1_only('with HTTP/2 that is the end of all streams');
    my $client = $server->connect;
    $client->send( request('GET /stream?huge') );
    ok until_true( 5, sub { held()->{stream} == 1 } ), 'held';
    $client->finish;
    my ( $got, $some ) = 0;
    $got += length $some while length( $some = $client->some( 1 << 20, 3 ) );
    cmp_ok $got, '>', 20_000_000, 'gets all of that';
    ok until_true( 5, sub { held()->{stream} == 0 } ), 'and is gone then';
};

subtest 'a client that asks for it' => sub {
    is $server->ask( 'GET /', 'Grip-Hold: stream', 'Grip-Channel: a' )->body, "hello\n", 'is not obeyed';
    is held()->{stream} + held()->{response},                                 0,         'nothing is held';
};

subtest 'the server stops' => sub {
    my ( $stream, $poll ) = map { $server->connect } 1 .. 2;
    $stream->send( request('GET /stream') );
    $poll->send( request('GET /poll') );
    ok until_true( 5, sub { held()->{stream} == 1 && held()->{response} == 1 } ), 'two are held';
    $server->signal('TERM');
    my $answer = $stream->response( patience => 10 );
    is $answer->body, "hello\n", 'the stream ends as it should';
    is $poll->response( patience => 10 )->body, "hello\n",
        'the other one gets the response of the application';
    is $server->wait_exit, 'exit 0', 'and the server ends';
};

subtest '--hold-per-client' => sub {
    my $limited = start_server( $APP, qw(--hold --hold-per-client 2 --workers 1) );
    my @held    = map { my $c = $limited->connect; $c->send( request('GET /stream') ); $c } 1 .. 2;
    like $_->comes(qr/hello/), qr/hello/, 'held' for @held;
    is $limited->ask('GET /stream')->status,                   503, 'another one is refused';
    is $limited->ask('GET /poll')->status,                     503, 'whatever it is';
    is $limited->board->{totals}{refusals}{'hold-per-client'}, 2,   'and counted';
    ok $limited->wait_log(qr/warn: --hold-per-client \(2\) reached: \d requests? \w+ answered with 503/),
        'which the log says';
    is $limited->ask('GET /')->status, 200, 'other requests are not';
    $held[0]->close;
    ok until_true( 5, sub { $limited->board->{held}{stream} == 1 } ), 'one is gone';
    is $limited->ask('GET /poll')->status, 200, 'there is a place again';
};

subtest 'without --hold' => sub {
    my $plain  = start_server( $APP, qw(--workers 1) );
    my $answer = $plain->ask('GET /stream');
    is $answer->body,                   "hello\n", 'the response ends';
    is $answer->header('Grip-Channel'), 'a',       'and a proxy in front gets the fields';
};

done_testing;
