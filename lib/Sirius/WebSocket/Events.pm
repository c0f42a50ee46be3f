package Sirius::WebSocket::Events;

use strict;
use warnings;

use constant TYPE => 'application/websocket-events';

# Events as [TYPE, CONTENT]; content is undef where the event has none
sub decode {
    my ( $class, $bytes ) = @_;
    my @events;
    pos($bytes) = 0;
    while ( pos $bytes < length $bytes ) {
        $bytes =~ /\G([A-Z]{1,20})(?: ([0-9A-Fa-f]{1,8}))?\r\n/gc
            or die 'no event begins at byte ', pos $bytes, "\n";
        my ( $type, $size ) = ( $1, $2 );
        if ( !defined $size ) { push @events, [ $type, undef ]; next }
        my ( $begin, $length ) = ( pos $bytes, hex $size );
        my $end = $begin + $length;
        die "the content at byte $begin has no end after $length bytes\n"
            if $end + 2 > length $bytes || substr( $bytes, $end, 2 ) ne "\r\n";
        push @events, [ $type, substr $bytes, $begin, $length ];
        pos($bytes) = $end + 2;
    }
    return @events;
}

sub encode {
    my ( $class, @events ) = @_;
    return join q(),
        map { defined $_->[1] ? sprintf "%s %x\r\n%s\r\n", $_->[0], length $_->[1], $_->[1] : "$_->[0]\r\n" }
        @events;
}

1;

=encoding utf8

=head1 NAME

Sirius::WebSocket::Events - the events of a WebSocket as the body of a request or response

=head1 SYNOPSIS

  my @events = Sirius::WebSocket::Events->decode("TEXT 5\r\nhello\r\n");    # [ TEXT => 'hello' ]
  my $bytes  = Sirius::WebSocket::Events->encode( ['OPEN'], [ TEXT => 'm:hello' ] );

=head1 DESCRIPTION

The type C<application/websocket-events> of the WebSocket-over-HTTP protocol: each event is a line with its type and, if it has
content, the length of that in hexadecimal digits; then come the content and the end of a line.

=head1 METHODS

=head2 decode

The events of a body, each C<[TYPE, CONTENT]> in bytes, with undef where there is no content. It dies if the body is malformed.

=head2 encode

The body with these events.

=head2 TYPE

The media type.

=head1 SEE ALSO

L<Sirius::WebSocket>.

=cut
