package Sirius::OS::Signals;

use strict;
use warnings;

use Config qw(%Config);
use Fcntl  qw(F_GETFL F_SETFL F_SETOWN O_ASYNC O_NONBLOCK);
use POSIX  qw(SIG_BLOCK SIG_SETMASK SIG_UNBLOCK);
use Sirius::OS::Origin;
use Time::HiRes qw(ITIMER_REAL setitimer);

my %NUMBER;
@NUMBER{ split ' ', $Config{sig_name} } = split ' ', $Config{sig_num};

# For the time limit of a wait, and for pipes
my @OWN = qw(ALRM IO);
my @ALL = ( qw(CHLD HUP INT QUIT TERM TTIN TTOU USR1 USR2), @OWN );

# They mean nothing to a process that ends, and are the end of one that has no handlers any more, or stop it
my @IDLE = qw(HUP TTIN TTOU USR1 USR2);

# Those for which it matters who has sent them
my %ASKED = map { $_ => 1 } qw(HUP INT QUIT TERM TTIN TTOU);

# While the server starts: the mask of before, once signals are held back, and the names of those that came even earlier
my ( $mask, @early );

# In a child that goes on as a supervisor of its own
sub forked {
    my $self = shift;
    @{ $self->{caught} } = ();
    $self->{watched} = [];    # the parent's: their signals go to it
    return;
}

sub from {
    my ( $self, $name ) = @_;
    return Sirius::OS::Origin->words( @{ $self->{from}{$name} || [ 0, 0 ] } );
}

sub hand_over {
    my ( $self, %handler ) = @_;

    # One that was ignored before must not be so again for a moment: that throws away what is pending of it
    $self->_restore( grep { !$handler{$_} } @{ $self->{names} } );
    $SIG{$_} = $handler{$_} for keys %handler;
    POSIX::sigprocmask( SIG_SETMASK, $self->{open} );
    return;
}

sub hold {
    my ( $class, @names ) = @_;
    my $before = POSIX::SigSet->new;
    POSIX::sigprocmask( SIG_BLOCK, POSIX::SigSet->new( @NUMBER{ @names ? @names : @IDLE } ), $before );
    $mask ||= $before;
    return;
}

sub let_go {
    my $class = shift;
    local $!;
    POSIX::sigprocmask( SIG_SETMASK, $mask ) if $mask;
    undef $mask;
    return splice @early;
}

sub late {
    my ( $class, @names ) = @_;
    push @early, @names;
    return;
}

sub new {
    my ( $class, @names ) = @_;
    my @caught = splice @early;
    my $self   = bless { names => [ @names, @OWN ], caught => \@caught }, $class;

    # Nothing arrives except inside wait, so a signal is never lost between a look at the flags and the sleep
    my $ours = POSIX::SigSet->new( map { $NUMBER{$_} } @{ $self->{names} } );
    $self->{closed} = POSIX::SigSet->new;
    POSIX::sigprocmask( SIG_BLOCK, $ours, $self->{closed} );
    $self->{open} = POSIX::SigSet->new;
    POSIX::sigprocmask( SIG_BLOCK, $ours, $self->{open} );
    ( $self->{closed}, $mask ) = ($mask) if $mask;
    $self->{open}->delset( $NUMBER{$_} ) for @{ $self->{names} };

    for my $name ( @{ $self->{names} } ) {
        $self->{saved}{$name} = $SIG{$name};
        $SIG{$name} = sub { push @caught, $name };
    }

# perl keeps from its own handlers who has sent a signal. This one is called at once, but that is inside sigsuspend
    my $from = $self->{from} = {};
    for my $name ( grep { $ASKED{$_} } @{ $self->{names} } ) {
        my $handler = sub {
            my $info = $_[1];
            $from->{$name} = [ map { $info->{$_} || 0 } qw(pid uid) ];
            push @caught, $name;
        };
        POSIX::sigaction( $NUMBER{$name}, POSIX::SigAction->new( $handler, $ours, POSIX::SA_SIGINFO() ) );
    }
    return $self;
}

# Those of any supervisor or generation, whether they wait for them or not
sub names { return @ALL }

sub release {
    my ( $self, %args ) = @_;
    _async( $_, 0 ) for @{ delete $self->{watched} || [] };

    # A CHLD that has come is ours, not for a handler of the application
    my $child = POSIX::SigSet->new( $NUMBER{CHLD} );
    POSIX::sigprocmask( SIG_UNBLOCK, $child );
    POSIX::sigprocmask( SIG_BLOCK,   $child );

    # Ignoring a signal throws away what is pending of it. Not CHLD: that would reap the caller's children
    $SIG{$_} = 'IGNORE' for grep { $_ ne 'CHLD' } @{ $self->{names} };
    $self->_restore( @{ $self->{names} } );
    $self->{closed}->addset( $NUMBER{$_} ) for $args{exits} ? @IDLE : ();
    POSIX::sigprocmask( SIG_SETMASK, $self->{closed} );
    return;
}

sub sender {
    my ( $self, $name ) = @_;
    return @{ $self->{from}{$name} || [0] }[0];
}

sub shut {
    my ( $class, %args ) = @_;
    POSIX::sigprocmask( SIG_BLOCK, POSIX::SigSet->new( @NUMBER{@IDLE} ) );

    # On its way out of a handler, exit puts back the mask that was there before the handler
    for my $name ( $args{inside} ? @IDLE : () ) {
        $SIG{$name} = 'IGNORE';    ## no critic (RequireLocalizedPunctuationVars)
    }
    return;
}

