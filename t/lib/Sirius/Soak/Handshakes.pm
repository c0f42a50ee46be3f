package Sirius::Soak::Handshakes;

# Many TLS handshakes with one server, every second of them broken: what do its processes hold at the end that
# they did not hold after the first tenth?

use strict;
use warnings;
use IO::Socket::INET;
use List::Util qw(max sum);
use Net::SSLeay;
use Socket qw(IPPROTO_TCP SO_LINGER SO_RCVTIMEO SOL_SOCKET TCP_NODELAY);
use Test::More;
use Time::HiRes qw(time);
use Sirius::Soak::Watch;
use Sirius::Test ();    # its signal handlers stop servers
use Sirius::Test::Certificates;
use Sirius::Test::Server;

# KiB of growth that are allowed; the address sanitizer keeps back what was freed
use constant FLAT => $ENV{ASAN_OPTIONS} ? 32_768 : 1024;

use constant {
    TLS_1_1 => 0x0302,
    TLS_1_2 => 0x0303,
    TLS_1_3 => 0x0304,
    WAIT    => 20,       # seconds for an answer
};

my $REQUEST = "GET / HTTP/1.0\r\n\r\n";

# What a client does, and what becomes of it. "ended": the server has closed the connection, before or after
# an alert
my @SOUND = (
    [ 'TLS 1.3',          'hello', sub { $_[0]->_ask( $_[0]->_meet( version => TLS_1_3 ) ) } ],
    [ 'TLS 1.2',          'hello', sub { $_[0]->_ask( $_[0]->_meet( version => TLS_1_2 ) ) } ],
    [ 'TLS 1.3, resumed', 'hello', sub { $_[0]->_ask( $_[0]->_meet( version => TLS_1_3, resume => 1 ) ) } ],
    [ 'TLS 1.2, resumed', 'hello', sub { $_[0]->_ask( $_[0]->_meet( version => TLS_1_2, resume => 1 ) ) } ],
    [ 'certificate of a client', 'hello', sub { $_[0]->_ask( $_[0]->_meet( cert => 'client' ) ) } ],
    [ 'another name',            'hello', sub { $_[0]->_ask( $_[0]->_meet( name => 'two.example' ) ) } ],
    [ 'unknown name',            'hello', sub { $_[0]->_ask( $_[0]->_meet( name => 'nobody.example' ) ) } ],
    [ 'in single bytes', 'hello', sub { $_[0]->_ask( $_[0]->_meet( piece => 1, name => 'one.example' ) ) } ],
    [ 'no request',      'ended', sub { $_[0]->_leave( $_[0]->_meet ) } ],
);
my @BROKEN = (
    [ 'garbage',                      'ended', \&_garbage ],
    [ 'hello, cut',                   'left',  \&_cut ],
    [ 'hello, one byte changed',      'any',   \&_changed ],
    [ 'hello, then gone',             'left',  sub { $_[0]->_vanish( $_[0]->_hello( $_[0]->_client ) ) } ],
    [ 'gone after the server hello',  'left',  \&_gone_later ],
    [ 'alert after the server hello', 'ended', \&_alert ],
    [ 'last flight changed',          'ended', \&_last_changed ],
    [ 'TLS 1.1',                      'ended', sub { $_[0]->_ask( $_[0]->_meet( version => TLS_1_1 ) ) } ],
    [ 'ALPN of HTTP/2 only',          'ended', sub { $_[0]->_ask( $_[0]->_meet( alpn    => ['h2'] ) ) } ],
    [ 'certificate of a stranger',    'ended', sub { $_[0]->_ask( $_[0]->_meet( cert    => 'stranger' ) ) } ],
    [ 'client refuses the server',    'ended', sub { $_[0]->_ask( $_[0]->_meet( trusts  => 'nobody' ) ) } ],
    [ 'renegotiation',                'ended', \&_renegotiate ],
    [ 'plain HTTP',                   'plain', \&_plain ],
    [ 'record of a wrong type',       'ended', sub { $_[0]->_after( "\x63\x03\x03\0\x20" . 'x' x 32 ) } ],
    [ 'record that is too long',      'ended', sub { $_[0]->_after( "\x17\x03\x03\xff\xff" . 'x' x 100 ) } ],
    [ 'record that is forged',        'ended', sub { $_[0]->_after( "\x17\x03\x03\0\x40" . 'x' x 64 ) } ],
);

