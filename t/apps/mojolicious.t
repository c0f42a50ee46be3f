use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Shop;

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
shop($server);

subtest 'a session' => sub {
    my $cookie = '';
    for ( 1 .. 3 ) {
        my $answer = $server->ask( 'GET /count', $cookie || () );
        is $answer->body, $_, "request $_ of it";
        $cookie = 'Cookie: ' . ( $answer->header('Set-Cookie') =~ /\A([^;]+)/ )[0];
    }
    is $server->ask('GET /count')->body, 1, 'another one';
};

subtest 'responses that are more than a string' => sub {
    my $text = Sirius::Test::Server::slurp( $server->dir . '/app.psgi' );
    is $server->ask('GET /self')->body,        $text,                      'a file';
    is $server->ask('GET /large')->body,       'x' x 3_000_000,            'many pieces';
    is $server->ask('GET /write')->body,       "part 1\npart 2\n",         'in parts with a length';
    is $server->ask('GET /until_close')->body, "part 1\npart 2\n",         'in parts without one';
    is $server->ask('GET /chunks')->body,      "part 1\npart 2\npart 3\n", 'in chunks';
};

ok $server->wait_log(qr/on purpose/), 'the exception was logged';
$server->stop;
done_testing;
