package Sirius::Test::Attacks;

# What hostile clients of HTTP/2 do, as a table: of each attack the frames, and how the server has to end it.
# All are bounded in count and time. For xt/http2/attacks.t, and for dev/attack, which measures what a normal
# client notices of them.

use strict;
use warnings;
use IO::Select;
use List::Util  qw(sum);
use Time::HiRes qw(time);
use Sirius::Test::HTTP2;

use constant {
    CHUNK  => 500,    # frames that are sent at a time, about
    CHUNKS => 40,     # of one connection
    EACH   => 100,    # streams, as many as may be open
};

my $MADE    = bless { scheme => 'http' }, 'Sirius::Test::HTTP2';    # makes frames
my %LITERAL = ( ':method' => "\2", ':path' => "\4" );

sub frame { return $MADE->make(@_) }
sub int4  { return pack 'N', shift }

# A head without tables: head( 1, '/', flags => 5, more => $fields )
sub head {
    my ( $stream, $path, %option ) = @_;
    my $method = $option{method} || 'GET';
    my $block = join '', map { $LITERAL{ $_->[0] } . chr( length $_->[1] ) . $_->[1] } [ ':method', $method ],
        [ ':path', $path ];
    return frame( 'HEADERS', $option{flags} // 5, $stream, "$block\x86\1\1a" . ( $option{more} // '' ) );
}

sub post { my ( $stream, %option ) = @_; return head( $stream, '/', method => 'POST', flags => 4, %option ) }

# The odd numbers of streams of chunk $i
sub streams {
    my ( $i, $count ) = @_;
    return map { 1 + 2 * ( $i * $count + $_ ) } 0 .. $count - 1;
}

# The same frame over and over
sub same {
    my @frame = @_;
    my $chunk = frame(@frame) x CHUNK;
    return sub {$chunk}
}

# One request that does not end, and then the same frame on its stream
sub on_stream {
    my ( $type, $flags, $payload ) = @_;
    return ( setup => post(1), chunk => same( $type, $flags, 1, $payload ) );
}

my $FIELD = "\0\1a" . chr(100) . 'b' x 100;    # literal, not indexed
my $LARGE
    = "\x40\1a\x7f" . chr( 4000 - 127 & 127 | 128 ) . chr( 4000 - 127 >> 7 ) . 'b' x 4000;    # into the table

my $BODY = 'x' x 16_000;

# name, and
#   setup, chunk  frames: those at the beginning, and a sub that makes the i-th chunk of those that follow
#   chunks        how many chunks; CHUNKS is the default
#   each          how many streams of a chunk have to end before the next one is sent
#   flood         the reason that is counted; goaway is ENHANCE_YOUR_CALM then
#   goaway        the error that ends the connection. Without, it goes on, or a time limit ends it
#   reset         the error that resets streams
#   limit         the time limit that is counted
#   closed        the reason of closing, as a counter has it
#   refused       the reason of refusals, as a counter has it
#   answers       how many streams have to end
#   deaf          the client reads nothing while it sends
#   hold          the client sends no more, and stays
my @ATTACKS = (
    {   name  => 'rapid reset',
        chunk => sub {
            join '', map { head( $_, '/' ) . frame( 'RST_STREAM', 0, $_, int4(8) ) } streams( shift, CHUNK );
        },
        flood => 'resets'
    },
    {   name  => 'WINDOW_UPDATE by 0',
        chunk => sub {
            join '',
                map { head( $_, '/' ) . frame( 'WINDOW_UPDATE', 0, $_, int4(0) ) } streams( shift, CHUNK );
        },
        goaway => 'PROTOCOL_ERROR'
    },
    {   name  => 'resets provoked by a window that overflows',
        each  => EACH,
        chunk => sub {
            join '',
                map { head( $_, '/' ) . frame( 'WINDOW_UPDATE', 0, $_, int4(0x7fffffff) ) }
                streams( shift, EACH );
        },
        flood => 'errors'
    },
    {   name  => 'bodies that differ from their Content-Length',
        each  => EACH,
        chunk => sub {
            join '',
                map { post( $_, more => "\x0f\x0d\1" . ( $_ & 2 ? 1 : 9 ) ) . frame( 'DATA', 1, $_, 'xx' ) }
                streams( shift, EACH );
        },
        flood => 'errors',
        reset => 'PROTOCOL_ERROR'
    },
    {   name  => 'names in upper case',
        each  => EACH,
        chunk => sub {
            join '', map { head( $_, '/', more => "\0\1A\1b" ) } streams( shift, EACH );
        },
        flood => 'errors',
        reset => 'PROTOCOL_ERROR'
    },
    {   name  => 'control bytes in fields',
        each  => EACH,
        chunk => sub {
            join '', map { head( $_, '/', more => "\0\1a\3b\r\n" ) } streams( shift, EACH );
        },
        flood => 'errors',
        reset => 'PROTOCOL_ERROR'
    },
    {   name  => 'CONTINUATION',
        setup => head( 1, '/', flags => 1 ),
        chunk => same( 'CONTINUATION', 0, 1, $FIELD ),
        flood => 'continuation'
    },
    {   name  => 'CONTINUATION without fields',
        setup => head( 1, '/', flags => 1 ),
        chunk => same( 'CONTINUATION', 0, 1, '' ),
        flood => 'continuation'
    },
    {   name  => 'a head without an end',
        setup => head( 1, '/', flags => 1 ),
        chunk => sub { frame( 'CONTINUATION', 0, 1, $FIELD x 150 ) x 20 },
        flood => 'head'
    },
    {   name  => 'HPACK, a large field by its index',
        setup => head( 1, '/', more => $LARGE ),
        chunk => sub {
            join '', map { head( $_ + 2, '/', more => "\xbe" x 8000 ) } streams( shift, 10 );
        },
        flood => 'head'
    },
    {   name  => 'HPACK, small fields by their index',
        chunk => sub {
            join '', map { head( $_, '/', more => "\x90" x 8000 ) } streams( shift, 10 );
        },
        flood => 'head'
    },
    {   name  => 'HPACK, a large field by its index in trailers',
        setup => post(1) . frame( 'DATA', 0, 1, 'x' ),
        chunk => sub { frame( 'HEADERS', 5, 1, $LARGE . "\xbe" x 8000 ) },
        flood => 'head'
    },
    {   name  => 'SETTINGS',
        chunk => same( 'SETTINGS', 0, 0, pack( 'nN', 4, 1000 ) . pack 'nN', 4, 2000 ),
        flood => 'settings'
    },
    { name => 'PING', chunk => same( 'PING', 0, 0, 'x' x 8 ), flood => 'ping' },
    {   name  => 'PING, whose answers are not read',
        chunk => same( 'PING', 0, 0, 'x' x 8 ),
        flood => 'ping',
        deaf  => 1
    },
    { name => 'answers to PING', chunk => same( 'PING',   1, 0, 'x' x 8 ),  flood => 'other' },
    { name => 'GOAWAY',          chunk => same( 'GOAWAY', 0, 0, "\0" x 8 ), flood => 'other' },
    {   name  => 'PRIORITY',
        chunk => sub {
            join '', map { frame( 'PRIORITY', 0, $_, int4(0) . "\1" ) } streams( shift, CHUNK );
        },
        flood => 'priority'
    },
    { name => 'PRIORITY_UPDATE', chunk => same( 0x10, 0, 0, int4(1) . 'u=1' ),    flood => 'priority' },
    { name => 'WINDOW_UPDATE',   chunk => same( 'WINDOW_UPDATE', 0, 0, int4(1) ), flood => 'window-update' },
    { name => 'frames of no known type', chunk => same( 0xfa, 0, 0, '' ),         flood => 'other' },
    { name => 'empty DATA',              on_stream( 'DATA', 0, '' ),               flood => 'empty-data' },
    { name => 'DATA of padding',         on_stream( 'DATA', 8, "\x9" . "\0" x 9 ), flood => 'empty-data' },
    { name => 'DATA of one byte',        on_stream( 'DATA', 0, 'x' ) },
    {   name  => 'a window of one byte',
        setup => frame( 'SETTINGS', 0, 0, pack 'nN', 4, 1 ) . head( 1, '/big' ),
        chunk => same( 'WINDOW_UPDATE', 0, 1, int4(1) ),
        flood => 'window-update'
    },
    {   name  => 'a window of 0',
        setup => frame( 'SETTINGS', 0, 0, pack 'nN', 4, 0 )
            . join( '', map { head( $_, '/big' ) } streams( 0, 100 ) ),
        reset => 'INTERNAL_ERROR',
        limit => 'write'
    },
    {   name  => 'a window that ends before the last byte',
        setup => frame( 'SETTINGS', 0, 0, pack 'nN', 4, 199_999 )
            . frame( 'WINDOW_UPDATE', 0, 0, int4( 1 << 30 ) )
            . join( '', map { head( $_, '/big' ) } streams( 0, 100 ) ),
        reset => 'INTERNAL_ERROR',
        limit => 'write'
    },
    {   name   => 'a head that does not end',
        setup  => head( 1, '/', flags => 1 ),
        hold   => 1,
        closed => 'header-timeout'
    },
    {   name   => 'a frame that does not end',
        setup  => substr( head( 1, '/' ), 0, 12 ),
        hold   => 1,
        closed => 'header-timeout'
    },
    {   name    => 'bodies of 48 kB that do not end',
        setup   => join( '', map { post($_) . frame( 'DATA', 0, $_, $BODY ) x 3 } streams( 0, 100 ) ),
        hold    => 1,
        refused => 'body-timeout',
        answers => 100
    },
    {   name    => 'bodies that do not end',
        setup   => join( '', map { post($_) } streams( 0, 100 ) ),
        hold    => 1,
        refused => 'body-timeout',
        answers => 100
    },
    {   name  => 'large heads of bodies that do not end, by their index',
        setup => post( 1, more => $LARGE )
            . join( '', map { post( 2 + $_, more => "\xbe" x 15 ) } streams( 0, 100 ) ),
        reset => 'REFUSED_STREAM'
    },
    {   name   => 'crumbs of cookies',
        chunks => 1,
        chunk  => sub {
            join '', map { head( $_, '/', more => "\x60\1a" x 4000 ) } streams( shift, 20 );
        },
        refused => 'max-header',
        answers => 20
    },
    {   name   => 'many fields',
        chunks => 4,
        chunk  => sub {
            join '', map { head( $_, '/', more => "\x0f\x00\1a" x 101 ) } streams( shift, 20 );
        },
        refused => 'max-header',
        answers => 80
    },
    {   name   => 'DATA behind the end of a request',
        setup  => head( 1, '/slow' ) . frame( 'DATA', 0, 1, 'x' ),
        goaway => 'STREAM_CLOSED'
    },
    {   name    => 'CONNECT',
        setup   => frame( 'HEADERS', 5, 1, $MADE->fields( ':method', 'CONNECT', ':authority', 'a:443' ) ),
        refused => 'not-implemented',
        answers => 1
    },
    {   name    => 'GOAWAY within requests',
        setup   => join( '', map { head( $_, '/' ) } streams( 0, 50 ) ) . frame( 'GOAWAY', 0, 0, "\0" x 8 ),
        answers => 50
    },
    {   name  => 'more streams than allowed',
        setup => join( '', map { head( $_, '/slow' ) } streams( 0, 200 ) ),
        reset => 'REFUSED_STREAM'
    },
    {   name   => 'requests that are refused',
        each   => EACH,
        chunks => 10,
        chunk  => sub {
            join '', map { head( $_, '/', method => 'TRACE' ) } streams( shift, EACH );
        },
        refused => 'not-implemented',
        answers => 1000
    },
);

sub all { return @ATTACKS }

# Runs it once on a connection of its own, for so many seconds at most; $tick is called often. What has come:
# a hash with goaway (the error), resets (counts by error), ends (frames that have ended a stream), ended (the
# connection has), sent (bytes)
sub run {
    my ( $class, $attack, $address, $seconds, $tick ) = @_;
    my $client = Sirius::Test::HTTP2->new( $address, rcvbuf => $attack->{deaf} ? 4096 : 0 );
    my %seen   = ( sent => 0, ends => 0, resets => {} );
    my $until  = time + $seconds;
    my $frames = $MADE->preface . ( $attack->{setup} // '' );
    my $chunk  = 0;
    my $most   = $attack->{chunk} ? $attack->{chunks} || CHUNKS : 0;
    local $SIG{PIPE} = 'IGNORE';

    while ( !$client->{ended} && time < $until ) {
        my $ended = $seen{ends} + sum 0, values %{ $seen{resets} };
        my $waits = $chunk == $most || $ended < $chunk * ( $attack->{each} || 0 );
        if ( !length $frames && !$waits ) {
            $frames = $attack->{made}[$chunk] //= $attack->{chunk}->($chunk);
            $chunk++;
        }
        my $n = length $frames ? syswrite $client->{socket}, $frames : 0;
        if ($n) {
            $seen{sent} += $n;
            substr $frames, 0, $n, '';
        } elsif ( !defined $n && !$!{EAGAIN} ) {
            $chunk  = $most;    # it is shut, and there may be more to read
            $frames = '';
        }
        my $sends = length $frames || $chunk < $most;
        note( \%seen, $client, length $frames || !$waits ? 0 : 0.05 ) if !$attack->{deaf} || !$sends;
        last if !$sends && $class->is_over( $attack, \%seen );
        IO::Select->new( $client->{socket} )->can_write(0.01) if length $frames && !$n;
        $tick->()                                             if $tick;
    }
    note( \%seen, $client, 0 );
    $seen{ended} = $client->{ended};
    return \%seen;
}

# Whether it has come to what is expected
sub is_over {
    my ( $class, $attack, $seen ) = @_;
    my $goaway = $attack->{flood} ? 'ENHANCE_YOUR_CALM' : $attack->{goaway};
    return ( $seen->{goaway} // '' ) eq $goaway if $goaway;
    return $seen->{resets}{ $attack->{reset} }  if $attack->{reset};
    return $seen->{ends} >= $attack->{answers}  if $attack->{answers};
    return !$attack->{hold};
}

sub note {
    my ( $seen, $client, $patience ) = @_;
    while ( my $frame = $client->frame($patience) ) {
        my $type = $frame->{type};
        $seen->{goaway} = $frame->{error} if $type eq 'GOAWAY';
        $seen->{resets}{ $frame->{error} }++ if $type eq 'RST_STREAM';
        $seen->{ends}++                      if $type =~ /\A(?:HEADERS|DATA)\z/ && $frame->{flags} & 1;
        $patience = 0;
    }
    return;
}

1;
