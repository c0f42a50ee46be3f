package Sirius::Test::Translator;

# Tied to a socket, speaks HTTP/2 on it for a test that writes and reads HTTP/1.1 (SIRIUS_TEST_H2). Each
# request becomes a stream as soon as its head is there, and what is written of its body becomes DATA.
# Responses come in the order of the requests, framed as HTTP/1.1 has it, with the names of fields in the
# usual capitals. What the server may not do in HTTP/2 is an exception.
#
# - A request that HTTP/2 cannot express is an exception as well; reason() says beforehand why. Chunk
# extensions are lost. - "Connection: close" in a request: the client ends the connection behind the response,
# which has the same field. - A response has it too if it comes before the whole request, and the last one
# behind GOAWAY. Both connections end behind it. - What a server that is full says in HTTP/1.1 before it has
# read anything is passed on. - A stream that is reset before its response is complete ends the connection:
# what HTTP/1.1 does about it. With INTERNAL_ERROR a
#   response has begun, although its head may never be sent.

use strict;
use warnings;
use Errno        qw(EAGAIN ECONNRESET EINTR EPIPE EWOULDBLOCK);
use POSIX        ();
use Scalar::Util qw(weaken);
use Protocol::HTTP2::Connection;
use Protocol::HTTP2::Constants         qw(CLIENT);
use Protocol::HTTP2::HeaderCompression qw(headers_decode);
use Sirius::Test::HTTP2                ();

use constant {
    DATA           => 0,
    HEADERS        => 1,
    RST_STREAM     => 3,
    SETTINGS       => 4,
    PING           => 6,
    GOAWAY         => 7,
    WINDOW_UPDATE  => 8,
    CONTINUATION   => 9,
    FRAME_MAX      => 16_384,
    EXTENSION_MAX  => 1000,
    INTERNAL_ERROR => 2,
    WINDOW         => 262_144,      # of a stream; that of the connection is no limit
    STREAMS_MAX    => 100,          # the server allows 128
    WAITING_MAX    => 262_144,      # bytes that wait here
    LARGEST        => 0x7fffffff,
};

my $TOKEN     = qr/[!#\$%&'*+\-.^_`|~0-9a-z]+/;
my $EXTENSION = qr/[ \t]*;[ \t]*$TOKEN(?:[ \t]*=[ \t]*(?:$TOKEN|"[\t\x20\x21\x23-\x5b\x5d-\x7e]*"))?/i;
my %REASON    = ( 100  => 'Continue', 200 => 'OK', 404 => 'Not Found' );
my %NAME      = ( etag => 'ETag',     'www-authenticate' => 'WWW-Authenticate' );

# The socket from now on
sub bind {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $class, $socket ) = @_;
    untie *$socket if ref $socket eq 'IO::Socket::SSL';
    tie *$socket, $class, $socket;
    return $socket;
}

# Why HTTP/2 cannot express these bytes; undefined: it can
sub reason {
    my ( $class, $bytes ) = @_;
    my $dry = $class->_new;
    my $at  = 0;
    while ( $at < length $bytes ) {
        my $n = eval { $dry->_take( \$bytes, $at ) };
        return $@ =~ s/\n\z//r if !defined $n;
        $at += $n;
        $dry->{out}             = '';
        @$dry{qw(order stream)} = ( [], {} ) if $dry->{part} eq 'head';
        $dry->{window}          = $_->{window} = LARGEST for grep {defined} $dry->{sending};
    }
    return
        length $dry->{request} && $dry->{request} ne "\r\n" ? 'a line or head that is not complete' : undef;
}

# --- what perl calls ---

sub TIEHANDLE {
    my ( $class, $socket ) = @_;
    my $self = $class->_new( socket => $socket, fd => fileno $socket );
    $self->{ssl} = ref $socket eq 'IO::Socket::SSL';
    weaken $self->{socket};
    $self->{out} = Sirius::Test::HTTP2->preface( [ 4, WINDOW ] );
    $self->_flush;
    return $self;
}

