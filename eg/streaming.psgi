# A response that comes bit by bit: curl -N http://localhost:5000/
use strict;
use warnings;

sub {
    my $env = shift;
    return sub {
        my $respond = shift;
        my $writer  = $respond->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
        for my $second ( 1 .. 5 ) {
            $writer->write("$second\n");
            sleep 1;
        }
        $writer->close;
    };
};
