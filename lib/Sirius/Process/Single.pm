package Sirius::Process::Single;

use strict;
use warnings;

use List::Util   qw(min);
use Scalar::Util qw(weaken);
use Sirius::App::WarmUp;
use Sirius::Base::Backoff;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Edge::Beside;
use Sirius::Log ();
use Sirius::OS::Invocation;
use Sirius::OS::Signals;
use Sirius::Process::Alerts;
use Sirius::Process::Pool;
use Sirius::Worker;
use Time::HiRes qw(sleep);

# Seconds a request has at a graceful stop: the user of a debugger decides when to end it
use constant UNLIMITED => 1e8;

# Of Sirius::Scoreboard->watched: there is nothing to tell, something new, something for later
use constant { NONE => 0, TROUBLE => 1, REST => 2 };

sub new {
    my ( $class, $supervisor, %parts ) = @_;
    my $self  = bless { supervisor => $supervisor, %parts }, $class;
    my $conf  = $self->{conf};
    my $board = Sirius::Scoreboard->new( 1, 1 );
    weaken( my $own = $self );
    $self->{board}   = $board;
    $self->{alerts}  = Sirius::Process::Alerts->new( board => $board, conf => $conf );
    $self->{backoff} = Sirius::Base::Backoff->new( interval => $conf->{err_respawn_interval} );
    $self->{edge}    = Sirius::Edge::Beside->new(
        1,
        ( map { $_ => $self->{$_} } qw(access_log alerts listeners privileges reaper) ),
        announced  => sub { $own->{supervisor}->is_announced },
        changed    => sub { },
        conf       => { %$conf, graceful_timeout => UNLIMITED },
        scoreboard => $board,
        tell       => sub { },
    );
    $self->{worker} = Sirius::Worker->new(
        ( map { $_ => $self->{$_} } qw(access_log app builder conf listeners) ),
        beside     => $self->{edge},
        scoreboard => $board,
        sleepers   => $self->{edge}->workers,
        row        => 0,
        tell       => sub { $own->_heard(@_) },
    );
    return $self;
}

# Before the rights are given up
sub prepare { return shift->{edge}->prepare }

sub run {
    my $self     = shift;
    my $worker   = $self->{worker};
    my %handlers = $self->_handlers;
    local @SIG{ 'ALRM', keys %handlers } = ( $SIG{ALRM} || 'DEFAULT', values %handlers );
    $handlers{$_}->($_) for Sirius::OS::Signals->let_go;
    Sirius::OS::Signals->unblock( 'ALRM', keys %handlers );
    $self->_warm_up;
    $self->{alerts}->start;
    $self->_start_edge;
    $self->_watch( $self->{succession}->due );
    1 while !$self->_over && $worker->run !~ /\A(?:drained|edge|over|stopped)\z/;
    alarm 0;
    $self->{edge}->stop_and_wait;
    $self->{alerts}->stop;
    return;
}

sub _edge_ended {
    my $self = shift;
    my $pid  = $self->{edge}->pid;
    waitpid $pid, 1;    # WNOHANG; if this process is PID 1, it has adopted the edge
    return if $self->{supervisor}->has_stop_begun;
    Sirius::Log->error("edge $pid exited; its connections were closed; starting another");
    $self->_start_edge;
    return $self->_watch;
}

sub _handlers {
    my $self     = shift;
    my $worker   = $self->{worker};
    my $edge     = $self->{edge};
    my %handlers = $worker->handlers;
    $handlers{HUP} = sub {
        $worker->in_child('HUP')
            || Sirius::Log->warn('ignored HUP: with --workers 0 there is no reload; restart the server');
    };

    my $stop = $handlers{INT};

    # No other process is there to end a call that does not return
    for my $name (qw(INT QUIT TERM)) {
        $handlers{$name} = sub {
            return if $worker->in_child($name);
            my $fast = $name eq 'INT' || $self->{supervisor}->has_stop_begun;
            $self->{supervisor}->began_to_stop;
            $self->{supervisor}->say_stop( $fast ? 'INT' : 'TERM', $name );
            $stop->('INT') if $fast;
            $self->_stop_edge( $fast ? 'INT' : 'TERM' );
            $self->_hurry if $fast;
        };
    }
    my $reopen = $handlers{USR1};
    $handlers{USR1} = sub {
        $reopen->('USR1');
        return if $edge->gone;
        $edge->log_errors_to(2);
        my $log = $self->{access_log};
        $edge->log_to( $log->fd ) if $log && defined $log->fd;
    };
    return %handlers;
}

sub _heard {
    my ( $self, $what ) = @_;
    my $supervisor = $self->{supervisor};
    $self->_edge_ended if $what eq 'edge';
    $self->_troubled   if $what eq 'trouble';
    return             if $what ne 'ready' || $supervisor->is_announced;    # sent again after harakiri
    $supervisor->announce;
    Sirius::Log->note( 'ready after ' . Sirius::Base::Text->age( Sirius::OS::Invocation->age ) );
    return;
}

