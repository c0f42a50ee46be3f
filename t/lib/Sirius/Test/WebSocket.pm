package Sirius::Test::WebSocket;

# A client of WebSockets over HTTP/1.1. It does what it is told, be it right or wrong; nothing waits without a limit.
#
#   my $ws = Sirius::Test::WebSocket->new( $address, '/chat', fields => ['Origin: http://a'] );
#   is $ws->opening->status, 101, 'it is open';
#   $ws->send('hello');
#   is_deeply [ $ws->message ], [ text => 'echo hello' ], 'a message';

use strict;
use warnings;
use Digest::SHA  qw(sha1_base64);
use MIME::Base64 qw(encode_base64);
use Time::HiRes  qw(time);
use Sirius::Test::Client;

my %CODE = ( continuation => 0, text => 1, binary => 2, close => 8, ping => 9, pong => 10 );
my %NAME = reverse %CODE;

# Options: fields, and those of Sirius::Test::Client
sub new {
    my ( $class, $address, $target, %option ) = @_;
    my $fields = delete $option{fields} || [];
    my $client = Sirius::Test::Client->new( $address, %option );
    my $key    = encode_base64( join( '', map { chr rand 256 } 1 .. 16 ), '' );
    my @field  = (
        'Upgrade: websocket',
        'Connection: Upgrade',
        "Sec-WebSocket-Key: $key",
        'Sec-WebSocket-Version: 13', @$fields
    );
    $client->send( Sirius::Test::Client::request( "GET $target", @field ) );
    my $self    = bless { client => $client, in => '' }, $class;
    my $opening = $self->{opening} = $self->_opening;
    my $accept  = sha1_base64("${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11") . '=';
    die "Sec-WebSocket-Accept is wrong\n"
        if $opening->status eq '101' && ( $opening->header('Sec-WebSocket-Accept') || '' ) ne $accept;
    return $self;
}

# The response to the request; 101 when the connection is open
sub opening { return shift->{opening} }

sub client { return shift->{client} }

# Sends a message; $type is text, binary, ping, pong or close
sub send {
    my ( $self, $content, $type ) = @_;
    return $self->{client}->send( $self->frame( $type || 'text', $content ) );
}

# The bytes of a frame. Options: more (not the last one of its message), plain (not masked)
sub frame {
    my ( $class, $type, $content, %option ) = @_;
    $content = "$content";    # ^ takes a number for one
    my $length = length $content;
    my $mask   = $option{plain} ? 0 : 0x80;
    my $head   = chr( ( $option{more} ? 0 : 0x80 ) | ( $CODE{$type} // $type ) );
    $head
        .= $length < 126  ? chr( $mask | $length )
        : $length < 65536 ? pack( 'C n', $mask | 126, $length )
        :                   pack 'C Q>', $mask | 127, $length;
    return $head . $content if !$mask;
    my $key = pack 'N', rand 2**32;
    return $head . $key . ( $content ^ substr $key x ( $length / 4 + 1 ), 0, $length );
}

# Closes with this code
sub close {
    my ( $self, $code, $reason ) = @_;
    return $self->send( defined $code ? pack 'n a*', $code, $reason // '' : '', 'close' );
}

# The next message: its type and content; for close code and reason, as "1000 bye". "end" is the end of the connection, nothing that
# there was none within so many seconds
sub message {
    my ( $self, $patience ) = @_;
    my $until = time + ( $patience // $Sirius::Test::Client::PATIENCE );
    my ( $type, $content );
    while (1) {
        my ( $code, $bytes, $is_last ) = $self->_take;
        if ( !defined $code ) {
            my $left = $until - time;
            my $more = $left > 0 ? $self->{client}->some( 1, $left ) : '';
            $self->{in} .= $more;
            next if length $more;
            return $self->{client}{end} ? ( end => $self->{client}{end} ) : ();
        }
        my $name = $NAME{$code} // $code;
        return ( $name, $bytes )                                                 if $code > 8;
        return ( close => length $bytes ? join ' ', unpack 'n a*', $bytes : '' ) if $code == 8;
        $type = $name                                                            if $code;
        $content .= $bytes;
        return ( $type, $content ) if $is_last;
    }
}

# The opening code, the content, and whether more of the message follows; nothing when no frame is complete
sub _take {
    my $self = shift;
    my $in   = $self->{in};
    return if length $in < 2;
    my ( $first, $second ) = unpack 'C C', $in;
    die "the server has masked a frame\n"       if $second & 0x80;
    die "bits are set that mean nothing here\n" if $first & 0x70;
    my ( $length, $head ) = ( $second, 2 );
    return if $length >= 126 && length $in < 10 && length $in < ( $length == 126 ? 4 : 10 );
    ( $length, $head ) = ( unpack( 'x2 n',  $in ), 4 )  if $second == 126;
    ( $length, $head ) = ( unpack( 'x2 Q>', $in ), 10 ) if $second == 127;
    return if length $in < $head + $length;
    substr $self->{in}, 0, $head + $length, '';
    return ( $first & 15, substr( $in, $head, $length ), $first & 0x80 );
}

# What follows 101 is not HTTP any more
sub _opening {
    my $self   = shift;
    my $client = $self->{client};
    my $until  = time + $Sirius::Test::Client::PATIENCE;
    my $in     = '';
    while ( $in !~ /\r\n\r\n/ ) {
        my $more = $client->some( 1, $until - time );
        last if !length $more;
        $in .= $more;
    }
    $client->{in} = $in;
    return $client->response if $in !~ m{\AHTTP/1[.]1 101 };
    my ( $head, $rest ) = $in =~ /\A(.*?\r\n\r\n)(.*)\z/s;
    ( $client->{in}, $self->{in} ) = ( '', $rest );
    return Sirius::Test::Response->take( \$head );
}

1;
