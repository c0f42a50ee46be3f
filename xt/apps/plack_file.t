use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Digest::MD5;
use File::Temp;
use Sirius::Test;

BEGIN { skip_without('Plack::App::File') }

# Plack::App::File with a large file, and with those who want other files than they should have (S45, S46)

my $dir   = File::Temp->newdir;
my $block = join '', map { chr( $_ * 7 % 251 ) } 1 .. 1_000_000;
mkdir "$dir/$_" or die "$dir/$_: $!" for 'public', 'public/sub';
make( 'public/big.bin',    ($block) x 100 );
make( 'public/file.txt',   "text\n" );
make( 'public/sub/in.txt', "in\n" );
make('public/empty.txt');
make( 'secret.txt', "SECRET\n" );

my $server = start_server( <<"APP", qw(--workers 2) );
use Plack::App::File;
use Plack::Builder;
builder {
    enable 'ConditionalGET';
    mount '/static' => Plack::App::File->new( root => '$dir/public' )->to_app;
    mount '/one' => Plack::App::File->new( file => '$dir/public/file.txt' )->to_app;
    mount '/' => Plack::App::File->new( root => '$dir/public' )->to_app;
};
APP

sub make {
    my ( $name, @part ) = @_;
    return spew( "$dir/$name", @part );
}

subtest '100 MB' => sub {
    my $client = $server->connect;
    $client->send( request('GET /big.bin') );
    my $in = '';
    $in .= $client->some( 1, 5 ) while $in !~ /\r\n\r\n/;
    my ( $head, $rest ) = split /(?<=\r\n)\r\n/, $in, 2;
    $rest = $client->some( 1, 5 ) if !length $rest;
    like $head, qr/^Content-Length: 100000000\r$/m, 'the length is told';
    my ( $got, $want ) = ( Digest::MD5->new, Digest::MD5->new );
    my $count = 0;

    while ( length $rest ) {
        $got->add($rest);
        $count += length $rest;
        last if $count >= 100_000_000;
        $rest = $client->some( 1, 5 );
    }
    $want->add($block) for 1 .. 100;
    is $count,                              100_000_000,      'all bytes';
    is $got->hexdigest,                     $want->hexdigest, 'the right ones';
    is $client->ask('GET /file.txt')->body, "text\n",         'the connection goes on';
};

subtest 'small ones' => sub {
    my $client = $server->connect;
    my $answer = $client->ask('GET /file.txt');
    is $answer->body,                                "text\n",                    'a file';
    is $answer->header('Content-Length'),            5,                           'its length';
    is $answer->header('Content-Type'),              'text/plain; charset=utf-8', 'its type';
    is $client->ask('GET /empty.txt')->body,         '',                          'an empty one';
    is $client->ask('GET /sub/in.txt')->body,        "in\n",                      'in a folder';
    is $client->ask('GET /static/sub/in.txt')->body, "in\n",                      'mounted';
    is $client->ask('GET /sub%2Fin.txt')->body,      "in\n",   'an escaped slash is a slash';
    is $client->ask('GET /one')->body,               "text\n", 'a file of its own';
    is $client->ask('GET /none.txt')->status,        404,      'none';
    is $client->ask('GET /sub')->status,             404,      'a folder';
};

subtest 'HEAD' => sub {
    my $client = $server->connect;
    my $answer = $client->ask('HEAD /big.bin');
    is $answer->status,                        200,         'found';
    is $answer->header('Content-Length'),      100_000_000, 'with the length of GET';
    is $client->ask('HEAD /none.txt')->status, 404,         'not found';
    is $client->ask('GET /file.txt')->body,    "text\n",    'and no byte of a body between';
};

subtest 'If-Modified-Since' => sub {
    my $client = $server->connect;
    my $since  = $client->ask('HEAD /big.bin')->header('Last-Modified');
    my $answer = $client->ask( 'GET /big.bin', "If-Modified-Since: $since" );
    is $answer->status,                                                      304, "304 for $since";
    is $client->ask( 'HEAD /big.bin', "If-Modified-Since: $since" )->status, 304, 'HEAD';
    my $old = 'Sun, 06 Nov 1994 08:49:37 GMT';
    is $client->ask( 'GET /file.txt', "If-Modified-Since: $old" )->body, "text\n", 'changed since 1994';
};

subtest 'S45, S46 other files' => sub {
    my $up     = '../' x 12;
    my @target = (
        qw(/%2f..%2f..%2fetc/passwd /..%5c..%5c /..%5c..%5cetc%5cpasswd /%252e%252e/ /%252e%252e/secret.txt
            /../secret.txt /%2e%2e/secret.txt /..%2fsecret.txt /%2e%2e%2fsecret.txt /sub/../../secret.txt /sub/%2e%2e/%2e%2e/secret.txt
            /./../secret.txt /.../secret.txt /..%00/secret.txt /file.txt%00.bin /file.txt/ /file.txt/x /file.txt/../../secret.txt
            /sub/in.txt/ /static/../../secret.txt /static/%2e%2e/secret.txt /static..%2fsecret.txt
            //etc/passwd /%2fetc%2fpasswd //../secret.txt /%c0%ae%c0%ae/secret.txt /;/../secret.txt /%5c..%5csecret.txt),
        "/${up}etc/passwd", '/static/' . $up . 'etc/passwd', 'http://a/../secret.txt', "/$dir/secret.txt"
    );
    for my $target (@target) {
        my $answer = $server->ask("GET $target");
        like $answer->status, qr/\A40[034]\z/,           $target or diag $answer->body;
        unlike $answer->body, qr/root:|SECRET|\Atext\n/, 'nothing of them';
    }
    is $server->ask('GET /file.txt')->status, 200, 'the server goes on';
};

$server->stop;
done_testing;
