package Sirius::Process::Supervisor;

use strict;
use warnings;

use List::Util   qw(max min);
use POSIX        ();
use Scalar::Util qw(weaken);
use Sirius::Admin::Port;
use Sirius::App::Forked;
use Sirius::App::Isolation;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Config::Companion;
use Sirius::Config::Lane;
use Sirius::Config::Values;
use Sirius::Control::Commands;
use Sirius::Control::Place;
use Sirius::Control::Server;
use Sirius::Edge::Group;
use Sirius::Log ();
use Sirius::OS::ExitStatus;
use Sirius::OS::Limits;
use Sirius::OS::Loop;
use Sirius::OS::Proc;
use Sirius::OS::Reaper;
use Sirius::OS::Signals;
use Sirius::OS::Title;
use Sirius::Process::Alerts;
use Sirius::Process::Companions;
use Sirius::Process::Launch;
use Sirius::Process::Pool;
use Sirius::Process::Reload;
use Sirius::Process::Renewal;
use Sirius::Process::Scaling;
use Sirius::Process::Single;
use Sirius::Process::StopDelay;
use Sirius::Process::Succession;
use Sirius::Service::Notify;
use Sirius::Service::Starter;
use Sirius::Worker;

# The server of --workers 0 while it serves. Not a local, which would be restored before END runs
my $alone;

my %STOPS = map { $_ => 1 } qw(INT QUIT TERM);

