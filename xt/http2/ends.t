use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Client;
use Sirius::Test::HTTP2;
use Sirius::Test::WebSocket;

# Each side of a stream ends by itself: what the other one has sent still comes, and nobody waits for what
# can't come. And connections that are busy, though they have no stream whenever somebody looks

my $dir = File::Temp->newdir;
my $APP = <<'APP';
use POSIX ();
use Sirius::Channel;
use Sirius::WebSocket;

my @kept;
my $socket = Sirius::WebSocket->new(
    on_open    => sub { $_[0]->env->{PATH_INFO} =~ /no/ ? $_[0]->reject( 403, 'x' x 300_000 ) : $_[0]->accept },
    on_message => sub { my ( $ws, $text ) = @_; select undef, undef, undef, 0.2; $ws->send("echo $text") },
)->to_app;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return $socket->($env) if $path =~ m{\A/ws};
    if ( $path eq '/burst' ) { Sirius::Channel->publish( a => "$_ " . 'x' x 15_000 ) for 1 .. 40; return [ 200, [], ['told'] ] }
    if ( $path eq '/tell' ) { Sirius::Channel->publish( a => "told\n" ); return [ 200, [], ['told'] ] }
    return [ 200, [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'a' ], [ "begin\n", 'x' x ( $1 || 0 ) ] ] if $path =~ m{\A/hold(\d*)};
    return [ 200, [], ['hello'] ] if $path eq '/';
    my $io = $env->{'psgix.io'};
    syswrite $io, "HTTP/1.1 101 x\r\n\r\nbye";
    if ( $path eq '/stuck' || $path eq '/deaf' ) { push @kept, $io; shutdown $io, 1 if $path eq '/deaf'; return sub { } }
    return sub { } if $path =~ /child|later/ && fork;
    shutdown $io, 1 if $path !~ /reads|later/;
    select undef, undef, undef, 1 if $path =~ /child|later/;
    my $all = 0;
    while ( my $n = sysread $io, my $bytes, 65_536 ) { $all += $n }
    print STDERR "application $path: $all bytes\n";
    POSIX::_exit(0) if $path =~ /child|later/;
    close $io;
    return sub { };
}
APP

my @LISTEN = @Sirius::Test::HTTP2::LISTEN;
my $server;

sub greeted {
    my @settings = @_;
    my $client   = Sirius::Test::HTTP2->new( $server->address )->greet(@settings);
    return $client->send( $client->make( 'SETTINGS', 1, 0 ) );
}

sub tunnel {
    my ( $client, $stream, $path, @more ) = @_;
    my %of = (
        ':method'    => 'CONNECT',
        ':protocol'  => 'x',
        ':scheme'    => 'http',
        ':path'      => $path,
        ':authority' => 'a',
        @more
    );
    return $client->send(
        $client->make( 'HEADERS', 4, $stream, $client->fields( map { $_ => $of{$_} } sort keys %of ) ) );
}

# All that comes of a stream until its end: its bytes, and how it ends
sub rest {
    my ( $client, $stream ) = @_;
    my ( $bytes,  $until )  = ( '', time + 10 );
    while ( my $frame = $client->frame( $until - time ) ) {
        next                        if $frame->{stream} != $stream;
        $bytes .= $frame->{payload} if $frame->{type} eq 'DATA';
        return $bytes, $frame->{error} if $frame->{type} eq 'RST_STREAM';
        return $bytes, 'end'           if $frame->{flags} & 1;
    }
    return $bytes, 'nothing';
}

# What the server lets a new client send, of the connection and of these streams
sub windows {
    my ( $client, @streams ) = @_;
    my $more = unpack 'N', $client->await('WINDOW_UPDATE')->{payload};
    return { 0 => 65_535 + $more, map { $_ => 65_535 } @streams };
}

# Sends so many bytes as the windows allow; how many that were
sub upload {
    my ( $client, $window, $stream, $bytes ) = @_;
    my ( $sent, $until ) = ( 0, time + 5 );
    while ( $sent < $bytes && time < $until ) {
        if ( $window->{0} >= 16_000 && $window->{$stream} >= 16_000 ) {
            $client->send( $client->make( 'DATA', 0, $stream, 'x' x 16_000 ) );
            $sent += 16_000;
            $window->{$_} -= 16_000 for 0, $stream;
            next;
        }
        my $frame = $client->frame(0.5) or next;
        $window->{ $frame->{stream} } += unpack 'N', $frame->{payload} if $frame->{type} eq 'WINDOW_UPDATE';
    }
    return $sent;
}

