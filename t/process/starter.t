use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use File::Temp;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# Under start_server (Server::Starter): HUP replaces the server, no request fails

BEGIN { skip_without('Server::Starter') }
plan skip_all => 'start_server is not in PATH' if !program('start_server');

my $dir    = File::Temp->newdir;
my $port   = free_port();
my $server = Sirius::Test::Server->start(
    app     => "sub { [ 200, [], [\$ENV{SERVER_STARTER_GENERATION}] ] }\n",
    args    => [ '--listen', '127.0.0.1:1', qw(--workers 2) ],
    command => Sirius::Test::Server->below_starter( "127.0.0.1:$port", "$dir/sock" ),
    ready   => 2,
);

is_deeply [ sort $server->listeners ], [ "127.0.0.1:$port", "unix:$dir/sock" ],
    'both of its sockets are served';
is $server->connect( to => $_ )->ask('GET /')->body, 1, "generation 1 on $_" for $server->listeners;

subtest 'HUP' => sub {
    my ( %status, %generation );
    my $client = $server->connect;
    $server->signal('HUP');
    my $until = time + 15;
    my $since;
    while ( time < $until && ( !$since || time < $since + 1 ) ) {
        for my $answer ( $client->ask('GET /'), $server->ask('GET /') ) {
            $status{ $answer->status }++;
            $generation{ $answer->body }++;
            $since ||= time            if $answer->body eq '2';
            $client = $server->connect if $answer->closes;
        }
        sleep 0.001;
    }
    is_deeply [ keys %status ],          [200],    'no request failed' or diag explain \%status;
    is_deeply [ sort keys %generation ], [ 1, 2 ], 'served by the old and the new';
    is $server->ask('GET /')->body, 2, 'in the end by the new';
};

$server->stop;
done_testing;
