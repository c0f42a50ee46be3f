package Sirius::Profile::Functions;

use strict;
use warnings;

use Sirius::Profile::Label;

sub of {
    my ( $class, $samples, %option ) = @_;
    my ( %counts, %name );
    my $count = sub {
        my ( $frames, $cpu, $wait ) = @_;
        my @names
            = grep {length} map { $name{$_} //= _name( $_, $option{lines} ) } @$frames[ 1 .. $#$frames ];
        return if !@names;
        my $self = $counts{ $names[-1] } ||= [ 0, 0, 0, 0 ];
        $self->[0] += $cpu;
        $self->[1] += $wait;
        my %once;
        @once{@names} = ();

        for my $name ( keys %once ) {
            my $total = $counts{$name} ||= [ 0, 0, 0, 0 ];
            $total->[2] += $cpu;
            $total->[3] += $wait;
        }
        return;
    };
    $samples->each_stack($count);
    return \%counts;
}

# Of a frame without a line, nothing if lines are wanted
sub _name {
    my ( $label, $lines ) = @_;
    my ( $name,  $file )  = Sirius::Profile::Label->parts($label);
    return $name if !$lines;
    return defined $file ? $label : '';
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Functions - how many samples each function has

=head1 SYNOPSIS

  use Sirius::Profile::Functions;

  my $counts = Sirius::Profile::Functions->of($samples);
  my ( $self_cpu, $self_wait, $cpu, $wait ) = @{ $counts->{'Shop::list'} };

=head1 METHODS

=head2 of

  my \%counts = Sirius::Profile::Functions->of( $samples, lines => 1 );

By the name of a function, or with C<lines> by the label of a frame: in how many samples it ran itself, on CPU and waiting, and in how
many it ran or was waiting for functions that it had called. A function that calls itself counts once in a sample. The request, which is the
first frame, is none. A function in C has no line: what it takes counts for the line that has called it.

=head1 SEE ALSO

L<Sirius::Profile::Samples>, L<Sirius::Profile::Compare>.

=cut
