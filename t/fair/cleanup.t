use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Fair;

# Work after the response (psgix.cleanup) keeps the worker, not the connection

my ( $server, @worker ) = fair_server(2);

my %took;
for my $round ( 1 .. 3 ) {
    my $client = $server->connect;
    my $first;
    my $seconds = elapsed { $first = $client->ask('GET /cleanup')->body };
    cmp_ok $seconds, '<', 0.5, sprintf 'the response does not wait for the handler (%.1f ms)',
        $seconds * 1000;
    push @{ $took{response} }, $seconds;
    my ($other) = grep { $_ != $first } @worker;
    $seconds
        = elapsed { is $client->ask('GET /')->body, $other, 'the next request is served by the other worker' };
    cmp_ok $seconds, '<', 0.5, sprintf 'before it is done (%.1f ms)', $seconds * 1000;
    push @{ $took{next} }, $seconds;
    $seconds = elapsed { is $server->ask('GET /')->body, $other, 'and so is a new connection' };
    cmp_ok $seconds, '<', 0.5, sprintf 'before it is done (%.1f ms)', $seconds * 1000;
    push @{ $took{new} }, $seconds;
    my $count = $round;
    ok until_true( 5, sub { ( () = $server->log =~ /cleaned up/g ) == $count } ), 'the handler runs once';
}

# One of three may meet a machine that stands still
my %limit = ( response => 0.3, next => 0.1, new => 0.1 );
cmp_ok quantile( 0.5, @{ $took{$_} } ), '<', $limit{$_}, "$_: at once" for sort keys %limit;

$server->stop;
done_testing;
