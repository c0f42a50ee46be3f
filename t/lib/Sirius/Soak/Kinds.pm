package Sirius::Soak::Kinds;

# All kinds of requests that a soak mixes

use strict;
use warnings;
use List::Util qw(shuffle);
use Sirius::Soak::App;
use Sirius::Soak::Client;
use Time::HiRes qw(sleep);

my $LARGE = 1_000_000;    # larger than a socket buffer and the memory for pending responses
my $SPOOL = 150_000;      # of a request body: larger than --body-memory

# Status and bytes. The first %s is the place of the number
my @REFUSED = (
    [ 400, "GET %s HTTP/1.1\r\n\r\n" ],
    [ 400, "GET %s HTTP/1.1\nHost: a\n\n" ],
    [   400,
        "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ],
    [ 400, "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\nx\r\n" ],
    [ 413, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n" ],
    [ 413, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n" ],
    [ 414, 'GET %s' . 'l' x 20_000 . " HTTP/1.1\r\nHost: a\r\n\r\n" ],
    [ 417, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: wonders\r\n\r\n" ],
    [ 431, "GET %s HTTP/1.1\r\nHost: a\r\n" . 'X: ' . 'y' x 70_000 . "\r\n\r\n" ],
    [ 431, "GET %s HTTP/1.1\r\nHost: a\r\n" . "X: y\r\n" x 101 . "\r\n" ],
    [ 501, "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n" ],
    [ 501, "TRACE %s HTTP/1.1\r\nHost: a\r\n\r\n" ],
    [ 505, "GET %s HTTP/2.0\r\nHost: a\r\n\r\n" ],
);

# What a client has sent and read when it resets the connection. %s: the number
my $POST  = "POST /post/%s?0 HTTP/1.1\r\nHost: a\r\n";
my %RESET = (
    'reset, nothing sent'         => [''],
    'reset in the head'           => ["GET /text/%s?10 HTTP/1.1\r\nHo"],
    'reset in a small body'       => [ "${POST}Content-Length: 1000\r\n\r\n" . 'x' x 500 ],
    'reset in a spooled body'     => [ "${POST}Content-Length: $SPOOL\r\n\r\n" . 'x' x ( $SPOOL - 1 ) ],
    'reset in a chunked body'     => [ "${POST}Transfer-Encoding: chunked\r\n\r\n1ffff\r\n" . 'x' x 100_000 ],
    'reset while the app runs'    => ["GET /sleep/%s?10 HTTP/1.1\r\nHost: a\r\n\r\n"],
    'reset, a response unread'    => ["GET /list/%s?$LARGE HTTP/1.1\r\nHost: a\r\n\r\n"],
    'reset, a response half read' => [ "GET /text/%s?$LARGE HTTP/1.1\r\nHost: a\r\n\r\n",   100_000 ],
    'reset, a file half read'     => [ "GET /file/%s?0 HTTP/1.1\r\nHost: a\r\n\r\n",        10_000 ],
    'reset, a stream half read'   => [ "GET /stream/%s?$LARGE HTTP/1.1\r\nHost: a\r\n\r\n", 100_000 ],
    'reset, pipelined, one was read' =>
        [ join( '', map {"GET /text/$_?10 HTTP/1.1\r\nHost: a\r\n\r\n"} '%s', 1 .. 7 ), 1 ],
);

# Name, how many in a deck, what is done
my @KINDS = (
    [ 'keep-alive',           60, _ask( GET => 'text' ) ],
    [ 'close',                20, _ask( GET => 'text', [ fields => ['Connection: close'] ], close => 1 ) ],
    [ 'HTTP/1.0',             1,  _ask( GET => 'text', [ version => 'HTTP/1.0' ], close => 1 ) ],
    [ 'HTTP/1.0, streaming',  1,  _ask( GET => 'stream', [ version => 'HTTP/1.0' ], close => 1 ) ],
    [ 'pipelined',            12, \&_pipelined ],
    [ 'HEAD',                 6,  _ask( HEAD => 'text' ) ],
    [ '204',                  2,  _ask( GET  => 'nothing' ) ],
    [ '304',                  2,  _ask( GET  => 'same' ) ],
    [ 'large array',          1,  _ask( GET  => 'list', [ length => $LARGE ] ) ],
    [ 'file',                 6,  _ask( GET  => 'file' ) ],
    [ 'handle',               6,  _ask( GET  => 'lines' ) ],
    [ 'delayed',              6,  _ask( GET  => 'delayed' ) ],
    [ 'streaming',            10, _ask( GET  => 'stream' ) ],
    [ 'cleanup',              1,  _ask( GET  => 'cleanup' ) ],
    [ '103',                  1,  _ask( GET  => 'early' ) ],
    [ 'application sleeps',   1,  _ask( GET  => 'sleep' ) ],
    [ 'application dies',     1,  _ask( GET  => 'die' ) ],
    [ 'dies in a stream',     1,  _ask( GET  => 'cut' ) ],
    [ 'POST, small',          16, \&_post ],
    [ 'POST, spooled',        3,  sub { return _post( @_, $SPOOL ) } ],
    [ 'POST, chunked',        3,  \&_chunked ],
    [ 'POST, chunked large',  1,  sub { return _chunked( @_, $SPOOL ) } ],
    [ 'POST, trailers',       1,  sub { return _chunked( @_, 500, 'X-Sum: 1', 'X-More: 2' ) } ],
    [ 'POST, unread',         1,  sub { return _unread( @_, 2000 ) } ],
    [ 'POST, spooled unread', 1,  sub { return _unread( @_, $SPOOL ) } ],
    [ '100-continue',         2,  \&_continue ],
    [ 'slow head',            1,  _ask( GET => 'text', [], pieces => 10 ) ],
    [ 'slow body',            1,  sub { return _post( @_, 3000,   pieces => 10 ) } ],
    [ 'slow spooled body',    1,  sub { return _post( @_, $SPOOL, pieces => 10 ) } ],
    _slow_reader( 'text', 'file', 'stream' ),
    [ 'refused', scalar @REFUSED, \&_refused ],
    map {
        my $name = $_;
        [ $name, 1, sub { return _reset( @_, @{ $RESET{$name} } ) } ]
    } sort keys %RESET,
);

# These end a worker
my @ENDS = (
    [ 'harakiri',          1, _ask( GET => 'retire' ) ],
    [ 'application exits', 1, _ask( GET => 'exit', [ fields => ['Connection: close'] ], close => 1 ) ],
);

# Subs that do something with a Sirius::Soak::Client, each as often as it should happen, shuffled; with ends:
# so many decks, and one of each kind that ends a worker
sub deck {
    my ( $class, $ends ) = @_;
    my @cards = map {
        my ( $name, $times, $do ) = @$_;
        ( sub { return $do->( shift, $name ) } ) x $times;
    } @KINDS;
    return shuffle(@cards) if !$ends;
    my @all = map {@cards} 1 .. $ends;
    return shuffle(
        @all,
        map {
            my ( $name, undef, $do ) = @$_;
            sub { return $do->( shift, $name ) }
        } @ENDS
    );
}

sub _ask {
    my ( $method, $what, $request, %how ) = @_;
    return sub {
        my ( $client, $kind ) = @_;
        return $client->ask( $kind, $client->request( $method, $what, @{ $request || [] } ), %how );
    };
}

sub _chunked {
    my ( $client, $kind, $length, @trailers ) = @_;
    my $body = _body( $length || 3000 );
    my $raw  = $client->chunked( $body, 1 + int( length($body) / 5 ), @trailers );
    return $client->ask(
        $kind,
        $client->request(
            POST   => 'post',
            fields => ['Transfer-Encoding: chunked'],
            body   => $body,
            raw    => $raw
        )
    );
}

# The body is sent once the server has asked for it
sub _continue {
    my ( $client, $kind ) = @_;
    my $request = $client->request( POST => 'post', body => _body(5000), fields => ['Expect: 100-continue'] );
    my $connection = $client->connection or return $client->failure( $kind, $request, 'no connection' );
    my ( $head, $body ) = split /(?<=\r\n\r\n)/, $request->{bytes}, 2;
    my $continue = "HTTP/1.1 100 Continue\r\n\r\n";
    $connection->send($head);
    my $said = $connection->some( length $continue, $client->PATIENCE );
    $connection->send($body)                              if $said eq $continue;
    return $client->judge( $kind, $request, $connection ) if $said eq $continue || $said eq '';
    return $client->failure( $kind, $request,
        $said =~ m{\AHTTP/1\.1 (50\d)} ? "error $1" : "'$said', not 100" );
}

sub _pipelined {
    my ( $client, $kind ) = @_;
    my @what = qw(text stream post nothing file text lines text);
    return $client->pipeline( $kind,
        map { $client->request( $_ eq 'post' ? ( POST => $_, body => _body(700) ) : ( GET => $_ ) ) } @what );
}

sub _post {
    my ( $client, $kind, $length, %how ) = @_;
    return $client->ask( $kind, $client->request( POST => 'post', body => _body( $length || 2000 ) ), %how );
}

# The next one each time
sub _refused {
    my ( $client, $kind )  = @_;
    my ( $status, $bytes ) = @{ $REFUSED[ $client->{refused}++ % @REFUSED ] };
    my $request = $client->request( GET => 'text', length => 0 );
    @$request{qw(bytes status by_app)} = ( sprintf( $bytes, "/text/$request->{id}?0" ), $status, 0 );
    return $client->ask( "$kind, $status", $request, close => 1 );
}

sub _reset {
    my ( $client, $kind, $bytes, $read ) = @_;
    my $request    = $client->request( GET => 'text', length => 0 );
    my $connection = $client->connection( close => 1 )
        or return $client->failure( $kind, $request, 'no connection' );
    $connection->send( $bytes =~ s/%s/$request->{id}/r );
    if ($read) { $connection->some( $read, $client->PATIENCE ) }
    else       { sleep 0.002 }
    $connection->abort;
    return $client->count( $kind, 1 );
}

# The pending part goes to memory, to a file, or holds up a stream
sub _slow_reader {
    my @what = @_;
    return map {
        my $what = $_;
        [   "slow reader, $what",
            1,
            _ask(
                GET => $what,
                [ length => $LARGE, fields => ['Connection: close'] ],
                rcvbuf => 8192,
                late   => 0.02
            )
        ]
    } @what;
}

sub _unread {
    my ( $client, $kind, $length ) = @_;
    return $client->ask( $kind, $client->request( POST => 'text', body => _body($length) ) );
}

sub _body {
    my $length = shift;
    return Sirius::Soak::App->body( int rand 1000, $length );
}

1;
