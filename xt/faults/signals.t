use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Faults;
use Traffic;

# A thousand signals a second that mean nothing to the server, to all its processes: nothing is lost for them.
# Those that mean something have xt/process/workers/signals.t. Calls that are interrupted far more often than
# signals can are added.

my $faults = Sirius::Test::Faults->new;
my $server = $faults->start( app => $APP, args => [qw(--workers 2)] );
is_whole( $server, 'without a signal' );

# A child that sends them until it is killed; what the application of a worker has a handler for interrupts
# its calls
sub storm {
    my @pid = @_;
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    return $pid    if $pid;
    my ( $sent, $start ) = ( 0, time );
    while ( $sent < 60_000 ) {    # a minute, should nobody kill it
        for my $name (qw(CHLD CONT URG WINCH)) { kill $name => @pid; $sent += @pid }
        my $ahead = $start + $sent / 1000 - time;
        sleep $ahead if $ahead > 0;
    }
    POSIX::_exit(0);
}

until_true( 20, sub { $server->workers == 2 } );
my @worker = $server->workers;
my @edge   = $server->edges;
my $storm  = storm( $server->pid, $server->generations, @edge, @worker );
END { kill KILL => $storm if $storm }

sub caught { return $server->ask('GET /caught')->body }

subtest 'while they come' => sub {
    my $load = traffic( $server, clients => 2 );
    is_whole( $server, "round $_" ) for 1 .. 3;
    $faults->set( eintr => 0.2 );
    is_whole( $server, 'and with calls that are interrupted anyway' );
    $faults->clear;
    is_deeply [ keys %{ $load->stop } ], ['whole'], 'what others have asked for';
    cmp_ok $faults->injected('eintr'), '>', 20, 'they were interrupted';
    ok until_true( 20, sub { caught() > 50 } ), 'the application has seen more than fifty';
};

subtest 'a stream to a client that reads slowly' => sub {
    my $client = $server->connect( rcvbuf => 4096 );
    $client->send( request('GET /stream/1500000') );
    sleep 0.5;
    my $answer = $client->response( patience => 60 );
    is $answer->status,      200,       'it waits through hundreds of them';
    is length $answer->body, 1_500_000, 'and is whole';
};

subtest 'a handler that dies ends the wait for a client that does not read' => sub {
    my $client = $server->connect( rcvbuf => 4096 );
    $client->send( request('GET /late') );
    ok $server->wait_log( qr/^was late$/m, 20 ), 'the application goes on, its writer is over';
    my $bytes = $client->rest;
    unlike $bytes, qr/in between|more/, 'nothing is between the bytes of a write';
    unlike $bytes, qr/\r\n0\r\n\r\n\z/, 'and the client sees that it is cut';
};

subtest 'nobody was harmed' => sub {
    is_deeply [ $server->edges, $server->workers ], [ @edge, @worker ], 'the same workers';
    kill KILL => $storm;
    waitpid $storm, 0;
    undef $storm;
    my ( $cpu, $sleeps )
        = Sirius::Test::Faults->load_of( sub { sleep 0.6 }, $server->pid, $server->generations, @edge,
        @worker );
    cmp_ok $cpu, '<', 0.08, "all is calm when it is over: $cpu s of CPU, $sleeps sleeps";
    is_whole( $server, 'and served' );
};

$server->stop;
done_testing;
