package Sirius::OS::Origin;

use strict;
use warnings;

use Sirius::Base::Text;
use Sirius::OS::Proc;

sub words {
    my ( $class, $pid, $uid ) = @_;
    return 'from the terminal or from outside this container' if !$pid;
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

  my $words = Sirius::OS::Origin->words( $pid, $uid );

The process with its name, while it is there to be asked, and its user. The PID is 0 for a signal of a terminal, and for one of
a process that can't be seen from here.

=head1 SEE ALSO

L<Sirius::OS::Signals>, L<Sirius::Control::Server>.

=cut
