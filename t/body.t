use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# Request bodies: with a length, in chunks, large, announced, and ones that are not read

my $server = start_server( <<'APP', qw(--workers 2) );
use Digest::MD5;
sub {
    my $env = shift;
    return [ 200, [], ['unread'] ] if $env->{PATH_INFO} eq '/unread';
    my $in  = $env->{'psgi.input'};
    my $md5 = Digest::MD5->new;
    my $len = 0;
    while ( my $got = $in->read( my $piece, 10_000 ) ) { $len += $got; $md5->add($piece) }
    $in->seek( 0, 0 );
    $in->read( my $again, 3 );
    return [ 200, [], [ "$len " . $md5->hexdigest . " $again" ] ];
}
APP
require Digest::MD5;
my $client = $server->connect;
for my $len ( 3, 70_000, 3_000_000 ) {
    my $body = join '', map { chr( 33 + $_ % 90 ) } 1 .. 1000;
    $body = substr $body x ( 1 + $len / 1000 ), 0, $len;
    my $want = "$len " . Digest::MD5::md5_hex($body) . ' ' . substr $body, 0, 3;
    is $client->ask( 'POST /', \$body )->body, $want, "$len bytes";
    my $chunks = join '', map { sprintf "%x\r\n%s\r\n", length, $_ } $body =~ /(.{1,5000})/gs;
    $client->send( request( 'POST /', 'Transfer-Encoding: chunked' ) . "${chunks}0\r\n\r\n" );
    is $client->response->body, $want, 'the same in chunks';
}
is $client->ask( 'POST /unread', \( 'x' x 100_000 ) )->body, 'unread', 'a body that the application leaves';
is $client->ask( 'POST /', \'abc' )->body, '3 900150983cd24fb0d6963f7d28e17f72 abc',
    'is not in the way of the next';

$client->send( request( 'POST /', 'Content-Length: 3', 'Expect: 100-continue' ) );
like $client->some(1), qr{\AHTTP/1\.1 100 }, '100-continue';
$client->send('abc');
is $client->response->status, 200, 'then the answer';
$server->stop;
done_testing;
