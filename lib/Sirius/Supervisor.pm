package Sirius::Supervisor;

use strict;
use warnings;

use Config      qw(%Config);
use IO::Handle  ();
use List::Util  qw(min);
use POSIX       qw(WNOHANG);
use Sirius::Log ();
use Sirius::Signals;
use Sirius::Worker;
use Socket      qw(AF_UNIX PF_UNSPEC SOCK_SEQPACKET);
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

use constant {
    BACKOFF_MAX => 30,    # seconds between two attempts to start a worker that never gets ready
    FAST_STOP   => 1,     # seconds that INT leaves to running application calls
};

my @SIGNAL_NAME = split ' ', $Config{sig_name};

sub new {
    my ( $class, %args ) = @_;
    return bless { failures => 0, heard => '', not_before => 0, stopping => 0, workers => {}, %args }, $class;
}

sub run {
    my $self = shift;
    return $self->_run_alone if !$self->{conf}{workers};

    Sirius::Engine->descriptors;    # the scoreboard needs one for each slot
    $self->{scoreboard} = Sirius::Scoreboard->new( $self->_slots );
    $self->{exchange}   = _exchange();
    $self->{signals}    = Sirius::Signals->new(qw(CHLD HUP INT QUIT TERM));
    @{$self}{qw(alive control)} = _pipe();
    @{$self}{qw(news report)}   = _pipe();
    $self->{signals}->watch( $self->{news} );

    my $clean = eval { $self->_supervise; 1 };
    my $error = $@;
    $self->{signals}->release;
    delete @{$self}{qw(alive control news report)};
    die $error if !$clean;
    return;
}

# Once, when the first worker is ready
sub _announce {
    my $self = shift;
    return if $self->{announced}++;
    my $program = 'Sirius/' . Sirius->VERSION;
    my $ready   = $self->{conf}{server_ready};
    for my $listener ( @{ $self->{listeners} } ) {
        if ( $ready && !$listener->is_unix ) {
            $ready->( {
                host            => $listener->host,
                port            => $listener->port,
                proto           => 'http',
                server_software => $program,
            } );
            next;
        }
        print {*STDERR} "$program listening on ", $listener->url, "\n";
    }
    STDERR->flush;    # an application may have put a layer on it, and then it is buffered
    return;
}

