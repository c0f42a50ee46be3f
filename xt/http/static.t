use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;
use Time::HiRes ();

# --static: files are answered by the server itself, as RFC 9110 has it

my $dir  = File::Temp->newdir;
my $TIME = 1_600_000_000;        # Sun, 13 Sep 2020 12:26:40 GMT

sub make {
    my ( $name, $content, $time ) = @_;
    spew( "$dir/$name", $content );
    utime $time // $TIME, $time // $TIME, "$dir/$name" or die "$name: $!";
    return;
}
mkdir "$dir/$_" or die "$_: $!" for qw(docs docs/deep empty packed);
my $LARGE = join '', map { chr( $_ * 7 % 251 ) } 1 .. 300_000;
make( 'style.css',          'body {}' );
make( 'page.html',          '<p>' );
make( 'app.js',             'js' );
make( 'picture.png',        'png' );
make( 'unknown.qqq',        'text' );
make( 'plain',              'text' );
make( 'UPPER.HTML',         '<p>' );
make( 'font.woff2',         'font' );
make( 'nothing.txt',        '' );
make( 'ten.txt',            '0123456789' );
make( 'large.bin',          $LARGE );
make( 'future.txt',         'tomorrow', time + 86_400 );
make( 'timeless.txt',       'built',    1 );
make( 'docs/index.html',    'index' );
make( 'docs/deep/page.txt', 'page' );
make( 'all.css',            'identity' );
make( 'all.css.br',         'brotli' );
make( 'all.css.zst',        'zstandard' );
make( 'all.css.gz',         'gzip' );
make( 'old.css',            'identity' );
make( 'old.css.gz',         'outdated', $TIME - 10 );
make( 'picture.png.gz',     'gzip' );

my $APP = <<'APP';
sub {
    my $env = shift;
    return [ 200, [ 'X-App' => 1 ], [ 'app ', $env->{REQUEST_METHOD}, ' ', $env->{PATH_INFO} ] ];
}
APP
my $server = start_server(
    $APP,       qw(--workers 1),
    '--static', "/assets=$dir",
    '--static', "/pass=$dir,pass-through,index",
    '--static', "/docs=$dir/docs,index,immutable,charset=none",
    '--static', "/docs/deep=$dir/docs/deep,max-age=1h,charset=iso-8859-1",
    '--static', "/aged=$dir,max-age=30d"
);

sub ask { return $server->ask(@_) }
my $DATE = 'Sun, 13 Sep 2020 12:26:40 GMT';
my $ETAG = ask('GET /assets/ten.txt')->header('ETag');

subtest 'what is counted' => sub {
    my @names  = qw(files files_unchanged files_missing);
    my $before = $server->board->{totals};
    my $client = $server->connect;
    my @status = map { $client->ask(@$_)->status } ['GET /assets/ten.txt'],
        [ 'GET /assets/ten.txt', "If-None-Match: $ETAG" ],
        ['GET /assets/none'], ['GET /pass/none'], ['GET /other'], ['HEAD /assets/large.bin'];
    is "@status", '200 304 404 200 200 200', 'answers';
    my %grown;
    until_true(
        10,
        sub {
            my $now = $server->board->{totals};
            %grown = map { $_ => $now->{$_} - $before->{$_} } @names, 'files_bytes', 'bytes';
            $grown{files} == 4;
        }
    );
    is "@grown{@names}", '4 1 1', 'files, 304, 404';
    cmp_ok $grown{files_bytes}, '>', $ENV{SIRIUS_TEST_H2} ? 200 : 400, 'their bytes, with heads';
    cmp_ok $grown{files_bytes}, '<', $grown{bytes},                    'without those of the application';
};

