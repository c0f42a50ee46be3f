use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# --request-timeout: who waits for a call that does not end gets 504, and the worker is replaced

my $server = Sirius::Test::Server->start(
    app       => 'sub { sleep 1000 if $_[0]{PATH_INFO} eq "/hang"; [ 200, [], [$$] ] }',
    args      => [qw(--workers 1 --request-timeout 1)],
    may_crash => 1
);
my $pid = $server->ask('GET /')->body;
is $server->ask('GET /hang')->status, 504, 'a call that hangs';
ok $server->wait_log(qr{/hang}), 'the log names it';
isnt $server->ask('GET /')->body, $pid, 'another worker serves the next one';
$server->stop;
done_testing;
