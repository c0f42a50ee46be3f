use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Traffic;

# kill -9 and kill -STOP of each process: what was answered is whole, service returns, and nobody is left.
# Workers that are killed under load have xt/fair/kill.t

# 502: the worker was killed, and the connection is an edge's
my %KNOWN = map { $_ => 1 } 'whole', 'eof', 'reset', 'cut', 'connect to', '502';

# What clients saw; all of it is whole, told by the server or visibly cut
sub is_known {
    my ( $result, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @strange = grep { !$KNOWN{s/ to .*/ to/r} } keys %$result;
    ok $result->{whole}, sprintf '%d answers were whole', $result->{whole} || 0;
    return is_deeply \@strange, [], $name;
}

sub state_of {
    return Sirius::Test::Server::slurp("/proc/$_[0]/stat") =~ /\A\d+ \(.*\) (\S)/s ? $1 : '';
}

sub halt {
    my @pid = @_;
    kill STOP => @pid;
    return ok until_true(
        5,
        sub {
            @pid == grep { state_of($_) eq 'T' } @pid;
        }
        ),
        'stopped';
}

# A server whose workers are both there: it says that it listens when the first one is
sub two_workers {
    my $server = start_server( $APP, qw(--workers 2), @_ );
    until_true( 20, sub { $server->ask('GET /serving')->body == 2 } ) or die 'no two workers';
    return $server;
}

subtest 'STOP of one of two workers' => sub {
    my $server = two_workers();
    is_whole( $server, 'before' );
    my ( $still, $other ) = $server->workers;
    halt($still);
    my $load = traffic( $server, clients => 2 );
    is $server->ask('GET /pid')->body, $other, "request $_: the other one serves" for 1 .. 10;
    is_whole( $server, 'all of it' );
    kill CONT => $still;
    is_deeply [ keys %{ $load->stop } ], ['whole'],          'nothing was lost';
    is_deeply [ $server->workers ],      [ $still, $other ], 'the same two';
    $server->stop;
};

# One worker is busy and the other one stopped: the edge looks after new connections, and a complete request
# waits
for my $when (qw(before during)) {
    subtest "STOP of the idle one of two workers, $when a long request of the other" => sub {
        my $server = start_server( <<'APP', qw(--workers 2 --header-timeout 0.5) );
sub { sleep 30 if $_[0]{PATH_INFO} eq '/long'; print STDERR "asked $$\n"; [ 200, [], [$$] ] }
APP
        my ( $idle, $busy, $long );
        if ( $when eq 'before' ) {
            ( $idle, $busy ) = $server->workers;
            halt($idle);
            $long = $server->connect;
            $long->send( request('GET /long') );
        } else {
            $long = $server->connect;
            $long->send( request('GET /long') );
            $server->wait_busy( 1, qr{/long} );
            $idle = $server->ask('GET /')->body;
            halt($idle);
        }
        my $half = $server->connect;
        $half->send("GET / HTTP/1.1\r\nHo");
        is $half->response( patience => 10 )->status, 408, 'half of a head: somebody looks at the time';
        my $bad = $server->connect;
        $bad->send("GET  / HTTP/1.1\r\n\r\n");
        is $bad->response( patience => 10 )->status, 400, 'and at what is no request';
        my $whole = $server->connect;
        $whole->send( request('GET /') );
        $server->wait_waiting(1);
        kill CONT => $idle;
        is $whole->response( patience => 10 )->body, $idle, 'a request is answered when the other goes on';
        $server->{may_crash} = 1;
        $server->stop('INT');
    };
}

subtest 'STOP of all workers, then CONT' => sub {
    my $server  = two_workers();
    my @workers = $server->workers;
    my $kept    = $server->connect;
    is $kept->ask('GET /bytes/1')->status, 200, 'a connection';
    halt(@workers);
    my @client = map { $server->connect } 1 .. 20;
    $_->send( request('GET /bytes/2000') ) for $kept, @client;
    $server->wait_waiting(21);
    is join( '', map { $_->some( 1, 0 ) } $kept, @client ), '', 'who comes waits';
    kill CONT => @workers;
    is_deeply [ map { $_->response->status } $kept, @client ], [ (200) x 21 ], 'and is answered';
    $server->stop;
};

subtest 'STOP of the supervisor and of the generation' => sub {
    my $server = two_workers();
    my @halted = ( $server->pid, $server->generations );
    my $load   = traffic( $server, clients => 2 );
    halt(@halted);
    is_whole( $server, 'workers serve alone' );
    my ($worker) = $server->workers;
    kill KILL => $worker;
    sleep 0.1;
    is_whole( $server, 'also when one of them is killed' );
    kill CONT => @halted;
    ok until_true(
        20,
        sub {
            2 == grep { $_ != $worker } $server->workers;
        }
        ),
        'it is replaced when they go on';
    is_known( $load->stop, 'no answer is wrong' );
    $server->{may_crash} = 1;
    $server->stop;
};

subtest 'kill -9 of the generation under load' => sub {
    my $server       = two_workers();
    my $load         = traffic( $server, clients => 3 );
    my ($generation) = $server->generations;
    my @workers      = $server->workers;
    kill KILL => $generation;
    ok until_true(
        30,
        sub {
            my @now = $server->generations;
            my @two = $server->workers;
            @two == 2 && !grep( { $_ == $generation } @now ) && !grep { kill 0, $_ } @workers;
        }
        ),
        'there is another, with workers of its own';
    is_deeply [ keys %{ $load->stop } ], ['whole'], 'nothing was lost: its workers served on';
    is_whole( $server, 'service is there' );
    $server->{may_crash} = 1;
    $server->stop;
};

# The same port, and the same file, at once
subtest 'kill -9 of the supervisor under load' => sub {
    my $dir    = File::Temp->newdir;
    my $first  = two_workers( '--pid', "$dir/pid" );
    my $load   = traffic( $first, clients => 3 );
    my @others = grep { $_ != $first->pid } $first->processes;
    sleep 0.3;
    kill KILL => $first->pid;
    is $first->wait_exit, 'signal 9', 'killed';
    ok until_true(
        20,
        sub {
            !grep { kill 0, $_ } @others;
        }
        ),
        'no orphan is left'
        or diag "@others";
    is_known( $load->stop, 'no answer is wrong' );
    my $second = Sirius::Test::Server->start(
        app   => $APP,
        plain => 1,
        args  => [ qw(--workers 2 --host 127.0.0.1 --port), $first->port, '--pid', "$dir/pid" ],
    );
    is Sirius::Test::Server::slurp("$dir/pid"), $second->pid . "\n",
        'the next one starts: same port, same file';
    is_whole( $second, 'and serves' );
    $second->stop;
    ok !-e "$dir/pid", 'the file goes with it';
};

subtest 'kill -9 of the supervisor while a worker is stopped' => sub {
    my $server  = two_workers();
    my @others  = grep { $_ != $server->pid } $server->processes;
    my ($still) = $server->workers;
    halt($still);
    kill KILL => $server->pid;
    is $server->wait_exit, 'signal 9', 'killed';
    ok until_true(
        20,
        sub {
            !grep { $_ != $still && kill 0, $_ } @others;
        }
        ),
        'the others are gone'
        or diag "@others";
    kill CONT => $still;
    ok until_true( 20, sub { !kill 0, $still } ), 'and so is that one when it goes on';
};

# Nobody is left who starts an edge, or lets the workers go
for my $more ( [], ['generation'] ) {
    my $graceful = @$more ? 30 : 600;
    subtest join( ', ', 'kill -9 of supervisor', @$more, 'edge' ) => sub {
        my $server  = two_workers( '--graceful-timeout', $graceful );
        my @others  = grep { $_ != $server->pid } $server->processes;
        my @killed  = ( $server->pid, @$more ? $server->generations : (), $server->edges );
        my @workers = $server->workers;
        my $busy    = $server->connect;
        $server->board;    # its reader is there before the request
        $busy->send( request('GET /sleep/1') );
        $server->wait_busy( 1, qr{/sleep/1} );
        kill KILL => @killed;
        is $server->wait_exit, 'signal 9', 'killed';
        ok until_true(
            25,
            sub {
                !grep { kill 0, $_ } @others;
            }
            ),
            'the others end by themselves'
            or diag join ' ', grep { kill 0, $_ } @others;
        unlike $server->log, qr/did not finish in time/, 'and need not be killed';
    };
}

subtest 'kill -9 of edge and generation' => sub {
    my $server = two_workers();
    my @killed = ( $server->edges, $server->generations );
    my @old    = $server->workers;
    kill KILL => @killed;
    ok until_true(
        30,
        sub {
            my @two = $server->workers;
            @two == 2 && !grep { kill 0, $_ } @old;
        }
        ),
        'another generation, and its workers';
    is_whole( $server, 'service is back' );
    $server->{may_crash} = 1;
    $server->stop;
};

# Its time limits run on; but what has come meanwhile is there to be read
subtest 'STOP of the edge for longer than its time limits' => sub {
    my $server = two_workers(qw(--header-timeout 1 --body-timeout 1 --body-rate 100));
    my ($edge) = $server->edges;
    my ( $head, $body, $silent ) = map { $server->connect } 1 .. 3;
    $head->send("GET /pid HTTP/1.1\r\n");
    $body->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300\r\n\r\n");
    $silent->send("GET /pid HTTP/1.1\r\n");
    is $server->ask('GET /pid')->status, 200, 'the edge has read what came before';
    halt($edge);
    $head->send("Host: a\r\n\r\n");
    $body->send( 'x' x 300 );
    sleep 2.5;
    kill CONT => $edge;
    is $head->response( patience => 10 )->status, 200, 'the rest of a head came meanwhile';
    is $body->response( patience => 10 )->status, 200, 'a body';
    is $silent->response( patience => 10 )->status, 408, 'nothing: the time is over, a little later';
    $server->stop;
};

# Whatever ends it would end the next one, so they are not started one after the other without a pause.
# (SIGSEGV would count as a finding of dev/sanitize.)
subtest 'an edge that ends as soon as it is ready' => sub {
    my $server = two_workers();
    my %ended;
    my $until = time + 2.5;
    while ( time < $until ) {
        kill ABRT => $_ for grep { !$ended{$_}++ } $server->edges;
        sleep 0.01;
    }
    cmp_ok scalar keys %ended, '<=', 6, 'a few in some seconds';
    like $server->log, qr/edge \d+ was killed by signal 6 .*; next attempt in 1 s$/m, 'the log says when';
    ok until_true(
        20,
        sub {
            eval { $server->ask('GET /pid')->status == 200 }
        }
        ),
        'and service comes back';
    $server->{may_crash} = 1;
    $server->stop;
};

done_testing;