subtest 'a file' => sub {
    my $client = $server->connect;
    my $answer = $client->ask('GET /assets/ten.txt');
    is $answer->status,                   200,                         'found';
    is $answer->body,                     '0123456789',                'all of it';
    is $answer->header('Content-Length'), 10,                          'length';
    is $answer->header('Content-Type'),   'text/plain; charset=utf-8', 'type';
    is $answer->header('Last-Modified'),  $DATE,                       'time';
    like $answer->header('ETag'), qr/\A"[0-9a-f.-]+"\z/, 'a strong tag';
    is $answer->header('Accept-Ranges'),          'bytes',           'parts can be had';
    is $answer->header('Vary'),                   'Accept-Encoding', 'it may differ';
    is $answer->header('Server'),                 'Sirius',          'server';
    is $answer->header('Cache-Control'),          undef,             'nothing about caches';
    is $answer->header('X-App'),                  undef,             'not from the application';
    is $client->ask('GET /assets/ten.txt')->body, '0123456789',      'the connection is kept';
    my $head = $client->ask('HEAD /assets/ten.txt');
    is_deeply [ sort grep { $_ ne 'Date' } $head->names ], [ sort grep { $_ ne 'Date' } $answer->names ],
        'HEAD says the same';
    is $head->header('Content-Length'),             10,     'the length, too';
    is $client->ask('GET /assets/large.bin')->body, $LARGE, 'a large one';
    my $nothing = $client->ask('GET /assets/nothing.txt');
    is $nothing->status . ' ' . $nothing->header('Content-Length'),        '200 0', 'an empty one';
    is $client->ask('HEAD /assets/nothing.txt')->header('Content-Length'), 0,       'HEAD of it';
    is $client->ask('HEAD /assets/large.bin')->header('Content-Length'),   300_000, 'HEAD of a large one';
    is $client->ask('GET /other')->body, 'app GET /other', 'other paths are the application\'s';
};

subtest 'types' => sub {
    my %type = (
        'style.css'   => 'text/css; charset=utf-8',
        'page.html'   => 'text/html; charset=utf-8',
        'UPPER.HTML'  => 'text/html; charset=utf-8',
        'app.js'      => 'application/javascript',
        'picture.png' => 'image/png',
        'font.woff2'  => 'font/woff2',
        'unknown.qqq' => 'text/plain; charset=utf-8',
        'plain'       => 'text/plain; charset=utf-8',
    );
    is ask("GET /assets/$_")->header('Content-Type'),       $type{$_},   $_ for sort keys %type;
    is ask('GET /docs/index.html')->header('Content-Type'), 'text/html', 'without a charset';
    is ask('GET /docs/deep/page.txt')->header('Content-Type'), 'text/plain; charset=iso-8859-1',
        'another one';
};

subtest 'versions of HTTP' => sub {
    http1_only('HTTP/1.0');
    my $client = $server->connect;
    my $answer = $client->ask('GET /assets/ten.txt HTTP/1.0');
    is $answer->body, '0123456789', '1.0';
    ok $answer->closes, 'is closed';
    is $client->end, 'eof', 'after all of it';
    is $server->ask( 'GET /assets/ten.txt HTTP/1.0', 'Connection: keep-alive' )->header('Connection'),
        'keep-alive', '1.0 that is kept';
    is ask('GET http://other/assets/ten.txt')->body, '0123456789', 'absolute-form';
    my $last = $server->connect;
    $last->send( request( 'GET /assets/large.bin', 'Connection: close' ) );
    is $last->response->body, $LARGE, 'the last of a connection';
    is $last->end,            'eof',  'which ends';
};

