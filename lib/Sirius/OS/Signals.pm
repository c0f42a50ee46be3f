package Sirius::OS::Signals;

use strict;
use warnings;

use Config qw(%Config);
use POSIX  qw(SIG_BLOCK SIG_SETMASK SIG_UNBLOCK);
use Sirius ();                                      # xs/Sirius.xs has restart

my %NUMBER;
@NUMBER{ split ' ', $Config{sig_name} } = split ' ', $Config{sig_num};

# All signals that a Sirius::OS::Loop handles
my @ALL = qw(ALRM CHLD HUP INT IO QUIT TERM TTIN TTOU USR1 USR2);

# Without meaning to a process that is ending, but if it has no handlers any more they would kill or stop it
my @IDLE = qw(HUP TTIN TTOU USR1 USR2);

# While the server starts: the signal mask before signals were held, and the signals that came even earlier,
# each with its sender
my ( $mask, @early );

sub hold {
    my ( $class, @names ) = @_;
    my $before = POSIX::SigSet->new;
    POSIX::sigprocmask( SIG_BLOCK, POSIX::SigSet->new( @NUMBER{ @names ? @names : @IDLE } ), $before );
    $mask ||= $before;
    return;
}

sub idle { return @IDLE }

sub late {
    my ( $class, $name, @sender ) = @_;
    push @early, [ $name, @sender ];
    return;
}

sub let_go {
    my $class = shift;
    local $!;
    POSIX::sigprocmask( SIG_SETMASK, $mask ) if $mask;
    undef $mask;
    return map { $_->[0] } splice @early;
}

sub names { return @ALL }

sub shut {
    my ( $class, %args ) = @_;
    POSIX::sigprocmask( SIG_BLOCK, POSIX::SigSet->new( @NUMBER{@IDLE} ) );

    # exit called in a handler restores the mask from before the handler
    for my $name ( $args{inside} ? @IDLE : () ) {
        $SIG{$name} = 'IGNORE';    ## no critic (RequireLocalizedPunctuationVars)
    }
    return;
}

sub taken {
    my $before = $mask;
    undef $mask;
    return $before, splice @early;
}

# The parent process may have blocked them, and exec keeps the mask
sub unblock {
    my ( $class, @names ) = @_;
    POSIX::sigprocmask( SIG_UNBLOCK, POSIX::SigSet->new( @NUMBER{@names} ) );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Signals - holds signals back while a server starts and while it ends

=head1 SYNOPSIS

  use Sirius::OS::Signals;

  Sirius::OS::Signals->hold;
  ...                                         # there is a PID file, but nobody who heeds signals
  my $loop = Sirius::OS::Loop->new(@names);   # heeds what has come

=head1 METHODS

=head2 hold

  Sirius::OS::Signals->hold;
  Sirius::OS::Signals->hold(@names);

Blocks signals of a supervisor from the start until a L<Sirius::OS::Loop> can receive them: without names those of L</idle>.
A program that reads the PID file as soon as it exists may send one at once, and without a handler C<HUP> and C<USR1> would
kill the server and C<TTOU> would stop it.

=head2 idle

C<HUP>, C<TTIN>, C<TTOU>, C<USR1> and C<USR2>: they mean nothing to a process that ends.

=head2 late

  Sirius::OS::Signals->late( HUP => $pid, $uid, $code );

A signal that somebody else has received before there was anybody to heed it: the first wait of the loop returns it. Its sender is as
L<Sirius::OS::Origin> takes it.

=head2 let_go

  my @names = Sirius::OS::Signals->let_go;

Ends L</hold> where there will be no loop: puts the mask back, which delivers what has come since, and returns the names that
were given to L</late>.

=head2 names

The signals of all loops, whether they wait for them or not.

=head2 restart

  Sirius::OS::Signals->restart(@numbers);

Makes the handlers of these signals restart the system calls that they interrupt (C<SA_RESTART>).

=head2 shut

  Sirius::OS::Signals->shut;
  Sirius::OS::Signals->shut( inside => 1 );

Blocks those of L</idle> in a process that is about to exit: perl removes its handlers before the process is gone, and the default
action of these signals would kill or stop it. With C<inside>, for an C<exit> inside a handler, they are ignored as well, because
C<exit> restores the mask when it leaves the handler.

=head2 taken

  my ( $mask, @signals ) = Sirius::OS::Signals->taken;

For the loop: the mask before L</hold>, if there was one, and what was given to L</late>, each as a list of name and sender. Both are its own from now on.

=head2 unblock

  Sirius::OS::Signals->unblock(qw(INT QUIT TERM));

For a process that has handlers for them, whatever the mask was that it was started with.

=head1 SEE ALSO

L<Sirius::OS::Loop>.

=cut
