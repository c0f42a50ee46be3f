use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# What comes while the server starts: signals, before anything can heed them, and applications that do not
# come to an end

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP = "sub { [ 200, [], ['ok'] ] };\n";
my ( $pid_file, $error_log ) = map {"$dir/$_"} qw(pid error.log);

# A shell starts what is in the background with INT and QUIT ignored, which loading respects
$SIG{$_} = 'DEFAULT' for qw(INT QUIT TERM);    ## no critic (RequireLocalizedPunctuationVars)

sub content { return Sirius::Test::Server::slurp(shift) }

# Looks all the time: the signal is to come before the server has done anything else
sub pid_of {
    my $end = time + 30;
    while ( time < $end ) {
        return $1 if -s $pid_file && content($pid_file) =~ /\A(\d+)\n\z/;
        sleep 0.0005;
    }
    return 0;
}

# What each does when it is heeded
my %DOES = (
    HUP  => qr/^.*generation 2 is serving$/m,
    TTIN => qr/number of workers changed from 1 to 2: TTIN/,
    TTOU => qr/1 worker is serving/,
    USR1 => qr/1 worker is serving/,
    USR2 => qr/1 worker is serving/,
);

for my $name ( sort keys %DOES ) {
    subtest "$name as soon as the PID file is there" => sub {
        unlink $pid_file;
        my $server = Sirius::Test::Server->spawn( app => $APP, args => [ qw(--workers 1 --pid), $pid_file ] );
        is pid_of(), $server->pid, 'the PID file';
        $server->signal($name);
        ok $server->wait_log( $DOES{$name}, 30 ),      'it is heeded' or diag $server->log;
        ok until_true( 30, sub { $server->address } ), 'it is ready';
        is $server->ask('GET /')->body, 'ok', 'it serves';
        $server->stop;
    };

    subtest "$name as soon as the PID file is there, with --workers 0" => sub {
        unlink $pid_file;
        my $server = Sirius::Test::Server->spawn( app => $APP, args => [ qw(--workers 0 --pid), $pid_file ] );
        is pid_of(), $server->pid, 'the PID file';
        $server->signal($name);
        ok $server->wait_log( qr/\bready after \S+ s/,           30 ), 'it starts' or diag $server->log;
        ok $server->wait_log( qr/ignored HUP: with --workers 0/, 5 ),  'HUP is heeded' if $name eq 'HUP';
        is $server->ask('GET /')->body, 'ok', 'it serves';
        $server->stop;
    };
}

for my $name (qw(HUP USR1 TTOU)) {
    subtest "$name as soon as the PID file is there, with --daemonize" => sub {
        unlink $pid_file, $error_log;
        my $command = Sirius::Test::Server->spawn(
            app  => $APP,
            args => [ qw(--workers 1 -D --pid), $pid_file, '--error-log', $error_log ],
        );
        my $pid = pid_of() or return fail 'a PID file';
        kill $name => $pid;
        is $command->wait_exit(30), 'exit 0', 'the command says that it has started';
        ok until_true( 30, sub { content($error_log) =~ $DOES{$name} } ), 'it is heeded'
            or diag content($error_log);
        kill TERM => $pid;
        ok until_true( 30, sub { !-e $pid_file } ), 'it stops' or kill KILL => $pid;
    };
}

# What the command itself says: its exit status and STDERR
sub command {
    my ( $app, @args ) = @_;
    my $server = Sirius::Test::Server->spawn( app => $app, args => [@args] );
    my $how    = $server->wait_exit(30) || 'still running';
    return $how, $server->log;
}

my %WAYS = (
    'with workers'     => [qw(--workers 1)],
    'with --workers 0' => [qw(--workers 0)],
    'with --daemonize' => [ qw(--workers 1 -D --pid), $pid_file, '--error-log', $error_log ],
);
for my $way ( sort keys %WAYS ) {
    subtest "An application calls exit while it is loaded, $way" => sub {
        for my $code ( 0, 3 ) {
            unlink $pid_file, $error_log;
            my ( $how, $log ) = command( "exit $code; sub { }\n", @{ $WAYS{$way} } );
            is $how, 'exit ' . ( $code || 1 ), "exit $code does not look like a good start";
            like $log, qr/error: the application called exit \(status $code\) while it was loaded$/m,
                'the line';
            is $log =~ tr/\n//, 1, 'only that' or diag $log;
        }
    };
}

