use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# HTTPS, where OpenSSL was there at the build

skip_without('IO::Socket::SSL');
my $server = eval {
    start_server( 'sub { [ 200, [], [ $_[0]{"psgi.url_scheme"}, "x" x 100_000 ] ] }',
        qw(--workers 2 --enable-ssl --tls-self-signed) );
};
plan skip_all => 'built without OpenSSL' if !$server && $@ =~ /libssl-dev/;
die $@ if !$server;
{
    local $Sirius::Test::Client::TLS = 1;
    my $client = $server->connect;
    for ( 1 .. 3 ) {
        my $body = $client->ask('GET /')->body;
        is length $body, 100_005, 'a response';
        like $body, qr/\Ahttps/, 'over TLS';
    }
}
my $plain = Sirius::Test::Client->new( $server->address );
$plain->send( request('GET /') );
like $plain->response->status, qr/\A(?:400|)\z/, 'who speaks no TLS is refused';
$server->stop;
done_testing;
