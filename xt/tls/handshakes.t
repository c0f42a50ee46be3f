# Handshakes that are slow, broken off or many: others do not wait for them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Socket::SSL qw(SSL_VERIFY_NONE);
use Test::More;
use Time::HiRes qw(time);
use Sirius::Test;
use Sirius::Test::Server;
use Sirius::Test::Wire;

sub start {
    my $seconds = shift;
    return start_server(
        "sub { [ 200, [], ['hello'] ] }\n",
        '--listen' => '127.0.0.1:0,tls',
        qw(--tls-self-signed --workers 1 --tls-handshake-timeout), $seconds
    );
}
our $server = start(1);

sub get {
    my $socket = IO::Socket::SSL->new(
        PeerAddr        => $server->address,
        SSL_verify_mode => SSL_VERIFY_NONE,
        Timeout         => 10,
        @_
    ) or return "no: $IO::Socket::SSL::SSL_ERROR";
    print {$socket} "GET / HTTP/1.0\r\n\r\n";
    return join( '', readline $socket ) =~ /(hello)\z/ ? $1 : 'cut';
}

# The first flight of a client, as bytes
sub hello {
    my $listener = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen   => 1 ) or die "listen: $!";
    my $client   = IO::Socket::INET->new( PeerAddr  => '127.0.0.1', PeerPort => $listener->sockport )
        or die "connect: $!";
    my $bytes;
    $client->blocking(0);
    IO::Socket::SSL->start_SSL( $client, SSL_startHandshake => 0, SSL_verify_mode => SSL_VERIFY_NONE )
        ->connect_SSL;
    $listener->accept->sysread( $bytes, 65_536 );
    return $bytes;
}
my $hello = hello();
cmp_ok length $hello, '>', 100, 'a client hello';

subtest 'one that does not go on' => sub {
    for my $bytes ( '', substr( $hello, 0, 1 ), substr( $hello, 0, 50 ), $hello ) {
        my $client = $server->connect;
        $client->send($bytes) if length $bytes;
        $client->some( 1, 0.2 );    # what the server says of its own
        my $start = time;
        1 while $client->_read( time + 8 );
        like $client->{end}, qr/\A(?:eof|reset)\z/, length($bytes) . ' bytes: is closed by the limit';
    }
    is get(), 'hello', 'the server goes on';
};

subtest 'in pieces' => sub {
    my $client = $server->connect;
    for my $byte ( split //, $hello ) { $client->send($byte) }
    like $client->some( 100, 5 ), qr/\A\x16\x03/, 'a hello of many segments is answered';
};

subtest 'many at a time' => sub {
    local $server = start(60);    # a busy machine may need more than a second for all of them
    my @silent = map { $server->connect } 1 .. 1100;    # more than there may be
    my @asking = map { my $client = $server->connect; $client->send($hello); $client } 1 .. 200;
    is get(),                                                          'hello', 'another client is served';
    is scalar( grep { $_->some( 100, 10 ) !~ /\A\x16\x03/ } @asking ), 0, 'all of the others get an answer';
    $server->stop;
};
is get(), 'hello', 'and afterwards';

# The application stops the edge, so that what it had done by then can be counted. A machine that is busy may
# let it do all before the test goes on, so there are several attempts.
subtest 'in a flood' => sub {
    my $stops
        = start_server(
        "sub { kill STOP => \$1 if \$_[0]{PATH_INFO} =~ /(\\d+)/; [ 200, [], ['stopped'] ] }\n",
        '--listen', '127.0.0.1:0,tls', qw(--tls-self-signed --workers 1 --edges 1) );
    my ($edge) = $stops->edges;
    my $state  = sub { Sirius::Test::Server::slurp("/proc/$edge/stat") =~ /\) (\S)/ ? $1 : '' };
    my $least  = 200;
    for ( 1 .. 10 ) {
        last if $least < 150;
        my $wire  = Sirius::Test::Wire->new( $stops->address, last => 1 );
        my @flood = map { $stops->connect } 1 .. 200;
        kill STOP => $edge;
        until_true( 10, sub { $state->() eq 'T' } );
        $_->send($hello) for @flood;
        kill CONT => $edge;
        $flood[60]->some( 1, 10 );
        $wire->put( $wire->{held}, $wire->seal( request("GET /$edge") ) );
        ok until_true( 20, sub { $state->() eq 'T' } ), 'one that completes its handshake is served';
        my $answered = grep { length $_->some( 1, 0 ) } @flood;
        $least = $answered if $answered < $least;
        kill CONT => $edge;
        is $wire->response->body, 'stopped', 'and answered';
    }
    cmp_ok $least, '<', 150, 'before all of 200 that began later';
    $stops->stop;
};

subtest 'broken off' => sub {
    for my $length ( map { $_ * 7 } 1 .. 40 ) {
        my $client = $server->connect;
        $client->send( substr $hello, 0, $length );
        $length % 2 ? $client->abort : $client->close;
    }
    is get(), 'hello', 'the server goes on';
};

$server->stop;
done_testing;
