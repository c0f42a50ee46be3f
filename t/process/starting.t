use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# What comes while the server starts: signals, before anything can heed them, and applications that do not come to an end

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP = "sub { [ 200, [], ['ok'] ] };\n";
my ( $pid_file, $error_log ) = map {"$dir/$_"} qw(pid error.log);

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
    HUP  => qr/^.*generation 2 serves$/m,
    TTIN => qr/the number of workers is now 2, it was 1: TTIN/,
    TTOU => qr/1 worker serves/,
    USR1 => qr/1 worker serves/,
    USR2 => qr/1 worker serves/,
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
        ok $server->wait_log( qr/\bready \S+ s after the start/, 30 ), 'it starts' or diag $server->log;
        ok $server->wait_log( qr/HUP ignored: with --workers 0/, 5 ),  'HUP is heeded' if $name eq 'HUP';
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

subtest 'A child that the application forks while it is loaded may exit' => sub {
    my $server = Sirius::Test::Server->start(
        app  => "my \$pid = fork; exit 0 if !\$pid; waitpid \$pid, 0; die 'status' if \$?; $APP",
        args => [qw(--workers 1)]
    );
    is $server->ask('GET /')->body, 'ok', 'it serves';
    unlike $server->log, qr/called exit/, 'no line';
    $server->stop;
};

for my $limit ( 24, 30, 40 ) {
    subtest "$limit descriptors are too few" => sub {
        my $server = Sirius::Test::Server->spawn(
            app     => $APP,
            plain   => 1,
            command => [
                'sh', '-c', "ulimit -n $limit; exec \"\$@\"",
                'sh', $^X,  "$Sirius::Test::Server::ROOT/bin/sirius"
            ],
            args => [qw(--listen 127.0.0.1:0 --workers 2)],
        );
        is $server->wait_exit(30), 'exit 1', 'not the number of the error';
        like $server->log,   qr/^sirius: .*Too many open files: raise the limit of open files/m, 'what to do';
        unlike $server->log, qr/ line \d+/, 'no line of our code';
    };
}

subtest 'psgix.harakiri with --workers 0' => sub {
    my $server = Sirius::Test::Server->start(
        app  => "sub { \$_[0]{'psgix.harakiri.commit'} = 1; [ 200, [], ['ok'] ] };\n",
        args => [qw(--workers 0)]
    );
    is $server->ask('GET /')->body, 'ok', 'it serves' for 1 .. 3;
    $server->stop;
    is scalar( () = $server->log =~ /s after the start$/mg ), 1, 'it says once that it is ready';
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
    like $server->log, qr/\Asirius: --pid \Q$pid_file\E: File too large\n\z/, 'one line';
    ok !-e $pid_file, 'no file is left';
};

done_testing;
