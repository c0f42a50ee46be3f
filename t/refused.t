use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# Requests that are not valid, or too large, get their status; framing is strict

my $server = start_server( <<'APP', qw(--workers 1 --max-body 1000) );
sub { [ 200, [], ['reached'] ] }
APP
my $host = "Host: a\r\n";
for my $case (
    [ 400, "GET / HTTP/1.1\r\n\r\n" ],
    [ 400, "GET / HTTP/1.1\r\n${host}Host: b\r\n\r\n" ],
    [ 400, "GET /a b HTTP/1.1\r\n$host\r\n" ],
    [ 400, "GET / HTTP/1.1\r\n${host}Bad Name: x\r\n\r\n" ],
    [ 400, "GET / HTTP/1.1\r\n${host}X: a\x00b\r\n\r\n" ],
    [ 400, "GET / HTTP/1.1\r\n$host folded: x\r\n\r\n" ],
    [ 400, "POST / HTTP/1.1\r\n${host}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" ],
    [ 400, "POST / HTTP/1.1\r\n${host}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd" ],
    [ 400, "POST / HTTP/1.1\r\n${host}Content-Length: +3\r\n\r\nabc" ],
    [ 400, "POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nx\r\n" ],
    [ 501, "POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" ],
    [ 505, "GET / HTTP/3.0\r\n$host\r\n" ],
    [ 413, "POST / HTTP/1.1\r\n${host}Content-Length: 1001\r\n\r\n" ],
    [ 414, 'GET /' . 'a' x 20_000 . " HTTP/1.1\r\n$host\r\n" ],
    [   431,
        "GET / HTTP/1.1\r\n${host}" . join( '', map { "X-$_: " . 'a' x 1000 . "\r\n" } 1 .. 100 ) . "\r\n"
    ],
    )
{
    my ( $status, $bytes ) = @$case;
    my $client = $server->connect;
    $client->send($bytes);
    ( my $name = substr $bytes, 0, 60 ) =~ s/[^ -~]/./g;
    is $client->response->status, $status, "$status: $name";
}
is $server->ask('GET /')->body, 'reached', 'others are served';

# Two requests in one piece are two requests, whose answers come in order
my $client = $server->connect;
$client->send( request( 'POST /', \'abc' ) . request('GET /') . request('GET /') );
is $client->response->status, 200, 'pipelined' for 1 .. 3;
$server->stop;
done_testing;
