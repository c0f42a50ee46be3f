# --https-redirect: what has come without TLS is sent to the same URL with https, by the edge.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

$Sirius::Test::Client::TLS = 0;    # each client here says itself what it speaks
my $dir = File::Temp->newdir;
my $APP = <<'APP';
sub {
    my $env = shift;
    if ( $env->{PATH_INFO} eq '/wait' ) { select undef, undef, undef, 0.02 until -e $env->{QUERY_STRING} }
    return [ 200, [], ["app $env->{'psgi.url_scheme'} $env->{REQUEST_URI}"] ];
}
APP

my @BOTH = ( qw(--listen 127.0.0.1:0 --listen), '127.0.0.1:0,tls', qw(--tls-self-signed --workers 1) );

sub server { return start_server( $APP, @_ ) }

# Host and port that speak TLS, and those that do not
sub secure { return ( shift->log    =~ m{listening on https://(127\.0\.0\.1:\d+)/} )[0] }
sub plain  { return ( shift->log    =~ m{listening on http://(127\.0\.0\.1:\d+)/} )[0] }
sub port   { return ( secure(shift) =~ /:(\d+)\z/ )[0] }

sub ask {
    my ( $server, @request ) = @_;
    return Sirius::Test::Client->new( plain($server) )->ask(@request);
}

sub ask_tls {
    my ( $server, @request ) = @_;
    local $Sirius::Test::Client::TLS = 1;
    return Sirius::Test::Client->new( secure($server) )->ask(@request);
}

# Status and Location
sub is_sent {
    my ( $answer, $to, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is $answer->status . ' ' . ( $answer->header('Location') // '-' ), $to, $name;
}

my $format = '"%r" %>s %b %{Location}o %{Strict-Transport-Security}o %{refused}x';
my $server = server(
    @BOTH, '--https-redirect', '--hsts', '1h',
    '--access-log' => '-',
    '--access-log-format', $format, '--static', "/static=$dir"
);
my $port = port($server);
spew( "$dir/file.txt", 'file' );

subtest 'the same URL' => sub {
    my $client = Sirius::Test::Client->new( plain($server) );
    for my $case (
        [ "https://a:$port/",                             'GET /' ],
        [ "https://a:$port/?",                            'GET /?' ],
        [ "https://a:$port/x%20y;z?b=%2F&c=?&d",          'GET /x%20y;z?b=%2F&c=?&d' ],
        [ "https://a:$port//b.example/x",                 'GET //b.example/x' ],
        [ "https://a:$port/\xc3\xbc",                     "GET /\xc3\xbc" ],
        [ "https://a:$port/static/file.txt",              'GET /static/file.txt' ],
        [ "https://WWW.a.example.:$port/",                'GET /', 'Host: WWW.a.example.' ],
        [ "https://a:$port/",                             'GET /', 'Host: a:80' ],
        [ "https://a:$port/",                             'GET /', 'Host: a:' ],
        [ "https://[2001:db8::1]:$port/",                 'GET /', 'Host: [2001:db8::1]:8080' ],
        [ "https://192.0.2.1:$port/",                     'GET /', 'Host: 192.0.2.1' ],
        [ "https://b.example:$port/x?y",                  'GET http://b.example:81/x?y' ],
        [ "https://b.example:$port/",                     'GET http://b.example' ],
        [ "https://b.example:$port/?y",                   'GET http://b.example?y' ],
        [ "https://a:$port",                              'OPTIONS *' ],
        [ "https://a:$port/x",                            'FOO /x' ],
        [ "https://a:$port/.well-known/acme-challenge/x", 'GET /.well-known/acme-challenge/x' ],
        [ "https://a:$port/",                             'GET /', 'X-Forwarded-Proto: https' ],
        [   "https://a:$port/ws",
            'GET /ws',
            'Connection: Upgrade',
            'Upgrade: websocket',
            'Sec-WebSocket-Version: 13'
        ],
        )
    {
        my ( $to, @request ) = @$case;
        is_sent( $client->ask(@request), "308 $to", join ' | ', @request );
    }
    my $answer = $client->ask('GET /');
    is $answer->body,                                "308 Permanent Redirect\n", 'its content';
    is $answer->header('Content-Type'),              'text/plain',               'its type';
    is $answer->header('Server'),                    'Sirius',                   'its server';
    is $answer->header('Strict-Transport-Security'), undef,                      'without TLS no such field';
    is $client->ask('HEAD /')->header('Content-Length'), length $answer->body,   'HEAD says the same';
};

subtest 'over TLS' => sub {
    my $answer = ask_tls( $server, 'GET /x?y' );
    is $answer->body,                                    'app https /x?y', 'the application answers';
    is ask_tls( $server, 'GET /static/file.txt' )->body, 'file',           'and files are served';
};

subtest 'content' => sub {
    my $client = Sirius::Test::Client->new( plain($server) );
    is_sent( $client->ask( 'POST /form', \'a=b' ),             "308 https://a:$port/form", 'a little' );
    is_sent( $client->ask( 'PUT /file',  \( 'x' x 300_000 ) ), "308 https://a:$port/file", 'much' );
    $client->send( request( 'POST /chunks', 'Transfer-Encoding: chunked' ) . "3\r\nabc\r\n0\r\n\r\n" );
    is_sent( $client->response,         "308 https://a:$port/chunks", 'chunks' );
    is_sent( $client->ask('GET /next'), "308 https://a:$port/next",   'the connection is kept' );
    $client->send( join '', map { request( "POST /$_", \'abc' ) } 1 .. 20 );
    is join( q( ), map { $_->header('Location') =~ m{/(\d+)\z} } $client->responses(20) ),
        join( q( ), 1 .. 20 ), 'pipelined';
};

subtest 'HTTP/1.0' => sub {
    my $client = Sirius::Test::Client->new( plain($server) );
    my $answer = $client->ask( 'GET /x HTTP/1.0', 'Host: a' );
    is_sent( $answer, "308 https://a:$port/x", 'with a Host' );
    is $client->end, 'eof', 'the connection ends';
    is_sent(
        ask( $server, 'GET http://b.example/x HTTP/1.0' ),
        "308 https://b.example:$port/x",
        'with a URL'
    );
    $answer = ask( $server, 'GET /x HTTP/1.0' );
    is_sent( $answer, '400 -', 'without a Host nobody knows where to' );
    is_sent( ask( $server, 'GET /', 'Host: a/b' ), '400 -', 'a Host that is none' );
    is_sent( ask( $server, 'GET /', 'Host: b@a' ), '400 -', 'one with a user' );
    is_sent( ask( $server, 'GET /', 'Host:' ),     '400 -', 'an empty one' );
};

subtest 'while all workers are busy' => sub {
    local $Sirius::Test::Client::TLS = 1;
    my $busy = Sirius::Test::Client->new( secure($server) );
    $busy->send( request("GET /wait?$dir/go") );
    local $Sirius::Test::Client::TLS = 0;
    is_sent( ask( $server, "GET /$_" ), "308 https://a:$port/$_", "redirect $_" ) for 1 .. 3;
    spew( "$dir/go", '' );
    local $Sirius::Test::Client::TLS = 1;
    is $busy->response->body, "app https /wait?$dir/go", 'and the worker goes on';
};

for my $wants (
    qr{^"GET /x%20y;z\?b=%2F&c=\?&d HTTP/1\.1" 308 23 https://a:$port/x%20y;z\?b=%2F&c=\?&d - -$}m,
    qr{^"GET /x HTTP/1\.0" 400 \d+ - - the request has no Host, so there is no URL to redirect it to$}m
    )
{
    ok until_true( 10, sub { $server->output =~ $wants } ), 'the access log has the request'
        or diag $server->output;
}
$server->stop;

subtest 'another port, and no address with TLS' => sub {
    my $other = server(qw(--listen 127.0.0.1:0 --workers 1 --https-redirect=443));
    is_sent( ask( $other, 'GET /x', 'Host: a:8080' ), '308 https://a/x', '443 is not named' );
    unlike $other->log, qr/https-redirect/, 'nothing to say';
    $other->stop;
    $other = server( @BOTH, '--https-redirect=8443' );
    is_sent( ask( $other, 'GET /x', 'Host: a:8080' ), '308 https://a:8443/x', 'as the option has it' );
    $other->stop;
    $other = server(qw(--listen 127.0.0.1:0 --workers 0 --https-redirect));
    is_sent( ask( $other, 'GET /x' ), '308 https://a/x', '--workers 0, too' );
    like $other->log,
        qr/^sirius: --https-redirect leads to port 443, but no address of --listen speaks TLS: add one, .*--https-redirect=443$/m,
        'a line in the log';
    $other->stop;
};

subtest 'proxies' => sub {
    my $behind = server( @BOTH, '--https-redirect', '--trust-proxy', '127.0.0.1' );
    my $to     = port($behind);
    my @said   = ( 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Host: b.example' );
    is ask( $behind, 'GET /x', 'X-Forwarded-Proto: https', @said )->body, 'app https /x',
        'the client has used https';
    is_sent( ask( $behind, 'GET /x', 'X-Forwarded-Proto: http', @said ), "308 https://a:$to/x", 'or http' );
    is_sent( ask( $behind, 'GET /x', @said ),                    "308 https://a:$to/x", 'or nobody says' );
    is_sent( ask( $behind, 'GET /x', 'Forwarded: proto=https' ), "308 https://a:$to/x", 'another field' );
    $behind->stop;
    $behind = server( @BOTH, '--https-redirect=443', '--trust-proxy', '127.0.0.1,x-forwarded-host' );
    is_sent( ask( $behind, 'GET /x', @said ), '308 https://b.example/x', 'the host that the proxy names' );
    is_sent( ask( $behind, 'GET /x', 'X-Forwarded-Host: b@c' ), '308 https://a/x', 'unless it is none' );
    $behind->stop;
    $behind = server( @BOTH, '--https-redirect=443', '--trust-proxy', '127.0.0.1,forwarded' );
    is ask( $behind, 'GET /x', 'Forwarded: for=192.0.2.7;proto=https' )->body, 'app https /x', 'Forwarded';
    is_sent(
        ask( $behind, 'GET /x', 'Forwarded: for=192.0.2.7;proto=http;host="b:80"' ),
        '308 https://b/x',
        'with http'
    );
    $behind->stop;
    $behind = server( @BOTH, qw(--https-redirect=443 --proxy-protocol) );
    my $client = Sirius::Test::Client->new( plain($behind) );
    $client->send( "PROXY TCP4 192.0.2.7 192.0.2.8 5555 80\r\n" . request('GET /x') );
    is_sent( $client->response, '308 https://a/x', 'the PROXY protocol' );
    $client->close;
    $behind->stop;
};

subtest 'unix sockets' => sub {
    my $behind = server( @BOTH, '--https-redirect', '--listen', "$dir/sock", '--trust-proxy', 'unix' );
    my $client = Sirius::Test::Client->new("unix:$dir/sock");
    is $client->ask('GET /x')->body,                              'app http /x', 'are not redirected';
    is $client->ask( 'GET /x', 'X-Forwarded-Proto: http' )->body, 'app http /x', 'whatever is said';
    is_sent( ask( $behind, 'GET /x' ), '308 https://a:' . port($behind) . '/x', 'but the other address is' );
    $client->close;
    $behind->stop;
};

subtest 'the admin port' => sub {
    my $other = server( @BOTH, '--https-redirect', '--admin', '127.0.0.1:0' );
    my ($admin) = $other->log =~ m{admin on http://(127\.0\.0\.1:\d+)};
    ok $admin, 'there is one' or diag $other->log;
    is( Sirius::Test::Client->new($admin)->ask("GET $_")->status, 200, "$_ is not redirected" )
        for qw(/healthz /readyz /metrics);
    $other->stop;
};

subtest 'a reload' => sub {
    my $config = spew( "$dir/sirius.conf", "https-redirect = no\n" );
    my $other  = server( @BOTH, '--config', $config );
    my $kept   = Sirius::Test::Client->new( plain($other) );
    is $kept->ask('GET /x')->body, 'app http /x', 'off';
    spew( $config, "https-redirect = 443\n" );
    $other->signal('HUP');
    ok until_true( 20, sub { ask( $other, 'GET /x' )->status == 308 } ), 'on' or diag $other->log;
    ok until_true( 20, sub { $kept->ask('GET /x')->status == 308 } ), 'for connections that were open, too';
    spew( $config, "https-redirect = yes\n" );
    $other->signal('HUP');
    my $to = '308 https://a:' . port($other) . '/x';
    ok until_true(
        20,
        sub {
            my $answer = ask( $other, 'GET /x' );
            $answer->status . ' ' . ( $answer->header('Location') // '' ) eq $to;
        }
        ),
        'another port';
    $kept->close;
    $other->stop;
};

done_testing;
