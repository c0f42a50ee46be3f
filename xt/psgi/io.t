use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

http1_only('a stream has no psgix.io');

# psgix.io: the connection itself, for applications that speak another protocol. Looking at it is in looking.t

# Each asks for the descriptor in its own way, and is true when it got what it wanted
my %USE = (
    'fileno'          => 'fileno $io > 2',
    'getpeername'     => 'defined getpeername $io',
    'getsockname'     => 'defined getsockname $io',
    'getsockopt'      => 'defined getsockopt $io, Socket::SOL_SOCKET(), Socket::SO_TYPE()',
    'setsockopt'      => 'setsockopt $io, Socket::SOL_SOCKET(), Socket::SO_KEEPALIVE(), 1',
    'stat'            => '-S $io',
    'fcntl'           => 'defined fcntl $io, 1, 0',
    'a duplicate'     => 'open my $copy, "+<&", $io or die $!; fileno $copy > 2',
    'the same number' => 'open my $copy, "+<&=", $io or die $!; fileno $copy == fileno $io',
    'select'          => 'vec( my $w = "", fileno $io, 1 ) = 1; select undef, $w, undef, 5',
    'IO::Select'      => 'require IO::Select; 1 == IO::Select->new($io)->can_write(5)',
    'blocking'        => '$io->blocking',
    'not blocking'    => 'defined $io->blocking(0)',
    'opened'          => '$io->opened',
    'peername'        => 'defined $io->peername',
    'sockdomain'      => '$io->sockdomain == ( $unix ? Socket::AF_UNIX() : Socket::AF_INET() )',
    'peerport'        => '$unix ? $io->peerpath || 1 : $io->peerport == $env->{REMOTE_PORT}',
    'sockhost'        => '$unix ? $io->sockname : $io->sockhost eq "127.0.0.1"',
    'hostpath'        => '$unix ? $io->hostpath =~ /sock\z/ : $io->sockname',
    'atmark'          => 'defined $io->atmark',
    'new_from_fd'     => 'fileno( IO::Handle->new_from_fd( fileno $io, "+<" ) ) > 2',
    'fdopen'          => 'IO::Handle->new->fdopen( $io, "+<" )',
    'Mojo::IOLoop'    =>
        'require Mojo::IOLoop::Stream; Mojo::IOLoop::Stream->new($io)->handle == $io && fileno $io',
    'AnyEvent' =>
        'require AnyEvent; require AnyEvent::Handle; my $h = AnyEvent::Handle->new( fh => $io ); !!$h',
    'a glob of its own' => 'local *IO = $io; fileno IO',
);

# Over TLS it is one end of a pair of unix sockets: it has no addresses
delete @USE{qw(hostpath peerport sockdomain sockhost)} if $ENV{SIRIUS_TEST_TLS};

