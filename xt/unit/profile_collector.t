use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp          ();
use POSIX               ();
use Sirius::Base::Clock qw(now);
use Sirius::Profile::Collector;
use Sirius::Test;
use Test::More;

# What a profile keeps of the processes that it looks at

linux_only('the stack of another process');

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my @running;
END { my $status = $?; kill KILL => @running; waitpid $_, 0 for @running; $? = $status }

# A scoreboard of these PIDs, each with a request
sub Sirius::Test::Rows::occupied { return 0 .. $#{ shift->{pids} } }
sub Sirius::Test::Rows::row      { return { began => 1, pid => $_[0]{pids}[ $_[1] ], state => 'busy' } }

sub Sirius::Test::Rows::requests {
    my $self = shift;
    return map { [ $_, $self->{pids}[$_], 1, 'GET /' ] } $self->occupied;
}

# A perl that sleeps
sub perl {
    my $pid = fork // die "fork: $!";
    if ( !$pid ) {
        exec $^X, '-e', 'sleep 300', 'asleep' or POSIX::_exit(1);
    }
    push @running, $pid;
    until_true( 20, sub { Sirius::Test::Server::slurp("/proc/$pid/cmdline") =~ /asleep/ } );
    return $pid;
}

sub ended {
    my $pid = shift;
    @running = grep { $_ != $pid } @running;
    kill KILL => $pid;
    waitpid $pid, 0;
    return;
}

sub descriptors { return scalar( () = glob "/proc/$$/fd/*" ) }

# Until it has taken this many samples more
sub take {
    my ( $collector, $more ) = @_;
    my $until = $collector->samples->taken + $more;
    return until_true( 20, sub { $collector->act; $collector->samples->taken >= $until } );
}

subtest 'Workers that have ended' => sub {
    my $board     = bless { pids => [ perl(), perl() ] }, 'Sirius::Test::Rows';
    my $collector = Sirius::Profile::Collector->new( board => $board, hz => 1000, seconds => 60 );
    ok take( $collector, 20 ), 'samples';
    my $before = descriptors();
    for ( 1 .. 5 ) {
        ended( $board->{pids}[0] );
        $board->{pids}[0] = perl();
        take( $collector, 20 );
    }
    is $collector->workers, 7,       'five were followed by another one';
    is descriptors(),       $before, 'nothing of them is kept';
    ended($_) for @{ $board->{pids} };
};

subtest 'A process that its parent does not wait for' => sub {
    my $pid       = perl();
    my $collector = Sirius::Profile::Collector->new( pid => $pid, hz => 1000, seconds => 60 );
    ok take( $collector, 20 ), 'samples';
    ok !$collector->ended,     'it runs';
    kill KILL => $pid;
    ok until_true( 20, sub { $collector->act; $collector->ended } ), 'the profile ends with it';
    ended($pid);
};

done_testing;
