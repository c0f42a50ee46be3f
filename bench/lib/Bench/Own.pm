package Bench::Own;

# What bench/fair measures with: a server of this checkout, loads, and the table of the figures.

use strict;
use warnings;

use Bench::Load  ();
use Exporter     qw(import);
use Fair         qw(quantile worker_pids);
use FindBin      ();
use List::Util   qw(sum0);
use Sirius::Test qw(elapsed request until_true);
use Sirius::Test::Server;
use Time::HiRes qw(sleep time);

our @EXPORT_OK
    = qw(cpu figure figures fresh in_turn kib ms overtaking pss rates server stolen stop think wrk);

my $ROOT = "$FindBin::Bin/..";
my @figures;
my $then;    # the clock of the last call of stolen

sub figure {
    my ( $name, $got, $wanted ) = @_;
    printf "%-60s %14s  %s\n", $name, $got, defined $wanted ? $wanted : '';
    push @figures, { name => $name, got => $got, wanted => $wanted };
    return;
}

sub ms  { return sprintf '%.2f ms',  1000 * shift }
sub kib { return sprintf '%.0f KiB', shift }

# A server with one of our applications, all workers up
sub server {
    my ( $app, $workers, @args ) = @_;
    my $server = Sirius::Test::Server->start(
        app  => "$ROOT/bench/$app.psgi",
        args => [ '--workers', $workers, @args ]
    );
    until_true( 10, sub { worker_pids($server) == $workers } ) or die "the workers do not start\n";
    sleep 0.5;
    return $server;
}

sub stop {
    my $server = shift;
    $server->signal('TERM');
    $server->wait_exit(40);
    $server->kill_hard;
    return;
}

# name => value of bench/think
sub think {
    my ( $server, @args ) = @_;
    return Bench::Load::think( $server->port, @args );
}

# Requests of new connections, one after the other, for so many seconds: latencies and errors
sub fresh {
    my ( $server, $seconds, $path ) = @_;
    my ( @latency, %error );
    my $until = time + $seconds;
    while ( time < $until ) {
        push @latency, elapsed {
            my $status = eval {
                my $client = $server->connect;
                $client->send( request( 'GET ' . ( $path || '/hello' ) ) );
                $client->response( patience => 5 )->status;
            } || "$@";
            $error{$status}++ if $status ne '200';
        };
        sleep 0.002;
    }
    return ( \@latency, sum0( values %error ), \%error );
}

# Requests a second, and the number of failures
sub wrk {
    my ( $server, $connections, $seconds, $path ) = @_;
    my ( $requests, $taken, $failed )
        = Bench::Load::wrk( $server->port, $connections, $seconds, path => $path || '/hello' );
    return ( $requests / $taken, $failed );
}

# Throughput of two conditions, each brought about by its code, in turn; the median of the ratios of
# neighbours, in percent. One before and one after would compare two moments of the machine.
sub in_turn {
    my ( $seconds, $one, $other ) = @_;
    my @ratio;
    for my $round ( 1 .. 7 ) {
        my %rate = map { $_ => ( wrk( $_ ? $one->() : $other->(), 8, $seconds ) )[0] }
            $round % 2 ? ( 0, 1 ) : ( 1, 0 );
        push @ratio, $rate{1} / $rate{0};
    }
    return sprintf '%.0f %%', 100 * quantile( 0.5, @ratio );
}

# Time that the host gave to others since the last call, as a share of all: latencies of a few ms mean little
# with more than a few percent
sub stolen {
    my ( undef, @now ) = split ' ', Sirius::Test::Server::slurp('/proc/stat') =~ s/\n.*//sr;
    my ( $all, $steal ) = ( sum0( @now[ 0 .. 7 ] ), $now[7] );
    my $share = $then && $all > $then->[0] ? ( $steal - $then->[1] ) / ( $all - $then->[0] ) : 0;
    $then = [ $all, $steal ];
    return sprintf '%.1f %%', 100 * $share;
}

# CPU of these processes in seconds, user and system
sub cpu {
    my @pids = @_;
    return 1e-9 * sum0 map { ( split ' ', Sirius::Test::Server::slurp($_) )[0] || 0 }
        map { glob "/proc/$_/task/*/schedstat" } @pids;
}

# KiB of these processes: what one shares with n others counts for it as a part in n
sub pss {
    my @pids = @_;
    return sum0 map { Sirius::Test::Server::slurp("/proc/$_/smaps_rollup") =~ /^Pss:\s+(\d+)/m ? $1 : 0 }
        @pids;
}

# Rates under several conditions, each brought about by its code, which returns the server and, if it likes,
# an object that is destroyed after the measurement. Every round has all of them, every second one backwards.
# Returns name => { rate => [ of each round ], failed }.
sub rates {
    my ( $connections, $seconds, $path, @conditions ) = @_;
    my %got;
    for my $round ( 1 .. 5 ) {
        my @here = map { [ @conditions[ 2 * $_, 2 * $_ + 1 ] ] } 0 .. $#conditions / 2;
        for my $condition ( $round % 2 ? @here : reverse @here ) {
            my ( $name,   $code )   = @$condition;
            my ( $server, $guard )  = $code->();
            my ( $rate,   $failed ) = wrk( $server, $connections, $seconds, $path );
            push @{ $got{$name}{rate} }, $rate;
            $got{$name}{failed} += $failed;
            next if !$guard;
            undef $guard;
            sleep 1;    # what it has begun is not to be measured with the next one
        }
    }
    return \%got;
}

# Of pairs of times [ complete, begun ]: for each request, how many that were complete later were begun
# earlier. Returns the greatest of these numbers, and how many requests have one at all.
sub overtaking {
    my @requests = @_;
    my ( @begun, $most, $some );    # the times at which those that are begun were complete, in order
    for my $request ( sort { $a->[1] <=> $b->[1] } @requests ) {
        my $place = @begun;
        $place-- while $place > 0 && $begun[ $place - 1 ] > $request->[0];
        my $by = @begun - $place;
        splice @begun, $place, 0, $request->[0];
        $some++     if $by;
        $most = $by if $by > ( $most || 0 );
    }
    return ( $most || 0, $some || 0 );
}

# All that were told: { name, got, wanted }
sub figures { return @figures }

1;
