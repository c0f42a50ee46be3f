# TLS as clients see it: versions, names, certificates, ALPN, what %env says, large bodies both ways, the end
# of a connection.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Select;
use IO::Socket::INET;
use IO::Socket::SSL qw(SSL_VERIFY_NONE SSL_VERIFY_PEER);
use Net::SSLeay;
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

my $made = Sirius::Test::Certificates->new;
my ( $ec, $ec_key )   = $made->issue( 'one.example', names => [ 'one.example', '*.wild.example' ] );
my ( $rsa, $rsa_key ) = $made->issue( 'one.example', names => ['one.example'], type => 'rsa', file => 'rsa' );
my ( $other, $other_key ) = $made->issue('two.example');

my $server = start_server(
    <<'APP', '--enable-ssl', map( { ( '--tls-cert' => $_->[0], '--tls-key' => $_->[1] ) } [ $ec, $ec_key ], [ $rsa, $rsa_key ], [ $other, $other_key ] ), qw(--workers 2 --access-log -), '--access-log-format' => '%{path}z %U %{SSL_PROTOCOL}x %{SSL_TLS_SNI}x' =~ s/%\{path\}z //r );
use strict;
use warnings;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    if ( $path eq '/env' ) {
        my @keys = grep { /\A(?:HTTPS\z|SSL_|psgi.url_scheme|HTTP_X_(?!REQUEST_ID)|HTTP_SSL)/ } sort keys %$env;
        return [ 200, [], [ map {"$_=$env->{$_}\n"} @keys ] ];
    }
    if ( $path eq '/big' ) { return [ 200, [], [ 'x' x 5_000_000 ] ] }
    if ( $path eq '/file' ) { open my $fh, '<', $^X or die $!; return [ 200, [ 'Content-Length' => -s $fh ], $fh ] }
    if ( $path eq '/echo' ) {
        my ( $sum, $n, $buffer ) = ( 0, 0 );
        while ( my $got = $env->{'psgi.input'}->read( $buffer, 65536 ) ) { $n += $got; $sum = ( $sum + unpack '%32C*', $buffer ) % 2**32 }
        return [ 200, [], ["$n $sum"] ];
    }
    if ( $path eq '/stream' ) {
        return sub {
            my $writer = shift->( [ 200, [] ] );
            $writer->write( "line $_\n" ) for 1 .. 1000;
            $writer->close;
        };
    }
    return [ 200, [], ['hello'] ];
};
APP

sub connect_to {
    my %option = @_;
    my $socket = IO::Socket::SSL->new(
        PeerAddr            => $server->address,
        SSL_verify_mode     => SSL_VERIFY_PEER,
        SSL_ca_file         => $made->ca,
        SSL_hostname        => 'one.example',
        SSL_verifycn_name   => $option{SSL_hostname} || 'one.example',
        SSL_verifycn_scheme => 'http',
        Timeout             => 10,
        %option
    );
    return $socket;
}

sub get {
    my ( $socket, $path, @field ) = @_;
    print {$socket} "GET $path HTTP/1.1\r\nHost: one.example\r\n", map( {"$_\r\n"} @field ), "\r\n";
    return response($socket);
}

# read of IO::Socket::SSL returns what one record has
sub take {
    my ( $socket, $length ) = @_;
    my $bytes = '';
    while ( length $bytes < $length ) {
        sysread $socket, $bytes, $length - length $bytes, length $bytes or last;
    }
    return $bytes;
}

# Status, fields and body, read by Content-Length or chunks or to the end
sub response {
    my $socket = shift;
    my $head   = '';
    while ( $head !~ /\r\n\r\n/ ) {
        my $line = readline $socket;
        return "cut: $head" if !defined $line;
        $head .= $line;
    }
    my $body = '';
    if    ( $head =~ /^Content-Length: (\d+)/mi ) { $body = take( $socket, $1 ) }
    elsif ( $head =~ /^Transfer-Encoding: chunked/mi ) {
        while ( my ($size) = ( readline $socket ) =~ /\A([0-9a-f]+)/i ) {
            my $chunk = take( $socket, hex $size );
            readline $socket;
            last if !hex $size;
            $body .= $chunk;
        }
    }
    return ( "$head$body", $body );
}

