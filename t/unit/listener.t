use strict;
use warnings;
use Fcntl      qw(FD_CLOEXEC F_GETFD F_GETFL O_NONBLOCK);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use IO::Socket::UNIX;
use Socket        qw(IPPROTO_TCP TCP_NODELAY);
use Sys::Hostname qw(hostname);
use Test::More;
use Sirius::Listener;

my $dir = tempdir( CLEANUP => 1 );

sub try_open {
    my $listener = eval { Sirius::Listener->open( @_, 16 ) };
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

subtest 'Specs' => sub {
    my @case = (
        [ '127.0.0.1:80',     'host 127.0.0.1 port 80' ],
        [ 'localhost:5000',   'host localhost port 5000' ],
        [ ':5000',            'host  port 5000' ],
        [ '5000',             'host  port 5000' ],
        [ '0',                'host  port 0' ],
        [ '*:5000',           'host * port 5000' ],
        [ '[::1]:5000',       'host ::1 port 5000' ],
        [ '[::]:0',           'host :: port 0' ],
        [ '[fe80::1%lo]:0',   'host fe80::1%lo port 0' ],
        [ '::1:5000',         'host ::1 port 5000' ],
        [ '/run/a.sock',      'path /run/a.sock' ],
        [ '/run/a:80',        'path /run/a:80' ],
        [ './a:80',           'path ./a:80' ],
        [ 'unix:/run/a.sock', 'path /run/a.sock' ],
        [ 'unix:a:80',        'path a:80' ],
        [ 'a.sock',           'path a.sock' ],
    );
    for my $case (@case) {
        my $got = Sirius::Listener->parse( $case->[0] );
        is join( ' ', map {"$_ $got->{$_}"} sort keys %$got ), $case->[1], "spec $case->[0]";
    }
};

subtest 'No specs' => sub {
    for my $case (
        [ 'a:65536',              'port 65536 is not' ],
        [ '99999999999999999999', 'is not 0 to 65535' ],
        [ '',                     'empty' ],
        [ '[::1]',                'has no port' ],
        [ 'a:',                   'has no port' ],
        [ 'a:b:80',               'is no address' ],
        )
    {
        eval { Sirius::Listener->parse( $case->[0] ) };
        like $@, qr/\Q$case->[1]\E/, "'$case->[0]'";
    }
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
    is try_open("127.0.0.1:$port"), "sirius: cannot listen on 127.0.0.1:$port: Address already in use\n",
        'right error';
    is 0 + $!, 1, 'right exit status';
    $listener->close;
    ok( !connects($port), 'refused' );
    isa_ok( try_open("127.0.0.1:$port"), 'Sirius::Listener', 'bound again at once' );
    is try_open('localhost:0')->name, 'localhost', 'name as given';
    like try_open('no.such.host.invalid:0'), qr/\Asirius: cannot listen on no\.such\.host\.invalid:0: \w/,
        'right error';
    like try_open('192.0.2.1:0'), qr/Cannot assign requested address/, 'right error';
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
    is try_open("unix:$path"), "sirius: cannot listen on unix:$path: already in use\n", 'alive';
    ok -S $path, 'not removed';

    if ( my $pid = fork ) {
        waitpid $pid, 0;
        ok -S $path, 'not removed by a child';
    } else {
        $listener->close;
        require POSIX;
        POSIX::_exit(0);
    }
    $listener->close;
    ok !-e $path, 'removed';
};

subtest 'What is in the way of a unix socket' => sub {
    my $path = "$dir/stale.sock";
    my $dead = IO::Socket::UNIX->new( Local => $path, Listen => 1 );
    $dead->close;
    ok -S $path, 'left behind';
    my $listener = try_open($path);
    is ref $listener, 'Sirius::Listener', 'replaced';

    unlink $path;
    my $successor = IO::Socket::UNIX->new( Local => $path, Listen => 1 );
    $listener->close;
    ok -S $path, q(another's socket is not removed);

    open my $out, '>', "$dir/file" or die $!;
    like try_open("$dir/file"),           qr/the path exists and is no socket/, 'right error';
    like try_open("$dir/none/a"),         qr/No such file or directory/,        'right error';
    like try_open( "$dir/" . 'x' x 108 ), qr/at most 107 are possible/,         'right error';
};

subtest 'Server::Starter' => sub {
    my $tcp   = IO::Socket::INET->new( LocalAddr => '127.0.0.1',         Listen => 1 );
    my $other = IO::Socket::INET->new( LocalAddr => '0.0.0.0',           Listen => 1 );
    my $unix  = IO::Socket::UNIX->new( Local     => "$dir/starter.sock", Listen => 1 );
    local $ENV{SERVER_STARTER_PORT} = join ';', '127.0.0.1:' . $tcp->sockport . '=' . fileno $tcp,
        $other->sockport . '=' . fileno $other, "$dir/starter.sock=" . fileno $unix;
    my @listeners = Sirius::Listener->open_all( { backlog => 1, listen => [':1'] } );
    is @listeners,          3,                                          'three';
    is $listeners[0]->url,  'http://127.0.0.1:' . $tcp->sockport . '/', 'right address';
    is $listeners[0]->fd,   fileno $tcp,                                'the same descriptor';
    is $listeners[0]->name, '127.0.0.1',                                'right name';
    is $listeners[1]->name, hostname(),                                 'right name';
    is $listeners[2]->url,  "unix:$dir/starter.sock",                   'right address';
    $listeners[2]->close;
    ok -S "$dir/starter.sock", 'not ours to remove';

    for my $bad ( '', 'nonsense', 'a=b' ) {
        local $ENV{SERVER_STARTER_PORT} = $bad;
        eval { Sirius::Listener->open_all( {} ) };
        like $@, qr/\Asirius: SERVER_STARTER_PORT/, "'$bad'";
    }
    $_->{fh} = undef for @listeners;
};

subtest 'A socket of the caller' => sub {
    my $socket = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 1 );
    my ($listener) = Sirius::Listener->open_all( { listen_sock => $socket } );
    is $listener->port, $socket->sockport, 'right port';
    $listener->close;
    ok defined fileno $socket, 'still open';
};

done_testing;
