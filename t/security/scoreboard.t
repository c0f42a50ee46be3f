use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# Workers can write to all of the scoreboard, whatever is said there of its size. The supervisor, which may be root's, adds and reads
# where it knows that rows are, and nowhere else.

my $APP = <<'APP';
sub {
    my $env = shift;
    return [ 200, [], ["$$"] ] if $env->{PATH_INFO} ne '/spoil';
    my ($fd) = grep { ( readlink || '' ) =~ /memfd:sirius scoreboard/ } glob '/proc/self/fd/*';
    open my $memory, '+<:raw', $fd or die "$fd: $!";
    sysseek $memory, 4, 0;                                   # slots, edges: see src/share/scoreboard.h
    syswrite $memory, pack 'LL', split /,/, $env->{QUERY_STRING};
    my $cut = truncate( $memory, 4096 ) ? 'shorter' : 'as long as ever';
    return [ 200, [], [$cut] ];
}
APP

for my $numbers ( '16777216,64', '0,0', '4294967295,4294967295' ) {
    subtest "slots,edges: $numbers" => sub {
        my $server = start_server( $APP, qw(--workers 2) );
        $server->{may_crash} = 1;
        $server->wait_log( qr/ready after /, 20 );    # all workers
        is $server->ask("GET /spoil?$numbers")->body, 'as long as ever',
            'a worker spoils it, but can\'t cut it';
        my ($edge) = $server->edges;
        kill KILL => $edge;
        ok until_true(
            15,
            sub {
                eval { $server->connect->ask('GET /')->status eq '200' }
            }
            ),
            'the row of an edge that was killed is released, and another one serves';
        my ($worker) = $server->workers;
        kill KILL => $worker;
        ok $server->wait_log(qr/worker $worker was killed by signal 9/), 'a worker ends';
        ok until_true(
            15,
            sub {
                ( grep { $_ != $worker } $server->workers ) == 2;
            }
            ),
            'and has a successor';
        ok !$server->exited, 'the supervisor goes on';
        $server->stop;
    };
}

done_testing;
