use strict;
use warnings;
use utf8;
use Encode qw(encode_utf8);
use POSIX  ();
use Test::More;
use Sirius::Channel::Item;
use Sirius::Edge::Shared;

# What is packed; that C takes it; and what is said of an item that is wrong

sub packed { return Sirius::Channel::Item->packed(@_) }

sub bits {
    my ( $number1, $number2, @rest ) = unpack 'L2 L7 S3', packed(@_);
    return \@rest;
}

sub error {
    my @args = @_;
    return eval { packed(@args); 1 } ? 'none' : $@;
}

sub is_taken {
    my ( $packed, $name ) = @_;
    my $fd = Sirius::Edge::Shared->item($packed);
    return cmp_ok $fd, '>', 2, $name if $fd < 0;
    open my $fh, '<&=', $fd or die $!;
    local $/;
    return is readline $fh, $packed, $name;
}

subtest 'The form' => sub {
    plan skip_all => 'another byte order' if pack( 'L', 1 ) ne "\1\0\0\0";
    my $item = packed( {
        channel   => 'new',
        id        => 'i2',
        'prev-id' => 'p',
        meta      => { sender => 'bob', other => [] },
        formats   => {
            'http-stream'   => { content => 'hello' },
            'http-response' => { code    => 201, headers => { A => 'b' }, body => 'body' },
            'ws-message'    => { content => 'hello' },
        }
    } );

    # As in xt/c/item.c, which reads it
    is substr( $item, 8 ),
        join( '',
        "\3\0\0\0\2\0\0\0\1\0\0\0",     "\5\0\0\0\6\0\0\0\4\0\0\0\0\0\0\0",
        "\xc9\0\0\0\x4d\0\3\0\0\0\0\0", "newi2phelloA: b\r\nbodybob" ),
        'a full item';
    is_taken $item, 'C takes it';
    my %number
        = map { ( substr packed( { channel => 'a', 'http-stream' => { content => '' } } ), 0, 8 ) => 1 }
        1 .. 1000;
    is keys %number, 1000, 'each has another number';
    pipe my $read, my $write or die $!;
    if ( !fork ) {
        syswrite $write, packed( { channel => 'a', 'http-stream' => { content => '' } } );
        require POSIX;
        POSIX::_exit(0);
    }
    wait;
    sysread $read, my $child, 8;
    ok !$number{$child}, 'a child as well';
};

subtest 'Formats' => sub {
    my @kinds = (
        [ 'http-stream'   => { content => 'x' }                    => [ 1, 0, 0, 1, 0, 0, 0, 0, 0, 1 ] ],
        [ 'http-stream'   => { 'content-bin' => "AP8=\n" }         => [ 1, 0, 0, 2, 0, 0, 0, 0, 0, 1 ] ],
        [ 'http-stream'   => { action => 'send', content => '' }   => [ 1, 0, 0, 0, 0, 0, 0, 0, 0, 1 ] ],
        [ 'http-stream'   => { action => 'close', content => 'x' } => [ 1, 0, 0, 0, 0, 0, 0, 0, 0, 2 ] ],
        [ 'http-response' => { body => 'x' }                       => [ 1, 0, 0, 0, 0, 1, 0, 200, 0, 4 ] ],
        [   'http-response' => {
                code       => '404',
                reason     => 'No',
                headers    => [ [ A => 1 ], [ A => '' ] ],
                'body-bin' => ''
            } => [ 1, 0, 0, 0, 11, 0, 0, 404, 0, 4 ]
        ],
        [ 'ws-message' => { content => 'x' }                          => [ 1, 0, 0, 0, 0, 0, 1, 0, 0, 8 ] ],
        [ 'ws-message' => { 'content-bin' => 'eA==' }                 => [ 1, 0, 0, 0, 0, 0, 1, 0, 0, 16 ] ],
        [ 'ws-message' => { 'content-bin' => 'eA==', type => 'text' } => [ 1, 0, 0, 0, 0, 0, 1, 0, 0, 8 ] ],
        [ 'ws-message' => { content => "\xff", type => 'binary' }     => [ 1, 0, 0, 0, 0, 0, 1, 0, 0, 16 ] ],
        [ 'ws-message' => { action => 'close' } => [ 1, 0, 0, 0, 0, 0, 0, 0, 1000, 32 ] ],
        [   'ws-message' => { action => 'close', code => 4000, reason => 'why' } =>
                [ 1, 0, 0, 0, 0, 0, 3, 0, 4000, 32 ]
        ],
    );
    for my $kind (@kinds) {
        my ( $name, $format, $want ) = @$kind;
        my $said = join ', ', map {"$_ $format->{$_}"} sort keys %$format;
        is_deeply bits( { channel => 'a', formats => { $name => $format } } ), $want,
            "$name: $said" =~ s/[^ -~]/?/gr;
        is_taken packed( { channel => 'a', formats => { $name => $format } } ), 'C takes it';
    }
    is_deeply bits( { channel => 'a', 'http-stream' => { content => 'x' } } ), $kinds[0][2],
        'formats beside the channel';
    is_deeply bits( { channel => 'é', 'http-stream' => { content => '☺' } }, characters => 1 ),
        [ 2, 0, 0, 3, 0, 0, 0, 0, 0, 1 ], 'characters';
    is_deeply bits( { channel => 'é', 'http-stream' => { content => 'é' } } ),
        [ 1, 0, 0, 1, 0, 0, 0, 0, 0, 1 ],
        'bytes';
    ok packed( { channel => 'a', meta => { x => 1 }, size => 1, 'http-stream' => { content => 'x' } } ),
        'what is not known is ignored';
    my $large = { channel => 'a', 'http-stream' => { content => 'x' x 1_048_575 } };
    is_taken packed( { %$large, 'ws-message' => { %{ $large->{'http-stream'} } } } ),
        'as large as it may be, once for both';
};

