use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Fair;

# Work after the response (psgix.cleanup) keeps the worker, not the connection

my ( $server, @worker ) = fair_server(2);

sub cleaned { return scalar( () = $server->log =~ /cleaned up/g ) }

for my $round ( 0 .. 2 ) {
    my $client = $server->connect;
    my $end    = hold( $server, $client, 'cleanup' );
    my $first  = $client->response->body;
    is cleaned(), $round, 'the response does not wait for the handler';
    my ($other) = grep { $_ != $first } @worker;
    is $client->ask('GET /')->body, $other, 'the next request is served by the other worker';
    is cleaned(),                   $round, 'before it is done';
    is $server->ask('GET /')->body, $other, 'and so is a new connection';
    is cleaned(),                   $round, 'before it is done';
    $end->();
    ok until_true( 5, sub { cleaned() == $round + 1 } ), 'the handler runs once';
    ok $server->wait_board( sub {
        grep { $_->{pid} == $first && $_->{state} eq 'idle' } @{ $_[0]{workers} };
        } ),
        'and then its worker is free';
}

$server->stop;
done_testing;