# Options: handshakes, flat (KiB), seed
sub run {
    my ( $class, %option ) = @_;
    my $self = bless { contexts => {}, flat => FLAT, wrong => {}, seen => {}, sessions => {}, %option },
        $class;
    srand( $self->{seed} || 1 );
    Net::SSLeay::initialize();
    local $SIG{PIPE} = 'IGNORE';
    $self->_start;
    my $watch  = Sirius::Soak::Watch->new( $self->{server} );
    my $warm   = max( int( $self->{handshakes} / 10 ), @SOUND + @BROKEN );
    my $number = 0;
    $self->_one( $number++ ) while $number < $warm;
    my $before = $self->_rest($watch);
    my $began  = time;
    $self->_one( $number++ ) while $number < $self->{handshakes};
    my $took  = time - $began;
    my $after = $self->_rest( $watch, $before );
    $self->_tell( $number, $number - $warm, $took );
    is join( "\n", map {"$_: $self->{wrong}{$_}"} sort keys %{ $self->{wrong} } ), '',
        'each client gets what it should';
    is join( q( ), sort keys %$after ), join( q( ), sort keys %$before ), 'no process has come or gone';
    note sprintf '%-18s %10s %10s %10s %12s %12s', 'KiB', qw(before after growth descriptors after);
    $self->_judge( $_, $before->{$_}, $after->{$_} ) for sort { $a <=> $b } keys %$before;
    is $self->_ask( $self->_meet ), 'hello', 'the server goes on';
    return $self->{server}->stop;
}

sub _start {
    my $self = shift;
    my $made = Sirius::Test::Certificates->new;
    $self->{made}     = $made;
    $self->{stranger} = Sirius::Test::Certificates->new('Somebody else');
    $self->{files}    = {
        client   => [ $made->issue( 'Alice', purpose => 'client' ) ],
        stranger => [ $self->{stranger}->issue( 'Mallory', purpose => 'client' ) ],
    };
    my @pairs = map { $made->issue($_) } qw(one.example two.example);
    $self->{server} = Sirius::Test::Server->start(
        app  => "sub { [ 200, [], ['hello'] ] }\n",
        env  => { MALLOC_MMAP_THRESHOLD_ => 131_072, MALLOC_TRIM_THRESHOLD_ => 131_072 },
        args => [
            '--listen',        '127.0.0.1:0,tls',
            '--tls-cert',      $pairs[0],
            '--tls-key',       $pairs[1],
            '--tls-cert',      $pairs[2],
            '--tls-key',       $pairs[3],
            '--tls-client-ca', $made->ca,
            qw(--tls-client-verify optional --workers 1)
        ],
    );
    return;
}

# What all hold, once the edge has as many descriptors as before
sub _rest {
    my ( $self, $watch, $before ) = @_;
    my $now;
    Sirius::Test::Server::until_true(
        30,
        sub {
            $now = $watch->look;
            my $words = _words($now);
            my $same  = $words eq ( $before ? _words($before) : $self->{last} || '' );
            $self->{last} = $words;
            return $same;
        }
    );
    return $now;
}

sub _words {
    my $all = shift;
    return join "\n", map { "$_ " . Sirius::Soak::Watch->words( $all->{$_}{descriptors} ) } sort keys %$all;
}

sub _judge {
    my ( $self, $pid, $before, $after ) = @_;
    my $name  = "$before->{role} $pid";
    my $grown = $after->{rss} - $before->{rss};
    my @words = map { Sirius::Soak::Watch->words( $_->{descriptors} ) } $before, $after;
    my @open  = map { sum values %{ $_->{descriptors} } } $before, $after;
    note sprintf '%-18s %10d %10d %10d %12d %12d', $name, $before->{rss}, $after->{rss}, $grown, @open;
    cmp_ok $grown, '<=', $self->{flat}, "$name: memory is flat ($grown KiB)";
    return is $words[1], $words[0], "$name: the same descriptors";
}

sub _tell {
    my ( $self, $all, $timed, $took ) = @_;
    note sprintf '%d connections, %d of them in %.1f s (%.0f a second)', $all, $timed, $took,
        $timed / ( $took || 1 );
    note sprintf '%-32s %s', $_, $self->{seen}{$_} for sort keys %{ $self->{seen} };
    return;
}

# --- one connection ---

sub _one {
    my ( $self, $number ) = @_;
    my $kinds = $number % 2 ? \@BROKEN : \@SOUND;
    my ( $name, $expected, $code ) = @{ $kinds->[ int( $number / 2 ) % @$kinds ] };
    local $self->{number} = $number;
    my $outcome = eval { $self->$code } || "died: $@";
    $self->{seen}{$name}++;
    $self->{wrong}{"$name: '$outcome', not '$expected'"}++
        if $outcome ne $expected && ( $expected ne 'any' || $outcome =~ /\Adied/ );
    my $client = delete $self->{client} or return;
    Net::SSLeay::free( $client->{ssl} );
    return;
}

