use strict;
use warnings;
use Test::More;

# docs/RELIABILITY.md is made of xt/docs/reliability.txt (perl xt/docs/reliability.t --write), and each test
# that the list names, the name of its subtest behind a colon, is there

my $page = 'docs/RELIABILITY.md';

sub slurp {
    my $file = shift;
    open my $in, '<', $file or return;
    local $/ = undef;
    return readline $in;
}

# { problem, sirius, tests => [ [ file, subtest ] ] } of each part of the list
sub rows {
    my @rows;
    for my $part ( split /\n\n+/, slurp('xt/docs/reliability.txt') ) {
        my ($problem) = $part =~ /^problem: (.+)/m;
        my ($sirius)  = $part =~ /^Sirius: (.+)/m;
        push @rows,
            {
            problem => $problem,
            sirius  => $sirius,
            tests   => [ map { [/\A(x?t\/\S+\.t)(?:: (.+))?\z/] } $part =~ /^test: (.+)/mg ]
            };
    }
    return @rows;
}

# The lines of the table in the page
sub table {
    my @rows = @_;
    return map {
        my %seen;
        my $tests = join ', ', map {"`$_`"} grep { !$seen{$_}++ } map { $_->[0] // '?' } @{ $_->{tests} };
        "| $_->{problem} | $_->{sirius} | $tests |\n"
    } @rows;
}

# What the subtests of a file are called: quoted behind the word, or the key of what a loop makes one of
my %patterns;

sub patterns {
    my $file = shift;
    return $patterns{$file} if $patterns{$file};
    my $text = slurp($file);
    $text .= slurp("t/lib/$_.pm") for map {s{::}{/}gr} $text =~ /^use (Sirius::Test::\w+)/mg;
    my @found;
    push @found, $1 eq q(') ? quotemeta $2 =~ s/\\(.)/$1/gr : interpolated($2)
        while $text =~ /\bsubtest\s*\(?\s*(['"])((?:(?!\1)[^\\]|\\.)+)\1/g;
    push @found, quotemeta $1 while $text =~ /\bsubtest \$/ && $text =~ /(?:^\s*|\[ )'([^'\n]+)'\s*=>/mg;
    return $patterns{$file} = [ map {qr/\A$_\z/} grep { $_ ne '.*' } map {s/\APain\\ \d+\\?:\\ //r} @found ];
}

# Where a variable is, may be anything
sub interpolated {
    my $text = shift;
    my @part = split /[\$\@]\{?\$?\w+(?:\[\d+\])?\}?/, $text, -1;
    return join '.*', map {quotemeta} @part;
}

my @rows = rows();
cmp_ok scalar @rows, '>=', 18, 'the list has been found';
for my $row (@rows) {
    my @missing;
    for my $test ( @{ $row->{tests} } ) {
        my ( $file, $name ) = @$test;
        if    ( !defined $file || !-e $file ) { push @missing, 'no file: ' . ( $file || '?' ) }
        elsif ( defined $name && !grep { $name =~ $_ } @{ patterns($file) } ) {
            push @missing, "$file: $name";
        }
    }
    is_deeply \@missing, [], $row->{problem};
}

my $text  = slurp($page);
my $table = join '', table(@rows);
if ( @ARGV && $ARGV[0] eq '--write' ) {
    $text =~ s/^\| [^\n]+ \| `x?t\/.*`x?t\/[^\n]+\n/$table/ms;
    open my $out, '>', $page or die "$page: $!";
    print {$out} $text;
    close $out or die "$page: $!";
}
is join( '', map {"$_\n"} grep {/`x?t\//} $text =~ /^(\|.*)$/mg ), $table, "$page is that of the list";

# That a name which is nowhere would be found out
ok !( grep { 'no such subtest' =~ $_ } @{ patterns('xt/process/reload/under_load.t') } ),
    'not everything is a name';

done_testing;
