package Sirius::Edge::Shared;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Shared - what the supervisor, the edges and the workers share

=head1 SYNOPSIS

  use Sirius::Edge::Shared;

  my $fd = Sirius::Edge::Shared->sleepers($rows);

=head1 DESCRIPTION

Makes the memory and the sockets by which the processes of a server know of each other, as numbers of descriptors that are closed
on exec. What they are for is told in F<src/share/sleepers.h>, F<src/share/common.h> and F<src/share/door.h>. All of these die when the system has none
to give.

=head1 METHODS

=head2 bell

A descriptor by which others wake an edge.

=head2 common

Memory that the edges have in common.

=head2 line

  my ( $ours, $theirs ) = Sirius::Edge::Shared->line;

Two ends: what is said on one is heard on the other, by L</pass> or by an edge.

=head2 lobby

A listening socket on which workers say hello to an edge.

=head2 over

  Sirius::Edge::Shared->over($sleepers);

Lets all workers go: the last edge has ended.

=head2 part

  Sirius::Edge::Shared->part( $sleepers, $common, $number );

The edge with this number is gone: nobody looks for it any more.

=head2 pass

  Sirius::Edge::Shared->pass( $line, log => $fd ) or ...;

Passes a descriptor to an edge; see L<Sirius::Edge::Place/pass>. False when the edge does not read.

=head2 sleepers

  my $fd = Sirius::Edge::Shared->sleepers($rows);

Memory in which so many workers sleep, and in which they find the edges.

=head1 SEE ALSO

L<Sirius::Edge::Group>, L<Sirius::Edge::Place>.

=cut
