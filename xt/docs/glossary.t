use strict;
use warnings;
use File::Find ();
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use Page;

# The glossary of docs/HACKING.md: each word is in the code, in the files that its row names, and no other
# file, class or type has that name

sub slurp {
    my $file = shift;
    open my $in, '<', $file or die "$file: $!";
    local $/ = undef;
    return readline $in;
}

my ( %text, %named )
    ;    # of the code: a file and its text; a name in lower case and the files of what is called so
File::Find::find(
    {   no_chdir => 1,
        wanted   => sub { $text{$_} = slurp($_) if /[.](?:[ch]|pm|xs)\z/ }
    },
    qw(src xs lib)
);
for my $file ( keys %text ) {
    my ($name) = $file =~ m{([^/]+)[.]\w+\z};
    $named{ lc $name }{$file} = 1;
    next if $file !~ /[.]h\z/;
    $named{$_}{$file} = 1 for $text{$file} =~ /^typedef (?:struct|enum|union) (?:sr|sirius)_(\w+) \{/mg;
}

# Of a glossary: { word, files => [ names ] }
sub rows {
    my $page = shift;
    my @rows;
    for ( $page->lines ) {
        my ( $number, $line ) = @$_;
        my ( $word,   $rest ) = $line =~ /\A\| `(\w+)` \| (.*) \|\z/ or next;
        push @rows, { word => $word, files => [ $rest =~ m{`((?:src|xs|lib)/[\w./]+[.](?:[ch]|pm|xs))`}g ] };
    }
    return @rows;
}

# What is wrong in it, as lines
sub wrong {
    my @rows = @_;
    my ( %seen, @wrong );
    my $last = q();
    for my $row (@rows) {
        my $word = $row->{word};
        push @wrong, "$word is there twice"               if $seen{$word}++;
        push @wrong, "$word is not in alphabetical order" if $word lt $last;
        push @wrong, "$word is in no file that it names"  if !@{ $row->{files} };
        push @wrong, "$word is not in $_" for grep { !is_in( $word, $_ ) } @{ $row->{files} };
        my %told = map { s/[.]\w+\z//r => 1 } @{ $row->{files} };
        push @wrong, map {"$word is something else in $_"}
            grep { !$told{s/[.]\w+\z//r} } sort keys %{ $named{$word} || {} };
        $last = $word;
    }
    return @wrong;
}

sub is_in {
    my ( $word, $file ) = @_;
    return defined $text{$file} && $text{$file} =~ /(?<![[:alpha:]])\Q$word\E(?![[:alpha:]])/i;
}

subtest 'what is wrong is found' => sub {
    my $page = Page->parse( 'x', <<'PAGE' );
| `slot` | in the queue (`src/share/queue.h`) | |
| `ring` | in shared memory (`src/share/queue.h`) | |
| `nowhere` | (`src/share/queue.h`) | |
| `slot` | anything | |
PAGE
    is_deeply [ wrong( rows($page) ) ],
        [
        'ring is not in alphabetical order',
        'ring is something else in src/share/ring.c',
        'ring is something else in src/share/ring.h',
        'nowhere is not in alphabetical order',
        'nowhere is not in src/share/queue.h',
        'slot is there twice',
        'slot is in no file that it names',
        'slot is something else in src/share/queue.h'
        ],
        'another meaning, a word that is nowhere, twice the same';
};

my ($glossary) = slurp('docs/HACKING.md') =~ /^## What do the words mean[?]\n(.*?)^## /ms;
my @rows = rows( Page->parse( 'docs/HACKING.md', $glossary ) );
cmp_ok scalar @rows, '>=', 20, 'the glossary is found';
is_deeply [ wrong(@rows) ], [], 'each word has one meaning, where its row says';

done_testing;
