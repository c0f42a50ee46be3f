use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Socket     qw(AF_UNIX MSG_DONTWAIT SOCK_DGRAM pack_sockaddr_un);
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# Edges that do not respond: who says so, and what becomes of them. xt/unit/pulse.t has the states in which
# they may be

my $APP = "sub { [ 200, [], ['x'] ] }\n";
my $dir = File::Temp->newdir( 'sirius-hanging-XXXXXX', TMPDIR => 1 );

my $number = 0;

sub server {
    my ( $args, %env ) = @_;
    my $admin  = "$dir/admin" . ++$number;
    my $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [ qw(--workers 2), '--admin', $admin, '--control', "$admin.control", @$args ],
        env  => \%env,
    );
    $server->{may_crash} = 1;
    $server->wait_log( qr/ready after /, 20 );
    return ( $server, sub { return Sirius::Test::Client->new("unix:$admin")->ask("GET $_[0]") } );
}

sub answers {
    my $server = shift;
    my $status = eval {
        my $client = $server->connect;
        $client->send( request('GET /') );
        $client->response( patience => 2 )->status;
    };
    return ( $status // '' ) eq '200';
}

subtest 'the only edge is stopped' => sub {
    socket my $systemd, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!";
    bind $systemd, pack_sockaddr_un("$dir/notify") or die "bind: $!";
    my $fed = sub {
        my $times = 0;
        while ( defined recv $systemd, my $text, 4096, MSG_DONTWAIT ) { $times += $text =~ /WATCHDOG=1/ }
        return $times;
    };
    my ( $server, $admin ) = server( [], NOTIFY_SOCKET => "$dir/notify", WATCHDOG_USEC => 1_000_000 );
    my ($edge) = $server->edges;
    is $admin->('/readyz')->status, 200, 'the server is ready';
    like $admin->('/metrics')->body, qr/^sirius_edges_wanted 1$/m, 'with the edge that it is to have';
    ok until_true( 5, $fed ), 'and feeds the watchdog of systemd';
    kill STOP => $edge;
    ok until_true( 20, sub { $admin->('/readyz')->status == 503 } ), 'it is not ready any more';
    is $admin->('/readyz')->body, "not ready: no edge responds: $edge\n", 'and says which edge';
    like $admin->('/metrics')->body, qr/^sirius_edges[{]state="hanging"[}] 1$/m, 'so do the metrics';
    like $server->log,
        qr/warn: edge $edge has not responded for 5 s: stopped \(state T\).*; after 10 s it is replaced$/m,
        'and the log, with the reason';
    my $root = $Sirius::Test::Server::ROOT;
    like scalar `$^X -Mblib=$root/blib $root/bin/sirius ctl --control $dir/admin$number.control status 2>&1`,
        qr/^\s*$edge\s+hanging\s/m, 'and sirius ctl status';
    $fed->();
    ok $server->wait_log( qr/error: edge $edge has not responded for 1\d s and is killed: stopped/, 20 ),
        'after ten seconds it is killed';
    cmp_ok $fed->(), '<=', 1, 'until then the watchdog was not fed, which it is twice a second';
    like $server->log, qr/error: no edge serves: the watchdog of systemd is not notified until one does$/m,
        'on purpose';
    ok until_true( 10, sub { answers($server) } ),                   'another one takes its place';
    ok until_true( 10, sub { $admin->('/readyz')->status == 200 } ), 'the server is ready';
    like $admin->('/metrics')->body, qr/^sirius_edges[{]state="hanging"[}] 0$/m, 'nothing hangs';
    ok until_true( 5, $fed ), 'and the watchdog is fed';
    $server->stop;
};

subtest 'one of two edges is stopped, and that of the admin port' => sub {
    my ( $server, $admin ) = server( [qw(--edges 2)] );
    until_true( 10, sub { $server->edges == 2 } );
    my ( $edge, $other ) = $server->edges;
    kill STOP => $edge;
    ok $server->wait_log( qr/warn: edge $edge has not responded for 5 s/, 20 ), 'it is named';
    is $admin->('/readyz')->status, 200, 'the server is ready all the same';
    answers($server);    # the kernel may wake the stopped one for a single connection
    is scalar( grep { answers($server) } 1 .. 5 ), 5, 'and serves';
    my $port = $server->admin_edge;
    kill STOP => $port;
    ok $server->wait_log( qr/edge $edge was killed by signal 9 \(KILL\)/, 20 ), 'it is replaced';
    ok $server->wait_log( qr/admin port: edge $port was killed by signal 9 \(KILL\)/, 30 ),
        'so is that of the admin port';
    ok until_true(
        10,
        sub {
            2 == grep { $_ != $edge } $server->edges;
        }
        ),
        'there are two edges';
    is_deeply [ grep { $_ == $other } $server->edges ], [$other], 'one of them is the old one';
    ok until_true(
        10,
        sub {
            ( eval { $admin->('/readyz')->status } || 0 ) == 200;
        }
        ),
        'the port answers';
    $server->stop;
};

subtest 'the whole server is stopped for a while' => sub {
    my ( $server, $admin ) = server( [] );
    my @edges = ( $server->edges, $server->admin_edge );
    my @all   = reverse $server->processes;
    kill STOP => @all;
    my $until = time + 12;
    sleep 0.1 while time < $until;
    kill CONT => reverse @all;
    ok answers($server), 'it serves';
    my $looks = sub {
        Sirius::Test::Server::slurp("/proc/$edges[0]/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m
            ? $1
            : 0;
    };
    my $before = $looks->();
    until_true( 20, sub { $looks->() > $before + 4 } );    # it was asked again and again
    unlike $server->log, qr/has not responded/, 'nothing has hung';
    is_deeply [ $server->edges, $server->admin_edge ], \@edges, 'and the edges are the old ones';
    $server->stop;
};

subtest 'an edge is stopped as it starts, and goes on later' => sub {
    my ( $server, $admin ) = server( [qw(--err-respawn-interval 0.1)] );
    my ($edge) = $server->edges;
    kill KILL => $edge;
    my $next;
    until_true(
        10,
        sub {
            ($next) = grep { $_ != $edge } $server->edges;
        }
    );
    kill STOP => $next;
    ok $server->wait_log( qr/warn: edge $next has not responded for \d+ s: stopped/, 30 ), 'it is named';
    is $admin->('/readyz')->status, 503, 'the server is not ready';
    kill CONT => $next;
    ok $server->wait_log( qr/edge $next responds again after \d+ s$/m, 20 ), 'it goes on';
    ok until_true( 10, sub { $admin->('/readyz')->status == 200 } ),         'the server is ready';
    ok answers($server),                                                     'and serves';
    $server->stop;
};

done_testing;
