use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use File::Temp;
use Test::More;
use Time::HiRes qw(time);
use Sirius::Test;
use Fair;

# Waiting is bounded, in number and in time, and who has gone is not served

for my $workers ( 1, 2 ) {
    subtest "workers: $workers, all of them in a request" => sub {
        my ( $server, @worker ) = fair_server( $workers, qw(--max-queue 5 --queue-timeout 1) );
        my @long   = map { my ($c) = on_worker( $server, $_, 1 ); $c } @worker;
        my @end    = map { hold( $server, $_ ) } @long;
        my @client = map { $server->connect } 1 .. 40;
        my $start  = time;
        $_->send( request('GET /note?served') ) for @client;
        my @answer  = map { $_->response } @client;
        my $seconds = time - $start;
        is_deeply [ grep { $_->status ne '503' } @answer ], [], 'all are refused';
        my $refusals = $server->board->{totals}{refusals};
        is_deeply [ @{$refusals}{qw(max-queue queue-timeout)} ], [ 35, 5 ],
            '35 of them at once, 5 have waited';
        cmp_ok $seconds, '>', 0.9, 'for 1 s';
        is scalar( grep { ( $_->header('Retry-After') || '' ) =~ /\A[1-9]\d*\z/ } @answer ), 40,
            'all with Retry-After';
        $_->() for @end;
        is_deeply [ sort map { $_->response->body } @long ], [ sort @worker ], 'the long ones are answered';
        unlike $server->log, qr/^reached/m, 'the application saw none of those refused';
        is $server->ask('GET /')->status, 200, 'all is well afterwards';
        $server->stop;
    };
}

subtest 'who hung up never reaches the application' => sub {
    my ( $server, @worker ) = fair_server(2);
    my @long = map { my ($c) = on_worker( $server, $_, 1 ); $c } @worker;
    my @end  = map { hold( $server, $_ ) } @long;
    my @gone = map { $server->connect } 1 .. 30;
    $gone[$_]->send( request("GET /note?gone$_") ) for 0 .. $#gone;
    my @stay = map { $server->connect } 1 .. 30;
    $stay[$_]->send( request("GET /note?stay$_") ) for 0 .. $#stay;
    $server->wait_waiting(60);
    $gone[$_]->close for 0 .. 14;
    $gone[$_]->abort for 15 .. 29;
    $server->wait_board( sub { $_[0]{connections}{waiting} == 30 } );
    $_->() for @end;
    my %status;
    $status{ $_->response->status }++ for @stay;
    is_deeply \%status, { 200 => 30 }, 'those who wait are answered';
    is_deeply [ sort map { $_->response->body } @long ], [ sort @worker ], 'the long ones too';
    unlike $server->log, qr/reached: gone/, 'none of those who left has reached it';
    is scalar( () = $server->log =~ /reached: stay/g ), 30, 'each of the others once';
    $server->stop;
};

# Clients of a server whose one worker is busy: each shuts down its side behind what it has sent, in one of
# these ways. Returns the statuses of their answers, and which requests have reached the application, in its
# order.
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

my $NO_HALF = 'a client that shuts down its side ends the connection';

# By its answer the edge has handled what came before
sub handled {
    my $server = shift;
    my $client = $server->connect;
    $client->send( request('GET /%zz') );
    return $client->response->status eq '400';
}

sub half_closed {
    my ( $server, $worker, %option ) = @_;
    my ($long) = on_worker( $server, $worker, 1 );
    my $end = hold( $server, $long );
    my %client;
    for my $case (@HALF) {
        my ( $name, $send ) = @$case;
        my $client = $client{$name} = $server->connect;
        my $waited = $option{served} ? keys(%client) - 1 : 0;
        $server->wait_board( sub { $_[0]{connections}{waiting} == $waited } );
        $send->($client);
        $server->wait_waiting( $waited + 1 ) if !$option{at_once} && $name ne 'torn';
        $client->finish;
    }
    ok handled($server), 'each has shut down its side';
    $end->() if $option{served};
    my %status = map { $_->[0] => $client{ $_->[0] }->response( head => $_->[3] || 0 )->status } @HALF;
    $status{second} = $client{pipelined}->response->status;
    $end->();
    $long->response;
    my %ran = map { $_ => 1 } $server->log =~ /reached: (\w+)/g;
    return ( \%status, join q( ), sort keys %ran );
}

subtest 'who shuts down the sending side while waiting is told that the request was not run' => sub {
    http1_only($NO_HALF);
    for my $before ( 0, 1 ) {
        my ( $server, $worker ) = fair_server(1);
        my ( $got,    $ran )    = half_closed( $server, $worker, at_once => $before );
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
    http1_only($NO_HALF);
    for my $before ( 0, 1 ) {
        my ( $server, $worker ) = fair_server( 1, qw(--half-closed serve) );
        my ( $got,    $ran )    = half_closed( $server, $worker, at_once => $before, served => 1 );
        is_deeply $got, { ( map { $_->[0] => $_->[2] } @HALF ), second => 200 }, 'each';
        is $ran, join( q( ), sort 'second', map { $_->[0] } grep { $_->[2] == 200 } @HALF ), 'each was run';
        $server->stop;
    }
};

subtest 'on a unix socket the two can be told apart' => sub {
    http1_only($NO_HALF);
    my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my ( $server, $worker ) = fair_server( 1, '--listen', "$dir/socket" );
    my ( $got,    $ran )    = half_closed( $server, $worker, served => 1 );
    is_deeply $got, { ( map { $_->[0] => $_->[2] } @HALF ), second => 200 }, 'who half-closes is answered';
    my ($long) = on_worker( $server, $worker, 1 );
    my $end    = hold( $server, $long );
    my @gone   = map { $server->connect } 1 .. 4;
    $gone[$_]->send( request("GET /note?gone$_") x ( $_ < 2 ? 1 : 2 ) ) for 0 .. $#gone;
    $server->wait_waiting(4);
    $gone[1]->finish, $gone[3]->finish;
    ok handled($server), 'two have shut down their side';
    $_->close for @gone;
    $server->wait_board( sub { $_[0]{connections}{waiting} == 0 } );
    $end->();
    $long->response;
    is $server->ask('GET /')->status, 200, 'those behind them are served';
    unlike $server->log, qr/reached: gone/, 'who closes is not';
    $server->stop;
};

subtest 'they are served in the order they came' => sub {
    my ( $server, $worker ) = fair_server(1);
    my ($long) = on_worker( $server, $worker, 1 );
    my $end    = hold( $server, $long );
    my @client = map { $server->connect } 1 .. 40;
    for my $i ( 0 .. $#client ) {
        $client[$i]->send( request("GET /note?$i") );
        $server->wait_waiting( $i + 1 );
    }
    $end->();
    $_->response for $long, @client;
    my @order = $server->log =~ /reached: (\d+)/g;
    is scalar @order, 40, 'all';
    is_deeply \@order, [ 0 .. 39 ], 'none is passed by another';
    $server->stop;
};

subtest '--max-connections: the oldest idle one makes room, wherever it is' => sub {
    my ( $server, $first, $second ) = fair_server( 2, qw(--max-connections 12) );
    my ( $long, @idle ) = on_worker( $server, $first, 12 );
    my $end = hold( $server, $long );
    my $new = $server->connect;
    is $new->ask('GET /')->status, 200, 'a new one is served while a worker is busy';
    $end->();
    like $long->response->body, qr/\A(?:$first|$second)\z/, 'the long request as well';
    is $idle[-1]->ask('GET /')->status, 200, 'and the idle one that came last';
    $server->stop;
};

done_testing;
