package Sirius::Base::Backoff;

use strict;
use warnings;

use List::Util  qw(max min);
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

use constant LONGEST => 30;    # seconds between two attempts to start a worker that never gets ready

sub at { return shift->{at} }

# A worker has ended: seconds until there may be another
sub ended {
    my ( $self, $worker, $failed, $killed, $number ) = @_;
    my $delay = 0;
    if    ( !$worker->{ready} ) { $delay = $self->_longer }
    elsif ($failed
        && !$worker->{leave}
        && _now() - $worker->{since} < $self->{interval}
        && !( $killed && $self->_spared($number) ) )
    {
        $delay = $self->{interval};
    }
    $self->{at} = _now() + $delay if $delay;
    return $delay;
}

sub failing { return shift->{failures} }

sub new {
    my ( $class, $conf ) = @_;
    return bless {
        at       => 0,
        failures => 0,
        interval => $conf->{err_respawn_interval},
        killed   => [],
        pause    => $conf->{spawn_interval},
    }, $class;
}

# There can be no new process at all
sub no_fork {
    my $self  = shift;
    my $delay = $self->_longer;
    $self->{at} = _now() + $delay;
    return $delay;
}

sub ready {
    my $self = shift;
    $self->{failures} = 0;
    return;
}

sub started {
    my $self = shift;
    $self->{at} = _now() + $self->{pause};
    return;
}

sub _longer {
    my $self = shift;
    return min LONGEST, $self->{interval} * 2**min 16, $self->{failures}++;
}

sub _now { return clock_gettime(CLOCK_MONOTONIC) }

# Killed from outside, or a request that called exit, and not for ever: no reason to be without workers for a while
sub _spared {
    my ( $self, $number ) = @_;
    my $now    = _now();
    my $killed = $self->{killed};
    @$killed = grep { $_ > $now - $self->{interval} } @$killed, $now;
    return @$killed <= 2 * $number;
}

1;

=encoding utf8

=head1 NAME

Sirius::Base::Backoff - when the next worker may be started

=head1 SYNOPSIS

  use Sirius::Base::Backoff;

  my $backoff = Sirius::Base::Backoff->new($conf);
  my $delay   = $backoff->ended( $worker, $failed, $killed, $number );

=head1 DESCRIPTION

A worker that ends is replaced at once, unless that would be a loop of forks. After a worker that was never ready, the
next attempt is made C<--err-respawn-interval> seconds later, then after twice as many, up to 30. A worker that was
ready and failed within C<--err-respawn-interval> is replaced after that many seconds, unless it was killed from
outside or the application called C<exit>: such workers are replaced at once, up to twice the wanted number of workers
in that time.

=head1 METHODS

=head2 at

The monotonic time before which no worker should be started.

=head2 ended

  my $seconds = $backoff->ended( $worker, $failed, $killed, $number );

Call it when C<$worker> has ended. C<$killed>: by C<KILL>, or by an C<exit> of the application. C<$number>: of wanted
workers. Returns the seconds to wait, 0 if the next worker may be started at once.

=head2 failing

The number of workers in a row that have failed.

=head2 new

  my $backoff = Sirius::Base::Backoff->new($conf);

=head2 no_fork

The seconds until the next attempt after a failed C<fork>.

=head2 ready

Call it when a worker is ready.

=head2 started

Call it when a worker was started: the next one is started C<--spawn-interval> seconds later.

=head1 SEE ALSO

L<Sirius::Process::Pool>.

=cut
