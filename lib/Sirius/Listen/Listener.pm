package Sirius::Listen::Listener;

use strict;
use warnings;

use Errno  qw(EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT);
use Fcntl  qw(FD_CLOEXEC F_GETFL F_SETFD F_SETFL O_NONBLOCK);
use Sirius ();                                                  # xs/Sirius.xs has _shut_gate
use Sirius::Config::Address;
use Sirius::Listen::Unix;
use Sirius::Log ();
use Sirius::OS::Inherit;
use Sirius::OS::SocketOwner;
use Sirius::Service::Starter;
use Socket qw(
    AF_INET6 AF_UNIX INADDR_ANY IN6ADDR_ANY IPPROTO_IPV6 IPPROTO_TCP IPV6_V6ONLY NI_NUMERICHOST
    NI_NUMERICSERV SOCK_STREAM SOL_SOCKET SO_ACCEPTCONN SO_REUSEADDR SO_TYPE TCP_NODELAY getaddrinfo
    getnameinfo pack_sockaddr_in pack_sockaddr_in6 sockaddr_family unpack_sockaddr_in
    unpack_sockaddr_in6 unpack_sockaddr_un
);
use Sys::Hostname qw(hostname);

use constant TCP_DEFER_ACCEPT => 9;    # Linux; Socket has the name only since 2.009

sub adopt {
    my ( $class, $fh, $given, $from, %speaks ) = @_;
    my $fd   = ref $fh       ? fileno $fh              : $fh;
    my $what = defined $from ? "$from: descriptor $fd" : "descriptor $fd";
    $fh = _handle($fd) if !ref $fh;
    Sirius::Log->fail("$what is not open")                      if !$fh;
    Sirius::Log->fail("$what is not a listening stream socket") if _number( $fh,  SO_TYPE ) != SOCK_STREAM;
    Sirius::Log->fail("$what is a socket that does not listen") if !_number( $fh, SO_ACCEPTCONN );
    my $self = bless { fh => $fh, given => $given, _speaks(%speaks) }, $class;
    $self->_prepare;
    return $self;
}

# Nothing for a unix socket, or a socket that was opened elsewhere
sub bound_tcp {
    my $self = shift;
    return $self->{own} ? $self->{fh} : ();
}

sub close {
    my $self = shift;
    my $unix = delete $self->{unix};
    $unix->remove if $unix;
    delete $self->{fh};
    return;
}

# In a process that accepts nothing
sub described {
    my ( $class, $description ) = @_;
    return bless {%$description}, $class;
}

sub description {
    my $self = shift;
    return { map { $_ => $self->{$_} } qw(family given h2c host is_unix name path port tls) };
}

sub family { return shift->{family} }
sub fd     { return fileno shift->{fh} }

# Gives up the socket, but not its file, which is another process's
sub forget {
    my $self = shift;
    delete @{$self}{qw(fh own unix)};
    return;
}

sub given   { return shift->{given} }
sub host    { return shift->{host} }
sub is_h2c  { return shift->{h2c} ? 1 : 0 }
sub is_tls  { return shift->{tls} ? 1 : 0 }
sub is_unix { return shift->{is_unix} }
sub name    { return shift->{name} }

# Returns the address, or the sockets of this name from systemd
sub named {
    my ( $class, $spec, @from_systemd ) = @_;
    my $address = Sirius::Config::Address->parse($spec);
    my $name    = $address->{name} // return $spec;
    my $speaks  = join '', map {",$_"} grep { $address->{$_} } qw(tls h2c);
    my @found   = grep     { $_->{name} eq $name } @from_systemd;
    my @names   = sort map { $_->{name} } @from_systemd;
    _fail( $spec, 'LISTEN_FDNAMES has ' . ( @names ? "only @names" : 'no names for this process' ) )
        if !@found;
    return map {"fd:$_->{fd}$speaks"} @found;
}

sub open {
    my ( $class, $spec, $backlog, %unix ) = @_;
    my $address = Sirius::Config::Address->parse($spec);
    return $class->adopt( $address->{fd}, undef, "--listen $spec", %$address )
        if defined $address->{fd};
    my $self = bless { given => $address->{host}, _speaks(%$address) }, $class;
    delete @{$address}{qw(tls h2c)};
    if ( defined $address->{path} ) { $self->_bind_unix( $backlog, %unix, %$address ) }
    else {
        $self->_bind_tcp( $spec, @{$address}{qw(host port)} );
        listen $self->{fh}, $backlog or _fail( $spec, $! );
    }
    $self->_prepare;
    return $self;
}

