use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Limits of the operator's shell, and what else is inherited from it

my $APP = <<'APP';
sub {
    my $read = $_[0]{'psgi.input'}->read( my $body, 1_000_000 );
    [ 200, [], [$read] ];
}
APP
my $body = 'x' x 100_000;

sub server {
    my ( $how, $start, @args ) = @_;
    my $root = $Sirius::Test::Server::ROOT;
    return Sirius::Test::Server->$how(
        app     => $APP,
        args    => \@args,
        command =>
            [ 'bash', '-c', "$start exec \"\$@\"", 'bash', $^X, "$root/bin/sirius", '-E', 'deployment' ]
    );
}

# Of a signal that the kernel can't queue it does not keep who has sent it
subtest 'no room for signals that are pending' => sub {
    my $server = server( 'start', 'ulimit -i 0;', qw(--workers 2 --graceful-timeout 60) );
    is $server->ask( 'POST /', \$body )->body, 100_000, 'served';
    $server->signal('TERM');
    is $server->wait_exit(10), 'exit 0', 'and stopped at once';
};

subtest 'a limit of file sizes below that of the memory that is shared' => sub {
    my %size = ( 1 => '1k', 64 => '64k', 1024 => '1m', 4096 => '4m' );
    for my $workers ( 2, 0 ) {
        for my $blocks ( sort { $a <=> $b } keys %size ) {
            my $server = server( 'spawn', "ulimit -f $blocks;", '--workers', $workers, qw(--port 0) );
            is $server->wait_exit, 'exit 1', "--workers $workers, $blocks KiB";
            like $server->log,
                qr/^sirius: the limit of file sizes is $size{$blocks} \(ulimit -f, LimitFSIZE=\), and .* needs \d+[km]: raise it$/m,
                'the log says why';
        }

        # A file takes no line then, but a pipe does
        my $silent = server( 'spawn', 'ulimit -f 0;', '--workers', $workers, qw(--port 0) );
        like $silent->wait_exit, qr{\Aexit [1-9]}, 'no byte in a file: no signal ends it';
        my $piped
            = server( 'spawn', 'exec 2> >(cat >&2); ulimit -f 0;', '--workers', $workers, qw(--port 0) );
        is $piped->wait_exit, 'exit 1', 'likewise with a log in a pipe';
        ok $piped->wait_log(qr/^sirius: the limit of file sizes is 0 /m), 'which says why';
        my $served = server( 'start', 'ulimit -f 20000;', '--workers', $workers );
        is $served->ask('GET /')->status, 200, 'with enough it serves';
        $served->stop;
    }
};

subtest 'all signals are blocked' => sub {
    for my $workers ( 0, 2 ) {
        my $server = Sirius::Test::Server->start(
            app     => $APP,
            args    => [ '--workers', $workers ],
            command => [
                $^X, '-MPOSIX=:signal_h', '-e',
                'sigprocmask( SIG_SETMASK, POSIX::SigSet->new( 1 .. 31 ) ); exec @ARGV',
                $^X,  "$Sirius::Test::Server::ROOT/bin/sirius",
                '-E', 'deployment'
            ]
        );
        is $server->ask( 'POST /', \$body )->body, 100_000, "--workers $workers: served";
        $server->signal('TERM');
        is $server->wait_exit(10), 'exit 0', 'and stopped';
    }
};

done_testing;
