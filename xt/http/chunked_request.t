use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Digest::MD5;
use Sirius::Test;

# Chunked requests (RFC 9112 7.1): any chunking, trailers read and dropped, CONTENT_LENGTH known to the
# application

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 1000) );
use Digest::MD5 qw(md5_hex);
sub {
    my $env = shift;
    local $/ = undef;
    my $body = readline $env->{'psgi.input'};
    $body = '' if !defined $body;
    my $length = defined $env->{CONTENT_LENGTH} ? $env->{CONTENT_LENGTH} : 'undef';
    my @extra = grep { /TRANSFER|TRAILER|CHECKSUM|\AHTTP_X_(?!REQUEST_ID)/ } sort keys %$env;
    [ 200, [ 'X-Path' => $env->{PATH_INFO} ], [ join ' ', length $body, $length, md5_hex($body), @extra ] ];
}
APP
my $HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n";

sub digest { return Digest::MD5::md5_hex(shift) }

sub chunked {
    my ( $body, @size ) = @_;
    my $out = '';
    while ( length $body ) {
        my $piece = substr $body, 0, $size[0], '';
        push @size, shift @size;
        $out .= sprintf "%x\r\n%s\r\n", length $piece, $piece;
    }
    return "${out}0\r\n\r\n";
}

subtest 'any chunking of the same body' => sub {
    my $body = join '', map { chr $_ % 256 } 1 .. 5000;
    for my $size ( [1], [2], [ 1, 4999 ], [ 15, 16, 17 ], [ 255, 256 ], [4096], [5000] ) {
        my $client = $server->connect;
        $client->send( "$HEAD\r\n" . chunked( $body, @$size ) );
        is $client->response->body,       '5000 5000 ' . digest($body), "chunks of @$size";
        is $client->ask('GET /')->status, 200,                          'the connection goes on';
    }
};

subtest 'small ones in every delivery' => sub {
    my %bytes = (
        'no data'       => [ "0\r\n\r\n",                                              '' ],
        'one chunk'     => [ "5\r\nhello\r\n0\r\n\r\n",                                'hello' ],
        'upper case'    => [ "A\r\nhelloworld\r\n0\r\n\r\n",                           'helloworld' ],
        'lower case'    => [ "a\r\nhelloworld\r\n0\r\n\r\n",                           'helloworld' ],
        'leading zeros' => [ "0005\r\nhello\r\n000\r\n\r\n",                           'hello' ],
        'extensions'    => [ "5;a=b;c;d=\"e f;g\"\r\nhello\r\n0;z\r\n\r\n",            'hello' ],
        'trailers'      => [ "5\r\nhello\r\n0\r\nX-Checksum: abc\r\nX-Other:\r\n\r\n", 'hello' ],
        'CRLF in data'  => [ "4\r\n\r\n\r\n\r\n3\r\n0\r\n\r\n0\r\n\r\n",               "\r\n\r\n0\r\n" ],
    );
    for my $name ( sort keys %bytes ) {
        my ( $bytes, $body ) = @{ $bytes{$name} };
        my @job  = every_delivery( $server, $name, "$HEAD\r\n$bytes", '200 after' );
        my $want = join ' ', length $body, length $body, digest($body);
        is scalar( grep { $_->{responses}[0]->body ne $want } @job ), 0, 'with its body'
            or diag $job[0]{responses}[0]->body;
    }
};

subtest 'a large one goes to a file' => sub {
    my $body = join '', map { chr int rand 256 } 1 .. 100_000;
    $body x= 20;
    my $client = $server->connect;
    $client->send( "$HEAD\r\n" . chunked( $body, 10_000, 1, 70_000 ) );
    is $client->response->body, '2000000 2000000 ' . digest($body), 'digest';
};

subtest 'the application does not see the coding' => sub {
    my @both = ( 'POST /', 'Transfer-Encoding: chunked', 'Content-Length: 5' );
    is $server->ask(@both)->status, 400, 'not with a length'
        if !left_out( 'not with a length', request(@both) );
    my $client = $server->connect;
    $client->send("${HEAD}Trailer: X-T\r\n\r\n0\r\nX-T: 1\r\n\r\n");
    is $client->response->body, '0 0 ' . digest('') . ' HTTP_TRAILER',
        'trailer fields are not in the environment';
};

subtest 'forbidden trailer fields are refused' => sub {
    http1_only('all trailers are dropped unread');
    for my $field (
        qw(Content-Length Transfer-Encoding Host Content-Type Authorization Connection Trailer Expect))
    {
        every_delivery( $server, $field, "$HEAD\r\n5\r\nhello\r\n0\r\n$field: 1\r\n\r\n", '400 closed' );
    }
};

$server->stop;
done_testing;
