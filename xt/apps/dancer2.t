use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Shop;

BEGIN { skip_without('Dancer2') }

# A Dancer2 application, end to end: its requests, uploads, sessions, errors, files and asynchronous responses

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 64k), listeners() );
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
get '/forward' => sub { forward '/query' };
get '/later' => sub { delayed { flush; content "part $_\n" for 1 .. 3; done; } };
put '/thing/:id' => sub { route_parameters->get('id') . '=' . request->body };
Shop->to_app;
APP
shop($server);

subtest 'a session' => sub {
    my $cookie = $server->ask('GET /count')->header('Set-Cookie');
    ( my $id ) = $cookie =~ /\A([^;]+)/;
    is $server->ask( 'GET /count', "Cookie: $id" )->body, $_, "request $_ of it" for 2, 3;
    is $server->ask('GET /count')->body, 1, 'another one';
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

# A forward is a new request on a copy of %env
subtest 'forward, with bytes behind the request' => sub {
    for my $to ( $server->listeners ) {
        my $client = $server->connect( to => $to );
        for my $more ( 10, 400, 3000, 30_000 ) {
            $client->send(
                request("GET /forward?more=$more") . request( 'GET /query?next', 'X-Long: ' . 'y' x $more ) );
            is join( ' ', map { $_->body } $client->responses(2) ), "more=$more next=", "$more bytes";
        }
        is $client->ask('GET /forward?a=1')->body, 'a=1', 'and the connection goes on';
    }
};

ok $server->wait_log(qr/on purpose/), 'the exception was logged';
$server->stop;
done_testing;
