use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp ();
use Sirius::Test;

# Who gets interim responses. There are proxies that take one for the final response; to HEAD it has no body,
# so that they give the response that follows to the next client.

my $APP = <<'APP';
sub {
    my $env = shift;
    my $inform = $env->{'psgix.informational'};
    $inform->( 103, [ Link => '</a.css>; rel=preload' ] );
    $inform->( 102, [] ) if $env->{PATH_INFO} eq '/two';
    return [ 200, [ 'Set-Cookie' => 'session=1' ], [ 'called ' . ref $inform ] ];
}
APP
my $dir    = File::Temp->newdir;
my $socket = "$dir/socket";

sub server { return start_server( $APP, qw(--workers 1 --listen 127.0.0.1:0 --listen), $socket, @_ ) }

# The interim responses and the final one
sub asked {
    my ( $client, @request ) = @_;
    my $answer = $client->ask(@request);
    return join ' ', ( map { $_->status } $answer->interim ), $answer->status, $answer->body;
}

sub is_asked {
    my ( $client, $interim, @request ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $head = $request[0] =~ /\AHEAD/;
    is asked( $client, @request ), join( ' ', $interim || (), 200, $head ? '' : 'called CODE' ), "@request";
    return;
}

my @PROXIED = (
    'Via: 1.1 cache',
    'X-Forwarded-For: 192.0.2.7',
    'x-forwarded-proto: https',
    'Forwarded: for=192.0.2.7',
    'X-Real-IP: 192.0.2.7',
);

subtest 'a client that is no proxy' => sub {
    my $server = server();
    my $client = $server->connect;
    is_asked( $client, '103',     'GET /' );
    is_asked( $client, '103 102', 'GET /two' );
    is_asked( $client, '103',     'POST /', \'body' );
    is_asked( $client, '103',     'GET /',  'X-Forwarded-Fox: 1', 'Vib: 1', 'Forwarder: 1' );
    is_asked( $client, '',        'HEAD /' );
    is_asked( $client, '',        'HEAD /two' );
    is_asked( $client, '103',     'GET /' );
    $server->stop;
};

subtest 'a request that says that it came through a proxy' => sub {
    my $server = server();
    my $client = $server->connect;
    for my $field (@PROXIED) {
        is_asked( $client, '', 'GET /two', $field );
        is_asked( $client, '103', 'GET /' );
    }
    $server->stop;
};

my @PROXY = (
    [ 'a trusted proxy'       => [qw(--trust-proxy 127.0.0.1)],                  '127.0.0.1' ],
    [ 'a unix socket'         => [],                                             'unix' ],
    [ 'a TCP load balancer'   => [qw(--proxy-protocol)],                         'PROXY' ],
    [ 'another load balancer' => [qw(--proxy-protocol --trust-proxy 127.0.0.1)], 'PROXY' ],
);
for my $case (@PROXY) {
    my ( $name, $args, $from ) = @$case;
    my @to     = $from eq 'unix'  ? ( to     => "unix:$socket" )                               : ();
    my @before = $from eq 'PROXY' ? ( before => "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n" ) : ();
    my %want   = ( '' => '', direct => '', on => '103 102', off => '' );
    for my $value ( sort keys %want ) {
        subtest "$name, --informational '$value'" => sub {
            my $server = server( @$args, length $value ? ( '--informational', $value ) : () );
            my $client = $server->connect( @to, @before );
            is_asked( $client, $want{$value}, 'GET /two' );
            is_asked( $client, $want{$value}, 'GET /two', 'Via: 1.1 cache' );
            is_asked( $client, '',            'HEAD /two' );
            is_asked( $client, $want{$value}, 'GET /two' );
            $server->stop;
        };
    }
}

subtest 'nobody at all, or all' => sub {
    for my $case ( [ off => '' ], [ no => '' ], [ on => '103' ], [ yes => '103' ] ) {
        my $server = server( '--informational', $case->[0] );
        my $client = $server->connect;
        is_asked( $client, $case->[1], 'GET /' );
        is_asked( $client, $case->[1], 'GET /', $PROXIED[0] );
        is_asked( $client, '',         'HEAD /' );
        $client = $server->connect;
        is $client->ask('GET / HTTP/1.0')->interim, 0, 'none to HTTP/1.0';
        $server->stop;
    }
};

subtest '100 (Continue): what a client asks for, and never in response to HEAD' => sub {
    my $server = server( '--trust-proxy', '127.0.0.1,unix' );
    my $length = "Content-Length: 4\r\n";
    for my $to ( $server->address, "unix:$socket" ) {
        for my $method (qw(GET POST PUT)) {
            my $client = $server->connect( to => $to );
            $client->send(
                "$method / HTTP/1.1\r\nHost: a\r\nVia: 1.1 b\r\nExpect: 100-continue\r\n$length\r\n");
            like $client->some( 25, 3 ), qr{\AHTTP/1\.1 100 }, "$method gets it";
            $client->send('body');
            my $answer = $client->response;
            is $answer->status,            200, 'then the response';
            is scalar( $answer->interim ), 0,   'and nothing between them';
        }
        for my $framing ( $length, "Transfer-Encoding: chunked\r\n" ) {
            my $client = $server->connect( to => $to );
            $client->send("HEAD / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n$framing\r\n");
            my $answer = $client->response( head => 1 );
            is $answer->status,            417, 'HEAD with content: 417';
            is scalar( $answer->interim ), 0,   'and no 100';
            ok $answer->closes, 'what follows is read as no request';
        }
        for my $field ( [], ['Content-Length: 0'] ) {
            my $client = $server->connect( to => $to );
            is_asked( $client, '', 'HEAD /', 'Expect: 100-continue', @$field );
            is_asked( $client, '', 'HEAD /', @$field );
        }
        my $client = $server->connect( to => $to );
        $client->send("HEAD / HTTP/1.0\r\nExpect: 100-continue\r\n$length\r\nbody");
        is $client->response( head => 1 )->status, 200, 'HTTP/1.0 has no expectations';
    }
    $server->stop;
};

done_testing;
