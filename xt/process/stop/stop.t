use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# TERM: what was accepted is answered in full, then exit 0

my $APP = <<'APP';
use Time::HiRes qw(sleep);
sub {
    my $env = shift;
    sleep $1 if $env->{PATH_INFO} =~ m{\A/sleep/([\d.]+)};
    return sub { my $w = shift->( [ 200, [] ] ); for ( 1 .. 10 ) { $w->write("$_\n"); sleep 0.1 } $w->close } if $env->{PATH_INFO} eq '/stream';
    return [ 200, [], [ 'x' x 5_000_000 ] ] if $env->{PATH_INFO} eq '/big';
    local $/;
    my $body = readline $env->{'psgi.input'};
    [ 200, [], [ 'done', defined $body ? $body : '' ] ];
}
APP

for my $workers ( 0, 1, 2 ) {
    subtest "--workers $workers, during a request" => sub {
        my $server = start_server( $APP, '--workers', $workers );
        my $idle   = $server->connect;
        is $idle->ask('GET /')->status, 200, 'one connection is idle';
        my $client = $server->connect;
        $server->board;    # its reader is there before the request
        $client->send( request('GET /sleep/1') );
        $server->wait_busy( 1, qr{/sleep/1} );
        $server->signal('TERM');
        my $answer = $client->response;
        is $answer->body, 'done', 'the answer is whole';
        ok $answer->closes, 'and says close'
            if $workers || linux( 'and says close', 'what became ready first comes first' );
        is $client->end,       'eof',    'which it does';
        is $idle->end,         'eof',    'the idle one is closed as well';
        is $server->wait_exit, 'exit 0', 'it ends after that, and not at the end of --graceful-timeout';
        $server->stop;
    };
}

subtest 'a streamed answer, a large one to a slow reader, a body that is half there' => sub {
    my $server = start_server( $APP, '--workers', 3 );
    my ( $stream, $slow, $half ) = map { $server->connect( rcvbuf => 65_536 ) } 1 .. 3;
    $server->board;    # its reader is there before the request
    $stream->send( request('GET /stream') );
    $slow->send( request('GET /big') );
    $half->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    $server->wait_busy( 1, qr{/stream} );
    $server->wait_open(3);
    $server->signal('TERM');
    $server->wait_log(qr/stopping: TERM/);
    $half->send('cd');
    is $half->response->status,      200,                              'the body' or diag $server->log;
    is length $slow->response->body, 5_000_000,                        'the large one';
    is $stream->response->body,      join( '', map {"$_\n"} 1 .. 10 ), 'the stream';
    $server->stop;
};

subtest 'INT' => sub {
    my $server = start_server( $APP, '--workers', 1 );
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop('INT');
};

subtest 'a request that never ends is killed after --graceful-timeout' => sub {
    my $server = start_server( $APP, qw(--workers 1 --graceful-timeout 1) );
    my $client = $server->connect;
    $client->send( request('GET /sleep/60') );
    $server->wait_busy( 1, qr{/sleep/60} );
    $server->signal('TERM');
    $server->wait_exit;
    like $server->log,    qr/workers that did not finish in time were killed/, 'the log says so';
    like $server->exited, qr/\Aexit/,                                          'the server itself exits';
    is scalar( $server->processes ), 0, 'with all its processes';
};

subtest 'a second TERM does not wait' => sub {
    my $server = start_server( $APP, qw(--workers 1) );
    my $client = $server->connect;
    $client->send( request('GET /sleep/60') );
    $server->wait_busy( 1, qr{/sleep/60} );
    $server->signal('TERM');
    $server->wait_log(qr/stopping: TERM/);
    $server->signal('TERM');
    is $server->wait_exit,           'exit 0', 'it ends before --graceful-timeout';
    is scalar( $server->processes ), 0,        'with all its processes';
};

subtest 'thirty moments around a request: never half an answer' => sub {
    my %result;
    for my $moment ( 1 .. 30 ) {
        my $server = start_server( $APP, qw(--workers 1) );
        my $client = $server->connect;
        my $kept   = $moment % 5 ? undef : $server->connect;
        $kept->ask('GET /') if $kept;
        $client->send( request('GET /sleep/0.005') );
        sleep rand 0.02;
        $server->signal('TERM');
        $kept->send( request('GET /') ) if $kept && $moment % 2;
        $result{ 'new connection: ' . $client->response->status }++;
        $client->close;
        my $how = $server->wait_exit || 'still running';
        $result{$how}++;
        diag $server->log if $how ne 'exit 0';
    }
    is_deeply \%result, { 'new connection: 200' => 30, 'exit 0' => 30 }, 'always 200 and exit 0';
};

