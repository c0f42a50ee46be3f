use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Spec ();
use JSON::PP   ();
use List::Util qw(max);
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Jobs;

# --beside: commands that are started, reloaded, ended and killed with the server

my $dir  = jobs_dir();
my $jobs = jobs();
my $APP  = Sirius::Test::Jobs->APP;

subtest 'what it has and what it has not' => sub {
    spew( "$dir/env", "SHOP_KEY=secret\nSHOP_TWO=2\n" );
    mkdir "$dir/home";
    my $see = <<'SEE' =~ tr/\n/ /r;
see=perl -e '$| = 1;
print join(q( ), map { "$_=$ENV{$_}" } grep { /^(SHOP|PLACK_ENV|NOTIFY|LISTEN|WATCHDOG|SIRIUS|SERVER_STARTER)/ && !/_(PORTABLE|LEFT_OUT)\z/ } sort keys %ENV), "\n";
opendir my $d, "/proc/self/fd"; print join(q( ), map { "$_:" . readlink "/proc/self/fd/$_" } grep { /\d/ && $_ != fileno $d } sort readdir $d), "\n";
print "group ", getpgrp() == getppid() ? "own" : "not", " umask ", umask, " ", `pwd -P`;
print "blocked ", `grep ^SigBlk /proc/self/status`;
sleep 100'
SEE
    my $server = start(
        $see,
        {   env => { NOTIFY_SOCKET => '@none', SHOP_TWO => 'first', SIRIUS_TEST_SHOWN => 1 },
            app => "sleep 1; open my \$out, '>', '$dir/loaded'; \$ENV{SHOP_KEY} = 'changed'; $APP",
        },
        '-E', 'test',
        '--env-file',
        "$dir/env",
        '--chdir',
        "$dir/home",
        '--umask',
        '027',
        '--admin',
        "$dir/admin.sock"
    );
    ok $server->wait_log(qr/blocked/), 'what it prints is in the log';
    my ($pid)
        = $server->log
        =~ /^see\[(\d+)\]: PLACK_ENV=test SHOP_KEY=secret SHOP_TWO=first SIRIUS_TEST_SHOWN=1$/m;
    ok $pid,
        'the environment is that of the start, with --env and --env-file, and nothing of the service manager or the server'
        or diag $server->log;
    my ($fds) = $server->log =~ /^see\[\d+\]: (0:.*)$/m;
    like $fds, qr{\A0:/dev/null 1:pipe:\[(\d+)\] 2:pipe:\[\1\]\z}, 'no other descriptor';
    my $home = File::Spec->rel2abs("$dir/home");
    like $server->log, qr/^see\[\d+\]: group own umask 23 \Q$home\E$/m,
        'directory, umask and group of processes';
    like $server->log, qr/^see\[\d+\]: blocked SigBlk: 0{16}$/m, 'no signal is blocked';
    like $server->log, qr/listening on.*--beside see: started as PID $pid$/ms,
        'it is started when the server listens';
    my $status = status()->{see};
    is_deeply [ @{$status}{qw(pid restarts state)} ], [ $pid, 0, 'running' ], 'sirius ctl knows it';
    my $root = $Sirius::Test::Server::ROOT;
    my $text = `$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius ctl --control $dir/control status`;
    like $text, qr/^BESIDE +PID  STATE +RESTARTS  SINCE\nsee +$pid  running +0  \d.*\n\n/m, 'and prints it';
    my $client = Sirius::Test::Client->new( "unix:$dir/admin.sock", plain => 1 );
    my ($one)
        = @{ JSON::PP->new->decode( $client->ask( 'GET /status.json', 'Host: localhost' )->body )->{beside} };
    is_deeply $one, { name => 'see', pid => $pid, restarts => 0, state => 'running', since => $one->{since} },
        'and so does the admin port';
    like $client->ask( 'GET /metrics', 'Host: localhost' )->body,
        qr/^sirius_beside_running\{name="see"\} 1\n/m, 'as a metric';
    $server->stop;
    ok !alive($pid), 'it ends with the server';
};

