use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp  ();
use JSON::PP    ();
use Time::HiRes qw(sleep time);
use Test::More;
use Sirius::Test;

# The process that owns the connections, and workers, end or stand still at any moment

my $APP = <<'APP';
use Time::HiRes qw(sleep);
sub {
    my $path = $_[0]{PATH_INFO};
    sleep $1 if $path =~ m{\A/sleep/([\d.]+)};
    [ 200, [ 'Content-Type' => 'text/plain' ], [$$] ];
}
APP

sub server {
    my $server = start_server( $APP, @_ );
    $server->{may_crash} = 1;
    $server->wait_log( qr/ready after /, 20 );    # all workers
    $server->board;                               # its reader is there when it is needed
    return $server;
}

sub descriptors { return scalar Sirius::Test::Server->descriptors(shift) }

subtest 'kill -9 of the edge, under load' => sub {
    my $server  = server(qw(--workers 3));
    my @workers = $server->workers;
    $server->ask('GET /') for 1 .. 6;
    my %before = map { $_ => descriptors($_) } $server->pid, @workers;
    my @took;
    for my $round ( 1 .. 12 ) {
        my @clients = map { $server->connect } 1 .. 6;
        $_->send( request( 'GET ' . ( $round % 2 ? '/sleep/0.2' : '/' ) ) ) for @clients;
        sleep 0.02 * ( $round % 4 );
        my ($edge) = $server->edges;
        my $killed = time;
        kill KILL => $edge;
        my $answer;
        until_true(
            20,
            sub {
                defined( $answer = eval { $server->ask('GET /')->status } );
            }
        );
        is $answer, 200, "round $round: served again";
        push @took, 1000 * ( time - $killed ) if $round % 2 == 0;    # else all workers are busy
        my ($next) = $server->edges;
        isnt $next, $edge, 'by another one';
    }
    note sprintf 'served again after %.0f ms, median of %d', ( sort { $a <=> $b } @took )[ @took / 2 ],
        scalar @took;
    is_deeply [ $server->workers ], \@workers, 'no worker has ended';
    my $said = () = $server->log =~ /error: edge \d+ was killed by signal 9 .*starting another$/mg;
    is $said, 12, 'the log says so each time';
    $server->ask('GET /') for 1 .. 30;
    my $same = sub {
        return !grep { descriptors($_) != $before{$_} } keys %before;
    };
    ok until_true( 10, $same ), 'no descriptor is left open'
        or diag explain [ \%before, { map { $_ => descriptors($_) } keys %before } ];
    $server->stop;
};

subtest 'a worker shuts down every socket between processes that it holds' => sub {
    my $server = start_server( <<'APP', qw(--workers 2 --err-respawn-interval 0.1) );
use Socket qw(SHUT_RDWR SOCK_SEQPACKET SOL_SOCKET SO_TYPE);
sub {
    if ( $_[0]{PATH_INFO} eq '/shut' ) {
        for my $fd ( 3 .. 200 ) {
            open my $socket, '+<&=', $fd or next;
            push @Shut::kept, $socket;
            my $type = getsockopt $socket, SOL_SOCKET, SO_TYPE or next;
            shutdown $socket, SHUT_RDWR if unpack( 'i', $type ) == SOCK_SEQPACKET;
        }
    }
    [ 200, [], [$$] ];
}
APP
    $server->{may_crash} = 1;
    $server->wait_log( qr/ready after /, 20 );    # all workers
    my ($one) = $server->ask('GET /shut')->body;
    my @before = $server->workers;
    kill KILL => $one, $server->edges;
    my ($other) = grep { $_ != $one } @before;
    my $served = sub {
        my $by = eval { $server->ask('GET /')->body } || 0;
        return $_[0] ? $by == $_[0] : $by && !grep { $_ == $by } @before;
    };
    ok until_true( 10, sub { $served->($other) } ), 'another edge finds the other worker';
    kill KILL => $other;
    ok until_true( 10, $served ), 'and another worker finds the edge';
    $server->stop;
};

