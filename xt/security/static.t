use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use POSIX  qw(mkfifo);
use Socket qw(AF_UNIX SOCK_STREAM pack_sockaddr_un);
use Sirius::Test;
use Sirius::Test::Confine;

# --static: whatever the path is, nothing is served but regular files of the directory, by openat2 and without
# it

my $dir    = File::Temp->newdir;
my $public = "$dir/public";
mkdir $_ or die "$_: $!" for $public, "$dir/public2", map {"$public/$_"} qw(.git sub dir.txt);
my %file = (
    'public/a.txt'           => 'file',
    'public/sub/b.txt'       => 'file',
    'public/sp ace.txt'      => 'file',
    "public/\xc3\xbc.txt"    => 'file',
    'public/a..b'            => 'file',
    'public/.hidden'         => 'SECRET',
    'public/.git/config'     => 'SECRET',
    'public/sub/.env'        => 'SECRET',
    'public/back\\slash.txt' => 'SECRET',
    "public/control\x01.txt" => 'SECRET',
    'public2/a.txt'          => 'SECRET',
    'secret.txt'             => 'SECRET',
);
spew( "$dir/$_", $file{$_} ) for keys %file;
my %link = (
    'link.txt'   => 'a.txt',
    'linked'     => 'sub',
    'out.txt'    => '../secret.txt',
    'outdir'     => '..',
    'absolute'   => "$dir/secret.txt",
    'inside'     => "$public/a.txt",
    'sub/up.txt' => '../../secret.txt',
    'magic'      => '/proc/self/root',
    'loop'       => 'loop',
);
symlink $link{$_}, "$public/$_" or die "$_: $!" for keys %link;
mkfifo( "$public/fifo", oct 600 ) or die "mkfifo: $!";
socket my $socket, AF_UNIX, SOCK_STREAM, 0 or die "socket: $!";
bind $socket, pack_sockaddr_un("$public/sock") or die "bind: $!";

