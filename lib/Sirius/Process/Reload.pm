package Sirius::Process::Reload;

use strict;
use warnings;

use JSON::PP     ();
use List::Util   qw(max min);
use Scalar::Util qw(weaken);
use Sirius::Base::Text;
use Sirius::Log ();
use Sirius::OS::ExitStatus;
use Sirius::OS::Inherit;
use Sirius::OS::Invocation;
use Sirius::OS::Proc;
use Sirius::Process::Launch;
use Socket      qw(MSG_NOSIGNAL);
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

use constant {
    BACKOFF_MAX => 30,      # seconds between two attempts to start a generation in place of one that died
    ERROR_MAX   => 8192,    # characters of what a generation that failed has said
    SAID_MAX    => 2000,    # and of that, what others see
    UNKNOWN     => 5,       # seconds that loading is taken to need as long as it has not been seen
    ALL_HEAR    => 0.25,    # seconds from a signal to a generation until another one is started in its place
    LATE        => 2,       # seconds more than its workers have, that a generation gets to end
};

my $JSON = JSON::PP->new->canonical->ascii->allow_nonref;

# What loads now is given up, in favour of what serves. True when there was something
sub abort {
    my ( $self, $why ) = @_;
    my $loading = $self->{loading};
    return 0 if !$loading || !$self->_other($loading);
    $self->_give_up( $loading, $why );
    return 1;
}

sub all {
    my $self = shift;
    my @all  = sort { $a->{number} <=> $b->{number} } values %{ $self->{by_pid} };
    return @all;    # in scalar context their number
}

sub begin {
    my $self = shift;
    return $self->started( Sirius::Process::Launch->here( $self->{supervisor}, ++$self->{last_number} ) );
}

sub child {
    my ( $self, $pid ) = @_;
    return $self->{by_pid}{$pid};
}

# The one that serves: with all its workers, or some as yet
sub current {
    my @serving = grep { !$_->{old} && $_->{up} } reverse shift->all;
    my ($current) = ( grep( { $_->{ready} } @serving ), @serving );
    return $current;
}

sub deadlines {
    my $self = shift;
    for my $generation ( grep { defined $_->{deadline} && $_->{deadline} <= _now() } $self->all ) {
        delete $generation->{deadline};
        my @pids = $self->_workers( sub { shift->{generation} == $generation->{number} } );
        Sirius::Log->warn(
            "generation $generation->{number} did not stop in time and was killed: $generation->{pid} @pids")
            if !defined $generation->{given_up} || $generation->{up};
        kill KILL => $generation->{pid}, @pids;
    }
    my $replace_at = $self->_replace_at;
    $self->_give_up( $self->{loading}, 'a newer reload was requested' )
        if defined $replace_at && $replace_at <= _now();
    $self->_look_for_hung($_) for $self->all;
    if ( defined $self->{orphans_until} && $self->{orphans_until} <= _now() ) {
        delete $self->{orphans_until};
        kill KILL => $self->orphans;
    }
    return
           if $self->{supervisor}->ending
        || $self->{loading}
        || !defined $self->{again_at}
        || _now() < $self->{again_at};
    delete $self->{again_at};
    $self->reload( undef, undef, 1 );
    return;
}

sub due {
    my $self = shift;
    my @all  = $self->all;
    return grep {defined} $self->{orphans_until}, $self->_replace_at,
        $self->{loading} || $self->{supervisor}->ending ? () : $self->{again_at},
        map( { $_->{deadline} } @all ),
        map( { $self->_late_at($_) } @all ), map( { $self->_hung_at($_) } @all );
}

