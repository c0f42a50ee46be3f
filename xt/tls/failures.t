# Handshakes that fail: each is counted by its reason, and the log says why, but not more often than in 10
# seconds.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Socket::SSL qw(SSL_VERIFY_NONE SSL_VERIFY_PEER);
use JSON::PP        ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;
use Sirius::Test::Client;

my $made     = Sirius::Test::Certificates->new;
my $clients  = Sirius::Test::Certificates->new('An authority of clients');
my $stranger = Sirius::Test::Certificates->new("Somebody\nelse");
my @server   = $made->issue('one.example');
my @good     = $clients->issue( 'Alice', purpose => 'client' );
my @old      = $clients->issue( 'Old',   purpose => 'client', from => time - 200_000, to => time - 100_000 );
my @early    = $clients->issue( 'Early', purpose => 'client', from => time + 100_000, to => time + 200_000 );
my @bad      = $stranger->issue( "Mallory\nX", file => 'mallory', purpose => 'client' );

my $app = <<'APP';
use JSON::PP ();
sub { [ 200, [], [ JSON::PP::encode_json( Sirius::Scoreboard->snapshot->{totals} ) ] ] };
APP

our ( $server, $tls, $plain );

sub start {
    my @more    = @_;
    my $started = start_server(
        $app, qw(--workers 1 --edges 1 --listen), '127.0.0.1:0,tls',
        '--listen'   => '127.0.0.1:0',
        '--tls-cert' => $server[0],
        '--tls-key'  => $server[1],
        @more
    );
    ( $tls, $plain ) = $started->listeners;
    return $started;
}

sub counted {
    my $body = Sirius::Test::Client->new($plain)->ask('GET /')->body;
    return JSON::PP->new->decode($body)->{handshakes_failed};
}

# Makes a handshake, and reads until the server closes: in TLS 1.3 a client may believe that it has succeeded
sub handshake {
    my @option = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $socket
        = IO::Socket::SSL->new( PeerAddr => $tls, SSL_verify_mode => SSL_VERIFY_NONE, Timeout => 10, @option )
        or return;
    sysread $socket, my ($rest), 1;
    return;
}

sub with { return ( SSL_cert_file => $_[0], SSL_key_file => $_[1], SSL_use_cert => 1 ) }

sub lines { return $server->log =~ /^.*warn: (TLS handshake with .*)$/mg }

# Runs $code, waits until another handshake of this reason is counted, and none of another one
sub fails {
    my ( $why, $what, $code ) = @_;
    my $before = counted();
    $code->();
    my $now;
    until_true( 10, sub { $now = counted(); $now->{$why} > $before->{$why} } );
    is_deeply $now, { %$before, $why => $before->{$why} + 1 }, "$what: $why";
    return;
}

sub sends {
    my $bytes  = shift;
    my $client = Sirius::Test::Client->new($tls);
    $client->send($bytes) if length $bytes;
    return $client;
}

# Its end is below, as the next line comes after 10 seconds
my ( $flooded, @flooded ) = ( start(), $tls, $plain );
subtest 'a flood' => sub {
    local $server = $flooded;
    fails( not_tls => 'the first', sub { sends('rubbish, no TLS')->rest(5) } );
    sends('rubbish, no TLS')->rest(5) for 1 .. 50;
    ok until_true( 10, sub { counted()->{not_tls} == 51 } ), 'all are counted';
    fails( other => 'another reason', sub { sends("\x16\x03\x01\x40\x00\x01\x10\x00\x00")->rest(5) } );
    ok until_true(
        10,
        sub {
            grep {/longer than 16 KiB/} lines();
        }
        ),
        'another reason has its own line';
    cmp_ok scalar( grep {/is not TLS/} lines() ), '<=', 4, 'a line in 10 seconds';
};

