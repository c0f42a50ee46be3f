use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Shop;

BEGIN { skip_without('Mojolicious') }

# A Mojolicious application under PSGI, end to end. Its bodies are objects with getline, its chunked responses
# are framed by itself

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 64k), listeners() );
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

# Mojo::Server::PSGI copies %env. What is behind a request must cost nothing then: 250 KiB there, and the same
# requests one by one, of which the copies are the same
subtest '250 KiB of requests in one go' => sub {
    my ($worker) = $server->workers;
    my $cpu = sub {
        my $stat = Sirius::Test::Server::slurp("/proc/$worker/stat");
        my @of   = split / /, ( split /\) /, $stat )[-1];
        return $of[11] + $of[12];
    };
    my @bytes = map { request( "GET /query?n=$_", 'X-Long: ' . 'y' x 400 ) } 1 .. 560;
    my %ticks;
    for my $at_once ( 1, scalar @bytes ) {
        my $client = $server->connect;
        my $before = $cpu->();
        my @todo   = @bytes;
        my @got;
        while ( my @some = splice @todo, 0, $at_once ) {
            $client->send( join '', @some );
            push @got, map { $_->body } $client->responses( scalar @some );
        }
        $ticks{$at_once} = $cpu->() - $before;
        is_deeply \@got, [ map {"n=$_"} 1 .. @bytes ], "$at_once at once: all are answered, in order";
    }
    cmp_ok $ticks{@bytes}, '<', 3 * $ticks{1} + 20, 'it takes no more work than one by one'
        or diag "ticks: $ticks{1} one by one, $ticks{@bytes} at once";
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
