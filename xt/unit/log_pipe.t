use strict;
use warnings;
use lib 't/lib';
use File::Temp qw(tempdir);
use POSIX      qw(SIGTERM SIG_BLOCK SIG_SETMASK WNOHANG);
use Test::More;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);
use Sirius;
use Sirius::Log::Pipe;
use Sirius::OS::Reaper;
use Sirius::Test;

my $dir  = tempdir( CLEANUP => 1 );
my $conf = { err_respawn_interval => 0.2 };
my ( @noted, $reaper );
{
    no warnings 'redefine';
    *Sirius::Log::_put = sub { push @noted, $_[1] }
}

sub content {
    open my $fh, '<', "$dir/" . shift or return '';
    local $/ = undef;
    my $text = readline $fh;
    return defined $text ? $text : '';
}

sub new {
    my $command = shift;
    @noted = ();
    unlink glob "$dir/*";
    my $pipe = Sirius::Log::Pipe->new( $conf, "cd $dir; $command" );
    $pipe->reaped_by( $reaper = Sirius::OS::Reaper->new );
    return $pipe;
}

sub noted {
    return join '', map {s/\[sirius \d+\] \w+: --access-log: 'cd \S+ //r} splice @noted;
}

sub put { return syswrite shift->fh, shift }

# As a supervisor does, until it is so
sub tend_until {
    my ( $pipe, $code ) = @_;
    return until_true(
        60,
        sub {
            $reaper->reap;
            $pipe->act;
            return $code->();
        }
    );
}

subtest 'Read to the end' => sub {
    my $pipe = new('cat > log; echo "$?" > status');
    is_deeply [ $pipe->due ], [0], 'due';
    put( $pipe, "early\n" );
    $pipe->act;
    is_deeply [ $pipe->due ], [], 'runs';
    put( $pipe, "late\n" );
    $pipe->stop;
    is content('log'),    "early\nlate\n", 'all lines';
    is content('status'), "0\n",           'the end of the file ends it';
    is noted(),           '',              'no word about it';
    $pipe->stop;
    $pipe->act;
    is waitpid( -1, WNOHANG ), -1, 'gone, and does not come back';
};

subtest 'It dies' => sub {
    my $pipe = new('echo >> runs; head -n1 >> log; exit 3');
    put( $pipe, "one\n" );
    ok tend_until( $pipe, sub {@noted} ), 'ended';
    is noted(), "echo >> runs; head -n1 >> log; exit 3' exited with status 3; next attempt in 0.2 s\n",
        'says so';
    my ($due) = $pipe->due;
    cmp_ok $due, '<=', clock_gettime(CLOCK_MONOTONIC) + 0.2, 'after the shortest time';
    put( $pipe, "two\n" );
    $pipe->act;
    ok $pipe->due || clock_gettime(CLOCK_MONOTONIC) >= $due, 'not earlier';
    ok tend_until( $pipe, sub {@noted} ),                    'ended again';
    like noted(), qr/exited with status 3; next attempt in 0.4 s\n/, 'longer each time';
    is content('log'),  "one\ntwo\n", 'what came meanwhile was kept';
    is content('runs'), "\n\n",       'it ran twice';
    put( $pipe, "three\n" );
    $pipe->stop;
    is content('log'), "one\ntwo\nthree\n", 'at the end it gets what waits, at once';
    is noted(),        '',                  'and may do with it what it likes';
};

subtest 'Nothing waits' => sub {
    my $pipe = new('echo >> runs');
    ok tend_until( $pipe, sub {@noted} ), 'ended';
    like noted(), qr/exited with status 0; next attempt in 0.2 s\n/, 'without an error';
    $pipe->stop;
    is content('runs'), "\n", 'is not started only to end';
};

subtest 'It worked for a while' => sub {
    my $pipe = new('echo >> runs; kill -9 $$');
    ok tend_until( $pipe, sub {@noted} ), 'started';
    noted();
    ok tend_until( $pipe, sub { !$pipe->due } ), 'again';
    $pipe->{child}{since} -= 3600;    # it has served for an hour
    ok tend_until( $pipe, sub {@noted} ), 'killed';
    like noted(), qr/was killed by signal 9 \(KILL\); starting it again\n/, 'is started again';
    ok tend_until( $pipe, sub {@noted} ), 'fails again';
    like noted(), qr/next attempt in 0.2 s/, 'the waiting starts anew';
    $pipe->stop;
};

subtest 'A supervisor that blocks its signals' => sub {
    my $list = 'ls /proc/self/fd';
    system "$list > $dir/own";
    my $own     = content('own');                # what the test has inherited, every command inherits
    my $blocked = POSIX::SigSet->new(SIGTERM);
    my $before  = POSIX::SigSet->new;
    POSIX::sigprocmask( SIG_BLOCK, $blocked, $before );
    my $pipe = new("grep SigBlk /proc/self/status > s; $list > f; ps -o pgid= \$\$ > p; cat");
    $pipe->act;
    my $pid = $pipe->{child}->pid;
    $pipe->stop;
    POSIX::sigprocmask( SIG_SETMASK, $before );
    like content('s'), qr/\ASigBlk:\s0+\n\z/, 'none is blocked in the command';
    is content('f'), $own, 'it has descriptors 0 to 2';
SKIP: {
        skip 'no ps', 1 if !length content('p');
        like content('p'), qr/\A\s*$pid\n\z/, 'and a process group of its own';
    }
};

subtest 'It does not end' => sub {
    my $pipe = new('exec 2>&-; trap "echo told > log; exit" TERM; echo > up; while :; do sleep 0.1; done');
    $pipe->act;
    ok until_true( 60, sub { length content('up') } ), 'runs';
    $pipe->stop(0.5);
    is content('log'), "told\n", 'is asked to';
    like noted(), qr/\A[^\n]* did not exit at the end of its input and was terminated by TERM\n\z/,
        'and does';
    $pipe = new('exec 2>&-; trap "" TERM; echo $$ > up; while :; do sleep 0.1; done');
    $pipe->act;
    ok until_true( 60, sub { length content('up') } ), 'another';
    $pipe->stop(0.5);
    like noted(), qr/did not exit and was killed\n\z/, 'is killed';
    chomp( my $pid = content('up') );
    ok !kill( 0, $pid ), 'dead';
};

subtest 'Handed over' => sub {
    my $pipe = new('cat >> log');
    $pipe->act;
    put( $pipe, "one\n" );
    my $state = $pipe->state;
    my $pid   = $pipe->{child}->pid;
    my $again = Sirius::Log::Pipe->restore( $conf, $state );
    $again->reaped_by($reaper);
    is_deeply $again->state,   $state, 'the same';
    is_deeply [ $again->due ], [],     'it runs still';
    kill KILL => $pid;
    ok tend_until( $again, sub {@noted} ), 'and is its child';
    like noted(), qr/was killed by signal 9 \(KILL\); next attempt in 0.2 s\n/, 'right words';
    put( $again, "two\n" );
    undef $pipe;
    $again->stop;
    like content('log'), qr/two\n\z/, 'what came then is not lost';
};

subtest 'In a child' => sub {
    my $pipe = new('cat >> log');
    $pipe->act;
    my $fh  = $pipe->fh;
    my $pid = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        $pipe->release;
        $pipe->stop;
        syswrite $fh, "child\n";
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    is $?, 0, 'a child that is done with it';
    undef $fh;
    is_deeply [ $pipe->due ], [], 'does it no harm';
    $pipe->stop;
    is content('log'), "child\n", 'and can write';
};

subtest 'A pipe' => sub {
    my $pipe = new('cat');
    my $size = 0;
    my $n;
    while ( $n = put( $pipe, 'x' x 4096 ) ) { $size += $n }
    ok $!{EAGAIN}, 'full: does not wait';
    cmp_ok $size, '>=', 4096, "after $size bytes";
};

done_testing;
