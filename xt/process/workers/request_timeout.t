use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Fcntl       qw(LOCK_EX LOCK_NB);
use File::Temp  ();
use Time::HiRes qw(sleep time);
use Test::More;
use Sirius::Test;

# --request-timeout and --stream-timeout: an application call that hangs costs its client a 504 and nobody
# else anything

my $lock = File::Temp->new;
flock $lock, LOCK_EX or die "flock: $!";

my $APP = <<'APP';
use Fcntl qw(LOCK_EX);
use POSIX ();
use Time::HiRes qw(sleep);
my %do = (
    '/sleep' => sub { sleep 60 },
    '/tell'  => sub { print STDERR "asleep: $$\n"; sleep 60 },
    '/deaf'  => sub { local $SIG{USR2} = local $SIG{TERM} = 'IGNORE'; sleep 60 },
    '/spin'  => sub { 1 while 1 },
    '/flock' => sub { open my $fh, '<', $ENV{LOCK_FILE} or die $!; 1 until flock $fh, LOCK_EX },
    '/pause' => sub { POSIX::pause() while 1 },
    '/late'  => sub { sleep $_[0]{QUERY_STRING} },
    '/die'   => sub { sleep $_[0]{QUERY_STRING}; die "too late\n" },
    '/exit'  => sub { sleep $_[0]{QUERY_STRING}; exit },
);
sub {
    my $env = shift;
    my ( $path, $query ) = @{$env}{qw(PATH_INFO QUERY_STRING)};
    $do{$path}->($env) if $do{$path};
    return sub {
        my $w = shift->( [ 200, [ 'Content-Type' => 'text/event-stream' ] ] );
        for ( 1 .. $query ) { $w->write("data: $_\n\n"); sleep 0.2 }
        sleep 60 if $path eq '/still';
        $w->close;
    } if $path eq '/events' || $path eq '/still';
    return sub {
        $_[0]->( [ 200, [], ["done\n"] ] );
        sleep $query;
    } if $path eq '/after';
    return sub { sleep $query; shift->( [ 200, [], ["late\n"] ] ) } if $path eq '/delayed';
    [ 200, [], ["$$"] ];
}
APP

sub server {
    my @args = @_;
    local $ENV{LOCK_FILE} = "$lock";
    my $server = start_server( $APP, @args );
    $server->{may_crash} = 1;
    return $server;
}

sub replaced {
    my ( $server, $pid ) = @_;
    return until_true(
        15,
        sub {
            my @now = $server->workers;
            @now == 2 && !grep { $_ == $pid } @now;
        }
    );
}

# The worker that the log says has timed out with this path
sub culprit {
    my ( $server, $path ) = @_;
    until_true( 15, sub { $server->log =~ /worker \d+: GET \Q$path\E / } );
    return $server->log =~ /worker (\d+): GET \Q$path\E / ? $1 : 0;
}

for my $path (qw(/sleep /deaf /spin /flock /pause)) {
    subtest "$path: an application call that never returns" => sub {
        my $server = server(qw(--workers 2 --request-timeout 1));
        my @others = map { $server->connect } 1 .. 20;
        my %before;
        ok until_true(
            10,
            sub {
                %before = map { $_ => 1 } $server->workers;
                2 == keys %before;
            }
            ),
            'two workers';
        my $hanging = $server->connect;
        $_->ask('GET /') for @others;
        my $start = time;
        $hanging->send( request("GET $path?who=me") );
        my %status;

        while ( $server->log !~ /worker \d+: GET/ && time < $start + 15 ) {
            $status{ $_->ask('GET /')->status }++ for @others;
        }
        my $answer = $hanging->response;
        is $answer->status, 504, 'its client gets 504';
        ok $answer->closes, 'and is told that the connection closes';
        is $hanging->end, 'eof', 'which it does';
        cmp_ok time - $start, '>', 0.9, 'not before its time';
        cmp_ok time - $start, '<', 14,  'and not much later';
        my $pid = culprit( $server, "$path?who=me" );
        ok $before{$pid}, 'the log names worker and URL' or diag $server->log;
        ok $server->wait_log(
            qr{GET \Q$path\E\?who=me ran for \d+\.\d s, the client got 504; request id [0-9a-f]{32}$}m, 15
            ),
            'and what happened';
        ok replaced( $server, $pid ), 'the worker is replaced';
        $status{ $_->ask('GET /')->status }++ for @others;
        is_deeply [ keys %status ], [200], 'the others go on over the same connections'
            or diag explain \%status;
        my $end = qr/^.*worker $pid (?:exited|was killed).*$/m;
        $server->wait_log( $end, 15 );
        my $ends = () = $server->log =~ /$end/g;
        is $ends, 1, 'its end is logged once' or diag $server->log;
        $server->stop;
    };
}

