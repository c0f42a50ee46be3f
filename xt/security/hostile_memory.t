# A worker may be anybody's, and what root reads of its memory is whatever it wants
use strict;
use warnings;
use Config;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Sirius::Test;
use Sirius::Test::Program;
use Test::More;

linux_only('the memory of a process is read on Linux alone');

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $shim = "$dir/shim.so";
system( $Config{cc}, '-shared', '-fPIC', '-O1', '-o', $shim, "$FindBin::Bin/hostile_memory.c" ) == 0
    or die 'cc';

my $pid = perl_of(<<'CODE');
package Shop; use overload '""' => sub { my $n = 0; $n += $_ for 1 .. 20; 'x' }, fallback => 1;
sub deep { my $n = shift; no warnings 'recursion'; return $n ? deep( $n - 1 ) : quick($n) }
sub quick { my $n = shift; $n += $_ for 1 .. 20; return $n }
sub made { my $k = rand; my $n = rand 4; return $n < 1 ? sub { quick($k) } : $n < 2 ? sub { $k } : sub { my $x = $k; $x += $_ for 1 .. 9; $x } }
sub method { my $n = 0; $n += $_ for 1 .. 20; return $n }
my $o = bless [];
while (1) { deep( int rand 60 ); made()->() for 1 .. 20; my $t = "$o"; my @s = sort { quick($a); $a <=> $b } 3, 1, 2; eval 'quick(1)'; $o->method; $o->can('made') for 1 .. 5 }
CODE
until_true( 20, sub { runs($pid) } );

my $SAMPLE = <<'CODE';
use Sirius::OS::Sampler; use Time::HiRes 'time';
my ( $pid, $until ) = ( shift, time + shift );
my ( $n, $longest, %seen ) = ( 0, 0 );
while ( time < $until || keys %seen < 6 && time < $until + 30 ) {    # some are short: they are seen rarely
    delete $ENV{HOSTILE};
    my $sampler = eval { Sirius::OS::Sampler->new($pid) } or die $@;
    $ENV{HOSTILE} = 20 + int rand 300;
    for ( 1 .. ( rand 4 < 1 ? 5000 : 200 ) ) {
        my $began = time;
        my ($labels) = $sampler->stack;
        $longest = time - $began if time - $began > $longest;
        /[^ -~]/ and die "unprintable: $_" for @{ $labels || [] };
        for my $what ( 'Shop::quick ', 'Shop::__ANON__', 'Shop::method ', '(overload)', '(sort block)', '(eval)' ) {
            $seen{$what}++ if grep { index( $_, $what ) == 0 } @{ $labels || [] };
        }
        $n++;
    }
}
print "$n stacks of " . keys(%seen) . " kinds\n";
print STDERR "the longest took $longest s\n" if $longest > 5;
CODE

# Other changes in each run
for my $seed ( map { int rand 1e9 } 1 .. ( $ENV{SIRIUS_TEST_SEEDS} || 4 ) ) {
    local @ENV{qw(LD_PRELOAD SEED)} = ( $shim, $seed );
    open my $out, q(-|), $^X, ( map {"-I$_"} @INC ), '-e', "open STDERR, '>&', STDOUT; $SAMPLE", $pid, 3
        or die "$!";
    my $said = do { local $/; <$out> };
    close $out;
    is $?, 0, "seed $seed: it neither crashes nor asks for more than it has room for";
    like $said, qr/\A[1-9]\d+ stacks of 6 kinds\n\z/, 'and goes on';
}

done_testing;
