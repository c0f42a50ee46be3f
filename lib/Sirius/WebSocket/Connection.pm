package Sirius::WebSocket::Connection;

use strict;
use warnings;

use JSON::PP     ();
use Scalar::Util qw(blessed);
use Sirius::WebSocket::Events;
use overload ();

# Before each message: "c:" is for the gateway, so that no message of a client that is sent on can be such an
# order
use constant {
    CONTROL => 'c:',
    MESSAGE => 'm:',
};
use constant KEEP_ALIVE_MAX => 86_400;    # seconds

my $JSON = JSON::PP->new->utf8->canonical;

sub accept {
    my ( $self, @fields ) = @_;
    die "accept: this request does not open a connection\n" if !$self->{is_opening};
    die "accept: fields come in pairs\n"                    if @fields % 2;
    die "accept: the connection was accepted already\n"     if $self->{accepted};
    die "accept: the connection was rejected already\n"     if $self->{rejected};
    $self->{accepted} = 1;
    push @{ $self->{fields} }, @fields;
    return $self;
}

# RFC 6455, 7.4: codes that may be sent, and a reason that fits into the frame
sub close {
    my ( $self, $code, $reason ) = @_;
    ( $code, $reason ) = ( $code // 1000, _bytes( close => $reason // q(), 'reason' ) );
    die "close: the code $code cannot be sent\n"
        if $code !~ /\A(?:100[0-37-9]|101[0-4]|[34][0-9]{3})\z/;
    die "close: the reason has more than 123 bytes\n" if length $reason > 123;
    return $self->_closing( pack 'n a*', $code, $reason );
}

# What the client has closed with; whatever comes then is not sent
sub close_back {
    my ( $self, $content ) = @_;
    return $self->_closing( $content eq q() ? undef : $content );
}

sub detach { return shift->_control( type => 'detach' ) }

sub env { return shift->{env} }

sub id { return shift->{env}{HTTP_CONNECTION_ID} }

sub is_closing { return shift->{closing} }

sub is_over {
    my $self = shift;
    return $self->{closing} || $self->{rejected} || $self->{is_opening} && !$self->{accepted} ? 1 : 0;
}

sub keep_alive {
    my ( $self, $seconds, $message, $type ) = @_;
    return $self->_control( type => 'keep-alive' ) if !$seconds;
    die "keep_alive: '$seconds' is not a number of seconds from 0 to ${\ KEEP_ALIVE_MAX}\n"
        if $seconds !~ /\A[0-9]{1,9}\z/ || $seconds > KEEP_ALIVE_MAX;
    $type ||= defined $message ? 'text' : 'ping';
    die "keep_alive: $type is not one of text, binary, ping\n" if $type !~ /\A(?:text|binary|ping)\z/;
    $message = _bytes( keep_alive => $message // q() );
    my @content;
    if ( $type eq 'text' || utf8::decode( my $copy = $message ) ) {
        @content = ( content => _text( keep_alive => $message ) );
    } else {
        require MIME::Base64;
        @content = ( 'content-bin' => MIME::Base64::encode_base64( $message, q() ) );
    }
    return $self->_control(
        type           => 'keep-alive',
        timeout        => 0 + $seconds,
        'message-type' => $type,
        @content
    );
}

sub meta {
    my ( $self, $name, @value ) = @_;
    die "meta: a name consists of letters, digits, '-' and '_'\n"
        if !defined $name || $name !~ /\A[\w-]{1,100}\z/a;
    $name = lc $name =~ tr/_/-/r;
    my $meta = $self->{meta};
    if (@value) {
        my $value = _bytes( meta => $value[0] // q(), 'value' );
        die "meta: the value of $name has a control character, or a space at an end\n"
            if $value =~ /[\x00-\x1f\x7f]|\A\x20|\x20\z/;
        $meta->{$name} = $value;
    }
    return $meta->{$name} if exists $meta->{$name} && $meta->{$name} ne q();
    return                if exists $meta->{$name};
    return $self->{env}{ 'HTTP_META_' . uc $name =~ tr/-/_/r };
}

sub new {
    my ( $class, $env, %arg ) = @_;
    return bless {
        accepted   => 0,
        closing    => 0,
        env        => $env,
        events     => [],
        fields     => [],
        is_opening => $arg{is_opening},
        meta       => {},
    }, $class;
}

sub pong {
    my ( $self, $content ) = @_;
    return $self->_event( PONG => $content );
}

sub reject {
    my ( $self, $status, $text ) = @_;
    $status //= 403;
    die "reject: this request does not open a connection\n" if !$self->{is_opening};
    die "reject: the connection was accepted already\n"     if $self->{accepted};
    die "reject: the connection was rejected already\n"     if $self->{rejected};
    die "reject: $status is not a status of an error\n"     if $status !~ /\A[345][0-9]{2}\z/;
    $text = _bytes( reject => $text // "refused\n", 'text' );
    $self->{rejected} = [ $status, [ 'Content-Type' => 'text/plain; charset=utf-8' ], [$text] ];
    return $self;
}

# What to answer to the request of this connection
sub response {
    my $self      = shift;
    my $is_opened = $self->{accepted};
    if ( $self->{is_opening} && !$is_opened ) {
        $self->reject if !$self->{rejected};
        return $self->{rejected};
    }
    my $body = Sirius::WebSocket::Events->encode( $is_opened ? ['OPEN'] : (), @{ $self->{events} } );
    return [
        200,
        [   'Content-Type'   => Sirius::WebSocket::Events->TYPE,
            'Content-Length' => length $body,
            ( $is_opened ? ( 'Sec-WebSocket-Extensions' => 'grip' ) : () ),
            ( map { ( "Set-Meta-$_" => $self->{meta}{$_} ) } sort keys %{ $self->{meta} } ),
            @{ $self->{fields} },
        ],
        [$body]
    ];
}

sub send {
    my ( $self, $text ) = @_;
    $text = _bytes( send => $text );
    _text( send => $text );
    return $self->_event( TEXT => MESSAGE . $text );
}

sub send_binary {
    my ( $self, $bytes ) = @_;
    return $self->_event( BINARY => MESSAGE . _bytes( send_binary => $bytes ) );
}

sub subscribe {
    my ( $self, @channels ) = @_;
    my %how = ref $channels[-1] eq 'HASH' ? %{ pop @channels } : ();
    my ($unknown) = grep { $_ ne 'skip_self' } sort keys %how;
    die "subscribe: unknown argument '$unknown'\n" if defined $unknown;
    my $user = $how{skip_self} // return $self->_channel( 'subscribe', \@channels );
    die "subscribe: skip_self is the name of a user, and empty here\n" if $user eq q();
    $self->meta( user => $user );    # other gateways pass this on, and look for the other
    $self->_control( type => 'set-meta', name => 'user', value => _text( subscribe => $self->{meta}{user} ) );
    return $self->_channel( 'subscribe', \@channels, filters => ['skip-self'] );
}

sub unsubscribe {
    my ( $self, @channels ) = @_;
    return $self->_channel( 'unsubscribe', \@channels );
}

sub _bytes {
    my ( $who, $text, $what ) = @_;
    $what //= 'message';
    die "$who: the $what is undefined\n" if !defined $text;
    die "$who: the $what is a reference\n"
        if ref $text && !( blessed $text && overload::Method( $text, q("") ) );
    $text = "$text";
    utf8::downgrade( $text, 1 )
        or die "$who: a $what consists of bytes, and this one has characters above 255: encode it as UTF-8\n";
    return $text;
}

sub _channel {
    my ( $self, $type, $channels, @more ) = @_;
    die "$type: no channel\n" if !@$channels;
    for (@$channels) {
        my $channel = _bytes( $type => $_, 'channel' );
        die "$type: a channel has 1 to 255 bytes\n"             if $channel eq q() || length $channel > 255;
        die "$type: the channel contains a control character\n" if $channel =~ /[\x00-\x08\x0a-\x1f\x7f]/;
        $self->_control( type => $type, channel => _text( $type => $channel ), @more );
    }
    return $self;
}

sub _closing {
    my ( $self, $content ) = @_;
    $self->_event( CLOSE => $content );
    $self->{closing} = 1;
    return $self;
}

sub _control {
    my ( $self, %order ) = @_;
    return $self->_event( TEXT => CONTROL . $JSON->encode( \%order ) );
}

sub _event {
    my ( $self, @event ) = @_;
    die "the connection was not accepted\n" if $self->{is_opening} && !$self->{accepted};
    push @{ $self->{events} }, \@event if !$self->{closing};
    return $self;
}

# The characters of bytes in UTF-8: a browser ends a connection on which others come as text
sub _text {
    my ( $who, $bytes ) = @_;
    utf8::decode($bytes) or die "$who: text is not UTF-8\n";
    return $bytes;
}

1;

=encoding utf8

=head1 NAME

Sirius::WebSocket::Connection - a WebSocket, as its handlers see it during a request

=head1 SYNOPSIS

  use Sirius::WebSocket;

  my $app = Sirius::WebSocket->new(
      on_open    => sub { my ($ws) = @_; $ws->accept; $ws->subscribe('room') },
      on_message => sub { my ( $ws, $text ) = @_; $ws->send("echo $text") },
  )->to_app;

=head1 DESCRIPTION

The gateway (Sirius with C<--hold>, or Pushpin) has the connection. This object has what one request says of it, and collects
what the response has to say; the gateway acts on it when the response is complete. Keep nothing in it: the next event may come to
another worker. What belongs to the connection is its C<id> and its C<meta>.

Messages, channels, reasons and values are bytes: text is UTF-8, as it was sent. Encode what has characters above 255; what is
not UTF-8 cannot be sent as text. Methods that return nothing else return the object. What is wrong in their arguments is an
exception.

=head1 METHODS

=head2 accept

  $ws->accept;
  $ws->accept( 'Sec-WebSocket-Protocol' => 'chat', 'Set-Cookie' => $cookie );

Opens the connection, with these fields in the response to the client. A C<on_open> that does not call it has the connection
refused.

=head2 close

  $ws->close;
  $ws->close( 4001, 'signed out' );

Closes the connection with a code of RFC 6455 or one from 3000 to 4999, and a reason of at most 123 bytes. What comes after that
is not sent, and no handler is called for further events.

=head2 close_back, is_closing, is_over, new, pong, response

For L<Sirius::WebSocket>.

=head2 detach

The application is not asked any more: the connection gets what is published, and no event of it comes here.

=head2 env

C<%env> of this request. It has the fields of the client's request that opened the connection, cookies too.

=head2 id

The C<Connection-Id>, the same for all requests of this connection, and of no other.

=head2 keep_alive

  $ws->keep_alive(30);
  $ws->keep_alive( 30, '{"type":"nothing"}' );
  $ws->keep_alive( 30, $bytes, 'binary' );
  $ws->keep_alive(0);

Sends a ping, or this message, when nothing was sent for so many seconds, a day at most; with 0 no longer.

=head2 meta

  $ws->meta( user => $name );
  my $name = $ws->meta('user');

A value that comes again with each request of this connection, or undef. An empty value removes it. The gateway keeps it, so keep
it short; it has no control characters. The client never sees it.

=head2 reject

  $ws->reject;
  $ws->reject( 401, "Sign in first.\n" );

Refuses the connection with this status, 403 if none is given.

=head2 send

  $ws->send( encode_json($value) );

Sends text to this client.

=head2 send_binary

Sends bytes to this client.

=head2 subscribe, unsubscribe

  $ws->subscribe( 'room', "user-$id" );
  $ws->subscribe( 'room', { skip_self => $name } );

From now on this connection gets what is published on these channels, or not any more. A channel has 1 to 255 bytes. With C<skip_self> it
does not get what this user has published, as C<sender> (L<Sirius::Channel>); the name becomes the C<user> in its C<meta>.

=head1 SEE ALSO

L<Sirius::WebSocket>.

=cut
