use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Digest::MD5 qw(md5_hex);
use File::Temp;
use Sirius::Test;
use Sirius::Test::HAProxy;

# Behind HAProxy: with connections that are kept and shared, closed after each request, and over a unix socket; with health
# checks. Nothing that we refuse or close may come out as its 502.

plan skip_all => 'HAProxy is not installed' if !Sirius::Test::HAProxy->available;

my $dir = File::Temp->newdir;
my $app = file( 'app.psgi', <<'APP' );
use Digest::MD5;
my $large = substr join( '', map { chr( $_ * 7 % 251 ) } 1 .. 251 ) x 80_000, 0, 20_000_000;
my $file = __FILE__ . '.large';
open my $out, '>:raw', $file or die "$!";
print {$out} $large;
close $out or die "$!";
sub {
    my $env = shift;
    my ($what) = $env->{PATH_INFO} =~ m{([^/]*)\z};
    return [ 200, [], [ join ' ', @{$env}{qw(SERVER_PROTOCOL REMOTE_ADDR REMOTE_PORT)} ] ] if $what eq 'peer';
    return [ 200, [], [$large] ] if $what eq 'large';
    if ( $what eq 'file' ) { open my $in, '<:raw', $file or die "$!"; return [ 200, [], $in ] }
    return sub { my $w = shift->( [ 200, [] ] ); $w->write("part $_\n") for 1 .. 3; $w->close } if $what eq 'stream';
    die "on purpose\n" if $what eq 'die';
    return [ 200, [], ["Hello World"] ] if $env->{REQUEST_METHOD} eq "GET";
    my $in = $env->{"psgi.input"};
    return [ 200, [], [ join " ", $env->{REQUEST_METHOD}, $env->{CONTENT_LENGTH} || 0, Digest::MD5->new->addfile($in)->hexdigest ] ];
};
APP
my $server = start_server( $app, qw(--workers 2 --max-body 1m --listen 127.0.0.1:0 --listen), "$dir/sock" );
my $mortal = start_server( $app, qw(--workers 2 --max-reqs-per-child 200 --max-keepalive-reqs 50) );
my $proxy  = start_haproxy();
my $url    = 'http://127.0.0.1:' . $proxy->port;
my @way    = qw(kept closed unix);

sub file {
    my ( $name, $text ) = @_;
    open my $out, '>:raw', "$dir/$name" or die "$dir/$name: $!";
    print {$out} $text;
    close $out or die "$dir/$name: $!";
    return "$dir/$name";
}

sub configuration {
    my $address = ( $server->listeners )[0];
    return <<"CONF";
global
    maxconn 400
    stats socket $dir/stats mode 600 level admin
defaults
    mode http
    log stderr format raw daemon notice
    timeout connect 5s
    timeout client 10s
    timeout server 10s
    timeout check 5s
    option httpchk
    default-server inter 100ms fastinter 100ms
    http-reuse always
frontend all
    bind fd\@LISTENER
    use_backend %[path,field(2,/)]
backend kept
    server one $address check
backend closed
    option httpclose
    server one $address check
backend unix
    server one unix\@$dir/sock check
backend mortal
    server one @{[ $mortal->address ]} check
CONF
}

sub start_haproxy {
    my $haproxy = Sirius::Test::HAProxy->start( configuration() );
    my $up      = sub {
        -S "$dir/stats" && 4 == grep { $_->{status} eq 'UP' } servers();
    };
    return $haproxy if until_true( 10, $up );
    die "HAProxy did not start:\n", $haproxy->log;
}

# What HAProxy counts for each server behind it
sub servers {
    my $client = eval { Sirius::Test::Client->new("unix:$dir/stats") } or return;
    $client->send("show stat -1 4 -1\n");
    my ( $head, @line ) = split /\n/, $client->rest(5);
    return if !defined $head || $head !~ s/\A# //;
    my @name = split /,/, $head;
    return map { my %row; @row{@name} = split /,/; \%row } @line;
}

# A test: every request of ab is answered with 2xx and its whole body
sub ab {
    my ( $name, $count, @args ) = @_;
    my $pid = open my $pipe, '-|', 'ab', '-q', '-s', 10, '-n', $count, @args or die "ab: $!";
    local $SIG{ALRM} = sub { kill KILL => $pid };
    alarm 30;
    my $out = do { local $/ = undef; readline $pipe };
    alarm 0;
    close $pipe;
    my %seen = $out =~ /^(Complete requests|Failed requests|Write errors|Non-2xx responses): +(\d+)/mg;
    my $want = { 'Complete requests' => $count, 'Failed requests' => 0 };
    is_deeply \%seen, $want, $name or diag $out;
    return;
}

sub errors { return $proxy->log }

sub to_proxy { return $proxy->connect }

subtest 'the ways' => sub {
    for my $way (@way) {
        my ( %peer, $protocol, $addr );
        my $client = to_proxy();
        for ( 1 .. 20 ) {
            ( $protocol, $addr, my $peer ) = split / /, $client->ask("GET /$way/peer")->body;
            $peer{$peer}++;
        }
        is $protocol, 'HTTP/1.1', "$way: protocol";
        next if $way eq 'unix';
        is $addr, '127.0.0.1', "$way: address";
        my $count = keys %peer;
        ok $way eq 'closed' ? $count == 20 : $count == 1, "$way: 20 requests on $count connections";
    }
};

