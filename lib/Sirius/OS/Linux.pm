package Sirius::OS::Linux;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::OS::Linux - what Perl has no word for

=head1 SYNOPSIS

  use Sirius::OS::Linux;

  my $limit = Sirius::OS::Linux->descriptors;

=head1 DESCRIPTION

System calls of Linux for the code in F<lib>. They are in C: F<xs/Sirius.xs>, and F<src/net> for what the edge uses as well.

=head1 METHODS

=head2 descriptors

  my $number = Sirius::OS::Linux->descriptors;

How many descriptors this process may have. The soft limit is raised to the hard one first.

=head2 restart

  Sirius::OS::Linux->restart($signal);

The handler of this signal, a number, restarts the system call that it interrupts (C<SA_RESTART>).

=head2 shut_gate

  Sirius::OS::Linux->shut_gate($fd);

A listening socket accepts no new connections from now on, and those that have come stay (F<src/net/gate.h>). Where the kernel does
not allow that nothing happens.

=head2 spawn

  my $pid = Sirius::OS::Linux->spawn( $path, \@words, \@descriptors );

Runs a program in a child, with these descriptors and with 0, 1 and 2. It does not copy this process, so it takes the same time
however much memory that has. Dies when it cannot.

=head2 beside

  my ( $pid, $pidfd ) = Sirius::OS::Linux->beside( $path, \@words, \@descriptors );

The same, but the process is nobody's child (F<src/net/beside.h>); the second number is a descriptor which is readable when it has
ended.

=head2 stopped_child

  my ( $pid, $signal ) = Sirius::OS::Linux->stopped_child;

A child that a signal has stopped, or that goes on (0), once for each time; nothing when there is none. One that has ended is left to
C<waitpid>.

=head2 subreaper

  Sirius::OS::Linux->subreaper;

Children whose parent ends become children of this process from now on.

=head1 SEE ALSO

L<Sirius>.

=cut
