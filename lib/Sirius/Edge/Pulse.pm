package Sirius::Edge::Pulse;

use strict;
use warnings;

use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::Proc;

# Seconds. In docs/OBSERVABILITY.md
use constant {
    LOOK  => 2,     # between two looks
    SOON  => 1,     # while one does not respond
    HANGS => 5,     # without an answer, after which an edge counts as hanging
    KILL  => 10,    # and after which it is replaced, if nothing moves in it
    SLOW  => 60,    # the same if it waits for a disk, or something moves
};

sub act {
    my $self = shift;
    my $now  = now();
    return if $self->{due} > $now;

    # What this process has not seen does not count: a machine that was suspended, or that has no CPU for us
    my $passed = $now - $self->{looked};
    $passed = 0 if $passed > 2 * $self->{every} + SOON;
    my ( $group, %runs ) = ( $self->{group} );
    for my $place ( grep { $_->pid } $group->places ) {
        $runs{ $place->pid } = 1;
        $self->_look( $place, $passed );
    }
    $self->_look_at_keeper( $group->keeper && $group->keeper->child, $passed );
    delete @{ $self->{known} }{ grep { !$runs{$_} } keys %{ $self->{known} } };
    $self->{looked} = $now;
    $self->{every}  = $self->{kept} || grep( { $_->{late} } values %{ $self->{known} } ) ? SOON : LOOK;
    $self->{due}    = $now + $self->{every};
    return;
}

sub due { return shift->{due} }

sub hangs {
    my ( $self, $pid ) = @_;
    my $known = $self->{known}{$pid};
    return $known && $known->{said} ? 1 : 0;
}

sub new {
    my ( $class, $group ) = @_;
    my $now  = now();
    my $self = bless { due => $now + LOOK, every => LOOK, group => $group, known => {}, looked => $now },
        $class;
    weaken $self->{group};
    return $self;
}

# An edge that sleeps has no reason to turn its loop: its bell is one
sub _ask {
    my ( $self, $place, $known ) = @_;
    local $!;
    @{$known}{qw(asked late still)}   = ( 1, 0, 0 );
    @{$known}{qw(state cpu switches)} = Sirius::OS::Proc->progress( $place->pid );
    $known->{cpu_asked} = $known->{cpu};
    return syswrite $place->bell, pack 'Q', 1;    # if that would block, it was rung already
}

