package Sirius::OS::Stack;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::OS::Stack - the Perl stack of another process

=head1 SYNOPSIS

  use Sirius::OS::Stack;

  my $frames = Sirius::OS::Stack->of($pid) or warn $!;
  print "$_\n" for @$frames;    # main::handler at app.psgi line 12


=head1 METHODS

=head2 of

  my $frames = Sirius::OS::Stack->of($pid);

The subs of Perl in which a child of this process is, innermost first: at most 50 lines of text in printable ASCII, then C<...> if
there are more. What the server has called the application from is left out. The child must not have executed another program. It
is neither stopped nor interrupted (F<xs/stack.c>); what changes too quickly is one line, C<(calls that come and go)>. Undef if its
memory cannot be read; C<$!> says why.

=head2 permit

  Sirius::OS::Stack->permit;

Lets processes of the same user read the memory of this one, also after a change of the user, when the kernel forbids it
(prctl(2), C<PR_SET_DUMPABLE>).


=head1 SEE ALSO

L<Sirius::Process::SlowLog>.

=cut
