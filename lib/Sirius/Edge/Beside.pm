package Sirius::Edge::Beside;

use strict;
use warnings;
use parent 'Sirius::Edge::Group';

use Sirius              ();        # xs/Sirius.xs has _run
use Sirius::Base::Clock qw(now);
use Sirius::Edge::Program;
use Sirius::Log ();
use Sirius::OS::Inherit;

# Says which CRLs have expired. True: there are others
sub expiry {
    my $self = shift;
    return $self->{keeper} && $self->{keeper}->outdated;
}

# Whether the edge that was started beside this process has ended
sub gone {
    my $self = shift;
    my $fd   = $self->{pidfd};
    return 1 if !defined $fd;
    vec( my $read = '', fileno $fd, 1 ) = 1;
    return 0 < select $read, undef, undef, 0;    # not so when a signal interrupts it
}

# Whether another one could read the private keys only with rights that this process has given up
sub needs_rights {
    my $self = shift;
    my %ids  = $self->_ids;
    return $self->{keeper} && %ids;
}

sub pidfd {
    my $self = shift;
    return $self->{pidfd} && fileno $self->{pidfd};
}

# Starts the program while this process still has the rights to read the private keys. It waits for L<start>,
# as the application is not ready
sub prepare {
    my $self = shift;
    return if !$self->{keeper};
    pipe my $theirs, my $ours or Sirius::Log->fail("cannot create a pipe: $!");
    $self->_begin($theirs);
    $self->{barrier} = $ours;
    return;
}

# If it has ended, its PID may be another process's
sub signal {
    my ( $self, $signal ) = @_;
    return 0 if $self->gone;
    $_->signal($signal) for $self->places;
    return 1;
}

# Starts the edge, but not as a child, which the application's wait would find. Waits until it is ready.
# False: it ended before that, or $code has become true
sub start {
    my ( $self, $code ) = @_;
    my ($place) = $self->places;
    my $barrier = delete $self->{barrier};
    if ($barrier) {
        local $SIG{PIPE} = 'IGNORE';
        syswrite $barrier, "\n";    # if it has ended, that is seen below
    } elsif ( !$self->_begin ) {
        return 0;
    }
    while ( !$place->is_ready && !$self->gone && !$code->() ) {
        my $read = '';
        vec( $read, fileno $_, 1 ) = 1 for @{$self}{qw(news pidfd)};
        select $read, undef, undef, undef;
        $self->hear;
    }
    $self->hear;
    return $place->is_ready;
}

# At the end of this process: lets the edge send what was answered, and closes the addresses
sub stop_and_wait {
    my $self = shift;
    return if ( $self->{owner} || 0 ) != $$ || $self->gone;
    local ( $!, $@ );
    $self->signal('INT');
    my $end = now() + $self->LATE;
    while ( !$self->gone && now() < $end ) {
        vec( my $read = '', fileno $self->{pidfd}, 1 ) = 1;
        select $read, undef, undef, $end - now();
    }
    kill KILL => $self->pid if !$self->gone;
    delete $self->{owner};
    return;
}

# False if there is no process
sub _begin {
    my ( $self, $barrier ) = @_;
    my ($place) = $self->places;
    my @words = ( $self->_words($place), "owner=$$" );
    if ( my $keeper = $self->{keeper} ) {    # the edge reads the files: this process runs the application
        push @words, @{ $keeper->wanted_words };
        $keeper->read_beside;
    }
    push @words, 'barrier=' . fileno $barrier if $barrier;
    my @handles
        = ( @{$self}{qw(lifeline common report sleepers)}, $barrier, $place->theirs, $self->bells );
    my @open = ( $self->_board, map { fileno $_ } grep {defined} @handles );
    push @open, grep {defined} map { $_->fd } @{ $self->{listeners} }, grep {defined} $self->{access_log};
    $self->_part($place) if $place->pid;
    delete $self->{pidfd};
    my ( $pid, $pidfd ) = eval { Sirius::Edge::Beside->_run( Sirius::Edge::Program->path, \@words, \@open ) };

    if ( !defined $pid ) {
        die $@ if !$self->is_announced;    ## no critic (RequireCarping)
        Sirius::Log->error( 'cannot start the edge: ' . $@ =~ s/(?: at \S+ line \d+\.)?\s+\z//r );
        return 0;
    }
    $place->runs($pid);
    @{$self}{qw(owner pidfd)} = ( $$, Sirius::OS::Inherit->take_handle($pidfd) );

    return 1;
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Beside - the edge of a process that serves alone

=head1 SYNOPSIS

  my $edge = Sirius::Edge::Beside->new( 1, conf => $conf, ... );
  $edge->start( sub { $stopped } ) or ...;
  $edge->stop_and_wait;

=head1 DESCRIPTION

With C<--workers 0> the edge must not be a child: the application would find it in its C<wait>. So it is the child of nobody, ends
with the process that has started it, and that process sees its end by a descriptor. All else is as in L<Sirius::Edge::Group>.

=head1 METHODS

The methods of L<Sirius::Edge::Group>, and:

=head2 expiry

  my $others = $edge->expiry;

Writes a line about each CRL that has expired since the last call. True: there are others, which have not expired yet.

=head2 gone

True if the edge has ended, or there was none.

=head2 needs_rights

True if the private keys were read with rights that this process has given up since, so that no other edge can read them.

=head2 pidfd

The number of a descriptor that becomes readable when the edge has ended; undef if there is none.

=head2 prepare

  $edge->prepare;

With TLS, starts the program before this process gives up its rights. It reads the private keys, gives up its own rights, and
waits for L</start>. Without TLS, does nothing.

=head2 signal

  my $there = $edge->signal('TERM');

Like L<Sirius::Edge::Group/stop>. False if it has ended already.

=head2 start

  my $ready = $edge->start($code);

Starts the program as the child of nobody, for this process, which is its one worker, unless L</prepare> has done so, and waits until
it is ready. False when it has
ended before that, or C<$code> was true after a signal. It ends with this process, whatever ends that, and heeds signals of no
other. Dies when it cannot be started.

=head2 stop_and_wait

Ends the edge when it has sent all answers, within two seconds. Does nothing in another process.

=head1 SEE ALSO

L<Sirius::Edge::Group>, L<Sirius::Process::Single>.

=cut