my @CLIENT = ( '--tls-client-ca' => $clients->ca );
for my $case (
    [ certificate => 'none', [@CLIENT], sub { handshake() }, qr/the client has sent no certificate/ ],
    [   certificate => 'none with TLS 1.2',
        [@CLIENT], sub { handshake( SSL_version => 'TLSv1_2' ) },
        qr/the client has sent no certificate/
    ],
    [   certificate => 'an expired one',
        [@CLIENT], sub { handshake( with(@old) ) },
        qr/the client's certificate, or one of its chain, has expired/
    ],
    [ certificate => 'an early one', [@CLIENT], sub { handshake( with(@early) ) }, qr/is not valid yet/ ],
    [   certificate => 'one of a stranger',
        [@CLIENT], sub { handshake( with(@bad) ) },
        qr/is not by a CA of --tls-client-ca/
    ],
    [   version => 'TLS 1.2 only',
        [qw(--tls-min 1.3)], sub { handshake( SSL_version => 'TLSv1_2' ) },
        qr/no TLS version in common with the client/
    ],
    [   cipher => 'a cipher that is not ours',
        [],
        sub {
            handshake( SSL_version => 'TLSv1_3', SSL_ciphersuites => 'TLS_AES_128_CCM_SHA256' );
        },
        qr/the client knows no cipher/
    ],
    [   alert => 'a client that does not trust us',
        [],
        sub {
            handshake(
                SSL_verify_mode     => SSL_VERIFY_PEER,
                SSL_ca_file         => $clients->ca,
                SSL_verifycn_scheme => 'none'
            );
        },
        qr/the client has refused with the alert: unknown CA/
    ],
    [   not_tls => 'plain HTTP',
        [],
        sub { sends("GET / HTTP/1.0\r\n\r\n")->rest(5) },
        qr/the client speaks plain HTTP/
    ],
    [   not_tls => 'rubbish',
        [],
        sub { sends( "\x1b[31m\nrubbish\n" x 9 )->rest(5) },
        qr/what the client has sent is not TLS/
    ],
    [   other => 'a hello of 1 MB',
        [],
        sub { sends("\x16\x03\x01\x40\x00\x01\x10\x00\x00")->rest(5) },
        qr/the client's hello is longer than 16 KiB/
    ],
    )
{
    my ( $why, $what, $options, $code, $words ) = @$case;
    subtest $what => sub {
        local $server = start(@$options);
        fails( $why, $what, $code );
        ok until_true( 10, sub { lines() == 1 } ), 'one line in the log';
        like + ( lines() )[0], qr/\ATLS handshake with 127\.0\.0\.1:\d+ failed: .*$words/,
            'with the address and why';
        unlike $server->log, qr/Mallory|rubbish|\x1b/, 'and nothing of the client';
        $server->stop;
    };
}

subtest 'not in the log' => sub {
    local $server = start(qw(--tls-handshake-timeout 1));
    fails( closed  => 'a client that goes away', sub { sends("\x16\x03\x01")->close } );
    fails( closed  => 'one that resets',         sub { sends("\x16\x03\x01")->abort } );
    fails( timeout => 'one that says nothing',   sub { sends('')->rest(10) } );
    is_deeply [ lines() ], [], 'the log says nothing';
    handshake_fine();
    is_deeply [ grep { $_ > 2 } values %{ counted() } ], [], 'one that succeeds is not counted';
    $server->stop;
};

sub handshake_fine {
    my $socket = IO::Socket::SSL->new( PeerAddr => $tls, SSL_verify_mode => SSL_VERIFY_NONE, Timeout => 10 )
        or return fail("connect: $IO::Socket::SSL::SSL_ERROR");
    print {$socket} "GET / HTTP/1.0\r\n\r\n";
    return like join( '', readline $socket ), qr/\AHTTP\/1\.1 200/, 'a client that behaves is served';
}

# Each was counted as two handshakes less: then each new one counts as one too many, and closes the first
subtest 'resets behind bytes that nobody has read' => sub {
    local $server = start();
    my ($edge) = $server->edges;
    kill STOP => $edge;
    sends( "\x16\x03\x01\xff\xff" . 'x' x 60_000 )->abort for 1 .. 20;
    kill CONT => $edge;
    handshake_fine();
    my $slow = sends("\x16\x03\x01");
    handshake_fine() for 1 .. 3;
    $slow->some( 1, 0.5 );
    ok !$slow->{end}, 'a client in a handshake is not closed for others' or diag $server->log;
    $slow->close;
    $server->stop;
};

subtest 'after the flood' => sub {
    local ( $server, $tls, $plain ) = ( $flooded, @flooded );
    my $told = 0;
    until_true(
        15,
        sub {
            sends('rubbish, no TLS')->rest(5);
            my $all = join "\n", lines();
            $told = $1 if $all =~ /is not TLS; (\d+) more with this reason \(not_tls\) since the last line/;
            return $told;
        }
    );
    cmp_ok $told, '>=', 1, 'the next line says how many came between';
    $server->stop;
};

done_testing;
