package Sirius::Test::HAProxy;

# HAProxy in front of a server under test: its configuration is a text in which LISTENER is the descriptor of a listening
# socket, opened here and inherited, so that no port has to be guessed. It is stopped at the end in any case.

use strict;
use warnings;
use Fcntl qw(F_SETFD);
use File::Temp;
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use Sirius::Test::Client;
use Sirius::Test::Server;

my %running;

# Its path, undefined when it is not installed
sub available {
    my ($path) = grep {-x} map {"$_/haproxy"} split( /:/, $ENV{PATH} ), '/usr/sbin', '/usr/local/sbin';
    return $path;
}

sub start {
    my ( $class, $configuration ) = @_;
    my $listener = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 128 ) or die "listen: $!";
    my $self     = bless { dir => File::Temp->newdir, port => $listener->sockport, owner => $$ }, $class;
    my $number   = fileno $listener;
    open my $out, '>:raw', "$self->{dir}/conf" or die "$self->{dir}/conf: $!";
    print {$out} $configuration =~ s/\bLISTENER\b/$number/gr;
    close $out or die "$self->{dir}/conf: $!";
    my $pid = fork;
    defined $pid or die "fork: $!";

    if ( !$pid ) {
        setpgrp 0, 0;
        fcntl $listener, F_SETFD, 0 or POSIX::_exit(126);
        open STDERR, '>>', "$self->{dir}/log" or POSIX::_exit(126);
        open STDOUT, '>>', "$self->{dir}/log" or POSIX::_exit(126);
        open STDIN,  '<',  '/dev/null'        or POSIX::_exit(126);
        exec $class->available, '-db', '-f', "$self->{dir}/conf" or POSIX::_exit(127);
    }
    setpgrp $pid, $pid;
    $self->{pid} = $running{$pid} = $pid;
    close $listener;
    return $self;
}

# The socket listens already: what comes before it runs waits for it
sub connect { return Sirius::Test::Client->new( '127.0.0.1:' . shift->{port} ) }

sub log { return Sirius::Test::Server::slurp( shift->{dir} . '/log' ) }

sub port { return shift->{port} }

sub stop {
    my $self = shift;
    return _end( $self->{pid} );
}

sub _end {
    my $pid = shift;
    return if !delete $running{$pid};
    local ( $?, $! );
    kill TERM => $pid;
    Sirius::Test::Server::until_true( 5, sub { waitpid( $pid, WNOHANG ) } ) or kill KILL => -$pid;
    return;
}

sub DESTROY {
    my $self = shift;
    return $self->{owner} == $$ ? $self->stop : ();
}

my $owner = $$;
END { _end($_) for $owner == $$ ? keys %running : () }

1;
