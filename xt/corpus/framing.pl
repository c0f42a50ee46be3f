# The framing corpus: requests that two parsers could read in two ways (RFC 9112), and the one answer that
# is given. A list of [name, bytes, result, more]. The result is that of Sirius::Test::Swarm ("200 after":
# answered, kept, the next request answered as itself; "400 closed": refused). More: answers (how many are
# expected), bodies (what the application says of each), head. Everything is delivered in one write, byte by
# byte, and split at every offset.
use strict;
use warnings;

my $H    = "Host: a\r\n";
my $MARK = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";    # 35 bytes that never may be a request
my $NEXT = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";        # a request that must be one
my $POST = "POST / HTTP/1.1\r\n$H";
my $CL5  = "Content-Length: 5\r\n";
my $TE   = "Transfer-Encoding: chunked\r\n";
my $DATA = "5\r\nhello\r\n0\r\n\r\n";
my $BAD  = '400 closed';
my $GOOD = '200 after';
my $HTE  = qr/\A(?:400|501) closed\z/;

# A request with these fields in front of a body
sub post { my ( $fields, $body ) = @_; return $POST . $fields . "\r\n" . $body }
sub get { my $fields = shift; return "GET / HTTP/1.1\r\n$H$fields\r\n" }

# Cases that differ in one value
sub each_of {
    my ( $name, $make, $want, @value ) = @_;
    return map { [ "$name: " . visible($_), $make->($_), $want ] } @value;
}

sub visible {
    my $text = substr shift, 0, 60;
    $text =~ s/([^\x21-\x7e ])/sprintf '\\x%02x', ord $1/ge;
    return "'$text'";
}

