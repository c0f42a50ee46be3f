use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# Each value of a line is that of %env when the application has returned, in Perl and in the edge: what the
# request has brought, as PSGI has it, and what the application has made of it

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $app = <<'APP';
my %do = (
    '/addr'   => sub { $_[0]{REMOTE_ADDR} = '192.0.2.7'; [ 200, [], ['ok'] ] },
    '/keys'   => sub { @{ $_[0] }{qw(REMOTE_USER my.key HTTP_NEW)} = ( 'me', "v\n", 'n' ); [ 200, [], ['ok'] ] },
    '/less'   => sub { delete @{ $_[0] }{qw(HTTP_USER_AGENT REQUEST_METHOD)}; [ 200, [], ['ok'] ] },
    '/mount'  => sub { @{ $_[0] }{qw(SCRIPT_NAME PATH_INFO)} = ( '/mount', '/in' ); [ 200, [], ['ok'] ] },
    '/empty'  => sub { $_[0]{HTTP_USER_AGENT} = ''; [ 200, [], ['ok'] ] },
    '/long'   => sub { $_[0]{REMOTE_USER} = 'u' x 30_000; [ 200, [], ['ok'] ] },
    '/huge'   => sub { $_[0]{REMOTE_USER} = 'u' x 300_000; $_[0]{'my.key'} = 'v'; [ 200, [], ['ok'] ] },
    '/stream' => sub { my $env = shift; sub { my $w = $_[0]->( [ 200, [ 'X-Own' => 's' ] ] ); $w->write('a');
                       $env->{REMOTE_USER} = 'late'; $w->close } },
    '/later'  => sub { my $env = shift; sub { $env->{REMOTE_USER} = 'later'; $_[0]->( [ 200, [], ['a'] ] ) } },
    '/die'    => sub { $_[0]{REMOTE_USER} = 'dead'; die "on purpose\n" },
    '/file'   => sub { $_[0]{REMOTE_USER} = 'reader'; open my $fh, '<', $0 or die; [ 200, [ 'X-Own' => 'f' ], $fh ] },
    '/tied'   => sub { tie $_[0]{HTTP_USER_AGENT}, 'Loud'; [ 200, [], ['ok'] ] },
);
package Loud { sub TIESCALAR { bless [] } sub FETCH { die "never\n" } sub STORE { } }
sub { my $do = $do{ $_[0]{PATH_INFO} }; $do ? &$do : [ 200, [ 'X-Own' => 'o' ], ['ok'] ] }
APP

my $number = 0;

sub logged {
    my ( $format, @args ) = @_;
    my $file = "$dir/log." . ++$number;
    return (
        start_server( $app, '--access-log', $file, '--access-log-format', $format, qw(--workers 1), @args ),
        $file );
}