# path below /assets => what comes: "file", a status, or "app"
my @TABLE = (
    [ '/a.txt'                               => 'file' ],
    [ '/%61%2etxt'                           => 'file' ],
    [ '/sub/b.txt'                           => 'file' ],
    [ '/sp%20ace.txt'                        => 'file' ],
    [ '/%C3%bc.txt'                          => 'file' ],
    [ "/\xc3\xbc.txt"                        => 'file' ],
    [ '/a..b'                                => 'file' ],
    [ '/a.txt?/../../secret.txt'             => 'file' ],
    [ ''                                     => 404 ],
    [ '/'                                    => 404 ],
    [ '/sub'                                 => 404 ],
    [ '/sub/'                                => 404 ],
    [ '/dir.txt'                             => 404 ],
    [ '/a.txt/'                              => 404 ],
    [ '/a.txt/x'                             => 404 ],
    [ '/.'                                   => 404 ],
    [ '/..'                                  => 404 ],
    [ '/...'                                 => 404 ],
    [ '/./a.txt'                             => 404 ],
    [ '/sub/./b.txt'                         => 404 ],
    [ '/sub/../a.txt'                        => 404 ],
    [ '/../secret.txt'                       => 404 ],
    [ '/../public2/a.txt'                    => 404 ],
    [ '/../public/a.txt'                     => 404 ],
    [ '/../../../../../../../../etc/passwd'  => 404 ],
    [ '/a.txt/../../secret.txt'              => 404 ],
    [ '/sub/../../secret.txt'                => 404 ],
    [ '/.../secret.txt'                      => 404 ],
    [ '/....//secret.txt'                    => 404 ],
    [ '/%2e%2e/secret.txt'                   => 404 ],
    [ '/%2E./secret.txt'                     => 404 ],
    [ '/.%2e/secret.txt'                     => 404 ],
    [ '/..%2fsecret.txt'                     => 404 ],
    [ '/%2e%2e%2fsecret.txt'                 => 404 ],
    [ '/sub%2F..%2F..%2Fsecret.txt'          => 404 ],
    [ '/sub%2fb.txt'                         => 404 ],
    [ '/..%5csecret.txt'                     => 404 ],
    [ '/..%5C..%5Csecret.txt'                => 404 ],
    [ '/back%5cslash.txt'                    => 404 ],
    [ '/..\\secret.txt'                      => 400 ],
    [ '/back\\slash.txt'                     => 400 ],
    [ '/%252e%252e/secret.txt'               => 404 ],
    [ '/%252e%252e%252fsecret.txt'           => 404 ],
    [ '/..%252fsecret.txt'                   => 404 ],
    [ '/%25%32%65%25%32%65/secret.txt'       => 404 ],
    [ '/%c0%ae%c0%ae/secret.txt'             => 404 ],
    [ '/%c0%ae%c0%ae%c0%afsecret.txt'        => 404 ],
    [ '/..%c0%afsecret.txt'                  => 404 ],
    [ '/..%c1%9csecret.txt'                  => 404 ],
    [ '/%e0%80%ae%e0%80%ae/secret.txt'       => 404 ],
    [ '/%f0%80%80%ae%f0%80%80%ae/secret.txt' => 404 ],
    [ '/%ef%bc%8e%ef%bc%8e/secret.txt'       => 404 ],
    [ '/%uff0e%uff0e/secret.txt'             => 400 ],
    [ '/%2'                                  => 400 ],
    [ '/a.txt%'                              => 400 ],
    [ '/%zz'                                 => 400 ],
    [ '//a.txt'                              => 404 ],
    [ '/sub//b.txt'                          => 404 ],
    [ '//etc/passwd'                         => 404 ],
    [ '///etc/passwd'                        => 404 ],
    [ '/%2fetc/passwd'                       => 404 ],
    [ '/%2Fetc%2Fpasswd'                     => 404 ],
    [ '/.hidden'                             => 404 ],
    [ '/%2ehidden'                           => 404 ],
    [ '/.git/config'                         => 404 ],
    [ '/%2egit/config'                       => 404 ],
    [ '/sub/.env'                            => 404 ],
    [ '/sub/%2Eenv'                          => 404 ],
    [ '/a.txt%00'                            => 400 ],
    [ '/a.txt%00.png'                        => 400 ],
    [ '/..%00/secret.txt'                    => 400 ],
    [ '/a.txt%0d%0aX-A:%201'                 => 400 ],
    [ '/a.txt%0a'                            => 400 ],
    [ '/a.txt%09'                            => 404 ],
    [ '/control%01.txt'                      => 404 ],
    [ '/a.txt%7f'                            => 404 ],
    [ '/a.txt%20'                            => 404 ],
    [ '/a.txt.'                              => 404 ],
    [ '/a.txt%2e'                            => 404 ],
    [ '/A.TXT'                               => 404 ],
    [ '/a.txt::$DATA'                        => 404 ],
    [ '/a.txt;/../../secret.txt'             => 404 ],
    [ '/a.txt%3f'                            => 404 ],
    [ '/a.txt%23'                            => 404 ],
    [ '/C:/secret.txt'                       => 404 ],
    [ '/~root/'                              => 404 ],
    [ '/link.txt'                            => 404 ],
    [ '/linked/b.txt'                        => 404 ],
    [ '/inside'                              => 404 ],
    [ '/out.txt'                             => 404 ],
    [ '/outdir/secret.txt'                   => 404 ],
    [ '/absolute'                            => 404 ],
    [ '/sub/up.txt'                          => 404 ],
    [ '/magic/etc/passwd'                    => 404 ],
    [ '/loop'                                => 404 ],
    [ '/fifo'                                => 404 ],
    [ '/sock'                                => 404 ],
    [ '/' . 'x' x 256                        => 404 ],
    [ '/' . 'x' x 5000                       => 404 ],
    [ '/' . 'sub/' x 1200 . 'b.txt'          => 404 ],
    [ '/sub/' . '../' x 300 . 'etc/passwd'   => 404 ],
);

# Whole paths that are not below the prefix, and what the application says
my @OTHERS = (
    '/assetsx/a.txt',  '/assets2/a.txt',  '/ASSETS/a.txt',      '/asset',
    '//assets/a.txt',  '/./assets/a.txt', '/x/../assets/a.txt', '/assets%2fa.txt',
    '/assets%5ca.txt', '/assets.',        '/public/a.txt',      '/..;/assets/a.txt',
);

sub answer {
    my ( $client, $path, @field ) = @_;
    my $answer = $client->ask( "GET $path", @field );
    my $what   = $answer->status eq '200' ? $answer->body : $answer->status;
    $what = 'SECRET' if $answer->body =~ /SECRET|root:/;
    return $what;
}

sub judge {
    my ( $server, $name, %links ) = @_;
    my $client = $server->connect;
    my $ask    = sub {
        my $what = answer( $client, @_ );
        $client = $server->connect if $what eq '400';    # which closes
        return $what;
    };
    my @wrong;
    for my $case (@TABLE) {
        my ( $path, $want ) = @$case;
        my $got = $ask->("/assets$path");
        push @wrong, "/assets$path: $got instead of $want" if $got ne $want;
        my $passed = $ask->("/pass$path");
        $want = 'app' if $want eq '404';
        push @wrong, "/pass$path: $passed instead of $want" if $passed ne $want;
        next if length $path > 1000;
        my $absolute = $ask->("http://a/assets$path");
        push @wrong, "http://a/assets$path: $absolute instead of $case->[1]" if $absolute ne $case->[1];
    }
    for my $path (@OTHERS) {
        my $got = $ask->($path);
        push @wrong, "$path: $got" if $got ne 'app';
    }
    is join( "\n", @wrong ), '',         "$name: " . @TABLE . ' paths below, ' . @OTHERS . ' beside';
    is $ask->("/links/$_"),  $links{$_}, "$name: follow-links: $_" for sort keys %links;
    return;
}

