use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# A body that the disk does not take: an error for this client, service for all others

plan skip_all => 'needs root, for a small file system of its own' if $> != 0;
my $dir = File::Temp->newdir;
plan skip_all => 'no tmpfs can be mounted here'
    if system("mount -t tmpfs -o size=1m none $dir 2>/dev/null") != 0;
END { system "umount $dir 2>/dev/null" if $dir }

my $server = start_server( "sub { [ 200, [], ['ok'] ] }\n", qw(--workers 1), '--tmpdir', "$dir" );

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

$server->stop;
done_testing;