sub lines {
    my ( $file, $count ) = @_;
    my $read = sub { split /^/m, -e $file ? Sirius::Test::Server::slurp($file) : '' };
    until_true( 20, sub { $count <= ( my @all = $read->() ) } );
    return map {s/\n\z//r} $read->();
}

# Sends each of them, and compares the line of each
sub compare {
    my ( $server, $file, @pairs ) = @_;
    my @want;
    while ( my ( $bytes, $line ) = splice @pairs, 0, 2 ) {
        my $client = $server->connect;
        $client->send($bytes);
        is $client->response->status, 200, "$line: answered";
        push @want, $line;
    }
    is_deeply [ lines( $file, scalar @want ) ], \@want, 'the lines';
    return;
}

sub get {
    my ( $target, @fields ) = @_;
    return join "\r\n", "GET $target HTTP/1.1", 'Host: here', @fields, 'Connection: close', '', '';
}

subtest 'of the request line' => sub {
    my ( $server, $file ) = logged('%m|%{uri}r|%U|%q|%H|%r|%a');
    compare(
        $server, $file,
        get('/a%20b?c=%20d') =>
            'GET|/a%20b?c=%20d|/a b|?c=%20d|HTTP/1.1|GET /a%20b?c=%20d HTTP/1.1|127.0.0.1',
        get('/?')                               => 'GET|/?|/||HTTP/1.1|GET /? HTTP/1.1|127.0.0.1',
        get('http://other')                     => 'GET|/|/||HTTP/1.1|GET / HTTP/1.1|127.0.0.1',
        get('http://other:80/p?q')              => 'GET|/p?q|/p|?q|HTTP/1.1|GET /p?q HTTP/1.1|127.0.0.1',
        get('http://other?q')                   => 'GET|/?q|/|?q|HTTP/1.1|GET /?q HTTP/1.1|127.0.0.1',
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" => 'OPTIONS|*|/||HTTP/1.1|OPTIONS * HTTP/1.1|127.0.0.1',
        "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n" =>
            'OPTIONS|*|/||HTTP/1.1|OPTIONS * HTTP/1.1|127.0.0.1',
        "\r\nGET /old HTTP/1.0\r\n\r\n"        => 'GET|/old|/old||HTTP/1.0|GET /old HTTP/1.0|127.0.0.1',
        "GET /new HTTP/1.4\r\nHost: a\r\n\r\n" => 'GET|/new|/new||HTTP/1.1|GET /new HTTP/1.1|127.0.0.1',
    );
    $server->stop;
};

subtest 'of fields' => sub {
    my ( $server, $file )
        = logged(
        '%V|%{X-Foo}i|%{cookie}i|%{Content-Length}i|%{Content-Type}i|%{Transfer-Encoding}i|%{HOST}i',
        qw(--underscores-in-headers on) );
    compare(
        $server, $file,
        get('/')                                             => 'here|-|-|-|-|-|here',
        get( '/', 'X-Foo: 1', 'x-FOO:' )                     => 'here|1, |-|-|-|-|here',
        get( '/', 'X-Foo:', 'X-Foo: 2', 'X-Foo: 3' )         => 'here|, 2, 3|-|-|-|-|here',
        get( '/', 'X_Foo: 1' )                               => 'here|1|-|-|-|-|here',
        get( '/', 'X_Foo: 1', 'x_foo: 2' )                   => 'here|1, 2|-|-|-|-|here',
        get( '/', 'Cookie: a=1', 'Cookie: b=2' )             => 'here|-|a=1; b=2|-|-|-|here',
        get( '/', 'Content-Type: t/x', 'Content-Length: 0' ) => 'here|-|-|0|t/x|-|here',
        get( '/', 'Content_Type: t/x' )                      => 'here|-|-|-|-|-|here',
        get( 'http://other:8/', 'X-Foo: "' )                 => 'other:8|"|-|-|-|-|other:8',
        "GET http://other/ HTTP/1.0\r\n\r\n"                 => 'other|-|-|-|-|-|other',
        "GET / HTTP/1.0\r\n\r\n"                             => '127.0.0.1|-|-|-|-|-|-',
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" =>
            'a|-|-|5|-|-|a',
        get( '/', 'X-Foo: ' . 'x' x 12_000 ) => 'here|' . 'x' x 12_000 . '|-|-|-|-|here',
        get( '/', 'X-Foo: 1', 'Content-Length: 20000' ) . 'b' x 20_000 => 'here|1|-|20000|-|-|here',
    );
    $server->stop;
};

subtest 'of trusted proxies' => sub {
    my ( $server, $file )
        = logged( '%h|%v|%V|%p|%{Host}i', '--trust-proxy', '127.0.0.1,x-forwarded-host,x-forwarded-port' );
    my $port = $server->port;
    compare(
        $server, $file,
        get('/')                                 => "127.0.0.1|127.0.0.1|here|$port|here",
        get( '/', 'X-Forwarded-For: 192.0.2.1' ) => "192.0.2.1|127.0.0.1|here|$port|here",
        get( '/', 'X-Forwarded-Proto: https' )   => '127.0.0.1|127.0.0.1|here|443|here',
        get( '/', 'X-Forwarded-Host: there:81' ) => '127.0.0.1|127.0.0.1|there:81|81|there:81',
        get( '/', 'X-Forwarded-Port: 8443', 'X-Forwarded-For: ::2' )    => '::2|127.0.0.1|here|8443|here',
        get( '/', 'X-Forwarded-Host: there', 'X-Foo: ' . 'x' x 10_000 ) =>
            '127.0.0.1|127.0.0.1|there|80|there',
    );
    $server->stop;
};

subtest 'of the application' => sub {
    my ( $server, $file )
        = logged('%m %U %h %u %{User-Agent}i %{New}i %{my.key}e %{psgi.url_scheme}e %{X-Own}o');
    my @agent = 'User-Agent: a';
    my $long  = 'u' x 30_000;
    compare(
        $server, $file,
        get( '/other',  @agent ) => 'GET /other 127.0.0.1 - a - - http o',
        get( '/addr',   @agent ) => 'GET /addr 192.0.2.7 - a - - http -',
        get( '/keys',   @agent ) => 'GET /keys 127.0.0.1 me a n v\x0a http -',
        get( '/less',   @agent ) => '- /less 127.0.0.1 - - - - http -',
        get( '/mount',  @agent ) => 'GET /in 127.0.0.1 - a - - http -',
        get( '/empty',  @agent ) => 'GET /empty 127.0.0.1 - - - - http -',
        get( '/tied',   @agent ) => 'GET /tied 127.0.0.1 - - - - http -',
        get( '/stream', @agent ) => 'GET /stream 127.0.0.1 late a - - http s',
        get( '/later',  @agent ) => 'GET /later 127.0.0.1 later a - - http -',
        get( '/file',   @agent ) => 'GET /file 127.0.0.1 reader a - - http f',
        get( '/long',   @agent ) => "GET /long 127.0.0.1 $long a - - http -",
        get( '/addr',   @agent ) => 'GET /addr 192.0.2.7 - a - - http -',
        get( '/other',  @agent ) => 'GET /other 127.0.0.1 - a - - http o',
    );
    is $server->ask('GET /die')->status, 500, 'one that dies';
    like + ( lines( $file, 14 ) )[13], qr{\AGET /die 127[.]0[.]0[.]1 dead - - - http -\z}, 'its line';
    is $server->ask('GET /huge')->status, 200, 'a name of 300,000 bytes';
    like + ( lines( $file, 15 ) )[14], qr{\AGET /huge \S+ \S+ - - v http -\z},
        'does not cost the rest of the line';
    $server->stop;
};

done_testing;
