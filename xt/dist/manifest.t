use strict;
use warnings;
use ExtUtils::Manifest qw(filecheck maniread maniskip manicheck);
use FindBin;
use Test::More;

# Nothing is forgotten in the tarball, and nothing is in it that does not belong there

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin: $!";
plan skip_all => 'for a whole distribution' if !-e 'MANIFEST.SKIP';
$ExtUtils::Manifest::Quiet = 1;

subtest 'the tarball' => sub {
    plan skip_all => 'this is a repository' if !-e 'MANIFEST';
    is_deeply [manicheck], [], 'each file of MANIFEST is there';
    is_deeply [filecheck], [], 'and there is no other';
    my $manifest = maniread;
    ok $manifest->{$_}, $_ for qw(META.json META.yml);
};

subtest 'the repository' => sub {
    plan skip_all => 'this is a tarball' if !-e '.git';
    my @ours = files('');
    plan skip_all => 'git does not want to read this repository' if !@ours;
    my $skips = maniskip('MANIFEST.SKIP');
    is_deeply [ grep { $skips->($_) } @ours ], [ grep {/\A\.(?:git|ci\b)/} @ours ],
        'all that it has is shipped, but for what belongs to its place';
    is_deeply [ grep { !$skips->($_) } files('--others --ignored --exclude-standard') ], [],
        'nothing is that it ignores';
};

sub files {
    my @file = split /\0/, `git ls-files -z $_[0] 2>/dev/null`;
    return @file;
}

done_testing;
