use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# --lane: at most so many workers run such requests, the others of them wait in their own order, and nobody
# behind them waits with them

# Says when a request begins and ends. /report waits until the test lets it go on
my $APP = <<'APP';
use Fcntl qw(O_APPEND O_CREAT O_WRONLY);
use Time::HiRes qw(sleep time);
sub say_it {
    sysopen my $fh, "$ENV{LANES_DIR}/log", O_APPEND | O_CREAT | O_WRONLY or die $!;
    syswrite $fh, "$_[0]\n";
}
sub {
    my $env = shift;
    my ( $path, $number ) = @{$env}{qw(PATH_INFO QUERY_STRING)};
    my $until = time + 60;
    say_it("begin $number");
    if ( $path =~ m{report|import} ) {
        sleep 0.005 while !-e "$ENV{LANES_DIR}/$number" && !-e "$ENV{LANES_DIR}/all" && time < $until;
    }
    kill KILL => $$ if $path =~ m{/dies};
    say_it("end $number");
    [ 200, [], ["$number"] ];
}
APP

my $DIR;

sub lane_server {
    my @args = @_;
    my $app  = ref $args[0] ? shift(@args)->{app} : $APP;
    $DIR = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    local $ENV{LANES_DIR} = "$DIR";
    my $server = start_server( $app, @args );
    $server->wait_log( qr/ready after /, 20 );
    return $server;
}

sub go {
    my $name = shift;
    open my $fh, '>', "$DIR/$name" or die $!;
    return;
}

sub events {
    open my $fh, '<', "$DIR/log" or return;
    chomp( my @events = readline $fh );
    return @events;
}

sub begun {
    return map { /\Abegin (.*)/ ? $1 : () } events();
}

sub lane {
    my ( $server, $name ) = @_;
    return ( grep { $_->{name} eq $name } @{ $server->board->{lanes} } )[0];
}

sub wait_lane {
    my ( $server, $name, %want ) = @_;
    my $ok = until_true(
        20,
        sub {
            my $lane = lane( $server, $name );
            return !grep { $lane->{$_} != $want{$_} } keys %want;
        }
    );
    diag( JSON::PP->new->canonical->encode( lane( $server, $name ) ) ) if !$ok;
    return $ok;
}

# One after the other: each is where it waits before the next is sent
sub ask_many {
    my ( $server, $name, $running, $line, @numbers ) = @_;
    my @client;
    for my $number (@numbers) {
        my $client = $server->connect;
        $client->send( request( $line =~ s/NUMBER/$number/r ) );
        push @client, $client;
        my $had = @client;
        wait_lane(
            $server, $name,
            running => $had < $running ? $had            : $running,
            waiting => $had > $running ? $had - $running : 0
        ) or last;
    }
    return @client;
}

# How many of these ran at most at a time
sub most {
    my $which = shift;
    my ( $now, $most ) = ( 0, 0 );
    for ( grep {/\w+ $which/} events() ) {
        $now += /\Abegin/ ? 1 : -1;
        $most = $now if $now > $most;
    }
    return $most;
}

for my $edges ( 1, 2 ) {
    subtest "edges: $edges; reports do not stop a shop" => sub {
        my $server = lane_server( qw(--workers 4 --lane), '/report=2,queue=8', '--edges', $edges );
        my @report = ask_many( $server, '/report', 2, 'GET /report?rNUMBER', 10 .. 19 );
        is_deeply [ sort( begun() ) ], [qw(r10 r11)], 'two run';
        is $server->ask("GET /shop?s$_")->body,      "s$_", "shop $_ is served" for 1 .. 20;
        is $server->ask('GET /report?full')->status, 503,   'one more is refused';
        my $lane  = lane( $server, '/report' );
        my %shown = map { $_ => $lane->{$_} } qw(limit queue_limit running waiting refused timed_out);
        is_deeply \%shown,
            { limit => 2, queue_limit => 8, running => 2, waiting => 8, refused => 1, timed_out => 0 },
            'the board says so';
        cmp_ok $lane->{waiting_since}, '>', 0, 'and since when the first waits';
        is $server->board->{totals}{refusals}{'lane-queue'}, 1, 'the reason is counted';
        is $server->board->{connections}{waiting},           0, 'none of them waits for a worker';

        for my $i ( 0 .. 7 ) {    # one ends, and the next begins: no two at once, so the order is certain
            go( 'r' . ( 10 + $i ) );
            is $report[$i]->response->body, 'r' . ( 10 + $i ), 'a report is answered';
            until_true(
                20,
                sub {
                    grep { $_ eq 'r' . ( 12 + $i ) } begun();
                }
            );
        }
        go('all');
        $_->response for @report[ 8, 9 ];
        is_deeply [ grep {/^r/} begun() ], [ sort { $a cmp $b } grep {/^r/} begun() ],
            'they began in the order in which they came';
        is most('r'), 2, 'never more than two at a time';
        ok wait_lane( $server, '/report', running => 0, waiting => 0, requests => 10 ), 'all places are free';
        like $server->log, qr/warn: 1 request was answered with 503 because the queue of a lane was full/,
            'the log says that one was refused'
            if $server->wait_log( qr/queue of a lane/, 20 );
        $server->stop;
    };
}

