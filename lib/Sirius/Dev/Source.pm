package Sirius::Dev::Source;

use strict;
use warnings;

use constant LINE_MAX => 400;    # bytes of a line that are shown

my %RED = ( on => "\e[1;31m", off => "\e[0m" );
my %DIM = ( on => "\e[2m",    off => "\e[0m" );

# Text to bytes, whichever it is
sub bytes {
    my ( $class, $value ) = @_;
    my $text = eval {"$value"};
    $text = 'an exception that cannot be shown as text' if !defined $text;
    utf8::encode($text) if utf8::is_utf8($text);
    return length $text ? $text : 'unknown error';
}

# The first bytes, without a part of a character at their end
sub cut {
    my ( $class, $text, $max ) = @_;
    return $text if length $text <= $max;
    my $part = substr $text, 0, $max;
    $part =~ s/[\xc0-\xff][\x80-\xbf]{0,3}\z// if substr( $text, $max, 1 ) =~ /[\x80-\xbf]/;
    return $part;
}

# For HTML. What is no UTF-8 is taken for Latin-1
sub escaped {
    my ( $class, $text ) = @_;
    my %as = ( '&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', q(') => '&#39;' );
    if ( !utf8::decode( my $copy = $text ) ) { utf8::upgrade($text); utf8::encode($text) }
    return $text =~ s/([&<>"'])/$as{$1}/gr
        =~ s/([\0-\x08\x0b-\x1f\x7f])/sprintf '&#x%x;', ord $1 == 127 ? 0x2421 : 0x2400 + ord $1/ger;
}

# The lines as a table
sub html {
    my ( $class, $at, @lines ) = @_;
    my $rows = join '', map {
        sprintf qq(<tr%s><td>%d</td><td>%s</td></tr>\n), $_->[0] == $at ? ' class="at"' : '', $_->[0],
            $class->escaped( $_->[1] )
    } @lines;
    return "<table>\n$rows</table>\n";
}

# Those around one: of each its number and its text
sub lines {
    my ( $class, $file, $at, $around ) = @_;
    my @lines;
    open my $fh, '<:raw', $file or return;
    local $/ = "\n";
    while ( my $line = readline $fh ) {
        last if $. > $at + $around;
        next if $. < $at - $around;
        $line =~ s/\s+\z//;
        push @lines, [ $. + 0, $class->cut( $line, LINE_MAX ) ];
    }
    close $fh;
    return @lines;
}

# A file and a line, which leads to the editor if there is one
sub link {
    my ( $class, $editor, $shown, $file, $line ) = @_;
    my $text = $class->escaped($shown);
    my $href = $editor && $editor->href( $file, $line );
    return defined $href ? sprintf '<a href="%s">%s</a>', $class->escaped($href), $text : $text;
}

# How the text for a terminal is painted, in which words of %RED and %DIM
sub painter {
    my ( $class, $colours ) = @_;
    my %code = ( at => \%RED, soft => \%DIM );
    return sub {
        my ( $how, $text ) = @_;
        return $colours ? "$code{$how}{on}$text$code{$how}{off}" : $text;
    };
}

# Without what a terminal would obey, which of UTF-8 is a character and of Latin-1 a byte
sub printable {
    my ( $class, $text ) = @_;
    my $is_utf8 = utf8::decode($text);
    $text =~ s/([\0-\x08\x0b-\x1f\x7f-\x9f])/sprintf '\x%02x', ord $1/ge;
    utf8::encode($text) if $is_utf8;
    return $text;
}

# The lines for a terminal
sub text {
    my ( $class, $paint, $at, @lines ) = @_;
    return join '', map {
        my $is_it = $_->[0] == $at;
        $paint->(
            $is_it ? 'at' : 'soft',
            sprintf '%s %4d  %s',
            $is_it ? '>' : ' ',
            $_->[0], $class->printable( $_->[1] )
            )
            . "\n"
    } @lines;
}

# Browsers name it; other programs say */* or nothing
sub wants_html {
    my ( $class, $accept ) = @_;
    return 0 if !defined $accept;
    for my $range ( split /,/, $accept ) {
        my ( $type, @parameters ) = map {s/\A\s+|\s+\z//gr} split /;/, lc $range;
        next     if !defined $type || $type !~ m{\A(?:text/html|application/xhtml[+]xml)\z};
        return 1 if !grep {/\Aq\s*=\s*0(?:[.]0*)?\z/} @parameters;
    }
    return 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Source - lines of a program, as HTML and for a terminal

=head1 SYNOPSIS

  my @lines = Sirius::Dev::Source->lines( 'app.psgi', 12, 6 );
  print Sirius::Dev::Source->text( Sirius::Dev::Source->painter(1), 12, @lines );

=head1 DESCRIPTION

What the pages and texts about errors have in common. Texts are bytes.

=head1 METHODS

=head2 bytes

  my $text = Sirius::Dev::Source->bytes($exception);

=head2 cut

  my $text = Sirius::Dev::Source->cut( $text, 400 );

So many bytes at most, and no part of a character.

=head2 escaped, printable

For HTML, and for a terminal, without control characters.

=head2 html, text

  my $html = Sirius::Dev::Source->html( $number, @lines );
  my $text = Sirius::Dev::Source->text( $paint, $number, @lines );

=head2 lines

  my @lines = Sirius::Dev::Source->lines( $file, $number, $around );

Line C<$number>, and as many before and behind it, each as C<[ $number, $text ]>; none if the file cannot be read.

=head2 link

  my $html = Sirius::Dev::Source->link( $editor, 'app.psgi:12', '/srv/shop/app.psgi', 12 );

With a link to the L<Sirius::Dev::Editor>, if there is one.

=head2 painter

  my $paint = Sirius::Dev::Source->painter($colours);
  print $paint->( at => 'red' ), $paint->( soft => 'dim' );

=head2 wants_html

  my $bool = Sirius::Dev::Source->wants_html( $env->{HTTP_ACCEPT} );

=head1 SEE ALSO

L<Sirius::Dev::Broken>, L<Sirius::Dev::Exception>.

=cut
