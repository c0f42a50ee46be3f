use strict;
use warnings;
use FindBin;
use Config;
use ExtUtils::Embed ();
use File::Temp;
use Test::More;

# Replays fuzz/perl.corpus: a whole worker with a real perl, the objects that make has built, and no
# sanitizer; dev/fuzz has them. What the target looks for itself is looked for here as well.

my $root = "$FindBin::Bin/../..";
chdir $root or die "chdir: $!";

# A file that has moved leaves its object behind
my @object = grep {
    m{\Abuild/(.+)\.o\z} && grep {-e} "$1.c", "$1.xs"
} glob 'build/xs/*.o build/src/*/*.o';
my $dir = File::Temp->newdir;

open my $main, '>', "$dir/main.c" or die "$!";
print {$main} <<'MAIN';
#include "../../fuzz/perl.c"
int main(int argc, char **argv)
{
    static uint8_t input[65536];
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        size_t size = file ? fread(input, 1, sizeof input, file) : 0;
        MUST(file && size < sizeof input);
        fclose(file);
        fprintf(stdout, "%s\n", argv[i]);
        fflush(stdout);
        LLVMFuzzerTestOneInput(input, size);
    }
    puts("done");
    return 0;
}
MAIN
close $main or die "$!";

# The file is elsewhere: its includes are found by -I
my @cc = (
    split( ' ', $Config{cc} ),
    qw(-std=gnu11 -w -g -Isrc -iquotexs -Ifuzz),
    "-I$root/xt/fuzz", split( ' ', ExtUtils::Embed::ccopts() )
);
my $link = ExtUtils::Embed::ldopts(1);

# Objects that were built with OpenSSL or libseccomp need it
open my $makefile, '<', 'Makefile' or die "Makefile: $!";
my ($edge)    = grep {/-o \$\@ build\/src\/sirius-edge\.o/} <$makefile>;
my @libraries = ( $edge // q() ) =~ /(-l\w+)/g;
my $built     = system( @cc, '-o', "$dir/perl", "$dir/main.c", @object, @libraries, split ' ', $link );
is $built, 0, 'it is built' or BAIL_OUT('is libperl-dev installed? dev/setup brings it');

my %byte  = ( n => "\n", r => "\r", t => "\t", '\\' => '\\' );
my $count = 0;
my @file;
open my $corpus, '<', 'fuzz/perl.corpus' or die "$!";
while ( defined( my $line = readline $corpus ) ) {
    chomp $line;
    $line =~ s{\\(?:x([0-9a-fA-F]{2})|(.))}{ defined $1 ? chr hex $1 : $byte{$2} }ge;
    push @file, sprintf '%s/input%04d', $dir, $count++;
    open my $out, '>:raw', $file[-1] or die "$!";
    print {$out} $line;
    close $out or die "$!";
}
cmp_ok $count, '>', 50, "$count inputs";

local $SIG{ALRM} = sub { die "too slow\n" };
alarm 120;
open my $run, '-|', "$dir/perl", @file or die "$!";
my @said = readline $run;
close $run;
is $?, 0, 'none of them is wrong' or diag 'the last one: ', $said[-1];
is $said[-1], "done\n", 'to the end';
done_testing;