subtest 'both workers hang, and the queue behind them' => sub {
    my $server  = server(qw(--workers 2 --request-timeout 1));
    my @hanging = map { $server->connect } 1 .. 2;
    $_->send( request('GET /deaf') ) for @hanging;
    my @waiting = map { $server->connect } 1 .. 10;
    $_->send( request('GET /') ) for @waiting;
    is_deeply [ map { $_->response->status } @hanging ], [ 504, 504 ], 'those that hang get 504';
    my %status;
    $status{ $_->response->status }++ for @waiting;
    is_deeply [ grep { $_ != 200 && $_ != 504 } keys %status ], [], 'those that wait get an answer';
    is $server->ask('GET /')->status, 200, 'the server serves again';
    ok replaced( $server, $_ ), "worker $_ is replaced" for $server->log =~ /worker (\d+): GET/g;
    $server->stop;
};

subtest 'a response that has begun' => sub {
    my $server = server(qw(--workers 2 --request-timeout 1));
    my $client = $server->connect;
    $client->send( request('GET /events?10') );
    my $answer = $client->response;
    is $answer->status, 200,                                      'server-sent events for two seconds';
    is $answer->body,   join( '', map {"data: $_\n\n"} 1 .. 10 ), 'are all there';
    is $server->ask('GET /after?2')->body,     "done\n",          'a whole response, then work';
    is $server->ask('GET /delayed?3')->status, 504,               'a delayed response that does not come';
    ok $server->wait_log( qr/GET/, 15 ), 'the log says so';
    my @logged = $server->log =~ /worker \d+: (GET \S+)/g;
    is_deeply \@logged, ['GET /delayed?3'], 'only that has timed out';
    $server->stop;
};

subtest '--stream-timeout: a stream that stands still' => sub {
    my $server = server(qw(--workers 2 --stream-timeout 1.5));
    my $client = $server->connect;
    $client->send( request('GET /events?10') );
    is length $client->response->body, 10 * 9 + 1, 'one that does not is left alone';
    $client->send( request('GET /still?2') );
    my $answer = $client->response;
    is $answer->status, 'cut', 'the answer does not look whole';
    my $pid = culprit( $server, '/still?2' );
    ok $pid, 'the log names it' or diag $server->log;
    ok $server->wait_log(
        qr/GET \/still\?2 paused within its response for \d+\.\d s, the response was cut off; request id [0-9a-f]{32}$/m,
        15
        ),
        'and what happened';
    ok replaced( $server, $pid ), 'the worker is replaced';
    $server->stop;
};

subtest 'a call that returns after all' => sub {
    for my $path (qw(/late /die /exit /delayed)) {
        my $server = server(qw(--workers 2 --request-timeout 0.5));
        my $client = $server->connect;
        $client->send( request("GET $path?1") );
        is $client->response->status, 504,   "$path: 504";
        is $client->end,              'eof', 'and nothing behind it';
        my $pid = culprit( $server, "$path?1" );
        ok replaced( $server, $pid ), 'the worker is replaced';
        is $server->ask('GET /')->status, 200, 'the server serves';
        unlike $server->log, qr/signal (?:4|6|7|8|11)\b|panic/, 'nothing crashed';
        $server->stop;
    }
};