# Once, when the first worker is ready
sub announce {
    my $self = shift;
    return if $self->{announced}++;
    my $program = 'Sirius/' . Sirius->VERSION;
    my $ready   = $self->{conf}{server_ready};
    for my $listener ( @{ $self->{listeners} } ) {
        if ( $ready && !$listener->is_unix ) {
            my %about = (
                host            => $listener->host,
                port            => $listener->port,
                proto           => $listener->is_tls ? 'https' : 'http',
                server_software => $program,
            );
            my $call  = sub { _call_ready( $ready, %about ) };
            my $error = $self->{theirs} ? $self->{theirs}->lend($call) : eval { $call->(); 1 } ? undef : $@;
            Sirius::Log->note( 'the server_ready callback died: ' . $error =~ s/\s+\z//r ) if defined $error;
            next;
        }
        my $url = $listener->url;
        $self->_say( $self->{develop} ? $self->{develop}->address($url) : "$program listening on $url" );
    }
    $self->_say("$program admin on $_") for $self->{admin}->urls;
    $self->{develop}->announced( sub { $self->_say(shift) } ) if $self->{develop};
    $self->{systemd}->notify( 'READY=1', "MAINPID=$$", 'STATUS=serving' );
    $self->{daemon}->ready if $self->{daemon};
    return                 if !$self->{log_pipe};
    $self->{log_pipe}->act;    # not earlier: it would keep the operator's STDERR
    $self->{loop}->add( $self->{log_pipe} ) if $self->{loop};
    return;
}

# A stop was requested
sub began_to_stop {
    my $self = shift;
    $self->{stop_began} ||= now();
    return;
}

# Not as long as --drain-delay lets all clients be served
sub ending {
    my $self = shift;
    return $self->{stopping} && !$self->{delay}->lasts;
}

sub has_stop_begun { return shift->{stop_began} }

sub is_announced { return shift->{announced} }

# The daemon's command waits for the outcome of the start
sub is_awaited {
    my $self = shift;
    return $self->{daemon} && !$self->{announced};
}

sub is_stopping { return shift->{stopping} }

sub new {
    my ( $class, %args ) = @_;
    my $self = bless { stopping => 0, %args }, $class;
    $self->{fixed} ||= Sirius::Config::Values->fixed( $self->{conf} );
    $self->{admin} ||= Sirius::Admin::Port->new;
    $self->{develop} = $self->{conf}{develop};
    $self->{succession} ||= Sirius::Process::Succession->new( $self->{conf} );
    $self->{succession}->begin($self);
    $self->{systemd}  ||= Sirius::Service::Notify->new;
    $self->{log_pipe} ||= $self->{access_log}->pipe if $self->{access_log};
    weaken( my $own = $self );
    $self->{reaper} = Sirius::OS::Reaper->new( sub { $own->_orphan_ended(@_) } );
    $self->{log_pipe}->reaped_by( $self->{reaper} ) if $self->{log_pipe};
    return $self;
}

# With --workers 0: stops in the middle of a request
sub quit {
    my ( $self, $worker ) = @_;
    undef $alone;
    $worker->give_up('the server has to stop');
    $self->_clean_up;
    $self->_say_stopped;
    exit 0;
}

# A reload has completed: its --wait ends when the generations before it have ended too
sub reloaded {
    my ( $self, $result, @replies ) = @_;
    $self->{commands}->later( drained => $_, $result ) for @replies;
    return;
}

# After a reload: its program was given these settings for the edges
sub renew_edges {
    my ( $self, $said ) = @_;
    my $edge = $self->{edge} or return;
    $self->_reopen_access_log;
    $edge->renew($said) if $said;
    return;
}

# In the new program of a supervisor
sub resume {
    my $class = shift;
    my ( $renewal, %args ) = Sirius::Process::Renewal->take;
    my ( $alerts, $companions, $edge, $reload ) = delete @args{qw(alerts companions edge reload)};
    my $self = $class->new(%args);
    $self->_make_alerts(%$alerts);
    $self->{edge} = Sirius::Edge::Group->restore( $edge, $self->_edge_parts, sleepers => $self->{sleepers} );
    $self->_equip( $companions, %$reload );
    Sirius::OS::Title->set( $self->{conf}, 'supervisor' );
    $renewal->say;
    $self->_start_admin;    # starts a new process; the previous one ends by itself
    $self->{reload}->started( $renewal->generation );
    return $self->serve;
}

sub run {
    my $self = shift;
    Sirius::OS::Title->set( $self->{conf}, 'supervisor' );
    if ( !$self->{conf}{workers} ) {
        ( $alone, $self->{alone} ) = ( $self, $$ );
        my $clean = eval { $self->_run_alone; 1 };
        my $error = $@;
        undef $alone;
        $self->_clean_up if !$clean;
        die $error       if !$clean;    ## no critic (RequireCarping)
        return;
    }
    $self->_say_start;
    $self->{theirs} = Sirius::App::Isolation->take( $self->{conf} );    # only code of the server from here on
    my $clean = eval { $self->_run_many; 1 };
    my $error = $@;
    $self->{theirs}->restore;
    die $error if !$clean;                                              ## no critic (RequireCarping)
    return;
}

# Logs each step of a stop once: who has asked for it, and what happens to requests
sub say_stop {
    my ( $self, $signal, $why ) = @_;
    return if $self->{said_stop}{$signal}++;
    my $grace = Sirius::Base::Text->age( $self->{conf}{graceful_timeout} );
    return Sirius::Log->note("stopping: $why; the current request is finished first")
        if !$self->{conf}{workers} && $signal ne 'INT';
    Sirius::Log->note(
        $signal eq 'INT'
        ? "stopping at once: $why; requests have one second to finish"
        : "stopping: $why; requests have $grace to finish (--graceful-timeout)"
    );
    return;
}

sub serve {
    my $self = shift;
    my $loop = $self->{loop};
    Sirius::Log->hurry;
    $self->{control}->watch($loop) if $self->{control};
    $loop->watch( $_->news ) for $self->_edges;
    $loop->add(
        grep {defined} @{$self}{
            qw(reaper reload admin delay alerts companions edge commands control succession systemd scaling)}
    );
    $loop->add( $self->{log_pipe} ) if $self->{announced} && $self->{log_pipe};
    $self->{alerts}->start;
    weaken( my $own = $self );
    $self->{systemd}->only_if( sub { $own->{stopping} || !$own->{announced} || $own->{edge}->serves } );
    my $clean = eval { $self->_supervise; 1 };
    my ( $error, $status ) = ( $@, $! + 0 );
    delete @{$self}{qw(control lifeline lifeline_writer)};
    $self->_clean_up;
    $self->_say_stopped if $clean;
    $loop->release;
    $! = $status;
    die $error if !$clean;
    return;
}

sub set_workers {
    my ( $self, $number, $why ) = @_;
    my $board = $self->{scoreboard};
    $number = min $self->workers_most, max 1, $number;
    return $number if $number == $board->workers;
    Sirius::Log->note( sprintf 'number of workers changed from %d to %d: %s',
        $board->workers, $number, $why || 'on request' );
    $board->workers($number);
    $self->{reload}->signal('TTIN');
    return $number;
}

sub stop {
    my ( $self, $signal, $why ) = @_;
    $self->{systemd}->notify('STOPPING=1') if !$self->{stopping}++;
    $self->began_to_stop;
    $self->{trial}->signal('KILL') if $self->{trial};    # nobody would wait for it
    my $delayed = $self->{delay}->holds( $signal, $why );
    return if $delayed;
    $self->say_stop( $signal, $why );
    $self->{scoreboard}->stop;
    my $grace = $signal eq 'TERM' ? $self->{conf}{graceful_timeout} : 1;
    $self->{edge}->stop( $signal, $grace ) if $self->{edge};
    $_->stop( $signal, $grace ) for @{$self}{qw(reload companions)};

    # Workers are needed until the edge has answered all requests; then the edge ends them
    kill $signal => $self->{reload}->orphans if !$self->{edge} || $signal eq 'INT';
    return;
}

# What the server before has had (Sirius::Process::Succession)
sub take_over {
    my ( $self, $name, $object ) = @_;
    return $self->{pid_file} = $object if $name eq 'pid';
    my $loop = $self->{loop};
    $self->{$name} = $object;
    $loop->add($object);
    return $object->watch($loop) if $name eq 'control';
    $self->_start_admin;
    $loop->watch( $_->news ) for grep {defined} $object->edge;
    $self->_say( 'Sirius/' . Sirius->VERSION . " admin on $_" ) for $object->urls;
    return;
}

# In the program that finds out whether this one can be loaded
sub tried {
    my ( $class, @args ) = @_;
    return Sirius::Process::Renewal->tried(@args);
}

# Logs once that processes could not reopen a log
sub unopened {
    my ( $self, $text ) = @_;
    Sirius::Log->error($text) if !$self->{unopened}{$text}++;
    return;
}

# As many as there are rows for, with those before and after a reload at the same time
sub workers_most { return int shift->{scoreboard}->rows / 4 }

sub _call_ready {
    my ( $ready, %about ) = @_;
    my $pid   = POSIX::getpid();
    my $lived = eval { $ready->( {%about} ); 1 };
    my $error = $@;
    Sirius::App::Forked->exit_child( $pid, 'in server_ready' );
    die $error if !$lived;    ## no critic (RequireCarping)
    return;
}

# Errno is the exit status of a program that does not catch why it ends
sub _clean_up {
    my $self = shift;
    local $!;
    $_->shut  for $self->{admin}, @{ $self->{listeners} };
    $_->close for $self->{admin}, @{ $self->{listeners} };
    $self->{develop}->close( $self->{reload} ) if $self->{develop};
    $self->{log_pipe}->stop                    if $self->{log_pipe};
    $self->{pid_file}->remove                  if $self->{pid_file};
    return;
}

# The generations end what is left of them when this process is gone
sub _companions_changed {
    my $self  = shift;
    my $all   = $self->{reload} or return;
    my $words = join q( ), '0 companions', $self->{companions}->groups;
    $_->tell($words) for $all->all;
    return $all->publish;
}

# What the edges need of the server
sub _edge_parts {
    my $self = shift;
    weaken( my $own = $self );
    return (
        announced => sub { $own->{announced} },
        changed   => sub { $own->{reload}->publish },
        tell      => sub { $own->{reload}->tell(@_) },
        map { $_ => $self->{$_} } qw(access_log alerts conf lifeline listeners privileges reaper scoreboard)
    );
}

# The edges of the server and of the admin port
sub _edges {
    my $self = shift;
    return grep {defined} $self->{edge}, $self->{admin}->edge;
}

# Makes the objects that work for it. What the program before this one knew of its companions, and %state, of
# its generations
sub _equip {
    my ( $self, $companions, %state ) = @_;
    my $conf = $self->{conf};
    weaken( my $own = $self );
    Sirius::Worker->belong($conf);
    $self->{companions} = Sirius::Process::Companions->new(
        ( map { $_ => $self->{$_} } qw(loop privileges reaper) ),
        changed  => sub { $own->_companions_changed },
        grace    => $conf->{graceful_timeout},
        interval => $conf->{err_respawn_interval},
        plan     => Sirius::Config::Companion->plan($conf),
        state    => $companions,
    );
    $self->{delay} = Sirius::Process::StopDelay->new(
        ( map { $_ => $self->{$_} } qw(edge listeners scoreboard) ),
        over    => sub { $own->stop( 'TERM', shift ) },
        seconds => $conf->{drain_delay},
    );
    $self->{scaling} = Sirius::Process::Scaling->new( $conf, $self, $self->{scoreboard} );
    my $launch = Sirius::Process::Launch->new(
        forked => sub { $own->_forked },
        map { $_ => $self->{$_} } qw(conf fixed lifeline listeners log_pipe loop scoreboard sleepers)
    );
    my %parts = (
        (   map { $_ => $self->{$_} }
                qw(access_log alerts companions conf edge loop reaper scoreboard sleepers systemd)
        ),
        launch => $launch,
        %state
    );
    $self->{reload}
        = $self->{develop}
        ? $self->{develop}->generations( $self, %parts )
        : Sirius::Process::Reload->new( $self, %parts );
    $self->{commands} = Sirius::Control::Commands->new(
        $self,
        ( map { $_ => $self->{$_} } qw(companions conf edge listeners scoreboard) ),
        generations => $self->{reload},
        started     => $self->{admin}->started,
    );
    return;
}

# With --workers 0: the application has called exit, which ends the whole server
sub _exited {
    my ( $self, $status ) = @_;
    my $why = Sirius::OS::ExitStatus->exiting($status);
    Sirius::Worker->give_up( $why =~ s/ \(.*//r );
    $self->{systemd}->notify('STOPPING=1');
    Sirius::Log->error("stopped: $why");
    $self->_clean_up;
    return;
}

# In the child that becomes the first generation: keeps what that needs, and gives up the rest
sub _forked {
    my $self = shift;
    $self->{theirs}->restore;
    $self->{admin}->close;
    $self->{log_pipe}->release if $self->{log_pipe};
    delete @{$self}{qw(control lifeline_writer)};
    $self->{access_log}->forget if delete $self->{edge} && $self->{access_log};
    $self->{pid_file}->release  if $self->{pid_file};
    $_->forget for @{ $self->{listeners} };     # the edges accept
    $_->forked for @{$self}{qw(loop reaper)};
    return
        map { $_ => $self->{$_} }
        qw(access_log app builder conf daemon lifeline listeners loop privileges scoreboard sleepers);
}

sub _heed {
    my ( $self, $signal ) = @_;
    my $who = $self->{loop} && "$signal " . $self->{loop}->from($signal);
    return $self->stop( 'INT', $who ) if $signal eq 'INT';
    if ( $signal eq 'TERM' || $signal eq 'QUIT' ) {
        return if $self->{stopping} && $self->_repeats($signal);
        return $self->stop( $self->{stopping} ? 'INT' : 'TERM', $who );
    }
    return Sirius::Log->warn("ignored $who: the server is stopping")
        if $self->{stopping} && $signal =~ /\A(?:HUP|TTIN|TTOU)\z/;
    return $self->{reload}->reload( undef, $who ) if $signal eq 'HUP';
    if ( $signal =~ /\AUSR/ ) {
        $self->_reopen_logs if $signal eq 'USR1';
        $_->signal($signal) for @{$self}{qw(admin reload)};
        return;
    }
    my $step = $signal eq 'TTIN' ? 1 : $signal eq 'TTOU' ? -1 : return;
    return $self->set_workers( $self->{scoreboard}->workers + $step, $who );
}

# Once after each reload, and again if something was under way when the code had been tried
sub _is_to_try {
    my $self    = shift;
    my $put_off = delete $self->{put_off};
    return $self->{reload}->renewed || $put_off;
}

sub _make_alerts {
    my ( $self, %state ) = @_;
    $self->{alerts}
        = Sirius::Process::Alerts->new( board => $self->{scoreboard}, conf => $self->{conf}, %state );
    return;
}

# A start must not fail for a socket that nobody has asked for
sub _open_control {
    my $self = shift;
    my $path = $self->{conf}{control} // '';
    return if Sirius::Control::Place->is_none($path);
    my $publisher = $self->_publisher;
    if ( length $path ) {
        $self->{control}
            = $self->{succession}
            ->open( control => sub { Sirius::Control::Server->new( $path, $publisher ) } );
        return;
    }
    $self->{control} = eval { Sirius::Control::Server->new( Sirius::Control::Place->own, $publisher ) };
    return if $self->{control};
    my $error = $@ =~ s/\Asirius: --control //r =~ s/\n\z//r;
    Sirius::Log->warn(
              "sirius ctl, top and profile will not find this server, as it has no control socket: $error; "
            . 'choose another place with --control PATH, or --control none' );
    return;
}

# A worker of a generation that was killed, or a process of the application
sub _orphan_ended {
    my ( $self, $pid, $status ) = @_;
    for my $row ( grep { $_->{pid} == $pid } $self->{scoreboard}->table ) {
        $self->{scoreboard}->release( $row->{row} );
        $self->{scoreboard}->exited( Sirius::OS::ExitStatus->kind( $status, $status ? '' : 'drained' ) );
    }
    return;
}

# Makes a pipe in a sub of its own: a variable of the caller would keep an end open in a generation that is
# forked there
sub _pipe {
    pipe my $read, my $write or Sirius::Log->fail("cannot create a pipe: $!");
    return $read, $write;
}

# The user of the workers, and so of jobs, if that is another one
sub _publisher {
    my $self = shift;
    my %ids  = $self->{conf}{hold} && $self->{privileges} ? $self->{privileges}->ids : ();
    return $ids{uid};
}

# Whether nothing is under way that a new program would have to know
sub _quiet {
    my $self = shift;
    return
           !$self->{stopping}
        && !$self->{admin}->pending
        && !$self->{commands}->pending
        && $self->{reload}->settled
        && $self->{companions}->settled
        && !$self->{succession}->waits
        && ( !$self->{edge} || $self->{edge}->settled );
}

# The child that has tried the installed code has ended
sub _renew {
    my ( $self, $status ) = @_;
    return if $self->{stopping};
    return Sirius::Log->warn(
        'the supervisor keeps running its old code: '
            . (
            $status & 127
            ? 'the process that tried the new code ' . Sirius::OS::ExitStatus->words($status)
            : 'the new code cannot be loaded, see the lines above'
            )
    ) if $status;
    return $self->{put_off} = 1 if !$self->_quiet;    # the code may be another by then
    eval {
        Sirius::Process::Renewal->become(
            ref $self,
            map { $_ => $self->{$_} }
                qw(access_log admin alerts companions conf control edge fixed lifeline lifeline_writer listeners log_pipe
                pid_file privileges reload scoreboard sleepers systemd)
        );
    };
    chomp( my $error = $@ );
    return Sirius::Log->warn("the supervisor keeps running its old code: $error");
}

# If an edge writes it: the edge outlives generations
sub _reopen_access_log {
    my ( $self, @say ) = @_;
    my $log = $self->{access_log};
    return                            if !$log || !$log->reopen(@say);
    $self->{edge}->log_to( $log->fd ) if $self->{edge} && $log->fh;
    return;
}

sub _reopen_logs {
    my $self = shift;
    my $say  = sub { $self->unopened(shift) };
    delete $self->{unopened};
    if ( Sirius::Log->reopen($say) ) { $_->log_errors_to(2) for $self->_edges }
    return $self->_reopen_access_log($say);
}

# start_server ends all previous servers at each restart, even if they are ending already
sub _repeats {
    my ( $self, $signal ) = @_;
    return Sirius::Service::Starter->is_ours( $self->{loop} && $self->{loop}->sender($signal) );
}

# With --workers 0: no child, no control pipe; runs until it is told to end
sub _run_alone {
    my $self   = shift;
    my $server = Sirius::Process::Single->new( $self,
        map { $_ => $self->{$_} } qw(access_log app builder conf listeners privileges reaper succession) );
    $server->prepare;
    $self->{privileges}->drop if $self->{privileges};
    Sirius::Worker->check_tmpdir( $self->{conf} );
    $self->_say_start;
    Sirius::OS::Title->set( $self->{conf}, 'server' );
    $server->run;
    $self->{systemd}->notify('STOPPING=1');

    # A signal from here on hurries a command that reads the log (Sirius::Log::Pipe), and is then discarded
    Sirius::OS::Signals->hold(qw(INT QUIT TERM));
    $self->_clean_up;
    $self->_say_stopped;
    $SIG{$_} = 'IGNORE' for qw(INT QUIT TERM);    ## no critic (RequireLocalizedPunctuationVars)
    return;
}

sub _run_many {
    my $self = shift;
    Sirius::OS::Limits->descriptors;              # the scoreboard needs one for each row
    Sirius::OS::Reaper->adopt;
    $self->{scoreboard} = Sirius::Scoreboard->new( $self->_slots, 2 * $self->{conf}{edges} );
    $self->{scoreboard}->workers( $self->{conf}{workers} );

    @{$self}{qw(lifeline lifeline_writer)} = _pipe();
    $self->_make_alerts;
    $self->{edge} = Sirius::Edge::Group->new( $self->{scoreboard}->rows,
        $self->_edge_parts, number => $self->{conf}{edges} );
    $self->{sleepers} = $self->{edge}->workers;
    $self->_open_control;
    $self->{loop} = Sirius::OS::Loop->new( Sirius::Process::Pool->signals );
    $self->_equip;
    $self->_start_admin;
    $self->{edge}->start;
    $self->{reload}->begin;
    return $self->serve;
}

sub _say {
    my ( $self, $line ) = @_;
    my $conf = $self->{conf};
    return Sirius::Log->note($line) if defined $conf->{error_log} || $conf->{log_prefix};
    return Sirius::Log->pass("$line\n");
}

# Room for workers that retire while their successors start, within a generation and from one to the next
sub _say_start {
    my $self = shift;
    my $conf = $self->{conf};
    my $line = $self->{develop} && $self->{develop}->opening;
    return $self->_say($line) if defined $line;
    Sirius::Log->note(
        sprintf 'starting Sirius %s: PID %d, perl %vd, application %s, %s, %s',
        Sirius->VERSION,
        $$,
        $^V,
        Sirius::OS::Title->app($conf),
        !$conf->{workers} ? 'no workers (--workers 0)'
        : ( $conf->{workers_max} || 0 ) > $conf->{workers}
        ? "$conf->{workers} to $conf->{workers_max} workers"
        : $conf->{workers} == 1 ? '1 worker'
        : "$conf->{workers} workers",
        join ' ',
        map { $_->url } @{ $self->{listeners} }
    );
    Sirius::Log->warn(
              '--lane: all lanes together may occupy all workers, and other requests would have to wait: '
            . 'lower their limits, or raise --workers' )
        if Sirius::Config::Lane->take_all($conf);
    return if Sirius::OS::Proc->mounted;
    Sirius::Log->warn(
        q{/proc is not mounted: --max-rss and --workers auto have no effect, and the memory of processes }
            . q{and the names of the senders of signals are unknown; mount /proc} );
    return;
}

# The last line of the log, when nothing else of the server is left
sub _say_stopped {
    my $self = shift;
    Sirius::Log->note( 'stopped after ' . Sirius::Base::Text->age( now() - $self->{stop_began} ) )
        if $self->{stop_began};
    return;
}

sub _serves {
    my $self = shift;
    return 1 if !$self->ending || $self->{edge} && $self->{edge}->pid;
    return $self->{reload}->all || $self->{reload}->orphans || $self->{companions}->alive;
}

sub _slots {
    my $conf = shift->{conf};
    return min 8192, 4 * max( 8, $conf->{workers}, $conf->{workers_max} || 0 );
}

# What the process of the admin port needs of the server
sub _start_admin {
    my $self = shift;
    weaken( my $own = $self );
    return $self->{admin}->start(
        ( map { $_ => $self->{$_} } qw(alerts conf loop privileges reaper scoreboard) ),
        announced => sub { $own->{announced} },
        fallback  => sub { $own->{edge} && $own->{edge}->proven },
        trusted   => sub { $own->{edge} && defined $own->{edge}->fault ? $own->{edge}->proven : undef },
        is_ours   => sub { $own->{reload}->ours(shift) },
        memory_of => sub { $own->{reload}->memory },
        served    => [ map { $_->url } @{ $self->{listeners} } ],
    );
}

# Nobody is left to answer the edge's requests, which get 503: no worker had started when the stop came, or
# all had to be killed
sub _stop_edge {
    my $self = shift;
    my $all  = $self->{reload};
    return if !$self->{edge} || !$self->{stopping} || $all->all || $all->orphans || $self->{edge_stopped}++;
    return $self->{edge}->stop( 'INT', 1 );
}

sub _supervise {
    my $self = shift;
    my $all  = $self->{reload};
    while ( $self->_serves || $self->{admin}->end ) {
        my @signals = $self->{loop}->wait;
        $_->hear for $all, $self->{companions}, $self->_edges;
        $self->_heed($_) for grep { $STOPS{$_} } @signals;    # first: what a stop ends is not replaced
        $self->{reaper}->reap;
        $self->_heed($_) for grep { !$STOPS{$_} } @signals;
        $self->{control}->serve( sub { $self->{commands}->run(@_) } ) if $self->{control};
        $self->{loop}->act;
        $self->_stop_edge;
        $self->_renew( delete $self->{tried} ) if defined $self->{tried};    # signals are handled by now
        $self->_try                            if $self->_quiet && $self->_is_to_try;
    }
    $self->{alerts}->stop;
    $self->{commands}->stopped;
    return;
}

# Finds out whether the installed code can be loaded
sub _try {
    my $self  = shift;
    my $child = Sirius::Process::Renewal->try( ref $self, $self->{loop} ) or return;
    weaken( my $own = $self );
    $child->on_end( sub { $own->{tried} = $_[1]; delete $own->{trial} } );
    $self->{trial} = $self->{reaper}->add($child);
    return;
}

# Unless a stop was requested, the exit of the application is an error
END {
    if ( $alone && $alone->{alone} == $$ ) {
        my $status = $?;
        $alone->_exited($status);
        $? = $status || ( $alone->{stop_began} ? 0 : 1 );
    }
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Supervisor - the process that an operator starts, stops and reloads

=head1 SYNOPSIS

  use Sirius::Process::Supervisor;

  Sirius::Process::Supervisor->new(
      app       => $app,
      conf      => Sirius::Config::Values->parse({ workers => 4 }),
      listeners => \@listeners,
  )->run;

=head1 DESCRIPTION

The supervisor is the process whose PID never changes. It holds what outlives any other process: the listening sockets,
the sleepers, the scoreboard, the control socket, the admin port. It serves no request and sleeps until a signal
arrives (L<Sirius::OS::Loop>).

The workers are children of a L<Sirius::Process::Pool>, which has loaded the application. The first generation is a
fork of this process; a reload runs the original command again (L<Sirius::Process::Launch>). When all workers of the
new generation are ready, the old generation is told to stop, and its workers finish their requests; the connections
stay in the edges. If the new generation is not ready within C<--load-timeout>, the old one goes on, and clients notice
nothing (L<Sirius::Process::Reload>). Several reloads that are asked for during one cause one more after it, or replace
it if it takes much longer than the last one.

After a reload, when nothing else is under way, this process becomes a new program itself
(L<Sirius::Process::Renewal>).

As PID 1 it reaps the orphans it inherits.

=head1 SIGNALS

=head2 TERM, QUIT

Graceful stop: requests that have arrived are answered. After C<--graceful-timeout> seconds the rest is killed. With
C<--drain-delay> the server goes on serving for that time before (L<Sirius::Process::StopDelay>).

=head2 INT

Fast stop, as a second C<TERM>: requests that wait for a worker get 503, other connections without a running request are closed; after 1
second the workers are killed. Once more kills them at once.

=head2 HUP

Reload: new code, always.

=head2 USR1

Reopens the error log, in all processes.

=head2 USR2

Each worker writes a stack trace of what it is running.

=head2 TTIN, TTOU

One worker more, one less.

=head1 METHODS

=head2 announce

Logs once that the server listens.

=head2 began_to_stop, has_stop_begun

Notes that a stop was asked for; whether it was.

=head2 ending

True if the server is stopping and C<--drain-delay> is over.

=head2 is_announced, is_awaited, is_stopping

Whether L</announce> was called; whether the command of C<--daemonize> still waits for that; whether the server stops.

=head2 new

  my $supervisor = Sirius::Process::Supervisor->new(%args);

C<app>, or C<builder> (a sub that makes it, called in each worker); C<conf>, a hash from L<Sirius::Config::Options>; C<listeners>,
L<Sirius::Listen::Listener> objects; C<admin>, C<daemon> and C<pid_file>, a L<Sirius::Admin::Port>, a L<Sirius::Service::Daemon> and a
L<Sirius::Service::PidFile> or not; C<privileges>, a L<Sirius::Service::Privileges>.

=head2 quit

  $supervisor->quit($worker);

With C<--workers 0>: gives up the present request and exits.

=head2 reloaded

  $supervisor->reloaded( $result, @replies );

Answers the clients that have asked for a reload, as soon as the generations before it have ended.

=head2 renew_edges

  $supervisor->renew_edges($settings);

Call it when a reload is done: the edges get these settings, if there are any (L<Sirius::Edge::Group/renew>).

=head2 resume

  Sirius::Process::Supervisor->resume;

What the new program of a supervisor calls (L<Sirius::Process::Renewal>). Returns after a stop.

=head2 run

  $supervisor->run;

Returns after a stop, with all workers gone and C<%SIG> as before. With C<--workers 0> serves in this process.

=head2 say_stop

  $supervisor->say_stop( $signal, $why );

Logs the stop, once for each kind.

=head2 serve

The loop of L</run> and L</resume>.

=head2 set_workers

  $number = $supervisor->set_workers( $number, $why );

At least 1, at most what the scoreboard has room for.

=head2 stop

  $supervisor->stop('TERM');

=head2 tried

  Sirius::Process::Supervisor->tried($layout);

L<Sirius::Process::Renewal/tried>.

=head2 unopened

  $supervisor->unopened($text);

A process could not open a log anew after C<USR1>. Logs the text, once until the next C<USR1>.

=head2 workers_most

The most workers that this server can have until it is started anew.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Process::Reload>, L<Sirius::Admin::Port>, L<Sirius::Control::Commands>, L<Sirius::Process::Scaling>, L<Sirius::OS::Loop>.

=cut
