use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use File::Temp;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Fair;

# Waiting is bounded, in number and in time, and who has gone is not served

# Statuses and how long each took, of clients that have sent one request each at the same time
sub collect {
    my ( $start, @client ) = @_;
    my ( @answer, %waiting );
    @waiting{ 0 .. $#client } = ();
    while ( %waiting && time < $start + 10 ) {
        for my $i ( keys %waiting ) {
            my $answer = $client[$i]->response( patience => 0.0001 );
            next if $answer->status eq 'timeout';
            $answer[$i] = { answer => $answer, status => $answer->status, seconds => time - $start };
            delete $waiting{$i};
        }
        sleep 0.005;
    }
    return map { $_ || { status => 'timeout', seconds => 99 } } @answer[ 0 .. $#client ];
}

for my $workers ( 1, 2 ) {
    subtest "workers: $workers, all of them in a request of 3 seconds" => sub {
        my ( $server, @worker ) = fair_server( $workers, qw(--max-queue 5 --queue-timeout 1) );
        my @long = map { my ($c) = on_worker( $server, $_, 1 ); $c } @worker;
        $_->send( request('GET /sleep/3') ) for @long;
        sleep 0.1;
        my @client = map { $server->connect } 1 .. 40;
        my $start  = time;
        $_->send( request('GET /note?served') ) for @client;
        my @got   = collect( $start, @client );
        my @now   = grep { $_->{status} eq '503' && $_->{seconds} < 0.7 } @got;
        my @later = grep { $_->{status} eq '503' && $_->{seconds} >= 0.7 && $_->{seconds} < 1.6 } @got;
        my %how;
        $how{ sprintf '%s after %.1f s', $_->{status}, $_->{seconds} }++ for @got;
        is scalar @now,   35, '35 are refused at once'      or diag explain \%how;
        is scalar @later, 5,  'the 5 that waited after 1 s' or diag explain \%how;
        my @retry
            = grep { $_->{answer} && ( $_->{answer}->header('Retry-After') || '' ) =~ /\A[1-9]\d*\z/ } @now,
            @later;
        is scalar @retry, @now + @later, 'all with Retry-After';
        is_deeply [ sort map { $_->response->body } @long ], [ sort @worker ], 'the long ones are answered';
        unlike $server->log, qr/^reached/m, 'the application saw none of those refused';
        is $server->ask('GET /')->status, 200, 'all is well afterwards';
        $server->stop;
    };
}

subtest 'who hung up never reaches the application' => sub {
    my ( $server, @worker ) = fair_server(2);
    my @long = map { my ($c) = on_worker( $server, $_, 1 ); $c } @worker;
    $_->send( request('GET /sleep/1') ) for @long;
    sleep 0.05;
    my @gone = map { $server->connect } 1 .. 30;
    $gone[$_]->send( request("GET /note?gone$_") ) for 0 .. $#gone;
    my @stay = map { $server->connect } 1 .. 30;
    $stay[$_]->send( request("GET /note?stay$_") ) for 0 .. $#stay;
    sleep 0.2;
    $gone[$_]->close for 0 .. 14;
    $gone[$_]->abort for 15 .. 29;
    my %status;
    $status{ $_->response->status }++ for @stay;
    is_deeply \%status, { 200 => 30 }, 'those who wait are answered';
    is_deeply [ sort map { $_->response->body } @long ], [ sort @worker ], 'the long ones too';
    unlike $server->log, qr/reached: gone/, 'none of those who left has reached it';
    is scalar( () = $server->log =~ /reached: stay/g ), 30, 'each of the others once';
    $server->stop;
};

# Clients of a server whose one worker is busy: each shuts down its side behind what it has sent, in one of these ways. Returns the
# statuses of their answers, and which requests have reached the application, in its order.
my @HALF = (
    [ 'get',  sub { shift->send( request('GET /note?get') ) },                    200 ],
    [ 'head', sub { shift->send("HEAD /note?head HTTP/1.1\r\nHost: h\r\n\r\n") }, 200, 1 ],
    [ 'old',  sub { shift->send("GET /note?old HTTP/1.0\r\n\r\n") },              200 ],
    [   'post', sub { shift->send("POST /note?post HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok") },
        200
    ],
    [   'chunked',
        sub {
            shift->send(
                "PUT /note?chunked HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
            );
        },
        200
    ],
    [ 'pipelined', sub { shift->send( request('GET /note?pipelined') . request('GET /note?second') ) }, 200 ],
    [   'torn',
        sub { shift->send("POST /note?torn HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nok") },
        400
    ],
);

sub half_closed {
    my ( $server, $worker, $before ) = @_;
    my ($long) = on_worker( $server, $worker, 1 );
    $long->send( request('GET /sleep/1') );
    sleep 0.1;
    my %client;
    for my $case (@HALF) {
        my ( $name, $send ) = @$case;
        my $client = $client{$name} = $server->connect;
        $send->($client);
        sleep 0.1 if !$before;
        $client->finish;
    }
    my %status = map { $_->[0] => $client{ $_->[0] }->response( head => $_->[3] || 0 )->status } @HALF;
    $status{second} = $client{pipelined}->response->status;
    $long->response;
    my %ran = map { $_ => 1 } $server->log =~ /reached: (\w+)/g;
    return ( \%status, join q( ), sort keys %ran );
}

subtest 'who shuts down the sending side while waiting is told that the request was not run' => sub {
    for my $before ( 0, 1 ) {
        my ( $server, $worker ) = fair_server(1);
        my ( $got,    $ran )    = half_closed( $server, $worker, $before );
        my %want = ( ( map { $_->[0] => $_->[2] == 200 ? 503 : $_->[2] } @HALF ), second => 'eof' );
        is_deeply $got, \%want, 'each gets 503' . ( $before ? ', also at once' : q() );
        is $ran, q(), 'none was run';
        my $client = $server->connect;
        $client->send( request('GET /note?idle') . request('GET /note?behind') );
        $client->finish;
        is_deeply [ map { $_->status } $client->responses(2) ], [ 200, 200 ],
            'with a free worker it is answered';
        $server->stop;
    }
};

subtest '--half-closed serve: they are answered' => sub {
    for my $before ( 0, 1 ) {
        my ( $server, $worker ) = fair_server( 1, qw(--half-closed serve) );
        my ( $got,    $ran )    = half_closed( $server, $worker, $before );
        is_deeply $got, { ( map { $_->[0] => $_->[2] } @HALF ), second => 200 }, 'each';
        is $ran, join( q( ), sort 'second', map { $_->[0] } grep { $_->[2] == 200 } @HALF ), 'each was run';
        $server->stop;
    }
};

subtest 'on a unix socket the two can be told apart' => sub {
    my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my ( $server, $worker ) = fair_server( 1, '--listen', "$dir/socket" );
    my ( $got,    $ran )    = half_closed( $server, $worker );
    is_deeply $got, { ( map { $_->[0] => $_->[2] } @HALF ), second => 200 }, 'who half-closes is answered';
    my ($long) = on_worker( $server, $worker, 1 );
    $long->send( request('GET /sleep/0.6') );
    sleep 0.1;
    my @gone = map { $server->connect } 1 .. 4;
    $gone[$_]->send( request("GET /note?gone$_") x ( $_ < 2 ? 1 : 2 ) ) for 0 .. $#gone;
    sleep 0.1;
    $gone[1]->finish, $gone[3]->finish;
    sleep 0.1;
    $_->close for @gone;
    $long->response;
    is $server->ask('GET /')->status, 200, 'those behind them are served';
    unlike $server->log, qr/reached: gone/, 'who closes is not';
    $server->stop;
};

subtest 'they are served in the order they came' => sub {
    my ( $server, $worker ) = fair_server(1);
    my ($long) = on_worker( $server, $worker, 1 );
    $long->send( request('GET /sleep/0.5') );
    sleep 0.05;
    my @client = map { $server->connect } 1 .. 40;
    for my $i ( 0 .. $#client ) {
        $client[$i]->send( request("GET /note?$i") );
        sleep 0.003;
    }
    $_->response for $long, @client;
    my @order = $server->log =~ /reached: (\d+)/g;
    my $early = 0;
    for my $i ( 0 .. $#order ) { $early = abs( $order[$i] - $i ) if abs( $order[$i] - $i ) > $early }
    is scalar @order, 40, 'all';
    cmp_ok $early, '<=', 15, "none is passed by more than 15 others ($early)" or diag "@order";
    $server->stop;
};

subtest '--max-connections: the oldest idle one makes room, wherever it is' => sub {
    my ( $server, $first, $second ) = fair_server( 2, qw(--max-connections 12) );
    my ( $long, @idle ) = on_worker( $server, $first, 12 );
    $long->send( request('GET /sleep/1') );
    sleep 0.05;
    my $new = $server->connect;
    is $new->ask('GET /')->status, 200, 'a new one is served while a worker is busy';
    like $long->response->body, qr/\A(?:$first|$second)\z/, 'the long request as well';
    is $idle[-1]->ask('GET /')->status, 200, 'and the idle one that came last';
    $server->stop;
};

done_testing;
