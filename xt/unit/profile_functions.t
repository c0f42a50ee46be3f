use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use Test::More;
use Sirius::Profile::Functions;
use Sirius::Profile::Samples;

# How many samples a function has: itself, and with what it has called

my $samples = Sirius::Profile::Samples->from_folded(<<'FOLDED');
GET /a;Shop::a lib/Shop.pm:1;Shop::b lib/Shop.pm:10 5
GET /a;Shop::a lib/Shop.pm:2;Shop::b lib/Shop.pm:11;[waiting] 3
GET /a;Shop::a lib/Shop.pm:2;Shop::b lib/Shop.pm:11;DBI::st::execute (XS);[waiting] 20
GET /r;Shop::r lib/Shop.pm:5;Shop::r lib/Shop.pm:5;Shop::r lib/Shop.pm:6 7
GET /r 4
FOLDED

is_deeply(
    Sirius::Profile::Functions->of($samples),
    {   'Shop::a'               => [ 0, 0,  5, 23 ],
        'Shop::b'               => [ 5, 3,  5, 23 ],
        'Shop::r'               => [ 7, 0,  7, 0 ],
        'DBI::st::execute (XS)' => [ 0, 20, 0, 20 ],
    },
    'functions: a recursion counts once, a request is none'
);
is_deeply(
    Sirius::Profile::Functions->of( $samples, lines => 1 ),
    {   'Shop::a lib/Shop.pm:1'  => [ 0, 0,  5, 0 ],
        'Shop::a lib/Shop.pm:2'  => [ 0, 0,  0, 23 ],
        'Shop::b lib/Shop.pm:10' => [ 5, 0,  5, 0 ],
        'Shop::b lib/Shop.pm:11' => [ 0, 23, 0, 23 ],
        'Shop::r lib/Shop.pm:5'  => [ 0, 0,  7, 0 ],
        'Shop::r lib/Shop.pm:6'  => [ 7, 0,  7, 0 ],
    },
    'lines: a function in C counts for the line that has called it'
);
is_deeply( Sirius::Profile::Functions->of( Sirius::Profile::Samples->new ), {}, 'none' );

done_testing;
