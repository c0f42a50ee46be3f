use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Expect: 100-continue (RFC 9110 10.1.1): told to go on as soon as the head is accepted, never when the body
# is not wanted

my $server   = start_server( corpus_file('echo.psgi'), qw(--workers 1 --max-body 1000) );
my $CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

subtest 'the client that waits for 100 gets it before it sends the body' => sub {
    for my $value ( '100-continue', '100-Continue', '100-CONTINUE' ) {
        my $client = $server->connect;
        $client->send("POST /x HTTP/1.1\r\nHost: a\r\nExpect: $value\r\nContent-Length: 5\r\n\r\n");
        is $client->some( length $CONTINUE, 3 ), $CONTINUE, $value;
        $client->send('hello');
        my $answer = $client->response;
        is $answer->body,                'POST /x [hello]', 'then the answer';
        is scalar( $answer->interim ),   0,                 'and no second 100';
        is $client->ask('GET /y')->body, 'GET /y []',       'the connection goes on';
    }
};

subtest 'chunked bodies as well' => sub {
    my $client = $server->connect;
    $client->send(
        "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    is $client->some( length $CONTINUE, 3 ), $CONTINUE, 'status 100';
    $client->send("5\r\nhello\r\n0\r\n\r\n");
    is $client->response->body, 'POST /x [hello]', 'the answer';
};

subtest 'a body that is there already' => sub {
    my $client = $server->connect;
    my $answer = $client->ask( 'POST /x', 'Expect: 100-continue', \'hello' );
    is $answer->body, 'POST /x [hello]', 'is answered';
    cmp_ok scalar( $answer->interim ), '<=', 1, 'with one 100 at most';
    is $client->ask('GET /y')->body, 'GET /y []', 'the connection goes on';
};

subtest 'no body announced, nothing to go on with' => sub {
    my $answer = $server->ask( 'GET /x', 'Expect: 100-continue' );
    is $answer->status, 200, 'answered';
    $answer = $server->ask( 'POST /x', 'Expect: 100-continue', 'Content-Length: 0' );
    is $answer->status, 200, 'answered with length 0';
};

subtest 'other expectations are refused' => sub {
    for my $value ( '1', '200-ok', '100-continu', '100-continue-later', 'x=y' ) {
        my $client = $server->connect;
        my $answer = $client->ask( 'POST /x', "Expect: $value", 'Content-Length: 5' );
        is $answer->status, 417, "Expect: $value";
        ok $answer->closes, 'says close';
        is $client->end, 'eof', 'and does';
    }
};

subtest 'a body over the limit: 413 and no 100' => sub {
    my $client = $server->connect;
    $client->send("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
    my $answer = $client->response;
    is $answer->status,            413, 'status 413';
    is scalar( $answer->interim ), 0,   'no 100';
};

subtest 'HTTP/1.0 knows no interim response' => sub {
    http1_only('HTTP/1.0');
    my $client = $server->connect;
    $client->send("POST /x HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    is $client->some( 1, 0.3 ), '', 'nothing comes before the body';
    $client->send('hello');
    my $answer = $client->response;
    is $answer->body,              'POST /x [hello]', 'the answer';
    is scalar( $answer->interim ), 0,                 'without 100';
};

subtest 'in a pipeline' => sub {
    my $client = $server->connect;
    $client->send( request('GET /1')
            . "POST /2 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n" );
    is $client->response->body,              'GET /1 []', 'the first answer';
    is $client->some( length $CONTINUE, 3 ), $CONTINUE,   'then 100';
    $client->send( 'ok' . request('GET /3') );
    is join( ' ', map { $_->body } $client->responses(2) ), 'POST /2 [ok] GET /3 []', 'then the others';
};

$server->stop;
done_testing;
