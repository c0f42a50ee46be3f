use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
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
    http1_only('there is no Connection (RFC 9113 8.2.2)');
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
    http1_only('HTTP/1.0');
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
    my $answer = $client->ask('GET /');
    is $answer->status, 200, 'an answer';
    ok $answer->closes, 'it says close' if !$ENV{SIRIUS_TEST_H2};    # GOAWAY comes behind it
    is $client->end, 'eof', 'and does';
    $off->stop;
};

# RFC 9112 2.2: some clients send an empty line behind a body
subtest 'an empty line behind a request is no request' => sub {
    http1_only('there are no lines');
    my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $two = start_server(
        corpus_file('echo.psgi'),
        qw(--workers 1 --keepalive-timeout 1 --header-timeout 1 --access-log),
        "$dir/log", '--access-log-format', '%m %s'
    );
    my @first = (
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na",
        "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    );
    my $number = 0;
    for my $first (@first) {
        my ($what) = $first =~ /\A(.*?)\r\n\r\n/s;
        $what =~ s/\r\n/ /g;
        for my $blank ( "\r", "\r\n" ) {
            for my $later ( 0, 1 ) {
                my @client = map { $two->connect } 1 .. 2;
                $_->send( $later ? $first : $first . $blank ) for @client;
                is_deeply [ map { $_->response->status } @client ], [ 200, 200 ], "$what: answered";
                if ( $later && $what !~ /close/ ) { $_->send($blank) for @client }
                $client[1]->finish if $what !~ /close/;
                is_deeply [ map { $_->end } @client ], [qw(eof eof)],
                    'no other answer at its time limit, or end';
                $number += 2;
            }
        }
        next if $what =~ /close/;
        my $client = $two->connect;
        $client->send( $first . "\r\n" . $first );
        is_deeply [ map { $_->status } $client->responses(2) ], [ 200, 200 ], 'the next request is served';
        $client->send("\r");
        $client->send( "\n" . $first );
        is $client->response->status, 200, 'and in pieces as well';
        $client->close;
        $number += 3;
    }
    for my $nothing ( "\r", "\r\n" ) {
        my @client = map { $two->connect } 1 .. 2;
        $_->send($nothing) for @client;
        $client[1]->finish;
        is_deeply [ map { $_->end } @client ], [qw(eof eof)], 'nor is it one on a new connection';
    }
    $two->stop;
    my @line = split /\n/, Sirius::Test::Server::slurp("$dir/log");
    is scalar @line, $number, 'each request has its line, and nothing else has';
    is_deeply [ grep { !/ 200\z/ } @line ], [], 'of 200';
};

$server->stop;
done_testing;
