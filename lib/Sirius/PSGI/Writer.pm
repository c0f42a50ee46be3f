package Sirius::PSGI::Writer;

use strict;
use warnings;

1;

=encoding utf8

=head1 NAME

Sirius::PSGI::Writer - what a streaming application writes its response to

=head1 SYNOPSIS

  sub {
      my $respond = shift;
      my $writer  = $respond->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
      $writer->write("one\n");
      $writer->write("two\n");
      $writer->close;
  };

=head1 DESCRIPTION

The responder callback of PSGI returns such an object when it is called without a body. Its methods are in C (F<xs/stream.c>);
L<Sirius> makes them. It belongs to one request: when that is over, it does nothing. In a new thread it is C<undef>.

=head1 METHODS

=head2 close

  $writer->close;

Ends the response. What is written afterwards is dropped.

=head2 put

  my $more = $writer->put($bytes);

L</write> for L<Sirius::PSGI::Response/drain>: false once the client is gone.

=head2 write

  $writer->write($bytes);

Sends these bytes. Waits while the client is far behind (F<docs/TUNING.md>); handlers of signals run meanwhile. Dies of characters
above 255. Bytes for a client that has gone are dropped.

=head1 SEE ALSO

L<Sirius>, L<PSGI>.

=cut
