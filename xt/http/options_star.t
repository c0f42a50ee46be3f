use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# OPTIONS * is a question to the server itself (RFC 9110 9.3.7); "*" is no target of any other method

my $server = start_server( corpus_file('conformance.psgi'), qw(--workers 1) );

subtest 'OPTIONS *' => sub {
    my @job = every_delivery( $server, 'is answered, the connection goes on',
        request('OPTIONS *'), qr/\A20[04] after\z/ );
    every_delivery( $server, 'with content', request( 'OPTIONS *', \'hello' ), qr/\A20[04] after\z/ );
    every_delivery(
        $server,
        'absolute-form without a path',
        "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n",
        qr/\A20[04] after\z/
    );
};

subtest 'other methods' => sub {
    every_delivery( $server, "$_ * is refused", request("$_ *"), '400 closed' ) for qw(GET POST HEAD);
    every_delivery( $server, 'OPTIONS with something behind the asterisk',
        request('OPTIONS *x'), '400 closed' );
};

subtest 'methods that no origin server serves' => sub {
    every_delivery(
        $server, 'CONNECT',
        "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
        qr/\A501 (?:closed|after)\z/
    );
    every_delivery( $server, 'TRACE', request('TRACE /'), qr/\A501 (?:closed|after)\z/ );
};

subtest 'any other token is for the application' => sub {
    is $server->ask("$_ /")->status, 405, $_
        for qw(PATCH PROPFIND M-SEARCH a get patch trace), 'X!#$%&\'*+.^_`|~1';
};

$server->stop;
done_testing;
