use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use Test::More;
use Sirius::Admin::Metrics;
use Sirius::Test::Server;
use Sirius::Test::Snapshot;

# The text that Prometheus reads: every sample, what promtool says of it, and what must never be in it

sub text { return Sirius::Admin::Metrics->text( shift, version => '1.5', started => 1_699_990_000 ) }

sub of { return text( Sirius::Test::Snapshot->of(@_) ) }

# { 'name{labels}' => value }
sub samples { return { shift =~ /^(sirius_\S+) (\S+)$/mg } }

# Samples of one name
sub named {
    my ( $samples, $name ) = @_;
    return {
        map { /\A\Q$name\E(?:\{(.*)\})?\z/ ? ( defined $1 ? $1 : '' => $samples->{$_} ) : () }
            keys %$samples
    };
}

sub of_beside {
    return of(
        beside => [
            { name => 'jobs', pid => 4711, restarts => 2, since => 7, state => 'running' },
            { name => 'mail', pid => 0,    restarts => 9, since => 7, state => 'waiting' }
        ]
    );
}

sub of_lanes {
    my %lane = (
        limit       => 2,
        queue_limit => 20,
        running     => 2,
        waiting     => 7,
        requests    => 40,
        waited      => 12.5,
        refused     => 3
    );
    return of(
        lanes => [
            { %lane, name => '/report',      timed_out => 1 },
            { %lane, name => 'POST:/import', timed_out => 0 }
        ]
    );
}

sub of_edges { return text( Sirius::Test::Snapshot->of_edges(@_) ) }

my @two = (
    { state => 'busy', rss     => 5_000_000, private => 2_000_000, requests => 70 },
    { rss   => undef,  private => undef,     cpu     => undef }
);
my $text = of( workers => \@two );
my $all  = samples($text);

subtest 'Counters and gauges' => sub {
    my %want = (
        'sirius_start_time_seconds'                                   => 1_699_990_000,
        'sirius_stopping'                                             => 0,
        'sirius_generation'                                           => 1,
        'sirius_requests_total'                                       => 12_000,
        'sirius_responses_total{class="1xx"}'                         => 0,
        'sirius_responses_total{class="2xx"}'                         => 11_000,
        'sirius_responses_total{class="3xx"}'                         => 500,
        'sirius_responses_total{class="4xx"}'                         => 450,
        'sirius_responses_total{class="5xx"}'                         => 50,
        'sirius_response_bytes_total'                                 => 36_000_000,
        'sirius_responses_aborted_total'                              => 7,
        'sirius_requests_refused_total{reason="malformed"}'           => 5,
        'sirius_requests_refused_total{reason="queue-timeout"}'       => 4,
        'sirius_queued_requests_limit'                                => 100,
        'sirius_queue_wait_limit_seconds'                             => 30,
        'sirius_request_age_limit_seconds'                            => 60,
        'sirius_connections_limit'                                    => 50,
        'sirius_accept_pauses_total'                                  => 2,
        'sirius_static_requests_total'                                => 400,
        'sirius_static_response_bytes_total'                          => 5_000_000,
        'sirius_static_not_modified_total'                            => 300,
        'sirius_static_not_found_total'                               => 7,
        'sirius_queued_requests'                                      => 5,
        'sirius_connections{state="active"}'                          => 5,
        'sirius_connections{state="idle"}'                            => 30,
        'sirius_connections{state="waiting"}'                         => 5,
        'sirius_temporary_file_bytes'                                 => 7_000_000,
        'sirius_connections_accepted_total'                           => 900,
        'sirius_connections_given_total'                              => 20,
        'sirius_connections_taken_total'                              => 19,
        'sirius_connections_closed_total{reason="client"}'            => 240,
        'sirius_connections_closed_total{reason="keepalive-timeout"}' => 600,
        'sirius_connections_closed_total{reason="room"}'              => 1,
        'sirius_http2_floods_total{reason="ping"}'                    => 3,
        'sirius_http2_floods_total{reason="resets"}'                  => 0,
        'sirius_workers{state="busy"}'                                => 1,
        'sirius_workers{state="draining"}'                            => 0,
        'sirius_workers{state="idle"}'                                => 1,
        'sirius_workers{state="starting"}'                            => 0,
        'sirius_workers_wanted'                                       => 2,
        'sirius_worker_requests_total{worker="0"}'                    => 70,
        'sirius_worker_requests_total{worker="1"}'                    => 3001,
        'sirius_worker_request_age_seconds{worker="0"}'               => 0.25,
        'sirius_worker_request_age_seconds{worker="1"}'               => 0,
        'sirius_worker_cpu_seconds_total{worker="0"}'                 => 500,
        'sirius_worker_resident_bytes{worker="0"}'                    => 5_000_000,
        'sirius_worker_private_bytes{worker="0"}'                     => 2_000_000,
        'sirius_worker_exits_total{cause="crash"}'                    => 2,
        'sirius_worker_exits_total{cause="max-requests"}'             => 6,
        'sirius_worker_exits_total{cause="stop"}'                     => 0,
        'sirius_timeouts_total{limit="header"}'                       => 4,
        'sirius_timeouts_total{limit="queue"}'                        => 3,
        'sirius_timeouts_total{limit="request"}'                      => 1,
        'sirius_reloads_total{result="failed"}'                       => 0,
        'sirius_reloads_total{result="ok"}'                           => 0,
        'sirius_reload_age_seconds'                                   => 0,
        'sirius_last_reload_successful'                               => 1,
        'sirius_last_reload_timestamp_seconds'                        => 1_699_990_000,
        'sirius_last_reload_duration_seconds'                         => 0,
        'sirius_access_log_lost_lines_total'                          => 0,
        'sirius_requests_lost_total'                                  => 0,
        'sirius_slow_requests_total'                                  => 0,
        'sirius_exceptions_total'                                     => 50,
        sprintf( 'sirius_build_info{version="1.5",perl="%vd"}', $^V ) => 1,
    );
    my %got = map { $_ => $all->{$_} } grep { !/\Asirius_(?:path|(?:request|queue)_duration)_/ } keys %$all;
    is_deeply \%got, \%want, 'all of them, and no other';
};

