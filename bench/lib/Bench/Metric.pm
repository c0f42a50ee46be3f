package Bench::Metric;

# What can be compared of the figures of a case: its name, its unit, whether less or more is better.

use strict;
use warnings;

use Exporter   qw(import);
use List::Util qw(max sum0);
use Bench::Case;
use Bench::Statistics qw(median);

our @EXPORT_OK = qw(figures idle_of metrics value worst_of);

my %METRICS = (
    throughput => [
        [ 'CPU',        'us', 'less', sub { median( @{ $_[0]{us}   || [] } ) } ],
        [ 'requests/s', '',   'more', sub { median( @{ $_[0]{rate} || [] } ) } ],
    ],
    fairness => [
        [ 'median', 'ms', 'less', sub { median( @{ $_[0]{p50} || [] } ) } ],
        [ 'p99',    'ms', 'less', sub { median( @{ $_[0]{p99} || [] } ) } ],
        [ 'max',    'ms', 'less', sub { median( @{ $_[0]{max} || [] } ) } ],
    ],
    idle => [
        [ 'connections',            '',      'more', sub { idle_of(shift)->{usable} } ],
        [ 'memory of a connection', 'bytes', 'less', sub { idle_of(shift)->{bytes} } ],
    ],
    memory => [
        [ 'one more worker', 'kB', 'less', sub { $_[0]{worker} } ],
        [ 'two workers',     'kB', 'less', sub { $_[0]{total}{2} } ],
    ],
    start  => [ [ 'first response', 'ms', 'less', sub { median( @{ $_[0]{ms} || [] } ) } ] ],
    reload => [
        [ 'new workers alone', 'ms', 'less', sub { $_[0]{ms} } ],
        [ 'failed requests',   '',   'less', sub { $_[0]{failed} } ],
    ],
    syscalls => [
        map {
            my $kind = $_;
            [   $kind, '', 'less',
                sub { my $calls = $_[0]{calls}{$kind}; $calls ? sum0( values %$calls ) : undef }
            ]
        } 'keep-alive, 1 connection',
        'keep-alive, 16 connections',
        'a connection each, 8 at a time'
    ],
    instructions => [ [ 'instructions', '', 'less', sub { $_[0]{count} } ] ],
    'tls-idle'   => [
        [ 'memory of a connection', 'bytes', 'less', sub { $_[0]{bytes} } ],
        [ 'p99 of new clients',     'ms',    'less', sub { $_[0]{p99} } ],
    ],
    'tls-flood' => [
        [ 'p99 of kept clients', 'ms', 'less', sub { $_[0]{flood}{p99} } ],
        [ 'p99 of new clients',  'ms', 'less', sub { $_[0]{new_flood}{p99} } ],
    ],
);

# Of one server in one case; empty when there are none
sub figures {
    my ( $result, $case, $server ) = @_;
    my $of = $result->{cases}{$case} or return {};
    return $of->{servers}{$server} || {};
}

# Of a kind of case: name, unit, less or more, sub of the figures of a server
sub metrics { return @{ $METRICS{ shift() } || [] } }

# Of the first metric, or of another one: undef when it was not measured
sub value {
    my ( $kind, $figures, $name ) = @_;
    return if !$figures;
    my ($metric) = grep { !defined $name || $_->[0] eq $name } metrics($kind);
    return $metric && $metric->[3]->($figures);
}

# The greatest p99 of the cases of fairness in which a worker is free for every request. undef if one was not
# measured.
sub worst_of {
    my ( $result, $server ) = @_;
    my @p99 = map { value( fairness => figures( $result, $_, $server ), 'p99' ) } Bench::Case->waiting;
    return @p99 == grep( {defined} @p99 ) ? max(@p99) : undef;
}

# The better of the two time limits: where more connections are usable after the silence
sub idle_of {
    my $figures = shift;
    my ($best)
        = sort { ( $b->{usable} // -1 ) <=> ( $a->{usable} // -1 ) } grep {$_} @$figures{qw(75 own)};
    return $best || {};
}

1;
