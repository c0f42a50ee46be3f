package Sirius::Edge::Place;

use strict;
use warnings;

use Scalar::Util qw(weaken);
use Sirius::Base::Backoff;
use Sirius::Base::Clock qw(now);
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::Child;
use Sirius::OS::Inherit;

# The signals of an edge by number (src/edge/edge.h)
my %NUMBER = $^O ne 'darwin' ? ( INT => 41, TERM => 40, USR1 => 42 ) : ( INT => 26, TERM => 7, USR1 => 27 );

my @HANDLES = qw(bell line line_end lobby);
my @PLAIN   = qw(heir number ready role setup);

sub backoff { return shift->{backoff} }

sub be {
    my ( $self, $role, $setup, $program ) = @_;
    $self->{role}    = $role;
    $self->{setup}   = $setup   if $setup;
    $self->{program} = $program if $program;
    return;
}

sub bell  { return shift->{bell} }
sub child { return shift->{child} }

sub descriptors {
    my $self = shift;
    return @{$self}{@HANDLES}, $self->{program} ? $self->{program}->descriptors : ();
}

# The process has ended; returns what it was
sub ended {
    my $self = shift;
    my %had  = map { $_ => $self->{$_} } qw(heir program ready role setup);
    delete @{$self}{qw(child heir program ready)};
    @{$self}{qw(role setup)} = ( '', [] );
    return %had;
}

sub got_ready {
    my $self = shift;
    $self->{ready} = 1;
    return $self->{backoff}->ready;
}

sub heir { return shift->{heir} }

sub heir_is {
    my ( $self, $number ) = @_;
    $self->{heir} = $number;
    return;
}

sub is_ready { return shift->{ready} }

sub late_at {
    my ( $self, $at ) = @_;
    weaken( my $own = $self );
    my $late = sub {
        my $child = shift;
        Sirius::Log->warn(
                  "$own->{said}edge "
                . $child->pid
                . (
                $own->{role} eq 'heir' || !$own->{ready} ? ' was not ready in time' : ' did not stop in time'
                )
                . ' and was killed'
        );
        $child->signal('KILL');
    };
    return $self->{child}->limit( late => $at, $late );
}

sub new {
    my ( $class, $number, $conf, $said ) = @_;
    my ( $ours, $theirs ) = Sirius::Edge::Shared->line;
    my %number = (
        bell     => Sirius::Edge::Shared->bell,
        line     => $ours,
        line_end => $theirs,
        lobby    => Sirius::Edge::Shared->lobby
    );
    return $class->_with( \%number, $conf, number => $number, role => '', said => $said, setup => [] );
}

sub no_heir {
    my $self = shift;
    delete $self->{heir};
    return;
}

sub not_late {
    my $self = shift;
    return $self->{child} && $self->{child}->unlimited('late');
}

sub number { return shift->{number} }

# False: the edge does not read
sub pass {
    my ( $self, $what, $fd ) = @_;
    return Sirius::Edge::Shared->pass( fileno $self->{line}, $what, $fd );
}

sub pid {
    my $self = shift;
    return $self->{child} && $self->{child}->pid;
}

sub program { return shift->{program} }

sub restore {
    my ( $class, $state, $conf, $said, $program ) = @_;
    my $self = $class->_with(
        $state, $conf,
        program => $program,
        said    => $said,
        setup   => $state->{settings},    # of a version that called it so
        map { $_ => $state->{$_} } grep { defined $state->{$_} } @PLAIN
    );
    $self->runs( $state->{pid}, ready => $state->{ready}, since => $state->{since} ) if $state->{pid};
    $self->late_at( $state->{late} ) if $state->{pid} && defined $state->{late};
    return $self;
}

# The next process takes the role of one that has ended
sub resume {
    my ( $self, %had ) = @_;
    @{$self}{qw(heir program role setup)} = @had{qw(heir program role setup)};
    return;
}

sub role { return shift->{role} }

# Takes a process that was started elsewhere
sub runs {
    my ( $self, $pid, %how ) = @_;
    $self->{child} = Sirius::OS::Child->new( $pid, map { $_ => $how{$_} } grep { defined $how{$_} } 'since' );
    $self->{ready} = $how{ready};
    return;
}

sub setup { return shift->{setup} }

sub signal {
    my ( $self, $signal ) = @_;
    $self->{child}->signal( $NUMBER{$signal} ) if $self->{child};
    return;
}

# Starts a process. Undef, or why there is none. Not by fork: while this process holds the application, that
# takes a tenth of a second for each half a gigabyte, and nobody accepts meanwhile
sub start {
    my ( $self, %start ) = @_;
    my $child = eval { Sirius::OS::Child->spawn( $self->{program}->file, @start{qw(words descriptors)} ) }
        or return $@ =~ s/\s+\z//r;
    $self->{child} = $child;
    delete $self->{ready};
    $self->late_at( now() + $start{limit} ) if $start{limit};
    return;
}

