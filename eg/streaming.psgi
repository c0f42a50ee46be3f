# A response that comes bit by bit: each piece is on the wire when write returns.
#
# A writer holds its worker until it is closed, and waits for a client that reads slowly. A body that is there
# already is better given whole, as an array or a file: the server sends that while the worker goes on.
use strict;
use warnings;

sub {
    my $env = shift;
    return sub {
        my $respond = shift;
        my $writer  = $respond->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
        for my $second ( 1 .. 5 ) {
            $writer->write("$second\n") or last;    # false: the client has gone
            sleep 1;
        }
        $writer->close;
    };
};
