use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Digest::MD5 qw(md5_hex);
use Sirius::Test;

BEGIN { skip_without('Mojolicious') }

# A Mojolicious application under PSGI, end to end. Its bodies are objects with getline, its chunked responses are framed by itself

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 64k) );
use Mojolicious::Lite -signatures;
use Digest::MD5;
use Mojo::JSON;
app->secrets( ['a secret'] );
app->log->level('error');
app->mode('production');

sub fields { my $in = shift; join ';', map { my $k = $_; map {"$k=$_"} @{ $in->every_param($k) } } @{ $in->names } }
get '/'       => sub ($c) { $c->render( text => "Hello \x{263A}" ) };
get '/query'  => sub ($c) { $c->render( text => fields( $c->req->query_params ) ) };
post '/form'  => sub ($c) { $c->render( text => fields( $c->req->body_params ) ) };
post '/json'  => sub ($c) { $c->render( json => { sum => $c->req->json->{a} + $c->req->json->{b} } ) };
post '/upload' => sub ($c) {
    my $file = $c->req->upload('file');
    $c->render( text => join ' ', $file->filename, $file->headers->content_type, $file->size, Digest::MD5::md5_hex( $file->slurp ), $c->param('note') );
};
get '/count'  => sub ($c) { $c->render( text => ++$c->session->{n} ) };
get '/go'     => sub ($c) { $c->redirect_to('/query?a=1') };
get '/empty'  => sub ($c) { $c->rendered(204) };
get '/die'    => sub ($c) { die "on purpose\n" };
get '/self'   => sub ($c) { $c->reply->file(__FILE__) };
get '/large'  => sub ($c) { $c->render( data => 'x' x 3_000_000 ) };
get '/chunks' => sub ($c) { $c->write_chunk( "part 1\n" => sub ($c, @) { $c->write_chunk( "part 2\n" => sub ($c, @) { $c->finish("part 3\n") } ) } ) };
get '/write'  => sub ($c) {
    $c->res->headers->content_length(14);
    $c->write( "part 1\n" => sub ($c, @) { $c->write("part 2\n") } );
};
get '/until_close' => sub ($c) { $c->write( "part 1\n" => sub ($c, @) { $c->write( "part 2\n" => sub ($c, @) { $c->finish } ) } ) };
put '/thing/:id' => sub ($c) { $c->render( text => $c->param('id') . '=' . $c->req->body ) };
app->start('psgi');
APP

subtest 'GET and the query' => sub {
    my $answer = $server->ask('GET /');
    is $answer->status,                                200,                  'found';
    is $answer->body,                                  "Hello \xe2\x98\xba", 'characters as UTF-8';
    is $answer->header('Content-Length'),              9,                    'their bytes are counted';
    is $server->ask('GET /query?b=%26&a=1&a=2')->body, 'a=1;a=2;b=&',        'several values, escapes';
    is $server->ask( 'PUT /thing/7', \'new' )->body,   '7=new',              'PUT with a part of the path';
    like $server->ask('GET /go')->header('Location'), qr{\A(?:http://a)?/query\?a=1\z}, 'a redirection';
    is $server->ask('GET /empty')->status, 204, 'no content';
};

subtest 'POST' => sub {
    my $form = 'Content-Type: application/x-www-form-urlencoded';
    is $server->ask( 'POST /form', $form, \'a=1&a=2&b=x+y' )->body, 'a=1;a=2;b=x y', 'a form';
    my $client = $server->connect;
    $client->send(
        request( 'POST /form', $form, 'Transfer-Encoding: chunked' ) . "3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n" );
    is $client->response->body, 'a=1;b=2', 'a form in chunks';
    my $answer = $server->ask( 'POST /json', 'Content-Type: application/json', \'{"a":40,"b":2}' );
    is $answer->body, '{"sum":42}', 'JSON in and out';
    like $answer->header('Content-Type'), qr{\Aapplication/json}, 'with its type';
};

subtest 'multipart, larger than --body-memory' => sub {
    my $file = join '',     map { chr( $_ * 7 % 256 ) } 1 .. 1_000_003;
    my $body = join "\r\n", '--cut', 'Content-Disposition: form-data; name="note"', '', 'a note',
        '--cut', 'Content-Disposition: form-data; name="file"; filename="big.bin"',
        'Content-Type: application/octet-stream', '', $file, '--cut--', '';
    is $server->ask( 'POST /upload', 'Content-Type: multipart/form-data; boundary=cut', \$body )->body,
        'big.bin application/octet-stream 1000003 ' . md5_hex($file) . ' a note', "upload $_"
        for 1, 2;
};

subtest 'a session' => sub {
    my $cookie = '';
    for ( 1 .. 3 ) {
        my $answer = $server->ask( 'GET /count', $cookie || () );
        is $answer->body, $_, "request $_ of it";
        $cookie = 'Cookie: ' . ( $answer->header('Set-Cookie') =~ /\A([^;]+)/ )[0];
    }
    is $server->ask('GET /count')->body, 1, 'another one';
};

subtest 'errors' => sub {
    is $server->ask('GET /nowhere')->status, 404, 'not found';
    is $server->ask('GET /die')->status,     500, 'an exception';
    is $server->ask('GET /')->status,        200, 'the server goes on';
    ok $server->wait_log(qr/on purpose/), 'it is logged';
};

subtest 'responses that are more than a string' => sub {
    my $text = Sirius::Test::Server::slurp( $server->dir . '/app.psgi' );
    is $server->ask('GET /self')->body,        $text,                      'a file';
    is $server->ask('GET /large')->body,       'x' x 3_000_000,            'many pieces';
    is $server->ask('GET /write')->body,       "part 1\npart 2\n",         'in parts with a length';
    is $server->ask('GET /until_close')->body, "part 1\npart 2\n",         'in parts without one';
    is $server->ask('GET /chunks')->body,      "part 1\npart 2\npart 3\n", 'in chunks';
};

subtest 'HEAD' => sub {
    my $answer = $server->ask('HEAD /');
    is $answer->status,                   200, 'found';
    is $answer->header('Content-Length'), 9,   'has the length of GET';
};

subtest 'keep-alive' => sub {
    my $client = $server->connect;
    is $client->ask("GET /query?n=$_")->body, "n=$_", "request $_ of the connection" for 1 .. 5;
    is $client->ask('HEAD /')->status,        200,    'HEAD';
    is $client->ask('GET /empty')->status,    204,    'no content';
    is $client->ask('GET /nowhere')->status,  404,    'not found';
    is $client->ask('GET /die')->status,      500,    'an exception';
    is $client->ask('GET /query?n=0')->body,  'n=0',  'it goes on';
};

$server->stop;
done_testing;
