package Sirius::Test::Client;

# One connection that sends raw bytes and reads responses strictly. Nothing here waits without a limit.

use strict;
use warnings;
use Errno  qw(EAGAIN ECONNRESET EINTR EPIPE EWOULDBLOCK);
use Fcntl  qw(F_GETFL F_SETFL O_NONBLOCK);
use Socket qw(AF_INET AF_INET6 AF_UNIX IPPROTO_TCP SOCK_STREAM SOL_SOCKET SO_LINGER SO_RCVBUF TCP_NODELAY
    inet_pton pack_sockaddr_in pack_sockaddr_in6 pack_sockaddr_un sockaddr_family unpack_sockaddr_in);
use Time::HiRes qw(time);
use Sirius::Test::Response;

our $PATIENCE = 10;                      # seconds to wait for any single answer
our $TLS      = $ENV{SIRIUS_TEST_TLS};
our $H2       = $ENV{SIRIUS_TEST_H2};    # what is written and read is HTTP/1.1, what is sent HTTP/2
my $context;

# $address is "127.0.0.1:80", "[::1]:80" or "unix:/path". Options: rcvbuf (bytes, set before connect), before
# (bytes that are sent first, and not encrypted: a header of the PROXY protocol), plain (neither TLS nor
# HTTP/2), ssl (options of IO::Socket::SSL)
sub new {
    my ( $class, $address, %option ) = @_;
    my $to = sockaddr($address);
    socket my $socket, sockaddr_family($to), SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', $option{rcvbuf} if $option{rcvbuf};
    connect $socket, $to or die "connect to $address: $!";
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1 if sockaddr_family($to) != AF_UNIX;
    syswrite $socket, $option{before} if defined $option{before};
    $socket = _encrypted( $socket, %{ $option{ssl} || {} } ) if $TLS && !$option{plain};
    fcntl $socket, F_SETFL, fcntl( $socket, F_GETFL, 0 ) | O_NONBLOCK or die "fcntl: $!";
    $socket->blocking(0) if ref $socket ne 'GLOB';

    if ( $H2 && !$option{plain} ) {
        require Sirius::Test::Translator;
        Sirius::Test::Translator->bind($socket);
    }
    return bless { socket => $socket, in => '', end => undef }, $class;
}

# With SIRIUS_TEST_TLS=1. Ends with the connection if the server ends it: so does a test of that.
# One context for all: each new one reads the certificates of all authorities of the system, 25 ms of CPU
sub _encrypted {
    my ( $socket, %option ) = @_;
    require IO::Socket::SSL;
    my @alpn = $H2 ? ( SSL_alpn_protocols => ['h2'] ) : ();
    $context ||= IO::Socket::SSL::SSL_Context->new( SSL_verify_mode => 0, @alpn ) or die 'no context for TLS';
    my $plain = $socket;
    %option = %option ? ( SSL_verify_mode => 0, @alpn, %option ) : ( SSL_reuse_ctx => $context );
    my $ssl = IO::Socket::SSL->start_SSL( $socket, %option, Timeout => $PATIENCE );
    return $ssl || $plain;
}

# Bytes that select does not report
sub buffered {
    my $socket     = shift;
    my $translator = $H2 && tied *$socket;
    return 1 if ref $translator eq 'Sirius::Test::Translator' && $translator->waiting;
    return $TLS && ref $socket eq 'IO::Socket::SSL' && $socket->pending;
}

sub sockaddr {
    my $address = shift;
    return pack_sockaddr_un("$1") if $address =~ /\Aunix:(.+)\z/;
    my ( $host, $port ) = $address =~ /\A\[?(.+?)\]?:(\d+)\z/ or die "no address: '$address'";
    return pack_sockaddr_in6( $port, inet_pton( AF_INET6, $host ) ) if $host =~ /:/;
    return pack_sockaddr_in( $port, inet_pton( AF_INET, $host ) );
}

# The bytes of a request: request('POST /path', 'X-Name: value', \'body')
sub request {
    my ( $line, @field ) = @_;
    my $body = ref $field[-1] ? ${ pop @field } : undef;
    $line .= ' HTTP/1.1' if $line !~ / HTTP\/\d\.\d\z/;
    unshift @field, 'Host: a' if $line !~ /1\.0\z/ && !grep {/\AHost:/i} @field;
    push @field, 'Content-Length: ' . length $body if defined $body;
    return join( "\r\n", $line, @field, '', '' ) . ( defined $body ? $body : '' );
}

# Sends a request as request() makes it, and returns the answer
sub ask {
    my ( $self, @request ) = @_;
    $self->send( request(@request) );
    return $self->response( head => scalar $request[0] =~ /\AHEAD / );
}

# Whether bytes of an answer are there, within so many seconds (0). They are not taken
sub begins {
    my ( $self, $patience ) = @_;
    my $until      = time + ( $patience || 0 );
    my $translator = $H2 && tied *{ $self->{socket} };
    while (1) {
        return 1 if $translator && $translator->peek;
        vec( my $read = '', fileno $self->{socket}, 1 ) = 1;
        my $left  = $until - time;
        my $ready = select $read, undef, undef, $left > 0 ? $left : 0;
        return !$translator && $ready > 0 if !$translator || $left <= 0;
    }
}

