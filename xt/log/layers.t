use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# The server's own lines do not run code that the application has put on STDERR, which may die

my $server = start_server( <<'APP', qw(--workers 1) );
package Layer { sub PUSHED { bless [], $_[0] } sub WRITE { die "in WRITE\n" } sub FLUSH { 0 } sub POPPED {} }
package main;
sub {
    my $path = $_[0]{PATH_INFO};
    binmode STDERR, ':via(Layer)' if $path eq '/on';
    die "a line of the server\n" if $path eq '/die';
    return [ 200, [], ["$$"] ];
}
APP
my $pid = $server->ask('GET /on')->body;
is $server->ask('GET /die')->status, 500,  'an error is answered';
is $server->ask('GET /')->body,      $pid, 'by a worker that goes on';
ok $server->wait_log(qr/a line of the server/), 'and it is in the log';

done_testing;