subtest 'a request and its environment' => sub {
    my $socket = connect_to() or return fail "connect: $IO::Socket::SSL::SSL_ERROR";
    like + ( get( $socket, '/' ) )[0], qr/\AHTTP\/1\.1 200 .*hello\z/s, 'a response';
    my ( undef, $env )
        = get( $socket, '/env', 'X-HTTPS: forged', 'SSL_PROTOCOL: forged', 'SSL-PROTOCOL: forged' );
    like $env,   qr/^HTTPS=on$/m,                 'HTTPS';
    like $env,   qr/^psgi\.url_scheme=https$/m,   'the scheme';
    like $env,   qr/^SSL_PROTOCOL=TLSv1\.3$/m,    'the protocol';
    like $env,   qr/^SSL_CIPHER=TLS_\w+$/m,       'the cipher';
    like $env,   qr/^SSL_TLS_SNI=one\.example$/m, 'the name';
    like $env,   qr/^SSL_CLIENT_VERIFY=NONE$/m,   'no certificate of a client';
    unlike $env, qr/^(?!HTTP_).*forged/m,         'a client cannot forge them';
    my @more = map {"X-Field-$_: $_"} 1 .. 40;
    like( ( get( $socket, '/env', @more ) )[1], qr/^SSL_PROTOCOL=TLSv1\.3$/m, 'with many fields as well' );
};

subtest 'versions' => sub {
    for my $version (qw(TLSv1_2 TLSv1_3)) {
        my $socket = connect_to( SSL_version => $version )
            or fail("$version: $IO::Socket::SSL::SSL_ERROR"), next;
        is $socket->get_sslversion, $version, $version;
        like(
            ( get( $socket, '/env' ) )[1],
            qr/^SSL_PROTOCOL=\Q@{[ $version =~ tr{_}{.}r ]}\E$/m,
            'and the application knows'
        );
    }
    my $old = connect_to( SSL_version => 'TLSv1_1', SSL_cipher_list => 'ALL:@SECLEVEL=0' );
    ok !$old, 'TLS 1.1 is refused';
};

subtest 'names and kinds of keys' => sub {
    my $name_of = sub {
        my $socket = connect_to(@_) or return "no connection: $IO::Socket::SSL::SSL_ERROR";
        my $type   = Net::SSLeay::EVP_PKEY_id(
            Net::SSLeay::X509_get_pubkey( Net::SSLeay::get_peer_certificate( $socket->_get_ssl_object ) ) );
        return $socket->peer_certificate('commonName') . ( $type == 6 ? ' rsa' : ' ec' );
    };
    is $name_of->(), 'one.example ec', 'the first';
    is $name_of->( SSL_hostname => 'two.example' ),    'two.example ec', 'another name';
    is $name_of->( SSL_hostname => 'TWO.example' ),    'two.example ec', 'in capitals';
    is $name_of->( SSL_hostname => 'a.wild.example' ), 'one.example ec', 'a name of a wildcard';
    is $name_of->( SSL_hostname => 'a.b.wild.example', SSL_verify_mode => SSL_VERIFY_NONE ),
        'one.example ec', 'a star is one label: the default';
    is $name_of->( SSL_hostname => 'unknown.example', SSL_verify_mode => SSL_VERIFY_NONE ), 'one.example ec',
        'an unknown name gets the default';
    is $name_of->( SSL_hostname => '', SSL_verify_mode => SSL_VERIFY_NONE ), 'one.example ec',
        'and no name as well';
    is $name_of->( SSL_version => 'TLSv1_2', SSL_cipher_list => 'aRSA' ), 'one.example rsa',
        'a client that knows RSA only gets RSA';
};

