use strict;
use warnings;

# True: as on a machine without IPv6
our $no_ipv6;

BEGIN {
    no warnings 'once';
    *CORE::GLOBAL::socket = sub (*$$$) {
        my ( undef, $family, $type, $protocol ) = @_;
        return CORE::socket( $_[0], $family, $type, $protocol )
            if !$no_ipv6 || $family != Socket::AF_INET6();
        $! = Errno::EAFNOSUPPORT();
        return !1;
    };
}

use Errno      ();
use Fcntl      qw(FD_CLOEXEC F_DUPFD F_GETFD F_GETFL O_NONBLOCK);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP      ();
use POSIX         ();
use Socket        qw(:DEFAULT IPPROTO_TCP NI_NUMERICHOST NI_NUMERICSERV TCP_NODELAY getnameinfo);
use Sys::Hostname qw(hostname);
use Test::More;
use Sirius::Listen::Listener;

my $dir = tempdir( CLEANUP => 1 );

sub try_open {
    my ( $spec, @rights ) = @_;
    my $listener = eval { Sirius::Listen::Listener->open( $spec, 16, @rights ) };
    return $listener || "$@";
}

sub connects {
    my $port = shift;
    return IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $port );
}

sub option {
    my ( $listener, $level, $name ) = @_;
    return unpack 'i', getsockopt $listener->{fh}, $level, $name;
}

# What the kernel says of it: "0.0.0.0", "[::1]", "/path" or "@name"
sub bound {
    my $listener = shift;
    my $address  = getsockname $listener->{fh};
    return unpack_sockaddr_un($address) =~ s/\A\0/\@/r if sockaddr_family($address) == AF_UNIX;
    my ( undef, $host, $port ) = getnameinfo( $address, NI_NUMERICHOST | NI_NUMERICSERV );
    return "port $port is not " . $listener->port if !$port || $port != $listener->port;
    return $host =~ /:/ ? "[$host]" : $host;
}

# An IPv6 address that needs its interface, such as fe80::1%eth0
sub link_local {
    open my $in, '<', '/proc/net/if_inet6' or return;
    my @lines = map { [split] } readline $in;
    my ($found) = grep { $_->[0] =~ /\Afe80/ && !( hex( $_->[4] ) & 0x48 ) } @lines or return;    # valid now
    return Socket::inet_ntop( AF_INET6, pack 'H*', $found->[0] ) . "%$found->[5]";
}

# What this code prints in another process, which gets these sockets as descriptors 3 and up, and how it ends
sub activated {
    my ( $code, $env, @sockets ) = @_;
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        my @high = map { fcntl $_, F_DUPFD, 100 } @sockets;
        POSIX::dup2( fileno $write, $_ ) for 1, 2;
        POSIX::dup2( $high[$_], 3 + $_ ) for 0 .. $#high;
        %ENV = ( %ENV, LISTEN_FDS => scalar @sockets, LISTEN_PID => $$, %$env );
        exec $^X, ( map {"-I$_"} @INC ), '-MSirius::Listen::Listener', '-MSirius::Service::Activation', '-e',
            $code
            or POSIX::_exit(127);
    }
    close $write;
    my $text = join '', readline $read;
    waitpid $pid, 0;
    return $text . 'exit ' . ( $? >> 8 );
}

my $local = link_local();
my @BOUND = (
    [ '127.0.0.1:0',           '127.0.0.1' ],
    [ 'localhost:0',           '127.0.0.1' ],
    [ ':0',                    '0.0.0.0' ],
    [ '0',                     '0.0.0.0' ],
    [ '0.0.0.0:0',             '0.0.0.0' ],
    [ '[::1]:0',               '[::1]' ],
    [ '::1:0',                 '[::1]' ],
    [ '[0:0:0:0:0:0:0:1]:0',   '[::1]' ],
    [ '[::]:0',                '[::]' ],
    [ '*:0',                   '[::]' ],
    [ '[::ffff:127.0.0.1]:0',  '[::ffff:127.0.0.1]' ],
    [ "$dir/b:1",              "$dir/b:1" ],
    [ "unix:$dir/b.sock",      "$dir/b.sock" ],
    [ "$dir/b.sock?mode=0600", "$dir/b.sock" ],
    [ "\@sirius-test-$$",      "\@sirius-test-$$" ],
    [ "unix:\@sirius/test:$$", "\@sirius/test:$$" ],
    $local ? [ "[$local]:0", "[$local]" ] : (),
);

