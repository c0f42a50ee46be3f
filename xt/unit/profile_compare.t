use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use Test::More;
use Sirius::Profile::Compare;
use Sirius::Profile::Samples;

# What has grown and shrunk, as shares, since two profiles have different numbers of samples

sub compare {
    return Sirius::Profile::Compare->new( map { Sirius::Profile::Samples->from_folded($_) } @_ );
}

my $NEW = <<'FOLDED';
GET /a;Shop::a a.pm:1;Shop::hot a.pm:2 600
GET /a;Shop::a a.pm:1;Shop::same a.pm:3;[waiting] 200
GET /a;Shop::a a.pm:1;Shop::new a.pm:9 200
FOLDED
my $OLD = <<'FOLDED';
GET /a;Shop::a a.pm:1;Shop::hot a.pm:2 60
GET /a;Shop::a a.pm:1;Shop::same a.pm:3;[waiting] 42
GET /a;Shop::a a.pm:1;Shop::gone a.pm:4 98
FOLDED

my @changes = compare( $NEW, $OLD )->changes;
is_deeply [ map { $_->{name} } @changes ], [qw(Shop::gone Shop::hot Shop::new Shop::same Shop::a)],
    'the largest change first';
my %of = map { $_->{name} => $_ } @changes;
is_deeply [ map { sprintf '%.2f', $_ } @{ $of{'Shop::hot'} }{qw(self self_was total total_was)} ],
    [qw(0.60 0.30 0.60 0.30)], 'shares of the samples, not numbers';
is_deeply [ map { sprintf '%.2f', $_ } @{ $of{'Shop::gone'} }{qw(self self_was)} ], [qw(0.00 0.49)], 'gone';
is_deeply [ map { sprintf '%.2f', $_ } @{ $of{'Shop::a'} }{qw(self total total_was)} ], [qw(0.00 1.00 1.00)],
    'a caller';
is_deeply [ map { $of{"Shop::$_"}{self_sure} } qw(hot new gone same) ], [ 1, 1, 1, 0 ],
    '20 % of 1000 and 21 % of 200 may be the same';
is_deeply [ map { $_->{self} - $_->{self_was} } compare( $NEW, $NEW )->changes ], [ (0) x 4 ],
    'the same is no change';

is_deeply [ compare( "GET /;Shop::a a.pm:1;[waiting] 3\n", "GET /;Shop::a a.pm:2 4\n" )->rows ],
    [ [ 'Shop::a', 0, 3, 0, 3, 4, 0, 4, 0 ] ], 'rows';
is_deeply [ compare( "GET /;Shop::a a.pm:1;[waiting] 3\n", "GET /;Shop::a a.pm:2 4\n" )->rows( lines => 1 ) ],
    [ [ 'Shop::a a.pm:1', 0, 3, 0, 3, 0, 0, 0, 0 ], [ 'Shop::a a.pm:2', 0, 0, 0, 0, 4, 0, 4, 0 ] ],
    'of lines';
for my $case ( [ $NEW, '' ], [ '', $OLD ], [ '', '' ] ) {
    my @sure = grep { $_->{self_sure} || $_->{total_sure} } compare(@$case)->changes;
    is scalar @sure, 0, 'against nothing, nothing is sure';
}

done_testing;