# RFC 6066 3
subtest 'a session is resumed by its name only' => sub {
    my $cache = IO::Socket::SSL::Session_Cache->new(10);
    my @kept;    # with them the client would forget their sessions
    my $resumed = sub {
        my ( $name, @option ) = @_;
        my $socket = connect_to(
            SSL_hostname      => $name,
            SSL_session_cache => $cache,
            SSL_session_key   => 'x',
            SSL_verify_mode   => SSL_VERIFY_NONE,
            @option
        ) or return "no connection: $IO::Socket::SSL::SSL_ERROR";
        my $is = $socket->get_session_reused ? 'resumed' : 'new';
        my ($sni) = ( get( $socket, '/env' ) )[1] =~ /^SSL_TLS_SNI=(.*)$/m;
        push @kept, $socket;
        return "$is for " . ( $sni // 'nobody' );
    };
    my @old = ( SSL_version => 'TLSv1_2' );
    is $resumed->( 'one.example', @old ), 'new for one.example',     'TLS 1.2';
    is $resumed->( 'one.example', @old ), 'resumed for one.example', 'again';
    is $resumed->( 'ONE.example', @old ), 'resumed for one.example', 'in capitals';
    is $resumed->( 'two.example', @old ), 'new for two.example',     'another name, which begins a session';
    is $resumed->( 'two.example', @old ), 'resumed for two.example', 'of its own';
    is $resumed->( '',            @old ), 'new for nobody',          'no name';
    is $resumed->( '',            @old ), 'resumed for nobody',      'again';
    is $resumed->( 'unknown.example', @old ), 'new for unknown.example', 'one that has no certificate';
    like $resumed->( 'unknown.example', @old ), qr/\Aresumed for/, 'again';
};

subtest 'the order of ciphers' => sub {
    my $cipher = sub {
        my $socket = connect_to(@_) or return "no connection: $IO::Socket::SSL::SSL_ERROR";
        return $socket->get_cipher;
    };
    my @old = (
        'ECDHE-ECDSA-AES256-GCM-SHA384',
        'ECDHE-ECDSA-AES128-GCM-SHA256',
        'ECDHE-ECDSA-CHACHA20-POLY1305'
    );
    my @new = qw(TLS_AES_256_GCM_SHA384 TLS_AES_128_GCM_SHA256 TLS_CHACHA20_POLY1305_SHA256);
    for ( [ TLSv1_2 => SSL_cipher_list => @old ], [ TLSv1_3 => SSL_ciphersuites => @new ] ) {
        my ( $version, $option, @all ) = @$_;
        my @with = ( SSL_version => $version, $option );
        is $cipher->( @with, join ':', @all ),         $all[1], "$version: is the server's";
        is $cipher->( @with, join ':', reverse @all ), $all[2], 'but ChaCha for a client that prefers it';
        is $cipher->( @with, $all[0] ), $all[0], 'and what the client knows';
    }
};

subtest 'ALPN' => sub {
    my $socket = connect_to( SSL_alpn_protocols => [ 'h2', 'http/1.1' ] )
        or return fail $IO::Socket::SSL::SSL_ERROR;
    is $socket->alpn_selected, 'h2', 'h2 is chosen';
    $socket = connect_to( SSL_alpn_protocols => [ 'http/1.1', 'h2' ] )
        or return fail $IO::Socket::SSL::SSL_ERROR;
    is $socket->alpn_selected, 'h2', 'in any order';
    $socket = connect_to( SSL_alpn_protocols => ['http/1.1'] ) or return fail $IO::Socket::SSL::SSL_ERROR;
    is $socket->alpn_selected, 'http/1.1', 'http/1.1 for clients without it';
    ok !connect_to( SSL_alpn_protocols => ['h3'] ), 'a client of h3 alone is refused';
};

subtest 'large bodies' => sub {
    my $socket = connect_to() or return fail $IO::Socket::SSL::SSL_ERROR;
    my ( undef, $body ) = get( $socket, '/big' );
    ok $body eq 'x' x 5_000_000, 'five megabytes come whole';
    ( undef, $body ) = get( $socket, '/file' );
    my $want = do { open my $fh, '<:raw', $^X or die $!; local $/; readline $fh };
    ok $body eq $want, 'and so does a file';
    my $sent = join '', map { chr( $_ % 251 ) } 1 .. 3_000_000;
    print {$socket} "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n", $sent;
    is( ( response($socket) )[1], '3000000 ' . unpack( '%32C*', $sent ), 'three megabytes go whole' );
    ( undef, $body ) = get( $socket, '/stream' );
    is $body, join( '', map {"line $_\n"} 1 .. 1000 ), 'a stream';
};

subtest 'a slow reader' => sub {
    my $socket = connect_to() or return fail $IO::Socket::SSL::SSL_ERROR;
    print {$socket} "GET /big HTTP/1.1\r\nHost: a\r\n\r\n" for 1 .. 2;
    wait_full($socket);
    for my $n ( 1, 2 ) {
        my ( undef, $body ) = response($socket);
        is length $body, 5_000_000, "response $n is whole";
    }
};

subtest 'pipelined requests, in records as they come' => sub {
    my $one    = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    my $socket = connect_to() or return fail $IO::Socket::SSL::SSL_ERROR;
    print {$socket} $one x 20;
    my @got = map { ( response($socket) )[1] } 1 .. 20;
    is "@got", join( q( ), ('hello') x 20 ), 'in one record';
    print {$socket} $_ for split //, $one x 3;
    @got = map { ( response($socket) )[1] } 1 .. 3;
    is "@got", 'hello hello hello', 'a byte each';
    my $long = "GET /?" . 'q' x 15_000 . " HTTP/1.1\r\nHost: a\r\n\r\n";
    print {$socket} $long x 30;    # more than one read of the server
    @got = map { ( response($socket) )[1] } 1 .. 30;
    is "@got", join( q( ), ('hello') x 30 ), 'half a megabyte of them';
};

subtest 'the end' => sub {
    my $socket = connect_to() or return fail $IO::Socket::SSL::SSL_ERROR;
    print {$socket} "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    response($socket);
    my $n = sysread $socket, my $more, 1;
    is $n, 0, 'the connection ends after the last response';
    ok Net::SSLeay::get_shutdown( $socket->_get_ssl_object ) & 2, 'with close_notify';

    $socket = connect_to() or return fail $IO::Socket::SSL::SSL_ERROR;
    print {$socket} "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    Net::SSLeay::shutdown( $socket->_get_ssl_object );    # this side only
    like + ( response($socket) )[0], qr/hello\z/, 'a client that has ended its side still gets the response';
    is sysread( $socket, $more, 1 ), 0, 'and then the end';

    $socket = connect_to() or return fail $IO::Socket::SSL::SSL_ERROR;
    get( $socket, '/' );
    Net::SSLeay::shutdown( $socket->_get_ssl_object );
    is sysread( $socket, $more, 1 ), 0, 'an idle connection ends with its client';
};

subtest 'what is no TLS' => sub {
    my $plain    = Sirius::Test::Client->new( $server->address );
    my $response = $plain->ask('GET /');
    is $response->status, 400, 'plain HTTP is answered 400';
    $plain = Sirius::Test::Client->new( $server->address );
    $plain->send( "\x16\x03\x01" . "\xff" x 300 );
    like $plain->rest(5),                   qr/\A(?:\x15\x03.{5})?\z/s, 'rubbish gets an alert at most';
    like $plain->end,                       qr/\A(?:eof|reset)\z/,      'and the end';
    like + ( get( connect_to(), '/' ) )[0], qr/hello\z/,                'the server goes on';
};

subtest 'renegotiation is refused' => sub {
    my $socket = connect_to( SSL_version => 'TLSv1_2' ) or return fail $IO::Socket::SSL::SSL_ERROR;
    my $ssl    = $socket->_get_ssl_object;
    get( $socket, '/' );
    Net::SSLeay::renegotiate($ssl);
    my $done = Net::SSLeay::do_handshake($ssl);
    isnt $done, 1, 'the handshake does not succeed';
};

subtest 'plackup: all certificates count' => sub {
    my $plackup = program('plackup') or plan skip_all => 'no plackup';
    my $under   = Sirius::Test::Server->start(
        app  => "sub { [ 200, [], ['hello'] ] }\n",
        args => [
            '--workers', 1, '--listen', '127.0.0.1:0,tls',
            ( '--tls-cert' => $ec,    '--tls-key' => $ec_key ),
            ( '--ssl-cert' => $other, "--ssl-key=$other_key" )
        ],
        command => [ $^X, $plackup, qw(-s Sirius -E deployment) ],
    );
    for my $name (qw(one.example two.example)) {
        my $socket = connect_to(
            PeerAddr          => $under->address,
            SSL_hostname      => $name,
            SSL_verifycn_name => $name
        ) or fail("$name: $IO::Socket::SSL::SSL_ERROR"), next;
        is $socket->peer_certificate('commonName'), $name, $name;
    }
    $under->stop;
};

ok until_true( 5, sub { $server->output =~ m{^/env TLSv1\.3 one\.example$}m } ),
    'the access log knows the connection'
    or diag $server->output;
unlike $server->log, qr/\berror\b/, 'no error in the log';
$server->stop;
done_testing;
