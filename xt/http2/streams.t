use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use List::Util qw(sum0);
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::HTTP2;

# Streams whose client, application or server comes to an end at another time than the others

my $dir = File::Temp->newdir;
my $APP = <<"APP";
use Time::HiRes qw(sleep time);
sub {
    my ( \$path, \$query ) = \@{ \$_[0] }{qw(PATH_INFO QUERY_STRING)};
    my %stream = (
        '/late'  => sub { my \$w = \$_[0]->( [ 200, [] ] ); \$w->write('a'); sleep 0.3; \$w->write( 'b' x 500_000 ); \$w->close },
        '/whole' => sub {
            my \$w = \$_[0]->( [ 200, [ 'Content-Length' => 100 ] ] );
            \$w->write( 'x' x 100 );
            my \$end = time + rand 0.0004;
            1 while time < \$end;
            \$w->close;
        },
    );
    return \$stream{\$path} if \$stream{\$path};
    return [ 200, [ 'X-Much' => \$query x 10_000 ], [ \$query x 200_000 ] ] if \$path eq '/much';
    if ( \$path eq '/run' )  { open my \$out, '>>', "$dir/ran" or die; syswrite \$out, "\$query\\n" }
    if ( \$path eq '/file' ) { open my \$in, '<', "$dir/file" or die; return [ 200, [], \$in ] }
    return [ 200, [ map { ( "X-\$_" => 'y' x 1000 ) } 1 .. \$query ], ['hello'] ] if \$path eq '/head';
    return [ 200, [], ['hello'] ];
}
APP

sub greeted {
    my ( $server, @settings ) = @_;
    return Sirius::Test::HTTP2->new( $server->address )->greet(@settings);
}

sub widen {
    my ( $client, $by, @streams ) = @_;
    return $client->send( join '', map { $client->make( 'WINDOW_UPDATE', 0, $_, pack 'N', $by ) } @streams );
}

# The server's windows are in force: before that there is room for 64 KiB of bodies
sub take_windows {
    my $client = shift;
    $client->await( 'WINDOW_UPDATE', 0 );
    return $client->send( $client->make( 'SETTINGS', 1, 0, '' ) );
}

# How many bytes of a body come until it ends, or how it is cut off
sub body {
    my ( $client, $stream ) = @_;
    my $n     = 0;
    my $until = time + 10;
    while ( my $frame = $client->frame( $until - time ) ) {
        next                           if $frame->{stream} != $stream;
        return $frame->{error}         if $frame->{type} eq 'RST_STREAM';
        $n += length $frame->{payload} if $frame->{type} eq 'DATA';
        return $n                      if $frame->{flags} & 1;
    }
    return "$n, and no end" . ( $client->{ended} ? " but of the connection" : "" );
}

my $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN,
    qw(--workers 2 --stream-timeout 1 --body-timeout 1 --write-timeout 20 --max-body 100000 --max-header-fields 256)
);

subtest 'a client that reads nothing' => sub {
    my $client = greeted( $server, [ 4, 0 ] );    # SETTINGS_INITIAL_WINDOW_SIZE
    $client->open( 1, 'POST /' );
    take_windows($client);
    $client->send( $client->make( 'DATA', 0, 1, 'x' x 16_000 ) ) for 1 .. 10;
    $client->await( 'HEADERS', 1 );
    $client->open( 3, 'GET /late' );
    sleep 2.5;
    widen( $client, 1_000_000, 0, 1, 3 );
    like body( $client, 1 ), qr/\A\d+\z/, 'gets its 413 later than --body-timeout';
    $client = greeted( $server, [ 4, 1000 ] );
    $client->open( 1, 'GET /late' );
    sleep 2.5;
    widen( $client, 1_000_000, 0, 1 );
    is body( $client, 1 ), 500_001, 'and a response that was complete before --stream-timeout';
};

subtest 'as many fields as there may be' => sub {
    for my $more ( 255, 256 ) {
        my $client = greeted($server);
        $client->open( 1, 'POST /', map { ( "x$_" => 'v' ) } 1 .. $more );
        $client->send( $client->make( 'DATA', 1, 1, 'x' ) );
        my $got = body( $client, 1 );
        is $got, $more == 255 ? 5 : 36, ":authority and $more";
    }
};

subtest 'a response with many fields' => sub {
    my $client = greeted($server);
    $client->open( 1, 'GET /head?200' );
    is body( $client, 1 ), 5, 'of 200 kB';
};