subtest 'what the scoreboard tells of it' => sub {
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $server = server( qw(--workers 1), '--admin', "unix:$dir/admin" );
    my $admin  = Sirius::Test::Client->new("unix:$dir/admin");
    my $status
        = sub { JSON::PP->new->utf8->decode( $admin->ask( 'GET /status.json', 'Host: localhost' )->body ) };
    my @kept = map { $server->connect } 1 .. 3;
    is $_->ask('GET /')->status, 200, 'a request' for @kept;
    my @busy = map { $server->connect } 1, 2;
    $_->send( request('GET /sleep/2') ) for @busy;
    my ( $all, $edge );
    ok until_true( 20,
        sub { $all = $status->(); $edge = $all->{edges}[0]; $edge->{waiting} == 1 && $edge->{idle} == 3 } ),
        'one waits for the other'
        or diag explain $all->{edges};
    is_deeply [ @{$edge}{qw(number pid connections idle accepted)} ], [ 0, $server->edges, 5, 3, 5 ],
        'its PID and its connections';
    cmp_ok $edge->{started},                                          '<=', $all->{now}, 'since when';
    cmp_ok abs( $edge->{waiting_since} - $all->{workers}[0]{since} ), '<',  1, 'since when the first waits';
    cmp_ok $edge->{$_},                                               '>',  0, $_ for qw(bytes rss);
    is $_->response->status, 200, 'both are answered' for @busy;
    is $status->()->{edges}[0]{waiting_since}, 0, 'then none waits';
    kill KILL => $server->edges;
    ok until_true(
        20, sub { $all = $status->(); @{ $all->{edges} } && $all->{edges}[0]{pid} != $edge->{pid} }
        ),
        'killed: the next';
    is $all->{totals}{edge_exits}{killed}, 1, 'is counted';
    is $all->{totals}{exits}{killed},      0, 'not as a worker';
    is $all->{edges}[0]{accepted},         5, 'its successor counts on';
    $server->stop;
};

subtest 'kill -9 of a worker in the middle of a request' => sub {
    my $server = server(qw(--workers 3 --err-respawn-interval 0.1));
    my @others = map { $server->connect } 1 .. 10;
    $_->ask('GET /') for @others;
    my %status;
    for ( 1 .. 5 ) {
        my $client = $server->connect;
        my $victim = $client->ask('GET /')->body;
        kill STOP => grep { $_ != $victim } $server->workers;    # so that this one gets it
        $client->send( request('GET /sleep/20') );
        $server->wait_busy( 1, qr{/sleep/20} );
        kill KILL => $victim;
        my $answer = $client->response;
        kill CONT => $server->workers;
        $status{ $answer->status }++;
        ok !$answer->closes, 'the connection of the request goes on';
        is eval { $client->ask('GET /')->status }, 200, 'and serves the next';
        is_deeply [ grep { $_ != 200 } map { $_->ask('GET /')->status } @others ], [], 'and so do all others';
        until_true( 10, sub { $server->workers == 3 } );
    }
    is_deeply \%status, { 502 => 5 }, 'each has cost its request alone';
    $server->stop;
};

subtest 'a worker that stands still holds the one request that it has' => sub {
    my $server = server(qw(--workers 2 --request-timeout 2));
    my $held   = $server->connect;
    $held->send( request('GET /sleep/1.5') );
    $server->wait_busy( 1, qr{/sleep/1.5} );
    my @before  = $server->workers;
    my $free    = $server->ask('GET /')->body;
    my ($still) = grep { $_ != $free } @before;
    kill STOP => $still;
    my $start  = time;
    my @others = map { $server->connect } 1 .. 5;
    is_deeply [ map { $_->ask('GET /')->body } @others ], [ ($free) x 5 ], 'all others are served';
    is $held->response->status, 504, 'it gets 504';
    ok until_true(
        15,
        sub {
            !grep { $_ == $still } $server->workers;
        }
        ),
        'and its worker is replaced';
    like $server->log,
        qr/worker $still: GET \/sleep\/1\.5 ran for \d+\.\d s, the client got 504; request id [0-9a-f]{32}$/m,
        'the log says so';
    $server->stop;
};

subtest 'a call whose client has gone is watched on' => sub {
    my $server   = server(qw(--workers 1 --request-timeout 1));
    my ($worker) = $server->workers;
    my $client   = $server->connect;
    $client->send( request('GET /sleep/30') );
    $server->wait_busy( 1, qr{/sleep/30} );
    $client->abort;
    ok $server->wait_log( qr/worker $worker: GET \/sleep\/30 ran for \d+\.\d s, /, 15 ),
        'its worker is not lost for it';
    is $server->ask('GET /')->status, 200, 'the server serves';
    $server->stop;
};

subtest 'a reload without other settings: the edge does not notice' => sub {
    my $server = server(qw(--workers 2));
    my @kept   = map { $server->connect } 1 .. 5;
    $_->ask('GET /') for @kept;
    my @edges = $server->edges;
    for my $number ( 2 .. 3 ) {
        $server->signal('HUP');
        ok $server->wait_log( qr/generation $number is serving$/m, 30 ), "generation $number";
        is_deeply [ map { $_->ask('GET /')->status } @kept ], [ (200) x 5 ], 'all connections go on';
    }
    ok $server->wait_log( qr/now runs the installed code/, 20 ), 'the supervisor is a new program';
    is_deeply [ $server->edges ], \@edges, 'with the same edge';
    kill KILL => @edges;
    ok until_true(
        10,
        sub {
            ( eval { $server->ask('GET /')->status } || 0 ) == 200;
        }
        ),
        'which it replaces as well';
    $server->stop;
};

