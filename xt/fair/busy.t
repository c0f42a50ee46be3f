use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Fair;

# A worker is inside application code: all other requests are served by the other one, before that has ended,
# whatever connections they come on. bench/fair measures how soon

my ( $server, $busy, $free ) = fair_server(2);

my ( $slow, @kept ) = on_worker( $server, $busy, 101 );
my $end = hold( $server, $slow );
my ( %by, %status );
for my $client (@kept) {
    my $answer = $client->ask('GET /');
    $status{ $answer->status }++;
    $by{ $answer->body }++;
}
is_deeply [ values %by ], [100], 'a hundred are answered by one worker';
is_deeply \%status, { 200 => 100 }, 'with 200';
unanswered($slow);
$end->();
other_than( $slow->response->body, \%by );

sub fifty {
    my ( $who, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply [ values %$who ], [50], "fifty $name";
}

# The long request has its own worker, which may be either of them
sub other_than {
    my ( $long, $who ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    like $long, qr/\A(?:$busy|$free)\z/, 'the long request gets its own answer';
    return ok !$who->{$long}, 'and the others are answered by the other worker';
}

sub unanswered {
    my $client = shift;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is $client->some( 1, 0 ), '', 'while the long request is in the other';
}

subtest 'all at once' => sub {
    my ( $long, @many ) = on_worker( $server, $busy, 51 );
    my $end = hold( $server, $long );
    my %who;
    $_->send( request('GET /') ) for @many;
    $who{ $_->response->body }++ for @many;
    fifty( \%who, 'are answered by one worker' );
    unanswered($long);
    $end->();
    other_than( $long->response->body, \%who );
};

subtest 'new connections' => sub {
    my ($long) = on_worker( $server, $busy, 1 );
    my $end = hold( $server, $long );
    my %who;
    $who{ $server->ask('GET /')->body }++ for 1 .. 50;
    fifty( \%who, 'go to one worker' );
    unanswered($long);
    $end->();
    other_than( $long->response->body, \%who );
};

subtest 'a worker is back after its request' => sub {
    for ( 1 .. 3 ) {
        my ( $long, $other ) = on_worker( $server, $busy, 2 );
        my @client = on_worker( $server, $free, 1 );
        is $long->ask('GET /sleep/0.3')->status, 200, 'the request';
        my $end  = hold( $server, $client[0] );
        my $next = $other->ask('GET /')->body;
        unanswered( $client[0] );
        $end->();
        isnt $next, $client[0]->response->body, 'the next is served by the one that is free';
    }
};

$server->stop;
done_testing;
