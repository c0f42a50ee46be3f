package Sirius::Base::Backoff;

use strict;
use warnings;

use List::Util          qw(min);
use Sirius::Base::Clock qw(now);

# Seconds, at most, between two attempts to start something that never gets ready
use constant LONGEST => 30;

sub at { return shift->{at} }

sub died {
    my ( $self, %how ) = @_;
    my $soon = $how{age} < $self->{interval} && !( $how{killed} && $self->_spared( $how{among} ) );
    return $soon ? $self->_wait( $self->{interval} ) : 0;
}

sub failed {
    my $self  = shift;
    my $times = $self->{failures}++;
    return 0 if $self->{free} && !$times;
    return $self->_wait( min LONGEST, $self->{interval} * 2**min 16, $times - ( $self->{free} ? 1 : 0 ) );
}

sub failing { return shift->{failures} }

sub new {
    my ( $class, %args ) = @_;
    return bless { at => 0, failures => 0, killed => [], pause => 0, %args }, $class;
}

sub ready {
    my $self = shift;
    $self->{failures} = 0;
    return;
}

sub skip {
    my $self = shift;
    $self->{at} = 0;
    return;
}

sub started {
    my $self = shift;
    $self->{at} = now() + $self->{pause};
    return;
}

# Killed from outside, or ended by a request that called exit, as long as this is rare: no reason to do
# without workers for a while
sub _spared {
    my ( $self, $number ) = @_;
    my $now    = now();
    my $killed = $self->{killed};
    @$killed = grep { $_ > $now - $self->{interval} } @$killed, $now;
    return @$killed <= 2 * $number;
}

sub _wait {
    my ( $self, $delay ) = @_;
    $self->{at} = now() + $delay;
    return $delay;
}

1;

=encoding utf8

=head1 NAME

Sirius::Base::Backoff - when to start a process again

=head1 SYNOPSIS

  use Sirius::Base::Backoff;

  my $backoff = Sirius::Base::Backoff->new( interval => 1 );
  my $delay   = $backoff->failed;    # 1, then 2, 4 ... 30
  start() if now() >= $backoff->at;

=head1 DESCRIPTION

A process that never gets ready is started again after C<interval> seconds, then after twice as many, up to 30. One that was ready, and
died soon, is started again after C<interval> seconds; one that had lived longer, at once.

=head1 METHODS

=head2 at

The monotonic time before which none is to be started.

=head2 died

  my $delay = $backoff->died( age => $seconds, killed => $bool, among => $number );

It was ready, and has died without having been asked to. Of those that were killed from outside, twice as many as there are are
started again at once within an interval. Returns the seconds until there may be another.

=head2 failed

  my $delay = $backoff->failed;

It never got ready, or there could be no process at all.

=head2 failing

The number of times in a row that L</failed> was called.

=head2 new

  my $backoff = Sirius::Base::Backoff->new( interval => 1, pause => 0 );

C<pause>: seconds between any two starts; C<free>: the first failure has no delay.

=head2 ready

Call it when the process is ready: the next failure is the first.

=head2 skip

Ends the present pause: the next attempt is made at once.

=head2 started

Call it when a process was started.

=head1 SEE ALSO

L<Sirius::OS::Child>.

=cut
