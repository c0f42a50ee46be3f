package Bench::Plot;

# Plots in SVG, made by gnuplot. Text and axes have the colour of the page, so they can be read in dark and
# light.

use strict;
use warnings;

use File::Temp     ();
use Bench::Machine qw(read_file);

my $INK     = '#010203';    # becomes currentColor
my %COLOUR  = ( sirius => '#e8800c', limit => '#8a919c', psgi => '#3b82d6', other => '#7a9a6b' );
my @PALETTE = (
    '#3b82d6', '#2a9d63', '#b0529c', '#c2452d', '#6f63c9', '#1f9aa8',
    '#a3781f', '#7d8a2e', '#c55f86', '#5a7fa8'
);

# Bars from left to right. $rows: [ label, value, least, most, kind of server ]. Options: title, axis (with
# the unit), log, format. undef without gnuplot.
sub bars {
    my ( $class, $rows, %option ) = @_;
    my @rows = grep { defined $_->[1] } @$rows or return;
    my $data = join '', map {
        my ( $label, $value, $least, $most, $kind ) = @{ $rows[$_] };
        sprintf qq{%d %s "%s" %s %s %d "%s"\n}, $_, $value, _quote($label), $least // $value, $most // $value,
            hex substr( $COLOUR{$kind}, 1 ), sprintf $option{format} || '%.1f', $value
    } 0 .. $#rows;
    my $zero  = $option{log} ? $option{log}                                          : 0;
    my $scale = $option{log} ? "set logscale x\nset xrange [$zero:*<$option{log}e9]" : 'set xrange [0:*]';
    return _svg( $option{title}, 720, 90 + 26 * @rows, <<"PLOT");
\$data << EOD
${data}EOD
$scale
set yrange [@{[ @rows - 0.4 ]}:-0.6]
set xlabel "@{[ _quote( $option{axis} ) ]}" textcolor rgb "$INK"
set grid xtics lc rgb "#808080" lw 0.4 dt 2
set rmargin 12
set ytics scale 0
unset key
set style fill solid 1.0 noborder
plot \$data using ($zero):1:($zero):2:(\$1-0.34):(\$1+0.34):6:ytic(3) with boxxyerror lc rgb variable, \\
    \$data using 2:1:4:5 with xerrorbars lc rgb "$INK" pt -1 lw 1, \\
    \$data using 5:1:7 with labels left offset 0.8,0 textcolor rgb "$INK"
PLOT
}

# Lines over a logarithmic axis. $lines: [ label, [ x, y ], ... ], the first is drawn thick. Options: title,
# x, y.
sub lines {
    my ( $class, $lines, %option ) = @_;
    my ( $data, @plots ) = ('');
    for my $line (@$lines) {
        my ( $label, $kind, @points ) = @$line;
        my $number = @plots;
        my $colour = $kind eq 'psgi' || $kind eq 'other' ? $PALETTE[ $number % @PALETTE ] : $COLOUR{$kind};
        my $width  = $kind eq 'sirius'                   ? 3                              : 1.5;
        $data .= "\$d$number << EOD\n" . join( '', map {"@$_\n"} @points ) . "EOD\n";
        push @plots, sprintf '$d%d with linespoints lw %s pt 7 ps 0.5 lc rgb "%s" title "%s"', $number,
            $width,
            $colour, _quote($label);
    }
    return if !@plots;
    my %x    = map { $_->[0] => 1 } map { my ( undef, undef, @points ) = @$_; @points } @$lines;
    my $tics = join ', ', sort { $a <=> $b } keys %x;
    return _svg( $option{title}, 760, 420, $data . <<"PLOT" . 'plot ' . join( ', ', @plots ) . "\n" );
set logscale x
set xrange [*:*]
set yrange [0:*]
set xtics ($tics)
set format y "%.0f"
set xlabel "@{[ _quote( $option{x} ) ]}" textcolor rgb "$INK"
set ylabel "@{[ _quote( $option{y} ) ]}" textcolor rgb "$INK"
set grid lc rgb "#808080" lw 0.4 dt 2
set key outside right top textcolor rgb "$INK"
PLOT
}

sub _svg {
    my ( $title, $width, $height, $script ) = @_;
    my $file = File::Temp->new( SUFFIX => '.svg' );
    my $head = <<"HEAD";
set terminal svg size $width,$height noenhanced font "sans-serif,13" dynamic
set output "$file"
set encoding utf8
set title "@{[ _quote($title) ]}" textcolor rgb "$INK"
set border 3 lc rgb "$INK"
set tics textcolor rgb "$INK" nomirror
HEAD
    open my $gnuplot, '|-', 'gnuplot' or return;
    binmode $gnuplot, ':encoding(UTF-8)';
    print {$gnuplot} $head, $script;
    close $gnuplot or return;
    my $svg = read_file("$file");
    utf8::decode($svg);
    return _dress( $svg, $title );
}

# What is drawn in ink takes the colour of its page, or of the reader's scheme when it stands alone
sub _dress {
    my ( $svg, $title ) = @_;
    my $escaped = $title =~ s/&/&amp;/gr =~ s/</&lt;/gr;
    $svg =~ s/ color="black"//g;    # of groups, whose children are drawn in currentColor
    $svg =~ s/\Q$INK\E|rgb\(\s*1,\s*2,\s*3\)/currentColor/gi;
    $svg =~ s{<title>Gnuplot</title>}{<title>$escaped</title>};
    $svg =~ s{<desc>.*?</desc>\n?}{}s;
    my $style = '<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>';
    $svg =~ s{(<svg\b[^>]*>)}{$1\n$style}s;
    $svg =~ s/[ \t]+$//mg;
    return $svg;
}

sub _quote { return shift =~ s/(["\\])/\\$1/gr }

1;
