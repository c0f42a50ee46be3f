use strict;
use warnings;
use Test::More;

# docs/RELIABILITY.md: each test that its table names is there

my $page = 'docs/RELIABILITY.md';

sub slurp {
    my $file = shift;
    open my $in, '<', $file or return;
    local $/ = undef;
    return readline $in;
}

# [ line, trouble, tests ] of each row, a test as [ file, subtest ]
sub rows {
    my ( $number, @rows ) = (0);
    for my $line ( split /\n/, slurp($page) ) {
        $number++;
        my @cell = $line =~ /\A\| (.*) \|\z/ ? split / \| /, $1 : ();
        next if @cell != 3 || $cell[2] !~ /\A`t/;
        push @rows,
            [ $number, $cell[0], [ map { [/\A`(t\/\S+\.t)`(?:: (.+))?\z/] } split /<br>/, $cell[2] ] ];
    }
    return @rows;
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
cmp_ok scalar @rows, '>=', 18, 'the table has been found';
for my $row (@rows) {
    my ( $line, $trouble, $tests ) = @$row;
    my @missing;
    for my $test (@$tests) {
        my ( $file, $name ) = @$test;
        if    ( !defined $file || !-e $file ) { push @missing, 'no file: ' . ( $file || '?' ) }
        elsif ( defined $name && !grep { $name =~ $_ } @{ patterns($file) } ) {
            push @missing, "$file: $name";
        }
    }
    is_deeply \@missing, [], "line $line: $trouble";
}

# That a name which is nowhere would be found out
ok !( grep { 'no such subtest' =~ $_ } @{ patterns('t/process/storm.t') } ), 'not everything is a name';

done_testing;
