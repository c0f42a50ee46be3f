package Page;

# A page of the documentation: its blocks of code with the mark above each, its headings, links and words of
# code.
#
#   <!-- test: run -->
#   ```sh
#   sirius --version
#   ```
#
# See commands.t for the marks.

use strict;
use warnings;
use File::Basename qw(dirname);

# All of them, as the reader finds them
sub all {
    return map { Page->new($_) } qw(README.md CONTRIBUTING.md SECURITY.md), sort glob 'docs/*.md';
}

sub new {
    my ( $class, $file ) = @_;
    open my $in, '<:encoding(UTF-8)', $file or die "$file: $!";
    local $/ = undef;
    return $class->parse( $file, readline $in );
}

sub parse {
    my ( $class, $file, $text ) = @_;
    my $self = bless { file => $file, blocks => [], lines => [], indented => [] }, $class;
    my ( $block, $mark, $before ) = ( undef, undef, '' );
    my $number = 0;
    for my $line ( split /\n/, $text ) {
        $number++;
        if ($block) {
            if   ( $line eq '```' ) { undef $block }
            else                    { $block->{text} .= "$line\n" }
            next;
        }
        if ( $line =~ /\A```(\S*)\z/ ) {
            push @{ $self->{blocks} },
                $block = { language => $1, line => $number, mark => $mark, page => $file, text => '' };
        }
        push @{ $self->{indented} }, $number if $line =~ /\A {4}\S/ && $before eq '';
        $mark = $line =~ /\A<!-- test: (.+) -->\z/ ? $1 : undef;
        push @{ $self->{lines} }, [ $number, $line ];
        $before = $line;
    }
    return $self;
}

sub blocks   { return @{ shift->{blocks} } }
sub file     { return shift->{file} }
sub indented { return @{ shift->{indented} } }

# Text without blocks, as [ line number, line ]
sub lines { return @{ shift->{lines} } }

# What a heading is called in a link, as GitHub has it
sub anchors {
    my $self = shift;
    my ( %seen, @anchors );
    for ( $self->lines ) {
        my $text = $_->[1] =~ /\A#+ (.+)/ ? lc $1 : next;
        $text =~ s/[^\w\- ]//g;
        $text =~ tr/ /-/;
        push @anchors, $seen{$text}++ ? "$text-" . ( $seen{$text} - 1 ) : $text;
    }
    return @anchors;
}

# [ line number, file, anchor ] of each link into the project; an empty file is the page itself
sub links {
    my $self = shift;
    my @links;
    for ( $self->lines ) {
        my ( $number, $line ) = @$_;
        for my $target ( $line =~ /\]\(([^)]+)\)/g, $line =~ /(?:src|srcset)="([^"]+)"/g ) {
            next if $target =~ /\A[a-z]+:/;
            my ( $file, $anchor ) = split /#/, $target, 2;
            my $path = length $file ? dirname( $self->file ) . "/$file" : $self->file;
            push @links, [ $number, _simple($path), $anchor ];
        }
    }
    return @links;
}

# [ line number, text ] of each span of code, those that are broken over two lines as well
sub spans {
    my $self = shift;
    my ( @spans, $paragraph );
    for ( $self->lines, [ 0, '' ] ) {
        my ( $number, $line ) = @$_;
        if ( length $line && $line !~ /\A(?:\||#|- )/ ) {
            $paragraph ||= [ $number, '' ];
            $paragraph->[1] .= "$line\n";
            next;
        }
        for my $part ( grep {$_} $paragraph, [ $number, $line ] ) {
            my ( $first, $text ) = @$part;
            while ( $text =~ /`([^`]+)`/g ) {
                my $at = $first + ( substr( $text, 0, $-[0] ) =~ tr/\n// );
                push @spans, [ $at, $1 =~ tr/\n/ /r =~ s/\\\|/|/gr ];
            }
        }
        undef $paragraph;
    }
    return @spans;
}

sub _simple {
    my $path = shift;
    $path =~ s{\A\./}{};
    1 while $path =~ s{[^/]+/\.\./}{};
    return $path;
}

1;
