use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# plackup -s Sirius, and without workers

my $plackup = do {
    require Config;
    my ($found)
        = grep {-x} map {"$_/plackup"} grep { defined && length } @Config::Config{qw(sitebin vendorbin bin)},
        split /:/, $ENV{PATH};
    $found;
};
SKIP: {
    skip 'no plackup', 2 if !$plackup;
    my $server = Sirius::Test::Server->start(
        app     => 'sub { [ 200, [], ["$$ $_[0]{SERVER_PROTOCOL}"] ] }',
        command => [ $^X, "-Mblib=$Sirius::Test::Server::ROOT/blib", $plackup, qw(-s Sirius -E deployment) ],
        args    => [qw(--workers 2)],
    );
    like $server->ask('GET /')->body, qr{\A\d+ HTTP/1}, 'plackup -s Sirius';
    $server->stop;
}
my $server = start_server( 'sub { [ 200, [], [$$] ] }', qw(--workers 0) );
my $client = $server->connect;
is $client->ask('GET /')->body, $server->pid, '--workers 0: one process runs the application' for 1 .. 3;
$server->stop;
done_testing;