sub hear {
    my ( $self, $generation ) = @_;
    1 while sysread $generation->{news}, $generation->{heard}, 4096, length $generation->{heard};
    while ( $generation->{heard} =~ s/\A([^\n]*)\n// ) {
        my $what = $1;    # it may have lost its rights, and this process not
        $generation->{workers} = [ $1, $2 ] if $what =~ /\Aworkers (\d{1,4}) (\d{1,4})\z/;
        $generation->{edge}    = _bytes($1) if $what =~ /\Aedge (\[.*\])\z/;
        $self->{supervisor}{watch}->begin if $what eq 'trouble';
        if ( $what =~ /\Ahook (generation|worker) (\w{1,20})\z/ ) {
            $generation->{hook}
                = $2 eq 'none' ? undef : { of => $1, name => "--$2" =~ tr/_/-/r, at => _now() };
        }
        $generation->{asked} = Sirius::Base::Text->harmless( substr $1, 0, 200 )
            if $what =~ /\Aasked ((?:INT|QUIT|TERM) from .*)\z/;
        $self->{supervisor}->unopened( Sirius::Base::Text->harmless( substr $1, 0, 1000 ) )
            if $what =~ /\Aunopened (--(?:access|error)-log .*)\z/;
        $self->_note_said( $generation, $1 ) if $what =~ /\Asaid (.*)\z/;
        next                                 if $what !~ /\A(?:ready|up)\z/;
        $generation->{$what} = 1;
        $self->{supervisor}->announce if $what eq 'up';
        kill $_ => $generation->{pid} for $what eq 'up' ? keys %{ delete $generation->{missed} || {} } : ();
        $self->_complete($generation) if $what eq 'ready';
    }
    return if !$generation->{stderr};

   # What it says while it loads goes where it would have gone, and is remembered for who asked for the reload
    while ( sysread $generation->{stderr}, my $text, 65536 ) {
        Sirius::Log->pass($text);
        $generation->{said} = substr $generation->{said} . $text, -ERROR_MAX();
    }
    return;
}

# A generation has ended
sub lost {
    my ( $self, $generation, $status ) = @_;
    my $supervisor = $self->{supervisor};
    $self->hear($generation);
    delete $self->{by_pid}{ $generation->{pid} };
    delete $self->{loading} if $generation == ( $self->{loading} || 0 );
    $supervisor->{watch}->begin;    # nobody has passed on what its workers have said last
    $supervisor->{signals}->unwatch($_) for grep {defined} @{$generation}{qw(news stderr)};
    $supervisor->{scoreboard}->release( $_->{slot} )    # claimed, and killed before the fork

        for grep { $_->{pid} < 0 && $_->{generation} == $generation->{number} } $supervisor->rows;
    if ( $supervisor->ending ) {
        Sirius::Log->error("generation $generation->{number} $generation->{hung}")
            if defined $generation->{hung};
        return;
    }
    kill TERM => $self->orphans if $generation->{old} && $self->current;    # it has not told them
    return $self->_given_up($generation) if defined $generation->{given_up};
    return                               if $generation->{old} && !$status;
    my $words
        = defined $generation->{hung}              ? $generation->{hung}
        : defined $generation->{asked} && !$status ? "was terminated by $generation->{asked}"
        :                                            Sirius::OS::ExitStatus->words( $status, '' );
    my $how = "generation $generation->{number} $words";
    return Sirius::Log->error($how)            if $generation->{old};
    return $self->_failed( $generation, $how ) if !$generation->{ready} && $self->current;
    Sirius::Log->fail("$how: the server cannot start")
        if $supervisor->{daemon} && !$supervisor->{announced};

    # The last one that served is what another replaces, not those that were to replace it and have failed
    $self->{fallen} = "generation $generation->{number}, which $words"
        if $generation->{ready} || !$self->{fallen};
    $self->_not_reloaded( $generation, "reload failed: $how" )
        if $generation->{reload} && !$generation->{replacement} && !$generation->{ready};
    return $self->_again( $how, defined $generation->{asked} && !$status && $generation->{ready} );
}

sub new {
    my ( $class, $supervisor, %state ) = @_;
    my $self = bless { by_pid => {}, failures => 0, last_number => 0, supervisor => $supervisor, %state },
        $class;
    weaken $self->{supervisor};
    return $self;
}

# PIDs of workers whose generation was killed under them, and that have served on
sub orphans {
    my $self  = shift;
    my %alive = map { $_->{number} => 1 } $self->all;
    return $self->_workers( sub { !$alive{ shift->{generation} } } );
}

