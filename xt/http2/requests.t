use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::HTTP2;

# What a request over HTTP/2 is to the application, and its response to the client (RFC 9113)

my $APP = <<'APP';
my %of = (
    '/body' => sub {
        my $env = shift;
        my $body = '';
        1 while $env->{'psgi.input'}->read( $body, 65_536, length $body );
        [ 200, [ 'X-Length' => $env->{CONTENT_LENGTH} // 'none' ], [$body] ];
    },
    '/env' => sub {
        my $env = shift;
        [ 200, [], [ join "\n", map { "$_=" . ( $env->{$_} // '' ) } sort keys %$env ] ];
    },
    '/big'    => sub { [ 200, [], [ 'x' x 3_000_000 ] ] },
    '/empty'  => sub { [ 204, [ 'X-Said' => 'nothing' ], [] ] },
    '/die'    => sub { die "it does\n" },
    '/file'   => sub { open my $in, '<', $0 or die; [ 200, [], $in ] },
    '/fields' => sub {
        [ 200, [ 'X-Upper' => 'A', 'Connection' => 'close', 'Keep-Alive' => 'timeout=5', 'Upgrade' => 'x', 'Set-Cookie' => 'a', 'Set-Cookie' => 'b' ], ['ok'] ];
    },
    '/stream' => sub {
        sub { my $out = shift->( [ 200, [] ] ); $out->write("part $_\n") for 1 .. 3; $out->close }
    },
    '/hints' => sub {
        $_[0]{'psgix.informational'}->( 103, [ Link => "</$_.css>" ] ) for 1, 2;
        [ 200, [], ['after hints'] ];
    },
    '/many' => sub {
        $_[0]{'psgix.informational'}->( 103, [ Link => 'x' x 10_000 ] ) for 1 .. 2000;
        open my $out, '>', $_[0]{QUERY_STRING} or die;
        [ 200, [], ['after hints'] ];
    },
    '/spaces' => sub { [ 200, [ 'X-Before' => ' a', 'X-Behind' => "a \t", 'X-None' => ' ' ], ['ok'] ] },
    '/short' => sub { [ 200, [ 'Content-Length' => 100 ], ['too little'] ] },
    '/cut'   => sub { sub { my $out = shift->( [ 200, [] ] ); $out->write('a' x 100); die "within\n" } },
);
sub { ( $of{ $_[0]{PATH_INFO} } || sub { [ 200, [], ["hello $_[0]{REQUEST_METHOD}"] ] } )->( $_[0] ) };
APP
my $dir    = File::Temp->newdir;
my $log    = "$dir/access.log";
my $server = start_server( $APP, @Sirius::Test::HTTP2::LISTEN, qw(--workers 2 --max-body 10000000),
    '--access-log', $log, '--static', "/files=$dir" );
my $client = Sirius::Test::HTTP2->new( $server->address );

subtest 'the environment' => sub {
    my $env
        = $client->ask( 'GET /env?a=b', { 'x-one' => 1, cookie => 'a=1', 'User-Agent' => 'test' } )->{body};
    like $env, qr/^$_$/m, $_
        for 'SERVER_PROTOCOL=HTTP/2\.0', 'REQUEST_METHOD=GET', 'PATH_INFO=/env', 'QUERY_STRING=a=b',
        'REQUEST_URI=/env\?a=b', 'HTTP_HOST=127\.0\.0\.1:\d+', 'HTTP_X_ONE=1', 'HTTP_COOKIE=a=1',
        'psgi\.url_scheme=http';
    unlike $env, qr/^psgix\.io=/m,      'no socket, as others use it as well';
    unlike $env, qr/^CONTENT_LENGTH=/m, 'no content';
    unlike $env, qr/^HTTP_:|^:/m,       'no pseudo-header';
};

subtest 'early hints' => sub {
    my $frames = Sirius::Test::HTTP2->new( $server->address )->greet;
    $frames->open( 1, 'GET /hints' );
    my @heads = map { $frames->await( 'HEADERS', 1 ) } 1 .. 3;
    is join( q{ }, map { $_->{flags} & 1 } @heads ),                          '0 0 0', 'three heads';
    is scalar( grep { defined $_->{status} && $_->{status} == 200 } @heads ), 1,       'one of them the last';
    is $heads[2]{status},                      200,           'which comes after the hints';
    is $frames->await( 'DATA', 1 )->{payload}, 'after hints', 'with the body';
};

subtest 'early hints, where there may be a proxy' => sub {
    my $frames = Sirius::Test::HTTP2->new( $server->address )->greet;
    $frames->open( 1, 'GET /hints', via => '2 cache' );
    is $frames->await( 'HEADERS', 1 )->{status}, 200, 'none are sent';
};

subtest 'early hints for a client that does not read' => sub {
    my $frames = Sirius::Test::HTTP2->new( $server->address )->greet;
    $frames->open( 1, "GET /many?$dir/made" );
    ok until_true( 20, sub { -e "$dir/made" } ), 'all were made';
    my $heads = 0;
    while ( my $frame = $frames->frame ) {
        $heads++ if $frame->{type} eq 'HEADERS';
        last     if ( $frame->{status} // 0 ) == 200;
    }
    cmp_ok $heads, '<', 2000, 'some are dropped, not kept for it';
    cmp_ok $heads, '>', 1,    'not all';
};

subtest 'white space around values, with which they are malformed (RFC 9113 8.2.1)' => sub {
    my $fields = $client->ask('GET /spaces')->{fields};
    is_deeply [ @$fields{qw(x-before x-behind x-none)} ], [ 'a', 'a', '' ], 'of a response';
};

subtest 'a HEAD that is refused before its method is known' => sub {
    my $frames = Sirius::Test::HTTP2->new( $server->address )->greet;
    my @field
        = ( ':path' => '/' . 'x' x 20_000, ':method' => 'HEAD', ':scheme' => 'http', ':authority' => 'a' );
    $frames->send( $frames->make( 'HEADERS', 0, 1, '' ) );
    my $block = $frames->fields(@field);
    $frames->send( $frames->make( 'CONTINUATION', 0, 1, substr $block, 0, 16_000 ) );
    $frames->send( $frames->make( 'CONTINUATION', 4, 1, substr $block, 16_000 ) );
    my $head = $frames->await( 'HEADERS', 1 );
    is $head->{status}, 414, 'is refused';
    ok $head->{flags} & 1, 'without a body';
};

subtest 'responses' => sub {
    is $client->ask('GET /')->{body}, 'hello GET', 'a body';
    my $empty = $client->ask('GET /empty');
    is_deeply [ @$empty{qw(status body)}, $empty->{fields}{'x-said'} ], [ 204, '', 'nothing' ], 'none';
    is $client->ask('GET /die')->{status},      500,                        'an exception';
    is $client->ask('GET /stream')->{body},     "part 1\npart 2\npart 3\n", 'a stream';
    is length $client->ask('GET /big')->{body}, 3_000_000,                  'larger than any window';
    my $file = $client->ask('GET /file');
    is length $file->{body}, $file->{fields}{'content-length'}, 'a file';
    my %field = %{ $client->ask('GET /fields')->{fields} };
    is $field{'x-upper'}, 'A', 'names in lower case';
    is_deeply [ grep { $_ =~ /\A(?:connection|keep-alive|upgrade|transfer-encoding)\z/ } keys %field ], [],
        'none that HTTP/2 forbids (RFC 9113 8.2.2)';
    ok $field{date}, 'Date';
    my $head = $client->ask('HEAD /big');
    is_deeply [ @$head{qw(status body)}, $head->{fields}{'content-length'} ], [ 200, '', 3_000_000 ], 'HEAD';
};

subtest 'a body that the server answers itself' => sub {
    is $client->ask( 'PUT /files/none', {}, 'x' x 100 )->{status}, 405, 'a file' for 1 .. 3;
    ok until_true(
        5, sub { 3 == ( () = Sirius::Test::Server::slurp($log) =~ m{"PUT /files/none HTTP/2.0" 405}g ) }
        ),
        'is in the log';
};

subtest 'bodies of requests' => sub {
    my $body   = join q( ), 1 .. 300_000;
    my $answer = $client->ask( 'POST /body', { 'content-length' => length $body }, $body );
    ok $answer->{body} eq $body, 'one of a megabyte comes back';
    is $answer->{fields}{'x-length'}, length $body, 'its length';
    is $client->ask( 'POST /body', {}, 'abc' )->{fields}{'x-length'}, 3,
        'a length that the client does not say';
    my $raw = Sirius::Test::HTTP2->new( $server->address )->greet;
    $raw->open( 1, 'POST /body', 'content-length' => 20_000_000 );
    is $raw->await('HEADERS')->{stream},   1,          'a body that is too large is answered';
    is $raw->await('RST_STREAM')->{error}, 'NO_ERROR', 'and not read';
    $raw->open( 3, 'GET /' );
    is $raw->await( 'HEADERS', 3 )->{status}, 200, 'the connection goes on';
};

subtest 'a response that cannot be completed' => sub {
    my $raw = Sirius::Test::HTTP2->new( $server->address )->greet;
    $raw->open( 1, 'GET /short' );
    is $raw->await('RST_STREAM')->{error}, 'INTERNAL_ERROR', 'shorter than its Content-Length';
    $raw->open( 3, 'GET /cut' );
    is $raw->await( 'RST_STREAM', 3 )->{error}, 'INTERNAL_ERROR', 'an application that dies within it';
    $raw->open( 5, 'GET /' );
    is $raw->await( 'HEADERS', 5 )->{status}, 200, 'the connection goes on';
};

subtest 'many at a time' => sub {
    my @answers = map { $client->begin("GET /$_") } 1 .. 100;
    $client->finish(@answers);
    is scalar( grep { $_->{status} == 200 } @answers ), 100, 'all are answered';
};

subtest 'HTTP/1.1 at the same address' => sub {
    is $server->ask('GET /env')->status, 200, 'is spoken as before';
    like $server->ask('GET /env')->body, qr{^SERVER_PROTOCOL=HTTP/1\.1$}m, 'and called so';
};

subtest 'the access log' => sub {
    ok until_true( 10, sub { Sirius::Test::Server::slurp($log) =~ m{"GET /cut HTTP/2\.0" 200 } } ),
        'has each request'
        or diag Sirius::Test::Server::slurp($log);
    like Sirius::Test::Server::slurp($log), qr{"HEAD /big HTTP/2\.0" 200 0 },      'no body for HEAD';
    like Sirius::Test::Server::slurp($log), qr{"GET /big HTTP/2\.0" 200 3000000 }, 'the bytes of the body';
    like Sirius::Test::Server::slurp($log), qr{"POST /body HTTP/2\.0" 413 \d+ },   'what was refused';
};

subtest 'what is no preface' => sub {
    my $raw = Sirius::Test::HTTP2->new( $server->address );
    $raw->send("INVALID CONNECTION PREFACE\r\n\r\n");
    is $raw->receive(10), undef, 'gets no answer';
    ok $raw->{ended}, 'and its connection ends';
    $raw = Sirius::Test::HTTP2->new( $server->address );
    $raw->send("GET / HTTP/1.1\r\n\r\n");
    like $raw->receive(10), qr{\AHTTP/1\.1 400 }, 'but a bad request of HTTP/1.1 does';
};

subtest 'an address without ",h2c"' => sub {
    my $other = start_server( $APP, qw(--workers 1) );
    my $raw   = Sirius::Test::HTTP2->new( $other->address )->greet;
    like $raw->receive(10), qr{\AHTTP/1\.1 505 }, 'the preface is refused';
};

done_testing;