sub _become_worker {
    my ( $self, $slot ) = @_;
    my $status = 1;
    eval {
        close $self->{control};
        close $self->{news};
        my $worker = Sirius::Worker->new(
            ( map { $_ => $self->{$_} } qw(app builder conf exchange listeners scoreboard) ),
            control      => $self->{alive},
            multiprocess => 1,
            on_ready     => sub { $self->_tell('ready') },
            on_retire    => sub { $self->_tell('retiring') },
            slot         => $slot,
        );
        $self->{signals}->hand_over( $worker->handlers );
        $self->_tell( 'done', $worker->run );
        $status = 0;
        1;
    } or Sirius::Log->note( 'worker failed: ' . $@ =~ s/\s+\z//r );
    return $status;
}

sub _bury {
    my ( $self, $worker, $status ) = @_;
    delete $self->{slots}[ $worker->{slot} ];
    $self->{scoreboard}->release( $worker->{slot} );

    # Asked for: by us, by the request limit, by the application
    my ( $why, $signal ) = ( $worker->{done} || '', $status & 127 );
    return if $self->{stopping} && ( !$status || $self->{killed} && $signal == 9 );
    return if !$status && $why =~ /\A(?:max-requests|harakiri)\z/;

    my $text = "worker $worker->{pid} " . _cause( $status, $why );
    return Sirius::Log->note($text) if $self->{stopping};
    Sirius::Log->note( "$text; " . $self->_schedule( $worker, $status || !$why, $signal ) );
    return;
}

# How a process ended, in words
sub _cause {
    my ( $status, $why ) = @_;
    my $signal = $status & 127;
    return "was killed by signal $signal ($SIGNAL_NAME[$signal])" if $signal;
    return 'exited with status ' . ( $status >> 8 )               if $status;
    return $why ? "ended: $why" : 'exited with status 0 inside the application';
}

# The queue of connections that change their worker; held open here, so that what is in it outlives any of them
sub _exchange {
    socketpair my $give, my $take, AF_UNIX, SOCK_SEQPACKET, PF_UNSPEC or die "sirius: socketpair: $!\n";
    $_->blocking(0) for $give, $take;
    return [ $give, $take ];
}

# What workers have to tell: "PID ready", "PID done WHY"
sub _hear {
    my $self = shift;
    1 while sysread $self->{news}, $self->{heard}, 4096, length $self->{heard};
    while ( $self->{heard} =~ s/\A(\d+) (\S+) ?(\S*)\n// ) {
        my ( $pid, $what, $why ) = ( $1, $2, $3 );
        my $worker = $self->{workers}{$pid} or next;
        $worker->{$what} = $why || 1;
        next if $what ne 'ready';
        $self->{failures} = 0;
        $self->_announce;
    }
    return;
}

sub _heed {
    my ( $self, $signal ) = @_;
    return $self->_stop('INT')                                     if $signal eq 'INT';
    return $self->_stop( $self->{stopping} ? 'INT' : 'TERM' )      if $signal eq 'TERM' || $signal eq 'QUIT';
    Sirius::Log->note('HUP: this version has no reload, going on') if $signal eq 'HUP' && !$self->{stopping};
    return;
}

sub _kill_late {
    my $self = shift;
    return if !$self->{stopping} || $self->{killed} || _now() < $self->{deadline};
    $self->{killed} = 1;
    my @pids = sort { $a <=> $b } keys %{ $self->{workers} } or return;
    Sirius::Log->note("not finished in time, killed: @pids");
    kill KILL => @pids;
    return;
}

# Seconds until something is due, undef when only a signal can bring work
sub _patience {
    my $self = shift;
    my $due;
    if ( $self->{stopping} ) { $due = $self->{deadline} if !$self->{killed} }
    else { $due = $self->{not_before} if !$self->_trying && ( my @slots = $self->_wanted ) }
    return if !defined $due;
    my $left = $due - _now();
    return $left > 0 ? $left : 0;
}

sub _pipe {
    pipe my $read, my $write or die "sirius: pipe: $!\n";
    return $read, $write;
}

sub _now { return clock_gettime(CLOCK_MONOTONIC) }

# All children, not only ours: PID 1 of a container inherits orphans
sub _reap {
    my $self = shift;
    local $?;
    while ( ( my $pid = waitpid -1, WNOHANG ) > 0 ) {
        my $status = $?;
        next if !$self->{workers}{$pid};
        $self->_hear;
        $self->_bury( delete $self->{workers}{$pid}, $status );
    }
    return;
}

# --workers 0: no child, no control pipe; ends when it is told to
sub _run_alone {
    my $self   = shift;
    my $worker = Sirius::Worker->new(
        ( map { $_ => $self->{$_} } qw(app builder conf listeners) ),
        on_ready   => sub { $self->_announce },
        scoreboard => Sirius::Scoreboard->new(1),
        slot       => 0,
    );
    my %handlers = $worker->handlers;
    local @SIG{ keys %handlers } = values %handlers;
    1 while $worker->run !~ /\A(?:drained|stopped)\z/;
    return;
}

# When to replace it, in words. At once, except when that would be a loop of forks
sub _schedule {
    my ( $self, $worker, $failed, $signal ) = @_;
    my $interval = $self->{conf}{err_respawn_interval};
    my $delay    = 0;
    if    ( !$worker->{ready} ) { $delay = min BACKOFF_MAX, $interval * 2**$self->{failures}++ }
    elsif ( $failed && _now() - $worker->{since} < $interval && !$self->_spared($signal) ) {
        $delay = $interval;
    }
    return 'replaced' if !$delay;
    $self->{not_before} = _now() + $delay;
    return ( $worker->{ready} ? '' : 'it never got ready; ' ) . sprintf 'next attempt in %g s', $delay;
}

# Room for those that retire beside their successors
sub _slots {
    my $workers = shift->{conf}{workers};
    return $workers + ( $workers > 8 ? $workers : 8 );
}

# Killed from outside, and not for ever: no reason to be without workers for a while
sub _spared {
    my ( $self, $signal ) = @_;
    return 0 if $signal != 9;
    my $since  = _now() - $self->{conf}{err_respawn_interval};
    my $killed = $self->{killed_young} ||= [];
    @$killed = grep { $_ > $since } @$killed, _now();
    return @$killed <= 2 * $self->{conf}{workers};
}

sub _spawn {
    my ( $self, $slot ) = @_;

    # What is still in a buffer would be written once by each worker
    STDOUT->flush;
    STDERR->flush;
    my $pid = fork;
    exit $self->_become_worker($slot) if defined $pid && !$pid;

    my $now = _now();
    if ( !defined $pid ) {
        my $delay = min BACKOFF_MAX, $self->{conf}{err_respawn_interval} * 2**$self->{failures}++;
        Sirius::Log->note("fork: $!; next attempt in $delay s");
        $self->{not_before} = $now + $delay;
        return;
    }
    $self->{slots}[$slot]  = $pid;
    $self->{workers}{$pid} = { pid => $pid, since => $now, slot => $slot };
    $self->{not_before}    = $now + $self->{conf}{spawn_interval};
    return;
}

sub _spawn_due {
    my $self = shift;
    for my $slot ( $self->_wanted ) {
        last if $self->_trying || _now() < $self->{not_before};
        $self->_spawn($slot);
    }
    return;
}

sub _stop {
    my ( $self, $signal ) = @_;
    my $grace = $signal eq 'TERM' ? $self->{conf}{graceful_timeout} : FAST_STOP;

    # Asked a third time
    $grace = 0 if $self->{stopping} && $signal eq 'INT' && $self->{hurry}++;
    my $deadline = _now() + $grace;
    $self->{deadline} = $deadline if !$self->{stopping} || $deadline < $self->{deadline};
    $self->{stopping} = 1;
    $self->{scoreboard}->stop;
    kill $signal => keys %{ $self->{workers} };
    return;
}

sub _supervise {
    my $self = shift;
    while ( !$self->{stopping} || %{ $self->{workers} } ) {
        $self->_spawn_due;
        my @signals = $self->{signals}->wait( $self->_patience );
        $self->_hear;
        $self->_reap;
        $self->_heed($_) for @signals;
        $self->_kill_late;
    }
    return;
}

# From a worker to the supervisor; shorter than PIPE_BUF, so never mixed with another's
sub _tell {
    my ( $self, @words ) = @_;
    syswrite $self->{report}, "$$ @words\n";
    return;
}

# While it is unknown whether workers can start at all, one is tried at a time
sub _trying {
    my $self = shift;
    return 0 if $self->{announced} && !$self->{failures};
    return scalar grep { !$_->{ready} } values %{ $self->{workers} };
}

# Slots without a worker
sub _wanted {
    my $self = shift;
    return if $self->{stopping};

    # One that retires is replaced at once: its slow clients may keep it for long
    my $missing = $self->{conf}{workers} - grep { !$_->{retiring} } values %{ $self->{workers} };
    return if $missing <= 0;
    my @free = grep { !$self->{slots}[$_] } 0 .. $self->_slots - 1;
    return @free > $missing ? @free[ 0 .. $missing - 1 ] : @free;
}

1;

=encoding utf8

=head1 NAME

Sirius::Supervisor - forks the workers, replaces them, stops them

=head1 SYNOPSIS

  use Sirius::Supervisor;

  Sirius::Supervisor->new(
      app       => $app,
      conf      => Sirius::Options->parse({ workers => 4 }),
      listeners => \@listeners,
  )->run;

=head1 DESCRIPTION

The process that the operator sees. It holds the listening sockets, starts as many workers as C<--workers> says and
replaces each that ends. It serves no request itself and sleeps until a signal comes (see L<Sirius::Signals>).

The first worker is started alone. When it is ready, the others follow and one line per listener tells that the server
listens. A worker that ends is replaced at once. One that ends without ever having been ready is tried again after
C<--err-respawn-interval> seconds, then twice as many, up to 30; meanwhile no other is tried. Every end that nobody
asked for is logged with its reason.

A pipe that only the supervisor can write tells the workers of its life: when it dies in whatever way they finish what they
have accepted and go.

As PID 1 it reaps the orphans it inherits.

=head1 SIGNALS

=head2 TERM, QUIT

Graceful stop: the workers finish what they have accepted. After C<--graceful-timeout> seconds the rest is killed.

=head2 INT

Fast stop, as is a second C<TERM>: the workers end as soon as no application call is running; after 1 second they
are killed. Once more kills at once.

=head2 HUP

Is ignored, with a line in the log.

=head1 METHODS

=head2 new

  my $supervisor = Sirius::Supervisor->new(%args);

C<app>, or C<builder> (a sub that makes it, called in each worker); C<conf>, a hash from L<Sirius::Options>;
C<listeners>, L<Sirius::Listener> objects.

=head2 run

  $supervisor->run;

Returns after a stop, with all workers gone and C<%SIG> as before. With C<--workers 0> serves in this process.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Worker>, L<Sirius::Signals>.

=cut
