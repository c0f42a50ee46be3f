use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp  ();
use Time::HiRes qw(sleep time);
use Test::More;
use Sirius::Test;

# The admin port with edges: its connections belong to an edge of its own, whose one worker is the admin
# process. Each of the two can end or stand still without the other, and neither has to do with the edge of
# the server

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP = <<'APP';
use Time::HiRes qw(sleep);
sub {
    my $path = $_[0]{PATH_INFO};
    sleep $1 if $path =~ m{\A/sleep/([\d.]+)};
    [ 200, [], [$$] ];
}
APP

sub server {
    my $server = start_server( $APP, qw(--admin 127.0.0.1:0 --workers 1), @_ );
    $server->{may_crash} = 1;
    until_true( 20, sub { process($server) && $server->admin_edge } );
    return $server;
}

sub address { return shift->log =~ m{admin on http://(\S+)/$}m ? $1 : undef }

sub admin { my $server = shift; return $server->connect( to => address($server), @_ ) }

# The one that answers
sub process {
    my $server = shift;
    return ( grep { Sirius::Test::Server::comm($_) eq 'sirius: admin' } $server->generations )[0];
}

sub alive {
    my $pid = shift;
    return grep { $_->{pid} == $pid && $_->{state} ne 'Z' } Sirius::Test::Server->all_processes;
}

sub answers {
    my $server = shift;
    return ( eval { admin($server)->ask( 'GET /healthz', 'Host: localhost' )->status } || '' ) eq '200';
}

subtest 'kill -9 of its edge' => sub {
    my $server  = server();
    my ($main)  = $server->edges;
    my $process = process($server);
    for my $round ( 1 .. 3 ) {
        my $edge = $server->admin_edge;
        ok answers($server), "round $round: it answers";
        kill KILL => $edge;
        ok until_true( 20, sub { answers($server) } ), 'and again when its edge was killed';
        isnt $server->admin_edge, $edge, 'by another one';
        ok $server->wait_log(
            qr/error: admin port: edge $edge was killed by signal 9 \(KILL\); its connections were closed; starting another$/m,
            5
            ),
            'the log says so'
            or diag $server->log;
    }
    is process($server), $process, 'the process that answers is the same';
    is( ( $server->edges )[0], $main, 'and so is the edge of the server' );
    is $server->ask('GET /')->status, 200, 'which serves';
    $server->stop;
};

subtest 'kill -9 of the process that answers: no connection closes' => sub {
    my $server  = server();
    my $edge    = $server->admin_edge;
    my $client  = admin($server);
    my $process = process($server);
    is $client->ask( 'GET /healthz', 'Host: localhost' )->status, 200, 'it answers';
    kill KILL => $process;
    is $client->ask( 'GET /readyz', 'Host: localhost' )->status, 200,
        'the next one does, on the same connection';
    isnt process($server),  $process, 'it is another';
    is $server->admin_edge, $edge,    'of the same edge';
    $server->stop;
};

subtest 'the edge of the server is killed, stands still, is full' => sub {
    my $server = server(qw(--max-queue 2));
    my ($edge) = $server->edges;
    my $worker = ( $server->workers )[0];
    kill STOP => $edge;
    ok answers($server), 'it stands still: a probe is answered';
    my $began = time;
    ok answers($server), 'again' for 1 .. 5;
    kill CONT => $edge;
    my @clients = map { $server->connect } 1 .. 20;
    $_->send( request('GET /sleep/1') ) for @clients;
    ok answers($server), 'all workers are busy and the queue is full: a probe is answered';
    kill KILL => $edge;
    ok answers($server), 'it is killed: a probe is answered';
    ok until_true(
        20,
        sub {
            ( eval { $server->ask('GET /')->status } || 0 ) == 200;
        }
        ),
        'the server goes on';
    $server->stop;
};

subtest 'the process that answers stands still' => sub {
    my $server  = server();
    my $process = process($server);
    kill STOP => $process;
    my $client = admin($server);
    $client->send( request( 'GET /healthz', 'Host: localhost' ) );
    is $server->ask('GET /')->status, 200, 'the server serves';
    is $client->some( 1, 0.3 ),       '',  'the probe waits';
    kill CONT => $process;
    is $client->response->status, 200, 'and is answered';
    kill STOP => $process;
    $server->stop;    # it is killed
};

subtest 'signals of a whole group do not end it' => sub {
    my $server = server();
    my @pids   = ( $server->admin_edge, process($server) );
    for my $name (qw(HUP INT QUIT TERM USR1 USR2 TTIN TTOU PIPE ALRM)) {
        kill $name => $pids[0];
        kill $name => $pids[1] if $name ne 'ALRM';    # it has a timer
    }
    ok answers($server), 'it answers';
    is_deeply [ $server->admin_edge, process($server) ], \@pids, 'by the same processes';
    $server->stop;
};

subtest 'a reload replaces both; what was begun is answered' => sub {
    my $server = server();
    my @before = ( $server->admin_edge, process($server) );
    my $part   = admin($server);
    $part->send("GET /healthz HTTP/1.1\r\nHo");
    $server->signal('HUP');
    my $missed = 0;
    ok until_true(
        40,
        sub {
            $missed++ if !answers($server);
            my @now = ( $server->admin_edge, process($server) );
            return @now == 2 && $now[0] && $now[1] && $now[0] != $before[0] && $now[1] != $before[1];
        }
        ),
        'the supervisor is a new program and has started new ones';
    is $missed, 0, 'it answered all the time';
    ok until_true(
        20,
        sub {
            !grep { alive($_) } @before;
        }
        ),
        'the old ones end';
    ok answers($server), 'it answers';
    kill KILL => $server->admin_edge;
    ok until_true( 20, sub { answers($server) } ), 'an edge of the new supervisor is replaced as well';
    $server->stop;
};

subtest 'the supervisor is killed, and the edge with it' => sub {
    my $server = server();
    my @pids   = ( $server->admin_edge, process($server), $server->edges );
    ok answers($server), 'before';
    kill STOP => $server->pid;    # so that it starts no other
    kill KILL => $pids[0];
    kill KILL => $server->pid;
    ok until_true( 40, sub { !$server->processes } ), 'all of it ends'
        or diag join ' ', map { Sirius::Test::Server::comm($_) } $server->processes;
    $server->kill_hard;
};

subtest 'stop: it answers 503 as long as there are workers, and leaves nothing behind' => sub {
    my $server = server( '--admin', "$dir/socket" );
    my $client = $server->connect;
    $server->board;               # its reader is there before the request
    $client->send( request('GET /sleep/2') );
    my @open = map { admin($server) } 1 .. 5;
    $_->ask( 'GET /healthz', 'Host: localhost' ) for @open;
    $server->wait_busy( 1, qr{/sleep/2} );
    my @pids = ( $server->admin_edge, process($server) );
    $server->signal('TERM');
    my $ready = sub { $open[0]->ask( 'GET /readyz', 'Host: localhost' )->status };
    ok until_true( 10, sub { $ready->() == 503 } ), 'not ready, on a connection that was open';
    is $client->response->status, 200, 'the request is answered';
    $server->stop;
    ok !( grep { alive($_) } @pids ), 'both are gone';
    ok !-e "$dir/socket",             'and the file of the socket';
};

done_testing;