sub CLOSE {
    my $self   = shift;
    my $socket = $self->{socket};
    no warnings 'untie';
    untie *$socket;
    return $self->{ssl} ? $socket->close : CORE::close $socket;
}

sub FILENO { return shift->{fd} }

sub READ {
    my ( $self, undef, $length, $offset ) = @_;
    $self->_begin_more;
    $self->_pump if !length $self->{text} && !$self->{over};
    if ( !length $self->{text} ) {
        return 0 if ( $self->{over} // '' ) eq 'eof';
        $! = $self->{over} ? ECONNRESET : EAGAIN;
        return;
    }
    my $piece = substr $self->{text}, 0, $length, '';
    $_[1] = '' if !defined $_[1] || !$offset;
    substr $_[1], $offset || 0, length $_[1], $piece;
    $self->_credit if !length $self->{text};
    return length $piece;
}

sub WRITE {
    my ( $self, $bytes, $length, $offset ) = @_;
    $bytes = substr $bytes, $offset || 0, $length;
    if ( $self->{gone} ) { $! = EPIPE; return }
    my $at = 0;
    for my $try ( 1, 2 ) {
        $self->_begin_more;
        while ( $at < length $bytes && !length $self->{requests} && length $self->{out} < WAITING_MAX ) {
            my $n = $self->_take( \$bytes, $at ) or last;
            $at += $n;
        }
        if ( $self->{part} eq 'head' && ( my $room = WAITING_MAX - length $self->{requests} ) > 0 ) {
            $self->{requests} .= substr $bytes, $at, $room;    # more streams than the server allows
            $at += $room;
            $at = length $bytes if $at > length $bytes;
        }
        $self->_flush;
        last if $at;
        vec( my $read = '', $self->{fd}, 1 ) = 1;
        select $read, undef, undef, 0.01 if $try == 1;
        $self->_pump;
    }
    return $at if $at;
    $! = $self->{gone} ? EPIPE : EAGAIN;
    return;
}

# Whether there is text, or the end, which select does not report
sub waiting { return length $_[0]{text} || $_[0]{over} }

# The same, after it was looked for
sub peek {
    my $self = shift;
    $self->_pump if !$self->waiting;
    return $self->waiting;
}

# --- requests ---

sub _new {
    my ( $class, %more ) = @_;
    return bless {
        in       => '',
        out      => '',
        text     => '',
        requests => '',       # that have no stream yet
        request  => '',       # of a head, or of a line of chunks
        part     => 'head',
        next     => 1,
        order    => [],
        stream   => {},
        credit   => {},
        window   => 65_535,
        initial  => 65_535,
        hpack    => Protocol::HTTP2::Connection->new( CLIENT, on_error => sub { } ),
        %more
    }, $class;
}

# Requests that have waited for their turn
sub _begin_more {
    my $self = shift;
    while ( length $self->{requests} && length $self->{out} < WAITING_MAX ) {
        my $n = $self->_take( \$self->{requests}, 0 ) or last;
        substr $self->{requests}, 0, $n, '';
    }
    return;
}

# Takes of what a test writes. Returns how many bytes; 0: there is no room
sub _take {
    my ( $self, $bytes, $at ) = @_;
    my $stream = $self->{sending};
    return length($$bytes) - $at if $self->{over} || $self->{last} || ( $stream && $stream->{over} );
    my $part = $self->{part};
    if ( $part eq 'head' ) {
        return 0 if !length $self->{request} && @{ $self->{order} } >= STREAMS_MAX;
        my $n = $self->_until( "\r\n\r\n", $bytes, $at );
        $self->_head( $self->{request} ) if $self->{request} =~ /\r\n\r\n\z/;
        return $n;
    }
    return $self->_data( $bytes, $at ) if $part eq 'body' || $part eq 'chunk';
    my $n = $self->_until( "\r\n", $bytes, $at );
    return $n if $self->{request} !~ s/\r\n\z//;
    my $line = $self->{request};
    $self->{request} = '';
    if ( $part eq 'size' ) {
        my ($size) = $line =~ /\A([0-9A-Fa-f]{1,15})(?:$EXTENSION)*\z/ or die "a chunk size that is none\n";
        die "a long chunk extension\n" if length $line > EXTENSION_MAX;
        @$self{qw(left part)} = ( hex $size, hex $size ? 'chunk' : 'trailer' );
    } elsif ( $part eq 'behind' ) {
        die "a chunk that does not end with its size\n" if length $line;
        $self->{part} = 'size';
    } elsif ( length $line ) {
        my ( $name, $value ) = $line =~ /\A([^:\s]+):[ \t]*(.*?)[ \t]*\z/s or die "a trailer that is none\n";
        push @{ $self->{trailer} }, lc $name, $value;
    } else {
        my @trailer = splice @{ $self->{trailer} };
        $self->{out}
            .= @trailer ? $self->_block( $stream, 1, @trailer ) : _frame( DATA, 1, $stream->{id}, '' );
        $self->_whole($stream);
    }
    return $n;
}

# Appends to the line or the head that is being read, up to its end
sub _until {
    my ( $self, $end, $bytes, $at ) = @_;
    my $request = \$self->{request};
    my $had     = length $$request;
    my $piece   = substr $$bytes, $at, FRAME_MAX;
    $$request .= $piece;
    $had = 0 if $end eq "\r\n\r\n" && $$request =~ s/\A\r\n(?=[^\r])//;    # RFC 9112 2.2
    my $found = index $$request, $end, $had > 3 ? $had - 3 : 0;
    return length $piece if $found < 0;
    return length($piece) - length substr $$request, $found + length $end, length $$request, '';
}

sub _head {
    my ( $self, $head ) = @_;
    my ( $line, @line ) = split /\r\n/, $head || ' ';
    die "a line that does not end with CRLF\n" if ( $head =~ s/\r\n//gr ) =~ /[\r\n]/;
    my ( $method, $target, $version ) = $line =~ m{\A([^ ]+) ([^ ]+) HTTP/(\S+)\z}
        or die "a request line that is none\n";
    die "HTTP/$version\n" if $version ne '1.1';
    my ( @field, @length, $host, $chunked, $last );
    for (@line) {
        die "a folded line\n" if /\A[ \t]/;
        my ( $name, $value ) = /\A([^:]+):[ \t]*(.*?)[ \t]*\z/s or die "a line without a name\n";
        die "white space before a colon\n" if $name =~ /[ \t]\z/;
        $name = lc $name;
        die "$name\n"
            if $name =~ /\A(?:upgrade|keep-alive|proxy-connection)\z/
            || ( $name eq 'te' && lc $value ne 'trailers' );
        if ( $name eq 'connection' ) {
            for my $option ( split /[ \t]*,[ \t]*/, lc $value ) {
                die "Connection: $option\n" if $option !~ /\A(?:close|keep-alive)\z/;
                $last = 1                   if $option eq 'close';
            }
        } elsif ( $name eq 'transfer-encoding' ) {
            die "Transfer-Encoding: $value\n" if lc $value ne 'chunked' || $chunked++;
        } elsif ( $name eq 'host' && !defined $host ) {
            $host = $value;
        } elsif ( $name eq 'cookie' ) {    # as browsers do (RFC 9113 8.2.3)
            push @field, map { ( $name, $_ ) } length $value ? split /; /, $value, -1 : '';
        } else {
            push @field, $name, $value;
            push @length, $value if $name eq 'content-length';
        }
    }
    die "Transfer-Encoding beside Content-Length\n" if $chunked && @length;
    my @to = ( ':path' => $target );
    if ( $method eq 'CONNECT' ) {
        ( $host, @to ) = ($target);
    } elsif ( $target =~ m{\Ahttps?://([^/?#]*)([/?].*)?\z}is ) {
        die "a URL without Host\n" if !defined $host;
        $host = $1;
        @to   = ( ':path' => ( $2 // ( $method eq 'OPTIONS' ? '*' : '/' ) ) =~ s{\A\?}{/?}r );
    }
    push @to, ':scheme'    => $self->{ssl} ? 'https' : 'http' if $method ne 'CONNECT';
    push @to, ':authority' => $host                           if defined $host;
    my $is_length = @length && !grep { !/\A\d{1,15}\z/ || $_ ne $length[0] } @length;
    my $stream    = {
        id      => $self->{next},
        window  => $self->{initial},
        text    => '',
        is_head => $method eq 'HEAD',
        closes  => $last
    };
    $self->{next} += 2;
    $self->{stream}{ $stream->{id} } = $stream;
    push @{ $self->{order} }, $stream;
    my $has_body = $chunked || ( $is_length && $length[0] > 0 );
    $self->{out} .= $self->_block( $stream, !$has_body, ':method' => $method, @to, @field );
    @$self{qw(request sending left part)}
        = ( '', $stream, $length[0], $chunked ? 'size' : $has_body ? 'body' : 'head' );
    $self->_whole($stream) if !$has_body;
    $self->{last} = 1      if @length && !$is_length;    # what follows is no request
    return;
}

# HEADERS, and CONTINUATION if it is long. HPACK without its tables
sub _block {
    my ( $self, $stream, $ends, @field ) = @_;
    my @piece = unpack '(a' . FRAME_MAX . ')*', Sirius::Test::HTTP2->fields(@field);
    my $last  = $#piece;
    return join '', map {
        _frame(
            $_ ? CONTINUATION : HEADERS,
            ( $_ == $last ? 4 : 0 ) | ( $ends && !$_ ? 1 : 0 ),
            $stream->{id}, $piece[$_]
        )
    } 0 .. $last;
}

sub _data {
    my ( $self, $bytes, $at ) = @_;
    my $stream = $self->{sending};
    my $n      = FRAME_MAX;
    for my $most ( length($$bytes) - $at, $self->{left}, $self->{window}, $stream->{window} ) {
        $n = $most if $most < $n;
    }
    return 0 if $n <= 0;
    $_ -= $n for $self->{left}, $self->{window}, $stream->{window};
    my $ends = $self->{part} eq 'body' && !$self->{left};
    $self->{out} .= _frame( DATA, $ends ? 1 : 0, $stream->{id}, substr $$bytes, $at, $n );
    $self->_whole($stream)   if $ends;
    $self->{part} = 'behind' if $self->{part} eq 'chunk' && !$self->{left};
    return $n;
}

# All of a request was written
sub _whole {
    my ( $self, $stream ) = @_;
    $stream->{whole} = 1;
    $self->{last}    = 1 if $stream->{closes};
    delete $self->{sending};
    $self->{part} = 'head';
    return;
}

sub _frame { return Sirius::Test::HTTP2->make(@_) }

# --- responses ---

# Reads frames until there is text, or none are left
sub _pump {
    my $self = shift;
    $self->_flush;
    while ( !$self->{gone} ) {
        my $n
            = $self->{ssl}
            ? IO::Socket::SSL::sysread( $self->{socket}, $self->{in}, 65_536, length $self->{in} )
            : POSIX::read( $self->{fd}, my $piece, 65_536 );
        if ( !defined $n ) {
            last if $! == EAGAIN || $! == EWOULDBLOCK;
            next if $! == EINTR;
        }
        if ( !defined $n || $n == 0 ) {
            $self->{gone} = 1;
            $self->{over} ||= defined $n ? 'eof' : 'reset';
            last;
        }
        $self->{in} .= $piece if !$self->{ssl};
        $self->_received;
        last if length $self->{text} || $self->{over};
    }
    $self->_flush;
    return;
}

sub _received {
    my $self = shift;
    if ( substr( $self->{in}, 0, 9 ) eq 'HTTP/1.1 ' && !$self->{frames} ) {
        $self->{text} .= substr $self->{in}, 0, length $self->{in}, '';
        return;
    }
    while ( length $self->{in} >= 9 && !$self->{over} ) {
        $self->{frames}++;
        my ( $high, $low, $type, $flags, $id ) = unpack 'C n C C N', $self->{in};
        my $length = $high << 16 | $low;
        die "garbage: a frame of $length bytes\n" if $length > FRAME_MAX;
        last                                      if length $self->{in} < 9 + $length;
        my $payload = substr substr( $self->{in}, 0, 9 + $length, '' ), 9;
        $id &= LARGEST;
        die "garbage: a frame within a header block\n" if defined $self->{block} && $type != CONTINUATION;

        if ( $type == SETTINGS || $type == PING ) {
            next                       if $flags & 1;
            $self->_settings($payload) if $type == SETTINGS;
            $self->{out} .= _frame( $type, 1, 0, $type == PING ? $payload : '' );
        } elsif ( $type == WINDOW_UPDATE ) {
            my $of = $id ? $self->{stream}{$id} : $self;
            $of->{window} += unpack 'N', $payload if $of;
        } elsif ( $type == GOAWAY ) {
            my $most = LARGEST & unpack 'N', $payload;
            $self->{closing} = 1;
            $_->{id} > $most && $self->_cut($_) for @{ $self->{order} };
        } else {
            $self->_of_stream( $type, $flags, $self->{stream}{$id}, $payload );
        }
    }
    return;
}

sub _settings {
    my ( $self, $payload ) = @_;
    my %to = unpack '(n N)*', $payload;
    return if !defined $to{4};
    $_->{window} += $to{4} - $self->{initial} for values %{ $self->{stream} };
    $self->{initial} = $to{4};
    return;
}

sub _of_stream {
    my ( $self, $type, $flags, $stream, $payload ) = @_;
    if ( $type == RST_STREAM ) {
        return if !$stream || $stream->{over};
        $self->_text( $stream, 'HTTP/1.1 ', 0 )
            if !$stream->{answered} && unpack( 'N', $payload ) == INTERNAL_ERROR;
        $self->_cut($stream);
        return;
    }
    die "garbage: a frame of type $type on a stream that is closed\n" if !$stream || $stream->{over};
    if ( $type == HEADERS || $type == CONTINUATION ) {
        $self->{block} .= $payload;
        $self->{ends} = $flags & 1 if $type == HEADERS;
        return                     if !( $flags & 4 );
        my $block = delete $self->{block};
        $self->_answer( $stream, \$block );
        return if !$self->{ends};
    } elsif ( $type == DATA ) {
        die "garbage: DATA before HEADERS\n" if !$stream->{answered};
        my $n = length $payload;
        die "garbage: more than the window\n"                       if ( $stream->{credit} -= $n ) < 0;
        $self->{out} .= _frame( WINDOW_UPDATE, 0, 0, pack 'N', $n ) if $n;
        if ( defined $stream->{left} ) {
            die "garbage: more than Content-Length\n" if ( $stream->{left} -= $n ) < 0;
            $self->_text( $stream, $payload, $n );
        } elsif ($n) {
            $self->_text( $stream, sprintf( "%x\r\n%s\r\n", $n, $payload ), $n );
        }
        return if !( $flags & 1 );
    } else {
        die "garbage: a frame of type $type\n";
    }
    die "garbage: less than Content-Length\n" if !$stream->{is_head} && $stream->{left};
    $self->_text( $stream, "0\r\n\r\n", 0 )   if $stream->{chunked};
    $self->_over( $stream, 'whole' );
    return;
}

# A head, as text
sub _answer {
    my ( $self, $stream, $block ) = @_;
    my $context = $self->{hpack}->decode_context;
    $context->{emitted_headers} = [];
    defined headers_decode( $self->{hpack}, $block, 0, length $$block, $stream->{id} )
        or die "garbage: fields that cannot be decoded\n";
    my @field = @{ $context->{emitted_headers} };
    my ( $status, @line ) = ('');
    my $text = '';
    while ( my ( $name, $value ) = splice @field, 0, 2 ) {
        if ( $name eq ':status' && $status eq '' && !@line ) { $status = $value; next }
        die "garbage: field $name\n"
            if $name !~ /\A$TOKEN\z/
            || $name =~ /\A(?:connection|keep-alive|proxy-connection|transfer-encoding|upgrade)\z/;
        $stream->{left} = $value if $name eq 'content-length';
        push @line, ( $NAME{$name} || join '-', map {ucfirst} split /-/, $name, -1 ) . ": $value\r\n";
    }
    die "garbage: status $status\n" if $status !~ /\A[1-9]\d\d\z/ || $stream->{answered};
    if ( $status >= 200 ) {
        $stream->{answered} = 1;
        $stream->{credit}   = WINDOW;
        $stream->{closes} ||= !$stream->{whole}
            || ( $self->{closing} && !grep { $_->{id} > $stream->{id} && !$_->{over} } @{ $self->{order} } );
        push @line, "Connection: close\r\n" if $stream->{closes};
        $stream->{chunked} = !$stream->{is_head} && !defined $stream->{left} && $status !~ /\A(?:204|304)\z/;
        push @line, "Transfer-Encoding: chunked\r\n" if $stream->{chunked};
        $stream->{left} = 0 if $status == 304;
    }
    $self->_text( $stream,
        join( '', "HTTP/1.1 $status " . ( $REASON{$status} // '' ) . "\r\n", @line, "\r\n" ), 0 );
    return;
}

# Text of a stream, for which so many bytes of its window were used
sub _text {
    my ( $self, $stream, $text, $used ) = @_;
    if ( $stream == $self->{order}[0] ) {
        $self->{text} .= $text;
        $self->{credit}{ $stream->{id} } += $used;
        return;
    }
    $stream->{text} .= $text;
    $stream->{used} += $used;
    return;
}

# What was read: the server may send as much again
sub _credit {
    my $self   = shift;
    my $credit = $self->{credit};
    for my $id ( keys %$credit ) {
        my $n      = delete $credit->{$id};
        my $stream = $self->{stream}{$id};
        next if !$n || !$stream || $stream->{over};
        $stream->{credit} += $n;
        $self->{out} .= _frame( WINDOW_UPDATE, 0, $id, pack 'N', $n );
    }
    $self->_flush;
    return;
}

sub _cut {
    my ( $self, $stream ) = @_;
    return $self->_over( $stream, 'cut' );
}

# A stream is over. Gives out the text of those behind it
sub _over {
    my ( $self, $stream, $how ) = @_;
    return if $stream->{over};
    $stream->{over} = $how;
    my $order = $self->{order};
    while ( @$order && $order->[0]{over} ) {
        my $first = shift @$order;
        delete $self->{stream}{ $first->{id} };
        return $self->_hang_up if $first->{over} eq 'cut' || $first->{closes};
        next                   if !@$order;
        $self->{text} .= $order->[0]{text};
        $self->{credit}{ $order->[0]{id} } += $order->[0]{used} || 0;
        $order->[0]{text} = '';
    }
    return;
}

# Nothing is behind this response
sub _hang_up {
    my $self = shift;
    $self->{over} = 'eof';
    $self->_flush;
    shutdown $self->{socket}, 1 if $self->{socket} && !$self->{ssl};
    return;
}

# --- bytes ---

sub _flush {
    my $self = shift;
    local $SIG{PIPE} = 'IGNORE' if length $self->{out};
    while ( length $self->{out} && defined $self->{fd} && !$self->{gone} ) {
        my $n
            = $self->{ssl}
            ? IO::Socket::SSL::syswrite( $self->{socket}, $self->{out}, 16_384 )
            : POSIX::write( $self->{fd}, $self->{out},
            length $self->{out} > 65_536 ? 65_536 : length $self->{out} );
        if ($n) { substr $self->{out}, 0, $n, ''; next }
        next if $! == EINTR;
        last if $! == EAGAIN || $! == EWOULDBLOCK;
        $self->{out} = '';    # it is closed; what came before can be read
    }
    return;
}

1;
