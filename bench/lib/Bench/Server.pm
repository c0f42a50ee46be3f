package Bench::Server;

# A server under measurement: started on one core, its whole process tree watched, stopped at the end.

use strict;
use warnings;

use File::Path qw(make_path);
use IO::Socket::INET;
use POSIX          qw(WNOHANG setsid);
use Time::HiRes    qw(sleep time);
use Bench::Machine qw(all_cores read_file server_core);
use Bench::Peer    ();
use Bench::Program ();

my $TPS  = POSIX::sysconf(POSIX::_SC_CLK_TCK);
my $PORT = 20_000 + $$ % 10_000;

# Fields: name (see Bench::Peer), those of a run there, under (a command to run it), and cores ("all": not one
# core alone)
sub new {
    my ( $class, %field ) = @_;
    my $workers = Bench::Peer::workers( $field{name} );
    return bless { under => [], workers => 1, %field, $workers ? ( workers => $workers ) : () }, $class;
}

# The words that start it, with the ports and directories of this run
sub command {
    my $self = shift;
    return Bench::Peer::command( $self->{name}, %$self );
}

# True if there is a command for it; otherwise the reason
sub can_run {
    my $self = shift;
    my $peer = Bench::Peer::peer( $self->{name} );
    return 'cannot be measured without libssl-dev' if $self->{tls} && !Bench::Program::has_tls();
    return 'serves constant bytes'
        if $peer->{fixed}
        && $self->{app}
        !~ ( $self->{name} eq 'nginx' ? qr/hello|ok|8000|request|reload|static/ : qr/hello|ok|8000|request/ );
    return 'ends no worker after so many requests' if $self->{retire} && !$peer->{retires};
    return 'has no access log' if $self->{log} && ( $peer->{nolog} || $self->{name} eq 'floor' );
    return '';
}

sub start {
    my $self = shift;
    make_path($Bench::Peer::DIR);
    $self->{port}   = $PORT++;
    $self->{output} = "$Bench::Peer::DIR/$self->{name}-$self->{port}.log" =~ s{\@.*/}{-}r;
    my $cores   = ( $self->{cores} || '' ) eq 'all' ? join ',', all_cores() : server_core();
    my @command = ( 'taskset', '-c', $cores, @{ $self->{under} }, $self->command );
    my %env     = Bench::Peer::peer_env( $self->{name}, %$self );
    $self->{owner} = $$;
    defined( $self->{pid} = fork ) or die "fork: $!\n";

    if ( !$self->{pid} ) {
        setsid;
        @ENV{ keys %env } = values %env;
        open STDIN,  '<',  '/dev/null'     or die $!;
        open STDOUT, '>',  $self->{output} or die $!;
        open STDERR, '>&', \*STDOUT        or die $!;
        exec @command or print "$command[0]: $!\n";
        POSIX::_exit(127);
    }
    my $began = time;
    my $until = $began + ( @{ $self->{under} } ? 120 : 20 );
    while ( !$self->_answers ) {
        next if time < $until && waitpid( $self->{pid}, WNOHANG ) == 0 && sleep 0.005;
        my $log = read_file( $self->{output} );
        $self->stop;
        die "$self->{name} does not start: @command\n$log\n";
    }
    $self->{started_in} = time - $began;
    return $self;
}

sub stop {
    my $self = shift;
    my $pid  = delete $self->{pid} or return;
    kill TERM => grep { kill 0 => $_ } $pid,
        $self->{successor} || ();
    my $until = time + ( @{ $self->{under} } ? 60 : 5 );
    while ( waitpid( $pid, WNOHANG ) == 0 ) {
        next if time < $until && sleep 0.02;
        kill KILL => -$pid;
        waitpid $pid, 0;
        last;
    }
    kill KILL => -$pid;
    unlink $self->{output} if !$self->{failed};
    return;
}

sub DESTROY {
    my $self = shift;
    local ( $?, $@ );
    $self->stop if ( $self->{owner} // 0 ) == $$;
    return;
}

# Supervisor first. What is left of its session counts, although its parent has gone
sub pids {
    my $self = shift;
    my ( %children, @session );
    for my $stat ( map { read_file($_) } glob '/proc/[0-9]*/stat' ) {
        my ( $pid, $parent, $session ) = $stat =~ /\A([0-9]+) \(.*\) \S ([0-9]+) [0-9]+ ([0-9]+)/s or next;
        push @{ $children{$parent} }, $pid;
        push @session,                $pid if $session == $self->{pid};
    }
    my @pids = $self->{pid};
    push @pids, @{ $children{$_} || [] } for @pids;
    my %seen = map { $_ => 1 } @pids;
    return grep { -e "/proc/$_" } @pids, grep { !$seen{$_} } @session;
}

# User and system time of all its processes and threads: exact if the kernel has schedstat, otherwise in ticks
sub cpu_seconds {
    my $self = shift;
    my $sum  = 0;
    for my $pid ( $self->pids ) {
        my @run = map { (split)[0] } grep {/\S/} map { read_file($_) } glob "/proc/$pid/task/*/schedstat";
        if ( grep { $_ > 0 } @run ) {
            $sum += $_ / 1e9 for @run;
            next;
        }
        my @field = split ' ', read_file("/proc/$pid/stat") =~ s/\A.*\) //sr;
        $sum += $_ / $TPS for grep {defined} @field[ 11, 12 ];
    }
    return $sum;
}

# Kilobytes of one process, or of all (Pss): what a process shares with n others counts as 1/n
sub memory {
    my ( $self, @pids ) = @_;
    my $kilobytes = 0;
    for my $pid ( @pids ? @pids : $self->pids ) {
        $kilobytes += $1 if read_file("/proc/$pid/smaps_rollup") =~ /^Pss:\s+([0-9]+)/m;
    }
    return $kilobytes;
}

sub _answers {
    my $self = shift;
    if ( $self->{tls} ) {
        return !system "$Bench::Peer::DIR/tlsclient fresh $self->{port} 0 >/dev/null 2>&1";
    }
    my $socket = IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 5 )
        or return 0;
    my $bytes = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, $bytes or return 0;
    my $line = <$socket>;
    return defined $line && $line =~ m{\AHTTP/1\.[01] 200};
}

1;
