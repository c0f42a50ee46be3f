use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Page;

# The tables of constants in docs/TUNING.md: each value is that of the code

my ( %value, %text );

sub slurp {
    my $file = shift;
    open my $in, '<', $file or die "$file: $!";
    local $/ = undef;
    return readline $in;
}

# A product of numbers, of shifts and of constants; undef where there is more in it
sub evaluate {
    my $text = shift;
    $text =~ s/\b(?:U?INT64_C\((\w+)\)|([A-Z][A-Z0-9_]+)\b)/defined $1 ? $1 : $value{$2} \/\/ return/ge;
    return $text =~ /\A[\d\s*()<+-]+\z/ ? eval $text : undef;    ## no critic (ProhibitStringyEval)
}

# Names for which several files have different values are left out
my %other;
for my $name ( sort glob('src/*/*.[ch]'), 'lib/Sirius/Edge/Setup.pm' ) {
    my $text = slurp($name);
    $text =~ s{/\*.*?\*/}{}gs;
    $text =~ s/^\s*use constant (\w+)\s*=> (\d+)/enum { $1 = $2 }/mg;
    for my $part ( $text =~ /\benum\s*\w*\s*\{([^}]*)\}/g ) {
        while ( $part =~ /\b([A-Z][A-Z0-9_]+)\s*=\s*([^,]+?)\s*(?:,|\z)/g ) {
            $other{$1} = 1 if $text{$1} && $text{$1} ne $2;
            $text{$1}  = $2;
        }
    }
}
for ( 1 .. 3 ) {
    $value{$_} //= evaluate( $text{$_} ) for grep { !$other{$_} } keys %text;
}

# What is wrong in a page, as lines
sub wrong {
    my $page = shift;
    my ( @wrong, $rows );
    for ( $page->lines ) {
        my ( $number, $line ) = @$_;
        my ( $name,   $said ) = $line =~ /\A\| `([A-Z][A-Z0-9_]+)` \| (\d+) \|/ or next;
        $rows++;
        push @wrong, "line $number: $name is " . ( $value{$name} // 'no constant' ) . ", not $said"
            if ( $value{$name} // -1 ) != $said;
    }
    return ( $rows, @wrong );
}

subtest 'what is wrong is found' => sub {
    my $text
        = "| `SR_SLOTS_MAX` | $value{SR_SLOTS_MAX} | x |\n| `SR_METHOD_MAX` | 65 | x |\n| `SR_NOWHERE` | 1 | x |\n";
    my ( $rows, @wrong ) = wrong( Page->parse( 'x', $text ) );
    is_deeply [ $rows, @wrong ],
        [ 3, 'line 2: SR_METHOD_MAX is 64, not 65', 'line 3: SR_NOWHERE is no constant, not 1' ],
        'another value, and a name that is nowhere';
    is evaluate('64 * 1024'), 65536,   'a product';
    is evaluate('1 << 30'),   1 << 30, 'a shift';
};

for my $page ( map { Page->new($_) } 'docs/TUNING.md' ) {
    my ( $rows, @wrong ) = wrong($page);
    cmp_ok $rows, '>=', 30, $page->file . ': the table is found';
    is_deeply \@wrong, [], $page->file;
}

# Limits that somebody adds belong into the table
my %shown   = map  { $_ => 1 } slurp('docs/TUNING.md') =~ /^\| `([A-Z0-9_]+)` \| \d+ \|/mg;
my @missing = grep { !$shown{$_} }
    map { slurp($_) =~ /\b(SR_\w+_MAX) =/g } map {"src/$_.h"} qw(http1/chunked http/range);
is_deeply \@missing, [], 'no limit of chunks and ranges is missing';

done_testing;
