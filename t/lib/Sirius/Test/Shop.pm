package Sirius::Test::Shop;

# What an application must do end to end, whatever its framework. Each framework implements the same paths: /
# /query /form /json /upload /thing/7 /go /empty /die

use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use Exporter    qw(import);
use File::Temp  ();
use Sirius::Test;
use Test::More;

our @EXPORT = qw(listeners shop);

my $FORM = 'Content-Type: application/x-www-form-urlencoded';

# Options for a TCP port and a unix socket
sub listeners {
    my $dir = File::Temp::tempdir( CLEANUP => 1 );
    return ( qw(--listen 127.0.0.1:0 --listen), "unix:$dir/sock" );
}

# Tests of a server that runs with --body-memory 64k and listeners()
sub shop {
    my $server = shift;
    subtest $_->[0] => sub { $_->[1]->($server) }
        for [ 'GET and the query' => \&_get ], [ 'POST' => \&_post ],
        [ 'multipart, larger than --body-memory' => \&_multipart ],
        [ 'errors' => \&_errors ], [ 'HEAD and keep-alive' => \&_kept ],
        [ 'pipelined, over TCP and a unix socket' => \&_pipelined ];
    return;
}

sub _get {
    my $server = shift;
    my $client = $server->connect;
    my $answer = $client->ask('GET /');
    is $answer->status,                                200,                  'found';
    is $answer->body,                                  "Hello \xe2\x98\xba", 'characters as UTF-8';
    is $answer->header('Content-Length'),              9,                    'their bytes are counted';
    is $client->ask('GET /query?b=%26&a=1&a=2')->body, 'a=1;a=2;b=&',        'several values, escapes';
    is $client->ask( 'PUT /thing/7', \'new' )->body,   '7=new',              'PUT with a part of the path';
    like $client->ask('GET /go')->header('Location'), qr{\A(?:http://a(?::\d+)?)?/query\?a=1\z},
        'a redirection';
    is $client->ask('GET /empty')->status,   204,   'no content';
    is $client->ask('GET /query?a=1')->body, 'a=1', 'and the connection goes on';
    return;
}

sub _post {
    my $server = shift;
    is $server->ask( 'POST /form', $FORM, \'a=1&a=2&b=x+y' )->body, 'a=1;a=2;b=x y', 'a form';
    my $client = $server->connect;
    $client->send(
        request( 'POST /form', $FORM, 'Transfer-Encoding: chunked' ) . "3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n" );
    is $client->response->body, 'a=1;b=2', 'a form in chunks';
    my $answer = $server->ask( 'POST /json', 'Content-Type: application/json', \'{"a":40,"b":2}' );
    is $answer->body, '{"sum":42}', 'JSON in and out';
    like $answer->header('Content-Type'), qr{\Aapplication/json}, 'with its type';
    return;
}

sub _multipart {
    my $server = shift;
    my $file   = join '',     map { chr( $_ * 7 % 256 ) } 1 .. 1_000_003;
    my $body   = join "\r\n", '--cut', 'Content-Disposition: form-data; name="note"', '', 'a note',
        '--cut', 'Content-Disposition: form-data; name="file"; filename="big.bin"',
        'Content-Type: application/octet-stream', '', $file, '--cut--', '';
    my $client = $server->connect;
    is $client->ask( 'POST /upload', 'Content-Type: multipart/form-data; boundary=cut', \$body )->body,
        'big.bin application/octet-stream 1000003 ' . md5_hex($file) . ' a note', "upload $_"
        for 1, 2;
    return;
}

sub _errors {
    my $client = shift->connect;
    is $client->ask('GET /nowhere')->status, 404, 'not found';
    is $client->ask('GET /die')->status,     500, 'an exception';
    is $client->ask('GET /')->status,        200, 'the same connection goes on';
    return;
}

sub _kept {
    my $server = shift;
    my $client = $server->connect;
    my $answer = $client->ask('HEAD /');
    is $answer->status,                       200,    'HEAD';
    is $answer->header('Content-Length'),     9,      'has the length of GET';
    is $client->ask("GET /query?n=$_")->body, "n=$_", "request $_ of the connection" for 2 .. 10;
    my $old = $server->connect;
    is $old->ask( 'GET /query?a=0 HTTP/1.0', 'Host: a', 'Connection: keep-alive' )->body, 'a=0', 'HTTP/1.0';
    is $old->ask( 'GET /query?a=1 HTTP/1.0', 'Host: a' )->body, 'a=1', 'is kept too';
    is $old->end,                                               'eof', 'until it does not ask for that';
    return;
}

# 60 KiB one after another: whatever the framework does to %env, no request may be lost and the connection
# must be kept
sub _pipelined {
    my $server = shift;
    for my $to ( $server->listeners ) {
        my $client = $server->connect( to => $to );
        $client->send( join '', map { request( "GET /query?n=$_", 'X-Long: ' . 'y' x 1000 ) } 1 .. 60 );
        my $where = $to =~ /\Aunix/ ? 'a unix socket' : 'TCP';
        is_deeply [ map { $_->status eq '200' ? $_->body : $_->status } $client->responses(60) ],
            [ map {"n=$_"} 1 .. 60 ], "sixty over $where";
        $client->send( request( 'PUT /thing/8', \'a body' ) . request('GET /query?n=61') );
        is $client->response->body, '8=a body', 'one with a body';
        my $last = $client->response;
        is $last->body, 'n=61', 'and one behind it';
        ok !$last->closes, 'which is not the last of the connection';
        is $client->ask('GET /query?n=62')->body, 'n=62', 'that goes on';
    }
    return;
}

1;
