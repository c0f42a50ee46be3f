package Bench::Slow;

# Clients that take their time: connections in a process of their own, which are opened again when the server
# closes them.

use strict;
use warnings;

use List::Util  qw(max);
use POSIX       ();
use Socket      qw(AF_INET INADDR_LOOPBACK SOCK_NONBLOCK SOCK_STREAM SOL_SOCKET SO_RCVBUF pack_sockaddr_in);
use Time::HiRes qw(sleep time);

my $LIFE  = 120;    # seconds after which they end by themselves
my $START = 4;      # seconds within which all those that read may get something
my $context;
my $HOST = "HTTP/1.1\r\nHost: 127.0.0.1\r\n";

# first: what is sent at once. piece: what is sent each second. read: bytes that are read each second, all if
# it isn't said.
my %KIND = (
    bodies  => { first => "POST /hello ${HOST}Content-Length: 100000\r\n\r\n", piece => 'x' },
    headers => { first => "GET /hello $HOST",                                  piece => "X-Slow: so\r\n" },
    long    => { first => "GET /long $HOST\r\n" },
    readers => { first => "GET /big $HOST\r\n", read => 10_000 },
    silent  => {}
);

# Fields: port, kind, count, tls (they are encrypted, but for those that send nothing). Returns when all of
# them have tried to connect, and those that read have begun: to make so many responses takes time, and is not
# what they are for. They end with the object.
sub start {
    my ( $class, %field ) = @_;
    pipe my $news, my $report or die "pipe: $!\n";
    defined( my $pid = fork ) or die "fork: $!\n";
    if ( !$pid ) {
        close $news;
        eval { _run( $report, %field ); 1 } or print STDERR $@;
        POSIX::_exit(0);
    }
    close $report;
    readline $news;
    return bless { pid => $pid, owner => $$ }, $class;
}

sub signal {
    my ( $self, $signal ) = @_;
    kill $signal => $self->{pid};
    return;
}

sub DESTROY {
    my $self = shift;
    return if $self->{owner} != $$;
    local ( $?, $@ );
    kill KILL => $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

sub _run {
    my ( $report, %field ) = @_;
    my $kind = $KIND{ $field{kind} } or die "There are no slow clients of this kind: $field{kind}\n";
    my @client;
    my $began = my $next = time;    # it may be stopped for a while
    local $SIG{PIPE} = 'IGNORE';
    setpriority 0, 0, 19;           # they are slow, and must not take time from the client that measures
    while ( $next < $began + $LIFE ) {
        for my $client ( @client[ 0 .. $field{count} - 1 ] ) {
            $client = { socket => _dial( $field{port}, $kind, $field{tls} ) }
                if !$client || _has_ended( $client, $kind );
            _send( $client, $kind );
        }
        close $report
            if !$kind->{read} || time > $began + $START || @client == grep { $_->{got} } @client;
        $next = max( $next + 1, time );
        sleep( max( 0, $next - time ) );
    }
    return;
}

# The send is repeated while the connection waits in the queue of the listening socket
sub _send {
    my ( $client, $kind ) = @_;
    my $what  = $client->{begun} ? 'piece' : 'first';
    my $bytes = $kind->{$what} // return;
    $client->{begun} = 1 if syswrite $client->{socket}, $bytes;
    return;
}

sub _dial {
    my ( $port, $kind, $tls ) = @_;
    return _dial_tls( $port, $kind ) if $tls && defined $kind->{first};
    socket my $socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0 or die "socket: $!\n";
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 8192 if $kind->{read};
    connect $socket, pack_sockaddr_in( $port, INADDR_LOOPBACK );    # what fails is dialled again
    return $socket;
}

# Unlike the others it waits until it is connected
sub _dial_tls {
    my ( $port, $kind ) = @_;
    require IO::Socket::SSL;
    $context ||= IO::Socket::SSL::SSL_Context->new( SSL_verify_mode => 0 ) || die "no context for TLS\n";
    socket my $socket, AF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 8192 if $kind->{read};
    connect $socket, pack_sockaddr_in( $port, INADDR_LOOPBACK ) or return $socket;
    my $ssl = IO::Socket::SSL->start_SSL( $socket, SSL_reuse_ctx => $context, Timeout => 5 )
        or return $socket;
    $ssl->blocking(0);
    return $ssl;
}

sub _has_ended {
    my ( $client, $kind ) = @_;
    my $got = sysread $client->{socket}, my $bytes, $kind->{read} || 65_536;
    $client->{got} ||= $got;
    return defined $got ? $got == 0 : !$!{EAGAIN};
}

1;
