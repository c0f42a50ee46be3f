use strict;
use warnings;
use Config;
use Cwd            qw(getcwd);
use File::Basename qw(dirname);
use File::Find     qw(find);
use File::Spec     ();
use FindBin;
use Test::More;

# A change of a header compiles every file anew that includes it, directly or not, so that nothing old is
# linked

chdir "$FindBin::Bin/../.." or die "chdir: $!";
-f 'Makefile'               or BAIL_OUT("no Makefile: run 'perl Makefile.PL && make' first");

sub text {
    my $file = shift;
    open my $fh, '<', $file or die "$file: $!";
    local $/ = undef;
    return scalar readline $fh;
}

# a/b/../c.h is a/c.h
sub plain {
    my $path = shift;
    1 while $path =~ s{[^/]+/\.\./}{};
    return $path;
}

my ( @sources, @headers, %includes );
find(
    {   wanted =>
            sub { push @{ /\.h\z/ ? \@headers : \@sources }, $_ if /\.(?:c|h|xs)\z/ && $_ ne 'xs/Sirius.c' },
        no_chdir => 1
    },
    'src', 'xs'
);
@sources = grep { text($_) !~ /\A#ifdef SR_PORTABLE$/m } @sources;    # empty in a build for Linux
for my $file ( @sources, @headers ) {
    my @names = text($file) =~ /^\s*#\s*include\s+"([^"]+)"/mg;
    for my $name (@names) {
        my ($found) = grep {-f} plain( dirname($file) . "/$name" ), "src/$name", "xs/$name";
        $includes{$file}{$found} = 1 if $found;
    }
}

# All headers of a file, those of headers too
sub closure {
    my ( $file, $seen ) = @_;
    for my $header ( grep { !$seen->{$_}++ } keys %{ $includes{$file} || {} } ) {
        closure( $header, $seen );
    }
    return $seen;
}
my %needs = map { $_ => closure( $_, {} ) } @sources;

# What make knows of each object: of the files that the compiler has listed, src/edge/../core/parts.h is
# src/core/parts.h
my $make = $Config{make} || 'make';
my %ours = map { $_ => 1 } @headers;    # not perl's: the Makefile itself depends on these
my ( %listed, %names );
for my $rule ( `$make -o Makefile -np 2>&1` =~ m{^(build/\S+\Q$Config{_o}\E: .+)}mg ) {
    my ( $object, @from ) = split /:? +/, $rule;
    my ($source) = $object =~ m{\Abuild/(.*)\Q$Config{_o}\E\z};
    for my $header ( grep { $ours{ plain($_) } } @from ) {
        $listed{ plain($header) }{$source} = 1;
        $names{$header} = 1;
    }
}
for my $header ( sort @headers ) {
    my @want = sort map {s{\.(?:c|xs)\z}{}r} grep { $needs{$_}{$header} } @sources;
    is_deeply [ sort keys %{ $listed{$header} || {} } ], \@want, $header;
}

my $new      = join ' ', map {"-W $_"} sort keys %names;
my %compiles = map { $_ => 1 } `$make -o Makefile -n $new 2>&1` =~ m{-o build/(\S+)\Q$Config{_o}\E }g;
is_deeply [ grep { keys %{ $needs{"$_.c"} || {} } && !$compiles{$_} } map {s{\.c\z}{}r} @sources ], [],
    'and when they are newer, it compiles all that include one';

done_testing;
