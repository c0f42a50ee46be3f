package Sirius::Test::HAProxy;

# HAProxy. Its configuration is a text in which LISTENER is the descriptor of a listening socket, opened here
# and inherited. So no port has to be guessed, and connections made before HAProxy runs wait for it

use strict;
use warnings;
use Fcntl qw(F_SETFD);
use IO::Socket::INET;
use POSIX ();
use parent 'Sirius::Test::Proxy';

sub available { return Sirius::Test::Server::program('haproxy') }

sub start {
    my ( $class, $configuration ) = @_;
    my $listener = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 128 ) or die "listen: $!";
    my $self     = $class->new;
    my $number   = fileno $listener;
    $self->{port} = $listener->sockport;
    my $conf = $self->configure( $configuration =~ s/\bLISTENER\b/$number/gr );
    $self->spawn( sub { fcntl $listener, F_SETFD, 0 or POSIX::_exit(126) },
        $class->available, '-db', '-f', $conf );
    close $listener;
    return $self;
}

1;
