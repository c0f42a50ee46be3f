use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# A generation is killed while it starts a worker: no two workers have one row of the scoreboard, and none is
# left that nobody knows, which would serve old code for ever

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;

# PID of each worker that serves, and what it says of itself, in so many requests
sub serving {
    my ( $server, $number ) = @_;
    my %by;
    $by{ $server->ask('GET /')->body }++ for 1 .. $number;
    return sort keys %by;
}

# The PIDs in the rows
sub rows {
    my $json
        = `$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius ctl --control $dir/control --json status`;
    my $answer = JSON::PP->new->decode($json);
    my @pids   = sort { $a <=> $b } map { $_->{pid} } @{ $answer->{status}{rows} };
    return @pids;
}

# One generation, so many workers, each with a row, and nobody else
sub settled {
    my ( $server, $number ) = @_;
    return until_true(
        20,
        sub {
            my @workers = $server->workers;
                   $server->generations == 1
                && @workers == $number
                && $server->processes == 2 + $number + $server->edges
                && "@workers" eq join q( ), rows();
        }
    );
}

my $SLOW = <<'APP';
select undef, undef, undef, 1.5;
sub { [ 200, [], [$$] ] };
APP

subtest '-L Delayed: killed while a worker loads the application' => sub {
    linux_only('who adopts orphans');
    my $server = Sirius::Test::Server->start(
        app       => $SLOW,
        args      => [ qw(--workers 1 -L Delayed --err-respawn-interval 0.1), '--control', "$dir/control" ],
        may_crash => 1,
    );
    my ($generation) = $server->generations;
    my ($worker)     = $server->workers;
    kill KILL => $worker;
    my ($loading) = until_true(
        10,
        sub {
            ( grep { $_ != $worker } $server->workers )[0];
        }
    );
    ok $loading, 'its successor loads';
    sleep 0.2;
    kill KILL => $generation;
    ok until_true(
        20,
        sub {
            !grep { $_ == $loading } $server->processes;
        }
        ),
        'it ends when it has loaded'
        or diag $server->log;
    ok settled( $server, 1 ), 'one worker, which has a row'
        or diag join ' ', $server->processes, 'rows', rows();
    is_deeply [ serving( $server, 20 ) ], [ $server->workers ], 'and answers all';
    $server->signal('HUP');
    ok until_true( 20, sub { $server->log =~ /generation 3 is serving$/m } ), 'a reload';
    ok settled( $server, 1 ),                                                 'one worker again';
    is_deeply [ serving( $server, 20 ) ], [ $server->workers ], 'the new one';
    $server->stop;
};

subtest 'killed between the claim and the fork' => sub {
    my $server = Sirius::Test::Server->start(
        app  => "sub { [ 200, [], [\$\$] ] };\n",
        args => [
            qw(--workers 1),
            '--control',
            "$dir/control",
            '--before-fork',
            "sub { my \$n = \@{[ glob '$dir/fork-*' ]}; open my \$out, '>', '$dir/fork-' . \$n; select undef, undef, undef, 0.7 if \$n == 1 }"
        ],
        may_crash => 1,
    );
    my ($generation) = $server->generations;
    kill KILL => $server->workers;
    ok until_true( 10, sub { -e "$dir/fork-1" } ), 'it is about to fork';
    kill KILL => $generation;
    ok settled( $server, 1 ), 'one worker, which has a row'
        or diag $server->log, join ' ', $server->processes, 'rows', rows();
    $server->stop;
};

subtest 'killed at any moment, with workers that come and go' => sub {
    linux_only('who adopts orphans');
    my $server = Sirius::Test::Server->start(
        app       => "sub { \$_[0]{'psgix.harakiri.commit'} = 1; [ 200, [], [\$\$] ] };\n",
        args      => [ qw(--workers 3 --err-respawn-interval 0.01), '--control', "$dir/control" ],
        may_crash => 1,
    );
    my @wrong;
    for my $try ( 1 .. 6 ) {
        kill KILL => ( $server->workers )[ 0, 1 ];
        sleep 0.002 * $try;
        kill KILL => $server->generations;
        settled( $server, 3 )
            or push @wrong, join ' ', "try $try: processes", $server->processes, 'rows', rows();
    }
    is_deeply \@wrong, [], 'six times: three workers with a row each, and nobody else' or diag $server->log;
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
};

done_testing;
