package Sirius::Listener;

use strict;
use warnings;

use Errno  qw(EADDRINUSE EAFNOSUPPORT EADDRNOTAVAIL ECONNREFUSED ENOENT);
use Fcntl  qw(FD_CLOEXEC F_GETFL F_SETFD F_SETFL O_NONBLOCK);
use Socket qw(
    AF_INET AF_INET6 AF_UNIX INADDR_ANY IN6ADDR_ANY IPPROTO_IPV6 IPPROTO_TCP IPV6_V6ONLY NI_NUMERICHOST
    NI_NUMERICSERV SOCK_STREAM SOL_SOCKET SO_REUSEADDR TCP_NODELAY getaddrinfo getnameinfo inet_pton
    pack_sockaddr_in pack_sockaddr_in6 pack_sockaddr_un sockaddr_family unpack_sockaddr_in
    unpack_sockaddr_in6 unpack_sockaddr_un
);
use Sys::Hostname qw(hostname);

use constant {
    PATH_MAX         => 107,    # bytes of sun_path without its NUL
    TCP_DEFER_ACCEPT => 9,      # Linux; Socket has the name only since 2.009
};

sub adopt {
    my ( $class, $fh, $host ) = @_;
    $fh = _handle($fh) if !ref $fh;
    my $self = bless { fh => $fh, given => $host }, $class;
    getsockname $fh or die "sirius: descriptor ${\ fileno $fh} is no socket: $!\n";
    $self->_prepare;
    return $self;
}

sub close {
    my $self  = shift;
    my $bound = delete $self->{bound};
    if ( $bound && $bound->{pid} == $$ ) {
        my $there = _identity( $bound->{path} );
        unlink $bound->{path} if defined $there && $there eq $bound->{identity};
    }
    delete $self->{fh};
    return;
}

sub fd   { return fileno shift->{fh} }
sub host { return shift->{host} }

sub is_unix { return shift->{is_unix} }
sub name    { return shift->{name} }

sub open {
    my ( $class, $spec, $backlog ) = @_;
    my $address = $class->parse($spec);
    my $self    = bless { given => $address->{host} }, $class;
    if   ( defined $address->{path} ) { $self->_bind_unix( $address->{path} ) }
    else                              { $self->_bind_tcp( $spec, @{$address}{qw(host port)} ) }
    listen $self->{fh}, $backlog or _fail( $spec, $! );
    $self->_prepare;
    return $self;
}

sub open_all {
    my ( $class, $conf ) = @_;
    return $class->adopt( $conf->{listen_sock} )         if $conf->{listen_sock};
    return $class->_starter( $ENV{SERVER_STARTER_PORT} ) if defined $ENV{SERVER_STARTER_PORT};
    return map { $class->open( $_, $conf->{backlog} ) } @{ $conf->{listen} };
}

sub parse {
    my ( $class, $spec ) = @_;
    return { path => $1 }                       if $spec =~ m{\Aunix:(.+)\z}s;
    return { path => $spec }                    if $spec =~ m{/};
    return { host => '', port => _port($spec) } if $spec =~ /\A\d+\z/;
    return { host => $1, port => _port($2) }    if $spec =~ /\A\[([^\[\]]*:[^\[\]]*)\]:(\d+)\z/;
    die "'$spec' has no port\n" if $spec =~ /\A\[.*\]\z/ || $spec =~ /:\z/;

    # What plackup makes of --host ::1 --port 80
    if ( $spec =~ /\A(.*:.*):(\d+)\z/ ) {
        my ( $host, $port ) = ( $1, $2 );
        die "'$spec' is no address: write [v6]:port or unix:path\n" if !defined inet_pton( AF_INET6, $host );
        return { host => $host, port => _port($port) };
    }
    return { host => $1, port => _port($2) } if $spec =~ /\A([^:\s]*):(\d+)\z/;
    die "an empty address\n"                 if $spec eq '';
    return { path => $spec };
}

sub port { return shift->{port} }

sub url {
    my $self = shift;
    return $self->{is_unix} ? "unix:$self->{path}" : "http://$self->{host}:$self->{port}/";
}

