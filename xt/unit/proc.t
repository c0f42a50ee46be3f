use strict;
use warnings;
use Test::More;

use POSIX ();
use Sirius::OS::Proc;

use constant NOBODY => 2**22 + 1;    # above the most that pid_max can be

my $own = Sirius::OS::Proc->resident($$);
cmp_ok $own, '>', 1_000_000,      'bytes of this process';
cmp_ok $own, '<', 10_000_000_000, 'not pages of pages';
is( Sirius::OS::Proc->parent($$), getppid, 'its parent' );
like( Sirius::OS::Proc->born($$), qr/\A[1-9]\d*\z/, 'when it began' );

ok( Sirius::OS::Proc->descends( $$, 0, getppid ), 'it descends from its parent' );
ok( Sirius::OS::Proc->descends( $$, Sirius::OS::Proc->parent(getppid) || getppid ),
    'and from the parent of that' );
ok( !Sirius::OS::Proc->descends( $$, @$_ ), "not from @$_" ) for [], [$$], [NOBODY];
ok( !Sirius::OS::Proc->descends( NOBODY, 1, $$ ), 'one that is gone from nobody' );

my $private = Sirius::OS::Proc->private($$);
SKIP: {
    skip 'this kernel has no smaps_rollup', 3 if !-e "/proc/$$/smaps_rollup";
    cmp_ok $private, '>',  500_000,                                    'private bytes of this process';
    cmp_ok $private, '<=', Sirius::OS::Proc->resident($$) + 4_000_000, 'a part of those';
    my $own = 'x' x 20_000_000;
    cmp_ok( Sirius::OS::Proc->private($$), '>=', $private + 19_000_000, 'what it takes is its own' );
}

my $until = times + 0.05;
1 while times < $until;
cmp_ok( Sirius::OS::Proc->cpu($$), '>=', 0.03,  'seconds of a processor' );
cmp_ok( Sirius::OS::Proc->cpu($$), '<=', 3_600, 'not ticks' );

is( Sirius::OS::Proc->cpu(NOBODY),      undef, 'of one that is gone' );
is( Sirius::OS::Proc->resident(NOBODY), 0,     'its bytes' );
is( Sirius::OS::Proc->private(NOBODY),  undef, 'its private bytes' );
is( Sirius::OS::Proc->parent(NOBODY),   0,     'its parent' );
is( Sirius::OS::Proc->born(NOBODY),     undef, 'and when it began' );

is_deeply [ Sirius::OS::Proc->progress(NOBODY) ], [], 'nor does it move';
like( Sirius::OS::Proc->stands(NOBODY), qr/kernel does not tell/, 'or stand anywhere' );

my @before = Sirius::OS::Proc->progress($$);
is $before[0], 'R', 'this process runs';
$until = times + 0.05;
1 while times < $until;
select undef, undef, undef, 0.01;
my @now = Sirius::OS::Proc->progress($$);
cmp_ok $now[1], '>', $before[1], 'it takes CPU time';
cmp_ok $now[2], '>', $before[2], 'and gives the CPU up';
like( Sirius::OS::Proc->stands($$), qr/\Arunning \(state R\)/, 'where it stands' );

# A child with that name; its end closes the handle
sub named {
    my $name = shift;
    pipe my $in, my $out or die "pipe: $!";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        local $0 = $name;
        close $in;
        syswrite $out, 'x';
        sleep 60;
        POSIX::_exit(0);
    }
    close $out;
    sysread $in, my $byte, 1;
    is( Sirius::OS::Proc->name($pid),   $name, "a process with the name $name" );
    is( Sirius::OS::Proc->parent($pid), $$,    'its parent' );
    cmp_ok( Sirius::OS::Proc->born($pid), '>=', Sirius::OS::Proc->born($$), 'it is younger' );
    return $pid, $in;
}

# Names that look like the fields behind them
my ($pid) = named("x\n) Z 1");
kill KILL => $pid;
waitpid $pid, 0;
( $pid, my $in ) = named(') Z 1 1 (');
kill KILL => $pid;
sysread $in, my $byte, 1;    # its end has closed the pipe, nobody has waited for it
for ( 1 .. 500 ) {
    last if !defined Sirius::OS::Proc->born($pid);
    select undef, undef, undef, 0.01;
}
is( Sirius::OS::Proc->born($pid), undef, 'a zombie is gone' );
waitpid $pid, 0;

done_testing;
