package Bench::Fairness;

# Who waits while others are slow: the fast requests of clients, beside slow requests, slow clients, or
# workers that end.

use strict;
use warnings;

use FindBin;
use JSON::PP    ();
use Time::HiRes qw(sleep);
use Bench::Load qw(output think);
use Bench::Server;
use Bench::Slow;

# Fields of $o: rounds, seconds, workers; clients that think so many ms, of whose 1,000 requests so many are
# slow; fast and late (their paths), close (a connection for each request), retire (requests of a worker),
# cores ("all": the server has all), beside (Bench::Slow: kind and number). Returns name => { p50, p99, max,
# requests, failed, waiting, reconnects, least, calm }, a value for each round; times in ms. least is the
# share of the connection that was served least, in percent of an even one. calm is the p99 without slow
# requests: what is left for a machine with interruptions of its own.
sub measure {
    my ( $o, @names ) = @_;
    my %result;
    for my $round ( 1 .. $o->{rounds} ) {
        for my $name ( $round % 2 ? @names : reverse @names ) {
            $o->{tick}->($name);
            my $result = $result{$name} ||= {};
            next if $result->{skipped} || $result->{error};
            my $server = Bench::Server->new(
                name    => $name,
                app     => 'fair',
                workers => $o->{workers},
                cores   => $o->{cores},
                $o->{retire} ? ( retire => $o->{retire} ) : ()
            );
            if ( my $why = $server->can_run ) {
                $result->{skipped} = $why;
                next;
            }
            eval { _measure( $o, $server->start, $result ); 1 } or $result->{error} = $@ =~ s/\s+/ /gr;
        }
    }
    return \%result;
}

sub plan {
    my ( $o, $count ) = @_;
    my $times = _has_calm($o) ? 2 : 1;
    return ( $count * $o->{rounds}, $count * $o->{rounds} * ( $times * $o->{seconds} + 1.2 ) );
}

# bench/fair, which measures Sirius alone: name, got, wanted
sub own {
    my ( $o, @names ) = @_;
    my $file = "$Bench::Peer::DIR/fair.json";
    my @how  = $o->{quick} ? '--quick' : ( '--part', 0.3 );
    my $self = grep { $_ eq 'sirius' } @names;
    return {} if !$self;
    my @cases = _own_cases($o);
    for my $case (@cases) {
        my $out = output( 600, $^X, "$Bench::Peer::ROOT/bench/fair", @how, '--json', "$file.$case", $case );
        $o->{tick}->("sirius, case $case");
        -s "$file.$case" or warn "bench/fair $case: $out\n";
    }
    return { sirius => { figures => [ map { _figures("$file.$_") } @cases ] } };
}

sub own_plan {
    my $o     = shift;
    my @cases = _own_cases($o);
    return ( scalar @cases, $o->{quick} ? 90 : 660 );
}

sub _own_cases { return shift->{quick} ? qw(a b c f) : 'a' .. 'm' }

sub _figures {
    my $file = shift;
    my $text = Bench::Machine::read_file($file) or return;
    unlink $file;
    return @{ JSON::PP->new->decode($text) };
}

sub _measure {
    my ( $o, $server, $result ) = @_;
    my $port = $server->{port};
    my @load = ( $o->{seconds}, $o->{fast}, $o->{late}, $o->{close} ? 'close' : () );
    think( $port, 4, 1, 0, 0.3, '/hello', '/hello', 'close' );    # all workers have served
    my ( $kind, $number ) = @{ $o->{beside} || [] };
    my $beside = $kind && Bench::Slow->start( port => $port, kind => $kind, count => $number );
    sleep 0.2 if $beside;
    my ( $got, $calm ) = map { think( $port, @$o{qw(clients think)}, $_, @load ) } $o->{slow},
        _has_calm($o) ? 0 : ();
    my %name = ( fast => 'requests', errors => 'failed' );
    push @{ $result->{ $name{$_} || $_ } }, $got->{$_} + 0
        for qw(p50 p99 max fast errors waiting reconnects served);
    my $even = ( $got->{fast} + $got->{slow} ) / $o->{clients};
    push @{ $result->{least} }, $even ? 100 * $got->{least} / $even : 0;
    push @{ $result->{calm} },  $calm->{p99} + 0 if $calm;
    return;
}

# All workers are busy anyway, as there is no pause between requests
sub _has_calm {
    my $o = shift;
    return $o->{slow} && $o->{think};
}

1;
