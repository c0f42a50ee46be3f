package Sirius::Profile::Tree;

use strict;
use warnings;

use Sirius::Profile::Label;

use constant {
    LEAST => 0.001,       # share of the samples that a call needs for a node of its own
    MOST  => 20_000,      # nodes
    OTHER => '(other)',
};

# Fields of a row, which is a node; the four counts are of the samples that end there, in the profile and in
# the older one
use constant { DEPTH => 1, COUNTS => 2 };

sub kind {
    my ( $self, $name ) = @_;
    return $self->{names}{$name}[1];
}

sub least { return shift->{least} }

sub new {
    my ( $class, $samples, $older ) = @_;
    my $self   = bless { known => {}, least => LEAST / 2, names => {}, requests => {} }, $class;
    my @stacks = ( $self->_stacks( $samples, 0 ), $older ? $self->_stacks( $older, 2 ) : () );
    do {
        $self->{least} *= 2;
        $self->_grow(@stacks);
    } while @{ $self->{rows} } > MOST;
    delete @$self{qw(known requests)};
    return $self;
}

# How many stacks are not there as they are, and how many of the samples
sub other { return @{ shift->{other} } }

sub rows { return @{ shift->{rows} } }

# The same for all lines of a function, so that its kind is the same everywhere
sub _frame {
    my ( $self, $label ) = @_;
    my ($name) = Sirius::Profile::Label->parts($label);
    return $self->{names}{$name} ||= [ $name, Sirius::Profile::Label->kind($label) ];
}

sub _grow {
    my ( $self, @stacks ) = @_;
    my @all     = @{ _sum(@stacks) };
    my @pending = [ [ 'all', 0, 0, 0, 0, 0, 'all' ], @stacks ];
    @$self{qw(other rows)} = ( [ 0, 0 ], [] );
    while ( my $node = pop @pending ) {
        my ( $row, @through ) = @$node;
        push @{ $self->{rows} }, $row;
        return if @{ $self->{rows} } > MOST;
        my ( %calls, @small );
        for my $stack (@through) {
            my $frame = $stack->[0][ $row->[DEPTH] ];
            if ($frame) { push @{ $calls{ $frame->[0] } }, $stack }
            else        { $row->[ COUNTS + $_ ] += $stack->[ 1 + $_ ] for 0 .. 3 }
        }
        for my $name ( sort { $b cmp $a } keys %calls ) {
            my @called = @{ $calls{$name} };
            if ( $self->_is_small( _sum(@called), \@all ) ) { push @small, @called; next }
            my $kind = $called[0][0][ $row->[DEPTH] ][1];
            push @pending, [ [ $name, $row->[DEPTH] + 1, 0, 0, 0, 0, $kind ], @called ];
        }
        $self->_put_others( $row->[DEPTH] + 1, @small ) if @small;
    }
    return;
}

sub _is_small {
    my ( $self, $counts, $all ) = @_;
    for my $i ( 0, 2 ) {
        my ( $part, $whole ) = map { $_->[$i] + $_->[ $i + 1 ] } $counts, $all;
        return 0 if $part && $part >= $self->{least} * $whole;
    }
    return 1;
}

sub _put_others {
    my ( $self, $depth, @stacks ) = @_;
    my $counts = _sum(@stacks);
    push @{ $self->{rows} }, [ OTHER, $depth, @$counts, 'other' ];
    $self->{other}[0] += @stacks;
    $self->{other}[1] += $counts->[0] + $counts->[1];
    return;
}

# Lists of frames, which are pairs of a name and its kind, each with four counts: two are of this profile,
# from index $at on
sub _stacks {
    my ( $self, $samples, $at ) = @_;
    my $known = $self->{known};
    my @stacks;
    my $keep = sub {
        my ( $frames, @own ) = @_;
        my @counts = ( 0, 0, 0, 0 );
        @counts[ $at, $at + 1 ] = @own;
        my @shared = map { $known->{$_} ||= $self->_frame($_) } @$frames[ 1 .. $#$frames ];
        unshift @shared, $self->{requests}{ $frames->[0] } ||= [ $frames->[0], 'path' ] if @$frames;
        push @stacks, [ \@shared, @counts ];
        return;
    };
    $samples->each_stack($keep);
    return @stacks;
}

sub _sum {
    my @stacks = @_;
    my @sum    = ( 0, 0, 0, 0 );
    for my $stack (@stacks) { $sum[$_] += $stack->[ 1 + $_ ] for 0 .. 3 }
    return \@sum;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Tree - the calls of a profile as a tree that is no larger than can be shown

=head1 SYNOPSIS

  use Sirius::Profile::Tree;

  my $tree = Sirius::Profile::Tree->new( $samples, $older );
  for ( $tree->rows ) {
      my ( $name, $depth, $cpu, $wait, $older_cpu, $older_wait, $kind ) = @$_;
  }

=head1 DESCRIPTION

Its first row is all of the profile, at depth 0; those of depth 1 are request paths, and below them functions, without their lines. A row
comes before those that it has called. Calls that have less than 0.1 % of the samples in each of the two profiles are one row named
C<(other)>, beside their siblings. If there were more than 20,000 rows, the limit is 0.2 %, or 0.4 %, and so on.

=head1 METHODS

=head2 kind

  my $kind = $tree->kind('Shop::list');

The kind of a function, also of one that is in C<(other)>.

=head2 least

  my $share = $tree->least;

The share of the samples below which a call is in C<(other)>.

=head2 new

  my $tree = Sirius::Profile::Tree->new($samples);
  my $tree = Sirius::Profile::Tree->new( $samples, $older );

From one L<Sirius::Profile::Samples>, or from two.

=head2 other

  my ( $stacks, $samples ) = $tree->other;

How many stacks are in C<(other)> with their innermost frames, and how many samples of the profile they have.

=head2 rows

  my @rows = $tree->rows;

Each is an array: name, depth, samples that end there (on CPU and waiting, then those of the older profile), and the kind of
L<Sirius::Profile::Label>, or C<all>, C<path> and C<other>.

=head1 SEE ALSO

L<Sirius::Profile::FlameGraph>.

=cut
