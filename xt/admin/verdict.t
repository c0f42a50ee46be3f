use strict;
use warnings;
use lib 't/lib';
use Test::More;
use Sirius::Admin::Verdict;
use Sirius::Test::Snapshot;

# The worst condition that holds, from the worst on

my @CALM = ( connections => { open => 40, idle => 30, waiting => 0 } );

sub worst {
    my ( $errors, %change ) = @_;
    my $worst = Sirius::Admin::Verdict->new( Sirius::Test::Snapshot->of( @CALM, %change ), @$errors )->worst;
    return "$worst->{mood}: $worst->{text}";
}

sub with_edges {
    my ( $edges, %change ) = @_;
    my @quiet = ( waiting => 0, waiting_since => 0 );
    my $snapshot
        = Sirius::Test::Snapshot->of_edges( @CALM, edges => [ map { { @quiet, %$_ } } @$edges ], %change );
    my $verdict = Sirius::Admin::Verdict->new($snapshot);
    return (
        $verdict->worst->{mood} . ': ' . $verdict->worst->{text},
        $verdict->unready // 'ready',
        $verdict->edges
    );
}

my $busy = { state => 'busy' };

is worst( [] ), 'good: Serving', 'nothing';
is worst( [], workers => [ $busy, $busy ] ), 'busy: Serving, all workers are busy', 'busy';
is worst( [], workers => [ $busy, { state => 'draining' } ] ), 'busy: Serving, all workers are busy',
    'of those that stay';
is worst( [], reload => { last_at => 1, last_ok => 0 } ),
    'slow: Serving the old code: the last reload failed', 'a reload has failed';
is worst( [], reload => { last_at => 1, last_ok => 1 } ), 'good: Serving', 'one has not';
is worst( [], workers => [ {}, { generation => 2 } ] ), 'start: Serving, switching to the new generation',
    'two generations';
is worst( [], reload => { loading => 2, last_at => 1, last_ok => 0 } ), 'start: Serving while reloading',
    'the next reload';
is worst( [], workers => [ {}, { %$busy, began => 4000 } ], reload => { loading => 2 } ),
    'slow: Serving, one request has been running for 16 min', 'a long request';
is worst( [ 4,       5 ] ),         'good: Serving', 'four errors';
is worst( [ 5,       1000 ] ),      'good: Serving', 'five of a thousand';
is worst( [ 50,      5000 ] ),      'good: Serving', '1 %';
is worst( [ 1234,    5_678_901 ] ), 'good: Serving', 'a few';
is worst( [ 234_567, 5_678_901 ], workers => [ { %$busy, began => 4000 } ] ),
    'slow: Serving, with errors: 234,567 of 5,678,901 responses of the last minute (5xx)', 'many';
is worst( [ 100, 200 ], connections => { waiting => 1 } ), 'slow: 1 request waiting for a worker',
    'one waits';
is worst( [], connections => { waiting => 1234 } ), 'slow: 1,234 requests waiting for a worker', 'many wait';
is worst( [], workers     => [ { state => 'starting' } ] ), 'bad: No worker is serving',         'no worker';
is worst( [], workers     => [] ),                          'bad: No worker is serving',         'at all';
is worst( [], workers => [ $busy, {} ], stopping => 1 ), 'slow: Stopping, 2 workers left', 'the end';

is_deeply [ with_edges( [ {}, {} ] ) ], [ 'good: Serving', 'ready' ], 'two edges';
is_deeply [ with_edges( [ {}, { state => 'draining' } ], edges_wanted => 1 ) ], [ 'good: Serving', 'ready' ],
    'one that leaves has been replaced';
my $hangs = { state => 'hanging', hangs_since => 4993 };
my $text  = 'an edge does not respond: PID 4501 for 7.0 s';
is_deeply [ with_edges( [ {}, $hangs ] ) ], [ "bad: Serving, but $text", 'ready', $text ], 'one hangs';
is_deeply [ with_edges( [$hangs] ) ],
    [ 'bad: No edge responds', 'no edge responds: 4500', 'an edge does not respond: PID 4500 for 7.0 s' ],
    'the only one';
$text = 'an edge is starting: PID 4501';
is_deeply [ with_edges( [ {}, { state => 'starting' } ] ) ], [ "bad: Serving, but $text", 'ready', $text ],
    'one starts';
is_deeply [ with_edges( [ {} ], edges_wanted => 2 ) ],
    [ 'bad: Serving, but an edge is missing', 'ready', 'an edge is missing' ], 'one is missing';
is_deeply [ with_edges( [ {} ], edges_wanted => 4 ) ],
    [ 'bad: Serving, but edges are missing: 3', 'ready', 'edges are missing: 3' ], 'three are';
is_deeply [ with_edges( [], edges_wanted => 2 ) ],
    [ 'bad: No edge is serving', 'no edge is serving', 'edges are missing: 2' ], 'all are';
my @waits = ( waiting => 3, waiting_since => 4996 );
$text = 'the queue of an edge does not move, although a worker is idle: PID 4500 for 4.0 s';
is_deeply [
    with_edges( [ {@waits} ], workers => [ $busy, { since => 4990 } ], connections => { waiting => 3 } ) ],
    [ "bad: Serving, but $text", 'ready', $text ], 'a queue that does not move';
is_deeply [ with_edges( [ {@waits} ], workers => [ $busy, $busy ], connections => { waiting => 3 } ) ],
    [ 'slow: 3 requests waiting for a worker', 'ready' ], 'but not while all are busy';
is_deeply [
    with_edges( [ {@waits} ], workers => [ $busy, { since => 4999 } ], connections => { waiting => 3 } ) ],
    [ 'slow: 3 requests waiting for a worker', 'ready' ], 'nor when one has just become idle';

done_testing;
