use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::HTTP2;

# What the log and the scoreboard say of connections with HTTP/2 and their streams

my $dir = File::Temp->newdir;
my $APP = <<"APP";
use Time::HiRes qw(sleep);
sub {
    my ( \$path, \$query ) = \@{ \$_[0] }{qw(PATH_INFO QUERY_STRING)};
    if ( \$path eq '/wait' ) { for ( 1 .. 1000 ) { last if -e "$dir/\$query"; sleep 0.01 } }
    return [ 200, [], [ 'x' x ( \$path eq '/large' ? 500_000 : 1 ) ] ];
}
APP

my $log    = "$dir/access.log";
my $server = start_server(
    $APP, qw(--workers 2 --write-timeout 1 --access-log),
    $log, '--access-log-format', '%r %H %>s %{stream}x %k %X',
    @Sirius::Test::HTTP2::LISTEN
);

sub counts {
    my $board  = $server->board;
    my $totals = $board->{totals};
    return join q{ }, @{ $board->{connections} }{qw(http2 streams)}, '-',
        @{$totals}{qw(http2 streams streams_cancelled streams_reset goaways)}, $totals->{limits}{write};
}

sub counts_are {
    my ( $want, $name ) = @_;
    return ok( until_true( 10, sub { counts() eq $want } ), $name ) || diag counts();
}

counts_are( '0 0 - 0 0 0 0 0 0', 'nothing at first' );
my $plain = $server->connect;
is $plain->ask('GET /plain')->status, '200', 'HTTP/1.1';
counts_are( '0 0 - 0 0 0 0 0 0', 'does not count' );

my $client = Sirius::Test::HTTP2->new( $server->address )->greet( [ 4, 1000 ] );
$client->open( 1, 'GET /wait?first' );
$client->open( 3, 'GET /wait?second' );
counts_are( '1 2 - 1 2 0 0 0 0', 'two streams' );
$client->send( $client->make( 'RST_STREAM', 0, 3, pack 'N', 8 ) );
counts_are( '1 1 - 1 2 1 0 0 0', 'one is cancelled' );
spew( "$dir/second", '' );
spew( "$dir/first",  '' );
counts_are( '1 0 - 1 2 1 0 0 0', 'the other is answered' );
$client->open( 5, 'GET /large' );
$client->await( 'RST_STREAM', 5 );
counts_are( '1 0 - 1 3 1 1 0 1', 'one that stalls is reset' );
$client->send( $client->make( 'PING', 0, 1, 'x' x 8 ) );
is $client->await('GOAWAY')->{error}, 'PROTOCOL_ERROR', 'an error';
counts_are( '0 0 - 1 3 1 1 1 1', 'ends the connection' );

my @lines;
until_true( 10, sub { @lines = split /\n/, Sirius::Test::Server::slurp($log); @lines == 4 } );
is_deeply [ sort @lines ],
    [
    'GET /large HTTP/2.0 HTTP/2.0 200 5 2 X',
    'GET /plain HTTP/1.1 HTTP/1.1 200 - 0 +',
    'GET /wait?first HTTP/2.0 HTTP/2.0 200 1 1 +',
    'GET /wait?second HTTP/2.0 HTTP/2.0 - 3 1 X',
    ],
    'the log has protocol and number of the stream';
$server->stop;
subtest 'why a request is refused' => sub {
    my $file  = "$dir/refused.log";
    my $other = start_server(
        $APP,  qw(--body-timeout 1 --access-log),
        $file, '--access-log-format', '%m %>s %{refused}x',
        @Sirius::Test::HTTP2::LISTEN
    );
    my $slow = Sirius::Test::HTTP2->new( $other->address )->greet;
    $slow->send( $slow->make(
        'HEADERS', 4, 1,
        $slow->fields( ':method', 'POST', ':scheme', 'http', ':path', '/', ':authority', 'a' )
    ) );
    $slow->open( 3, 'TRACE /' );
    is $slow->await( 'HEADERS', 3 )->{status}, 501, 'a method';
    is $slow->await( 'HEADERS', 1 )->{status}, 408, 'a body that does not come, before that';
    ok until_true( 10, sub { 2 == ( () = Sirius::Test::Server::slurp($file) =~ /\n/g ) } ), 'two lines';
    my %why = Sirius::Test::Server::slurp($file) =~ /^(\S+) \d+ (.*)$/mg;
    like $why{POST}, qr/body/, 'each has its own reason';
    isnt $why{TRACE}, $why{POST}, 'not that of the other';
    $other->stop;
};

done_testing;
