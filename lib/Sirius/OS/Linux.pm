package Sirius::OS::Linux;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::OS::Linux - system calls that Perl lacks

=head1 SYNOPSIS

  use Sirius::OS::Linux;

  my $limit = Sirius::OS::Linux->descriptors;

=head1 DESCRIPTION

System calls of Linux for the code in F<lib>. They are in C: F<xs/Sirius.xs>, and F<src/net> for what the edge uses as well.

=head1 METHODS

=head2 beside

  my ( $pid, $pidfd ) = Sirius::OS::Linux->beside( $path, \@words, \@descriptors );

The same, but the process is not a child of this one (F<src/net/beside.h>). The second number is a descriptor that
becomes readable when the process has ended.

=head2 descriptors

  my $number = Sirius::OS::Linux->descriptors;

Raises the soft limit of descriptors to the hard one, and returns it.

=head2 end_with

  Sirius::OS::Linux->end_with($parent);

From now on the kernel kills this process when its parent ends, or at once if the parent is another one; with 0 no longer. A change of
the user ends this too.

=head2 file_size

  my $bytes = Sirius::OS::Linux->file_size;

The soft limit of the size of files (RLIMIT_FSIZE), which holds for shared memory too; -1: there is none.

=head2 memory_over, memory_watch

  my $watch = Sirius::OS::Linux->memory_watch;
  ...
  END { warn 'no memory' if Sirius::OS::Linux->memory_over }

Whether perl exits from the scope that owns the object because it gets no more memory. Perl prints C<Out of memory!> then,
and exits with status 1 as if a program had called C<exit>.

=head2 poll

  Sirius::OS::Linux->poll( \@descriptors, \@events, $seconds, \@signals );

Sleeps until one of the descriptors has one of its events (numbers of poll(2)), one of the signals comes, or the seconds are over, which
is never when they are less than 0. The signals are blocked before and afterwards. See L<Sirius::OS::Loop>.

=head2 readable

  Sirius::OS::Linux->readable;

Lets processes of the same user read the memory of this one, also after a change of the user, when the kernel forbids it
(prctl(2), C<PR_SET_DUMPABLE>).

=head2 restart

  Sirius::OS::Linux->restart(@signals);

Makes the handler of this signal, a number, restart the system call that it interrupts (C<SA_RESTART>).

=head2 shut_gate

  Sirius::OS::Linux->shut_gate($fd);

Keeps new connections out of a listening socket; those in its queue stay (F<src/net/gate.h>). Does nothing if the
kernel does not allow it.

=head2 spawn

  my $pid = Sirius::OS::Linux->spawn( $path, \@words, \@descriptors );

Runs a program in a child, with these descriptors and with 0, 1 and 2. It does not copy this process, so it takes the same time
however much memory that has. Dies when it cannot.

=head2 stack

  my $frames = Sirius::OS::Linux->stack($pid) or warn $!;
  print "$_\n" for @$frames;    # main::handler at app.psgi line 12

The subs of Perl in which a child of this process is, innermost first: at most 50 lines of text in printable ASCII, then C<...> if
there are more. What the server has called the application from is left out. The child must not have executed another program. It
is neither stopped nor interrupted (F<xs/stack.c>); what changes too quickly is one line, C<(calls that come and go)>. Undef if its
memory cannot be read; C<$!> says why.

=head2 stopped_child

  my ( $pid, $signal ) = Sirius::OS::Linux->stopped_child;

Returns a child that a signal has stopped, or that continues (signal 0), once for each event; an empty list if there is
none. Children that have ended are left to C<waitpid>.

=head2 subreaper

  Sirius::OS::Linux->subreaper;

Makes this process the new parent of descendants whose parent ends.

=head1 SEE ALSO

L<Sirius>.

=cut
