package Bench::Markdown;

# The parts of a report as Markdown.

use strict;
use warnings;

use Text::Wrap ();

# How the figures were measured, and the tables with all of them, for readers who want to check something
sub figures {
    my ( $class, $head, $sections ) = @_;
    my @text = ( "# $head->{title}: all figures\n", _wrap( '', $head->{text}[-1] ) );
    for my $section (@$sections) {
        my @tables = grep { $_->{figures} && !$_->{detail} } @{ $section->{tables} || [] };
        my @notes  = map  { _wrap( '', $_ ) } @{ $section->{notes}                 || [] };
        next if !@tables && !@notes;
        push @text, "## $section->{title}\n", @notes, map { ( "### $_->{caption}\n", table($_) ) } @tables;
    }
    return join "\n", @text;
}

# Plots are links into that folder, without which there are none
sub page {
    my ( $class, $head, $sections, $plots ) = @_;
    my @text = ( "# $head->{title}\n", map { _wrap( '', $_ ) } @{ $head->{text} } );
    for my $section (@$sections) {
        my @tables = grep { !$_->{detail} && !$_->{figures} } @{ $section->{tables} || [] };
        my @list   = map  { _wrap( '- ', $_ ) } @{ $section->{list}                 || [] };
        next
            if !@tables
            && !@list
            && !$section->{always}
            && !@{ $section->{text}  || [] }
            && !@{ $section->{plots} || [] };
        push @text, "## $section->{title}\n", map { _wrap( '', $_ ) } @{ $section->{text} || [] };
        push @text, join '',                  @list if @list;
        push @text, map {"![$_->{title}]($plots$_->{name}.svg)\n"} @{ $section->{plots} || [] };
        for my $table (@tables) {
            push @text, "### $table->{caption}\n" if $table->{caption};
            push @text, table($table);
        }
    }
    return join "\n", @text;
}

# The first column is text, and so is one that has a cell with letters; the others are numbers
sub table {
    my $table = shift;
    my ( $head, @rows ) = ( $table->{head}, @{ $table->{rows} } );
    my @align = map { is_text( $table, $_ ) ? '---' : '---:' } 0 .. $#{$head};
    return join '', map {
        '| ' . join( ' | ', map { ( $_ // '' ) =~ s/\|/\\|/gr } @$_ ) . " |\n"
    } $head, \@align, @rows;
}

sub is_text {
    my ( $table, $column ) = @_;
    return $column == 0 || grep { ( $_->[$column] // '' ) =~ /[[:alpha:]]{3}/ } @{ $table->{rows} };
}

sub _wrap {
    my ( $bullet, $text ) = @_;
    local $Text::Wrap::columns  = 120;
    local $Text::Wrap::huge     = 'overflow';
    local $Text::Wrap::unexpand = 0;
    return Text::Wrap::wrap( $bullet, ' ' x length $bullet, $text ) . "\n";
}

1;
