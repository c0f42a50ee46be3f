# A reload that changes a setting of the edge starts another edge. Connections with TLS go on there, whatever
# they were about.
use strict;
use warnings;
BEGIN { $ENV{SIRIUS_TEST_TLS} = 1 }
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Wire;

my $dir  = File::Temp->newdir;
my $conf = "$dir/sirius.conf";
my $idle = 70;

my $APP = <<'APP';
use Time::HiRes qw(sleep);
sub {
    my $env = shift;
    sleep $1 if $env->{PATH_INFO} =~ m{\A/sleep/([\d.]+)};
    my $body = do { local $/; readline $env->{'psgi.input'} } // '';
    my $io = $env->{PATH_INFO} eq '/big' ? 'x' x 3_000_000 : '';
    [ 200, [], [ length $io ? $io : "$env->{REQUEST_URI} " . length($body) . ' ' . unpack( '%32C*', $body ) . " $env->{SSL_CIPHER}" ] ];
}
APP

sub serve {
    spew( $conf, "keepalive-timeout = $idle\n" );
    return start_server( $APP, qw(--workers 2 --edges 1 --config), $conf, @_ );
}

# Another edge takes the place of the one that there is, which ends when it has no connection left
sub another_edge {
    my ( $server, $meanwhile ) = @_;
    my ($before) = $server->edges;
    spew( $conf, 'keepalive-timeout = ' . --$idle . "\n" );
    $server->signal('HUP');
    my $until = time + 60;
    while ( $server->log !~ /edge \d+ replaces edge $before\b/ ) {
        return 0 if time > $until;
        $meanwhile ? $meanwhile->() : sleep 0.02;
    }
    return $before;
}

sub is_gone {
    my ( $server, $edge ) = @_;
    return until_true(
        20,
        sub {
            !grep { $_ == $edge } $server->edges;
        }
    );
}

my @CIPHERS = (
    ( map { [ '1.3', $_ ] } qw(TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256) ),
    ( map { [ '1.2', "ECDHE-ECDSA-$_" ] } qw(AES128-GCM-SHA256 AES256-GCM-SHA384 CHACHA20-POLY1305) )
);

my $server = serve();

subtest 'what connections are about when the edge is replaced' => sub {
    my @wire
        = map { Sirius::Test::Wire->new( $server->address, version => $_->[0], ciphers => $_->[1] ) }
        @CIPHERS;
    push @wire,
        Sirius::Test::Wire->new( $server->address, groups => 'X448:X25519', ciphers => $CIPHERS[$_][1] )
        for 0, 1;    # a ClientHello with a key that the server does not take, and another one
    for my $wire (@wire) {
        $wire->put( $wire->seal( request('GET /first') ) );
        is $wire->response->body, '/first 0 0 ' . $wire->cipher, $wire->cipher;
    }
    for my $first ( @wire[ 0 .. 2, 7 ] ) {
        push @wire,
            Sirius::Test::Wire->new(
            $server->address,
            ciphers => $first->cipher,
            session => $first->session
            );
        $wire[-1]->put( $wire[-1]->seal( request('GET /first') ) );
        is $wire[-1]->response->body, '/first 0 0 ' . $first->cipher, $first->cipher . ', resumed';
        ok $wire[-1]->is_resumed, 'as the client says';
    }
    my $body = join '', map { chr $_ % 251 } 1 .. 100_000;
    my %at   = map { $_ => Sirius::Test::Wire->new( $server->address ) }
        qw(head record body serving pipelined reading);
    my @head = $at{head}->seal( 'GET /head HT', "TP/1.1\r\nHo" );
    $at{head}->put(@head);
    my $record = $at{record}->seal( request('GET /record') );
    $at{record}->put( substr $record, 0, 20 );
    my $post = $at{body}->seal( request( 'POST /body', \$body ) );
    $at{body}->put( substr $post, 0, 50_000 );
    $at{serving}->put( $at{serving}->seal( request('GET /sleep/2') ) );
    $at{pipelined}->put( $at{pipelined}->seal( join '', map { request("GET /sleep/0.1/$_") } 1 .. 20 ) );
    $at{reading}->put( $at{reading}->seal( request('GET /big') . request('GET /behind') ) );
    my $before = another_edge($server);
    ok $before, 'another edge serves';

    $at{head}->put( $at{head}->seal("st: a\r\n\r\n") );
    is $at{head}->response->body, '/head 0 0 ' . $at{head}->cipher, 'a part of a head';
    $at{record}->put( substr $record, 20 );
    is $at{record}->response->body, '/record 0 0 ' . $at{record}->cipher, 'a part of a record';
    $at{body}->put( substr $post, 50_000 );
    like $at{body}->response->body,    qr{\A/body 100000 }, 'a part of a body';
    like $at{serving}->response->body, qr{\A/sleep/2 },     'a request that a worker has';
    is join( q( ), map { ( $at{pipelined}->response->body =~ m{/(\d+) } )[0] } 1 .. 20 ), "@{[ 1 .. 20 ]}",
        'twenty in one record';
    is length $at{reading}->response->body, 3_000_000, 'a response that its client has not read';
    like $at{reading}->response->body, qr{\A/behind }, 'and the request behind it';
    ok is_gone( $server, $before ), 'the edge before has ended';

    for my $wire ( @wire, @at{ sort keys %at } ) {
        $wire->put( $wire->seal( request('GET /after') ) );
        my $answer = $wire->response;
        is $answer->body, '/after 0 0 ' . $wire->cipher, $wire->cipher . ' goes on';
        ok !$answer->closes, 'and is kept';
    }
    $wire[0]->put( $wire[0]->close_notify );
    is $wire[0]->end, 'close_notify', 'it ends as any other';
};

