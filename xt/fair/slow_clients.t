use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Server;
use Fair;

# Clients that send slowly, or do not read, cost no worker

my ( $server, @worker )
    = fair_server( 2, qw(--header-timeout 4 --body-timeout 4 --body-rate 1000 --write-timeout 3) );

# Each begins at once: the time of a head runs from the beginning of the connection
sub begin {
    my ( $count, $bytes, @option ) = @_;
    return map { my $client = $server->connect(@option); $client->send($bytes); $client } 1 .. $count;
}
my @head   = begin( 200, "GET / HTTP/1.1\r\nHost: a\r\n" );
my @body   = begin( 50,  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n" );
my @reader = begin( 20,  request('GET /big/8000000'), rcvbuf => 4096 );    # the kernel takes 2.5 MB of it
my $start  = time;

my ( %fresh, %kept );
my $kept = $server->connect;
while ( time < $start + 2.5 ) {
    for my $i ( 0 .. 9 ) {
        $head[ rand @head ]->send('X');
        $body[ rand @body ]->send('a');
        $fresh{ $server->ask('GET /')->status }++;
        $kept{ $kept->ask('GET /')->status }++;
    }
    sleep 0.01;
}
is_deeply [ keys %fresh ], [200],   "$fresh{200} requests of normal clients are answered";
is_deeply \%kept,          \%fresh, 'and as many on a kept connection';
my $board = $server->board;
is_deeply [ grep { $_->{state} ne 'idle' } @{ $board->{workers} } ], [], 'no worker is busy with the others';
is $board->{connections}{open},    271, 'which are all there';
is $board->{connections}{waiting}, 0,   'and nobody waits';

for ( [ 'heads', 200, @head ], [ 'bodies', 50, @body ] ) {
    my ( $name, $count, @client ) = @$_;
    my ( %answer, %end );
    for my $client (@client) {
        my $answer = $client->response( patience => 6 );
        $answer{ $answer->status . ( $answer->closes ? ' close' : '' ) }++;
        $end{ $client->end(5) }++;
    }
    if ( $ENV{SIRIUS_TEST_H2} && $name eq 'heads' ) {    # a head is a frame
        is_deeply [ grep { !/\A(?:eof|reset)\z/ } keys %answer ], [], "slow $name are closed";
        next;
    }
    is_deeply \%answer, { '408 close' => $count }, "slow $name are told 408 and close";
    is_deeply \%end,    { eof         => $count }, 'and closed by FIN';
}
cmp_ok time - $start, '>', 3.5, 'not before their time';
is_deeply [ @{ $server->board->{totals}{refusals} }{qw(header-timeout body-timeout)} ],
    [ $ENV{SIRIUS_TEST_H2} ? 0 : 200, 50 ],
    'by their limits';

$server->wait_board( sub { $_[0]{totals}{limits}{write} == 20 } );
my %left;
for my $client (@reader) {
    my $bytes = length $client->rest(3);
    $left{ ( $bytes >= 8_000_000 ? 'whole' : 'cut' ) . ' ' . ( $client->{end} || 'open' ) }++;
}
is join( ',', sort keys %left ), 'cut ' . ( $left{'cut reset'} ? 'reset' : 'eof' ),
    'those who did not read are cut off'
    or diag explain \%left;

subtest 'many readers that are slow but steady' => sub {
    my @steady = map { $server->connect( rcvbuf => 65_536 ) } 1 .. 60;
    $_->send( request('GET /big/5000000') ) for @steady;
    my @bytes;
    for my $round ( 1 .. 20 ) {
        $bytes[$_] += length $steady[$_]->some( 40_000, 0 ) for 0 .. $#steady;
        is $server->ask('GET /')->status, 200, 'another is served';
    }
    cmp_ok quantile( 1, @bytes ), '<', 5_000_000, 'before any of them has all';
    my $memory = 0;
    $memory = $memory > $_ ? $memory : $_ for map { anonymous($_) } @worker;
    cmp_ok $memory, '<', 200_000, "a worker has $memory KiB of its own";
    my $whole = 0;
    for my $i ( 0 .. $#steady ) {
        my $more = $steady[$i]->some( 5_000_000 - $bytes[$i], 10 );
        $whole++ if $bytes[$i] + length $more >= 5_000_000;
    }
    is $whole, 60, 'each gets all of it in the end';
};

is join( ' ', worker_pids($server) ), "@worker", 'the workers are the same';
$server->stop;
done_testing;
