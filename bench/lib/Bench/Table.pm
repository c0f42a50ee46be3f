package Bench::Table;

# The tables of the report, each { head => [...], rows => [[...], ...] }, from the figures of a result.

use strict;
use warnings;
use utf8;

use List::Util        qw(sum0);
use Bench::Metric     qw(figures value worst_of);
use Bench::Statistics qw(median ratios spread);

# The label of a server, with a mark if it closes connections or has not served them all
sub name {
    my ( $result, $name ) = @_;
    my ($server) = grep { $_->{name} eq $name } @{ $result->{servers} };
    my $mark = !$server->{keeps} ? ' †' : $server->{at_once} < 16 ? ' ‡' : '';
    return $server->{label} . $mark;
}

# A row for each server that was measured; the sub gives the cells behind its name. Why one was not is in its
# row.
sub _each {
    my ( $result, $case, $head, $cells ) = @_;
    my @rows;
    for my $server ( @{ $result->{servers} } ) {
        my $figures = $result->{cases}{$case}{servers}{ $server->{name} } or next;
        my $why     = $figures->{error} ? "failed: $figures->{error}" : $figures->{skipped};
        my @row     = $why ? substr $why, 0, 120 : $cells->( $figures, $server );
        push @rows, [ name( $result, $server->{name} ), @row, ('') x ( @$head - 1 - @row ) ];
    }
    return { head => $head, rows => \@rows };
}

# One case: CPU beside rates
sub throughput {
    my ( $result, $case ) = @_;
    my $all  = $result->{cases}{$case}{servers};
    my @head = (
        'server',  'CPU us',     'spread',               'x Sirius',
        'x floor', 'requests/s', 'spread of requests/s', 'requests',
        'failed'
    );
    return _each(
        $result, $case,
        \@head,
        sub {
            my $f = shift;
            my ( $sirius, $floor ) = map { median( ratios( $f->{us}, $all->{$_}{us} ) ) } qw(sirius floor);
            return (
                sprintf( '%.2f', median( @{ $f->{us} } ) ),
                spread( '%.2f', @{ $f->{us} } ),
                map( { defined $_ ? sprintf '%.2f', $_ : '' } $sirius, $floor ),
                sprintf( '%.0f', median( @{ $f->{rate} } ) ),
                spread( '%.0f', @{ $f->{rate} } ),
                sum0( @{ $f->{requests} } ),
                sum0( @{ $f->{failed} } )
            );
        }
    );
}

# One metric of many cases: [ column, case ]
sub matrix {
    my ( $result, $metric, $format, @columns ) = @_;
    @columns = grep { $result->{cases}{ $_->[1] } } @columns or return;
    my @rows;
    for my $server ( @{ $result->{servers} } ) {
        my @cells = map {
            my $value = value( throughput => figures( $result, $_->[1], $server->{name} ), $metric );
            defined $value ? sprintf $format, $value : '-'
        } @columns;
        push @rows, [ name( $result, $server->{name} ), @cells ] if grep { $_ ne '-' } @cells;
    }
    return { head => [ 'server', map { $_->[0] } @columns ], rows => \@rows };
}

sub fairness {
    my ( $result, $case ) = @_;
    my @head = (
        'server',
        'median ms',
        'p99 ms',
        'spread of p99',
        'p99 without slow ones',
        'max ms',
        'least share %',
        'requests',
        'failed',
        'still waiting',
        'closed by the server'
    );
    return _each(
        $result, $case,
        \@head,
        sub {
            my $f = shift;
            return (
                map( { sprintf '%.2f', median( @{ $f->{$_} } ) } qw(p50 p99) ),
                spread( '%.2f', @{ $f->{p99} } ),
                $f->{calm} ? sprintf( '%.2f', median( @{ $f->{calm} } ) ) : '-',
                sprintf( '%.1f', median( @{ $f->{max} } ) ),
                sprintf( '%.0f', median( @{ $f->{least} } ) ),
                map( { sum0( @{ $f->{$_} } ) } qw(requests failed waiting) ),
                $result->{cases}{$case}{close} ? '-' : sum0( @{ $f->{reconnects} } )
            );
        }
    );
}

# The p99 of all such cases, and the greatest
sub waiting {
    my $result = shift;
    my @cases  = grep { ( $result->{cases}{$_} || {} )->{short} } @{ $result->{order} };
    my @rows;
    for my $server ( @{ $result->{servers} } ) {
        my @cells = map {
            my $p99 = value( fairness => figures( $result, $_, $server->{name} ), 'p99' );
            defined $p99 ? _ms($p99) : '-'
        } @cases;
        my $worst = worst_of( $result, $server->{name} );
        push @rows, [ name( $result, $server->{name} ), @cells, defined $worst ? _ms($worst) : '-' ]
            if grep { $_ ne '-' } @cells;
    }
    return {
        head => [ 'server', map( { $result->{cases}{$_}{short} } @cases ), 'greatest' ],
        rows => \@rows
    };
}

sub _ms {
    my $ms = shift;
    return sprintf $ms < 100 ? '%.1f' : '%.0f', $ms;
}

