use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Faults;

# A stop while workers are missing: a request that waits is served if there can be a worker, else it gets 503

my $APP = <<'APP';
use Time::HiRes qw(sleep time);
sub {
    my $path = $_[0]{PATH_INFO};
    if ( $path =~ m{/sleep/([\d.]+)} ) {
        my $until = time + $1;
        sleep 0.05 while time < $until;
    }
    if ( $path =~ m{die\z} ) { kill SEGV => $$; sleep 5 }
    return [ 200, [], ['ok'] ];
}
APP

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

# A server of which no worker is left
sub deserted {
    my ( $workers, @args ) = @_;
    my $server = start_server( $APP, '--workers', $workers, @args );
    $server->{may_crash} = 1;
    until_true( 20, sub { $server->workers == $workers } ) or die $server->log;
    my @clients = map { $server->connect } 1 .. $workers;
    $_->send( request('GET /sleep/0.3/die') ) for @clients;
    is $_->response->status, 502, 'a worker dies' for @clients;
    return $server;
}

my %CASE = (
    'after a crash'            => [ 1, '--err-respawn-interval', 600 ],
    'all of several'           => [ 2, '--err-respawn-interval', 600 ],
    'between starts'           => [ 2, '--spawn-interval',       4 ],
    'between starts, only one' => [ 1, '--spawn-interval',       600 ],
);
for my $case ( sort keys %CASE ) {
    subtest "in the pause $case" => sub {
        my $server = deserted( @{ $CASE{$case} } );
        my @waits  = map { $server->connect } 1 .. 3;
        $_->send( request('GET /') ) for @waits;
        $server->wait_open(3);
        sleep 0.2;
        $server->signal('TERM');
        is $_->response( patience => 15 )->body, 'ok',     'who has waited is served' for @waits;
        is $server->wait_exit(15),               'exit 0', 'the server ends';
        unlike $server->log, qr/without a worker|did not finish/, 'with nobody left over';
        $server->kill_hard;
    };
}

subtest 'nobody waits' => sub {
    my $server = deserted( 1, '--err-respawn-interval', 600 );
    ok $server->wait_log(qr/next attempt in 600 s/), 'the pause has begun';
    my $began = time;
    $server->signal('TERM');
    is $server->wait_exit(15), 'exit 0', 'it ends';
    cmp_ok time - $began, '<', 600, 'without the pause';
    $server->kill_hard;
};

for my $signal (qw(TERM INT)) {
    subtest "$signal, and no worker in time" => sub {
        my $log    = "$dir/access.$signal";
        my $server = start_server( $APP, qw(--workers 1 --graceful-timeout 1 --access-log), $log );
        my $runs   = $server->connect;
        $runs->send( request('GET /sleep/20') );
        $server->wait_busy( 1, qr{/sleep/20} );
        my $waits = $server->connect;
        $waits->send( request('GET /waits') );
        sleep 0.3;
        $server->signal($signal);
        is $waits->response( patience => 15 )->status, 503,      'who has waited gets 503';
        is $server->wait_exit(15),                     'exit 0', 'the server ends';
        like Sirius::Test::Server::slurp($log), qr{"GET /waits HTTP/1.1" 503 }, 'the log has a line of it';
        $server->kill_hard;
    };
}

subtest 'no worker can be forked' => sub {
    my $faults = Sirius::Test::Faults->new;
    for my $again ( 1, 0 ) {
        my $log    = "$dir/access.fork.$again";
        my $server = $faults->start(
            app  => $APP,
            args => [
                qw(--workers 1 --err-respawn-interval 0.3 --graceful-timeout), $again ? 20 : 3,
                '--access-log',                                                $log
            ],
        );
        $server->{may_crash} = 1;
        my $dies = $server->connect;
        $dies->send( request('GET /sleep/1/die') );
        $server->wait_busy( 1, qr{die} );
        my $waits = $server->connect;
        $waits->send( request('GET /waits') );
        sleep 0.2;
        $faults->set( fork => 1 );
        $server->signal('TERM');
        $server->wait_log(qr/stopping: TERM/);
        is $dies->response( patience => 15 )->status, 502, 'the worker dies during the stop';
        ok $server->wait_log( qr/cannot fork a worker: .* next attempt in/, 15 ), 'and has no successor yet';
        $faults->clear if $again;
        is $waits->response( patience => 20 )->status, $again ? 200 : 503,
            $again ? 'but later' : 'nor later: the request that has waited gets 503'
            or diag $server->log;
        is $server->wait_exit(20), 'exit 0', 'the server ends';
        like Sirius::Test::Server::slurp($log), qr{"GET /waits HTTP/1.1" (?:200|503) },
            'the log has a line of it';
        $faults->clear;
        $server->kill_hard;
    }
};

done_testing;
