use strict;
use warnings;
use JSON::PP ();
use Test::More;
use Sirius::Channel::Item;
use Sirius::Control::HTTP;

# Requests that publish, in pieces of any size, and each refusal

my $json = JSON::PP->new->utf8->canonical;
my $ITEM = { channel => 'a', 'http-stream' => { content => 'x' } };

sub post {
    my ( $body, @fields ) = @_;
    return join "\r\n", 'POST /publish/ HTTP/1.1', 'Host: a', @fields, 'Content-Length: ' . length $body, '',
        $body;
}

# How many items, or the status and reason of the refusal
sub outcome {
    my $text  = shift;
    my $http  = Sirius::Control::HTTP->new;
    my $items = eval { $http->read($text) ? [ $http->items ] : [] };
    return $items ? scalar @$items : "$@->{status} $@->{error}";
}

my $whole = post( $json->encode( { items => [ $ITEM, $ITEM ] } ) );
is outcome($whole), 2, 'two items';
is_deeply [ grep { outcome( substr $whole, 0, $_ ) ne '0' } 0 .. length($whole) - 1 ], [],
    'no part of it is a request';
is outcome( $whole =~ s{/publish/ }{/publish }r ),      2, 'a path without the slash at its end';
is outcome( $whole =~ s{/publish/ }{/publish/?a=b }r ), 2, 'with a query';
is outcome( $whole =~ s{\r\n(?=.*\r\n)}{\n}gsr ),       2, 'lines without CR';
is outcome( post( Sirius::Channel::Item->packed($ITEM), 'Content-Type: application/x-sirius-item' ) ), 1,
    'an item that is packed';
is outcome( post('{"items":[]}') ), 0, 'no items';

my @refused = (
    [ post('x')            => '400 Body is not valid JSON.' ],
    [ post('[]')           => '400 Invalid format.' ],
    [ post('{}')           => q(400 Invalid format: object does not contain 'items') ],
    [ post('{"items":{}}') => q(400 Invalid format: 'items' is not an array) ],
    [   post('{"items":[{"channel":"a"}]}') =>
            q(400 Invalid format: no formats specified: 'http-stream', 'http-response' or 'ws-message')
    ],
    [ post( $json->encode( { items => [ $ITEM, {} ] } ) ) => '400 Invalid format: channel is missing' ],
    [ $whole =~ s{/publish/}{/}r      => '404 Not found: use /publish/.' ],
    [ $whole =~ s{POST}{GET}r         => '405 Method not allowed: GET.' ],
    [ $whole =~ s{Content-Length}{X}r => '411 Content-Length is missing.' ],
    [ post( '', 'Transfer-Encoding: chunked' ) => '411 Content-Length is missing.' ],
    [   $whole
            =~ s{Content-Length: \K\d+}{2097153}r => '413 The body has 2097153 bytes, the maximum is 2097152.'
    ],
    [ "POST /publish/ HTTP/1.1\r\nA: " . 'a' x 16_384 => '431 The head is too large.' ],
);
is outcome( $_->[0] ), $_->[1], $_->[1] for @refused;

for my $refused (@refused) {
    my ($status) = $refused->[1] =~ /(\d+)/;
    like(
        Sirius::Control::HTTP->answer( { ok => 0, status => $status, error => 'x' } ),
        qr{\AHTTP/1[.]1 $status [A-Z][\w ]+\r\n.*^Content-Length: 2\r\n.*\r\n\r\nx\n\z}ms,
        "answer $status"
    );
}
like(
    Sirius::Control::HTTP->answer( { ok => 1, text => 'Published' } ),
    qr{\AHTTP/1[.]1 200 OK\r\n.*\r\n\r\nPublished\n\z}s,
    'answer 200'
);

ok +Sirius::Control::HTTP->begins($_), $_ =~ s/\s+\z//r for "POST / HTTP/1.1\r\n", "GET /a HTTP/1.0\n";
ok !Sirius::Control::HTTP->begins($_), $_ =~ s/\s+\z//r
    for q({"command":"status"}) . "\n", "POST / HTTP/1.1", "post / HTTP/1.1\r\n", "GET /\r\n";

my $http = Sirius::Control::HTTP->new;
ok !$http->read( post( 'x' x 9, 'Expect: 100-continue' ) =~ s/x+\z//r ), 'a client that waits';
ok $http->waits,                                                         'it does';
ok !$http->waits,                                                        'it is told once';
is outcome( Sirius::Control::HTTP->request( Sirius::Channel::Item->packed($ITEM) ) ), 1, 'our own request';

done_testing;