# A client that has sent 160,000 bytes through a tunnel, more than a pair of sockets holds, and ended it
sub filled {
    my $path   = shift;
    my $client = greeted();
    my $window = windows( $client, 1 );
    tunnel( $client, 1, $path );
    $client->await( 'DATA', 1 );
    upload( $client, $window, 1, 160_000 );
    return $client->send( $client->make( 'DATA', 1, 1, '' ) );
}

subtest 'the application has ended its side, and reads' => sub {
    $server = start_server( $APP, qw(--workers 1), @LISTEN );
    my $client = filled('/child');
    ok $server->wait_log(qr{application /child: 160000 bytes}),
        'a slow one gets all that the client has sent';
    tunnel( $client, 3, '/half' );
    $client->await( 'DATA', 3 );
    $client->send( $client->make( 'DATA', 0, 3, 'hello' ) );
    sleep 0.2;
    $client->send( $client->make( 'RST_STREAM', 0, 3, pack 'N', 8 ) );
    ok $server->wait_log(qr{application /half: 5 bytes}), 'a reset ends what it waits for';
    is $server->ask('GET /')->status, 200, 'and its worker is free';
    tunnel( $client, 5, '/half' );
    $client->await( 'DATA', 5 );
    $client->send(
        $client->make( 'RST_STREAM', 0, 5, pack 'N', 8 ) . $client->make( 'GOAWAY', 0, 0, pack 'NN', 0, 0 ) );
    ok until_true( 10, sub { my @all = $server->log =~ m{application /half}g; @all == 2 } ),
        'with GOAWAY as well';
    ok until_true( 10, sub { $client->receive(0.1); $client->{ended} } ), 'and the connection ends';
    $server->stop;
};

subtest 'the client has gone' => sub {
    my @options = qw(--workers 1 --write-timeout 2);
    $server = start_server( $APP, @options, @LISTEN );
    for my $path (qw(/child /later)) {
        for my $goaway ( 0, 1 ) {
            my $client = filled($path);
            rest( $client, 1 )                                                if $path eq '/child';
            $client->send( $client->make( 'GOAWAY', 0, 0, pack 'NN', 0, 0 ) ) if $goaway;
            sleep 0.1;
            $client->receive(0);
            close $client->{socket};
            my $lines = sub { scalar( () = $server->log =~ m{application $path: 160000 bytes}g ) };
            ok until_true( 10, sub { $lines->() == 1 + $goaway } ),
                "$path has all that it had sent, with GOAWAY: $goaway";
            is $server->ask('GET /')->status, 200, 'its worker is free';
        }
    }
    for my $goaway ( 0, 1 ) {
        my $client = filled('/deaf');
        rest( $client, 1 );
        $client->send( $client->make( 'GOAWAY', 0, 0, pack 'NN', 0, 0 ) ) if $goaway;
        close $client->{socket};
    }
    ok until_true( 10, sub { !$server->board->{edges}[0]{streams} } ),
        'an application that does not read: nothing is kept after --write-timeout';
    is $server->board->{edges}[0]{connections}, 0, 'nor a connection';
    $server->stop;
};

subtest 'tunnels that nobody reads, and one that is read' => sub {
    $server = start_server( $APP, qw(--workers 4), @LISTEN );
    my $client = greeted();
    my @stuck  = map { 2 * $_ - 1 } 1 .. 80;
    my $window = windows( $client, @stuck, 161 );
    for my $stream (@stuck) {
        tunnel( $client, $stream, '/stuck' );
        $client->await( 'DATA', $stream );
    }
    is upload( $client, $window, $_, 64_000 ), 64_000, 'all that a window takes' for @stuck;
    is upload( $client, $window, $_, 64_000 ), 64_000, 'and a pair of sockets'   for @stuck;
    tunnel( $client, 161, '/reads' );
    $client->await( 'DATA', 161 );
    is upload( $client, $window, 161, 8_000_000 ), 8_000_000, 'the connection has credit for what is read';
    close $client->{socket};
    $server->stop;
};

