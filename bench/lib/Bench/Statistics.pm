package Bench::Statistics;

# Medians, and how far apart the rounds were.

use strict;
use warnings;

use Exporter   qw(import);
use List::Util qw(max min);

our @EXPORT_OK = qw(median ratios spread);

# undef without values
sub median {
    my @values = @_;
    my @sorted = sort { $a <=> $b } @values;
    return undef if !@sorted;    ## no critic (ProhibitExplicitReturnUndef) one value, in lists too
    return ( $sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ] ) / 2;
}

# Round by round, so that a change of the weather is in both; empty when one of them was not measured
sub ratios {
    my ( $mine, $other ) = @_;
    return if !$mine || !$other;
    my $last = min( scalar @$mine, scalar @$other ) - 1;
    return map { $mine->[$_] / $other->[$_] } grep { $other->[$_] } 0 .. $last;
}

# The least and the most
sub spread {
    my ( $format, @values ) = @_;
    return '' if !@values;
    return sprintf "$format-$format", min(@values), max(@values);
}

1;