my $BLOCKED = <<'APP';
use POSIX ();
my $all = POSIX::SigSet->new;
$all->fillset;
POSIX::sigprocmask( POSIX::SIG_BLOCK(), $all );
$SIG{$_} = 'IGNORE' for grep { !/\A(?:KILL|STOP|NUM|RT)/ } keys %SIG;
APP
my %HANGS = (
    'in a system call'                     => [ 1, "sleep 60;\n" ],
    'in C code that no signal interrupts'  => [ 2, "use POSIX ();\nopen my \$in, '<', '$dir/fifo';\n" ],
    'with all signals blocked and ignored' => [ 6, "${BLOCKED}1 while 1;\n" ],
    'in a BEGIN block'                     => [ 1, "BEGIN { sleep 60 }\n" ],
    'in a file that the application loads' => [ 1, "do '$dir/hangs.pl';\n", "$dir/hangs.pl" ],
);
POSIX::mkfifo( "$dir/fifo", 0600 ) or die $!;
spew( "$dir/hangs.pl", "sleep 60;\n" );
for my $how ( sort keys %HANGS ) {
    my ( $line, $code, $file ) = @{ $HANGS{$how} };
    for my $way ( sort keys %WAYS ) {
        subtest "An application hangs while it is loaded, $how, $way" => sub {
            unlink $pid_file, $error_log;
            my ( $how, $log ) = command( "$code$APP", qw(--load-timeout 1), @{ $WAYS{$way} } );
            is $how, 'exit 1', 'the start fails';
            my $where = defined $file ? quotemeta $file : '\S+app\.psgi';
            my $at    = linux( 'the line', 'the stack of another process' ) ? ", at $where line $line" : '';
            like $log,
                qr/error: the application was not loaded within 1 s \(--load-timeout\)$at; the server cannot start$/m,
                'the log says where it hangs';
            is $log =~ tr/\n//, 1, 'only that' or diag $log;
        };
    }
}

subtest 'A module of -M hangs while it is loaded' => sub {
    linux_only('the stack of another process');
    spew( "$dir/Hangs.pm", "package Hangs;\nsleep 60;\n1;\n" );
    my ( $how, $log ) = command( $APP, qw(--workers 1 --load-timeout 1 -I), $dir, '-MHangs' );
    is $how, 'exit 1', 'the start fails';
    like $log,
        qr/error: the application was not loaded within 1 s \(--load-timeout\), at \S+Hangs.pm line 2;/,
        'the log says where it hangs';
};

subtest 'Loading takes its time, with --load-timeout 0' => sub {
    linux_only('the stack of another process');
    my $server = Sirius::Test::Server->spawn(
        app  => "open my \$in, '<', '$dir/fifo'; $APP",
        args => [qw(--workers 1 --load-timeout 0)]
    );
    ok $server->wait_log(
        qr/still loading the application after 10 s, at \S+app.psgi line 1; there is no limit/, 30
        ),
        'the log says so';
    open my $out, '>', "$dir/fifo" or die $!;
    close $out;
    ok until_true( 30, sub { $server->address } ), 'it starts';
    $server->stop;
    unlike $server->log, qr/error/, 'without an error';
};

# A server that opens the FIFO while it is loaded; the code is run before
sub loads {
    my ( $code, @args ) = @_;
    unlink "$dir/loads", $pid_file, $error_log;
    my $server = Sirius::Test::Server->spawn(
        app  => "$code; { open my \$out, '>', '$dir/loads' } 1 while !open my \$in, '<', '$dir/fifo'; $APP",
        args => \@args
    );
    until_true( 30, sub { -e "$dir/loads" } ) or diag $server->log;
    return $server;
}

for my $signal (qw(TERM INT QUIT)) {
    for my $way ( sort keys %WAYS ) {
        subtest "$signal while the application is loaded, $way" => sub {
            my $server = loads( '', @{ $WAYS{$way} } );
            $server->signal($signal);
            is $server->wait_exit(20), $way =~ /daemonize/ ? 'exit 1' : 'exit 0', 'it ends at once';
            is $server->log,
                "[sirius @{[ $server->pid ]}] stopped while loading the application: $signal from PID $$\n",
                'with a line';
        };
    }
}

subtest 'A handler that the application sets while it is loaded is called' => sub {
    my $server = loads( "\$SIG{TERM} = sub { die qq(not yet\n) }", qw(--workers 1) );
    $server->signal('TERM');
    is $server->wait_exit(20), 'exit 1', 'it ends as the application has it';
    like $server->log, qr/not yet$/m, 'and says what the application does';
};

