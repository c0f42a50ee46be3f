package Sirius::Test::Terminal;

# A terminal, and programs that run in it.
#
#   my $terminal = Sirius::Test::Terminal->open or plan skip_all => "/dev/ptmx: $!";
#   my $pid      = $terminal->run( sub { exec 'cat' } );
#   $terminal->type("hello\n");
#   ok $terminal->shows(qr/hello/);

use strict;
use warnings;
use Fcntl qw(F_GETFL F_SETFL O_NOCTTY O_NONBLOCK O_RDWR);
use POSIX ();
use Sirius::Test::Server;

# Of Linux: linux/tty.h, asm-generic/ioctls.h
use constant { TIOCGPTN => 0x8004_5430, TIOCSPTLCK => 0x4004_5431 };

sub close {
    my $self = shift;
    close delete $self->{master} if $self->{master};
    return;
}

# Whether each key comes at once, and is not shown
sub is_raw {
    my $self    = shift;
    my $termios = POSIX::Termios->new;
    $termios->getattr( fileno $self->{master} ) or die "tcgetattr: $!";
    return $termios->getlflag & ( POSIX::ICANON | POSIX::ECHO ) ? 0 : 1;
}

sub open {
    my $class = shift;
    sysopen my $master, '/dev/ptmx', O_RDWR | O_NOCTTY or return;
    my $number = pack 'i', 0;
    ioctl $master, TIOCSPTLCK, $number or die "TIOCSPTLCK: $!";
    ioctl $master, TIOCGPTN,   $number or die "TIOCGPTN: $!";
    return bless { master => $master, path => '/dev/pts/' . unpack( 'i', $number ), shown => '' }, $class;
}

# In a child, whose terminal this becomes. STDERR and STDOUT stay; with all => 1 they are the terminal as well
sub run {
    my ( $self, $code, %option ) = @_;
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    return $pid    if $pid;
    POSIX::setsid();
    CORE::open STDIN, '+<', $self->{path} or POSIX::_exit(126);
    if ( $option{all} ) {
        CORE::open STDOUT, '>&', \*STDIN or POSIX::_exit(126);
        CORE::open STDERR, '>&', \*STDIN or POSIX::_exit(126);
    }
    $code->();
    POSIX::_exit(127);
}

# What was printed until now
sub shown {
    my $self   = shift;
    my $master = $self->{master};
    fcntl $master, F_SETFL, O_NONBLOCK | fcntl $master, F_GETFL, 0;
    1 while sysread $master, $self->{shown}, 65_536, length $self->{shown};
    return $self->{shown};
}

# True once that was printed since the last call
sub shows {
    my ( $self, $pattern ) = @_;
    return Sirius::Test::Server::until_true(
        30,
        sub {
            $self->shown;
            return $self->{shown} =~ s/\A.*?$pattern//s;
        }
    );
}

sub type {
    my ( $self, $keys ) = @_;
    syswrite $self->{master}, $keys or die "the terminal: $!";
    return;
}

1;
