use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Fair;

# Workers end by their count of requests: no client notices

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
        unlike $server->log, qr/next attempt in/, 'no successor was delayed';
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

# A request that has not come in full has no worker, and keeps none from ending
subtest 'slow clients do not keep others waiting while workers are replaced' => sub {
    my ($server) = fair_server( 2, qw(--max-reqs-per-child 30 --body-timeout 60) );
    my %where;
    for my $pid ( worker_pids($server) ) {
        my ($slow) = on_worker( $server, $pid, 1 );
        $slow->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        $where{$pid} = $slow;
    }
    my %status;
    for ( 1 .. 80 ) {
        $_->send( 'a' x 100 ) for values %where;
        $status{ $server->ask('GET /')->status }++ for 1 .. 10;
    }
    is join( '', map { $_->some( 1, 0 ) } values %where ), '', 'bodies are on their way all the time';
    is_deeply \%status, { 200 => 800 }, 'every new client is answered meanwhile';
    $_->close for values %where;
    $server->stop;
};

# Uploads last minutes, a worker's requests may be used up in seconds: there is always one more that retires
subtest 'a slow upload on every worker that comes' => sub {
    my ($server) = fair_server( 2, qw(--max-reqs-per-child 20 --body-timeout 60) );
    my ( @upload, %status );
    for my $count ( 1 .. 500 ) {
        if ( $count % 5 == 1 ) {
            push @upload, $server->connect;
            $upload[-1]->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        }
        $status{ $server->ask('GET /')->status }++;
    }
    is_deeply \%status, { 200 => 500 }, '500 new clients are answered beside a hundred uploads';
    is join( '', map { $_->some( 1, 0 ) } @upload ), '', 'none of which has ended';
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

subtest 'one worker, and many connections that have not sent anything' => sub {
    my ( $server, $worker ) = fair_server( 1, qw(--max-reqs-per-child 60 --header-timeout 60) );
    my @silent = map { $server->connect } 1 .. 40;
    my %status;
    $status{ $server->ask('GET /')->status }++ for 1 .. 90;
    is_deeply \%status, { 200 => 90 }, '90 new clients are answered';
    is join( '', map { $_->some( 1, 0 ) } @silent ), '', 'while the others say nothing';
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