sub open_all {
    my ( $class, $conf, @from_systemd ) = @_;
    my @speaks = ( tls => $conf->{ssl} );
    return $class->adopt( $conf->{listen_sock}, undef, 'listen_sock', @speaks ) if $conf->{listen_sock};
    my @from_starter = Sirius::Service::Starter->descriptors;
    return _instead( $conf, 'start_server',
        map { $class->adopt( @{$_}{qw(fd host)}, "SERVER_STARTER_PORT: $_->{name}", @speaks ) }
            @from_starter )
        if @from_starter;
    my @specs = @{ $conf->{listen} };

    # A list that names none of them may just be the default
    return _instead( $conf, 'systemd',
        map { $class->adopt( $_->{fd}, undef, "LISTEN_FDS: $_->{name}", @speaks ) } @from_systemd )
        if @from_systemd && !grep {/\A(?:fd|systemd):/} @specs;
    my %unix = map { $_ => $conf->{"socket_$_"} } grep { defined $conf->{"socket_$_"} } qw(mode owner group);
    return
        map { $class->open( $_, $conf->{backlog}, %unix ) } map { $class->named( $_, @from_systemd ) } @specs;
}

# By the default of the scheme where there is none: SERVER_PORT must not be empty
sub port {
    my $self = shift;
    return $self->{is_unix} && $self->{tls} ? 443 : $self->{port};
}

# Before the application is loaded: checks whether these addresses can be bound. They are bound, and listen,
# only once it is loaded
sub probe {
    my ( $class, $backlog, @specs ) = @_;
    for my $spec (@specs) {
        my $address = Sirius::Config::Address->parse($spec);
        my $self    = bless {}, $class;
        $self->_bind_tcp( $spec, @{$address}{qw(host port)} ) if $address->{port};
        next if !defined $address->{path} || $address->{path} =~ /\A\0/;
        eval { Sirius::Listen::Unix->probe( $address->{path} ); 1 } or _fail( "unix:$address->{path}", $@ );
    }
    return;
}

sub restore {
    my ( $class, $state ) = @_;
    my $self = $class->adopt( @{$state}{qw(fd given)}, undef, %$state );
    $self->{own}  = $state->{own};
    $self->{unix} = Sirius::Listen::Unix->restore( $state->{unix}, $self->{fh} ) if $state->{unix};
    return $self;
}

# At the stop. shutdown, as a helper that the application has forked may hold a copy. Sockets from elsewhere
# stay open
sub shut {
    my $self = shift;
    shutdown $self->{fh}, 2 if $self->{fh} && ( $self->{own} || $self->{unix} );
    return;
}

# Its clients try again a second later; what is in the queue stays
sub shut_gate {
    my $self = shift;
    Sirius::Listen::Listener->_shut_gate( fileno $_ ) for $self->bound_tcp;
    return;
}

sub state {
    my $self = shift;
    my %kept = map { $_ => $self->{$_} } qw(given h2c own tls);    # own: a TCP socket that was bound here
    return { %kept, fd => $self->fd, unix => $self->{unix} && $self->{unix}->state };
}

sub url {
    my $self = shift;
    return "unix:$self->{path}" . ( $self->{tls} ? ' (TLS)' : $self->{h2c} ? ' (h2c)' : '' )
        if $self->{is_unix};
    return
          ( $self->{tls} ? 'https' : 'http' )
        . "://$self->{host}:$self->{port}/"
        . ( $self->{h2c} ? ' (h2c)' : '' );
}

# By whom, as the end of a sentence; undef if the address is free, or cannot be had for another reason
sub used {
    my ( $class, $host, $port ) = @_;
    my $spec = ( $host =~ /\A[^\[].*:/ ? "[$host]" : $host ) . ":$port";
    return if eval { $class->probe( 0, $spec ); 1 };
    my $error = do { local $! = EADDRINUSE; "$!" };
    return $@ =~ /\Q$error\E(.*)/ ? $1 : undef;
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

        # Only [::] is dual-stack; the defaults of Linux and the BSDs differ
        setsockopt $self->{fh}, IPPROTO_IPV6, IPV6_V6ONLY, 0 if $family == AF_INET6;
        return $self->{own} = 1 if bind $self->{fh}, $address;
        $error = $!;
        last if $error != EAFNOSUPPORT && $error != EADDRNOTAVAIL;
    }
    $error .= Sirius::OS::SocketOwner->by( Sirius::OS::SocketOwner->tcp($port) ) if $error == EADDRINUSE;
    return _fail( $spec, $error );
}

sub _bind_unix {
    my ( $self, $backlog, %address ) = @_;
    my $path = delete $address{path};
    $self->{given} = $path =~ s/\A\0/\@/r;    # the kernel may know it by another name
    $self->{unix}  = eval { Sirius::Listen::Unix->open( $path, $backlog, %address ) };
    _fail( "unix:$self->{given}", $@ ) if !$self->{unix};
    $self->{fh} = $self->{unix}->handle;
    return;
}

