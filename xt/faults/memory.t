use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Sirius::Test::Faults;
use Traffic;

# No memory, at each allocation of a request in turn: a whole answer, a refusal or a visible cut, and then the
# next request

my $faults = Sirius::Test::Faults->new;
my $server = $faults->start( app => $APP, args => [ qw(--workers 1), '--access-log', "$faults->{dir}/log" ] );
my ($worker) = $server->workers;
my @owner    = $server->owners;
my $MAX      = 60;                 # allocations of xs and src for one request; more would be a defect as well

# What may become of a request. "eof": not a byte was sent; "cut": a part of what a head has announced
my $KNOWN = qr/\A(?:whole|500|503|507|eof|cut|reset)\z/;

# Each allocation in turn, until there is none left to fail
sub in_turn {
    my $kind = shift;
    my ( @wrong, %result );
    for my $number ( 1 .. $MAX ) {
        my $before = $faults->injected('memory');
        $faults->nth( memory => $number );
        my ($result) = map {s/\A.*: //r} every_kind( $server, $kind );
        my $failed = $faults->injected('memory') > $before;
        $faults->clear;
        push @wrong, "allocation $number: $result" if $result !~ $KNOWN;
        my $after = $server->ask('GET /pid');
        push @wrong, "after allocation $number: " . $after->status if $after->body ne $worker;
        $result{$result}++;
        return ( $number - 1, \@wrong, \%result ) if !$failed;
    }
    return ( $MAX, ['there is no end to it'], \%result );
}

for my $kind (
    'keep-alive', 'pipelined', 'small body', 'spooled body', 'chunked body',
    'Expect: 100-continue',
    qw(array stream sendfile HEAD HTTP/1.0)
    )
{
    my ( $failures, $wrong, $result ) = in_turn($kind);
    is_deeply $wrong, [], "$kind: $failures failures, then the same worker serves: " . join ', ',
        map {"$_ $result->{$_}"} sort keys %$result;
}

subtest 'bytes that wait' => sub {
    my @wrong;
    my $failures = 0;
    for my $number ( 1 .. $MAX ) {
        my $before = $faults->injected('memory');
        my $client = $server->connect;
        $faults->nth( memory => $number );
        $client->send($_), select( undef, undef, undef, 0.01 )
            for 'GET /bytes', "/100 HTTP/1.1\r\nHost: a\r\nX: ", 'y' x 5000,
            "\r\n\r\nGET /bytes/50 HTTP/1.1\r\nHo",
            "st: a\r\n\r\n";
        my $first  = $client->response;
        my $second = $first->status eq '200' && !$first->closes ? $client->response : $first;
        my $failed = $faults->injected('memory') > $before;
        $faults->clear;
        push @wrong, map { $_->status } grep { $_->status !~ /\A(?:200|$KNOWN)\z/ } $first, $second;
        push @wrong, 'the next' if $server->ask('GET /pid')->body ne $worker;
        last if !$failed;
        $failures++;
    }
    is_deeply \@wrong, [], "$failures failures, all seen by the client";
    cmp_ok $failures, '>', 1,    'there were some';
    cmp_ok $failures, '<', $MAX, 'and an end of them';
};

subtest 'a HEAD that is refused has no body' => sub {
    my ( @wrong, %status );
    for my $number ( 1 .. 2 ) {
        my $client = $server->connect;
        $faults->nth( memory => $number );
        $client->send($_), select( undef, undef, undef, 0.05 )
            for 'HEAD /bytes/10 HTTP/1.1', "\r\nHost: a\r\n\r\n";
        my $answer = $client->response( head => 1 );
        my $end    = $client->end(0.05);
        $status{ $answer->status }++;
        push @wrong, $end if $end =~ /\Abytes/;
        $faults->clear;
    }
    is_deeply \@wrong, [], 'nothing behind the head';
    is $status{503}, 1, 'it was refused once' or diag explain \%status;
};

subtest 'requests that wait for a worker' => sub {
    my $two = $faults->start( app => $APP, args => [qw(--workers 2)] );
    my ( %status, $failures );
    for my $number ( 1 .. 12 ) {
        my @long = map { $two->connect } 1 .. 2;
        $_->send( request('GET /sleep/0.1') ) for @long;
        select undef, undef, undef, 0.02;
        my $before = $faults->injected('memory');
        my @client = map { $two->connect } 1 .. 6;
        $faults->nth( memory => $number );
        $_->send( request( 'POST /', \'x' ) ) for @client;
        $status{ $_->response->status }++ for @long, @client;
        $failures += $faults->injected('memory') - $before;
        $faults->clear;
    }
    cmp_ok $failures, '>=', 6, "$failures failures";    # one for each connection, at least
    is_deeply [ grep { !/\A(?:200|503|eof|reset)\z/ } keys %status ], [], 'seen by the client'
        or diag explain \%status;
    cmp_ok $status{200}, '>=', 8 * 12 - $failures, 'each costs one request at most';
    is_whole( $two, 'and then all is served' );
    $two->stop;
};

# The process that notices first that an edge is gone meets the fault: the supervisor, a worker, or the next
# edge
for my $workers ( 0, 2 ) {
    subtest
        "each allocation, descriptor and place in an epoll set of the next edge in turn, $workers workers" =>
        sub {
        my $two = $faults->start(
            app  => $APP,
            args => [
                '--workers', $workers, '--err-respawn-interval', 0.1, '--access-log', "$faults->{dir}/two"
            ],
            may_crash => 1,
        );
        $two->wait_log( qr/ready after /, 20 );
        my @before = $two->workers;
        for my $fault (qw(memory handle watch)) {
            my ( @wrong, $number );
            for ( $number = 1; $number <= $MAX; $number++ ) {
                my ( $before, $edge ) = ( $faults->injected($fault), $two->owners );
                $faults->nth( $fault => $number );
                kill KILL => $edge;
                my $served = until_true(
                    15,
                    sub {
                        my ($next) = $two->owners;
                        return $next && $next != $edge && eval { $two->ask('GET /bytes/5')->status eq '200' };
                    }
                );
                my $failed = $faults->injected($fault) > $before;
                $faults->clear;
                push @wrong, $number if !$served;
                last if !$served || !$failed;
            }
            is_deeply \@wrong, [], "$fault: served again each time";
            cmp_ok $number, '>', 3,    "$number were needed";
            cmp_ok $number, '<', $MAX, 'and no more';
        }
        is_deeply [ $two->workers ], \@before, 'the same workers';
        unlike $two->log, qr/Invalid argument/, 'each says what it lacks';
        is_whole( $two, 'in the end' );
        $two->stop;
        };
}

subtest 'one of five, while others ask as well' => sub {
    my $load = traffic( $server, clients => 3 );
    $faults->set( memory => 0.2 );
    my $before = $faults->injected('memory');
    my @result = map { every_kind($server) } 1 .. 3;
    cmp_ok $faults->injected('memory') - $before, '>', 50, 'it has happened';
    $faults->clear;
    is_deeply [ grep { s/\A.*: //r !~ $KNOWN } @result ], [], 'no answer is wrong';
    my $others = $load->stop;
    is_deeply [ grep { $_ !~ $KNOWN } keys %$others ], [], 'nor any of the others';
    is_whole( $server, 'then all is well' );
    is_deeply [ $server->workers, $server->owners ], [ $worker, @owner ], 'with the same worker';
};

subtest 'connections that get no answer' => sub {
    my $count = sub {
        my $sum = 0;
        $sum += $_
            for $server->log
            =~ /error: (\d+) connections? w\w+ closed before a response was complete because memory ran out/g;
        return $sum;
    };
    my $before = $count->();
    $faults->only($_) for $server->edges;
    $faults->set( memory => 1 );
    my @client = map { $server->connect } 1 .. 7;
    $_->send( request('GET /bytes/9') ) for @client;
    is scalar( grep { $_->response->status =~ m{\A(?:eof|reset)\z} } @client ), 7, 'seven of them'
        or diag $server->log;
    $faults->clear;
    is $server->ask('GET /pid')->body, $worker, 'then all is well';
    $server->stop;
    cmp_ok $count->() - $before, '>=', 7, 'the log has them' or diag $server->log;
};

done_testing;
