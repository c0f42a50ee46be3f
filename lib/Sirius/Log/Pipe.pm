package Sirius::Log::Pipe;

use strict;
use warnings;

use Fcntl      qw(F_GETFL F_SETFL O_NONBLOCK);
use IO::Handle ();
use List::Util qw(min);
use POSIX      qw(SIGINT SIGQUIT SIGTERM SIG_SETMASK WNOHANG);
use Sirius::Base::Backoff;
use Sirius::Log ();
use Sirius::Log::File;
use Sirius::OS::ExitStatus;
use Sirius::OS::Inherit;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime sleep);

use constant {
    F_SETPIPE_SZ => 1031,    # Linux; Fcntl has no name for it
    GRACE        => 5,       # seconds the command has for the rest, once nothing more comes
    ROOM   => 1 << 20, # bytes the pipe holds; the most that anybody may ask for, unless root has changed that
    SOON   => 0.5,     # seconds after which a line says that the server waits for it
    STEADY => 10,      # seconds after which a command that ends had not failed at its start
};

sub command { return shift->{command} }

# Empty when nothing is to be done before a signal comes
sub due {
    my $self = shift;
    return $self->{pid} ? () : $self->{backoff}->at;
}

sub ended {
    my ( $self, $pid, $status ) = @_;
    return 0 if $pid != ( $self->{pid} || 0 );
    delete $self->{pid};
    return 1 if $self->{stopping};
    my $backoff = $self->{backoff};
    my $steady  = _now() - $self->{since} >= STEADY;
    $backoff->ready if $steady;
    my $delay = $backoff->ended( { ready => $steady, since => $self->{since} }, 1, 0, 1 );
    my $next  = $delay ? sprintf 'next attempt in %g s', $delay : 'starting it again';
    Sirius::Log->error( "--access-log: '$self->{command}' "
            . Sirius::OS::ExitStatus->words( $status, 'status 0' )
            . "; $next" );
    return 1;
}

sub fh { return shift->{write} }

sub new {
    my ( $class, $conf, $command ) = @_;
    pipe my $read, my $write or die "cannot create a pipe: $!\n";
    ( $read, $write ) = map { Sirius::Log::File->high($_) || die "cannot create a pipe: $!\n" } $read, $write;
    fcntl $write, F_SETPIPE_SZ, ROOM;    # less will do
    my $flags = fcntl $write, F_GETFL, 0;
    fcntl $write, F_SETFL, $flags | O_NONBLOCK or die "cannot create a pipe: $!\n";
    return $class->_new( $conf, command => $command, read => $read, write => $write );
}

sub release {
    my $self = shift;
    delete @{$self}{qw(pid read write)};
    return;
}

sub restore {
    my ( $class, $conf, $state ) = @_;
    my %fh = map { $_ => Sirius::OS::Inherit->take_handle( $state->{$_} ) } qw(read write);
    return $class->_new( $conf, %$state, %fh );
}

sub state {
    my $self = shift;
    my %fd   = map { $_ => fileno $self->{$_} } qw(read write);
    return { %fd, map { $_ => $self->{$_} } qw(command pid since) };
}

sub stop {
    my ( $self, $seconds ) = @_;
    my $read = $self->{read} or return;
    local ( $?, $! );
    $self->{stopping} = 1;

    # One that is about to be tried again may have lines to read
    vec( my $ready = '', fileno $read, 1 ) = 1;
    $self->_start if !$self->{pid} && select $ready, undef, undef, 0;
    close $_ for delete @{$self}{qw(read write)};    # whoever has the handle, too
    $seconds = GRACE if !defined $seconds;
    my ( $soon, $command ) = ( min( $seconds, SOON ), "--access-log: '$self->{command}'" );
    return if $self->_gone($soon);
    Sirius::Log->note( sprintf '%s has %g s to finish writing and exit', $command, $seconds )
        if $seconds > $soon;
    return if $self->_gone( $seconds - $soon );
    return Sirius::Log->warn("$command did not exit at the end of its input and was terminated by TERM")
        if $self->_gone( 1, 'TERM' );
    Sirius::Log->warn("$command did not exit and was killed");
    $self->_gone( 1, 'KILL' );
    return;
}

sub tend {
    my $self = shift;
    $self->_gone(0);
    $self->_start if !$self->{pid} && $self->{read} && _now() >= $self->{backoff}->at;
    return;
}

