package Sirius::Process::Pool;

use strict;
use warnings;

use Fcntl        qw(F_DUPFD);
use JSON::PP     ();
use POSIX        qw(SIGINT SIGQUIT SIGTERM);
use Scalar::Util qw(weaken);
use Sirius::App::ForkCheck;
use Sirius::App::Hooks;
use Sirius::App::Isolation;
use Sirius::App::WarmUp;
use Sirius::Base::Backoff;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Config::Companion;
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::Child;
use Sirius::OS::ExitStatus;
use Sirius::OS::Inherit;
use Sirius::OS::Loop;
use Sirius::OS::Proc;
use Sirius::OS::Reaper;
use Sirius::OS::Sampler;
use Sirius::OS::Signals;
use Sirius::OS::Title;
use Sirius::Process::Recycling;
use Sirius::Process::SlowLog;
use Sirius::Process::WorkerHandle;
use Sirius::Worker;

# Seconds that INT leaves to calls of the application; that a second INT leaves to workers that are about to
# end; between two checks of the edges when the supervisor is gone; and of what waits in them when workers are
# missing in a stop
use constant { FAST_STOP => 1, HURRIED_STOP => 0.2, LOOK => 1, LOOK_SOON => 0.05 };

# Characters of a line for the supervisor: as JSON it has to fit PIPE_BUF
use constant SAID => 600;

# Bytes of any other: what a socket takes of a process that has said nothing yet
use constant SAID_MAX => 100_000;

# A number for a descriptor of the server, as in src/net/descriptors.c
use constant HIGH => 1024;

my $JSON = JSON::PP->new->ascii->allow_nonref;

# A terminal sends these to all processes at once: they end a worker that has no handlers any more
my %NUMBER = ( INT => SIGINT, QUIT => SIGQUIT, TERM => SIGTERM );
my %ENDS   = map { $_ => 1 } values %NUMBER;

# Members of the object, besides the arguments of new:
# backoff, reaper, recycling, slow_log: the objects that work for it
# codes: what the last workers run, see _spawn
# companions: the groups of processes of --beside
# complete: all workers have been ready once; up: one has
# deadline: when workers are killed in a stop; killed: they were
# gave_up: the workers do not become ready, so this process ends with status 1
# heard: the beginning of a line from news; told: of one from supervisor
# hurry: how often a fast stop was asked for
# news, report: the ends of the pipe by which workers report
# oom_kills: how many processes the kernel had killed for lack of memory at the last look
# orphaned: the supervisor is gone
# owed: in a stop, how many workers are missing; they are started while requests wait
# repeats: the requests of the warm-up that each worker repeats
# serving: in a stop, workers go on until the edge has answered all requests
# stopping: a stop has begun
# supervisor_pid: the PID of the supervisor
# theirs: the Sirius::App::Isolation
# workers: the Sirius::Process::WorkerHandle of each, by PID

# What to do about a report of a worker, or of its edge
my %HEARS = (
    broken => sub { my ( $self, $worker, $why ) = @_; $self->{recycling}->broken( $worker, $why ) },
    hook   => sub {
        my ( $self, $worker, $name ) = @_;
        $self->_tell_supervisor("hook worker $name") if !$worker->is_ready;
    },
    ready => sub { my $self = shift; $self->_hear_ready },
    said  =>
        sub { my ( $self, undef, $line ) = @_; $self->_tell_supervisor("said $line") if !$self->{complete} },
    slow     => sub { my ( $self, $worker, $why ) = @_; $self->{slow_log}->hear( $worker, $why ) },
    timeout  => sub { my ( $self, $worker, $why ) = @_; $self->{recycling}->overdue( $worker, $why ) },
    trouble  => sub { my $self = shift; $self->_tell_supervisor('trouble') },
    unopened => sub { my ( $self, undef, $text ) = @_; $self->_tell_supervisor("unopened $text") },
);

sub act {
    my $self = shift;
    $self->_kill_late;
    $self->_let_go    if $self->_nobody_stops_the_edges;
    $self->{owed} = 0 if $self->{owed} && !$self->_has_edge;
    $self->{recycling}->act( values %{ $self->{workers} } );
    return;
}

