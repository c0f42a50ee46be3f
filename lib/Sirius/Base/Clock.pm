package Sirius::Base::Clock;

use strict;
use warnings;

use Exporter    qw(import);
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

our @EXPORT_OK = qw(now);

sub now { return clock_gettime(CLOCK_MONOTONIC) }

1;

=encoding utf8

=head1 NAME

Sirius::Base::Clock - the time that no operator can change

=head1 SYNOPSIS

  use Sirius::Base::Clock qw(now);

  my $until = now() + 5;

=head1 FUNCTIONS

=head2 now

Seconds since some moment, with a fraction: the monotonic clock, that of C<due> in L<Sirius::OS::Loop> and of the times in the
scoreboard.

=head1 SEE ALSO

L<Time::HiRes>.

=cut
