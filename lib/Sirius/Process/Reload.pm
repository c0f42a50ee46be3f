package Sirius::Process::Reload;

use strict;
use warnings;

use JSON::PP     ();
use List::Util   qw(max min);
use POSIX        qw(SIGTERM);
use Scalar::Util qw(weaken);
use Sirius::Base::Backoff;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::ExitStatus;
use Sirius::OS::Invocation;
use Sirius::OS::Proc;
use Sirius::OS::Reaper;
use Sirius::Process::SlowLog;

use constant {
    ERROR_MAX => 1000,    # characters of its error that are told to other processes
    SAID_MAX  => 2000,    # characters of the output of a failed generation that are shown
    UNKNOWN   => 5,       # assumed seconds of loading, before the first time is known
    ALL_HEAR  => 0.25,    # seconds between a signal that has ended a generation and the start of the next one
    LATE      => 2,       # seconds a generation has to end, in addition to the time its workers have
};

my $JSON = JSON::PP->new->canonical->ascii->allow_nonref;

# Gives up the generation that is loading. True if there was one
sub abort {
    my ( $self, $why ) = @_;
    my $loading = $self->{loading};
    return 0 if !$loading || !$self->_other($loading);
    $self->_give_up( $loading, $why );
    return 1;
}

sub act {
    my $self       = shift;
    my $replace_at = $self->_replace_at;
    $self->_give_up( $self->{loading}, 'a newer reload was requested' )
        if defined $replace_at && $replace_at <= now();
    $self->_look_for_hung($_) for $self->all;
    $self->_kill_late_orphans;
    return
           if $self->{supervisor}->ending
        || $self->{loading}
        || !defined $self->{again_at}
        || now() < $self->{again_at};
    delete $self->{again_at};
    $self->reload( undef, undef, 1 );
    return;
}

sub all {
    my $self = shift;
    my @all  = sort { $a->number <=> $b->number } @{ $self->{generations} };
    return @all;    # in scalar context: how many
}

sub begin {
    my $self = shift;
    return $self->started( $self->{launch}->here( ++$self->{last_number} ) );
}

# The serving generation: one with all its workers, otherwise one with some
sub current {
    my @serving = grep { !$_->is_draining && $_->is_up } reverse shift->all;
    my ($current) = ( grep( { $_->is_ready } @serving ), @serving );
    return $current;
}

sub due {
    my $self = shift;
    my @all  = $self->all;
    return grep {defined} values %{ $self->{late_orphans} }, $self->_replace_at,
        $self->{loading} || $self->{supervisor}->ending ? () : $self->{again_at},
        map( { $self->_late_at($_) } @all ), map( { $self->_hung_at($_) } @all );
}

sub hear {
    my $self = shift;
    $self->_hear($_) for $self->all;
    return;
}

sub last_reload { return shift->{last_reload} }

sub loading { return shift->{loading} }

# Private bytes of each worker, by its PID; undef where the kernel does not tell
sub memory {
    return map { $_ => Sirius::OS::Proc->private($_) } shift->_workers( sub {1} );
}

sub new {
    my ( $class, $supervisor, %args ) = @_;
    my $self = bless {
        backoff      => Sirius::Base::Backoff->new( interval => 1, free => 1 ),
        generations  => [],
        last_number  => 0,
        late_orphans => {},                                                     # when they are killed, by PID
        supervisor   => $supervisor,
        %args
    }, $class;
    weaken $self->{$_} for qw(edge supervisor);
    return $self;
}

# PIDs of workers that go on serving although their generation was killed, or was never one of the
# supervisor's; and of the parents of those
sub orphans {
    my $self   = shift;
    my %alive  = map  { $_->number => 1 } $self->all;
    my %known  = map  { $_->pid    => 1 } $self->{reaper}->children;
    my @all    = grep { !$known{$_} } $self->_workers( sub { !$alive{ shift->{generation} } } ) or return;
    my %member = map  { $_ => 1 } @all, $self->_workers( sub { $alive{ shift->{generation} } } );
    my %parent = map  { $_ => 1 } map { Sirius::OS::Proc->parent($_) } @all;
    return @all, $self->ours( grep { !$known{$_} && !$member{$_} } keys %parent );
}