# Stops after a second, or at once when asked again. Takes the application's own alarm: its call ends anyway
sub _hurry {
    my $self = shift;
    my $end  = sub {
        return $self->{supervisor}->quit( $self->{worker} );
    };
    return $end->() if $self->{hurried}++;
    $SIG{ALRM} = $end;    ## no critic (RequireLocalizedPunctuationVars)
    alarm Sirius::Process::Pool->FAST_STOP;
    return;
}

sub _over { my $self = shift; return $self->{supervisor}->has_stop_begun && $self->{edge}->gone }

# Starts the edge when it is first needed
sub _start_edge {
    my $self    = shift;
    my $edge    = $self->{edge};
    my $stopped = sub { $self->{supervisor}->has_stop_begun };
    until ( $edge->start($stopped) ) {
        return $self->_stop_edge if $stopped->();
        Sirius::Log->fail( 'edge '
                . $edge->pid
                . ' exited; only the user that has started the server may read the private keys: start it again'
        ) if $self->{supervisor}->is_announced && $edge->needs_rights;
        Sirius::Log->fail( 'edge ' . $edge->pid . ' exited: the server cannot start' )
            if !$self->{supervisor}->is_announced;
        my $delay = $self->{backoff}->failed;
        Sirius::Log->error( sprintf 'edge %d never became ready; next attempt in %g s', $edge->pid, $delay );
        my $end = now() + $delay;
        sleep min 0.5, $end - now() while !$stopped->() && $end > now();    # a signal may come just before
    }
    $self->{backoff}->ready;
    return $self->_stop_edge;
}

# One that is just starting has no PID here yet: it is told when it has
sub _stop_edge {
    my ( $self, $signal ) = @_;
    $self->{untold} = $signal if defined $signal;
    delete $self->{untold} if defined $self->{untold} && $self->{edge}->signal( $self->{untold} );
    return;
}

# What the edge has counted since the last line about it is told when its time has come, CRLs that have
# expired are, and what the server before has had is taken
sub _troubled {
    my $self = shift;
    my ( $alerts, $board ) = @{$self}{qw(alerts board)};
    $alerts->begin if $board->watched == TROUBLE;
    $alerts->act;
    my $succession = $self->{succession};
    $succession->act;
    $board->watched(NONE) if !$self->_watch( $alerts->due || $succession->due );
    return;
}

# Without a limit of time: the user of a debugger decides. A stop ends it
sub _warm_up {
    my $self       = shift;
    my $supervisor = $self->{supervisor};
    my $conf       = $self->{conf};
    return if !$conf->{warm_up} || $supervisor->has_stop_begun;
    return Sirius::Log->warn('--warm-up has no effect: with -L Delayed the application is not loaded yet')
        if $self->{builder};
    my $pid  = $$;
    my $stop = sub {
        my $name = shift;
        if ( $$ != $pid ) {
            $SIG{$name} = 'DEFAULT';    ## no critic (RequireLocalizedPunctuationVars)
            return kill $name => $$;
        }
        Sirius::App::WarmUp->abandon;
        $supervisor->began_to_stop;
        $supervisor->say_stop( 'INT', $name );
        return $supervisor->quit( $self->{worker} );
    };
    local @SIG{qw(INT QUIT TERM)} = ($stop) x 3;
    return
        if Sirius::App::WarmUp->new(
        app      => $self->{app},
        conf     => $conf,
        listener => $self->{listeners}[0],
    )->run;
    return Sirius::Log->fail('the warm-up has failed (--warm-up-required): the server cannot start');
}

# Whether there will be something to do, if only a CRL that may expire: looks now and then
sub _watch {
    my ( $self, $due ) = @_;
    my $board = $self->{board};
    $due = 1 if $self->{edge}->expiry;
    $board->watched(REST) if $due && !$board->watched;
    return $due;
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Single - the server of --workers 0

=head1 SYNOPSIS

  use Sirius::Process::Single;

  Sirius::Process::Single->new( $supervisor, %parts )->run;

=head1 DESCRIPTION

The process that the operator has started is the only L<Sirius::Worker>, for debuggers and profilers: the application
runs in it, with its STDIN, STDOUT and signals. Its connections belong to an edge beside it
(L<Sirius::Edge::Beside>). The edge is not a child of this process, so an application that waits for its
children does not find it. No Perl code runs between its fork and its exec, so neither debugger nor profiler follows
it.

The edge watches the pidfd of this process and ends when it ends. This process checks five times a second whether the
edge still runs and has trouble to report (L<Sirius::Process::Alerts>), and whether a CRL has expired, and starts another one if it has ended. During a call of the
application it does so after the call.

=head1 SIGNALS

C<TERM> and C<QUIT> end it gracefully: what has come is answered, with no time limit. C<INT>, or a second one of them, ends it within a
second; the request at hand gets 500. A third one ends it at once. C<USR1> reopens the logs. C<HUP>, C<TTIN> and C<TTOU> do nothing.

=head1 METHODS

=head2 new

  my $alone = Sirius::Process::Single->new( $supervisor, %parts );

C<access_log>, C<app> or C<builder>, C<conf>, C<listeners>, C<privileges>, C<reaper> and C<succession> of the server.

=head2 prepare

  $alone->prepare;

What needs the rights that the process was started with: reads private keys.

=head2 run

Serves, and returns after a stop with C<%SIG> as before.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Worker>.

=cut
