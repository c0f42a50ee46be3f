use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Attacks;
use Sirius::Test::HTTP2;

# Hostile clients: each of them is ended or refused, counted and logged, beside a client that is served

my $dir = File::Temp->newdir;
my $APP = <<"APP";
use Time::HiRes qw(sleep);
sub {
    my \$env  = shift;
    my \$path = \$env->{PATH_INFO};
    if ( \$path eq '/run' )  { open my \$out, '>>', "$dir/ran" or die; syswrite \$out, '.' }
    if ( \$path eq '/hold' ) { open my \$out, '>>', "$dir/held" or die; syswrite \$out, '.' }
    if ( \$path eq '/hold' ) { for ( 1 .. 6000 ) { last if -e "$dir/go"; sleep 0.01 } }
    sleep 1 if \$path eq '/slow';
    my ( \$got, \$n ) = (0);
    \$got += \$n while \$n = \$env->{'psgi.input'}->read( my \$body, 65_536 );
    [ 200, [], [ \$path eq '/many' ? 'x' x 10_000_000 : \$path eq '/big' ? 'x' x 200_000 : \$got || 'hello' ] ];
}
APP

my $server;

sub totals { return $server->board->{totals} }

# Whether this is counted, as of a hash of counters of which $then is an earlier value
sub counted {
    my ( $then, $of, $what, $least ) = @_;
    return until_true( 10, sub { totals()->{$of}{$what} >= $then->{$of}{$what} + ( $least || 1 ) } );
}

# No worker is busy, and no request waits
sub rests {
    return until_true(
        10,
        sub {
            my $now = $server->board;
            !$now->{connections}{waiting} && !grep { $_->{state} eq 'busy' } @{ $now->{workers} };
        }
    );
}

sub client { return Sirius::Test::HTTP2->new( $server->address, @_ ) }

$server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN,
    qw(--workers 3 --header-timeout 1 --write-timeout 1 --body-timeout 1 --keepalive-timeout 60) );
my ($edge) = $server->owners;
my $normal = client()->greet;
my $stream = 1;
my $before = $server->memory($edge);
my $most   = 0;

for my $attack ( Sirius::Test::Attacks->all ) {
    subtest $attack->{name} => sub {
        my $then = totals();
        my $seen = Sirius::Test::Attacks->run( $attack, $server->address, 10,
            sub { my $memory = $server->memory($edge); $most = $memory if $memory > $most } );
        my $goaway = $attack->{flood} ? 'ENHANCE_YOUR_CALM' : $attack->{goaway};
        is $seen->{goaway}, $goaway, $goaway ? 'the connection ends' : 'no GOAWAY';
        ok counted( $then, floods => $attack->{flood} ),  'counted'                   if $attack->{flood};
        ok counted( $then, limits => $attack->{limit} ),  'the time limit is counted' if $attack->{limit};
        ok counted( $then, closed => $attack->{closed} ), $attack->{closed}           if $attack->{closed};
        ok $seen->{ended},                                'the connection ends'       if $attack->{closed};
        ok $seen->{resets}{ $attack->{reset} },           'streams are reset'         if $attack->{reset};
        ok counted( $then, refusals => @{$attack}{qw(refused answers)} ), 'refused'   if $attack->{refused};
        cmp_ok $seen->{ends}, '>=', $attack->{answers}, 'streams end' if $attack->{answers};
        $normal->open( $stream, 'GET /' );
        is $normal->await( 'HEADERS', $stream )->{status}, 200, 'another client is served';
        $stream += 2;
        ok rests(), 'nothing is left to do';
    };
}
my $more = $most - $before;
cmp_ok $more, '<', 64 * 1024, "memory of the edge: at most $most KiB";
like $server->log, qr/warn: HTTP\/2 connection of 127\.0\.0\.1:\d+ ended: too many PING frames$/m, 'logged';
my @lines = $server->log =~ /too many errors for which/g;
is scalar(@lines), 1, 'a line in 10 seconds for each reason';

