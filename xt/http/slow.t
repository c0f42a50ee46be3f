use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Time limits. A slow client costs no worker, gets 408 when nothing was answered yet, and a FIN when it was
# idle.

my $server = start_server(
    <<'APP', qw(--workers 1 --header-timeout 1 --body-timeout 1 --body-rate 1000 --keepalive-timeout 1 --write-timeout 1) );
sub {
    my $env = shift;
    return [ 200, [], [ 'x' x 20_000_000 ] ] if $env->{PATH_INFO} eq '/big';
    return [ 200, [], ['ok'] ];
}
APP

# Sends the pieces with this pause between; returns the status and the seconds until it came
sub dribble {
    my ( $pause, $first, @piece ) = @_;
    my $client = $server->connect;
    my $answer;
    my $seconds = elapsed {
        $client->send($first);
        for my $piece (@piece) {
            $answer = $client->response( patience => $pause );
            last if $answer->status ne 'timeout';
            $client->send($piece);
        }
        $answer = $client->response( patience => 4 ) if $answer->status eq 'timeout';
    };
    return ( $answer, $seconds, $client );
}

sub refused_in_time {
    my ( $name, @bytes ) = @_;
    my $limit  = $bytes[0] =~ /\r\n\r\n/ ? 'body-timeout' : 'header-timeout';
    my $before = $server->board->{totals}{refusals}{$limit};
    my ( $answer, $seconds, $client ) = dribble( 0.2, @bytes );
    is $answer->status, 408, "$name: 408";
    ok $answer->closes, 'it says close';
    cmp_ok $seconds, '>', 0.7, 'not before its time';
    ok $server->wait_board( sub { $_[0]{totals}{refusals}{$limit} == $before + 1 } ), "by --$limit";
    is $client->end(3), 'eof', 'closed by FIN';
    return;
}

subtest 'a head that takes too long' => sub {
    http1_only('a head becomes a frame when it is complete; for frames see xt/http2/limits.t');
    refused_in_time( 'the request line',      'GET', split //, ' /aaaaaaaaaaaaaaaaaaaa' );
    refused_in_time( 'the fields',            "GET / HTTP/1.1\r\nHost: a\r\n", map {"X-$_: y\r\n"} 1 .. 20 );
    refused_in_time( 'nothing behind a byte', 'G', ('') x 20 );
};

subtest 'the second head on a connection as well' => sub {
    http1_only('a head becomes a frame when it is complete; for frames see xt/http2/limits.t');
    my $client = $server->connect;
    is $client->ask('GET /')->status, 200, 'the first';
    $client->send("GET / HTTP/1.1\r\nHo");
    is $client->response( patience => 4 )->status, 408, 'the second';
};

subtest 'a body below the rate' => sub {
    refused_in_time(
        'with a length',
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n",
        ('aaaaa') x 20
    );
    refused_in_time(
        'chunked',
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        ("1\r\na\r\n") x 20
    );
};

subtest 'a slow body above the rate is served' => sub {
    my ( $answer, $seconds )
        = dribble( 0.2, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6000\r\n\r\n", ( 'a' x 600 ) x 10 );
    is $answer->status, 200, 'status 200';
    cmp_ok $seconds, '>', 1.5, 'after longer than the window';
};

subtest 'an idle connection is closed by FIN, without a byte' => sub {
    my $client = $server->connect;
    is $client->ask('GET /')->status, 200, 'used once';
    my $before  = $server->board->{totals}{closed}{'keepalive-timeout'};
    my $seconds = elapsed { is $client->end(5), 'eof', 'then FIN' };
    cmp_ok $seconds, '>', 0.7, 'not before its time';
    ok $server->wait_board( sub { $_[0]{totals}{closed}{'keepalive-timeout'} == $before + 1 } ),
        'by --keepalive-timeout';
};

subtest 'a connection that never says anything is closed' => sub {
    my $client = $server->connect;
    like $client->response( patience => 6 )->status, qr/\A(?:eof|408)\z/, 'in the end';
};

subtest 'who does not read is cut off, and costs no worker' => sub {
    my $client = $server->connect( rcvbuf => 4096 );
    $client->send( request('GET /big') );
    is $server->ask('GET /')->status, 200, 'meanwhile others are served';
    ok $server->wait_board( sub { $_[0]{totals}{closed}{'write-timeout'} == 1 } ), 'it is cut off';
    my $bytes = length $client->rest(5);
    cmp_ok $bytes, '<', 20_000_000, "it got $bytes bytes";
    ok $client->{end}, "and the end: $client->{end}";
};

subtest 'who reads slowly but steadily gets all' => sub {
    my $client = $server->connect( rcvbuf => 65_536 );
    $client->send( request('GET /big') );
    my $bytes = 0;
    for ( 1 .. 10 ) {
        $bytes += length $client->some( 200_000, 1 );
        select undef, undef, undef, 0.2;
    }
    while ( my $n = length $client->some( 1, 2 ) ) { $bytes += $n; last if $bytes > 20_000_000 }
    cmp_ok $bytes, '>', 20_000_000, 'every byte';
};

subtest 'two hundred slow ones at a time' => sub {
    my @slow;
    for ( 1 .. 200 ) {
        push @slow, $server->connect;
        $slow[-1]->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nab");
    }
    my %status;
    $status{ $server->ask('GET /')->status }++ for 1 .. 20;
    is_deeply \%status, { 200 => 20 }, 'others are served';
    is scalar( grep { $_->response( patience => 4 )->status eq '408' } @slow ), 200, 'each is told 408';
};

$server->stop;
done_testing;