my $app
    = "use AnyEvent (); use IO::Handle; use Socket (); use Mojo::IOLoop::Stream;\nmy %use = (\n"
    . join( '', map {"    '$_' => sub { my ( \$io, \$env, \$unix ) = \@_; $USE{$_} },\n"} sort keys %USE )
    . <<'APP';
);
# Descriptors of this process that are one socket
sub twice { my %seen; scalar grep { /^socket/ && $seen{$_}++ } map { readlink || '' } glob "/proc/$$/fd/*" }
my ( $before, @kept );
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    $before = twice() if !defined $before;
    return [ 200, [], ['plain'] ] if $path eq '/';
    return [ 200, [], [ twice() - $before ] ] if $path eq '/twice';
    if ( $path eq '/push' ) { syswrite $_, "pushed\n" for @kept; return [ 200, [], [ scalar @kept ] ] }
    if ( $path eq '/system' ) { system 'true'; return [ 200, [], ['ok'] ] }
    if ( $path eq '/late' ) { my $n = fileno $kept[0]; return [ 200, [], [ "$n: " . ( $!{EBADF} ? "closed" : $! ) ] ] }
    my $io = $env->{'psgix.io'};
    if ( $path eq '/use' ) {
        ( my $how = $env->{QUERY_STRING} ) =~ tr/+/ /;
        my $done = $use{$how}->( $io, $env, $env->{HTTP_X_UNIX} );
        return [ 200, [], [ $done ? 'done' : 'failed' ] ];
    }
    if ( $path eq '/use-late' ) {
        return sub { my $w = $_[0]->( [ 200, [] ] ); $w->write('a'); fileno $io; $w->write('b'); $w->close }
    }
    if ( $path eq '/use-after' ) {
        return sub { $_[0]->( [ 200, [ 'Content-Length' => 2 ], ['ab'] ] ); print {$io} "more"; }
    }
    if ( $path eq '/file' ) { fileno $io; open my $in, '<', $0 or die; open $in, '<', "$ENV{BIG}" or die; return [ 200, [], $in ] }
    if ( $path eq '/keep' )  { push @kept, $io; return [ 200, [], ['kept'] ] }
    return sub { read $io, my $early, 5; syswrite $io, "got $early"; close $io } if $path eq '/read';
    return sub {
        my $n = 0;
        while ( defined( my $line = <$io> ) ) { last if $line =~ /^end/; $n += length $line; print {$io} "line\n" if $n < 200 }
        print {$io} "bytes $n, then ";
        sysread $io, my $more, 100;
        $io->print($more);
        $io->close;
    } if $path eq '/lines';
    return sub { syswrite $io, "HTTP/1.1 101 Switching Protocols\r\n\r\n"; push @kept, $io } if $path eq '/take';
    return sub {
        return if fork;
        syswrite $io, "HTTP/1.1 101 Switching Protocols\r\n\r\n";
        $io->print( 'x' x 3_000_000 );
        read $io, my $early, 5;
        syswrite $io, "$early from the child";
        POSIX::_exit(0);
    } if $path eq '/child';
    return sub { } if $path eq '/forgotten';
    if ( $path eq '/fails' ) {
        my ( $said, $how ) = split /-/, $env->{QUERY_STRING};
        my $copy;
        if ( $said =~ /copy/ ) { open $copy, '+<&', $io or die $! }
        $copy ||= $io;
        fileno $copy;
        syswrite $copy, "HTTP/1.0 200 OK\r\n\r\nbytes" if $said =~ /said/;
        my %end = ( dies => sub { die "on purpose\n" }, exits => sub { exit 3 }, killed => sub { kill KILL => $$; sleep 9 },
            undef => sub { undef }, late => sub { sub { die "on purpose\n" } }, invalid => sub { [ 200, [ "a\nb" => 1 ], [] ] } );
        return $end{$how}->();
    }
    return sub {
        my $respond = shift;
        $io->blocking(1);
        syswrite $io, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
        while ( sysread $io, my $bytes, 1024 ) {
            last if $bytes =~ /quit/;
            syswrite $io, "<$bytes>";
        }
        close $io;
    };
}
APP

my $dir = File::Temp->newdir;
spew( "$dir/big", 'x' x 20_000_000 );
local $ENV{BIG} = "$dir/big";
my @where    = ( qw(--listen 127.0.0.1:0 --listen), "unix:$dir/sock" );
my $server   = start_server( $app, qw(--workers 1), @where );
my ($worker) = $server->workers;
my ( $tcp, $unix ) = $server->listeners;

subtest 'every use of it is one, and takes the connection' => sub {
    for my $how ( sort keys %USE ) {
        ( my $query = $how ) =~ tr/ /+/;
        my @got;
        for my $to ( $tcp, $unix ) {
            my $client = $server->connect( to => $to );
            my $answer = $client->ask( "GET /use?$query", $to eq $unix ? 'X-Unix: 1' : () );
            my $ends   = $answer->closes && $client->end(5) eq 'eof';
            push @got, ( $answer->body || $answer->status ) . ( $ends ? ', closes' : ', is kept' );
        }
        is "@got", 'done, closes done, closes', $how;
    }
    is $server->ask('GET /twice')->body, 0, 'and no descriptor is left';
};

subtest 'used behind the head of a response' => sub {
    my $client = $server->connect;
    $client->send( request('GET /use-late') . request('GET /') );
    is $client->response->body, 'ab',  'the response';
    is $client->end(5),         'eof', 'is the last of the connection';
};

subtest 'used behind a whole response' => sub {
    my $client = $server->connect;
    $client->send( request('GET /use-after') . request('GET /') );
    is $client->response->body,     'ab',    'the response';
    is $client->response->body,     'plain', 'nothing of the application follows, but the next one';
    is $client->ask('GET /')->body, 'plain', 'and the connection goes on';
};

