package Sirius::Test::WebSocket;

# A client that speaks WebSocket frame by frame, over HTTP/1.1, plain or with TLS, or one stream of HTTP/2.
# Nothing here waits without a limit.

use strict;
use warnings;
use Time::HiRes qw(time);
use Sirius::Test::Client;

my $KEY  = 'dGhlIHNhbXBsZSBub25jZQ==';
my %KIND = ( more => 0, text => 1, binary => 2, close => 8, ping => 9, pong => 10 );
my %NAME = reverse %KIND;

# $address is "127.0.0.1:80". Options: path, fields (of the request), tls, h2, rcvbuf. What was answered is in
# status, and in head for HTTP/1.1
sub new {
    my ( $class, $address, %option ) = @_;
    my $self = bless { in => q(), path => '/', fields => [], %option }, $class;
    return $self->{h2} ? $self->_stream($address) : $self->_upgrade($address);
}

sub status { return shift->{status} }
sub head   { return shift->{head} }

# A frame as bytes. Options: fin (1), rsv (0), mask (4 bytes, or '' for none), length (what its head says)
sub frame {
    my ( $self, $kind, $bytes, %option ) = @_;
    $bytes //= q();
    my $mask  = $option{mask} // "\x37\xfa\x21\x3d";
    my $first = ( $option{fin} // 1 ) << 7 | ( $option{rsv} // 0 ) << 4 | ( $KIND{$kind} // $kind );
    my $len   = $option{length} // length $bytes;
    my $bit   = length $mask ? 128 : 0;
    my $head
        = $len < 126    ? pack( 'C C', $first, $bit | $len )
        : $len < 65_536 ? pack( 'C C n', $first, $bit | 126, $len )
        :                 pack( 'C C Q>', $first, $bit | 127, $len );
    $bytes ^= substr $mask x ( 1 + length($bytes) / 4 ), 0, length $bytes if length $mask;
    return $head . $mask . $bytes;
}

sub send {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $kind, $bytes, %option ) = @_;
    return $self->put( $self->frame( $kind, $bytes, %option ) );
}

sub text { my ( $self, $text ) = @_; return $self->send( text => $text ) }

# The next frame: "text hello", "close 1000 bye", "ping "; or "eof", "timeout", "reset CANCEL"
sub next {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $patience ) = @_;
    my $until = time + ( $patience // $Sirius::Test::Client::PATIENCE );
    while (1) {
        my $frame = $self->_frame;
        return $frame       if defined $frame;
        return $self->{end} if $self->{end};
        return 'timeout'    if time >= $until;
        $self->_more($until);
    }
}

# Frames up to the close, or the end, with commas between them; without that frame
sub all {
    my ( $self, $patience ) = @_;
    my @all;
    push @all, $self->next($patience) while !@all || $all[-1] !~ /\A(?:close|eof|timeout|reset)/;
    return join ', ', @all;
}

