use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::HAProxy;

# What trusted proxies say of the client, and what of it reaches the environment. The test's own connections
# come from 127.0.0.1 or a unix socket; behind that, proxies of 10.0.0.0/8 and 2001:db8::/32 are pretended.

my $APP = <<'APP';
sub {
    my $env = shift;
    my @seen = map { defined $env->{$_} ? $env->{$_} : '-' } qw(REMOTE_ADDR REMOTE_PORT psgi.url_scheme HTTP_HOST SERVER_PORT);
    my $https = defined $env->{HTTPS} ? "HTTPS=$env->{HTTPS}" : 'none';
    my $right = $env->{'psgi.url_scheme'} eq 'https' ? 'HTTPS=on' : 'none';
    push @seen, $https if $https ne $right;
    push @seen, "REMOTE_HOST=$env->{REMOTE_HOST}" if $env->{REMOTE_HOST} ne $env->{REMOTE_ADDR};
    my $kept = join ' ', map {"$_=$env->{$_}"} grep {/FORWARDED/} sort keys %$env;
    $env->{$_} .= 'changed' for $env->{PATH_INFO} eq '/change' ? qw(psgi.url_scheme HTTPS REMOTE_HOST) : ();
    return [ 200, [ 'X-Kept' => $kept ], [ join ' ', @seen ] ];
}
APP

my $socket = File::Temp->newdir;
my $trust  = '127.0.0.1,unix,10.0.0.0/8,2001:db8::/32';

sub server {
    my ( $app, @args ) = @_;
    return start_server( $app, qw(--workers 1), @args );
}