subtest 'Errors' => sub {
    my $stream = { content => 'x' };
    my $format = sub { return { channel => 'a', formats => {@_} } };
    my @wrong  = (
        [ [],                           'the item is not an object' ],
        [ { 'http-stream' => $stream }, 'channel is missing' ],
        [ { channel => 'a' }, q(no formats specified: 'http-stream', 'http-response' or 'ws-message') ],
        [ { channel => 'a', formats => [] },                  'formats is not an object' ],
        [ { channel => [], 'http-stream' => $stream },        'channel is not text' ],
        [ { channel => 'a' x 256, 'http-stream' => $stream }, 'channel has more than 255 bytes' ],
        [ { channel => "a\n", 'http-stream' => $stream },     'channel contains a control character' ],
        [   { channel => '☺', 'http-stream' => $stream },
            'channel contains a character above 0xff: encode it, as with Encode::encode_utf8'
        ],
        [ { channel => 'a', id   => 'a' x 256, 'http-stream' => $stream }, 'id has more than 255 bytes' ],
        [ { channel => 'a', meta => 'bob',     'http-stream' => $stream }, 'meta is not an object' ],
        [   { channel => 'a', meta => { sender => 'a' x 256 }, 'http-stream' => $stream },
            'the sender in meta has more than 255 bytes'
        ],
        [   { channel => 'a', meta => { sender => [] }, 'http-stream' => $stream },
            'the sender in meta is not text'
        ],
        [   { channel => 'a', 'prev-id' => 'a' x 256, 'http-stream' => $stream },
            'prev-id has more than 255 bytes'
        ],
        [ { channel => 'a', 'http-stream' => 'x' }, q('http-stream' is not an object) ],
        [ $format->( 'http-stream' => {} ), q('http-stream' contains neither content nor content-bin) ],
        [ $format->( 'http-stream' => { content => {} } ), q('http-stream' content is not text) ],
        [   $format->( 'http-stream' => { content => '☺' } ),
            q('http-stream' content contains a character above 0xff: encode it, as with Encode::encode_utf8)
        ],
        [   $format->( 'http-stream' => { 'content-bin' => 'a*b' } ),
            q('http-stream' content-bin is not base64)
        ],
        [   $format->( 'http-stream' => { action => 'hint' } ),
            q('http-stream' action 'hint' is not supported)
        ],
        [   $format->( 'http-stream' => { %$stream, 'content-filters' => [] } ),
            q('http-stream' content-filters is not supported)
        ],
        [   $format->( 'http-stream' => { content => 'x' x 1_048_576 } ),
            'the item has 1048577 bytes, the maximum is 1048576'
        ],
        [   $format->( 'http-response' => { action => 'close' } ),
            q('http-response' action 'close' is not supported)
        ],
        [ $format->( 'http-response' => {} ), q('http-response' contains neither body nor body-bin) ],
        [   $format->( 'http-response' => { 'body-patch' => [] } ),
            q('http-response' body-patch is not supported)
        ],
        [   $format->( 'http-response' => { body => '', code => 'x' } ),
            q('http-response' code is not a number)
        ],
        [   $format->( 'http-response' => { body => '', code => 100 } ),
            q('http-response' code 100 is not from 200 to 999)
        ],
        [   $format->( 'http-response' => { body => '', headers => 'x' } ),
            q('http-response' headers is not an object or an array)
        ],
        [   $format->( 'http-response' => { body => '', headers => [ ['a'] ] } ),
            q('http-response' headers contains something else than pairs of name and value)
        ],
        [   $format->( 'http-response' => { body => '', headers => { 'a b' => 1 } } ),
            q('http-response' headers: 'a b' is not a name)
        ],
        [   $format->( 'http-response' => { body => '', headers => { a => "b\r\nc: d" } } ),
            q('http-response' headers: 'a' contains a control character)
        ],
        [   $format->( 'http-response' => { body => '', headers => { a => undef } } ),
            q('http-response' headers: 'a' has no value)
        ],
        [   $format->( 'ws-message' => { type => 'ping', content => '' } ),
            q('ws-message' type 'ping' is not supported)
        ],
        [   $format->( 'ws-message' => { content => "\xff" } ),
            q('ws-message' content is not UTF-8, which a text has to be: use type 'binary')
        ],
        [   $format->( 'ws-message' => { content => "\xed\xa0\x80" } ),
            q('ws-message' content is not UTF-8, which a text has to be: use type 'binary')
        ],
        [   $format->( 'ws-message' => { action => 'close', code => 1006 } ),
            q('ws-message' code 1006: a server may send 1000 to 1003, 1007 to 1014 and 3000 to 4999)
        ],
        [   $format->( 'ws-message' => { action => 'close', reason => 'x' x 124 } ),
            q('ws-message' reason has more than 123 bytes)
        ],
        [   $format->( 'ws-message' => { action => 'close', reason => "\xff" } ),
            q('ws-message' reason is not UTF-8)
        ],
    );
    is error( $_->[0] ), "$_->[1]\n", encode_utf8( $_->[1] ) for @wrong;
};

