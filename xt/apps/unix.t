use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# Unix sockets have neither addresses nor ports, but applications, frameworks and loggers read them: the
# client is 127.0.0.1 and the port of the server 80, unless a Host or a trusted proxy says more. No warning
# anywhere

my $dir = File::Temp->newdir;

sub serve {
    my ( $app, @args ) = @_;
    return start_server( $app, qw(--workers 1 --listen), "unix:$dir/sock", @args );
}

# Bodies of: HTTP/1.0 without Host; with one; with what a proxy on the same host adds
sub bodies {
    my $server  = shift;
    my @request = (
        "GET /p?q HTTP/1.0\r\n\r\n",
        "GET /p?q HTTP/1.1\r\nHost: h:81\r\n\r\n",
        "GET /p?q HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\r\n",
    );
    return map { my $client = $server->connect; $client->send($_); $client->response->body } @request;
}

sub no_warning {
    my $server = shift;
    unlike $server->log, qr/warn|uninitialized|isn't numeric|invalid/i, 'no warning' or diag $server->log;
    return;
}

my $PLAIN = <<'APP';
use warnings FATAL => 'all';
sub { my $env = shift; [ 200, [], [ join ' ', @{$env}{qw(REMOTE_ADDR REMOTE_PORT SERVER_NAME SERVER_PORT psgi.url_scheme)} ] ] }
APP

subtest 'the environment' => sub {
    my $server = serve($PLAIN);
    is join( '|', bodies($server) ), join( '|', ('127.0.0.1 0 localhost 80 http') x 3 ), 'of any request';
    no_warning($server);
    $server->stop;
    $server = serve( $PLAIN, qw(--trust-proxy unix) );
    is + ( bodies($server) )[2], '192.0.2.7 0 localhost 443 https',
        'with --trust-proxy unix as the proxy says';
    is + ( bodies($server) )[0], '127.0.0.1 0 localhost 80 http', 'when it says nothing as without';
    $server->stop;
    $server = serve( $PLAIN, '--listen', '127.0.0.1:0' );
    my ($port) = map {/:(\d+)\z/} grep { !/\Aunix/ } $server->listeners;
    my $tcp = $server->connect( to => "127.0.0.1:$port" );
    is $tcp->ask('GET /')->body, join( ' ', '127.0.0.1', $tcp->port, '127.0.0.1', $port, 'http' ),
        'beside a TCP address, which has its own';
    $server->stop;
};

subtest 'Plack::Request, Lint and middlewares' => sub {
    my $server = serve( <<'APP', qw(-E test) );
use warnings FATAL => 'all';
use Plack::Builder;
use Plack::Request;
builder {
    enable 'Lint';
    enable 'AccessLog', format => 'plack %h %v %V %p "%r"';
    enable 'ReverseProxy' if eval { require Plack::Middleware::ReverseProxy };
    sub {
        my $r = Plack::Request->new(shift);
        [ 200, [ 'Content-Type' => 'text/plain' ], [ join ' ', $r->address, $r->base, $r->uri, $r->port ] ];
    };
};
APP
    my @body = bodies($server);
    is $body[0], '127.0.0.1 http://localhost/ http://localhost/p?q 80', 'without Host';
    like $body[1], qr{\A127[.]0[.]0[.]1 http://h:81/ http://h:81/p[?]q \d+\z}, 'with a Host';
    ok $server->wait_log(qr/^plack 127[.]0[.]0[.]1 localhost localhost 80 "GET \/p\?q HTTP\/1[.]0"$/m),
        'AccessLog of Plack'
        or diag $server->log;
    no_warning($server);
    $server->stop;
};

subtest 'the access log' => sub {
    my $server = serve( $PLAIN, '--access-log', "$dir/log", '--access-log-format', '%h %v %V %p "%r"' );
    bodies($server);
    my $log = sub { [ split /\n/, Sirius::Test::Server::slurp("$dir/log") ] };
    ok until_true( 5, sub { @{ $log->() } == 3 } ), 'three lines' or diag @{ $log->() };
    is $log->()[0], '127.0.0.1 localhost localhost 80 "GET /p?q HTTP/1.0"', 'without Host';
    is $log->()[1], '127.0.0.1 localhost h:81 80 "GET /p?q HTTP/1.1"',      'with a Host';
    my $client = $server->connect;
    $client->send("GET / HTTP/1.1\r\n\r\n");
    $client->response;
    ok until_true( 5, sub { @{ $log->() } == 4 } ), 'a refused one';
    like $log->()[3], qr/\A127[.]0[.]0[.]1 /, 'has the address as well';
    $server->stop;
};

subtest 'Dancer2' => sub {
    skip_without('Dancer2');
    my $server = serve(<<'APP');
package Shop;
use Dancer2;
set logger => 'console';
get '/p' => sub { join ' ', request->address, request->remote_host || '-', request->base, uri_for('/x'), request->host || '-' };
Shop->to_app;
APP
    my @body = bodies($server);
    like $body[0], qr{\A127[.]0[.]0[.]1 127[.]0[.]0[.]1 http://localhost/ http://localhost/x },
        'without Host';
    is $body[1], '127.0.0.1 127.0.0.1 http://h:81/ http://h:81/x h:81', 'with a Host';
    no_warning($server);
    $server->stop;
};

subtest 'Mojolicious' => sub {
    skip_without('Mojolicious');
    my $server = serve(<<'APP');
use Mojolicious::Lite -signatures;
app->log->level('warn');
get '/p' => sub ($c) { $c->render( text => join ' ', $c->tx->remote_address, $c->url_for('/x')->to_abs, $c->req->url->base ) };
app->start('psgi');
APP
    my @body = bodies($server);
    like $body[0], qr/\A127[.]0[.]0[.]1 /, 'without Host';    # it takes its base from there alone
    is $body[1], '127.0.0.1 http://h:81/x http://h:81', 'with a Host';
    no_warning($server);
    $server->stop;
};

done_testing;
