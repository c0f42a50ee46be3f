use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# A unix socket, and several addresses

my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $server = start_server( 'sub { [ 200, [], ["$_[0]{REMOTE_ADDR} $_[0]{SERVER_NAME}"] ] }',
    '--workers', 1, '--listen', "$dir/sock", '--listen', '127.0.0.1:0' );
my @address = $server->listeners;
is scalar @address, 2, 'two addresses';
my ($unix) = grep {/\Aunix:/} @address;
my ($tcp)  = grep { !/\Aunix:/ } @address;
is $server->connect( to => $unix )->ask('GET /')->status, 200, 'the unix socket';
like $server->connect( to => $tcp )->ask('GET /')->body, qr/\A127\.0\.0\.1 /, 'the TCP port';
$server->stop;
ok !-e "$dir/sock", 'the socket is removed';
done_testing;
