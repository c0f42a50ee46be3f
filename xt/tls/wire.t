# Records as they come: many requests in one, a byte in each, one in many segments; and how connections end.
use strict;
use warnings;
BEGIN { $ENV{SIRIUS_TEST_TLS} = 1 }
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::Wire;

my $server = start_server( <<'APP', qw(--workers 1) );
my @seen;
sub {
    my $env = shift;
    return [ 200, [], ["@seen"] ] if $env->{PATH_INFO} eq '/seen';
    return [ 200, [], [ 'x' x 6_000_000 ] ] if $env->{PATH_INFO} eq '/big';
    return [ 200, [], [ 'x' x 50_000 ] ]    if $env->{PATH_INFO} eq '/some';
    my $body = do { local $/; readline $env->{'psgi.input'} } // '';
    push @seen, "$env->{PATH_INFO}:" . length $body;
    [ 200, [], [ "$env->{REQUEST_URI} " . length($body) . ' ' . unpack '%32C*', $body ] ];
}
APP

my %VERSION = (
    '1.3' => [qw(TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256)],
    '1.2' => [ map {"ECDHE-ECDSA-$_"} qw(AES128-GCM-SHA256 AES256-GCM-SHA384 CHACHA20-POLY1305) ],
);

sub wire { return Sirius::Test::Wire->new( $server->address, @_ ) }

