use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Sirius::Test::Server;
use Fair;

# kill -9 of workers: only what they were running is lost, with 502

my @option = qw(--err-respawn-interval 0.1);

sub supervisor_files {
    return scalar( () = Sirius::Test::Server->descriptors( shift->pid ) );
}

subtest 'connections of the others notice nothing' => sub {
    my ( $server, @worker ) = fair_server( 3, @option );
    my %kept = map { my $pid = $_; $pid => [ on_worker( $server, $pid, 20 ) ] } @worker;
    my $dead = $worker[1];
    kill KILL => $dead;
    my %status;
    for my $pid ( grep { $_ != $dead } @worker ) {
        $status{ $_->ask('GET /')->status }++ for @{ $kept{$pid} };
    }
    is_deeply \%status, { 200 => 40 }, 'forty connections of two workers go on';
    my %end;
    $end{ $_->ask('GET /')->status }++ for @{ $kept{$dead} };
    is_deeply \%end, { 200 => 20 }, 'so do those that the dead one has served';
    ok until_true( 5, sub { worker_pids($server) == 3 } ), 'it is replaced';
    $server->{may_crash} = 1;
    $server->stop;
};

subtest 'a request that waits is not lost with a worker' => sub {
    my ( $server, $first, $second ) = fair_server( 2, @option );
    my @long    = map { $server->connect } 1, 2;
    my @end     = map { hold( $server, $_ ) } @long;
    my @waiting = map { $server->connect } 1 .. 5;
    $_->send( request('GET /') ) for @waiting;
    $server->wait_waiting(5);
    kill KILL => $first;
    ok until_true(
        10,
        sub {
            !grep { $_ == $first } worker_pids($server);
        }
        ),
        'a worker is killed';
    $_->() for @end;
    my %status;
    $status{ $_->response->status }++ for @waiting;
    note explain \%status;
    my ( $done, $lost ) = sort { $a->status <=> $b->status } map { $_->response } @long;
    is $done->body,   $second, 'the other is finished';
    is $lost->status, 502,     'what the dead one ran is lost';
    is_deeply \%status, { 200 => 5 }, 'what waited is answered';
    $server->{may_crash} = 1;
    $server->stop;
};

subtest 'fifty times under load' => sub {
    my ( $server, @worker ) = fair_server( 3, @option );
    $server->wait_log(qr{3 workers are serving});
    my $files  = supervisor_files($server);
    my @client = map { $server->connect } 1 .. 12;
    my ( $kills, %killed ) = (0);
    my $got = hammer(
        $server,
        clients => \@client,
        path    => '/sleep/0.002',
        seconds => 30,
        every   => 0.2,
        tick    => sub {
            my ($result) = @_;
            return if $kills == 50;
            my @pid = grep { !$killed{$_} } worker_pids($server);
            return if @pid < 2;
            my $pid = $pid[ rand @pid ];
            kill KILL => $pid;
            $killed{$pid} = 1;
            $kills++;
        },
        requests => 0,
        stop     => sub { $kills == 50 },
    );
    is $kills, 50,
        "50 workers were killed, $got->{answers} answers by @{[ scalar keys %{ $got->{by_worker} } ]} workers";
    my %how;
    $how{s/ at .*//r}++ for @{ $got->{failures} };
    is_deeply [ grep { $_ ne '502' } keys %how ], [], 'no failure but 502, and no connection ends'
        or diag explain \%how;
    cmp_ok scalar @{ $got->{failures} }, '<=', 50, "@{[ scalar @{ $got->{failures} } ]} in all";
    cmp_ok $got->{answers},              '>',  50, 'and others are served between two kills';
    ok until_true( 5, sub { worker_pids($server) == 3 } ), 'three workers are there';
    my %by;
    until_true(
        5,
        sub {
            $by{ $server->ask('GET /sleep/0.01')->body }++;
            my @c = map { $server->connect } 1 .. 3;
            $_->send( request('GET /sleep/0.05') ) for @c;
            $by{ $_->response->body }++ for @c;
            keys %by >= 3;
        }
    );
    is_deeply [ sort keys %by ], [ sort +worker_pids($server) ], 'and each of them serves';
    ok until_true( 3, sub { supervisor_files($server) == $files } ),
        "the supervisor has $files descriptors as before"
        or diag supervisor_files($server);
    is scalar( () = $server->log =~ /was killed by signal 9/g ), 50, 'each is in the log';
    $server->{may_crash} = 1;
    $server->stop;
};

# As it is configured by default: a worker that dies before it is ready is replaced a second later, any other
# at once
subtest 'every 200 ms, four workers, default options: the service never stops' => sub {
    my ($server) = fair_server(4);
    my @client   = map { $server->connect } 1 .. 4;
    my $kills    = 0;
    my $got      = hammer(
        $server,
        clients => \@client,
        seconds => 6,
        every   => 0.2,
        tick    => sub {
            my @ready = map { $_->{pid} } grep { $_->{state} =~ /idle|busy/ } @{ $server->board->{workers} };
            $kills += kill KILL => $ready[ rand @ready ] if @ready;
        },
    );
    unlike $server->log, qr/next attempt in/, "$kills kills, and no successor was delayed";
    is_deeply [ grep { !/\A502 / } @{ $got->{failures} } ], [],
        "$got->{answers} answers, nothing but 502 beside them";
    $server->{may_crash} = 1;
    $server->stop;
};

done_testing;
