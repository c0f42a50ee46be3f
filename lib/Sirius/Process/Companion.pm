package Sirius::Process::Companion;

use strict;
use warnings;

use Errno        qw(EPERM);
use List::Util   qw(min);
use POSIX        qw(SIG_SETMASK);
use Scalar::Util qw(weaken);
use Sirius::Base::Backoff;
use Sirius::Base::Clock qw(now);
use Sirius::Log         ();
use Sirius::Log::Output;
use Sirius::OS::Child;
use Sirius::OS::ExitStatus;
use Sirius::OS::Proc;

my %SHELL = map { $_ => 1 } qw(ash bash busybox dash ksh mksh sh zsh);

use constant {
    GONE   => 1,       # seconds that processes which were killed have to be gone
    LOOK   => 0.02,    # between two looks
    SOON   => 1,       # second, in which a command that makes itself a daemon seems to have ended
    STEADY => 10,      # a command that has run for this many seconds has not failed at its start
};

sub act {
    my $self = shift;
    $self->_look_for_others if $self->{others};
    $self->_start           if $self->{wanted} && !$self->is_alive && now() >= $self->{backoff}->at;
    return;
}

sub due {
    my $self = shift;
    return now() + LOOK if $self->{others};
    return !$self->{wanted} || $self->{child} ? () : $self->{backoff}->at;
}

sub end {
    my ( $self, $grace ) = @_;
    $self->{wanted} = 0;
    return $self->_ask_to_end($grace);
}

sub follow {
    my ( $self, $command, $setting, $grace ) = @_;
    @{$self}{qw(command setting wanted)} = ( $command, $setting, 1 );
    $self->{backoff} = $self->_backoff;    # what was wrong may have been mended
    delete @{$self}{qw(fell hinted)};
    return $self->_ask_to_end($grace);
}

sub group {
    my $self = shift;
    return $self->{child} ? $self->{child}->pid : $self->{others} && -$self->{others};
}

sub hear {
    my $self   = shift;
    my $output = $self->{output} or return;
    return if $output->hear;
    $self->_close;
    return;
}

# Not if nothing can end it, and the server has to
sub is_alive {
    my $self = shift;
    return 1 if $self->{others};
    return $self->{child} && !( $self->{hopeless} && !$self->{wanted} ) ? 1 : 0;
}

sub is_ending {
    my $self = shift;
    return $self->is_alive && ( $self->{others} || $self->{asked} );
}

sub name { return shift->{name} }

sub new {
    my ( $class, %args ) = @_;
    my $self = bless { restarts => 0, wanted => 0, %args }, $class;
    $self->{backoff} = $self->_backoff( %{ $args{backoff} || {} } );
    return $self;
}

sub pid {
    my $self = shift;
    return $self->{child} && $self->{child}->pid;
}

sub restore {
    my ( $class, $state, %args )   = @_;
    my ( $pid,   $since, $output ) = delete @{$state}{qw(pid since output)};
    my $self = $class->new( %args, %$state );
    return $self if !$pid;
    $self->_adopt(
        Sirius::OS::Child->new( $pid, group => 1, since => $since ),
        $output && Sirius::Log::Output->restore($output)
    );
    return $self;
}

sub state {
    my $self  = shift;
    my %state = map { $_ => $self->{$_} } qw(command fell name restarts wanted);
    $state{backoff}       = { at => $self->{backoff}->at, failures => $self->{backoff}->failing };
    @state{qw(pid since)} = ( $self->pid, $self->{child}->since ) if $self->{child};
    $state{output}        = $self->{output}->state                if $self->{output};
    return \%state;
}

sub status {
    my $self = shift;
    return {
        name     => $self->{name},
        pid      => $self->pid // 0,
        restarts => $self->{restarts},
        since    => $self->{child}   ? $self->{child}->since : $self->{ended} // 0,
        state    => $self->is_ending ? 'stopping' : $self->{child} ? 'running' : 'waiting',
    };
}

sub _adopt {
    my ( $self, $child, $output ) = @_;
    weaken( my $own = $self );
    $child->on_end( sub { $own->_ended(@_) if $own } );
    @{$self}{qw(child output)} = ( $child, $output );
    $self->{loop}->watch( $output->handle ) if $output;
    return $self->{reaper}->add($child);
}

