use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Digest::MD5 qw(md5_hex);
use File::Temp;
use Socket      qw(AF_INET6 SOCK_STREAM inet_pton pack_sockaddr_in6);
use Time::HiRes qw(time);
use Sirius::Test;

# curl, the client that is everywhere: its ways to send a body, its protocols, and what it does with our
# answers

plan skip_all => 'curl is not installed' if !program('curl');

my $dir    = File::Temp->newdir;
my $MB     = join '', map { chr( $_ * 7 % 251 ) } 1 .. 1_000_000;
my $MD5    = md5_hex($MB);
my @listen = map { ( '--listen', $_ ) } '127.0.0.1:0', "$dir/sock", six() ? '[::1]:0' : ();
my $server = start_server( <<'APP', qw(--workers 2 --max-body 2m), @listen );
use Digest::MD5;
use Plack::Request;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    my @text = ( 'Content-Type' => 'text/plain' );
    if ( $path eq '/hints' ) {
        $env->{'psgix.informational'}->( 103, [ Link => '</style.css>; rel=preload' ] ) if $env->{'psgix.informational'};
        return [ 200, \@text, ['page'] ];
    }
    return sub { my $w = shift->( [ 200, \@text ] ); $w->write("part $_\n") for 1 .. 3; $w->close } if $path eq '/stream';
    return [ 200, \@text, [ 'x' x 5_000_000 ] ] if $path eq '/large';
    return [ 302, [ Location => '/target' ], [] ] if $path eq '/go';
    if ( $path eq '/upload' ) {
        my $file = Plack::Request->new($env)->uploads->{file};
        open my $in, '<:raw', $file->path or die "$!";
        return [ 200, \@text, [ join ' ', $file->filename, $file->size, Digest::MD5->new->addfile($in)->hexdigest ] ];
    }
    my $body = do { local $/ = undef; readline $env->{'psgi.input'} };
    $body = '' if !defined $body;
    $body = length($body) . ' bytes ' . Digest::MD5::md5_hex($body) if length $body > 100;
    return [ 200, \@text, ["$env->{REQUEST_METHOD} $env->{REQUEST_URI} $env->{SERVER_PROTOCOL} [$body]"] ];
};
APP
my ( $address, @other ) = $server->listeners;
my $url  = "http://$address";
my $file = spew( "$dir/million", $MB );

# Runs curl; the hash says what came: out, status, seconds, connects (one number for each transfer)
sub curl {
    my @args  = @_;
    my $input = ref $args[0] ? ${ shift @args } : '/dev/null';
    my $start = time;
    my $pid   = open my $pipe, '-|';
    defined $pid or die "fork: $!";
    if ( !$pid ) {
        delete @ENV{ grep {/_proxy\z/i} keys %ENV };
        open STDIN, '<', $input or die "$input: $!";
        exec qw(curl -q -sS --max-time 15 -w), '\n%{http_code} %{num_connects}\n', @args or die "curl: $!";
    }
    binmode $pipe;
    my $out    = do { local $/ = undef; readline $pipe };
    my $closed = close $pipe;
    my %result = ( out => $out, exit => $closed ? 0 : $? >> 8, seconds => time - $start, status => 0 );
    @result{qw(status connects)} = ( $1, $2 ) if $result{out} =~ s/\n(\d+) (\d+)\n\z//;
    return \%result;
}

sub six {
    my $probe;
    return socket( $probe, AF_INET6, SOCK_STREAM, 0 ) && bind $probe,
        pack_sockaddr_in6( 0, inet_pton( AF_INET6, '::1' ) );
}

subtest 'Expect: 100-continue' => sub {
    my @wait   = ( qw(-i -H), 'Expect: 100-continue', qw(--expect100-timeout 60) );
    my $answer = curl( @wait, '--data-binary', "\@$file", "$url/x" );
    like $answer->{out}, qr{\AHTTP/1\.1 100 Continue\r\n\r\nHTTP/1\.1 200 OK\r\n}, '100, then 200';
    like $answer->{out}, qr/\[1000000 bytes $MD5\]\z/,                             'the whole body came';
    cmp_ok $answer->{seconds}, '<', 30, 'before it stops waiting';
    $answer = curl( @wait, '-T', '-', "$url/x" );
    like $answer->{out}, qr{100 Continue.*PUT /x HTTP/1\.1 \[\]\z}s, 'in chunks, none';
    $answer = curl( \$file, @wait, '-T', '-', "$url/x" );
    like $answer->{out}, qr{100 Continue.*PUT /x HTTP/1\.1 \[1000000 bytes $MD5\]\z}s, 'in chunks, a million';
    $answer = curl( qw(-i -H), 'Expect: other', '-d', 'x', "$url/x" );
    is $answer->{status}, 417, 'another expectation';
};

subtest 'a body over --max-body' => sub {
    my $big    = spew( "$dir/three", $MB x 3 );
    my @wait   = ( qw(-i -H), 'Expect: 100-continue', qw(--expect100-timeout 60) );
    my $answer = curl( @wait, '--data-binary', "\@$big", "$url/x" );
    is $answer->{status}, 413, 'refused';
    like $answer->{out}, qr{\AHTTP/1\.1 413 }, 'without 100';
    cmp_ok $answer->{seconds}, '<', 30, 'before it stops waiting';
    for my $round ( 1 .. 5 ) {
        $answer = curl( qw(-i -H Expect:), '--data-binary', "\@$big", "$url/x" );
        is "$answer->{status} $answer->{exit}", '413 0', "who does not wait reads it too, round $round";
        $answer = curl( \$big, qw(-i -H Expect: -T -), "$url/x" );
        is "$answer->{status} $answer->{exit}", '413 0', "in chunks, round $round";
    }
};

