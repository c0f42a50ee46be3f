package Sirius::Profile::Table;

use strict;
use warnings;

use List::Util qw(sum);
use Sirius::Base::Text;
use Sirius::Profile::Functions;
use Sirius::Profile::Label;

use constant { FUNCTIONS => 20, LINES => 15, REQUESTS => 10 };

sub text {
    my ( $class, $samples, %options ) = @_;
    my ( $all, %requests ) = ( [ 0, 0 ] );
    $samples->each_stack( sub {
        my ( $frames, @counts ) = @_;
        for my $sum ( $all, $requests{ $frames->[0] } ||= [ 0, 0 ] ) {
            $sum->[$_] += $counts[$_] for 0, 1;
        }
    } );
    return ( $options{none} // 'no samples' ) . "\n" if !sum 0, @$all;
    my $functions = Sirius::Profile::Functions->of($samples);
    my $lines     = Sirius::Profile::Functions->of( $samples, lines => 1 );
    my ( $self, $total ) = map {
        my $from = $_;
        sub {
            return { map { my $of = $_[0]{$_}; ( $_ => [ @{$of}[ $from, $from + 1 ] ] ) } keys %{ $_[0] } };
        }
    } 0, 2;
    my $count = sum 0, @$all;
    return join "\n", _summary( $samples, @$all ),
        _table( $count, 'request',                               REQUESTS,  \%requests, sub {shift} ),
        _table( $count, 'function, without those that it calls', FUNCTIONS, $self->($functions) ),
        _table( $count, 'function, with those that it calls',    FUNCTIONS, $total->($functions) ),
        _table( $count, 'line, without subs that it calls',      LINES,     $self->($lines) );
}

# Those with the highest figures, equal ones by name
sub _most {
    my ( $most, $figure, @names ) = @_;
    my %of = map { $_ => $figure->($_) } @names;
    @names = sort { $of{$b} <=> $of{$a} || $a cmp $b } @names;
    return @names > $most ? @names[ 0 .. $most - 1 ] : @names;
}

sub _summary {
    my ( $samples, $cpu, $wait ) = @_;
    my $all     = $cpu + $wait;
    my $seconds = $samples->seconds;
    my $text    = "$all samples" . ( defined $seconds ? ' in ' . Sirius::Base::Text->age($seconds) : '' );
    $text .= sprintf ': %.0f %% on CPU, %.0f %% waiting', 100 * $cpu / $all, 100 * $wait / $all;
    $text .= '; ' . $samples->cut . ' moved too fast to be read as a whole' if $samples->cut;
    $text .= '; ' . $samples->failed . ' could not be read'                 if $samples->failed;
    $text .= '; ' . $samples->left_out . ' are in (other), as there were too many different stacks'
        if $samples->left_out;
    return "$text\n";
}

# Of hashes by name, with the samples on CPU and waiting
sub _table {
    my ( $all, $of, $most, $counts, $show ) = @_;
    $show //= sub { Sirius::Profile::Label->shown(shift) };
    my @names = _most( $most, sub { return sum 0, @{ $counts->{ $_[0] } } }, keys %$counts );
    return join '', "  all % = on CPU + waiting   $of\n", map {
        sprintf "  %5.1f    %5.1f     %5.1f   %s\n",
            ( map { 100 * $_ / $all } sum( 0, @{ $counts->{$_} } ), @{ $counts->{$_} } ),
            $show->($_)
    } grep { sum 0, @{ $counts->{$_} } } @names;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Table - a profile as tables of text

=head1 SYNOPSIS

  use Sirius::Profile::Table;

  print Sirius::Profile::Table->text($samples);

=head1 METHODS

=head2 text

  my $text = Sirius::Profile::Table->text( $samples, none => 'no samples: no request was running' );

A summary; then the requests, functions and lines with the most samples, as shares of all: on CPU and waiting. If there are no samples, C<none>.

=head1 SEE ALSO

L<Sirius::Profile::Samples>, L<Sirius::Profile::Functions>.

=cut
