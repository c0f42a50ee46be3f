package Bench::Html;

# The parts of a report as one HTML page: plots and style are inside, without scripts or anything else that a
# browser would have to fetch.

use strict;
use warnings;

use Bench::Machine  qw(read_file);
use Bench::Markdown ();
use Bench::Peer     ();

sub page {
    my ( $class, $head, $sections ) = @_;
    my $style = read_file("$Bench::Peer::ROOT/bench/report.css");
    my $title = _escape( $head->{title} );
    my @body  = ( "<h1>$title</h1>", map { '<p>' . _text($_) . '</p>' } @{ $head->{text} } );
    for my $section (@$sections) {
        push @body, '<section>', '<h2>' . _escape( $section->{title} ) . '</h2>';
        push @body, map { '<p>' . _escape($_) . '</p>' } @{ $section->{text} || [] },
            @{ $section->{notes} || [] };
        push @body, '<ul>', map( { '<li>' . _escape($_) . '</li>' } @{ $section->{list} } ), '</ul>'
            if @{ $section->{list} || [] };
        push @body, map { '<figure>' . _inline($_) . '</figure>' } @{ $section->{plots} || [] };
        push @body, map { _table($_) } @{ $section->{tables}                            || [] };
        push @body, '</section>';
    }
    return join "\n", '<!DOCTYPE html>', '<html lang="en">', '<head>', '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">', "<title>$title</title>",
        "<style>\n$style</style>", '</head>', '<body>', @body, '</body>', "</html>\n";
}

sub _table {
    my $table = shift;
    my @class
        = map { Bench::Markdown::is_text( $table, $_ ) ? '' : ' class="number"' } 0 .. $#{ $table->{head} };
    my @rows = '<tr>'
        . join( '', map {"<th$class[$_]>@{[ _escape( $table->{head}[$_] ) ]}</th>"} 0 .. $#class ) . '</tr>';
    for my $row ( @{ $table->{rows} } ) {
        my @cells = map {
            my $text  = _escape( $row->[$_] // '' );
            my $class = $text =~ /\A(yes|no)\z/ && $table->{head}[$_] eq 'met' ? qq{ class="$1"} : $class[$_];
            "<td$class>$text</td>"
        } 0 .. $#class;
        push @rows,
            ( $row->[0] =~ /\ASirius\b/ ? '<tr class="sirius">' : '<tr>' ) . join( '', @cells ) . '</tr>';
    }
    my $html    = join "\n", '<div class="wide"><table>', @rows, '</table></div>';
    my $caption = _escape( $table->{caption} // '' );
    return "<details><summary>$caption</summary>\n$html\n</details>" if $table->{detail};
    return $caption ? "<h3>$caption</h3>\n$html" : $html;
}

# Names in a plot must differ from those of another plot; what only a stand-alone file needs is removed
sub _inline {
    my $plot = shift;
    my $svg  = $plot->{svg};
    $svg =~ s/\A.*?(?=<svg\b)//s;
    $svg =~ s/\s+xmlns(?::\w+)?="[^"]*"//g;
    $svg =~ s{<style>.*?</style>\n}{}s;
    $svg =~ s/\bxlink:href\b/href/g;
    $svg =~ s/(\bid=['"]|href=['"]#|url\(#)/$1$plot->{name}-/g;
    $svg =~ s/<svg\b/<svg role="img"/;
    return $svg;
}

# Paragraphs at the top contain no markup but code in backquotes
sub _text { return _escape(shift) =~ s{`([^`]*)`}{<code>$1</code>}gr }

sub _escape {
    my $text = shift;
    my %as   = ( '&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;' );
    return $text =~ s/([&<>"])/$as{$1}/gr;
}

1;
