package Sirius::Test::Hosts;

# Several hosts on one machine: network namespaces, with a switch between them.
#
#   Sirius::Test::Hosts->enter;                                # this process has a network of its own, or all is skipped
#   my $net = Sirius::Test::Hosts->new( [ map {"10.0.0.$_"} 11 .. 13 ], '10.0.0.2' );
#   $net->start( '10.0.0.2', 'haproxy', '-db', '-f', $file );  # on the host that the others are switched by
#   $net->cut('10.0.0.12'); $net->mend('10.0.0.12');
#
# Nothing has a name, so nothing is left: a namespace is gone with its last process, and its processes end
# with the pipe that this one holds.

use strict;
use warnings;
use File::Temp;
use POSIX        qw(WNOHANG);
use Scalar::Util qw(weaken);
use Test::More   ();
use Sirius::Test::Server;

my %all;    # whatever has to be stopped at the end
my $VARIABLE = 'SIRIUS_TEST_HOSTS';
my $IN       = 'nsenter';

# Runs the program again by exec in unshare. Users other than root need a namespace of users for that
sub enter {
    if ( delete $ENV{$VARIABLE} ) {
        _run(qw(ip link set lo up)) or die "ip: $?\n";
        return;
    }
    my @way = grep {
        !system "@$_ sh -c 'ip link add here type veth peer name there && unshare --net true' >/dev/null 2>&1"
    } ['unshare --net'], ['unshare --net --user --map-root-user'];
    Test::More::plan( skip_all => 'network namespaces, or ip to set them up, cannot be had here' ) if !@way;
    $ENV{$VARIABLE} = 1;
    my @include = map {"-I$_"} @INC;
    exec split( q{ }, $way[0][0] ), $^X, @include, $0, @ARGV or die "unshare: $!\n";
}

# This process has the first address of a network of 256, on the host of the switch, like the others
sub new {
    my ( $class, $hosts, $switch ) = @_;
    my $self = bless { dir => File::Temp->newdir, owner => $$, running => {} }, $class;
    weaken( $all{$self} = $self );
    pipe my $gone, $self->{alive} or die "pipe: $!";
    $self->{hosts}{$_} = $self->_holder($gone) for $switch, @$hosts;
    $self->{switch}    = $switch;
    my $bridge = 'ip link add name switch type bridge && ip link set switch up && ip link set lo up';
    _run( $self->inside($switch), 'sh', '-c', "$bridge && ip address add $switch/24 dev switch" )
        or die "no switch\n";
    my $own = $switch =~ s/\d+\z/1/r;
    $self->_plug( $own, "/proc/$$/ns/net" );
    $self->_plug( $_,   "/proc/$self->{hosts}{$_}/ns/net" ) for @$hosts;
    return $self;
}

# Pulls the cable of a host, and connects it again
sub cut  { my ( $self, $host ) = @_; return $self->_port( $host, 'down' ) }
sub mend { my ( $self, $host ) = @_; return $self->_port( $host, 'up' ) }

# The words that make a command run on this host
sub inside {
    my ( $self, $host ) = @_;
    return ( $IN, "--net=/proc/$self->{hosts}{$host}/ns/net" );
}

sub log { my ( $self, $pid ) = @_; return Sirius::Test::Server::slurp("$self->{dir}/$pid.log") }

# Runs a program on a host until the end of the test; returns its PID
sub start {
    my ( $self, $host, @command ) = @_;
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        setpgrp 0, 0;
        open STDIN,  '<',  '/dev/null'           or POSIX::_exit(126);
        open STDOUT, '>>', "$self->{dir}/$$.log" or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT              or POSIX::_exit(126);
        exec $self->inside($host), @command or POSIX::_exit(127);
    }
    setpgrp $pid, $pid;
    $self->{running}{$pid} = 1;
    return $pid;
}

sub stop {
    my $self = shift;
    local ( $?, $! );
    return if $self->{owner} != $$;
    delete $all{$self};
    for my $pid ( keys %{ $self->{running} } ) {
        kill TERM => $pid;
        Sirius::Test::Server::until_true( 5, sub { waitpid( $pid, WNOHANG ) } ) or kill KILL => -$pid;
        delete $self->{running}{$pid};
    }
    close delete $self->{alive} if $self->{alive};
    waitpid $_, 0 for values %{ delete $self->{hosts} || {} };
    return;
}

# A process with a network of its own, which waits for the end of the pipe
sub _holder {
    my ( $self, $gone ) = @_;
    pipe my $ready, my $tell or die "pipe: $!";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        setpgrp 0, 0;
        close $self->{alive};
        open STDIN,  '<&', $gone or POSIX::_exit(126);
        open STDOUT, '>&', $tell or POSIX::_exit(126);
        exec qw(unshare --net sh -c), 'ip link set lo up; echo; exec cat >/dev/null' or POSIX::_exit(127);
    }
    close $tell;
    defined readline $ready or die "no namespace\n";
    return $pid;
}

# Makes a cable from the switch to another network
sub _plug {
    my ( $self, $address, $namespace ) = @_;
    my $port = _port_name($address);
    my @in   = $self->inside( $self->{switch} );
    my $wire = "ip link add $port type veth peer name eth0 && ip link set $port master switch up";

    # ip names a namespace by a process: moves the cable there
    my ($pid) = $namespace =~ m{/proc/(\d+)/};
    _run( @in, 'sh', '-c', "$wire && ip link set eth0 netns $pid" ) or die "no cable to $address\n";
    my $set = "ip address add $address/24 dev eth0 && ip link set eth0 up";
    _run( $IN, "--net=$namespace", 'sh', '-c', $set ) or die "no address $address\n";
    return;
}

sub _port {
    my ( $self, $host, $state ) = @_;
    return _run( $self->inside( $self->{switch} ), qw(ip link set), _port_name($host), $state );
}

sub _port_name { return 'p' . ( shift =~ /(\d+)\z/ )[0] }

sub _run {
    my @command = @_;
    return !system @command;
}

sub DESTROY { return shift->stop }

END {
    $_->stop for grep {defined} values %all;
}

1;