for my $name ( sort keys %DOES ) {
    for my $workers ( 0, 1 ) {
        subtest "$name while the application is loaded, with --workers $workers" => sub {
            my $server = loads( '', '--workers', $workers );
            $server->signal($name);
            open my $out, '>', "$dir/fifo" or die $!;
            close $out;
            ok until_true( 30, sub { $server->address } ), 'it starts' or diag $server->log;
            my $does
                = $workers       ? $DOES{$name}
                : $name eq 'HUP' ? qr/ignored HUP: with --workers 0/
                :                  qr/ready after \S+ s$/m;
            ok until_true(
                30,
                sub {
                    my $ready = open my $again, '+<', "$dir/fifo";    # a reload loads, too
                    $server->log =~ $does;
                }
                ),
                'it is heeded'
                or diag $server->log;
            is $server->ask('GET /')->body, 'ok', 'it serves';
            $server->stop;
        };
    }
}

subtest 'A child that the application forks while it is loaded ends by a signal as any other' => sub {
    my $server = Sirius::Test::Server->start(
        app => "my \$pid = fork; if ( !\$pid ) { sleep 60; exit } kill TERM => \$pid; waitpid \$pid, 0;"
            . " die qq(status \$?) if \$? != 15; die 'USR1' if system(q(kill -USR1 \$\$)) != 10; $APP",
        args => [qw(--workers 1)]
    );
    is $server->ask('GET /')->body, 'ok', 'it serves';
    unlike $server->log, qr/stopped while/, 'no line';
    $server->stop;
};

subtest 'A child that the application forks while it is loaded may exit' => sub {
    my $server = Sirius::Test::Server->start(
        app  => "my \$pid = fork; exit 0 if !\$pid; waitpid \$pid, 0; die 'status' if \$?; $APP",
        args => [qw(--workers 1)]
    );
    is $server->ask('GET /')->body, 'ok', 'it serves';
    unlike $server->log, qr/called exit/, 'no line';
    $server->stop;
};

# How many a start needs depends on what it inherits: from few upwards, until it serves
subtest 'Too few descriptors' => sub {
    linux_only('an edge needs fewer descriptors than its server');
    my ( $limit, $refused, $served ) = ( 14, 0 );
    while ( !$served && $limit < 64 ) {
        my $server = Sirius::Test::Server->spawn(
            app     => $APP,
            plain   => 1,
            command => [
                'sh', '-c', "ulimit -n $limit; exec \"\$@\"",
                'sh', $^X,  "$Sirius::Test::Server::ROOT/bin/sirius"
            ],
            args => [qw(--listen 127.0.0.1:0 --workers 2)],
        );
        until_true( 30, sub { $server->wait_exit(0.05) || $server->listeners } );
        $served = !$server->exited;
        if ($served) {
            is $server->ask('GET /')->body, 'ok', "$limit: it serves";
            $server->stop;
            last;
        }

        # How many perl itself needs to load the program depends on what it has inherited
        if ( !$refused && $server->log =~ /^BEGIN failed--compilation aborted/m ) {
            $limit++;
            next;
        }
        $refused++;
        is $server->exited, 'exit 1', "$limit: not the number of the error";
        like $server->log,
            qr/^sirius: .*Too many open files(?: \([\w, ]+\))?: raise the limit of open files/m,
            'what to do';
        unlike $server->log, qr/ line \d+/, 'no line of our code';
        $limit++;
    }
    ok $served, 'there is a limit that is enough';
    cmp_ok $refused, '>=', 3, 'and several that are not';
};

subtest 'psgix.harakiri with --workers 0' => sub {
    my $server = Sirius::Test::Server->start(
        app  => "sub { \$_[0]{'psgix.harakiri.commit'} = 1; [ 200, [], ['ok'] ] };\n",
        args => [qw(--workers 0)]
    );
    is $server->ask('GET /')->body, 'ok', 'it serves' for 1 .. 3;
    $server->stop;
    is scalar( () = $server->log =~ /ready after \S+ s$/mg ), 1, 'it says once that it is ready';
};

# No room: /dev/full is no PID file, but a limit of the file size fails in the same way
subtest 'The PID cannot be written' => sub {
    unlink $pid_file;
    my $server = Sirius::Test::Server->spawn(
        app     => $APP,
        plain   => 1,
        command => [
            'sh', '-c', '( trap "" XFSZ; ulimit -f 0; exec "$@" 2>&1 ) | cat >&2',
            'sh', $^X,  "$Sirius::Test::Server::ROOT/bin/sirius"
        ],
        args => [ qw(--listen 127.0.0.1:0 --workers 1 --pid), $pid_file ],
    );
    $server->wait_exit(30);
    like $server->log, qr/\Asirius: the limit of file sizes is 0 [^\n]+\n\z/, 'one line';
    ok !-e $pid_file, 'no file is left';
};

done_testing;