# Those that descend from the supervisor. Not this process itself
sub ours {
    my ( $self, @pids ) = @_;
    my @above = ( $$, map { $_->pid } $self->all );
    return grep { $_ != $$ && Sirius::OS::Proc->descends( $_, @above ) } @pids;
}

# What the admin port shows of reloads. The output of a generation is cut so that everything fits
sub publish {
    my $self   = shift;
    my %news   = ( reloads => $self->{reloads} || { ok => 0, failed => 0 } );
    my @beside = $self->{companions}->status;
    $news{beside} = \@beside if @beside;
    my $said = '';
    if ( my $loading = $self->{loading} ) {
        $news{loading} = { number => $loading->number, since => $loading->since };
    }
    my $keeper = $self->{edge}->keeper;
    for my $what ( $keeper ? qw(certificates crls) : () ) {
        my @all = $keeper->$what;
        @all = ( sort { $a->{expires} <=> $b->{expires} } @all )[ 0 .. min 15, $#all ];
        $news{$what} = [ map { { expires => $_->{expires} + 0, name => substr $_->{name}, 0, 100 } } @all ]
            if @all;
    }
    if ( my $last = $self->{last_reload} ) {
        $news{last} = { map { $_ => $last->{$_} } grep { defined $last->{$_} } qw(at error ok seconds text) };
        $said       = defined $last->{said} ? substr $last->{said}, 0, SAID_MAX : '';
        defined and $_ = substr $_, 0, ERROR_MAX for @{ $news{last} }{qw(error text)};
    }
    while (1) {
        $news{last}{said} = $said if $news{last} && length $said;
        return                    if $self->{scoreboard}->tell( $JSON->encode( \%news ) ) || !length $said;
        $said = substr $said, 0, length($said) / 2;
        delete $news{last}{said};
    }
    return;
}

sub reload {
    my ( $self, $reply, $why, $again ) = @_;
    if ( my $loading = $self->{loading} ) {    # it may have read the files before this request
        push @{ $self->{after} }, [ $reply, $why ];
        return;
    }
    $self->{systemd}->notify( 'RELOADING=1', sprintf 'MONOTONIC_USEC=%.0f', now() * 1e6 ) if !$again;
    my $generation = eval { $self->{launch}->program( ++$self->{last_number} ) };
    return $self->_begun( $generation, $reply, $why, $again ) if $generation;
    chomp( my $error = $@ );
    return $self->_again("cannot start another generation: $error") if $again;
    $self->_renew_certificates;
    $error = "reload failed: $error";
    $self->_remember( { ok => 0, error => $error } );
    $reply->(         { ok => 0, error => $error } ) if $reply;
    return $self->current ? Sirius::Log->error($error) : $self->_again($error);
}

# True once after each reload
sub renewed { return delete shift->{renewed} }

# Whether one generation serves and nothing is under way
sub settled {
    my $self = shift;
    return !$self->{loading} && !defined $self->{again_at} && 1 == $self->all;
}

sub signal {
    my ( $self, $signal ) = @_;
    $_->signal($signal) for $self->all;
    return;
}

sub started {
    my ( $self, $generation ) = @_;
    push @{ $self->{generations} }, $generation;
    $self->{loop}->watch($_) for $generation->handles;
    weaken( my $own     = $self );
    weaken( my $started = $generation );
    $generation->child->on_end( sub { $own->_ended( $started, $_[1] ) } );
    $self->{reaper}->add( $generation->child );
    return;
}

sub state {
    my $self = shift;
    return { map { $_ => $self->{$_} } qw(last_number last_reload late_orphans reloads usual) };
}

# Ends all of them within so many seconds
sub stop {
    my ( $self, $signal, $grace ) = @_;
    my $until = now() + $grace + LATE;
    $self->_end_by( $_, $_->is_up ? $until : now() + LATE )
        for $self->all;    # one that still loads has no requests
    $self->_limit_orphans($until);
    return $self->signal($signal);
}

# Passes what an edge says of a worker to the worker's generation. If that was killed, nobody else is
# responsible
sub tell {
    my ( $self, $pid, $what, $why ) = @_;
    my ($row)        = grep { $_->{pid} == $pid } $self->{scoreboard}->table or return;
    my ($generation) = grep { $_->number == $row->{generation} } $self->all;
    return $generation->tell("$pid $what $why") if $generation;
    return                                      if !grep { $_ == $pid } $self->orphans;
    return Sirius::Process::SlowLog->without( $pid, $why, 'its generation was killed' ) if $what eq 'slow';
    Sirius::Log->error("worker $pid: $why");
    kill KILL => $pid;
    return;
}

# The serving generation has ended: its workers go on, but nobody would replace them
sub _again {
    my ( $self, $how, $asked ) = @_;
    my $level   = $asked ? 'note' : 'error';
    my $loading = $self->{loading};
    if ( $loading && !defined $loading->gave_up ) {
        return Sirius::Log->$level(
            "$how; generation " . $loading->number . ', which is starting, takes its place' );
    }

    # A signal that ended it was often meant for the whole server: a signal to all its processes reaches the
    # supervisor in a moment
    if ($asked) {
        Sirius::Log->note($how);
        $self->{again_at} = now() + ALL_HEAR;
        return $self->publish;
    }
    my $delay = $self->{backoff}->failed;
    Sirius::Log->error( $how . ( $delay ? "; next attempt in $delay s" : '; starting another' ) );
    $self->{again_at} = now() + $delay;
    return $self->publish;    # nothing is being loaded now
}

# It loads the application
sub _begun {
    my ( $self, $generation, $reply, $why, $again ) = @_;
    $generation->reloads( $reply, $again );
    $self->{loading} = $generation;
    my $number = $generation->number;
    Sirius::Log->note(
        $again
        ? "starting generation $number in place of the one that exited"
        : "reload started as generation $number: " . ( $why || 'requested during the previous reload' )
    );
    $self->started($generation);
    return $self->publish;
}

# The generation serves: those before it drain
sub _complete {
    my ( $self, $generation ) = @_;
    return if defined $generation->gave_up;
    my $supervisor = $self->{supervisor};
    $self->{backoff}->ready;
    delete $self->{again_at};
    my $fallen = delete $self->{fallen};
    $self->{renewed} = $generation->is_reload;
    $self->_runs_beside($generation);
    $self->_drain($_) for grep { $_->number < $generation->number && !$_->is_draining } $self->all;
    $self->{usual} = $generation->is_reload ? $generation->age : Sirius::OS::Invocation->age;

    if ( !$generation->is_reload ) {
        return $self->_say_ready;
    }
    $self->_number( $generation->workers );
    $supervisor->renew_edges( $generation->edge );
    $self->_end_orphans;    # others serve now
    my $serves = 'generation ' . $generation->number . ' is serving';

    if ( $generation->replaces ) {
        Sirius::Log->note( $fallen ? "$serves in place of $fallen" : $serves );
        $self->publish if !$self->_settle;
    } else {
        Sirius::Log->note(
            'reload completed in ' . Sirius::Base::Text->age( $generation->age ) . ": $serves" );
        $self->_reloaded( $generation, { ok => 1, text => $serves } );
    }
    $self->{systemd}->notify( 'READY=1', "MAINPID=$$", "STATUS=$serves" ) if !$supervisor->is_stopping;
    return;
}

# The generation has not ended in time. Kills it and its workers, as nobody else would
sub _did_not_end {
    my ( $self,   $generation ) = @_;
    my ( $number, $pid )        = ( $generation->number, $generation->pid );
    my @pids = $self->_workers( sub { shift->{generation} == $number } );
    Sirius::Log->warn("generation $number did not stop in time and was killed: $pid @pids")
        if !defined $generation->gave_up || $generation->is_up;
    $generation->signal('KILL');
    kill KILL => @pids;
    return;
}

sub _drain {
    my ( $self, $generation ) = @_;
    weaken( my $own = $self );
    my $until = now() + $self->{conf}{graceful_timeout} + LATE;
    return $generation->drain( $until, sub { $own->_did_not_end(shift) } );
}

# A generation that was told to end has ended
sub _drained {
    my ( $self, $generation, $status, $how ) = @_;
    $self->_end_orphans                  if $self->current;                 # it has not told them
    return $self->_given_up($generation) if defined $generation->gave_up;

    # A reload has overtaken the start: nothing was begun, and what stops it is the end of a warm-up
    my $overtaken = $generation->is_warming && ( $status & 127 ) == SIGTERM;
    Sirius::Log->error($how) if $status && !$overtaken;
    return;
}

sub _end_by {
    my ( $self, $generation, $until ) = @_;
    weaken( my $own = $self );
    return $generation->end_by( $until, sub { $own->_did_not_end(shift) } );
}

# They finish their requests, within the same time as the workers of a generation that drains. Once: a second
# TERM would stop them
sub _end_orphans {
    my $self = shift;
    my @new  = grep { !defined $self->{late_orphans}{$_} } $self->orphans;
    kill TERM => @new;

    # Those that nobody adopts, as on macOS, are not found: they begin no request any more
    Sirius::Edge::Shared->hold( fileno $self->{sleepers}, $self->current->number - 1 )
        if $self->current && !Sirius::OS::Reaper->adopt;
    return $self->_limit_orphans( now() + $self->{conf}{graceful_timeout} + LATE );
}

sub _ended {
    my ( $self, $generation, $status ) = @_;
    $self->_forget($generation);
    my $words = _words( $generation, $status );
    my $how   = 'generation ' . $generation->number . " $words";
    $how .= ' during the warm-up' if $generation->is_warming && !defined $generation->hung;
    if ( $self->{supervisor}->ending ) {
        Sirius::Log->error($how) if defined $generation->hung;
        return;
    }
    return $self->_drained( $generation, $status, $how ) if $generation->is_draining;
    return $self->_given_up($generation)                 if defined $generation->gave_up;
    return $self->_failed( $generation, $how )           if !$generation->is_ready && $self->current;
    Sirius::Log->fail("$how: the server cannot start")
        if $self->{supervisor}->is_awaited || $generation->is_warming && !$generation->is_reload;

    # The next one replaces the last generation that served, not later ones that were to replace it and failed
    $self->{fallen} = 'generation ' . $generation->number . ", which $words"
        if $generation->is_ready || !$self->{fallen};
    $self->_not_reloaded( $generation, "reload failed: $how" )
        if $generation->is_reload && !$generation->replaces && !$generation->is_ready;
    return $self->_again( $how, defined $generation->asked && !$status && $generation->is_ready );
}

sub _failed {
    my ( $self, $generation, $how ) = @_;
    my $error = "reload failed: $how; generation " . $self->current->number . ' keeps serving';
    Sirius::Log->error($error);
    $self->{systemd}->notify( 'READY=1', 'STATUS=the last reload failed' );
    return $self->_reloaded( $generation, { ok => 0, error => $error } );
}

# A generation has ended: removes it, and what it has left
sub _forget {
    my ( $self, $generation ) = @_;
    my $number = $generation->number;
    $self->_hear($generation);
    $self->{generations} = [ grep { $_ != $generation } @{ $self->{generations} } ];
    delete $self->{loading} if $generation == ( $self->{loading} || 0 );
    $self->{alerts}->begin;    # nobody has passed on the last reports of its workers
    $self->{loop}->unwatch($_) for $generation->handles;
    $self->{scoreboard}->clear($number);
    return;
}

# Gives up a reload. Workers that serve already finish their requests; otherwise there is nothing to finish
sub _give_up {
    my ( $self, $generation, $why ) = @_;
    $generation->give_up($why);
    if ( $generation->is_up ) {
        $self->_drain($generation);
        return $self->_given_up($generation);
    }
    $self->_end_by( $generation, now() + LATE );
    return $generation->signal('TERM');
}

# Once the generation is gone, or serves nothing new
sub _given_up {
    my ( $self, $generation ) = @_;
    return if $generation->told;
    my $current = $self->current;                            # it may have been killed meanwhile
    my $what    = sprintf 'reload aborted after %s: %s%s',
        Sirius::Base::Text->age( $generation->took ), $generation->gave_up,
        $current ? '; generation ' . $current->number . ' keeps serving' : '';
    if ( $self->{after} ) {    # a client that waits for this one gets the next one
        Sirius::Log->note($what);
        push @{ $self->{after} }, map { [$_] } $generation->replies;
    } else {
        Sirius::Log->error($what);
    }
    $self->{systemd}->notify( 'READY=1', 'STATUS=the last reload was aborted' );
    return $self->_reloaded( $generation, { ok => 0, error => $what } );
}

sub _hear {
    my ( $self, $generation ) = @_;
    my $supervisor = $self->{supervisor};
    for my $news ( $generation->hear( $self->{loop} ) ) {
        my ( $what, $more ) = @$news;
        if    ( $what eq 'trouble' )  { $self->{alerts}->begin }
        elsif ( $what eq 'unopened' ) { $supervisor->unopened($more) }
        elsif ( $what eq 'up' )       { $self->_up($generation) }
        elsif ( $what eq 'ready' )    { $self->_complete($generation) }
        else                          { $self->_heard( $generation, $what, $more ) }
    }
    return;
}

# What only sirius dev wants to know
sub _heard {return}

# When a hook in a generation reaches its limit; the generation hears nothing meanwhile
sub _hung_at {
    my ( $self, $generation ) = @_;
    my $limit = $self->_limit;
    my $hook  = $generation->hook;
    return if !$limit || !$hook || $hook->{of} ne 'generation';
    return if grep {defined} $generation->gave_up, $generation->hung;
    return $hook->{at} + $limit;
}

sub _kill_late_orphans {
    my $self  = shift;
    my $limit = $self->{late_orphans};
    my @late  = grep { $limit->{$_} <= now() } keys %$limit or return;
    delete @{$limit}{@late};
    my %is = map { $_ => 1 } $self->orphans;
    @late = sort { $a <=> $b } grep { $is{$_} } @late or return;    # others have ended
    Sirius::Log->warn("workers of a generation that has ended did not finish in time and were killed: @late");
    kill KILL => @late;
    return;
}

# When a reload reaches its limit
sub _late_at {
    my ( $self, $generation ) = @_;
    my $limit = $self->_limit;
    return
           if !$limit
        || !$generation->is_reload
        || grep {defined} map { $generation->$_ } qw(is_ready gave_up is_late hung);
    return $generation->since + $limit;
}

sub _limit { return shift->{conf}{load_timeout} }

sub _limit_orphans {
    my ( $self, $until ) = @_;
    my $limit = $self->{late_orphans};
    $limit->{$_} = min grep {defined} $limit->{$_}, $until for $self->orphans;
    return;
}

sub _look_for_hung {
    my ( $self, $generation ) = @_;
    my $late  = $self->_late_at($generation);
    my $hung  = $self->_hung_at($generation);
    my $limit = sprintf '%g s (--load-timeout)', $self->_limit;
    my $hook  = $generation->hook;
    if ( defined $late && $late <= now() ) {
        my $where
            = $hook              ? " while running $hook->{name}"
            : $generation->is_up ? ''
            :                      ' while loading the application';
        return $self->_give_up( $generation,
            'generation ' . $generation->number . " was not ready within $limit$where" )
            if $self->_other($generation);
        $generation->be_late;
        return if $generation->is_up;    # there will be no other workers
        $generation->be_hung("was not ready within $limit$where");
    } elsif ( defined $hung && $hung <= now() ) {
        $generation->be_hung("was killed: $hook->{name} ran for more than $limit");
    }
    return;
}

# Those who asked for the reload get the output of the generation
sub _not_reloaded {
    my ( $self, $generation, $error ) = @_;
    my $result = { ok => 0, error => $error, said => $generation->said =~ s/\s+\z//r };
    $self->_renew_certificates if !$self->{after};    # otherwise the next reload does
    $self->_remember( $result, $generation );
    $_->($result) for $generation->replies;
    return;
}

# Applies the number of workers that the program of a reload was given. Only if it has changed since the last
# time: the operator may have set another number meanwhile
sub _number {
    my ( $self, $low, $most ) = @_;
    my $conf = $self->{conf};
    return if !defined $low || $low == $conf->{workers} && $most == $conf->{workers_max};
    return Sirius::Log->warn('workers = 0 takes effect only after a restart of the server') if !$low;
    @{$conf}{qw(workers workers_max)} = ( $low, $most );
    my $wanted = max $low, min $most, $self->{scoreboard}->workers;
    my $number = $self->{supervisor}->set_workers( $wanted, 'set by the reloaded configuration' );
    Sirius::Log->warn("only $number workers are possible, not $wanted, until the server is restarted")
        if $number < $wanted;
    return;
}

# Whether a generation other than this one serves
sub _other {
    my ( $self, $generation ) = @_;
    return scalar grep { $_ != $generation && !$_->is_draining && $_->is_up } $self->all;
}

# The end of a reload, successful or not; starts the next one if it was requested meanwhile
sub _reloaded {
    my ( $self, $generation, $result ) = @_;
    delete $self->{loading};    # before others are told the outcome
    if ( $result->{ok} ) {
        $self->_remember( $result, $generation );
        $self->{supervisor}->reloaded( $result, $generation->replies );
    } else {
        $self->_not_reloaded( $generation, $result->{error} );
    }
    return $self->_settle;
}

# Records the outcome of a reload. Without a generation, the reload could not begin
sub _remember {
    my ( $self, $result, $generation ) = @_;
    my $seconds = $generation ? $generation->age : 0;
    $self->{last_reload} = { %$result, at => time, seconds => sprintf( '%.3f', $seconds ) + 0 };
    $self->{reloads} ||= { ok => 0, failed => 0 };
    $self->{reloads}{ $result->{ok} ? 'ok' : 'failed' }++;
    return $self->publish;
}

# The reload may have been meant for those: they are read, whatever has become of the application
sub _renew_certificates {
    return shift->{edge}->renew_certificates;
}

# When the running reload gives way to a newer one: if it takes twice as long as the last, it may hang. Not
# earlier, or none would finish when requests come faster than the application loads
sub _replace_at {
    my $self    = shift;
    my $loading = $self->{loading};
    return if !$self->{after} || !$loading || defined $loading->gave_up || !$self->_other($loading);
    return $loading->since + 1 + 2 * ( $self->{usual} || UNKNOWN );
}

# The commands of --beside belong to the generation that serves
sub _runs_beside {
    my ( $self, $generation ) = @_;
    return if $self->{supervisor}->is_stopping;
    return $self->{companions}->follow( $generation->number, $generation->beside );
}

sub _say_ready {
    my $self   = shift;
    my $number = $self->{scoreboard}->workers;
    Sirius::Log->note(
        sprintf 'ready after %s: %s',
        Sirius::Base::Text->age( Sirius::OS::Invocation->age ),
        $number == 1 ? '1 worker is serving' : "$number workers are serving"
    );
    return;
}

# Nothing is being loaded any more: starts the next reload if it was requested meanwhile
sub _settle {
    my $self = shift;
    delete $self->{loading};
    my @after   = @{ delete $self->{after} || [] } or return 0;
    my @replies = grep {defined} map { $_->[0] } @after;
    my ($why)   = grep {defined} map { $_->[1] } reverse @after;
    $self->reload( @replies ? sub { $_->(@_) for @replies } : undef, $why );    # one reload for all of them
    return 1;
}

# The first worker of a generation is ready
sub _up {
    my ( $self, $generation ) = @_;
    $self->{supervisor}->announce;
    $self->_runs_beside($generation) if !$self->{companions}->number;
    return;
}

# How it has ended
sub _words {
    my ( $generation, $status ) = @_;
    return $generation->hung                         if defined $generation->hung;
    return 'was terminated by ' . $generation->asked if defined $generation->asked && !$status;
    return Sirius::OS::ExitStatus->words( $status, '' );
}

# PIDs of the rows for which the code returns true. Workers write their rows themselves, and an attacker may
# control one: it must not choose which process is killed by this one, which may be root's. So only what
# descends from this one counts
sub _workers {
    my ( $self, $wanted ) = @_;
    return $self->ours(
        map  { $_->{pid} }
        grep { $_->{pid} > 0 && $wanted->($_) } $self->{scoreboard}->table
    );
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Reload - starts generations, and replaces one with the next at a reload

=head1 SYNOPSIS

  use Sirius::Process::Reload;

  my $reload = Sirius::Process::Reload->new( $supervisor, %args );
  $reload->begin;
  $reload->reload;

=head1 DESCRIPTION

One generation serves. During a reload another one loads the application. When all its workers are ready, the old
generation gets C<TERM>, and is gone after C<--graceful-timeout> at the latest. A generation that ends before it is
ready has failed: its output is kept for the client that asked for the reload, and the old generation goes on. If
the new program was given another number of workers, that number holds from when it serves. A generation that dies
while it serves is replaced, at once, then after 1, 2, 4 ... 30 seconds; its workers go on serving until the next one
is ready.

=head1 METHODS

=head2 abort

  my $bool = $reload->abort($why);

Gives up a reload that is under way, if another generation serves.

=head2 act

Does what is due: gives up a reload that takes too long, starts the next attempt.

=head2 all

The generations, oldest first: L<Sirius::Process::Generation> objects.

=head2 begin

Starts the first.

=head2 current

The one that serves.

=head2 due

The monotonic times at which L</act> has something to do.

=head2 hear

Reads what the generations have to tell, and does what follows from it.

=head2 last_reload

How the last reload went: a hash with C<ok>, C<at>, C<seconds>, and C<text>, or C<error> and C<said>.

=head2 loading

The generation that is being loaded by a reload, if there is one.

=head2 memory

  my %bytes = $reload->memory;

The private memory of each worker, by its PID; undef where the kernel does not tell.

=head2 new

  my $reload = Sirius::Process::Reload->new( $supervisor, %args );

C<alerts>, C<companions>, C<conf>, C<edge>, C<launch> (L<Sirius::Process::Launch>), C<loop>, C<reaper>, C<scoreboard> and C<systemd> of the server; and
what L</state> has returned in the program before this one.

=head2 orphans

The PIDs of workers whose generation was killed.

=head2 ours

  my @ours = $reload->ours(@pids);

Those that descend from this process.

=head2 reload

  $reload->reload($reply);

Starts a reload, or records that one more is wanted if one is under way.

=head2 renewed

True once after each reload.

=head2 settled

True if there is one generation and nothing is under way.

=head2 signal

  $reload->signal('USR1');

Sends the signal to all generations. One that still loads would die by it, and gets it when it is ready for it; C<INT>
and C<TERM> are sent at once.

=head2 started

  $reload->started($generation);

Takes charge of what L<Sirius::Process::Launch> has made. When the end of it is that of the start of a daemon, whose command waits
for the outcome, that dies.

=head2 state

What another program of the supervisor needs to go on.

=head2 stop

  $reload->stop( 'TERM', $seconds );

=head2 tell

  $reload->tell( $pid, 'timeout', $text );

Passes a report of the edge about a worker to the worker's generation.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Process::Launch>, L<Sirius::Process::Pool>.

=cut
