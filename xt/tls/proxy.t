# Behind a TCP load balancer: the header of the PROXY protocol comes before the handshake. And trusted proxies
# that speak TLS.
use strict;
use warnings;
BEGIN { $ENV{SIRIUS_TEST_TLS} = 1 }
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Socket::SSL ();
use Socket          qw(AF_INET6 inet_pton);
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::Faults;
use Sirius::Test::Wire;

my $APP = <<'APP';
sub {
    my $env = shift;
    [ 200, [], [ join ' ', map { $_ // '-' } @$env{qw(REMOTE_ADDR REMOTE_PORT psgi.url_scheme HTTP_HOST HTTPS)} ] ];
}
APP

my $V2  = "\r\n\r\n\0\r\nQUIT\n";
my $V1  = "PROXY TCP4 192.0.2.7 198.51.100.1 5555 443\r\n";
my $IP4 = pack 'C4 C4 n n', 192, 0, 2, 8, 198, 51, 100, 1, 6666, 443;
my $IP6 = inet_pton( AF_INET6, '2001:db8::9' ) . inet_pton( AF_INET6, '2001:db8::1' ) . pack 'n n', 7777, 443;
my $TLV = "\x03\0\x04abcd\x01\0\x02h2";

my $server = start_server( $APP,
    qw(--workers 1 --proxy-protocol --tls-handshake-timeout 1 --enable-ssl --tls-self-signed) );

sub wire { return Sirius::Test::Wire->new( $server->address, @_ ) }

subtest 'a header before the handshake' => sub {
    my %case = (
        'version 1'       => [ $V1,                                               '192.0.2.7 5555' ],
        'version 1, IPv6' => [ "PROXY TCP6 2001:db8::9 2001:db8::1 7777 443\r\n", '2001:db8::9 7777' ],
        'version 2'       => [ $V2 . "\x21\x11\0\x0c$IP4",                        '192.0.2.8 6666' ],
        'version 2, IPv6' => [ $V2 . "\x21\x21\0\x24$IP6",                        '2001:db8::9 7777' ],
        'version 2, more than that' =>
            [ $V2 . "\x21\x11" . pack( 'n', 12 + length $TLV ) . $IP4 . $TLV, '192.0.2.8 6666' ],
        'version 1, who is unknown'  => [ "PROXY UNKNOWN\r\n", undef ],
        'version 2, a check of life' => [ $V2 . "\x20\0\0\0",  undef ],
    );
    for my $name ( sort keys %case ) {
        my ( $header, $client ) = @{ $case{$name} };
        my $wire = wire( before => $header );
        ok $wire->is_up, "$name: a handshake" or next;
        $client = '127.0.0.1 ' . $wire->client->port if !defined $client;
        for ( 1 .. 2 ) {
            $wire->put( $wire->seal( request('GET /') ) );
            is $wire->response->body, "$client https a on", 'who the client is';
        }
    }
};

subtest 'in pieces' => sub {
    for my $header ( $V1, $V2 . "\x21\x11\0\x0c$IP4" ) {
        my $plain = $server->connect( plain => 1 );
        for my $byte ( split //, $header ) { $plain->send($byte); sleep 0.001 }
        my $ssl = IO::Socket::SSL->start_SSL( $plain->socket, SSL_verify_mode => 0, Timeout => 5 );
        ok $ssl, 'a byte at a time' or next;
        $ssl->blocking(1);
        print {$ssl} request( 'GET /', 'Connection: close' );
        like join( '', readline $ssl ), qr/\r\n\r\n192\.0\.2\.[78] \d+ https/,
            'is read, and nothing behind it';
    }
};

subtest 'a part of a header' => sub {
    my $plain = $server->connect( plain => 1 );
    $plain->send( substr $V1, 0, 10 );
    my ($cpu) = Sirius::Test::Faults->load_of( sub { sleep 0.8 }, $server->edges );
    cmp_ok $cpu, '<', 0.4, 'does not keep the edge busy';
    shutdown $plain->socket, 1;    # SHUT_WR
    ($cpu) = Sirius::Test::Faults->load_of( sub { sleep 0.8 }, $server->edges );
    cmp_ok $cpu, '<', 0.4, 'nor if nothing more will come';
};

subtest 'what is refused' => sub {
    ok !wire()->is_up, 'no header';
    ok !wire( before => 'x' x 200 )->is_up, 'another text';
    ok !wire( before => "PROXY TCP4 999.0.2.7 198.51.100.1 5555 443\r\n" )->is_up,
        'a header with a wrong address';
    ok !wire( before => $V1 . $V1 )->is_up, 'two of them';
    for my $inside ( $V1, $V2 . "\x21\x11\0\x0c$IP4" ) {
        my $wire = wire( before => $V1 );
        $wire->put( $wire->seal( $inside . request('GET /') ) );
        is $wire->response->status, 400, 'a second header, encrypted, is a bad request';
    }
    my $plain = $server->connect( plain => 1 );
    $plain->send( $V1 . request('GET /') );
    is $plain->response->status, 400, 'plain HTTP behind it';
    $plain = $server->connect( plain => 1 );
    $plain->send( substr $V1, 0, 10 );
    like $plain->end(8), qr/\A(?:eof|reset)\z/,
        'a header that does not go on is closed by the limit of the handshake';
    $plain = $server->connect( plain => 1 );
    $plain->send($V1);
    like $plain->end(8), qr/\A(?:eof|reset)\z/, 'and so is one without a handshake behind it';
};
$server->stop;

subtest 'trusted proxies' => sub {
    my $server = start_server( $APP, qw(--workers 1 --trust-proxy), '127.0.0.1,x-forwarded-host' );
    my @field = ( 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: http', 'X-Forwarded-Host: shop.example' );
    is $server->ask( 'GET /', @field )->body, '192.0.2.7 0 http shop.example -',
        'one that speaks TLS names its client';
    my $client = $server->connect;
    is $client->ask( 'GET /', $field[0], 'X-Forwarded-Proto: https' )->body, '192.0.2.7 0 https a on',
        'by https';
    is $client->ask('GET /')->body, '127.0.0.1 ' . $client->port . ' https a on',
        'and without a field it is the client';
    $server->stop;
    $server = start_server( $APP, qw(--workers 1 --trust-proxy 10.0.0.0/8) );
    $client = $server->connect;
    is $client->ask( 'GET /', @field )->body, '127.0.0.1 ' . $client->port . ' https a on', 'nobody else can';
    $server->stop;
    $server
        = start_server( $APP, qw(--workers 1 --proxy-protocol --enable-ssl --tls-self-signed --trust-proxy),
        '127.0.0.1,192.0.2.0/24' );

    for my $named ( [ $V1 => '198.51.100.77 0 http a -' ],
        [ $V1 =~ s/192/193/r => '193.0.2.7 5555 https a on' ] )
    {
        my $wire = Sirius::Test::Wire->new( $server->address, before => $named->[0] );
        $wire->put(
            $wire->seal( request( 'GET /', 'X-Forwarded-For: 198.51.100.77', 'X-Forwarded-Proto: http' ) ) );
        is $wire->response->body, $named->[1], 'a proxy that the PROXY protocol names';
    }
    $server->stop;
};

done_testing;
