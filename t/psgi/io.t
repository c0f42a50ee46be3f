use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# psgix.io: the connection itself, for applications that speak another protocol

my $server = start_server( <<'APP', qw(--workers 2) );
use IO::Handle;
use Socket ();
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return [ 200, [], ['plain'] ] if $path eq '/';
    my $io = $env->{'psgix.io'};
    return [ 200, [], [ ref($io) && fileno($io) > 2 ? 'a handle' : 'none' ] ] if $path eq '/look';
    if ( $path eq '/peer' ) {
        my $name = getpeername $io;
        return [ 200, [], [ ( Socket::unpack_sockaddr_in($name) )[0] == $env->{REMOTE_PORT} ? 'the client' : 'somebody else' ] ];
    }
    return sub { read $io, my $early, 5; syswrite $io, "got $early"; close $io } if $path eq '/read';
    return sub {
        my $respond = shift;
        $io->blocking(1);
        syswrite $io, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
        while ( sysread $io, my $bytes, 1024 ) {
            last if $bytes =~ /quit/;
            syswrite $io, "<$bytes>";
        }
        close $io;
    };
}
APP

subtest 'only looked at' => sub {
    my $client = $server->connect;
    is $client->ask('GET /')->body, 'plain', 'without it the connection is kept';
    my $answer = $client->ask('GET /look');
    is $answer->body, 'a handle', 'it is a handle';
    ok !$answer->closes, 'who has only looked at it does not lose the connection';
    is $client->ask('GET /look')->body, 'a handle',   'again, on the same connection';
    is $server->ask('GET /peer')->body, 'the client', 'it is the connection of the client';
};

subtest 'bytes that came with the request' => sub {
    my $client = $server->connect;
    $client->send( request( 'GET /read', 'Connection: Upgrade', 'Upgrade: echo' ) . 'early' );
    is $client->rest(5), 'got early', 'are the first to be read';
};

subtest 'taken over' => sub {
    my $client = $server->connect;
    $client->send( request( 'GET /take', 'Connection: Upgrade', 'Upgrade: echo' ) );
    like $client->some( 1, 5 ), qr/\AHTTP\/1\.1 101 Switching Protocols\r\n/, 'status 101';
    for my $word (qw(one two three)) {
        $client->send($word);
        is $client->some( length "<$word>", 5 ), "<$word>", $word;
    }
    is $server->ask('GET /')->body, 'plain', 'others are served meanwhile';
    $client->send('quit');
    is $client->end(5), 'eof', 'nothing of the server follows';
};

subtest 'the client goes away' => sub {
    for ( 1 .. 3 ) {
        my $client = $server->connect;
        $client->send( request( 'GET /take', 'Connection: Upgrade', 'Upgrade: echo' ) );
        $client->some( 1, 5 );
        $client->close;
    }
    is $server->ask('GET /')->status, 200, 'the workers are free again' for 1 .. 4;
};

subtest 'no descriptor is left' => sub {
    my @worker = $server->workers;
    my $count  = sub { my $n = 0; $n += () = Sirius::Test::Server->descriptors($_) for @worker; $n };
    my $before = $count->();
    $server->ask('GET /look') for 1 .. 50;
    ok until_true( 3, sub { $count->() <= $before } ), 'after fifty looks'
        or diag "$before before, ", $count->(), ' after';
};

$server->stop;
done_testing;
