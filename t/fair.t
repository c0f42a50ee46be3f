use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# No worker owns a client: idle and slow ones leave the only worker to others

my $dir    = File::Temp->newdir;
my $server = start_server( "my \$dir = '$dir';\n" . <<'APP', qw(--workers 2) );
sub {
    my $env = shift;
    if ( $env->{PATH_INFO} eq '/held' ) { select undef, undef, undef, 0.01 while !-e "$dir/go" }
    $env->{'psgi.input'}->read( my $body, 100 );
    return [ 200, [], [ "$env->{PATH_INFO} ", $body // '' ] ];
}
APP
my @idle = map { $server->connect } 1 .. 100;
is $_->ask('GET /')->status, 200, 'a connection that is kept' for @idle[ 0 .. 4 ];
my @slow = map { $server->connect } 1 .. 20;
$_->send( substr request( 'POST /slow', \'abc' ), 0, -1 ) for @slow;

my $held = $server->connect;
$held->send( request('GET /held') );
ok $server->wait_busy( 1, qr{/held} ), 'one of two workers is in a call';
is $server->ask("GET /$_")->body, "/$_ ", 'the other one serves' for 1 .. 10;
$_->send('c') for @slow;
is scalar( grep { $_->response->body eq '/slow abc' } @slow ), 20,
    'slow clients are answered when they are complete';
spew( "$dir/go", '' );
is $held->response->body,                                             '/held ', 'so is the call';
is scalar( grep { $_->ask('GET /again')->body eq '/again ' } @idle ), 100, 'idle ones when they come back';
$server->stop;
done_testing;