# In the child. A group of its own, so that a terminal's INT, which ends the server, leaves it the last lines
sub _become {
    my $self = shift;
    POSIX::setpgid( 0, 0 );
    $SIG{$_} = 'DEFAULT' for grep { !/\A__/ && ref $SIG{$_} } keys %SIG;
    eval {
        defined POSIX::dup2( fileno $self->{read}, 0 ) or die "STDIN: $!\n";
        POSIX::sigprocmask( SIG_SETMASK, POSIX::SigSet->new );
        no warnings 'exec';    ## no critic (ProhibitNoWarnings)
        exec {'/bin/sh'} 'sh', '-c', $self->{command} or die "/bin/sh: $!\n";
    };
    Sirius::Log->pass("sirius: --access-log: $@");
    return POSIX::_exit(127);
}

# Is it? After that signal, and so many seconds at most; without it, not longer than somebody is willing to wait
sub _gone {
    my ( $self, $seconds, $signal ) = @_;
    my $pid   = $self->{pid} or return 1;
    my $until = _now() + $seconds;
    kill $signal => -$pid if $signal;
    local $?;
    while (1) {
        my $got = waitpid $pid, WNOHANG;
        return $self->ended( $pid, $got < 0 ? 0 : $? ) if $got;
        return 0                                       if _now() >= $until || !$signal && _hurried();
        sleep 0.02;
    }
    return 0;
}

# A signal for a stop has come, and is blocked: the server is stopping already
sub _hurried {
    my $pending = POSIX::SigSet->new;
    POSIX::sigpending($pending);
    return grep { $pending->ismember($_) } SIGINT, SIGQUIT, SIGTERM;
}

sub _new {
    my ( $class, $conf, %self ) = @_;
    return bless { %self, backoff => Sirius::Base::Backoff->new($conf) }, $class;
}

sub _now { return clock_gettime(CLOCK_MONOTONIC) }

sub _start {
    my $self = shift;
    Sirius::Log->flush;
    my $pid = fork;
    if ( !defined $pid ) {
        my $error = $!;
        my $delay = $self->{backoff}->no_fork;
        return Sirius::Log->error( sprintf '--access-log: cannot fork the command: %s; next attempt in %g s',
            $error, $delay );
    }
    $self->_become if !$pid;
    POSIX::setpgid( $pid, $pid );    # whoever comes first
    @{$self}{qw(pid since)} = ( $pid, _now() );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Log::Pipe - the command of --access-log '|COMMAND'

=head1 SYNOPSIS

  use Sirius::Log::Pipe;

  my $pipe = Sirius::Log::Pipe->new( $conf, 'rotatelogs /var/log/app.%F 86400' );
  $pipe->tend;                       # starts it
  ...
  $pipe->ended( $pid, $status );     # a child that was reaped
  $pipe->tend;                       # when due has come
  ...
  $pipe->stop;

=head1 DESCRIPTION

Runs the command of C<--access-log '|COMMAND'> as a child of the supervisor, with a pipe as its STDIN, by C</bin/sh>,
as the user that has started the server, in a process group of its own.

When it ends it is started again: at once, or like a worker that fails, after 1, 2, 4 ... 30 seconds
(L<Sirius::Base::Backoff>). The supervisor holds both ends of the pipe, so its content, up to 1 MiB, waits for the next
command. Lines beyond that are lost and counted. The edge never waits: the write end does not block.

=head1 METHODS

=head2 command

The text of it.

=head2 due

The monotonic time of the next L</tend>, nothing while the command runs.

=head2 ended

  my $ours = $pipe->ended( $pid, $status );

Takes the end of a child that was reaped. False if it was not the command.

=head2 fh

The write end.

=head2 new

  my $pipe = Sirius::Log::Pipe->new( $conf, $command );

Makes the pipe; nothing runs yet. Both ends are closed on exec. Dies with a reason if it cannot.

=head2 release

  $pipe->release;

In a child after C<fork>: leaves the pipe and the command to the parent. A handle that L</fh> has returned stays open.

=head2 restore

  my $pipe = Sirius::Log::Pipe->restore( $conf, $state );

In another program of the same process: from L</state>, with the descriptors C<read> and C<write> open.

=head2 state

What can be written down; C<read> and C<write> are descriptors to keep open.

=head2 stop

  $pipe->stop;
  $pipe->stop($seconds);

At the end of the server, when no other process has the write end: closes the pipe, L</fh> included, and leaves the command 5 seconds, or so many, to
read what is in it; after half a second the log says so. Then, or when C<TERM>, C<QUIT> or C<INT> comes, which the caller has blocked, its group gets C<TERM>, 1 second later C<KILL>.

=head2 tend

  $pipe->tend;

Starts the command when it is due. Also reaps it where nobody else does.

=head1 SEE ALSO

L<Sirius::Log::Access>, L<Sirius::Process::Supervisor>.

=cut
