package Sirius::Edge::Place;

use strict;
use warnings;

use Sirius::Base::Backoff;
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::Inherit;
use Sirius::OS::Linux;
use Sirius::OS::Title;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

# What it hears by which number (src/edge/edge.h)
my %NUMBER = ( INT => 41, TERM => 40, USR1 => 42 );

my @HANDLES = qw(bell line line_end lobby);
my @PLAIN   = qw(heir kill_at number pid program ready role settings since);

sub descriptors {
    my $self = shift;
    return @{$self}{@HANDLES};
}

# The process is gone, and nobody has the place any more
sub ended {
    my $self = shift;
    delete @{$self}{qw(heir kill_at pid program ready since)};
    @{$self}{qw(role settings)} = ( '', [] );
    return;
}

sub look {
    my ( $self, $edge ) = @_;
    return if !$self->{pid} || !$self->{kill_at} || $self->{kill_at} > _now();
    delete $self->{kill_at};
    Sirius::Log->warn( "$edge->{said}edge $self->{pid} "
            . ( $self->{role} eq 'heir' ? 'was not ready in time' : 'did not stop in time' )
            . ' and was killed' );
    kill KILL => $self->{pid};
    return;
}

sub new {
    my ( $class, $number, $conf ) = @_;
    my ( $ours, $theirs ) = Sirius::Edge::Shared->line;
    my %number = (
        bell     => Sirius::Edge::Shared->bell,
        line     => $ours,
        line_end => $theirs,
        lobby    => Sirius::Edge::Shared->lobby
    );
    return bless {
        ( map { $_ => Sirius::OS::Inherit->take_handle( $number{$_} ) } @HANDLES ),
        backoff  => Sirius::Base::Backoff->new($conf),
        number   => $number,
        role     => '',
        settings => [],
    }, $class;
}

# False: it does not read
sub pass {
    my ( $self, $what, $fd ) = @_;
    return Sirius::Edge::Shared->pass( fileno $self->{line}, $what, $fd );
}

sub restore {
    my ( $class, $state, $conf ) = @_;
    return bless {
        ( map { $_ => $state->{$_} } grep { defined $state->{$_} } @PLAIN ),
        ( map { $_ => Sirius::OS::Inherit->take_handle( $state->{$_} ) } @HANDLES ),
        backoff => Sirius::Base::Backoff->new($conf),
    }, $class;
}

sub signal {
    my ( $self, $signal ) = @_;
    kill $NUMBER{$signal} => $self->{pid} if $self->{pid};
    return;
}

# Undef, or why there is no process. Not by fork: as long as this process has the application in it, that takes a tenth of a
# second for each half a gigabyte, and nobody accepts meanwhile
sub start {
    my ( $self, $edge, %start ) = @_;
    my $supervisor = $edge->{supervisor};
    my $conf       = $supervisor->{conf};
    my $title      = $conf->{proctitle} ? Sirius::OS::Title->words( $conf, $edge->{role} ) : 'sirius-edge';
    my @handles = ( @{$edge}{qw(alive common report sleepers)}, @{$self}{qw(line_end lobby)}, $edge->bells );
    push @handles, grep {defined} map { $_->fh } grep {defined} $edge->{access_log};
    my @descriptors
        = ( ( map { fileno $_ } @handles ), $edge->_board, map { $_->fd } @{ $edge->{listeners} } );
    my $pid
        = eval { Sirius::OS::Linux->spawn( $start{path}, [ $title, @{ $start{words} } ], \@descriptors ) };
    return $@ =~ s/\s+\z//r if !$pid;
    @{$self}{qw(pid program since)} = ( $pid, $start{program}, _now() );
    $self->{kill_at} = _now() + $start{limit} if $start{limit};
    return;
}

sub state {
    my $self = shift;
    return {
        ( map { $_ => $self->{$_} } grep { defined $self->{$_} } @PLAIN ),
        ( map { $_ => fileno $self->{$_} } @HANDLES ),
    };
}

sub stop {
    my ( $self, $signal, $seconds ) = @_;
    return if !$self->{pid};
    my $kill_at = _now() + $seconds;
    $self->{kill_at} = $kill_at if !$self->{kill_at} || $kill_at < $self->{kill_at};
    return $self->signal($signal);
}

sub words {
    my $self = shift;
    return ( lobby => fileno $self->{lobby}, supervisor => fileno $self->{line_end} );
}

sub _now { return clock_gettime(CLOCK_MONOTONIC) }

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Place - a place for an edge process, which outlives the process

=head1 SYNOPSIS

  my $place = Sirius::Edge::Place->new( $number, $conf );
  $place->{settings} = [ Sirius::Edge::Group->settings($conf) ];
  my $error = $place->start( $edge, path => $path, program => $identity, words => \@words );

=head1 DESCRIPTION

A place outlives the process that occupies it. It has the lobby to which workers connect, the line on which the
supervisor speaks to the process, the bell by which other edges wake it, and the number by which workers find it and
the scoreboard counts. L<Sirius::Edge::Group> has two places for each edge and decides which of them are occupied.
C<role> is C<serves>; C<heir> while the process starts in order to take over from another; C<retires> when another has
taken over and this one finishes its requests; or empty when the place is free.

=head1 METHODS

=head2 descriptors

The handles that the next program needs.

=head2 ended

Call it when the process has ended.

=head2 look

Kills the process if it has not ended, or is not ready, in time.

=head2 new

  my $place = Sirius::Edge::Place->new( $number, $conf );

=head2 pass

  $place->pass( log => $fd ) or ...;

Passes a descriptor to the process. C<log>: write the access log to it. C<retire>: pass the connections on to this end
of a pair. C<legacy>: take connections from this end of a pair. False if the process does not read.

=head2 restore

  my $place = Sirius::Edge::Place->restore( $state, $conf );

In the next program, from what L</state> has returned.

=head2 signal

  $place->signal('TERM');

=head2 start

  my $error = $place->start( $edge, limit => 30, path => $path, program => $identity, words => \@words );

Starts the program at C<path> with these words, in a child of this process; it is killed if it has C<limit> and is not ready by then.
Returns why that is not possible, or nothing.

=head2 state

What the next program needs to continue with the same place, as text.

=head2 stop

  $place->stop( TERM => $seconds );

Tells the process to end; it is killed if it has not ended by then.

=head2 words

The descriptors of this place, by their names on the command line.

=head1 SEE ALSO

L<Sirius::Edge::Group>.

=cut
