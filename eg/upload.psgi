# Size and digest of a request body: curl --data-binary @file http://localhost:5000/
use strict;
use warnings;
use Digest::SHA;

sub {
    my $env    = shift;
    my $digest = Digest::SHA->new(256);
    my $size   = 0;
    while ( my $read = $env->{'psgi.input'}->read( my $buffer, 65_536 ) ) {
        $digest->add($buffer);
        $size += $read;
    }
    return [ 200, [ 'Content-Type' => 'text/plain' ],
        [ "$size bytes, sha256 " . $digest->hexdigest . "\n" ] ];
};
