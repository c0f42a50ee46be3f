package Bench::Fairness;

# Who waits while others are slow: the fast requests of clients that think, while others sleep in the application.

use strict;
use warnings;

use FindBin;
use JSON::PP    ();
use Bench::Load qw(output think);
use Bench::Server;

my $CLIENTS = 16;    # connections
my $THINK   = 50;    # ms between two requests of one
my $SLOW    = 25;    # of 1,000 requests sleep 100 ms in the application
my $WORKERS = 4;

# Fields of $o: rounds, seconds, close (a connection for each request). Returns name => { p50, p99, max, requests, failed,
# waiting, reconnects, calm }, a value for each round; times in ms. calm is the p99 without slow requests: what is left for
# a machine with interruptions of its own.
sub mixed {
    my ( $o, @names ) = @_;
    my %result;
    for my $round ( 1 .. $o->{rounds} ) {
        for my $name ( $round % 2 ? @names : reverse @names ) {
            $o->{tick}->($name);
            my $result = $result{$name} ||= {};
            next if $result->{skipped} || $result->{error};
            my $server = Bench::Server->new( name => $name, app => 'fair', workers => $WORKERS );
            if ( my $why = $server->can_run ) {
                $result->{skipped} = $why;
                next;
            }
            eval { _mixed( $o, $server->start, $result ); 1 } or $result->{error} = $@ =~ s/\s+/ /gr;
        }
    }
    return \%result;
}

sub mixed_plan {
    my ( $o, $count ) = @_;
    return ( $count * $o->{rounds}, $count * $o->{rounds} * ( 2 * $o->{seconds} + 1.2 ) );
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
    return ( scalar @cases, $o->{quick} ? 25 : 220 );
}

sub _own_cases { return shift->{quick} ? qw(a b f) : 'a' .. 'f' }

sub _figures {
    my $file = shift;
    my $text = Bench::Machine::read_file($file) or return;
    unlink $file;
    return @{ JSON::PP->new->decode($text) };
}

sub _mixed {
    my ( $o, $server, $result ) = @_;
    my @paths = ( '/hello', '/sleep', $o->{close} ? 'close' : () );
    think( $server->{port}, 4, 1, 0, 0.3, '/hello', '/hello', 'close' );    # all workers have served
    my ( $calm, $got ) = map { think( $server->{port}, $CLIENTS, $THINK, $_, $o->{seconds}, @paths ) } 0,
        $SLOW;
    my %name = ( fast => 'requests', errors => 'failed' );
    push @{ $result->{ $name{$_} || $_ } }, $got->{$_} + 0
        for qw(p50 p99 max fast errors waiting reconnects served);
    push @{ $result->{calm} }, $calm->{p99} + 0;
    return;
}

1;
