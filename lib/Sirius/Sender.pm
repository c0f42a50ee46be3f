package Sirius::Sender;

use strict;
use warnings;

use Sirius::Proc;
use Sirius::Readable;

sub words {
    my ( $class, $pid, $uid ) = @_;
    return 'from the terminal, or from outside of this container' if !$pid;
    my $name = Sirius::Proc->name($pid);
    my $user = getpwuid $uid;
    return
          "from PID $pid"
        . ( length $name  ? ' (' . Sirius::Readable->harmless($name) . ')' : '' ) . ', '
        . ( defined $user ? "user $user"                                   : "user ID $uid" );
}

1;

=encoding utf8

=head1 NAME

Sirius::Sender - who has sent a signal or a command, in words

=head1 SYNOPSIS

  use Sirius::Sender;

  print Sirius::Sender->words( $pid, $uid );    # from PID 4711 (bash), user root

=head1 METHODS

=head2 words

  my $words = Sirius::Sender->words( $pid, $uid );

The process with its name, while it is there to be asked, and its user. The PID is 0 for a signal of a terminal, and for one of
a process that can't be seen from here.

=head1 SEE ALSO

L<Sirius::Signals>, L<Sirius::Control>.

=cut
