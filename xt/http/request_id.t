# --request-id-header: the id of the logs is in each final response, once, also in those of the server itself
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

my $dir = File::Temp->newdir;
my $APP = corpus_file('ways.psgi');
spew( "$dir/file.txt", '0123456789' );

our @LOG = ( '--access-log' => "$dir/log", '--access-log-format' => '%{request-id}x' );

sub server {
    my @args = @_;
    unlink "$dir/log";
    return start_server(
        $APP,
        '--static' => "/static=$dir",
        qw(--workers 1 --request-timeout 1 --max-body 1k --max-request-line 100 --max-header-bytes 1k),
        @LOG, @args
    );
}

# Status, request: of the application, of files, of the server itself
my @ASK = (
    [ 200, 'GET /' ],
    [ 200, 'HEAD /' ],
    [ 200, 'GET /stream' ],
    [ 200, 'GET /file' ],
    [ 200, 'GET /hints' ],
    [ 204, 'GET /status/204' ],
    [ 304, 'GET /status/304' ],
    [ 500, 'GET /die' ],
    [ 500, 'GET /bad' ],
    [ 200, 'GET /env', 'X-Large: ' . 'x' x 900 ],
    [ 200, 'GET /static/file.txt' ],
    [ 206, 'GET /static/file.txt', 'Range: bytes=1-2' ],
    [ 304, 'GET /static/file.txt', 'If-None-Match: *' ],
    [ 404, 'GET /static/none' ],
    [ 413, 'POST /', 'Content-Length: 5000' ],
    [ 502, 'GET /exit' ],
    [ 504, 'GET /sleep' ],
);
my @UNREAD = ( [ 414, 'GET /' . 'x' x 200 ], [ 431, 'GET /', 'X-Long: ' . 'x' x 2000 ] );
if ( http1( 'versions, malformed requests, announced chunks', 'they get no response' ) ) {
    push @ASK, [ 200, 'GET / HTTP/1.0' ], [ 400, 'GET /', 'Content-Length: x' ],
        [ 413, 'POST /', 'Transfer-Encoding: chunked', "\r\n1000\r\n" ];
    push @UNREAD, [ 505, 'GET / HTTP/3.0' ];
}

sub ask {
    my ( $server, $line, @field ) = @_;
    my $client = $server->connect;
    my $more   = @field && $field[-1] =~ s/\A\r\n// ? pop @field : '';
    $client->send( request( $line, @field ) . $more );
    return $client->response( head => $line =~ /\AHEAD/ ? 1 : 0 );
}

# Lines of the log, of so many requests
sub logged {
    my $n   = shift;
    my $all = sub { return split /\n/, Sirius::Test::Server::slurp("$dir/log") };
    until_true( 10, sub { $n <= ( my @lines = $all->() ) } );
    return $all->();
}

for my $case (
    [ 'an id of the server'       => undef,    [],                            [] ],
    [ 'an untrusted id'           => undef,    [],                            ['X-Request-Id: evil'] ],
    [ 'an invalid id'             => undef,    [qw(--trust-proxy 127.0.0.1)], ['X-Request-Id: a b'] ],
    [ 'the id of a trusted proxy' => 'shop-1', [qw(--trust-proxy 127.0.0.1)], ['X-Request-Id: shop-1'] ],
    [ 'the same without a log'    => 'shop-1', [qw(--trust-proxy 127.0.0.1)], ['X-Request-Id: shop-1'], 1 ],
    )
{
    my ( $name, $want, $args, $field, $no_log ) = @$case;
    subtest $name => sub {
        local @LOG if $no_log;
        my $server = server( @$args, qw(--request-id-header Request-Id) );
        my ( %seen, @got );
        for my $ask ( @ASK, @UNREAD ) {
            my ( $status, $line, @more ) = @$ask;
            my $answer = ask( $server, $line, @$field, @more );
            my @id     = $answer->headers('Request-Id');
            my $what   = substr "$line @more", 0, 40;
            is $answer->status . ' ' . @id, "$status 1", "$what: once";
            push @got, $id[0];
            if ( defined $want ) {
                is $id[0], $want, 'that of the proxy' if $status !~ /414|431|505/;
            } else {
                like $id[0], qr/\A[0-9a-f]{32}\z/, 'made';
                is $seen{ $id[0] }++, 0, 'and no other has it';
            }
            is $answer->body, $id[0], 'the application has the same' if $line =~ /env/;
            if ( $line =~ /hints/ ) { is $_->header('Request-Id'), undef, 'none in 103' for $answer->interim }
        }
        is_deeply [ logged( scalar @got ) ], \@got, 'the log has the same' if !$no_log;
        $server->{may_crash} = 1;    # GET /exit
        $server->stop;
    };
}