subtest 'Edges' => sub {
    my $text
        = of_edges( edges_wanted => 3, edges => [ {}, { waiting => 0, waiting_since => 0, cpu => undef } ] );
    my $all  = samples($text);
    my %want = (
        'sirius_edge_connections{state="active",edge="0"}'  => 8,
        'sirius_edge_connections{state="active",edge="1"}'  => 10,
        'sirius_edge_connections{state="idle",edge="0"}'    => 30,
        'sirius_edge_connections{state="idle",edge="1"}'    => 30,
        'sirius_edge_connections{state="waiting",edge="0"}' => 2,
        'sirius_edge_connections{state="waiting",edge="1"}' => 0,
        'sirius_edge_oldest_wait_seconds{edge="0"}'         => 1.5,
        'sirius_edge_oldest_wait_seconds{edge="1"}'         => 0,
        'sirius_edge_connections_accepted_total{edge="0"}'  => 900,
        'sirius_edge_connections_accepted_total{edge="1"}'  => 900,
        'sirius_edge_response_bytes_total{edge="0"}'        => 36_000_000,
        'sirius_edge_response_bytes_total{edge="1"}'        => 36_000_000,
        'sirius_edge_cpu_seconds_total{edge="0"}'           => 250,
        'sirius_edge_resident_bytes{edge="0"}'              => 14_000_000,
        'sirius_edge_resident_bytes{edge="1"}'              => 14_000_000,
        'sirius_edge_start_time_seconds{edge="0"}'          => '1699996300.000',
        'sirius_edge_start_time_seconds{edge="1"}'          => '1699996300.000',
        'sirius_edge_exits_total{cause="crash"}'            => 1,
        'sirius_edge_exits_total{cause="exit"}'             => 0,
        'sirius_edge_exits_total{cause="killed"}'           => 2,
        'sirius_edge_exits_total{cause="stop"}'             => 0,
    );
    my %states = ( busy => 0, draining => 0, hanging => 0, idle => 2, starting => 0 );
    $want{"sirius_edges{state=\"$_\"}"} = $states{$_} for keys %states;
    $want{sirius_edges_wanted}          = 3;
    my %got = map { $_ => $all->{$_} } grep { /\Asirius_edges?_/ || /\Asirius_edges\{/ } keys %$all;
    is_deeply \%got, \%want, 'all of them, and no other';
    unlike of(), qr/sirius_edge/, 'nothing of edges without them';
};

subtest 'Histograms' => sub {
    for my $name (qw(request queue)) {
        my $buckets = named( $all, "sirius_${name}_duration_seconds_bucket" );
        my @bounds  = sort { $a <=> $b } grep { !/Inf/ } map {/\Ale="(.*)"\z/} keys %$buckets;
        is scalar @bounds, 24, "$name: one bound for each doubling";
        is_deeply [ grep { $bounds[$_] != 2 * $bounds[ $_ - 1 ] } 1 .. $#bounds ], [],
            'each is twice the last';
        my @counts = map { $buckets->{qq(le="$_")} } @bounds, '+Inf';
        is_deeply [ sort { $a <=> $b } @counts ], \@counts, 'cumulative';
        is $counts[-1],                                     12_000, 'the last has all';
        is $all->{"sirius_${name}_duration_seconds_count"}, 12_000, 'as the count';
        cmp_ok $all->{"sirius_${name}_duration_seconds_sum"}, '>', 0, 'a sum';
    }

    my $torn = Sirius::Test::Snapshot->of;
    $torn->{latency}{count} = 11_000;
    $torn->{latency}{buckets}[80][1] = 1;
    my $samples = samples( text($torn) );
    my $buckets = named( $samples, 'sirius_request_duration_seconds_bucket' );
    my @counts
        = map { $buckets->{$_} } sort { ( $a =~ /"(.*)"/ )[0] <=> ( $b =~ /"(.*)"/ )[0] } keys %$buckets;
    is_deeply [ sort { $a <=> $b } @counts ], \@counts,
        'counters that were read while they changed: cumulative all the same';
    is $samples->{sirius_request_duration_seconds_count}, $counts[-1], 'and the count is the last';
};

subtest 'Form' => sub {
    my ( %help, %type );
    for my $line ( split /\n/, $text ) {
        if    ( $line =~ /\A# HELP (\S+) \S.*\.\z/ )                    { $help{$1}++ }
        elsif ( $line =~ /\A# TYPE (\S+) (counter|gauge|histogram)\z/ ) { $type{$1} = $2 }
        elsif ( $line =~ /\A([a-z2_]+)(?:\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})? \d[\d.e+-]*\z/ ) {
            my $name = $1 =~ s/_(?:bucket|sum|count)\z//r;
            ok $help{$name} && $type{$name}, "$1 after HELP and TYPE" if !$help{$name} || !$type{$name};
            is $name =~ /_total\z/ ? 1 : 0, $type{$name} eq 'counter' ? 1 : 0, "$name: counters are _total"
                if ( $name =~ /_total\z/ ) != ( $type{$name} eq 'counter' );
        } else {
            fail "a line that is none of these: $line";
        }
    }
    is_deeply [ grep { $_ != 1 } values %help ], [],                  'HELP once for each name';
    is_deeply [ sort keys %help ],               [ sort keys %type ], 'TYPE as well';
    is substr( $text, -1 ), "\n", 'ends with a line end';
};

subtest 'What clients and applications say' => sub {
    my $hostile = of(
        workers => [ {
            state  => 'busy',
            line   => qq(GET /secret"\nsirius_requests_total 666\n),
            client => '198.51.100.9:4711',
            mark   => 'secret',
        } ]
    );
    unlike $hostile, qr/secret|666|198\.51/, 'is not in it';
    my $escaped = text( {
        %{ Sirius::Test::Snapshot->of },
        workers => [ { state => qq(a"b\\c\nd), generation => 1, slot => 0 } ]
    } );
    like $escaped, qr/^sirius_workers\{state="a\\"b\\\\c\\nd"\} 1$/m, 'a label is escaped';
};

subtest 'Reloads' => sub {
    my $loading = samples( of( reload => { loading => 2, loading_since => 4930, ok => 3, failed => 1 } ) );
    is $loading->{sirius_reload_age_seconds},               70, 'one that loads';
    is $loading->{'sirius_reloads_total{result="ok"}'},     3,  'good ones';
    is $loading->{'sirius_reloads_total{result="failed"}'}, 1,  'bad ones';
    my %last   = ( last_at => 1_699_999_000, last_ok => 0, last_seconds => 1.25, last_said => "secret\n" );
    my $text   = of( reload => \%last );
    my $failed = samples($text);
    is $failed->{sirius_last_reload_successful},        0,             'the last one failed';
    is $failed->{sirius_last_reload_timestamp_seconds}, 1_699_999_000, 'when';
    is $failed->{sirius_last_reload_duration_seconds},  1.25,          'how long it took';
    unlike $text, qr/secret/, 'what it said is not in it';
    is samples( of( reload => { %last, last_ok => 1 } ) )->{sirius_last_reload_successful}, 1, 'a good one';
};

subtest 'No worker' => sub {
    my $samples = samples( of( workers => [] ) );
    is $samples->{sirius_generation}, 0, 'no generation';
    is_deeply named( $samples, 'sirius_worker_resident_bytes' ), {}, 'no memory';
    is $samples->{'sirius_workers{state="busy"}'},        0, 'none busy';
    is samples( of( stopping => 1 ) )->{sirius_stopping}, 1, 'stopping';
};

subtest 'promtool' => sub {
    my $promtool = Sirius::Test::Server::program('promtool');
    plan skip_all => 'promtool is not installed' if !$promtool;
    for my $case (
        [ 'two workers', $text ],
        [ 'none',        of( workers => [] ) ],
        [ '64 workers',  of( workers => [ ( {} ) x 64 ] ) ],
        [ 'two edges',   of_edges( edges => [ {}, {} ] ) ],
        [ 'commands',    of_beside() ],
        [ 'lanes',       of_lanes() ]
        )
    {
        my ( $name, $metrics ) = @$case;
        is promtool( $promtool, $metrics ), 'exit 0: ', $name;
    }
    my %yaml = slurp('docs/OBSERVABILITY.md') =~ /^```yaml\n# (\S+\.yml)\n(.*?)^```$/gms;
    like promtool( $promtool, $yaml{'prometheus.yml'}, 'config' ), qr/\Aexit 0: /,
        'configuration in the manual';
    like promtool( $promtool, slurp('deploy/prometheus/sirius.rules.yml'), 'rules' ),
        qr/\Aexit 0: .*SUCCESS: 12 rules/s,
        'rules of deploy';
    like promtool( $promtool, "# TYPE a counter\na 1\n" ), qr/_total/, 'it is one that finds faults';
};

# Its exit status and what it says
sub promtool {
    my ( $program, $text, $what ) = @_;
    my $file = File::Temp->new;
    print {$file} $text;
    close $file;
    my $said = $what ? `'$program' check $what '$file' 2>&1` : `'$program' check metrics <'$file' 2>&1`;
    return 'exit ' . ( $? >> 8 ) . ": $said";
}

sub slurp {
    open my $in, '<', shift or die $!;
    local $/;
    return scalar readline $in;
}

# With two certificates for one name, and another
sub of_tls {
    my $snapshot = Sirius::Test::Snapshot->of;
    $snapshot->{totals}{handshakes}        = 33;
    $snapshot->{totals}{handshakes_failed} = { certificate => 4, version => 0 };
    $snapshot->{reload}{certificates}      = [
        map { { name => $_->[0], expires => $_->[1] } } [ 'b.example', 1_800_000_000 ],
        [ 'a.example', 1_900_000_000 ],
        [ 'b.example', 1_700_000_000 ]
    ];
    $snapshot->{reload}{crls} = [ { name => 'A_CA', expires => 1_800_000_001 } ];
    return text($snapshot);
}

sub of_http2 {
    my $snapshot = Sirius::Test::Snapshot->of;
    @{ $snapshot->{connections} }{qw(http2 streams)}                                    = ( 3, 40 );
    @{ $snapshot->{totals} }{qw(http2 goaways streams streams_cancelled streams_reset)} = ( 9, 6, 500, 7, 2 );
    return text($snapshot);
}

subtest 'HTTP/2' => sub {
    my $samples = samples( of_http2() );
    is_deeply {
        map { $_ => $samples->{$_} } grep { /http2/ && !/floods/ } keys %$samples
    },
        {
        sirius_http2_connections                        => 3,
        sirius_http2_streams                            => 40,
        sirius_http2_connections_total                  => 9,
        sirius_http2_goaways_total                      => 6,
        sirius_http2_streams_total                      => 500,
        'sirius_http2_streams_reset_total{by="client"}' => 7,
        'sirius_http2_streams_reset_total{by="server"}' => 2,
        },
        'connections and streams, now and in all';
};

sub of_hold {
    my $snapshot = Sirius::Test::Snapshot->of;
    $snapshot->{held} = { stream => 70, response => 3, websocket => 5 };
    @{ $snapshot->{totals} }{qw(published unpublished delivered hold_slow hold_gaps)} = ( 9, 1, 400, 2, 6 );
    return text($snapshot);
}

subtest 'Held connections' => sub {
    my $samples = samples( of_hold() );
    is_deeply {
        map { $_ => $samples->{$_} } grep {/_(?:held|hold|publications|deliveries)_/} keys %$samples
    },
        {
        'sirius_held_connections{kind="response"}'  => 3,
        'sirius_held_connections{kind="stream"}'    => 70,
        'sirius_held_connections{kind="websocket"}' => 5,
        sirius_publications_total                   => 9,
        sirius_publications_dropped_total           => 1,
        sirius_deliveries_total                     => 400,
        'sirius_hold_dropped_total{reason="gap"}'   => 6,
        'sirius_hold_dropped_total{reason="slow"}'  => 2,
        },
        'how many, and what they were sent';
};

subtest 'TLS' => sub {
    my $samples = samples( of_tls() );
    is $samples->{sirius_tls_handshakes_total}, 33, 'handshakes';
    is_deeply named( $samples, 'sirius_tls_handshakes_failed_total' ),
        { 'reason="certificate"' => 4, 'reason="version"' => 0 }, 'those that have failed, by reason';
    is_deeply named( $samples, 'sirius_tls_certificate_expiry_timestamp_seconds' ),
        { 'name="a.example"' => 1_900_000_000, 'name="b.example"' => 1_700_000_000 },
        'each name once, by what expires first';
    is_deeply named( $samples, 'sirius_tls_crl_expiry_timestamp_seconds' ),
        { 'name="A_CA"' => 1_800_000_001 },
        'CRLs likewise';
};

subtest 'Paths' => sub {
    my %want = (
        requests     => [ 40,  9_000, 2_000, 960 ],
        seconds      => [ 180, 90,    18,    12 ],
        errors       => [ 2,   47,    0,     1 ],
        wait_seconds => [ 8,   4.5,   1,     0.5 ],
    );
    for my $name ( sort keys %want ) {
        my %of;
        @of{ map {qq(path="$_")} qw(/report/:id /books / other) } = @{ $want{$name} };
        is_deeply named( $all, "sirius_path_${name}_total" ), \%of, $name;
    }
    my $none = Sirius::Test::Snapshot->of( calls => undef, exceptions => undef );
    unlike text($none), qr/sirius_(?:path|exceptions)/, 'a snapshot without them has none';
    $none = Sirius::Test::Snapshot->of( calls => { paths => [ { path => '/a"\\b', calls => 1 } ] } );
    like text($none), qr{^sirius_path_requests_total\{path="/a\\"\\\\b"\} 1$}m, 'a path is escaped';
};

subtest 'Lanes' => sub {
    my $samples = samples( of_lanes() );
    is_deeply named( $samples, 'sirius_lane_waiting_requests' ),
        { 'lane="/report"' => 7, 'lane="POST:/import"' => 7 }, 'each has its name';
    is $samples->{'sirius_lane_wait_seconds_total{lane="/report"}'}, 12.5,
        'how long its requests have waited';
    is_deeply named( $samples, 'sirius_lane_requests_refused_total' ),
        {
        map { ( qq(lane="$_->[0]",reason="full") => 3, qq(lane="$_->[0]",reason="timeout") => $_->[1] ) }
            [ '/report', 1 ],
        [ 'POST:/import', 0 ]
        },
        'and why they were refused';
    unlike $text, qr/sirius_lane/, 'without lanes there are none';
};

subtest 'Commands beside the workers' => sub {
    my $samples = samples( of_beside() );
    is_deeply named( $samples, 'sirius_beside_running' ), { 'name="jobs"' => 1, 'name="mail"' => 0 },
        'which run';
    is_deeply named( $samples, 'sirius_beside_restarts_total' ), { 'name="jobs"' => 2, 'name="mail"' => 9 },
        'how often they were started again';
    unlike $text, qr/sirius_beside/, 'without any there are none';
};

subtest 'The manual' => sub {
    my %told = slurp('docs/OBSERVABILITY.md') =~ /^\| `(sirius_\w+)(?:\{[\w,]+\})?` \| (\w+) \|/mg;
    my %are  = ( $text . of_beside() . of_edges() . of_hold() . of_http2() . of_lanes() . of_tls() )
        =~ /^# TYPE (\S+) (\S+)$/mg;
    is_deeply \%told, \%are, 'has all of them, of the right type, and no other';
    my %used = map { $_ => 1 }
        map {s/_(?:bucket|sum|count)\z//r} slurp('docs/OBSERVABILITY.md') =~ /\b(sirius_\w+)/g;
    is_deeply [ grep { !$are{$_} } keys %used ], [], 'nor in an example';
};

done_testing;
