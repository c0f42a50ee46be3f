package Sirius::CLI::Ctl::Status;

use strict;
use warnings;

use List::Util qw(max sum);
use POSIX      qw(strftime);
use Sirius::Base::Text;

use constant LINES => 5;    # of paths, and of exceptions

sub channels {
    my ( $class, $answer ) = @_;
    my @rows = map { [ Sirius::Base::Text->harmless( $_->{name} ), @{$_}{qw(subscribers messages)} ] }
        @{ $answer->{channels} };
    my $sum = "$answer->{all} channels, $answer->{subscriptions} subscriptions";
    return @rows ? _table( [qw(channel subscribers messages)], @rows ) . "\n$sum" : $sum;
}

sub text {
    my ( $class, $status ) = @_;
    my $now  = $status->{now};
    my $of   = $status->{workers} == 1 ? '1 worker' : "$status->{workers} workers";
    my $text = "Sirius $status->{version}, PID $status->{pid}, $of\n" . join '',
        map {"listening on $_\n"} @{ $status->{listeners} };
    $text .= "\n"
        . _table( [qw(generation pid state age)],
        map { [ @{$_}{qw(number pid state)}, Sirius::Base::Text->age( $now - $_->{since} ) ] }
            @{ $status->{generations} } );
    my @edges = @{ $status->{edges} || [] };    # a server of an older version has none
    my $held  = grep { _held($_) } @edges;
    $text .= "\n"
        . _table( [ qw(edge state age connections idle), ( $held ? 'held' : () ), qw(waiting wait accepted) ],
        map { _edge( $_, $now, $held ) } @edges )
        if @edges;
    my @lanes = @{ $status->{lanes} || [] };
    $text .= "\n"
        . _table( [qw(lane running limit waiting wait requests refused late)],
        map { _lane( $_, $now ) } @lanes )
        if @lanes;
    my @beside = @{ $status->{beside} || [] };
    $text .= "\n" . _table( [qw(beside pid state restarts since)], map { _beside( $_, $now ) } @beside )
        if @beside;
    $text .= _time( $status->{calls} ) . _exceptions( @{$status}{qw(exceptions time)} );
    $text .= "\nno edge is running: connections wait\n" if $status->{edges} && !@edges;
    my @certificates = sort { $a->{expires} <=> $b->{expires} } @{ $status->{certificates} || [] };
    $text .= "\n" . _table( [ qw(certificate file), 'days left' ], map { _certificate($_) } @certificates )
        if @certificates;
    my @crls = sort { $a->{expires} <=> $b->{expires} } @{ $status->{crls} || [] };
    $text .= "\n" . _table( [ 'CRL of', 'file', 'days left' ], map { _certificate($_) } @crls ) if @crls;
    $text .= Sirius::Base::Text->harmless($_) . "\n"
        for grep {defined} @{$status}{qw(certificates_fault edge_fault)};
    my @rows = sort { $a->{generation} <=> $b->{generation} || $a->{pid} <=> $b->{pid} } @{ $status->{rows} };
    my @connections = grep { defined $_->{connections} } @rows;    # of a server of an older version
    @connections = ('connections') if @connections;
    $text .= "\n"
        . _table( [ qw(worker generation state requests), @connections, 'doing' ],
        map { [ @{$_}{ qw(pid generation state requests), @connections }, _doing( $_, $now ) ] } @rows );

    if ( my $loading = $status->{loading} ) {
        $text .= "\nreload in progress: generation $loading->{number} for "
            . Sirius::Base::Text->age( $now - $loading->{since} ) . "\n";
    }
    my $reload = $status->{last_reload} or return "${text}\nno reload yet";
    my $result = $reload->{ok} ? $reload->{text} : join "\n", grep {defined} @{$reload}{qw(error said)};
    return "$text\nlast reload, " . strftime( '%Y-%m-%d %H:%M:%S', localtime $reload->{at} ) . ": $result";
}

sub _beside {
    my ( $one, $now ) = @_;
    return [
        @{$one}{qw(name)},           $one->{pid} || '-',
        @{$one}{qw(state restarts)}, $one->{since} ? Sirius::Base::Text->age( $now - $one->{since} ) : '-'
    ];
}

# As a row
sub _certificate {
    my $certificate = shift;
    my $days        = ( $certificate->{expires} - time ) / 86_400;
    return [
        ( map { Sirius::Base::Text->harmless( $certificate->{$_} ) } qw(name file) ),
        $days < 0 ? 'expired' : int $days
    ];
}