subtest 'bytes that came with the request' => sub {
    for my $to ( $tcp, $unix ) {
        my $client = $server->connect( to => $to );
        $client->send( request( 'GET /read', 'Connection: Upgrade', 'Upgrade: echo' ) . 'early' );
        is $client->rest(5), 'got early', 'are the first to be read';
        $client = $server->connect( to => $to );
        $client->send( request('GET /lines') . join '', map { 'z' x 99 . "\n" } 1 .. 1000 );
        is $client->some( 5, 5 ), "line\n", 'an answer to the first';
        $client->send( 'y' x 99 . "\n" ) for 1 .. 10;
        $client->send("end\n");
        is $client->some( 19, 5 ), 'bytes 101000, then ', 'many lines';
        $client->send('the rest');
        is $client->rest(5), 'the rest', 'and sysread behind them';
    }
};

subtest 'taken over' => sub {
    my $other  = start_server( $app, qw(--workers 2) );
    my $client = $other->connect;
    $client->send( request( 'GET /talk', 'Connection: Upgrade', 'Upgrade: echo' ) );
    like $client->some( 1, 5 ), qr/\AHTTP\/1\.1 101 Switching Protocols\r\n/, 'status 101';
    for my $word (qw(one two three)) {
        $client->send($word);
        is $client->some( length "<$word>", 5 ), "<$word>", $word;
    }
    is $other->ask('GET /')->body, 'plain', 'others are served meanwhile';
    $client->send('quit');
    is $client->end(5), 'eof', 'nothing of the server follows';
    $other->stop;
};

subtest 'the client goes away' => sub {
    for ( 1 .. 3 ) {
        my $client = $server->connect;
        $client->send( request( 'GET /talk', 'Connection: Upgrade', 'Upgrade: echo' ) );
        $client->some( 1, 5 );
        $client->close;
    }
    is $server->ask('GET /')->status, 200, 'the worker is free again' for 1 .. 4;
};

# Any fork before, were it system(), makes the server shut down what it closes, so that no child keeps it open
subtest 'kept by the application, before and after a fork' => sub {
    for my $fork ( 0, 1 ) {
        my $own = start_server( $app, qw(--workers 1 --listen 127.0.0.1:0 --listen), "unix:$dir/own" );
        $own->ask('GET /system') if $fork;
        my @client = map { $own->connect( to => $_ ) } $own->listeners;
        for my $client (@client) {
            $client->send( request('GET /take') );
            like $client->some( 1, 5 ), qr/\AHTTP\/1\.1 101/, 'it is told so';
        }
        is $own->ask('GET /push')->body, 2,          'the worker goes on, and writes';
        is $_->some( 7, 5 ),             "pushed\n", 'it arrives'           for @client;
        is $_->end(0.3),                 'timeout',  'the connection stays' for @client;
        $own->stop;
    }
};

subtest 'handed to a child, which is the first to use it' => sub {
    for my $to ( $tcp, $unix ) {
        my $client = $server->connect( to => $to );
        $client->send( request('GET /child') . 'early' );
        ( my $got = $client->rest(10) ) =~ s{\r\n\r\n(x+)}{" " . length($1) . " "}e;
        is $got, "HTTP/1.1 101 Switching Protocols 3000000 early from the child",
            "all that the child has written";
    }
    is $server->ask('GET /')->status, 200, 'the worker goes on';
};

subtest 'neither answered nor used' => sub {
    my $client = $server->connect;
    is $client->ask('GET /forgotten')->status, 500, 'an error';
    ok $server->wait_log(qr/returned without calling the responder/), 'that the log explains';
    is $client->ask('GET /')->body, 'plain', 'and the connection goes on';
};

