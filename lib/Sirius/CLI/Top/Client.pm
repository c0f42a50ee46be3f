package Sirius::CLI::Top::Client;

use strict;
use warnings;

use Errno               qw(EAGAIN EINPROGRESS EINTR);
use Fcntl               qw(F_SETFL O_NONBLOCK);
use Sirius::Base::Clock qw(now);
use Sirius::Config::Address;
use Socket
    qw(IPPROTO_TCP MSG_NOSIGNAL SOCK_STREAM SOL_SOCKET SO_ERROR getaddrinfo pack_sockaddr_un sockaddr_family);

use constant {
    BODY_MAX => 64 * 1024 * 1024,
    PATIENCE => 5,                  # seconds to wait for an answer
};

sub get {
    my ( $self, $path ) = @_;
    my ( $status, $reason, $body ) = $self->_ask($path);
    die "the answer is $status $reason: not an admin port of Sirius\n" if $status ne '200';
    return $body;
}

sub new {
    my ( $class, $text ) = @_;
    my ($spec) = $text =~ m{\Ahttp://([^/]*)/?\z} ? $1 : $text;
    my $address = Sirius::Config::Address->parse($spec);
    die "'$text' is not an address to connect to\n" if !defined $address->{path} && !defined $address->{port};

    # as in --listen: any address
    $address->{host} =~ s/\A\*?\z/127.0.0.1/ if !defined $address->{path};
    return bless $address, $class;
}

sub stack {
    my ( $self, $pid ) = @_;
    my ( $status, $reason, $body ) = $self->_ask("/stack.json?pid=$pid");
    my ($why) = $body =~ /\A(.{1,400})/;
    die "$why\n" if $status =~ /\A(?:404|503)\z/ && defined $why;
    die "the answer is $status $reason\n" if $status ne '200';
    return $body;
}

sub _addresses {
    my $self = shift;
    return pack_sockaddr_un( $self->{path} ) if defined $self->{path};
    my ( $error, @found )
        = getaddrinfo( @{$self}{qw(host port)}, { protocol => IPPROTO_TCP, socktype => SOCK_STREAM } );
    die "$error\n" if $error;
    return map { $_->{addr} } @found;
}

# Status, reason and body of the answer
sub _ask {
    my ( $self, $path ) = @_;
    $self->{deadline} = now() + PATIENCE;
    my $fh = $self->_connect;

    # HTTP/1.0, so that the answer ends with the connection. The request fits the socket's buffer
    send $fh, "GET $path HTTP/1.0\r\nHost: localhost\r\n\r\n", MSG_NOSIGNAL;
    my $text = $self->_read($fh);
    my ( $head, $body ) = split /\r\n\r\n/, $text, 2;
    die "the connection was closed without an answer\n" if !defined $body;
    my ( $status, $reason ) = $head =~ m{\AHTTP/1\.\d (\d{3}) ?([^\r\n]*)}
        or die "not an HTTP server\n";
    my ($length) = $head =~ /^Content-Length: *(\d+)\r?$/im;
    die "the answer is incomplete\n" if $status eq '200' && defined $length && $length > length $body;
    return ( $status, $reason, $body );
}

# Connects to the first address that accepts
sub _connect {
    my $self = shift;
    my $error;
    for my $address ( $self->_addresses ) {
        socket my $fh, sockaddr_family($address), SOCK_STREAM, 0 or die "socket: $!\n";
        fcntl $fh, F_SETFL, O_NONBLOCK or die "fcntl: $!\n";
        return $fh if connect $fh, $address;
        $error = $!;
        next if $error != EINPROGRESS;
        $self->_wait( $fh, 1 );
        $error = $! = unpack 'i', getsockopt $fh, SOL_SOCKET, SO_ERROR;
        return $fh if !$error;
    }
    die $error == EAGAIN ? "its queue is full\n" : "$error\n";
}

sub _read {
    my ( $self, $fh )  = @_;
    my ( $text, $got ) = ( '', 1 );
    while ($got) {
        $got = sysread $fh, $text, 65_536, length $text;
        die "the answer is too large\n" if length $text > BODY_MAX;
        next                            if defined $got;
        die "$!\n"                      if $! != EAGAIN && $! != EINTR;
        $self->_wait( $fh, 0 );
        $got = 1;
    }
    return $text;
}

# Waits until the socket can be read or written
sub _wait {
    my ( $self, $fh, $write ) = @_;
    while ( ( my $left = $self->{deadline} - now() ) > 0 ) {
        vec( my $bits = '', fileno $fh, 1 ) = 1;
        return if select( $write ? undef : $bits, $write ? $bits : undef, undef, $left ) > 0;
    }
    die sprintf "no answer after %g s\n", PATIENCE;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Top::Client - an HTTP client for the admin port

=head1 SYNOPSIS

  use Sirius::CLI::Top::Client;

  my $client = Sirius::CLI::Top::Client->new('unix:/run/admin.sock');
  my $json   = $client->get('/status.json');

=head1 DESCRIPTION

Speaks as much HTTP as is needed, over TCP or a unix socket. If there is no answer within 5 seconds, it is an error.

=head1 METHODS

=head2 get

  my $body = $client->get($path);

Sends a request on a new connection. Dies with one line unless there is a complete answer with status 200.

=head2 stack

  my $json = $client->stack($pid);

What a worker does now. Dies with a line that says why the server cannot tell.

=head2 new

  my $client = Sirius::CLI::Top::Client->new($address);

C<--admin> as it was given to the server (see L<Sirius::Config::Address/ADDRESSES>), or the URL that the server has
printed. Dies if it is neither.

=head1 SEE ALSO

L<Sirius::CLI::Top>, L<Sirius::Admin::App>.

=cut
