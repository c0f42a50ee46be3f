use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::OS::Proc;
use Sirius::Test;

# A generation, or its supervisor, ends otherwise than by a reload or a stop: what the log and the counts say
# of it

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;

# Loads at once, or as long as there is a file
my $APP = <<"APP";
select undef, undef, undef, 0.05 while -e '$dir/hold';
die "no luck\\n" if -e '$dir/broken';
sub {
    select undef, undef, undef, 0.05 while \$_[0]{PATH_INFO} eq '/wait' && !-e '$dir/go';
    [ 200, [], [\$\$] ];
};
APP

sub start {
    my @args = @_;
    unlink map {"$dir/$_"} qw(hold broken go);
    my $server = Sirius::Test::Server->start(
        app       => $APP,
        args      => [ qw(--workers 2 --admin 127.0.0.1:0), '--control', "$dir/control", @args ],
        may_crash => 1,
    );
    $server->wait_log( qr/2 workers are serving$/m, 20 );
    return $server;
}

# The one with the workers; the admin port has a process too
sub serving {
    my $server = shift;
    my %parent;
    until_true(
        10,
        sub {
            %parent = map { Sirius::OS::Proc->parent($_) => 1 } $server->workers;
            %parent;
        }
    );
    my ($pid) = grep { $parent{$_} } $server->generations;
    return $pid;
}

# PIDs of workers that run a request
sub busy {
    my $server = shift;
    return map { $_->{pid} } grep { $_->{state} eq 'busy' } @{ status($server)->{workers} };
}

sub reloads { return status(shift)->{reload} }