# Its children may run a job that it lets them finish: it alone gets TERM. A shell does not pass that on to
# what it runs
sub _ask_to_end {
    my ( $self, $grace ) = @_;
    return if !$self->is_alive;
    my $until = now() + $grace;
    $self->{end_by} = min $until, grep {defined} $self->{end_by};
    my $child = $self->{child} or return;
    if ( !$self->{asked} ) {
        $self->{asked} = 1;
        $self->{told}  = [ _below_shells( $child->pid ) ];
        kill $_ => @{ $self->{told} } for qw(TERM CONT);
    }
    weaken( my $own = $self );
    $child->limit( end => $until, sub { $own->_kill if $own } );
    return $self->{changed}->();
}

sub _backoff {
    my ( $self, %state ) = @_;
    return Sirius::Base::Backoff->new( interval => $self->{interval}, %state );
}

# In the child. Nothing of the server stays open in it
sub _become {
    my ( $self, $output, $parent ) = @_;
    my ( $env,  $dir,    $umask )  = @{ $self->{setting} }{qw(env chdir umask)};
    my $here = _same( q(.), $dir );    # the user of the workers need not be able to enter it
    eval {
        $SIG{$_} = 'DEFAULT' for grep { !/\A__/ && ref $SIG{$_} } keys %SIG;
        open my $null, '<', '/dev/null' or die "/dev/null: $!\n";    ## no critic (RequireBriefOpen)
        for ( [ $null, 0 ], [ $output, 1 ], [ $output, 2 ] ) {
            defined POSIX::dup2( fileno $_->[0], $_->[1] ) or die "dup2: $!\n";
        }
        umask $umask if defined $umask;
        %ENV = %$env;    ## no critic (RequireLocalizedPunctuationVars)
        $self->{privileges}->drop if $self->{privileges};
        $here or chdir $dir or die "chdir $dir: $!\n";    # not earlier: an application may have chosen it
        Sirius::OS::Child->end_with($parent);             # not earlier: a change of the user undoes it
        POSIX::close($_) for _others();
        POSIX::sigprocmask( SIG_SETMASK, POSIX::SigSet->new );
        no warnings 'exec';                               ## no critic (ProhibitNoWarnings)
        exec $self->{command} or die "cannot run '$self->{command}': $!\n";
    };
    POSIX::write( 2, $@, length $@ );
    return POSIX::_exit(127);
}

# A process, and if it is a shell, what it has started
sub _below_shells {
    my $pid = shift;
    return $pid,
        $SHELL{ Sirius::OS::Proc->name($pid) }
        ? map { _below_shells($_) } Sirius::OS::Proc->children($pid)
        : ();
}

sub _cannot {
    my ( $self, $what ) = @_;
    return Sirius::Log->error( sprintf '--beside %s: cannot %s; next attempt in %g s',
        $self->{name}, $what, $self->{backoff}->failed );
}

sub _close {
    my $self   = shift;
    my $output = delete $self->{output} or return;
    $self->{loop}->unwatch( $output->handle );
    return $output->finish;
}

sub _ended {
    my ( $self, $child, $status ) = @_;
    my $asked = delete $self->{asked};
    $self->_close;
    $self->{ended} = now();
    delete @{$self}{qw(child hopeless)};
    $self->{others} = -$child->pid;
    $self->_look_for_others;
    $self->_fell( $child, $status ) if !$asked;
    $self->{changed}->();
    return;
}

# By itself: status 0 makes no difference, as a worker or a timer that has ended does no work
sub _fell {
    my ( $self, $child, $status ) = @_;
    my $steady = $child->age >= STEADY;
    $self->{backoff}->ready if $steady;
    my $delay = $steady ? $self->{backoff}->died( age => $child->age ) : $self->{backoff}->failed;
    $self->{fell} = 1;
    my $level = $status ? 'error' : 'info';
    Sirius::Log->$level(
        sprintf '--beside %s: PID %d %s; %s',
        $self->{name}, $child->pid,
        Sirius::OS::ExitStatus->words( $status, 'status 0' ),
        $delay ? sprintf( 'next attempt in %g s', $delay ) : 'starting it again'
    );
    return if $status || $child->age >= SOON || $self->{hinted}++;
    return Sirius::Log->warn(
        "--beside $self->{name}: it ended as soon as it was started; if it makes itself a daemon, let it stay in the foreground"
    );
}

sub _kill {
    my $self  = shift;
    my $child = $self->{child} or return;
    my $pid   = $child->pid;
    Sirius::Log->warn("--beside $self->{name}: PID $pid did not end in time and was killed");
    $child->signal('KILL');
    weaken( my $own = $self );
    $child->limit( gone => now() + GONE, sub { $own->{hopeless} = 1 if $own } );
    return;
}

