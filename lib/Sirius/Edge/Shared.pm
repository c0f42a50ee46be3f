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

Makes the memory and the sockets by which the processes of a server find each other, and returns the numbers of their
descriptors, which are closed on exec. F<src/share/sleepers.h>, F<src/share/common.h> and F<src/share/door.h> say what
they are for. All methods die if the system cannot provide one.

=head1 METHODS

=head2 bell

A descriptor by which others wake an edge.

=head2 common

Memory that the edges have in common.

=head2 hold

  Sirius::Edge::Shared->hold( $sleepers, $number );

From now on the workers of this generation, and of those before, begin no request. Those that sleep have to be told to end.

=head2 item

  my $fd = Sirius::Edge::Shared->item($packed);

A file in memory with an item (L<Sirius::Channel::Item>); -1 with C<$!>: EINVAL if it is none.

=head2 layout

Text that tells how this build lays out what processes share (F<src/share/layout.h>): C<sirius-edge> refuses to start for a server that
does it in another way.

=head2 line

  my ( $ours, $theirs ) = Sirius::Edge::Shared->line;

The two ends of a line on which descriptors are passed, by L</pass> or by an edge.

=head2 lobby

A listening socket to which workers connect to greet an edge.

=head2 over

  Sirius::Edge::Shared->over($sleepers);

Tells all workers to end, because the last edge has ended.

=head2 name_senders

  Sirius::Edge::Shared->name_senders($fd);

From now on the kernel says who has sent a note on this line. A portable build believes the sender.

=head2 page

  my $fd = Sirius::Edge::Shared->page;

An empty file in memory, to which an edge can write; -1 with C<$!>.

=head2 part

  Sirius::Edge::Shared->part( $sleepers, $common, $number );

Removes the edge with this number, which has ended, so that no process looks for it any more.

=head2 pass

  Sirius::Edge::Shared->pass( $line, log => $fd ) or ...;

Passes a descriptor to an edge; see L<Sirius::Edge::Place/pass>. False when the edge does not read.

=head2 remove_lobby

  Sirius::Edge::Shared->remove_lobby($fd);

Nobody finds this lobby any more. For systems where its name is that of a file.

=head2 sleepers

  my $fd = Sirius::Edge::Shared->sleepers($rows);

The memory in which that many workers sleep and find the edges.

=head2 turned

  my $time = Sirius::Edge::Shared->turned( $common, $number );

When the loop of this edge has last turned, in nanoseconds of the monotonic clock; 0 if it has not turned yet.

=head2 words

  my %from = Sirius::Edge::Shared->words;    # max_body => 'option', keepalive => 'onoff', server => 'made' ...

The words of the command line of an edge that concern options, and how they are made of these (F<src/share/words.h>).

=head1 SEE ALSO

L<Sirius::Edge::Group>, L<Sirius::Edge::Place>.

=cut
