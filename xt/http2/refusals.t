# Each refusal of docs/PROTOCOL.md in HTTP/1.1, and what the same gets in HTTP/2: one table for both
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::HTTP2;

my $HOST  = "Host: a\r\n";
my $TE    = "Transfer-Encoding: chunked\r\n";
my %GET   = ( ':method' => 'GET', ':scheme' => 'http', ':authority' => 'a', ':path' => '/' );
my $RESET = 'PROTOCOL_ERROR';    # of the stream: malformed (RFC 9113 8.1.1)

# A request without body in both versions: get( "X: a", x => 'a' )
sub get {
    my ( $line, @field ) = @_;
    return ( "GET / HTTP/1.1\r\n$HOST$line\r\n\r\n", [ fields(), @field ] );
}

# The same with another target
sub path {
    my $target = shift;
    return ( "GET $target HTTP/1.1\r\n$HOST\r\n", [ fields( ':path' => $target ) ] );
}

# The pseudo-headers of a GET, some of which are others, or not there
sub fields {
    my %of = ( %GET, @_ );
    return map { defined $of{$_} ? ( $_ => $of{$_} ) : () } qw(:method :scheme :authority :path);
}

sub post {
    my ( $line, $body, @field ) = @_;
    return ( "POST / HTTP/1.1\r\n$HOST$line\r\n\r\n$body", [ fields( ':method' => 'POST' ), @field ], $body );
}

