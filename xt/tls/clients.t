# Certificates of clients: required or optional, and what the application knows of them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Socket::SSL        qw(SSL_VERIFY_NONE);
use IO::Socket::SSL::Utils qw(PEM_key2string);
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;
use Sirius::Test::Client;

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

my $root_key = $clients->file( 'root.key', PEM_key2string( $clients->{key} ) );

# What a CA has revoked, by openssl: another CRL of it
package Revoking {

    sub new {
        my ( $class, $cert, $key ) = @_;
        my $self = bless { cert => $cert, key => $key, dir => $clients->dir . '/ca-' . ++our $number },
            $class;
        mkdir $self->{dir} or die "$self->{dir}: $!";
        main::spew( "$self->{dir}/index",     '' );
        main::spew( "$self->{dir}/crlnumber", "01\n" );
        main::spew( "$self->{dir}/conf",
            "[ca]\ndefault_ca=d\n[d]\ndatabase=$self->{dir}/index\ncrlnumber=$self->{dir}/crlnumber\ndefault_md=sha256\n"
        );
        return $self;
    }

    sub openssl {
        my ( $self, @words ) = @_;
        my $log = "$self->{dir}/log";
        my @ca  = ( '-config', "$self->{dir}/conf", '-cert', $self->{cert}, '-keyfile', $self->{key} );
        system("openssl ca @ca @words 2>$log") == 0 or die "@words: " . main::slurp($log);
        return;
    }

    sub revoke { my ( $self, $cert ) = @_; return $self->openssl( '-revoke', $cert ) }

    # Its path; valid for so many seconds
    sub crl {
        my ( $self, $seconds, $name ) = @_;
        my $to = "$self->{dir}/" . ( $name || 'crl' ) . '.pem';
        $self->openssl("-gencrl -crlsec $seconds -out $to.new");
        rename "$to.new", $to or die "$to: $!";
        return $to;
    }
}

sub slurp {
    open my $in, '<', shift or return '';
    local $/;
    return readline($in) // '';
}

sub asks_for_certificates {
    my ( $ca, @more ) = @_;
    return start_server(
        $app, '--listen', '127.0.0.1:0,tls',
        '--tls-cert'      => $server[0],
        '--tls-key'       => $server[1],
        '--tls-client-ca' => $ca,
        qw(--workers 1 --admin 127.0.0.1:0), @more
    );
}

