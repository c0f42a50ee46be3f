package Sirius::Log;

use strict;
use warnings;

use IO::Handle ();

sub note {
    my ( $class, $message ) = @_;
    warn "[sirius $$] $message\n";
    STDERR->flush;    # it may have a layer of the application's
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Log - what the server says about itself

=head1 SYNOPSIS

  use Sirius::Log;

  Sirius::Log->note('worker 4711 was killed by signal 11 (SEGV), replaced');

=head1 DESCRIPTION

One line on STDERR for each event of the server: C<[sirius PID] message>.

=head1 METHODS

=head2 note

  Sirius::Log->note($message);

Writes one line. It goes through C<warn>, so an application's C<$SIG{__WARN__}> sees it.

=head1 SEE ALSO

L<Sirius>.

=cut
