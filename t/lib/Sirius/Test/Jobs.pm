package Sirius::Test::Jobs;

# A job worker for --beside that notices when there are two of it, and a server that runs it.
#
#   my $server = start( 'jobs=' . jobs() . ' finish', '--graceful-timeout', 1 );
#   ok running('jobs'), 'it runs';
#   is happened('twice'), 0, 'once';
#   $server->stop;
#   none_left();

use strict;
use warnings;
use Exporter   qw(import);
use File::Temp ();
use IO::Socket::UNIX;
use JSON::PP   ();
use Socket     qw(SOCK_STREAM);
use Test::More ();
use Sirius::Test::Server;

our @EXPORT = qw(alive events happened jobs jobs_dir left none_left running start status);

use constant APP => "sub { [ 200, [], ['ok'] ] }\n";

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

# Its child has its lock too. With "finish" it ends 0.3 s after TERM, with "stubborn" not at all
Sirius::Test::Server::spew( "$dir/jobs.pl", <<"JOBS" );
use strict;
use warnings;
use Fcntl qw(:flock);
use Time::HiRes qw(sleep);

my \%how = map { \$_ => 1 } \@ARGV;
my \$last;

sub event {
    open my \$to, '>>', '$dir/events' or die;
    syswrite \$to, join( ' ', \@_, \$\$ ) . "\\n";
}

\$SIG{TERM} = sub {
    event('term');
    exit 0 if !\$how{stubborn} && !\$how{finish};
    \$last = 1;
};
open my \$lock, '>>', '$dir/lock' or die;
flock \$lock, LOCK_EX | LOCK_NB or event('twice');
if ( !fork ) {
    \$SIG{TERM} = sub { event('child-term') };
    event('child');
    sleep 0.05 while 1;
}
event( 'start', \@ARGV );
if ( \$how{finish} ) {
    sleep 0.02 while !\$last;
    sleep 0.3;
    event('finished');
    exit 0;
}
sleep 1 while 1;
JOBS

sub alive {
    my %state = map { $_->{pid} => $_->{state} } Sirius::Test::Server::all_processes();
    return grep { ( $state{$_} // 'Z' ) ne 'Z' } @_;
}

# What job workers have written since the last start: lines of words and a PID
sub events { return Sirius::Test::Server::slurp("$dir/events") }

# How often that has happened
sub happened { my $what = shift; return scalar( () = events() =~ /^\Q$what\E\b/mg ) }

# The command
sub jobs { return "$^X $dir/jobs.pl" }

sub jobs_dir { return "$dir" }

# Job workers and their children that are there. Among thousands of PIDs there is one that another process has
# by now
sub left {
    my @pids = map { ( split / / )[-1] } grep {/^(?:start|child) /} split /\n/, events();
    return grep { index( Sirius::Test::Server::slurp("/proc/$_/cmdline"), "$dir" ) >= 0 } alive(@pids);
}

# A test
sub none_left {
    my ($name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return Test::More::ok( Sirius::Test::Server::until_true( 5, sub { !left() } ),
        $name || 'nothing of it is left' );
}

# True once a command of this name runs
sub running {
    my $name = shift;
    return Sirius::Test::Server::until_true( 10, sub { ( status()->{$name}{state} // q() ) eq 'running' } );
}

# A server with these commands; a hash behind them has options of Sirius::Test::Server
sub start {
    my ( $beside, @args ) = @_;
    unlink map {"$dir/$_"} qw(control events lock);
    my %option = ref $args[0]                           ? %{ shift @args } : ();
    my @beside = map { ( '--beside', $_ ) } ref $beside ? @$beside         : $beside;
    return Sirius::Test::Server->start(
        app  => APP,
        args => [ qw(--workers 2 --err-respawn-interval 0.05 --control), "$dir/control", @args, @beside ],
        %option
    );
}

# What "sirius ctl status" is told of them, by their names
sub status {
    my $socket = IO::Socket::UNIX->new( Type => SOCK_STREAM, Peer => "$dir/control" ) or return {};
    print {$socket} qq({"command":"status"}\n);
    my $answer = eval { JSON::PP->new->decode( readline $socket ) } || {};
    return { map { $_->{name} => $_ } @{ $answer->{status}{beside} || [] } };
}

1;
