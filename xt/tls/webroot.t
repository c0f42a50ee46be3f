# --acme-webroot: the challenges that certbot --webroot writes (http-01, RFC 8555 8.3) are answered by the
# edge, and nothing else is.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Path qw(make_path remove_tree);
use File::Temp;
use POSIX qw(mkfifo);
use Test::More;
use Sirius::Test;

$Sirius::Test::Client::TLS = 0;    # each client here says itself what it speaks
my $dir = File::Temp->newdir;
chmod 0755, "$dir";
my $root  = "$dir/webroot";
my $below = "$root/.well-known/acme-challenge";
my $url   = '/.well-known/acme-challenge';
my $APP   = <<'APP';
sub {
    my $env = shift;
    if ( $env->{PATH_INFO} eq '/wait' ) { select undef, undef, undef, 0.02 until -e $env->{QUERY_STRING} }
    return [ 200, [], ["app $env->{'psgi.url_scheme'} $env->{REQUEST_URI}"] ];
}
APP
mkdir $root or die $!;
my @BOTH = (
    qw(--listen 127.0.0.1:0 --listen),
    '127.0.0.1:0,tls', qw(--tls-self-signed --workers 1),
    '--acme-webroot',  $root
);

sub connect_to {
    my ( $server, $kind ) = @_;
    my ($address) = $server->log =~ m{listening on $kind://(127\.0\.0\.1:\d+)/};
    local $Sirius::Test::Client::TLS = $kind eq 'https' ? 1 : 0;
    return Sirius::Test::Client->new($address);
}

sub ask {
    my ( $server, @request ) = @_;
    return connect_to( $server, 'http' )->ask(@request);
}

# What certbot does, and undoes
sub put {
    my ( $token, $text ) = @_;
    make_path($below);
    return spew( "$below/$token", $text );
}

my $TOKEN  = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr_oA';
my $ANSWER = "$TOKEN.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI";
my $server = start_server(
    $APP, @BOTH, qw(--https-redirect=443 --access-log -),
    '--listen'            => "$dir/sock",
    '--access-log-format' => '%m %U %>s %b',
    '--static'            => "$url=$dir"
);

subtest 'a challenge' => sub {
    is ask( $server, "GET $url/$TOKEN" )->status, 404, 'before there is one, and not even the directory';
    put( $TOKEN, $ANSWER );
    my $client = connect_to( $server, 'http' );
    my $answer = $client->ask("GET $url/$TOKEN");
    is $answer->status,                               200,            'found, and not redirected';
    is $answer->body,                                 $ANSWER,        'its content';
    is $answer->header('Content-Type'),               'text/plain',   'its type';
    is $answer->header('Content-Length'),             length $ANSWER, 'its length';
    is $answer->header('Vary'),                       undef,          'it does not vary';
    is $client->ask("GET $url/$TOKEN?x=y")->body,     $ANSWER,        'with a query';
    is $client->ask("GET http://a$url/$TOKEN")->body, $ANSWER,        'with a URL';
    my $head = $client->ask("HEAD $url/$TOKEN");
    is $head->status . ' ' . $head->header('Content-Length'), '200 ' . length $ANSWER, 'HEAD';
    my $post = $client->ask( "POST $url/$TOKEN", \'x' );
    is $post->status . ' ' . $post->header('Allow'), '405 GET, HEAD', 'POST';
    is ask( $server, "GET $url/$TOKEN HTTP/1.0" )->body, $ANSWER,           'HTTP/1.0, without a Host';
    is ask( $server, 'GET /other' )->header('Location'), 'https://a/other', 'other paths are redirected';
    is ask( $server, 'GET /.well-known/security.txt' )->header('Location'),
        'https://a/.well-known/security.txt',
        'others of .well-known, too';
    is ask( $server, "GET ${url}s/$TOKEN" )->header('Location'), "https://a${url}s/$TOKEN",
        'and others like it';
    is( Sirius::Test::Client->new("unix:$dir/sock")->ask("GET $url/$TOKEN")->body,
        $ANSWER, 'on a unix socket' );
};

subtest 'directories come and go, as with certbot' => sub {
    for my $round ( 1 .. 3 ) {
        remove_tree("$root/.well-known");
        is ask( $server, "GET $url/$TOKEN" )->status, 404, 'removed';
        put( "round-$round", $round );
        is ask( $server, "GET $url/round-$round" )->body, $round, 'made again';
    }
    put( $TOKEN, $ANSWER );
};

subtest 'nothing else' => sub {
    spew( "$root/secret",             'SECRET' );
    spew( "$root/.well-known/secret", 'SECRET' );
    spew( "$dir/secret",              'SECRET' );
    spew( "$below/.hidden",           'SECRET' );
    spew( "$below/a.txt",             'SECRET' );
    spew( "$below/index.html",        'SECRET' );
    spew( "$below/a b",               'SECRET' );
    spew( "$below/a~",                'SECRET' );
    spew( "$below/\xc3\xa4",          'SECRET' );
    put( 'compressed', 'identity' );
    spew( "$below/compressed.gz", 'SECRET' );
    mkdir "$below/folder" or die $!;
    spew( "$below/folder/token", 'SECRET' );
    symlink "$dir/secret", "$below/out"  or die $!;
    symlink '../secret',   "$below/up"   or die $!;
    symlink $TOKEN,        "$below/link" or die $!;
    symlink '/proc/self',  "$below/proc" or die $!;
    mkfifo( "$below/fifo", 0666 ) or die $!;
    my @paths = (
        q(),
        '/',
        '//',
        "/$TOKEN/",
        "//$TOKEN",
        "/$TOKEN/x",
        '/missing',
        '/' . 'x' x 300,
        '/' . 'x' x 5000,
        qw(/folder /folder/ /folder/token /.hidden /a.txt /index.html /a%20b /a~ /out /up /link /proc /proc/environ /fifo),
        qw(/. /.. /../secret /../../secret /%2e%2e/secret /..%2fsecret /..%5csecret /%2e%2e%2f%2e%2e%2fsecret /%c3%a4),
        "/\xc3\xa4",
        '/compressed.gz',
        '/%252e%252e/secret',
        "/folder/../$TOKEN",
        "/./$TOKEN",
        "/$TOKEN%2e",
        "/$TOKEN;x",
    );

    for my $path (@paths) {
        my $answer = ask( $server, "GET $url$path" );
        is $answer->status, 404, substr $path, 0, 40;
        unlike $answer->body, qr/SECRET|token/, 'nothing of it';
    }
    is ask( $server, "GET $url/%00" )->status, 400, 'an encoded NUL';
    is ask( $server, "GET $url/compressed", 'Accept-Encoding: gzip' )->body, 'identity', 'nothing compressed';
};

subtest 'over TLS it is none' => sub {
    local $Sirius::Test::Client::TLS = 1;
    is connect_to( $server, 'https' )->ask("GET $url/$TOKEN")->status, 404, 'but for --static';
};

subtest 'while all workers are busy' => sub {
    local $Sirius::Test::Client::TLS = 1;
    my $busy = connect_to( $server, 'https' );
    $busy->send( request("GET /wait?$dir/go") );
    local $Sirius::Test::Client::TLS = 0;
    is ask( $server, "GET $url/$TOKEN" )->body, $ANSWER, "request $_" for 1 .. 3;
    spew( "$dir/go", '' );
    local $Sirius::Test::Client::TLS = 1;
    is $busy->response->body, "app https /wait?$dir/go", 'and the worker goes on';
};

my $length = length $ANSWER;
ok until_true( 10, sub { $server->output =~ m{^GET $url/$TOKEN 200 $length$}m } ), 'the access log has it'
    or diag $server->output;
$server->stop;

subtest 'without a redirect, and with --workers 0' => sub {
    for my $workers ( 0, 1 ) {
        my $other
            = start_server( $APP, qw(--listen 127.0.0.1:0 --workers), $workers, '--acme-webroot', $root );
        is ask( $other, "GET $url/$TOKEN" )->body, $ANSWER,       "--workers $workers: a challenge";
        is ask( $other, 'GET /x' )->body,          'app http /x', 'the rest is the application\'s';
        $other->stop;
    }
};

subtest 'a reload' => sub {
    make_path( "$dir/new/.well-known/acme-challenge", "$dir/old" );
    spew( "$dir/new/.well-known/acme-challenge/one", 'new' );
    symlink 'old', "$dir/current" or die $!;
    my $other = start_server( $APP, qw(--listen 127.0.0.1:0 --workers 1 --acme-webroot), "$dir/current" );
    is ask( $other, "GET $url/one" )->status, 404, 'a link';
    symlink 'new', "$dir/next" or die $!;
    rename "$dir/next", "$dir/current" or die $!;
    $other->signal('HUP');
    ok until_true( 20, sub { ask( $other, "GET $url/one" )->body eq 'new' } ), 'to another directory'
        or diag $other->log;
    unlink "$dir/current";
    $other->signal('HUP');
    ok $other->wait_log( qr/--acme-webroot: '\Q$dir\E\/current' is not a directory/, 20 ),
        'to none: an error';
    is ask( $other, "GET $url/one" )->body, 'new', 'and nothing changes';
    $other->stop;
};

subtest 'a directory that is not there, or not open' => sub {
    my $none = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ '--listen', '127.0.0.1:0', '--acme-webroot', "$dir/none" ]
    );
    is $none->wait_exit, 'exit 2',                                                   'exit 2';
    is $none->log,       "sirius: --acme-webroot: '$dir/none' is not a directory\n", 'which is named';
    return if $>;
    mkdir "$dir/closed", 0700 or die $!;
    my $closed = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ '--listen', '127.0.0.1:0', '--acme-webroot', "$dir/closed", qw(--user nobody) ]
    );
    like $closed->wait_exit, qr/\Aexit [12]\z/, 'one that the user may not enter: an error, too';
    like $closed->log, qr{--acme-webroot: cannot open \Q$dir\E/closed: Permission denied}, 'which is named';
};

done_testing;
