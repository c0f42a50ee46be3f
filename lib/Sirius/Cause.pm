package Sirius::Cause;

use strict;
use warnings;

use Config qw(%Config);

my @NAME = split ' ', $Config{sig_name};

sub words {
    my ( $class, $status, $why ) = @_;
    my $signal = $status & 127;
    return "was killed by signal $signal ($NAME[$signal])" if $signal;
    return 'exited with status ' . ( $status >> 8 )        if $status;
    return length $why ? "ended: $why" : 'exited with status 0 inside the application';
}

1;

=encoding utf8

=head1 NAME

Sirius::Cause - how a process ended, in words

=head1 SYNOPSIS

  use Sirius::Cause;

  my $words = Sirius::Cause->words( $?, '' );    # was killed by signal 9 (KILL)

=head1 METHODS

=head2 words

  my $words = Sirius::Cause->words( $status, $why );

From a wait status, and a reason that the process itself has given, or ''.

=head1 SEE ALSO

L<Sirius::Generation>, L<Sirius::Generations>.

=cut
