use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::HTTP2;

# The streams of one connection run in as many workers as are free, and no worker owns the connection

my $dir = File::Temp->newdir;
my $APP = <<"APP";
use Time::HiRes qw(sleep);
sub {
    my \$path = \$_[0]{PATH_INFO};
    if ( \$path =~ m{\\A/meet/(\\d+)} ) {    # until so many are here
        open my \$out, '>', "$dir/here.\$\$" or die;
        for ( 1 .. 1000 ) { last if \@{[ glob '$dir/here.*' ]} >= \$1; sleep 0.01 }
    }
    if ( \$path =~ m{\\A/wait/(\\w+)} ) {     # until there is a file
        open my \$out, '>', "$dir/runs.\$1" or die;
        for ( 1 .. 1000 ) { last if -e "$dir/\$1"; sleep 0.01 }
    }
    kill KILL => \$\$ if \$path eq '/kill';
    [ 200, [], [ "\$\$ \$path" ] ];
}
APP

sub touch { open my $out, '>', shift or die; return }

sub pids {
    my %pid = map { ( split q{ }, $_->{body} )[0] => 1 } @_;
    return sort keys %pid;
}

my $server = Sirius::Test::Server->start(
    app       => $APP,
    args      => [ @Sirius::Test::HTTP2::LISTEN, qw(--workers 4) ],
    may_crash => 1
);

subtest 'four streams in four workers' => sub {
    my $client  = Sirius::Test::HTTP2->new( $server->address );
    my @answers = $client->finish( map { $client->begin('GET /meet/4') } 1 .. 4 );
    is join( q{ }, map { $_->{status} // $_->{error} // 'none' } @answers ), '200 200 200 200',
        'they have met';
    is scalar( my @pids = pids(@answers) ), 4, 'each in its own worker';
};

subtest 'a short one overtakes long ones' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address );
    my @long   = map { $client->begin("GET /wait/long$_") } 1 .. 3;
    ok until_true(
        10,
        sub {
            3 == grep { -e "$dir/runs.long$_" } 1 .. 3;
        }
        ),
        'three workers are busy';
    is $client->ask('GET /short')->{status}, 200, 'the fourth answers on the same connection';
    ok !( grep { $_->{done} } @long ), 'before the others';
    touch("$dir/long$_") for 1 .. 3;
    $client->finish(@long);
    is scalar( grep { $_->{status} == 200 } @long ), 3, 'which are answered then';
};

subtest 'a short one among short ones, and a long one' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address );
    $client->finish( map { $client->begin('GET /quick') } 1 .. 50 )
        for 1 .. 4;    # from now on, answers wait for others
    my $long = $client->begin('GET /wait/one');
    ok until_true( 10, sub { -e "$dir/runs.one" } ), 'a worker is busy';
    is $client->ask('GET /short')->{status}, 200, 'an answer does not wait for that';
    ok !$long->{done}, 'which is not there yet';
    touch("$dir/one");
    $client->finish($long);
    is $long->{status}, 200, 'and comes then';
};

subtest 'one client with many streams does not stop another' => sub {
    my $greedy = Sirius::Test::HTTP2->new( $server->address );
    my @many   = map { $greedy->begin("GET /wait/many") } 1 .. 100;
    my $modest = Sirius::Test::HTTP2->new( $server->address );
    my $answer = $modest->begin('GET /');
    touch("$dir/many");
    $modest->finish($answer);
    is $answer->{status}, 200, 'it is answered';
    $greedy->finish(@many);
    is scalar( grep { $_->{status} == 200 } @many ), 100, 'as are all';
};

subtest 'a worker that dies' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address );
    my $long   = $client->begin('GET /wait/beside');
    ok until_true( 10, sub { -e "$dir/runs.beside" } ), 'another one runs';
    is $client->ask('GET /kill')->{status}, 502, 'its stream gets 502';
    is $client->ask('GET /')->{status},     200, 'the connection goes on';
    touch("$dir/beside");
    $client->finish($long);
    is $long->{status}, 200, 'and so do the other streams';
};