subtest 'what brings something' => sub {
    my $client = client()->greet( [ 4, 20_000 ] );
    $client->open( 1, 'GET /many' );
    my $got = 0;
    while ( $got < 10_000_000 and my $frame = $client->frame(10) ) {
        next if $frame->{type} ne 'DATA';
        my $n = length $frame->{payload} or last;
        $got += $n;
        $client->send( join '', map { $client->make( 'WINDOW_UPDATE', 0, $_, pack 'N', $n ) } 0, 1 );
    }
    is $got, 10_000_000, 'windows are opened for each frame, small ones too';
    my $ping   = $client->make( 'PING', 0, 0, 'x' x 8 );
    my $served = 0;
    for my $n ( 1 .. 600 ) {
        $client->open( 1 + 2 * $n, 'GET /' );
        $client->send( $ping x 2 );
        $served++ if ( $client->await( 'HEADERS', 1 + 2 * $n )->{status} // 0 ) == 200;
    }
    is $served, 600, 'each request comes with two PING frames';
};

subtest 'requests that are cancelled while they wait' => sub {
    my @busy = map { client()->greet->open( 1, 'GET /hold' ) } 1 .. 3;
    ok until_true( 10, sub { ( -s "$dir/held" || 0 ) == 3 } ), 'all workers are busy';
    my $then   = totals();
    my $client = client()->greet;
    $client->open( $_, 'GET /run' ) for Sirius::Test::Attacks::streams( 0, 100 );
    ok until_true( 10, sub { $server->board->{connections}{waiting} } ), 'requests wait';
    $client->send( $client->make( 'RST_STREAM', 0, $_, pack 'N', 8 ) )
        for Sirius::Test::Attacks::streams( 0, 100 );
    ok until_true( 10, sub { !$server->board->{connections}{waiting} } ), 'they leave the queue';
    open my $out, '>', "$dir/go" or die $!;
    is $_->await('HEADERS')->{status}, 200, 'a worker goes on' for @busy;
    $client->open( 201, 'GET /' );
    is $client->await( 'HEADERS', 201 )->{status}, 200, 'so does the client';
    ok !-e "$dir/ran", 'none of them was run';
    is totals()->{aborted} - $then->{aborted}, 100, 'all are counted';
    unlink "$dir/go", "$dir/held";
};

subtest 'requests that wait when the client makes an error of the connection' => sub {
    my @busy = map { client()->greet->open( 1, 'GET /hold' ) } 1 .. 3;
    ok until_true( 10, sub { ( -s "$dir/held" || 0 ) == 3 } ), 'all workers are busy';
    my $client = client()->greet;
    $client->open( $_, 'GET /run' ) for Sirius::Test::Attacks::streams( 0, 10 );
    ok until_true( 10, sub { $server->board->{connections}{waiting} } ), 'requests wait';
    $client->send( $client->make( 'DATA', 0, 1, 'x' ) );
    is $client->await('GOAWAY')->{error}, 'STREAM_CLOSED', 'the connection ends';
    ok until_true( 10, sub { !$server->board->{connections}{waiting} } ), 'they leave the queue';
    open my $out, '>', "$dir/go" or die $!;
    is $_->await('HEADERS')->{status}, 200, 'a worker goes on' for @busy;
    ok !-e "$dir/ran", 'none of them was run';
    unlink "$dir/go", "$dir/held";
};
$server->stop;

subtest 'bodies in memory' => sub {
    $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN, qw(--workers 2) );
    my $client = client()->greet;
    my @data   = map { Sirius::Test::Attacks::post($_) . $client->make( 'DATA', 0, $_, 'x' x 16_000 ) x 3 }
        Sirius::Test::Attacks::streams( 0, 100 );
    $client->send( join '', @data );
    ok until_true( 10, sub { $server->board->{connections}{spooled} > 2_000_000 } ),
        'go to files when a connection has many';
    $client->send( join '',
        map { $client->make( 'DATA', 1, $_, 'end' ) } Sirius::Test::Attacks::streams( 0, 100 ) );
    my $ends = 0;
    while ( $ends < 100 and my $frame = $client->frame ) {
        $ends++ if $frame->{type} eq 'DATA' && $frame->{payload} eq '48003';
    }
    is $ends, 100, 'and are complete';
    $server->stop;
};

subtest 'a proxy' => sub {
    $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN, qw(--workers 2 --trust-proxy 127.0.0.1) );
    my $client = client()->greet;
    for my $chunk ( 0 .. 19 ) {
        $client->send(
            join '',
            map { Sirius::Test::Attacks::head( $_, '/' ) . $client->make( 'RST_STREAM', 0, $_, pack 'N', 8 ) }
                Sirius::Test::Attacks::streams( $chunk, 100 )
        );
    }
    $client->open( 4001, 'GET /' );
    is $client->await( 'HEADERS', 4001 )->{status}, 200, 'may cancel many requests';
    $server->stop;
};

subtest 'uploads that hold the descriptors' => sub {
    $server = Sirius::Test::Server->start(
        app     => $APP,
        command =>
            [ 'sh', '-c', 'ulimit -n 200; exec "$@"', 'sh', $^X, "$Sirius::Test::Server::ROOT/bin/sirius" ],
        args => [ @Sirius::Test::HTTP2::LISTEN, qw(--workers 2 --body-memory 1000) ]
    );
    my $then   = totals();
    my @greedy = map { client()->greet } 1 .. 3;
    for my $client (@greedy) {
        $client->send(
            join '',
            map { Sirius::Test::Attacks::post($_) . $client->make( 'DATA', 0, $_, 'x' x 1001 ) }
                Sirius::Test::Attacks::streams( 0, 100 )
        );
    }
    ok counted( $then, refusals => 'descriptors', 100 ), 'they get no more of the last ones';
    my $client = client();
    is $client->ask('GET /')->{status},                      200, 'which others need';
    is $client->ask( 'POST /', {}, 'x' x 10_000 )->{status}, 200, 'also for their bodies';
    close $_->{socket} for @greedy;
    $server->stop;
};

subtest 'requests that are cancelled while they run' => sub {
    $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN, qw(--workers 140) );
    my $then   = totals();
    my $client = client()->greet;
    my @first  = Sirius::Test::Attacks::streams( 0, 120 );
    $client->open( $_, 'GET /hold' ) for @first;
    ok until_true( 60, sub { ( -s "$dir/held" || 0 ) == 120 } ), 'many run';
    $client->send( $client->make( 'RST_STREAM', 0, $_, pack 'N', 8 ) ) for @first;
    $client->open( 241 + 2 * $_, 'GET /hold' ) for 0 .. 9;
    is $client->await('RST_STREAM')->{error},        'REFUSED_STREAM', 'they still count as open';
    is $client->await( 'RST_STREAM', 259 )->{error}, 'REFUSED_STREAM', 'so that 8 may be opened beside them';
    is totals()->{floods}{streams} - $then->{floods}{streams}, 2,      'counted';
    like $server->log, qr/has requests refused: too many requests while cancelled ones still run/, 'logged';
    open my $out, '>', "$dir/go" or die $!;
    $client->open( 261, 'GET /' );
    ok rests(), 'their workers come to an end';
    $client->open( 263, 'GET /' );
    is $client->await( 'HEADERS', 263 )->{status}, 200, 'then there is room again';
    $server->stop;
};

done_testing;
