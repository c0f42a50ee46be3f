use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# Which connections are kept: RFC 9112 9.3

my $server = start_server( corpus_file('echo.psgi'), qw(--workers 1) );

# Two requests on one connection: what the first answer says, and what becomes of the second
sub twice {
    my ( $line, @field ) = @_;
    my $client = $server->connect;
    my $first  = $client->ask( $line, @field );
    $client->send( request('GET /second') );
    my $second = $client->response( patience => 5 );
    my $said   = defined $first->header('Connection') ? $first->header('Connection') : '-';
    return join ' ', $first->status, $said, $second->status;
}

subtest 'HTTP/1.1 is kept unless one side says close' => sub {
    is twice('GET /'), '200 - 200', 'nothing said';
    is twice( 'GET /', 'Connection: keep-alive' ), '200 - 200', 'keep-alive';
    is twice( 'GET /', 'Connection: TE' ),         '200 - 200', 'another option';
    like twice( 'GET /', "Connection: $_" ), qr/\A200 close (?:eof|reset)\z/, $_
        for 'close', 'Close', 'keep-alive, close', 'close,keep-alive', 'TE,close', ' close ';
    is twice( 'GET /', 'Connection: closed' ),    '200 - 200', 'a longer word is not close';
    is twice( 'GET /', 'Keep-Alive: timeout=5' ), '200 - 200', 'Keep-Alive itself says nothing';
    is twice('HEAD /'), '200 - 200', 'after HEAD';
};

subtest 'HTTP/1.0 is closed unless the client asks for more' => sub {
    like twice('GET / HTTP/1.0'), qr/\A200 close (?:eof|reset)\z/, 'nothing said';
    is twice( 'GET / HTTP/1.0', 'Connection: keep-alive' ), '200 keep-alive 200', 'keep-alive';
    is twice( 'GET / HTTP/1.0', 'Connection: Keep-Alive' ), '200 keep-alive 200', 'Keep-Alive';
    like twice( 'GET / HTTP/1.0', 'Connection: keep-alive, close' ), qr/\A200 close (?:eof|reset)\z/,
        'close wins';
    my $client = $server->connect;
    is $client->ask( 'HEAD / HTTP/1.0', 'Connection: keep-alive' )->status, 200,   'HEAD';
    is $client->ask('GET / HTTP/1.0')->status,                              200,   'the next';
    is $client->end,                                                        'eof', 'closed by FIN';
};

subtest 'a thousand requests on one connection' => sub {
    my $client = $server->connect;
    my %status;
    $status{ $client->ask("GET /$_")->body }++ for 1 .. 1000;
    is scalar( keys %status ), 1000, 'a thousand answers, each its own';
};

subtest '--max-keepalive-reqs: the last answer says close' => sub {
    my $limited = start_server( corpus_file('echo.psgi'), qw(--workers 1 --max-keepalive-reqs 3) );
    my $client  = $limited->connect;
    my @answer  = map { $client->ask('GET /') } 1 .. 3;
    is join( ' ', map { $_->status } @answer ),         '200 200 200', 'three answers';
    is join( ' ', map { $_->closes ? 1 : 0 } @answer ), '0 0 1',       'the third says close';
    is $client->end, 'eof', 'and it is';
    $client = $limited->connect;
    $client->send( request('GET /') x 5 );
    is join( ' ', map { $_->status } $client->responses( 4, patience => 3 ) ), '200 200 200 eof',
        'pipelined as well';
    $limited->stop;
};

subtest 'keep-alive turned off' => sub {
    my $off    = start_server( corpus_file('echo.psgi'), qw(--workers 1 --keepalive-timeout 0) );
    my $client = $off->connect;
    ok $client->ask('GET /')->closes, 'it says close';
    is $client->end, 'eof', 'and does';
    $off->stop;
};

$server->stop;
done_testing;
