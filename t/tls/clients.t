# Certificates of clients: required or optional, and what the application knows of them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::SSL        qw(SSL_VERIFY_NONE);
use IO::Socket::SSL::Utils qw(PEM_key2string);
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

my $made     = Sirius::Test::Certificates->new;
my $clients  = Sirius::Test::Certificates->new('An authority of clients');
my $stranger = Sirius::Test::Certificates->new('Somebody else');
my @server   = $made->issue('one.example');
my @good     = $clients->issue( 'Alice', purpose => 'client' );
my @bad      = $stranger->issue( 'Mallory', purpose => 'client' );
my @old      = $clients->issue( 'Old', purpose => 'client', from => time - 200_000, to => time - 100_000 );

# A good one that has others behind it, as many as cost a server a while to read
sub long {
    my @pem = $clients->pem( 'Alice', purpose => 'client' );
    $pem[0] .= ( $stranger->pem('Somebody else') )[0] x ( 1 + int 40_000 / 800 );
    return $clients->file( 'long.pem', $pem[0] ), $clients->file( 'long.key', $pem[1] );
}
my @long = long();

my $app = <<'APP';
sub {
    my $env = shift;
    [ 200, [ 'Content-Type' => 'text/plain' ], [ map {"$_=$env->{$_}\n"} grep {/\ASSL_CLIENT/} sort keys %$env ] ];
}
APP

sub ask {
    my ( $server, @option ) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $socket = IO::Socket::SSL->new(
        PeerAddr        => $server->address,
        SSL_verify_mode => SSL_VERIFY_NONE,
        Timeout         => 10,
        @option
    ) or return 'refused';
    print {$socket} "GET / HTTP/1.0\r\n\r\n" or return 'refused';
    my $text = join '', readline $socket;
    return $text =~ /\r\n\r\n(.*)\z/s ? $1 : 'refused';
}

sub with { return ( SSL_cert_file => $_[0], SSL_key_file => $_[1], SSL_use_cert => 1 ) }

for my $verify (qw(required optional)) {
    subtest $verify => sub {
        my $server = start_server(
            $app, '--listen', '127.0.0.1:0,tls',
            '--tls-cert'          => $server[0],
            '--tls-key'           => $server[1],
            '--tls-client-ca'     => $clients->ca,
            '--tls-client-verify' => $verify,
            qw(--workers 1)
        );
        for my $version (qw(TLSv1_2 TLSv1_3)) {
            my $env = ask( $server, with(@good), SSL_version => $version );
            like $env, qr/^SSL_CLIENT_VERIFY=SUCCESS$/m,                     "$version: a good certificate";
            like $env, qr/^SSL_CLIENT_S_DN=CN=Alice\b/m,                     'its subject';
            like $env, qr/^SSL_CLIENT_I_DN=.*CN=An authority of clients\b/m, 'its issuer';
            like $env, qr/^SSL_CLIENT_M_SERIAL=[0-9A-F]+$/m,                 'its number';
            like $env, qr/^SSL_CLIENT_CERT=-----BEGIN CERTIFICATE-----\n.+-----END CERTIFICATE-----\n/ms,
                'all of it';
            is ask( $server, with(@bad),  SSL_version => $version ), 'refused', 'one of a stranger';
            is ask( $server, with(@old),  SSL_version => $version ), 'refused', 'one that has expired';
            is ask( $server, with(@long), SSL_version => $version ), 'refused', 'one with a chain of 40 KB';
            my $none = ask( $server, SSL_version => $version );
            is $none, $verify eq 'required' ? 'refused' : "SSL_CLIENT_VERIFY=NONE\n", 'none';
        }
        $server->stop;
    };
}

# An authority of a department, issued by the one above
sub department {
    my ( $ca, $key, $request, $dave )
        = map { $clients->dir . "/$_" } qw(department.pem department.key request dave.pem);
    my $new = 'openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj';
    $clients->file( 'root.key', PEM_key2string( $clients->{key} ) );
    my @steps = (
        "$new /CN=Department -addext basicConstraints=critical,CA:TRUE -keyout $key -out $request",
        "openssl x509 -req -in $request -CA @{[ $clients->ca ]} -CAkey @{[ $clients->dir ]}/root.key"
            . " -set_serial 7 -copy_extensions copy -days 9 -out $ca",
        "$new /CN=Dave -keyout $key.dave -out $request",
        "openssl x509 -req -in $request -CA $ca -CAkey $key -set_serial 8 -days 9 -out $dave",
    );
    system("$_ 2>/dev/null") == 0 or die $_ for @steps;
    return $ca, $dave, "$key.dave";
}

subtest 'an authority without the one above it' => sub {
    my ( $ca, @dave ) = department();
    my $server = start_server(
        $app, '--listen', '127.0.0.1:0,tls',
        '--tls-cert'      => $server[0],
        '--tls-key'       => $server[1],
        '--tls-client-ca' => $ca,
        qw(--workers 1)
    );
    like ask( $server, with(@dave) ), qr/^SSL_CLIENT_S_DN=CN=Dave$/m, 'what it has issued';
    is ask( $server, with(@good) ), 'refused', 'what the one above has issued';
    is ask( $server, with(@bad) ),  'refused', 'what a stranger has issued';
    $server->stop;
};

# Of two connections with openssl, the answers; the second one offers the session of the first. Both are '' if refused
sub resume {
    my ( $server, $version, $cert, $key, $direction ) = @_;
    my $file = $made->dir . "/session-$version";
    return '' if $direction eq '-sess_in' && !-s $file;
    my @command = (
        qw(timeout 20 openssl s_client -quiet -connect),
        $server->address, "-$version", $direction, $file, '-cert', $cert, '-key', $key
    );
    return `printf 'GET / HTTP/1.0\r\n\r\n' | @command 2>/dev/null` =~ /^SSL_CLIENT_S_DN=(.*)/m ? $1 : '';
}

subtest 'a session ends with the certificate of its client' => sub {
    my $server = start_server(
        $app, '--listen', '127.0.0.1:0,tls',
        '--tls-cert'      => $server[0],
        '--tls-key'       => $server[1],
        '--tls-client-ca' => $clients->ca,
        qw(--workers 1)
    );
    my @versions = qw(tls1_2 tls1_3);
    my ( $to, @brief, %first, %again );
    for my $seconds ( 3, 12, 40 ) {    # a busy machine needs more
        $to    = time + $seconds;
        @brief = $clients->issue( 'Brief', purpose => 'client', to => $to );
        %first = map { $_ => resume( $server, $_, @brief, '-sess_out' ) } @versions;
        %again = map { $_ => resume( $server, $_, @brief, '-sess_in' ) } @versions;
        last if !grep { !length } values %first, values %again;
    }
    is $first{$_}, 'CN=Brief', "$_: while it is valid" for @versions;
    is $again{$_}, 'CN=Brief', "$_: once more"         for @versions;
    ok until_true( 60, sub { time > $to + 1 } ), 'it expires';
    is resume( $server, $_, @brief, '-sess_in' ), '', "$_: the session is of no use then" for @versions;
    $server->stop;
};

done_testing;
