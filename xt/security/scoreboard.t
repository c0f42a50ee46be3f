use strict;
use warnings;
use File::Temp ();
use FindBin;
use POSIX ();
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Workers can write to all of the scoreboard, whatever is said there of its size. The supervisor, which may be
# root's, adds and reads where it knows that rows are, and nowhere else.

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

# Where a row has the PID of a worker, sirius profile reads the stack of that process
my $POINT = <<'APP';
sub {
    my $env = shift;
    sleep 300 if $env->{PATH_INFO} eq '/sleep';
    return [ 200, [], ["$$"] ] if $env->{PATH_INFO} ne '/point';
    my ($fd) = grep { ( readlink || '' ) =~ /memfd:sirius scoreboard/ } glob '/proc/self/fd/*';
    open my $memory, '+<:raw', $fd or die "$fd: $!";
    my $bytes = do { local $/; <$memory> };
    my ( $from, $to ) = map { pack 'l', $_ } split /,/, $env->{QUERY_STRING};
    my $changed = 0;
    for ( my $at = 0; ( $at = index $bytes, $from, $at ) >= 0; $at += 4 ) {
        sysseek $memory, $at, 0;
        $changed += syswrite $memory, $to;
    }
    return [ 200, [], [$changed] ];
}
APP

subtest 'The PID of another process in the row of a worker' => sub {
    linux_only('the stack of another process');
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $server = start_server( $POINT, qw(--workers 2 --control), "$dir/control" );
    my $other  = fork // die "fork: $!";
    if ( !$other ) {
        exec $^X, '-e', 'sub secret { sleep 300; 1 } secret(); 1' or POSIX::_exit(1);
    }
    my $client = $server->connect;
    $client->send( request('GET /sleep') );
    my $root    = $Sirius::Test::Server::ROOT;
    my @profile = ( $^X, "-I$root/blib/lib", "-I$root/blib/arch", "$root/bin/sirius", 'profile' );
    my @ask     = ( '--control', "$dir/control", 'dump' );
    my ( $said, $worker );
    ok until_true(
        20, sub { $said = `@profile @ask 2>&1`; ($worker) = $said =~ /^worker (\d+): GET \/sleep/m }
        ),
        'a worker that is busy'
        or diag $said;
    cmp_ok $server->ask("GET /point?$worker,$other")->body, '>', 0, 'gets another PID';
    my $direct = `@profile @ask 2>&1`;
    unlike $direct, qr/secret|worker $other:/, 'the command does not read it' or diag $direct;
    require IO::Socket::UNIX;
    my $socket = IO::Socket::UNIX->new( Peer => "$dir/control" ) or die "$dir/control: $!";
    print {$socket} qq({"command":"profile","dump":true}\n);
    my $answer = readline $socket;
    like $answer,   qr/"ok":1/,                'the supervisor answers';
    unlike $answer, qr/secret|"pid":$other\b/, 'and does not read it';
    kill KILL => $other;
    waitpid $other, 0;
    $server->{may_crash} = 1;
    kill KILL => $worker;
    $server->stop;
};

# Paths and exceptions lie behind the rows: what is written there from the text of a path on
my $SPOIL = <<'APP';
sub {
    my $env = shift;
    die "no order 4711\n" if $env->{PATH_INFO} eq '/die';
    return [ 200, [], ["$$"] ] if $env->{PATH_INFO} ne '/spoil';
    my ($fd) = grep { ( readlink || '' ) =~ /memfd:sirius scoreboard/ } glob '/proc/self/fd/*';
    open my $memory, '+<:raw', $fd or die "$fd: $!";
    my $bytes = do { local $/; <$memory> };
    my $from  = index $bytes, '/find/me';
    return [ 200, [], ['not found'] ] if $from < 0;
    srand $env->{QUERY_STRING};
    my @kinds = ( sub { 255 }, sub { int rand 256 }, sub { rand() < 0.9 ? 0 : int rand 256 }, sub { int rand 32 } );
    my $kind  = $kinds[ $env->{QUERY_STRING} % @kinds ];
    my $rest  = pack 'C*', map { $kind->() } 1 .. 200_000;
    $rest = substr $rest, 0, length($bytes) - $from;
    sysseek $memory, $from, 0;
    syswrite $memory, $rest;
    return [ 200, [], ['spoiled'] ];
}
APP

subtest 'Paths and exceptions' => sub {
    my $server = start_server( $SPOIL, '--workers', 2, '--admin', '127.0.0.1:0' );
    my ($admin) = $server->log =~ m{admin on http://(.*)/$}m;
    $server->wait_log( qr/ready after /, 20 );
    my ($edge) = $server->edges;
    my $spoiled = 0;
    for my $round ( 1 .. 40 ) {
        last if $round > 8 && $spoiled > 3;    # not each round finds the table
        my $path = '/find/me-' . 'x' x $round;
        $server->ask("GET $path") for 1 .. 3;
        $server->ask('GET /die');
        $spoiled += $server->ask("GET /spoil?$round")->body eq 'spoiled';
        my $client = $server->connect;
        is_deeply [ grep { $_ ne '200' } map { $client->ask("GET /path/$_-$round")->status } 'a' .. 'z' ],
            [], 'requests go on';
        is $server->ask('GET /die')->status, '500', 'and exceptions';

        for my $path (qw(/status.json /metrics)) {
            my $answer = $server->connect( to => $admin, plain => 1 )->ask( "GET $path", 'Host: localhost' );
            is $answer->status, '200', $path;
            unlike $answer->body, qr/[^\n\x20-\x7e\x80-\xff]/, 'without control characters';
        }
    }
    cmp_ok $spoiled, '>', 3, 'a worker has written there';
    is_deeply [ $server->edges ], [$edge], 'the edge is as before';
    kill KILL => $edge;
    $server->{may_crash} = 1;
    ok until_true(
        15,
        sub {
            eval { $server->connect->ask('GET /')->status eq '200' }
        }
        ),
        'and another one serves with what is there';
    $server->stop;
};

done_testing;