# Calls that leave perl no chance to show its stack: the log has what can be seen from outside
{
    my $arch  = ( POSIX::uname() )[4];
    my $call  = { x86_64 => { flock => 73, sleep => 35 }, aarch64 => { flock => 32, sleep => 101 } }->{$arch};
    my $stuck = <<"APP";
use Fcntl qw(LOCK_EX);
use POSIX ();
sub {
    my \$path = \$_[0]{PATH_INFO};
    return [ 200, [], ["\$\$"] ] if \$path eq '/';
    my \$time = pack 'q2', 60, 0;
    my \$set = POSIX::SigSet->new;
    \$set->fillset;
    POSIX::sigprocmask( POSIX::SIG_BLOCK(), \$set ) if \$path =~ /blocked/;
    local \$SIG{USR2} = 'IGNORE' if \$path =~ /ignored/;
    open my \$fh, '<', \$ENV{LOCK_FILE} or die \$!;
#line 1000 "lib/Shop/Report.pm"
    syscall $call->{sleep}, \$time, 0 if \$path =~ /sleep/;
#line 2000 "lib/Shop/Lock.pm"
    flock \$fh, LOCK_EX if \$path =~ /flock/;
#line 3000 "lib/Shop/Pattern.pm"
    ( 'a' x 40 ) =~ /\\A(?:a|aa|aaa)+b/ for 1 .. 1e9;
}
APP
    my %place = (
        '/sleep/blocked' =>
            [ qr/in the system call (?:clock_)?nanosleep/, 'lib/Shop/Report.pm line 1000', 'blocked' ],
        '/flock/blocked' => [ qr/in the system call flock/,   'lib/Shop/Lock.pm line 2000',    'blocked' ],
        '/flock/ignored' => [ qr/in the system call flock/,   'lib/Shop/Lock.pm line 2000',    '' ],
        '/match/blocked' => [ qr/outside of any system call/, 'lib/Shop/Pattern.pm line 3000', 'blocked' ],
    );
    for my $path ( sort keys %place ) {
        subtest "$path: a call that shows no stack" => sub {
            my ( $where, $line, $blocked ) = @{ $place{$path} };
            local $ENV{LOCK_FILE} = "$lock";
            my $server = start_server( $stuck, qw(--workers 2 --request-timeout 0.5) );
            $server->{may_crash} = 1;
            is $server->ask("GET $path?a")->status, 504, 'its client gets 504';
            my $pid = culprit( $server, "$path?a" );
            ok $server->wait_log( qr/^.*worker $pid wrote no stack trace: .*/m, 15 ),
                'the log says that there is no stack'
                or diag $server->log;
            my ($said) = $server->log =~ /worker $pid wrote no stack trace: (.*)/;
            like $said, $where, 'what it is doing';
            like $said, qr/, called from \Q$line\E$/, 'and for whom'
                if linux( 'a place in perl', 'the stack of another process' );
            is $said =~ /signal USR2 is blocked/ ? 'blocked' : '', $blocked, 'why it shows none';
            ok replaced( $server, $pid ), 'the worker is replaced';
            is $server->ask('GET /')->status, 200, 'the server serves';
            $server->stop;
        };
    }
}

subtest 'a stack was shown: nothing is guessed' => sub {
    my $server = server(qw(--workers 2 --request-timeout 0.5));
    is $server->ask('GET /sleep?b')->status, 504, 'its client gets 504';
    my $pid = culprit( $server, '/sleep?b' );
    ok replaced( $server, $pid ),                       'the worker is replaced';
    ok $server->wait_log( qr/this worker is at /, 15 ), 'its stack is in the log';
    unlike $server->log, qr/wrote no stack/, 'and only that';
    $server->stop;
};