for my $version ( sort keys %VERSION ) {
    for my $cipher ( @{ $VERSION{$version} } ) {
        subtest "TLS $version, $cipher" => sub {
            my $wire = wire( version => $version, ciphers => $cipher );
            ok $wire->is_up, 'a handshake' or return;
            is $wire->cipher, $cipher, 'with this cipher';
            $wire->put( $wire->seal( join '', map { request("GET /$_") } 1 .. 50 ) );
            is join( q( ), map { ( split / /, $wire->response->body )[0] } 1 .. 50 ),
                join( q( ), map {"/$_"} 1 .. 50 ),
                'fifty requests in one record';
            $wire->put( $wire->seal( split //, request('GET /bytes') ) );
            is $wire->response->body, '/bytes 0 0', 'records of a byte each, in one segment';
            for my $byte ( $wire->seal( request('GET /segments') ) =~ /(.{1,3})/gs ) {
                $wire->put($byte);
                sleep 0.001;
            }
            is $wire->response->body, '/segments 0 0', 'one record in many segments';
            my $body = join '', map { chr $_ % 249 } 1 .. 200_000;
            my $post = request( 'POST /post', \$body );
            $wire->put( $wire->seal( unpack '(a' . int( length($post) / 50 ) . ')*', $post ) );
            is $wire->response->body, '/post 200000 ' . unpack( '%32C*', $body ),
                'a request in fifty records';
            $wire->put( $wire->seal( request('GET /big') ) );
            is length $wire->response->body, 6_000_000, 'six megabytes';
            $wire->put( $wire->close_notify );
            is $wire->end, 'close_notify', 'close_notify is answered with close_notify';
        };
    }
}

subtest 'a client that closes within a request' => sub {
    for my $end (qw(eof close_notify reset)) {
        my $wire = wire();
        $wire->put( $wire->seal("POST /cut-$end HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345") );
        $wire->put( $wire->close_notify ) if $end eq 'close_notify';
        $end eq 'reset' ? $wire->client->abort : $wire->client->finish;
        like $wire->response->status, qr/\A(?:400|eof)\z/, "$end: a body that is cut is no request"
            if $end ne 'reset';
        $wire = wire();
        $wire->put(
            $wire->seal(
                "POST /cut-$end HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n")
        );
        $wire->put( $wire->close_notify ) if $end eq 'close_notify';
        $end eq 'reset' ? $wire->client->abort : $wire->client->finish;
        like $wire->response->status, qr/\A(?:400|eof)\z/, "$end: nor are chunks" if $end ne 'reset';
    }
    my $wire = wire();
    my $half = $wire->seal( request( 'POST /cut-record', \( 'x' x 100 ) ) );
    $wire->put( substr $half, 0, -10 );
    $wire->client->finish;
    like $wire->end, qr/\A(?:close_notify|eof)\z/, 'a part of a record is nothing';
    $wire = wire();
    $wire->put( $wire->seal( request('GET /seen') ) );
    unlike $wire->response->body, qr/cut/, 'the application has seen none of them';
};

# While no worker is free it is taken as gone, with TLS and without: so more than one try on a busy machine
subtest 'a client that ends its side behind a request' => sub {
    for my $version ( sort keys %VERSION ) {
        my ( $wire, $body );
        for ( 1 .. 10 ) {
            $wire = wire( version => $version );
            $wire->put( $wire->seal( request('GET /half') ) . $wire->close_notify );
            $wire->client->finish;
            last if length( $body = $wire->response->body );
        }
        is $body,      '/half 0 0',    "TLS $version: gets its response";
        is $wire->end, 'close_notify', 'and the end';
    }
};

subtest 'a client that ends its side before it reads' => sub {
    for my $waits ( 0, 1 ) {
        my $client = $server->connect( rcvbuf => 4096 );
        $client->send( request( 'GET /some', 'Connection: close' ) );
        wait_full( $client->socket )
            if $waits;    # then the kernel has all of the response, and the client little of it
        $client->finish;
        is length $client->response->body, 50_000,
            ( $waits ? 'later' : 'at once' ) . ': gets all of the response that it wants to be the last';
        is $client->end, 'eof', 'and the end';
    }
};

subtest 'records that are none' => sub {
    for my $version ( sort keys %VERSION ) {
        my %bad = (
            'a changed byte'    => sub { my $r = shift; substr( $r, -3, 1 ) ^= "\1"; $r },
            'a changed length'  => sub { my $r = shift; substr( $r, 3, 2 ) = pack 'n', 40_000; $r },
            'a changed version' => sub { my $r = shift; substr( $r, 1, 1 ) = "\x09"; $r },
            'an unknown type'   => sub { my $r = shift; substr( $r, 0, 1 ) = "\x63"; $r },
            'one record twice'  => sub { $_[0] . $_[0] },
            'plain text'        => sub { request('GET /plain') },
            'too short'         => sub {"\x17\x03\x03\0\x05abcde"},
            'an empty record'   => sub {"\x17\x03\x03\0\0"},
        );
        for my $name ( sort keys %bad ) {
            my $wire = wire( version => $version );
            $wire->put( $bad{$name}->( $wire->seal( request('GET /bad') ) ) );
            $wire->response if $name eq 'one record twice';
            like $wire->end, qr/\A(?:alert|eof|reset)\z/, "TLS $version, $name: the connection ends";
        }
    }
    is $server->ask('GET /')->status, 200, 'others are served';
};

subtest 'the alert for it' => sub {
    my %alert = (
        'ChangeCipherSpec' => [ "\x14\x03\x03\0\1\1",                  'unexpected message' ],
        'an alert'         => [ "\x15\x03\x03\0\2\1\0",                'unexpected message' ],
        'a handshake'      => [ "\x16\x03\x03\0\4\0\0\0\0",            'unexpected message' ],
        'a long record'    => [ "\x17\x03\x03\x41\x01" . 'x' x 0x4101, 'record overflow' ],
        'a short one'      => [ "\x17\x03\x03\0\1x",                   'bad record mac' ],
        'no ciphertext'    => [ "\x17\x03\x03\0\x20" . 'x' x 32,       'bad record mac' ],
    );
    for my $name ( sort keys %alert ) {
        my ( $bytes, $right ) = @{ $alert{$name} };
        my $wire = wire( version => '1.3' );
        $wire->put($bytes);
        $wire->end;
        like $wire->alert, qr/\b\Q$right\E\z/, "TLS 1.3, $name in plain text: $right";
    }
};

# A ClientHello whose padding (RFC 7685) has so many bytes, in records of at most so many
sub hello {
    my ( $padding, $record ) = @_;
    my $extensions = join '', map { pack 'n n/a', @$_ } [ 10, "\0\2\0\x17" ], [ 13, "\0\2\4\3" ],
        [ 43, "\2\3\4" ], [ 51, "\0\0" ], [ 21, "\0" x ( $padding % 60_000 ) ],
        ( [ 21, "\0" x 60_000 ] ) x ( $padding / 60_000 );
    my $body = "\3\3" . 'r' x 32 . "\0" . pack( 'n/a', "\x13\1" ) . "\1\0" . pack 'n',
        length($extensions) % 65_536;
    my $message = "\1" . substr( pack( 'N', length "$body$extensions" ), 1 ) . $body . $extensions;
    return map { "\x16\3\1" . pack 'n/a', $_ } unpack "(a$record)*", $message;
}

subtest 'a long ClientHello' => sub {
    my $alert = "\x15\3\3\0\2\2\x32";    # fatal, decode_error
    for my $case (
        [ 16_400,  16_384 ],
        [ 17_000,  100 ],
        [ 40_000,  16_384 ],
        [ 59_000,  1000 ],
        [ 200_000, 16_000 ]
        )
    {
        my ( $padding, $record ) = @$case;
        my $client = Sirius::Test::Client->new( $server->address, plain => 1 );
        $client->send( join '', hello( $padding, $record ) );
        is $client->rest, $alert, "$padding bytes, in records of $record: an alert";
    }
    my $client = Sirius::Test::Client->new( $server->address, plain => 1 );
    $client->send( substr( ( hello( 30_000, 16_000 ) )[0], 0, 9 ) );
    is $client->rest, $alert, 'one that is announced';
    for my $case ( [ 15_000, 16_384 ], [ 15_000, 50 ], [ 1000, 1 ] ) {
        my ( $padding, $record ) = @$case;
        my $answered = Sirius::Test::Client->new( $server->address, plain => 1 );
        $answered->send( join '', hello( $padding, $record ) );
        like $answered->some( 6, 10 ), qr/\A\x16\x03\x03..\x02/s,
            "$padding bytes, in records of $record: ServerHello";
    }
};

subtest 'behind the handshake, in the same segment' => sub {
    my $wire = wire( last => 'held' );
    $wire->put( delete( $wire->{held} ) . $wire->seal( request('GET /with') ) );
    is $wire->response->body, '/with 0 0', 'a request';
    $wire = wire( last => 'held' );
    my $two = $wire->seal( request('GET /half') );
    $wire->put( delete( $wire->{held} ) . substr $two, 0, 20 );
    sleep 0.05;
    $wire->put( substr $two, 20 );
    is $wire->response->body, '/half 0 0', 'a part of one';
    $wire = wire( last => 'held' );
    $wire->put( delete( $wire->{held} ) . request('GET /plain') );
    like $wire->end, qr/\A(?:alert|eof|reset)\z/, 'plain text ends the connection';
};

# Records of clients with little memory (RFC 6066 4)
subtest 'small records' => sub {
    my $asked = File::Temp->new;
    $asked->printflush("GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for my $version (qw(1_2 1_3)) {
        for my $size ( 512, 4096 ) {
            my @client = (
                qw(openssl s_client -quiet -connect),
                $server->address, "-tls$version", '-maxfraglen', $size
            );
            my ($body) = qx{timeout 60 @client <$asked 2>/dev/null} =~ /\r\n\r\n(x+)\z/;
            is length( $body // '' ), 6_000_000, "TLS $version, at most $size bytes in each: six megabytes";
        }
    }
};

subtest 'a large response into a small window' => sub {
    my $wire = wire( rcvbuf => 4096 );
    $wire->put( $wire->seal( request('GET /big') . request('GET /next') ) );
    wait_full( $wire->client->socket );
    is length $wire->response->body, 6_000_000,   'comes whole';
    is $wire->response->body,        '/next 0 0', 'and the next one';
};

$server->stop;
done_testing;
