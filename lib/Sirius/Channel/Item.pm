package Sirius::Channel::Item;

use strict;
use warnings;

use MIME::Base64 qw(decode_base64);
use Time::HiRes  qw(CLOCK_MONOTONIC clock_gettime);

# As src/share/item.h has them
use constant {
    CHANNEL_MAX => 255,
    ID_MAX      => 255,
    REASON_MAX  => 123,
    SENDER_MAX  => 255,
    SIZE_MAX    => 1_048_576,
};
use constant {
    STREAM       => 1,
    STREAM_CLOSE => 2,
    RESPONSE     => 4,
    TEXT         => 8,
    BINARY       => 16,
    WS_CLOSE     => 32,
    SAME         => 64,
};

my %FORMAT = ( 'http-response' => \&_response, 'http-stream' => \&_stream, 'ws-message' => \&_message );

# struct sr_item: number, seven lengths, status, code, has, and the length of the last text
my $HEAD = 'L2 L7 S4 x4';

# When this process has made its last item, and whether the lower half of a number comes first
my $last        = 0;
my $lower_first = pack( 'L', 1 ) eq pack 'V', 1;

# WebSockets get the same as streams, as text where that is possible
sub formats {
    my ( $class, $bytes ) = @_;
    die "the content is not text\n" if ref $bytes;
    my $type = $class->is_utf8($bytes) ? 'text' : 'binary';
    return { 'http-stream' => { content => $bytes }, 'ws-message' => { content => $bytes, type => $type } };
}

sub is_utf8 {
    my ( $class, $bytes ) = @_;
    utf8::downgrade( $bytes, 1 ) or return 0;
    return utf8::decode($bytes) && $bytes !~ /[\x{d800}-\x{dfff}]|[^\x{0}-\x{10ffff}]/ ? 1 : 0;
}

# What is to be closed is told after what is to be sent. The ids are those of the first
sub items {
    my ( $class, $channel, %how ) = @_;
    my %ids = map { $_ => $how{$_} } grep { defined $how{$_} } qw(id prev-id);
    my @items;
    my %meta = defined $how{sender} ? ( meta => { sender => $how{sender} } ) : ();
    push @items, { channel => $channel, %ids, %meta, formats => $how{formats} } if $how{formats};
    %ids = () if @items;
    my %close = map { $_ => { action => 'close' } } qw(http-stream ws-message);
    push @items, { channel => $channel, %ids, formats => \%close } if $how{close};
    return @items;
}

