# --hsts: Strict-Transport-Security is in each final response over TLS, once, and in none without TLS.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

$Sirius::Test::Client::TLS = 0;    # each client here says itself what it speaks
my $dir  = File::Temp->newdir;
my $HSTS = 'Strict-Transport-Security';
my $APP  = corpus_file('ways.psgi');

my @BOTH = ( qw(--listen 127.0.0.1:0 --listen), '127.0.0.1:0,tls', '--tls-self-signed' );

sub connect_to {
    my ( $server, $kind ) = @_;
    my ($address) = $server->log =~ m{listening on $kind://(127\.0\.0\.1:\d+)/};
    local $Sirius::Test::Client::TLS = $kind eq 'https' ? 1 : 0;
    return Sirius::Test::Client->new($address);
}

sub ask {
    my ( $server, $kind, @request ) = @_;
    local $Sirius::Test::Client::TLS = $kind eq 'https' ? 1 : 0;
    return connect_to( $server, $kind )->ask(@request);
}

# Status and all values of the field
sub says {
    my $answer = shift;
    return join q( ), $answer->status, $answer->headers($HSTS);
}

spew( "$dir/file.txt", '0123456789' );
my $server = start_server(
    $APP, @BOTH, '--hsts', '365d,includesubdomains,preload',
    '--static' => "/static=$dir",
    qw(--workers 1 --request-timeout 1 --header-timeout 2 --max-body 1k --max-request-line 100 --max-header-bytes 1k),
    '--access-log' => '-',
    '--access-log-format', "%U %>s %{$HSTS}o"
);
my $VALUE = 'max-age=31536000; includeSubDomains; preload';

my @CASES = (
    [ 200, 'GET /' ],
    [ 200, 'HEAD /' ],
    [ 200, 'GET / HTTP/1.0' ],
    [ 204, 'GET /status/204' ],
    [ 304, 'GET /status/304' ],
    [ 404, 'GET /status/404' ],
    [ 599, 'GET /status/599' ],
    [ 200, 'GET /stream' ],
    [ 200, 'GET /file' ],
    [ 500, 'GET /die' ],
    [ 500, 'GET /bad' ],
    [ 502, 'GET /exit' ],
    [ 504, 'GET /sleep' ],
    [ 200, 'GET /static/file.txt' ],
    [ 206, 'GET /static/file.txt', 'Range: bytes=1-2' ],
    [ 206, 'GET /static/file.txt', 'Range: bytes=1-2,4-5' ],
    [ 416, 'GET /static/file.txt', 'Range: bytes=99-' ],
    [ 404, 'GET /static/none' ],
    [ 405, 'POST /static/file.txt', \'' ],
    [ 400, 'GET /',  'Host: a', 'Host: b' ],
    [ 413, 'POST /', \( 'x' x 2000 ) ],
    [ 414, 'GET /' . 'x' x 200 ],
    [ 431, 'GET /', 'X-Long: ' . 'x' x 2000 ],
    [ 501, 'TRACE /' ],
    [ 505, 'GET / HTTP/2.0' ],
);

subtest 'over TLS, in each response' => sub {
    is says( ask( $server, 'https', @$_[ 1 .. $#$_ ] ) ), "$_->[0] $VALUE", "$_->[0]: " . substr $_->[1], 0,
        40
        for @CASES;
    local $Sirius::Test::Client::TLS = 1;
    my $client = connect_to( $server, 'https' );
    $client->send("GET / HTTP/1.1\r\n");
    is says( $client->response ), "408 $VALUE", '408: a slow client';
    my $hints = connect_to( $server, 'https' )->ask('GET /hints');
    is says($hints), "200 $VALUE", 'the final response';
    is_deeply [ map { says($_) } $hints->interim ], [103], 'not the one before it';
    $client = connect_to( $server, 'https' );
    $client->send( join '', map { request('GET /') } 1 .. 10 );
    is join( q( ), map { says($_) } $client->responses(10) ), join( q( ), ("200 $VALUE") x 10 ), 'pipelined';
};

subtest 'without TLS, in none' => sub {
    is says( ask( $server, 'http', @$_[ 1 .. $#$_ ] ) ), $_->[0], "$_->[0]: " . substr $_->[1], 0, 40
        for grep { $_->[0] != 504 } @CASES;
    my ($secure) = $server->log =~ m{listening on https://(127\.0\.0\.1:\d+)/};
    is says( Sirius::Test::Client->new($secure)->ask('GET /') ), 400,
        'not even for plain HTTP on the port of TLS';
};

subtest 'that of the application' => sub {
    is says( ask( $server, 'https', "GET /own/$_?max-age=7" ) ), '200 max-age=7', $_
        for $HSTS, lc $HSTS, "X-A,$HSTS", 'STRICT-TRANSPORT-security';
    is says( ask( $server, 'https', 'GET /own/Strict-Transport-Securitz?max-age=7' ) ), "200 $VALUE",
        'a field like it';
    is says( ask( $server, 'http', "GET /own/$HSTS?max-age=7" ) ), '200 max-age=7',
        'is left alone without TLS';
};

ok until_true( 10, sub { $server->output =~ m{^/status/404 404 \Q$VALUE\E$}m } ), 'the access log knows it'
    or diag $server->output;
$server->{may_crash} = 1;
$server->stop;

subtest 'no worker is free' => sub {
    my $full = start_server( $APP, @BOTH, qw(--workers 1 --hsts 0 --queue-timeout 0.2) );
    local $Sirius::Test::Client::TLS = 1;
    my $busy = connect_to( $full, 'https' );
    $busy->send( request('GET /sleep') );
    is says( connect_to( $full, 'https' )->ask('GET /') ), '503 max-age=0', '503, and a time of 0';
    kill KILL => $full->workers;
    is says( $busy->response ), '502 max-age=0', '502, as the worker has died';
    $full->{may_crash} = 1;
    $full->stop;
};

subtest 'a reload' => sub {
    my $config = spew( "$dir/sirius.conf", "workers = 1\n" );
    my $other  = start_server( $APP, @BOTH, '--config', $config );
    my $kept   = connect_to( $other, 'https' );
    local $Sirius::Test::Client::TLS = 1;
    is says( $kept->ask('GET /') ), 200, 'off';
    spew( $config, "workers = 1\nhsts = 1h, includeSubDomains\n" );
    $other->signal('HUP');
    ok until_true(
        20, sub { says( ask( $other, 'https', 'GET /' ) ) eq '200 max-age=3600; includeSubDomains' }
        ),
        'on'
        or diag $other->log;
    ok until_true( 20, sub { says( $kept->ask('GET /') ) eq '200 max-age=3600; includeSubDomains' } ),
        'for a connection that was open, too';
    $kept->close;
    $other->stop;
};

done_testing;