# Clients that ask all the time, and some that ask once in a while
subtest 'under load' => sub {
    my @busy = map { $server->connect } 1 .. 6;
    my @rare = map { $server->connect } 1 .. 6;
    my ( $asked, @wrong ) = (0);
    my $ask = sub {
        my ( $client, $path ) = @_;
        my $answer = $client->ask("GET $path");
        $asked++;
        push @wrong, $answer->status if $answer->status ne '200' || $answer->body !~ m{\A\Q$path\E };
        push @wrong, 'closes'        if $answer->closes;
    };
    for ( 1 .. 3 ) {
        my $before = another_edge( $server, sub { $ask->( $_, "/$asked" ) for @busy } );
        ok $before, 'another edge';
        $ask->( $_, "/busy/$asked" ) for @busy;
        $ask->( $_, "/rare/$asked" ) for @rare;
        ok is_gone( $server, $before ), 'the one before has ended';
    }
    cmp_ok $asked, '>', 100, "$asked requests";
    is "@wrong", '', 'none failed, and no connection was closed';
};
$server->stop;

# What OpenSSL has of other ciphers can't be passed on: such a connection ends with its next response
subtest 'a cipher that is asked for' => sub {
    my $server = serve(qw(--tls-self-signed --enable-ssl --tls-ciphers ECDHE-ECDSA-AES128-SHA256));
    my @wire   = map { Sirius::Test::Wire->new( $server->address, version => '1.2' ) } 1 .. 2;
    for my $wire (@wire) {
        is $wire->cipher, 'ECDHE-ECDSA-AES128-SHA256', 'an old cipher';
        $wire->put( $wire->seal( request('GET /') x 2 ) );
        is $wire->response->status, 200, 'serves' for 1 .. 2;
    }
    my $before = another_edge($server) or return fail 'no other edge';
    for my $wire (@wire) {
        $wire->put( $wire->seal( request('GET /') ) );
        my $answer = $wire->response;
        is $answer->status, 200, 'the next request is answered';
        ok $answer->closes, 'and the response says that it is the last';
        is $wire->end, 'close_notify', 'as it is';
    }
    ok is_gone( $server, $before ), 'the edge ends with them';
    $server->stop;
};

done_testing;
