use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# A server with two workers, as most will run it: kept connections, many of them, and the end

my $server = start_server( <<'APP', qw(--workers 2) );
sub {
    my $env = shift;
    return [ 200, [ 'Content-Type' => 'text/plain', 'X-PID' => $$ ], ["hello, $env->{REQUEST_METHOD} $env->{PATH_INFO}"] ];
}
APP
my $client = $server->connect;
for my $n ( 1 .. 20 ) {
    my $answer = $client->ask("GET /$n");
    is $answer->status, 200,              'answered';
    is $answer->body,   "hello, GET /$n", 'with its own response';
    ok !$answer->closes, 'the connection is kept';
}
like $client->ask('GET /')->header('Date'), qr/ GMT\z/, 'Date';
my $head = $client->ask('HEAD /');
is $head->header('Content-Length'), length 'hello, HEAD /', 'HEAD has the length';
is $head->body,                     '',                     'and no body';

my @client = map { $server->connect } 1 .. 50;
$_->send( request('GET /many') ) for @client;
is scalar( grep { $_->response->body eq 'hello, GET /many' } @client ), 50, 'fifty clients at once';
my $old    = $server->connect;
my $answer = $old->ask('GET / HTTP/1.0');
is $answer->status, 200,   'HTTP/1.0';
is $old->end,       'eof', 'ends the connection';
$server->stop;
done_testing;