# A context for each way to be a client
sub _context {
    my ( $self, %how ) = @_;
    my $key = join q( ), map { ref $how{$_} ? "$_=@{$how{$_}}" : "$_=$how{$_}" } sort keys %how;
    return $self->{contexts}{$key} ||= do {
        my $ctx = Net::SSLeay::CTX_new_with_method( Net::SSLeay::TLS_client_method() );
        if ( my $version = $how{version} ) {
            Net::SSLeay::CTX_set_min_proto_version( $ctx, $version );
            Net::SSLeay::CTX_set_max_proto_version( $ctx, $version );
            Net::SSLeay::CTX_set_cipher_list( $ctx, 'ALL:@SECLEVEL=0' ) if $version < TLS_1_2;
        }
        Net::SSLeay::CTX_set_alpn_protos( $ctx, $how{alpn} ) if $how{alpn};
        if ( my $files = $how{cert} && $self->{files}{ $how{cert} } ) {
            Net::SSLeay::CTX_use_certificate_chain_file( $ctx, $files->[0] );
            Net::SSLeay::CTX_use_PrivateKey_file( $ctx, $files->[1], Net::SSLeay::FILETYPE_PEM() );
        }
        my $ca = $how{trusts} ? $self->{stranger}->ca : $self->{made}->ca;
        Net::SSLeay::CTX_load_verify_locations( $ctx, $ca, '' );
        Net::SSLeay::CTX_set_verify( $ctx, Net::SSLeay::VERIFY_PEER(), 0 );
        $ctx;
    };
}

# A client that is not connected
sub _client {
    my ( $self, %how ) = @_;
    my ( $name, $resume, $piece ) = delete @how{qw(name resume piece)};
    my %client = ( ssl => Net::SSLeay::new( $self->_context(%how) ), piece => $piece );
    $client{in}  = Net::SSLeay::BIO_new( Net::SSLeay::BIO_s_mem() );
    $client{out} = Net::SSLeay::BIO_new( Net::SSLeay::BIO_s_mem() );
    Net::SSLeay::set_bio( $client{ssl}, $client{in}, $client{out} );
    Net::SSLeay::set_connect_state( $client{ssl} );
    Net::SSLeay::set_tlsext_host_name( $client{ssl}, $name ) if $name;
    $client{keep} = $how{version} || 0 if $resume;
    my $session = $resume && delete $self->{sessions}{ $client{keep} };

    if ($session) {
        Net::SSLeay::set_session( $client{ssl}, $session );
        Net::SSLeay::SESSION_free($session);
    }
    return $self->{client} = \%client;
}

sub _connect {
    my ( $self, $client ) = @_;
    my $socket = IO::Socket::INET->new( PeerAddr => $self->{server}->address, Timeout => 10 )
        or die "connect: $!\n";
    setsockopt $socket, SOL_SOCKET, SO_RCVTIMEO, pack 'l!l!', WAIT, 0;
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
    $client->{socket} = $socket;
    return $client;
}

# What OpenSSL wants to send
sub _made {
    my $client = shift;
    my $n      = Net::SSLeay::BIO_pending( $client->{out} );
    return $n ? Net::SSLeay::BIO_read( $client->{out}, $n ) : '';
}

sub _send {
    my ( $client, $bytes ) = @_;
    for my $piece ( $client->{piece} ? unpack '(a)*', $bytes : length $bytes ? $bytes : () ) {
        defined syswrite $client->{socket}, $piece or return 0;
    }
    return 1;
}

# False: the server has closed the connection, or reset it
sub _hear {
    my $client = shift;
    my $n      = sysread $client->{socket}, my $bytes, 65_536;
    die "no answer within ${\WAIT} s\n"             if !defined $n && $!{EAGAIN};
    Net::SSLeay::BIO_write( $client->{in}, $bytes ) if $n;
    return $n;
}

# The first flight, as bytes
sub _hello {
    my ( $self, $client ) = @_;
    Net::SSLeay::do_handshake( $client->{ssl} );
    Net::SSLeay::ERR_clear_error();
    return _made($client);
}

# A client after the handshake, or after it has failed
sub _meet {
    my ( $self, %how ) = @_;
    my $client = $self->_connect( $self->_client(%how) );
    while (1) {
        Net::SSLeay::ERR_clear_error();
        my $done = Net::SSLeay::do_handshake( $client->{ssl} );
        my $why  = $done == 1 ? 0 : Net::SSLeay::get_error( $client->{ssl}, $done );
        _send( $client, _made($client) );
        last if $done == 1 || $why != Net::SSLeay::ERROR_WANT_READ();
        if ( !_hear($client) ) { $why = -1; last }
    }
    Net::SSLeay::ERR_clear_error();
    return $client;
}