subtest 'requests that wait at the stop are answered, though a worker dies' => sub {
    my $server   = server(qw(--workers 1));
    my ($worker) = $server->workers;
    my @clients  = map { $server->connect } 1 .. 8;
    $_->send( request('GET /sleep/0.5') ) for @clients;
    $server->wait_waiting(7);
    $server->signal('TERM');
    $server->wait_log( qr/stopping: TERM/, 10 );
    kill KILL => $worker;
    my %status;
    $status{ $_->response( patience => 20 )->status }++ for @clients;
    is_deeply \%status, { 200 => 7, 502 => 1 }, 'all but the one that it had' or diag explain \%status;
    is $server->wait_exit, 'exit 0', 'then it ends';
    $server->stop;
};

for my $edges ( 1, 2 ) {
    subtest "kill -9 of the supervisor: all others end, --edges $edges" => sub {
        my $server = server( '--edges', $edges, qw(--workers 2 --graceful-timeout 5) );
        my @pids   = ( $server->edges, $server->generations, $server->workers );
        is @pids, 3 + $edges, 'edges, generation, workers';
        my @clients = map { $server->connect } 1 .. 2 * $edges;
        $_->send( request('GET /sleep/1') ) for @clients;
        $server->wait_busy(2);
        $server->wait_waiting( 2 * $edges - 2 );
        kill KILL => $server->pid;
        is_deeply [ map { $_->response->status } @clients ], [ (200) x @clients ],
            'what has come is answered';
        ok until_true(
            15,
            sub {
                !grep { kill 0 => $_ } @pids;
            }
            ),
            'they are gone';
        $server->kill_hard;
    };
}

# One signal of a name is lost while another one is pending: the edge must not take that of the group for the
# supervisor's
subtest 'a stop is heard although the edge has got the signal of the group as well' => sub {
    for my $workers ( 0, 1 ) {
        for my $signal (qw(TERM INT)) {
            my $server = server( '--workers', $workers, qw(--graceful-timeout 40) );
            is $server->ask('GET /')->status, 200, "--workers $workers, $signal: it serves";
            my ($edge) = grep { Sirius::Test::Server::comm($_) eq 'sirius: edge' } $server->processes;
            kill STOP => $edge;
            kill $signal => $edge, $server->pid;
            ok $server->wait_log( qr/stopping(?: at once)?: $signal/, 20 ), 'it stops';
            sleep 0.2;
            kill CONT => $edge;
            is $server->wait_exit(20), 'exit 0', 'in time';
            unlike $server->log, qr/did not stop in time/, 'and the edge by itself';
            $server->stop;
        }
    }
};

# The hooks and the application run after a worker has found the edge of its start, and before it looks for
# the next one
my $OTHER = '$) = "65534 65534"; $( = 65534; $< = $> = 65534;';
for my $how (
    [ 'in --after-fork', '', '--after-fork', "sub { $OTHER }" ],
    [ 'where workers load it', $OTHER, qw(-L Delayed) ]
    )
{
    my ( $name, $code, @args ) = @$how;
    subtest "an application that becomes another user $name" => sub {
        plan skip_all => 'needs root' if $>;
        my $server
            = start_server( "$code\n$APP", qw(--workers 2 --queue-timeout 5 --load-timeout 10), @args );
        $server->{may_crash} = 1;
        is $server->ask('GET /')->status, 200, 'served';
        my ($edge) = $server->edges;
        kill KILL => $edge;
        ok until_true(
            10,
            sub {
                eval { $server->ask('GET /')->status == 200 }
            }
            ),
            'and by the next edge'
            or diag $server->log;
        $server->stop;
    };
}

subtest 'an application that closes all descriptors' => sub {
    my $server = start_server( <<'APP', qw(--workers 2 --queue-timeout 10) );
use POSIX ();
sub {
    POSIX::close($_) for $_[0]{PATH_INFO} eq '/close' ? 3 .. 5000 : ();
    my $read = $_[0]{'psgi.input'}->read( my $body, 1_000_000 );
    select undef, undef, undef, 0.1 if $read;
    [ 200, [], ["$$ $read"] ];
}
APP
    $server->{may_crash} = 1;
    my ($pid) = $server->ask('GET /close')->body =~ /\A(\d+) 0\z/;
    ok $pid, 'it is answered';

    # Two at a time, and each takes a while: one of them is for that worker
    my $body = 'x' x 200_000;
    for my $pair ( 1 .. 5 ) {
        my @clients = map { $server->connect } 1, 2;
        $_->send( request( 'POST /', \$body ) ) for @clients;
        like $_->response->body, qr/\A\d+ 200000\z/, "large request of pair $pair" for @clients;
    }
    ok until_true( 10, sub { !kill 0, $pid } ), 'that worker ends';
    ok $server->wait_log(
        qr/error: worker failed: the application has closed descriptors that the server needs$/m),
        'and says why';
    ok until_true( 10, sub { $server->workers == 2 } ), 'there is another';
    $server->stop;
};

done_testing;
