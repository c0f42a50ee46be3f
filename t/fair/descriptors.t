use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# A worker whose application holds all its descriptors is woken for a newcomer that it cannot accept: another worker, which
# sleeps, has to learn of it

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
sleep 0.2;
my ( @late, %by, @kept );
for ( 1 .. 40 ) {
    my $client = $server->connect;
    $client->send( request('GET /') );
    my $answer = $client->response( patience => 2 );
    push @late, $answer->status if $answer->status ne '200';
    $by{ $answer->body }++ if $answer->status eq '200';
    push @kept, $client if $_ % 2;
    sleep 0.13;    # a pause of the full worker is over
}
is_deeply \@late, [], 'every newcomer is answered, each by itself' or diag $server->log;
ok $by{$_}, "by $_" for grep { $_ != $full } $server->workers;
$server->stop;
done_testing;