(
    # Content-Length and Transfer-Encoding
    [ 'S01 length, then chunked', post( "content-length: 12\r\n$TE", "5\r\nhello\r\n0\r\n\r\nworld" ), $BAD ],
    [ 'S02 chunked, then length', post( "$TE$CL5", "b\r\nHello World\r\n0\r\n\r\n" ),                  $BAD ],
    [ 'S03 the length covers a request', post( "Content-Length: 40\r\n$TE", "0\r\n\r\n$MARK" ),        $BAD ],
    [ 'S04 length 0 beside chunked', post( "Content-Length: 0\r\n$TE", "23\r\n$MARK\r\n0\r\n\r\n" ),   $BAD ],
    [   'S05 two lengths',
        get("content-length: 3\r\ncontent-length: 9\r\nconnection: close\r\n") . '123456789', $BAD
    ],
    each_of(
        'S06-S08 length',
        sub { post( "Content-Length: $_[0]\r\n", "12345$MARK" ) },
        $BAD, '+5', '-1', '3.14', '1e3', '0x10', '5,5', '5;', '5_0', '5 5', "\xd9\xa5", '5, 5'
    ),
    each_of(
        'S09 length out of range',
        sub { post( "Content-Length: $_[0]\r\n", '' ) },
        qr/\A4(?:00|13) closed\z/,
        '9223372036854775808', '18446744073709551621', '9' x 24, '2147483647'
    ),
    each_of(
        'S10 spaces around the length',
        sub { post( "Content-Length:$_[0]\r\n", 'hello' ) },
        $GOOD, ' 5 ', "\t5", '  5', "5\t", " \t \t5\t \t", ' ' x 500 . '5' . "\t" x 500
    ),
    each_of(
        'S10 no white space of HTTP around the length',
        sub { post( "Content-Length:$_[0]\r\n", 'hello' ) },
        $BAD, " \x0b5", "5\x0c", " \xa05", " \xc2\xa05", ' ', "\t \t"
    ),
    [   'S10 around the length, and what follows the body',
        post( "Content-Length:\t 5 \t\r\n", "hello$NEXT" ), '200 200 after',
        answers => 2,
        bodies  => [ 'POST / [hello]', 'GET /next []' ]
    ],
    [   'S10 no space before the length',
        post( "Content-Length:5\r\n", 'hello' ),
        $GOOD,
        bodies => ['POST / [hello]']
    ],
    each_of( 'S11 empty length', sub { post( "Content-Length: $_[0]\r\n", 'hello' ) }, $BAD, '', ',5', '5,' ),
    [   'S12 chunked with a space behind',
        post( "Transfer-Encoding: chunked \r\n", $DATA ),
        $GOOD,
        bodies => ['POST / [hello]']
    ],
    [   'S12 chunked with a tab before',
        post( "Transfer-Encoding: \tchunked\r\n", $DATA ),
        $GOOD, bodies => ['POST / [hello]']
    ],
    [ 'S12 with a length', post( "Transfer-Encoding: chunked \r\n$CL5", $DATA ), $BAD ],
    each_of(
        'S13 coding', sub { post( "Transfer-Encoding: $_[0]\r\n", $DATA ) },
        $BAD,
        'chunked, gzip',
        'chunked, chunked',
        'chunked,', ',chunked', ''
    ),
    each_of(
        'S13 coding', sub { post( "Transfer-Encoding: $_[0]\r\n", $DATA . $MARK ) },
        $HTE,         'gzip, chunked',
        'identity',   'gzip'
    ),
    [ 'S14 chunked and identity', post( "${TE}Transfer-Encoding: identity\r\n", $DATA ), $BAD ],
    [ 'S14 identity and chunked', post( "Transfer-Encoding: identity\r\n$TE",   $DATA ), $HTE ],
    each_of(
        'S15 coding', sub { post( "Transfer-Encoding: $_[0]\r\n", $DATA . $MARK ) },
        $HTE, 'xchunked', 'chunked;q=1', '"chunked"', "chunk\xc3\xa9d", "\x0bchunked", "chunked\x00",
        'chunkedx'
    ),
    [ 'S16 case', post( "transfer-ENCODING: cHuNkEd\r\n", $DATA ), $GOOD, bodies => ['POST / [hello]'] ],
    [   'S17 Transfer_Encoding',
        post( "Transfer_Encoding: chunked\r\nContent-Length: 40\r\n", "0\r\n\r\n$MARK" ), $BAD
    ],
    [ 'S17 Content_Length',                post( "Content_Length: 40\r\n", "0\r\n\r\n$MARK" ),  $BAD ],
    [ 'S18 space before the colon of TE',  post( "Transfer-Encoding : chunked\r\n", $DATA ),    $BAD ],
    [ 'S18 space before the colon of CL',  post( "Content-Length : 5\r\n", 'hello' ),           $BAD ],
    [ 'S18 a field with a space in front', "POST / HTTP/1.1\r\n $CL5$H\r\nhello",               $BAD ],
    [ 'S19 folded TE',                     post( "Transfer-Encoding:\r\n chunked\r\n", $DATA ), $BAD ],
    [ 'S19 folded field',                  post( "X: y\r\n Content-Length: 5\r\n", 'hello' ),   $BAD ],
    [ 'S20 bare CR',                       post( "X: a\r$TE", $DATA ),                          $BAD ],
    [ 'S20 bare LF',                       post( "X: a\n$TE", $DATA ),                          $BAD ],
    [ 'S21 chunked on 1.0', "POST / HTTP/1.0\r\n${TE}Connection: keep-alive\r\n\r\n$DATA",      $BAD ],

    # Content in any method
    map( { ["S22 content in $_",
            "$_ / HTTP/1.1\r\n${H}Content-Length: 35\r\n\r\n$MARK",
            $GOOD, head => $_ eq 'HEAD'
    ] } qw(GET HEAD DELETE OPTIONS PROPFIND) ),
    [ 'S23 unknown coding in GET', get("Transfer-Encoding: xchunked\r\n") . $MARK, $HTE ],
    [   'S24 what follows a body', post( "Content-Length: 3\r\n", "abc$NEXT" ), '200 200 after',
        answers => 2,
        bodies  => [ 'POST / [abc]', 'GET /next []' ]
    ],

    # Chunked
    each_of(
        'S25 chunk size',
        sub { post( $TE, "$_[0]hello\r\n0\r\n\r\n" ) },
        $BAD, "0x5\r\n", "5 \r\n", " 5\r\n", "+5\r\n", "-5\r\n", "5_0\r\n", "\r\n", "g\r\n", "5\r", "5\n"
    ),
    each_of(
        'S26 chunk size out of range', sub { post( $TE, "$_[0]\r\nhello\r\n0\r\n\r\n" ) },
        qr/\A4(?:00|13) closed\z/,     'FFFFFFFFFFFFFFFF',
        '10000000000000005',           '00000000000000000000005'
    ),
    each_of(
        'S27 chunk extension',
        sub { post( $TE, "$_[0]hello\r\n0\r\n\r\n" ) },
        $BAD, "5;\nxx\r\n", "5;a\rb\r\n", "5;a=\"\n\"\r\n", "5;\r\n", "5;a=\x00\r\n"
    ),
    each_of(
        'S27 white space in a chunk extension',
        sub { post( $TE, "$_[0]\r\nhello\r\n0\r\n\r\n" ) },
        $GOOD, '5 ;a', "5\t; a = b", '5; a="b" ; c'
    ),
    each_of(
        'S27 white space where none may be',
        sub { post( $TE, "$_[0]\r\nhello\r\n0\r\n\r\n" ) },
        $BAD, '5 ', "5\t", '5;a ', '5;a=b ', '5; ', '5 5', "5 \x0b;a"
    ),
    [   'S27 LF that ends an extension',
        post( $TE, "2;\nxx\r\n10\r\n1f\r\nAAAABBBBCCCC\r\n0\r\n\r\nDDDDEEEEFFFF\r\n0\r\n\r\n" ), $BAD
    ],
    each_of(
        'S28 no CRLF behind the data', sub { post( $TE, $_[0] ) },
        $BAD,                          "5\r\nhello0\r\n\r\n",
        "5\r\nhelloXX0\r\n\r\n",       "3\r\nABCall-this\r\n0\r\n\r\n"
    ),
    [ 'S29 bare LFs', post( $TE, "5\nhello\n0\n\n" ), $BAD ],
    [   'S32 a trailer', post( $TE, "5\r\nhello\r\n0\r\nX-Admin: 1\r\n\r\n$NEXT" ), '200 200 after',
        answers => 2,
        bodies  => [ 'POST / [hello]', 'GET /next []' ]
    ],
    [   'S32 a trailer that would frame',
        post( $TE, "0\r\nContent-Length: 35\r\nX-Admin: 1\r\n\r\n$MARK" ), $BAD
    ],
    [ 'S32 a request in place of trailers', post( $TE, "0\r\n$MARK\r\n" ), $BAD ],
    [ 'S33 the last chunk twice', post( $TE, "0\r\n\r\n0\r\n\r\n" ), "200 $BAD", answers => 2 ],

    # The request line
    [ 'S34 one empty line before',                        "\r\nGET / HTTP/1.1\r\n$H\r\n",            $GOOD ],
    [ 'S34 two empty lines before',                       "\r\n\r\nGET / HTTP/1.1\r\n$H\r\n",        $BAD ],
    [ 'S34 two before a HEAD, which nobody has read yet', "\r\n\r\nHEAD / HTTP/1.1\r\n$H\r\n",       $BAD ],
    [ 'S34 a CR before a HEAD',                           "\rHEAD / HTTP/1.1\r\n$H\r\n",             $BAD ],
    [ 'S35 NUL in the path',                              "GET /public%00/admin HTTP/1.1\r\n$H\r\n", $BAD ],
    each_of( 'S36 percent', sub {"GET /$_[0] HTTP/1.1\r\n$H\r\n"}, $BAD, qw(% %zz %4 %2 a%g0 %0g) ),
    each_of(
        'S37 request line',
        sub {"$_[0]\r\n$H\r\n"},
        $BAD,
        'GET  / HTTP/1.1',
        "GET\t/ HTTP/1.1",
        ' GET / HTTP/1.1',
        'GET / HTTP/1.1 x',
        'GET / HTTP/1.1 ',
        "GET /\x00 HTTP/1.1",
        'GET / http/1.1',
        'GET /',
        'GET',
        'G@T / HTTP/1.1',
        'GET / HTTP/1.',
        'GET / HTTP 1.1'
    ),
    [ 'S38 HTTP/1.2', "GET / HTTP/1.2\r\n$H\r\n", $GOOD ],
    each_of(
        'S38 version',
        sub {"GET / $_[0]\r\n$H\r\n"},
        qr/\A(?:505|400) closed\z/,
        qw(HTTP/2.0 HTTP/1.10 HTTP/1.99999999999 HTTP/0.9 HTTP/01.1 HTTP/3.0)
    ),
    each_of(
        'S39 host', sub {"GET / HTTP/1.1\r\n$_[0]\r\n"},
        $BAD,       '',
        "Host: a\r\nHost: b\r\n",
        "Host: a b\r\n",
        "Host:\r\n",
        "Host: a/b\r\n",
        "Host: u\@a\r\n"
    ),
    [ 'S39 absolute-form of another host', "GET http://b/ HTTP/1.1\r\n$H\r\n", $GOOD, host => 'b' ],
    [ 'S39 absolute-form', "GET http://a/x?y HTTP/1.1\r\n$H\r\n", $GOOD, bodies            => ['GET /x []'] ],
    each_of(
        'S40 target', sub {"GET $_[0] HTTP/1.1\r\n$H\r\n"},
        $BAD, '@192.168.1.2/', 'foo', '\\\\evil', '*', '/a\\b', '/a#b', "/caf\xc3\xa9\x7f"
    ),
    each_of(
        'S40 bytes above 0x7f',
        sub {"GET $_[0] HTTP/1.1\r\n$H\r\n"},
        $GOOD, "/caf\xc3\xa9", "/caf\xe9", "/\xc0\xaf", "/?\x80=\xff"
    ),
    [ 'S40 two slashes', "GET //evil/ HTTP/1.1\r\n$H\r\n", $GOOD, bodies => ['GET //evil/ []'] ],

    # Fields
    [ 'S41 a fold behind equal names', get("A: 1\r\nB: 2\r\nA: 3\r\n cont\r\n"),      $BAD ],
    [ 'S42 100 fields',                get( join '', map {"X-$_: 1\r\n"} 1 .. 99 ),   $GOOD ],
    [ 'S42 129 fields',                get( join '', map {"X-$_: 1\r\n"} 1 .. 128 ),  '431 closed' ],
    [ 'S42 a name of 1,025 bytes',     get( 'N' x 1025 . ": 1\r\n" ),                 '431 closed' ],
    [ 'S42 a value of 64 KiB',         get( 'X: ' . 'v' x 65_536 . "\r\n" ),          '431 closed' ],
    [ 'S42 1 MiB without an end',      "GET / HTTP/1.1\r\n$H" . "X: y\r\n" x 174_763, '431 closed' ],
    [   'S43 names with underscores',
        get("X-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: 6.6.6.6\r\nRemote_User: root\r\n"),
        $GOOD, fields => 'HTTP_X_FORWARDED_FOR=1.1.1.1'
    ],
    [ 'S43 Proxy',                    get("Proxy: http://evil\r\n"), $GOOD, fields => '' ],
    [ 'S44 CR and LF in the path',    "GET /path%0d%0aHost:%20secret HTTP/1.1\r\n$H\r\n", $BAD ],
    [ 'S44 a raw CR in the path',     "GET /path\rX HTTP/1.1\r\n$H\r\n",                  $BAD ],
    [ 'S47 control bytes in a field', get("User-Agent: \e[31m\"\\\n\r\n"),                $BAD ],
    [   'S48 nothing of a request is left in the next',
        "POST /a HTTP/1.1\r\n${H}X-Secret: s\r\nContent-Type: a/b\r\n$CL5\r\nhello$NEXT", '200 200 after',
        answers     => 2,
        bodies      => [ 'POST /a [hello]', 'GET /next []' ],
        last_fields => ''
    ],

    # Persistence
    each_of(
        'S49 connection',
        sub { get("Connection: $_[0]\r\n") },
        '200 closed', 'keep-alive, close',
        'close, TE',  'CLOSE', "keep-alive\r\nConnection: close", 'TE,close'
    ),
    [ 'S49 connection: Upgrade, keep-alive', get("Connection: Upgrade, keep-alive\r\n"), $GOOD ],
    [ 'S50 a request behind close', get("Connection: close\r\n") . $MARK, '200 closed', broken_word => 1 ],
    [   'S51 pipelined around a POST', $NEXT . post( $CL5, 'hello' ) . $NEXT, '200 200 200 after',
        answers => 3,
        bodies  => [ 'GET /next []', 'POST / [hello]', 'GET /next []' ]
    ],
    [ 'S52 unknown expectation', get("Expect: 1\r\n"), '417 closed' ],
    [   'S52 HEAD with content asks for 100',
        "HEAD / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        '417 closed', head => 1
    ],
    [   'S52 100-Continue',
        post( "Expect: 100-Continue\r\n$CL5", 'hello' ),
        $GOOD, bodies => ['POST / [hello]']
    ],
);
