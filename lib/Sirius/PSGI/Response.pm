package Sirius::PSGI::Response;

use 5.016;
use strict;
use warnings;

use overload ();

use Scalar::Util qw(blessed openhandle reftype);

# Bytes that getline is asked for at a time, which a file handle can return at once
use constant BLOCK => 65536;

# When the body was sent, or its owner can no longer change it
sub close_body {
    my $body = shift;
    $body->close if blessed $body ? $body->can('close') : openhandle $body;
    return 1;
}

# A response whose parts are tied, magical or overloaded, as one that C can read in place
sub plain {
    my $response = shift;

    die "not a reference to an array\n" if !_is_array($response);
    my ( $status, $headers, @body ) = @{$response};
    die "it has @{[ 2 + @body ]} elements instead of status, headers and body\n" if @body > 1;
    die "the headers are not a reference to an array\n"                          if !_is_array($headers);

    my @plain = ( "$status", _strings($headers) );
    push @plain, _plain_body(@body) if @body;
    return \@plain;
}

# xs puts each piece where it belongs; put is false once the client is gone.
sub send_body {
    my ( $body, $writer ) = @_;

    if ($writer) {
        local $/ = \BLOCK;
        while ( defined( my $piece = $body->getline ) ) {
            last if !$writer->put($piece);
        }
    }
    return close_body($body);
}

# What an exception says
sub text {
    my $error = shift;
    return "$error";
}

sub _is_array {
    my $value = shift;
    return 0 if !ref $value;
    return 1 if reftype $value eq 'ARRAY';
    return blessed $value && overload::Method( $value, '@{}' ) ? 1 : 0;
}

sub _plain_body {
    my $body = shift;

    die "the body is neither a reference to an array nor a handle\n" if !ref $body;
    my $is_object = blessed $body && $body->can('getline');
    return _strings($body) if !$is_object && _is_array($body);
    return $body           if reftype $body eq 'GLOB' || reftype $body eq 'IO';
    die "the body is neither a reference to an array nor a handle\n" if !$is_object;

    # An object with a path stands for the content of that file (PSGI, "The Body"), which the kernel can send
    if ( $body->can('path') ) {
        my $path = $body->path;
        if ( defined $path && -f $path && open my $fh, '<:raw', "$path" ) {
            return ( $fh, $body );
        }
    }

    return $body;
}

# An overload may change the array that its object is in, and perl does not protect an array while it is
# walked: uses a copy
sub _strings {
    my $array = shift;
    my @copy  = @{$array};
    return [ map { defined $_ ? "$_" : '' } @copy ];
}

1;

=encoding utf8

=head1 NAME

Sirius::PSGI::Response - makes unusual PSGI responses readable for C

=head1 DESCRIPTION

The C code reads responses made of plain arrays, strings and file handles itself. What is tied, overloaded or an object
passes through this module first. Applications do not need it.

=head1 FUNCTIONS

=head2 close_body

  close_body($body);

Calls the C<close> of a body, if it has one.

=head2 plain

  my $copy = plain($response);

A copy in which status, headers and the elements of the body are strings. Dies when it cannot be made. If the body is an object with
a C<path>, the copy has a handle of that file in its place, and the object, which is to be closed, as its fourth element.

=head2 send_body

  send_body($body, $writer);

Writes what the C<getline> of an object returns, 64 KiB at a time, to the writer, and closes the object. Without a writer, for a
response that has no body, it only closes it.

=head2 text

  my $string = text($exception);

An exception as a string. Dies when its overload does.

=head1 SEE ALSO

L<Sirius>, L<PSGI>

=cut
