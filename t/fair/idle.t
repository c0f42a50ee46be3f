use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Fair;

# Idle connections cost no worker, and next to no memory

unlimited(4000);

sub latency {
    my ( $server, $name ) = @_;
    my @seconds;
    my %status;
    push @seconds, elapsed { $status{ $server->ask('GET /')->status }++ } for 1 .. 200;
    is_deeply \%status, { 200 => 200 }, "$name: 200 new clients are answered";
    my ( $p99, $worst ) = map { 1000 * quantile( $_, @seconds ) } 0.99, 1;
    cmp_ok $p99, '<', 100, sprintf 'soon (p99 %.1f ms, the slowest %.1f)', $p99, $worst;
    return;
}

my ( $server, @worker ) = fair_server(2);
{
    my @warm = map { $server->connect } 1 .. 300;
    $_->ask('GET /') for @warm;
}
sleep 0.3;
my $before = anonymous(@worker);
my @idle   = map { my $client = $server->connect; $client->ask('GET /'); $client } 1 .. 2000;
sleep 0.2;
my $each = ( anonymous(@worker) - $before ) * 1024 / 2000;
cmp_ok $each, '<', 1024, sprintf '2,000 idle connections: %.0f bytes each', $each;
latency( $server, 'beside them' );

my @silent = map { $server->connect } 1 .. 500;
sleep 0.2;
$each = ( anonymous(@worker) - $before ) * 1024 / 2500;
cmp_ok $each, '<', 1024, sprintf 'with 500 that never said a word: %.0f bytes each', $each;
latency( $server, 'beside them' );

my @cpu = cpu();
sleep 2;
my $ms = 10 * ( cpu() - $cpu[0] );
cmp_ok $ms, '<=', 20, "2 seconds of idleness cost all processes $ms ms of CPU";

my %status;
$status{ $_->ask('GET /')->status }++ for @idle, @silent;
is_deeply \%status, { 200 => 2500 }, 'each of them is served when it asks';

subtest 'a worker that ends hands 1,250 of them over' => sub {
    kill TERM => $worker[0];
    ok until_true(
        10,
        sub {
            !grep { $_ == $worker[0] } worker_pids($server);
        }
        ),
        'it ends';
    my %after;
    $after{ $_->ask('GET /')->status }++ for @idle, @silent;
    is_deeply \%after, { 200 => 2500 }, 'no client notices';
};

sub cpu {
    my $ticks = 0;
    for my $pid ( $server->pid, worker_pids($server) ) {
        my @field = split ' ', Sirius::Test::Server::slurp("/proc/$pid/stat") =~ s/\A.*\) //sr;
        $ticks += $field[11] + $field[12];
    }
    return $ticks;
}

$server->stop;
done_testing;
