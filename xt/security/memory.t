use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# One client cannot fill the memory, the disk or the table of descriptors

my $tmp    = File::Temp->newdir;
my $server = Sirius::Test::Server->start(
    app =>
        "sub { local \$/; my \$b = readline \$_[0]{'psgi.input'}; [ 200, [], [ length( defined \$b ? \$b : '' ) ] ] }\n",
    args => [ qw(--workers 1 --body-timeout 2 --header-timeout 2 --max-body 500000000), '--tmpdir', "$tmp" ],
);
my ($owner) = $server->owners;
my @pids = ( $owner, grep { $_ != $owner } $server->workers );
$server->ask( 'POST /', \( 'x' x 1000 ) );
my $descriptors = () = Sirius::Test::Server->descriptors($owner);

sub memory {
    my $sum = 0;
    $sum += Sirius::Test::Server->memory($_) for @pids;
    return $sum;
}

# KiB that the processes grew by which hold a request while the code ran
sub grown {
    my $code   = shift;
    my $before = memory();
    $code->();
    return memory() - $before;
}

subtest 'a length is believed only when the bytes are there' => sub {
    my @client;
    my $grown = grown( sub {
        @client = map { $server->connect } 1 .. 50;
        $_->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000000\r\n\r\n") for @client;
        $server->ask('GET /');    # the edge has read what came before
    } );
    cmp_ok $grown, '<', 2048, "$grown KiB for fifty announced bodies of 400 MB";
    is scalar( grep { $_->response( patience => 6 )->status eq '408' } @client ), 50, 'each is told 408';
};

subtest 'chunk sizes as well' => sub {
    my @client;
    my $grown = grown( sub {
        @client = map { $server->connect } 1 .. 50;
        $_->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n17d78400\r\nx") for @client;
        $server->ask('GET /');    # the edge has read what came before
    } );
    cmp_ok $grown, '<', 2048, "$grown KiB for fifty announced chunks of 400 MB";
    $_->abort for @client;
};

subtest 'a large body is not in memory' => sub {
    my $peak  = 0;
    my $grown = grown( sub {
        my $client = $server->connect;
        $client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
        for my $turn ( 1 .. 99 ) {
            $client->send( 'x' x 1_000_000 );
            next if $turn % 20;
            my $now = memory();
            $peak = $now if $now > $peak;
        }
        $client->abort;
    } );
    cmp_ok $grown, '<', 5000, "$grown KiB for 99 MB of a body";
};

subtest 'idle connections are small' => sub {
    my @client;
    my $grown = grown( sub {
        @client = map { my $client = $server->connect; $client->ask( 'POST /', \'x' ); $client } 1 .. 500;
    } );
    my $most = $ENV{SIRIUS_TEST_TLS} ? 3000 : 1000;    # TLS: two keys with their tables
    $most += 7000 if $ENV{SIRIUS_TEST_H2};             # sessions of nghttp2
    cmp_ok $grown, '<', $most, "$grown KiB for 500 idle connections";
    $_->abort for @client;
};

subtest 'a thousand heads that never end' => sub {
    my @client;
    my $grown = grown( sub {
        for ( 1 .. 500 ) {
            my $client = $server->connect;
            $client->send( "GET / HTTP/1.1\r\nHost: a\r\nX: " . 'y' x 2000 );
            push @client, $client;
        }
        $server->ask('GET /');
    } );
    cmp_ok $grown, '<', 20_000, "$grown KiB for 500 of 2 KB";
    $_->abort for @client;
};

subtest 'nothing is left' => sub {
    ok until_true( 5, sub { $descriptors + 5 > ( () = Sirius::Test::Server->descriptors($owner) ) } ),
        'descriptors';
    opendir my $dh, "$tmp" or die "$tmp: $!";
    is join( ' ', grep { !/\A\.\.?\z/ } readdir $dh ), '', 'files';
    is $server->ask( 'POST /', \'still there' )->body, 11, 'the server serves';
};

$server->stop;
done_testing;