sub due {
    my $self = shift;
    my @due  = $self->{recycling}->due( values %{ $self->{workers} } );
    if ( $self->{stopping} )                  { push @due, $self->{deadline} if !$self->{killed} }
    if ( $self->_nobody_stops_the_edges )     { push @due, now() + LOOK }
    if ( $self->{owed} )                      { push @due, now() + LOOK_SOON }
    if ( !$self->_trying && $self->_missing ) { push @due, $self->{backoff}->at }
    return @due;
}

sub new {
    my ( $class, %args ) = @_;
    return bless { heard => '', told => '', owed => 0, stopping => 0, workers => {}, %args }, $class;
}

sub privileges { return shift->{privileges} }

sub run {
    my $self = shift;
    $self->{supervisor_pid} = getppid;
    $self->{theirs}         = Sirius::App::Isolation->take( $self->{conf} );    # only our code from here on
    $self->{loop} ||= Sirius::OS::Loop->new( $self->signals );
    $self->{backoff} = Sirius::Base::Backoff->new(
        interval => $self->{conf}{err_respawn_interval},
        pause    => $self->{conf}{spawn_interval}
    );
    $self->{recycling} = Sirius::Process::Recycling->new( $self->{conf}, $self->{scoreboard} );
    $self->{slow_log}
        = Sirius::Process::SlowLog->new( $self->{scoreboard}, folds => $self->{conf}{develop} ? 1 : 0 );
    $self->{oom_kills} = Sirius::OS::Proc->oom_kills;
    @{$self}{qw(news report)} = _pipe();
    $self->{loop}->watch($_) for @{$self}{qw(news supervisor)};
    $self->{loop}->watch( $self->{lifeline}, 'end' );
    $self->{reaper} = Sirius::OS::Reaper->new;
    $self->{loop}->add( $self, $self->{reaper} );

    if ( $self->{privileges} ) {    # this changes %ENV for the application
        my $error = $self->{theirs}->lend( sub { $self->{privileges}->drop } );
        die $error if defined $error;    ## no critic (RequireCarping)
    }
    Sirius::OS::Child->end_with(0);      # the loop handles its end
    Sirius::Worker->check_tmpdir( $self->{conf} );
    Sirius::OS::Title->set( $self->{conf}, "generation $self->{number}" );
    if ( $self->{reload} ) {
        $self->_tell_supervisor("workers @{ $self->{conf} }{qw(workers workers_max)}");
        $self->_tell_supervisor( 'edge ' . $JSON->encode( $self->{edge} ) ) if $self->{edge};
        $self->_tell_companions;
        Sirius::Log->tell( sub { $self->_tell_supervisor( 'said ' . _said(shift) ) } );
    }

    my $clean = eval { $self->_warm_up; $self->_supervise; 1 };
    my $error = $@;
    Sirius::Log->tell(undef);
    $self->{loop}->release( exits => 1 );
    $self->{theirs}->restore;
    delete @{$self}{qw(news report)};
    die $error if !$clean;
    return $self->{gave_up} ? 1 : 0;
}

sub signals { return qw(CHLD HUP INT QUIT TERM TTIN TTOU USR1 USR2) }

# Settings that the operator may expect to be changed by this reload, but are not
sub tell_unchanged {
    my $self = shift;
    for my $option ( @{ $self->{unchanged} || [] } ) {
        my ( $name, $was, $is ) = @$option;
        Sirius::Log->warn( "$name: a reload cannot change it from "
                . ( length $was ? "'$was'" : 'unset' ) . ' to '
                . ( length $is  ? "'$is'"  : 'unset' )
                . '; restart the server' );
    }
    return;
}

# Workers that serve and are to go on
sub _active {
    return grep { !$_->is_retiring && !$_->recycle_reason } values %{ shift->{workers} };
}

