use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Fair;

# A worker is inside application code: connections that were kept alive there are served by the other one

my ( $server, $busy, $free ) = fair_server(2);

my ( $slow, @kept ) = on_worker( $server, $busy, 101 );
$slow->send( request('GET /sleep/2') );
sleep 0.02;

my ( %by, @seconds );
for my $client (@kept) {
    push @seconds, elapsed { $by{ $client->ask('GET /')->body }++ };
}
is_deeply [ values %by ], [100], 'a hundred are answered by one worker';
cmp_ok quantile( 0.9, @seconds ), '<', 0.05, sprintf 'within 50 ms (p90 %.1f ms)',
    1000 * quantile( 0.9, @seconds );
cmp_ok quantile( 1, @seconds ), '<', 0.5, sprintf 'and the slowest (%.1f ms)', 1000 * quantile( 1, @seconds );

other_than( $slow->response->body, \%by );

sub fifty {
    my ( $who, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply [ values %$who ], [50], "fifty $name";
}

# The long request has its own worker: the one that has its connection, or with an edge either of them
sub other_than {
    my ( $long, $who ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    like $long, $server->edges ? qr/\A(?:$busy|$free)\z/ : qr/\A$busy\z/,
        'the long request gets its own answer';
    return ok !$who->{$long}, 'and the others are answered by the other worker';
}

subtest 'all at once' => sub {
    my ( $long, @many ) = on_worker( $server, $busy, 51 );
    $long->send( request('GET /sleep/2') );
    sleep 0.02;
    my %who;
    my $seconds = elapsed {
        $_->send( request('GET /') ) for @many;
        $who{ $_->response->body }++ for @many;
        fifty( \%who, 'are answered by one worker' );
    };
    cmp_ok $seconds, '<', 1, sprintf 'soon (%.0f ms)', $seconds * 1000;
    other_than( $long->response->body, \%who );
};

subtest 'new connections' => sub {
    my ($long) = on_worker( $server, $busy, 1 );
    $long->send( request('GET /sleep/1.5') );
    sleep 0.02;
    my ( %who, @each );
    push @each, elapsed { $who{ $server->ask('GET /')->body }++ } for 1 .. 50;
    fifty( \%who, 'go to one worker' );
    cmp_ok quantile( 0.9, @each ), '<', 0.05, sprintf 'at once (p90 %.1f ms)', 1000 * quantile( 0.9, @each );
    other_than( $long->response->body, \%who );
};

subtest 'a worker is back at once after its request' => sub {
    my @seconds;
    for ( 1 .. 3 ) {
        my ( $long, $other ) = on_worker( $server, $busy, 2 );
        my @client = on_worker( $server, $free, 1 );
        is $long->ask('GET /sleep/0.3')->status, 200, 'the request';
        $client[0]->send( request('GET /sleep/0.5') );
        sleep 0.02;
        my $next;
        push @seconds, elapsed { $next = $other->ask('GET /')->body };
        isnt $next, $client[0]->response->body, 'the next is served by the one that is free';
    }
    my $usual = quantile( 0.5, @seconds );
    cmp_ok $usual, '<', 0.1, sprintf 'at once (median %.1f ms)', $usual * 1000;
};

$server->stop;
done_testing;
