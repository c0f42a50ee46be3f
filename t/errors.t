use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# Applications that fail: the client gets 500, the log has a line, the next request is served

my $server = start_server( <<'APP', qw(--workers 1) );
sub {
    my $path = $_[0]{PATH_INFO};
    die "ouch\n" if $path eq '/die';
    return 'nonsense' if $path eq '/string';
    return [ 200, [ 'X-Bad' => "a\r\nSet-Cookie: b" ], [] ] if $path eq '/split';
    return [ 200, [], ["\x{263a}"] ] if $path eq '/wide';
    exit 3 if $path eq '/exit';
    return [ 200, [], ["fine $$"] ];
}
APP
my $client = $server->connect;
for my $path (qw(/die /string /split /wide)) {
    is $client->ask("GET $path")->status, 500, "$path: 500";
    like $client->ask('GET /')->body, qr/\Afine/, 'and the next is served';
}
ok $server->wait_log(qr/GET \/die .*: the application died: ouch/), 'the log has the reason';
is $server->ask('GET /exit')->status, 500, 'an application that calls exit';
like $server->ask('GET /')->body, qr/\Afine/, 'another worker serves';
$server->stop;
done_testing;
