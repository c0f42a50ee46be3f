use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use JSON::PP ();
use Sirius::Test;

# Request lines of real clients: methods and targets reach the application as they came

my $APP = <<'APP';
use JSON::PP ();
use Plack::Request;
sub {
    my $env  = shift;
    return [ 200, [ 'X-Path' => '/after' ], [] ] if $env->{PATH_INFO} eq '/after';
    my %seen = map { $_ => $env->{$_} } grep { !ref $env->{$_} } keys %$env;
    $seen{base} = Plack::Request->new($env)->base->as_string;
    $seen{wide} = join ' ', grep { utf8::is_utf8( $seen{$_} ) && /HTTP_HOST|PATH_INFO|QUERY|URI/ } sort keys %seen;
    return [ 200, [], [ JSON::PP->new->latin1->canonical->encode( \%seen ) ] ];
}
APP
my $dir    = File::Temp->newdir;
my $server = start_server( $APP, qw(--workers 1 --access-log),
    "$dir/access_log", '--access-log-format', '%m "%r" %U %q %{Host}i %V' );

sub env_of {
    my ( $on, @bytes ) = @_;
    my $client = $on->connect;
    $client->send(@bytes);
    my $answer = $client->response;
    return $answer->status == 200
        ? JSON::PP->new->latin1->decode( $answer->body )
        : { status => $answer->status };
}

sub seen {
    my ( $line, @field ) = @_;
    return env_of( $server, join '', map {"$_\r\n"} $line, @field, '' );
}

sub logged { return ( split /\n/, Sirius::Test::Server::slurp("$dir/access_log") )[-1] }

