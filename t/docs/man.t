use strict;
use warnings;
use lib 't/lib';
use Test::More;
use File::Find qw(find);
use Pod::Checker;
use Pod::Man;
use Sirius::Test::Server;

# Every manual page: its POD is without fault or warning, and make has made it; man shows those that operators read

my @pods = 'bin/sirius';
find( { no_chdir => 1, wanted => sub { push @pods, $_ if /\.(?:pm|pod)\z/ } }, 'lib' );

# The page that make writes, undef when there is none
sub page {
    my $pod = shift;
    return 'blib/man1/sirius.1p' if $pod eq 'bin/sirius';
    my $name = $pod =~ s{\Alib/}{}r =~ s{/}{::}gr =~ s/\.\w+\z//r;
    return "blib/man3/$name.3pm";
}

sub exists_some {
    my ($found) = glob shift =~ s/p?m?\z/*/r;
    return $found;
}

my %read = map { $_ => 1 }
    qw(bin/sirius lib/Sirius.pm lib/Sirius/CLI/Check.pm lib/Sirius/CLI/Ctl.pm lib/Sirius/LogFormat.pm
    lib/Sirius/CLI/Top.pm);
my $man = Sirius::Test::Server::program('man');

subtest 'POD' => sub {
    for my $pod ( sort @pods ) {
        my $said = '';
        open my $out, '>', \$said or die $!;
        my $checker = Pod::Checker->new( -warnings => 1 );
        $checker->parse_from_file( $pod, $out );
        close $out;
        is $said =~ s/.* pod syntax OK\.\n//r, '', $pod;
        ok $checker->num_errors <= 0, "$pod has no error";
    }
};

subtest 'pages' => sub {
    plan skip_all => 'not built with manual pages' if !-d 'blib/man1';
    for my $pod ( grep { has_pod($_) } sort @pods ) {
        my $page = exists_some( page($pod) );
        ok defined $page, "$pod has a page" or next;
        next if !$read{$pod};
    SKIP: {
            skip 'man is not installed', 1 if !$man;
            my $said = `MANWIDTH=100 $man --warnings=w -E UTF-8 -l '$page' 2>&1 >/dev/null`;
            is $said, '', "$page is shown without a warning";
        }
    }
};

sub has_pod {
    open my $in, '<', shift or die $!;
    local $/ = undef;
    return readline($in) =~ /^=head1 NAME/m;
}

done_testing;