# RFC 3875 4.1.14: an IPv6 address in SERVER_NAME has brackets
sub _bracketed {
    my $host = shift;
    return $host =~ /:/ ? "[$host]" : $host;
}

# Host and port as bound, for messages and for the environment
sub _describe {
    my $self    = shift;
    my $address = getsockname $self->{fh};
    my $family  = $self->{family} = sockaddr_family($address);
    if ( $family == AF_UNIX ) {
        my $path = defined $self->{given} ? $self->{given} : unpack_sockaddr_un($address) =~ s/\A\0/\@/r;
        @{$self}{qw(given host is_unix name path port)} = ( $path, 'localhost', 1, 'localhost', $path, 80 );
        return;
    }
    my ( $error, $host, $port ) = getnameinfo( $address, NI_NUMERICHOST | NI_NUMERICSERV );
    Sirius::Log->fail("cannot determine the address of a listening socket: $error") if $error;
    my $any
        = $family == AF_INET6
        ? ( unpack_sockaddr_in6($address) )[1] eq IN6ADDR_ANY
        : ( unpack_sockaddr_in($address) )[1] eq INADDR_ANY;
    my $given = $self->{given};
    my $name  = $any ? hostname() : defined $given && length $given ? $given : $host;
    @{$self}{qw(host is_unix name port)} = ( _bracketed($host), 0, _bracketed($name), $port );
    return;
}

sub _fail {
    my ( $spec, $error ) = @_;
    return Sirius::Log->fail("cannot listen on $spec: $error");
}

sub _handle {
    my $fd = shift;
    local ( $@, $SIG{__DIE__} );
    return eval { Sirius::OS::Inherit->handle($fd) };
}

# Returns the sockets that were passed to this server. --listen may say which of them speak TLS or HTTP/2;
# other addresses have no effect. To speak plain HTTP where TLS was asked for would be worse than not to start
sub _instead {
    my ( $conf, $giver, @listeners ) = @_;
    my @ignored;
    for my $spec ( @{ $conf->{listen} } ) {
        my $address = Sirius::Config::Address->parse($spec);
        my %speaks  = _speaks(%$address);
        my @same    = %speaks ? grep { $_->_is_at($address) } @listeners : ();
        if    ( $conf->{ssl} || !%speaks ) { push @ignored, $spec }
        elsif ( !@same ) {
            _fail( $spec,
                "$giver has opened the sockets, but none at this address: open it there"
                    . ( $speaks{tls} ? ', or give --enable-ssl if all of them are to speak TLS' : '' ) );
        }
        %$_ = ( %$_, %speaks ) for @same;
    }
    Sirius::Log->warn(
        "--listen @ignored has no effect: $giver has opened the sockets that this server listens on")
        if $conf->{listen_given} && @ignored;
    return @listeners;
}

