package Sirius::Log::Pipe;

use strict;
use warnings;

use Fcntl        qw(F_GETFL F_SETFL O_NONBLOCK);
use List::Util   qw(min);
use POSIX        qw(SIGINT SIGQUIT SIGTERM SIG_SETMASK);
use Scalar::Util qw(weaken);
use Sirius::Base::Backoff;
use Sirius::Base::Clock qw(now);
use Sirius::Log         ();
use Sirius::Log::File;
use Sirius::OS::Child;
use Sirius::OS::ExitStatus;
use Sirius::OS::Inherit;

use constant {
    F_SETPIPE_SZ => 1031,       # Linux; Fcntl does not define it
    GRACE        => 5,          # seconds the command has for the rest, after the last line
    ROOM         => 1 << 20,    # bytes the pipe holds: the default limit of the kernel for all but root
    SOON         => 0.5,        # after this many seconds a line says that the server waits for the command
    STEADY       => 10,         # a command that has run for this many seconds has not failed at its start
};

sub act {
    my $self = shift;
    $self->_start if !$self->_runs && $self->{read} && now() >= $self->{backoff}->at;
    return;
}

sub command { return shift->{command} }

# Empty if nothing has to be done before a signal comes
sub due {
    my $self = shift;
    return $self->_runs ? () : $self->{backoff}->at;
}

sub fh { return shift->{write} }

sub new {
    my ( $class, $conf, $command ) = @_;
    pipe my $read, my $write or die "cannot create a pipe: $!\n";
    ( $read, $write ) = map { Sirius::Log::File->high($_) || die "cannot create a pipe: $!\n" } $read, $write;
    fcntl $write, F_SETPIPE_SZ, ROOM;    # a smaller pipe will do
    my $flags = fcntl $write, F_GETFL, 0;
    fcntl $write, F_SETFL, $flags | O_NONBLOCK or die "cannot create a pipe: $!\n";
    return $class->_new( $conf, command => $command, read => $read, write => $write );
}

sub reaped_by {
    my ( $self, $reaper ) = @_;
    $self->{reaper} = $reaper;
    $reaper->add( $self->{child} ) if $self->_runs;
    return;
}

sub release {
    my $self = shift;
    delete @{$self}{qw(child read write)};
    return;
}

sub restore {
    my ( $class, $conf, $state ) = @_;
    my %fh   = map { $_ => Sirius::OS::Inherit->take_handle( $state->{$_} ) } qw(read write);
    my $self = $class->_new( $conf, command => $state->{command}, %fh );
    $self->_adopt( Sirius::OS::Child->new( $state->{pid}, group => 1, since => $state->{since} ) )
        if $state->{pid};
    return $self;
}

sub state {
    my $self  = shift;
    my %state = ( command => $self->{command}, map { $_ => fileno $self->{$_} } qw(read write) );
    @state{qw(pid since)} = ( $self->{child}->pid, $self->{child}->since ) if $self->_runs;
    return \%state;
}

sub stop {
    my ( $self, $seconds ) = @_;
    my $read = $self->{read} or return;
    local ( $?, $! );
    $self->{stopping} = 1;

    # A command that waits for its next try may have lines to read
    vec( my $ready = '', fileno $read, 1 ) = 1;
    $self->_start if !$self->_runs && 0 < select $ready, undef, undef, 0;
    close $_ for delete @{$self}{qw(read write)};    # closes the handles for everybody who holds them
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

sub _adopt {
    my ( $self, $child ) = @_;
    weaken( my $own = $self );
    $child->on_end( sub { $own->_ended(@_) } );
    $self->{child} = $child;
    $self->{reaper}->add($child) if $self->{reaper};
    return;
}

# In the child. A process group of its own, so that INT from a terminal, which stops the server, leaves the
# command the last lines
sub _become {
    my $self = shift;
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

sub _ended {
    my ( $self, $child, $status ) = @_;
    return if $self->{stopping};
    my $backoff = $self->{backoff};
    my $steady  = $child->age >= STEADY;
    $backoff->ready if $steady;
    my $delay = $steady ? $backoff->died( age => $child->age ) : $backoff->failed;
    my $next  = $delay  ? sprintf 'next attempt in %g s', $delay : 'starting it again';
    Sirius::Log->error( "--access-log: '$self->{command}' "
            . Sirius::OS::ExitStatus->words( $status, 'status 0' )
            . "; $next" );
    return;
}

# Waits until the command has ended, with the signal for at most so many seconds, otherwise as long as the
# limit of a stop
sub _gone {
    my ( $self, $seconds, $signal ) = @_;
    my $child = $self->{child} or return 1;
    $child->signal($signal) if $signal;
    return $child->wait( $seconds, $signal ? undef : \&_hurried );
}

# Whether a stop signal is pending: it is blocked, as the server is stopping already
sub _hurried {
    my $pending = POSIX::SigSet->new;
    POSIX::sigpending($pending);
    return grep { $pending->ismember($_) } SIGINT, SIGQUIT, SIGTERM;
}

sub _new {
    my ( $class, $conf, %self ) = @_;
    my $backoff = Sirius::Base::Backoff->new( interval => $conf->{err_respawn_interval} );
    return bless { %self, backoff => $backoff }, $class;
}

sub _runs {
    my $self = shift;
    return $self->{child} && !$self->{child}->is_gone;
}

sub _start {
    my $self  = shift;
    my $child = Sirius::OS::Child->fork( sub { $self->_become }, group => 1 );
    return $self->_adopt($child) if $child;
    my $error = Sirius::OS::Child->failure;
    return Sirius::Log->error( sprintf '--access-log: cannot fork the command: %s; next attempt in %g s',
        $error, $self->{backoff}->failed );
}

1;

=encoding utf8

=head1 NAME

Sirius::Log::Pipe - the command of --access-log '|COMMAND'

=head1 SYNOPSIS

  use Sirius::Log::Pipe;

  my $pipe = Sirius::Log::Pipe->new( $conf, 'rotatelogs /var/log/app.%F 86400' );
  $pipe->act;                       # starts it
  ...
  $pipe->ended( $pid, $status );     # a child that was reaped
  $pipe->act;                       # when due has come
  ...
  $pipe->stop;

=head1 DESCRIPTION

Runs the command of C<--access-log '|COMMAND'> as a child of the supervisor, with a pipe as its STDIN, by C</bin/sh>,
as the user that has started the server, in a process group of its own.

When it ends it is started again: at once, or like a worker that fails, after 1, 2, 4 ... 30 seconds
(L<Sirius::Base::Backoff>). The supervisor holds both ends of the pipe, so its content, up to 1 MiB, waits for the next
command. Lines beyond that are lost and counted. The edge never waits: the write end does not block.

=head1 METHODS

=head2 act

  $pipe->act;

Starts the command when it is due.

=head2 command

The text of it.

=head2 due

The monotonic time of the next L</act>, nothing while the command runs.

=head2 fh

The write end.

=head2 new

  my $pipe = Sirius::Log::Pipe->new( $conf, $command );

Makes the pipe; nothing runs yet. Both ends are closed on exec. Dies with a reason if it cannot.

=head2 reaped_by

  $pipe->reaped_by($reaper);

The L<Sirius::OS::Reaper> that waits for the command.

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

=head1 SEE ALSO

L<Sirius::Log::Access>, L<Sirius::Process::Supervisor>.

=cut