sub packed {
    my ( $class, $item, %how ) = @_;
    die "the item is not an object\n" if ref $item ne 'HASH';
    my $self = bless { characters => $how{characters}, has => 0, code => 0, status => 0 }, $class;
    my ( $channel, $id, $prev_id ) = map { scalar $self->_text( $_, $item->{$_} ) } 'channel', 'id',
        'prev-id';
    die "channel is missing\n"                           if !length( $channel // '' );
    die "channel has more than ${\ CHANNEL_MAX} bytes\n" if length $channel > CHANNEL_MAX;
    die "channel contains a control character\n"         if $channel =~ /[\x00-\x08\x0a-\x1f\x7f]/;
    die "id has more than ${\ ID_MAX} bytes\n"           if length( $id      // '' ) > ID_MAX;
    die "prev-id has more than ${\ ID_MAX} bytes\n"      if length( $prev_id // '' ) > ID_MAX;
    my $sender  = $self->_sender( $item->{meta} );
    my $formats = $item->{formats} // $item;
    die "formats is not an object\n" if ref $formats ne 'HASH';

    for my $name ( sort grep { defined $formats->{$_} } keys %FORMAT ) {
        die "'$name' is not an object\n" if ref $formats->{$name} ne 'HASH';
        $FORMAT{$name}->( $self, $formats->{$name} );
    }
    die "no formats specified: 'http-stream', 'http-response' or 'ws-message'\n" if !$self->{has};
    if (   $self->{has} & STREAM
        && $self->{has} & ( TEXT | BINARY )
        && $self->{message} eq $self->{stream} )
    {
        $self->{has} |= SAME;
        delete $self->{message};
    }
    my @texts = map { $_ // '' } $channel, $id, $prev_id, @{$self}{qw(stream fields body message)};
    my $size  = length $sender;
    $size += length for @texts;
    die "the item has $size bytes, the maximum is ${\ SIZE_MAX}\n" if $size > SIZE_MAX;
    return join '',
        pack( $HEAD, _number(), ( map {length} @texts ), @{$self}{qw(status code has)}, length $sender ),
        @texts, $sender;
}

# What is to happen: 'send', or 'close' where that is possible
sub _action {
    my ( $self, $name, $format, @possible ) = @_;
    my $action = $self->_text( "'$name' action", $format->{action} ) // 'send';
    die "'$name' action '$action' is not supported\n" if !grep { $_ eq $action } 'send', @possible;
    return $action;
}

# The bytes that a format sends, and whether they came as base64
sub _content {
    my ( $self, $name, $format, $key ) = @_;
    for my $other ( "$key-filters", "$key-patch", 'content-filters' ) {
        die "'$name' $other is not supported\n" if defined $format->{$other};
    }
    my $binary = $self->_text( "'$name' $key-bin", $format->{"$key-bin"} );
    if ( defined $binary ) {
        die "'$name' $key-bin is not base64\n" if $binary !~ m{\A[A-Za-z0-9+/\s]*={0,2}\s*\z};
        return decode_base64($binary), 1;
    }
    my $text = $self->_text( "'$name' $key", $format->{$key} );
    die "'$name' contains neither $key nor $key-bin\n" if !defined $text;
    return $text, 0;
}

sub _field {
    my ( $self, $name, $value ) = @_;
    $name = $self->_text( 'a name in headers', $name ) // '';
    die "'http-response' headers: '$name' is not a name\n" if $name !~ /\A[\w!#\$%&'*+.^`|~-]+\z/a;
    $value = $self->_text( "'http-response' headers: '$name'", $value );
    die "'http-response' headers: '$name' has no value\n" if !defined $value;
    die "'http-response' headers: '$name' contains a control character\n"
        if $value =~ /[\x00-\x08\x0a-\x1f\x7f]/;
    return $name =~ /\Agrip-/i ? q() : "$name: $value\r\n";    # as of a response of the application
}

sub _message {
    my ( $self, $format ) = @_;
    if ( $self->_action( 'ws-message', $format, 'close' ) eq 'close' ) {
        my $code   = $self->_number_of( 'ws-message', code => $format, 1000 );
        my $reason = $self->_text( "'ws-message' reason", $format->{reason} ) // '';
        die "'ws-message' code $code: a server may send 1000 to 1003, 1007 to 1014 and 3000 to 4999\n"
            if $code !~ /\A(?:100[0-37-9]|101[0-4]|[34]\d\d\d)\z/;
        die "'ws-message' reason has more than ${\ REASON_MAX} bytes\n" if length $reason > REASON_MAX;
        die "'ws-message' reason is not UTF-8\n" if !Sirius::Channel::Item->is_utf8($reason);
        @{$self}{qw(code message)} = ( $code, $reason );
        $self->{has} |= WS_CLOSE;
        return;
    }
    my $type = $self->_text( "'ws-message' type", $format->{type} );
    my ( $content, $binary ) = $self->_content( 'ws-message', $format, 'content' );
    $type //= $binary ? 'binary' : 'text';
    die "'ws-message' type '$type' is not supported\n" if $type !~ /\A(?:binary|text)\z/;
    die "'ws-message' content is not UTF-8, which a text has to be: use type 'binary'\n"
        if $type eq 'text' && !Sirius::Channel::Item->is_utf8($content);
    $self->{message} = $content;
    $self->{has} |= $type eq 'text' ? TEXT : BINARY;
    return;
}

# 64 bits that no other publication has, in the order of time: microseconds since the machine has started,
# then the process
sub _number {
    my $now = int( 1e6 * clock_gettime(CLOCK_MONOTONIC) );
    $last = $now > $last ? $now : $last + 1;
    my @halves = ( $last % 2**10 << 22 | $$ % 2**22, int( $last / 2**10 ) % 2**32 );
    return $lower_first ? @halves : reverse @halves;
}

sub _number_of {
    my ( $self, $name, $key, $format, $default ) = @_;
    my $number = $format->{$key} // return $default;
    die "'$name' $key is not a number\n" if ref $number || $number !~ /\A\d{1,5}\z/a;
    return $number + 0;
}

sub _response {
    my ( $self, $format ) = @_;
    $self->_action( 'http-response', $format );
    my $status = $self->_number_of( 'http-response', code => $format, 200 );
    die "'http-response' code $status is not from 200 to 999\n" if $status < 200 || $status > 999;
    my $headers = $format->{headers} // [];
    my @fields;
    if ( ref $headers eq 'HASH' ) {
        @fields = map { [ $_ => $headers->{$_} ] } sort keys %$headers;
    } elsif ( ref $headers eq 'ARRAY' ) {
        @fields = @$headers;
    } else {
        die "'http-response' headers is not an object or an array\n";
    }
    for (@fields) {
        die "'http-response' headers contains something else than pairs of name and value\n"
            if ref ne 'ARRAY' || @$_ != 2;
    }
    $self->{fields} = join '', map { $self->_field(@$_) } @fields;
    ( $self->{body} ) = $self->_content( 'http-response', $format, 'body' );
    $self->{status} = $status;
    $self->{has} |= RESPONSE;
    return;
}

# Of what is said about an item, who has published it: for the filter skip-self
sub _sender {
    my ( $self, $meta ) = @_;
    return ''                     if !defined $meta;
    die "meta is not an object\n" if ref $meta ne 'HASH';
    my $sender = $self->_text( 'the sender in meta', $meta->{sender} ) // '';
    die "the sender in meta has more than ${\ SENDER_MAX} bytes\n" if length $sender > SENDER_MAX;
    return $sender;
}

sub _stream {
    my ( $self, $format ) = @_;
    my $closes = $self->_action( 'http-stream', $format, 'close' ) eq 'close';
    ( $self->{stream} ) = $self->_content( 'http-stream', $format, 'content' ) if !$closes;
    $self->{has} |= $closes ? STREAM_CLOSE : STREAM;
    return;
}

# The bytes of a value, undef if there is none. Characters, as JSON has them, are sent as UTF-8
sub _text {
    my ( $self, $name, $value ) = @_;
    return                    if !defined $value;
    die "$name is not text\n" if ref $value;
    my $bytes = "$value";
    if ( $self->{characters} ) { utf8::encode($bytes) }
    else {
        utf8::downgrade( $bytes, 1 )
            or die "$name contains a character above 0xff: encode it, as with Encode::encode_utf8\n";
    }
    return $bytes;
}

1;

=encoding utf8

=head1 NAME

Sirius::Channel::Item - what is published, in the form that edges read

=head1 SYNOPSIS

  use Sirius::Channel::Item;

  my $packed = Sirius::Channel::Item->packed(
      { channel => 'news', id => '8', formats => { 'http-stream' => { content => "data: hello\n\n" } } } );

=head1 DESCRIPTION

Takes an item in the form of GRIP, as Pushpin does:

  channel   at most 255 bytes
  id        of the item, at most 255 bytes
  prev-id   of the item before it in the channel
  meta      sender: who has published it, at most 255 bytes, for subscriptions with the filter skip-self
  formats   one or more of these, which may also be beside the channel:
    http-stream     content or content-bin (base64); or action close
    http-response   code (200), headers (an object, or an array of pairs), body or body-bin
    ws-message      type (text or binary), content or content-bin; or action close, code (1000), reason

An item has at most 1 MiB. C<reason> of C<http-response> is that of its code. Other actions, types, and filters of the content die, as
a subscriber would get something else than was meant; what else is in an item is ignored.

=head1 METHODS

=head2 formats

  my $formats = Sirius::Channel::Item->formats($bytes);

What bytes are for streams and WebSockets: C<http-stream> with them as they are, and C<ws-message> of type text, or binary if they are not
UTF-8. Dies if they are a reference.

=head2 items

  my @items = Sirius::Channel::Item->items( $channel, formats => \%formats, close => 1, id => '8', 'prev-id' => '7' );

The items of one publication: one with the formats, if there are any, and with C<close> one that ends the streams and WebSockets of the
channel. The first of them has the ids.

=head2 is_utf8

  Sirius::Channel::Item->is_utf8($bytes);

Whether a text message of a WebSocket may have these bytes (RFC 3629).

=head2 packed

  my $packed = Sirius::Channel::Item->packed( \%item, characters => 1 );

The bytes that F<src/share/item.h> describes. Dies with a line that names what is wrong. C<characters>: texts are characters, as of
decoded JSON, and sent as UTF-8; else they are bytes.

=head1 SEE ALSO

L<Sirius::Channel>, F<src/share/item.h>.

=cut
