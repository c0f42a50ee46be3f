package Bench::Report;

# Medians, Markdown, and where it was measured.

use strict;
use warnings;

use Bench::Server;
use Config;
use Exporter   qw(import);
use List::Util qw(max min);
use POSIX      qw(strftime uname);

our @EXPORT_OK = qw(environment median spread table);

sub median {
    my @values = @_;
    my @sorted = sort { $a <=> $b } @values;
    return undef if !@sorted;    ## no critic (ProhibitExplicitReturnUndef) one value, in lists too
    return ( $sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ] ) / 2;
}

sub spread {
    my ( $format, @values ) = @_;
    return sprintf "$format-$format", min(@values), max(@values);
}

# Rows of cells, the first is the head; the first column is text, the others are numbers
sub table {
    my ( $head, @rows ) = @_;
    my @lines = ( $head, [ '---', map {'---:'} 2 .. @$head ], @rows );
    return join '', map {
        '| ' . join( ' | ', map { $_ // '' } @$_ ) . " |\n"
    } @lines;
}

# Name and value in turn
sub environment {
    my @server = @_;
    my @kernel = uname;
    my ($cpu)  = Bench::Server::read_file('/proc/cpuinfo') =~ /^model name\s*: (.*)/m;
    my $cores  = () = Bench::Server::read_file('/proc/cpuinfo') =~ /^processor\s*:/mg;
    my $commit = `git -C $Bench::Server::ROOT describe --always --dirty 2>/dev/null` =~ s/\s+\z//r || 'none';
    return (
        date    => strftime( '%Y-%m-%d %H:%M UTC', gmtime ),
        commit  => $commit,
        CPU     => ( $cpu // '?' ) . ", $cores cores; servers on core 0, client on core 1",
        kernel  => "@kernel[0,2]",
        perl    => sprintf( 'v%vd%s', $^V, $Config{useithreads} ? ', threads' : '' ),
        cc      => ( split /\n/, `cc --version` )[0],
        servers => join( ', ', map {"$_->{name} $_->{version}"} @server ),
    );
}

1;
