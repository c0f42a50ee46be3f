use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# A close after an answer: FIN, then what still comes is read and dropped, so that no reset eats the answer

my $server = start_server( <<'APP', qw(--workers 1 --max-body 1000) );
sub {
    select undef, undef, undef, 0.1 if $_[0]{PATH_INFO} eq '/small';
    return [ 200, [], ['x'] ] if $_[0]{PATH_INFO} eq '/small';
    return [ 200, [ Connection => 'close' ], [ 'x' x 100_000 ] ];
}
APP

# Reads nothing until all was sent: the answer must have survived
sub late_reader {
    my ( $head, $more ) = @_;
    my $client = $server->connect;
    $client->send($head);
    select undef, undef, undef, 0.02;
    for ( 1 .. 50 ) { syswrite $client->socket, $more; select undef, undef, undef, 0.001 }
    my $answer = $client->response;
    return $answer->status . ' ' . $client->end(10);
}

subtest 'the answer is read after more was sent' => sub {
    my %case = (
        'a refused head'        => [ "BAD\r\n\r\n",                                                   400 ],
        'a body over the limit' => [ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n", 413 ],
        'a chunk that is none'  =>
            [ "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", 400 ],
        'an unknown expectation' =>
            [ "POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 500\r\n\r\n", 417 ],
        'a request that asks for it' => [ "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200 ],
        'an application that closes' => [ "GET / HTTP/1.1\r\nHost: a\r\n\r\n",                      200 ],
    );
    delete @case{ 'an application that closes', 'an unknown expectation' }
        if $ENV{SIRIUS_TEST_H2};    # which end no connection
    for my $name ( sort keys %case ) {
        my ( $head, $status ) = @{ $case{$name} };
        next if left_out( $name, $head );
        local $SIG{PIPE} = 'IGNORE';
        my %result;
        $result{ late_reader( $head, 'x' x 1000 ) }++ for 1 .. 10;
        is_deeply \%result, { "$status eof" => 10 }, $name;
    }
};

# Some clients do so behind a body (RFC 9112 2.2)
subtest 'the answer is read although more came while the application was busy' => sub {
    http1_only('a client says no close');
    for my $head (
        "GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /small HTTP/1.0\r\n\r\n",
        "POST /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nb"
        )
    {
        for my $more ( "\r\n", 'x', "GET / HTTP/1.1\r\nHost: a\r\n\r\n" ) {
            my $client = $server->connect;
            $client->send($head);
            select undef, undef, undef, 0.03;
            $client->send($more);
            is $client->response->status . ' ' . $client->end(10), '200 eof', sprintf '%.4s, then %d bytes',
                $head,
                length $more;
        }
    }
};

subtest 'lingering has an end' => sub {
    http1_only('a client ends the connection');
    my $client = $server->connect;
    $client->send("BAD\r\n\r\n");
    is $client->response->status, 400, 'refused';
    local $SIG{PIPE} = 'IGNORE';
    my $ended
        = until_true( 40, sub { !defined syswrite( $client->socket, 'x' ) && $!{EPIPE} || $!{ECONNRESET} } );
    ok $ended, 'the server does not read for ever';
};

subtest 'the client that hangs up first leaves nothing behind' => sub {
    my ($pid) = $server->owners;
    my $before = () = Sirius::Test::Server->descriptors($pid);
    for my $kind (qw(abort close)) {
        for ( 1 .. 50 ) {
            my $client = $server->connect;
            $client->send( request('GET /%zz') );
            $client->$kind;
        }
    }
    my $after = 0;
    ok until_true( 10, sub { $after = () = Sirius::Test::Server->descriptors($pid); $after <= $before } ),
        'no descriptor'
        or diag "$before before, $after after";
};

$server->stop;
done_testing;
