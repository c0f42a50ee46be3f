use strict;
use warnings;
use CPAN::Meta;
use Config;
use ExtUtils::MakeMaker;
use File::Find qw(find);
use FindBin;
use Test::More;

# What the distribution says about itself: in META, Changes, lib/ and LICENSE

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin: $!";
plan skip_all => 'for a whole distribution' if !-e 'MANIFEST.SKIP';

my @modules;
find( { wanted => sub { push @modules, $_ if /\.pm\z/ }, no_chdir => 1 }, 'lib' );
my $version = MM->parse_version('lib/Sirius.pm');
my %text    = map { $_ => slurp($_) } qw(Changes LICENSE), @modules;

sub slurp {
    my $name = shift;
    open my $in, '<', $name or die "$name: $!";
    local $/ = undef;
    return readline $in;
}

# An older MakeMaker than is asked for writes less
my @mine = eval { ExtUtils::MakeMaker->VERSION('6.64') } ? 'MYMETA.json' : ();
for my $file ( grep {-e} qw(META.json META.yml), @mine ) {
    subtest $file => sub {
        my $meta = CPAN::Meta->load_file($file);
        is $meta->name,    'Sirius', 'name';
        is $meta->version, $version, 'version';
        is_deeply [ $meta->licenses ], ['perl_5'], 'licence';
        like $meta->abstract, qr/PSGI/, 'abstract';
        is_deeply needs( $meta, 'runtime' ), { perl => '5.016', Plack => '1.0029', 'IO::Socket::IP' => 0 },
            'what it needs to run';
        is_deeply needs( $meta, 'configure' ), { 'ExtUtils::MakeMaker' => '6.64' }, 'to be configured';
        my %provides = %{ $meta->provides };
        is_deeply [ sort map { $_->{file} } values %provides ], [ sort @modules ], 'its modules';
        is $provides{Sirius}{version}, $version, 'the first has the version';
        ok !$meta->should_index_package('Sirius::Test') || !$meta->should_index_file('t/lib/Sirius/Test.pm'),
            'those of its tests are not among them';
    };
}

sub needs {
    my ( $meta, $phase ) = @_;
    return $meta->effective_prereqs->requirements_for( $phase, 'requires' )->as_string_hash;
}

subtest 'one version' => sub {
    my ($newest) = $text{Changes} =~ /^(\S+)/m;
    is $newest, $version, 'Changes begins with it';
    like $text{Changes}, qr/^\Q$version\E  \d{4}-\d\d-\d\d$/m, 'and says when';
    for my $file (@modules) {
        my $own = MM->parse_version($file);
        is $own, $version, $file if $own ne 'undef';
    }
};

# As CPAN::Changes has it: a line for each release, the newest first, and its changes as "  - text"
sub malformed {
    my @wrong;
    my ( $last, $number, $blank ) = ( undef, 0, 1 );
    for my $line ( split /\n/, shift ) {
        $number++;
        if ( $line =~ /\A(\d+\.\d+(?:_\d+)?)  (\d{4}-\d\d-\d\d)\z/ ) {
            push @wrong, "line $number: not older than the release above"
                if defined $last && "$2 $1" ge $last;
            push @wrong, "line $number: no empty line above" if !$blank;
            $last = "$2 $1";
        } elsif ( $line !~ /\A(?:  (?:- |  )\S(?:.*\S)?|)\z/ || !defined $last ) {
            push @wrong, "line $number: $line";
        }
        $blank = $line eq '';
    }
    return @wrong;
}

subtest 'the form of Changes' => sub {
    is_deeply [ malformed( $text{Changes} ) ], [], 'is that of CPAN::Changes';
    is_deeply [ malformed("0.02  2026-12-01\n  - a\n    b\n\n0.01  2026-11-22\n  - c\n") ], [], 'as this one';
    for my $wrong (
        "0.01 2026-11-22\n",
        "  - a\n",
        "0.01  2026-11-22\n- a\n",
        "0.01  2026-11-22\n  - a \n",
        "0.01  2026-11-22\n\n0.02  2026-12-01\n",
        "0.02  2026-12-01\n  - a\n0.01  2026-11-22\n"
        )
    {
        is scalar( my @found = malformed($wrong) ), 1, $wrong =~ s/\n/ | /gr;
    }
};

subtest 'the Debian package' => sub {
    my $control = slurp('deploy/debian/control');
    my ($plack) = slurp('Makefile.PL') =~ /'Plack' => '([\d.]+)'/;
    is_deeply [ $control =~ /libplack-perl \(>= (.*?)\)/g ], [ ($plack) x 2 ], 'needs the same Plack';
    my ($copyright) = slurp('deploy/debian/copyright') =~ /^Copyright: (.*)$/m;
    my ($year)      = $text{Changes}                   =~ /^\S+  (\d{4})-/m;
    like $copyright, qr/\A(?:\d{4}-)?$year, /, 'and has the right year';
};

like $text{LICENSE}, qr/same terms as Perl 5/, 'the licence';
like slurp('lib/Sirius.pm'), qr/^=head1 LICENSE\n\n.* the same terms as Perl 5 itself\.$/m,
    'which the manual names';

# A unit of systemd, and cron, have another PATH than the shell in which it was installed
SKIP: {
    skip 'it is not built, or relocatable', 1 if !-e 'blib/script/sirius' || $ENV{PERL_MM_SHEBANG};
    my ($first) = slurp('blib/script/sirius') =~ /\A(.*)/;
    is $first, $Config{startperl}, 'the command runs with the perl that it was built for';
}

done_testing;