sub status {
    my $server    = shift;
    my ($address) = $server->log =~ m{admin on http://([^/\s]+)/};
    my $text      = $server->connect( to => $address )->ask( 'GET /status.json', 'Host: localhost' )->body;
    return JSON::PP->new->decode($text);
}

subtest 'killed: another takes its place, and no reload is counted' => sub {
    my $server = start();
    kill KILL => serving($server);
    ok $server->wait_log(
        qr/\[sirius \d+\] generation 2 is serving in place of generation 1, which was killed by signal 9 \(KILL\)$/m,
        20
        ),
        'the log says which one serves, and what has become of the one before'
        or diag $server->log;
    unlike $server->log, qr/reload/, 'and nothing of a reload';
    my $reload = reloads($server);
    is_deeply [ @{$reload}{qw(ok failed loading)}, exists $reload->{last_at} ? 1 : 0 ], [ 0, 0, 0, 0 ],
        'none is counted';
    $server->signal('HUP');
    ok $server->wait_log( qr/reload completed in \S.*: generation 3 is serving$/m, 20 ),
        'the next reload is one'
        or diag $server->log;
    until_true( 20, sub { reloads($server)->{ok} } );
    is reloads($server)->{ok}, 1, 'and is counted';
    $server->stop;
};

subtest 'killed while one of its workers is busy, which does not end' => sub {
    linux_only('who adopts orphans');
    my $server = start(qw(--graceful-timeout 1));
    my $client = $server->connect;
    $client->send( Sirius::Test::Client::request('GET /wait') );
    my %old = map { $_ => 1 } $server->workers;
    ok until_true( 10, sub { busy($server) } ), 'a request runs';
    my ($busy) = busy($server);
    kill KILL => serving($server);
    ok $server->wait_log( qr/generation 2 is serving in place of generation 1/, 20 ),
        'the generation is replaced';
    ok until_true( 20, sub { !-e "/proc/$busy" } ), 'its worker ends after --graceful-timeout';
    is $client->response->status, 502, 'and the client is told';
    like $server->log,
        qr/warn: workers of a generation that has ended did not finish in time and were killed: $busy$/m,
        'the log names it, and nobody else';
    ok until_true(
        10,
        sub {
            !grep { $old{$_} } $server->processes;
        }
        ),
        'nothing is left of the generation';
    $server->stop;
};

subtest 'killed, and those that are to take its place fail' => sub {
    my $server = start();
    spew("$dir/broken");
    kill KILL => serving($server);
    ok $server->wait_log( qr/error: generation 2 exited with status \d+; next attempt in \d+ s$/m, 20 ),
        'the log tells of each'
        or diag $server->log;
    unlink "$dir/broken";
    ok $server->wait_log( qr/generation \d+ is serving in place of generation 1, which was killed/, 20 ),
        'and of the one that served'
        or diag $server->log;
    unlike $server->log, qr/reload/, 'there was no reload';
    is_deeply [ @{ reloads($server) }{qw(ok failed)} ], [ 0, 0 ], 'neither a good one nor a bad one';
    $server->stop;
};

subtest 'killed during a reload' => sub {
    my $server = start();
    my $old    = serving($server);
    spew("$dir/hold");
    $server->signal('HUP');
    $server->wait_log( qr/reload started as generation 2/, 20 );
    kill KILL => $old;
    ok $server->wait_log(
        qr/error: generation 1 was killed by signal 9 \(KILL\); generation 2, which is starting, takes its place$/m,
        20
        ),
        'the one that loads is the next'
        or diag $server->log;
    unlink "$dir/hold";
    ok $server->wait_log( qr/reload completed in \S.*: generation 2 is serving$/m, 20 ), 'the reload is done';
    ok until_true( 20, sub { $server->generations == 2 && $server->workers == 2 } ),
        'one generation is left, and the admin port';
    is $server->ask('GET /')->status, 200, 'it serves';
    unlike $server->log, qr/generation 3/, 'and no other was started';
    $server->stop;
};

subtest 'killed during a reload that fails' => sub {
    my $server = start();
    my $old    = serving($server);
    spew($_) for "$dir/hold", "$dir/broken";
    my $ctl = "$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius ctl --control $dir/control";
    my $pid = open my $said, '-|', "$ctl reload --wait --timeout 25 2>&1" or die $!;
    $server->wait_log( qr/reload started as generation 2/, 20 );
    kill KILL => $old;
    $server->wait_log( qr/generation 1 was killed/, 20 );
    unlink "$dir/hold";
    like join( '', <$said> ), qr/reload failed: generation 2 exited/, 'who has asked for it hears so';
    close $said;
    is $? >> 8, 1, 'with the status of a reload that failed';
    unlink "$dir/broken";
    ok $server->wait_log( qr/generation \d+ is serving in place of generation 1, which was killed/, 20 ),
        'another one serves'
        or diag $server->log;
    is_deeply [ @{ reloads($server) }{qw(ok failed)} ], [ 0, 1 ], 'one reload has failed';
    $server->stop;
};

subtest 'TERM to the generation alone' => sub {
    my $server = start();
    kill TERM => serving($server);
    my $who = qr/TERM from PID $$ \([^)]*\), \S+ \S+/;
    ok $server->wait_log( qr/\[sirius \d+\] generation 1 was terminated by $who$/m, 20 ),
        'the log says by whom'
        or diag $server->log;
    ok $server->wait_log(
        qr/generation 2 is serving in place of generation 1, which was terminated by $who$/m, 20
        ),
        'another one is started'
        or diag $server->log;
    unlike $server->log, qr/error|inside the application/, 'and nothing is wrong with the application';
    $server->stop;
};

subtest 'TERM to the generation before the supervisor' => sub {
    for my $gap ( 0, 0.01, 0.03, 0.1 ) {
        my $server     = start();
        my $generation = serving($server);
        kill TERM => $generation;
        sleep $gap;
        $server->signal('TERM');
        $server->wait_exit;
        unlike $server->log, qr/error|inside the application/, "after $gap s: nothing is wrong";
        like $server->log,   qr/stopped after/,                'it has stopped';
    }
};

subtest 'the supervisor is killed' => sub {
    my $server = start();
    my $log    = sub { $server->log };
    my $client = $server->connect;
    $client->send( request('GET /wait') );
    until_true( 10, sub { $server->connect->ask('GET /')->status == 200 } );
    my $pid = $server->pid;
    kill KILL => $pid;
    my $line
        = qr/\[sirius \d+\] error: the supervisor \(PID $pid\) is gone: finishing the requests, then stopping; start the server again$/m;
    ok until_true( 20, sub { $log->() =~ $line } ), 'the log says so' or diag $log->();
    spew("$dir/go");
    is $client->response->status, 200, 'the request is finished';
    ok until_true( 20, sub { !$server->processes } ), 'all processes end';
    is scalar( () = $log->() =~ /is gone/g ), 1, 'it is told once';
};

done_testing;
