use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# --hold: event streams wait without a worker, and get what is published

my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $server = start_server( <<'APP', qw(--workers 1 --hold --control), "$dir/ctl" );
use Sirius::Channel;
sub {
    my $env = shift;
    if ( $env->{PATH_INFO} eq '/events' ) {
        return [ 200, [ 'Content-Type' => 'text/event-stream', 'Grip-Hold' => 'stream', 'Grip-Channel' => 'news' ], ["data: first\n\n"] ];
    }
    Sirius::Channel->publish( news => "data: $env->{QUERY_STRING}\n\n" ) if $env->{PATH_INFO} eq '/say';
    return [ 200, [], ['free'] ];
}
APP

my @client = map { $server->connect } 1 .. 5;
$_->send( request('GET /events') ) for @client;
like $_->comes(qr/first\n\n/), qr/^data: first\n\n/m, 'a stream begins' for @client;
is $server->ask('GET /')->body, 'free', 'the only worker is free';
$server->ask('GET /say?second');
like $_->comes(qr/second\n\n/), qr/^data: second\n\n/m, 'and gets what the application publishes' for @client;
unlike $server->ask( 'GET /', 'Grip-Hold: stream', 'Grip-Channel: news' )->body, qr/data/,
    'clients can\'t ask for it';
$_->close for @client;
$server->stop;
done_testing;
