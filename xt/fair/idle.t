use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Fair;

# Idle connections cost no worker, and next to no memory

unlimited(4000);

sub others {
    my ( $server, $open ) = @_;
    my %status;
    $status{ $server->ask('GET /')->status }++ for 1 .. 200;
    is_deeply \%status, { 200 => 200 }, "beside $open: 200 new clients are answered";
    ok $server->wait_open($open), 'and none is closed for them';
    return;
}

my ( $server, @worker ) = fair_server(2);
{
    my @warm = map { $server->connect } 1 .. 300;
    $_->ask('GET /') for @warm;
}
$server->wait_open(0);
my $before = anonymous(@worker);
my @idle   = map { my $client = $server->connect; $client->ask('GET /'); $client } 1 .. 2000;
$server->wait_open( 2000, 2000 );
my $each = ( anonymous(@worker) - $before ) * 1024 / 2000;
cmp_ok $each, '<', 1024, sprintf '2,000 idle connections: %.0f bytes each', $each;
others( $server, 2000 );

my @silent = map { $server->connect } 1 .. 500;
$server->wait_open(2500);
$each = ( anonymous(@worker) - $before ) * 1024 / 2500;
cmp_ok $each, '<', 1024, sprintf 'with 500 that never said a word: %.0f bytes each', $each;
others( $server, 2500 );

my $woken = wake_ups();
sleep 2;
$woken = wake_ups() - $woken;
cmp_ok $woken, '<=', linux( 'wake-ups', 'without futex and ppoll processes look now and then' ) ? 10 : 2000,
    "in 2 seconds of idleness the processes wake up $woken times";

my %status;
$status{ $_->ask('GET /')->status }++ for @idle, @silent;
is_deeply \%status, { 200 => 2500 }, 'each of them is served when it asks';

subtest 'a worker ends' => sub {
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

sub wake_ups {
    my $sum = 0;
    for my $pid ( $server->pid, $server->generations, $server->edges, worker_pids($server) ) {
        $sum
            += Sirius::Test::Server::slurp("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m
            ? $1
            : 0;
    }
    return $sum;
}

$server->stop;
done_testing;
