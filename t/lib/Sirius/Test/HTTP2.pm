package Sirius::Test::HTTP2;

# A client that speaks HTTP/2 on one connection: by Protocol::HTTP2, or frame by frame. Nothing here waits
# without a limit.

use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);
use Protocol::HTTP2::Client;
use Protocol::HTTP2::HeaderCompression qw(str_decode);

our $PATIENCE = 10;                                   # seconds to wait for any single answer
our @LISTEN   = ( '--listen', '127.0.0.1:0,h2c' );    # options of a server that speaks it without TLS

my $PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
my @TYPES = qw(DATA HEADERS PRIORITY RST_STREAM SETTINGS PUSH_PROMISE PING GOAWAY WINDOW_UPDATE CONTINUATION);
my %TYPE  = map { $TYPES[$_] => $_ } 0 .. $#TYPES;
my @ERRORS
    = qw(NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR
    REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED);

# $address is "127.0.0.1:80". Options: tls (ALPN offers these), rcvbuf
sub new {
    my ( $class, $address, %option ) = @_;
    my $socket = IO::Socket::INET->new( PeerAddr => $address, Timeout => $PATIENCE )
        or die "connect to $address: $!";
    setsockopt $socket, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1;
    setsockopt $socket, Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), pack 'i', $option{rcvbuf}
        if $option{rcvbuf};
    if ( $option{tls} ) {
        require IO::Socket::SSL;
        $socket = IO::Socket::SSL->start_SSL(
            $socket,
            SSL_verify_mode    => 0,
            SSL_alpn_protocols => $option{tls},
            Timeout            => $PATIENCE
        ) or die "TLS: $IO::Socket::SSL::SSL_ERROR";
    }
    $socket->blocking(0);
    my $self = bless {
        socket  => $socket,
        address => $address,
        in      => '',
        scheme  => $option{tls} ? 'https' : 'http'
    }, $class;
    return $self;
}

sub alpn { return shift->{socket}->alpn_selected }

# --- by Protocol::HTTP2 ---

