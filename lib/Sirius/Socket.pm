package Sirius::Socket;

use 5.016;
use strict;
use warnings;

use IO::Socket ();
use Socket     ();

# For psgix.io: a socket object on a descriptor, with the bytes that the engine has read ahead
sub adopt {
    my ( $fd, $ahead ) = @_;

    my $class  = 'IO::Socket';
    my $handle = IO::Socket->new_from_fd( $fd, '+<' ) or return;
    my $domain = Socket::sockaddr_family( getsockname $handle );
    if ( $domain == Socket::AF_UNIX() ) {
        require IO::Socket::UNIX;
        $class = 'IO::Socket::UNIX';
    } elsif ( $domain == Socket::AF_INET() ) {
        require IO::Socket::INET;
        $class = 'IO::Socket::INET';
    } else {
        require IO::Socket::IP;
        $class = 'IO::Socket::IP';
    }
    bless $handle, $class;
    $handle->autoflush(1);
    $handle->ungetc(ord) for reverse split //, $ahead;

    return $handle;
}

1;

=encoding utf8

=head1 NAME

Sirius::Socket - The socket of a request, for applications that take it over

=head1 DESCRIPTION

C<< $env->{'psgix.io'} >> is made here when an application first reads it: a blocking L<IO::Socket::INET>,
L<IO::Socket::IP> or L<IO::Socket::UNIX> on a descriptor of its own. Bytes that the client sent behind the request and that
the engine has read are in its buffer: C<read> and C<readline> return them first, C<sysread> passes them by.

=head1 FUNCTIONS

=head2 adopt

  my $socket = adopt($fd, $bytes_read_ahead);

Takes C<$fd> over. Returns nothing when it is no socket.

=head1 SEE ALSO

L<Sirius>

=cut
