use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Fair;

# Connections that all came to one worker spread to its colleagues, and then stay

for my $case ( [ 'a fast application', '/', 16 ], [ 'requests of 5 ms', '/sleep/0.005', 16 ] ) {
    my ( $name, $path, $count ) = @$case;
    subtest $name => sub {
        my ( $server, $first, $second ) = fair_server(2);
        my @client = on_worker( $server, $first, $count );
        my $got;
        for ( 1 .. 5 ) {    # a busy machine may take its time
            $got = hammer( $server, clients => \@client, seconds => 1, path => $path );
            is_deeply $got->{failures}, [], "$got->{answers} answers, no failure";
            last if $got->{by_worker}{$second};
        }
        cmp_ok $got->{by_worker}{$second} || 0, '>', 0, 'both workers answer soon';
        $got = hammer( $server, clients => \@client, seconds => 2, path => $path );
        is_deeply $got->{failures}, [], "then $got->{answers} answers, no failure";
        my ($least) = sort { $a <=> $b } map { $got->{by_worker}{$_} || 0 } $first, $second;
        cmp_ok $least, '>', $got->{answers} * 0.2,
            sprintf 'of which each has a good part (%.0f %% the lesser)', 100 * $least / $got->{answers};
        $server->stop;
    };
}

subtest 'one connection stays where it is' => sub {
    my ( $server, @worker ) = fair_server(2);
    my ($client) = on_worker( $server, $worker[0], 1 );
    my $got = hammer( $server, clients => [$client], seconds => 3, requests => 500 );
    is_deeply $got->{by_worker}, { $worker[0] => 500 }, 'all of its 500 requests';
    $server->stop;
};

done_testing;
