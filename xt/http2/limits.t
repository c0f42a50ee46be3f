use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::HTTP2;

# What a client may not do (RFC 9113), and what it may not do for long

my $APP = <<'APP';
sub {
    my $env = shift;
    my $n   = $env->{QUERY_STRING} || 0;
    1 while $env->{'psgi.input'}->read( my $body, 65_536 );
    select undef, undef, undef, 2 if $env->{PATH_INFO} eq '/slow';
    [ 200, [], [ 'x' x $n ] ];
}
APP
my $server = start_server(
    $APP,
    @Sirius::Test::HTTP2::LISTEN,
    qw(--workers 2 --max-header-fields 20 --max-header-bytes 4096 --max-request-line 1000
        --header-timeout 1 --write-timeout 1 --keepalive-timeout 1 --body-timeout 1 --max-body 100000)
);

sub client  { return Sirius::Test::HTTP2->new( $server->address, @_ ) }
sub greeted { return client(@_)->greet }

# The error of the connection that these frames bring
sub goaway {
    my @frames = @_;
    my $client = greeted();
    $client->send( $client->make(@$_) ) for @frames;
    my $error = $client->await('GOAWAY')->{error};
    return $client->ends ? $error : "$error, and no end";
}

subtest 'errors of the connection' => sub {
    my $raw = client();
    my $get = $raw->fields( ':method' => 'GET', ':path' => '/', ':scheme' => 'http', ':authority' => 'a' );
    is goaway( [ 'DATA',    0, 1, 'x' ] ),  'PROTOCOL_ERROR', 'DATA of a stream that is idle';
    is goaway( [ 'HEADERS', 5, 2, $get ] ), 'PROTOCOL_ERROR', 'an even number';
    is goaway( [ 'HEADERS', 5, 5, $get ], [ 'HEADERS', 5, 3, $get ] ), 'PROTOCOL_ERROR',
        'a number that goes back';
    is goaway( [ 'HEADERS', 5, 0, $get ] ), 'PROTOCOL_ERROR', 'a request on the connection itself';
    is goaway( [ 'HEADERS', 5, 1, "\xff\xff\xff\xff\xff\xff" ] ), 'COMPRESSION_ERROR',
        'fields that cannot be decoded';
    is goaway( [ 'PING',     0, 0, 'x' ] ), 'FRAME_SIZE_ERROR', 'a PING of one byte';
    is goaway( [ 'SETTINGS', 0, 0, 'x' ] ), 'FRAME_SIZE_ERROR', 'SETTINGS of one byte';
    is goaway( [ 'WINDOW_UPDATE', 0, 0, pack 'N', 0 ] ), 'PROTOCOL_ERROR', 'a window that grows by nothing';
    is goaway( [ 'HEADERS', 1, 1, $get ], [ 'DATA', 0, 1, '' ] ), 'PROTOCOL_ERROR',
        'a frame within a header block';
    is goaway( [ 'DATA', 0, 1, 'x' x 20_000 ] ), 'FRAME_SIZE_ERROR', 'a frame that is too long';
};

subtest 'errors of a stream' => sub {
    my %bad = (
        'no :path'             => [ ':method' => 'GET', ':scheme' => 'http' ],
        'a name in upper case' => [ ':method' => 'GET', ':scheme' => 'http', ':path' => '/', 'X-A' => 1 ],
        'Connection' => [ ':method' => 'GET', ':scheme' => 'http', ':path' => '/', connection => 'close' ],
        'a pseudo-header behind a field' =>
            [ ':method' => 'GET', ':scheme' => 'http', 'a' => 1, ':path' => '/' ],
        'a control character' =>
            [ ':method' => 'GET', ':scheme' => 'http', ':path' => '/', a => "b\r\nc: d" ],
    );
    my $client = greeted();
    my $stream = 1;
    for my $name ( sort keys %bad ) {
        $client->send( $client->make( 'HEADERS', 5, $stream, $client->fields( @{ $bad{$name} } ) ) );
        is $client->await( 'RST_STREAM', $stream )->{error}, 'PROTOCOL_ERROR', $name;
        $stream += 2;
    }
    $client->open( $stream, 'GET /' );
    is $client->await( 'HEADERS', $stream )->{status}, 200, 'the connection goes on';
    $client->open( $stream + 2, 'GET /slow' );
    $client->send( $client->make( 'HEADERS', 5, $stream + 4, $client->fields( @{ $bad{'no :path'} } ) ) );
    is $client->await( 'HEADERS', $stream + 2 )->{status}, 200,
        'also a request that takes longer than --header-timeout';
};

# The status is a literal where HPACK's table has none
sub status {
    my ( $line, @field ) = @_;
    my $client = client();
    my $answer = $client->ask( $line, {@field} );
    return $answer->{status} // 'none';
}

subtest 'refused as in HTTP/1.1' => sub {
    is status( 'GET /' . 'x' x 1000 ),                            414, 'a path that is too long';
    is status( 'GET /', map { ( "x-$_" => 1 ) } 1 .. 30 ),        431, 'too many fields';
    is status( 'GET /', map { ( "x-$_" => 'y' x 900 ) } 1 .. 5 ), 431, 'a head that is too large';
    is status('TRACE /'),                                         501, 'TRACE';
    is status( 'GET /', 'content_length' => 5 ),                  400, 'Content_Length';
    is status( 'GET /', expect => 'miracles' ),                   417, 'an expectation';
    is status( 'GET /', host => 'another' ),                      400, 'Host beside another :authority';
    is status( 'GET /', proxy => 'http://x' ),                    200, 'Proxy is dropped';
};

subtest 'clients that are slow' => sub {
    my $silent = client();
    $silent->send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    ok $silent->ends, '--header-timeout: no request';
    my $half = greeted();
    $half->send( substr $half->make( 'HEADERS', 5, 1, $half->fields( ':method' => 'GET' ) ), 0, 12 );
    ok $half->ends, '--header-timeout: a part of a frame';
    my $block = greeted();
    $block->send( $block->make( 'HEADERS', 1, 1, $block->fields( ':method' => 'GET' ) ) );
    ok $block->ends, '--header-timeout: a header block that is not complete';
    my $idle = greeted()->open( 1, 'GET /' );
    is $idle->await('HEADERS')->{status}, 200,        'a request';
    is $idle->await('GOAWAY')->{error},   'NO_ERROR', '--keepalive-timeout: GOAWAY';
    ok $idle->ends, 'and the end';
    my $body = greeted()->open( 1, 'POST /', 'content-length' => 10 );
    is $body->await('HEADERS')->{stream}, 1, '--body-timeout: it is answered';
    my $deaf
        = greeted()->send( client()->make( 'SETTINGS', 0, 0, pack 'n N', 4, 10 ) )->open( 1, 'GET /?100000' );
    my $until = time + 10;
    $deaf->send( $deaf->make( 'PING', 0, 0, 'x' x 8 ) ), sleep 0.1
        while !$deaf->{ended} && time < $until && $deaf->frame(0.1);
    ok $deaf->{ended} || $deaf->ends, '--write-timeout: a window that does not grow, whatever else it sends';
};

done_testing;