subtest 'a WebSocket whose client ends its side' => sub {
    $server = start_server( $APP, qw(--hold --workers 2 --websocket /ws), @LISTEN );
    my @protocol = ( ':protocol' => 'websocket', 'sec-websocket-version' => 13 );
    my $frame    = sub { Sirius::Test::WebSocket->frame(@_) };
    my $client   = greeted();
    tunnel( $client, 1, '/ws', @protocol );
    $client->await( 'HEADERS', 1 );
    $client->send(
        $client->make( 'DATA', 1, 1, $frame->( text => 'hello' ) . $frame->( close => pack 'n', 1000 ) ) );
    my ( $bytes, $end ) = rest( $client, 1 );
    like $bytes, qr/echo hello.*\x88\x02\x03\xe8\z/s, 'with CLOSE: it gets its answer, and CLOSE';
    is $end, 'end', 'and the stream ends as it should';
    tunnel( $client, 3, '/ws/no', @protocol );
    is $client->await( 'HEADERS', 3 )->{status}, 403, 'one that is refused';
    $client->send( $client->make( 'DATA', 1, 3, '' ) );
    $client->send( $client->make( 'WINDOW_UPDATE', 0, $_, pack 'N', 1_000_000 ) ) for 0, 3;
    ( $bytes, $end ) = rest( $client, 3 );
    is length($bytes) . " $end", '300000 end', 'gets all of the answer';
    $server->stop;
};

subtest 'a burst for one who reads' => sub {
    $server = start_server( $APP, qw(--hold --workers 4), @LISTEN );
    my $client = greeted( [ 4, 0x7fff_ffff ] );
    $client->send( $client->make( 'WINDOW_UPDATE', 0, 0, pack 'N', 1 << 30 ) );
    $client->open( 1, 'GET /hold' );
    $client->await( 'DATA', 1 );
    my @publishers = map { $server->connect } 1 .. 6;
    $_->send( request('GET /burst') ) for @publishers;
    my ( $got, $until ) = ( 0, time + 10 );
    while ( $got < 6 * 40 * 15_000 && time < $until ) { $got += length( $client->receive(0.2) // last ) }
    cmp_ok $got, '>=', 6 * 40 * 15_000, 'comes whole';
    is $server->board->{totals}{hold_slow}, 0, 'nobody is too far behind';
    $server->stop;
};

subtest 'a response that is larger than the window, and held' => sub {
    $server = start_server( $APP, qw(--hold --workers 2 --hold-buffer 1k), @LISTEN );
    my $client = greeted();
    $client->open( 1, 'GET /hold300000' );
    ok until_true( 10, sub { $server->board->{held}{stream} } ), 'it is held';
    is $server->ask('GET /tell')->status, 200, 'something is published before all of it was read';
    $client->send( $client->make( 'WINDOW_UPDATE', 0, $_, pack 'N', 1_000_000 ) ) for 0, 1;
    my ( $bytes, $until ) = ( '', time + 10 );
    while ( $bytes !~ /told/ && time < $until ) {
        my $frame = $client->frame(1) or next;
        $bytes .= $frame->{payload} if $frame->{type} eq 'DATA' && $frame->{stream} == 1;
    }
    is $bytes, "begin\n" . 'x' x 300_000 . "told\n", 'its client is not behind with that';
    $server->stop;
};

subtest 'a connection that is busy, each request within a moment' => sub {
    spew( "$dir/file", "file\n" );
    $server = start_server( $APP, qw(--workers 1 --keepalive-timeout 2 --max-connections 4 --static),
        "/s=$dir", @LISTEN );
    my $client = greeted();
    my $stream = -1;
    my $ask    = sub {
        $client->open( $stream += 2, 'GET /s/file' );
        my ( $bytes, $end ) = rest( $client, $stream );
        return "$bytes$end";
    };
    my ( $asked, $until ) = ( 0, time + 4 );
    while ( time < $until ) { last if $ask->() ne "file\nend"; $asked++; sleep 0.1 }
    cmp_ok time, '>=', $until, 'is not told to end by --keepalive-timeout';
    my @idle = map { $server->connect } 1 .. 3;
    is $_->ask('GET /')->status, 200, 'others come' for @idle;
    sleep 0.2;
    is $ask->(),                               "file\nend", 'it goes on';
    is $server->connect->ask('GET /')->status, 200,         'one more than --max-connections';
    is $ask->(), "file\nend", 'it is not the one that has been idle for longest';
    $server->stop;
};

done_testing;
