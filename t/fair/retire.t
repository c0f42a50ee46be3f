use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Fair;

# A worker that ends by its count of requests hands its connections over: no client notices

for my $workers ( 2, 3 ) {
    subtest "$workers workers, 20 requests each" => sub {
        my ($server) = fair_server( $workers, qw(--max-reqs-per-child 20) );
        my @client   = map { $server->connect } 1 .. 20;
        my $got      = hammer( $server, clients => \@client, seconds => 60, requests => 200 );
        is_deeply $got->{failures}, [], 'no failure and no close';
        is $got->{answers}, 4000, '4,000 answers';
        is $got->{closes},  0,    'none said close';
        cmp_ok scalar keys %{ $got->{by_worker} }, '>=', 100,
            "by @{[ scalar keys %{ $got->{by_worker} } ]} workers";
        my ($most) = sort { $b <=> $a } values %{ $got->{by_worker} };
        cmp_ok $most, '<=', 22, "none served much more than its 20 ($most)";
        my $worst = quantile( 1, @{ $got->{latency} } );
        cmp_ok $worst, '<', 2, sprintf 'the slowest answer took %.0f ms', 1000 * $worst;
        ok until_true( 5, sub { worker_pids($server) == $workers } ), 'all workers are there';
        $server->stop;
    };
}

subtest 'one worker: a new one follows' => sub {
    my ($server) = fair_server( 1, qw(--max-reqs-per-child 20) );
    my @client   = map { $server->connect } 1 .. 10;
    my $got      = hammer( $server, clients => \@client, seconds => 60, requests => 100 );
    is_deeply $got->{failures}, [], 'no failure and no close';
    is $got->{answers}, 1000, '1,000 answers';
    $server->stop;
};

# Until its last connection is gone a retiring worker keeps its place, and takes no new ones
subtest 'slow clients of retiring workers do not keep others waiting' => sub {
    my ($server) = fair_server( 2, qw(--max-reqs-per-child 30 --body-timeout 5) );
    my %where;
    for my $pid ( worker_pids($server) ) {
        my ($slow) = on_worker( $server, $pid, 1 );
        $slow->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        $where{$pid} = $slow;
    }
    my ( $worst, %status ) = 0;
    my $until = time + 5;
    while ( time < $until ) {
        $_->send( 'a' x 100 ) for values %where;
        for ( 1 .. 10 ) {
            my $seconds = elapsed {
                my $client = $server->connect;
                $client->send( request('GET /') );
                $status{ $client->response( patience => 2 )->status }++;
            };
            $worst = $seconds if $seconds > $worst;
            last              if $worst > 1;
        }
        last if $worst > 1;
        sleep 0.05;
    }
    cmp_ok $worst, '<', 1, sprintf 'a new client is answered at any time (worst %.0f ms)', 1000 * $worst
        or diag explain \%status;
    is_deeply [ keys %status ], [200], 'always 200';
    $_->close for values %where;
    sleep 0.2;
    $server->stop;
};

# Uploads last minutes, a worker's requests may be used up in seconds: there is always one more that retires
subtest 'a slow upload on every worker that comes' => sub {
    my ($server) = fair_server( 2, qw(--max-reqs-per-child 20) );
    my ( @upload, %status );
    my $worst = 0;
    for my $count ( 1 .. 500 ) {
        if ( $count % 5 == 1 ) {
            push @upload, $server->connect;
            $upload[-1]->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        }
        my $client  = $server->connect;
        my $seconds = elapsed {
            $client->send( request('GET /') );
            $status{ $client->response( patience => 3 )->status }++
        };
        $worst = $seconds if $seconds > $worst;
        last              if $worst > 2;
    }
    is_deeply \%status, { 200 => 500 }, '500 new clients are answered beside a hundred uploads';
    cmp_ok $worst, '<', 1, sprintf 'none waits long (worst %.0f ms)', 1000 * $worst;
    my $processes = () = $server->processes;
    cmp_ok $processes, '<', 30, "by not too many processes ($processes)";
    my %upload;
    for my $client (@upload) {
        $client->send( 'a' x 100_000 );
        $upload{ $client->response->status }++;
    }
    is_deeply \%upload, { 200 => scalar @upload }, 'each upload is finished and answered';
    $server->stop;
};

subtest 'one worker that has many connections which have not sent anything' => sub {
    my ( $server, $worker ) = fair_server( 1, qw(--max-reqs-per-child 60 --header-timeout 8) );
    my @silent = map { $server->connect } 1 .. 40;
    my ( $worst, %status ) = 0;
    for ( 1 .. 90 ) {
        my $seconds = elapsed {
            my $client = $server->connect;
            $client->send( request('GET /') );
            $status{ $client->response( patience => 10 )->status }++;
        };
        $worst = $seconds if $seconds > $worst;
    }
    is_deeply \%status, { 200 => 90 }, '90 new clients are answered';
    cmp_ok $worst, '<', 2, sprintf 'none waits long (worst %.0f ms)', 1000 * $worst;
    ok until_true(
        10,
        sub {
            !grep { $_ == $worker } worker_pids($server);
        }
        ),
        'the worker was replaced';
    $server->stop;
};

done_testing;
