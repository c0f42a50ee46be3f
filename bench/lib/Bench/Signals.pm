package Bench::Signals;

# Sends signals from a process of its own, so that the load goes on meanwhile. It ends with the object.

use strict;
use warnings;

use POSIX       qw(WNOHANG);
use Time::HiRes qw(sleep time);

my $LIFE  = 120;    # how often a signal is sent at most, if no number is given
my $EVERY = 0.2;    # seconds between two signals of start_random

# To this process, once a second
sub start {
    my ( $class, $signal, $to ) = @_;
    return $class->_fork( sub {
        for ( 1 .. $LIFE ) {
            kill $signal => $to;
            sleep 1;
        }
    } );
}

# Calls the code once a second, so many times; what it has done is told by count
sub start_each {
    my ( $class, $times, $code ) = @_;
    return $class->_fork( sub {
        my $report = shift;
        for ( 1 .. $times ) {
            $code->();
            syswrite $report, '.';
            sleep 1;
        }
    } );
}

# To one of the processes that the code lists, so many times, every 200 ms if there is one; only to those that
# are at least so many seconds old
sub start_random {
    my ( $class, $signal, $list, $times, $age ) = @_;
    return $class->_fork( sub {
        my ( $report, %since, %had ) = @_;
        for ( my $until = time + 2 * $times + 20; $times > 0 && time < $until; sleep $EVERY ) {
            my @all = $list->();
            $since{$_} ||= time for @all;
            my @pids = grep { !$had{$_} && time >= $since{$_} + $age } @all or next;
            my $pid  = $pids[ rand @pids ];
            kill $signal => $pid or next;
            $had{$pid} = 1;
            syswrite $report, '.';
            $times--;
        }
    } );
}

# How many were sent; ask when it is over
sub count {
    my $self = shift;
    sysread $self->{report}, my $dots, 65_536;
    return length $dots;
}

# True once all were sent
sub is_over {
    my $self = shift;
    return $self->{over} ||= waitpid( $self->{pid}, WNOHANG ) != 0;
}

sub _fork {
    my ( $class, $code ) = @_;
    pipe my $report, my $to or die "pipe: $!\n";
    defined( my $pid = fork ) or die "fork: $!\n";
    if ( !$pid ) {
        $code->($to);
        POSIX::_exit(0);
    }
    return bless { pid => $pid, owner => $$, report => $report }, $class;
}

sub DESTROY {
    my $self = shift;
    return if $self->{owner} != $$ || $self->is_over;
    local ( $?, $@ );
    kill KILL => $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

1;
