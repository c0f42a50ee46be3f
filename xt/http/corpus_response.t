use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# R01 to R06 of the framing corpus: whatever the application returns, the next response is not confused with
# it

my $server = start_server( <<'APP', qw(--workers 1) );
my %answer = (
    '/after'   => sub { [ 200, [ 'X-Path' => '/after' ], ['after'] ] },
    '/r01'     => sub { [ 200, [], [''] ] },
    '/r01b'    => sub { [ 200, [], [ '', 'a', '', 'b', '' ] ] },
    '/r01c'    => sub { sub { my $w = shift->( [ 200, [] ] ); $w->write($_) for '', 'a', '', '0'; $w->close } },
    '/r02/200' => sub { [ 200, [], ['body'] ] },
    '/r02/204' => sub { [ 204, [], ['body'] ] },
    '/r02/304' => sub { [ 304, [], ['body'] ] },
    '/r03/te'     => sub { [ 200, [ 'Transfer-Encoding' => 'chunked' ], ['body'] ] },
    '/r03/both'   => sub { [ 200, [ 'Content-Length' => 4, 'Transfer-Encoding' => 'chunked' ], ['body'] ] },
    '/r03/twice'  => sub { [ 200, [ 'Content-Length' => 4, 'content-length' => 4 ], ['body'] ] },
    '/r03/differ' => sub { [ 200, [ 'Content-Length' => 4, 'Content-Length' => 5 ], ['body'] ] },
    '/r03/list'   => sub { [ 200, [ 'Content-Length' => '4, 4' ], ['body'] ] },
    '/r03/word'   => sub { [ 200, [ 'Content-Length' => 'four' ], ['body'] ] },
    '/r03/connection' => sub { [ 200, [ Connection => 'keep-alive', 'Keep-Alive' => 'timeout=5' ], ['body'] ] },
    '/r03/close'      => sub { [ 200, [ Connection => 'close' ], ['body'] ] },
    '/r04/short'  => sub { [ 200, [ 'Content-Length' => 10 ], ['12345'] ] },
    '/r04/long'   => sub { [ 200, [ 'Content-Length' => 10 ], ['123456789012345'] ] },
    '/r04/writer' => sub { sub { my $w = shift->( [ 200, [ 'Content-Length' => 10 ] ] ); $w->write('12345'); $w->close } },
    '/r04/wlong'  => sub { sub { my $w = shift->( [ 200, [ 'Content-Length' => 10 ] ] ); $w->write('123456789012345'); $w->close } },
    '/r05/crlf'   => sub { [ 200, [ X => "a\r\nSet-Cookie: b" ], ['body'] ] },
    '/r05/lf'     => sub { [ 200, [ X => "a\nSet-Cookie: b" ], ['body'] ] },
    '/r05/name'   => sub { [ 200, [ 'X y' => 'a' ], ['body'] ] },
    '/r05/colon'  => sub { [ 200, [ 'X:' => 'a' ], ['body'] ] },
    '/r05/nul'    => sub { [ 200, [ X => "a\0b" ], ['body'] ] },
    '/r05/empty'  => sub { [ 200, [ '' => 'a' ], ['body'] ] },
    '/r06'     => sub { sub { my $w = shift->( [ 200, [] ] ); $w->write('some'); die "in the middle\n" } },
);
sub { $answer{ $_[0]{PATH_INFO} }->() }
APP

# What the client gets: the result of the conversation, then the body
sub result {
    my ( $line, %job ) = @_;
    my $job = { pieces => [ request($line) ], head => scalar $line =~ /\AHEAD/, %job };
    Sirius::Test::Swarm->run( $server->address, [$job] );
    return join ': ', $job->{result}, map { $_->body } grep { !$_->header('X-Path') } @{ $job->{responses} };
}

subtest 'R01 empty elements are no last chunk' => sub {
    is result('GET /r01'),  '200 after: ',   'one';
    is result('GET /r01b'), '200 after: ab', 'between others';
    is result('GET /r01c'), '200 after: a0', 'from the writer';
};

subtest 'R02 no byte of a body where none may be' => sub {
    is result('HEAD /r02/200'), '200 after: ', 'HEAD';
    is result('GET /r02/204'),  '204 after: ', 'status 204';
    is result('GET /r02/304'),  '304 after: ', 'status 304';
};

subtest 'R03 one framing, the one of the server' => sub {
    is result("GET /r03/$_"), '200 after: body', $_ for qw(te both twice connection);
    like result("GET /r03/$_"), qr/\A500 (?:after|closed): (?!body)/, $_ for qw(differ list word);
    is result('GET /r03/close'), $ENV{SIRIUS_TEST_H2} ? '200 after: body' : '200 closed: body',
        'close is honoured, but never ends the connection of other streams';
    my $response = $server->ask('GET /r03/connection');
    is $response->header('Keep-Alive'), undef, 'Keep-Alive is not passed on';
    is $response->header('Connection'), undef, 'nor is Connection';
};

subtest 'R04 a wrong Content-Length' => sub {
    is result("GET $_"), 'cut closed', "$_: the client sees that something is missing"
        for qw(/r04/short /r04/writer);
    like result("GET $_"), qr/\A200 (?:after|closed): 1234567890\z/, "$_: the rest is cut off"
        for qw(/r04/long /r04/wlong);
};

subtest 'R05 no field can be injected' => sub {
    for my $path (qw(crlf lf name colon nul empty)) {
        my $answer = $server->ask("GET /r05/$path");
        is $answer->status,               500,   $path;
        is $answer->header('Set-Cookie'), undef, 'nothing injected';
        unlike $answer->body, qr/body/, 'and no body';
    }
};

subtest 'R06 an application that dies in the middle' => sub {
    is result('GET /r06'), 'cut closed', 'the client sees that something is missing';
    ok $server->wait_log(qr/in the middle/), 'logged';
};

$server->stop;
done_testing;
