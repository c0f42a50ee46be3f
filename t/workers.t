use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# Workers are replaced, or die: no connection closes

my $APP = 'sub { kill KILL => $$ if $_[0]{PATH_INFO} eq "/kill"; [ 200, [], [$$] ] }';

subtest 'after so many requests' => sub {
    my $server = start_server( $APP, qw(--workers 2 --max-reqs-per-child 5) );
    my $client = $server->connect;
    my %seen   = map { $client->ask('GET /')->body => 1 } 1 .. 60;
    cmp_ok scalar keys %seen, '>', 3, 'several workers have served one connection';
    ok !( grep { !/\A\d+\z/ } keys %seen ), 'and no request has failed';
    $server->stop;
};

subtest 'killed' => sub {
    my $server = Sirius::Test::Server->start( app => $APP, args => [qw(--workers 1)], may_crash => 1 );
    my $client = $server->connect;
    my $pid    = $client->ask('GET /')->body;
    is $client->ask('GET /kill')->status, 502, 'in a request: 502';
    my $next = $server->ask('GET /')->body;
    like $next, qr/\A\d+\z/, 'another one serves';
    isnt $next, $pid, 'which is new';
    my $kept = $server->connect;
    is $kept->ask('GET /')->status, 200, 'a connection';
    kill KILL => $next;
    like $kept->ask('GET /')->body, qr/\A\d+\z/, 'outlives the worker that has served it';
    $server->stop;
};
done_testing;
