use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Fair;

# TERM to one worker: all connections go on. TERM to the server: whole answers, then the end.

subtest 'TERM to one worker' => sub {
    my ( $server, $first, $second ) = fair_server(2);
    my @client = on_worker( $server, $first, 50 );
    my @silent = map { $server->connect } 1 .. 5;
    my ($half) = on_worker( $server, $first, 1 );
    $half->send("GET / HTTP/1.1\r\nHo");
    $server->wait_open( 56, $ENV{SIRIUS_TEST_H2} ? 51 : 50 )
        ;    # a head is a frame, which is sent when it is complete
    kill TERM => $first;
    ok until_true(
        5,
        sub {
            !grep { $_ == $first } worker_pids($server);
        }
        ),
        'it ends';
    my %by;
    $by{ $_->ask('GET /')->status }++ for @client;
    is_deeply \%by, { 200 => 50 }, 'the connections that it has served go on';
    $half->send("st: a\r\n\r\n");
    is $half->response->status, 200, 'one in the middle of its head as well';
    is_deeply [ map { $_->ask('GET /')->status } @silent ], [ (200) x 5 ], 'and those that had sent nothing';
    ok until_true( 5, sub { worker_pids($server) == 2 } ), 'it is replaced';
    $server->stop;
};

subtest 'TERM to one worker after the other under load' => sub {
    my ($server) = fair_server(3);
    my @client   = map { $server->connect } 1 .. 12;
    my $got      = hammer(
        $server,
        clients => \@client,
        seconds => 4,
        every   => 0.4,
        tick    => sub { my @pid = worker_pids($server); kill TERM => $pid[0] if @pid == 3 }
    );
    is_deeply $got->{failures}, [],
        "$got->{answers} answers by @{[ scalar keys %{ $got->{by_worker} } ]} workers, no failure";
    is $got->{closes}, 0, 'none said close';
    cmp_ok keys %{ $got->{by_worker} }, '>', 4, 'workers were replaced';
    $server->stop;
};

subtest 'TERM to a worker that is in a request' => sub {
    my ( $server, $first, $second ) = fair_server(2);
    my ( $long, @kept ) = on_worker( $server, $first, 20 );
    still($second);
    my $end = hold( $server, $long );
    kill CONT => $second;
    kill TERM => $first;
    my %by;
    $by{ $_->ask('GET /')->body }++ for @kept;
    is_deeply \%by, { $second => 19 }, 'other connections are served meanwhile';
    is $long->some( 1, 0 ), '', 'before the request has ended';
    $end->();
    my $answer = $long->response;
    is $answer->body, $first, 'the request is finished';
    ok !$answer->closes, 'without a close';
    is $long->ask('GET /')->status, 200, 'and its connection goes on';
    $server->stop;
};

for my $round ( 1 .. 5 ) {
    subtest "TERM to the server under load, round $round" => sub {
        my ($server) = fair_server(2);
        my @client = map { $server->connect } 1 .. 20;
        $_->send( request( $round % 2 ? 'GET /big' : 'GET /sleep/0.05' ) ) for @client;
        select undef, undef, undef, 0.02 * $round;    # another moment each time
        $server->signal('TERM');
        my %how;
        for my $client (@client) {
            my $answer = $client->response;
            $how{ $answer->status . ' ' . length( $answer->body ) }++;
            $how{ $client->end(5) }++;
        }
        my ( $size, $wrong ) = $round % 2 ? '200 1000000' : '';
        my @bad = grep { !/\A(?:200 (?:\d|\d{2,5}|1000000)|eof)\z/ } keys %how;
        is_deeply \@bad, [], 'every answer is whole' or diag explain \%how;
        $server->stop;
    };
}

subtest 'clients that say nothing do not hold it up' => sub {
    my ($server) = fair_server(2);
    my @silent   = map { $server->connect } 1 .. 3;
    my $half     = $server->connect;
    $half->send("GET / HT");
    my $idle = $server->connect;
    $idle->ask('GET /');
    $server->wait_open( 5, 1 );
    $server->signal('TERM');
    is $server->wait_exit, 'exit 0', 'it ends, without --graceful-timeout';
    unlike $server->log, qr/did not finish in time/, 'and nobody was killed for it';
    $server->stop;
};

subtest 'a request that waits when the server is told to stop' => sub {
    my ( $server, @worker ) = fair_server(2);
    my @long = map { my ($c) = on_worker( $server, $_, 1 ); $c } @worker;
    still( $worker[1] );
    my $long = hold( $server, $long[0] );
    kill CONT => $worker[1];
    my $short   = hold( $server, $long[1] );
    my @waiting = map { $server->connect } 1 .. 10;
    $_->send( request('GET /') ) for @waiting;
    $server->wait_waiting(10);
    $server->signal('TERM');
    $server->wait_board( sub { $_[0]{stopping} } );
    $short->();
    is $long[1]->response->body, $worker[1], 'the short request is answered';
    my %by;

    for my $answer ( map { $_->response } @waiting ) {
        $by{ $answer->status eq '200' ? $answer->body : $answer->status }++;
    }
    is_deeply \%by, { $worker[1] => 10 }, 'all that waited are answered by the worker that was free first';
    is $long[0]->some( 1, 0 ), '', 'while the long one is still running';
    $long->();
    is $long[0]->response->body, $worker[0], 'so is the long one';
    $server->stop;
};

done_testing;