# Sends the request and returns the body of the answer
sub _ask {
    my ( $self, $client ) = @_;
    my $text = '';
    Net::SSLeay::write( $client->{ssl}, $REQUEST );
    _send( $client, _made($client) );
    while (1) {
        my $bytes = Net::SSLeay::read( $client->{ssl} );
        $text .= $bytes if defined $bytes;
        next            if length( $bytes // '' );
        Net::SSLeay::ERR_clear_error();
        last if !_hear($client);
    }
    if ( defined $client->{keep} && $text ) {
        Net::SSLeay::set_shutdown( $client->{ssl}, 3 );
        my $session = Net::SSLeay::get1_session( $client->{ssl} );
        my $old     = delete $self->{sessions}{ $client->{keep} };
        Net::SSLeay::SESSION_free($old)                 if $old;
        $self->{sessions}{ $client->{keep} } = $session if $session;
    }
    Net::SSLeay::ERR_clear_error();
    return $text =~ /\r\n\r\n(.*)\z/s ? $1 : 'ended';
}

# Ends the connection as one does that has no request
sub _leave {
    my ( $self, $client ) = @_;
    Net::SSLeay::shutdown( $client->{ssl} );
    _send( $client, _made($client) );
    1 while _hear($client);
    return 'ended';
}

# Sends bytes and closes the connection, every other time by a reset
sub _vanish {
    my ( $self, $bytes ) = @_;
    my $client = $self->{client} || $self->_client;
    $self->_connect($client) if !$client->{socket};
    _send( $client, $bytes );
    setsockopt $client->{socket}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $self->{number} & 2;
    close $client->{socket};
    return 'left';
}

# --- broken ones ---

sub _garbage {
    my $self   = shift;
    my $client = $self->_connect( $self->_client );
    _send( $client, pack 'C*', 0x80 | int rand 128, map { int rand 256 } 1 .. 8 + rand 600 );
    1 while _hear($client);
    return 'ended';
}

# At each byte in turn
sub _cut {
    my $self  = shift;
    my $hello = $self->_hello( $self->_client( version => rand() < 0.5 ? TLS_1_2 : TLS_1_3 ) );
    return $self->_vanish( substr $hello, 0, $self->{cut}++ % length $hello );
}

# With a ticket, if there is one. What becomes of it depends on the byte
sub _changed {
    my $self   = shift;
    my %how    = ( version => rand() < 0.5 ? TLS_1_2 : TLS_1_3 );
    my $client = $self->_client( %how, resume => 1 );
    my $hello  = $self->_hello($client);
    substr( $hello, rand length $hello, 1 ) ^= chr 1 + rand 255;
    $self->_connect($client);
    _send( $client, $hello );
    shutdown $client->{socket}, 1;
    1 while _hear($client);
    return 'ended';
}

# Answers the flight of the server
sub _flight {
    my $self   = shift;
    my $client = $self->_connect( $self->_client( version => $self->{number} & 4 ? TLS_1_2 : TLS_1_3 ) );
    _send( $client, $self->_hello($client) );
    _hear($client);
    return $client;
}

sub _gone_later {
    my $self = shift;
    $self->_flight;
    return $self->_vanish('');
}

sub _alert {
    my $self   = shift;
    my $client = $self->_flight;
    _send( $client, "\x15\x03\x03\0\x02\x02\x28" );
    1 while _hear($client);
    return 'ended';
}

sub _last_changed {
    my $self   = shift;
    my $client = $self->_flight;
    my $done   = Net::SSLeay::do_handshake( $client->{ssl} );
    my $bytes  = _made($client);
    substr( $bytes, -1 - rand 30, 1 ) ^= "\x40";
    _send( $client, $bytes );
    1 while _hear($client);
    Net::SSLeay::ERR_clear_error();
    return 'ended';
}

sub _renegotiate {
    my $self   = shift;
    my $client = $self->_meet( version => TLS_1_2 );
    Net::SSLeay::renegotiate( $client->{ssl} );
    Net::SSLeay::do_handshake( $client->{ssl} );
    _send( $client, _made($client) );
    _hear($client);    # a warning: there is none
    Net::SSLeay::do_handshake( $client->{ssl} );
    _send( $client, _made($client) );
    shutdown $client->{socket}, 1;
    1 while _hear($client);
    Net::SSLeay::ERR_clear_error();
    return 'ended';
}

sub _plain {
    my $self   = shift;
    my $client = $self->_connect( $self->_client );
    _send( $client, $REQUEST );
    my ( $text, $n ) = ('');
    1 while $n = sysread $client->{socket}, $text, 65_536, length $text;
    return $text =~ m{\AHTTP/1\.1 400 } ? 'plain' : "'$text'";
}

# Bytes after a good handshake
sub _after {
    my ( $self, $bytes ) = @_;
    my $client = $self->_meet;
    _send( $client, $bytes );
    1 while _hear($client);
    return 'ended';
}

1;
