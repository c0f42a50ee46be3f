package Sirius::Control::HTTP;

use strict;
use warnings;

use JSON::PP ();
use Sirius::Channel::Item;

use constant {
    BODY_MAX => 2 * 1_048_576,                  # bytes: an item of 1 MiB as base64, in JSON
    HEAD_MAX => 16_384,
    PACKED   => 'application/x-sirius-item',    # what Sirius::Channel::Item has packed, by this build
};

my %REASON = (
    200 => 'OK',
    400 => 'Bad Request',
    403 => 'Forbidden',
    404 => 'Not Found',
    405 => 'Method Not Allowed',
    411 => 'Length Required',
    413 => 'Content Too Large',
    431 => 'Request Header Fields Too Large',
    500 => 'Internal Server Error',
    503 => 'Service Unavailable',
);

my $json = JSON::PP->new->utf8;

sub answer {
    my ( $class, $answer ) = @_;
    my $status = $answer->{ok} ? 200 : $answer->{status} || 500;
    my $text   = ( $answer->{ok} ? $answer->{text} : $answer->{error} ) . "\n";
    utf8::encode($text);
    my @allow = $status == 405 ? 'Allow: POST' : ();
    return join "\r\n", "HTTP/1.1 $status $REASON{$status}", 'Content-Type: text/plain; charset=utf-8',
        'Content-Length: ' . length $text, 'Connection: close', @allow, '', $text;
}

sub begins {
    my ( $class, $text ) = @_;
    return $text =~ m{\A[A-Z]{1,20}[ ]\S+[ ]HTTP/1[.]\d\r?\n} ? 1 : 0;
}

# Not for requests that are answered already
sub continues { return "HTTP/1.1 100 Continue\r\n\r\n" }

sub items {
    my $self = shift;
    my $body = $self->{body};
    return $body if $self->{type} eq PACKED;
    my $document = eval { $json->decode($body) } // _refuse( 400, 'Body is not valid JSON.' );
    _refuse( 400, 'Invalid format.' )                                  if ref $document ne 'HASH';
    _refuse( 400, q(Invalid format: object does not contain 'items') ) if !defined $document->{items};
    _refuse( 400, q(Invalid format: 'items' is not an array) )         if ref $document->{items} ne 'ARRAY';
    my @items;

    for my $item ( @{ $document->{items} } ) {
        my $packed = eval { Sirius::Channel::Item->packed( $item, characters => 1 ) }
            // _refuse( 400, 'Invalid format: ' . $@ =~ s/\n\z//r );
        push @items, $packed;
    }
    return @items;
}

sub most { return HEAD_MAX + BODY_MAX }

sub new { return bless {}, shift }

# Whether the request is complete. Dies with a hash that answers it
sub read {
    my ( $self, $text )   = @_;
    my ( $head, $length ) = $text =~ /\A(.*?\r?\n)\r?\n/s ? ( $1, $+[0] ) : ();
    if ( !defined $head || $length > HEAD_MAX ) {
        _refuse( 431, 'The head is too large.' ) if length $text > HEAD_MAX;
        return 0;
    }
    my ( $method, $path ) = $head =~ /\A(\S+)[ ]([^ ?]+)/;
    my %field = map { /\A([^:\s]+):[ \t]*(.*?)[ \t]*\z/ ? ( lc $1 => $2 ) : () } split /\r?\n/, $head;
    _refuse( 404, 'Not found: use /publish/.' )    if $path !~ m{\A/publish/?\z};
    _refuse( 405, "Method not allowed: $method." ) if $method ne 'POST';
    my $bytes = $field{'content-length'} // '';
    _refuse( 411, 'Content-Length is missing.' )
        if $bytes !~ /\A\d{1,15}\z/a || defined $field{'transfer-encoding'};
    _refuse( 413, "The body has $bytes bytes, the maximum is ${\ BODY_MAX}." ) if $bytes > BODY_MAX;
    $self->{waits} //= ( $field{expect} // '' ) =~ /\A100-continue\z/i ? 1 : 0;
    return 0 if length($text) - $length < $bytes;
    $self->{type} = lc( ( $field{'content-type'} // '' ) =~ s/\s*;.*//sr );
    $self->{body} = substr $text, $length, $bytes;
    return 1;
}

sub request {
    my ( $class, $packed ) = @_;
    return join "\r\n", 'POST /publish/ HTTP/1.1', 'Host: localhost', 'Content-Type: ' . PACKED,
        'Content-Length: ' . length $packed, '', $packed;
}

# Once: whether the client waits to be told that it may send the body
sub waits {
    my $self  = shift;
    my $waits = $self->{waits};
    $self->{waits} = 0;
    return $waits;
}

sub _refuse {
    my ( $status, $error ) = @_;
    die { ok => 0, status => $status, error => $error };
}

1;

=encoding utf8

=head1 NAME

Sirius::Control::HTTP - publications that come to the control socket as requests of HTTP

=head1 SYNOPSIS

  my $http = Sirius::Control::HTTP->new;
  if ( eval { $http->read($text) } ) { my @packed = $http->items }

=head1 DESCRIPTION

What Pushpin answers on the port for its control: a POST to C</publish/>, whose body is JSON with C<items>
(L<Sirius::Channel::Item>), gets C<200> with C<Published>; C<400> with the reason if an item is wrong, and none is published then. A body has
at most 2 MiB, and a Content-Length. With the content type C<application/x-sirius-item> it is one item that is packed already, which only
processes with the same version of Sirius send. The connection is closed after the answer.

=head1 METHODS

=head2 answer

  my $bytes = Sirius::Control::HTTP->answer( { ok => 0, status => 400, error => 'Invalid format.' } );

=head2 begins

  Sirius::Control::HTTP->begins($text);

Whether these bytes, of which the first line is complete, are a request of HTTP.

=head2 continues

The bytes that tell a client to send the body.

=head2 items

  my @packed = $http->items;

Of a complete request. Dies as L</read> does.

=head2 most

How many bytes a request has at most.

=head2 new

For one request.

=head2 read

  $http->read($text);

Whether the request that begins like this is complete. Dies with what L</answer> takes if it is refused.

=head2 request

  my $bytes = Sirius::Control::HTTP->request($packed);

The request that publishes an item.

=head2 waits

Whether the client waits for L</continues>; once.

=head1 SEE ALSO

L<Sirius::Control::Server>, L<Sirius::Channel::Item>.

=cut
