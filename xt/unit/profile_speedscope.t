use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use JSON::PP   ();
use List::Util qw(max sum0);
use Test::More;
use Sirius::Profile::Samples;
use Sirius::Profile::Speedscope;

# A file in the format of speedscope: what its schema demands of a sampled profile

my $samples = Sirius::Profile::Samples->new( hz => 100, seconds => 2 );
$samples->add( [ 'GET /a', 'Shop::a a.pm:1', 'Shop::b a.pm:2' ],        'cpu',  30 );
$samples->add( [ 'GET /a', 'Shop::a a.pm:9', 'DBI::st::execute (XS)' ], 'wait', 50 );
$samples->add( [ 'GET /a', 'Shop::a a.pm:9', 'DBI::st::execute (XS)' ], 'cpu',  5 );
$samples->add( ['GET /</script>"\\'],                                   'cpu',  1 );
$samples->add( [ 'Shop::b a.pm:2', 'Shop::b a.pm:2' ],                  'cpu',  1 );

$samples->add( [ 'GET /\x20', 'Shop::c\x20d a.pm:2' ], 'cpu', 1 );

my $json = Sirius::Profile::Speedscope->json( $samples, title => "caf\xc3\xa9" );
like $json, qr/\A[\x20-\x7e]+\n\z/, 'ASCII';
my $file = JSON::PP->new->decode($json);
is $file->{'$schema'}, 'https://www.speedscope.app/file-format-schema.json', 'schema';
is $file->{name},      "caf\xe9",                                            'name';
is_deeply [ sort keys %$file ], [qw($schema activeProfileIndex exporter name profiles shared)],
    'no other members';
my $frames = $file->{shared}{frames};
is_deeply $frames,
    [
    { name => 'GET /</script>"\\' },
    { name => 'GET /\x20' },
    { name => 'Shop::c d', file => 'a.pm' },
    { name => 'GET /a' },
    { name => 'Shop::a', file => 'a.pm' },
    { name => 'Shop::b', file => 'a.pm' },
    { name => 'DBI::st::execute (XS)' },
    { name => 'Shop::b a.pm:2' },
    ],
    'a frame for each function, and for each request'
    or diag explain $frames;
is_deeply [ map { $_->{name} } @{ $file->{profiles} } ], [ 'All', 'On CPU', 'Waiting' ], 'profiles';

for my $profile ( @{ $file->{profiles} } ) {
    is_deeply [ sort keys %$profile ], [qw(endValue name samples startValue type unit weights)],
        "$profile->{name}: members";
    is $profile->{type},                'sampled',                       'type';
    is $profile->{unit},                'seconds',                       'unit';
    is scalar @{ $profile->{samples} }, scalar @{ $profile->{weights} }, 'each sample has a weight';
    cmp_ok abs( sum0( @{ $profile->{weights} } ) - $profile->{endValue} ), '<', 1e-9, 'up to the end';
    cmp_ok max( map {@$_} @{ $profile->{samples} } ), '<', scalar @$frames,           'frames that are there';
    like $json, qr/"startValue":0,"endValue":[0-9.]+,"samples":\[\[\d+/, 'numbers are numbers';
}
is_deeply [ map { sprintf '%.2f', $_->{endValue} } @{ $file->{profiles} } ], [qw(0.88 0.38 0.50)],
    'seconds, from samples and how many there are in a second';
my ($all) = @{ $file->{profiles} };
is_deeply [
    map {
        join '/',
            map { $frames->[$_]{name} }
            @$_
    } @{ $all->{samples} }
    ],
    [
    'GET /</script>"\\',
    'GET /\x20/Shop::c d',
    'GET /a/Shop::a/Shop::b',
    'GET /a/Shop::a/DBI::st::execute (XS)',
    'Shop::b a.pm:2/Shop::b',
    'GET /a/Shop::a/DBI::st::execute (XS)'
    ],
    'stacks from the outside in';

my $folded = JSON::PP->new->decode(
    Sirius::Profile::Speedscope->json( Sirius::Profile::Samples->from_folded("GET /;Shop::a a.pm:1 7\n") ) );
is $folded->{profiles}[0]{unit},     'none', 'numbers of samples where their time is unknown';
is $folded->{profiles}[0]{endValue}, 7,      'as they are';
my $empty = JSON::PP->new->decode( Sirius::Profile::Speedscope->json( Sirius::Profile::Samples->new ) );
is_deeply $empty->{profiles}[0]{samples}, [], 'nothing at all';

done_testing;