subtest 'it ends by itself' => sub {
    my $server = start( [ 'zero=true', q(three=sh -c 'echo $$; exit 3'), 'none=/no/such --thing' ] );
    ok $server->wait_log( qr/three: PID \d+ exited with status 3; next attempt in 0.1 s$/m, 10 ),
        'with a status';
    ok $server->wait_log(
        qr/info: --beside zero: PID \d+ exited with status 0; next attempt in 0.1 s$/m, 10
        ),
        'with status 0';
    ok $server->wait_log(
        qr/warn: --beside zero: it ended as soon as .* let it stay in the foreground$/m, 10
        ),
        'which may be a daemon';
    ok $server->wait_log( qr{^none\[\d+\]: cannot run '/no/such --thing': No such file or directory$}m, 10 ),
        'it cannot be run';
    ok $server->wait_log( qr/none: PID \d+ exited with status 127; next attempt in 0.2 s$/m, 10 ),
        'and is tried again';
    ok until_true( 10, sub { ( status()->{three}{restarts} // 0 ) >= 3 } ), 'how often is counted';
    ok until_true( 10, sub { status()->{none}{state} eq 'waiting' } ),      'what it waits for';
    is $server->ask('GET /')->status, 200, 'nobody else notices';
    is_deeply [ $server->log =~ /--beside (\w+): it ended as soon/g ], ['zero'],
        'a word about daemons comes once';
    $server->stop;
};

subtest 'a reload' => sub {
    my $conf   = spew( "$dir/reload.conf", "beside = jobs=$jobs finish one\nbeside = gone=sleep 100\n" );
    my $server = start( [], '--config', $conf );
    ok until_true( 10, sub { happened('child') && happened('start') } ), 'it runs';
    my ($first) = events() =~ /^start .* (\d+)$/m;
    my $gone = status()->{gone}{pid};
    spew( $conf, "beside = jobs=$jobs finish two\nbeside = new=sleep 100\nenv-file = $dir/none\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload failed/, 20 ), 'one that fails';
    is happened('term'),      0,      'does not concern it';
    is status()->{jobs}{pid}, $first, 'it runs on';
    spew( $conf, "beside = jobs=$jobs finish two\nbeside = new=sleep 100\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload completed/, 20 ),          'one that succeeds';
    ok until_true( 20, sub { happened('start finish two') } ), 'runs the new command';
    is happened('child-term'), 0, 'what its children do is for it to say';
    like events(), qr/^term $first\n.*finished $first\n.*start finish two \d+$/ms,
        'when the one before has finished';
    is happened('twice'), 0, 'with all its children';
    ok running('new'),                          'another one is started';
    ok until_true( 10, sub { !alive($gone) } ), 'one that is not in the configuration any more ends';
    is join( q( ), sort keys %{ status() } ), 'jobs new', 'and is not shown';
    ok $server->wait_log( qr/now runs the installed code/, 20 ), 'the supervisor is a new program';
    my $second = status()->{jobs}{pid};
    ok alive($second), 'which has it still';
    is happened('start'), 2, 'and starts no other';
    kill KILL => $second;
    ok until_true( 10, sub { happened('start finish two') == 2 } ), 'but when it is killed';
    like $server->log, qr/jobs: PID $second was killed by signal 9/, 'which is in the log';
    is status()->{jobs}{restarts}, 1, 'and counted';
    $server->{may_crash} = 1;
    $server->stop;
    is happened('finished'), 2, 'a stop lets it finish';
    none_left();
};

subtest 'it does not end' => sub {
    my $server = start( "jobs=exec $jobs stubborn", '--graceful-timeout', 1 );
    ok until_true( 10, sub { happened('child') } ), 'it runs';
    my $began = time;
    $server->signal('HUP');
    ok until_true( 20, sub { happened('start') == 2 } ), 'after a reload there is another';
    cmp_ok time - $began, '>=', 1, 'when its time is over';
    is happened('twice'), 0, 'not two';
    like $server->log, qr/warn: --beside jobs: PID \d+ did not end in time and was killed$/m,
        'the log says so';
    until_true( 10, sub { happened('child') == 2 } );
    $server->stop;
    none_left();
    $server = start( "jobs=exec $jobs stubborn", '--graceful-timeout', 60 );
    until_true( 10, sub { happened('child') } );
    $server->signal('INT');
    is $server->wait_exit(10), 'exit 0', 'a fast stop waits for a second';
    none_left();
};

subtest 'a shell' => sub {
    my $server = start("jobs=A=1 $jobs finish; true");
    ok until_true( 10, sub { happened('child') } ), 'runs it';
    unlike events(), qr/ $_$/m, 'as its child' for status()->{jobs}{pid};
    $server->signal('HUP');
    ok until_true( 20, sub { happened('start') == 2 } ), 'after a reload there is another';
    is join( q( ), map { happened($_) } qw(term child-term finished twice) ), '1 0 1 0',
        'what the shell runs was told to end, and its children were not';
    $server->stop;
    is happened('finished'), 2, 'also in a stop';
    none_left();
};

subtest 'another user' => sub {
    plan skip_all => 'needs root' if $>;
    my $server = start( 'see=id -u; id -g; id -G; echo $HOME >/dev/stderr; sleep 100',
        qw(--user 65532 --group 65533) );
    my $seen = sub { return join q( ), $server->log =~ /^see\[\d+\]: (.*)$/mg };
    ok until_true( 10, sub { $seen->() =~ m{/} } ), 'it runs';
    is $seen->(), '65532 65533 65533 /', 'as the workers';
    $server->signal('HUP');
    ok $server->wait_log( qr/now runs the installed code/, 20 ),                         'a reload';
    ok until_true( 10, sub { $seen->() eq '65532 65533 65533 / 65532 65533 65533 /' } ), 'the same';
    my $pid = status()->{see}{pid};
    $server->signal('KILL');
    ok until_true( 10, sub { !alive($pid) } ), 'it ends with the supervisor';
    $server->wait_exit;
    until_true( 10, sub { !$server->processes } );
};

subtest 'a directory that its user may not enter' => sub {
    plan skip_all => 'needs root' if $>;
    mkdir "$dir/$_", oct 700 for qw(closed other);
    my $conf   = spew( "$dir/closed.conf", "chdir = $dir/closed\n" );
    my $server = start( 'see=echo runs; sleep 100', qw(--user 65532 --group 65533 --config), $conf );
    ok $server->wait_log( qr/^see\[\d+\]: runs$/m, 10 ), 'that of the server is no obstacle';
    spew( $conf, "chdir = $dir/other\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/^see\[\d+\]: chdir \S+other: Permission denied$/m, 20 ),
        'but an application cannot put it into another one';
    $server->stop;
};

subtest 'under start_server' => sub {
    plan skip_all => 'start_server is not in PATH' if !program('start_server');
    unlink "$dir/events", "$dir/lock";
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        args    => [ qw(--workers 1), '--beside', "jobs=$jobs finish" ],
        command => Sirius::Test::Server->below_starter( '127.0.0.1:' . free_port() ),
        plain   => 1,
    );
    ok until_true( 20, sub { happened('start') == 1 } ), 'it runs';
    $server->signal('HUP');
    ok $server->wait_log( qr/--beside: started when the server before this one, PID \d+, has ended$/m, 20 ),
        'the next server waits';
    is happened('start'), 1, 'it has none';
    ok until_true( 20, sub { happened('start') == 2 } ), 'until the one before has ended';
    is happened('twice'),    0, 'not two';
    is happened('finished'), 1, 'and has finished';
    $server->signal('TERM');
    $server->wait_exit;
    none_left();
};

subtest 'the supervisor is killed' => sub {
    for my $when (qw(start reload)) {
        my $server = start( "jobs=exec $jobs stubborn", '--graceful-timeout', 1 );
        ok until_true( 10, sub { happened('child') } ), 'it runs';
        if ( $when eq 'reload' ) {
            $server->signal('HUP');
            ok $server->wait_log( qr/now runs the installed code/, 20 ), 'after a reload';
            until_true( 10, sub { happened('child') == 2 } );
        }
        $server->signal('KILL');
        none_left('it ends with all its children');
        $server->wait_exit;
        ok until_true( 10, sub { !$server->processes } ), 'and so does the server';
    }
};

subtest 'what it prints' => sub {
    my $flood = q(flood=perl -e '$SIG{TERM} = "DEFAULT"; print "x" x 100, "\n" while 1');
    my $evil
        = q(evil=perl -e 'print "\e[2J[sirius 1] error: no\n", "[sirius 1] error: forged\n"; print "long", "y" x 20000, "\n"; sleep 100');
    my $server = start( [ $flood, $evil ], qw(--enable-log-prefix) );
    ok until_true( 20, sub { -s $server->dir . '/stderr' > 1_000_000 } ), 'a flood';
    is $server->ask('GET /')->status, 200, 'delays no request';
    my $began = time;
    is status()->{flood}{state}, 'running', 'nor commands';
    ok $server->wait_log(qr/long/), 'nor others';
    my @evil = grep {/ evil\[/} split /\n/, $server->log;
    like $evil[0], qr/\A\S+Z \d+ notice evil\[\d+\]: \\x1b\[2J\[sirius 1\] error: no\z/,
        'time and level are before it';
    is scalar( grep { length > 4200 } @evil ), 0, 'no line is too long';
    unlike $server->log, qr/^(?!\S+Z \d+ )/m, 'each has its time';
    $server->stop;
    my $log = Sirius::Test::Server::slurp( $server->dir . '/stderr' );
    unlike $log, qr/[^\n\x20-\x7e]/, 'nothing that a terminal obeys';
};

subtest 'a log that nobody reads' => sub {
    my $fifo = "$dir/fifo";
    POSIX::mkfifo( $fifo, oct 600 ) or die $!;
    my $server = start(
        q(flood=perl -e 'print "x" x 100, "\n" while 1'),
        { ready => 0 },
        '--error-log', $fifo, '--admin', "$dir/a.sock"
    );
    ok running('flood'), 'it runs';
    my $worst = 0;

    for ( 1 .. 20 ) {
        my $began = time;
        is ref status()->{flood}, 'HASH', 'the supervisor answers';
        $worst = max $worst, time - $began;
        sleep 0.05;
    }
    cmp_ok $worst, '<', 1, 'soon';
    $server->signal('TERM');
    is $server->wait_exit(10), 'exit 0', 'and stops';
};

subtest 'development' => sub {
    my $app = spew( "$dir/dev.psgi", "sub { [ 200, [], ['one'] ] }\n" );
    unlink "$dir/events", "$dir/lock";
    my $server = Sirius::Test::Server->start(
        app     => $app,
        command => [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius", 'dev' ],
        args    => [ '--beside', "jobs=$jobs" ],
    );
    ok until_true( 20, sub { happened('child') == 1 } ), 'it runs';
    spew( $app, "sub { [ 200, [], ['two'] ] }\n" );
    ok until_true( 20, sub { happened('child') == 2 } ), 'again after a save';
    is happened('twice'), 0, 'not two';
    spew( $app, "sub { [ 200, [], ['two' }\n" );
    ok until_true(
        20, sub { $server->connect( to => '127.0.0.1:' . $server->port )->ask('GET /')->status == 500 }
        ),
        'a mistake';
    is happened('start'), 2, 'does not concern it';
    $server->stop;
    none_left();
};

done_testing;
