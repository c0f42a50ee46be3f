package Sirius::Profile::FlameGraph;

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Spec     ();
use Sirius::Base::Page;
use Sirius::Profile::Compare;
use Sirius::Profile::Functions;
use Sirius::Profile::Label;
use Sirius::Profile::Tree;

use constant ROWS => 500;    # of a table, by each of its columns

my $FOLDER  = File::Spec->rel2abs( dirname(__FILE__) );
my $NOTHING = q{default-src 'none'; base-uri 'none'; form-action 'none'};

sub html {
    my ( $class, $samples, %option ) = @_;
    my $data = _data( $samples, %option );
    my ( $html, $policy ) = Sirius::Base::Page->assemble( $FOLDER, 'flame.html' );
    $html =~ s/__POLICY__/$NOTHING; $policy/;
    $html =~ s/__DATA__/$data/;
    return $html;
}

sub _array {
    my @members = @_;
    return '[' . join( ',', @members ) . ']';
}

# As JSON
sub _data {
    my ( $samples, %option ) = @_;
    my $older   = $option{compare};
    my $tree    = Sirius::Profile::Tree->new( $samples, $older );
    my $compare = $older && Sirius::Profile::Compare->new( $samples, $older );
    my ( %index, @names, %counts, %table );
    my $name = sub {
        my ( $label, $kind ) = @_;
        return $index{$label}{$kind}
            //= push( @names, '[' . Sirius::Profile::Label->json( _text( $label, $kind ) ) . qq(,"$kind"]) )
            - 1;
    };
    my @nodes;
    for ( $tree->rows ) {
        my ( $label, $depth, @counts ) = @$_;
        my $kind = pop @counts;
        push @nodes, $name->( $label, $kind ), $depth, @counts[ 0 .. ( $older ? 3 : 1 ) ];
    }
    for my $kind (qw(functions lines)) {
        my @rows = _rows( $samples, $compare, lines => $kind eq 'lines' );
        $counts{$kind} = @rows;
        $table{$kind}  = [
            map {
                my ( $label, @counts ) = @$_;
                my ( $function, $file, $line )
                    = $kind eq 'lines' ? Sirius::Profile::Label->parts($label) : $label;
                my $place = defined $file ? Sirius::Profile::Label->json("$file:$line") : '""';
                '[' . join( ',', $name->( $function, $tree->kind($function) ), $place, @counts ) . ']';
            } _most(@rows)
        ];
    }
    my %other;
    @other{qw(least stacks samples)} = ( $tree->least, $tree->other );
    return _object(
        about => _object(
            map { $_ => $samples->$_ + 0 } grep { defined $samples->$_ } qw(cut failed hz left_out seconds)
        ),
        compare => $older ? 'true' : 'false',
        counts  => _object(%counts),
        names   => _array(@names),
        nodes   => _array(@nodes),
        other   => _object(%other),
        title   => Sirius::Profile::Label->json( $option{title} // 'Profile' ),
        map { $_ => _array( @{ $table{$_} } ) } keys %table
    );
}

# The rows that are the first by one of the columns
sub _most {
    my @rows = @_;
    return @rows if @rows <= ROWS;
    my %keep;
    for ( my $column = 1; $column < @{ $rows[0] }; $column += 2 ) {
        my @weights = map  { $_->[$column] + $_->[ $column + 1 ] } @rows;
        my @ranked  = sort { $weights[$b] <=> $weights[$a] } 0 .. $#rows;
        @keep{ @ranked[ 0 .. ROWS - 1 ] } = ();
    }
    return @rows[ sort { $a <=> $b } keys %keep ];
}

sub _object {
    my %member = @_;
    return '{' . join( ',', map {qq("$_":$member{$_})} sort keys %member ) . '}';
}

sub _rows {
    my ( $samples, $compare, %option ) = @_;
    return $compare->rows(%option) if $compare;
    my $counts = Sirius::Profile::Functions->of( $samples, %option );
    return map { [ $_, @{ $counts->{$_} } ] } sort keys %$counts;
}

# A request may have a backslash of its own
sub _text {
    my ( $label, $kind ) = @_;
    return $kind eq 'path' ? $label : Sirius::Profile::Label->shown($label);
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::FlameGraph - a profile as a page for a browser

=head1 SYNOPSIS

  use Sirius::Profile::FlameGraph;

  print {$file} Sirius::Profile::FlameGraph->html( $samples, compare => $older, title => 'shop.psgi on web1' );

=head1 DESCRIPTION

One document that loads nothing, so it can be mailed and opened from a disk. It shows the calls as a flame graph, from the request path
down or from each function to those that have called it, and a table of the functions and lines that took most time. Names are shown as
text: they stand in the document as JSON without a character that means something to HTML, and its Content-Security-Policy lets nothing
run but the scripts of this module.

With an older profile, the colours and the table show what has grown and shrunk; see L<Sirius::Profile::Compare>. What is too small to be
seen is in C<(other)>, which the page says; see L<Sirius::Profile::Tree>. The tables have the first 500 rows by each column, counted
before that.

=head1 METHODS

=head2 html

  my $bytes = Sirius::Profile::FlameGraph->html( $samples, compare => $older, title => $title );

Bytes of UTF-8. C<compare>, another L<Sirius::Profile::Samples>, and C<title> can be left out. Reads the files of the page, which are beside
this module, and dies with one line if they are missing.

=head1 SEE ALSO

L<Sirius::Profile::Samples>, L<Sirius::Profile::Speedscope>.

=cut
