use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Digest::MD5 qw(md5_hex);
use Sirius::Test;

BEGIN { skip_without('Dancer2') }

# A Dancer2 application, end to end: its requests, uploads, sessions, errors, files and asynchronous responses

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 64k) );
package Shop;
use Dancer2;
use Digest::MD5;
set charset => 'UTF-8';
set logger  => 'console';
set session => 'Simple';
set show_errors => 0;

get  '/'      => sub { "Hello \x{263A}" };
get  '/query' => sub { my $in = query_parameters; join ';', map { my $k = $_; map { "$k=$_" } $in->get_all($k) } sort keys %$in };
post '/form'  => sub { my $in = body_parameters; join ';', map { my $k = $_; map { "$k=$_" } $in->get_all($k) } sort keys %$in };
post '/json'  => sub { my $in = decode_json( request->body ); send_as JSON => { sum => $in->{a} + $in->{b} } };
post '/upload' => sub {
    my $file = upload('file');
    join ' ', $file->filename, $file->type, $file->size, Digest::MD5::md5_hex( $file->content ), body_parameters->get('note');
};
get '/count' => sub { my $n = 1 + ( session('n') || 0 ); session n => $n; $n };
get '/go'    => sub { redirect '/query?a=1' };
get '/empty' => sub { status 204; '' };
get '/die'   => sub { die "on purpose\n" };
get '/self'  => sub { send_file __FILE__, system_path => 1, content_type => 'text/plain' };
get '/later' => sub { delayed { flush; content "part $_\n" for 1 .. 3; done; } };
put '/thing/:id' => sub { route_parameters->get('id') . '=' . request->body };
Shop->to_app;
APP

subtest 'GET and the query' => sub {
    my $answer = $server->ask('GET /');
    is $answer->status,                                200,                  'found';
    is $answer->body,                                  "Hello \xe2\x98\xba", 'characters as UTF-8';
    is $answer->header('Content-Length'),              9,                    'their bytes are counted';
    is $server->ask('GET /query?b=%26&a=1&a=2')->body, 'a=1;a=2;b=&',        'several values, escapes';
    is $server->ask( 'PUT /thing/7', \'new' )->body,   '7=new',              'PUT with a part of the path';
    like $server->ask('GET /go')->header('Location'), qr{\A(?:http://a)?/query\?a=1\z}, 'a redirection';
    my $client = $server->connect;
    $answer = $client->ask('GET /empty');
    is $answer->status,                      204,   'no content';
    is $client->ask('GET /query?a=1')->body, 'a=1', 'and the connection goes on';
};

subtest 'POST' => sub {
    my $form = 'Content-Type: application/x-www-form-urlencoded';
    is $server->ask( 'POST /form', $form, \'a=1&a=2&b=x+y' )->body, 'a=1;a=2;b=x y', 'a form';
    my $chunked = $server->connect;
    $chunked->send(
        request( 'POST /form', $form, 'Transfer-Encoding: chunked' ) . "3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n" );
    is $chunked->response->body, 'a=1;b=2', 'a form in chunks';
    my $answer = $server->ask( 'POST /json', 'Content-Type: application/json', \'{"a":40,"b":2}' );
    is $answer->body, '{"sum":42}', 'JSON in and out';
    like $answer->header('Content-Type'), qr{\Aapplication/json}, 'with its type';
};

subtest 'multipart, larger than --body-memory' => sub {
    my $file = join '',     map { chr( $_ * 7 % 256 ) } 1 .. 1_000_003;
    my $body = join "\r\n", '--cut', 'Content-Disposition: form-data; name="note"', '', 'a note',
        '--cut', 'Content-Disposition: form-data; name="file"; filename="big.bin"',
        'Content-Type: application/octet-stream', '', $file, '--cut--', '';
    my $client = $server->connect;
    is $client->ask( 'POST /upload', 'Content-Type: multipart/form-data; boundary=cut', \$body )->body,
        "big.bin application/octet-stream 1000003 " . md5_hex($file) . ' a note', "upload $_"
        for 1, 2;
};

subtest 'a session' => sub {
    my $cookie = $server->ask('GET /count')->header('Set-Cookie');
    ( my $id ) = $cookie =~ /\A([^;]+)/;
    is $server->ask( 'GET /count', "Cookie: $id" )->body, $_, "request $_ of it" for 2, 3;
    is $server->ask('GET /count')->body, 1, 'another one';
};

subtest 'errors' => sub {
    my $client = $server->connect;
    is $client->ask('GET /nowhere')->status, 404, 'not found';
    is $client->ask('GET /die')->status,     500, 'an exception';
    is $client->ask('GET /')->status,        200, 'the same connection goes on';
    ok $server->wait_log(qr/on purpose/), 'it is logged';
};

subtest 'responses that are more than a string' => sub {
    my $client = $server->connect;
    my $answer = $client->ask('GET /later');
    is $answer->status,                      200,                        'an asynchronous response';
    is $answer->body,                        "part 1\npart 2\npart 3\n", 'all of its parts';
    is $answer->header('Transfer-Encoding'), 'chunked',                  'chunked: the length was not known';
    my $text = Sirius::Test::Server::slurp( $server->dir . '/app.psgi' );
    is $client->ask('GET /self')->body, $text, 'send_file';
};

subtest 'HEAD and keep-alive' => sub {
    my $client = $server->connect;
    my $answer = $client->ask('HEAD /');
    is $answer->status,                       200,    'HEAD';
    is $answer->header('Content-Length'),     9,      'has the length of GET';
    is $client->ask("GET /query?n=$_")->body, "n=$_", "request $_ of the connection" for 2 .. 10;
    my $old = $server->connect;
    is $old->ask( 'GET /query?a=0 HTTP/1.0', 'Host: a', 'Connection: keep-alive' )->body, 'a=0', 'HTTP/1.0';
    is $old->ask( 'GET /query?a=1 HTTP/1.0', 'Host: a' )->body, 'a=1', 'is kept too';
    is $old->end,                                               'eof', 'until it does not ask for that';
};

$server->stop;
done_testing;
