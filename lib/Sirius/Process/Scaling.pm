package Sirius::Process::Scaling;

use strict;
use warnings;

use List::Util          qw(max min);
use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);

use constant {
    LOOK  => 0.5,    # seconds between two checks
    GROW  => 2,      # checks in a row that find requests waiting, before workers are added
    CALM  => 30,     # seconds in which each check has found SPARE or more idle workers, before one is removed
    SPARE => 2,
    STEP  => 5,      # seconds between removing one worker and the next
};

sub act {
    my $self = shift;
    my ( $board, $supervisor ) = @{$self}{qw(board supervisor)};
    return if $supervisor->ending || !$self->due;
    my $idle = grep { $_->{state} eq 'idle' } $board->table;
    $supervisor->set_workers( $self->look( $board->workers, $board->waiting, $idle ),
        'the load requires it' );
    return;
}

sub due {
    my $self = shift;
    my ( $min, $max ) = $self->_range;
    return $max > $min ? $self->{at} : ();
}

# How many workers there should be, with $waiting requests, and $idle of $number workers
sub look {
    my ( $self, $number, $waiting, $idle ) = @_;
    my ( $min, $max ) = $self->_range;
    my $now = now();
    return $number if $max <= $min || $now < $self->{at};
    $self->{at}         = $now + LOOK;
    $self->{busy_looks} = $waiting ? $self->{busy_looks} + 1 : 0;
    $self->{calm_since} = $now if $waiting || $idle < SPARE;
    if ( $self->{busy_looks} >= GROW ) {
        $self->{busy_looks} = 0;
        return max $number, min $max, $number + max 1, min $waiting, int $number / 2;
    }
    return $number if $now - $self->{calm_since} < CALM || $number <= $min;
    $self->{calm_since} = $now - CALM + STEP;
    return $number - 1;
}

sub new {
    my ( $class, $conf, $supervisor, $board ) = @_;
    my $now  = now();
    my $self = bless { at => $now, board => $board, busy_looks => 0, calm_since => $now, conf => $conf },
        $class;
    weaken( $self->{supervisor} = $supervisor ) if $supervisor;
    return $self;
}

# Read each time, as a reload may change it
sub _range {
    my $conf = shift->{conf};
    return ( $conf->{workers}, $conf->{workers_max} || $conf->{workers} );
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Scaling - starts workers when requests wait, and stops idle ones

=head1 SYNOPSIS

  use Sirius::Process::Scaling;

  my $scaling = Sirius::Process::Scaling->new($conf);
  $number = $scaling->look( $number, $waiting, $idle );

=head1 DESCRIPTION

With C<--workers MIN:MAX> the supervisor checks twice a second. If requests wait at two checks in a row, it starts as
many workers as requests wait, but at most half of the present number (at least one). If at least two workers were idle
at each check for 30 seconds, it stops one, and another one every 5 seconds as long as that holds. Workers beyond MAX,
which an operator has started by C<TTIN> or C<sirius ctl workers>, stay until then.

=head1 METHODS

=head2 act

Gives the supervisor another number of workers when a look says so.

=head2 due

The monotonic time of the next check; nothing if the number is fixed.

=head2 look

  $number = $scaling->look( $number, $waiting, $idle );

Returns how many workers there should be from now on.

=head2 new

  my $scaling = Sirius::Process::Scaling->new( $conf, $supervisor, $scoreboard );

From C<workers> to C<workers_max>. L</look> alone needs only C<$conf>.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>.

=cut
