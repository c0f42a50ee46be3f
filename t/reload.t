use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# HUP loads the new code; connections stay. Code that does not load leaves the old one in place

my $dir  = File::Temp->newdir;
my $file = "$dir/app.psgi";
spew( $file, 'sub { [ 200, [], ["first"] ] }' );
my $server = start_server( $file, qw(--workers 2) );
my $client = $server->connect;
is $client->ask('GET /')->body, 'first', 'the first code';
spew( $file, 'sub { [ 200, [], ["second"] ] }' );
$server->signal('HUP');
ok $server->wait_log( qr/generation 2 is serving/, 30 ), 'HUP';
my $new = sub {
    return 10 == grep { $client->ask('GET /')->body eq 'second' } 1 .. 10;
};
ok until_true( 30, $new ), 'the new code, on the same connection';   # the old workers may have a last request
spew( $file, 'sub { [ 200, [], ["third"] ] ' );
$server->signal('HUP');
ok $server->wait_log( qr/Missing right curly|syntax error/, 30 ), 'code that does not compile is told';
is $client->ask('GET /')->body, 'second', 'what served goes on';
$server->stop;
done_testing;
