use strict;
use warnings;
use lib 't/lib';
use CPAN::Meta;
use ExtUtils::MakeMaker;
use File::Temp;
use Sirius::Test;
use Test::More;

# What dev/dist makes of the last commit, for CPAN: the tarball and what its META says, a trial version, the
# addresses of the project, and the rules of CPANTS (kwalitee)

plan skip_all => 'for a repository' if !-e '.git' || !-e 'dev/dist' || !`git rev-parse HEAD 2>/dev/null`;

my $VERSION = MM->parse_version('lib/Sirius.pm');
my $dir     = File::Temp->newdir;
delete @ENV{qw(SIRIUS_HOMEPAGE SIRIUS_REPOSITORY SIRIUS_BUGTRACKER SIRIUS_TRIAL)};

# A folder with what was packed, and META of it
sub packed {
    my ( $name, @words ) = @_;
    my $to = "$dir/" . @{ [ glob "$dir/*" ] };
    mkdir $to or die "$to: $!";
    system("timeout 300 dev/dist --untried --to $to @words >$dir/log 2>&1") == 0
        or return fail("dev/dist @words") && diag Sirius::Test::Server::slurp("$dir/log");
    is join( q{ }, map {s{.*/}{}r} glob "$to/*" ),             "$name.tar.gz", "dev/dist @words";
    is system( 'tar', '-xzf', "$to/$name.tar.gz", '-C', $to ), 0,              'can be unpacked';
    ok -e "$to/$name/Makefile.PL", "into $name";
    return ( "$to/$name", map { CPAN::Meta->load_file("$to/$name/META.$_") } qw(json yml) );
}

# Those that have no licence as an address, and those of older META, say less
sub resources {
    my $meta      = shift;
    my %resources = %{ $meta->resources };
    delete $resources{license};
    return \%resources;
}

my $release;
subtest 'a release' => sub {
    ( $release, my @meta ) = packed("Sirius-$VERSION") or return;
    for my $meta (@meta) {
        is $meta->version,        $VERSION, 'its version';
        is $meta->release_status, 'stable', 'is stable';
        is_deeply resources($meta), {}, 'no address is invented';
        is $meta->custom('x_spdx_expression'), 'Artistic-1.0-Perl OR GPL-1.0-or-later',
            'the licence for machines';
    }
};

subtest 'a trial version, of a project with addresses' => sub {
    Sirius::Test::Server::spew( "$dir/settings", <<'SETTINGS' );
# of the maintainers
SIRIUS_HOMEPAGE=https://sirius.example/
SIRIUS_REPOSITORY=https://code.example/sirius.git
SIRIUS_BUGTRACKER=https://nowhere.example/
SETTINGS
    local $ENV{SIRIUS_BUGTRACKER} = 'https://code.example/sirius/issues';
    my ( undef, $meta, $older ) = packed( "Sirius-$VERSION-TRIAL", '--trial', '--settings', "$dir/settings" )
        or return;
    is $meta->version,        $VERSION,  'has the version of the release';
    is $meta->release_status, 'testing', 'and is for testing';
    my %want = (
        bugtracker => { web => 'https://code.example/sirius/issues' },
        homepage   => 'https://sirius.example/',
        repository => {
            type => 'git',
            url  => 'https://code.example/sirius.git',
            web  => 'https://code.example/sirius'
        },
    );
    is_deeply resources($meta), \%want, 'the addresses; the environment comes first';
    is $older->resources->{homepage}, $want{homepage}, 'in META.yml too';
};

subtest 'what is no address is refused' => sub {
    for my $wrong (qw(SIRIUS_HOMEPAGE=nowhere SIRIUS_REPOSITORY=mailto:a@b.example)) {
        my $said = `mkdir -p $dir/wrong; env $wrong dev/dist --untried --to $dir/wrong 2>&1`;
        like $said, qr/^SIRIUS_\w+: '\S+' is no URL$/m, $wrong;
    }
    is join( q{}, glob "$dir/wrong/*" ), '', 'and nothing is made';
    like `dev/dist --nonsense 2>&1`, qr/^usage: dev\/dist /, 'as a word that is none';
};

subtest 'kwalitee' => sub {
    skip_without('Module::CPANTS::Analyse');
    plan skip_all => 'there is no tarball' if !$release;
    require Module::CPANTS::Kwalitee;
    my $analyse = Module::CPANTS::Analyse->new( { dist => "$release.tar.gz" } );
    $analyse->run;
    my %is = %{ $analyse->d->{kwalitee} };
    delete $is{meta_yml_has_repository_resource};    # as no address is known here
    my @rules = grep { exists $is{ $_->{name} } } @{ Module::CPANTS::Kwalitee->new->get_indicators };
    cmp_ok scalar @rules, '>', 20, scalar(@rules) . ' rules of CPANTS';
    ok $is{ $_->{name} }, $_->{name} or diag $_->{error} for @rules;
};

done_testing;
