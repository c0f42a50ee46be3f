use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# An operator who sees a request refused wants to know why: %{refused}x of the access log says which rule it
# has broken, %{refused-by}x has a word for each reason, which the metrics have as well. The line is that of
# the request itself, whatever is left of it, and whatever follows it on the connection.

my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $server = start_server(
    q(sub { $_[0]{PATH_INFO} eq '/bad' ? [ 400, [], ['of the application'] ] : [ 200, [], ['ok'] ] }),
    '--access-log', "$dir/log", '--access-log-format',
    '%>s %m %U %{refused}x',
    qw(--workers 1 --max-body 100)
);
my $long  = 'a' x 70_000;
my @tries = (
    [ "GET /none HTTP/1.1\r\n\r\n"                        => '400 GET /none the request has no Host field' ],
    [ "GET /two HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n"   => qr{\A400 GET /two \S.*Host} ],
    [ "GET /name HTTP/1.1\r\nHost: h\r\nX Y: 1\r\n\r\n"   => qr{\A400 GET /name \S.*header name} ],
    [ "GET /cr HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"         => qr{\A400 GET /cr \S.*CR} ],
    [ "GET /old HTTP/3.7\r\nHost: h\r\n\r\n"              => '505 GET - the HTTP version is not 1.x' ],
    [ "\0\1\2\r\n\r\n"                                    => qr{\A400 \S+ \S+ [^-]} ],
    [ "GET /$long HTTP/1.1\r\nHost: h\r\n\r\n"            => qr{\A414 \S+ \S+ [^-]} ],
    [ "GET /head HTTP/1.1\r\nHost: h\r\nX: $long\r\n\r\n" => qr{\A431 GET /head [^-]} ],
    [   "POST /length HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\n" =>
            '400 POST /length Content-Length is not a number without leading zeros, below 2^63'
    ],
    [ "POST /large HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n" => qr{\A413 POST /large [^-]} ],
    [   "POST /chunk HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n" =>
            '400 POST /chunk the data of a chunk is not followed by CRLF'
    ],
    [         "POST /sum HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            . "40\r\n"
            . 'b' x 64
            . "\r\n" x 2 => qr{\A400 POST /sum [^-]}
    ],
    [ "GET /good HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" => '200 GET /good -' ],
    [ "GET /bad HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"  => '400 GET /bad -' ],
);

sub lines {
    return -e "$dir/log" ? split /\n/, Sirius::Test::Server::slurp("$dir/log") : ();
}

for my $number ( 0 .. $#tries ) {
    my ( $bytes, $line ) = @{ $tries[$number] };
    my $client = $server->connect;
    $client->send($bytes);
    $client->response;
    until_true( 20, sub { lines() > $number } );
    my $got = ( lines() )[$number];
    ref $line ? like( $got, $line, 'why' ) : is( $got, $line, 'why' );
}
$server->stop;

# A server whose log has the word; lines are awaited
sub logging {
    my ( $app, @args ) = @_;
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $server = start_server(
        $app, '--access-log', "$dir/log", '--access-log-format',
        '%{refused-by}x %>s %h %m %U %q %H %{Referer}i %B %{refused}x',
        qw(--admin 127.0.0.1:0), @args
    );
    my $lines = sub {
        my $number = shift;
        my @got;
        until_true(
            20,
            sub {
                @got = -e "$dir/log" ? split /\n/, Sirius::Test::Server::slurp("$dir/log") : ();
                @got >= $number;
            }
        );
        return @got;
    };
    return ( $server, $lines, $dir );
}

