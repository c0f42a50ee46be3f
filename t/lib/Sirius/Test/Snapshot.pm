package Sirius::Test::Snapshot;

# What Sirius::Scoreboard->snapshot would return for an imaginary server: 4 workers, one of which has been
# busy for 0.25 s.
#
#   my $snapshot = Sirius::Test::Snapshot->of( workers => [ { state => 'busy', line => 'GET /' }, {} ], stopping => 1 );

use strict;
use warnings;

# Four buckets for each doubling, as in the server
my @BOUNDS = (
    2**14 / 1e9,
    map {
        my $octave = 2**$_;
        map { $octave * ( 1 + $_ / 4 ) / 1e9 } 1 .. 4
    } 14 .. 36
);

sub histogram {
    my ( $class, $count, $median ) = @_;
    my @buckets = map { [ $_, int( $count * ( 1 - 2**-( $_ / $median ) ) ) ] } @BOUNDS;
    return {
        count   => $count,
        sum     => $count * $median * 1.44,
        buckets => \@buckets,
        p50     => $median,
        p90     => $median * 3.3,
        p99     => $median * 6.6,
        p999    => $median * 10,
    };
}

# The same for a server with an edge
sub of_edges {
    my ( $class, %change ) = @_;
    my $edges    = delete $change{edges} || [ {} ];
    my $number   = 0;
    my $snapshot = $class->of(%change);
    my $totals   = $snapshot->{totals};
    @{$totals}{qw(given taken)} = ( 0, 0 );
    $totals->{edge_exits} ||= { crash => 1, exit => 0, killed => 2, stop => 0 };
    $snapshot->{edges_wanted} //= @$edges;
    $snapshot->{edges} = [ map { $class->edge( $number++, $snapshot->{now}, %$_ ) } @$edges ];
    return $snapshot;
}

sub edge {
    my ( $class, $number, $now, %change ) = @_;
    return {
        number        => $number,
        pid           => 4500 + $number,
        state         => 'idle',
        started       => $now - 3700,
        connections   => 40,
        idle          => 30,
        waiting       => 2,
        waiting_since => $now - 1.5,
        accepted      => 900,
        bytes         => 36_000_000,
        cpu           => $now / 20,
        rss           => 14_000_000,
        %change,
    };
}

sub of {
    my ( $class, %change ) = @_;
    my $now     = $change{now}            || 5000;
    my $workers = delete $change{workers} || [ { state => 'busy' }, {}, {}, {} ];
    my $slot    = 0;
    return {
        time        => 1_700_000_000,
        now         => $now,
        workers     => [ map { $class->worker( $slot++, $now, %$_ ) } @$workers ],
        totals      => _totals(),
        connections => { open => 40, idle => 30, spooled => 7_000_000, waiting => 5 },
        wanted      => scalar @$workers,
        calls       => _calls(),
        exceptions  => _exceptions(),
        stopping    => 0,
        limits  => { max_connections => 50, max_queue => 100, queue_timeout => 30, request_timeout => 60 },
        reload  => { failed          => 0,  loading   => 0,   loading_since => 0,  ok              => 0 },
        latency => $class->histogram( 12_000, 0.004 ),
        queue   => $class->histogram( 12_000, 0.0002 ),
        %change,
    };
}

sub worker {
    my ( $class, $slot, $now, %change ) = @_;
    my $busy = ( $change{state} || '' ) eq 'busy';
    return {
        slot        => $slot,
        pid         => 4000 + $slot,
        generation  => 1,
        state       => 'idle',
        requests    => 3000 + $slot,
        since       => $now - 0.5,
        began       => $busy ? $now - 0.25          : 0,
        line        => $busy ? "GET /books/$slot"   : '',
        client      => $busy ? "192.0.2.$slot:5555" : '',
        mark        => '',
        last_line   => $busy ? '' : "GET /last/$slot",
        last_client => $busy ? '' : "192.0.2.$slot:4444",
        last_status => $busy ? 0  : 200,
        cpu         => $now / 10 + $slot,
        rss         => 48_000_000,
        %change,
    };
}

sub _calls {
    my @names = qw(path calls seconds errors waited share p50 p99);
    my @rows  = (
        [ '/report/:id', 40,    180, 2,  8,   0.6,  4.5,    9 ],
        [ '/books',      9_000, 90,  47, 4.5, 0.3,  0.008,  0.04 ],
        [ '/',           2_000, 18,  0,  1,   0.06, 0.0091, 0.02 ],
    );
    my @paths;
    for my $row (@rows) {
        push @paths, {};
        @{ $paths[-1] }{@names} = @$row;
    }
    my %other;
    @other{@names} = ( undef, 960, 12, 1, 0.5, 0.04, 0.005, 0.1 );
    delete $other{path};
    return { calls => 12_000, seconds => 300, paths => \@paths, other => \%other };
}

sub _exceptions {
    return {
        count => 50,
        last  => [
            {   text  => 'no row N at lib/Shop.pm line 42',
                count => 48,
                first => 1_699_990_100,
                at    => 1_699_999_990,
                path  => '/books'
            },
            {   text  => 'timeout at lib/Shop/Report.pm line 7',
                count => 2,
                first => 1_699_993_000,
                at    => 1_699_995_000,
                path  => '/report/:id'
            }
        ]
    };
}

sub _totals {
    return {
        requests        => 12_000,
        responses       => { 1 => 0, 2 => 11_000, 3 => 500, 4 => 450, 5 => 50 },
        bytes           => 36_000_000,
        aborted         => 7,
        paused          => 2,
        refused         => 9,
        refusals        => { malformed => 5, 'queue-timeout' => 4 },
        files           => 400,
        files_bytes     => 5_000_000,
        files_unchanged => 300,
        files_missing   => 7,
        accepted        => 900,
        given           => 20,
        taken           => 19,
        floods          => { ping => 3, resets => 0 },
        log_lost        => 0,
        lost            => 0,
        slow            => 0,
        closed          => { 'keepalive-timeout' => 600, client         => 240, room    => 1 },
        exits           => { crash               => 2,   'max-requests' => 6,   stop    => 0 },
        limits          => { header              => 4,   queue          => 3,   request => 1 },
    };
}

1;
