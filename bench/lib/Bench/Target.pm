package Bench::Target;

# What the server is meant to reach beside others, and whether this run shows it; and where others are ahead.

use strict;
use warnings;

use List::Util qw(max min);
use Bench::Case;
use Bench::Metric     qw(figures idle_of metrics value worst_of);
use Bench::Statistics qw(median ratios);

# Case, another server, and how much of its CPU a request may cost
my @MOST = (
    [ 'hello-c16',        'floor',   1.5 ],
    [ 'hello-c16',        'feersum', 0.8 ],
    [ 'hello-16-workers', 'feersum', 0.75 ],
    [ 'hello-c1',         'feersum', 1.1 ],
    [ 'close-c8',         'floor',   1.35 ],
    [ 'close-c8',         'feersum', 0.9 ],
    [ 'body8000',         'feersum', 0.8 ],
    [ 'tls-hello',        'feersum', 0.9 ],
    [ 'tls-hello',        'proxied', 0.5 ],
    [ 'h2-hello',         'feersum', 0.65 ],
    [ 'h2-hello',         'proxied', 0.4 ],
    [ 'h2-hello',         'nginx',   1 ],
    [ 'tls-handshake',    'nginx',   1 / 0.95 ],
    [ 'tls-resume',       'nginx',   1 / 0.95 ],
);

# The rows of a result: what, got, wanted, yes or no (or "not measured")
sub rows {
    my ( $class, $result ) = @_;
    my @rows;
    for my $case (qw(ok hello-c16)) {
        push @rows, map { _cpu_ratio( $result, $case, $_, 5 ) } qw(starlet starman);
        push @rows, _cpu_first( $result, $case );
    }
    return (
        @rows,                                      _cpu_ratio( $result, 'request', 'starlet', 1.5 ),
        map( { _cpu_most( $result, @$_ ) } @MOST ), _one_worker($result),
        _saturated($result),                        _fairness($result),
        _idle($result),                             _encrypted($result)
    );
}

# Where a server of applications is ahead of Sirius by more than 2 %: case, metric, Sirius, the others
sub losses {
    my ( $class, $result ) = @_;
    my @losses;
    for my $name ( @{ $result->{order} } ) {
        my $case = $result->{cases}{$name};
        for my $metric ( metrics( $case->{kind} ) ) {
            my ( $what, $unit, $better, $get ) = @$metric;
            my $mine = $get->( figures( $result, $name, 'sirius' ) );
            next if !defined $mine;
            my @ahead;
            for my $server ( _others($result) ) {
                my $got = $get->( figures( $result, $name, $server->{name} ) );
                next if !defined $got;
                my $is_ahead = $better eq 'less' ? $got < $mine * 0.98 : $got > $mine * 1.02;
                push @ahead, [ $server->{label}, $got ] if $is_ahead;
            }
            @ahead = sort { $better eq 'less' ? $a->[1] <=> $b->[1] : $b->[1] <=> $a->[1] } @ahead;
            push @losses, [ title($case), $what, $mine, $unit, \@ahead ] if @ahead;
        }
    }
    return @losses;
}

# With the client, where there are several
sub title {
    my $case = shift;
    return $case->{title} if $case->{kind} ne 'throughput';
    return "$case->{title} ($case->{client} -c $case->{connections})";
}

# Servers of applications but for builds of this one, and for those with another number of workers than the
# case has
sub _others {
    my $result = shift;
    return grep { $_->{kind} ne 'limit' && $_->{name} !~ /\Asirius|:\d+\z/ } @{ $result->{servers} };
}

# Where less is better: the least of the others against ours, as a number and in words; nothing without both
sub _best {
    my ( $value, @others ) = @_;
    my $mine   = $value->('sirius') or return;
    my ($best) = sort { $a->[0] <=> $b->[0] } grep { defined $_->[0] }
        map { [ $value->( $_->{name} ), $_->{label} ] } @others;
    return if !$best;
    my $ratio = $best->[0] / $mine;
    return ( $ratio, sprintf '%.1f times (%s)', $ratio, $best->[1] );
}

sub _cpu_ratio {
    my ( $result, $case, $peer, $wanted ) = @_;
    my $ratio   = median( ratios( map { figures( $result, $case, $_ )->{us} } $peer, 'sirius' ) );
    my ($label) = map { $_->{label} } grep { $_->{name} eq $peer } @{ $result->{servers} };
    my $title   = Bench::Case->case($case)->{title};
    return _row(
        "$title: CPU of @{[ $label // Bench::Peer::label($peer) ]}, against Sirius",
        defined $ratio
        ? sprintf '%.1f times',
        $ratio
        : undef,
        "at least $wanted times",
        defined $ratio && $ratio >= $wanted
    );
}

