use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Fcntl qw(F_WRLCK);
use File::Temp;
use Sirius::Test;

# --static: errors at the start, reloads, and what becomes of a directory that is replaced or gone

my $ROOT = $Sirius::Test::Server::ROOT;
my $APP  = "sub { [ 200, [], ['app'] ] }\n";

sub dir {
    my ( $content, $dir ) = @_;
    mkdir $dir or die "$dir: $!";
    spew( "$dir/a.txt", $content );
    return $dir;
}

# One whose edge is killed on purpose
sub mortal {
    return Sirius::Test::Server->start(
        app       => $APP,
        args      => [ qw(--workers 1 --static), @_ ],
        may_crash => 1
    );
}

sub body { return shift->ask('GET /assets/a.txt')->body }

subtest 'wrong values' => sub {
    my $dir = File::Temp->newdir;
    spew( "$dir/file", '' );
    my @wrong = (
        [   "/assets=$dir/none" =>
                qr/\Asirius: --static \/assets: cannot open '\Q$dir\E\/none': No such file or directory\n\z/
        ],
        [ "/assets=$dir/file" => qr/\Asirius: --static \/assets: '\Q$dir\E\/file' is not a directory\n\z/ ],
        [   "assets=$dir" =>
                qr/\Asirius: --static: the prefix 'assets' does not begin with a slash: did you mean \/assets\?\n\z/
        ],
        [   "/assets=$dir,fast" =>
                qr/\Asirius: --static: 'fast' is not an option of a directory: use charset, /
        ],
    );
    for my $case (@wrong) {
        my ( $value, $want ) = @$case;
        my $server = Sirius::Test::Server->spawn( app => $APP, args => [ '--static', $value ] );
        ok $server->wait_exit(20), $value =~ s/\Q$dir\E/DIR/r;
        is $server->exited, 'exit 2', 'status 2';
        like $server->log, $want, 'one line';
    }
    my $twice = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ '--static', "/a=$dir", '--static', "/a/=$dir" ]
    );
    ok $twice->wait_exit(20), 'a prefix twice';
    like $twice->log, qr/\Asirius: --static: the prefix '\/a' is given twice\n\z/, 'is told';
};

subtest 'a directory that the user may not open' => sub {
    my $dir = File::Temp->newdir;
    dir( 'file', "$dir/closed" );
    chmod oct 755,          "$dir"        or die "chmod: $!";
    chmod $> ? 0 : oct 700, "$dir/closed" or die "chmod: $!";
    my @args   = ( $> ? () : qw(--user nobody), qw(--workers 1 --static), "/assets=$dir/closed" );
    my $server = Sirius::Test::Server->spawn( app => $APP, args => [@args] );
    ok $server->wait_exit(20), 'the server does not start';
    like $server->log, qr/--static \/assets: cannot open '?\Q$dir\E\/closed'?: Permission denied/,
        'the log says why';
    chmod oct 755, "$dir/closed" or die "chmod: $!";
    $server = start_server( $APP, @args );
    is body($server), 'file', 'one that it may';
    chmod $> ? 0 : oct 600, "$dir/closed/a.txt" or die "chmod: $!";
    is $server->ask('GET /assets/a.txt')->status, 403, 'a file that it may not read';
    $server->stop;
};

