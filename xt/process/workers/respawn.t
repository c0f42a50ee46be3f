use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Sirius::Test;

# A worker that ends is replaced, whatever ended it

my $server = start_server( <<'APP', qw(--workers 2 --err-respawn-interval 0.1) );
sub {
    my $path = $_[0]{PATH_INFO};
    exit 0           if $path eq '/exit';
    kill KILL => $$  if $path eq '/kill';
    kill ABRT => $$  if $path eq '/abort';
    [ 200, [], [$$] ];
}
APP
$server->{may_crash} = 1;

sub workers {
    return $server->workers;
}

subtest 'kill -9 from outside' => sub {
    for ( 1 .. 3 ) {
        my ($victim) = workers();
        kill KILL => $victim;
        ok until_true(
            5,
            sub {
                !grep { $_ == $victim } workers();
            }
            ),
            "worker $victim is gone";
        ok until_true( 10, sub { workers() == 2 } ), 'another one has come';
        is $server->ask('GET /')->status, 200, 'the server serves';
    }
    ok $server->wait_log(qr/signal 9/), 'the log says which signal';
};

subtest 'all of them at once' => sub {
    kill KILL => workers();
    my $client = $server->connect;
    $client->send( request('GET /') );
    is $client->response->status, 200, 'who connects meanwhile is served by the next';
};

subtest 'by the application' => sub {
    for my $path (qw(/exit /kill /abort)) {
        my $status = $server->ask("GET $path")->status;
        like $status, qr/\A(?:50[02]|eof|reset)\z/, "$path: the client is not left waiting";
        is $server->ask('GET /')->status, 200, 'the next is served';
    }
};

subtest '--max-reqs-per-child' => sub {
    my $limited = start_server( "sub { [ 200, [], [\$\$] ] }\n", qw(--workers 1 --max-reqs-per-child 10) );
    my ( %served, %status );
    my $client = $limited->connect;
    for ( 1 .. 100 ) {
        my $answer = $client->ask('GET /');
        $status{ $answer->status }++;
        $served{ $answer->body }++;
        $client = $limited->connect if $answer->closes;
    }
    is_deeply \%status, { 200 => 100 }, 'a hundred requests over kept connections, no fault';
    is scalar( grep { $_ > 10 } values %served ), 0, 'none served more than ten' or diag explain \%served;
    cmp_ok scalar keys %served, '>=', 10, 'by ten workers at least';
    unlike $limited->log, qr/signal/, 'and none died';
    $limited->stop;
};

subtest 'descriptors and zombies' => sub {
    is
        scalar( grep { $_->{group} == $server->pid && $_->{state} eq 'Z' }
            Sirius::Test::Server::all_processes() ), 0, 'no zombie';
    my $before = () = Sirius::Test::Server->descriptors( $server->pid );
    for ( 1 .. 5 ) {
        my ($victim) = workers();
        kill KILL => $victim;
        until_true(
            5,
            sub {
                !grep { $_ == $victim } workers();
            }
        );
        until_true( 10, sub { workers() == 2 } );
    }
    my $after = () = Sirius::Test::Server->descriptors( $server->pid );
    cmp_ok $after, '<=', $before, 'the supervisor keeps no descriptor of the dead';
};

$server->stop;

# A URL that calls exit must not take the workers away for a while; one that is in a loop of exits waits
my $EXITS = <<'APP';
sub {
    my $path = $_[0]{PATH_INFO};
    exit 3 if $path eq '/exit';
    exit 0 if $path eq '/end';
    [ 200, [], ["$$"] ];
}
APP

for my $path (qw(/exit /end)) {
    subtest "$path, as often as there are workers" => sub {
        my $server = start_server( $EXITS, qw(--workers 3 --err-respawn-interval 20) );
        ok until_true( 10, sub { $server->workers == 3 } ), 'three workers';
        is $server->ask("GET $path")->status, 500, "its client gets 500 ($_)" for 1 .. 3;
        my %ended;    # a successor may have been asked as well
        ok until_true(
            10,
            sub {
                %ended = map { $_ => 1 } $server->log =~ /worker (\d+) exited/g;
                3 == keys %ended && $server->workers == 3 && !grep { $ended{$_} } $server->workers;
            }
            ),
            'each has a successor, long before the interval is over'
            or diag $server->log;
        is $server->ask('GET /')->status, 200, 'which serve';
        unlike $server->log, qr/next attempt in/, 'none was delayed';
        $server->stop;
    };
}

subtest 'a loop' => sub {
    my $server = start_server( $EXITS, qw(--workers 1 --err-respawn-interval 120) );
    my $broken = sub { $server->log =~ /next attempt in 120 s/ };
    my @clients;    # a request whose client is gone before a worker takes it is not run
    for ( 1 .. 10 ) {
        last if $broken->();
        push @clients, my $client = $server->connect;
        $client->send( request('GET /exit') );
        my $said = '';
        until_true( 60, sub { length( $said .= $client->some( 1, 0.05 ) ) || $broken->() } );
    }
    ok until_true( 60, $broken ), 'is broken after a few' or diag $server->log;
    $server->stop;
};

done_testing;
