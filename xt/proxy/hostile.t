use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", "$FindBin::Bin/../docs";
use Test::More;
use IO::Socket::INET;
use JSON::PP ();
use Page;
use Sirius::Test;
use Sirius::Test::Snippets;

# Each configuration of a proxy in the documentation and in deploy/, with a client that sends every field that
# only a proxy may set: the environment of the application is the one of a client that sends none.

my $APP = <<'APP';
use JSON::PP ();
sub {
    my $env = shift;
    my %plain = map { ( $_ => $env->{$_} ) } grep { !/\Apsgi(?!.url_scheme)/ } keys %$env;
    return [ 200, [ 'Content-Type' => 'application/json', 'Cache-Control' => 'no-store' ], [ JSON::PP->new->encode( \%plain ) ] ];
}
APP
my $CLIENT = '127.0.0.2';    # which is not trusted

my $long_ago = sprintf 't=%.3f', time - 1000;
my @FIELD    = (
    'X-Forwarded-For: 6.6.6.6',
    'X-Forwarded-For: 6.6.6.6, 127.0.0.1',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Protocol: https',
    'X-Forwarded-Port: 6666',
    'X-Forwarded-Host: evil.example',
    'X-Forwarded-Server: evil.example',
    'X-Forwarded-Prefix: /evil',
    'X-Forwarded-Script-Name: /evil',
    'X-Forwarded-Ssl: on',
    'X-Forwarded-Scheme: https',
    'X-Forwarded-User: root',
    'X-Forwarded-Client-Cert: Subject="CN=root"',
    'X-Real-IP: 6.6.6.6',
    'Forwarded: for=6.6.6.6;proto=https;host=evil.example',
    "X-Request-Start: $long_ago",
    "X-Queue-Start: $long_ago",
    'X-Request-Id: evil',
    'X-Script-Name: /evil',
    'X-Scheme: https',
    'X-URL-Scheme: https',
    'X-Original-URL: /evil',
    'X-Original-Host: evil.example',
    'X-Rewrite-URL: /evil',
    'Front-End-Https: on',
    'Client-Cert: :ZXZpbA==:',
    'Client-Cert-Chain: :ZXZpbA==:',
    'X-Client-Cert: evil',
    'X-Client-Verify: SUCCESS',
    'X-Client-DN: CN=root',
    'SSL-Client-Cert: evil',
    'SSL-Client-Verify: SUCCESS',
    'SSL-Client-S-DN: CN=root',
    'X-SSL-Client-Cert: evil',
    'X-SSL-Client-Verify: SUCCESS',
    'X-SSL-Client-S-DN: CN=root',
    'X-Remote-User: root',
    'Remote-User: root',
    'Via: 1.1 evil',
    'Early-Data: 1',
);
my @NAME    = map {/\A([^:]+)/} @FIELD;
my %HOSTILE = (
    'each field'            => [@FIELD],
    'each field twice'      => [ @FIELD, @FIELD ],
    'in lower case'         => [ map { lc( (/\A(.*?):/)[0] ) . s/\A.*?(?=:)//r } @FIELD ],
    'with underscores'      => [ map { (/\A(.*?):/)[0] =~ tr/-/_/r . s/\A.*?(?=:)//r } @FIELD ],
    'with an underscore'    => [ map {s/-/_/r} @FIELD ],
    'with one at the end'   => [ map {s/-(?=[^-]*?:)/_/r} @FIELD ],
    'both spellings'        => [ map { ( (/\A(.*?):/)[0] =~ tr/-/_/r . s/\A.*?(?=:)//r, $_ ) } @FIELD ],
    'without a value'       => [ map {"$_:"} @NAME ],
    'named in Connection'   => [ 'Connection: close, ' . join( ', ', @NAME ), @FIELD ],
    'X-Forwarded-For named' => ['Connection: close, X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host'],
);

# Many proxies refuse more than a hundred fields, and the server does
my %few = map { $_ => 1 } ( 'each field twice', 'both spellings' );

sub env_of {
    my ( $port, @field ) = @_;
    my $socket = IO::Socket::INET->new(
        PeerAddr  => '127.0.0.1',
        PeerPort  => $port,
        LocalAddr => $CLIENT,
        Timeout   => 10
    ) or return { connect => "$!" };
    local $SIG{ALRM} = sub { close $socket };
    alarm 20;
    push @field, 'Connection: close' if !grep {/\AConnection:/} @field;
    print {$socket} join "\r\n", 'GET /path HTTP/1.1', 'Host: shop.example', @field, '', '';
    my $answer = join '', readline $socket;
    alarm 0;
    my ($json) = $answer =~ /(\{.*\})/s;
    my $env = $json && eval { JSON::PP->new->decode($json) } or return { answer => $answer =~ s/\r\n.*//sr };
    return $env;
}

# What differs from request to request, if the client has not set it
sub plain {
    my $env = shift;
    delete $env->{HTTP_CONNECTION};
    my %sent = map { $_ => 1 } map {s/\A.*?: //r} @FIELD;
    for my $key (qw(HTTP_X_REQUEST_ID HTTP_X_REQUEST_START HTTP_X_VARNISH)) {
        next if !exists $env->{$key};
        $env->{$key} = length $env->{$key} && !$sent{ $env->{$key} } ? 'by the proxy' : "SENT $env->{$key}";
    }
    return $env;
}

sub test_proxy {
    my ( $name, $kind, $text, $trust, @more ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return subtest $name => sub {
        Sirius::Test::Snippets->available($kind) or plan skip_all => "$kind is not installed";
        my $admin  = free_port();
        my $server = start_server( $APP, qw(--workers 1 --max-header-fields 250 --listen 127.0.0.1:0 --admin),
            "127.0.0.1:$admin", '--trust-proxy', $trust, @more );
        my $proxy = Sirius::Test::Snippets->start(
            kind   => $kind,
            text   => $text,
            server => ( grep { !/:$admin\z/ } $server->listeners )[0],
            admin  => "127.0.0.1:$admin"
        );
        my $want;
        until_true( 20, sub { $want = plain( env_of( $proxy->port ) ); $want->{REMOTE_ADDR} } )
            or return diag explain($want), fail 'it answers';
        is $want->{REMOTE_ADDR},       $CLIENT,        'the address of the client';
        is $want->{REMOTE_HOST},       $CLIENT,        'in both keys';
        is $want->{'psgi.url_scheme'}, 'http',         'the scheme';
        is $want->{HTTPS},             undef,          'no HTTPS';
        is $want->{HTTP_HOST},         'shop.example', 'the host';
        my $http = !@more;
        is $want->{SERVER_PORT}, '80', 'the port' if $http;

        for my $case ( sort keys %HOSTILE ) {
            my @all = @{ $HOSTILE{$case} };
            for my $fields (
                $few{$case} ? ( [ @all[ 0 .. $#all / 2 ] ], [ @all[ $#all / 2 + 1 .. $#all ] ] ) : [@all] )
            {
                my $got = plain( env_of( $proxy->port, @$fields ) );
                if ( !$http ) {    # a proxy for TCP removes nothing, and nothing is believed
                    delete $got->{$_} for grep { /\AHTTP_/ && !/\AHTTP_(?:HOST|X_REQUEST_ID)\z/ } keys %$got;
                    $got->{REMOTE_PORT} = $want->{REMOTE_PORT};
                }
                if ( $case =~ /named/ && ( $got->{answer} || '' ) =~ / 400 / ) {
                    pass "$case: refused";
                    next;
                }
                is_deeply $got, $want, $case or diag explain($got);
            }
        }
        $proxy->stop;
        $server->stop;
    };
}

my %tested;
my ( @blocks, $at );
for my $page ( Page->all ) {
    push @blocks, $page->blocks;
}
for my $i ( 0 .. $#blocks ) {
    my $block  = $blocks[$i];
    my ($kind) = ( $block->{mark} || '' ) =~ /\A(apache|caddy|haproxy|nginx|varnish)\z/ or next;
    next if $kind eq 'haproxy' && $block->{text} !~ /^frontend/m;    # a part
    my ($trust) = map { $_->{text} =~ /--trust-proxy (\S+)/ } grep {defined} @blocks[ $i + 1 .. $i + 2 ];
    ok $trust, "$block->{page} line $block->{line}: a command with --trust-proxy follows" or next;
    my @more = $block->{text} =~ /send-proxy/ ? '--proxy-protocol' : ();
    $tested{$kind}++;
    test_proxy( "$block->{page} line $block->{line}: $kind",
        $kind, $block->{text}, $trust =~ s/10[.]0[.]0[.]0\/24/127.0.0.1/r, @more );
}
for my $case (
    [ 'nginx.conf'           => 'nginx' ],
    [ 'container/nginx.conf' => 'nginx' ],
    [ 'haproxy.cfg'          => 'haproxy' ],
    [ Caddyfile              => 'caddy' ],
    [ 'apache.conf'          => 'apache' ],
    [ 'varnish.vcl'          => 'varnish' ]
    )
{
    my ( $file, $kind ) = @$case;
    $tested{$kind}++;
    my $text = Sirius::Test::Server::slurp("deploy/$file");
    my ($trust) = $text =~ /--trust-proxy (\S+)/;
    test_proxy( "deploy/$file", $kind, $text, ( $trust || '127.0.0.1' ) =~ s/10[.]0[.]0[.]0\/24/127.0.0.1/r );
}

is_deeply [ sort keys %tested ], [qw(apache caddy haproxy nginx varnish)],
    'every kind of proxy is documented';

# Load balancers of clouds append to X-Forwarded-For, set two fields, and pass on all others
subtest 'a load balancer that removes nothing' => sub {
    my $page = Sirius::Test::Server::slurp('docs/DEPLOY.md');
    my ($trust) = $page =~ /Load balancers of clouds.*?--trust-proxy ([^`]+)`/s;
    my $server
        = start_server( $APP, qw(--workers 1 --trust-proxy), $trust =~ s/10[.]0[.]0[.]0\/16/127.0.0.1/r );
    for my $case ( sort keys %HOSTILE ) {
        my @field = grep { !/\Ax.forwarded.(?:proto|port|for):/i && !/\AConnection:/ } @{ $HOSTILE{$case} };
        splice @field, 60;
        my $env = JSON::PP->new->decode(
            $server->ask(
                'GET /path', @field,
                'Host: shop.example',
                "X-Forwarded-For: 6.6.6.6, 127.0.0.1, $CLIENT",
                'X-Forwarded-Proto: https',
                'X-Forwarded-Port: 443'
            )->body
        );
        my @key
            = qw(REMOTE_ADDR REMOTE_PORT psgi.url_scheme HTTPS HTTP_HOST SERVER_PORT SERVER_NAME SCRIPT_NAME);
        is join( ' ', @{$env}{@key} ), "$CLIENT 0 https on shop.example 443 127.0.0.1 ", $case;
    }
    $server->stop;
};

done_testing;
