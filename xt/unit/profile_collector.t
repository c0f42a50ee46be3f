use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp          ();
use POSIX               ();
use Sirius::Base::Clock qw(now);
use Sirius::Profile::Collector;
use Sirius::Profile::Table;
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
    my ( $self, $only ) = @_;
    return map { [ $_, $self->{pids}[$_], 1, 'GET /' ] } $only // $self->occupied;
}

# A perl that sleeps, 30 calls deep
sub perl {
    my $pid = fork // die "fork: $!";
    if ( !$pid ) {
        exec $^X, '-e',
            'sub Sirius::Worker::run { deep(30) } sub deep { $_[0] ? deep( $_[0] - 1 ) : sleep 300; 1 } Sirius::Worker::run(); 1',
            'asleep'
            or POSIX::_exit(1);
    }
    push @running, $pid;
    until_true(
        20,
        sub {
            Sirius::Test::Server::slurp("/proc/$pid/cmdline") =~ /asleep/
                && eval { Sirius::OS::Sampler->new($pid) };
        }
    );
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

subtest 'Many workers' => sub {
    my $pid = perl();
    my $hz  = sub {
        my ( $workers, $wanted, @more ) = @_;
        my $board = bless { pids => [ ($pid) x $workers ] }, 'Sirius::Test::Rows';
        return Sirius::Profile::Collector->new( board => $board, hz => $wanted, @more )->samples->hz;
    };
    is $hz->( 1, 1000 ),                 1000, 'of one as many samples as are wanted';
    is $hz->( 32, 99 ),                  99,   'also of some';
    is $hz->( 64, 99 ),                  50,   'fewer where there are many';
    is $hz->( 64, 20 ),                  20,   'unless fewer are wanted';
    is $hz->( 5000, 99 ),                1,    'one at least';
    is $hz->( 64, 99, worker => 3 ),     99,   'but only those count that are looked at';
    is $hz->( 64, 99, only => sub { } ), 99,   'and that may be looked at';
    ended($pid);
};

subtest 'A dump is bounded' => sub {
    my $pid       = perl();
    my $board     = bless { pids => [ $pid, $pid ] }, 'Sirius::Test::Rows';
    my $collector = Sirius::Profile::Collector->new( board => $board );
    my $frames    = sub { return $collector->dump(@_)->[1]{frames} || [] };
    ok until_true( 20, sub { @{ $frames->() } == 32 } ), 'as many frames as there are';
    is_deeply $frames->(10_000), $frames->(), 'if they have room';
    my ( undef, $outer, @inner ) = ( '', @{ $frames->() }[ -4 .. -1 ] );
    my $room = length join '', @inner;
    is_deeply $frames->( 2 * $room ),                     [ '...', @inner ],         'else the inner ones';
    is_deeply $frames->( 2 * ( $room + length $outer ) ), [ '...', $outer, @inner ], 'all that have room';
    is_deeply $frames->(0),                               ['...'],                   'or none';
    ended($pid);
};

subtest 'Stacks for which there is no memory' => sub {
    my $pid   = perl();
    my $board = bless { pids => [$pid] }, 'Sirius::Test::Rows';
    my $collector
        = Sirius::Profile::Collector->new( board => $board, hz => 1000, memory => 400, seconds => 60 );
    ok take( $collector, 20 ), 'samples';
    my $left_out = $collector->samples->left_out;
    cmp_ok $left_out, '>', 0, 'are counted apart';
    like + Sirius::Profile::Table->text( $collector->samples ),
        qr/\A\d+ samples in .*; $left_out are in \(other\), as there were too many different stacks\n/,
        'and a table says so';
    ended($pid);
};

done_testing;