# How it ends when only its end may come
sub end {
    my ( $self, $patience ) = @_;
    my $until = time + ( $patience // $Sirius::Test::Client::PATIENCE );
    $self->_more($until) while !$self->{end} && time < $until;
    return length $self->{in} ? "bytes $self->{in}" : $self->{end} // 'timeout';
}

# Bytes as they are
sub put {
    my ( $self, $bytes ) = @_;
    return $self->{client}->send($bytes) && $self if !$self->{h2};
    while ( length $bytes ) {
        my $piece = substr $bytes, 0, 16_384, q();
        my $until = time + $Sirius::Test::Client::PATIENCE;
        $self->_more($until) while $self->_window < length $piece && !$self->{end} && time < $until;
        $self->{window}[$_] -= length $piece for 0, 1;
        $self->{client}->send( $self->{client}->make( 'DATA', 0, 1, $piece ) );
    }
    return $self;
}

# The client's side of the connection ends
sub finish {
    my $self = shift;
    $self->{h2}
        ? $self->{client}->send( $self->{client}->make( 'DATA', 1, 1, q() ) )
        : $self->{client}->finish;
    return $self;
}

sub close {    ## no critic (ProhibitBuiltinHomonyms)
    my $self = shift;
    return $self->{h2} ? close $self->{client}{socket} : $self->{client}->close;
}

sub _upgrade {
    my ( $self, $address ) = @_;
    local $Sirius::Test::Client::TLS = $self->{tls};
    $self->{client} = Sirius::Test::Client->new( $address,
        map { defined $self->{$_} ? ( $_ => $self->{$_} ) : () } qw(rcvbuf) );
    $self->{client}->send(
        join "\r\n",
        "GET $self->{path} HTTP/1.1",
        'Host: a',
        'Upgrade: websocket',
        'Connection: Upgrade',
        "Sec-WebSocket-Key: $KEY",
        'Sec-WebSocket-Version: 13',
        @{ $self->{fields} },
        q(),
        q()
    );
    my $until = time + $Sirius::Test::Client::PATIENCE;
    $self->_more($until) while $self->{in} !~ /\r\n\r\n/ && !$self->{end} && time < $until;
    ( $self->{head} )   = $self->{in}   =~ s/\A(.*?\r\n)\r\n//s ? $1 : q();
    ( $self->{status} ) = $self->{head} =~ m{\AHTTP/1\.1 (\d+)};
    return $self;
}

# RFC 8441
sub _stream {
    my ( $self, $address ) = @_;
    require Sirius::Test::HTTP2;             # which needs a module that not everybody has
    my $h2 = $self->{client} = Sirius::Test::HTTP2->new( $address, $self->{tls} ? ( tls => ['h2'] ) : () );
    $self->{window} = [ 65_535, 65_535 ];    # of the connection, and of the stream
    setsockopt $h2->{socket}, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1;
    $h2->greet;
    my @fields   = map { lc(s/:.*//sr) => s/\A[^:]*:\s*//r } @{ $self->{fields} };
    my $settings = $h2->await('SETTINGS');
    $self->{window}[1] = unpack 'N', $1 if $settings->{payload} =~ /\A(?:.{6})*?\x00\x04(.{4})/s;
    $self->{extended}  = $settings->{payload} =~ /\A(?:.{6})*\x00\x08\x00\x00\x00\x01/s;
    $h2->send( $h2->make( 'SETTINGS', 1, 0 ) );
    $h2->send( $h2->make(
        'HEADERS',
        4, 1,
        $h2->fields(
            ':method'               => 'CONNECT',
            ':protocol'             => 'websocket',
            ':scheme'               => $h2->{scheme},
            ':path'                 => $self->{path},
            ':authority'            => 'a',
            'sec-websocket-version' => 13,
            @fields
        )
    ) );
    my $until = time + $Sirius::Test::Client::PATIENCE;
    $self->_more($until) while !$self->{status} && !$self->{end} && time < $until;
    return $self;
}

sub _window {
    my $self = shift;
    return $self->{window}[0] < $self->{window}[1] ? $self->{window}[0] : $self->{window}[1];
}

# One frame of the bytes that have come
sub _frame {
    my $self = shift;
    my ( $first, $len ) = unpack 'C C', $self->{in};
    return if length $self->{in} < 2;
    my $wide = $len == 126 ? 2 : $len == 127 ? 8 : 0;
    return if length $self->{in} < 2 + $wide;
    $len = unpack $wide == 2 ? 'n' : 'Q>', substr $self->{in}, 2, $wide if $wide;
    return if length $self->{in} < 2 + $wide + $len;
    my $bytes = substr $self->{in}, 2 + $wide, $len;
    substr $self->{in}, 0, 2 + $wide + $len, q();
    my $name
        = ( $first & 0x70 ? 'reserved ' : q() )
        . ( $first & 0x80 ? q() : 'part ' )
        . ( $NAME{ $first & 15 } // 'unknown' );
    return "$name $bytes" if $name ne 'close';
    return 'close'        if !$len;
    return join ' ', 'close', unpack( 'n', $bytes ), ( $len > 2 ? substr $bytes, 2 : () );
}

sub _more {
    my ( $self, $until ) = @_;
    my $patience = $until - time > 0 ? $until - time : 0;
    return $self->_more_of_stream($patience) if $self->{h2};
    my $client = $self->{client};
    my $bytes  = $client->some( 1, $patience < 1 ? $patience : 1 );
    $self->{in} .= $bytes;
    $self->{end} = $client->{end} if !length $bytes && $client->{end};
    return;
}

sub _more_of_stream {
    my ( $self, $patience ) = @_;
    my $h2    = $self->{client};
    my $frame = $h2->frame($patience);
    if ( !$frame ) {
        $self->{end} = 'eof' if $h2->{ended};
        return;
    }
    my ( $type, $payload ) = @{$frame}{qw(type payload)};
    $self->{window}[ $frame->{stream} ? 1 : 0 ] += unpack 'N', $payload if $type eq 'WINDOW_UPDATE';
    $self->{end} = "reset $frame->{error}" if $type eq 'RST_STREAM' && !$self->{end};
    $self->{status} //= $frame->{status}   if $type eq 'HEADERS';
    if ( $type eq 'DATA' ) {
        $self->{in} .= $payload;
        $h2->send( $h2->make( 'WINDOW_UPDATE', 0, $_, pack 'N', length $payload ) )
            for length $payload ? ( 0, 1 ) : ();
    }
    $self->{end} //= 'eof' if $type =~ /\A(?:DATA|HEADERS)\z/ && $frame->{flags} & 1;
    return;
}

1;