# By port or path: the host may be written in many ways
sub _is_at {
    my ( $self, $address ) = @_;
    return ( $address->{path} // '' ) eq $self->{path} =~ s/\A\@/\0/r if $self->{is_unix};
    return ( $address->{port} // '' ) eq $self->{port};
}

# A socket option as a number, -1 if it can't be read
sub _number {
    my ( $fh, $option ) = @_;
    my $value = getsockopt $fh, SOL_SOCKET, $option;
    return defined $value ? unpack 'i', $value : -1;
}

sub _prepare {
    my $self = shift;
    my $fh   = $self->{fh};
    $self->_describe;
    fcntl $fh, F_SETFL, fcntl( $fh, F_GETFL, 0 ) | O_NONBLOCK;
    fcntl $fh, F_SETFD, FD_CLOEXEC;
    return if $self->{is_unix};

  # Accepted connections inherit NODELAY, which saves a call for each. DEFER_ACCEPT: accept returns once there
  # is data, or after 1 s
    setsockopt $fh, IPPROTO_TCP, TCP_NODELAY,      1;
    setsockopt $fh, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1 if $^O eq 'linux';
    return;
}

# An error or '', then addresses to try in turn. A name is bound to its IPv4 address if it has one, as other
# PSGI servers do
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

# Of the keys of an address, or of a listener: what it speaks
sub _speaks {
    my %from = @_;
    return map { $_ => 1 } grep { $from{$_} } qw(tls h2c);
}

sub DESTROY {
    my $self = shift;
    local ( $!, $@ );
    return $self->close;
}

1;

=encoding utf8

=head1 NAME

Sirius::Listen::Listener - a listening socket

=head1 SYNOPSIS

  use Sirius::Listen::Listener;

  my $listener = Sirius::Listen::Listener->open( '127.0.0.1:0', 1024 );
  print $listener->url;    # http://127.0.0.1:41234/

=head1 DESCRIPTION

Binds TCP and unix sockets, or takes over sockets that are bound already, and prepares them for the edges:
non-blocking, closed on C<exec>, with C<TCP_NODELAY>, which accepted connections inherit, and C<TCP_DEFER_ACCEPT>.
L</close> removes the file of a unix socket; one that somebody else has bound is never removed.

=head1 DESCRIPTORS

With C<SERVER_STARTER_PORT> in the environment (start_server of L<Server::Starter>) its descriptors are served and
nothing is bound. An address of C<listen> with C<tls> or C<h2c> says which of them speak that: the one with the same port or path.

So it is with C<LISTEN_FDS> and C<LISTEN_PID> (socket activation by systemd): all of its descriptors are served, and the
addresses in the configuration are not, since those may be only the default. With C<fd:> or C<systemd:> among them it is
the other way round: all addresses that are named are served, and of the descriptors only those that are named; the others
are left as they are. The variables are taken out of the environment.

=head1 METHODS

=head2 adopt

  my $listener = Sirius::Listen::Listener->adopt( $handle_or_fd, $given, $from, tls => 1 );

Takes over a socket that listens already. Its file is not removed at the end. C<$given> is what L</given> says where it
was bound, or undefined; C<tls> or C<h2c> says what it is to speak; C<$from> is where it comes from, for the message with which this dies when it is no such
socket.

=head2 bound_tcp

  my ($fh) = $listener->bound_tcp;

The socket, if it is one of TCP that was bound by this server.

=head2 close

  $listener->close;

Closes the socket and removes its file.

=head2 described, description

  my $description = $listener->description;
  my $listener    = Sirius::Listen::Listener->described($description);

Plain data, and in another process a listener without a socket: that is enough for C<%env>, and neither code of the application nor a
process that is left behind can keep the address or accept a connection.

=head2 family

The address family as a number.

=head2 fd

Its descriptor.

=head2 forget

  $listener->forget;

In a child that needs no more than its description: closes its copy of the socket.

=head2 given

The host as it was given, with which another process can L</adopt> it; for a unix socket its path or C<@name>.

=head2 host

The bound address as numbers, with brackets if it is IPv6.

=head2 is_h2c, is_tls

  my $bool = $listener->is_tls;

Whether it takes HTTP/2 without TLS; whether it speaks TLS.

=head2 is_unix

  my $bool = $listener->is_unix;

=head2 name

  my $name = $listener->name;

For C<SERVER_NAME>: the host it was given, the name of the machine when it listens on all addresses, C<localhost> for a unix
socket. Never empty.

=head2 named

  my @addresses = Sirius::Listen::Listener->named( 'systemd:web', @descriptors );

C<fd:N> for each of systemd's descriptors with this name; dies if there is none. Any other address is returned
unchanged.

=head2 open

  my $listener = Sirius::Listen::Listener->open( $address, $backlog, mode => 0660, owner => 'www', group => 'www' );

Binds the address (L<Sirius::Config::Address>) and listens. The rest is for a unix socket that does not say it itself. Dies with C<sirius: cannot listen on
ADDRESS: REASON>.

=head2 open_all

  my @listeners = Sirius::Listen::Listener->open_all( $conf, Sirius::Service::Activation->descriptors );

All of C<< $conf->{listen} >>, or what C<< $conf->{listen_sock} >>, Server::Starter or systemd brought.

=head2 port

The real port; for a unix socket 80, or 443 with TLS, because C<SERVER_PORT> must not be empty.

=head2 restore

  my $listener = Sirius::Listen::Listener->restore($state);

In the next program of the same process, from L</state>, with its descriptor open.

=head2 shut_gate

  $listener->shut_gate;

Keeps new connections out of a socket that this server has bound; those in its queue stay (F<src/net/gate.h>). Does nothing if the
kernel does not allow it.

=head2 state

The state as plain data, for the next program; C<fd> is a descriptor to keep open.

=head2 url

C<http://127.0.0.1:5000/>, C<https://127.0.0.1:5000/>, C<unix:/path> or C<unix:@name>.

=head2 used

  my $by = Sirius::Listen::Listener->used( '127.0.0.1', 5000 );

Who has this address, as in C< by perl (PID 7)>, or an empty text if that is not known; undef if it is free.

=head1 SEE ALSO

L<Sirius::Config::Address>, L<Sirius::Listen::Unix>, L<Sirius::Service::Activation>.

=cut
