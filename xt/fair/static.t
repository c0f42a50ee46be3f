use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# Files need no worker: they are sent while all workers are inside the application, and while the queue is
# full

my $dir = File::Temp->newdir;
spew( "$dir/a.txt",   'file' );
spew( "$dir/big.bin", 'x' x 1_000_000 );

my $APP = <<"APP";
sub {
    my \$env = shift;
    if ( \$env->{PATH_INFO} eq '/wait' ) {
        open my \$out, '>>', '$dir/began' or die \$!;
        syswrite \$out, '.';
        select undef, undef, undef, 0.01 while !-e '$dir/go';
    }
    return [ 200, [], ['app'] ];
}
APP

sub is_answered {
    my $client = shift;
    $client->_read(0);
    return length $client->pending;
}

my $server = start_server( $APP, qw(--workers 2 --max-queue 1), '--static', "/assets=$dir" );
my @busy   = map { $server->connect } 1 .. 2;
for my $n ( 1 .. 2 ) {
    $busy[ $n - 1 ]->send( request('GET /wait') );
    ok until_true( 30, sub { ( -s "$dir/began" || 0 ) == $n } ), "worker $n is busy";
}
my @queue = map { $server->connect } 1 .. 4;
$_->send( request('GET /wait') ) for @queue;
ok until_true(
    10,
    sub {
        ( grep { is_answered($_) } @queue ) == 3;
    }
    ),
    'and the queue is full';
my ($waits) = grep { !is_answered($_) } @queue;

my $client = $server->connect;
is join( ' ', map { $client->ask('GET /assets/a.txt')->body } 1 .. 50 ), join( ' ', ('file') x 50 ),
    'fifty on one connection';
is $server->ask('GET /assets/a.txt')->body,          'file',    "connection $_" for 1 .. 5;
is length $server->ask('GET /assets/big.bin')->body, 1_000_000, 'a large one';
is $server->ask('GET /assets/none')->status,         404,       'one that is not there';
$client->send( request('GET /assets/a.txt') x 40 );
is scalar( grep { $_->body eq 'file' } $client->responses(40) ), 40, 'forty at once';
is -s "$dir/began",                                              2,  'while both workers are where they were';

spew( "$dir/go", '' );
is join( ' ', map { $_->response->body } @busy, $waits ), 'app app app', 'which then go on';
$server->stop;

done_testing;