# Whether that is no slow disk, no lack of CPU and no debugger
sub _is_hung {
    my $known = shift;
    my $state = $known->{state} // '';
    return 0                                                    if $state eq 't';
    return $known->{cpu} - ( $known->{cpu_asked} // 0 ) >= KILL if $state eq 'R';
    return 1                                                    if $known->{late} >= SLOW;
    return $state !~ /\AD?\z/ && $known->{still} >= KILL;
}

sub _judge {
    my ( $self, $place, $known, $passed ) = @_;
    my ( $state, $cpu, $switches ) = Sirius::OS::Proc->progress( $place->pid );
    my $late = $known->{late};
    return if defined $state && $state =~ /[ZX]/;
    my $moves = !defined $state || $cpu != ( $known->{cpu} // -1 ) || $switches != $known->{switches};
    $known->{still} = $moves ? 0 : $known->{still} + $passed;
    @{$known}{qw(state cpu switches)} = ( $state, $cpu, $switches );

    # One that starts may wait for keys
    return
        if $late < HANGS || $known->{killed} || !$place->is_ready && $late < SLOW && ( $state // '' ) !~ /T/i;
    my $stands = Sirius::OS::Proc->stands( $place->pid );
    if ( !$known->{said} ) {
        $known->{said} = 1;
        $self->{group}->hangs( $place, now() - $late );
        my $limit = _limit($known);
        $self->_say(
            warn => $place,
            sprintf( 'has not responded for %.0f s: %s; ', $late, $stands )
                . ( $limit ? "after $limit s it is replaced" : 'it is not replaced, as a debugger holds it' )
        );
    }
    return if !_is_hung($known);
    $known->{killed} = 1;
    $self->_say( error => $place, sprintf 'has not responded for %.0f s and is killed: %s', $late, $stands );
    return $place->child->signal('KILL');
}

# After how many seconds that state ends the edge. 0: never
sub _limit {
    my $known = shift;
    my $state = $known->{state} // '';
    return $state eq 't' ? 0 : $state =~ /\A[ST]\z/ && $known->{still} ? KILL : SLOW;
}

sub _look {
    my ( $self, $place, $passed ) = @_;
    my ( $pid, $group ) = ( $place->pid, $self->{group} );
    my $turned = Sirius::Edge::Shared->turned( $group->common, $place->number );
    my $known  = $self->{known}{$pid};
    if ( !$known || $known->{turned} != $turned ) {
        my $late = $known && $known->{said} && $known->{late};
        $self->_say( note => $place, sprintf 'responds again after %.0f s', $late ) if $late;
        $group->hangs( $place, 0 )                                                  if $late || !$known;
        $self->{known}{$pid} = { turned => $turned };
        return;
    }
    return $self->_ask( $place, $known ) if !$known->{asked} || !$passed && !$known->{late};
    $known->{late} += $passed;
    return $self->_judge( $place, $known, $passed );
}

# It passes keys to edges that start, and does little else. Its state alone tells nothing, unless it is
# stopped
sub _look_at_keeper {
    my ( $self, $child, $passed ) = @_;
    my ($state) = $child ? Sirius::OS::Proc->progress( $child->pid ) : ();
    return delete $self->{kept} if ( $state // '' ) ne 'T';
    my $kept = $self->{kept};
    return $self->{kept} = { late => 0, pid => $child->pid } if !$kept || $kept->{pid} != $child->pid;
    $kept->{late} += $passed;
    return if $kept->{late} < KILL || $kept->{killed}++;
    Sirius::Log->error( sprintf 'keeper %d has not responded for %.0f s and is killed: %s',
        $child->pid, $kept->{late}, Sirius::OS::Proc->stands( $child->pid ) );
    return $child->signal('KILL');
}

sub _say {
    my ( $self, $level, $place, $text ) = @_;
    return Sirius::Log->$level( $self->{group}->said . 'edge ' . $place->pid . " $text" );
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Pulse - finds edges that hang

=head1 SYNOPSIS

  my $pulse = Sirius::Edge::Pulse->new($group);
  $pulse->act;    # when $pulse->due has come

=head1 DESCRIPTION

An edge writes the time into shared memory each time its loop turns, which costs one store. Every two seconds the supervisor compares;
where nothing has changed, the edge may sleep, and is asked by its bell. So an idle edge wakes up once in some seconds, and a
busy one does nothing else than before.

An edge that does not respond for 5 seconds counts as hanging: C<sirius ctl status>, F</readyz>, the metrics and the page say so, and
the log says what it hangs in, as far as the kernel tells. After 10 seconds in which nothing has moved in it, or 10 seconds of CPU time
in one turn of its loop, it is killed, and another one takes its place. An edge that waits for a disk (state C<D>), or in which something
moves, has 60 seconds, and one that a debugger holds is left alone. Only the time in which the supervisor itself was running counts:
a machine that was suspended, or has no CPU to give, does not make edges hang.

Of the keeper of keys the supervisor can tell only whether it is stopped. It is replaced in the same way.

=head1 METHODS

=head2 act, due

Looks when it is time.

=head2 hangs

  my $bool = $pulse->hangs($pid);

=head2 new

  my $pulse = Sirius::Edge::Pulse->new($group);

For all edges of a L<Sirius::Edge::Group>.

=head1 SEE ALSO

L<Sirius::Edge::Group>, L<Sirius::OS::Proc>.

=cut
