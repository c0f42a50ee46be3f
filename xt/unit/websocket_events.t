use strict;
use warnings;
use Test::More;
use Sirius::WebSocket::Events;

# The type application/websocket-events

my $CLASS = 'Sirius::WebSocket::Events';

my @rows = (
    [ 'nothing',             q() ],
    [ 'one without content', "OPEN\r\n",                          ['OPEN'] ],
    [ 'one with',            "TEXT 5\r\nhello\r\n",               [ TEXT   => 'hello' ] ],
    [ 'one that is empty',   "TEXT 0\r\n\r\n",                    [ TEXT   => q() ] ],
    [ 'digits',              "BINARY 1a\r\n" . 'x' x 26 . "\r\n", [ BINARY => 'x' x 26 ] ],
    [ 'bytes',               "BINARY 4\r\n\r\n\0\xff\r\n",        [ BINARY => "\r\n\0\xff" ] ],
    [   'several', "OPEN\r\nTEXT 1\r\na\r\nCLOSE 2\r\n\x03\xe8\r\nDISCONNECT\r\n",
        ['OPEN'],
        [ TEXT  => 'a' ],
        [ CLOSE => "\x03\xe8" ],
        ['DISCONNECT']
    ],
    [ 'one in another', "TEXT 8\r\nTEXT 1\r\n\r\n", [ TEXT => "TEXT 1\r\n" ] ],
);
for (@rows) {
    my ( $name, $bytes, @events ) = @$_;
    is_deeply [ $CLASS->decode($bytes) ], [ map { [ $_->[0], $_->[1] ] } @events ], $name;
    is $CLASS->encode(@events), $bytes, 'and back';
}
is_deeply [ $CLASS->decode("TEXT A\r\n0123456789\r\n") ], [ [ TEXT => '0123456789' ] ], 'capital digits';

for my $bad (
    "OPEN",
    "OPEN\n",
    "\r\n",
    " 5\r\nhello\r\n",
    "open\r\n",
    "TEXT  5\r\nhello\r\n",
    "TEXT 5\r\nhell\r\n",
    "TEXT 5\r\nhello",
    "TEXT 5\r\nhello\n",
    "TEXT 5\r\nhellooo\r\n",
    "TEXT -1\r\n\r\n",
    "TEXT 0x1\r\na\r\n",
    "TEXT ffffffff\r\na\r\n",
    "TEXT 1ffffffff\r\na\r\n",
    "TEXT 5 \r\nhello\r\n",
    "OPEN\r\nx",
    'A' x 21 . "\r\n",
    )
{
    ok !eval { $CLASS->decode($bad); 1 }, "malformed: $bad" =~ s/\r/\\r/gr =~ s/\n/\\n/gr;
    like $@, qr/ at byte \d+|\bbyte \d+/, 'and where';
}

done_testing;
