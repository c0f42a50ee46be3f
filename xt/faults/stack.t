# Garbage in the memory of a worker: its stack is text, or there is none
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Faults;

my $faults = Sirius::Test::Faults->new;

my $app = <<'APP';
sub deep { my $n = shift; my @sorted = sort { $a <=> $b } 2, 1; return $n ? deep( $n - 1 ) : sleep 2 }
sub {
    my $path = $_[0]{PATH_INFO};
    deep(60) if $path eq '/deep';
    sleep 2  if $path eq '/flat';
    return [ 200, [], ["$$"] ];
}
APP

subtest 'a server' => sub {
    my $server = $faults->start( app => $app, args => [qw(--workers 4 --slow-log 0.3)] );
    $faults->set( garbled => 0.2 );
    my @clients = map { $server->connect } 1 .. 4;
    $clients[$_]->send( request( $_ % 2 ? 'GET /deep' : 'GET /flat' ) ) for 0 .. 3;
    is $_->response->status, 200, 'answered' for @clients;
    ok until_true( 10, sub { 4 == ( () = $server->log =~ /slow request: /g ) } ), 'four lines'
        or diag $server->log;
    cmp_ok $faults->injected('garbled'), '>', 0, 'with garbage';
    unlike $server->log, qr/[^\x20-\x7e\n\t]/, 'of text';
    $faults->clear;
    is $server->ask('GET /')->status, 200, 'the server serves';
    unlike $server->log, qr/killed|exited/, 'and nobody has died';
    $server->stop;
};

# As many as there is time for: 20,000 stacks, each with some garbage
subtest 'many stacks' => sub {
    my $program = <<'PROGRAM';
use strict; use warnings;
use Sirius::Process::SlowLog;
sub deep { my $n = shift; return $n ? eval { deep( $n - 1 ) } : sleep 300 }
my $pid = fork;
if ( !$pid ) { eval "deep(8)"; exit }
my ( $good, $none, $wrong ) = ( 0, 0, 0 );
my $end = time + 4;
while ( time < $end && $good + $none < 20_000 ) {
    my $frames = Sirius::Process::SlowLog->frames($pid);
    if ( !$frames ) { $none++; next }
    $good++;
    $wrong++ if @$frames > 51 || grep { /[^\x20-\x7e]/ || length > 4000 } @$frames;
}
kill KILL => $pid;
print "$good $none $wrong\n";
PROGRAM
    for my $rate ( 0.01, 0.1, 1 ) {
        $faults->set( garbled => $rate );
        my ( $good, $none, $wrong ) = split q( ), $faults->run( $^X, '-Mblib', '-e', $program );
        my $tries = $good + $none;
        cmp_ok $tries, '>', 50, "at a rate of $rate: $good stacks, $none times none";
        is $wrong, 0, 'each of them is text';
    }
};

done_testing;
