package Sirius::Test::Proxy;

# What HAProxy.pm and Nginx.pm have in common: a proxy in front of a server under test, with files in a
# directory of its own. It is stopped at the end in any case.

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

# In a process group of its own, since it may have workers. The code runs in the child
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

# Everything it has complained about
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