# The first words of a row of the table in PROTOCOL.md, and its cases: a name; what is sent in HTTP/1.1; in
# HTTP/2 fields, a body, and what comes of it: a status, if it is not that of the row; the error of the
# stream. Or a reason why there is nothing to be sent
my @TABLE = (
    [   '400 LF without CR',
        [ 'LF',                    get( "X: a\nY: b", x    => "a\ny: b" ), $RESET ],
        [ 'CR',                    get( "X: a\rY: b", x    => "a\ry: b" ), $RESET ],
        [ 'a folded line',         get( "X: a\r\n b", x    => "a\r\n b" ), $RESET ],
        [ 'white space in a name', get( 'X : a',      'x ' => 'a' ),       $RESET ],
    ],
    [   '400 a name that is not a token',
        [ 'a name',                 get( 'X(Y: a', 'x(y' => 'a' ),    $RESET ],
        [ 'an empty name',          get( ': a',    ''    => 'a' ),    $RESET ],
        [ 'a control byte',         get( "X: a\1", x     => "a\1" ),  $RESET ],
        [ 'NUL',                    get( "X: a\0", x     => "a\0b" ), $RESET ],
        [ 'a line without a colon', "GET / HTTP/1.1\r\n${HOST}X\r\n\r\n", 'fields are no lines' ],
    ],
    [   '400 no method',
        [ 'no method',  "/ HTTP/1.1\r\n$HOST\r\n", [ fields( ':method' => undef ) ], undef, $RESET ],
        [ '65 bytes',   'M' x 65 . " / HTTP/1.1\r\n$HOST\r\n", [ fields( ':method' => 'M' x 65 ) ] ],
        [ 'no token',   "G(T / HTTP/1.1\r\n$HOST\r\n",  [ fields( ':method' => 'G(T' ) ], undef, $RESET ],
        [ 'two spaces', "GET  / HTTP/1.1\r\n$HOST\r\n", 'fields are no lines' ],
        [ 'no version', "GET /\r\n$HOST\r\n",           'fields are no lines' ],
    ],
    [   '400 more than one empty line',
        [ 'two', "\r\n\r\nGET / HTTP/1.1\r\n$HOST\r\n", 'fields are no lines' ]
    ],
    [   '400 a control byte, `DEL`',
        [ 'a control byte',   path("/\1"),   undef, $RESET ],
        [ 'DEL',              path("/\x7f"), undef, $RESET ],
        [ 'a space',          path('/ x'),   undef, $RESET ],
        [ 'a number sign',    path('/#x') ],
        [ 'a backslash',      path('/\\x') ],
        [ '% without digits', path('/%zz') ],
        [ 'a control byte, in a query', path("/?\1"), undef, $RESET ],
    ],
    [ '400 `%00`', map { [ $_, path("/$_") ] } '%00', '%0d', '%0A' ],
    [   '400 a target in none of the four forms',
        [ 'no slash', path('x'), undef, $RESET ],
        [ '*',        path('*'), undef, $RESET ],
        [ 'empty',    "GET  HTTP/1.1\r\n$HOST\r\n", [ fields( ':path' => '' ) ], undef, $RESET ],
    ],
    [   '400 HTTP/1.1 without Host',
        [ 'without', "GET / HTTP/1.1\r\n\r\n", [ fields( ':authority' => undef ) ], undef, $RESET ],
        [ 'two',     get( 'Host: b', host => 'b' ) ],
        map {
            my ( $name, $host ) = @$_;
            [   $name,
                "GET / HTTP/1.1\r\nHost: $host\r\n\r\n",
                [ fields( ':authority' => $host ) ],
                undef, $_->[2]
            ]
        } [ 'no host', 'a b', $RESET ],
        [ 'a port that is none', 'a:b' ],
        [ 'user information',    'u@a' ],
        [ 'a comma',             'a,b' ],
        [ 'empty',               '', $RESET ],
    ],
    [   '400 an absolute-form target',
        [ 'no authority',     path('http:///x'),   undef, $RESET ],
        [ 'user information', path('http://u@a/'), undef, $RESET ],
    ],
    [   '400 both Content-Length and Transfer-Encoding',
        [   'both',
            post(
                "Content-Length: 1\r\nTransfer-Encoding: chunked",
                "0\r\n\r\n",
                'content-length'    => 5,
                'transfer-encoding' => 'chunked'
            ),
            $RESET
        ],
    ],
    [   '400 two Content-Length fields',
        [   'two',
            post(
                "Content-Length: 1\r\nContent-Length: 1", 'x',
                'content-length' => 1,
                'content-length' => 1
            ),
            $RESET
        ],
        [ '01', post( 'Content-Length: 01', 'x', 'content-length' => '01' ) ],
        map { [ $_, post( "Content-Length: $_", 'x', 'content-length' => $_ ), $RESET ] } '1,1',
        '+1', '-1',
        '9223372036854775808',
        'x'
    ],
    [   '400 two Transfer-Encoding fields',
        [   'two',
            post( "${TE}Transfer-Encoding: chunked", "0\r\n\r\n", ( 'transfer-encoding' => 'chunked' ) x 2 ),
            $RESET
        ],
    ],
    [   '400 Transfer-Encoding in HTTP/1.0',
        [ 'it', "POST / HTTP/1.0\r\n$TE\r\n", 'there is no such version' ]
    ],
    [   '400 two Content-Type fields',
        [ 'two', get( "Content-Type: a/b\r\nContent-Type: a/b", ( 'content-type' => 'a/b' ) x 2 ) ]
    ],
    [   '400 `Content_Length`',
        [ 'Content_Length',    get( 'Content_Length: 1',          content_length    => 1 ) ],
        [ 'Transfer_Encoding', get( 'Transfer_Encoding: chunked', transfer_encoding => 'chunked' ) ],
    ],
    [ '400 a chunk size', [ 'none', "POST / HTTP/1.1\r\n$HOST$TE\r\nx\r\n", 'there are no chunks' ] ],
    [   '400 chunk extensions',
        [ 'no name', "POST / HTTP/1.1\r\n$HOST$TE\r\n1;=\r\nx\r\n0\r\n\r\n", 'there are no chunks' ]
    ],
    [   '400 a trailer field',
        [   'of framing',
            "POST / HTTP/1.1\r\n$HOST$TE\r\n0\r\nContent-Length: 1\r\n\r\n",
            'all trailers are dropped unread'
        ]
    ],
    [   '400 the client shuts down its side',
        [ 'half', \"GET / HTTP/1.1\r\nHo", 'this ends the connection' ]
    ],
    [   '408 the head is not complete',
        [ 'a head', "GET / HTTP/1.1\r\nHo", 'this ends the connection: limits.t' ],
        [ 'a body', post( 'Content-Length: 2', 'x', 'content-length' => 2 ) ],
    ],
    [   '413 a body larger',
        [ 'by its length', post( 'Content-Length: 1001', 'x', 'content-length' => 1001 ) ],
        [   'by its bytes',
            "POST / HTTP/1.1\r\n$HOST$TE\r\n3e9\r\n" . 'x' x 1001,
            [ fields( ':method' => 'POST' ) ],
            'x' x 1001
        ],
    ],
    [ '414 the request line', [ 'one byte', path( '/' . 'x' x ( 300 - length 'GET  HTTP/1.1' ) ) ] ],
    [   '417 in HTTP/1.1, an Expect list',
        map { [ $_, get( "Expect: $_", expect => $_ ) ] } 'x',
        '100-continue, x'
    ],
    [   '417 HEAD with content',
        [   'it',
            "HEAD / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nExpect: 100-continue\r\n\r\n",
            [ fields( ':method' => 'HEAD' ), 'content-length' => 1, expect => '100-continue' ], 'x'
        ]
    ],
    [   '426 an upgrade to WebSocket',
        [   'version 12',
            get("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 12",
                upgrade => 'websocket'
            ),
            $RESET
        ]
    ],
    [   '431 a head that exceeds',
        [ 'bytes',  get( 'X: ' . 'x' x 4000,                      x => 'x' x 4000 ) ],
        [ 'fields', get( join( "\r\n", map {"X-$_: a"} 1 .. 20 ), map { ( "x-$_" => 'a' ) } 1 .. 20 ) ],
        [ 'a name', get( 'x' x 1025 . ': a',                      'x' x 1025 => 'a' ) ],
        [   'trailers',
            "POST / HTTP/1.1\r\n$HOST$TE\r\n0\r\nX: " . 'x' x 100_000 . "\r\n\r\n",
            'all trailers are dropped unread'
        ],
    ],
    [ '500 a request body cannot be written', 'xt/security/rights.t' ],
    [   '501 a transfer coding',
        [   'gzip', post( 'Transfer-Encoding: gzip, chunked', "0\r\n\r\n", 'transfer-encoding' => 'gzip' ),
            $RESET
        ]
    ],
    [   '501 TRACE, CONNECT',
        [ 'TRACE', "TRACE / HTTP/1.1\r\n$HOST\r\n", [ fields( ':method' => 'TRACE' ) ] ],
        [   'CONNECT',
            "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
            [ ':method' => 'CONNECT', ':authority' => 'a:443' ]
        ],
    ],
    [ '503 the client has shut down its side', 'xt/fair/queue.t' ],
    [ '503 `--max-queue`',                     'xt/fair/room.t' ],
    [ '505 a major version',  [ '3.0', "GET / HTTP/3.0\r\n$HOST\r\n", 'the preface has the version' ] ],
    [ '507 the disk is full', 'xt/fair/temporary_files.t' ],
);

