# --workers 0 as root with --user: the edge reads keys that only root may read, and then has the user's rights
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp      ();
use IO::Socket::SSL qw(SSL_VERIFY_NONE);
use POSIX           ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

use constant { USER => 65532, GROUP => 65533 };    # no names needed

my $top = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $dir = "$top/letsencrypt";
chmod 0755, "$top" or die $!;
mkdir $_, 0700 or die "$_: $!" for $dir, "$dir/live", "$dir/live/alone.example";
my ( $chain, $private ) = Sirius::Test::Certificates->new->pem('alone.example');
my $key = "$dir/live/alone.example/privkey.pem";
spew( "$dir/live/alone.example/fullchain.pem", $chain );
spew( $key,                                    $private );
chmod 0600, $key or die $!;

sub slurp { return Sirius::Test::Server::slurp(shift) }

sub ask {
    my ( $server, $path ) = @_;
    my $socket = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE )
        or return 'no connection';
    print {$socket} "GET $path HTTP/1.0\r\n\r\n";
    return join( '', readline $socket ) =~ s/.*\r\n\r\n//sr;
}

my $APP = "sub { my (\$path) = \$_[0]{PATH_INFO} =~ /(.*)/;
    [ 200, [], [ open( my \$in, '<', \$path ) ? 'read' : \"no: \$!\" ] ] }\n";

subtest 'a key that only root may read' => sub {
    my $other
        = !$> && Sirius::Test::in_child( sub { POSIX::setgid(GROUP) && POSIX::setuid(USER) ? 'yes' : '' } );
    plan skip_all => 'for root, where there are other users' if !$other;
    for my $warm ( [], [ '--warm-up', '/etc/passwd' ] ) {
        my $app    = spew( "$top/app.psgi", $APP );
        my $server = Sirius::Test::Server->start(
            app  => $app,
            args => [
                '--listen', '127.0.0.1:0,tls', '--tls-dir', $dir, qw(--workers 0 --user),
                USER,       '--group',         GROUP,       @$warm
            ],
        );
        is ask( $server, '/etc/passwd' ), 'read', "served, @$warm";
        like ask( $server, $key ), qr/\Ano: Permission denied/, 'the application cannot read the key';
        my ($edge) = $server->beside;
        like slurp("/proc/$edge/status"), qr/^Uid:\s+@{[USER]}\s+@{[USER]}\s+@{[USER]}\s+@{[USER]}$/m,
            'the edge has the rights of the user';
        like slurp("/proc/$edge/status"), qr/^CapEff:\s+0+$/m, 'and none of root';
        if (@$warm) {
            $server->stop;
            next;
        }
        kill KILL => $edge;
        is $server->wait_exit(20), 'exit 1', 'when the edge is killed, the server ends';
        like $server->log,
            qr{error: --tls-dir \Q$dir\E: Permission denied.*sirius: edge \d+ exited; only the user that has started the server may read the private keys: start it again}s,
            'and says why';
        ok until_true( 5, sub { !$server->processes } ), 'no process is left';
    }
};

subtest 'a key that the user may read' => sub {
    my ( $cert, $open ) = ( spew( "$top/cert.pem", $chain ), spew( "$top/key.pem", $private ) );
    my $server = start_server(
        "sub { [ 200, [], ['hello'] ] }\n",
        '--listen', '127.0.0.1:0,tls',
        '--tls-cert' => $cert,
        '--tls-key'  => $open,
        qw(--workers 0)
    );
    is ask( $server, '/' ), 'hello', 'served';
    my ($edge) = $server->beside;
    kill KILL => $edge;
    ok until_true( 20, sub { ask( $server, '/' ) eq 'hello' } ), 'another edge reads it again';
    $server->stop;
};

# The edge waits until the application is ready; whatever ends that process ends it
subtest 'a warm-up that fails' => sub {
    my $server = Sirius::Test::Server->spawn(
        app  => "sub { [ 500, [], [] ] }\n",
        args => [
            "--listen", "127.0.0.1:0,tls",
            qw(--tls-self-signed --workers 0 --warm-up / --warm-up-required)
        ],
    );
    is $server->wait_exit(30), 'exit 1', 'the start fails';
    ok until_true( 5, sub { !$server->processes } ), 'no process is left'
        or diag join q( ), $server->processes;
};

done_testing;
