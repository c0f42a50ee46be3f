package Sirius::Test::Proxy;

# A proxy in front of a server under test: what all of them need. Its files are in a directory of its own; it is stopped at
# the end in any case. HAProxy.pm and Nginx.pm know how to start theirs.

use strict;
use warnings;
use File::Temp;
use POSIX qw(WNOHANG);
use Sirius::Test::Client;
use Sirius::Test::Server;

my %running;

sub new {
    my $class = shift;
    return bless { dir => File::Temp->newdir, owner => $$ }, $class;
}

sub configure {
    my ( $self, $text ) = @_;
    return Sirius::Test::Server::spew( "$self->{dir}/conf", $text );
}

# In a group of its own, since it may have workers. The code is run in the child
sub spawn {
    my ( $self, $prepare, @command ) = @_;
    my $pid = fork;
    defined $pid or die "fork: $!";
    if ( !$pid ) {
        setpgrp 0, 0;
        $prepare->();
        open STDERR, '>>', "$self->{dir}/log" or POSIX::_exit(126);
        open STDOUT, '>>', "$self->{dir}/log" or POSIX::_exit(126);
        open STDIN,  '<',  '/dev/null'        or POSIX::_exit(126);
        exec @command or POSIX::_exit(127);
    }
    setpgrp $pid, $pid;
    return $self->{pid} = $running{$pid} = $pid;
}

sub ended {
    my $self = shift;
    return waitpid( $self->{pid}, WNOHANG ) == $self->{pid} && delete $running{ $self->{pid} };
}

sub connect { return Sirius::Test::Client->new( '127.0.0.1:' . shift->{port} ) }

# All that it has complained about
sub log { return Sirius::Test::Server::slurp( shift->{dir} . '/log' ) }

sub dir { return '' . shift->{dir} }

sub port { return shift->{port} }

sub stop { return _end( shift->{pid} ) }

sub _end {
    my $pid = shift;
    return if !$pid || !delete $running{$pid};
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