my $APP  = "sub { [ 200, [], ['app'] ] }\n";
my @args = (
    qw(--workers 1 --static), "/assets=$public",
    '--static',               "/pass=$public,pass-through",
    '--static',               "/links=$public,follow-links",
    '--static',               "/all=$public,follow-links=all",
);
my %LINKS = (
    'link.txt'          => 'file',
    'linked/b.txt'      => 'file',
    'inside'            => 404,      # an absolute link leads outside first
    'out.txt'           => 404,
    'outdir/secret.txt' => 404,
    'absolute'          => 404,
    'sub/up.txt'        => 404,
    'magic/etc/passwd'  => 404,
    'loop'              => 404,
    '.hidden'           => 404,
    '../secret.txt'     => 404,
);

subtest 'with openat2' => sub {
    my $server = start_server( $APP, @args );
    my $whole  = answer( $server->connect, '/links/link.txt' ) eq 'file';
    note 'this kernel has no openat2' if !$whole;
    judge( $server, 'openat2', $whole ? %LINKS : map { $_ => 404 } keys %LINKS );
    is answer( $server->connect, "/all/$_" ), $whole ? 'SECRET' : 404, "all links: $_"
        for qw(out.txt outdir/secret.txt absolute);
    is answer( $server->connect, "/all/$_" ), 404, "all links, but not $_"
        for qw(.hidden magic/etc/passwd ../secret.txt fifo);
    $server->stop;
};

for my $error (qw(ENOSYS EPERM)) {
    subtest "without openat2: $error" => sub {
        my $confine = Sirius::Test::Confine->without( $error => 'openat2' ) or plan skip_all => 'no seccomp';
        my $root    = $Sirius::Test::Server::ROOT;
        my $server  = Sirius::Test::Server->start(
            app     => $APP,
            args    => [@args],
            command => [ $confine->path, $^X, "$root/bin/sirius", qw(-E deployment) ]
        );
        judge( $server, $error, map { $_ => 404 } keys %LINKS );
        $server->stop;
    };
}

# A user who can write into the directory can't lead out of it by being quick
subtest 'directories that become links, and links that become directories' => sub {
    my $server = start_server( $APP, @args );
    mkdir "$public/$_" or die "$_: $!" for qw(flip flop);
    spew( "$public/$_/secret.txt", 'file' ) for qw(flip flop);
    symlink "$dir", "$public/flap" or die "flap: $!";
    my $pid = fork // die "fork: $!";
    if ( !$pid ) {
        for ( 1 .. 1_000_000 ) {
            rename "$public/flip",  "$public/spare";
            rename "$public/flap",  "$public/flip";
            rename "$public/flip",  "$public/flap";
            rename "$public/spare", "$public/flip";
        }
        POSIX::_exit(0);
    }
    my %got;
    my $client = $server->connect;
    $got{ answer( $client, '/assets/flip/secret.txt' ) }++,
        $got{ answer( $client, '/links/flip/secret.txt' ) }++
        for 1 .. 1000;
    kill KILL => $pid;
    waitpid $pid, 0;
    is $got{SECRET} || 0,                                        0,  'none of 2000 looks led outside';
    is join( ' ', grep { !/\A(?:file|404)\z/ } sort keys %got ), '', 'nor to anything else';
    ok $got{file}, "$got{file} found the file";
    $server->stop;
};

subtest 'a FIFO does not hold up the edge' => sub {
    my $server = start_server( $APP, @args );
    is answer( $server->connect, '/assets/fifo' ), 404,   'not served';
    is answer( $server->connect, '/' ),            'app', 'others are';
    $server->stop;
};

subtest 'files that the user may not read' => sub {
    spew( "$public/closed.txt", 'SECRET' );
    chmod 0, "$public/closed.txt" or die "chmod: $!";
    chmod oct 755, "$dir", $public or die "chmod: $!";
    my $server = start_server( $APP, @args, $> ? () : qw(--user nobody) );    # root may read all
    is answer( $server->connect, '/assets/closed.txt' ), 403, 'forbidden';
    is answer( $server->connect, '/pass/closed.txt' ),   403, 'nor passed through';
    $server->stop;
};

done_testing;
