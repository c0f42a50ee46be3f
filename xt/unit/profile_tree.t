use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use List::Util qw(max sum0);
use Test::More;
use Sirius::Profile::Samples;
use Sirius::Profile::Tree;

# The calls as a tree, in which small ones are one

sub tree {
    return Sirius::Profile::Tree->new( map { Sirius::Profile::Samples->from_folded($_) } @_ );
}

sub rows {
    return [ map { join ' ', @$_ } shift->rows ];
}

my $FOLDED = <<'FOLDED';
GET /a;Shop::a lib/Shop.pm:1;Shop::b lib/Shop.pm:10 5
GET /a;Shop::a lib/Shop.pm:2;DBI::st::execute (XS);[waiting] 20
GET /a;Shop::a lib/Shop.pm:2 2
GET /b 3
FOLDED

is_deeply rows( tree($FOLDED) ),
    [
    'all 0 0 0 0 0 all',
    'GET /a 1 0 0 0 0 path',
    'Shop::a 2 2 0 0 0 app',
    'DBI::st::execute (XS) 3 0 20 0 0 c',
    'Shop::b 3 5 0 0 0 app',
    'GET /b 1 3 0 0 0 path',
    ],
    'lines of a function are one, each has the samples that end there';
is_deeply [ tree($FOLDED)->other ], [ 0, 0 ], 'nothing is too small';

is_deeply rows(
    tree( $FOLDED, "GET /a;Shop::a lib/Shop.pm:1;Shop::c lib/Shop.pm:3 8\nGET /b;[waiting] 1\n" ) ),
    [
    'all 0 0 0 0 0 all',
    'GET /a 1 0 0 0 0 path',
    'Shop::a 2 2 0 0 0 app',
    'DBI::st::execute (XS) 3 0 20 0 0 c',
    'Shop::b 3 5 0 0 0 app',
    'Shop::c 3 0 0 8 0 app',
    'GET /b 1 3 0 0 1 path',
    ],
    'two profiles, with what only one of them has';
is_deeply rows( tree('') ), ['all 0 0 0 0 0 all'], 'nothing at all';

subtest 'Small calls' => sub {
    my $small = join '', map {"GET /a;Shop::a a.pm:1;Shop::s$_ a.pm:2;Shop::deep a.pm:3 1\n"} 1 .. 30;
    my $tree  = tree("GET /a;Shop::a a.pm:1;Shop::b a.pm:4 5000\n${small}GET /tiny 1\n");
    is_deeply rows($tree),
        [
        'all 0 0 0 0 0 all',
        '(other) 1 1 0 0 0 other',
        'GET /a 1 0 0 0 0 path',
        'Shop::a 2 0 0 0 0 app',
        '(other) 3 30 0 0 0 other',
        'Shop::b 3 5000 0 0 0 app',
        ],
        'are beside their siblings';
    is_deeply [ $tree->other ], [ 31, 31 ], 'how many';
    is $tree->least,            0.001, 'smaller than that';
    is $tree->kind('Shop::s3'), 'app', 'its kind is known still';
    my $old = tree( "GET /a;Shop::b a.pm:4 5000\nGET /a;Shop::s1 a.pm:4 1\n", "GET /a;Shop::s1 a.pm:3 1\n" );
    is_deeply rows($old)->[3], 'Shop::s1 2 1 0 1 0 app', 'one that was large before is kept';
};

subtest 'Many calls' => sub {
    my $folded = join '', map {
        my $i = $_;
        join( ';', "GET /$i", map {"Shop::f$i lib/Shop.pm:$_"} 1 .. 50 ) . " 1\n"
    } 1 .. 1000;
    my $tree = tree($folded);
    my @rows = $tree->rows;
    cmp_ok scalar @rows, '<=', 20_000, 'a browser can show them';
    cmp_ok $tree->least, '>',  0.001,  'since more are small';
    is sum0( map { $_->[2] + $_->[3] } @rows ), 1000, 'no sample is lost';
    my $deep = join ';', 'GET /', map {"Shop::d$_ a.pm:1"} 1 .. 2000;
    is max( map { $_->[1] } tree("$deep 1\n")->rows ), 2001, 'deep recursion is no problem';
};

done_testing;
