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

done_testing;