subtest 'bodies' => sub {
    is curl( '-d', 'a=b', "$url/x" )->{out},       'POST /x HTTP/1.1 [a=b]',         'a form';
    is curl( qw(-X PATCH -d a), "$url/x" )->{out}, 'PATCH /x HTTP/1.1 [a]',          'PATCH';
    is curl( qw(-X DELETE), "$url/x" )->{out},     'DELETE /x HTTP/1.1 []',          'DELETE';
    is curl( '-T', $file, "$url/x" )->{out}, "PUT /x HTTP/1.1 [1000000 bytes $MD5]", 'PUT with a length';
    is curl( \$file, '-T', '-', "$url/x" )->{out}, "PUT /x HTTP/1.1 [1000000 bytes $MD5]", 'PUT in chunks';
    is curl( '-F', "file=\@$file", "$url/upload" )->{out}, "million 1000000 $MD5", 'multipart';
    is curl( qw(-X POST), "$url/x" )->{out},               'POST /x HTTP/1.1 []',  'POST without a body';
};

subtest 'versions and methods' => sub {
    is curl( '-0',            "$url/x" )->{out},      'GET /x HTTP/1.0 []',       'HTTP/1.0';
    is curl( qw(-0 -d a=b),   "$url/x" )->{out},      'POST /x HTTP/1.0 [a=b]',   'HTTP/1.0 with a body';
    is curl( '-0',            "$url/stream" )->{out}, "part 1\npart 2\npart 3\n", 'HTTP/1.0, no length';
    is curl( '--http2',       "$url/x" )->{out}, 'GET /x HTTP/1.1 []', 'an upgrade to HTTP/2 is not taken';
    is curl( '--tr-encoding', "$url/x" )->{out}, 'GET /x HTTP/1.1 []', 'TE';
    my $head = curl( '-I', "$url/x" );
    like $head->{out}, qr{\AHTTP/1\.1 200 OK\r\n.*^Content-Length: 19\r\n}ms, 'HEAD: the length of GET';
    cmp_ok $head->{seconds}, '<', 30, 'and nobody waits for a body';
    is curl( qw(-X OPTIONS --request-target *), $url )->{status}, 200, 'OPTIONS *';
    is curl( '--proxy', $url, 'http://example.org/x' )->{status}, 200, 'a proxy\'s absolute form';
    is curl( '-L', "$url/go" )->{out},                            'GET /target HTTP/1.1 []', 'a redirection';
};

subtest 'paths' => sub {
    is curl( '--path-as-is', "$url/a/../b" )->{out},      'GET /a/../b HTTP/1.1 []',      '--path-as-is';
    is curl("$url/a/../b")->{out},                        'GET /b HTTP/1.1 []',           'without it';
    is curl( '--path-as-is', "$url//a/./b?../c" )->{out}, 'GET //a/./b?../c HTTP/1.1 []', 'more of them';
    is curl("$url/x?a=b%20c#part")->{out},                'GET /x?a=b%20c HTTP/1.1 []',   'a query';
};

subtest 'responses' => sub {
    is curl("$url/stream")->{out},       "part 1\npart 2\npart 3\n",                    'in chunks';
    is length curl("$url/large")->{out}, 5_000_000,                                     'five million bytes';
    is length curl( '--limit-rate', '20m', "$url/large" )->{out}, 5_000_000,            'slowly';
    is curl( '--compressed', "$url/x" )->{out},                   'GET /x HTTP/1.1 []', 'Accept-Encoding';
};

subtest '103 early hints' => sub {
    my $answer = curl( '-i', "$url/hints" );
    like $answer->{out},
        qr{\AHTTP/1\.1 103 [^\r]*\r\nLink: </style\.css>; rel=preload\r\n\r\nHTTP/1\.1 200 OK\r\n},
        '103, then 200';
    like $answer->{out},                     qr/page\z/,                  'and the page';
    like curl( '-i0', "$url/hints" )->{out}, qr{\AHTTP/1\.\d 200 OK\r\n}, 'not for HTTP/1.0';
};

subtest 'one connection' => sub {
    my $answer = curl("$url/x?n=[1-20]");
    is scalar( () = $answer->{out} =~ /GET \/x\?n=\d+ HTTP\/1\.1 \[\]/g ), 20, '20 answers';
    my @connects = ( $answer->{out} =~ /^200 (\d)$/mg, $answer->{connects} );
    is "@connects", join( ' ', 1, (0) x 19 ), 'on one connection';
    my @mixed = map { ( @$_, '--next' ) } [ '-d', 'a', "$url/x" ], [ '-I', "$url/x" ], ["$url/stream"],
        [ '-T', $file, "$url/x" ];
    my @format = ( '-w', '\n%{http_code} %{num_connects}\n' );
    $answer   = curl( map( { ( $_, $_ eq '--next' ? ( qw(-sS), @format ) : () ) } @mixed ), "$url/x" );
    @connects = ( $answer->{out} =~ /^200 (\d)$/mg, $answer->{connects} );
    is "@connects", '1 0 0 0 0', 'of several methods';
};

subtest 'a unix socket' => sub {
    my @socket = ( '--unix-socket', "$dir/sock" );
    is curl( @socket, 'http://a/x' )->{out},              'GET /x HTTP/1.1 []',                   'GET';
    is curl( @socket, '-T', $file, 'http://a/x' )->{out}, "PUT /x HTTP/1.1 [1000000 bytes $MD5]", 'PUT';
    is length curl( @socket, 'http://a/large' )->{out},   5_000_000, 'five million bytes';
};

subtest 'IPv6' => sub {
    plan skip_all => 'no IPv6 here' if @other < 2;
    is curl( '-g', "http://$other[1]/x" )->{out}, 'GET /x HTTP/1.1 []', $other[1];
};

$server->stop;
done_testing;