sub reload {
    my ( $self, $reply, $why, $again ) = @_;
    if ( my $loading = $self->{loading} ) {    # what it has read may be older than this wish
        push @{ $self->{after} }, [ $reply, $why ];
        return;
    }
    $self->{supervisor}{systemd}->notify( 'RELOADING=1', sprintf 'MONOTONIC_USEC=%.0f', _now() * 1e6 )
        if !$again;
    my $generation = eval { Sirius::Process::Launch->program( $self->{supervisor}, ++$self->{last_number} ) };
    if ($generation) {
        @{$generation}{qw(reload replacement replies)} = ( 1, $again, [$reply] );
        $self->{loading} = $generation;
        my $number = $generation->{number};
        Sirius::Log->note(
            $again
            ? "starting generation $number in place of the one that exited"
            : "reload started as generation $number: " . ( $why || 'requested during the previous reload' )
        );
        $self->started($generation);
        return $self->_publish;
    }
    chomp( my $error = $@ );
    return $self->_again("cannot start another generation: $error") if $again;
    $error = "reload failed: $error";
    $self->_remember( { ok => 0, error => $error } );
    $reply->(         { ok => 0, error => $error } ) if $reply;
    return $self->current ? Sirius::Log->error($error) : $self->_again($error);
}

# True once after each reload
sub renewed {
    my $self = shift;
    return delete $self->{renewed};
}

# One generation that serves, and nothing under way
sub settled {
    my $self = shift;
    return !$self->{loading} && !defined $self->{again_at} && 1 == $self->all;
}

# A program that still loads has no handlers: it would die of it. It gets it when it is up
sub signal {
    my ( $self, $signal ) = @_;
    for my $generation ( $self->all ) {
        if ( $generation->{up} || $signal =~ /\A(?:INT|TERM)\z/ ) { kill $signal => $generation->{pid} }
        else                                                      { $generation->{missed}{$signal} = 1 }
    }
    return;
}

sub started {
    my ( $self, $generation ) = @_;
    $generation->{heard} = '';
    $generation->{since} ||= _now();
    $self->{by_pid}{ $generation->{pid} } = $generation;
    $self->{supervisor}{signals}->watch($_) for grep {defined} @{$generation}{qw(news stderr)};
    $self->hear($generation);    # what it said before it was watched has raised no signal
    return;
}

# All of them end, in so many seconds
sub stop {
    my ( $self, $signal, $grace ) = @_;
    my $deadline = _now() + $grace + LATE;
    $_->{deadline}         = min grep {defined} $_->{deadline},         $deadline for $self->all;
    $self->{orphans_until} = min grep {defined} $self->{orphans_until}, $deadline if $self->orphans;
    return $self->signal($signal);
}

# What the edge says of a worker goes to its generation. One whose generation was killed has nobody else
sub tell {
    my ( $self, $pid, $what, $why ) = @_;
    my ($row)        = grep { $_->{pid} == $pid } $self->{supervisor}->rows or return;
    my ($generation) = grep { $_->{number} == $row->{generation} } $self->all;
    return send $generation->{news}, "$pid $what $why\n", MSG_NOSIGNAL if $generation;
    return if !grep { $_ == $pid } $self->orphans;
    Sirius::Log->error("worker $pid: $why");
    kill KILL => $pid;
    return;
}

# What was written down as JSON
sub _bytes {
    my $json = shift;
    return Sirius::OS::Inherit->bytes( eval { $JSON->decode($json) } );
}

# It serves: those before it drain
sub _complete {
    my ( $self, $generation ) = @_;
    return if defined $generation->{given_up};
    $self->{failures} = 0;
    delete $self->{again_at};
    my $fallen = delete $self->{fallen};
    $self->{renewed} = $generation->{reload};
    for my $old ( grep { $_->{number} < $generation->{number} && !$_->{old} } $self->all ) {
        $self->_retire($old);
    }
    $self->{usual} = $generation->{reload} ? _now() - $generation->{since} : Sirius::OS::Invocation->age;
    if ( !$generation->{reload} ) {
        my $number = $self->{supervisor}{scoreboard}->workers;
        return Sirius::Log->note(
            sprintf 'ready after %s: %s',
            Sirius::Base::Text->age( Sirius::OS::Invocation->age ),
            $number == 1 ? '1 worker is serving' : "$number workers are serving"
        );
    }
    $self->_number( @{ $generation->{workers} || [] } );
    my $edge = $self->{supervisor}{edge};
    $self->{supervisor}->reopen_access_log     if $edge;    # else its workers have opened it
    $edge->renew( delete $generation->{edge} ) if $edge && $generation->{edge};
    kill TERM => $self->orphans;                            # there are others now
    my $serves = "generation $generation->{number} is serving";

    if ( $generation->{replacement} ) {
        Sirius::Log->note( $fallen ? "$serves in place of $fallen" : $serves );
        $self->_publish if !$self->_settle;
    } else {
        Sirius::Log->note(
            'reload completed in ' . Sirius::Base::Text->age( _now() - $generation->{since} ) . ": $serves" );
        $self->_reloaded( $generation, { ok => 1, text => $serves } );
    }
    $self->{supervisor}{systemd}->notify( 'READY=1', "MAINPID=$$", "STATUS=$serves" )
        if !$self->{supervisor}{stopping};
    return;
}