sub state {
    my $self = shift;
    return {
        ( map { $_ => $self->{$_} } grep { defined $self->{$_} } @PLAIN ),
        ( map { $_ => fileno $self->{$_} } @HANDLES ),
        program  => $self->{program} && $self->{program}->state,
        pid      => $self->pid,
        late     => $self->{child} && $self->{child}->limited('late'),
        settings => $self->{setup},                                      # for a version that calls it so
        since    => $self->{child} && $self->{child}->since,
    };
}

sub stop {
    my ( $self, $signal, $seconds ) = @_;
    return if !$self->{child};
    $self->late_at( now() + $seconds );
    return $self->signal($signal);
}

# The handles that the process gets
sub theirs { return @{ +shift }{qw(line_end lobby)} }

sub words {
    my $self = shift;
    return ( lobby => fileno $self->{lobby}, supervisor => fileno $self->{line_end} );
}

sub _with {
    my ( $class, $numbers, $conf, %self ) = @_;
    return bless {
        ( map { $_ => Sirius::OS::Inherit->take_handle( $numbers->{$_} ) } @HANDLES ),
        backoff => Sirius::Base::Backoff->new( interval => $conf->{err_respawn_interval} ),
        owner   => $$,
        %self,
    }, $class;
}

# Where a lobby is a file. The program that follows in this process has the same place
sub DESTROY {
    my $self = shift;
    local ( $!, $?, $@ );
    Sirius::Edge::Shared->remove_lobby( fileno $self->{lobby} )
        if $self->{owner} == $$ && $self->{lobby} && defined fileno $self->{lobby};
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Place - a place for an edge process, which outlives the process

=head1 SYNOPSIS

  my $place = Sirius::Edge::Place->new( $number, $conf, $said );
  $place->be( serves => [ Sirius::Edge::Setup->of($conf) ] );
  my $error = $place->start( path => $path, program => $identity, words => \@words, descriptors => \@numbers );

=head1 DESCRIPTION

A place outlives the process that occupies it. It has the lobby to which workers connect, the line on which the
supervisor speaks to the process, the bell by which other edges wake it, and the number by which workers find it and
the scoreboard counts. L<Sirius::Edge::Group> has two places for each edge and decides which of them are occupied.
C<role> is C<serves>; C<heir> while the process starts in order to take over from another; C<retires> when another has
taken over and this one finishes its requests; or empty when the place is free.

=head1 METHODS

=head2 backoff

Its L<Sirius::Base::Backoff>: when a process may be started here again.

=head2 be

  $place->be('retires');
  $place->be( heir => \@setup );

Gives it a role, and settings for its process.

=head2 bell

The handle by which other edges wake the process.

=head2 child

The L<Sirius::OS::Child> that has the place.

=head2 descriptors

The handles that the next program needs.

=head2 ended

  my %had = $place->ended;

The process is gone, and nobody has the place any more; what it was.

=head2 got_ready

Call it when the process is ready.

=head2 heir, heir_is, no_heir

The number of the place that is to take over from this one.

=head2 is_ready

True if the process is ready.

=head2 late_at, not_late

  $place->late_at($time);

The process is killed then, if it has not got ready, or ended.

=head2 new

  my $place = Sirius::Edge::Place->new( $number, $conf, $said );

C<$said>: how its lines in the log begin.

=head2 number

Its number, by which workers find it.

=head2 pass

  $place->pass( log => $fd ) or ...;

Passes a descriptor to the process. C<log>: write the access log to it. C<retire>: pass the connections on to this end
of a pair. C<legacy>: take connections from this end of a pair. C<publish>: this file is an item. C<channels>: write to it which channels there are. False if the process does not read.

=head2 pid

The PID of the process, or undef.

=head2 program

Which program runs there: see L</start>.

=head2 restore

  my $place = Sirius::Edge::Place->restore( $state, $conf, $said );

In the next program, from what L</state> has returned.

=head2 resume

  $place->resume(%had);

Another process is to have the place, with the same role and settings.

=head2 role

What the process is there for: see L</DESCRIPTION>.

=head2 runs

  $place->runs($pid);

A process has it that somebody else has started.

=head2 setup

The settings of the process: words for its command line.

=head2 signal

  $place->signal('TERM');

=head2 start

  my $error = $place->start(
      descriptors => \@numbers,
      limit       => 30,
      path        => $path,
      program     => $identity,
      words       => \@words
  );

Starts the program at C<path> with these words, in a child of this process; it is killed if it has C<limit> and is not ready by then.
Returns why that is not possible, or nothing.

=head2 state

What the next program needs to continue with the same place, as text.

=head2 stop

  $place->stop( TERM => $seconds );

Tells the process to end; it is killed if it has not ended by then.

=head2 theirs

The handles that the process has to have.

=head2 words

The descriptors of this place, by their names on the command line.

=head1 SEE ALSO

L<Sirius::Edge::Group>.

=cut