subtest 'reload' => sub {
    my $dir    = File::Temp->newdir;
    my $config = spew( "$dir/sirius.conf", "static = /assets=" . dir( 'one', "$dir/one" ) . "\n" );
    my $server = start_server( $APP, qw(--workers 1 --config), $config );
    my $client = $server->connect;
    my $reload = sub {
        my $generation = shift;
        $server->signal('HUP');
        ok $server->wait_log( qr/generation $generation is serving$/m, 30 ), "reload $generation";
    };
    is $client->ask('GET /assets/a.txt')->body, 'one', 'a directory';
    spew( $config, "static = /assets=" . dir( 'two', "$dir/two" ) . "\nstatic = /more=$dir/one,immutable\n" );
    $reload->(2);
    ok until_true( 30, sub { body($server) eq 'two' } ), 'another one after a reload';
    until_true( 30, sub { 1 == ( () = $server->edges ) } );    # the connection has moved to the new one
    is $client->ask('GET /assets/a.txt')->body, 'two', 'on the same connection';
    is $client->ask('GET /more/a.txt')->header('Cache-Control'), 'public, max-age=31536000, immutable',
        'and one more';
    spew( $config, "static = /assets=$dir/none\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/cannot open '\Q$dir\E\/none': No such file/, 30 ),
        'a directory that is not there';
    is $client->ask('GET /assets/a.txt')->body, 'two', 'changes nothing';
    spew( $config, "workers = 1\n" );
    $reload->(4);
    ok until_true( 30, sub { body($server) eq 'app' } ), 'no directory any more';
    $server->stop;
};

subtest 'a link to the newest release' => sub {
    my $dir = File::Temp->newdir;
    dir( "one", "$dir/one" );
    dir( "two", "$dir/two" );
    symlink 'one', "$dir/current" or die "symlink: $!";
    my $server = mortal("/assets=$dir/current");
    my ($edge) = $server->edges;
    is body($server), 'one', 'the first';
    unlink "$dir/current";
    symlink 'two', "$dir/current" or die "symlink: $!";
    is body($server), 'one', 'the same until a reload';
    kill KILL => $edge;
    ok until_true( 30, sub { ( $server->edges )[0] // $edge != $edge } ),
        'and in an edge that had to be restarted';
    ok until_true(
        10,
        sub {
            ( eval { body($server) } // '' ) eq 'one';
        }
        ),
        'as well';
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 30 ), 'a reload';
    ok until_true( 30, sub { body($server) eq 'two' } ),       'brings the second';
    rename "$dir/two", "$dir/three" or die "rename: $!";
    dir( 'new', "$dir/two" );
    is body($server), 'two', 'a directory that was replaced is the same until a reload';
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 3 is serving$/m, 30 ), 'a reload';
    ok until_true( 30, sub { body($server) eq 'new' } ),       'brings the new one';
    $server->stop;
};

subtest 'a directory that is gone when an edge is restarted' => sub {
    my $dir = File::Temp->newdir;
    dir( 'file', "$dir/public" );
    my $server = mortal("/assets=$dir/public");
    my ($edge) = $server->edges;
    rename "$dir/public", "$dir/away" or die "rename: $!";
    kill KILL => $edge;
    ok until_true( 30, sub { my ($now) = $server->edges; $now && $now != $edge } ), 'the edge is restarted';
    ok until_true(
        10,
        sub {
            eval { $server->ask('GET /')->body } // '' eq 'app';
        }
        ),
        'the application is served';
    is $server->ask('GET /assets/a.txt')->status, 404, 'the files are not there';
    like $server->log, qr/error: --static \/assets: cannot open \Q$dir\E\/public: No such file or directory/,
        'as the log says';
    rename "$dir/away", "$dir/public" or die "rename: $!";
    is body($server), 'file', 'and are when the directory is back';
    $server->stop;
};

subtest 'ways to start' => sub {
    my $dir = File::Temp->newdir;
    dir( 'file', "$dir/public" );
    my $single = start_server( $APP, qw(--workers 0 --static), "/assets=$dir/public" );
    is body($single),               'file', '--workers 0';
    is $single->ask('GET /')->body, 'app',  'beside the application';
    $single->stop;
    my $edges = start_server( $APP, qw(--workers 2 --edges 2 --static), "/assets=$dir/public" );
    is body($edges), 'file', "--edges 2: $_" for 1 .. 6;
    $edges->stop;
    my $chdir = start_server( $APP, qw(--workers 1 --static /assets=public --chdir), "$dir" );
    is body($chdir), 'file', 'relative to --chdir';
    $chdir->stop;
    local $ENV{SIRIUS_STATIC} = "/assets=$dir/public,immutable /other=$dir/public";
    my $env = start_server( $APP, qw(--workers 1) );
    is body($env),                          'file', 'SIRIUS_STATIC';
    is $env->ask('GET /other/a.txt')->body, 'file', 'with two of them';
    $env->stop;
    delete $ENV{SIRIUS_STATIC};
    my $plackup = Sirius::Test::Server->start(
        app     => $APP,
        args    => [ '--workers', 1, '--static', "/assets=$dir/public" ],
        command => [ $^X, "-Mblib=$ROOT/blib", '-S', 'plackup', qw(-s Sirius -E deployment) ]
    );
    is body($plackup), 'file', 'plackup';
    $plackup->stop;
};

subtest 'access log and counters' => sub {
    my $dir = File::Temp->newdir;
    dir( 'file', "$dir/public" );
    spew( "$dir/public/big.bin", 'x' x 3_000_000 );
    my $log    = "$dir/access.log";
    my $format = '%m %U %q %s %B %{Content-Type}o %{ETag}o %{User-Agent}i %{queue}D %{app}D %X %H';
    my $server = start_server( $APP, qw(--workers 1 --admin 127.0.0.1:0 --static),
        "/assets=$dir/public", '--access-log', $log, '--access-log-format', $format );
    my $client = $server->connect;
    my $answer = $client->ask( 'GET /assets/a%2etxt?x=1', 'User-Agent: me' );
    my $tag    = $answer->header('ETag');
    $client->ask( 'GET /assets/a.txt', 'If-None-Match: ' . $answer->header('ETag') );
    $client->ask('HEAD /assets/a.txt');
    $client->ask('GET /assets/none');
    $client->send( request('GET /assets/a.txt') . request('GET /assets/big.bin') );
    $client->responses(2);
    my $reader = $server->connect( rcvbuf => 4096 );
    $reader->send( request('GET /assets/big.bin') );
    $reader->some(1);
    $reader->abort;
    my $lines = sub { return split /\n/, Sirius::Test::Server::slurp($log) };
    ok until_true( 30, sub { $lines->() == 7 } ), 'seven lines';
    my $text = 'text/plain; charset=utf-8';
    my @got  = $lines->();
    is $got[0], "GET /assets/a.txt ?x=1 200 4 $text $tag me - - + HTTP/1.1", 'a file';
    is $got[1], "GET /assets/a.txt  304 0 - $tag - - - + HTTP/1.1",          'one that the client has';
    is $got[2], "HEAD /assets/a.txt  200 0 $text $tag - - - + HTTP/1.1",     'HEAD';
    is $got[3], 'GET /assets/none  404 14 text/plain - - - - + HTTP/1.1',    'one that is not there';
    is $got[4], "GET /assets/a.txt  200 4 $text $tag - - - + HTTP/1.1",      'pipelined';
    like $got[5], qr/\AGET \/assets\/big.bin  200 3000000 application\/octet-stream "?\S+ - - - \+ /,
        'a large one';
    like $got[6], qr/\AGET \/assets\/big.bin  200 \d+ \S+ \S+ - - - X /, 'one that was cut off';
    my ($admin) = $server->log =~ m{admin on http://([^/\s]+)/};
    my $metrics = $server->connect( to => $admin )->ask( 'GET /metrics', 'Host: localhost' )->body;
    like $metrics, qr/^sirius_static_requests_total 7$/m,          'they are counted';
    like $metrics, qr/^sirius_responses_total\{class="2xx"\} 5$/m, 'by their status';
    like $metrics, qr/^sirius_responses_total\{class="3xx"\} 1$/m, 'too';
    like $metrics, qr/^sirius_request_duration_seconds_count 0$/m, 'not among the times of the application';
    like $metrics, qr/^sirius_requests_refused_total\{reason="static-file"\} 0$/m, 'and not as refused';
    $server->stop;
};

subtest 'files that cannot be opened now' => sub {
    my $dir    = File::Temp->newdir;
    my $server = start_server(
        $APP,
        qw(--workers 1 --static),
        '/assets=' . dir( 'file', "$dir/public" ),
        '--static', "/pass=$dir/public,pass-through"
    );
    {
        local $SIG{IO} = 'IGNORE';    # the kernel asks for the lease by it
        open my $file, '+<', "$dir/public/a.txt" or die "a.txt: $!";
        fcntl $file, 1024, F_WRLCK or die "F_SETLEASE: $!";
        is $server->ask("GET /$_/a.txt")->status, 503, "a lease: /$_" for qw(assets pass);
    }
    is body($server), 'file', 'when it is given up';
    ok $server->wait_log( qr/503 because a file of --static could not be opened: Resource temp/, 10 ),
        'the log';

    $server->stop;
};

subtest 'no descriptor is left' => sub {
    linux_only('a limit that another process lowers');
    my $dir = File::Temp->newdir;
    dir( 'file', "$dir/public" );
    my $server = start_server( $APP, qw(--workers 1 --static), "/assets=$dir/public" );
    my $client = $server->connect;
    is $client->ask('GET /assets/a.txt')->body, 'file', 'with descriptors';
    my ($edge) = $server->edges;
    is system( 'prlimit', '--pid', $edge, '--nofile=4:' ), 0,   'and without';
    is $client->ask('GET /assets/a.txt')->status,          503, 'not now';
    ok $server->wait_log( qr/1 request was answered with 503 because no descriptor was free: Too many/, 10 ),
        'the log';
    unlike $server->log, qr/new connections must wait/, 'says nothing of connections';
    $server->stop;
};

subtest 'stop' => sub {
    my $dir = File::Temp->newdir;
    dir( 'file', "$dir/public" );
    spew( "$dir/public/big.bin", 'x' x 20_000_000 );
    my $server = start_server( $APP, qw(--workers 1 --static), "/assets=$dir/public" );
    my $reader = $server->connect( rcvbuf => 8192 );
    $reader->send( request('GET /assets/big.bin') );
    my $idle = $server->connect;
    $idle->ask('GET /assets/a.txt');
    $server->signal('TERM');
    ok until_true( 30, sub { $server->log =~ /TERM/ } ), 'TERM';
    my $last = $idle->ask('GET /assets/a.txt');
    is $last->body, 'file', 'a file is sent';
    ok $last->closes, 'with close';
    is length $reader->response( patience => 30 )->body, 20_000_000, 'what was begun is sent to its end';
    ok $server->wait_exit(30), 'and the server ends';
};

done_testing;
