package Sirius::Dev::Keys;

use strict;
use warnings;

use Errno               qw(EAGAIN EINTR);
use Fcntl               qw(O_NOCTTY O_RDONLY);
use POSIX               qw(ECHO ICANON TCSANOW VMIN VTIME);
use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);

use constant LOOK => 1;    # seconds between two looks whether the terminal is ours again

# What comes, and whether the terminal is still this job's: another one must neither be read nor set from the
# background
sub act {
    my $self = shift;
    return if !$self->{tty};
    $self->{look_at} = now() + LOOK;
    if ( POSIX::tcgetpgrp( fileno $self->{tty} ) != getpgrp ) {
        $self->{loop}->unwatch( $self->{tty} ) if delete $self->{set};
        return;
    }
    return if !$self->{set} && !$self->_set;
    my $got = sysread $self->{tty}, my $keys, 64;
    return $self->close  if !$got && ( defined $got || !grep { $! == $_ } EAGAIN, EINTR );
    $self->_press($keys) if $got;
    return;
}

# The terminal as it was
sub close {
    my $self = shift;
    my $tty  = delete $self->{tty};
    return                                           if !$tty || $self->{pid} != $$;
    $self->{loop}->unwatch($tty)                     if $self->{loop};
    $self->{before}->setattr( fileno $tty, TCSANOW ) if delete $self->{set};
    delete $SIG{TSTP};    ## no critic (RequireLocalizedPunctuationVars)
    return;
}

sub due {
    my $self = shift;
    return $self->{tty} && !$self->{set} ? $self->{look_at} // 0 : ();
}

# loop; keys: [ letter, word, code ], in the order in which they are told. Nothing if STDIN is no terminal, or
# another program has it without echo already
sub new {
    my ( $class, %args ) = @_;
    return if !POSIX::isatty(0);

    # A descriptor of its own: without blocking, which STDOUT and STDERR must not get
    sysopen my $tty, '/proc/self/fd/0', O_RDONLY | O_NOCTTY or return;
    my $before = POSIX::Termios->new;
    return
        if !$before->getattr( fileno $tty ) || ( $before->getlflag & ( ECHO | ICANON ) ) != ( ECHO | ICANON );
    my $self = bless { %args, before => $before, pid => $$, tty => $tty }, $class;
    weaken( my $own = $self );
    $SIG{TSTP} = sub { $own->_suspend if $own };    ## no critic (RequireLocalizedPunctuationVars)
    $self->act;
    return $self;
}

sub words {
    my ( $class, @keys ) = @_;
    return join '  ', map {"$_->[0] $_->[1]"} @keys;
}

# Sequences of cursor and function keys are none of ours
sub _press {
    my ( $self, $keys ) = @_;
    $keys =~ s/\e(?:\[[\d;]*[A-Za-z~]|O.)//g;
    my %code = map { $_->[0] => $_->[2] } @{ $self->{keys} };
    for my $key ( split //, lc $keys ) {
        if    ( $code{$key} )      { $code{$key}->() }
        elsif ( $key =~ /[h?]/ )   { print {*STDERR} $self->words( @{ $self->{keys} } ), "\n" }
        elsif ( $key =~ /[\r\n]/ ) { print {*STDERR} "\n" }
    }
    return;
}

# Single characters, without echo. Signals and output stay as they are
sub _set {
    my $self = shift;
    my $new  = POSIX::Termios->new;
    my $fd   = fileno $self->{tty};
    $new->getattr($fd);
    $new->setlflag( $new->getlflag & ~( ECHO | ICANON ) );
    $new->setcc( VMIN,  1 );
    $new->setcc( VTIME, 0 );
    return 0 if !$new->setattr( $fd, TCSANOW );
    $self->{set} = 1;
    $self->{loop}->watch( $self->{tty} );
    return 1;
}

# Ctrl-Z. The shell gets the terminal as it was, and fg gives it back
sub _suspend {
    my $self = shift;
    return if $self->{pid} != $$;
    if ( delete $self->{set} ) {
        $self->{loop}->unwatch( $self->{tty} );
        $self->{before}->setattr( fileno $self->{tty}, TCSANOW );
    }
    kill STOP => $$;    # TSTP itself is blocked while its handler runs
    $self->act;
    return;
}

sub DESTROY {
    my $self = shift;
    local ( $@, $! );
    return $self->close;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Keys - what somebody presses in the terminal of C<sirius dev>

=head1 SYNOPSIS

  my $keys = Sirius::Dev::Keys->new( loop => $loop, keys => [ [ r => 'reload', sub {...} ] ] );
  $loop->add($keys) if $keys;
  $keys->close;

=head1 DESCRIPTION

If STDIN is a terminal, each key takes effect at once, and is not shown. Ctrl-C, Ctrl-Z and the output stay as they are. The terminal gets
its former settings at the end, and while the server is stopped by Ctrl-Z. In the background it is neither read nor set. C<h> prints the
keys, Enter an empty line.

=head1 METHODS

=head2 act, due

As those of any member of a L<Sirius::OS::Loop>.

=head2 close

Gives the terminal its former settings.

=head2 new

  my $keys = Sirius::Dev::Keys->new( loop => $loop, keys => [ [ $letter, $word, $code ], ... ] );

Nothing if STDIN is no terminal, or is without echo already, since another program uses it in this way.

=head2 words

  my $text = Sirius::Dev::Keys->words( [ r => 'reload' ], [ q => 'quit' ] );

What the keys are, in one line.

=head1 SEE ALSO

L<Sirius::Dev::Session>.

=cut
