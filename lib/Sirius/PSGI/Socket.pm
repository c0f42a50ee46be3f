package Sirius::PSGI::Socket;

use 5.016;
use strict;
use warnings;

# The classes of psgix.io, loaded before any fork
use IO::Socket::INET ();
use IO::Socket::IP   ();
use IO::Socket::UNIX ();

1;

=encoding utf8

=head1 NAME

Sirius::PSGI::Socket - The socket of a request, for applications that take it over

=head1 SYNOPSIS

  sub {
      my $env    = shift;
      my $socket = $env->{'psgix.io'};
      return sub {
          print {$socket} "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nBy hand.\n";
          close $socket;
      };
  };

=head1 DESCRIPTION

C<< $env->{'psgix.io'} >> is an L<IO::Socket::INET>, an L<IO::Socket::IP> or an L<IO::Socket::UNIX>, as the listener is. The
server makes it in C (F<xs/socket.c>); this module loads the classes.

Over HTTP/2 there is one only for a request by extended CONNECT (RFC 8441), as browsers open WebSockets there. It looks like the GET with
an upgrade of HTTP/1.1, and the handle is answered in the same way: the server makes of C<HTTP/1.1 101> what HTTP/2 has in its place.
It is an L<IO::Socket::UNIX>, which stands for the stream; the other streams of the connection go on.

=head2 Looking changes nothing

The handle has no descriptor until one is needed. If an application reads the value, copies or dumps C<%env>, calls
C<ref>, C<isa> or C<can>, or closes or drops the handle, the connection stays with the server, which keeps it alive and
serves the requests that the client has sent ahead.

=head2 Using it takes the connection

Any use that asks for its number, reads, writes or calls a method of L<IO::Socket> (C<fileno>, C<sysread>, C<print>,
C<blocking>, C<peerhost>, an event loop that watches it) duplicates the client's socket, with the flag close-on-exec,
and makes it blocking. From then on the connection is the application's:

=over 4

=item *

The server reads no further request from it. Bytes that have arrived after the request are in the handle: C<read>,
C<readline> and C<getline> return them first; C<sysread> and C<recv> do not.

=item *

An application that returns from its responder callback without having called the responder keeps the connection for as
long as it likes. The server closes its own descriptor and shuts nothing down.

=item *

If the application answers through PSGI nevertheless, its response is sent with C<Connection: close>. If the head has
been sent before, the connection is closed after the response.

=item *

If the application dies or exits, or its worker is killed, the connection is reset, so that what was written does not look complete.
If nothing was written, which the server knows of TCP sockets, the client gets 500 or 502 as usual. A unix socket is closed; there
is no reset.

=back

When the response is complete or the request has ended, a handle that was never used behaves like a closed one: its
C<fileno> is -1, and everything else fails with C<EBADF>.

=head2 Children and threads

A child that the application forks during a request may use the handle. When the parent has not used it, the child gets
a descriptor that does not block until the parent has returned; and when the parent still holds the handle at the end
of its responder callback, and has not answered, the connection is the child's. Use it, or hold it, in one of the two.

In a thread the handle is closed.

=head1 SEE ALSO

L<Sirius>

=cut