subtest 'a worker that is stopped: nothing in it can look at the time' => sub {
    my $server = server(qw(--workers 2 --request-timeout 1.5 --stream-timeout 60));
    my $late   = $server->connect;
    my $start  = time;
    $late->send( request('GET /tell?stopped') );
    $server->wait_log( qr/asleep: \d+/, 10 );
    my ($pid) = $server->log =~ /asleep: (\d+)/;
    ok $pid, 'a worker is busy' or return $server->stop;
    kill STOP => $pid;
    ok $server->wait_log( qr/worker $pid was stopped by SIGSTOP: its request waits for SIGCONT/, 10 ),
        'it is told';
    my ($idle) = grep { $_ != $pid } $server->workers;
    kill STOP => $idle;
    ok $server->wait_log(
        qr/worker $idle was stopped by SIGSTOP: it has no request, and takes none before SIGCONT/, 10
        ),
        'also of one that has no request'
        or diag $server->log;
    kill CONT => $idle;
    my $end = $late->response( patience => 20 );
    cmp_ok time - $start, '>', 1.5, 'the client waits until the limit is over';
    is $end->status, 504, 'then it is answered';
    ok $server->wait_log(
        qr{worker $pid: GET /tell\?stopped ran for \d\.\d s,? the client got 504; request id [0-9a-f]{32}$}m,
        10
        ),
        'the log says so'
        or diag $server->log;
    ok replaced( $server, $pid ), 'the worker is replaced';
    ok $server->wait_log( qr/worker $pid was killed: its request ran for too long; starting another/, 10 ),
        'as any that is overdue';
    is $server->ask('GET /')->status, 200, 'the server serves';
    $server->stop;
};

subtest 'a worker that is stopped for less than that' => sub {
    my $server = server(qw(--workers 2 --request-timeout 5));
    my $stream = $server->connect;
    $stream->send( request('GET /events?4') );
    like $stream->some( 20, 2 ), qr/200 OK/, 'a stream';
    my $pid = ( grep { $_ != $server->ask('GET /')->body } $server->workers )[0];
    kill STOP => $pid;
    ok $server->wait_log( qr/worker $pid was stopped/, 10 ), 'its worker is stopped';
    kill CONT => $pid;
    ok $server->wait_log( qr/worker $pid continues \(SIGCONT\)/, 10 ), 'and goes on';
    is $server->ask('GET /')->status, 200, 'the server serves';
    ok + ( grep { $_ == $pid } $server->workers ), 'with the same workers';
    $server->stop;
};

subtest '--workers 0: nobody would start it again' => sub {
    my $server = server(qw(--workers 0 --request-timeout 0.5));
    my $pid    = $server->ask('GET /')->body;
    for my $path (qw(/late /die)) {
        is $server->ask("GET $path?4")->status, 504, "$path: 504";
        is $server->ask('GET /')->status,       504, 'who waits for it as well';
    }
    ok until_true( 20, sub { ( $server->ask('GET /')->body || '' ) eq $pid } ), 'then it goes on';
    ok $server->wait_log(
        qr{^\[sirius $pid\] error: GET /late\?4 ran for \d+\.\d s, the client got 504; request id [0-9a-f]{32}$}m,
        15
        ),
        'the log names the URL';
    $server->stop;
};

subtest 'psgix.io: the conversation is the application\'s' => sub {
    my $server = start_server( <<'APP', qw(--workers 1 --request-timeout 0.5) );
sub {
    my $io = $_[0]{'psgix.io'};
    return sub { syswrite $io, 'mine, '; sleep 2; syswrite $io, 'and only that'; close $io };
}
APP
    my $client = $server->connect;
    $client->send( request('GET /') );
    is $client->rest, 'mine, and only that', 'no 504 comes in between';
    unlike $server->log, qr/504/, 'and nothing is logged';
    $server->stop;
};

done_testing;
