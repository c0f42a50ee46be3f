use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use Digest::SHA qw(sha256_base64);
use JSON::PP    ();
use List::Util  qw(max sum0);
use Test::More;
use Sirius::Profile::FlameGraph;
use Sirius::Profile::Samples;

# The page of a profile as a document: complete, and safe whatever stands in it. profile_page.t looks at it in
# a browser

sub samples { return Sirius::Profile::Samples->from_folded(shift) }
sub page    { return Sirius::Profile::FlameGraph->html(@_) }

sub data {
    my ($json) = shift =~ m{<script type="application/json" id="data">([^<>&]*)</script>};
    return JSON::PP->new->decode($json);
}

my $NEW = "GET /a;Shop::a a.pm:1;Shop::b a.pm:2 30\nGET /a;Shop::a a.pm:1;DBI::do (XS);[waiting] 10\n";
my $OLD = "GET /a;Shop::a a.pm:1;Shop::gone a.pm:2 30\nGET /a;Shop::a a.pm:1;DBI::do (XS);[waiting] 10\n";

subtest 'One document' => sub {
    my $html = page( samples($NEW), title => 'shop.psgi' );
    unlike $html, qr/__(?:DATA|POLICY)__/, 'all of it is filled in';
    my @urls = grep { !m{\Ahttp://www\.w3\.org/} } $html =~ m{\b(https?://[^\s'"]+)}g;
    is "@urls", '', 'it names no other place';
    unlike $html, qr/<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?!data:)/, 'and loads nothing';
    unlike $html, qr/\s(?:on\w+|style)="/, 'no code and no style in attributes';
    my ($policy) = $html =~ /http-equiv="Content-Security-Policy" content="([^"]+)"/;
    my @elements = $html =~ m{<(script|style)>(.*?)</\1>}gs;
    cmp_ok scalar @elements, '>=', 6, 'scripts and a style';
    my %allowed = map { $_ => 1 } $policy =~ /'sha256-([^']+)='/g;

    while ( my ( $element, $text ) = splice @elements, 0, 2 ) {
        ok delete $allowed{ sha256_base64($text) }, "$element: its policy allows it";
    }
    is join( ' ', keys %allowed ), '', 'and nothing else';
    like $policy, qr/\Adefault-src 'none';/, 'nor anything from elsewhere';
};

subtest 'Figures' => sub {
    my $samples
        = Sirius::Profile::Samples->new( hz => 99, seconds => 10, cut => 2, failed => 1, taken => 40 );
    $samples->add( [ 'GET /a', 'Shop::a a.pm:1', 'Shop::b a.pm:2' ], 'cpu',  30 );
    $samples->add( [ 'GET /a', 'Shop::a a.pm:1', 'DBI::do (XS)' ],   'wait', 10 );
    my $data = data( page( $samples, title => 'shop.psgi' ) );
    is $data->{title}, 'shop.psgi', 'title';
    is_deeply $data->{about}, { cut => 2, failed => 1, hz => 99, left_out => 0, seconds => 10 },
        'how it was taken';
    ok !$data->{compare}, 'compared with nothing';
    my @names = map { $_->[0] } @{ $data->{names} };
    my @rows  = @{ $data->{nodes} };
    my @seen;

    while ( my ( $name, $depth, @counts ) = splice @rows, 0, 4 ) {
        push @seen, join ' ', $depth, $names[$name], @counts;
    }
    is_deeply \@seen,
        [ '0 all 0 0', '1 GET /a 0 0', '2 Shop::a 0 0', '3 DBI::do (XS) 0 10', '3 Shop::b 30 0' ], 'calls';
    is_deeply [ map { join ' ', $names[ $_->[0] ], @$_[ 1 .. 5 ] } @{ $data->{functions} } ],
        [ 'DBI::do (XS)  0 10 0 10', 'Shop::a  0 0 30 10', 'Shop::b  30 0 30 0' ], 'functions';
    is_deeply [ map { join ' ', $names[ $_->[0] ], @$_[ 1 .. 5 ] } @{ $data->{lines} } ],
        [ 'Shop::a a.pm:1 0 10 30 10', 'Shop::b a.pm:2 30 0 30 0' ], 'lines';
    my %kind = map {@$_} @{ $data->{names} };
    is_deeply \%kind,
        { 'all' => 'all', 'GET /a' => 'path', 'Shop::a' => 'app', 'Shop::b' => 'app', 'DBI::do (XS)' => 'c' },
        'kinds';
};