subtest 'several connections at the same time' => sub {
    my %client = map { $_ => Sirius::Test::HTTP2->new( $server->address ) } 'a' .. 'f';
    my %answer = map {
        my $name = $_;
        $name => [ map { $client{$name}->begin("GET /much?$name") } 1 .. 3 ]
    } keys %client;
    for my $name ( sort keys %client ) {
        $client{$name}->finish( @{ $answer{$name} } );
        my @wrong
            = grep { ( $_->{body} // '' ) ne $name x 200_000 || $_->{fields}{'x-much'} ne $name x 10_000 }
            @{ $answer{$name} };
        is scalar @wrong, 0, "each frame of $name is its own, in which all are made";
    }
};

subtest 'the application ends after the last byte' => sub {
    for ( 1 .. 10 ) {
        my $client = greeted($server);
        $client->open( 1 + 2 * $_, 'GET /whole' ) for 0 .. 59;
        my $ends  = 0;
        my $until = time + 10;
        while ( $ends < 60 and my $frame = $client->frame( $until - time ) ) {
            $ends++ if $frame->{type} eq 'DATA' && $frame->{flags} & 1;
        }
        is $ends, 60, 'all streams end' or last;
    }
};

# What the server says of the connection after these frames; "" if it goes on
sub said_of {
    my ( $before, @frames ) = @_;
    my $client = greeted($server);
    $client->open( 5, $before );
    $client->await( 'DATA', 5 );
    $client->send( join q{}, map { $client->make(@$_) } @frames, [ 'PING', 0, 0, 'x' x 8 ] );
    my $until = time + 10;
    while ( my $frame = $client->frame( $until - time ) ) {
        return $frame->{error} if $frame->{type} eq 'GOAWAY';
        return ''              if $frame->{type} eq 'PING';
    }
    return 'the end';
}

subtest 'frames of streams that are closed, or never were' => sub {
    my $fields = "\0\1a\1b";
    is said_of( 'GET /', [ 'DATA',    0, 5, 'x' ] ),     'STREAM_CLOSED', 'DATA behind the end';
    is said_of( 'GET /', [ 'HEADERS', 5, 5, $fields ] ), 'STREAM_CLOSED', 'trailers behind the end';
    is said_of( 'GET /', [ 'DATA',    0, 3, 'x' ] ), 'STREAM_CLOSED', 'DATA of a number that was left out';
    is said_of( 'GET /', [ 'HEADERS', 5, 3, $fields ] ), 'PROTOCOL_ERROR', 'HEADERS of one';
    is said_of( 'GET /', [ 'DATA',    0, 7, 'x' ] ),     'PROTOCOL_ERROR', 'DATA of one that has not begun';
    is said_of( 'GET /', [ 'WINDOW_UPDATE', 0, 5, pack 'N', 1 ], [ 'RST_STREAM', 0, 5, pack 'N', 8 ] ), '',
        'WINDOW_UPDATE and RST_STREAM may come late';
    is said_of( 'POST /', [ 'DATA', 0, 5, 'x' ], [ 'DATA', 1, 5, 'x' ] ), '',
        'so may DATA of one that the server has answered';
    is said_of( 'GET /', [ 'PRIORITY', 0, 0, pack 'N C', 5, 1 ] ), 'PROTOCOL_ERROR', 'PRIORITY of no stream';
    is said_of( 'GET /', [ 'PRIORITY', 0, 7, pack 'N C', 7, 1 ] ), 'PROTOCOL_ERROR',
        'of one that depends on itself';
    is said_of( 'GET /', [ 'PRIORITY', 0, 5, pack 'N C', 3, 1 ], [ 'PRIORITY', 0, 7, pack 'N C', 5, 1 ] ),
        '', 'others are ignored';
};

subtest 'more streams than there may be, before the client knows' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address );
    my $frames = $client->preface;
    my $fields
        = $client->fields( ':method' => 'POST', ':path' => '/', ':scheme' => 'http', ':authority' => 'a' );
    $frames .= $client->make( 'HEADERS', 4, 1 + 2 * $_, $fields ) for 0 .. 128;
    $client->send( $frames . $client->make( 'DATA', 1, 257, 'x' ) . $client->make( 'DATA', 1, 1, 'x' ) );
    my $until = time + 10;
    my %end;
    while ( !$end{1} and my $frame = $client->frame( $until - time ) ) {
        $end{ $frame->{stream} } = $frame->{error} || 'end' if $frame->{error} || $frame->{flags} & 1;
    }
    is_deeply \%end, { 0 => 'end', 257 => 'REFUSED_STREAM', 1 => 'end' }, 'the others go on';
};

subtest 'a file that somebody writes to meanwhile' => sub {
    my $bytes = 50_000_000;
    open my $out, '>', "$dir/file" or die $!;
    print $out 'q' x $bytes;
    close $out or die $!;
    my $client = greeted($server);
    widen( $client, 1 << 30, 0 );
    $client->open( 1, 'GET /file' );
    $client->await( 'DATA', 1 );
    defined( my $pid = fork ) or die "fork: $!";

    if ( !$pid ) {
        open my $in, '+<', "$dir/file" or die $!;
        exec 'true';
    }
    for ( 1 .. 40 ) { widen( $client, 1000, 1 ); sleep 0.01 }
    waitpid $pid, 0;
    widen( $client, 1 << 30, 1 );
    my $got = body( $client, 1 );
    cmp_ok $got, '>=', $bytes - 70_000, 'all of it comes';
};
$server->stop;

