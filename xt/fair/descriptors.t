use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# A worker whose application holds all its descriptors keeps no client waiting: it needs none to take a
# request, nor does the other

my $server = Sirius::Test::Server->start(
    app => <<'APP',
use POSIX ();
use Time::HiRes ();
my @hold;
sub {
    if ( $_[0]{PATH_INFO} eq '/hold' ) {
        my $grab = sub { while ( defined( my $fd = POSIX::dup(2) ) ) { push @hold, $fd } };
        $SIG{ALRM} = $grab;
        Time::HiRes::setitimer( Time::HiRes::ITIMER_REAL(), 0.02, 0.02 );
        $grab->();
        return [ 200, [ Connection => 'close' ], ["$$"] ];
    }
    Time::HiRes::sleep(0.02);    # both workers are needed
    [ 200, [], ["$$"] ];
}
APP
    args    => [qw(--workers 2 --max-connections 1000)],
    command => [
        'sh', '-c', 'ulimit -n 100; exec "$@"',
        'sh', $^X,  "$Sirius::Test::Server::ROOT/bin/sirius",
        '-E', 'deployment'
    ],
);
my $full = $server->ask('GET /hold')->body;
ok until_true( 10, sub { Sirius::Test::Server->descriptors($full) >= 100 } ),
    'a worker has no descriptor left';
my ( @wrong, %by, @kept );
for ( 1 .. 20 ) {
    my @client = map { $server->connect } 1, 2;
    $_->send( request('GET /') ) for @client;
    for my $answer ( map { $_->response } @client ) {
        push @wrong, $answer->status if $answer->status ne '200';
        $by{ $answer->body }++ if $answer->status eq '200';
    }
    push @kept, $client[0];
}
is_deeply \@wrong, [], 'every client is answered' or diag $server->log;
ok $by{$_}, "by $_" for $server->workers;
$server->stop;
done_testing;
