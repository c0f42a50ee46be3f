package Bench::Progress;

# How far the run is: a bar on a terminal, otherwise a line for each case.

use strict;
use warnings;

use POSIX       ();
use Time::HiRes qw(time);

# Seconds that the whole run will take, as far as is known
sub new {
    my ( $class, $seconds ) = @_;
    local $| = 1;
    return bless {
        all   => $seconds || 1,
        done  => 0,
        began => time,
        bar   => POSIX::isatty( \*STDERR ),
        case  => ''
    }, $class;
}

# A case of so many steps and seconds begins
sub begin {
    my ( $self, $case, $steps, $seconds ) = @_;
    @$self{qw(case steps seconds step)} = ( $case, $steps || 1, $seconds, 0 );
    printf STDERR "%s  %3d %%  %s\n", _clock( time - $self->{began} ), $self->_percent, $case
        if !$self->{bar};
    return;
}

# One more step begins
sub tick {
    my ( $self, $what ) = @_;
    $self->{step}++ if $self->{step} < $self->{steps};
    return          if !$self->{bar};
    my $percent = $self->_percent;
    my $bar     = ( '=' x ( $percent * 0.3 ) ) . '>';
    my $spent   = time - $self->{began};
    my $left    = $percent > 3 ? $spent * ( 100 / $percent - 1 ) : $self->{all};
    printf STDERR "\r[%-31s] %3d %%  %s left  %-50.50s", $bar, $percent, _clock($left),
        "$self->{case}: $what";
    return;
}

sub end {
    my $self = shift;
    $self->{done} += $self->{seconds};
    @$self{qw(step steps seconds)} = ( 0, 1, 0 );
    print STDERR "\r", ' ' x 100, "\r" if $self->{bar};
    return;
}

sub _percent {
    my $self = shift;
    my $now  = $self->{done} + ( $self->{seconds} || 0 ) * ( $self->{step} || 0 ) / ( $self->{steps} || 1 );
    return $now < $self->{all} ? 100 * $now / $self->{all} : 100;
}

sub _clock {
    my $seconds = shift;
    return sprintf '%d:%02d', $seconds / 60, $seconds % 60;
}

1;
