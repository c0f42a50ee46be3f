use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# the first process of a container

my $root = $Sirius::Test::Server::ROOT;
my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

# Who is not root may have to have a namespace of users for it
my @UNSHARE = qw(unshare --pid --fork --mount-proc --kill-child);
my ($unshare) = grep { !system( join( ' ', @$_, 'true >/dev/null 2>&1' ) ) } \@UNSHARE,
    [ @UNSHARE, qw(--user --map-root-user) ];
plan skip_all => 'unshare --pid does not work here' if !$unshare;

# /sleep/SECONDS; /orphans/N leaves N processes without a parent; /pid
my $APP = <<'APP';
use POSIX ();
sub {
    my ( undef, $what, $number ) = split m{/}, $_[0]{PATH_INFO};
    select undef, undef, undef, $number if $what eq 'sleep';
    for ( 1 .. $what eq 'orphans' ? $number : 0 ) {
        my $pid = fork;
        die "fork: $!" if !defined $pid;
        waitpid $pid, 0 if $pid;
        next if $pid;
        my $grandchild = fork;
        select undef, undef, undef, rand 0.3 if defined $grandchild && !$grandchild;
        POSIX::_exit(0);
    }
    return [ 200, [], [ $what eq 'pid' ? getppid : 'x' x 100_000 ] ];
}
APP

# In a namespace of its own; the harness knows unshare, whose only child it is
sub start {
    my @args   = @_;
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        args    => \@args,
        command => [ @$unshare, $^X, "$root/bin/sirius", qw(-E deployment) ],
    );
    ( $server->{first} ) = $server->generations;
    $server->{supervisor} = $server->{first};
    return $server;
}

sub zombies {
    my $server = shift;
    return grep { $_->{group} == $server->pid && $_->{state} eq 'Z' } Sirius::Test::Server::all_processes();
}

# The process that has the connections, if it is another one
sub edges {
    my $server = shift;
    return scalar grep { Sirius::Test::Server->is_edge($_) } $server->processes;
}

# The status of unshare is that of its child
sub ends {
    my ( $server, $signal ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    kill $signal => $server->{first} if $signal;
    my $how = $server->wait_exit || 'still running';
    is $how, 'exit 0', 'exit 0' or diag $server->log;
    ok until_true( 10, sub { !$server->processes } ), 'and no process is left';
    is_deeply [ $server->crashes ], [], 'nothing crashed';
    return;
}

for my $signal (qw(TERM QUIT)) {
    subtest "$signal during a request" => sub {
        my $server = start(qw(--workers 2));
        my $client = $server->connect;
        $server->board;    # its reader is there before the request
        $client->send( request('GET /sleep/1.5') );
        $server->wait_busy( 1, qr{/sleep/1.5} );
        is Sirius::Test::Server::slurp("/proc/$server->{first}/status") =~ /^NSpid:\s+\d+\s+(\d+)$/m && $1,
            1, 'its PID is 1';
        kill $signal => $server->{first};
        my $answer = $client->response;
        is $answer->status,      200,     'the answer';
        is length $answer->body, 100_000, 'is whole';
        ends($server);
    };
}

subtest 'a second TERM does not wait' => sub {
    my $server = start(qw(--workers 2));
    my $client = $server->connect;
    $client->send( request('GET /sleep/60') );
    $server->wait_busy( 1, qr{/sleep/60} );
    my $seconds = elapsed {
        kill TERM => $server->{first};
        $server->wait_log(qr/stopping: TERM/);
        ends( $server, 'TERM' );
    };
    cmp_ok $seconds, '<', 20, 'the request is not waited for';
};

subtest 'orphans of the application' => sub {
    my $server = start(qw(--workers 2));
    is $server->ask("GET /orphans/$_")->status, 200, "$_ orphans" for 20, 40, 40;
    ok until_true( 20, sub { my @all = $server->processes; @all == 5 + edges($server) } ),
        'are gone: unshare, the supervisor, a generation, two workers';
    ok until_true( 10, sub { !zombies($server) } ), 'and are no zombies';
    is $server->ask('GET /')->status, 200, 'it serves';
    ends( $server, 'TERM' );
};

subtest 'HUP' => sub {
    my $server = start(qw(--workers 2));
    for my $number ( 2, 3 ) {
        kill HUP => $server->{first};
        ok $server->wait_log( qr/generation $number is serving$/m, 30 ), "generation $number";
        is $server->ask('GET /')->status, 200, 'serves';
    }
    ok until_true( 20, sub { my @all = $server->processes; @all == 5 + edges($server) } ),
        'nothing is left of those before';
    ok until_true( 10, sub { !zombies($server) } ), 'no zombie';
    ends( $server, 'TERM' );
};

subtest 'the file of a container that was killed' => sub {
    for my $old ( "1\n", "2\n", '' ) {
        spew( "$dir/pid", $old );
        my $server = start( qw(--workers 1 --pid), "$dir/pid" );
        is $server->ask('GET /')->status, 200,
            'it starts' . ( $old ? ', though a PID is in it, also of itself' : '' );
        is Sirius::Test::Server::slurp("$dir/pid"), "1\n", 'its own is in it then';
        ends( $server, 'TERM' );
    }
    my $server = start( qw(--workers 1 --pid), "$dir/pid" );
    kill KILL => $server->{first};
    $server->wait_exit;
    is Sirius::Test::Server::slurp("$dir/pid"), "1\n", 'killed: it is left';
    my $next = start( qw(--workers 1 --pid), "$dir/pid" );
    is $next->ask('GET /')->status, 200, 'the next starts';
    ends( $next, 'TERM' );
};

subtest 'The same without being the first process' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    is $server->ask('GET /orphans/100')->status, 200, '100 orphans';
    ok until_true(
        20, sub { my @all = $server->processes; @all == 4 + edges($server) && !zombies($server) }
        ),
        'are gone';
    $server->stop;
};

done_testing;
