use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Digest::MD5            qw(md5_hex);
use IO::Uncompress::Gunzip qw(gunzip);
use Sirius::Test;

BEGIN { skip_without('Plack::Builder') }

# Middleware around the five kinds of response, alone and stacked, several requests on one connection

my $APP  = "$FindBin::Bin/middleware.psgi";
my $FILE = Sirius::Test::Server::slurp($APP);
my %BODY
    = ( array => 'one two three', delayed => 'one two three', streamed => 'one two three', file => $FILE );
my $server = start_server( $APP, qw(--workers 1) );

# All kinds twice and the broken one between, on one connection
sub kinds {
    my ( $path, %option ) = @_;
    my $client = $server->connect;
    my $read   = $option{read} || sub { shift->body };
    my @field  = @{ $option{field} || [] };
    for my $round ( 1, 2 ) {
        is $read->( $client->ask( "GET $path/$_", @field ) ), $BODY{$_}, "$_, round $round"
            for sort keys %BODY;
        is $client->ask( "HEAD $path/$_", @field )->status, 200, "HEAD of it" for sort keys %BODY;
        my $answer = $client->ask("GET $path/broken");
        is $answer->status, 500, "an exception, round $round";
        $option{broken}->($answer) if $option{broken};
    }
    return;
}

subtest 'none' => sub { kinds('/plain') };

subtest 'Lint' => sub { kinds('/lint') };

subtest 'AccessLog' => sub {
    kinds('/log');
    ok $server->wait_log(qr{^log GET /log/streamed HTTP/1\.1 200 -$}m), 'a line for a stream';
    my @line = $server->log =~ /^log (?:GET|HEAD)/mg;
    is scalar @line, 16, 'one line for each request that was answered';
};

subtest 'StackTrace' => sub {
    kinds( '/trace', broken => sub { like shift->body, qr/on purpose/, 'says why' } );
};

subtest 'Chunked' => sub { kinds('/chunked') };

subtest 'ContentLength' => sub {
    kinds('/length');
    is $server->ask('GET /length/array')->header('Content-Length'), 13,           'of an array';
    is $server->ask('GET /length/file')->header('Content-Length'),  length $FILE, 'of a file';
};

subtest 'Head' => sub { kinds('/head') };

subtest 'BufferedStreaming' => sub {
    kinds('/buffer');
    is $server->ask('GET /buffer/streamed')->header('Content-Length'), 13, 'the length of a stream is known';
};

subtest 'Deflater' => sub {
    skip_without('Plack::Middleware::Deflater');
    my $read = sub {
        my $answer = shift;
        is $answer->header('Content-Encoding'), 'gzip', 'compressed';
        gunzip( \$answer->body, \my $text );
        return $text;
    };
    kinds( '/gzip', field => ['Accept-Encoding: gzip'], read => $read );
    kinds('/gzip');
};

subtest 'Session' => sub {
    skip_without('Plack::Middleware::Session');
    my $client = $server->connect;
    my ($id) = $client->ask('GET /session')->header('Set-Cookie') =~ /\A([^;]+)/;
    is $client->ask( 'GET /session', "Cookie: $id" )->body, $_, "request $_ of it" for 2, 3;
    is $client->ask('GET /session')->body,                  1,  'another session, the same connection';
    is $client->ask( 'GET /session', "Cookie: $id" )->body, 4,  'back to the first';
};

subtest 'ReverseProxy' => sub {
    skip_without('Plack::Middleware::ReverseProxy');
    my $client = $server->connect;
    my @plain  = ( $server->ask('GET /proxy')->body ) x 2;
    my @field  = ( 'X-Forwarded-For: 10.1.2.3', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: example.org' );
    for my $plain (@plain) {
        my $body = $client->ask( 'GET /proxy', @field )->body;
        like $body, qr/^REMOTE_ADDR=10\.1\.2\.3$/m,  'the address of the client';
        like $body, qr/^psgi\.url_scheme=https$/m,   'its scheme';
        like $body, qr/^HTTP_HOST=example\.org.*$/m, 'the host it asked for';
        is $client->ask('GET /proxy')->body, $plain, 'nothing of it in the next request';
    }
};

subtest 'Cascade' => sub {
    my $client = $server->connect;
    for ( 1, 2 ) {
        is $client->ask('GET /cascade/')->body,          'one two three', 'the last one has it';
        is $client->ask('GET /cascade/delayed')->body,   'one two three', 'a delayed one';
        is $client->ask('GET /cascade/nowhere')->status, 404,             'none has it';
    }
};

subtest 'nine of them' => sub {
    my @field = ( 'Accept-Encoding: gzip', 'X-Forwarded-For: 10.1.2.3' );
    my $read  = sub {
        my $answer = shift;
        my $text   = $answer->body;
        gunzip( \$answer->body, \$text ) if ( $answer->header('Content-Encoding') || '' ) eq 'gzip';
        return $text;
    };
    kinds(
        '/stack',
        field  => \@field,
        read   => $read,
        broken => sub { like shift->body, qr/on purpose/, 'says why' }
    );
    kinds('/stack');
    ok $server->wait_log(qr/^stack HEAD \/stack\/file HTTP\/1\.1 200/m), 'they are logged';
};

# Its panels dump %env, and its Environment panel shows every value
subtest 'Debug' => sub {
    skip_without('Plack::Middleware::Debug');
    my $client = $server->connect;
    for my $more ( 10, 400, 3000 ) {
        $client->send( request('GET /debug/page') . request( 'GET /debug/page', 'X-Long: ' . 'y' x $more ) );
        for my $answer ( $client->responses(2) ) {
            like $answer->body, qr/psgix\.io/, 'it shows the environment';
            ok !$answer->closes, 'and the connection goes on';
        }
    }
};

subtest 'an environment of its own for each request' => sub {
    my $fresh  = $server->ask('GET /environment')->body;
    my $client = $server->connect;
    my @secret = ( 'X-Secret: s', 'Content-Type: text/x', 'Authorization: Basic YTpi', 'Cookie: a=b' );
    like $client->ask( 'POST /environment/path?query', @secret, \'body' )->body, qr/^HTTP_X_SECRET=s$/m,
        'a full one';
    is $client->ask('GET /environment')->body, $fresh, 'nothing of it in the next one of the connection';
    for my $round ( 1 .. 3 ) {
        my $body = $client->ask( 'PUT /scribble', @secret, \'body' )->body;
        like $body, qr/^scribble\.count=1$/m, 'overwritten, emptied and deleted';
        is $client->ask('GET /environment')->body, $fresh, "nothing of it in the next one, round $round";
    }
    is $server->ask('GET /environment')->body, $fresh, 'nor in one of another connection';
};

subtest 'psgi.input as an argument' => sub {
    my $client = $server->connect;
    is $client->ask( 'POST /md5', \$_ )->body, md5_hex($_), length($_) . ' bytes'
        for 'abc', '', 'x' x 100_000;
};

subtest 'an environment that is copied' => sub {
    my $client = $server->connect;
    is $client->ask('GET /copy')->body, 'one two three', "request $_ of the connection" for 1 .. 3;
};

$server->stop;
done_testing;
