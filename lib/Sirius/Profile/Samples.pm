package Sirius::Profile::Samples;

use strict;
use warnings;

use constant EACH => 256;    # bytes that perl needs for a stack beside its labels

my $WAITING = '[waiting]';

sub add {
    my ( $self, $frames, $kind, $times ) = @_;
    my $stack = join( ';', map {tr/;\n/, /r} @$frames ) =~ s/\A#/\\x23/r;  # a method may begin like a comment
    if ( $self->{memory} && !$self->{counts}{$stack} ) {
        my $used = $self->{used} + EACH + length $stack;
        if ( $used <= $self->{memory} ) { $self->{used} = $used }
        else { ( $stack, $self->{left_out} ) = ( '(other)', $self->{left_out} + ( $times // 1 ) ) }
    }
    my $counts = $self->{counts}{$stack} ||= [ 0, 0 ];
    $counts->[ $kind eq 'wait' ? 1 : 0 ] += $times // 1;
    return;
}

sub count {
    my ( $self, $what ) = @_;
    $self->{$what}++;
    return;
}

sub cut { return shift->{cut} }

# A list of all would be many times as large as what they are kept in
sub each_stack {
    my ( $self, $code ) = @_;
    for my $stack ( sort keys %{ $self->{counts} } ) {
        $code->( [ split /;/, $stack ], @{ $self->{counts}{$stack} } );
    }
    return;
}

sub failed { return shift->{failed} }

sub folded {
    my $self = shift;
    my @lines;
    for my $stack ( sort keys %{ $self->{counts} } ) {
        my ( $cpu, $wait ) = @{ $self->{counts}{$stack} };
        push @lines, "$stack $cpu\n"           if $cpu;
        push @lines, "$stack;$WAITING $wait\n" if $wait;
    }
    return join '', @lines;
}

sub from_folded {
    my ( $class, $text ) = @_;
    my $self = $class->new;
    my $at   = 0;
    for my $line ( split /\n/, $text ) {
        $at++;
        next if $line =~ /\A\s*(?:#|\z)/;
        my ( $stack, $times ) = $line =~ /\A(\S.*?)\s+([0-9]{1,15})\s*\z/
            or die "line $at is not a stack with a count: " . substr( $line, 0, 60 ) . "\n";
        my @frames = split /;/, $stack;
        my $waits  = @frames && $frames[-1] eq $WAITING ? pop @frames : undef;
        $self->add( \@frames, defined $waits ? 'wait' : 'cpu', $times );
        $self->{taken} += $times;
    }
    return $self;
}

sub hz { return shift->{hz} }

sub left_out { return shift->{left_out} }

sub new {
    my ( $class, %facts ) = @_;
    my %none = ( cut => 0, failed => 0, hz => undef, left_out => 0, seconds => undef, taken => 0, used => 0 );
    return bless { %none, %facts, counts => {} }, $class;
}

sub seconds { return shift->{seconds} }

sub set {
    my ( $self, %facts ) = @_;
    @{$self}{ keys %facts } = values %facts;
    return;
}

sub stacks {
    my $self = shift;
    my @stacks;
    $self->each_stack( sub { push @stacks, [@_] } );
    return @stacks;
}

sub taken { return shift->{taken} }

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Samples - a profile in memory: stacks, and how often each was seen

=head1 SYNOPSIS

  use Sirius::Profile::Samples;

  my $samples = Sirius::Profile::Samples->new( seconds => 10, hz => 99, taken => 2, cut => 0, failed => 0 );
  $samples->add( [ 'GET /report', 'Shop::report lib/Shop.pm:12', 'Shop::sum lib/Shop.pm:30' ], 'cpu' );
  $samples->add( [ 'GET /report', 'Shop::report lib/Shop.pm:14', 'DBI::st::execute (XS)' ],    'wait' );
  print $samples->folded;

=head1 DESCRIPTION

A stack is a list of labels, outermost first (L<Sirius::CLI::Profile>). All are bytes, in which everything but printable ASCII is C<\xNN>, in the name of a
sub also a space. A semicolon in them becomes a comma, and a C<#> with which a stack begins C<\x23>.

A stack that waits (for a socket, a lock, a child, a timer ...) is counted apart from one that is on CPU or wants to be.

=head1 METHODS

=head2 add

  $samples->add( \@frames, $kind );
  $samples->add( \@frames, $kind, $times );

Counts a stack. C<$kind> is C<cpu> or C<wait>. It does not change L</taken>.

=head2 count

  $samples->count('taken');

Adds one to L</taken>, L</cut> or L</failed>.

=head2 cut

How many samples have L<frames that were not read|/DESCRIPTION>.

=head2 each_stack

  $samples->each_stack( sub { my ( $frames, $cpu, $wait ) = @_ } );

As L</stacks>, one after the other.

=head2 failed

How many samples were not taken although their process was there.

=head2 folded

  my $text = $samples->folded;

One line for each stack, in a fixed order: its labels with C<;> between them, a space, and the count. The last label of one that waits
is C<[waiting]>. It is the format of F<stackcollapse-*.pl> and F<flamegraph.pl>.

=head2 from_folded

  my $samples = Sirius::Profile::Samples->from_folded($text);

The other way round. Dies with C<line N is not a stack with a count>. L</seconds> and L</hz> are undefined.

=head2 hz

How many samples were to be taken of each process in a second.

=head2 left_out

How many samples are under C<(other)>, for lack of memory.

=head2 new

  my $samples = Sirius::Profile::Samples->new( seconds => 10, hz => 99, taken => 990, cut => 3, failed => 0 );
  my $samples = Sirius::Profile::Samples->new( memory => 2_000_000 );

With C<memory>, stacks that have not been seen before are counted as C<(other)> when those before need that many bytes.

=head2 seconds

How long they were taken.

=head2 set

  $samples->set( seconds => 9.8 );

Sets what L</new> takes.

=head2 stacks

  for my $stack ( $samples->stacks ) {
      my ( $frames, $cpu, $wait ) = @$stack;
  }

All of them, in a fixed order, with how often each was on CPU, and was waiting.

=head2 taken

The number of samples.

=head1 SEE ALSO

L<Sirius::OS::Sampler>.

=cut
