use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use IO::Uncompress::Gunzip qw(gunzip);
use Test::More;
use Sirius::Profile::Pprof;
use Sirius::Profile::Samples;

# The message of profile.proto, read back

# Fields of a message: a number, or bytes
sub fields {
    my $bytes  = shift;
    my $varint = sub {
        my ( $value, $shift ) = ( 0, 0 );
        while ( $bytes =~ s/\A(.)//s ) {
            $value |= ( ord($1) & 127 ) << $shift;
            return $value if ord $1 < 128;
            $shift += 7;
        }
        die 'a number without an end';
    };
    my %field;
    while ( length $bytes ) {
        my $key  = $varint->();
        my $type = $key & 7;
        push @{ $field{ $key >> 3 } },
            $type == 0 ? $varint->() : $type == 2 ? substr( $bytes, 0, $varint->(), '' ) : die "type $type";
    }
    return \%field;
}

sub numbers {
    my $bytes = shift;
    my ( @numbers, $at );
    for ( unpack 'C*', $bytes ) {
        $at //= do { push @numbers, 0; 0 };
        $numbers[-1] |= ( $_ & 127 ) << $at;
        $at = $_ < 128 ? undef : $at + 7;
    }
    return @numbers;
}

my $samples = Sirius::Profile::Samples->new( hz => 100, seconds => 2 );
$samples->add( [ 'GET /a', 'Shop::a a.pm:1000', "Shop::caf\xe9 a.pm:2" ],  'cpu',  30 );
$samples->add( [ 'GET /a', 'Shop::a a.pm:9',    'DBI::st::execute (XS)' ], 'wait', 50 );
$samples->add( [ 'GET /a', 'Shop::a a.pm:9',    'DBI::st::execute (XS)' ], 'cpu',  5 );
$samples->add( [ 'GET /a', map {"Shop::f$_ b.pm:$_"} 1 .. 200 ], 'cpu' );

my $gzipped = Sirius::Profile::Pprof->gzipped($samples);
ok gunzip( \$gzipped => \my $bytes ), 'gzip';
my $profile = fields($bytes);
my @string  = @{ $profile->{6} };
is $string[0], '', 'the first string is empty';
is_deeply [ map { my $type = fields($_); "$string[ $type->{1}[0] ]/$string[ $type->{2}[0] ]" }
        @{ $profile->{1} } ],
    [qw(samples/count cpu/nanoseconds waiting/nanoseconds)], 'three values';
my ( %function, %location );

for ( map { fields($_) } @{ $profile->{5} } ) {
    $function{ $_->{1}[0] } = join ' ', $string[ $_->{2}[0] ], $_->{4} ? $string[ $_->{4}[0] ] : ();
}
for ( map { fields($_) } @{ $profile->{4} } ) {
    my $line = fields( $_->{4}[0] );
    $location{ $_->{1}[0] } = join ':', $function{ $line->{1}[0] }, $line->{2} ? $line->{2}[0] : ();
}
my @stack = map {
    my $sample = fields($_);
    [ join( ' < ', map { $location{$_} } numbers( $sample->{1}[0] ) ), numbers( $sample->{2}[0] ) ]
} @{ $profile->{2} };
is_deeply [ @stack[ 0, 1 ] ],
    [
    [ "Shop::caf\xc3\xa9 a.pm:2 < Shop::a a.pm:1000 < GET /a", 30, 300_000_000, 0 ],
    [ 'DBI::st::execute (XS) < Shop::a a.pm:9 < GET /a',       55, 50_000_000,  500_000_000 ],
    ],
    'stacks from the inside out, with their values';
like $stack[2][0], qr/\AShop::f200 b\.pm:200 < .* < Shop::f1 b\.pm:1 < GET \/a\z/, 'a deep one';
is scalar( grep {/Shop::a/} values %function ), 1,             'lines of a function have one function';
is $profile->{10}[0],                           2_000_000_000, 'how long';
is $profile->{12}[0],                           10_000_000,    'from sample to sample';

my $folded
    = Sirius::Profile::Pprof->gzipped( Sirius::Profile::Samples->from_folded("GET /;Shop::a a.pm:1 7\n") );
gunzip( \$folded => \$bytes );
is_deeply [ numbers( fields( fields($bytes)->{2}[0] )->{2}[0] ) ], [ 7, 7, 0 ],
    'numbers, where times are unknown';

done_testing;
