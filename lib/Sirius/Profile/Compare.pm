package Sirius::Profile::Compare;

use strict;
use warnings;

use Sirius::Profile::Functions;

# Standard errors that a difference needs to be more than chance: hundreds of functions are compared at a time
use constant SURE => 3;

sub changes {
    my $self = shift;
    my ( $new, $old ) = map { _samples($_) } @$self{qw(new old)};
    my @changes;
    for my $row ( $self->rows ) {
        my ( $name, @counts ) = @$row;
        my ( $self_new, $total_new, $self_old, $total_old )
            = map { $counts[ 2 * $_ ] + $counts[ 2 * $_ + 1 ] } 0 .. 3;
        my %change = ( name => $name );
        @change{qw(self total)}         = ( _share( $self_new, $new ), _share( $total_new, $new ) );
        @change{qw(self_was total_was)} = ( _share( $self_old, $old ), _share( $total_old, $old ) );
        $change{self_sure}              = _is_sure( $self_new,  $new, $self_old,  $old );
        $change{total_sure}             = _is_sure( $total_new, $new, $total_old, $old );
        push @changes, \%change;
    }
    my %size = map {
        $_->{name} => [ map {abs} $_->{self} - $_->{self_was}, $_->{total} - $_->{total_was} ]
    } @changes;
    @changes = sort {
               $size{ $b->{name} }[0] <=> $size{ $a->{name} }[0]
            || $size{ $b->{name} }[1] <=> $size{ $a->{name} }[1]
            || $a->{name} cmp $b->{name}
    } @changes;
    return @changes;
}

sub new {
    my ( $class, $new, $old ) = @_;
    return bless { new => $new, old => $old }, $class;
}

sub rows {
    my ( $self, %option ) = @_;
    my ( $new, $old )     = map { Sirius::Profile::Functions->of( $_, %option ) } @$self{qw(new old)};
    my @none  = ( 0, 0, 0, 0 );
    my %names = ( %$new, %$old );
    return map { [ $_, @{ $new->{$_} || \@none }, @{ $old->{$_} || \@none } ] } sort keys %names;
}

# Of two shares, each with its number of samples
sub _is_sure {
    my ( $new, $of_new, $old, $of_old ) = @_;
    return 0 if !$of_new || !$of_old;
    my $both  = ( $new + $old ) / ( $of_new + $of_old );
    my $error = sqrt( $both * ( 1 - $both ) * ( 1 / $of_new + 1 / $of_old ) );
    return abs( $new / $of_new - $old / $of_old ) > SURE * $error ? 1 : 0;
}

# In all stacks
sub _samples {
    my $samples = shift;
    my $sum     = 0;
    $samples->each_stack( sub { my ( undef, $cpu, $wait ) = @_; $sum += $cpu + $wait } );
    return $sum;
}

sub _share {
    my ( $part, $all ) = @_;
    return $all ? $part / $all : 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Compare - what has grown and shrunk between two profiles

=head1 SYNOPSIS

  use Sirius::Profile::Compare;

  for ( Sirius::Profile::Compare->new( $samples, $older )->changes ) {
      printf "%+.1f %% %s\n", 100 * ( $_->{self} - $_->{self_was} ), $_->{name} if $_->{self_sure};
  }

=head1 DESCRIPTION

Two profiles seldom have the same number of samples, so shares of them are compared: 0.4 is 40 % of the samples. Both shares have the
error that their numbers of samples allow. A change is sure if it is larger than three standard errors of the difference of independent
samples: for waits that last for many samples this is too little.

=head1 METHODS

=head2 changes

  my @changes = $compare->changes;

A hash for each function: C<name>; C<self>, its share now, without what it has called, and C<self_was>; C<total> and C<total_was>, with
what it has called; C<self_sure> and C<total_sure>. The one whose C<self> has changed most comes first.

=head2 new

  my $compare = Sirius::Profile::Compare->new( $samples, $older );

=head2 rows

  my @rows = $compare->rows( lines => 1 );

Arrays of a name, the four counts of L<Sirius::Profile::Functions>, and these of the older profile.

=head1 SEE ALSO

L<Sirius::Profile::Functions>, L<Sirius::Profile::FlameGraph>.

=cut
