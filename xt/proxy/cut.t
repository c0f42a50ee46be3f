use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp ();
use Sirius::Test;
use Sirius::Test::Nginx;

# HTTP/1.0 has no chunks: a response without a length ends with its connection. One that is cut ends with a
# reset, also on a unix socket, where proxies such as nginx speak HTTP/1.0 by default.

my $dir    = File::Temp->newdir;
my $socket = "$dir/socket";
chmod 0755, $dir;
my $APP = <<'APP';
use POSIX ();
my %end = (
    die  => sub { die "no more rows\n" },
    exit => sub { exit 0 },
    kill => sub { kill KILL => $$; sleep 10 },
    wait => sub { sleep 30 },
    good => sub { $_[0]->close },
);
sub {
    my $env = shift;
    my ( $what, $size ) = $env->{PATH_INFO} =~ m{\A/(?:\w+-)?(\w+)/(\d+)};
    my $body = do { local $/; readline $env->{'psgi.input'} };
    return [ 200, [], [ 'whole ' . length $body ] ] if $what eq 'array';
    if ( $what eq 'iodie' || $what eq 'iokill' ) {
        syswrite $env->{'psgix.io'}, "HTTP/1.1 200 OK\r\n\r\na part";
        $end{ substr $what, 2 }->();
    }
    if ( $what eq 'io' ) {
        my $io = $env->{'psgix.io'};
        syswrite $io, "HTTP/1.1 200 OK\r\n\r\nby itself, ";
        sysread $io, my $more, 100;
        syswrite $io, "got $more";
        return sub { };
    }
    return sub {
        my $writer = shift->( [ 200, [ 'Content-Type' => 'text/csv', $what eq 'length' ? ( 'Content-Length' => $size + 1 ) : () ] ] );
        $writer->write( 'x' x 1000 ) for 1 .. $size / 1000;
        ( $end{$what} || $end{good} )->($writer);
    };
}
APP
my @SERVER = qw(--workers 2 --listen 127.0.0.1:0 --socket-mode 0666 --stream-timeout 0.5 --listen);
my $server = start_server( $APP, @SERVER, $socket );
my %to     = ( TCP => $server->address, unix => "unix:$socket" );