# Closes hard: the peer sees a reset
sub abort {
    my $self = shift;
    setsockopt $self->{socket}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
    return $self->close;
}

sub close { return close shift->{socket} }

# The bytes that come until they match, the connection ends, or the patience does
sub comes {
    my ( $self, $like, $patience ) = @_;
    my $until = time + ( $patience || $PATIENCE );
    my $bytes = $self->some( 1, 0.2 );
    $bytes .= $self->some( 1, 0.2 ) while $bytes !~ $like && !$self->{end} && time < $until;
    return $bytes;
}

# How the connection ends when only its end may come: "eof", "reset", "timeout" or "bytes: ..."
sub end {
    my ( $self, $patience ) = @_;
    my $bytes = $self->rest($patience);
    return length $bytes ? 'bytes: ' . substr( $bytes, 0, 200 ) : $self->{end} || 'timeout';
}

# Shuts down the sending side; the answer may still come
sub finish {
    my $socket = shift->{socket};
    return shutdown $socket, 1 if !$TLS || ref $socket ne 'IO::Socket::SSL';
    Net::SSLeay::shutdown( $socket->_get_ssl_object );
    return 1;
}

# Bytes that have come but belong to no complete response
sub pending { return shift->{in} }

sub port { return ( unpack_sockaddr_in( getsockname shift->{socket} ) )[0] }

# Bytes that come within so many seconds, at least $count of them if they come; "" if none do
sub some {
    my ( $self, $count, $patience ) = @_;
    my $until = time + ( defined $patience ? $patience : $PATIENCE );
    1 while length $self->{in} < $count && $self->_read($until);
    my $bytes = $self->{in};
    $self->{in} = '';
    return $bytes;
}

# All bytes until the connection ends, or until the patience does
sub rest {
    my ( $self, $patience ) = @_;
    return $self->some( 9**15, $patience );
}

# One final response; earlier ones are in interim(). Options: head (it answers a HEAD), patience. If there is
# none, the status is the reason: "eof", "reset", "timeout", "cut" (a part, then the end), "garbage: ..."
sub response {
    my ( $self, %option ) = @_;
    my $until = time + ( $option{patience} || $PATIENCE );
    my @interim;
    while (1) {
        my $response
            = eval { Sirius::Test::Response->take( \$self->{in}, head => $option{head}, eof => $self->{end} ); };
        return $self->_failed($@) if $@;
        if ( !$response ) {
            next                         if $self->_read($until);
            next                         if $self->{end} && !$option{eof}++;
            return $self->_failed('cut') if $self->{end} && length $self->{in};
            return $self->_failed( $self->{end} || 'timeout' );
        }
        if ( $response->status < 200 ) { push @interim, $response; next }
        $response->{interim} = \@interim;
        return $response;
    }
}

sub responses {
    my ( $self, $count, %option ) = @_;
    return map { $self->response(%option) } 1 .. $count;
}

# Sends everything, reading meanwhile. Returns how many bytes the kernel has accepted before the end or the
# limit
sub send {
    my ( $self, $bytes, $patience ) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $until = time + ( $patience || $PATIENCE );
    my $sent  = 0;
    while ( $sent < length $bytes ) {
        my $n = syswrite $self->{socket}, $bytes, 65_536, $sent;
        if ( defined $n ) { $sent += $n; next }
        last if $! != EAGAIN && $! != EWOULDBLOCK && $! != EINTR;
        last if time >= $until;
        vec( my $write = '', fileno $self->{socket}, 1 ) = 1;
        my $read = $self->{end} ? undef : $write;
        select $read, $write, undef, 0.05;
        $self->_read(0) if $read;
    }
    return $sent;
}

sub socket { return shift->{socket} }

sub _failed {
    my ( $self, $reason ) = @_;
    chomp $reason;
    return Sirius::Test::Response->failure($reason);
}

# A read of TLS brings one record of 16 KiB, and response() looks at all bytes again after each read: takes
# what else is there, up to the 256 KiB that a read of plain bytes brings
sub _more {
    my $self = shift;
    return 1 if ref $self->{socket} ne 'IO::Socket::SSL';
    for ( 1 .. 15 ) {
        my $n = sysread $self->{socket}, $self->{in}, 65_536, length $self->{in};
        next if $n;
        $self->{end} = 'eof'   if defined $n;
        $self->{end} = 'reset' if !defined $n && ( $! == ECONNRESET || $! == EPIPE );
        last;
    }
    return 1;
}

# True if bytes were read; notes the end of the connection
sub _read {
    my ( $self, $until ) = @_;
    return 0                    if $self->{end};
    local $SIG{PIPE} = 'IGNORE' if ref $self->{socket} eq 'IO::Socket::SSL';    # it may answer by an alert
    while (1) {
        my $n = sysread $self->{socket}, $self->{in}, 262_144, length $self->{in};
        return $self->_more if $n;
        if ( defined $n )                      { $self->{end} = 'eof';   return 0 }
        if ( $! == ECONNRESET || $! == EPIPE ) { $self->{end} = 'reset'; return 0 }
        die "read: $!" if $! != EAGAIN && $! != EWOULDBLOCK && $! != EINTR;
        my $left = $until - time;
        return 0 if $left <= 0;
        vec( my $read = '', fileno $self->{socket}, 1 ) = 1;
        select $read, undef, undef, $left;
    }
}

1;