sub _cpu_most {
    my ( $result, $case, $peer, $most ) = @_;
    my $ratio = median( ratios( map { figures( $result, $case, $_ )->{us} } 'sirius', $peer ) );
    my ($label) = map { $_->{label} } grep { $_->{name} eq $peer } @{ $result->{servers} };
    my $text
        = title( { kind => 'throughput', client => '', connections => '', %{ Bench::Case->case($case) } } );
    return _row(
        "$text: CPU, against @{[ $label // Bench::Peer::label($peer) ]}",
        defined $ratio ? sprintf( '%.2f', $ratio ) : undef,
        sprintf( 'at most %.3g', $most ),
        defined $ratio && $ratio <= $most
    );
}

# In one case, in turn: what more workers than are needed cost
sub _one_worker {
    my $result = shift;
    my $case   = 'hello-16-workers';
    my $ratio  = median( ratios( map { figures( $result, $case, $_ )->{us} } 'sirius', 'sirius:1' ) );
    return _row(
        'Hello, keep-alive, 15 connections: CPU of 16 workers, against one (server sirius:1)',
        defined $ratio ? sprintf( '%.2f', $ratio ) : undef,
        'at most 1.25', defined $ratio && $ratio <= 1.25
    );
}

# Those that starve a client are no measure: the share of the connection that is served least tells
sub _saturated {
    my $result = shift;
    my $case   = 'fair-saturated';
    my @fair   = grep {
        my $least = median( @{ figures( $result, $case, $_->{name} )->{least} || [] } );
        $_->{keeps} && defined $least && $least >= 50
    } _others($result);
    my ( $ratio, $text )
        = _best( sub { value( fairness => figures( $result, $case, shift ), 'p99' ) }, @fair );
    return _row(
        'Saturated workers, p99: the best other server that keeps connections and starves none, against Sirius',
        $text,
        'at least 1',
        $text && $ratio >= 1
    );
}

sub _cpu_first {
    my ( $result, $case ) = @_;
    my ( $ratio,  $text ) = _best( sub { value( throughput => figures( $result, $case, shift ) ) },
        grep { $_->{kind} eq 'psgi' } _others($result) );
    my $title = Bench::Case->case($case)->{title};
    return _row( "$title: CPU of the next PSGI server, against Sirius",
        $text, 'more than 1', $text && $ratio > 1 );
}

sub _fairness {
    my $result = shift;
    my ( $ratio, $text ) = _best( sub { worst_of( $result, shift ) }, grep { $_->{keeps} } _others($result) );
    return _row(
        'Fairness, p99 of fast requests where it is greatest: the best other server that keeps connections, against Sirius',
        $text,
        'at least 10 times',
        $text && $ratio >= 10
    );
}

# One connection at least for each, or it could not be a ratio
sub _idle {
    my $result = shift;
    my ( $mine, $starman ) = map { idle_of( figures( $result, 'idle', $_ ) ) } qw(sirius starman);
    my $known = defined $mine->{usable} && defined $starman->{usable};
    my $ratio = $known ? $mine->{usable} / max( 1, $starman->{usable} ) : undef;
    return _row(
        'Idle connections that stay usable, against Starman with as many workers',
        $known
        ? sprintf '%.0f times (%d, %d)',
        $ratio,
        $mine->{usable},
        $starman->{usable}
        : undef,
        'at least 100 times',
        $known && !$mine->{new_failed} && $ratio >= 100
    );
}

sub _encrypted {
    my $result = shift;
    my ( $idle, $flood ) = map { figures( $result, $_, 'sirius' ) } qw(tls-idle tls-flood);
    my @rows = (
        [ 'TLS, idle connections: memory of each',           $idle->{bytes},           'bytes', 12_288 ],
        [ 'TLS, idle connections: p99 of new clients',       $idle->{p99},             'ms',    20 ],
        [ 'TLS, a flood of handshakes: p99 of kept clients', $flood->{flood}{p99},     'ms',    50 ],
        [ 'TLS, a flood of handshakes: p99 of new clients',  $flood->{new_flood}{p99}, 'ms',    50 ],
    );
    return map {
        my ( $what, $got, $unit, $most ) = @$_;
        _row(
            $what,
            defined $got ? sprintf( $got < 100 ? '%.1f %s' : '%.0f %s', $got, $unit ) : undef,
            "at most $most $unit",
            defined $got && $got <= $most
        )
    } @rows;
}

sub _row {
    my ( $what, $got, $wanted, $is_met ) = @_;
    return [ $what, $got // '', $wanted, defined $got ? $is_met ? 'yes' : 'no' : 'not measured' ];
}

1;