sub idle {
    my ($result) = @_;
    my @head = (
        'server',
        'time limit',
        'opened',
        'usable after the silence',
        'slowest new client ms',
        'new clients not served',
        'bytes each'
    );
    my @rows;
    for my $server ( @{ $result->{servers} } ) {
        my $all = $result->{cases}{idle}{servers}{ $server->{name} } or next;
        for my $keep ( grep { $all->{$_} } qw(own 75) ) {
            my $f = $all->{$keep};
            push @rows,
                [
                name( $result, $server->{name} ),
                $keep eq 'own' ? 'its own' : '75 s',
                $f->{error}
                ? ( 'failed', ('') x 4 )
                : ( @$f{qw(opened usable)},
                    sprintf( '%.0f', $f->{new_ms} ),
                    "$f->{new_failed} of $f->{new_clients}",
                    defined $f->{bytes} && $f->{usable} ? sprintf '%.0f',
                    $f->{bytes} : ''
                )
                ];
        }
    }
    return { head => \@head, rows => \@rows };
}

sub encrypted_idle {
    my $result = shift;
    my @head   = (
        'server',     'opened',      'usable at the end',
        'bytes each', 'new clients', 'failed', map {"$_ ms"} 'median',
        'p99',        'max',         'p99 after the handshake'
    );
    return _each(
        $result,
        'tls-idle',
        \@head,
        sub {
            my $f = shift;
            return (
                @$f{qw(opened usable)},
                defined $f->{bytes}
                ? sprintf '%.0f',
                $f->{bytes}
                : '',
                @$f{qw(clients failed)}, map { sprintf '%.2f', $f->{$_} } qw(p50 p99 max request_p99)
            );
        }
    );
}

sub flood {
    my $result = shift;
    my @head   = (
        'server', 'kept clients: p99 ms', 'in the flood', 'max',
        'failed', 'new clients: p99 ms',  'in the flood', 'max',
        'failed', 'handshakes/s of the flood'
    );
    return _each(
        $result,
        'tls-flood',
        \@head,
        sub {
            my $f = shift;
            my @cells;
            for ( [ 'calm', 'flood', 'errors' ], [ 'new_calm', 'new_flood', 'failed' ] ) {
                my ( $calm, $flood, $failed ) = @$_;
                push @cells,
                    map( { sprintf '%.2f', $_ } $f->{$calm}{p99}, @{ $f->{$flood} }{qw(p99 max)} ),
                    $f->{$flood}{$failed};
            }
            return ( @cells, $f->{rate} );
        }
    );
}

sub memory {
    my $result = shift;
    my @head   = ( 'server', 'one process kB', 'two workers kB', 'eight workers kB', 'one more worker kB' );
    return _each(
        $result, 'memory',
        \@head,
        sub {
            my $f = shift;
            return (
                map( { $_ // '' } @{ $f->{total} }{ 1, 2, 8 } ),
                defined $f->{worker}
                ? sprintf '%.0f',
                $f->{worker}
                : ''
            );
        }
    );
}

sub start {
    my $result = shift;
    return _each(
        $result, 'start',
        [ 'server', 'first response ms', 'spread' ],
        sub {
            my $f = shift;
            return ( sprintf( '%.0f', median( @{ $f->{ms} } ) ), spread( '%.0f', @{ $f->{ms} } ) );
        }
    );
}

sub reload {
    my $result = shift;
    my $limit  = $result->{cases}{reload}{seconds} - 2;
    return _each(
        $result, 'reload',
        [ 'server', 'signal', 'new workers alone after ms', 'new code seen', 'requests', 'failed' ],
        sub {
            my ( $f, $server ) = @_;
            my $new  = $f->{ms} ? sprintf '%.0f', $f->{ms} : "not within $limit s";
            my $code = $server->{kind} eq 'limit' ? '-' : $f->{new_code} ? 'yes' : 'no';
            return ( $f->{how}, $new, $code, $f->{requests}, $f->{failed} );
        }
    );
}

sub syscalls {
    my $result = shift;
    my ( @rows, %kind );
    for my $server ( @{ $result->{servers} } ) {
        my $calls = figures( $result, 'syscalls', $server->{name} )->{calls} or next;
        for my $kind ( sort keys %$calls ) {
            my $of   = $calls->{$kind};
            my @most = sort { $of->{$b} <=> $of->{$a} || $a cmp $b } grep { $of->{$_} >= 0.01 } keys %$of;
            push @{ $kind{$kind} },
                [
                name( $result, $server->{name} ),
                $kind,     sprintf( '%.2f', sum0 values %$of ),
                join ', ', map { sprintf '%s %.3g', $_, $of->{$_} } @most
                ];
        }
    }
    @rows = map { @{ $kind{$_} } } reverse sort keys %kind;
    return { head => [ 'server', 'requests', 'calls', 'which' ], rows => \@rows };
}

sub instructions {
    my $result = shift;
    return _each(
        $result, 'instructions',
        [ 'server', 'instructions' ],
        sub { return sprintf '%.0f', shift->{count} }
    );
}

sub fair {
    my $result  = shift;
    my $figures = figures( $result, 'fair', 'sirius' )->{figures} || [];
    return {
        head => [ 'figure', 'got', 'wanted' ],
        rows => [ map { [ $_->{name}, $_->{got}, $_->{wanted} // '' ] } @$figures ]
    };
}

1;
