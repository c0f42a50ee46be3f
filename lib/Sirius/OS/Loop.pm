package Sirius::OS::Loop;

use strict;
use warnings;

use Config              qw(%Config);
use Fcntl               qw(F_GETFL F_SETFL O_NONBLOCK);
use IO::Poll            qw(POLLIN POLLOUT);
use List::Util          qw(max min);
use POSIX               qw(SIG_BLOCK SIG_SETMASK SIG_UNBLOCK);
use Scalar::Util        qw(weaken);
use Sirius              ();                                      # xs/Sirius.xs has _poll
use Sirius::Base::Clock qw(now);
use Sirius::OS::Origin;
use Sirius::OS::Signals;

my %NUMBER;
@NUMBER{ split ' ', $Config{sig_name} } = split ' ', $Config{sig_num};

# Not used here, but a timer or a descriptor of the application must not end this process by them
my @STRAY = qw(ALRM IO);

# The signals for which the sender matters
my %ASKED = map { $_ => 1 } qw(HUP INT QUIT TERM TTIN TTOU);

# The signals that lend gives to the application: its own, and signals that end it
my @OWN   = qw(ALRM CHLD IO);
my @STOPS = qw(INT QUIT TERM);

# A descriptor that only tells of its end has no event: poll(2) reports that in any case
my %EVENT = ( end => 0, read => POLLIN, write => POLLOUT );

use constant ROUNDS => 16;    # reads of one handle before others have their turn; more than a pipe holds

sub act {
    my $self = shift;
    $_->act for $self->_members;
    return;
}

sub add {
    my ( $self, @members ) = @_;
    my $all = $self->{members};
    for my $member (@members) {
        push @$all, $member;
        weaken $all->[-1];
    }
    return;
}

sub forked {
    my $self = shift;
    @{ $self->{caught} } = ();
    $self->{members} = [];
    $self->{watched} = {};    # those are the parent's
    return;
}

sub from {
    my ( $self, $name ) = @_;
    return Sirius::OS::Origin->words( @{ $self->{from}{$name} || [ 0, 0 ] } );
}

sub hand_over {
    my ( $self, $handler ) = @_;

    # A signal that was ignored before must not be ignored again even for a moment, as that discards a pending
    # one
    $self->_restore( grep { !$handler->{$_} } @{ $self->{names} } );
    $SIG{$_} = $handler->{$_} for keys %$handler;
    POSIX::sigprocmask( SIG_SETMASK, $self->{open} );
    return;
}

# With signals as code of the application has them while it is loaded: what stops a program ends this one at
# once, and its own timers and children are its own. All others wait
sub lend {
    my ( $self, $code ) = @_;
    my $before = POSIX::SigSet->new;
    my $idle   = sub { };
    my %taken  = map  { $_ => 1 } @{ $self->{names} };
    my @own    = grep { $taken{$_} } @OWN;
    my @stops  = grep { $taken{$_} } @STOPS;
    for my $name (@own) {
        my $theirs = $self->{saved}{$name};
        my $is_set = defined $theirs && length $theirs && $theirs ne 'DEFAULT';
        $SIG{$name}
            = $is_set ? $theirs : $name eq 'CHLD' ? 'DEFAULT' : $idle;    # an earlier timer must not end it
    }
    $SIG{$_} = 'DEFAULT' for @stops;
    POSIX::sigprocmask( SIG_UNBLOCK, POSIX::SigSet->new( @NUMBER{ @own, @stops } ), $before );
    my $done  = eval { $code->(); 1 };
    my $error = $@;
    POSIX::sigprocmask( SIG_SETMASK, $before );
    alarm 0;
    for my $name (@own) {
        my $theirs = $SIG{$name};
        $self->{saved}{$name} = $theirs if !defined $theirs || $theirs ne $idle;
    }
    $self->_catch;
    die $error if !$done;    ## no critic (RequireCarping)
    return;
}

