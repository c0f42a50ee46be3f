# psgix.io of a stream that was opened by extended CONNECT (RFC 8441)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::HTTP2;
use Sirius::Test::WebSocket;

# /ws speaks it with the help of Mojolicious, others write what they have to say
my $APP = <<'APP';
use Mojo::WebSocket qw(WS_BINARY WS_CLOSE build_frame parse_frame);
use Digest::SHA qw(sha1_base64);
my @kept;

sub show { join ' ', map { "$_=" . ( $_[0]{$_} // 'none' ) } @_[ 1 .. $#_ ] }

sub frames {
    my ( $io, $each ) = @_;
    my $buffer = '';
    while ( sysread $io, $buffer, 65_536, length $buffer ) {
        while ( my $frame = parse_frame( \$buffer, 4_000_000 ) ) {
            my ( $kind, $bytes ) = @$frame[ 4, 5 ];
            print {$io} build_frame( 0, 1, 0, 0, 0, $kind == WS_CLOSE ? ( WS_CLOSE, $bytes ) : ( WS_BINARY, $each->($bytes) ) );
            return if $kind == WS_CLOSE;
        }
    }
}

my $switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\nX-Own: 1\r\n\r\n";
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return [ 200, [], [ exists $env->{'psgix.io'} ? 'there' : 'none' ] ] if $path eq '/look';
    if ( $path eq '/close-kept' )    { close $_ for @kept; @kept = (); return [ 200, [], ['closed'] ] }
    if ( $path eq '/shutdown-kept' ) { shutdown $_, 1 for @kept; return [ 200, [], ['shut down'] ] }
    if ( $path eq '/write-kept' )    { syswrite $_, 'more' for @kept; return [ 200, [], [ scalar @kept ] ] }
    if ( $path eq '/read-kept' )     { sysread $kept[0], my $bytes, 65_536; return [ 200, [], [ $bytes // '' ] ] }
    if ( $path eq '/end-kept' )      { my $n = sysread $kept[0], my $bytes, 100; return [ 200, [], [ $n // "no: $!" ] ] }
    return [ 403, [ 'X-Why' => 'no' ], ['forbidden'] ] if $path eq '/forbidden';
    return [ 204, [], [] ] if $path eq '/204';
    return [ 200, [], ['page'] ] if $path eq '/held';
    my $io = $env->{'psgix.io'};
    return [ 200, [], [ $io ? fileno $io : 'none' ] ] if $path eq '/ordinary';
    return [ 200, [], [ join ' ', ref $io, show( $env, qw(REQUEST_METHOD SERVER_PROTOCOL HTTP_HOST HTTP_UPGRADE HTTP_CONNECTION
        HTTP_SEC_WEBSOCKET_KEY HTTP_SEC_WEBSOCKET_VERSION CONTENT_LENGTH REQUEST_URI) ) ] ] if $path eq '/env';
    if ( $path eq '/ws' ) {
        die if ( lc $env->{HTTP_UPGRADE} ne 'websocket' || $env->{HTTP_CONNECTION} !~ /upgrade/i || $env->{REQUEST_METHOD} ne 'GET' );
        my $accept = sha1_base64( $env->{HTTP_SEC_WEBSOCKET_KEY} . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11' ) . '=';
        print {$io} "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ", $accept, "\r\n\r\n";
        frames( $io, sub { $_[0] eq 'env' ? show( $env, 'HTTP_SEC_WEBSOCKET_KEY' ) : $_[0] } );
        close $io;
        return sub { };
    }
    my %own = (
        '/own-403'  => "HTTP/1.1 403 Forbidden\r\nX-Why: own\r\nContent-Length: 2\r\n\r\nno",
        '/own-200'  => "HTTP/1.1 200 OK\r\n\r\npage",
        '/own-none' => "\x81\x02hi",
        '/own-chunked' => "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        '/own-long' => "HTTP/1.1 101 x\r\nX: " . 'x' x 70_000,
        '/own-half' => "HTTP/1.1 101 x\r\n",
        '/own-bad'  => "HTTP/1.1 101 x\r\nA B: x\r\n\r\n",
        '/own-end'  => '',
    );
    if ( defined $own{$path} ) { syswrite $io, $own{$path}; close $io; return sub { } }
    if ( $path eq '/slowly' ) { for ( split //, $switch . 'after' ) { syswrite $io, $_; select undef, undef, undef, 0.005 } close $io; return sub { } }
    if ( $path eq '/after' ) { syswrite $io, "${switch}told"; return [ 200, [], ['thrown away'] ] }
    if ( $path eq '/dies' )  { syswrite $io, "${switch}told"; die "on purpose\n" }
    if ( $path eq '/dies-before' ) { fileno $io; die "on purpose\n" }
    if ( $path eq '/killed' ) { syswrite $io, "${switch}told"; kill KILL => $$; sleep 9 }
    if ( $path eq '/killed-before' ) { fileno $io; kill KILL => $$; sleep 9 }
    if ( $path eq '/flood' ) { syswrite $io, $switch; print {$io} 'x' x 100_000 for 1 .. 100; close $io; return sub { } }
    if ( $path eq '/raw' ) { syswrite $io, $switch; while ( sysread $io, my $bytes, 65_536 ) { print {$io} $bytes } print {$io} 'end'; close $io; return sub { } }
    if ( $path eq '/keep' ) { syswrite $io, $switch; push @kept, $io; return sub { } }
    if ( $path eq '/wait' ) { syswrite $io, $switch; my $n = sysread $io, my $bytes, 100; print STDERR 'gone ', $n // "$!", "\n"; return sub { } }
    if ( $path eq '/child' ) {
        syswrite $io, $switch;
        return sub { } if fork;
        while ( sysread $io, my $bytes, 65_536 ) { print {$io} "child $bytes" }
        require POSIX;
        POSIX::_exit(0);
    }
    die;
}
APP

my $dir = File::Temp->newdir;
my $log = "$dir/access.log";
sub options { return ( @_, @Sirius::Test::HTTP2::LISTEN ) }
my $server = start_server( $APP,
    options( qw(--workers 2 --access-log), $log, '--access-log-format', '%m %U %H %>s %B' ) );

sub ws { return Sirius::Test::WebSocket->new( $server->address, h2 => 1, path => @_ ) }

# It knows the windows of the server
sub greeted {
    my $client = Sirius::Test::HTTP2->new( $server->address )->greet;
    return $client->send( $client->make( 'SETTINGS', 1, 0 ) );
}

# Opens a tunnel of any protocol
sub open_tunnel {
    my ( $client, $stream, $path, @more ) = @_;
    my %of = ( ':protocol' => 'x', @more );
    $client->send( $client->make(
        'HEADERS',
        4, $stream,
        $client->fields(
            ':method'    => 'CONNECT',
            ':protocol'  => delete $of{':protocol'},
            ':scheme'    => 'http',
            ':path'      => $path,
            ':authority' => 'a',
            %of
        )
    ) );
    return $client;
}

# "200 bytes end", with what comes; "reset CANCEL"
sub answer {
    my ( $client, $stream ) = @_;
    my @got;
    my $bytes = q();
    my $until = time + 10;
    while ( my $frame = $client->frame( $until - time ) ) {
        next if $frame->{stream} != $stream;
        push @got, $frame->{status}        if $frame->{type} eq 'HEADERS';
        push @got, "reset $frame->{error}" if $frame->{type} eq 'RST_STREAM';
        $bytes .= $frame->{payload} if $frame->{type} eq 'DATA';
        my $ends = $frame->{type} =~ /\A(?:DATA|HEADERS)\z/ && $frame->{flags} & 1;
        last if $ends || $frame->{type} eq 'RST_STREAM';
    }
    return join ' ', grep {length} @got[ 0 .. ( @got ? 0 : -1 ) ], $bytes, @got[ 1 .. $#got ];
}

sub tunnel { my $client = open_tunnel( greeted(), 1, @_ ); return answer( $client, 1 ) }
sub ask    { return $server->ask("GET $_[0]")->body }

subtest 'an application that speaks WebSocket' => sub {
    my $ws = ws('/ws');
    ok $ws->{extended}, 'SETTINGS_ENABLE_CONNECT_PROTOCOL';
    is $ws->status, 200, '101 is 200';
    $ws->text('env');
    is $ws->next, 'binary HTTP_SEC_WEBSOCKET_KEY=AAAAAAAAAAAAAAAAAAAAAA==', 'the key is made';
    my $text = join q(), map { chr( 33 + $_ % 90 ) } 1 .. 1_048_576;
    $ws->text($text);
    ok $ws->next eq "binary $text", '1 MiB there and back';
    $ws->text($text) for 1 .. 3;
    my @same = grep { $ws->next eq "binary $text" } 1 .. 3;
    is @same, 3, 'and three more at once';
    $ws->send( close => pack 'n', 1000 );
    is $ws->all, 'close 1000', 'closed';
    is $ws->end, 'eof',        'and the stream ends';
    my $again = ws( '/ws', fields => ['Sec-WebSocket-Key: own'] );
    $again->text('env');
    is $again->next, 'binary HTTP_SEC_WEBSOCKET_KEY=AAAAAAAAAAAAAAAAAAAAAA==',
        'one of the client is not taken';
    until_true( 10, sub { ( lines() )[0] } );
    like(
        ( lines() )[0],
        qr{\AGET /ws HTTP/2\.0 200 419\d{4}\z},
        'its line in the access log comes at the end'
    );
};

sub lines { open my $in, '<', $log or return; chomp( my @lines = <$in> ); return @lines }

subtest 'what the application sees' => sub {
    is tunnel( '/env', 'sec-websocket-version' => 13, ':protocol' => 'websocket' ),
        '501 IO::Socket::UNIX REQUEST_METHOD=GET SERVER_PROTOCOL=HTTP/2.0 HTTP_HOST=a HTTP_UPGRADE=websocket HTTP_CONNECTION=Upgrade'
        . ' HTTP_SEC_WEBSOCKET_KEY=AAAAAAAAAAAAAAAAAAAAAA== HTTP_SEC_WEBSOCKET_VERSION=13 CONTENT_LENGTH=none REQUEST_URI=/env',
        'for a WebSocket';
    like tunnel( '/env', ':protocol' => 'connect-udp' ), qr/HTTP_UPGRADE=connect-udp .*KEY=none/,
        'another protocol';
    my $client = greeted();
    $client->open( 1, 'GET /look' );
    is answer( $client, 1 ), '200 none', 'no other request has it';
    open_tunnel( $client, 3, '/look' );
    is answer( $client, 3 ), '501 there', 'though one of the same connection had';
};

subtest 'answered in the ordinary way' => sub {
    is tunnel('/forbidden'), '403 forbidden', 'a refusal';
    is tunnel('/204'),       '501',           '2xx would open it';
    like tunnel('/ordinary'),    qr/\A501 \d+\z/, 'with the socket taken';
    like tunnel('/dies-before'), qr/\A500 /,      'it dies';
};

subtest 'answered by itself' => sub {
    is tunnel('/own-403'),                '403 no',               'a refusal';
    is tunnel('/own-200'),                '501 page',             '2xx would open it';
    is tunnel("/own-$_"),                 'reset INTERNAL_ERROR', $_ for qw(none chunked long half bad end);
    is tunnel('/slowly'),                 '200 after',            'byte by byte';
    is tunnel('/after'),                  '200 told',             'what it answers as well is thrown away';
    is tunnel('/dies') =~ s/200 told //r, 'reset INTERNAL_ERROR', 'it dies afterwards';
    is ask('/look'),                      'there',                'all workers go on';
};

subtest 'invalid requests' => sub {
    like tunnel( '/env', ':protocol' => 'a b' ), qr/\A400/, ':protocol';
    like tunnel( '/env', ':protocol' => 'websocket', 'sec-websocket-version' => 12 ), qr/\A426/,
        'the version';
    like tunnel( '/env', 'content-length' => 4 ), qr/\A400/, 'a body';
};

subtest 'both ends' => sub {
    my $client = open_tunnel( greeted(), 1, '/raw' );
    $client->send( $client->make( 'DATA', 0, 1, 'early ' ) );
    $client->send( $client->make( 'DATA', 1, 1, 'late ' ) );
    is answer( $client, 1 ), '200 early late end', 'the end of the client, and of the application';
    $server->stop;
    $server = start_server( $APP, options(qw(--workers 1)) );
    $client = open_tunnel( greeted(), 1, '/keep' );
    is $client->await( 'HEADERS', 1 )->{status}, 200,         'one that is kept';
    is ask('/write-kept'),                       1,           'is written to by another request';
    is $client->await( 'DATA', 1 )->{payload},   'more',      'which comes';
    is ask('/shutdown-kept'),                    'shut down', 'the application shuts down its side';
    ok $client->await( 'DATA', 1 )->{flags} & 1, 'END_STREAM';
    $client->send( $client->make( 'DATA', 0, 1, 'still' ) );
    is ask('/read-kept'),                          'still',    'and reads on';
    is ask('/close-kept'),                         'closed',   'until it closes it';
    is $client->await( 'RST_STREAM', 1 )->{error}, 'NO_ERROR', 'which the client hears';
    open_tunnel( $client, 3, '/keep' );
    $client->await( 'HEADERS', 3 );
    $client->send( $client->make( 'RST_STREAM', 0, 3, pack 'N', 8 ) );
    is ask('/end-kept'), 0, 'a stream that is reset is an end';
    ask('/close-kept');
    open_tunnel( $client, 5, '/child' );
    $client->await( 'HEADERS', 5 );
    $client->send( $client->make( 'DATA', 0, 5, 'hello' ) );
    is $client->await( 'DATA', 5 )->{payload}, 'child hello', 'a child of the worker has it';
    $client->send( $client->make( 'DATA', 1, 5, '' ) );
    ok $client->await( 'DATA', 5 )->{flags} & 1, 'and ends it';
    open_tunnel( $client, 7, '/wait' );
    $client->await( 'HEADERS', 7 );
    close $client->{socket};
    ok $server->wait_log(qr/gone 0/), 'a worker that waits hears of the end of the connection';
    $server->stop;
};

subtest 'a worker that is killed' => sub {
    $server = start_server( $APP, options(qw(--workers 1)) );
    $server->{may_crash} = 1;
    my $client = open_tunnel( greeted(), 1, '/killed' );
    is answer( $client, 1 ) =~ s/200 (?:told )?//r, 'reset INTERNAL_ERROR', 'within it';
    open_tunnel( $client, 3, '/killed-before' );
    like answer( $client, 3 ), qr/\A502 /, 'before it was answered';
    open_tunnel( $client, 5, '/keep' );
    is $client->await( 'HEADERS', 5 )->{status}, 200, 'one that keeps another';
    kill KILL => $server->workers;
    ok $client->await( 'DATA', 5 )->{flags} & 1, 'ends that';
    $client->open( 7, 'GET /look' );
    is answer( $client, 7 ), '200 none', 'the connection goes on';
    $server->stop;
};

subtest 'one that stops within a stream' => sub {
    $server = start_server( $APP, options(qw(--workers 2 --write-timeout 2)) );
    my $client = open_tunnel( greeted(), 1, '/flood' );
    my $got    = 0;
    $got += length $client->await( 'DATA', 1 )->{payload} while $got < 65_535;
    is $got, 65_535, 'a client reads as much as its window has';
    $client->send( $client->make( 'WINDOW_UPDATE', 0, 0, pack 'N', 20_000_000 ) );
    $client->open( 3, 'GET /look' );
    is answer( $client, 3 ), '200 none', 'other streams go on';
    $client->send( $client->make( 'WINDOW_UPDATE', 0, 1, pack 'N', 20_000_000 ) );

    while ( my $frame = $client->frame ) {
        next if $frame->{type} ne 'DATA' || $frame->{stream} != 1;
        $got += length $frame->{payload};
        last if $frame->{flags} & 1;
    }
    is $got, 10_000_000, 'then all comes';
    open_tunnel( $client, 5, '/flood' );
    $client->send( $client->make( 'WINDOW_UPDATE', 0, 5, pack 'N', 1 ) );
    my $frame = $client->await( 'RST_STREAM', 5 );
    like $frame->{error}, qr/ERROR|CANCEL/, 'after --write-timeout it is reset';
    is ask('/look'), 'there', 'and its worker free';
    $server->stop;

    $server = start_server( $APP, options(qw(--workers 1)) );
    my ( $sent, $window ) = ( 0, 65_535 );
    $client = open_tunnel( greeted(), 1, '/keep' );
    $client->await( 'HEADERS', 1 );
    my $goes_on = sub {
        my $f = $client->frame(1) or return;
        $window += unpack 'N', $f->{payload} if $f->{type} eq 'WINDOW_UPDATE' && $f->{stream} == 1;
        return 1;
    };
    while ( $sent < 1_000_000 && ( $window >= 8192 || $goes_on->() ) ) {
        next if $window < 8192;
        $client->send( $client->make( 'DATA', 0, 1, 'y' x 8192 ) );
        $sent   += 8192;
        $window -= 8192;
    }
    cmp_ok $sent, '<', 600_000,
        'an application that does not read gives no credit but for what the pair holds';
    my $read = 0;
    while ( $read < $sent ) { my $n = length ask('/read-kept'); last if !$n; $read += $n }
    is $read, $sent, 'it reads all of it later';
    1 while $window < 32_768 && $goes_on->();
    cmp_ok $window, '>=', 32_768, 'which gives it';
    $server->stop;
};

subtest 'a limit' => sub {
    $server = start_server( $APP, options(qw(--workers 2 --max-connections 3)) );
    my $client = greeted();
    open_tunnel( $client, $_, '/keep' ) for 1, 3, 5, 7;
    my @status;
    while ( @status < 4 and my $frame = $client->frame ) {
        push @status, $frame->{status} if $frame->{type} eq 'HEADERS';
    }
    is join( q( ), sort @status ), '200 200 500 500', '--max-connections, of which one connection has a part';
    my $other = open_tunnel( greeted(), 1, '/keep' );
    is $other->await( 'HEADERS', 1 )->{status}, 200, 'and another the rest';
    close $other->{socket};
    $client->send( $client->make( 'RST_STREAM', 0, $_, pack 'N', 8 ) ) for 1, 3, 5, 7;
    open_tunnel( $client, 9, '/keep' );
    is $client->await( 'HEADERS', 9 )->{status}, 200, 'others may be opened when they end';
    $server->stop;
};

subtest 'with --hold' => sub {
    $server = start_server( $APP, options(qw(--hold --workers 1 --websocket /held)) );
    my $ws = ws('/ws');
    $ws->text('x');
    is $ws->next, 'binary x', 'at a path that is not held';
    $ws->close;
    is tunnel( '/ordinary', ':protocol' => 'other' ) =~ s/\d+\z/n/r, '501 n', 'another protocol';
    is tunnel( '/held', ':protocol' => 'websocket', 'sec-websocket-version' => 13 ), '501 page',
        'an ordinary response where the server speaks WebSocket';
    $server->stop;
};

subtest 'an application that takes it and answers with Grip-Hold as well' => sub {
    $server = start_server( <<'APP', options(qw(--hold --workers 2)) );
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    my @head = ( 200, [ 'Grip-Hold' => $path =~ /poll/ ? 'response' : 'stream', 'Grip-Channel' => 'c', 'Grip-Timeout' => 1 ] );
    return [ 200, [], [$$] ] if $path eq '/';
    my $touch = sub { my $io = $env->{'psgix.io'}; fileno $io if $io };
    $touch->() if $path =~ /before/;
    return [ @head, ['whole'] ] if $path =~ /whole/;
    return sub {
        my $writer = shift->( [@head] );
        $writer->write('x');
        $touch->();
        close delete $env->{'psgix.io'} if $path =~ /close/ && $env->{'psgix.io'};
        select undef, undef, undef, 0.2;
        $writer->close;
    };
}
APP
    my @edges = $server->edges;
    for my $kind (qw(poll stream)) {
        like tunnel("/$kind-$_"), qr/\A(?:501|reset)/, "$kind, $_: it is not held"
            for qw(before-whole before before-close);
        is open_tunnel( greeted(), 1, "/$kind-$_" )->await( 'HEADERS', 1 )->{status}, 501,
            "$kind, $_: nor that"
            for qw(whole later close);
        is $server->ask('GET /')->status, 200, "$kind: the workers are free";
    }
    is_deeply [ $server->edges ], \@edges, 'the edge goes on';
    $server->stop;
};

subtest 'a stop' => sub {
    $server = start_server( $APP, options(qw(--workers 1 --graceful-timeout 20)) );
    my $client = open_tunnel( greeted(), 1, '/raw' );
    $client->await( 'HEADERS', 1 );
    $server->signal('TERM');
    $client->await('GOAWAY');
    sleep 1.2;
    $client->send( $client->make( 'DATA', 0, 1, 'hello' ) );
    is $client->await( 'DATA', 1 )->{payload}, 'hello', 'one goes on';
    $client->send( $client->make( 'DATA', 1, 1, '' ) );
    is $client->await( 'DATA', 1 )->{payload}, 'end', 'until its end';
    $server->stop;
};

done_testing;