subtest 'a client that holds what there is of temporary files' => sub {
    $server
        = start_server( $APP, @Sirius::Test::HTTP2::LISTEN,
        qw(--workers 2 --max-temp-file-size 1m --body-memory 1000 --body-timeout 20 --write-timeout 20) );
    my $greedy = greeted($server);
    $greedy->open( 1, 'POST /', 'content-length' => 1_000_000 );
    take_windows($greedy);
    $greedy->send( $greedy->make( 'DATA', 0, 1, 'x' x 15_000 ) ) for 1 .. 60;
    sleep 1.5;    # who is younger than a second does not pay
    my $client = Sirius::Test::HTTP2->new( $server->address );
    is $client->ask( 'POST /', {}, 'x' x 600_000 )->{status}, 200, 'pays for another one';
    is $greedy->await( 'HEADERS', 1 )->{stream},              1,   'and is told so';
    $greedy->open( 3, 'GET /' );
    is $greedy->await( 'HEADERS', 3 )->{status}, 200, 'its connection goes on';
    $greedy->open( 5, 'POST /' );
    $greedy->send( $greedy->make( 'DATA', 0, 5, 'x' x 15_000 ) ) for 1 .. 80;
    is $greedy->await( 'HEADERS', 5 )->{stream}, 5, 'one that needs more than all is refused';
    my $told = sub { sum0( $server->log =~ /(\d+) clients? \w+ cut off or answered with 507/g ) };
    ok until_true( 10, sub { $told->() == 2 } ), 'the log says both';
    $server->stop;
};

subtest 'a client that holds the descriptors' => sub {
    $server = Sirius::Test::Server->start(
        app     => $APP,
        command =>
            [ 'sh', '-c', 'ulimit -n 100; exec "$@"', 'sh', $^X, "$Sirius::Test::Server::ROOT/bin/sirius" ],
        args => [ @Sirius::Test::HTTP2::LISTEN, qw(--workers 2 --write-timeout 20) ]
    );
    my $greedy = greeted( $server, [ 4, 0 ] );
    for my $n ( 0 .. 119 ) { $greedy->open( 1 + 2 * $n, 'GET /file' ) }
    is $greedy->await('RST_STREAM')->{error}, 'INTERNAL_ERROR', 'gets no more of the last ones';
    my $client = Sirius::Test::HTTP2->new( $server->address );
    is $client->ask('GET /')->{status}, 200, 'which others need';
    close $greedy->{socket};
    $server->stop;
};

# One whose requests are written at once
sub burst {
    my ( $client, @line )   = @_;
    my ( $frames, $stream ) = ( '', -1 );
    {
        no warnings 'redefine';
        local *Sirius::Test::HTTP2::send = sub { $frames .= $_[1]; return $_[0] };
        $client->open( $stream += 2, $_ ) for @line;
    }
    return $client->send($frames);
}

for my $option ( [qw(--max-keepalive-reqs 3)], ['--disable-keepalive'] ) {
    subtest "@$option: the end comes when the connection rests" => sub {
        $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN, qw(--workers 2), @$option );
        my $client = burst( greeted($server), ('GET /') x 100 );
        my ( %answered, @last );
        while ( my $frame = $client->frame ) {
            $answered{ $frame->{stream} } = 1 if $frame->{type} eq 'HEADERS' && $frame->{status} == 200;
            push @last, unpack 'N', $frame->{payload} if $frame->{type} eq 'GOAWAY';
            $client->send( $client->make( 'PING', 1, 0, $frame->{payload} ) ) if $frame->{type} eq 'PING';
        }
        is scalar keys %answered, 100, 'all that were sent are answered, which browsers may not repeat';
        is_deeply \@last, [ 0x7fffffff, 199 ], 'then it is announced, and comes';
        ok $client->{ended}, 'and the connection ends';
        $server->stop;
    };
}

subtest 'no request begins behind GOAWAY' => sub {
    $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN, qw(--workers 2 --graceful-timeout 10) );
    my $client = greeted( $server, [ 4, 0 ] )->open( 1, 'GET /late' )->open( 3, 'GET /run?3' );
    is $client->await( 'HEADERS', 3 )->{status}, 200, 'a request, while the window of another is closed';
    kill TERM => $server->{pid};
    is unpack( 'N', $client->await('GOAWAY')->{payload} ), 0x7fffffff, 'the end is announced';
    $client->send( $client->make( 'PING', 1, 0, "\0" x 8 ) );
    $client->open( 5, 'GET /run?5' );
    is $client->await( 'HEADERS', 5 )->{status},           200, 'what is sent meanwhile is answered';
    is unpack( 'N', $client->await('GOAWAY')->{payload} ), 5,   'then it names the last';
    $client->open( 7, 'GET /run?7' );
    $client->open( 9, 'POST /run?9' )->send( $client->make( 'DATA', 1, 9, 'x' ) );
    widen( $client, 2_000_000, 0, 1, 3, 5 );
    is body( $client, 1 ), 500_001, 'neither the next ones nor a body end those that were begun';
    ok $client->ends, 'the connection ends';
    open my $in, '<', "$dir/ran" or die $!;
    is join( '', sort <$in> ), "3\n5\n", 'no other was run';
    $server->stop;
};

done_testing;
