package Sirius::PSGI::Writer;

use strict;
use warnings;

1;

=encoding utf8

=head1 NAME

Sirius::PSGI::Writer - the writer of a streaming response

=head1 SYNOPSIS

  sub {
      my $respond = shift;
      my $writer  = $respond->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
      $writer->write("one\n");
      $writer->write("two\n");
      $writer->close;
  };

=head1 DESCRIPTION

The responder callback of PSGI returns such an object when it is called without a body. Its methods are written in C
(F<xs/stream.c>). It belongs to one request, and does nothing when that has ended. In a new thread it is C<undef>.

=head1 METHODS

=head2 close

  $writer->close;

Ends the response. Later writes are ignored.

=head2 put

  my $more = $writer->put($bytes);

L</write> for L<Sirius::PSGI::Response/send_body>: false once the client is gone.

=head2 write

  $writer->write($bytes);

Sends the bytes. Waits while the client is far behind (F<docs/TUNING.md>); signal handlers run meanwhile. Dies if there
is a character above 255. Bytes for a client that has gone are dropped.

=head1 SEE ALSO

L<Sirius>, L<PSGI>.

=cut