# { reason => how many }, of those that there were
sub counted {
    my $server  = shift;
    my ($admin) = $server->log =~ m{admin on http://([^/\s]+)/};
    my $text    = $server->connect( to => $admin )->ask( 'GET /metrics', 'Host: localhost' )->body;
    my %count   = $text =~ /^sirius_requests_refused_total\{reason="([\w-]+)"\} (\d+)$/mg;
    return { map { $_ => $count{$_} } grep { $count{$_} } keys %count };
}

sub words {
    my %count;
    $count{ (split)[0] }++ for @_;
    delete $count{'-'};
    return \%count;
}

my $SLEEP = q(sub {
    my ($seconds) = $_[0]{QUERY_STRING} =~ /t=([\d.]+)/;
    select undef, undef, undef, $seconds if $seconds;
    require POSIX;
    POSIX::_exit(3) if $_[0]{PATH_INFO} eq '/kill';
    return [ 200, [], ['ok'] ];
});

subtest 'a request that waited is logged as itself, with others behind it on the connection' => sub {
    for my $edges ( 1, 2 ) {
        my ( $server, $lines )
            = logging( $SLEEP, qw(--workers 1 --queue-timeout 1 --trust-proxy 127.0.0.1 --edges), $edges );
        my $busy = $server->connect;
        $busy->send( request('GET /busy?t=2') );
        my @first = (
            [   "DELETE /one?a=b HTTP/1.1\r\nHost: h\r\nReferer: r1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n" =>
                    'queue-timeout 503 192.0.2.1 DELETE /one ?a=b HTTP/1.1 r1'
            ],
            [   "HEAD /two HTTP/1.1\r\nHost: h\r\nReferer: r2\r\n\r\n" =>
                    'queue-timeout 503 127.0.0.1 HEAD /two  HTTP/1.1 r2'
            ],
            [   "GET /three HTTP/1.0\r\nReferer: r3\r\nConnection: keep-alive\r\n\r\n" =>
                    'queue-timeout 503 127.0.0.1 GET /three  HTTP/1.0 r3'
            ],
            [         "PUT /four HTTP/1.1\r\nHost: h\r\nReferer: r4\r\nTransfer-Encoding: chunked\r\n\r\n"
                    . "2\r\nab\r\n0\r\n\r\n" => 'queue-timeout 503 127.0.0.1 PUT /four  HTTP/1.1 r4'
            ],
            [         "POST /five HTTP/1.1\r\nHost: h\r\nReferer: r5\r\nContent-Length: 200000\r\n\r\n"
                    . 'x' x 200_000 => 'queue-timeout 503 127.0.0.1 POST /five  HTTP/1.1 r5'
            ],
            [         "GET /six HTTP/1.1\r\nHost: h\r\nReferer: r6\r\nX: "
                    . 'y' x 30_000
                    . "\r\n\r\n" => 'queue-timeout 503 127.0.0.1 GET /six  HTTP/1.1 r6'
            ],
        );
        my @behind = (
            "GET /innocent HTTP/1.1\r\nHost: h\r\nReferer: other\r\nX-Forwarded-For: 198.51.100.2\r\n\r\n",
            "POST /innocent HTTP/1.1\r\nHost: h\r\nReferer: other\r\nContent-Length: 9\r\n\r\nhalf",
            'GARBAGE',
            "HEAD /innocent HTTP/1.1\r\nHo",
            q(),
        );
        my ( @client, @want );
        for my $first (@first) {
            for my $behind (@behind) {
                push @client, my $client = $server->connect;
                push @want, $first->[1];
                $client->send( $first->[0] . $behind );
            }
        }
        my @wrong = grep { $client[$_]->response( head => $want[$_] =~ / HEAD / ? 1 : 0 )->status ne '503' }
            0 .. $#want;
        is "@wrong", q(), "$edges edges: each is refused";
        my @got = grep { !/ \/busy / } $lines->( @want + 1 );
        s/ \d+ queue-timeout\z// for @got;
        is_deeply [ sort @got ], [ sort @want ], 'each has a line of its own, and nobody else has';
        is_deeply counted($server), { 'queue-timeout' => scalar @want }, 'they are counted';
        $server->stop;
    }
};

subtest 'the line is that of the request, behind empty lines and with what is wrong in it' => sub {
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $server = start_server(
        q(sub { [ 200, [], ['ok'] ] }), '--access-log',
        "$dir/log",                     '--access-log-format',
        '%>s "%r" %m %U %q %H',         qw(--workers 1)
    );
    my $other = "GET /other HTTP/1.1\r\nHost: h\r\n\r\n";
    my $none  = " HTTP/1.1\r\n\r\n";
    my @tries = (
        [ "\r\nGET /one?a=b$none",             '400 "GET /one?a=b HTTP/1.1" GET /one ?a=b HTTP/1.1' ],
        [ "\r\nHEAD /half HTTP/1.1\r\nX Y: 1", '400 "HEAD /half HTTP/1.1" HEAD /half  HTTP/1.1' ],
        [ "\r\n\r\nPUT /two?c=d$none",         '400 "PUT /two?c=d HTTP/1.1" PUT /two ?c=d HTTP/1.1' ],
        [ "\r\n" x 16 . "GET /many$none",      '400 "GET /many HTTP/1.1" GET /many  HTTP/1.1' ],
        [ "\r\n" x 20 . "GET /more$none",      '400 "GET /more HTTP/1.1" GET /more  HTTP/1.1' ],
        [ "\nGET /lf$none",                    '400 "GET /lf HTTP/1.1" GET /lf  HTTP/1.1' ],
        [ "\r\rGET /cr$none",                  '400 "GET /cr HTTP/1.1" GET /cr  HTTP/1.1' ],
        [ "\r\n\0GET /nul$none",               qr{\A400 "\\x00GET /nul HTTP/1\.1" } ],
        [ "GET /in\rside HTTP/1.1\r\n\r\n",    qr{\A400 "GET /in\\(?:r|x0d)side HTTP/1\.1" } ],
        [ "\r\nGET /" . 'a' x 70_000 . $none,  qr{\A414 "GET /a{1019}" } ],
    );
    my $number = 0;
    for my $case (@tries) {
        my ( $bytes, $want ) = @$case;
        my $client = $server->connect;
        $client->send( $bytes . $other );
        $client->response;
        my @got;
        until_true(
            20,
            sub {
                @got = -e "$dir/log" ? split /\n/, Sirius::Test::Server::slurp("$dir/log") : ();
                @got > $number;
            }
        );
        my $got = $got[ $number++ ];
        ref $want ? like( $got, $want, 'its line' ) : is( $got, $want, 'its line' );
    }
    $server->stop;
    is scalar( () = Sirius::Test::Server::slurp("$dir/log") =~ /other|\n/g ), scalar @tries, 'and no other';
};

subtest 'every reason has a word, in the log and in the metrics' => sub {
    my ( $server, $lines, $dir ) = logging( $SLEEP,
        qw(--workers 1 --max-queue 1 --max-body 100 --header-timeout 1 --body-timeout 1 --request-timeout 2 --max-connections 12)
    );
    my @each = (
        [   "POST /inc HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
            'incomplete 400 127.0.0.1 POST /inc', 1
        ],
        [ "HEAD /half HTTP/1.1\r\nHo", 'incomplete 400 127.0.0.1 HEAD /half', 1 ],
        [ "HEAD /head HTTP/1.1\r\nHost: h\r\n", 'header-timeout 408 127.0.0.1 HEAD /head' ],
        [   "PUT /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            'body-timeout 408 127.0.0.1 PUT /body'
        ],
        [ "PUT /big HTTP/1.0\r\nContent-Length: 101\r\n\r\n",  'max-body 413 127.0.0.1 PUT /big' ],
        [ 'GET /' . 'a' x 70_000 . " HTTP/1.1\r\n\r\n",        'max-request-line 414 127.0.0.1' ],
        [ "GET /exp HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", 'expect 417 127.0.0.1 GET /exp' ],
        [   "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n",
            'upgrade 426 127.0.0.1 GET /ws'
        ],
        [   "GET /fld HTTP/1.1\r\nHost: h\r\nX: " . 'a' x 70_000 . "\r\n\r\n",
            'max-header 431 127.0.0.1 GET /fld'
        ],
        [ "TRACE /tr HTTP/1.1\r\nHost: h\r\n\r\n",      'not-implemented 501 127.0.0.1 TRACE /tr' ],
        [ "GET /v HTTP/2.0\r\nHost: h\r\n\r\n",         'http-version 505 127.0.0.1 GET' ],
        [ "GET /no HTTP/1.1\r\n\r\n",                   'malformed 400 127.0.0.1 GET /no' ],
        [ "HEAD /kill HTTP/1.1\r\nHost: h\r\n\r\n",     'worker-lost 502 127.0.0.1 HEAD /kill' ],
        [ "HEAD /late?t=9 HTTP/1.1\r\nHost: h\r\n\r\n", 'request-timeout 504 127.0.0.1 HEAD /late ?t=9' ],
    );
    my $number = 0;
    for my $case (@each) {
        my ( $bytes, $want, $half ) = @$case;
        my $client = $server->connect;
        $client->send($bytes);
        $client->finish if $half;
        my $head     = $bytes =~ /\AHEAD/ ? 1 : 0;
        my $answer   = $client->response( head => $head );
        my ($status) = $want =~ / (\d+)/;
        is $answer->status,  $status, $want;
        is $client->rest(1), q(),     'without a body' if $head && $status != 502;
        $client->close;
        like + ( $lines->( ++$number ) )[-1], qr/\A\Q$want\E(?: |\z)/, 'its line';
    }
    until_true( 20, sub { $server->ask('GET /up')->status == 200 } );
    $number = $lines->(1);
    $server->board;    # its reader is there before the request
    my @long = map {
        my $c = $server->connect;
        $c->send( request("GET /long$_?t=1") );
        $_ == 1 ? $server->wait_busy( 1, qr{/long1} ) : $server->wait_waiting(1);
        $c
    } 1, 2;
    my $full = $server->connect;
    $full->send( request( 'HEAD /full', 'Referer: me' ) . request('GET /behind') );
    is $full->response( head => 1 )->status, 503, 'the queue is full';
    my @open = map { my $c = $server->connect; $c->send("GET /open HTTP/1.1\r\nHos"); $c } 1 .. 9;
    my $more = $server->connect;
    $more->send( request( 'HEAD /more', 'Referer: you' ) . request('GET /behind') );
    is $more->response( head => 1 )->status, 503, 'nor is there room for connections';
    is $more->rest(1),                       q(), 'HEAD has no body';
    $_->response for @long;
    $_->close    for @open;
    my @got = $lines->( $number + 4 );
    is scalar( grep {m{\Amax-queue 503 127.0.0.1 HEAD /full  HTTP/1.1 me }} @got ), 1,
        'the first has its line';
    is scalar( grep {m{\Amax-connections 503 127.0.0.1 HEAD /more  HTTP/1.1 you }} @got ), 1,
        'and the second';
    is scalar( grep {m{/behind}} @got ), 0, 'what is behind them has none';
    my $counted;    # those that were left open have ended within their requests
    until_true(
        20,
        sub {
            $counted = counted($server);
            ( $counted->{incomplete} || 0 ) == 2 + @open && words( $lines->(1) )->{incomplete} == 2 + @open;
        }
    );
    is_deeply $counted, words( $lines->(1) ), 'log and metrics agree';
    $server->stop;
};

subtest 'a part of a PROXY header is no request' => sub {
    my ( $server, $lines ) = logging( $SLEEP, qw(--workers 1 --proxy-protocol --max-connections 1) );
    my $busy = $server->connect;
    $busy->send("PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\nGET /slow?t=20 HTTP/1.1\r\nHost: h\r\n\r\n");
    $server->wait_busy(1);
    my $second = $server->connect;
    $second->send('PROXY TCP4 192.0.');
    is $second->response->status, 503, '--max-connections';
    like(
        ( $lines->(1) )[0],
        qr{\Amax-connections 503 127\.0\.0\.1 - - [^P]* max-connections\z},
        'no bytes of it in the log'
    );
    $server->stop('INT');
};

done_testing;
