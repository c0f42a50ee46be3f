use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
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
    for my $blocks ( 64, 1024, 4096 ) {
        my $server = server( 'spawn', "ulimit -f $blocks;", qw(--workers 2 --port 0) );
        is $server->wait_exit, 'exit 1', "$blocks KiB";
        like $server->log, qr/File too large/, 'the log says why';
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