# What is left of its group: nothing of it may run when it is started again. What a shell has run has the rest
# of its time
sub _look_for_others {
    my $self     = shift;
    my $is_there = kill( 0, $self->{others} ) || $! == EPERM;
    if ( $is_there && !defined $self->{gone_by} ) {
        my @busy = grep { defined Sirius::OS::Proc->born($_) } @{ $self->{told} };
        return if @busy && now() < $self->{end_by};
        Sirius::Log->warn("--beside $self->{name}: PID @busy did not end in time and was killed") if @busy;
        kill KILL => $self->{others};
        $self->{gone_by} = now() + GONE;
    }
    return if $is_there && now() < $self->{gone_by};
    delete @{$self}{qw(gone_by others told)};
    return $self->{changed}->();
}

# The descriptors that a program must not inherit
sub _others {
    opendir my $dir, '/proc/self/fd' or return 3 .. 1023;
    my @all = grep { /\A\d+\z/ && $_ > 2 } readdir $dir;
    closedir $dir;
    return @all;
}

sub _same {
    my @paths = @_;
    my ( $one, $other ) = map { join q( ), ( stat $_ )[ 0, 1 ] } @paths;
    return length $one && $one eq $other;
}

sub _start {
    my $self = shift;
    pipe my $read, my $write or return $self->_cannot("create a pipe: $!");
    my @owner = $self->{privileges} ? $self->{privileges}->owner : ();
    chown @owner, $write if @owner;    # so that it can open /dev/stderr
    my $parent = $$;
    my $child  = Sirius::OS::Child->fork( sub { $self->_become( $write, $parent ) }, group => 1 )
        or return $self->_cannot( 'fork: ' . Sirius::OS::Child->failure );
    close $write;
    delete @{$self}{qw(end_by told)};
    $self->{restarts}++ if delete $self->{fell};
    my ( $name, $pid ) = ( $self->{name}, $child->pid );
    $self->_adopt( $child, Sirius::Log::Output->new( handle => $read, name => $name, pid => $pid ) );
    Sirius::Log->info("--beside $name: started as PID $pid");
    return $self->{changed}->();
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Companion - a command that runs beside the workers

=head1 SYNOPSIS

  my $companion = Sirius::Process::Companion->new( name => 'jobs', interval => 1, loop => $loop, reaper => $reaper, changed => sub {...} );
  $companion->follow( 'perl bin/jobs.pl', { chdir => '/srv/shop', env => \%ENV }, 30 );
  $companion->act;       # when due has come
  $companion->end(30);

=head1 DESCRIPTION

Runs a command of C<--beside> as a child of the supervisor, as perl's C<exec> does: directly, or by C</bin/sh -c> if there is a character
in it that only a shell understands. Its STDIN is F</dev/null>; what it prints goes to the error log (L<Sirius::Log::Output>). It has
the user and the groups of the workers, and no other descriptor.

When it ends, whatever its status, it is started again: at once if it had run for 10 seconds, else after 1, 2, 4 ... 30 seconds
(L<Sirius::Base::Backoff>).

It is in a process group of its own. It is asked to end by C<TERM>, which its children do not get; but a shell would not pass it on, so
what a shell has started gets it as well. It is killed after the time limit. When all that
got C<TERM> has ended, what is left of its group is killed. Another one is started when none of these is there any more. The kernel kills it when the supervisor ends, and a generation its
group (L<Sirius::Process::Pool>).

=head1 METHODS

=head2 act, due

Starts it when it is time; the times at which there is something to do.

=head2 end

  $companion->end($seconds);

It has to end within this time, and is not started again.

=head2 follow

  $companion->follow( $command, \%setting, $seconds );

Starts this command, as soon as the one that runs has ended, which has so much time: C<chdir> is its directory, C<env> its environment,
C<umask> its mask for new files, or undef.

=head2 group

The number of its group of processes, while something is in it.

=head2 hear

Reads what it prints.

=head2 is_alive, is_ending

Whether it, or something of its group, is there; whether it is about to end.

=head2 name

Its name.

=head2 new

  my $companion = Sirius::Process::Companion->new(%args);

C<name>; C<interval>, the seconds of the first pause; C<loop> and C<reaper>, the L<Sirius::OS::Loop> and L<Sirius::OS::Reaper> of the
process; C<privileges>, a L<Sirius::Service::Privileges>, or undef; C<changed>, called when L</status> is another one.

=head2 pid

Its PID; undef while it does not run.

=head2 restore, state

For the next program of the supervisor, unless it is about to end.

=head2 status

A hash with C<name>, C<pid>, C<restarts>, how often it was started again after it had ended by itself, C<since>, in monotonic seconds, and C<state>: C<running>,
C<stopping> or C<waiting>.

=head1 SEE ALSO

L<Sirius::Process::Companions>, L<Sirius::OS::Child>.

=cut
