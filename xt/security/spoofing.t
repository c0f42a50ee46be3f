use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# What the environment says of the server and the client comes from the server, never from a header

my $app = <<'APP';
sub { my $env = shift; [ 200, [], [ map { ref $env->{$_} ? () : "$_=" . ( defined $env->{$_} ? $env->{$_} : 'undef' ) . "\n" } sort keys %$env ] ] }
APP
my $server = start_server( $app, qw(--workers 1) );

sub env_of {
    return { map { split /=/, $_, 2 } split /\n/, $server->ask(@_)->body };
}

subtest 'names with underscores never meet those with dashes' => sub {
    my $env = env_of( 'GET /', 'X-Forwarded-For: 1.1.1.1', 'X_Forwarded_For: 6.6.6.6',
        'X_Forwarded-For: 7.7.7.7' );
    is $env->{HTTP_X_FORWARDED_FOR}, '1.1.1.1', 'the one with dashes';
    $env = env_of( 'GET /', 'X_Real_IP: 6.6.6.6' );
    is $env->{HTTP_X_REAL_IP}, undef, 'alone it is dropped as well';
};

# As X_Remote_User of single sign-on modules
subtest 'with --underscores-in-headers' => sub {
    my $dir  = File::Temp->newdir;
    my @sent = (
        'X_Foo: 1',
        'Remote_User: joe',
        'X_Bar: evil',
        'X-Bar: 2',
        'A-B_C: evil',
        'A_B-C: evil',
        'X_Forwarded_For: 6',
        'X_Real_IP: 6',
        'Content_Type: evil/evil',
        'X_Twice: 1',
        'x_twice: 2',
        'Proxy: evil',
    );
    my %all = ( HTTP_X_FOO => 1, HTTP_REMOTE_USER => 'joe', HTTP_X_BAR => 2, HTTP_X_TWICE => '1, 2' );
    my @key = qw(HTTP_X_FOO HTTP_REMOTE_USER HTTP_X_BAR HTTP_A_B_C HTTP_X_FORWARDED_FOR HTTP_X_REAL_IP
        HTTP_CONTENT_TYPE CONTENT_TYPE HTTP_X_TWICE HTTP_PROXY REMOTE_USER);
    my %case = (
        'off'                        => [ 0, qw(--underscores-in-headers off) ],
        'on'                         => [ 1, qw(--underscores-in-headers on) ],
        'yes, of the environment'    => [1],
        'trusted, of a trusted peer' => [ 1, qw(--underscores-in-headers trusted --trust-proxy 127.0.0.1) ],
        'trusted, of another peer'   => [ 0, qw(--underscores-in-headers trusted --trust-proxy 10.0.0.0/8) ],
        'off, of a trusted peer'     => [ 0, qw(--trust-proxy 127.0.0.1) ],
        'trusted, of a unix socket'  =>
            [ 1, qw(--underscores-in-headers trusted --trust-proxy unix --listen), "unix:$dir/sock" ],
        'trusted, named by PROXY' => [
            1,                          qw(--underscores-in-headers trusted --proxy-protocol --trust-proxy),
            '127.0.0.0/8,192.0.2.0/24', '192.0.2.1'
        ],
        'trusted, another named by PROXY' => [
            0, qw(--underscores-in-headers trusted --trust-proxy 127.0.0.0/8 --proxy-protocol), '192.0.2.1'
        ],
    );
    for my $name ( sort keys %case ) {
        my ( $passed, @args ) = @{ $case{$name} };
        my $client_is = $args[-1] && $args[-1] eq '192.0.2.1' ? pop @args : undef;
        local $ENV{SIRIUS_UNDERSCORES_IN_HEADERS} = 'yes' if !@args;
        my $server = start_server( $app, qw(--workers 1), @args );
        for my $way ( 'whole', 'in pieces' ) {
            my $client
                = $server->connect(
                $client_is ? ( before => "PROXY TCP4 $client_is 127.0.0.1 1 2\r\n" ) : () );
            my $bytes = request( 'GET /', @sent );
            if   ( $way eq 'whole' ) { $client->send($bytes) }
            else                     { $client->send($_) for unpack '(a100)*', $bytes }
            my $env = { map { split /=/, $_, 2 } split /\n/, $client->response->body };
            my %got = map { $_ => $env->{$_} } grep { defined $env->{$_} } @key;
            is_deeply \%got, $passed ? \%all : { HTTP_X_BAR => 2 }, "$name, $way";
            unlike $client->ask('GET /')->body, qr/X_FOO|REMOTE_USER/, 'nothing of it in the next request';
        }
        every_delivery(
            $server,
            "Content_Length: $name",
            request( 'GET /', 'Content_Length: 5' ),
            qr/\A400 /
        ) if !$client_is;
        $server->stop;
    }
};

subtest 'Proxy is no HTTP_PROXY (httpoxy)' => sub {
    for my $name (qw(Proxy PROXY proxy)) {
        is env_of( 'GET /', "$name: http://evil/" )->{HTTP_PROXY}, undef, $name;
    }
};