# A reload that is not to be. Where some workers serve already they finish what they have; else there is nothing to finish
sub _give_up {
    my ( $self, $generation, $why ) = @_;
    $generation->{given_up} = $why;
    $generation->{took}     = _now() - $generation->{since};
    if ( $generation->{up} ) {
        $self->_retire($generation);
        return $self->_given_up($generation);
    }
    $generation->{deadline} = _now() + LATE;
    kill TERM => $generation->{pid};
    return;
}

# Once it is gone, or serves nothing new
sub _given_up {
    my ( $self, $generation ) = @_;
    return if $generation->{told}++;
    my $current = $self->current;                            # it may have been killed meanwhile
    my $what    = sprintf 'reload aborted after %s: %s%s',
        Sirius::Base::Text->age( $generation->{took} ), $generation->{given_up},
        $current ? "; generation $current->{number} keeps serving" : '';
    if ( $self->{after} ) {                                  # who waits for this one gets the next
        Sirius::Log->note($what);
        push @{ $self->{after} }, map { [$_] } @{ delete $generation->{replies} };
    } else {
        Sirius::Log->error($what);
    }
    $self->{supervisor}{systemd}->notify( 'READY=1', 'STATUS=the last reload was aborted' );
    return $self->_reloaded( $generation, { ok => 0, error => $what } );
}

# When a hook in a generation has had its time: it hears nothing meanwhile
sub _hung_at {
    my ( $self, $generation ) = @_;
    my $limit = $self->{supervisor}{conf}{load_timeout};
    my $hook  = $generation->{hook};
    return if !$limit || !$hook || $hook->{of} ne 'generation';
    return if grep { defined $generation->{$_} } qw(given_up hung);
    return $hook->{at} + $limit;
}

# When a reload has had its time
sub _late_at {
    my ( $self, $generation ) = @_;
    my $limit = $self->{supervisor}{conf}{load_timeout};
    return
           if !$limit
        || !$generation->{reload}
        || grep { defined $generation->{$_} } qw(ready given_up late hung);
    return $generation->{since} + $limit;
}

# When the present reload gives way to the newer one that waits: if it takes twice as long as the last, it may hang. Not before, or
# none would ever get done while they come faster than the application loads
sub _replace_at {
    my $self    = shift;
    my $loading = $self->{loading};
    return if !$self->{after} || !$loading || defined $loading->{given_up} || !$self->_other($loading);
    return $loading->{since} + 1 + 2 * ( $self->{usual} || UNKNOWN );
}

sub _look_for_hung {
    my ( $self, $generation ) = @_;
    my $late  = $self->_late_at($generation);
    my $hung  = $self->_hung_at($generation);
    my $limit = sprintf '%g s (--load-timeout)', $self->{supervisor}{conf}{load_timeout};
    my $hook  = $generation->{hook};
    if ( defined $late && $late <= _now() ) {
        my $where
            = $hook             ? " while running $hook->{name}"
            : $generation->{up} ? ''
            :                     ' while loading the application';
        return $self->_give_up( $generation,
            "generation $generation->{number} was not ready within $limit$where" )
            if $self->_other($generation);
        $generation->{late} = 1;
        return if $generation->{up};    # these workers are all there are
        $generation->{hung} = "was not ready within $limit$where";
        kill KILL => $generation->{pid};
    } elsif ( defined $hung && $hung <= _now() ) {
        $generation->{hung} = "was killed: $hook->{name} ran for more than $limit";
        kill KILL => $generation->{pid};
    }
    return;
}

# A line of the log, which it has written itself
sub _note_said {
    my ( $self, $generation, $json ) = @_;
    return if !defined $generation->{said} || $generation->{ready};
    my $line = eval { $JSON->decode($json) };
    return              if !defined $line || ref $line;
    utf8::encode($line) if !utf8::downgrade( $line, 1 );    # what our own process sends is bytes
    $line =~ s/\n*\z/\n/;
    $generation->{said} = substr $generation->{said} . $line, -ERROR_MAX();
    return;
}