sub new {
    my ( $class, @names )  = @_;
    my ( $before, @early ) = Sirius::OS::Signals->taken;
    my @caught = map { $_->[0] } @early;
    my $self   = bless { caught => \@caught, members => [], names => [ @names, @STRAY ], watched => {} },
        $class;

    # Signals arrive only inside wait, so none is lost between a check of the flags and the sleep
    $self->{numbers} = [ map { $NUMBER{$_} } @{ $self->{names} } ];
    my $ours = POSIX::SigSet->new( @{ $self->{numbers} } );
    $self->{closed} = POSIX::SigSet->new;
    POSIX::sigprocmask( SIG_BLOCK, $ours, $self->{closed} );
    $self->{open} = POSIX::SigSet->new;
    POSIX::sigprocmask( SIG_BLOCK, $ours, $self->{open} );
    $self->{closed} = $before if $before;
    $self->{open}->delset($_) for @{ $self->{numbers} };

    $self->{saved}{$_} = $SIG{$_} for @{ $self->{names} };
    $self->{from} = { map { $_->[0] => [ @$_[ 1 .. $#$_ ] ] } @early };
    $self->_catch;
    return $self;
}

# Reads everything there is. At the end of the file it stops watching, as the handle would be ready for ever
sub read {
    my ( $self, $fh, $buffer ) = @_;
    $$buffer = '' if !defined $$buffer;
    for ( 1 .. ROUNDS ) {
        my $got = sysread $fh, $$buffer, 65_536, length $$buffer;
        next                if $got;
        $self->unwatch($fh) if defined $got;
        last;
    }
    return;
}

sub release {
    my ( $self, %args ) = @_;
    @{$self}{qw(members watched)} = ( [], {} );

    # A pending CHLD is ours, and not for a handler of the application
    my $child = POSIX::SigSet->new( $NUMBER{CHLD} );
    POSIX::sigprocmask( SIG_UNBLOCK, $child );
    POSIX::sigprocmask( SIG_BLOCK,   $child );

    # Ignoring a signal discards a pending one. Not CHLD: that would reap the caller's children
    $SIG{$_} = 'IGNORE' for grep { $_ ne 'CHLD' } @{ $self->{names} };
    $self->_restore( @{ $self->{names} } );
    $self->{closed}->addset( $NUMBER{$_} ) for $args{exits} ? Sirius::OS::Signals->idle : ();
    POSIX::sigprocmask( SIG_SETMASK, $self->{closed} );
    return;
}

sub sender {
    my ( $self, $name ) = @_;
    return @{ $self->{from}{$name} || [0] }[0];
}

sub unwatch {
    my ( $self, $fh ) = @_;
    delete $self->{watched}{ fileno $fh } if defined fileno $fh;
    return;
}

# Sleeps in _poll( \@descriptors, \@events, $seconds, \@signals ): until one of the descriptors has one of its
# events (numbers of poll(2)), one of the signals comes, or the seconds are over, which is never when they are
# less than 0. The signals are blocked before and afterwards
sub wait {
    my ( $self, $most ) = @_;
    my $caught = $self->{caught};
    my @due    = map { $_->due } $self->_members;
    my $left   = @due ? max 0, min(@due) - now() : undef;
    $left = min grep {defined} $left, $most;
    my @watched = grep { defined fileno $_->[0] } values %{ $self->{watched} };
    Sirius::OS::Loop->_poll(
        [ map { fileno $_->[0] } @watched ],
        [ map { $_->[1] } @watched ],
        @$caught ? 0 : $left // -1,
        $self->{numbers}
    );
    return splice @$caught;
}

sub watch {
    my ( $self, $fh, $for ) = @_;
    $for = 'read' if !defined $for;

    # For handles that are read until they are empty. Others may be shared with other processes
    if ( $for ne 'end' ) {
        my $flags = fcntl $fh, F_GETFL, 0 or die "sirius: F_GETFL: $!\n";
        fcntl $fh, F_SETFL, $flags | O_NONBLOCK or die "sirius: F_SETFL: $!\n";
    }
    $self->{watched}{ fileno $fh } = [ $fh, $EVENT{$for} ];
    return;
}

# The handlers are kept, as a child that replaces them would otherwise free them, and so write to pages that
# it shares
sub _catch {
    my $self   = shift;
    my $caught = $self->{caught};
    my $from   = $self->{from};
    my %stray  = map { $_ => 1 } @STRAY;
    for my $name ( @{ $self->{names} } ) {
        $SIG{$name} = $self->{handlers}{$name} = $stray{$name} ? sub { } : sub { push @$caught, $name };
    }

    # perl keeps from its own handlers who has sent a signal. This one is called at once, but that is inside
    # of the poll
    my $ours = POSIX::SigSet->new( @{ $self->{numbers} } );
    for my $name ( grep { $ASKED{$_} } @{ $self->{names} } ) {
        my $handler = sub {
            my $info = $_[1];
            $from->{$name} = [ map { $info->{$_} || 0 } qw(pid uid code) ];
            push @$caught, $name;
        };
        $self->{handlers}{$name} = $handler;
        POSIX::sigaction( $NUMBER{$name}, POSIX::SigAction->new( $handler, $ours, POSIX::SA_SIGINFO() ) );
    }
    return;
}

sub _members {
    return grep {defined} @{ shift->{members} };
}

sub _restore {
    my ( $self, @names ) = @_;
    for my $name (@names) {
        my $handler = $self->{saved}{$name};
        if ( defined $handler && length $handler ) { $SIG{$name} = $handler }
        else                                       { delete $SIG{$name} }
    }
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Loop - waits for signals, descriptors and times, and loses none

=head1 SYNOPSIS

  use Sirius::OS::Loop;

  my $loop = Sirius::OS::Loop->new(qw(CHLD TERM INT));
  $loop->watch($pipe);
  $loop->add($backup);    # an object with due and act
  while (1) {
      my @names = $loop->wait;
      $loop->read( $pipe, \my $text );
      last if grep { $_ eq 'TERM' } @names;
      $loop->act;
  }
  $loop->release;

=head1 DESCRIPTION

Perl calls C<%SIG> handlers between two operations. A signal that comes after a program has looked at its flags and before it sleeps
would be noticed when the sleep ends, which may be never. Here all signals are blocked except inside ppoll(2), which opens
them and sleeps in one step. Nothing is polled: a process that waits without a time is not woken for nothing.

What has to be done at a certain time is a member (L</add>): an object with two methods. C<due> returns the monotonic times at which
there is something to do, none when there is nothing; C<act> does what is due. It is called after each wait, so it may find that
nothing is.

=head1 METHODS

=head2 act

  $loop->act;

Calls C<act> of all members, in the order in which they were added.

=head2 add

  $loop->add(@members);

They are not owned: one that is gone is not called any more.

=head2 forked

  $loop->forked;

In a child after C<fork> that will wait as its parent does: forgets what came, what is watched, and the members.

=head2 from

  my $words = $loop->from('TERM');

Who has sent the last signal of this name, see L<Sirius::OS::Origin>: of C<HUP>, C<INT>, C<QUIT>, C<TERM>, C<TTIN> and C<TTOU>.

=head2 hand_over

  $loop->hand_over( { TERM => sub {...} } );

In a child after C<fork>: installs the given handlers, gives every other signal back to the handler it had before L</new>, and
opens all of them. What arrived for the child since the fork is delivered now, also what was ignored before L</new>.

=head2 lend

  $loop->lend($code);

Calls code of the application outside of L</wait>. Meanwhile C<INT>, C<QUIT> and C<TERM> end the process at once, C<ALRM>,
C<CHLD> and C<IO> have the handlers of the application, and all others wait. A timer that is left is stopped. Dies with the error
of the code.

=head2 new

  my $loop = Sirius::OS::Loop->new(@names);

Takes over the named signals until L</release>, and C<ALRM> and C<IO>, which mean nothing. After L<Sirius::OS::Signals/hold>, L</release>
puts back the previous mask.

=head2 read

  $loop->read( $handle, \$buffer );

Appends all that can be read from a watched handle. At its end it is no longer watched.

=head2 release

  $loop->release;
  $loop->release( exits => 1 );

Forgets what is pending and puts handlers and mask back as they were; with C<exits> L<Sirius::OS::Signals/shut>s besides.

=head2 sender

  my $pid = $loop->sender('TERM');

The PID of who has sent it; 0 for the terminal, or somebody outside of this container.

=head2 unwatch

  $loop->unwatch($handle);

Before a watched handle is closed.

=head2 wait

  my @names = $loop->wait;
  my @names = $loop->wait($seconds);

Sleeps until a signal comes, a watched handle has something, a member is due, or the time is over; returns the names of the
signals.

=head2 watch

  $loop->watch($handle);
  $loop->watch( $handle, 'write' );
  $loop->watch( $handle, 'end' );

Wakes L</wait> as long as the handle can be read, or written, or its other end is closed. One that is read or written is made
non-blocking. What can be read has to be read until it is empty, else the next wait returns at once.

=head1 SEE ALSO

L<Sirius::OS::Signals>, L<Sirius::Process::Supervisor>, L<Sirius::Process::Pool>.

=cut
