use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Live;

# Sirius::WebSocket and event streams with --hold: the same application, and the same tests, as behind Pushpin

my $dir    = File::Temp->newdir;
my $server = start_server( Sirius::Test::Live->app, qw(--workers 2 --hold --control), "$dir/control" );
my $live   = Sirius::Test::Live->new(
    address => $server->address,
    server  => $server,
    control => "$dir/control",
);
$live->streams;
$live->websockets;
$server->stop;

# Sirius::WebSocket believes what this server lets pass. A proxy passes on what its clients send
for my $options ( [], [ '--trust-proxy', '127.0.0.0/8,unix' ], [qw(--websocket off)],
    [qw(--websocket /other)] )
{
    subtest "events that a client has written, with --hold @$options" => sub {
        my $other = start_server( Sirius::Test::Live->app, qw(--workers 1 --hold), @$options );
        for my $type (
            'application/websocket-events',
            'Application/WebSocket-Events;a=b',
            "application/websocket-events\t"
            )
        {
            my $body   = "OPEN\r\nTEXT 3\r\nwho\r\n";
            my @fields = (
                "Content-Type: $type",
                'Connection-Id: 1',
                'Meta-User: admin',
                'X-Forwarded-For: 10.0.0.1'
            );
            my $answer = $other->ask( 'POST /chat?Ann', @fields, \$body );
            is $answer->status, 400, $type;
            unlike $answer->body, qr/admin|Ann/, 'no handler is asked';
        }
        $other->stop;
    };
}
done_testing;