sub _bind_tcp {
    my ( $self, $spec, $host, $port ) = @_;
    my ( $error, @addresses ) = _resolve( $host, $port );
    _fail( $spec, $error ) if $error;
    for my $address (@addresses) {
        my $family = sockaddr_family($address);
        if ( !socket $self->{fh}, $family, SOCK_STREAM, IPPROTO_TCP ) {
            $error = $!;
            next;
        }
        setsockopt $self->{fh}, SOL_SOCKET, SO_REUSEADDR, 1;

        # Only [::] is dual-stack; Linux and the BSDs differ in what they do without being told
        setsockopt $self->{fh}, IPPROTO_IPV6, IPV6_V6ONLY, 0 if $family == AF_INET6;
        return if bind $self->{fh}, $address;
        $error = $!;
        last if $error != EAFNOSUPPORT && $error != EADDRNOTAVAIL;
    }
    return _fail( $spec, $error );
}

sub _bind_unix {
    my ( $self, $path ) = @_;
    my $length = length $path;
    _fail( "unix:$path", "the path has $length bytes, at most ${\ PATH_MAX} are possible" )
        if $length > PATH_MAX;
    socket $self->{fh}, AF_UNIX, SOCK_STREAM, 0 or _fail( "unix:$path", $! );
    _remove_stale($path);
    bind $self->{fh}, pack_sockaddr_un($path) or _fail( "unix:$path", $! );

    # Removed at the end only by this process, and only while it is still this socket
    $self->{bound} = { identity => _identity($path), path => $path, pid => $$ };
    return;
}

# Host and port as they are bound, for messages and for the environment
sub _describe {
    my $self    = shift;
    my $address = getsockname $self->{fh};
    my $family  = sockaddr_family($address);
    if ( $family == AF_UNIX ) {
        @{$self}{qw(host is_unix name path port)}
            = ( 'localhost', 1, 'localhost', unpack_sockaddr_un($address), 80 );
        return;
    }
    my ( $error, $host, $port ) = getnameinfo( $address, NI_NUMERICHOST | NI_NUMERICSERV );
    die "sirius: a listening socket of an unknown kind: $error\n" if $error;
    my $any
        = $family == AF_INET6
        ? ( unpack_sockaddr_in6($address) )[1] eq IN6ADDR_ANY
        : ( unpack_sockaddr_in($address) )[1] eq INADDR_ANY;
    my $given = $self->{given};
    my $name  = $any ? hostname() : defined $given && length $given ? $given : $host;
    @{$self}{qw(host is_unix name port)} = ( _bracketed($host), 0, _bracketed($name), $port );
    return;
}

# RFC 3875 4.1.14: an IPv6 SERVER_NAME has its brackets
sub _bracketed {
    my $host = shift;
    return $host =~ /:/ ? "[$host]" : $host;
}

sub _fail {
    my ( $spec, $error ) = @_;
    $error = "$error";
    $!     = 1;          # exit status, whatever the error was
    die "sirius: cannot listen on $spec: $error\n";
}

sub _handle {
    my $fd = shift;
    CORE::open my $fh, '+<&=', $fd or die "sirius: descriptor $fd: $!\n";
    return $fh;
}

sub _identity {
    my $path = shift;
    my ( $device, $inode ) = lstat $path or return;
    return "$device:$inode";
}

sub _port {
    my $port = shift;
    die "port $port is not 0 to 65535\n" if length $port > 5 || $port > 65535;
    return $port + 0;
}

sub _prepare {
    my $self = shift;
    my $fh   = $self->{fh};
    $self->_describe;
    my $flags = fcntl $fh, F_GETFL, 0;
    fcntl $fh, F_SETFL, $flags | O_NONBLOCK;
    fcntl $fh, F_SETFD, FD_CLOEXEC;
    return if $self->{is_unix};

 # Accepted connections inherit NODELAY: no call per connection. DEFER_ACCEPT: accept when there is data (1 s)
    setsockopt $fh, IPPROTO_TCP, TCP_NODELAY,      1;
    setsockopt $fh, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1 if $^O eq 'linux';
    return;
}

# What a process that was killed left behind is removed; what is alive or is no socket is not
sub _remove_stale {
    my $path = shift;
    return                                                    if !-e $path && !-l $path;
    _fail( "unix:$path", 'the path exists and is no socket' ) if !-S $path;
    socket my $probe, AF_UNIX, SOCK_STREAM, 0 or _fail( "unix:$path", $! );

    # A listener with a full queue must not block us here; that it is there is all we ask
    fcntl $probe, F_SETFL, O_NONBLOCK;
    my $connected = connect $probe, pack_sockaddr_un($path);
    return                                  if !$connected && $! == ENOENT;
    _fail( "unix:$path", 'already in use' ) if $connected || $! != ECONNREFUSED;
    unlink $path or _fail( "unix:$path", $! );
    return;
}

