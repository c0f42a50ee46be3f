package Sirius::Edge::Programs;

use strict;
use warnings;

use Sirius::Edge::Program;

# A build does not work if so many edges in a row crash within so many seconds of their start
use constant { CRASHES => 3, YOUNG => 10 };

sub before { return shift->{before} }

# One that was killed from outside does not count
sub crashes {
    my ( $self, $status, $age ) = @_;
    return '' if ( $status & 127 ) == 9;
    $self->{crashes} = $age < YOUNG ? ( $self->{crashes} || 0 ) + 1 : 0;
    return $self->{crashes} < CRASHES ? '' : "$self->{crashes} in a row ended within " . YOUNG . ' s';
}

sub current { return shift->{current} ||= Sirius::Edge::Program->keep }

sub install {
    my $self      = shift;
    my $installed = Sirius::Edge::Program->keep or return 0;
    $self->{current} = $installed if !$self->{current} || $self->{current}->build ne $installed->build;
    return 1;
}

sub new {
    my ( $class, %args ) = @_;
    return bless {%args}, $class;
}

sub other {
    my ( $self, $program, @also ) = @_;
    my $build   = $program ? $program->build : '';
    my ($other) = grep { $_ && $_->build ne $build } $self->{fallback} && $self->{fallback}->(), @also;
    return $other;
}

sub replaced {
    my ( $self, $before, $program ) = @_;
    return if !$before || $before->build eq $program->build;
    $self->{before} = $before;
    delete $self->{crashes};
    return;
}

sub switch {
    my ( $self, $from, $to ) = @_;
    $self->{before}  = $from if $from;
    $self->{current} = $to;
    delete $self->{crashes};
    return;
}

sub undo {
    my ( $self, $program ) = @_;
    $self->{current} = $program;
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Programs - which build of sirius-edge the edges of a group run

=head1 SYNOPSIS

  my $programs = Sirius::Edge::Programs->new( fallback => sub { ... } );
  my $program  = $programs->current;
  if ( my $other = $programs->other( $program, $programs->before ) ) { $programs->switch( $program, $other ) }

=head1 DESCRIPTION

Edges run the program that was installed at the start or at the last reload. If it cannot start or crashes, they run another build:
that of another group, or the one before.

=head1 METHODS

=head2 before

The L<Sirius::Edge::Program> that the last change has replaced, or undef.

=head2 crashes

  my $why = $programs->crashes( $status, $age );

An edge that was ready has ended. Not empty, a text for the log: edges of this build have crashed soon after their start, several
in a row.

=head2 current

The program with which edges start, or undef if none is installed.

=head2 install

A reload: changes to the installed program. False if there is none.

=head2 new

  my $programs = Sirius::Edge::Programs->new( current => $program, before => $before, fallback => $code );

All are optional. C<fallback> returns the program of another group.

=head2 other

  my $other = $programs->other( $program, @also );

A build other than this one: the fallback, or the first of those named; undef if there is none.

=head2 replaced

  $programs->replaced( $before, $program );

An edge of this program has taken over from one of that.

=head2 switch

  $programs->switch( $from, $to );

Edges start with this program instead of that.

=head2 undo

  $programs->undo($program);

The reload has failed: edges start with this program again.

=head1 SEE ALSO

L<Sirius::Edge::Group>, L<Sirius::Edge::Program>.

=cut