subtest 'the supervisor is killed: its workers do not live on' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->signal('KILL');
    is $server->wait_exit, 'signal 9', 'killed';
    ok until_true( 10, sub { !$server->processes } ), 'no process is left';
};

for my $workers ( 0, 2 ) {
    for my $hurry ( 0, 1 ) {
        subtest "--workers $workers, the command of the log does not end"
            . ( $hurry ? ', TERM again' : '' ) => sub {
            my $server = start_server( $APP, '--workers', $workers, '--access-log', '|exec sleep 100',
                '--pid', my $pid_file = File::Temp->new->filename );
            is $server->ask('GET /')->status, 200, 'it serves';
            $server->signal('TERM');
            ok $server->wait_log(
                qr/--access-log: 'exec sleep 100' has 5 s to finish writing and exit$/m, 20
                ),
                'the log says what the server waits for';
            unlike $server->log, qr/stopped/, 'and not that it has stopped';
            $server->signal('TERM') if $hurry;
            is $server->wait_exit(20), 'exit 0', 'it stops';
            ok until_true( 10, sub { !$server->processes } ), 'with its command' if $hurry;
            ok !-e $pid_file,                                 'the PID file is gone';
            my ( $told, $seconds )
                = $server->log =~ /^(.* was terminated by TERM)\n[^\n]* stopped after ([\d.]+) s\n\z/m;
            like $told, qr/warn: --access-log: 'exec sleep 100' did not exit at the end of its input/,
                'what has come of it'
                or diag $server->log;
            cmp_ok $seconds, $hurry ? '<' : '>=', 4.5, '"stopped" is the last line, with the whole time';
            };
    }
}

subtest 'exit in the application, --workers 0' => sub {
    for my $code ( 0, 3 ) {
        my $server = Sirius::Test::Server->start(
            app =>
                "sub { exit $code if \$_[0]{PATH_INFO} eq '/exit'; waitpid( fork || exit, 0 ); [ 200, [], ['ok'] ] }\n",
            args => [ qw(--workers 0 --pid), my $pid_file = File::Temp->new->filename ],
        );
        is $server->ask('GET /')->body,       'ok',          'a child may exit';
        is $server->ask('GET /exit')->status, 500,           'a request that exits';
        is $server->wait_exit(20), 'exit ' . ( $code || 1 ), "exit $code does not look like a stop";
        like $server->log, qr/error: stopped: the application called exit \(status $code\)\n\z/,
            'the last line';
        is scalar( () = $server->log =~ /stopped/g ), 1, 'the only one';
        ok !-e $pid_file, 'the PID file is gone';
    }
};

subtest 'exit in the application that a Delayed server of --workers 0 loads' => sub {
    my $server = Sirius::Test::Server->spawn( app => "exit 0;\n", args => [qw(--workers 0 -L Delayed)] );
    is $server->wait_exit(20), 'exit 1', 'not 0';
    like $server->log, qr/error: stopped: the application called exit \(status 0\)\n\z/, 'the last line';
};

subtest 'exit in a handler of the application, once a stop was asked for' => sub {
    my $server
        = start_server(
        "my \$n = 0; sub { \$SIG{ALRM} = sub { exit }; alarm 1; \$n++; sleep 3; [ 200, [], [] ] }\n",
        qw(--workers 0) );
    my $client = $server->connect;
    $server->board;    # its reader is there before the request
    $client->send( request('GET /') );
    $server->wait_busy(1);
    $server->signal('TERM');
    is $server->wait_exit(20), 'exit 0', 'it is one';
};

subtest 'while a child tries whether the installed code loads' => sub {
    my $dir = File::Temp->newdir;
    spew( "$dir/SlowTrial.pm",
        "package SlowTrial;\nsleep 20 if \$0 eq '-e' && !\$ENV{SIRIUS_RENEWAL};\n1;\n" );
    my $server = Sirius::Test::Server->start(
        app  => "sub { [ 200, [], ['ok'] ] }\n",
        args => [qw(--workers 1)],
        env  => { PERL5OPT => "-I$dir -MSlowTrial" },
    );
    $server->signal('HUP');
    my $there = until_true(
        20,
        sub {
            grep { Sirius::Test::Server::slurp("/proc/$_/cmdline") =~ /->tried\(/ } $server->processes;
        }
    );
    ok $there, 'it is there';
    $server->stop;
    unlike $server->log, qr/old code/, 'and nobody hears of it';
};

done_testing;
