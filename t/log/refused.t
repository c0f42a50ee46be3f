use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# An operator who sees a 400 wants to know which rule the client has broken: %{refused}x of the access log says it, whatever is
# left of the request

my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $server = start_server(
    q(sub { $_[0]{PATH_INFO} eq '/bad' ? [ 400, [], ['of the application'] ] : [ 200, [], ['ok'] ] }),
    '--access-log', "$dir/log", '--access-log-format',
    '%>s %m %U %{refused}x',
    qw(--workers 1 --max-body 100)
);
my $long  = 'a' x 70_000;
my @tries = (
    [ "GET /none HTTP/1.1\r\n\r\n" => '400 GET /none an HTTP/1.1 request has no Host field' ],
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

done_testing;
