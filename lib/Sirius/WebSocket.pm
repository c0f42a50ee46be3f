package Sirius::WebSocket;

use strict;
use warnings;

use Sirius::WebSocket::Connection;
use Sirius::WebSocket::Events;

my %TAKES = map { $_ => 1 } qw(issuer key on_close on_disconnect on_message on_open origins unsigned);

my $TYPE = qr{\A\Q@{[ Sirius::WebSocket::Events->TYPE ]}\E\s*(?:;|\z)}i;

# Whether the server of this process holds connections: then it lets no client's request pass for an event
# (Sirius::Worker)
our $is_held;

# An exception of a handler is one of the application: the server logs it and answers 500
sub call {
    my ( $self, $env ) = @_;
    return _refused( 426, "This is a WebSocket.\n", Upgrade => 'websocket' ) if !_has_events($env);
    my $forged = $self->_forged($env);
    return _refused( 403, "$forged\n" )          if defined $forged;
    return _refused( 400, "no Connection-Id\n" ) if ( $env->{HTTP_CONNECTION_ID} // q() ) eq q();
    my $events = eval { [ Sirius::WebSocket::Events->decode( _body($env) ) ] }
        or return _refused( 400, $@ );
    return _refused( 400, "OPEN is not the first event\n" )
        if grep { $_->[0] eq 'OPEN' } @$events[ 1 .. $#$events ];

    my $ws = Sirius::WebSocket::Connection->new( $env,
        is_opening => scalar( @$events && $events->[0][0] eq 'OPEN' ) );
    my $is_over;
    for (@$events) {
        my ( $type, $content ) = @$_;
        my $act = $self->can("_on_\L$type") or next;
        next if $is_over && !( $ws->is_closing && $type =~ /\A(?:CLOSE|DISCONNECT)\z/ );    # told once
        $self->$act( $ws, $content );
        $is_over = $ws->is_over;
    }
    return $ws->response;
}

sub new {
    my ( $class, %arg ) = @_;
    my @unknown = grep { !$TAKES{$_} } sort keys %arg;
    die __PACKAGE__ . "->new does not know @unknown\n" if @unknown;
    for ( grep {/\Aon_/} sort keys %arg ) {
        die "$_ is not a reference to a sub\n" if ref $arg{$_} ne 'CODE';
    }
    my $self = bless {%arg}, $class;
    if ( defined $arg{key} ) {
        require Sirius::WebSocket::Signature;
        $self->{signature} = Sirius::WebSocket::Signature->new( key => $arg{key}, issuer => $arg{issuer} );
    }
    my $origins = $arg{origins};
    $self->{origins} = { map { _origin($_) => 1 } ref $origins eq 'ARRAY' ? @$origins : $origins }
        if defined $origins;
    return $self;
}

sub to_app {
    my $self = shift;
    return sub { return $self->call(shift) };
}

sub _body {
    my $env   = shift;
    my $input = $env->{'psgi.input'};
    $input->seek( 0, 0 ) if $env->{'psgix.input.buffered'};    # a framework may have read it
    my $body  = q();
    my $whole = $env->{CONTENT_LENGTH};
    while ( !$whole || length $body < $whole ) {
        my $got = $input->read( $body, 65536, length $body );
        die "the body ended early\n" if !defined $got;
        last                         if !$got;
    }
    return $body;
}

# Why this may have been written by a client; undef if not
sub _forged {
    my ( $self, $env ) = @_;
    return if $is_held;
    if ( my $check = $self->{signature} ) {
        my $wrong = $check->wrong( $env->{HTTP_GRIP_SIG} );
        return defined $wrong ? "Grip-Sig: $wrong" : undef;
    }
    return $self->{unsigned} ? undef : 'an event without --hold, and no key to check it';
}

sub _has_events {
    my $env = shift;
    return $env->{REQUEST_METHOD} eq 'POST' && ( $env->{CONTENT_TYPE} // q() ) =~ $TYPE;
}

# A browser sends cookies with a connection to any server, and tells whose page makes it (RFC 6455, 10.2)
sub _is_welcome {
    my ( $self, $env ) = @_;
    my $origin = lc( $env->{HTTP_ORIGIN} // return 1 );
    return $self->{origins}{$origin} || $self->{origins}{q(*)} if $self->{origins};
    my ($theirs) = $origin =~ m{\A[a-z][a-z0-9+.-]*://(\[[^\]/]*\]|[^:/\[\]]+)(?::[0-9]+)?\z};
    my ($ours)   = lc( $env->{HTTP_HOST} // q() ) =~ m{\A(\[[^\]/]*\]|[^:/\[\]]+)(?::[0-9]*)?\z};
    return defined $theirs && defined $ours && $theirs eq $ours;
}

sub _on_binary {
    my ( $self, $ws, $content ) = @_;
    return $self->_on_message( $ws, $content, 1 );
}

# RFC 6455, 7.1.5: 1005 where the client has sent no code. What it has sent is the answer, too
sub _on_close {
    my ( $self, $ws, $content ) = @_;
    $content //= q();
    my ( $code, $reason ) = length $content >= 2 ? unpack 'n a*', $content : ( 1005, q() );
    $self->{on_close}->( $ws, $code, $reason ) if $self->{on_close};
    return $ws->close_back( substr $content, 0, 2 );
}

# 1006 is what browsers call it
sub _on_disconnect {
    my ( $self, $ws ) = @_;
    if    ( $self->{on_disconnect} ) { $self->{on_disconnect}->($ws) }
    elsif ( $self->{on_close} )      { $self->{on_close}->( $ws, 1006, q() ) }
    return;
}

sub _on_message {
    my ( $self, $ws, $content, $is_binary ) = @_;
    $self->{on_message}->( $ws, $content // q(), $is_binary ) if $self->{on_message};
    return;
}

sub _on_open {
    my ( $self, $ws ) = @_;
    return $ws->reject( 403, "This origin is not allowed.\n" ) if !$self->_is_welcome( $ws->env );
    return $ws->accept                                         if !$self->{on_open};
    $self->{on_open}->($ws);
    return;
}

sub _on_ping {
    my ( $self, $ws, $content ) = @_;
    return $ws->pong($content);
}

sub _on_text {
    my ( $self, $ws, $content ) = @_;
    return $self->_on_message( $ws, $content, 0 );
}

# As browsers send it
sub _origin {
    my $origin = shift;
    return $origin if ( $origin // q() ) =~ /\A(?:[*]|null)\z/;
    my ( $scheme, $host, $port )
        = lc( $origin // q() ) =~ m{\A([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^:/\[\]\s]+)(:[0-9]{1,5})?/?\z}
        or die "origins: '@{[ $origin // q() ]}' is not an origin, such as https://shop.example, or '*'\n";
    my $usual = { http => ':80', https => ':443' }->{$scheme} // q();
    return "$scheme://$host" . ( $port && $port ne $usual ? $port : q() );
}

sub _refused {
    my ( $status, $text, @fields ) = @_;
    return [ $status, [ 'Content-Type' => 'text/plain', @fields ], [$text] ];
}

1;

=encoding utf8

=head1 NAME

Sirius::WebSocket - WebSockets for an application that blocks

=head1 SYNOPSIS

  use Plack::Builder;
  use Sirius::WebSocket;

  my $echo = Sirius::WebSocket->new(
      on_open    => sub { my ($ws) = @_; $ws->accept; $ws->subscribe('news') },
      on_message => sub { my ( $ws, $text, $is_binary ) = @_; $ws->send("echo $text") },
      on_close   => sub { my ( $ws, $code, $reason ) = @_; warn "closed: $code $reason\n" },
  );

  builder {
      mount '/echo' => $echo->to_app;
      mount '/'     => $app;
  };

=head1 DESCRIPTION

The server holds the connections (C<sirius --hold>), and asks the application with a request for each event: a connection opens,
messages come, it closes. So a handler is an ordinary piece of a PSGI application, which may block, and a worker is occupied only
while it runs. Requests of one connection come one after the other, in the order of the events, to any worker.

The requests are those of the WebSocket-over-HTTP protocol, so the same application runs unchanged behind Pushpin or Fanout: see
F<deploy/pushpin>.

Handlers get a L<Sirius::WebSocket::Connection>. To send to other connections, have them subscribe to a channel, and publish to it:
F<docs/LIVE.md>.

An exception in a handler is one of the application: it is logged, the response is 500, and the connection is closed with the code
1011. Nothing is sent of what that request would have sent.

=head1 METHODS

=head2 call

  my $response = $echo->call($env);

The response to a request. One that is no event, as when the server does not hold connections, gets 426.

=head2 new

=over

=item on_open

  on_open => sub { my ($ws) = @_; ... }

A client wants a connection: C<accept> it, or it is refused. Without this handler all are accepted.

=item on_message

  on_message => sub { my ( $ws, $content, $is_binary ) = @_; ... }

A message has come. Its content is bytes: text is UTF-8.

=item on_close

  on_close => sub { my ( $ws, $code, $reason ) = @_; ... }

The client has closed the connection, with this code, or 1005 if it has given none.

=item on_disconnect

  on_disconnect => sub { my ($ws) = @_; ... }

The connection is gone without having been closed. Without this handler, C<on_close> is called with the code 1006.

=item origins

  origins => [ 'https://shop.example', 'https://www.shop.example' ]

The pages that may connect. A browser sends the user's cookies with a connection to any server, also from the page of another site. So by
default the host of C<Origin> has to be that of C<Host>, whatever the port. C<'*'> allows all. Who sends no C<Origin> is no browser.

=item key, issuer

  key => $ENV{GRIP_KEY}

For an application behind Pushpin: requests must be signed with this key in C<Grip-Sig>, by this issuer if one is given; others get
403. Give the key to the routes of WebSockets only (F<deploy/pushpin/routes>): Pushpin passes on what looks like an event when a
client sends it, and signs that with the key of that route.

With C<--hold> the key does not matter: Sirius refuses such requests of clients. So the argument may stay.

=item unsigned

  unsigned => 1

Accepts events without C<--hold> and without a key: for tests, or where nobody but the gateway reaches the server.

=back

=head2 to_app

The application, for C<mount>.

=head1 SEE ALSO

L<Sirius::WebSocket::Connection>, F<docs/LIVE.md>, RFC 6455,
L<https://pushpin.org/docs/protocols/websocket-over-http/>.

=cut
