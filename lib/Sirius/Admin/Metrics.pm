package Sirius::Admin::Metrics;

use strict;
use warnings;

use List::Util qw(max);

my @STATES  = qw(starting idle busy draining);
my %ESCAPED = ( qq(\n) => '\n', q(") => '\"', q(\\) => '\\\\' );

# In the order in which they are printed: name, type, help, and what makes the samples of a snapshot: each is
# [ value, labels ]. A name that has no sample is left out.
#<<< a table, one row each
my @METRICS = (
    [ 'build_info', 'gauge', 'Version of the server and of perl; always 1.',
        sub { [ 1, version => $_[1]{version}, perl => sprintf '%vd', $^V ] } ],
    [ 'start_time_seconds', 'gauge', 'When the server was started, in seconds since 1970.',
        sub { [ $_[1]{started} ] } ],
    [ 'stopping', 'gauge', '1 while the server is stopping, else 0.',
        sub { [ $_[0]{stopping} ? 1 : 0 ] } ],
    [ 'generation', 'gauge', 'Number of the newest generation that has workers; a reload begins a new one.',
        sub { [ max 0, map { $_->{generation} } @{ $_[0]{workers} } ] } ],

    [ 'requests_total', 'counter', 'Requests handed to the application.',
        sub { [ $_[0]{totals}{requests} ] } ],
    [ 'responses_total', 'counter', 'Responses by class of status, those that the server makes itself included.',
        \&_responses ],
    [ 'response_bytes_total', 'counter', 'Bytes sent to clients.',
        sub { [ $_[0]{totals}{bytes} ] } ],
    [ 'responses_aborted_total', 'counter', 'Responses that the client did not get in full.',
        sub { [ $_[0]{totals}{aborted} ] } ],
    [ 'requests_refused_total', 'counter', 'Requests refused by the server itself.',
        sub { [ $_[0]{totals}{refused} ] } ],
    [ 'request_duration_seconds', 'histogram', 'From the complete request to the last byte of its response.',
        sub { _histogram( $_[0]{latency} ) } ],
    [ 'queue_duration_seconds', 'histogram', 'How long complete requests have waited for a worker.',
        sub { _histogram( $_[0]{queue} ) } ],
    [ 'queued_requests', 'gauge', 'Complete requests that wait for a worker now.',
        sub { [ $_[0]{connections}{waiting} ] } ],

    [ 'connections', 'gauge', 'Open connections: between two requests, waiting for a worker, or doing something.',
        \&_connections ],
    [ 'connections_accepted_total', 'counter', 'Connections accepted.',
        sub { [ $_[0]{totals}{accepted} ] } ],
    [ 'connections_given_total', 'counter', 'Connections that an edge has passed to the one that replaced it.',
        sub { [ $_[0]{totals}{given} ] } ],
    [ 'connections_taken_total', 'counter', 'Connections that an edge has taken over from the one before it.',
        sub { [ $_[0]{totals}{taken} ] } ],
    [ 'connections_closed_total', 'counter', 'Connections closed, by reason.',
        sub { my $closed = $_[0]{totals}{closed}; map { [ $closed->{$_}, reason => $_ ] } sort keys %$closed } ],

    [ 'workers', 'gauge', 'Workers by what they do.',
        \&_workers ],
    [ 'workers_wanted', 'gauge', 'Workers wanted.',
        sub { [ $_[0]{wanted} ] } ],
    [ 'worker_requests_total', 'counter', 'Requests handed to the application by a worker and those that had its place before.',
        sub { _each_worker( $_[0], sub { $_->{requests} } ) } ],
    [ 'worker_request_age_seconds', 'gauge', 'Time since the present request of a worker was complete; 0: it has none.',
        sub { my $now = $_[0]{now}; _each_worker( $_[0], sub { $_->{began} ? max 0, $now - $_->{began} : 0 } ) } ],
    [ 'worker_resident_bytes', 'gauge', 'Resident memory of a worker.',
        sub { _each_worker( $_[0], sub { $_->{rss} } ) } ],
    [ 'worker_exits_total', 'counter', 'Workers that have ended, by cause.',
        sub { my $exits = $_[0]{totals}{exits}; map { [ $exits->{$_}, cause => $_ ] } sort keys %$exits } ],
    [ 'edge_connections', 'gauge', 'Open connections of an edge process: between two requests, waiting for a worker, or doing something.',
        sub { map { my $edge = $_; map { [ @$_, edge => $edge->{number} ] } _states( @{$edge}{qw(connections idle waiting)} ) } @{ $_[0]{edges} } } ],
    [ 'edge_oldest_wait_seconds', 'gauge', 'How long the first of the requests that wait in an edge has waited; 0: none waits.',
        sub { my $now = $_[0]{now}; _each_edge( $_[0], sub { $_->{waiting_since} ? max 0, $now - $_->{waiting_since} : 0 } ) } ],
    [ 'edge_connections_accepted_total', 'counter', 'Connections accepted by an edge and those that had its place before.',
        sub { _each_edge( $_[0], sub { $_->{accepted} } ) } ],
    [ 'edge_response_bytes_total', 'counter', 'Bytes of responses sent by an edge and those that had its place before.',
        sub { _each_edge( $_[0], sub { $_->{bytes} } ) } ],
    [ 'edge_cpu_seconds_total', 'counter', 'Processor time used by an edge; begins at 0 with another process.',
        sub { _each_edge( $_[0], sub { $_->{cpu} } ) } ],
    [ 'edge_resident_bytes', 'gauge', 'Resident memory of an edge.',
        sub { _each_edge( $_[0], sub { $_->{rss} } ) } ],
    [ 'edge_start_time_seconds', 'gauge', 'When an edge was started, in seconds since 1970.',
        sub { my $zero = $_[0]{time} - $_[0]{now}; _each_edge( $_[0], sub { sprintf '%.3f', $zero + $_->{started} } ) } ],
    [ 'edge_exits_total', 'counter', 'Edges that have ended, by cause.',
        sub { my $exits = $_[0]{totals}{edge_exits} || {}; map { [ $exits->{$_}, cause => $_ ] } sort keys %$exits } ],
    [ 'timeouts_total', 'counter', 'How often a time limit was over, by limit.',
        sub { my $limits = $_[0]{totals}{limits}; map { [ $limits->{$_}, limit => $_ ] } sort keys %$limits } ],
    [ 'reloads_total', 'counter', 'Reloads that are over, by result.',
        sub { map { [ $_[0]{reload}{$_}, result => $_ ] } qw(failed ok) } ],
    [ 'reload_age_seconds', 'gauge', 'How long the present reload has been loading; 0: there is none.',
        sub { my $since = $_[0]{reload}{loading_since}; [ $since ? max 0, $_[0]{now} - $since : 0 ] } ],
    [ 'last_reload_successful', 'gauge', '1 if the last reload succeeded, or there was none, else 0.',
        sub { my $reload = $_[0]{reload}; [ $reload->{last_at} ? $reload->{last_ok} : 1 ] } ],
    [ 'last_reload_timestamp_seconds', 'gauge', 'When the last reload was over, or the server was started, in seconds since 1970.',
        sub { [ $_[0]{reload}{last_at} || $_[1]{started} ] } ],
    [ 'last_reload_duration_seconds', 'gauge', 'How long the last reload took.',
        sub { [ $_[0]{reload}{last_seconds} || 0 ] } ],
    [ 'requests_lost_total', 'counter', 'Requests that ended with their worker: killed, crashed, out of memory.',
        sub { [ $_[0]{totals}{lost} ] } ],
    [ 'access_log_lost_lines_total', 'counter', 'Lines of the access log that could not be written.',
        sub { [ $_[0]{totals}{log_lost} ] } ],
);
#>>>

sub text {
    my ( $class, $snapshot, %about ) = @_;
    my $text = '';
    for my $metric (@METRICS) {
        my ( $name, $type, $help, $samples ) = @$metric;
        my @samples = grep { defined $_->[0] } $samples->( $snapshot, \%about )
            or next;    # not in this kind of server
        $text .= "# HELP sirius_$name $help\n# TYPE sirius_$name $type\n";
        $text .= "sirius_$name" . _sample( $type, @$_ ) for @samples;
    }
    return $text;
}

# A state each, so that their sum is what is open
sub _connections {
    my $snapshot = shift;
    return _states( @{ $snapshot->{connections} }{qw(open idle waiting)} );
}

sub _states {
    my ( $open, $idle, $waiting ) = @_;
    return (
        [ max( 0, $open - $idle - $waiting ), state => 'active' ],
        [ $idle,                              state => 'idle' ],
        [ $waiting,                           state => 'waiting' ]
    );
}

sub _each_edge {
    my ( $snapshot, $value ) = @_;
    return map { [ scalar $value->(), edge => $_->{number} ] } @{ $snapshot->{edges} };
}

sub _each_worker {
    my ( $snapshot, $value ) = @_;
    return map { [ scalar $value->(), worker => $_->{slot} ] } @{ $snapshot->{workers} };
}

# Of four buckets in each doubling one is told: 24 series. The counters of a snapshot are not all of one instant, but
# here they have to agree.
sub _histogram {
    my $histogram = shift;
    my @bounds    = @{ $histogram->{buckets} };
    my ( $last, @samples ) = (0);
    for my $bound ( @bounds[ grep { $_ % 4 == 0 } 0 .. $#bounds ] ) {
        my ( $le, $count ) = @$bound;
        $last = max $last, $count;
        push @samples, [ $last, le => $le ];
    }
    my $count = max $last, $histogram->{count};
    return ( @samples, [ $count, le => '+Inf' ], [ $histogram->{sum}, '_sum' ], [ $count, '_count' ] );
}

sub _responses {
    my $responses = shift->{totals}{responses};
    return map { [ $responses->{$_} || 0, class => "${_}xx" ] } 1 .. 5;
}

sub _sample {
    my ( $type, $value, @labels ) = @_;
    my $suffix = $type ne 'histogram' ? '' : @labels % 2 ? shift @labels : '_bucket';
    my @pairs;
    while ( my ( $name, $label ) = splice @labels, 0, 2 ) {
        $label =~ s/([\n"\\])/$ESCAPED{$1}/g;
        push @pairs, qq($name="$label");
    }
    return $suffix . ( @pairs ? '{' . join( ',', @pairs ) . '}' : '' ) . " $value\n";
}

sub _workers {
    my $snapshot = shift;
    my %count    = map { $_ => 0 } @STATES;
    $count{ $_->{state} }++ for @{ $snapshot->{workers} };
    return map { [ $count{$_}, state => $_ ] } sort keys %count;
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Metrics - a snapshot of the server in the format of Prometheus

=head1 SYNOPSIS

  use Sirius::Admin::Metrics;

  print Sirius::Admin::Metrics->text( Sirius::Scoreboard->snapshot, version => Sirius->VERSION, started => $epoch );

=head1 DESCRIPTION

The text format of Prometheus, version 0.0.4. All names begin with C<sirius_>; seconds and bytes are the units; what only grows
ends in C<_total>. F<docs/OBSERVABILITY.md> lists the metrics.

No label contains anything that clients choose, such as addresses or URLs: the number of series depends only on the
number of workers and edges. The labels C<worker> and C<edge> are positions from 0. A successor takes over the
position, so recycling and reloads make no new series.

The counters are sums since the start of the server. They continue over reloads and begin at 0 with a new start.

=head1 METHODS

=head2 text

  my $text = Sirius::Admin::Metrics->text( \%snapshot, version => $version, started => $epoch );

Of a snapshot of L<Sirius::Scoreboard>. What is C<undef> in it is left out.

=head1 SEE ALSO

L<Sirius::Admin::App>, L<Sirius::Scoreboard>.

=cut
