use strict;
use warnings;
use Test::More;
use Sirius::Profile::Samples;

# A profile in memory, and as text

my $samples = Sirius::Profile::Samples->new( seconds => 10, hz => 99, taken => 4, cut => 1, failed => 2 );
my @report  = ( 'GET /report', 'Shop::report lib/Shop.pm:12' );
$samples->add( \@report, 'cpu' ) for 1 .. 2;
$samples->add( \@report, 'wait' );
$samples->add( [ @report, 'Shop::sum a;b c.pm:3' ], 'wait', 1 );
is_deeply [ map { $samples->$_ } qw(seconds hz taken cut failed) ], [ 10, 99, 4, 1, 2 ], 'facts';
$samples->count($_) for qw(taken failed failed);
$samples->set( seconds => 11 );
is_deeply [ map { $samples->$_ } qw(seconds hz taken cut failed) ], [ 11, 99, 5, 1, 4 ], 'that have changed';
is_deeply [ $samples->stacks ], [ [ \@report, 2, 1 ], [ [ @report, 'Shop::sum a,b c.pm:3' ], 0, 1 ] ],
    'stacks';

my $text = <<'TEXT';
GET /report;Shop::report lib/Shop.pm:12 2
GET /report;Shop::report lib/Shop.pm:12;[waiting] 1
GET /report;Shop::report lib/Shop.pm:12;Shop::sum a,b c.pm:3;[waiting] 1
TEXT
is $samples->folded, $text, 'as text';

my $read = Sirius::Profile::Samples->from_folded("# a comment\n\n$text");
is_deeply [ $read->stacks ], [ $samples->stacks ], 'and from it';
is $read->taken,  4,     'with its number of samples';
is $read->hz,     undef, 'whose rate is unknown';
is $read->folded, $text, 'and the same text';

is_deeply [ Sirius::Profile::Samples->from_folded("a 2\r\na 3\nb;[waiting]\t1\n")->stacks ],
    [ [ ['a'], 5, 0 ], [ ['b'], 0, 1 ] ], 'lines of other programs: of the same stack, with CR, with a tab';

my $hash = Sirius::Profile::Samples->new;
$hash->add( [ '#GET /', 'main::f #a.pl:1' ], 'cpu' );
is $hash->folded, "\\x23GET /;main::f #a.pl:1 1\n", 'a method that begins like a comment';
is_deeply [ Sirius::Profile::Samples->from_folded( "#GET /;a 7\n" . $hash->folded )->stacks ],
    [ [ [ '\x23GET /', 'main::f #a.pl:1' ], 1, 0 ] ], 'is read again, and a comment is not';

for my $bad ( 'a;b', '12', 'a -1', 'a 1.5', 'a 1234567890123456' ) {
    ok !eval { Sirius::Profile::Samples->from_folded("a 1\n$bad\n"); 1 }, "'$bad' is refused";
    is $@, "line 2 is not a stack with a count: $bad\n", 'with its line';
}
is_deeply [ Sirius::Profile::Samples->from_folded('')->stacks ], [], 'an empty profile';

my $bounded = Sirius::Profile::Samples->new( memory => 10_000 );
$bounded->add( [ 'GET /', "main::f$_ app.psgi:1" ], 'cpu' ) for 1 .. 5000;
my @kept = $bounded->stacks;
cmp_ok scalar @kept, '<', 60, 'memory that is limited: not all stacks are kept';
$bounded->add( [ 'GET /', 'main::f1 app.psgi:1' ], 'wait' );
my ($known) = grep { join( ';', @{ $_->[0] } ) eq 'GET /;main::f1 app.psgi:1' } $bounded->stacks;
is_deeply [ @{$known}[ 1, 2 ] ], [ 1, 1 ], 'those that are known count on';
my ($other) = grep { $_->[0][0] eq '(other)' } $bounded->stacks;
is $other->[1],             $bounded->left_out, 'the others are counted';
is $other->[1] + @kept - 1, 5000,               'all of them';

done_testing;