# How the connection ends, and how much of the body has come
sub asked {
    my ( $client, @piece ) = @_;
    for my $piece (@piece) {
        $client->send($piece);
        select undef, undef, undef, 0.05 if @piece > 1;
    }
    my $bytes = length( $client->rest =~ s/\A.*?\r\n\r\n//sr );
    return ( $client->end, $bytes );
}

subtest 'cut' => sub {
    for my $to ( sort keys %to ) {
        for my $what (qw(die exit kill wait)) {
            my ($end) = asked( $server->connect( to => $to{$to} ), "GET /$what/5000 HTTP/1.0\r\n\r\n" );
            is $end, 'reset', "$to, $what";
        }
    }
    for my $request (
        ["POST /die/2000 HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"],
        [ "POST /die/2000 HTTP/1.0\r\nContent-Length: 5\r\n",          "\r\nhel",     'lo' ],
        [ "POST /die/2000 HTTP/1.0\r\nContent-Length: 200000\r\n\r\n", 'x' x 199_999, 'x' ],
        ["\r\nGET /die/2000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"],
        [ map {$_} split //, "GET /die/2000 HTTP/1.0\r\n\r\n" ],
        )
    {
        my ( $end, $bytes ) = asked( $server->connect( to => $to{unix} ), @$request );
        is $end, 'reset', join ' ', map { s/\r\n/|/gr =~ s/x{9,}/x.../r } @$request;
        is $bytes, 2000, 'behind what was written before';
    }
};

subtest 'a second request on the connection' => sub {
    for my $both ( 0, 1 ) {
        my $client = $server->connect( to => $to{unix} );
        my ( $first, $second )
            = ( "GET /array/0 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /die/1000 HTTP/1.0\r\n\r\n" );
        $client->send( $both ? $first . $second : $first );
        is $client->response->body, 'whole 0', 'the first';
        $client->send($second) if !$both;
        my ($end) = asked($client);
        is $end, 'reset', $both ? 'sent with the first' : 'sent after the first';
    }
};

subtest 'behind a request of HTTP/1.1 on the connection' => sub {
    my $new  = "GET /array/0 HTTP/1.1\r\nHost: a\r\n\r\n";
    my $file = "POST /array/0 HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" . 'x' x 100_000;
    my $kept = "GET /array/0 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    my $old  = "POST /die/2000 HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello";
    my $good = $old =~ s/die/good/r;
    my $long = "POST /die/2000 HTTP/1.0\r\nContent-Length: 200000\r\n\r\n" . 'x' x 200_000;
    my @case = (
        [ 'in one write',                   1, $new . $old ],
        [ 'behind two',                     2, $new . $new . $old ],
        [ 'by itself',                      1, $new,        $old ],
        [ 'behind two, by itself',          2, $new . $new, $old ],
        [ 'behind one by itself',           2, $new,        $new . $old ],
        [ 'behind one that is kept',        2, $new . $kept . $old ],
        [ 'behind one that is kept, later', 2, $new, $kept . $old ],
        [ 'behind a body',                  1, $file . $old ],
        [ 'behind a body, later',           2, $new, $file . $old ],
        [ 'with a body',                    1, $new . $long ],
        [ 'with a body, later',             1, $new, $long ],
    );
    for my $at ( grep { $_ % 5 == 0 } 1 .. length($old) - 1 ) {
        my @half = ( substr( $old, 0, $at ), substr $old, $at );
        push @case, [ "split at byte $at", 1, $new . $half[0], $half[1] ],
            [ "split at byte $at, later", 1, $new, @half ];
    }
    for my $case ( @case, map { [ "$_->[0], whole", $_->[1], map {s/die/good/r} @{$_}[ 2 .. $#$_ ] ] } @case )
    {
        my ( $name, $before, @piece ) = @$case;
        my $client = $server->connect( to => $to{unix} );
        for my $piece (@piece) {
            $client->send($piece);
            select undef, undef, undef, 0.02;
        }
        my @whole = map { $client->response->body } 1 .. $before;
        my $wants = $name =~ /whole/ ? 'eof' : 'reset';
        is join( ' ', scalar( grep {/\Awhole/} @whole ), asked($client) ), "$before $wants 2000", $name;
    }
    my $other = start_server( $APP, qw(--workers 1 --listen), "$dir/first" );
    my $ask   = sub {
        my $client = $other->connect( to => "unix:$dir/first" );
        $client->ask('GET /array/0');
        $client->send(shift);
        return join ' ', asked($client);
    };
    is $ask->($good), 'eof 0', 'the first of HTTP/1.0 that comes at all is not served, and nothing is sent';
    is $ask->($good), 'eof 2000',   'the next one is served';
    is $ask->($old),  'reset 2000', 'or cut';
    $other->stop;
};

subtest 'whole' => sub {
    for my $to ( sort keys %to ) {
        for my $case (
            [ 'without a length', 3000,    ["GET /good/3000 HTTP/1.0\r\n\r\n"] ],
            [ 'large',            300_000, ["GET /good/300000 HTTP/1.0\r\n\r\n"] ],
            [ 'with a length',    7,       ["GET /array/0 HTTP/1.0\r\n\r\n"] ],
            [ 'HEAD',             0,       ["HEAD /good/3000 HTTP/1.0\r\n\r\n"] ],
            [   'a body in pieces', 7, [ "POST /array/0 HTTP/1.0\r\nContent-Length: 6\r\n\r\nab", 'cd', 'ef' ]
            ],
            [   'a body in a file',
                12, [ "POST /array/0 HTTP/1.0\r\nContent-Length: 100000\r\n\r\n", 'x' x 100_000 ]
            ],
            [ 'a line behind it', 3000, ["POST /good/3000 HTTP/1.0\r\nContent-Length: 1\r\n\r\na\r\n"] ],
            [ 'HTTP/1.1',         7,    ["GET /array/0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"] ],
            [ 'refused',          16,   ["GET /array/0 HTTP/1.0\r\nX : y\r\n\r\n"] ],
            )
        {
            my ( $name, $bytes, $request ) = @$case;
            is join( ' ', asked( $server->connect( to => $to{$to} ), @$request ) ), "eof $bytes",
                "$to, $name";
        }
        my $client = $server->connect( to => $to{$to} );
        for my $number ( 1 .. 3 ) {
            $client->send("POST /array/0 HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nab");
            is $client->response->body, 'whole 2', "$to, kept: request $number";
        }
    }
};

subtest 'psgix.io: the application reads what follows the request, and no byte of it' => sub {
    my $client = $server->connect( to => $to{unix} );
    $client->send("GET /io/0 HTTP/1.0\r\n\r\n");
    like $client->some( 30, 5 ), qr/by itself, \z/, 'it answers';
    $client->send('more');
    is $client->rest, 'got more', 'it reads';
    is $client->end,  'eof',      'an orderly end';
};

subtest 'psgix.io: an application that dies' => sub {
    for my $what (qw(iodie iokill)) {
        for my $version ( "HTTP/1.0\r\n\r\n", "HTTP/1.1\r\nHost: a\r\n\r\n" ) {
            my %end = map { $_ => ( asked( $server->connect( to => $to{$_} ), "GET /$what/0 $version" ) )[0] }
                keys %to;
            is_deeply \%end, { TCP => 'reset', unix => 'eof' },
                "$what, " . substr( $version, 0, 8 ) . ': a reset, but none on a unix socket (PROTOCOL.md)';
        }
    }
};

subtest 'a client that goes while its request waits' => sub {
    my $busy    = start_server( $APP, qw(--workers 1 --admin), "$dir/admin", '--listen', "$dir/busy" );
    my $first   = $busy->connect( to => "unix:$dir/busy" );
    my $waiting = sub {
        my $client = $busy->connect( to => "unix:$dir/admin", plain => 1 );
        return $client->ask('GET /metrics')->body =~ /^sirius_queued_requests (\d+)$/m ? $1 : 'unknown';
    };
    $first->send("GET /wait/1000 HTTP/1.0\r\n\r\n");
    $first->some( 1, 5 );
    my $second = $busy->connect( to => "unix:$dir/busy" );
    $second->send("GET /good/1000 HTTP/1.0\r\n\r\n");
    ok until_true( 5, sub { $waiting->() eq '1' } ), 'it waits';
    my ($edge) = $busy->edges;
    my $ticks
        = sub { return ( split ' ', Sirius::Test::Server::slurp("/proc/$edge/stat") =~ s/.*\)//r )[11] };
    my $before = $ticks->();
    select undef, undef, undef, 0.5;
    cmp_ok $ticks->() - $before, '<', 25, 'the edge sleeps meanwhile';
    $second->close;
    ok until_true( 5, sub { $waiting->() eq '0' } ), 'and is dropped';
    $busy->kill_hard;
};

subtest 'an edge that is killed' => sub {
    for my $to ( sort keys %to ) {
        my $other  = start_server( $APP, qw(--workers 1 --listen 127.0.0.1:0 --listen), "$dir/other" );
        my $client = $other->connect( $to eq 'unix' ? ( to => "unix:$dir/other" ) : () );
        $client->send("GET /wait/1000 HTTP/1.0\r\n\r\n");
        like $client->some( 1000, 5 ), qr/x\z/, "$to: a response has begun";
        kill KILL => $other->edges;
        is $client->end, 'reset', 'it does not seem complete';
        $other->kill_hard;
    }
};

subtest 'nginx with its defaults' => sub {
    Sirius::Test::Nginx->available or plan skip_all => 'nginx is not installed';
    my $nginx = Sirius::Test::Nginx->start(<<"HTTP");
server { listen 127.0.0.1:PORT; location /unix- { proxy_pass http://unix:$socket; } location /tcp- { proxy_pass http://$to{TCP}; } }
HTTP
    for my $way (qw(unix tcp)) {
        for my $what (qw(die kill)) {
            my $client = $nginx->connect;
            $client->send("GET /$way-$what/9000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            unlike $client->rest, qr/\r\n0\r\n\r\n\z/, "$way, $what: its client sees no end";
        }
        my $answer = $nginx->connect->ask("GET /$way-good/9000");
        is length $answer->body, 9000, "$way: the whole response";
    }
    $nginx->stop;
};

$server->{may_crash} = 1;    # killed by the application
$server->stop;

done_testing;
