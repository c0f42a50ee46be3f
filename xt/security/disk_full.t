use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# A body that the disk does not take: an error for this client, service for all others

plan skip_all => 'needs root, for a small file system of its own' if $> != 0;
my $dir    = File::Temp->newdir;
my $socket = File::Temp->newdir;
plan skip_all => 'no tmpfs can be mounted here'
    if system("mount -t tmpfs -o size=1m none $dir 2>/dev/null") != 0;
END { system "umount $dir 2>/dev/null" if $dir }

my $app    = q<sub { [ 200, [], [ $_[0]{PATH_INFO} eq '/large' ? 'x' x 3_000_000 : 'ok' ] ] }> . "\n";
my $server = start_server( $app, qw(--workers 1 --listen 127.0.0.1:0 --listen),
    "unix:$socket/socket", '--tmpdir', "$dir" );

subtest 'a body of 5 MB on a disk of 1 MB' => sub {
    for ( 1 .. 5 ) {
        my $client = $server->connect;
        my $answer = $client->ask( 'POST /', \( 'x' x 5_000_000 ) );
        like $answer->status, qr/\A50[037]\z/, 'an error of the server';
        ok $answer->closes, 'that closes';
    }
    is $server->ask( 'POST /', \( 'x' x 500_000 ) )->status, 200, 'what fits is served';
    is $server->ask('GET /')->status,                        200, 'and all else';
};

subtest 'a response of 3 MB to a client that reads slowly' => sub {
    my @client = map { $server->connect( to => "unix:$socket/socket" ) } 1 .. 3;
    $_->send( request('GET /large') ) for @client;
    is $server->ask('GET /')->status, 200,       'nobody waits for it';
    is length $_->response->body,     3_000_000, 'it is whole, from memory' for @client;
};

$server->stop;
done_testing;