sub _now { return clock_gettime(CLOCK_MONOTONIC) }

# What the program of a reload was told. Only another number than before says anything: the operator may have changed it since
sub _number {
    my ( $self, $low, $most ) = @_;
    my $supervisor = $self->{supervisor};
    my $conf       = $supervisor->{conf};
    return if !defined $low || $low == $conf->{workers} && $most == $conf->{workers_max};
    return Sirius::Log->warn('workers = 0 takes effect only after a restart of the server') if !$low;
    @{$conf}{qw(workers workers_max)} = ( $low, $most );
    my $wanted = max $low, min $most, $supervisor->{scoreboard}->workers;
    my $number = $supervisor->set_workers( $wanted, 'set by the reloaded configuration' );
    Sirius::Log->warn("only $number workers are possible, not $wanted, until the server is restarted")
        if $number < $wanted;
    return;
}

# What the admin port shows of reloads. What a generation said is cut so that all of it fits
sub _publish {
    my $self = shift;
    my %news = ( reloads => $self->{reloads} || { ok => 0, failed => 0 } );
    my $said = '';
    if ( my $loading = $self->{loading} ) {
        $news{loading} = { number => $loading->{number}, since => $loading->{since} };
    }
    if ( my $last = $self->{last_reload} ) {
        $news{last} = { map { $_ => $last->{$_} } grep { defined $last->{$_} } qw(at error ok seconds text) };
        $said       = defined $last->{said} ? substr $last->{said}, 0, SAID_MAX : '';
    }
    while (1) {
        $news{last}{said} = $said if $news{last} && length $said;
        return if $self->{supervisor}{scoreboard}->tell( $JSON->encode( \%news ) ) || !length $said;
        $said = substr $said, 0, length($said) / 2;
        delete $news{last}{said};
    }
    return;
}

# How a reload went. Without a generation: it could not even begin
sub _remember {
    my ( $self, $result, $generation ) = @_;
    my $seconds = $generation ? _now() - $generation->{since} : 0;
    $self->{last_reload} = { %$result, at => time, seconds => sprintf( '%.3f', $seconds ) + 0 };
    $self->{reloads} ||= { ok => 0, failed => 0 };
    $self->{reloads}{ $result->{ok} ? 'ok' : 'failed' }++;
    return $self->_publish;
}

# The end of a reload, good or bad; and the next, which was asked for meanwhile
sub _reloaded {
    my ( $self, $generation, $result ) = @_;
    delete $self->{loading};    # before others are told how it went
    if ( $result->{ok} ) {
        $self->_remember( $result, $generation );
        $self->{supervisor}{commands}->later( drained => $_, $result )
            for grep {defined} @{ $generation->{replies} };
    } else {
        $self->_not_reloaded( $generation, $result->{error} );
    }
    return $self->_settle;
}