# An error or '', then addresses to try in turn. A name is bound to its IPv4 address when it has one, as the whole
# family does
sub _resolve {
    my ( $host, $port ) = @_;
    my $any = pack_sockaddr_in( $port, INADDR_ANY );
    return '', $any if $host eq '';
    return '', pack_sockaddr_in6( $port, IN6ADDR_ANY ), $any if $host eq '*';
    my ( $error, @found )
        = getaddrinfo( $host, $port, { protocol => IPPROTO_TCP, socktype => SOCK_STREAM } );
    my ( @four, @six );
    push @{ $_->{family} == AF_INET6 ? \@six : \@four }, $_->{addr} for @found;
    return $error, @four, @six;
}

# Server::Starter: "host:port=fd;port=fd;/path=fd"
sub _starter {
    my ( $class, $text ) = @_;
    my @listeners;
    for my $pair ( split /;/, $text ) {
        my ( $address, $fd ) = $pair =~ /\A(.*)=(\d+)\z/s
            or die "sirius: SERVER_STARTER_PORT: '$pair' is not address=descriptor\n";
        my ($host) = $address =~ m{\A([^/]*):\d+\z};
        $host =~ tr/[]//d if defined $host;
        push @listeners, $class->adopt( $fd, $host );
    }
    return @listeners if @listeners;
    die "sirius: SERVER_STARTER_PORT is empty: start_server was given no --port and no --path\n";
}

sub DESTROY {
    my $self = shift;
    local ( $!, $@ );
    return $self->close;
}

1;

=encoding utf8

=head1 NAME

Sirius::Listener - a listening socket

=head1 SYNOPSIS

  use Sirius::Listener;

  my $listener = Sirius::Listener->open('127.0.0.1:0', 1024);
  print $listener->url;    # http://127.0.0.1:41234/

=head1 DESCRIPTION

Binds TCP and unix sockets, or takes over those that somebody else bound, and prepares them for the engine: non-blocking,
closed on C<exec>, C<TCP_NODELAY> (accepted connections inherit it) and, on Linux, C<TCP_DEFER_ACCEPT>.

=head1 ADDRESSES

  127.0.0.1:5000    this address          5000      as :5000
  localhost:5000    the IPv4 address of a name, or else its IPv6 address
  :5000             all IPv4 addresses    *:5000    all IPv4 and IPv6 addresses
  [::1]:5000        an IPv6 address       [::]:5000 as *:5000, without the fall-back to IPv4
  /run/app.sock     a unix socket         unix:app.sock, app.sock as well

Port 0 lets the system choose; L</port> tells which. What has a slash in it is a path, colons or not.

The file of a unix socket that nobody listens on any more is replaced; one that is alive, or is no socket, is an error. It is
removed by L</close>, in the process that bound it and only while it is still the same file.

With C<SERVER_STARTER_PORT> in the environment (start_server of L<Server::Starter>) its descriptors are used and nothing is
bound.

=head1 METHODS

=head2 adopt

  my $listener = Sirius::Listener->adopt($handle_or_fd, $host);

Takes over a socket that listens already.

=head2 close

  $listener->close;

Closes the socket and removes its file.

=head2 fd

  my $fd = $listener->fd;

Its descriptor.

=head2 host

  my $host = $listener->host;

The bound address in numbers, with brackets when it is IPv6.

=head2 is_unix

  my $bool = $listener->is_unix;

=head2 name

  my $name = $listener->name;

For C<SERVER_NAME>: the host it was given, the name of the machine when it listens on all addresses, C<localhost> for a unix
socket. Never empty.

=head2 open

  my $listener = Sirius::Listener->open($address, $backlog);

Binds and listens. Dies with C<sirius: cannot listen on ADDRESS: REASON>.

=head2 open_all

  my @listeners = Sirius::Listener->open_all($conf);

All of C<< $conf->{listen} >>, or what C<< $conf->{listen_sock} >> or Server::Starter brought.

=head2 parse

  my $address = Sirius::Listener->parse('[::1]:5000');

C<host> and C<port>, or C<path>. Dies when it is no address.

=head2 port

  my $port = $listener->port;

The real port; 80 for a unix socket, because C<SERVER_PORT> must not be empty.

=head2 url

  my $url = $listener->url;

C<http://127.0.0.1:5000/> or C<unix:/path>.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Options>.

=cut
