use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Errno qw(ECONNRESET EPIPE);
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::Faults;
use Traffic;

# A peer that is gone at any step of a conversation costs nobody else anything, and leaves nothing behind

my $faults = Sirius::Test::Faults->new;
my $server = $faults->start(
    app  => $APP,
    args => [ qw(--workers 1 --write-timeout 1), '--tmpdir', "$faults->{dir}" ]
);
my ($worker) = $server->workers;
my ($owner)  = $server->owners;
my $files    = files();
$server->ask('GET /bytes/1');

# Nobody but root may look into an edge; its connections are told by the scoreboard
sub files {
    return $server->ask('GET /open')->body if $> && $server->edges;
    return scalar( () = Sirius::Test::Server->descriptors($owner) );
}

sub nothing_is_left {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok until_true( 10, sub { files() == $files } ), "$files descriptors, as before" or diag files();
    is_deeply [ $server->workers, $server->owners ], [ $worker, $owner ], 'the same worker';
    return;
}

# Bytes that are sent, how many of the answer are read before the reset, and how many clients do so each time
my $post = "POST / HTTP/1.1\r\nHost: a\r\n";
my @STEP = (
    [ 'connected'                    => '' ],
    [ 'in the request line'          => 'GET /by' ],
    [ 'in the head'                  => "GET /bytes/9 HTTP/1.1\r\nHost: a\r\nX" ],
    [ 'before the body'              => "${post}Content-Length: 10\r\n\r\n" ],
    [ 'after a 100'                  => "${post}Expect: 100-continue\r\nContent-Length: 10\r\n\r\n", 25 ],
    [ 'in the body'                  => "${post}Content-Length: 10\r\n\r\nx" ],
    [ 'in a spooled body'            => "${post}Content-Length: 200000\r\n\r\n" . 'x' x 100_000 ],
    [ 'in a chunk'                   => "${post}Transfer-Encoding: chunked\r\n\r\n10\r\nx" ],
    [ 'in a chunk size'              => "${post}Transfer-Encoding: chunked\r\n\r\n1" ],
    [ 'in a trailer'                 => "${post}Transfer-Encoding: chunked\r\n\r\n0\r\nX: " ],
    [ 'while the application runs'   => "GET /sleep/0.02 HTTP/1.1\r\nHost: a\r\n\r\n" ],
    [ 'with more behind it'          => request('GET /sleep/0.02') . request('GET /bytes/5') x 3 . 'GET' ],
    [ 'in the head of the answer'    => request('GET /bytes/1000000'),         10 ],
    [ 'in its body'                  => request('GET /bytes/1000000'),         5000 ],
    [ 'in a stream'                  => request('GET /stream/3000000'),        5000, 1 ],
    [ 'in a file'                    => request('GET /file'),                  5000 ],
    [ 'in the answer to a refused'   => "BAD\r\n\r\n",                         10 ],
    [ 'with an answer that is whole' => request('GET /bytes/9'),               80 ],
    [ 'in the last answer'           => "GET /bytes/1000000 HTTP/1.0\r\n\r\n", 5000 ],
);

subtest 'a reset at every step' => sub {
    for my $step (@STEP) {
        my ( $name, $bytes, $read, $count ) = @$step;
        my $beside = $server->connect;
        $beside->ask('GET /bytes/1');
        for my $way (qw(abort close finish)) {
            my @client = map { $server->connect( rcvbuf => 4096 ) } 1 .. $count || 4;
            $_->send( $bytes, 0.2 ) for @client;
            if ($read) { $_->some( $read, 1 ) for @client }
            $_->$way for @client;
            sleep 0.01;
        }
        is $beside->ask('GET /bytes/1000')->status, 200, "$name: another connection";
    }
    nothing_is_left();
};

subtest 'a request that waits for its turn' => sub {
    my $long = $server->connect;
    $server->board;    # its reader is there before the request
    $long->send( request('GET /sleep/1') );
    $server->wait_busy( 1, qr{/sleep/1} );
    my @client = map { $server->connect } 1 .. 10;
    $_->send( request( 'POST /', \'x' ) ) for @client;
    $server->wait_waiting(10);
    $_->abort for @client[ 0 .. 4 ];
    is $long->response->status, 200, 'what runs is answered';
    is_deeply [ map { $_->response->status } @client[ 5 .. 9 ] ], [ (200) x 5 ], 'and who still waits';
    $_->close for $long, @client[ 5 .. 9 ];
    nothing_is_left();
};

subtest 'calls that say so' => sub {
    for my $error ( ECONNRESET, EPIPE ) {
        my $name   = do { local $! = $error; "$!" };
        my $before = $faults->injected('reset');
        $faults->set( reset => [ 0.1, $error ] );
        my @result = map { every_kind($server) } 1 .. 2;
        $faults->clear;
        cmp_ok $faults->injected('reset') - $before, '>', 3, $name;
        is_deeply [ grep { !/: (?:whole|eof|cut|reset)\z/ } @result ], [], 'whole, or visibly cut';
        is_whole( $server, 'then all is well' );
    }
    nothing_is_left();
};

# RFC 9112 8: without a length only the end of the connection tells that it is whole, so a cut must not look
# like one
subtest 'HTTP/1.0: what is cut does not look whole' => sub {
    my $client = $server->connect( rcvbuf => 4096 );
    $client->send("GET /stream/5000000 HTTP/1.0\r\n\r\n");
    my $bytes = length $client->some(1);
    ok until_true( 10, sub { files() == $files } ), 'the server gives up a client that does not read';
    $bytes += length $client->rest(5);
    cmp_ok $bytes, '<', 5_000_000, "$bytes bytes came";
    is $client->end, 'reset', 'and then a reset';
    nothing_is_left();
};

$server->stop;
done_testing;