my @versions = qw(TLSv1_2 TLSv1_3);
my @carol    = $clients->issue( 'Carol', purpose => 'client' );
for my $how ( 'an option', 'the file of the CA' ) {
    subtest "a revoked certificate, by $how" => sub {
        my $ca = Revoking->new( $clients->ca, $root_key );
        $ca->revoke( $carol[0] );
        my $crl  = $ca->crl(86_400);
        my @with = ( $clients->ca, '--tls-client-crl' => $crl );
        @with = ( $clients->file( 'both.pem', slurp( $clients->ca ) . slurp($crl) ) ) if $how ne 'an option';
        my $server = asks_for_certificates(@with);
        for my $version (@versions) {
            is ask( $server, with(@carol), SSL_version => $version ), 'refused',
                "$version: one that is revoked";
            like ask( $server, with(@good), SSL_version => $version ), qr/CN=Alice/,
                "$version: one that is not";
        }
        ok until_true(
            5, sub { $server->log =~ /failed: the client's certificate, or one of its chain, is revoked/ }
            ),
            'the log says so';
        like $server->log,
            qr/CRLs read: 1, the first to expire is that of An_authority_of_clients, in (?:23 h|1 d)/,
            'and when the CRL expires';
        my ($expires)
            = Sirius::Test::Client->new( ( $server->log =~ m{admin on http://(\S+)/} )[0] )
            ->ask('GET /metrics')->body
            =~ /^sirius_tls_crl_expiry_timestamp_seconds\{name="An_authority_of_clients"\} (\d+)/m;
        ok $expires > time + 86_000 && $expires <= time + 86_400, 'so does the metric' or diag $expires;
        $server->stop;
    };
}

subtest 'revoked while its session is in use' => sub {
    my $ca     = Revoking->new( $clients->ca, $root_key );
    my $server = asks_for_certificates( $clients->ca, '--tls-client-crl' => $ca->crl(86_400) );
    my @of     = qw(tls1_2 tls1_3);
    is resume( $server, $_, @carol, '-sess_out' ), 'CN=Carol', "$_: a session"  for @of;
    is resume( $server, $_, @carol, '-sess_in' ),  'CN=Carol', "$_: is resumed" for @of;
    $ca->revoke( $carol[0] );
    $ca->crl(86_400);
    ok until_true( 60, sub { $server->log =~ /certificates reloaded/ } ), 'another CRL is found';
    is resume( $server, $_, @carol, '-sess_in' ), '', "$_: refused now" for @of;
    like ask( $server, with(@good) ), qr/CN=Alice/, 'others are not';
    $server->stop;
};

subtest 'a CRL that expires' => sub {
    my $ca     = Revoking->new( $clients->ca, $root_key );
    my $server = asks_for_certificates( $clients->ca, '--tls-client-crl' => $ca->crl(7) );
    my @of     = qw(tls1_2 tls1_3);
    is resume( $server, $_, @good, '-sess_out' ), 'CN=Alice', "$_: a session, while it is valid" for @of;
    ok until_true( 60, sub { $server->log =~ /error: the CRL of An_authority_of_clients expired on / } ),
        'the log says that it has expired';
    is ask( $server, with(@good) ),              'refused', 'nobody can be checked';
    is resume( $server, $_, @good, '-sess_in' ), '',        "$_: nor has a session any effect" for @of;
    ok until_true(
        5, sub { $server->log =~ /failed: the CRL of the CA .* has expired \(--tls-client-crl\)/ }
        ),
        'and why';
    $ca->crl(86_400);
    ok until_true( 60, sub { $server->log =~ /certificates reloaded/ } ), 'the next one is found';
    like ask( $server, with(@good) ), qr/CN=Alice/, 'and everybody is served';
    $server->stop;
    $server = asks_for_certificates(
        $clients->ca,
        '--tls-client-crl'    => $ca->crl(1),
        '--tls-client-verify' => 'optional'
    );
    like $server->log, qr/the CRL of An_authority_of_clients expired/, 'the start warns'
        if until_true( 10, sub { $server->log =~ /expired/ } );
    is ask($server),                "SSL_CLIENT_VERIFY=NONE\n", 'those without a certificate are served';
    is ask( $server, with(@good) ), 'refused',                  'those with one are not';
    $server->stop;
};

# The edge reads the files, and nobody else would see it. The last one has expired when the server starts.
subtest 'a CRL that expires, with --workers 0' => sub {
    my $said = qr/error: the CRL of An_authority_of_clients expired on /;
    my $both = sub { return $clients->file( 'alone.pem', slurp( $clients->ca ) . slurp( $_[0]->crl(7) ) ) };
    my %with = (
        'an option'          => sub { ( $clients->ca, '--tls-client-crl' => $_[0]->crl(7) ) },
        'the file of the CA' => sub { $both->( $_[0] ) },
    );
    for my $how ( sort keys %with ) {
        my ( $ca, @more ) = $with{$how}->( Revoking->new( $clients->ca, $root_key ) );
        my $server = start_server(
            $app, '--listen', '127.0.0.1:0,tls',
            '--tls-cert'      => $server[0],
            '--tls-key'       => $server[1],
            '--tls-client-ca' => $ca,
            qw(--workers 0), @more
        );
        like ask( $server, with(@good) ), qr/CN=Alice/,   "$how: while it is valid";
        unlike $server->log,              qr/expired on/, 'nothing is said';
        ok until_true( 30, sub { $server->log =~ $said } ), 'the log says that it has expired';
        is ask( $server, with(@good) ), 'refused', 'and clients are refused';
        my ($edge) = $server->beside;
        kill KILL => $edge;
        ok until_true( 30, sub { ( () = $server->log =~ /$said/g ) == 2 } ), 'so it does of another edge';
        is ask( $server, with(@good) ), 'refused', 'which has read it again';
        $server->stop;
        is scalar( () = $server->log =~ /$said/g ), 2, 'once each';
    }
    my $crl = Revoking->new( $clients->ca, $root_key )->crl(1);
    ok until_true( 10, sub { time > ( stat $crl )[9] + 1 } ), 'one that has expired before';
    my $server = start_server(
        $app, '--listen', '127.0.0.1:0,tls',
        '--tls-cert'       => $server[0],
        '--tls-key'        => $server[1],
        '--tls-client-ca'  => $clients->ca,
        '--tls-client-crl' => $crl,
        qw(--workers 0)
    );
    is ask( $server, with(@good) ), 'refused', 'clients are refused';
    $server->stop;
    is scalar( () = $server->log =~ /the CRL of An_authority_of_clients expired/g ), 1,
        'the start says so, once';
};

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

subtest 'CRLs of a chain' => sub {
    my ( $department, @dave ) = department();
    my $root      = Revoking->new( $clients->ca, $root_key );
    my $crl       = $root->crl(86_400);
    my $both      = $clients->file( 'dave-chain.pem', slurp( $dave[0] ) . slurp($department) );
    my $below     = Revoking->new( $department, $clients->dir . '/department.key' );
    my $below_crl = $below->crl(86_400);
    my $server = asks_for_certificates( $clients->ca, map { ( '--tls-client-crl' => $_ ) } $crl, $below_crl );
    like ask( $server, with( $both, $dave[1] ) ), qr/CN=Dave/, 'one of each CA of the chain';
    $server->stop;
    $server = asks_for_certificates( $clients->ca, '--tls-client-crl' => $crl );
    is ask( $server, with( $both, $dave[1] ) ), 'refused', 'that of one of them is missing';
    ok until_true( 5, sub { $server->log =~ /failed: there is no CRL of the CA that has issued/ } ),
        'the log says so';
    $server->stop;
    $server = asks_for_certificates( $department, '--tls-client-crl' => $below_crl );
    like ask( $server, with(@dave) ), qr/CN=Dave/, 'a CA without the one above it needs its own only';
    $server->stop;
};

# Of two connections with openssl, the answers; the second one offers the session of the first. Both are '' if
# refused
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