subtest '2000 requests' => sub {
    plan skip_all => 'ab is not installed' if !grep { -x "$_/ab" } split /:/, $ENV{PATH};
    ab( $_,                                 2000, '-k', '-c', 8, "$url/$_/hello" ) for @way;
    ab( 'connections and workers that end', 2000, '-k', '-c', 8, "$url/mortal/hello" );
    my %server = map { $_->{pxname} => $_ } servers();
    cmp_ok $server{kept}{reuse}, '>', 1900, 'connections are used again';
    is errors(), '', 'HAProxy has nothing to complain about';
};

subtest 'responses' => sub {
    my $large = md5_hex( substr join( '', map { chr( $_ * 7 % 251 ) } 1 .. 251 ) x 80_000, 0, 20_000_000 );
    for my $way (@way) {
        my $client = to_proxy();
        for my $what (qw(large file)) {
            my $out = md5_of("$url/$way/$what");
            is $out, $large, "$way: 20 MB, $what";
        }
        is $client->ask("GET /$way/stream")->body, "part 1\npart 2\npart 3\n",        "$way: a stream";
        is $client->ask("GET /$way/die")->status,  500,                               "$way: 500 stays 500";
        is $client->ask("HEAD /$way/large")->header('Content-Length'), 20_000_000,    "$way: HEAD";
        is $client->ask("GET /$way/hello")->body,                      'Hello World', "$way: and it goes on";
    }
    is errors(), '', 'HAProxy has nothing to complain about';
};

# The strict client is too slow for so much
sub md5_of {
    my $target = shift;
    my ($path) = $target =~ m{\Ahttp://[^/]+(/.*)};
    my $client = to_proxy();
    $client->send( request( "GET $path", 'Connection: close' ) );
    my ( undef, $body ) = split /\r\n\r\n/, $client->rest(10), 2;
    return md5_hex($body);
}

subtest 'bodies' => sub {
    my $body = join '', map { chr( $_ * 7 % 251 ) } 1 .. 900_000;
    for my $way (@way) {
        my $client = to_proxy();
        is $client->ask( "POST /$way/x", \$body )->body, 'POST 900000 ' . md5_hex($body), "$way: 900 kB";
        $client->send( request( "PUT /$way/x", 'Transfer-Encoding: chunked' ) . join '',
            map( { sprintf "%x\r\n%s\r\n", length, $_ } unpack '(a10000)*', $body ), "0\r\n\r\n" );
        is $client->response->body, 'PUT 900000 ' . md5_hex($body), "$way: 900 kB in chunks";
        is $client->ask( "DELETE /$way/x", \'' )->body, 'DELETE 0 ' . md5_hex(''), "$way: DELETE";
        is $client->ask( "POST /$way/x", 'Expect: 100-continue', \'abc' )->body, 'POST 3 ' . md5_hex('abc'),
            "$way: Expect";
    }
    is errors(), '', 'HAProxy has nothing to complain about';
};

subtest '10 MB when 1 MB is allowed' => sub {
    my $body  = 'x' x 10_000_000;
    my $chunk = "2710\r\n" . 'x' x 10_000 . "\r\n";
    for my $way (@way) {
        my ( %status, %chunked );
        for ( 1 .. 20 ) {
            $status{ to_proxy()->ask( "POST /$way/x", \$body )->status }++;
            my $client = to_proxy();
            $client->send(
                request( "POST /$way/x", 'Transfer-Encoding: chunked' ) . $chunk x 1000 . "0\r\n\r\n" );
            $chunked{ $client->response->status }++;
        }
        is_deeply \%status,  { 413 => 20 }, "$way: 413 each time";
        is_deeply \%chunked, { 413 => 20 }, "$way: 413 each time, in chunks";
    }
    is errors(), '', 'HAProxy has nothing to complain about';
};

# Some of these HAProxy refuses itself, some it passes on and we do: 400 from either of us is right, 502 would blame us
subtest 'malformed requests' => sub {
    my @bytes = (
        map( {"GET /kept/$_ HTTP/1.1\r\nHost: a\r\n\r\n"} "a\x80b", 'a#b', 'a\\b', '%zz', "a\x01b",
            "a?\x80" ),
        map( {"GET /kept/hello HTTP/1.1\r\nHost: $_\r\n\r\n"} '[::1',
            'a?b', 'a@b', "a\x80", 'a:99999', 'a b' ),
        map( {"GET /kept/hello HTTP/1.1\r\nHost: a\r\n$_\r\n\r\n"} 'X : a',
            "X: a\x01b", 'Content-Length: 5x',
            'Host: b',   "X: a\rb" ),
    );
    my $ours = 0;
    for my $bytes (@bytes) {
        my $client = to_proxy();
        $client->send($bytes);
        my $answer = $client->some( 12, 5 );
        ( my $name = $bytes ) =~ s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ge;
        like $answer, qr{\AHTTP/1\.1 400 }, $name;
        $ours++ if $answer =~ /^server: Sirius/m;
    }
    cmp_ok $ours, '>=', 6, "$ours of them were passed on";
    is to_proxy()->ask( 'GET /kept/' . 'a' x 9000 )->status, 414, 'too long a target';
};

subtest 'what HAProxy counted' => sub {
    my %server = map { $_->{pxname} => $_ } servers();
    for my $name ( @way, 'mortal' ) {
        my %row = %{ $server{$name} };
        is "$row{status} $row{check_status}" =~ s/ \*//r, 'UP L7OK',
            "$name: the HTTP/1.0 health check passes";
        is $row{$_}, 0, "$name: $_" for qw(chkfail chkdown econ eresp wretr wredis srv_abrt);
    }
    is $server{closed}{reuse}, 0, 'or not';
};

is errors(), '', 'HAProxy has nothing to complain about';
$_->stop for $server, $mortal;
done_testing;