subtest 'a field of the application wins' => sub {
    my $server = server(qw(--request-id-header X-Request-Id));
    for my $own (qw(X-Request-Id x-request-id X-REQUEST-ID)) {
        is_deeply [ $server->ask("GET /own/$own?of-the-application")->headers('X-Request-Id') ],
            ['of-the-application'], $own;
    }
    for my $other (qw(X-Request-I X-Request-Id2 Request-Id)) {
        my @id = $server->ask("GET /own/$other?of-the-application")->headers('X-Request-Id');
        is @id . '', 1, "$other is another one";
        like $id[0], qr/\A[0-9a-f]{32}\z/, 'so the id is there';
    }
    $server->stop;
};

subtest 'pipelined' => sub {
    my $server = server(qw(--request-id-header X-Request-Id));
    my $client = $server->connect;
    $client->send( join '', map { request("GET $_") } '/env', '/static/file.txt', '/env', '/env' );
    my @answer = $client->responses(4);
    my @id     = map { $_->header('X-Request-Id') } @answer;
    my %seen   = map { $_ => 1 } @id;
    is keys %seen, 4, 'each has its own';
    is $answer[$_]->body, $id[$_], 'that of its application' for 0, 2, 3;
    $server->stop;
};

subtest 'in a lane' => sub {
    my $server = server( qw(--request-id-header X-Request-Id --lane), '/=1,timeout=0.2' );
    my $answer = $server->ask('GET /env');
    is $answer->body, $answer->header('X-Request-Id'), 'that of its application';
    my ( $busy, $waits ) = map { $server->connect } 1, 2;
    $busy->send( request('GET /sleep') );
    $server->wait_busy(1);
    $waits->send( request('GET /env') );
    my @answer = ( $answer, map { $_->response } $waits, $busy );
    is join( q{ }, map { $_->status } @answer ), '200 503 504', 'one waits for too long';
    is_deeply [ logged(3) ], [ map { $_->header('X-Request-Id') } @answer ], 'the log has the same';
    $server->{may_crash} = 1;
    $server->stop;
};

subtest 'a redirect' => sub {
    my $server = start_server( $APP,
        qw(--workers 1 --listen 127.0.0.1:0 --https-redirect=8443 --request-id-header X-Request-Id) );
    my $answer = $server->ask('GET /');
    is $answer->status, 308, 'to https';
    like $answer->header('X-Request-Id'), qr/\A[0-9a-f]{32}\z/, 'has one';
    $server->stop;
    }
    if !$ENV{SIRIUS_TEST_TLS};

subtest 'off by default' => sub {
    my $server = server(qw(--trust-proxy 127.0.0.1));
    for my $ask ( @ASK, @UNREAD ) {
        my ( $status, $line, @more ) = @$ask;
        next if $status > 500;
        my $answer = ask( $server, $line, 'X-Request-Id: shop-1', @more );
        is_deeply [ $answer->headers('X-Request-Id') ], [], substr $line, 0, 20;
    }
    $server->stop;
};

done_testing;