sub _become_worker {
    my ( $self, $row, $worker, $handlers, $title, $generation ) = @_;
    my $status = 1;
    eval {
        $self->{scoreboard}->occupy( $row, $generation ) or die "its generation was killed\n";
        close $self->{news};
        close $self->{supervisor};

        # A change of the user has made it unreadable, also for the generation, which is to read its stack
        Sirius::OS::Sampler->permit if $self->{conf}{slow_log};
        Sirius::Log->tell( sub { $self->_tell_generation( 'said', _said(shift) ) } )
            if $self->_is_listened_to;
        Sirius::OS::Title->become($title);
        $self->{theirs}->restore;
        $self->{loop}->hand_over($handlers);
        $self->_tell_generation( 'done', $worker->run );
        $status = 0;
        1;
    } or Sirius::Log->error( 'worker failed: ' . $@ =~ s/\s+\z//r );
    Sirius::OS::Signals->shut;
    return $status;
}

sub _bury {
    my ( $self, $worker, $status ) = @_;
    $self->{scoreboard}->release( $worker->row );
    my $signal = $status & 127;
    my $hung   = $signal == 9 && $worker->hung;
    my $why    = $hung || $worker->recycle_reason || $worker->done || '';    # why it was asked to end
    my $oom    = $signal == 9 && $self->_out_of_memory;
    $self->{scoreboard}
        ->exited( Sirius::OS::ExitStatus->kind( $status, $why, @{$self}{qw(stopping killed)}, $oom ) );
    $self->{owed}++
        if $self->{serving} && $worker->is_ready && !$self->{killed} && ( $worker->done || '' ) ne 'over';
    return if $self->{stopping}    && ( !$status || $self->{killed} && $signal == 9 );
    return if $self->_stop_is_near && !$status;
    return if $ENDS{$signal}       && ( $worker->done || $worker->is_retiring );  # it was about to end anyway

    my $name = 'worker ' . $worker->pid;
    if ( !$status && ( $worker->recycle_reason || $why =~ /\A(?:max-|harakiri)/ ) ) {
        return Sirius::Log->info("$name exited: $why");
    }
    my $text = "$name "
        . (
          $oom                                                 ? 'was killed by the kernel: out of memory'
        : $signal == 9 && ( $hung || $worker->recycle_reason ) ? "was killed: $why"
        :   Sirius::OS::ExitStatus->words( $status, $why )
        );

    # A request that ran too long was already reported as an error; this is the consequence
    my $level = $worker->recycle_reason && !$hung ? 'warn' : $status || !$why ? 'error' : 'info';
    return Sirius::Log->$level($text) if $self->{stopping};
    Sirius::Log->$level( "$text; " . $self->_schedule( $worker, $status || !$why, $signal ) );
    return;
}

# When the supervisor has ended, for whatever reason, the server has to end
sub _check_alive {
    my $self = shift;
    return if $self->{orphaned} || !_ended( $self->{lifeline} );
    $self->{orphaned} = 1;
    $self->{loop}->unwatch( $self->{lifeline} );
    $self->_hear;
    kill KILL => map { -$_ } @{ $self->{companions} || [] };    # the kernel has killed the first of each
    Sirius::Log->error( "the supervisor (PID $self->{supervisor_pid}) is gone: "
            . 'finishing the requests, then stopping; start the server again' )
        if $self->_tells;
    return $self->_stop('TERM');
}

# Fewer are free while many workers retire slowly; the next one that ends brings us back here
sub _claim {
    my ( $self, $number ) = @_;
    my @rows;
    while ( @rows < $number ) {
        my $row = $self->{scoreboard}->claim( $self->{number} );
        last if $row < 0;
        push @rows, $row;
        $self->{owed}-- if $self->{owed};
    }
    return @rows;
}

# What this process cannot do without: which files its descriptors are. The application may have closed one,
# and have another there
sub _descriptors {
    my $self    = shift;
    my @handles = map { fileno $_ } @{$self}{qw(lifeline news report)};
    my @numbers = ( @handles, $self->_sockets, $self->{scoreboard}->descriptor );
    return join q( ), map { join q(:), $_, ( POSIX::fstat($_) )[ 0, 1 ] } @numbers;
}

# With --daemonize, the operator's command ends here
sub _detach {
    my $self = shift;
    $self->{daemon}->detach if $self->{daemon};
    return;
}

# The PIDs of workers that have not announced their end
sub _edges {
    my $board = shift->{scoreboard};
    return grep { $_ > 0 } map { $board->edge_row($_)->{pid} } 0 .. $board->edges - 1;
}

# Whether the other end of a pipe that nobody writes to was closed
sub _ended {
    my $fh = shift;
    vec( my $read = '', fileno $fh, 1 ) = 1;
    return 0 < select $read, undef, undef, 0;    # not so when a signal interrupts it
}

# When the whole server stops, the edge still has requests, and ends the workers when it is done with them
sub _ends_with_edge {
    my $self = shift;
    return $self->{orphaned} || $self->{scoreboard}->stopped;
}

# Whether workers may be forked directly one after the other
sub _forks_together {
    my $self = shift;
    my $conf = $self->{conf};
    return $self->{up} && !$self->{backoff}->failing && !$conf->{before_fork} && !$conf->{spawn_interval};
}

# An edge may belong to another user
sub _has_edge {
    my $self = shift;
    return grep { kill( 0, $_ ) || $!{EPERM} } $self->_edges;
}

# Reads what workers and their edges report: "PID WHAT WHY"
sub _hear {
    my $self = shift;
    $self->{loop}->read( $self->{news},       \$self->{heard} );
    $self->{loop}->read( $self->{supervisor}, \$self->{told} );
    my $whole = $self->{told} =~ s/\A(.*\n)//s ? $1 : '';
    $self->{companions} = [ grep { $_ > 1 } split q( ), $1 ] while $whole =~ s/^0 companions([ \d]*)\n//m;
    while ( $self->{heard} =~ s/\A([^\n]*)\n// || $whole =~ s/\A([^\n]*)\n// ) {
        my ( $pid, $what, $why ) = $1 =~ /\A(\d+) (\S+) ?(.*)\z/ or next;
        my $worker = $self->{workers}{$pid} or next;
        $worker->heard( $what, $why );
        my $code = $HEARS{$what} or next;
        $code->( $self, $worker, $why );
    }
    return;
}

sub _hear_ready {
    my $self = shift;
    $self->{backoff}->ready;
    if ( !$self->{up}++ ) {
        $self->_tell_supervisor('up');
        $self->_detach;
    }
    return if $self->{complete} || $self->_number > grep { $_->is_ready } $self->_active;
    $self->{complete} = 1;
    Sirius::Log->tell(undef);
    $self->_tell_supervisor('ready');
    return;
}

sub _heed {
    my ( $self, $signal ) = @_;

    # The supervisor does not know of a signal that it has not sent
    $self->_tell_supervisor( "asked $signal " . $self->{loop}->from($signal) )
        if $ENDS{ $NUMBER{$signal} || 0 }
        && !$self->{stopping}
        && $self->{loop}->sender($signal) != $self->{supervisor_pid};
    return $self->_stop('INT') if $signal eq 'INT';
    $self->_run_hook('on_reload')
        if $signal eq 'TERM' && !$self->{stopping} && !$self->{scoreboard}->stopping;
    return $self->_stop( $self->{stopping} && !$self->{orphaned} ? 'INT' : 'TERM' )
        if $signal eq 'TERM' || $signal eq 'QUIT';
    $_->reopen(
        sub { $self->_tell_supervisor( 'unopened ' . substr Sirius::Base::Text->harmless(shift), 0, SAID ) } )
        for grep { $_ && $signal eq 'USR1' } 'Sirius::Log', $self->{access_log};
    $self->_signal($signal) if $signal =~ /\AUSR/;
    return;
}

# What an application opens gets the lowest number that is free: one that closes all descriptors, and then
# opens files, must not find our reports in them
sub _high {
    my $handle = shift;
    my $number = fcntl $handle, F_DUPFD, HIGH;
    return $handle if !$number || !open my $high, '>&=', 0 + $number;
    return $high;
}

# Whether it has a request, in whatever state it is
sub _is_busy {
    my ( $self, $worker ) = @_;
    return 0 < $self->{scoreboard}->row( $worker->row )->{began};
}

# Whether those who asked for a reload still hear what the log says
sub _is_listened_to {
    my $self = shift;
    return $self->{reload} && !$self->{complete};
}

# Whether this generation was not told to end: the edge tells it when all requests are answered
sub _is_waiting {
    my ( $self, $worker ) = @_;
    return $self->{serving} && $worker->is_ready && !$worker->is_retiring && !$worker->done;
}

sub _kill_late {
    my $self = shift;
    return if !$self->{stopping} || $self->{killed} || now() < $self->{deadline};
    @{$self}{qw(killed owed)} = ( 1, 0 );
    my @workers = sort { $a->pid <=> $b->pid } values %{ $self->{workers} } or return;
    my @busy    = map  { $_->pid } grep { $self->_is_busy($_) } @workers;
    my @late    = map  { $_->pid } grep { !$self->_is_busy($_) && !$self->_is_waiting($_) } @workers;
    Sirius::Log->warn("workers that did not finish in time were killed: @busy")                if @busy;
    Sirius::Log->warn("workers without a request that did not end in time were killed: @late") if @late;
    $self->_signal('KILL');
    return;
}

# Runs code of the application. Before any worker serves, this process ends with the supervisor; later it has
# to end the workers
sub _lend {
    my ( $self, $code ) = @_;
    Sirius::OS::Child->end_with( $self->{supervisor_pid} ) if !$self->{up};
    my $error = $self->{theirs}->lend($code);
    Sirius::OS::Child->end_with(0);
    return $error;
}

# Edges that were killed together with the supervisor end no workers
sub _let_go {
    my $self = shift;
    return if !Sirius::OS::Proc->mounted || grep { defined Sirius::OS::Proc->born($_) } $self->_edges;
    @{$self}{qw(owed serving)} = ( 0, 0 );
    Sirius::Edge::Shared->over( fileno $self->{sleepers} );
    return;
}

# Logged, as the user who has stopped the process may have forgotten it. The edge watches over its request
sub _look_for_stopped {
    my $self = shift;
    while ( my ( $pid, $signal ) = Sirius::OS::Child->stopped ) {
        next if !$self->{workers}{$pid};
        if ($signal) {
            my $name = Sirius::OS::ExitStatus->signal($signal);
            Sirius::Log->warn(
                "worker $pid was stopped by SIG$name: "
                    . (
                    $self->_is_busy( $self->{workers}{$pid} )
                    ? 'its request waits for SIGCONT'
                    : 'it has no request, and takes none before SIGCONT'
                    )
            );
        } else {
            Sirius::Log->note("worker $pid continues (SIGCONT)");
        }
    }
    return;
}

# One that retires is replaced at once: its slow clients may keep it for long
sub _missing {
    my $self = shift;
    return $self->{owed} && $self->{scoreboard}->waiting ? $self->{owed} : 0 if $self->{stopping};
    my $missing = $self->_number - $self->_active;
    return $missing > 0 ? $missing : 0;
}

# Before the fork, as a worker shares only what it does not write
sub _new_worker {
    my ( $self, $row ) = @_;
    my $listened = $self->_is_listened_to;
    weaken( my $own = $self );
    my $worker = Sirius::Worker->new(
        ( map { $_ => $self->{$_} } qw(access_log app builder conf listeners repeats scoreboard sleepers) ),
        generation   => $self->{number},
        multiprocess => 1,
        report       => $self->{report},
        row          => $row,
        tell         => sub {
            my $heard = $own->_tell_generation(@_);
            if ( $_[0] eq 'ready' ) {
                $own->{daemon}->detach   if $own->{daemon};
                Sirius::Log->tell(undef) if $listened;
            }
            return $heard ? '' : 'unheard';
        },
    );
    $worker->prepare;
    return $worker;
}

sub _nobody_stops_the_edges {
    my $self = shift;
    return $self->{orphaned} && $self->{serving};
}

# How many workers there should be. The operator may change it (TTIN, TTOU); it is in the scoreboard
sub _number { return shift->{scoreboard}->workers }

# Whether the kernel has killed for lack of memory since the last check
sub _out_of_memory {
    my $self   = shift;
    my $before = $self->{oom_kills};
    $self->{oom_kills} = Sirius::OS::Proc->oom_kills;
    return $self->{oom_kills} > $before;
}

sub _pipe {
    pipe my $read, my $write or Sirius::Log->fail("cannot create a pipe: $!");
    return $read, _high($write);
}

# Workers to be recycled retire once enough others are ready
sub _relieve {
    my $self   = shift;
    my @active = $self->_active;

    # Fewer are wanted: the youngest have the least to lose
    my $surplus = @active - $self->_number;
    if ( $surplus > 0 ) {
        my @young = sort { $b->since <=> $a->since } @active;
        $_->recycle('fewer workers are wanted') for @young[ 0 .. $surplus - 1 ];
        @active = $self->_active;
    }
    my $ready = grep { $_->is_ready } @active;
    for my $worker ( grep { $_->recycle_reason && !$_->is_retiring && !$_->done }
        values %{ $self->{workers} } )
    {
        last if $ready < $self->_number;
        $worker->retire;
    }
    return;
}

sub _run_hook {
    my ( $self, $name ) = @_;
    return if !$self->{conf}{$name};
    $self->_tell_supervisor("hook generation $name");    # it ends this process if the hook never returns
    my $error = $self->_lend( sub { Sirius::App::Hooks->run( $self->{conf}, $name ) } );
    $self->_tell_supervisor('hook generation none');
    Sirius::Log->error( "--$name: " =~ tr/_/-/r . $error ) if defined $error;
    return;
}

# A line of the log for those who asked for the reload
sub _said { return $JSON->encode( substr shift, 0, SAID ) }

# When the worker will be replaced, in words
sub _schedule {
    my ( $self, $worker, $failed, $signal ) = @_;
    my $backoff = $self->{backoff};
    my $killed  = !$signal || $signal == 9;
    my $delay
        = !$worker->is_ready ? $backoff->failed
        : $failed && !$worker->recycle_reason
        ? $backoff->died( age => $worker->age, killed => $killed, among => $self->_number )
        : 0;
    return 'starting another' if !$delay;

    # The old generation keeps serving, or an operator waits for the outcome of the start
    if ( $self->{reload} ? !$self->{complete} : $self->{daemon} && !$self->{up} ) {
        $self->{gave_up} = 1;
        $self->_stop('INT');
        return 'it never became ready: this generation gives up';
    }
    return ( $worker->is_ready ? '' : 'it never became ready; ' ) . sprintf 'next attempt in %g s', $delay;
}

sub _signal {
    my ( $self, $signal ) = @_;
    $_->signal($signal) for values %{ $self->{workers} };
    return;
}

sub _sockets {
    my $self = shift;
    my @own  = map { fileno $_ } @{$self}{qw(sleepers supervisor)};
    return @own, grep {defined} $self->{audience},
        map { fileno $_ } grep {defined} $self->{conf}{listen_sock};
}

# One worker for each of these rows
sub _spawn {
    my ( $self, @rows ) = @_;

    $self->_run_hook('before_fork');
    Sirius::App::ForkCheck->warn_once( $self->_sockets );
    my $generation = $$;
    my $title      = Sirius::OS::Title->title( $self->{conf}, 'worker' );

    # Kept until others are forked: to free them now would write to 67 pages that the workers share
    weaken( my $own = $self );
    $self->{codes} = [
        map {
            my $row      = $_;
            my $worker   = $own->_new_worker($row);
            my %handlers = $worker->handlers;
            sub { exit $own->_become_worker( $row, $worker, \%handlers, $title, $generation ) }
        } @rows
    ];
    my @children = Sirius::OS::Child->fork_all( @{ $self->{codes} } );
    my $errno    = $! + 0;
    for my $child (@children) {
        $child->on_end( sub { $self->_worker_ended(@_) } );
        $self->{reaper}->add($child);
        my $handle = Sirius::Process::WorkerHandle->new(
            $child,
            load_timeout => $self->{conf}{load_timeout},
            row          => shift @rows
        );
        $self->{workers}{ $child->pid } = $handle;
        $self->{recycling}->begin($handle);
        $self->{backoff}->started;
    }
    return if !@rows;
    local $! = $errno;
    Sirius::Log->error(
        sprintf 'cannot fork a worker: %s; next attempt in %g s',
        Sirius::OS::Child->failure,
        $self->{backoff}->failed
    );
    $self->{scoreboard}->release($_) for @rows;
    $self->{owed} += @rows if $self->{serving};
    return;
}

sub _spawn_due {
    my $self = shift;
    return if $self->_stop_is_near;
    my $missing = $self->_missing;
    while ( $missing > 0 ) {
        last if $self->_trying || now() < $self->{backoff}->at;
        my @rows = $self->_claim( $self->_forks_together ? $missing : 1 ) or last;
        $missing -= @rows;
        $self->_spawn(@rows);
    }
    return;
}

sub _stop {
    my ( $self, $signal ) = @_;
    my $grace = $signal eq 'TERM' ? $self->{conf}{graceful_timeout} : FAST_STOP;
    $grace = HURRIED_STOP if $self->{stopping} && $signal eq 'INT' && $self->{hurry}++;
    my $deadline = now() + $grace;
    $self->{deadline} = $deadline if !$self->{stopping} || $deadline < $self->{deadline};
    $self->{stopping} = 1;
    if ( $signal eq 'TERM' && $self->{up} && $self->_ends_with_edge ) {
        return if $self->{serving}++;

        # Not the successor of a worker that has just died, if there is no other: requests wait for it
        my @starting = grep { !$_->is_ready } values %{ $self->{workers} };
        @starting = () if @starting == keys %{ $self->{workers} };
        $_->signal($signal) for @starting;

        # Those that were about to be started: requests may wait for them
        my $missing = $self->_number - $self->_active + @starting;
        $self->{owed} = $missing if $missing > 0;
        $self->{backoff}->skip;
        return;
    }
    delete $self->{serving};
    $self->{owed} = 0;
    return $self->_signal($signal);
}

# An idle server stops so quickly that its workers may end before the TERM to this process has arrived
sub _stop_is_near {
    my $self = shift;
    return !$self->{stopping} && $self->{scoreboard}->stopped;
}

sub _supervise {
    my $self = shift;
    $self->_stop('TERM') if $self->{scoreboard}->stopped;    # TERM came while loading: it may be ignored
    while ( !$self->{stopping} || %{ $self->{workers} } || $self->{owed} ) {
        $self->_spawn_due;
        my @signals = $self->{loop}->wait;
        $self->_check_alive;
        $self->_hear;
        $self->_heed($_) for @signals;
        $self->{reaper}->reap;    # now that a stop has begun: workers that got the signal are not replaced
        $self->_look_for_stopped;
        $self->{loop}->act;
        next if $self->{stopping};
        $self->_relieve;
    }
    return;
}

# What the supervisor is to run beside this generation
sub _tell_companions {
    my $self = shift;
    my $plan = $JSON->encode( Sirius::OS::Inherit->text( Sirius::Config::Companion->plan( $self->{conf} ) ) );
    return $self->_tell_supervisor("beside $plan") if length $plan < SAID_MAX;
    return Sirius::Log->warn(
              '--beside: the variables of --env-file are too long to be passed on at a reload: '
            . 'commands keep the previous ones' );
}

# Called in a worker. The line is shorter than PIPE_BUF, so it never mixes with another's
sub _tell_generation {
    my ( $self, @words ) = @_;
    return if !-p $self->{report};    # an application may have closed it, and got its number
    return syswrite $self->{report}, join( q( ), $$, @words ) . "\n";  # not by $", which is the application's
}

sub _tell_supervisor {
    my ( $self, $what ) = @_;
    syswrite $self->{supervisor}, "$what\n";
    return;
}

# Of several generations, the serving one reports what concerns the whole server. One that retires or loads
# does so if no other has workers
sub _tells {
    my $self  = shift;
    my $board = $self->{scoreboard};
    return 1 if $self->{stopping} ? $board->stopped : $self->{complete};
    return !grep { $_ && $_ != $self->{number} } map { $board->row($_)->{generation} } $board->occupied;
}

# While it is unknown whether workers can start at all, one is tried at a time
sub _trying {
    my $self = shift;
    return 0 if $self->{up} && !$self->{backoff}->failing;
    return scalar grep { !$_->is_ready } values %{ $self->{workers} };
}

# As long as the supervisor has not heard that it is over, the end of this process is a failure of it
sub _warm_up {
    my $self = shift;
    my $conf = $self->{conf};
    return if !$conf->{warm_up} || $self->{scoreboard}->stopped;
    return Sirius::Log->warn(
        '--warm-up has no effect: with -L Delayed each worker loads the application itself')
        if $self->{builder};
    Sirius::App::ForkCheck->warn_before_warm_up( $self->_sockets );
    my $warm_up = Sirius::App::WarmUp->new(
        ( map { $_ => $self->{$_} } qw(app conf) ),
        listener     => $self->{listeners}[0],
        multiprocess => 1,
    );
    my $before = $self->_descriptors;
    $self->_tell_supervisor('hook generation warm_up');    # which ends this process when it never returns
    my ( $fine, $error );
    $self->{loop}->lend( sub {
        $error = $self->_lend( sub { $fine = $warm_up->run } );
    } );
    if ( $self->_descriptors ne $before ) {
        Sirius::Log->tell(undef);
        $error = 'the application has closed descriptors that the server needs';
    }
    Sirius::Log->error( 'warm-up: ' . $error =~ s/\s+\z//r ) if defined $error;
    if ( defined $error || !$fine ) {
        @{$self}{qw(gave_up stopping)} = ( 1, 1 );
        return;
    }
    $self->_tell_supervisor('hook generation none');
    $self->{repeats} = [ $warm_up->repeats ] if !$conf->{develop};   # nobody measures the first request there
    return;
}

sub _worker_ended {
    my ( $self, $child, $status ) = @_;
    $self->_hear;
    return $self->_bury( delete $self->{workers}{ $child->pid }, $status );
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Pool - the workers of one loading of the application

=head1 SYNOPSIS

  use Sirius::Process::Pool;

  my $status = Sirius::Process::Pool->new(
      lifeline => $pipe,
      app        => $app,
      conf       => Sirius::Config::Values->parse({ workers => 4 }),
      listeners  => \@listeners,
      number     => 1,
      scoreboard => $scoreboard,
      supervisor => $news,
  )->run;

=head1 DESCRIPTION

A process that has loaded the application, forks workers, and replaces each that ends. A child of L<Sirius::Process::Supervisor>,
which starts another one for a reload and then tells this one to drain. It serves no request itself and sleeps until a
signal comes (see L<Sirius::OS::Loop>).

The first worker is started alone. When it is ready, the others follow. A worker that ends is replaced at once. After
one that ends without having been ready, the next attempt is made C<--err-respawn-interval> seconds later, then after
twice as many, up to 30; meanwhile no other worker is started. In a reload the first such failure ends the generation
instead, because the old one still serves. The same holds for a start with C<--daemonize>, whose command waits for the
outcome. Every end is logged with its reason.

Before the first worker the application is warmed up (C<--warm-up>, L<Sirius::App::WarmUp>). If that fails, this process ends with
status 1, and the supervisor takes it as it takes an application that does not load.

A worker that is to be recycled (for its requests, memory or age, see L<Sirius::Process::Recycling>) serves until its
successor is ready. A worker that is not ready or not out of a hook after C<--load-timeout>, or has not ended after
C<--graceful-timeout>, is killed.

Only the supervisor holds the write end of a pipe. When the supervisor ends, however it ends, the pipe is at its end of
file: then generation and workers stop as at a stop of the server.

=head1 SIGNALS

C<TERM> and C<QUIT> stop gracefully: each worker finishes its request; after C<--graceful-timeout> the rest is killed.
Workers that are missing are started while requests wait, without the pause after a crash. C<INT>, or a second C<TERM>,
is the fast stop. C<USR1> reopens the log here and in the workers. C<USR2> is passed on to the workers. After C<TTIN> and C<TTOU> the generation reads the number of workers from the scoreboard.

=head1 METHODS

=head2 act

Kills workers that are too late.

=head2 due

The times at which there is something to do, for L<Sirius::OS::Loop/add>.

=head2 new

C<lifeline>, the handle whose end of file tells that the supervisor is gone; C<audience>, a descriptor that the application holds for the
server (L<Sirius::Dev::Audience>); C<app>, or C<builder> (a sub that makes it, called in
each worker); C<conf>, a hash from L<Sirius::Config::Options>; C<listeners>, C<scoreboard> and C<sleepers>; C<number>; C<reload>, true when
another generation serves meanwhile; C<loop>, a L<Sirius::OS::Loop> to go on with; C<supervisor>, where to write "up"
(the first worker is ready) and "ready" (all are).

=head2 privileges

The L<Sirius::Service::Privileges> that it drops to: those of the start of the server.

=head2 run

Returns its exit status after a stop, with all workers gone.

=head2 signals

The names of the signals it waits for.

=head2 tell_unchanged

Warns of options that have another value than at the start of the server, where a reload cannot change them.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Process::Supervisor>, L<Sirius::Worker>, L<Sirius::Process::Recycling>, L<Sirius::OS::Loop>.

=cut
