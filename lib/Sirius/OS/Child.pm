package Sirius::OS::Child;

use strict;
use warnings;

use Errno               qw(EAGAIN);
use IO::Handle          ();
use POSIX               qw(WNOHANG);
use Sirius              ();            # xs/Sirius.xs has end_with, stopped and _spawn
use Sirius::Base::Clock qw(now);
use Sirius::OS::Cpus;
use Time::HiRes qw(sleep);

use constant LOOK => 0.02;             # seconds between two checks of wait

sub act {
    my $self = shift;
    my $now  = now();
    for my $name ( sort keys %{ $self->{limits} } ) {
        my $limit = $self->{limits}{$name} or next;    # another handler may have removed it
        next if $limit->[0] > $now;
        delete $self->{limits}{$name};
        my $code = $limit->[1];
        if   ($code) { $code->($self) }
        else         { $self->signal('KILL') }
    }
    return;
}

sub age { return now() - shift->{since} }

sub begin_again {
    my $self = shift;
    $self->{since} = now();
    return;
}

sub due {
    return map { $_->[0] } values %{ shift->{limits} };
}

sub ended {
    my ( $self, $status ) = @_;
    my $on_end = delete $self->{on_end};
    $self->{limits} = {};
    $self->{gone}   = 1;
    $on_end->( $self, $status ) if $on_end;
    return;
}

# Of the call before, with what may be raised
sub failure {
    my $error = "$!";
    return $error if $! != EAGAIN;
    my ( $most, $what ) = Sirius::OS::Cpus->tasks;
    return defined $most ? "$error: there may be $most processes and threads ($what)" : $error;
}

# Before a fork: each child would write the contents of the buffers again. Layers may be code of the
# application
sub flush {
    local ( $@, $! );
    eval { STDOUT->flush; STDERR->flush };
    return;
}

sub fork {
    my ( $class, $code, %args ) = @_;
    $class->flush;
    my $pid = CORE::fork();
    return if !defined $pid;
    if ( !$pid ) {
        POSIX::setpgid( 0, 0 ) if $args{group};
        $code->();
        POSIX::_exit(1);
    }
    POSIX::setpgid( $pid, $pid ) if $args{group};    # parent and child both do this, whichever runs first
    return $class->new( $pid, %args );
}

# A page that this process writes to between two forks is shared by the earlier children only, or belongs to
# the only one. So it does nothing else between them
sub fork_all {
    my ( $class, @codes ) = @_;
    $class->flush;
    my @pids;
    for my $code (@codes) {
        my $pid = CORE::fork();
        last if !defined $pid;
        if ( !$pid ) {
            $code->();
            POSIX::_exit(1);
        }
        push @pids, $pid;
    }
    my $error    = $!;
    my @children = map { $class->new($_) } @pids;
    $! = $error;    ## no critic (RequireLocalizedPunctuationVars)
    return @children;
}

sub is_gone { return shift->{gone} }

sub limit {
    my ( $self, $name, $at, $code ) = @_;
    my $before = $self->{limits}{$name};
    $self->{limits}{$name} = [ $at, $code ] if !$before || $at < $before->[0];
    return;
}

sub limited {
    my ( $self, $name ) = @_;
    my $limit = $self->{limits}{$name};
    return $limit && $limit->[0];
}

sub new {
    my ( $class, $pid, %args ) = @_;
    return bless { limits => {}, pid => $pid, since => now(), %args }, $class;
}

sub on_end {
    my ( $self, $code ) = @_;
    $self->{on_end} = $code;
    return;
}

sub pid { return shift->{pid} }

# After waitpid the PID may be another process's
sub signal {
    my ( $self, $name ) = @_;
    return 0 if $self->{gone};
    return kill $name => $self->{group} ? -$self->{pid} : $self->{pid};
}

sub since { return shift->{since} }

sub spawn {
    my ( $class, $path, $words, $descriptors, %args ) = @_;
    return $class->new( Sirius::OS::Child->_spawn( $path, $words, $descriptors ), %args );
}

sub unlimited {
    my ( $self, $name ) = @_;
    delete $self->{limits}{$name};
    return;
}