subtest 'Compared' => sub {
    my $data = data( page( samples($NEW), compare => samples($OLD) ) );
    ok $data->{compare}, 'it says so';
    is sum0( map { sum0( @{ $data->{nodes} }[ 6 * $_ + 2, 6 * $_ + 3 ] ) } 0 .. @{ $data->{nodes} } / 6 - 1 ),
        40,
        'samples of this one';
    is sum0( map { sum0( @{ $data->{nodes} }[ 6 * $_ + 4, 6 * $_ + 5 ] ) } 0 .. @{ $data->{nodes} } / 6 - 1 ),
        40,
        'and of the older one';
    my @names = map { $_->[0] } @{ $data->{names} };
    is_deeply [ grep {/gone/} map { join ' ', $names[ $_->[0] ], @$_[ 2 .. 9 ] } @{ $data->{functions} } ],
        ['Shop::gone 0 0 0 0 30 0 30 0'], 'what is gone is there';
};

# Clients choose paths, applications the names of their subs and files
subtest 'Text is text' => sub {
    for my $evil ( '</script><script>alert(1)</script>',
        '<!--<script>',       ']]>', q("';--), '\u003c\\',
        "\0\x01\x1b[31m\x7f", "\x{202e}\x{2028}", "caf\xc3\xa9", "\xff\xfe", '__DATA__', '$1\1@{[die]}',
        '(other)',            'all' )
    {
        my $bytes = $evil;
        utf8::encode($bytes) if utf8::is_utf8($bytes);
        my $samples = Sirius::Profile::Samples->new;
        $samples->add( [ "GET /$bytes", "Shop::$bytes lib/$bytes.pm:1", "$bytes" ], 'cpu', 3 );
        my $html = page( $samples, compare => $samples, title => $bytes );
        my $name = $evil =~ s/([^\x20-\x7e])/sprintf '\x{%x}', ord $1/ger;
        my $data = data($html);
        my $want = $bytes;
        utf8::decode($want);
        is $data->{title}, $want, "$name: title";
        my %names = map { $_->[0] => 1 } @{ $data->{names} };
        ok $names{ "GET /" . $want =~ tr/;\n/, /r }, 'path';
        my $tags = () = $html =~ /<script|<!--/g;
        is $tags, 5, 'no element of it';
    }
};

subtest 'Many stacks' => sub {
    srand 7;
    my $samples = Sirius::Profile::Samples->new;
    for my $i ( 1 .. 3000 ) {
        my @calls
            = map { my $f = int 40 * rand() * rand(); "Shop::M$_\::f$f lib/Shop/M$_.pm:" . int 1 + rand 60 }
            1 .. 20;
        $samples->add( [ "GET /$i", @calls ], $i % 3 ? 'cpu' : 'wait', 1 + $i % 5 );
    }
    my $html = page($samples);
    my $data = data($html);
    cmp_ok length $html,               '<',  300_000, 'the page is small';
    cmp_ok scalar @{ $data->{lines} }, '<=', 1000,    'lines: the hottest';
    cmp_ok $data->{counts}{lines},     '>',  5000,    'of many';
    my $of    = sub { my $row = shift; return $row->[2] + $row->[3] };
    my %exact = %{ Sirius::Profile::Functions->of( $samples, lines => 1 ) };
    is max( map { $of->($_) } @{ $data->{lines} } ), max( map { $_->[0] + $_->[1] } values %exact ),
        'none of them is missing';
    cmp_ok $data->{other}{stacks}, '>', 0, 'it says how many are in (other)';
};

like page( samples('') ), qr/"nodes":\[0,0,0,0\]/, 'a profile of nothing';

done_testing;
