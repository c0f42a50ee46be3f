package Bench::Report;

# From the figures of a run to its files: report.html, BENCHMARKS.md, FIGURES.md with the tables that are not
# in it, and a plot in SVG for each that there is.

use strict;
use warnings;
use utf8;

use File::Path qw(make_path);
use Bench::Html;
use Bench::Markdown;
use Bench::Section;

# $result: what dev/bench has written
sub new {
    my ( $class, $result ) = @_;
    ( $result->{schema} // '' ) eq 'sirius-bench-1' or die "This is no result of dev/bench\n";
    return bless { result => $result }, $class;
}

# Into a folder; or BENCHMARKS.md into the first, plots and FIGURES.md into the second, which is one in the
# first, and the page to build/bench/report. Returns the names of the files.
sub write {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $into, $plots ) = @_;
    my @sections = Bench::Section->all( $self->{result} );
    my $head     = $self->_head( $plots ? 'plots/' : '' );
    my $page     = $plots ? 'build/bench/report' : $into;
    my $link     = $plots ? "plots/"             : '';
    my %file     = (
        "$page/report.html"   => Bench::Html->page( $head, \@sections ),
        "$into/BENCHMARKS.md" => Bench::Markdown->page( $head, \@sections, $link ),
    );
    my $folder = $plots // $into;
    $file{"$folder/FIGURES.md"}     = Bench::Markdown->figures( $head, \@sections );
    $file{"$folder/$_->{name}.svg"} = $_->{svg} for map { @{ $_->{plots} || [] } } @sections;

    for my $name ( sort keys %file ) {
        make_path( $name =~ s{/[^/]*\z}{}r );
        open my $fh, '>:encoding(UTF-8)', $name or die "$name: $!\n";
        print {$fh} $file{$name};
        close $fh or die "$name: $!\n";
    }
    my @names = sort keys %file;
    return @names;
}

sub _head {
    my ( $self, $link ) = @_;
    my $result = $self->{result};
    my %where  = map { $_->[0] => $_->[1] } @{ $result->{environment} };
    return {
        title => 'Benchmarks',
        text  => [
            'This page is for readers who compare Sirius with other servers. Compare ratios within this run, not'
                . ' absolute figures, and CPU rather than rates: on loopback, a client that is slower than the server measures'
                . " itself. The tables that are not here are in [FIGURES]($link"
                . 'FIGURES.md).',
            "Measured on $where{date} by `$result->{command}`, commit $where{commit}, on $where{CPU}. This page is made"
                . ' by that command, or again from its figures by `dev/bench --report FILE`.'
        ]
    };
}

1;
