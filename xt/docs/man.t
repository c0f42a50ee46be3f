use strict;
use warnings;
use lib 't/lib';
use Test::More;
use File::Find qw(find);
use Pod::Checker;
use Sirius::Test::Server;

# The POD of each file is without fault or warning. Manual pages are for users: sirius, Sirius::Manual, and
# what that lists have one, which names nothing that has none; man shows them without a warning

my @pods = 'bin/sirius';
find( { no_chdir => 1, wanted => sub { push @pods, $_ if /\.(?:pm|pod)\z/ } }, 'lib' );

sub text { return Sirius::Test::Server::slurp(shift) }

my @listed = text('lib/Sirius/Manual.pod') =~ /^=item L<([\w:]+)>$/mg;
my %page   = map { $_ => 1 } 'Sirius::Manual', @listed;

sub file {
    my $name = shift;
    return 'bin/sirius' if $name eq 'sirius';
    my ($file) = grep {-e} map { 'lib/' . $name =~ s{::}{/}gr . ".$_" } qw(pm pod);
    return $file;
}

# Links of a text to manuals of ours that have no page
sub lost {
    my @names = map {s{\A[^|]*\||/.*}{}gr} shift =~ /L<([^<>]+)>/g;
    return grep {/\A(?:[Ss]irius\b|Plack::.*(?:Sirius|Compiled))/} grep { !$page{$_} } @names;
}

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

subtest 'what Sirius::Manual lists' => sub {
    cmp_ok scalar @listed, '>', 10, scalar(@listed) . ' manuals';
    for my $name ( sort keys %page ) {
        my $file = file($name);
        ok defined $file, "$name is there" or next;
        my $text = text($file);
        like $text, qr/^=head1 NAME\n\n\Q$name\E - \S.*\n\n=head1 SYNOPSIS$/m, "$name begins with a synopsis";
        is_deeply [ lost($text) ], [], "$name names only what has a page";
    }
    is_deeply [ lost('L<Sirius::Log>, L<a|Sirius::Log/x>, L<Sirius>, L<Plack>') ], [ ('Sirius::Log') x 2 ],
        'the test itself';
};

subtest 'pages' => sub {
    plan skip_all => 'not built with manual pages' if !-d 'blib/man1' || !-d 'blib/man3';
    my $man   = Sirius::Test::Server::program('man');
    my %built = map { m{/([^/]+)\.\w+\z} => $_ } glob 'blib/man1/*.* blib/man3/*.*';
    is_deeply [ sort keys %built ], [ sort keys %page ], 'these and no others';
    for my $page ( sort values %built ) {
    SKIP: {
            skip 'man is not installed', 1 if !$man;
            my $said = `MANWIDTH=100 $man --warnings=w -E UTF-8 -l '$page' 2>&1 >/dev/null`;
            is $said, '', "$page is shown without a warning";
        }
    }
};

done_testing;
