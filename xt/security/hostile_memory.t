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
package Shop; use overload '""' => sub { my $n = 0; $n += $_ for 1 .. 20; 'x' };
sub deep { my $n = shift; no warnings 'recursion'; return $n ? deep( $n - 1 ) : quick($n) }
sub quick { my $n = shift; $n += $_ for 1 .. 20; return $n }
sub made { my $n = shift; return sub { quick($n) } }
my $o = bless [];
while (1) { deep( rand 60 ); made(1)->(); my $t = "$o"; my @s = sort { quick($a); $a <=> $b } 3, 1, 2; eval 'quick(1)'; $o->quick }
CODE
until_true( 20, sub { runs($pid) } );

my $SAMPLE = <<'CODE';
use Sirius::OS::Sampler; use Time::HiRes 'time';
my ( $pid, $until ) = ( shift, time + shift );
my ( $n, $longest ) = ( 0, 0 );
while ( time < $until ) {
    delete $ENV{HOSTILE};
    my $sampler = eval { Sirius::OS::Sampler->new($pid) } or die $@;
    $ENV{HOSTILE} = 20 + int rand 300;
    for ( 1 .. 200 ) {
        my $began = time;
        my ($labels) = $sampler->stack;
        $longest = time - $began if time - $began > $longest;
        /[^ -~]/ and die "unprintable: $_" for @{ $labels || [] };
        $n++;
    }
}
print "$n stacks\n";
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
    like $said, qr/\A[1-9]\d+ stacks\n\z/, 'and goes on';
}

done_testing;