sub wait {
    my ( $self, $seconds, $hurried ) = @_;
    my $until = now() + $seconds;
    local $?;
    while ( !$self->{gone} ) {
        my $got = waitpid $self->{pid}, WNOHANG;
        if ($got) {
            $self->ended( $got < 0 ? 0 : $? );
            last;
        }
        return 0 if now() >= $until || $hurried && $hurried->();
        sleep LOOK;
    }
    return 1;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Child - a child process of this one

=head1 SYNOPSIS

  use Sirius::OS::Child;

  my $child = Sirius::OS::Child->fork(
      sub { exec 'gzip', '-9' or POSIX::_exit(127) },
      on_end => sub { my ( $child, $status ) = @_; ... },
  ) or die "fork: $!\n";
  $reaper->add($child);
  $child->signal('TERM');
  $child->limit( stop => now() + 30 );    # it is killed then

=head1 DESCRIPTION

The edges, the generations, their workers, the admin process and the command of a log are started, watched and ended by this. What
it does not know: how the parent hears of the child (L<Sirius::OS::Loop/watch>), and when another one is started in its place
(L<Sirius::Base::Backoff>).

A child has any number of limits, each with a name: times at which something is to happen if it has not ended by then. Its
L<Sirius::OS::Reaper> looks after them and calls L</ended>.

=head1 METHODS

=head2 act

Does what the limits that have passed say.

=head2 age

Seconds since it was started.

=head2 begin_again

  $child->begin_again;

What it has done so far was something else: its L</age> counts from now on.

=head2 due

The times of the limits.

=head2 end_with

  Sirius::OS::Child->end_with($parent);

From now on the kernel kills this process when its parent ends, or at once if the parent is another one; with 0 no longer. A change of
the user ends this too.

=head2 ended

  $child->ended($status);

Calls C<on_end> with the child and the status of C<waitpid>. No signal is sent to it from now on.

=head2 flush

  Sirius::OS::Child->flush;

STDOUT and STDERR, as L</fork> does.

=head2 failure

  Sirius::OS::Child->fork($code) or die 'cannot fork: ' . Sirius::OS::Child->failure;

Why the fork has failed, with the limit that may be raised if there is one. For C<$!> of the call before.

=head2 fork

  my $child = Sirius::OS::Child->fork( $code, %args );

Calls the code in the child, which exits with status 1 if the code returns. Nothing, with C<$!>, when there can be no child.
C<on_end> is called when it has ended; C<group>: it is the first of a group of processes, all of which get its signals.

=head2 fork_all

  my @children = Sirius::OS::Child->fork_all(@codes);

As L</fork> for each code, one directly after the other, so that the children share what this process writes afterwards with each other.
Fewer children than codes are returned, and C<$!> says why, if the system has refused one.

=head2 is_gone

True when it has been waited for.

=head2 limit

  $child->limit( $name => $time );
  $child->limit( $name => $time, sub { my $child = shift; ... } );

Kills it at this monotonic time, or calls the code instead. Of two limits of one name the earlier holds.

=head2 limited

  my $time = $child->limited($name);

=head2 new

  my $child = Sirius::OS::Child->new( $pid, %args );

For a process that is there already; with C<since>, when it was started.

=head2 on_end

  $child->on_end( sub { my ( $child, $status ) = @_; ... } );

=head2 pid

Also when it is gone.

=head2 signal

  $child->signal('TERM');

Does nothing when it is gone.

=head2 since

When it was started, in monotonic seconds.

=head2 spawn

  my $child = Sirius::OS::Child->spawn( $path, \@words, \@descriptors, %args );

Runs a program in a child, with these descriptors and with 0, 1 and 2. This process is not copied, so that takes the same time however
much memory it has. Dies when that is not possible.

=head2 stopped

  my ( $pid, $signal ) = Sirius::OS::Child->stopped;

Returns a child that a signal has stopped, or that continues (signal 0), once for each event; an empty list if there is
none. Children that have ended are left to C<waitpid>.

=head2 unlimited

  $child->unlimited($name);

Takes a limit back.

=head2 wait

  my $gone = $child->wait( $seconds, $hurried );

Waits so long for its end, where nobody else does; less when the code becomes true.

=head1 SEE ALSO

L<Sirius::OS::Reaper>, L<Sirius::OS::Loop>.

=cut