sub _doing {
    my ( $row, $now ) = @_;
    my $since = $row->{began} || $row->{since};
    my $age   = $since ? Sirius::Base::Text->age( $now - $since ) : '';
    return $age if $row->{state} ne 'busy' || !defined $row->{line} || !length $row->{line};
    return Sirius::Base::Text->harmless( $row->{line} ) . " ($age)";
}

sub _edge {
    my ( $edge, $now, $held ) = @_;
    my $since = $edge->{waiting_since};
    return [
        @{$edge}{qw(pid state)}, Sirius::Base::Text->age( $now - $edge->{started} ),
        @{$edge}{qw(connections idle)}, ( $held ? _held($edge) : () ),
        $edge->{waiting}, $since ? Sirius::Base::Text->age( $now - $since ) : '-',
        $edge->{accepted}
    ];
}

# Those that have occurred last
sub _exceptions {
    my ( $exceptions, $time ) = @_;
    my @last = $exceptions ? @{ $exceptions->{last} } : ();    # a server of an older version has none
    return '' if !@last;
    splice @last, LINES if @last > LINES;
    return "\n"
        . _table(
        [qw(exception path last count)],
        map { [
            Sirius::Base::Text->readable( $_->{text} ),
            Sirius::Base::Text->harmless( $_->{path} ),
            Sirius::Base::Text->age( $time - $_->{at} ) . ' ago',
            $_->{count}
        ] } @last
        );
}

# Connections that it holds
sub _held {
    my $edge = shift;
    return sum 0, values %{ $edge->{held} || {} };
}

sub _lane {
    my ( $lane, $now ) = @_;
    my $since = $lane->{waiting_since};
    return [
        Sirius::Base::Text->harmless( $lane->{name} ),           @{$lane}{qw(running limit waiting)},
        $since ? Sirius::Base::Text->age( $now - $since ) : '-', @{$lane}{qw(requests refused timed_out)}
    ];
}

sub _padded {
    my ( $text, $width, $is_right ) = @_;
    my $pad = q( ) x ( $width - Sirius::Base::Text->columns($text) );
    return $is_right ? $pad . $text : $text . $pad;
}

# Formats a table: numbers right-aligned, other columns left-aligned
sub _table {
    my @lines  = @_;
    my @widths = map {
        my $column = $_;
        max map { Sirius::Base::Text->columns( $_->[$column] ) } @lines
    } 0 .. $#{ $lines[0] };
    my @right = map { $_->[0] } grep { $_->[1] !~ /\D/ } map { [ $_, $lines[-1][$_] ] } 0 .. $#widths;
    my %right = map { $_ => 1 } @right;
    my $text  = '';
    for my $line (@lines) {
        my $row = join '  ', map { _padded( $line->[$_], $widths[$_], $right{$_} ) } 0 .. $#widths;
        $text .= ( $line == $lines[0] ? uc $row : $row ) =~ s/\s+\z//r . "\n";
    }
    return $text;
}

# The paths that took most time of late
sub _time {
    my $calls = shift;
    my @paths = $calls ? @{ $calls->{paths} } : ();
    return '' if !@paths;
    splice @paths, LINES if @paths > LINES;
    return "\n"
        . _table(
        [qw(path share time calls errors p99)],
        map { [
            Sirius::Base::Text->harmless( $_->{path} ),
            sprintf( '%.0f %%', 100 * $_->{share} ),
            Sirius::Base::Text->age( $_->{seconds} ),
            @{$_}{qw(calls errors)},
            Sirius::Base::Text->duration( $_->{p99} )
        ] } @paths
        );
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Ctl::Status - the state of a server as text

=head1 SYNOPSIS

  print Sirius::CLI::Ctl::Status->text( $answer->{status} ), "\n";

=head1 DESCRIPTION

What C<sirius ctl status> prints: the addresses, and a table each of generations, edges, lanes, commands of C<--beside>, certificates and workers, then the last reload. Text that
comes from clients has its control characters escaped.

=head1 METHODS

=head2 channels

  my $text = Sirius::CLI::Ctl::Status->channels($answer);

Of an answer of L<Sirius::Control::Channels>, likewise.

=head2 text

  my $text = Sirius::CLI::Ctl::Status->text($status);

Of C<status> in the answer of L<Sirius::Control::Commands>. There is no line break at the end.

=head1 SEE ALSO

L<Sirius::CLI::Ctl>.

=cut