subtest 'pipelined with the application' => sub {
    my $client = $server->connect;
    $client->send( join '',
        map { request("GET $_") } map { ( '/assets/ten.txt', "/$_", '/assets/large.bin' ) } 1 .. 10 );
    my @got = map { $_->body } $client->responses(30);
    is_deeply \@got, [ map { ( '0123456789', "app GET /$_", $LARGE ) } 1 .. 10 ], 'in their order';
    my $slow = $server->connect;
    for my $byte ( split //, request('GET /assets/style.css') ) { $slow->send($byte) }
    is $slow->response->body, 'body {}', 'byte by byte';
};

subtest 'requests with content' => sub {
    my $client = $server->connect;
    is $client->ask( 'GET /assets/ten.txt', \( 'x' x 100 ) )->body,     '0123456789', 'GET, a little of it';
    is $client->ask( 'GET /assets/ten.txt', \( 'x' x 500_000 ) )->body, '0123456789', 'GET, much of it';
    $client->send( request( 'GET /assets/ten.txt', 'Transfer-Encoding: chunked' ) . "3\r\nabc\r\n0\r\n\r\n" );
    is $client->response->body, '0123456789', 'chunks';
    $client->send( request( 'GET /assets/ten.txt', 'Content-Length: 3', 'Expect: 100-continue' ) );
    my $some = $client->some(20);
    like $some, qr{\AHTTP/1.1 100 }, 'Expect';
    $client->send('abc');
    is $client->response->body,                                            '0123456789', 'and the file';
    is $client->ask( 'POST /assets/ten.txt', \( 'x' x 300_000 ) )->status, 405,          'POST';
    is $client->ask('GET /x')->body, 'app GET /x', 'the connection goes on';
};

subtest 'methods' => sub {
    for my $method (qw(POST PUT DELETE PATCH OPTIONS get FOO)) {
        my $answer = ask("$method /assets/ten.txt");
        is $answer->status . ' ' . ( $answer->header('Allow') // '' ), '405 GET, HEAD', $method;
        is ask("$method /pass/ten.txt")->body, "app $method /pass/ten.txt", "$method is passed through";
    }
    is ask('OPTIONS *')->status, 200, 'OPTIONS * is not below a prefix';
};

subtest 'what is not there' => sub {
    my $answer = ask('GET /assets/none.txt');
    is $answer->status . $answer->body,      "404404 Not Found\n",     'is said by the server';
    is $answer->header('ETag'),              undef,                    'without a tag';
    is ask('HEAD /assets/none.txt')->status, 404,                      'HEAD';
    is ask('GET /pass/none.txt')->body,      'app GET /pass/none.txt', 'or by the application';
    is ask('GET /assets/docs/')->status,     404,                      'a directory is not listed';
    is ask('GET /docs/none/')->status,       404,                      'a directory that is not there';
    is ask('GET /pass/empty/')->body,        'app GET /pass/empty/',   'a directory without an index';
    is ask('GET /pass/empty')->body,         'app GET /pass/empty',    'without a slash';
    make( 'new.txt', 'new' );
    is ask('GET /assets/new.txt')->body, 'new', 'what is new is found';
    unlink "$dir/new.txt";
    is ask('GET /assets/new.txt')->status, 404, 'and what is gone is not';
};

subtest 'directories with an index' => sub {
    is ask('GET /docs/')->body, 'index', 'the index';
    my $answer = ask('GET /docs?a=1&b=//x');
    is $answer->status . ' ' . $answer->header('Location'), '301 /docs/?a=1&b=//x', 'without the slash';
    is ask('GET /pass/docs')->header('Location'),           '/pass/docs/',          'deeper';
    is ask('GET /pass/docs/')->body,                        'index',                'and its index';
    is ask('GET /docs/deep')->status,                       404,      'a longer prefix wins, and has none';
    is ask('GET /docs/deep/page.txt')->body,                'page',   'but files';
    is ask('GET http://h/docs')->header('Location'),        '/docs/', 'absolute-form';
};

subtest 'caches' => sub {
    is ask('GET /docs/index.html')->header('Cache-Control'), 'public, max-age=31536000, immutable',
        'immutable';
    is ask('GET /docs/deep/page.txt')->header('Cache-Control'), 'public, max-age=3600',    'an hour';
    is ask('GET /aged/ten.txt')->header('Cache-Control'),       'public, max-age=2592000', 'thirty days';
    is ask( 'GET /aged/ten.txt', "If-None-Match: $ETAG" )->header('Cache-Control'), 'public, max-age=2592000',
        'with 304, too';
    is ask('GET /aged/none.txt')->header('Cache-Control'), undef, 'not with 404';
};

subtest 'conditions' => sub {
    my $old   = 'Sun, 13 Sep 2020 12:26:39 GMT';
    my $new   = 'Sun, 13 Sep 2020 12:26:41 GMT';
    my @table = (
        [ 200 => 'If-None-Match: "x"' ],
        [ 304 => "If-None-Match: $ETAG" ],
        [ 304 => "If-None-Match: W/$ETAG" ],
        [ 304 => qq(If-None-Match: "a", W/"b,c" ,$ETAG) ],
        [ 304 => 'If-None-Match: "x"', "If-None-Match: $ETAG" ],
        [ 304 => 'If-None-Match: *' ],
        [ 200 => 'If-None-Match: ' . $ETAG =~ tr/"//dr ],
        [ 200 => "If-None-Match: x, $ETAG" ],
        [ 304 => "If-Modified-Since: $DATE" ],
        [ 304 => "If-Modified-Since: $new" ],
        [ 200 => "If-Modified-Since: $old" ],
        [ 304 => 'If-Modified-Since: Sunday, 13-Sep-20 12:26:40 GMT' ],
        [ 304 => 'If-Modified-Since: Sun Sep 13 12:26:40 2020' ],
        [ 200 => 'If-Modified-Since: Sun Sep  6 12:26:40 2020' ],
        [ 200 => 'If-Modified-Since: yesterday' ],
        [ 200 => 'If-Modified-Since: Sun, 31 Feb 2021 12:26:40 GMT' ],
        [ 200 => 'If-Modified-Since: Mon, 14 Sep 2020 24:26:40 GMT' ],
        [ 200 => 'If-None-Match: "x"',   "If-Modified-Since: $DATE" ],
        [ 304 => "If-None-Match: $ETAG", "If-Modified-Since: $old" ],
        [ 200 => "If-Match: $ETAG" ],
        [ 200 => 'If-Match: *' ],
        [ 412 => 'If-Match: "x"' ],
        [ 412 => "If-Match: W/$ETAG" ],
        [ 200 => "If-Unmodified-Since: $DATE" ],
        [ 412 => "If-Unmodified-Since: $old" ],
        [ 200 => "If-Unmodified-Since: never" ],
        [ 200 => "If-Match: $ETAG",           "If-Unmodified-Since: $old" ],
        [ 412 => 'If-Match: "x"',             "If-None-Match: $ETAG" ],
        [ 304 => "If-Match: $ETAG",           "If-None-Match: $ETAG" ],
        [ 412 => "If-Unmodified-Since: $old", "If-None-Match: $ETAG" ],
        [ 412 => 'If-Match: "x"',             'Range: bytes=0-1' ],
    );
    for my $case (@table) {
        my ( $want, @fields ) = @$case;
        my $answer = ask( 'GET /assets/ten.txt', @fields );
        is $answer->status,                                $want, join ' + ', @fields;
        is $answer->body,                                  '',    'no content' if $want == 304;
        is ask( 'HEAD /assets/ten.txt', @fields )->status, $want, 'HEAD'       if "@fields" !~ /Range/;
    }
    my $answer = ask( 'GET /assets/ten.txt', "If-None-Match: $ETAG" );
    is_deeply [ sort $answer->names ], [qw(Date ETag Server Vary)], 'what a 304 says';
    is ask( 'GET /assets/none', 'If-Match: "x"' )->status, 404, 'a file that is not there has no conditions';
};

subtest 'times' => sub {
    my $answer = ask('GET /assets/future.txt');
    ok $answer->header('Last-Modified') eq $answer->header('Date') || $answer->header('Last-Modified'),
        'a file of tomorrow';
    isnt substr( $answer->header('Last-Modified'), 0, 16 ),
        substr( ask('GET /assets/ten.txt')->header('Last-Modified'), 0, 16 ), 'has its own time';
    cmp_ok $answer->header('Last-Modified'), 'eq', $answer->header('Date'),
        'which is not later than the response';
    is ask('GET /assets/timeless.txt')->header('Last-Modified'), undef, 'the first second of 1970 is no time';
    my $tag = ask('GET /assets/timeless.txt')->header('ETag');
    make( 'timeless.txt', 'BUILT', 1 );
    isnt ask('GET /assets/timeless.txt')->header('ETag'), $tag, 'yet the tag changes with the file';
    make( 'ten.txt', '9876543210', $TIME + 1 );
    isnt ask('GET /assets/ten.txt')->header('ETag'), $ETAG, 'as that of others does';
    make( 'ten.txt', '0123456789' );
};

subtest 'ranges' => sub {
    my @table = (
        [ 'bytes=0-3'                       => 206, '0123',                        'bytes 0-3/10' ],
        [ 'bytes=4-'                        => 206, '456789',                      'bytes 4-9/10' ],
        [ 'bytes=-3'                        => 206, '789',                         'bytes 7-9/10' ],
        [ 'bytes=-300'                      => 206, '0123456789',                  'bytes 0-9/10' ],
        [ 'bytes=9-9'                       => 206, '9',                           'bytes 9-9/10' ],
        [ 'bytes=5-999'                     => 206, '56789',                       'bytes 5-9/10' ],
        [ 'Bytes= 0-0 ,'                    => 206, '0',                           'bytes 0-0/10' ],
        [ 'bytes=10-, 2-3'                  => 206, '23',                          'bytes 2-3/10' ],
        [ 'bytes=0-99999999999999999999999' => 206, '0123456789',                  'bytes 0-9/10' ],
        [ 'bytes=10-'                       => 416, "416 Range Not Satisfiable\n", 'bytes */10' ],
        [ 'bytes=-0'                        => 416, "416 Range Not Satisfiable\n", 'bytes */10' ],
        [ 'bytes=99999999999999999999999-'  => 416, "416 Range Not Satisfiable\n", 'bytes */10' ],
        map { [ $_ => 200, '0123456789', undef ] } 'bytes=',
        'bytes',
        '0-3',
        'bytes=3-1',
        'bytes=a-b',
        'bytes=--1',
        'bytes=1',
        'bytes=0-3,x',
        'lines=0-3',
        'bytes =0-3',
        'bytes=0 - 3',
        'bytes=+0-3',
        'bytes=0x1-3',
        'bytes=0-9,0-9',
        'bytes=' . join( ',', ('0-0') x 17 ),
        'bytes=-',
    );
    for my $case (@table) {
        my ( $range, $status, $body, $content_range ) = @$case;
        my $answer = ask( 'GET /assets/ten.txt', "Range: $range" );
        is $answer->status . ' ' . $answer->body, "$status $body", length $range > 60 ? 'many' : $range;
        is $answer->header('Content-Range'),      $content_range,  'Content-Range';
    }
    is ask( 'HEAD /assets/ten.txt',    'Range: bytes=0-3' )->status, 200, 'HEAD has none';
    is ask( 'GET /assets/nothing.txt', 'Range: bytes=0-3' )->status, 200, 'nor has an empty file';
    is ask( 'GET /assets/ten.txt', 'Range: bytes=0-3', 'Range: bytes=5-6' )->status, 200, 'two are none';
    is ask( 'GET /assets/large.bin', 'Range: bytes=100000-299998' )->body,
        substr( $LARGE, 100_000, 199_999 ), 'of a large one';
    my $answer = ask( 'GET /assets/ten.txt', 'Range: bytes=0-3' );
    is $answer->header($_), ask('GET /assets/ten.txt')->header($_), "$_ is that of the file"
        for qw(ETag Last-Modified Content-Type);
};

subtest 'If-Range' => sub {
    my @table = (
        [ 206 => $ETAG ],
        [ 206 => $DATE ],
        [ 200 => "W/$ETAG" ],
        [ 200 => '"x"' ],
        [ 200 => "$ETAG, $ETAG" ],
        [ 200 => 'Sun, 13 Sep 2020 12:26:39 GMT' ],
        [ 200 => 'Sun, 13 Sep 2020 12:26:41 GMT' ],
        [ 200 => 'junk' ],
    );
    is ask( 'GET /assets/timeless.txt', 'Range: bytes=0-3', 'If-Range: Wed, 31 Dec 1969 23:59:59 GMT' )
        ->status,
        200, 'no date is that of a file without one';
    is ask( 'GET /assets/ten.txt', 'Range: bytes=0-3', "If-Range: $_->[1]" )->status, $_->[0], $_->[1]
        for @table;
    make( 'fresh.txt', 'fresh', time );
    my $date    = ask('GET /assets/fresh.txt')->header('Last-Modified');
    my $at_once = ask( 'GET /assets/fresh.txt', 'Range: bytes=0-3', "If-Range: $date" );
    my $settled = $at_once->header("Date") ne $date && $at_once->status == 206;
    ok $at_once->status == 200 || $settled, "a file that may change within its second again";
    is ask( 'GET /assets/ten.txt', "If-Range: $ETAG" )->status, 200, 'without Range';
    is ask( 'GET /assets/ten.txt', 'Range: bytes=99-', 'If-Range: "x"' )->status, 200,
        'which can then not be wrong';
};

subtest 'several ranges' => sub {
    my $parts = sub {
        my $answer = shift;
        my ($boundary) = $answer->header('Content-Type') =~ /\Amultipart\/byteranges; boundary=(\S+)\z/
            or return 'no boundary';
        my $body = $answer->body;
        $body =~ s/\A--\Q$boundary\E\r\n//       or return 'no beginning';
        $body =~ s/\r\n--\Q$boundary\E--\r\n\z// or return 'no end';
        return [
            map { [m/\AContent-Type: (.*)\r\nContent-Range: (.*)\r\n\r\n(.*)\z/s] }
                split /\r\n--\Q$boundary\E\r\n/,
            $body, -1
        ];
    };
    my ( $one, $other )
        = map { ask( 'GET /assets/ten.txt', 'Range: bytes=0-0,2-2' )->header('Content-Type') } 1, 2;
    isnt substr( $one, 0, 55 ), substr( $other, 0, 55 ), 'who has seen a boundary cannot guess the next one';
    my $type   = 'text/plain; charset=utf-8';
    my $answer = ask( 'GET /assets/ten.txt', 'Range: bytes=0-1, 4-5,-1' );
    is $answer->status, 206, 'parts';
    is_deeply $parts->($answer),
        [ [ $type, 'bytes 0-1/10', '01' ], [ $type, 'bytes 4-5/10', '45' ], [ $type, 'bytes 9-9/10', '9' ] ],
        'each with its range';
    is $answer->header('Content-Range'), undef, 'none for all';
    my $client = $server->connect;
    $client->send(
        request( 'GET /assets/large.bin', 'Range: bytes=200000-299999,0-99999' ) . request('GET /x') );
    is_deeply $parts->( $client->response ),
        [
        [ 'application/octet-stream', 'bytes 200000-299999/300000', substr $LARGE, 200_000 ],
        [ 'application/octet-stream', 'bytes 0-99999/300000', substr $LARGE, 0, 100_000 ]
        ],
        'of a large file, in the order of the request';
    is $client->response->body, 'app GET /x', 'and the connection goes on';
    my $many = ask( 'GET /assets/ten.txt', 'Range: bytes=' . join ',', map {"$_-$_"} 0 .. 9 );
    is scalar @{ $parts->($many) }, 10, 'ten';
    my $reader = $server->connect( rcvbuf => 4096 );
    $reader->send( request( 'GET /assets/large.bin', 'Range: bytes=1-149999,150000-299999' ) );
    select undef, undef, undef, 0.1;
    is join( '', map { $_->[2] } @{ $parts->( $reader->response ) } ), substr( $LARGE, 1 ), 'a slow reader';
};

subtest 'compressed files' => sub {
    my @table = (
        [ undef,                        '' ],
        [ '',                           '' ],
        [ 'gzip',                       'gzip' ],
        [ 'x-gzip',                     'gzip' ],
        [ 'GZIP',                       'gzip' ],
        [ 'br',                         'br' ],
        [ 'zstd',                       'zstd' ],
        [ 'deflate',                    '' ],
        [ 'gzip, deflate, br, zstd',    'br' ],
        [ 'gzip;q=1.0, br;q=0.5',       'gzip' ],
        [ 'gzip;q=0.5, zstd;q=0.9',     'zstd' ],
        [ 'gzip;q=0',                   '' ],
        [ 'gzip;q=0.000, br;q=0',       '' ],
        [ '*',                          'br' ],
        [ '*;q=0.1, br;q=0',            'zstd' ],
        [ '*;q=0',                      '' ],
        [ 'identity',                   '' ],
        [ 'identity, gzip;q=0.5',       '' ],
        [ 'identity;q=0.5, gzip;q=0.5', 'gzip' ],
        [ 'gzip ; Q=0.3',               'gzip' ],
        [ 'gzip;q=2',                   '' ],
        [ 'gzip;q=0.1234',              '' ],
        [ 'gzip;level=9',               '' ],
        [ ',, gzip,,',                  'gzip' ],
    );
    my %content = ( '' => 'identity', br => 'brotli', zstd => 'zstandard', gzip => 'gzip' );
    my %tag;
    for my $case (@table) {
        my ( $accept, $coding ) = @$case;
        my $answer = ask( 'GET /assets/all.css', defined $accept ? "Accept-Encoding: $accept" : () );
        is $answer->body . ' ' . ( $answer->header('Content-Encoding') // '' ), "$content{$coding} $coding",
            $accept // 'no field';
        is $answer->header('Vary'),         'Accept-Encoding',         'it depends';
        is $answer->header('Content-Type'), 'text/css; charset=utf-8', 'the type is that of the file';
        $tag{$coding} = $answer->header('ETag');
    }
    is keys %{ { reverse %tag } }, 4, 'each coding has its own tag';
    is ask( 'GET /assets/all.css', 'Accept-Encoding: br', "If-None-Match: $tag{br}" )->status, 304,
        'which is known';
    is ask( 'GET /assets/all.css', 'Accept-Encoding: br', "If-None-Match: $tag{gzip}" )->status, 200,
        'by itself';
    is ask( 'GET /assets/all.css', 'Accept-Encoding: br', 'Range: bytes=0-2' )->body, 'bro', 'a part of it';
    is ask( 'GET /assets/old.css', 'Accept-Encoding: gzip' )->body, 'identity',
        'one that is older than its file is not sent';
    for my $case (
        [ 0.9,         0.7,      0, 'two tenths of a second older' ],
        [ 0.7,         0.9,      1, 'two tenths of a second newer' ],
        [ 0.7,         0,        1, 'the same second, cut by the program that compressed it' ],
        [ 0.700300123, 0.700300, 1, 'the same microsecond' ],
        )
    {
        my ( $file, $packed, $fresh, $name ) = @$case;
        for my $of ( [ 'same.css', $TIME + $file ], [ 'same.css.gz', $TIME + $packed ] ) {
            my ( $name, $time ) = @$of;
            make( $name, 'css' );
            Time::HiRes::utime( $time, $time, "$dir/$name" ) or die "utime: $!";
        }
        is ask( 'GET /assets/same.css', 'Accept-Encoding: gzip' )->header('Content-Encoding'),
            $fresh ? 'gzip' : undef, $name;
    }
    is ask( 'GET /assets/style.css', 'Accept-Encoding: gzip' )->body, 'body {}',
        'one that is not there neither';
    my $png = ask( 'GET /assets/picture.png', 'Accept-Encoding: gzip' );
    is $png->body . ( $png->header('Vary') // '' ), 'png', 'pictures are compressed as they are';
    is ask( 'GET /assets/all.css.gz', 'Accept-Encoding: gzip' )->header('Content-Encoding'), undef,
        'by its own name it is a file';
};

subtest 'a file that shrinks while it is sent' => sub {
    spew( "$dir/shrinks.bin", 'x' x 20_000_000 );
    my $client = $server->connect( rcvbuf => 8192 );
    $client->send( request('GET /assets/shrinks.bin') );
    ok $client->begins(20), 'it has begun';
    truncate "$dir/shrinks.bin", 1000 or die "truncate: $!";
    is $client->response->status, 'cut',        'the client sees that something is missing';
    is ask('GET /x')->body,       'app GET /x', 'the server goes on';
};

subtest 'a file that grows, and one that is removed, while it is sent' => sub {
    for my $what (qw(grows removed)) {
        spew( "$dir/$what.bin", 'x' x 5_000_000 );
        my $client = $server->connect( rcvbuf => 8192 );
        $client->send( request("GET /assets/$what.bin") . request('GET /x') );
        ok $client->begins(20), "$what: it has begun";
        if ( $what eq 'grows' ) {
            open my $out, '>>', "$dir/grows.bin" or die $!;
            print {$out} 'y' x 1000;
            close $out or die $!;
        } else {
            unlink "$dir/removed.bin";
        }
        is length $client->response->body, 5_000_000,    "$what: as much as was said";
        is $client->response->body,        'app GET /x', 'and what is behind it';
    }
};

subtest 'slow readers hold up nobody' => sub {
    my @slow = map { $server->connect( rcvbuf => 4096 ) } 1 .. 20;
    $_->send( request('GET /assets/large.bin') ) for @slow;
    is ask('GET /x')->body,                                   'app GET /x', 'the application';
    is ask('GET /assets/ten.txt')->body,                      '0123456789', 'files';
    is scalar( grep { $_->response->body eq $LARGE } @slow ), 20,           'and they get all';
};

my ($edge) = $server->edges;

sub below {
    return grep {m{\A\Q$dir\E/}} map { readlink($_) // '' } glob "/proc/$edge/fd/*";
}
until_true( 5, sub { below() == 2 } );
is join( ' ', sort( below() ) ), "$dir/docs $dir/docs/deep", 'no file is left open';
$server->stop;

done_testing;