# What comes behind bytes of the application would be a part of them, and a plain end would make them look
# complete
subtest 'the application fails' => sub {
    linux_only('no TCP_INFO: the connection is reset');
    my $own = start_server( $app, qw(--workers 1), '--listen', '127.0.0.1:0', '--listen', "unix:$dir/own" );
    my ( $tcp, $unix ) = $own->listeners;
    for my $how (qw(dies exits killed undef late invalid)) {
        for my $minor ( 0, 1 ) {
            for my $said (qw(said copysaid)) {
                my $client = $own->connect( to => $tcp );
                $client->send("GET /fails?$said-$how HTTP/1.$minor\r\nHost: x\r\n\r\n");
                is $client->rest(10), "HTTP/1.0 200 OK\r\n\r\nbytes", "$how, HTTP/1.$minor, $said: its bytes";
                is $client->{end},    'reset',                        'then a reset';
            }
            my $client = $own->connect( to => $tcp );
            $client->send("GET /fails?-$how HTTP/1.$minor\r\nHost: x\r\n\r\n");
            my $response = $client->response;
            is $response->status, $how eq 'killed' ? 502 : 500, 'an error if it has written nothing';
            is $client->end,      'eof',                        'and a plain end';
        }
        my $client = $own->connect( to => $unix );
        $client->send("GET /fails?said-$how HTTP/1.1\r\nHost: x\r\n\r\n");
        is $client->rest(10), "HTTP/1.0 200 OK\r\n\r\nbytes", 'nothing behind them on a unix socket';
    }
    is $own->ask('GET /')->body, 'plain', 'the server goes on';
    $own->{may_crash} = 1;    # workers were killed
    $own->stop;
};

subtest 'the handle after its request' => sub {
    my $own    = start_server( $app, qw(--workers 1) );
    my $client = $own->connect;
    is $client->ask('GET /keep')->body, 'kept',       'kept, but never used';
    is $client->ask('GET /late')->body, '-1: closed', 'it is closed when its request is over';
    is $client->ask('GET /')->body,     'plain',      'and the connection was never lost';
    $own->stop;
};

# A used socket blocks, for the server as well: O_NONBLOCK is of the open file, not of the descriptor
subtest 'a used socket never blocks the server' => sub {
    for my $to ( $tcp, $unix ) {
        my $slow = $server->connect( to => $to, rcvbuf => 8192 );
        $slow->send( request('GET /file') );
        my $first = $slow->some( 12, 5 );
        like $first, qr/\AHTTP\/1\.1 200/, 'a large file to a client that stops reading';
        for my $path (qw(/use-late /use-after)) {
            my $idle = $server->connect( to => $to );
            $idle->send( request("GET $path") );
            is $idle->response->body, 'ab', 'a response, whose client does not close';
        }
        is $server->connect( to => $_ )->ask('GET /')->body, 'plain', 'others are served' for $tcp, $unix;
        my $bytes = length( $first . $slow->rest(10) );
        cmp_ok $bytes, '>=', 20_000_000, 'and the file arrives';
    }
};

# Its descriptor is given back with the response: a copy that lives on would keep the connection open, and in
# the epoll set
subtest 'looked at, and the connection ends before the call does' => sub {
    my $dir = File::Temp->newdir;
    local $ENV{IO_DIR} = "$dir";
    my $server = start_server( <<'APP', qw(--workers 1) );
sub {
    my $env = shift;
    return [ 200, [], [$$] ] if $env->{PATH_INFO} eq '/';
    { my %copy = %$env }
    push @{ $env->{'psgix.cleanup.handlers'} }, sub {
        for ( 1 .. 1000 ) { last if -e "$ENV{IO_DIR}/go"; select undef, undef, undef, 0.01 }
        open my $fh, '>', "$ENV{IO_DIR}/over" or die $!;
    };
    [ 200, [], ['copied'] ];
}
APP
    for my $finish ( 0, 1 ) {
        unlink glob "$dir/*";
        my $client = $server->connect;
        my $pid    = $client->ask('GET /')->body;
        $client->send( request( 'GET /copy', 'Connection: close' ) );
        is $client->response->body, 'copied', 'answered';
        $client->finish if $finish;
        is $client->end, 'eof', 'the connection ends';
        ok !-e "$dir/over", 'while a cleanup handler still runs';
        Sirius::Test::spew( "$dir/go", '' );
        is $server->ask('GET /')->body, $pid, 'and its worker serves on';
    }
    $server->stop;
};

subtest 'no descriptor is left' => sub {
    ok until_true( 5, sub { $server->ask('GET /twice')->body eq '0' } ), 'of all these';
};

is_deeply [ $server->workers ], [$worker], 'all by one worker';
$server->stop;
done_testing;
