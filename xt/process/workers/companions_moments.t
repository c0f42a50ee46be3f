use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use List::Util qw(max);
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Jobs;

# --beside: whatever is killed at whatever moment, there are never two of a command, nor none for long, and
# nothing is left. SIRIUS_TEST_LONG=1: more moments

my $jobs = jobs();

subtest 'the supervisor is killed at any moment' => sub {
    srand 11;
    for my $round ( 1 .. ( $ENV{SIRIUS_TEST_LONG} ? 200 : 10 ) ) {
        my $server = start( ( $round % 2 ? 'exec ' : 'jobs=' ) . "$jobs stubborn; true" );
        $server->signal('HUP') if $round % 3;
        sleep rand(0.8);
        $server->signal('KILL');
        $server->wait_exit;
        until_true( 20, sub { !$server->processes } ) or fail 'a process of the server is left';
        until_true( 5,  sub { !left() } )             or fail "round $round: something is left";
        happened('twice') and fail "round $round: two";
    }
    pass 'nothing is left';
};

subtest 'many moments' => sub {
    my $rounds = $ENV{SIRIUS_TEST_LONG} ? 1000 : 24;
    my $server = start( "jobs=exec $jobs", qw(--err-respawn-interval 0.01 --graceful-timeout 1) );
    $server->{may_crash} = 1;
    my ( $moments, $longest ) = ( 0, 0 );
    srand 7;
    for my $round ( 1 .. $rounds ) {
        my $reloads = () = $server->log =~ /reload completed/g;
        $server->signal('HUP');
        for ( 1 .. 16 ) {
            sleep rand 0.03;
            my ($pid) = map { $_->{pid} || () } values %{ status() };
            next if !$pid;
            kill( (qw(KILL TERM HUP STOP))[ rand 4 ], $pid );
            $moments++;
        }
        if ( $round % 6 == 0 ) {
            kill KILL => ( $server->generations )[0] // next;
            $moments++;
        }
        until_true( 20, sub { $reloads < ( () = $server->log =~ /reload completed/g ) } );
        my $began = time;
        ok 0, "round $round: none runs" if !running('jobs');
        $longest = max $longest, time - $began;
        $moments++;
    }
    note "$moments moments, longest wait $longest s";
    my $least = linux( '150 moments', 'who waits for orphans' ) ? 150 : 30;
    cmp_ok $moments, '>=', $least, 'moments at which something is killed';
    is happened('twice'), 0, 'never two at a time';
    cmp_ok $longest, '<', 5, 'never none for long';
    $server->stop;
    none_left();
};

done_testing;