my $server = start_server(
    corpus_file('echo.psgi'),
    qw(--workers 1 --listen 127.0.0.1:0 --listen),
    '127.0.0.1:0,h2c',
    qw(--header-timeout 1 --body-timeout 1 --max-body 1000 --max-request-line 300 --max-header-bytes 3000 --max-header-fields 20)
);

sub first {
    my $bytes  = shift;
    my $client = $server->connect( plain => 1 );
    $client->send( ref $bytes ? $$bytes : $bytes );
    $client->finish if ref $bytes;
    return $client->response( patience => 8, head => scalar( $bytes =~ /\AHEAD/ ) )->status;
}

# The status, or the error of the stream
sub second {
    my ( $fields, $body ) = @_;
    my $client = Sirius::Test::HTTP2->new( ( $server->listeners )[1] )->greet;
    $client->send( $client->make( 'HEADERS', defined $body ? 4 : 5, 1, $client->fields(@$fields) ) );
    my %length = @$fields;
    my $ends   = defined $body
        && length $body >= ( ( $length{'content-length'} // '' ) =~ /\A(\d{1,4})\z/ ? $1 : 0 );
    $client->send( $client->make( 'DATA', $ends ? 1 : 0, 1, $body ) ) if defined $body;
    while ( my $frame = $client->frame ) {
        return $frame->{error}  if $frame->{type} =~ /RST_STREAM|GOAWAY/;
        return $frame->{status} if $frame->{type} eq 'HEADERS';
    }
    return 'the end';
}

my %tested;
for my $row (@TABLE) {
    my ( $words, @case ) = @$row;
    $tested{$words} = 1;
    my ($status) = $words =~ /\A(\d+)/;
    subtest $words => sub {
        for my $case (@case) {
            if ( !ref $case ) {
                ok -e "$FindBin::Bin/../../$case", "$case, which dev/test --h2 runs as well";
                next;
            }
            my ( $name, $bytes, $fields, $body, $want ) = @$case;
            is first($bytes), $status, "$name: HTTP/1.1";
            if ( !ref $fields ) { pass("$name: not in HTTP/2, as $fields"); next }
            ( $body, $want ) = ( undef, $body ) if defined $body && $body eq $RESET;
            is second( $fields, $body ), $want // $status, "$name: HTTP/2";
        }
    };
}

open my $in, '<', "$FindBin::Bin/../../docs/PROTOCOL.md" or die "PROTOCOL.md: $!";
my @rows
    = map { /\A\| (\d\d\d) \| (.*?) \|/ ? "$1 $2" : () } grep { /\A## Refusals/ .. /\A### / } readline $in;
cmp_ok scalar @rows, '>', 30, 'the table of PROTOCOL.md';
is_deeply [
    grep {
        my $row = $_;
        1 != grep { index( $row, $_ ) == 0 } keys %tested
    } @rows
    ],
    [], 'each row is here';
is_deeply [
    grep {
        my $words = $_;
        !grep { index( $_, $words ) == 0 } @rows
    } sort keys %tested
    ],
    [], 'and no other';

$server->stop;
done_testing;