for my $case (@BOUND) {
    my ( $spec, $want ) = @$case;
    subtest "Listens on $spec" => sub {
        plan skip_all => 'no IPv6 here'           if $want =~ /\A\[/ && !ref try_open('[::1]:0');
        plan skip_all => 'no abstract names here' if $want =~ /\A\@/ && $^O ne 'linux';
        my $listener = try_open($spec);
        is ref $listener,    'Sirius::Listen::Listener', 'opened' or return diag $listener;
        is bound($listener), $want,                      'right address';
        is $listener->url, $listener->is_unix ? "unix:$want" : "http://$want:" . $listener->port . '/',
            'right URL';
        my $other = Sirius::Listen::Listener->adopt( $listener->{fh}, $listener->given );
        is $other->$_, $listener->$_, "$_ is the same for who adopts it" for qw(host is_unix name port url);
    };
}

subtest 'Without IPv6' => sub {
    local $no_ipv6 = 1;
    is bound( try_open('*:0') ),         '0.0.0.0',   '*:0 is all of IPv4';
    is bound( try_open('localhost:0') ), '127.0.0.1', 'localhost';
    like try_open("[$_]:0"), qr/\Asirius: cannot listen on \[\Q$_\E\]:0: \w/, "right error for [$_]"
        for '::1', '::';
};

subtest 'TCP' => sub {
    my $listener = try_open('127.0.0.1:0');
    is $listener->name, '127.0.0.1', 'right name';
    cmp_ok $listener->port, '>', 0, 'the real port';
    is $listener->url, 'http://127.0.0.1:' . $listener->port . '/', 'right address';
    ok !$listener->is_unix, 'not unix';
    ok fcntl( $listener->{fh}, F_GETFL, 0 ) & O_NONBLOCK, 'non-blocking';
    ok fcntl( $listener->{fh}, F_GETFD, 0 ) & FD_CLOEXEC, 'closed on exec';
    ok( option( $listener, IPPROTO_TCP, TCP_NODELAY ),         'no delay' );
    ok( $^O ne 'linux' || option( $listener, IPPROTO_TCP, 9 ), 'deferred accept' );
    my $port = $listener->port;
    ok( connects($port), 'connected' );
    like try_open("127.0.0.1:$port"),
        qr/\Asirius: cannot listen on 127\.0\.0\.1:$port: Address already in use by this server: it is given twice\n\z/,
        'right error';
    is 0 + $!, 1, 'right exit status';
    $listener->close;
    ok( !connects($port), 'refused' );
    isa_ok( try_open("127.0.0.1:$port"), 'Sirius::Listen::Listener', 'bound again at once' );
    is try_open('localhost:0')->name, 'localhost', 'name as given';
    like try_open('no.such.host.invalid:0'), qr/\Asirius: cannot listen on no\.such\.host\.invalid:0: \w/,
        'right error';
    like try_open('192.0.2.1:0'), qr/Cannot assign requested address/, 'right error';
};

subtest 'Backlog' => sub {
    plan skip_all => 'Linux only' if $^O ne 'linux';
    my $listener = Sirius::Listen::Listener->open( '127.0.0.1:0', 7 );
    my $tcp_info = getsockopt $listener->{fh}, IPPROTO_TCP, 11;
    is unpack( 'x28 L', $tcp_info ), 7, 'as given';    # tcpi_sacked of a listener
};

subtest 'All interfaces' => sub {
    for my $spec ( ':0', '0', '0.0.0.0:0' ) {
        my $listener = try_open($spec);
        is $listener->host, '0.0.0.0',  "$spec: right host";
        is $listener->name, hostname(), 'name of the machine';
    }
};

subtest 'IPv6' => sub {
    my $listener = try_open('[::1]:0');
    plan skip_all => "no IPv6 here: $listener" if !ref $listener;
    is $listener->name, '[::1]',                                 'name with brackets';
    is $listener->url,  'http://[::1]:' . $listener->port . '/', 'right address';
    for my $spec ( '*:0', '[::]:0' ) {
        my $both = try_open($spec);
        is $both->host, '[::]',     "$spec: right host";
        is $both->name, hostname(), 'name of the machine';
        ok( connects( $both->port ), 'IPv4 as well' );
    }
};

subtest 'Unix' => sub {
    my $path     = "$dir/a:1.sock";
    my $listener = try_open($path);
    ok $listener->is_unix, 'unix';
    is $listener->name, 'localhost',  'right name';
    is $listener->port, 80,           'right port';
    is $listener->url,  "unix:$path", 'right address';
    ok( IO::Socket::UNIX->new( Peer => $path ), 'connected' );
    like try_open("unix:$path"),
        qr/\Asirius: cannot listen on unix:\Q$path\E: already in use by this server: it is given twice\n\z/,
        'alive';
    ok -S $path, 'not removed';

    $listener->close;
    ok !-e $path, 'removed';
};

subtest 'In another program of the same process' => sub {
    my @was   = map { try_open($_) } "$dir/program", '127.0.0.1:0';
    my @state = map { JSON::PP::decode_json( JSON::PP::encode_json( $_->state ) ) } @was;
    my @is    = map { Sirius::Listen::Listener->restore($_) } @state;
    is $is[$_]->url,     $was[$_]->url, 'the same address'    for 0, 1;
    is $state[$_]->{fd}, $was[$_]->fd,  'the same descriptor' for 0, 1;
    $is[0]->close;
    ok !-e "$dir/program", 'the file is removed';
};

subtest 'Rights of a unix socket' => sub {
    my %conf = ( backlog => 1, listen => [ "$dir/d", "$dir/e?mode=0600" ], socket_mode => 0640 );
    my @all  = Sirius::Listen::Listener->open_all( \%conf );
    my @mode = map { sprintf '%04o', ( stat "$dir/$_" )[2] & 07777 } qw(d e);
    is "@mode", '0640 0600', 'its own, or else those of the configuration';
    is try_open("$dir/none/a"), "sirius: cannot listen on unix:$dir/none/a: No such file or directory\n",
        'right error';
    is try_open( "$dir/f", owner => 'no-such-user' ),
        "sirius: cannot listen on unix:$dir/f: there is no user no-such-user\n", 'right error';
};

subtest 'Server::Starter' => sub {
    my $tcp   = IO::Socket::INET->new( LocalAddr => '127.0.0.1',         Listen => 1 );
    my $other = IO::Socket::INET->new( LocalAddr => '0.0.0.0',           Listen => 1 );
    my $unix  = IO::Socket::UNIX->new( Local     => "$dir/starter.sock", Listen => 1 );
    local $ENV{SERVER_STARTER_PORT} = join ';', '127.0.0.1:' . $tcp->sockport . '=' . fileno $tcp,
        $other->sockport . '=' . fileno $other, "$dir/starter.sock=" . fileno $unix;
    my @listeners = Sirius::Listen::Listener->open_all( { backlog => 1, listen => [':1'] } );
    is @listeners,          3,                                          'three';
    is $listeners[0]->url,  'http://127.0.0.1:' . $tcp->sockport . '/', 'right address';
    is $listeners[0]->fd,   fileno $tcp,                                'the same descriptor';
    is $listeners[0]->name, '127.0.0.1',                                'right name';
    is $listeners[1]->name, hostname(),                                 'right name';
    is $listeners[2]->url,  "unix:$dir/starter.sock",                   'right address';
    $listeners[2]->close;
    ok -S "$dir/starter.sock", 'not ours to remove';

    for my $bad ( '', 'nonsense', 'a=b', '80=0', '80=9999' ) {
        local $ENV{SERVER_STARTER_PORT} = $bad;
        eval { Sirius::Listen::Listener->open_all( {} ) };
        like $@, qr/\Asirius: SERVER_STARTER_PORT/, "'$bad'";
    }
    $_->{fh} = undef for @listeners;
};

subtest 'systemd' => sub {
    my $tcp    = IO::Socket::INET->new( LocalAddr => '127.0.0.1',      Listen => 1 );
    my $unix   = IO::Socket::UNIX->new( Local     => "$dir/activated", Listen => 1 );
    my $url    = 'http://127.0.0.1:' . $tcp->sockport . '/';
    my $print  = q(print map { $_->url . "\n" } @l; print grep {/^LISTEN_/} keys %ENV; $_->close for @l;);
    my $listen = sub {
        return 'my @l = Sirius::Listen::Listener->open_all({ backlog => 1, listen => [qw(' . "@_"
            . ")] }, Sirius::Service::Activation->descriptors); $print";
    };
    my %names = ( LISTEN_FDNAMES => 'web:local' );
    is activated( $listen->('127.0.0.1:1'), {}, $tcp, $unix ), "${url}\nunix:$dir/activated\nexit 0",
        'all are served, in place of the addresses';
    ok -S "$dir/activated", 'the inherited unix socket is not removed';
    is activated( $listen->('127.0.0.1:1'), {}, $unix ), "unix:$dir/activated\nexit 0", 'a unix socket alone';
    is activated( $listen->('systemd:local'), \%names, $tcp, $unix ), "unix:$dir/activated\nexit 0",
        'one by its name';
    is activated( $listen->( "$dir/more", 'fd:3' ), \%names, $tcp, $unix ), "unix:$dir/more\n${url}\nexit 0",
        'one by its number, and an address beside it';
    is activated( $listen->('systemd:web'), { LISTEN_FDNAMES => 'web:web' }, $tcp, $unix ),
        "${url}\nunix:$dir/activated\nexit 0", 'two of one name';
    is activated( $listen->("$dir/more"), { LISTEN_PID => $$ }, $tcp ), "unix:$dir/more\nexit 0",
        'those of another process are not touched';
    is activated( $listen->("$dir/more"), { LISTEN_FDS => 0 } ), "unix:$dir/more\nexit 0", 'none';

    is activated( $listen->('systemd:x'), \%names, $tcp, $unix ),
        "sirius: cannot listen on systemd:x: LISTEN_FDNAMES has only local web\nexit 1",
        'a name that is not there';
    is activated( $listen->('systemd:x'), { LISTEN_PID => $$ } ),
        "sirius: cannot listen on systemd:x: LISTEN_FDNAMES has no names for this process\nexit 1", 'nor any';
    is activated( $listen->('fd:77'), {} ), "sirius: --listen fd:77: descriptor 77 is not open\nexit 1",
        'not open';
    is activated( $listen->('0'), { LISTEN_FDS => 2, %names }, $tcp ),
        "sirius: LISTEN_FDS: local: descriptor 4 is not open\nexit 1", 'not all are there';
    is activated( $listen->('0'), { LISTEN_FDS => 'many' } ),
        "sirius: LISTEN_FDS: 'many' is not a number of descriptors\nexit 1", 'no number';
};

subtest 'No listening socket' => sub {
    socket my $datagram, AF_UNIX, SOCK_DGRAM,  0 or die $!;
    socket my $deaf,     AF_INET, SOCK_STREAM, 0 or die $!;
    bind $deaf, pack_sockaddr_in( 0, INADDR_LOOPBACK ) or die $!;
    open my $file, '<', $0 or die $!;
    for my $case (
        [ $datagram, 'is not a listening stream socket' ],
        [ $file,     'is not a listening stream socket' ],
        [ $deaf,     'is a socket that does not listen' ]
        )
    {
        my ( $fh, $want ) = @$case;
        eval { Sirius::Listen::Listener->adopt( $fh, undef, 'LISTEN_FDS' ) };
        is $@,     'sirius: LISTEN_FDS: descriptor ' . fileno($fh) . " $want\n", 'right error';
        is 0 + $!, 1,                                                            'right exit status';
        ok defined fileno $fh, 'still open';
    }
};

subtest 'A socket of the caller' => sub {
    my $socket = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 1 );
    my ($listener) = Sirius::Listen::Listener->open_all( { listen_sock => $socket } );
    is $listener->port, $socket->sockport, 'right port';
    $listener->close;
    ok defined fileno $socket, 'still open';
};

done_testing;