# Who has asked for it hears what the generation has said
sub _not_reloaded {
    my ( $self, $generation, $error ) = @_;
    my $result = { ok => 0, error => $error, said => $generation->{said} =~ s/\s+\z//r };
    $self->_remember( $result, $generation );
    $_->($result) for grep {defined} @{ $generation->{replies} };
    return;
}

# Nothing loads any more: the next one, if it was asked for meanwhile
sub _settle {
    my $self = shift;
    delete $self->{loading};
    my @after   = @{ delete $self->{after} || [] } or return 0;
    my @replies = grep {defined} map { $_->[0] } @after;
    my ($why)   = grep {defined} map { $_->[1] } reverse @after;
    $self->reload( @replies ? sub { $_->(@_) for @replies } : undef, $why );    # one for all
    return 1;
}

# The one that served: its workers do so still, but nobody replaces them
sub _again {
    my ( $self, $how, $asked ) = @_;
    my $level   = $asked ? 'note' : 'error';
    my $loading = $self->{loading};
    if ( $loading && !defined $loading->{given_up} ) {
        return Sirius::Log->$level("$how; generation $loading->{number}, which is starting, takes its place");
    }

   # Who has ended it often means the server: a signal to all its processes reaches the supervisor in a moment
    if ($asked) {
        Sirius::Log->note($how);
        $self->{again_at} = _now() + ALL_HEAR;
        return $self->_publish;
    }
    my $delay = $self->{failures}++ ? min BACKOFF_MAX, 2**( $self->{failures} - 1 ) : 0;
    Sirius::Log->error( $how . ( $delay ? "; next attempt in $delay s" : '; starting another' ) );
    $self->{again_at} = _now() + $delay;
    return $self->_publish;    # nothing is loading now
}

sub _failed {
    my ( $self, $generation, $how ) = @_;
    my $error = "reload failed: $how; generation " . $self->current->{number} . ' keeps serving';
    Sirius::Log->error($error);
    $self->{supervisor}{systemd}->notify( 'READY=1', 'STATUS=the last reload failed' );
    return $self->_reloaded( $generation, { ok => 0, error => $error } );
}

# Another than this one that serves
sub _other {
    my ( $self, $generation ) = @_;
    return scalar grep { $_ != $generation && !$_->{old} && $_->{up} } $self->all;
}

sub _retire {
    my ( $self, $generation ) = @_;
    $generation->{old}      = 1;
    $generation->{deadline} = _now() + $self->{supervisor}{conf}{graceful_timeout} + LATE;
    kill TERM => $generation->{pid};
    return;
}

# PIDs of rows that the code says yes to. Workers write their rows themselves, perhaps one that somebody has taken over: it
# must not choose whom this process kills, which may be root's. So they are our children, or those of a generation
sub _workers {
    my ( $self, $wanted ) = @_;
    my %parent = map { $_ => 1 } $$, keys %{ $self->{by_pid} };
    return grep { $parent{ Sirius::OS::Proc->parent($_) } }
        map { $_->{pid} } grep { $_->{pid} > 0 && $wanted->($_) } $self->{supervisor}->rows;
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Reload - starts generations, and replaces one with the next at a reload

=head1 SYNOPSIS

  use Sirius::Process::Reload;

  my $generations = Sirius::Process::Reload->new($supervisor);
  $generations->begin;
  $generations->reload;

=head1 DESCRIPTION

One generation serves. During a reload another one loads the application. When all its workers are ready, the old
generation gets C<TERM>, and is gone after C<--graceful-timeout> at the latest. A generation that ends before it is
ready has failed: its output is kept for whoever asked for the reload, and the old generation goes on (L</lost>). If
the new program was given another number of workers, that number holds from when it serves. A generation that dies
while it serves is replaced, at once, then after 1, 2, 4 ... 30 seconds; its workers go on serving until the next one
is ready.

A generation is a hash: C<number>, C<pid>, C<since>, C<ready>, C<old> (it was told to stop), C<deadline> (when it is
killed).

=head1 METHODS

=head2 all

The generations, oldest first.

=head2 begin

Starts the first.

=head2 child

  my $generation = $generations->child($pid);

=head2 current

The one that serves.

=head2 deadlines

Does what is due: kills generations that have not ended, starts the next attempt.

=head2 due

The monotonic times at which L</deadlines> has something to do.

=head2 hear

  $generations->hear($generation);

Reads the reports of the generation.

=head2 lost

  $generations->lost( $generation, $status );

Takes the end of a generation. One that ends before it is ready has failed: the log says so, and whoever asked for the
reload gets the error and the output; the old generation goes on. Dies if that was the start of a daemon, whose command
waits for the outcome.

=head2 new

  my $generations = Sirius::Process::Reload->new( $supervisor, %state );

=head2 orphans

The PIDs of workers whose generation was killed.

=head2 reload

  $generations->reload($reply);

Starts a reload, or records that one more is wanted if one is under way.

=head2 renewed

True once after each reload.

=head2 settled

True if there is one generation and nothing is under way.

=head2 signal

  $generations->signal('USR1');

Sends the signal to all generations. One that still loads would die by it, and gets it when it is ready for it; C<INT>
and C<TERM> are sent at once.

=head2 started

  $generations->started($child);

Takes charge of a child of L<Sirius::Process::Launch>.

=head2 stop

  $generations->stop( 'TERM', $seconds );

=head2 tell

  $generations->tell( $pid, 'timeout', $text );

Passes a report of the edge about a worker to the worker's generation.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Process::Launch>, L<Sirius::Process::Pool>.

=cut
