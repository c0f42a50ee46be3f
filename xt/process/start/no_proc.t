use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Sirius::Test;

# Where /proc is not mounted, as in some chroots: the server says so, and serves. In a namespace of mounts of
# its own
my ($unshare) = grep { !system "@$_ sh -c 'mount -t tmpfs none /proc' >/dev/null 2>&1" }[qw(unshare --mount)],
    [qw(unshare --mount --user --map-root-user)];
plan skip_all => 'no namespace of mounts can be made here' if !$unshare;

my $APP = "sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['ok'] ] }\n";

sub start {
    return Sirius::Test::Server->start(
        app     => $APP,
        args    => [qw(--workers 2)],
        command => [
            @$unshare,                                qw(sh -c),
            'mount -t tmpfs none /proc && exec "$@"', 'sh',
            $^X,                                      '-Mblib',
            "$Sirius::Test::Server::ROOT/bin/sirius"
        ],
    );
}

subtest 'it serves and reloads' => sub {
    my $server = start();
    like $server->log, qr{^\[sirius \d+\] warn: /proc is not mounted: .*--max-rss.*$}m,
        'the log says what is missing';
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 20 ), 'it reloads' or diag $server->log;
    is $server->ask('GET /')->status, 200, 'and serves';
    $server->stop;
};

subtest 'the end of its supervisor is its end' => sub {
    my $server = start();
    my $client = $server->connect;
    is $client->ask('GET /')->status, 200, 'it serves';
    my @pids = grep { $_ != $server->pid } $server->processes;
    $server->signal('KILL');
    ok until_true(
        20,
        sub {
            !grep { kill 0 => $_ } @pids;
        }
        ),
        'no process is left';
};

done_testing;
