package Sirius::CLI::Top::Screen;

use strict;
use warnings;

use Errno               qw(EINTR);
use IO::Handle          ();
use List::Util          qw(min);
use POSIX               qw(ECHO ICANON TCSAFLUSH VMIN VTIME);
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;

use constant TIOCGWINSZ => $^O eq 'linux' ? 0x5413 : 0x40087468;    # perl knows it only where h2ph was run

sub close {
    my $self = shift;
    return if !delete $self->{open};
    print "\e[?25h\e[?1049l";    # shows the cursor and the former screen again
    STDOUT->flush;
    my $old = delete $self->{old};
    $old->setattr( 0, TCSAFLUSH ) if $old;
    return;
}

sub is_possible { return POSIX::isatty(1) && ( $ENV{TERM} || 'dumb' ) ne 'dumb' }

# Returns a character, or nothing when the time is over or somebody has called wake
sub key {
    my ( $self, $seconds ) = @_;
    my $until = now() + $seconds;
    my $bits  = '';
    vec( $bits, 0, 1 ) = 1 if $self->{old} && !$self->{gone};

    # In steps, so that a signal just before the select is noticed after it
    while ( !delete $self->{woken} && ( my $left = $until - now() ) > 0 ) {
        return $self->_read if select( my $ready = $bits, undef, undef, min 0.5, $left ) > 0;
    }
    return;
}

sub new { return bless {}, shift }

sub open {
    my $self = shift;
    return if $self->{open}++;
    if ( POSIX::isatty(0) ) {
        my ( $old, $new ) = map { POSIX::Termios->new } 1 .. 2;
        $_->getattr(0) for $old, $new;
        $new->setlflag( $new->getlflag & ~( ECHO | ICANON ) );
        $new->setcc( VMIN,  1 );
        $new->setcc( VTIME, 0 );
        $new->setattr( 0, TCSAFLUSH );
        $self->{old} = $old;
    }
    print "\e[?1049h\e[?25l";
    return;
}

sub show {
    my ( $self, $header, @lines ) = @_;
    my ( $width, $height ) = $self->size;

    # At the right edge the cursor stays on the last character, so there is nothing to erase after it
    my @text = map {
        ( $_ eq $header ? "\e[7m$_\e[m" : $_ ) . ( Sirius::Base::Text->columns($_) >= $width ? '' : "\e[K" )
    } @lines;
    utf8::encode($_) for @text;
    print "\e[H", join( "\r\n", @text ), @text < $height ? "\e[J" : '';
    STDOUT->flush;
    return;
}

# Columns and lines
sub size {
    my $self = shift;
    my $size = pack 'S4', 0, 0, 0, 0;
    my ( $lines, $columns ) = ioctl( STDOUT, TIOCGWINSZ, $size ) ? unpack 'S4', $size : ( 0, 0 );
    return ( $columns || 80, $lines || 24 );
}

sub wake {
    my $self = shift;
    $self->{woken} = 1;
    return;
}

# Once the terminal is gone, it is not read again
sub _read {
    my $self = shift;
    my $got  = sysread STDIN, my $key, 1;
    $self->{gone} = 1 if !$got && ( defined $got || $! != EINTR );
    return $got ? $key : undef;
}

sub DESTROY { return shift->close }

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Top::Screen - a terminal that is drawn again and again

=head1 SYNOPSIS

  use Sirius::CLI::Top::Screen;

  my $screen = Sirius::CLI::Top::Screen->new;
  $screen->open;
  $screen->show( $header, @lines );
  my $key = $screen->key(2);
  $screen->close;

=head1 DESCRIPTION

Uses escape sequences that all present terminals understand, and no library for others. At the end the previous content
of the screen is restored.

=head1 METHODS

=head2 close

Restores the terminal. The end of the object does the same.

=head2 is_possible

False if STDOUT is not a terminal, or a dumb one.

=head2 key

  my $key = $screen->key($seconds);

Waits for a character. Undefined if there was none in that time, or before L</wake>.

=head2 new

  my $screen = Sirius::CLI::Top::Screen->new;

=head2 open

Takes over the screen and lets single characters be read.

=head2 show

  $screen->show( $header, @lines );

Draws the lines over the present ones. Lines equal to C<$header> are highlighted.

=head2 size

  my ( $columns, $lines ) = $screen->size;

The present size of the terminal; 80 and 24 if it is unknown.

=head2 wake

For a signal handler: makes L</key> return within half a second.

=head1 SEE ALSO

L<Sirius::CLI::Top>.

=cut