subtest 'methods are case-sensitive, and any token is one' => sub {
    my @methods = (
        qw(get Get gET post put patch Patch delete options head trace connect PROPFIND
            M-SEARCH x), q(!#$%&'*+-.^_`|~09aZ)
    );
    for my $method (@methods) {
        is seen( "$method /x HTTP/1.1", 'Host: a' )->{REQUEST_METHOD}, $method, $method;
    }
    every_delivery( $server, 'patch with a body', request( 'patch /', \'hello' ), '200 after' );
    every_delivery( $server, 'head has a body',   request('head /'), '200 after', head => 0 );
    every_delivery( $server, "$_ is refused", request("$_"), '501 closed' ) for 'TRACE /', 'CONNECT a:443';
    every_delivery( $server, "'$_' is no request", "$_ HTTP/1.1\r\nHost: a\r\n\r\n", '400 closed' )
        for 'connect a:443', 'options *', 'g(t /', "g\xe9t /", 'A' x 65 . ' /';
};

subtest 'bytes above 0x7f, as they came' => sub {
    my %path = (
        'UTF-8'             => "/caf\xc3\xa9",
        'Latin-1'           => "/caf\xe9",
        'no UTF-8'          => "/\xc0\xaf\xed\xa0\x80\xff\xfe",
        'all of them'       => '/' . join( '', map {chr} 0x80 .. 0xff ),
        'first and last'    => "/\x80/\xff",
        'beside an escape'  => "/\xc3%a9%C3\xa9",
        'a path of many KB' => '/' . "\xe2\x82\xac" x 2000,
    );
    for my $name ( sort keys %path ) {
        my $raw     = $path{$name};
        my $decoded = $raw =~ s/%([0-9a-f]{2})/chr hex $1/gier;
        my $env     = seen( "GET $raw?q=$raw&\xfc HTTP/1.1", 'Host: a' );
        is $env->{PATH_INFO},    $decoded,           "$name: PATH_INFO";
        is $env->{QUERY_STRING}, "q=$raw&\xfc",      'QUERY_STRING';
        is $env->{REQUEST_URI},  "$raw?q=$raw&\xfc", 'REQUEST_URI';
        is $env->{wide},         '',                 'in bytes';
        is seen( "GET http://a$raw?\xfc HTTP/1.1", 'Host: a' )->{REQUEST_URI}, "$raw?\xfc",
            'REQUEST_URI of an absolute-form';
    }
    every_delivery(
        $server,
        'in any pieces',
        "GET /\xe2\x82\xac?\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        '200 after'
    );
    for my $bad (
        "/\x00",    "/\x01",      "/\x1f",  "/\x7f", "/\xe9 x",      "/\xe9\x7f",
        "/?\x00",   "/?\xe9\x1b", "/?\x7f", "\xe9",  "http://\xe9/", "/#\xe9",
        "/\xe9%0a", "/\xe9%zz"
        )
    {
        every_delivery(
            $server,
            JSON::PP->new->ascii->allow_nonref->encode($bad) . ' is refused',
            "GET $bad HTTP/1.1\r\nHost: a\r\n\r\n",
            '400 closed'
        );
    }
};

subtest 'the log escapes them' => sub {
    seen( "GET /\xc3\xa9\x9b?\xff HTTP/1.1", 'Host: a' );
    my $version = $ENV{SIRIUS_TEST_H2} ? '2.0' : '1.1';
    my $want    = qq("GET /\\xc3\\xa9\\x9b?\\xff HTTP/$version" /\\xc3\\xa9\\x9b ?\\xff a);
    ok until_true( 5, sub { index( logged(), $want ) > 0 } ), 'the access log' or diag logged();
    seen( "GET /\xc3\xa9 HTTP/1.1", 'Host: a', 'Expect: x' );
    ok until_true( 5, sub { logged() =~ m{/\\xc3\\xa9 HTTP} } ), 'of a refused request as well'
        or diag logged();
    unlike Sirius::Test::Server::slurp("$dir/access_log"), qr/[^\x20-\x7e\n]/, 'nothing else is in it';
};

subtest 'a request line of many KB' => sub {
    for my $length ( 8192, 9000, 16384 ) {
        my $line = 'GET /Search/Results.html?Query=' . 'q' x 20_000;
        $line = substr( $line, 0, $length - length ' HTTP/1.1' ) . ' HTTP/1.1';
        my $env = seen( $line, 'Host: a' );
        is length("GET $env->{REQUEST_URI} HTTP/1.1"), $length, "$length bytes";
    }
    is seen( 'GET /' . 'q' x ( 16385 - length 'GET / HTTP/1.1' ) . ' HTTP/1.1', 'Host: a' )->{status}, 414,
        '16385 bytes';
};

my $scheme = $ENV{SIRIUS_TEST_TLS} ? 'https' : 'http';

subtest 'the authority of an absolute-form replaces Host' => sub {
    for my $case (
        [ 'http://b/x?y',       'b',         'http://b/' ],
        [ 'http://b:8080/x?y',  'b:8080',    'http://b:8080/' ],
        [ 'http://B.example/x', 'B.example', 'http://b.example/' ],
        [ 'HTTP://b/x',         'b',         'http://b/' ],
        [ 'http://[::1]:81/x',  '[::1]:81',  'http://[::1]:81/' ],
        [ 'http://b/',          'b',         'http://b/' ],
        [ 'http://b',           'b',         'http://b/' ],
        [ 'http://b?x',         'b',         'http://b/' ],
        [ 'http://a/',          'a',         'http://a/' ],
        [ 'https://b/x',        'b',         'http://b/' ],
        )
    {
        my ( $target, $host, $base ) = @$case;
        $base =~ s/\Ahttp/$scheme/;
        my $env = seen( "GET $target HTTP/1.1", 'X-One: 1', 'host: a', 'X-Two: 2' );
        is $env->{HTTP_HOST},                       $host,   "$target: HTTP_HOST";
        is $env->{base},                            $base,   'base of Plack::Request';
        is $env->{'psgi.url_scheme'},               $scheme, 'the scheme is that of the connection';
        is "$env->{HTTP_X_ONE} $env->{HTTP_X_TWO}", '1 2',   'its neighbours';
        is seen( "GET $target HTTP/1.0", 'Connection: keep-alive' )->{HTTP_HOST}, $host,
            'HTTP/1.0 without Host'
            if http1( 'without Host', 'HTTP/1.0' );
    }
    ok until_true( 5, sub { logged() =~ /b b\z/ } ), 'in the log, as Host and as the name of the server'
        or diag logged();
    is seen( 'GET /x HTTP/1.0', 'Connection: close' )->{HTTP_HOST}, undef, 'without either there is none'
        if http1( 'without Host', 'HTTP/1.0' );
    is seen( 'GET /x HTTP/1.1', 'Host: a' )->{HTTP_HOST}, 'a', 'the next request has its own';
    is seen( 'OPTIONS http://b HTTP/1.1', 'Host: a' )->{REQUEST_URI}, '*',
        'OPTIONS without a path is OPTIONS * (RFC 9112 3.2.4)';
    is seen( 'OPTIONS http://b/ HTTP/1.1', 'Host: a' )->{REQUEST_URI}, '/', 'with one it is not';
    every_delivery( $server, 'in any pieces', "GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", '200 after' );
};

subtest 'what is refused in absolute-form' => sub {
    http1_only('a URL is taken apart by the client');
    my %bad = (
        'without Host'        => [ 'http://b/',   '' ],
        'an invalid Host'     => [ 'http://b/',   "Host: a b\r\n" ],
        'an empty Host'       => [ 'http://b/',   "Host:\r\n" ],
        'two Host fields'     => [ 'http://b/',   "Host: b\r\nHost: b\r\n" ],
        'userinfo'            => [ 'http://u@b/', "Host: b\r\n" ],
        'userinfo in Host'    => [ 'http://b/',   "Host: u\@b\r\n" ],
        'an empty authority'  => [ 'http:///x',   "Host: b\r\n" ],
        'no authority'        => [ 'http:/x',     "Host: b\r\n" ],
        'a port only'         => [ 'http://:80/', "Host: b\r\n" ],
        'a port that is none' => [ 'http://b:x/', "Host: b\r\n" ],
        'another scheme'      => [ 'ftp://b/',    "Host: b\r\n" ],
    );
    every_delivery( $server, $_, "GET $bad{$_}[0] HTTP/1.1\r\n$bad{$_}[1]\r\n", '400 closed' )
        for sort keys %bad;
};

subtest 'absolute-form behind a trusted proxy' => sub {
    my $behind = start_server( $APP, qw(--workers 1 --trust-proxy), '127.0.0.1,x-forwarded-host' );
    my $host   = sub {
        return @{ env_of( $behind, join '', map {"$_\r\n"} @_, '' ) }{qw(HTTP_HOST SERVER_PORT base)};
    };
    is join( ' ', $host->( 'GET http://b:81/ HTTP/1.1', 'Host: a:90', 'X-Forwarded-Proto: https' ) ),
        'b:81 81 https://b:81/', 'the port of the server is that of the authority';
    is join( ' ', $host->( 'GET http://b/ HTTP/1.1', 'Host: a', 'X-Forwarded-Host: c:82' ) ),
        "c:82 82 $scheme://c:82/", 'what the proxy says of the host counts';
    is join( ' ', $host->( 'GET http://b/ HTTP/1.0', 'X-Forwarded-Host: c' ) ), "c 80 $scheme://c/",
        'for HTTP/1.0 without Host as well'
        if http1( 'behind a trusted proxy, without Host', 'HTTP/1.0' );
    $behind->stop;
};

subtest 'pipelined, and moved between workers' => sub {
    my $client = $server->connect;
    $client->send( join '', map {"GET http://h$_/\xe9$_ HTTP/1.1\r\nHost: other\r\n\r\n"} 1 .. 20 );
    my @hosts = map { JSON::PP->new->latin1->decode( $_->body ) } $client->responses(20);
    is join( ' ', map {"$_->{HTTP_HOST}$_->{PATH_INFO}"} @hosts ), join( ' ', map {"h$_/\xe9$_"} 1 .. 20 ),
        'each has its own';
};

$server->stop;
done_testing;