# Begins a request; its answer is a hash with status, fields, body and done. ask( 'POST /path', { name =>
# value }, $body )
sub begin {
    my ( $self, $line, $field, $body ) = @_;
    my ( $method, $path ) = split q{ }, $line;
    my %answer = ( done => 0 );
    $self->{client} ||= Protocol::HTTP2::Client->new( keepalive => 1 );
    $self->{client}->request(
        ':method'    => $method,
        ':path'      => $path,
        ':scheme'    => $self->{scheme},
        ':authority' => $self->{address},
        headers      => [ %{ $field || {} } ],
        ( defined $body ? ( data => $body ) : () ),
        on_done => sub {
            my ( $fields, $data ) = @_;
            my %of = @$fields;
            @answer{qw(done status fields body)} = ( 1, delete $of{':status'}, \%of, $data // '' );
        },
        on_error => sub { @answer{qw(done error)} = ( 1, shift ) },
    );
    $self->flush;
    return \%answer;
}

sub flush {
    my $self = shift;
    while ( my $frame = $self->{client}->next_frame ) { $self->send($frame) }
    return;
}

# Until these answers are done
sub finish {
    my ( $self, @answers ) = @_;
    my $until = time + $PATIENCE;
    while ( grep { !$_->{done} } @answers ) {
        my $bytes = $self->receive( $until - time );
        last if !defined $bytes;
        $self->{client}->feed($bytes);
        $self->flush;
    }
    return @answers;
}

sub ask {
    my ( $self, @request ) = @_;
    my ($answer) = $self->finish( $self->begin(@request) );
    return $answer;
}

# --- frame by frame ---

# The preface and empty SETTINGS
sub greet {
    my ( $self, @settings ) = @_;
    return $self->send( $self->preface(@settings) );
}

sub preface {
    my ( $self, @settings ) = @_;
    return $PREFACE . $self->make( 'SETTINGS', 0, 0, join '', map { pack 'n N', @$_ } @settings );
}

sub make {
    my ( $self, $type, $flags, $stream, $payload ) = @_;
    $payload = '' if !defined $payload;
    return
          substr( pack( 'N', length $payload ), 1 )
        . pack( 'C C N', $TYPE{$type} // $type, $flags, $stream )
        . $payload;
}

# Fields as HPACK has them without its tables
sub fields {
    my ( $self, @field ) = @_;
    my $block = '';
    while ( my ( $name, $value ) = splice @field, 0, 2 ) {
        $block .= "\0" . join '', map { _length( length $_ ) . $_ } $name, $value;
    }
    return $block;
}

sub _length {
    my $n = shift;
    return chr $n if $n < 127;
    my $text = "\x7f";
    for ( $n -= 127; $n > 127; $n >>= 7 ) { $text .= chr( $n & 127 | 128 ) }
    return $text . chr $n;
}

# A request whose head is one frame: open( 1, 'GET /', name => value, ... )
sub open {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $stream, $line, @field ) = @_;
    my ( $method, $path ) = split q{ }, $line;
    my $flags = $method =~ /\A(?:POST|PUT)\z/ ? 4 : 5;    # END_HEADERS, END_STREAM
    return $self->send( $self->make(
        'HEADERS',
        $flags, $stream,
        $self->fields(
            ':method' => $method,
            ':path'   => $path,
            ':scheme' => $self->{scheme},
            ( grep { $_ eq ':authority' } @field ) ? () : ( ':authority' => 'a' ), @field
        )
    ) );
}

# The next frame: a hash with type, flags, stream and payload; of RST_STREAM and GOAWAY also error, of HEADERS
# status where it is the first field. Undefined: the end, or nothing has come
sub frame {
    my ( $self, $patience ) = @_;
    my $until = time + ( $patience // $PATIENCE );
    while (1) {
        my $need = length $self->{in} >= 9 ? 9 + unpack( 'N', "\0" . substr $self->{in}, 0, 3 ) : 9;
        last if length $self->{in} >= 9 && length $self->{in} >= $need;
        my $bytes = $self->receive( $until - time );
        return if !defined $bytes;
        $self->{in} .= $bytes;
    }
    my ( $high, $low, $type, $flags, $stream ) = unpack 'C n C C N', $self->{in};
    my $length  = $high << 16 | $low;
    my $payload = substr $self->{in}, 9, $length;
    substr $self->{in}, 0, 9 + $length, '';
    my %frame = (
        type    => $TYPES[$type] // $type,
        flags   => $flags,
        stream  => $stream & 0x7fffffff,
        payload => $payload
    );
    $frame{error}  = $ERRORS[ unpack 'N',    $payload ] if $frame{type} eq 'RST_STREAM';
    $frame{error}  = $ERRORS[ unpack 'x4 N', $payload ] if $frame{type} eq 'GOAWAY';
    $frame{status} = _status($payload) if $frame{type} eq 'HEADERS' && length $payload;
    return \%frame;
}

# The next frame of this type, whatever comes before
sub await {
    my ( $self, $type, $stream ) = @_;
    my $until = time + $PATIENCE;
    while ( my $frame = $self->frame( $until - time ) ) {
        return $frame if $frame->{type} eq $type && ( !defined $stream || $frame->{stream} == $stream );
    }
    return { type => 'end', error => 'end', status => 'end', payload => '' };
}

# By the static table of HPACK, or a literal with its name
sub _status {
    my $block = shift;
    str_decode( \$block, 1, \my $text ) if ord $block == 0x48;
    return $text
        // { 0x88 => 200, 0x89 => 204, 0x8a => 206, 0x8b => 304, 0x8c => 400, 0x8d => 404, 0x8e => 500 }
        ->{ ord $block };
}

# --- bytes ---

sub send {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $bytes ) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $until = time + $PATIENCE;
    while ( length $bytes && time < $until ) {
        my $n = syswrite $self->{socket}, $bytes;
        if ( defined $n ) { substr $bytes, 0, $n, ''; next }
        last if !$!{EAGAIN};
        IO::Select->new( $self->{socket} )->can_write(0.1);
    }
    return $self;
}

# Undefined: the end, or the time is over
sub receive {
    my ( $self, $patience ) = @_;
    my $until = time + $patience;
    do {
        my $n = sysread $self->{socket}, my $bytes, 65_536;
        return $bytes if $n;
        $self->{ended} = 1, return if defined $n || !$!{EAGAIN};
        IO::Select->new( $self->{socket} )->can_read( $until - time > 0 ? $until - time : 0 );
    } while time < $until;
    return;
}

# Whether the server ends the connection
sub ends {
    my $self = shift;
    1 while $self->frame;
    return $self->{ended};
}

1;