subtest 'a free worker takes what the lane allows' => sub {
    my $server = lane_server(qw(--workers 4 --lane /report=3));
    my @report = ask_many( $server, '/report', 3, 'GET /report?rNUMBER', 1 .. 6 );
    is scalar( begun() ), 3, 'three run';
    my @import = map { my $c = $server->connect; $c->send( request("GET /import?i$_") ); $c } 1 .. 2;
    until_true( 20, sub { begun() == 4 } );
    $server->wait_waiting(1);
    is scalar( begun() ), 4, 'and one of no lane, for which another waits';
    go('r1');
    is $report[0]->response->body, 'r1', 'a worker is free';
    until_true( 20, sub { begun() == 5 } );
    is( ( begun() )[4],
        'i2', 'who waited for a worker comes before who waited for the lane, and is let in now' );
    ok wait_lane( $server, '/report', running => 3, waiting => 2 ), 'which is next';
    go('all');
    is scalar( grep { $_->response->status == 200 } @report[ 1 .. 5 ], @import ), 7, 'all are served';
    $server->stop;
};

subtest 'methods, and how a client spells a path' => sub {
    my $server = lane_server( qw(--workers 3 --lane /report=1), '--lane', 'post /import=1' );
    my @client;
    for my $line (
        'GET /report?1',
        'GET /%72eport?2',
        'GET //report?3',
        'GET /x/../report?4',
        'GET /./REPORT/x?5',
        'HEAD /report/../report?6',
        'GET http://h/report?7',
        'GET /report/../shop?8'
        )
    {
        push @client, $server->connect;
        $client[-1]->send("$line HTTP/1.1\r\nHost: h\r\n\r\n");
        wait_lane( $server, '/report', running => 1, waiting => $#client ) or last;
    }
    is scalar @client, 8, 'all are of the lane';
    is_deeply [ begun() ], [1], 'one runs';
    my @import = ask_many( $server, 'POST /import', 1, "POST /import?iNUMBER", 1 .. 2 );
    ok wait_lane( $server, 'POST /import', running => 1, waiting => 1 ), 'a lane of a method';
    my $get = $server->connect;
    $get->send( request('GET /import?get') );
    until_true(
        20,
        sub {
            grep { $_ eq 'get' } begun();
        }
    );
    ok( ( grep { $_ eq 'get' } begun() ), 'which is for no other method' );
    go('all');
    is scalar( grep { $_->response->status == 200 } @client[ 0 .. 4, 6, 7 ], @import, $get ), 10,
        'all are served';
    $server->stop;
};

subtest 'a field that a trusted proxy sets' => sub {
    my $server = lane_server( qw(--workers 3 --trust-proxy 127.0.0.1), '--lane', 'X-Class: batch=1' );
    my $send   = sub {
        my $client = $server->connect;
        $client->send("GET /report?$_[0] HTTP/1.1\r\nHost: h\r\nX-Class: $_[1]\r\n\r\n");
        return $client;
    };
    my @client = ( $send->( 1, 'batch' ), $send->( 2, 'batch' ), $send->( 3, 'other' ) );
    ok wait_lane( $server, 'X-Class: batch', running => 1, waiting => 1 ),
        'two with the value are of the lane';
    until_true( 20, sub { begun() == 2 } );
    ok( ( grep { $_ eq '3' } begun() ), 'another value is not' );
    go('all');
    is scalar( grep { $_->response->status == 200 } @client ), 3, 'all are served';
    $server->stop;
};

subtest 'workers that die within a request, and are recycled' => sub {
    my $server
        = lane_server(qw(--workers 3 --lane /report=1 --err-respawn-interval 0.1 --max-reqs-per-child 2));
    $server->{may_crash} = 1;
    my @client = ask_many( $server, '/report', 1, 'GET /report/dies?rNUMBER', 1 .. 3 );
    push @client, my $last = $server->connect;
    $last->send( request('GET /report?r4') );
    ok wait_lane( $server, '/report', running => 1, waiting => 3 ), 'four of a lane';
    go('all');
    is_deeply [ map { $_->response->status } @client ], [ 502, 502, 502, 200 ],
        'each place is free when its worker has ended';
    is_deeply [ grep {/^r/} begun() ], [qw(r1 r2 r3 r4)], 'in their order';
    ok wait_lane( $server, '/report', running => 0, waiting => 0 ), 'no place is lost';
    my @more = map { my $c = $server->connect; $c->send( request("GET /report?m$_") ); $c } 1 .. 12;
    is scalar( grep { $_->response->status == 200 } @more ), 12,
        'twelve more, with workers of two requests each';
    is most('[m]'), 1, 'one at a time';
    $server->stop;
};

# The response is complete, and the application runs on
my $GOES_ON = <<'APP';
use Time::HiRes qw(sleep time);
package Guard { sub DESTROY { main::works( $_[0][0] ) } }
package Body { sub getline { my $n = delete $_[0]{n}; defined $n ? "$n" : undef } sub close { main::works( $_[0]{works} ) } }
package main;
use Fcntl qw(O_APPEND O_CREAT O_WRONLY);
sub say_it {
    sysopen my $fh, "$ENV{LANES_DIR}/log", O_APPEND | O_CREAT | O_WRONLY or die $!;
    syswrite $fh, "$_[0]\n";
}
sub works {
    my $number = shift;
    my $until = time + 60;
    sleep 0.005 while !-e "$ENV{LANES_DIR}/$number" && !-e "$ENV{LANES_DIR}/all" && time < $until;
    kill KILL => $$ if $number =~ /dies/;
    say_it("end $number");
}
my %way = (
    cleanup => sub { my ( $env, $n ) = @_; push @{ $env->{'psgix.cleanup.handlers'} }, sub { works($n) }; [ 200, [], ["$n"] ] },
    respond => sub { my ( $env, $n ) = @_; sub { $_[0]->( [ 200, [], ["$n"] ] ); works($n) } },
    stream  => sub { my ( $env, $n ) = @_; sub { my $w = $_[0]->( [ 200, [] ] ); $w->write("$n"); $w->close; works($n) } },
    length  => sub { my ( $env, $n ) = @_; sub { my $w = $_[0]->( [ 200, [ 'Content-Length' => length $n ] ] ); $w->write("$n"); works($n) } },
    body    => sub { my ( $env, $n ) = @_; [ 200, [], bless { n => $n, works => $n }, 'Body' ] },
    guard   => sub { my ( $env, $n ) = @_; $env->{guard} = bless [$n], 'Guard'; [ 200, [], ["$n"] ] },
    free    => sub { [ 200, [], ['free'] ] },
);
sub {
    my $env = shift;
    my $number = $env->{QUERY_STRING};
    say_it("begin $number");
    $way{ $env->{PATH_INFO} =~ s{.*/}{}r }->( $env, $number );
}
APP

for my $edges ( 1, 2 ) {
    subtest "edges: $edges; a worker that is not done has the place, whatever its client got" => sub {
        my $server = lane_server( { app => $GOES_ON },
            qw(--workers 4 --lane /report=1 --err-respawn-interval 0.1 --edges), $edges );
        $server->{may_crash} = 1;
        for my $way (qw(cleanup respond stream length body guard)) {
            my @client = map { $server->connect } 1 .. 3;
            for my $i ( 0 .. 2 ) {
                $client[$i]->send( request("GET /report/$way?$way$i") );
                wait_lane( $server, '/report', running => 1, waiting => $i );
            }
            is $client[0]->response->body, "${way}0", "$way: the first has its response"
                if $way ne 'guard' && $way ne 'body';
            is $server->ask('GET /free?x')->body, 'free', 'others do not wait';
            is_deeply [ grep {/^$way/} begun() ], ["${way}0"], 'nor does the next one begin';
            go("$way$_") for 0 .. 2;
            ok wait_lane( $server, '/report', running => 0, waiting => 0 ),
                'all places are free when they are done';
            is most($way), 1, 'one at a time';
        }
        my @client = map { $server->connect } 1 .. 3;
        $client[0]->send( request('GET /report/cleanup?dies0') );
        wait_lane( $server, '/report', running => 1, waiting => 0 );
        $client[$_]->send( request("GET /report/cleanup?late$_") ) for 1, 2;
        wait_lane( $server, '/report', running => 1, waiting => 2 );
        go('dies0');
        ok until_true(
            20,
            sub {
                grep {/^late/} begun();
            }
            ),
            'when it dies, the place is free';
        go('all');
        ok wait_lane( $server, '/report', running => 0, waiting => 0 ), 'and none is lost';
        is most('late'), 1, 'one at a time';
        $server->stop;
    };
}

subtest 'timeout, and who leaves' => sub {
    my $server = lane_server( qw(--workers 2 --queue-timeout 20 --lane), '/report=1,timeout=1' );
    my @client = ask_many( $server, '/report', 1, 'GET /report?rNUMBER', 1 .. 4 );
    $client[1]->abort;
    $client[2]->close;
    ok wait_lane( $server, '/report', running => 1, waiting => 1 ), 'who leaves is not waited for';
    is $client[3]->response->status, 503, 'who waits too long is refused';
    ok until_true( 5, sub { $server->board->{totals}{refusals}{'lane-timeout'} == 1 } ),
        'with its reason, which is counted once the response was sent';
    is lane( $server, '/report' )->{timed_out}, 1, 'which the lane counts';
    go('all');
    is $client[0]->response->status, 200, 'the first is served';
    is_deeply [ begun() ], ['r1'], 'and no other was';
    $server->stop;
};

subtest 'a graceful stop serves all, a fast one refuses who waits' => sub {
    for my $signal (qw(TERM INT)) {
        my $server = lane_server(qw(--workers 2 --lane /report=1 --graceful-timeout 20));
        my @client = ask_many( $server, '/report', 1, 'GET /report?rNUMBER', 1 .. 4 );
        $server->signal($signal);
        my @waiting = $signal eq 'INT' ? map { $_->response->status } @client[ 1 .. 3 ] : ();
        go('all');
        my @status = (
            $client[0]->response->status,
            @waiting ? @waiting : map { $_->response->status } @client[ 1 .. 3 ]
        );
        is_deeply \@status, $signal eq 'INT' ? [ 200, 503, 503, 503 ] : [ (200) x 4 ],
            "$signal: each has its answer";
        is_deeply [ begun() ], [ map {"r$_"} 1 .. ( $signal eq 'INT' ? 1 : 4 ) ], 'in their order';
        $server->wait_exit;
        $server->stop;
    }
};

subtest 'a reload, also with another limit' => sub {
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $config = "$dir/sirius.conf";
    my $write  = sub {
        open my $fh, '>', $config or die $!;
        print $fh "lane = $_[0]\n";
        close $fh or die $!;
    };
    $write->('/report=2');
    my $server = lane_server( qw(--workers 4 --config), $config );
    my @client = ask_many( $server, '/report', 2, 'GET /report?rNUMBER', 1 .. 4 );
    my $reload = sub {
        $server->signal('HUP');
        return $server->wait_log( qr/(?:reload completed.*?){$_[0]}/s, 20 );
    };
    ok $reload->(1), 'a reload';
    is scalar( begun() ), 2, 'after a reload two run';
    ok wait_lane( $server, '/report', running => 2, waiting => 2 ), 'and two wait';
    $write->('/report=3');
    ok $reload->(2),                                                       'another';
    ok until_true( 20, sub { lane( $server, '/report' )->{limit} == 3 } ), 'which shows another limit';
    ok until_true(
        20,
        sub {
            grep { $_->{state} eq 'draining' } @{ $server->board->{edges} };
        }
        ),
        'and the edge of the old one accepts no more';
    my $new = $server->connect;
    $new->send( request('GET /report?r5') );
    ok wait_lane( $server, '/report', running => 3, waiting => 2 ),
        'with a larger limit, one more place, for the edges of both settings together';
    go('all');
    is scalar( grep { $_->response->status == 200 } @client, $new ), 5, 'all are served';
    cmp_ok most('r'), '<=', 3, 'three at a time';
    $server->stop;
};

subtest 'counters go on over reloads that change the lanes' => sub {
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $config = "$dir/sirius.conf";
    my $reload = sub {
        open my $fh, '>', $config or die $!;
        print $fh map {"lane = $_\n"} @_;
        return close $fh;
    };
    $reload->('/shop=2');
    my $server = lane_server( qw(--workers 2 --config), $config );
    my ( $count, $reloads ) = ( 0, 0 );
    for my $lanes (
        ['/shop=2'], ['/shop=3'],
        [ '/shop=2', '/shop/longer=1' ],
        [ '/shop=3', '/shop/longer=1', '/shop/yet/longer=1' ],
        ['/shop=2'], ['/shop=3']
        )
    {
        if ( $count++ ) {
            $reload->(@$lanes);
            $reloads++;
            $server->signal('HUP');
            $server->wait_log( qr/(?:reload completed.*?){$reloads}/s, 20 );
        }
        my ($limit) = $lanes->[0] =~ /(\d+)\z/;
        until_true(
            20,
            sub {
                my $board = $server->board;
                lane( $server, '/shop' )->{limit} == $limit && @{ $board->{edges} } == 1;
            }
        );
        is lane( $server, '/shop' )->{requests}, $count - 1, "lanes @$lanes: what was counted before";
        $server->ask("GET /shop?s$count");
    }
    is_deeply [ map {"$_->{name}: $_->{requests}"} @{ $server->board->{lanes} } ], ['/shop: 6'],
        'a lane that is gone is not shown';
    $server->stop;
};

subtest 'an edge is killed: who waits in a lane is lost, too, and counted' => sub {
    my $server = lane_server( qw(--workers 2 --lane), '/report=1', '--lane', '/import=1' );
    $server->{may_crash} = 1;
    like $server->log, qr/warn: --lane: all lanes together may occupy all workers, /,
        'two lanes of two workers: a warning';
    my @clients = ask_many( $server, '/report', 1, 'GET /report?rNUMBER', 10 .. 13 );
    push @clients, ask_many( $server, '/import', 1, 'GET /import?iNUMBER', 10, 11 );
    is $server->board->{totals}{lost}, 0, 'none is lost';
    kill KILL => $server->edges;
    ok until_true( 20, sub { $server->board->{totals}{lost} == 4 } ), 'three and one'
        or diag $server->board->{totals}{lost};
    go('all');
    ok until_true(
        20,
        sub {
            ( eval { $server->ask('GET /report?after')->body } // '' ) eq 'after';
        }
        ),
        'the server goes on';
};

subtest 'a lane that may have no more than the queue' => sub {
    my $server = lane_server( qw(--workers 1 --lane), '/report=1,queue=0' );
    my ($first) = ask_many( $server, '/report', 1, 'GET /report?r1', 1 );
    is $server->ask('GET /report?r2')->status, 503, 'queue=0: nobody waits';
    go('all');
    is $first->response->status, 200, 'the first is served';
    $server->stop;
};

# Each place that becomes free was left to it for 20 ms
subtest 'an edge that hangs does not hold up the lane in another' => sub {
    my $server = lane_server(qw(--workers 3 --edges 2 --lane /report=1));
    my $has    = sub {
        return +{ map { $_->{pid} => $_->{connections} } @{ $server->board->{edges} } };
    };
    until_true( 20, sub { keys %{ $has->() } == 2 } );
    my $client = $server->connect;
    $client->send( request('GET /report?r1') );
    wait_lane( $server, '/report', running => 1 );
    my $now = $has->();
    my ($other) = grep { !$now->{$_} } keys %$now;
    my @waits;

    for ( 1 .. 20 ) {    # at once, or the edge that was the last to accept accepts all
        my @more = map { $server->connect } 1 .. 20;
        $_->send( request('GET /report?w') ) for @more;
        push @waits, @more;
        wait_lane( $server, '/report', waiting => scalar @waits );
        last if $has->()->{$other};
    }
    ok $has->()->{$other}, 'a request waits in the other edge';
    kill STOP => $other;
    go('all');
    is $client->response->body, 'r1', 'that which runs ends';
    my %took;
    for my $path (qw(shop report)) {
        my $began = time;
        my @wrong = grep { $client->ask("GET /$path?$_")->body ne $_ } 1 .. 150;
        $took{$path} = time - $began;
        is_deeply \@wrong, [], "$path: all are served while it hangs";
    }
    cmp_ok $took{report}, '<', $took{shop} + 2, 'and hardly wait for it';
    kill CONT => $other;
    is scalar( grep { $_->response->status == 200 } @waits ), scalar @waits, 'so are those that waited there';
    $server->stop;
};

done_testing;
