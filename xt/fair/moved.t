use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Digest::MD5 qw(md5_hex);
use Test::More;
use Sirius::Test;
use Fair;

# A request that comes while a worker is busy arrives at the other one as it was sent, byte for byte

my ( $server, $busy, $free ) = fair_server( 2, qw(--body-memory 64k) );

srand 7;
my $bytes = join '', map { chr int rand 256 } 1 .. 400_000;

sub chunked {
    my ( $size, $body ) = @_;
    return join '', map( { sprintf "%x\r\n%s\r\n", length, $_ } unpack "(a$size)*", $body ), "0\r\n\r\n";
}

# Sends the pieces while a worker is busy; $want: pairs of a line and a body
sub moves {
    my ( $name, $pieces, @want ) = @_;
    subtest $name => sub {
        my ( $long, $client ) = on_worker( $server, $busy, 2 );
        my @by;
        my $end = hold( $server, $long );
        for my $piece (@$pieces) {
            $client->send($piece);
            select undef, undef, undef, 0.002 if @$pieces > 1;    # so that the edge reads it alone
        }
        while ( my ( $line, $body ) = splice @want, 0, 2 ) {
            my $answer = $client->response( head => scalar $line =~ /\AHEAD / );
            is $answer->status, 200, "$line: 200" or next;
            push @by, $answer->header('X-Worker');
            is $answer->header('X-MD5'), md5_hex($body), 'its body as it was sent';
            my ( $method, $target ) = split / /, $line;
            my ($query) = $target =~ /\?(.*)/;
            is $answer->header('X-Env'),
                  "REQUEST_METHOD=$method REQUEST_URI=$target QUERY_STRING=$query CONTENT_LENGTH="
                . ( $method eq 'POST' ? length $body : '-' )
                . " CONTENT_TYPE=- REMOTE_ADDR=127.0.0.1 REMOTE_PORT=@{[ $client->port ]} HTTP_X_MINE=mine-$query",
                'its environment';
        }
        is $client->ask('GET /')->status, 200, 'the connection goes on';
        ok !length $client->{in}, 'nothing is left over';
        $end->();
        other_than( $long->response->body, @by );
    };
    return;
}

# The long request was answered by either worker, and those that came meanwhile all by the other one
sub other_than {
    my ( $long, @by ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    like $long, qr/\A(?:$busy|$free)\z/, 'the long request gets its own answer';
    is_deeply \@by, [ ( $long == $busy ? $free : $busy ) x @by ],
        'and the others are answered by the other worker';
    return;
}

my $n = 0;

sub echo {
    my ( $method, @more ) = @_;
    $n++;
    return ( "$method /echo?$n", request( "$method /echo?$n", "X-Mine: mine-$n", @more ) );
}

sub post_chunked {
    my ( $size, $body ) = @_;
    my ( $line, $head ) = echo( 'POST', 'Transfer-Encoding: chunked' );
    return ( $line, $head . chunked( $size, $body ) );
}

{
    my ( $line, $request ) = echo('GET');
    moves( 'a GET', [$request], $line => '' );
    ( $line, $request ) = echo('GET');
    moves( 'a GET byte by byte', [ split //, $request ], $line => '' );
    ( $line, $request ) = echo('HEAD');
    moves( 'a HEAD', [$request], $line => '' );
}

{
    my @get = map { [ echo('GET') ] } 1 .. 20;
    moves( 'twenty in one piece', [ join '', map { $_->[1] } @get ], map { $_->[0] => '' } @get );
}

for my $size ( 1, 10_000, 65_536, 65_537, 130_000, 400_000 ) {
    my $body = substr $bytes, 0, $size;
    my ( $line, $request ) = echo( 'POST', \$body );
    moves( "a body of $size bytes", [$request], $line => $body );
    ( $line, $request ) = echo( 'POST', \$body );
    moves(
        "a body of $size bytes in ten pieces",
        [ unpack '(a' . ( 1 + int length($request) / 10 ) . ')*', $request ],
        $line => $body
    );
}

for my $size ( 10_000, 65_536, 300_000 ) {
    my $body = substr $bytes, 50, $size;
    my ( $line, $request ) = post_chunked( 4096, $body );
    moves( "$size bytes in chunks", [$request], $line => $body );
    ( $line, $request ) = post_chunked( 7001, $body );
    moves(
        "$size bytes in chunks, in ten pieces",
        [ unpack '(a' . ( 1 + int length($request) / 10 ) . ')*', $request ],
        $line => $body
    );
}

for my $size ( 5000, 100_000 ) {
    my $body = substr $bytes, 99, $size;
    my @all
        = ( [ echo( 'POST', \$body ) ], [ echo('GET') ], [ post_chunked( 999, $body ) ], [ echo('GET') ] );
    my @want = map { $_->[0] => $_->[0] =~ /POST/ ? $body : '' } @all;
    moves( "bodies of $size bytes and heads, pipelined", [ join '', map { $_->[1] } @all ], @want );
    @all  = ( [ echo( 'POST', \$body ) ], [ echo('GET') ], [ post_chunked( 999, $body ) ], [ echo('GET') ] );
    @want = map { $_->[0] => $_->[0] =~ /POST/ ? $body : '' } @all;
    moves( "the same in pieces of 1,001 bytes", [ unpack '(a1001)*', join '', map { $_->[1] } @all ], @want );
}

subtest 'Expect: 100-continue' => sub {
    my ( $long, $client ) = on_worker( $server, $busy, 2 );
    my $end = hold( $server, $long );
    $client->send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 70000\r\n\r\n");
    is $client->some( 25, 2 ), "HTTP/1.1 100 Continue\r\n\r\n", 'is answered while the worker is busy';
    $client->send( substr $bytes, 0, 70_000 );
    my $answer = $client->response;
    is $answer->header('X-MD5'), md5_hex( substr $bytes, 0, 70_000 ), 'and the body is served';
    $end->();
    other_than( $long->response->body, $answer->header('X-Worker') );
};

subtest 'a bad request is refused while both workers are busy' => sub {
    my ( $long, $also, @client ) = on_worker( $server, $busy, 5 );
    my @end = ( hold( $server, $long ), hold( $server, $also ) );
    for my $client (@client) {
        $client->send( request('GET /%zz') );
        is $client->response->status, 400, 'its status';
    }
    is $_->some( 1, 0 ), '', 'before they have ended' for $long, $also;
    $_->() for @end;
    other_than( $long->response->body );
};

$server->stop;
done_testing;