subtest 'variables of CGI cannot be set' => sub {
    my @field = map {"$_: evil"}
        qw(Remote-User Remote-Addr Path-Info Script-Name Server-Name Request-Method Psgi.Url-Scheme Auth-Type
        Remote_User Gateway-Interface);
    my $env  = env_of( 'GET /real', @field );
    my @evil = grep { !/\AHTTP_/ && $env->{$_} =~ /evil/ } keys %$env;
    is "@evil",             '',          'outside of HTTP_*';
    is $env->{PATH_INFO},   '/real',     'PATH_INFO';
    is $env->{REMOTE_ADDR}, '127.0.0.1', 'REMOTE_ADDR';
};

subtest 'forwarding headers change nothing by themselves' => sub {
    my $env = env_of(
        'GET /',
        'X-Forwarded-For: 6.6.6.6',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Host: evil',
        'Forwarded: for=6.6.6.6'
    );
    is $env->{REMOTE_ADDR},       '127.0.0.1',                              'REMOTE_ADDR';
    is $env->{'psgi.url_scheme'}, $ENV{SIRIUS_TEST_TLS} ? 'https' : 'http', 'psgi.url_scheme';
    is $env->{HTTP_HOST},         'a',                                      'HTTP_HOST';
};

# A client that a trusted proxy knows nothing of, or that has written into its lists
subtest 'with --trust-proxy' => sub {
    my @forged = (
        'X-Forwarded-For: 6.6.6.6',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Host: evil',
        'X-Forwarded-Port: 666',
        'Forwarded: for=6.6.6.6;proto=https;host=evil',
        'X-Real-IP: 6.6.6.6',
        'Client-IP: 6.6.6.6',
        'True-Client-IP: 6.6.6.6',
        'X_Forwarded_For: 6.6.6.6',
        'Front-End-Https: on',
        'X-Forwarded-Ssl: on',
        'X-Forwarded-Prefix: /evil',
        'X-Forwarded-Path: /evil',
    );
    my @names
        = qw(REMOTE_ADDR REMOTE_PORT psgi.url_scheme HTTP_HOST SERVER_PORT SERVER_NAME SCRIPT_NAME HTTPS);
    my $facts = sub {
        my ( $server, @field ) = @_;
        my $client = $server->connect;
        my %env    = map { split /=/, $_, 2 } split /\n/, $client->ask( 'GET /', @field )->body;
        $env{REMOTE_PORT} = 'its own' if $env{REMOTE_PORT} eq $client->port;
        return join ' ', map { defined $env{$_} ? $env{$_} : '-' } @names;
    };
    for my $more ( '', ',x-forwarded-host', ',forwarded' ) {
        my $server = start_server( $app, qw(--workers 1 --trust-proxy), "10.0.0.0/8,unix$more" );
        my $plain  = $facts->($server);
        my ( $scheme, $https ) = $ENV{SIRIUS_TEST_TLS} ? qw(https on) : qw(http -);
        like $plain, qr/\A127[.]0[.]0[.]1 its own $scheme a \d+ \S*  $https\z/,
            "not of 10.0.0.0/8$more: without a field";
        is $facts->( $server, @forged ), $plain, 'and with all of them';
        $server->stop;
    }
    my $server = start_server( $app, qw(--workers 1 --trust-proxy), '127.0.0.1,10.0.0.0/8' );
    my $honest = $facts->( $server, 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: http' );
    like $honest, qr/\A192[.]0[.]2[.]7 0 http a 80 /, 'what the proxy adds';
    for my $before (
        '6.6.6.6', '127.0.0.1', '10.0.0.1, 10.0.0.2', 'unknown',
        '"',       '"6.6.6.6',  ',',                  '[::1]',
        'x' x 5000
        )
    {
        my @lists = ( "X-Forwarded-For: $before, 192.0.2.7", 'X-Forwarded-Proto: https, http' );
        my $name  = length $before < 100 ? $before : length($before) . ' bytes';
        is $facts->( $server, @lists ), $honest, "behind what the client has sent: $name";
        is $facts->(
            $server,
            "X-Forwarded-For: $before",
            'X-Forwarded-For: 192.0.2.7',
            'X-Forwarded-Proto: http'
            ),
            $honest, 'in a field of its own';
    }
    is $facts->(
        $server,
        'X-Forwarded-For: 192.0.2.7',
        'X-Forwarded-Proto: http',
        @forged[ 2, 4 .. $#forged ]
        ),
        $honest, 'fields of other names, which a proxy passes on';
    $server->stop;
};

subtest 'the PROXY protocol where nobody asked for it' => sub {
    for my $header ( "PROXY TCP4 6.6.6.6 127.0.0.1 1 2\r\n",
        "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\6\6\6\6\x7f\0\0\1\0\1\0\2" )
    {
        every_delivery( $server, 'is a bad request', $header . request('GET /'), qr/\A400 / );
    }
};

subtest 'headers of X-Sendfile have no effect' => sub {
    my $answer = $server->ask( 'GET /', 'X-Sendfile-Type: X-Accel-Redirect', 'X-Accel-Mapping: /=/x/' );
    is $answer->header($_), undef, $_ for qw(X-Sendfile X-Accel-Redirect X-Lighttpd-Send-File);
};

subtest 'nothing of one request is left for the next' => sub {
    my $client = $server->connect;
    $client->ask( 'POST /', 'X-Secret: s', 'Authorization: Basic abc',
        'Cookie: c=1', 'Content-Type: a/b', \'body' );
    my $body = $client->ask('GET /')->body;
    unlike $body, qr/X_SECRET|AUTHORIZATION|COOKIE|CONTENT_/, 'in the environment';
};

$server->stop;
done_testing;