# Whoever has started this program may have blocked them, and exec keeps that
sub unblock {
    my ( $class, @names ) = @_;
    POSIX::sigprocmask( SIG_UNBLOCK, POSIX::SigSet->new( @NUMBER{@names} ) );
    return;
}

sub wait {
    my ( $self, $timeout ) = @_;
    my $caught = $self->{caught};
    if ( !@$caught ) {
        setitimer( ITIMER_REAL, $timeout > 0.00001 ? $timeout : 0.00001 ) if defined $timeout;
        POSIX::sigsuspend( $self->{open} );
        setitimer( ITIMER_REAL, 0 ) if defined $timeout;
    }
    return splice @$caught;
}

sub watch {
    my ( $self, $fh ) = @_;

    # + 0: as text the argument would be taken for the address of a structure
    fcntl $fh, F_SETOWN, $$ + 0 or die "sirius: F_SETOWN: $!\n";
    _async( $fh, O_ASYNC | O_NONBLOCK );
    push @{ $self->{watched} }, $fh;
    return;
}

sub unwatch {
    my ( $self, $fh ) = @_;
    @{ $self->{watched} } = grep { $_ != $fh } @{ $self->{watched} };
    return;
}

# Without it, a pipe that is closed later would kill a process that has no handler for IO any more
sub _async {
    my ( $fh, $on ) = @_;
    my $flags = fcntl $fh, F_GETFL, 0 or die "sirius: F_GETFL: $!\n";
    fcntl $fh, F_SETFL, $flags & ~O_ASYNC | $on or die "sirius: F_SETFL: $!\n";
    return;
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

Sirius::OS::Signals - wait for signals, descriptors and time, and lose none

=head1 SYNOPSIS

  use Sirius::OS::Signals;

  my $signals = Sirius::OS::Signals->new(qw(CHLD TERM INT));
  $signals->watch($pipe);
  while (1) {
      my @names = $signals->wait($seconds);
      last if grep { $_ eq 'TERM' } @names;
      ...
  }
  $signals->release;

=head1 DESCRIPTION

Perl calls C<%SIG> handlers between two operations. A signal that arrives after a program has checked its flags and
before C<select> sleeps is noticed when the sleep ends, which may be never. Here all signals are blocked except inside
C<sigsuspend>, which unblocks them and sleeps in one step. For descriptors, C<O_ASYNC> lets the kernel send C<SIGIO>
when there is something to read. Nothing is polled: a process that waits without a timeout is not woken needlessly.

=head1 METHODS

=head2 forked

  $signals->forked;

In a child after C<fork> that will wait as its parent does: forgets what came and what is watched.

=head2 from

  my $words = $signals->from('TERM');

Who has sent the last signal of this name, see L<Sirius::OS::Origin>: of C<HUP>, C<INT>, C<QUIT>, C<TERM>, C<TTIN> and C<TTOU>.

=head2 hand_over

  $signals->hand_over(TERM => sub {...});

In a child after C<fork>: installs the given handlers, gives every other signal back to the handler it had before L</new>, and
opens all of them. What arrived for the child since the fork is delivered now, also what was ignored before L</new>.

=head2 hold

  Sirius::OS::Signals->hold;
  Sirius::OS::Signals->hold(@names);

Blocks signals of a supervisor from the start until L</new> can receive them: without names C<HUP>, C<TTIN>, C<TTOU>, C<USR1> and
C<USR2>. Whoever reads the PID file as soon as it is there may send one at once, and without a handler C<HUP> and C<USR1> would
kill the server and C<TTOU> would stop it.

=head2 let_go

  my @names = Sirius::OS::Signals->let_go;

Ends L</hold> where there will be no L</new>: puts the mask back, which delivers what has come since, and returns the names that
were given to L</late>.

=head2 late

  Sirius::OS::Signals->late(@names);

Signals that somebody else has received before there was anybody to heed them: the first L</wait> after L</new> returns them.

=head2 new

  my $signals = Sirius::OS::Signals->new(@names);

Takes over the named signals, and C<ALRM> and C<IO> for its own use, until L</release>. After L</hold>, L</release> puts back
the mask of before that.

=head2 release

  $signals->release;
  $signals->release( exits => 1 );

Forgets what is pending and puts handlers and mask back as they were; with C<exits> L</shut>s besides.

=head2 sender

  my $pid = $signals->sender('TERM');

The PID of who has sent it; 0 for the terminal, or somebody outside of this container.

=head2 shut

  Sirius::OS::Signals->shut;
  Sirius::OS::Signals->shut( inside => 1 );

Blocks C<HUP>, C<TTIN>, C<TTOU>, C<USR1> and C<USR2> in a process that is about to exit: perl removes its handlers before the
process is gone, and the default action of these signals would kill or stop it. With C<inside>, for an C<exit> inside a handler,
they are ignored as well, because C<exit> restores the mask when it leaves the handler.

=head2 unblock

  Sirius::OS::Signals->unblock(qw(INT QUIT TERM));

For a process that has handlers for them, whatever the mask was that it was started with.

=head2 wait

  my @names = $signals->wait;
  my @names = $signals->wait($seconds);

Sleeps until a signal comes or the time is over; returns the names of what came, C<ALRM> for the time and C<IO> for a
watched descriptor.

=head2 unwatch

  $signals->unwatch($handle);

Before a watched handle is closed.

=head2 watch

  $signals->watch($handle);

Makes the handle non-blocking and wakes L</wait> when something comes. Read it until it is empty each time.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Process::Supervisor>.

=cut
