package Sirius::OS::Origin;

use strict;
use warnings;

use Sirius::Base::Text;
use Sirius::OS::Proc;

# si_code of a signal that the kernel itself has sent, as for Ctrl-C and for a terminal that is closed. macOS
# has none, and there no process is without a PID
use constant SI_KERNEL => $^O eq 'freebsd' ? 0x10000 : $^O eq 'darwin' ? 0 : 0x80;

sub words {
    my ( $class, $pid, $uid, $code ) = @_;
    return defined $code && $code == SI_KERNEL ? 'from the terminal' : 'from outside this container' if !$pid;
    my $name = Sirius::OS::Proc->name($pid);
    my $user = getpwuid $uid;
    return
          "from PID $pid"
        . ( length $name  ? ' (' . Sirius::Base::Text->harmless($name) . ')' : '' ) . ', '
        . ( defined $user ? "user $user"                                     : "user ID $uid" );
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Origin - says who has sent a signal or a command

=head1 SYNOPSIS

  use Sirius::OS::Origin;

  print Sirius::OS::Origin->words( $pid, $uid );    # from PID 4711 (bash), user root

=head1 METHODS

=head2 words

  my $words = Sirius::OS::Origin->words( $pid, $uid, $code );

The process with its name, while it is there to be asked, and its user. The PID is 0 for a process that can't be seen from here, and for
a signal of the kernel itself, such as that of a terminal: the C<si_code> of the signal tells which.

=head1 SEE ALSO

L<Sirius::OS::Signals>, L<Sirius::Control::Server>.

=cut
