use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Limits: each refusal is a whole answer with "Connection: close", read by a client that is still sending

my $server = start_server( corpus_file('echo.psgi'),
    qw(--workers 1 --max-body 200 --max-request-line 100 --max-header-bytes 400 --max-header-fields 10 --body-memory 100)
);

subtest 'the request line: 414' => sub {
    my $path = 'a' x ( 100 - length 'GET / HTTP/1.1' );
    every_delivery( $server, 'at the limit',  request("GET /$path"),    '200 after' );
    every_delivery( $server, 'one byte over', request("GET /${path}a"), '414 closed' );
    every_delivery( $server, 'endless',       'GET /' . 'a' x 500,      '414 closed' );
    every_delivery(
        $server,
        'a method that is none',
        'A' x 500 . " / HTTP/1.1\r\nHost: a\r\n\r\n",
        '400 closed'
    );
};

subtest 'the head: 431' => sub {
    my $head = request( 'GET /', 'X: ' );
    my $fill = 'v' x ( 400 - length $head );
    every_delivery( $server, 'at the limit',  request( 'GET /', "X: $fill" ),                 '200 after' );
    every_delivery( $server, 'one byte over', request( 'GET /', "X: v$fill" ),                '431 closed' );
    every_delivery( $server, 'endless value', "GET / HTTP/1.1\r\nHost: a\r\nX: " . 'v' x 600, '431 closed' );
    every_delivery( $server, 'endless name',  "GET / HTTP/1.1\r\nHost: a\r\n" . 'v' x 600,    '431 closed' );
};

subtest 'the number of fields: 431' => sub {
    every_delivery( $server, 'at the limit', request( 'GET /', map {"X-$_: 1"} 1 .. 9 ),  '200 after' );
    every_delivery( $server, 'one over',     request( 'GET /', map {"X-$_: 1"} 1 .. 10 ), '431 closed' );
};

subtest 'the body: 413' => sub {
    every_delivery( $server, 'a length at the limit', request( 'POST /', \( 'x' x 200 ) ),   '200 after' );
    every_delivery( $server, 'a length over it', request( 'POST /', 'Content-Length: 201' ), '413 closed' );
    my $te = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    every_delivery(
        $server,
        'chunks at the limit',
        $te . ( "14\r\n" . 'x' x 20 . "\r\n" ) x 10 . "0\r\n\r\n",
        '200 after'
    );
    every_delivery(
        $server,
        'chunks over it',
        $te . ( "14\r\n" . 'x' x 20 . "\r\n" ) x 10 . "1\r\nx\r\n0\r\n\r\n",
        '413 closed'
    );
    every_delivery( $server, 'a chunk size over it', $te . "c9\r\n", '413 closed' )
        if http1( 'a chunk size over it', 'there are no chunks' );
};

subtest '10 MB that nobody wants: the client reads 413, a hundred times out of a hundred' => sub {
    my %result;
    for my $try ( 1 .. 100 ) {
        my $client = $server->connect;
        my $head   = $try % 2 ? 'Content-Length: 10000000' : 'Transfer-Encoding: chunked';
        my $chunk  = $try % 2 ? 'x' x 10_000               : "2710\r\n" . 'x' x 10_000 . "\r\n";
        $client->send("POST / HTTP/1.1\r\nHost: a\r\n$head\r\n\r\n");
        for ( 1 .. 1000 ) { last if $client->send($chunk) < length $chunk }
        my $answer = $client->response;
        $result{ $answer->status . ( $answer->closes ? ' closes' : '' ) }++;
    }
    is_deeply \%result, { '413 closes' => 100 }, 'always';
};

subtest 'a chunked body without an end' => sub {
    my $client = $server->connect;
    $client->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    my $sent = 0;
    for ( 1 .. 100_000 ) {
        my $n = $client->send("1\r\na\r\n");
        $sent += $n;
        last if $n < 6;
    }
    is $client->response->status, 413, 'is answered';
};

subtest 'after all that' => sub {
    is $server->ask('GET /')->status, 200, 'the server serves';
};

$server->stop;
done_testing;
