use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# --static: files without a worker

my $dir = File::Temp->newdir;
spew( "$dir/a.txt", '0123456789' );
spew( "$dir/b.css", 'b{}' );
my $server
    = start_server( 'sub { [ 200, [], ["app $_[0]{PATH_INFO}"] ] }', qw(--workers 1 --static), "/s=$dir" );
my $client = $server->connect;
my $answer = $client->ask('GET /s/a.txt');
is $answer->body, '0123456789', 'a file';
like $answer->header('Content-Type'), qr{\Atext/plain}, 'its type';
my $etag = $answer->header('ETag');
is $client->ask( 'GET /s/a.txt', "If-None-Match: $etag" )->status, 304, 'not modified';
my $part = $client->ask( 'GET /s/a.txt', 'Range: bytes=2-4' );
is $part->status, 206,   'a range';
is $part->body,   '234', 'of it';
like $client->ask('GET /s/b.css')->header('Content-Type'), qr{\Atext/css}, 'another type';
my $outside = $client->ask('GET /s/..%2f..%2fetc/passwd');
unlike $outside->body, qr/root:/, 'nothing outside';
is $client->ask('GET /other')->body, 'app /other', 'the rest is the application';
$server->stop;
done_testing;
