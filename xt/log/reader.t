use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Fcntl      qw(O_NONBLOCK O_RDONLY);
use File::Temp qw(tempdir);
use POSIX      qw(mkfifo);
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# STDERR is a pipe whose reader is gone: a pager that was quit, a logger that has crashed. That costs the
# lines, not the server: whatever it has to say, no SIGPIPE ends one of its processes.

my $dir = tempdir( CLEANUP => 1 );
mkfifo( "$dir/stderr", oct 600 ) or die "mkfifo: $!";
my $APP = <<'APP';
sub {
    my $path = $_[0]{PATH_INFO};
    if ( $path eq '/warn' ) { warn "said\n"; print STDERR "said\n"; $_[0]{'psgi.errors'}->print("said\n") }
    die "died\n" if $path eq '/die';
    return [ 200, [], [ $path eq '/generation' ? getppid : $$ ] ];
}
APP

sub server {
    my ( $name, @args ) = @_;
    sysopen my $reader, "$dir/stderr", O_RDONLY | O_NONBLOCK or die "open: $!";
    my $server = Sirius::Test::Server->spawn(
        app     => $APP,
        plain   => 1,
        command => [
            'sh',          '-c', 'to=$1; shift; exec "$@" 2>"$to"', 'sh',
            "$dir/stderr", $^X,  "$Sirius::Test::Server::ROOT/bin/sirius"
        ],
        args => [ '--listen', "unix:$dir/$name", @args ],
    );
    until_true( 20, sub { asks( $server, $name ) } ) or die "it does not start\n";
    close $reader;
    return $server;
}

# The body, or the status where it is not 200
sub asks {
    my ( $server, $name, $path ) = @_;
    my $answer = eval { $server->connect( to => "unix:$dir/$name" )->ask( 'GET ' . ( $path || '/' ) ) }
        or return '';
    return $answer->status == 200 ? $answer->body : $answer->status;
}

subtest 'with workers' => sub {
    my $server = server( 'workers', '--workers', 2 );
    like asks( $server, 'workers', '/warn' ), qr/\A\d+\z/, 'an application that warns';
    is asks( $server, 'workers', '/die' ), 500, 'and one that dies';
    my $before = asks( $server, 'workers', '/generation' );
    $server->signal('HUP');
    ok until_true( 20, sub { my $now = asks( $server, 'workers', '/generation' ); $now && $now ne $before } ),
        'a reload';
    my $worker = asks( $server, 'workers' );
    kill KILL => $worker;
    ok until_true(
        20,
        sub {
            $server->workers == 2 && !grep { $_ == $worker } $server->workers;
        }
        ),
        'a worker that is killed has a successor';
    my ($edge) = $server->edges;
    kill KILL => $edge;
    ok until_true( 20, sub { my @now = $server->edges; @now == 1 && $now[0] != $edge } ),
        'and so has an edge';
    ok until_true( 20, sub { asks( $server, 'workers' ) } ), 'it serves';
    kill PIPE => $server->pid, $server->generations, $server->workers, $server->edges;
    sleep 0.3;
    ok asks( $server, 'workers', '/warn' ), 'also after a PIPE of somebody else to each of its processes';
    $server->stop;
};

subtest '--workers 0' => sub {
    my $server = server( 'single', '--workers', 0 );
    is asks( $server, 'single', '/warn' ), $server->pid, 'an application that warns';
    is asks( $server, 'single', '/die' ),  500,          'and one that dies';
    is asks( $server, 'single' ), $server->pid, 'it serves';
    $server->stop;
};

done_testing;
