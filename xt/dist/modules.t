use strict;
use warnings;
use File::Find qw(find);
use FindBin;
use Pod::Checker;
use Test::More;

# Each module stands alone: it loads before all others, without a warning, and has its manual

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin: $!";

my @modules;
find( { wanted => sub { push @modules, $_ if /\.pm\z/ }, no_chdir => 1 }, 'lib' );
cmp_ok scalar @modules, '>', 50, 'modules';

for my $file ( sort @modules ) {
    my $name = $file =~ s{\Alib/|\.pm\z}{}gr =~ s{/}{::}gr;
    subtest $name => sub {
        my $says = `$^X -w -Iblib/lib -Iblib/arch -e 'use $name; print "loaded"' 2>&1`;
        is $says, 'loaded', 'loads';
        open my $in, '<', $file or die "$file: $!";
        my $text = do { local $/ = undef; readline $in };
        like $text, qr/^package \Q$name\E;$/m,           'is what its file says';
        like $text, qr/^=head1 NAME\n\n\Q$name\E - \S/m, 'has a manual';
        is podchecker( $file, '/dev/null', -warnings => 0 ), 0, 'without errors';
        is_deeply [ newer($text) ], [], 'imports nothing that core modules of perl 5.16 do not have';
    };
}

# List::Util of 5.16 has these; any, uniq, sum0 and others came up to ten years later
sub newer {
    my ($text)    = @_;
    my ($imports) = $text =~ /^use List::Util\s+qw\(([^)]*)\)/m;
    return grep { !/\A(?:first|max|maxstr|min|minstr|reduce|shuffle|sum)\z/ } split q( ), $imports // q();
}
is_deeply [ newer("use List::Util qw(any max sum0);\n") ], [qw(any sum0)], 'the test itself';

done_testing;