subtest 'a reload' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address );
    my ($old) = pids( $client->ask('GET /') );
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 20 ), 'is over';
    isnt( ( pids( $client->ask('GET /') ) )[0], $old, 'the same connection has new workers' );
    ok until_true( 20, sub { $server->generations == 1 } ), 'the old ones end';
};

subtest 'a stream that is cancelled' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address )->greet;
    $client->open( 1 + 2 * $_, "GET /wait/cancel$_" ) for 0 .. 3;
    ok until_true(
        10,
        sub {
            4 == grep { -e "$dir/runs.cancel$_" } 0 .. 3;
        }
        ),
        'all workers are busy';
    $client->open( 9, 'GET /wait/never' );
    ok $server->wait_waiting(1), 'a fifth one waits';
    $client->send( $client->make( 'RST_STREAM', 0, 9, pack 'N', 8 ) );
    ok until_true( 10, sub { $server->board->{connections}{waiting} == 0 } ), 'until it is cancelled';
    touch("$dir/cancel$_") for 0 .. 3;
    is $client->await( 'HEADERS', 7 )->{status}, 200, 'the others are answered';
    $client->open( 11, 'GET /' );
    is $client->await( 'HEADERS', 11 )->{status}, 200, 'and so is the next';
    ok !-e "$dir/runs.never", 'it was never run';
};

subtest 'the end of the server' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address )->greet;
    my $idle   = Sirius::Test::HTTP2->new( $server->address )->greet;
    $client->open( 1, 'GET /wait/stop' );
    ok until_true( 10, sub { -e "$dir/runs.stop" } ), 'a stream runs';
    $server->signal('TERM');
    my $first = $client->await('GOAWAY');
    is $first->{error}, 'NO_ERROR', 'GOAWAY';
    is unpack( 'N', $first->{payload} ), 0x7fffffff,
        'with the highest number, as requests may be on their way';
    $client->open( 3, 'GET /' );
    is $client->await( 'HEADERS', 3 )->{status},         200,        'which are served';
    is unpack( 'N', $idle->await('GOAWAY')->{payload} ), 0x7fffffff, 'so it is where nothing runs';
    for ( $client, $idle ) { $_->send( $_->make( 'PING', 1, 0, "\0" x 8 ) ) }
    $idle->open( 1, 'POST /' );
    $idle->send( $idle->make( 'DATA', 1, 1, 'x' ) );
    is $idle->await( 'HEADERS', 1 )->{status}, 200,
        'what was on its way is served, though the client has seen it';
    is unpack( 'N', $idle->await('GOAWAY')->{payload} ), 1, 'then the last number is told';
    ok $idle->ends, 'and that connection ends';
    is unpack( 'N', $client->await('GOAWAY')->{payload} ), 3, 'here too, though the stream runs';
    touch("$dir/stop");
    is $client->await( 'HEADERS', 1 )->{status}, 200, 'which is answered';
    ok $client->ends, 'and the connection ends';
    $server->stop;
};

# A client of HTTP/2 may let a request fail that it was about to send on a connection of which it hears that
# it ends. So it hears that when the load balancer has gone elsewhere
subtest '--drain-delay ends no connection before it is over' => sub {
    $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN, qw(--workers 2 --drain-delay 600) );
    my $client = Sirius::Test::HTTP2->new( $server->address )->greet;
    $client->open( 1, 'GET /' );
    is $client->await( 'HEADERS', 1 )->{status}, 200, 'a connection is kept';
    $server->signal('TERM');
    my $plain = $server->address;
    ok until_true( 10, sub { Sirius::Test::Client->new($plain)->ask('GET /')->closes } ),
        'responses of HTTP/1.1 say close';
    my @seen;
    $client->open( 3, 'GET /' );

    while ( my $frame = $client->frame ) {
        push @seen, $frame->{type};
        last if $frame->{stream} == 3 && $frame->{type} eq 'HEADERS';
    }
    is $seen[-1],                       'HEADERS', 'a stream is answered';
    is scalar( grep {/GOAWAY/} @seen ), 0,         'without GOAWAY';
    $server->signal('TERM');
    is unpack( 'N', $client->await('GOAWAY')->{payload} ), 0x7fffffff, 'which comes when the delay ends';
    $server->stop;
};

done_testing;