# $want: what differs from a request without fields; P and S are the ports of the client and the server
sub is_env {
    my ( $client, $server, $field, $want, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @env  = ( '127.0.0.1', 'P', 'http', 'a', 'S' );
    my @want = split / /, $want;
    $env[$_] = $want[$_] for grep { $want[$_] ne '.' } 0 .. $#want;
    my $port = { P => $client->port, S => $server->port };
    s/\A([PS])\z/$port->{$1}/ for @env;
    my $got = $client->ask( 'GET /', @$field )->body;
    is $got, "@env", defined $name ? $name : join( ' | ', @$field ) || 'no field';
    return;
}

subtest 'X-Forwarded-*' => sub {
    my $server = server( $APP, '--trust-proxy', "$trust,x-forwarded-port" );
    my $client = $server->connect;
    my @case   = (
        [ '.'             => () ],
        [ '192.0.2.7 0'   => 'X-Forwarded-For: 192.0.2.7' ],
        [ '192.0.2.7 0'   => 'X-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.0.0.1' ],
        [ '192.0.2.7 0'   => 'X-Forwarded-For: 6.6.6.6', 'X-Forwarded-For: 192.0.2.7, 2001:db8::5' ],
        [ '192.0.2.7 123' => 'X-Forwarded-For: 192.0.2.7:123' ],
        [ '2001:db9::7 0' => 'X-Forwarded-For: 2001:DB9:0::7' ],
        [ '192.0.2.7 0'   => 'X-Forwarded-For: ::ffff:192.0.2.7' ],
        [ '10.0.0.1 0'    => 'X-Forwarded-For: junk, 10.0.0.1' ],
        [ '.'             => 'X-Forwarded-For: 192.0.2.7, unknown' ],
        [ '.'             => 'X-Forwarded-For:' ],
        [ '192.0.2.7 0 https . 443' => 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: https' ],
        [ '. . https . 443'         => 'X-Forwarded-Proto: HTTPS' ],
        [ '. . http . 80'           => 'X-Forwarded-Proto: http' ],
        [ '. . . . .'               => 'X-Forwarded-Proto: ftp' ],
        [ '. . . . 8443'            => 'X-Forwarded-Port: 8443' ],
        [ '. . https . 8443'        => 'X-Forwarded-Proto: https', 'X-Forwarded-Port: 8443' ],
        [ '. . . . .'               => 'X-Forwarded-Port: 99999' ],
        [   '192.0.2.7 0 https . 443' => 'X-Forwarded-For: 192.0.2.7, 10.0.0.1',
            'X-Forwarded-Proto: https, http'
        ],
        [   '192.0.2.7 0 http . 80' => 'X-Forwarded-For: 6.6.6.6, 192.0.2.7',
            'X-Forwarded-Proto: https, http'
        ],
        [ '. . https a:4430 4430'     => 'Host: a:4430',     'X-Forwarded-Proto: https' ],
        [ '. . https [::1]:4430 4430' => 'Host: [::1]:4430', 'X-Forwarded-Proto: https' ],
        [ '.'                         => 'X-Forwarded-Host: evil.example' ],
        [ '.'                         => 'Forwarded: for=6.6.6.6;proto=https;host=evil.example' ],
    );
    for ( 1, 2 ) {    # new environments, then those of the pool
        is_env( $client, $server, [ @$_[ 1 .. $#$_ ] ], $_->[0] ) for @case;
    }
    my $answer
        = $client->ask( 'GET /', 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Host: b', 'Forwarded: for=_x' );
    is $answer->header('X-Kept'),
        'HTTP_FORWARDED=for=_x HTTP_X_FORWARDED_FOR=192.0.2.7 HTTP_X_FORWARDED_HOST=b',
        'the fields themselves reach the application as they came';
    $client = $server->connect;
    $client->send("GET / HTTP/1.0\r\nX-Forwarded-Proto: https\r\n\r\n");
    like $client->response->body, qr/ https - 443\z/, 'without a Host';
    $server->stop;
};

subtest 'nothing of one request is left for the next of the same shape' => sub {
    my $server = server( $APP, '--trust-proxy', "$trust,x-forwarded-host,x-forwarded-port" );
    my $client = $server->connect;
    my @name   = map {"X-Forwarded-$_"} qw(For Proto Host Port);
    my $ask    = sub {
        my ( $target, @value ) = @_;
        return $client->ask( "GET $target", map {"$name[$_]: $value[$_]"} 0 .. $#name )->body;
    };
    my $plain = join ' ', '127.0.0.1', $client->port, 'http', 'a', $server->port;
    for ( 1 .. 3 ) {
        is $ask->( '/',       '192.0.2.7', 'https', 'b:1', 2 ), '192.0.2.7 0 https b:1 2', 'all are said';
        is $ask->( '/',       ('/') x 4 ), $plain, 'none is';
        is $ask->( '/change', '192.0.2.8', 'http', 'c', 3 ), '192.0.2.8 0 http c 3',
            'others, and the application writes';
        is $ask->( '/', ('/') x 4 ), $plain, 'none is';
    }
    my @many   = map {"X-Many-$_: 1"} 1 .. 40;
    my $answer = $client->ask( 'GET /', @many, 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: https' );
    is $answer->body, '192.0.2.7 0 https a 443', 'an environment outside of the pool';
    $server->stop;
};

subtest 'X-Forwarded-Host where it is believed' => sub {
    my $server = server( $APP, '--trust-proxy', "$trust,x-forwarded-host" );
    my $client = $server->connect;
    my @case   = (
        [ '. . . b 80'            => 'X-Forwarded-Host: b' ],
        [ '. . . b:8080 8080'     => 'X-Forwarded-Host: b:8080' ],
        [ '. . https b 443'       => 'X-Forwarded-Host: b',      'X-Forwarded-Proto: https' ],
        [ '. . https b:8443 8443' => 'X-Forwarded-Host: b:8443', 'X-Forwarded-Proto: https' ],
        [   '. . https b:8443 8443' => 'X-Forwarded-Host: b:8443',
            'X-Forwarded-Proto: https', 'X-Forwarded-Port: 443'
        ],
        [ '. . . b 80'         => 'X-Forwarded-Host: evil, b' ],
        [ '192.0.2.7 0 . b 80' => 'X-Forwarded-For: 192.0.2.7, 10.0.0.1', 'X-Forwarded-Host: evil, b, c' ],
        map( { [ '.' => "X-Forwarded-Host: $_" ] } 'b c',
            'b/', 'user@b', 'b:99999', 'b:0', '[::1]:00', '', "b\x80", '[::1', 'http://b' ),
    );
    is_env( $client, $server, [ @$_[ 1 .. $#$_ ] ], $_->[0] ) for @case;
    $server->stop;
};

subtest 'X-Forwarded-Port, which most proxies pass on as the client has sent it' => sub {
    my %case = (
        ''                                  => [ '.',         '. . https a 443', '. . https a:4430 4430' ],
        'x-forwarded-port'                  => [ '. . . . 6', '. . https a 6',   '. . https a:4430 6' ],
        'x-forwarded-port,x-forwarded-host' => [ '. . . . 6', '. . https a 6',   '. . https a:4430 6' ],
    );
    for my $more ( sort keys %case ) {
        my $server = server( $APP, '--trust-proxy', join ',', $trust, $more || () );
        my $client = $server->connect;
        my @field  = (
            ['X-Forwarded-Port: 6'],
            [ 'X-Forwarded-Port: 6', 'X-Forwarded-Proto: https' ],
            [ 'Host: a:4430', 'X-Forwarded-Port: 6', 'X-Forwarded-Proto: https' ]
        );
        is_env( $client, $server, $field[$_], $case{$more}[$_], "'$more': @{ $field[$_] }" ) for 0 .. $#field;
        $server->stop;
    }
    for my $field (qw(host port)) {
        my $server = Sirius::Test::Server->spawn(
            app  => $APP,
            args => [ '--trust-proxy', "::1,forwarded,x-forwarded-$field" ]
        );
        is $server->wait_exit, 'exit 2', "not with Forwarded: x-forwarded-$field";
        like $server->log, qr/forwarded cannot be combined with x-forwarded-$field/, 'and says so';
    }
};

subtest 'Forwarded' => sub {
    my $server = server( $APP, '--trust-proxy', "$trust,forwarded" );
    my $client = $server->connect;
    my @case   = (
        [ '192.0.2.7 0'             => 'Forwarded: for=192.0.2.7' ],
        [ '192.0.2.7 123'           => 'Forwarded: for="192.0.2.7:123"' ],
        [ '2001:db9::7 123'         => 'Forwarded: for="[2001:db9::7]:123";by=10.0.0.1' ],
        [ '192.0.2.7 0 https b 443' => 'Forwarded: for=192.0.2.7;proto=https;host=b' ],
        [ '192.0.2.7 0 https b:1 1' => 'Forwarded: For=192.0.2.7;Proto=HTTPS;Host="b:1"' ],
        [   '192.0.2.7 0 https . 443' =>
                'Forwarded: for=6.6.6.6, for=192.0.2.7;proto=https, for=10.0.0.1;proto=http'
        ],
        [ '192.0.2.7 0'     => 'Forwarded: for="6.6.6.6, for=192.0.2.7' ],
        [ '192.0.2.7 0'     => 'Forwarded: for=6.6.6.6', 'Forwarded: for=192.0.2.7' ],
        [ '. . https . 443' => 'Forwarded: for=_hidden;proto=https' ],
        [ '.'               => 'Forwarded: for=192.0.2.7 proto=https' ],
        [ '.' => 'X-Forwarded-For: 6.6.6.6', 'X-Forwarded-Proto: https', 'X-Forwarded-Port: 1' ],
        [ '192.0.2.7 0' => 'Forwarded: for=192.0.2.7', 'X-Forwarded-For: 6.6.6.6' ],
    );
    for ( 1, 2 ) {
        is_env( $client, $server, [ @$_[ 1 .. $#$_ ] ], $_->[0] ) for @case;
    }
    $server->stop;
};

# The applications above tell when HTTPS is not what the scheme says
subtest 'HTTPS is what the scheme says, whatever the connection is' => sub {
    my $app = 'sub { my $e = shift; [ 200, [], [ join q( ), map { "$_=" . ( $e->{$_} // "none" ) } '
        . 'qw(psgi.url_scheme HTTPS SSL_PROTOCOL) ] ] }';
    my $ssl    = eval { require IO::Socket::SSL };
    my @tls    = $ssl ? ( '--listen', '127.0.0.1:0,tls', '--tls-self-signed' ) : ();
    my $server = server( $app, '--trust-proxy', "$trust,forwarded", qw(--listen 127.0.0.1:0 --listen),
        "$socket/on", @tls );
    my ( $tcp, undef, $over ) = $server->listeners;
    my %to   = ( TCP => $tcp, unix => "unix:$socket/on", $ssl ? ( TLS => $over ) : () );
    my @many = map {"X-Many-$_: 1"} 1 .. 40;    # an environment outside of the pool
    for my $kind ( sort keys %to ) {
        local $Sirius::Test::Client::TLS = $kind eq 'TLS';
        my $client = $server->connect( to => $to{$kind} );
        for my $said ( undef, qw(https http https HTTPS ftp) ) {
            my @field  = defined $said  ? "Forwarded: proto=$said" : ();
            my $scheme = $kind eq 'TLS' ? 'https'                  : 'http';
            $scheme = lc $said if defined $said && $said =~ /\Ahttps?\z/i;
            my $want = "psgi.url_scheme=$scheme HTTPS=" . ( $scheme eq 'https' ? 'on' : 'none' );
            for my $more ( [], \@many ) {
                my $body = $client->ask( 'GET /', @field, @$more )->body;
                is $body =~ s/ SSL_PROTOCOL=.*//r, $want, "$kind, " . ( $said // 'nothing said' );
                like $body, $kind eq 'TLS' ? qr/=TLSv1/ : qr/SSL_PROTOCOL=none/,
                    'SSL_ keys are of the connection';
            }
        }
    }
    $server->stop;
};

subtest 'CGI programs get the address of the client as its name' => sub {
    skip_without('CGI::Emulate::PSGI');
    my $server = server( <<'APP', '--trust-proxy', $trust );
use CGI::Emulate::PSGI;
my $app = CGI::Emulate::PSGI->handler( sub { print "Content-Type: text/plain\r\n\r\n@ENV{qw(REMOTE_ADDR REMOTE_HOST)}" } );
sub { $app->(@_) }
APP
    is $server->ask( 'GET /', 'X-Forwarded-For: 192.0.2.7' )->body, '192.0.2.7 192.0.2.7', 'behind a proxy';
    is $server->ask('GET /')->body,                                 '127.0.0.1 127.0.0.1', 'directly';
    $server->stop;
};

subtest 'who is trusted' => sub {
    my @case = (
        [ '127.0.0.0/8',    1, 0 ],
        [ '0.0.0.0/0',      1, 0 ],
        [ '::ffff:0:0/96',  1, 0 ],
        [ 'unix',           0, 1 ],
        [ '127.0.0.2,::/0', 0, 0 ],
    );
    for my $case (@case) {
        my ( $list, @trusted ) = @$case;
        my $server = server( $APP, '--trust-proxy', $list, qw(--listen 127.0.0.1:0 --listen), "$socket/s" );
        for my $i ( 0, 1 ) {
            my $client = $server->connect( to => ( $server->address, "unix:$socket/s" )[$i] );
            like $client->ask( 'GET /', 'X-Forwarded-For: 192.0.2.7' )->body,
                $trusted[$i] ? qr/\A192[.]0[.]2[.]7 0 / : qr/\A127[.]0[.]0[.]1 /,
                "$list: " . ( 'TCP', 'a unix socket' )[$i] . ( $trusted[$i] ? '' : ' not' );
        }
        $server->stop;
    }
};

subtest 'a wrong network' => sub {
    my $server = Sirius::Test::Server->spawn( app => $APP, args => [ '--trust-proxy', '::1,10.0.0.1/8' ] );
    is $server->wait_exit, 'exit 2', 'it does not start';
    is $server->log,
        "sirius: --trust-proxy: '10.0.0.1/8' has bits set after the first 8; did you mean 10.0.0.0/8?\n",
        'and says why';
};

subtest 'HAProxy' => sub {
    Sirius::Test::HAProxy->available or plan skip_all => 'HAProxy is not installed';
    my $server = server( $APP, '--trust-proxy', '127.0.0.1,10.0.0.0/8,x-forwarded-host' );
    my $proxy  = Sirius::Test::HAProxy->start(<<"CONF");
defaults
    mode http
    timeout connect 5s
    timeout client 10s
    timeout server 10s
frontend all
    bind fd\@LISTENER
    use_backend %[path,field(2,/)]
backend plain
    option forwardfor
    server one @{[ $server->address ]}
backend full
    option forwardfor
    http-request set-header X-Forwarded-Proto https
    http-request set-header X-Forwarded-Host www.example.com
    http-request set-header Host backend
    server one @{[ $server->address ]}
CONF
    my $body = sub { $proxy->connect->ask(@_)->body };
    is $body->('GET /plain/'), "127.0.0.1 0 http a " . $server->port, 'the address';
    is $body->( 'GET /plain/', 'X-Forwarded-For: 6.6.6.6, 192.0.2.7' ),
        '192.0.2.7 0 http a ' . $server->port, 'HAProxy appends, and its client is trusted here';
    is $body->( 'GET /full/', 'X-Forwarded-Proto: http', 'X-Forwarded-Host: evil' ),
        '127.0.0.1 0 https www.example.com 443', 'scheme and host';
    $server->stop;
};

done_testing;