unlike packed(
    { channel => 'a', 'http-response' => { headers => { 'Grip-Hold' => 'stream', A => 1 }, body => 'x' } } ),
    qr/grip/i, 'Grip fields are for no client';

subtest 'Items of bytes' => sub {
    my $text   = { 'http-stream' => { content => 'x' }, 'ws-message' => { content => 'x', type => 'text' } };
    my %ids    = ( id => '8', 'prev-id' => '7' );
    my $closes = { map { $_ => { action => 'close' } } qw(http-stream ws-message) };
    is_deeply( Sirius::Channel::Item->formats('x'), $text, 'text' );
    is( Sirius::Channel::Item->formats("\xff")->{'ws-message'}{type}, 'binary', 'and what is none' );
    is eval { Sirius::Channel::Item->formats( [] ) } // $@, "the content is not text\n", 'a reference';
    my @cases = (
        [ 'nothing', [], [] ],
        [ 'formats', [ formats => $text, %ids ], [ { channel => 'a', %ids, formats => $text } ] ],
        [ 'an end',  [ close   => 1,     %ids ], [ { channel => 'a', %ids, formats => $closes } ] ],
        [   'no values',
            [ formats => $text, close => undef, id => undef ],
            [ { channel => 'a', formats => $text } ]
        ],
        [   'a sender',
            [ formats => $text, sender => 'bob' ],
            [ { channel => 'a', meta => { sender => 'bob' }, formats => $text } ]
        ],
        [   'both',
            [ formats => $text, close => 1, %ids ],
            [ { channel => 'a', %ids, formats => $text }, { channel => 'a', formats => $closes } ]
        ],
    );
    is_deeply( [ Sirius::Channel::Item->items( a => @{ $_->[1] } ) ], $_->[2], $_->[0] ) for @cases;
};

subtest 'A reason like the content of the stream' => sub {
    my $item = packed( {
        channel       => 'a',
        'http-stream' => { content => 'bye' },
        'ws-message'  => { action  => 'close', reason => 'bye' }
    } );
    my $fd = Sirius::Edge::Shared->item($item);
    cmp_ok $fd, '>=', 0, 'is an item';
    POSIX::close($fd);
};

subtest 'What C does not take' => sub {
    my $packed = packed( { channel => 'a', 'http-stream' => { content => 'x' } } );
    for my $wrong ( '', 'x', substr( $packed, 0, -1 ), "${packed}x", "\0" x length $packed ) {
        my $fd = Sirius::Edge::Shared->item($wrong);
        is $fd, -1, length($wrong) . ' bytes';
        ok $!{EINVAL}, 'EINVAL';
    }
};

done_testing;
