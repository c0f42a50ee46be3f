package Sirius::OS::Passing;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has send, receive and _pair
use Sirius::OS::Inherit;

sub pair {
    my $class = shift;
    return map { Sirius::OS::Inherit->handle($_) } $class->_pair;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Passing - messages with descriptors, between two processes

=head1 SYNOPSIS

  use Sirius::OS::Passing;

  my ( $line, $theirs ) = Sirius::OS::Passing->pair or die $!;
  Sirius::OS::Passing->send( fileno $line, 'take this', fileno $fh ) or die $!;
  my ( $text, @descriptors ) = Sirius::OS::Passing->receive( fileno $line );

=head1 METHODS

=head2 pair

Returns the two ends of a line on which messages stay apart: sockets that no program inherits, and that wait. An empty list with C<$!> if
that is not possible.

=head2 receive

  my ( $text, @descriptors ) = Sirius::OS::Passing->receive($number);

Returns the next message and the descriptors that came with it, without waiting; an empty list if there is none, or no longer a sender.

=head2 send

  Sirius::OS::Passing->send( $number, $text, @descriptors ) or die $!;

Sends a message, without waiting. False with C<$!> if that is not possible. Dies if there are more descriptors than a message can have.

=head1 SEE ALSO

F<src/net/packets.h>, L<Sirius::Dev::Base>, L<Sirius::Admin::Memory>.

=cut
