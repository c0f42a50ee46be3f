use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Cwd ();
use File::Temp;
use Sirius::Config::Options;
use Sirius::Test;
use Sirius::Config::Usage;

# Options: those of plackup through bin/sirius and through plackup itself, and what happens to wrong ones

my $APP = "sub { [ 200, [ 'X-Path' => \$_[0]{PATH_INFO} ], [ \$_[0]{SCRIPT_NAME} ] ] }\n";

# Not --port 0: plackup takes that for 5000
my @LISTEN  = qw(--listen 127.0.0.1:0);
my $dir     = File::Temp->newdir;
my $plackup = program('plackup');

# Runs it until it ends by itself
sub run_once {
    my (%option) = @_;
    my $server = Sirius::Test::Server->spawn( %option, args => $option{args} );
    return ( $server->wait_exit || 'still running', $server->log . $server->output );
}

subtest 'a wrong option ends it with 2 and is named' => sub {
    my %wrong = (
        '--no-such-option' => [ 'x',    qr/no-such-option/ ],
        '--worker'         => [ 4,      qr/--worker\b.*--workers/ ],
        '--workers'        => [ 'many', qr/--workers/ ],
        '--max-body'       => [ '-5',   qr/--max-body/ ],
        '--header-timeout' => [ 'soon', qr/--header-timeout/ ],
        '--port'           => [ 99_999, qr/port/ ],
        '--bind'           => [ 'x',    qr/unknown option --bind \(did you mean --listen\?\)/ ],
        '--uid'            => [ 'x',    qr/unknown option --uid \(did you mean --user\?\)/ ],
        '--master'         => [ 1, qr/unknown option --master: not needed, as there is always a supervisor/ ],
        '--socket'         =>
            [ '127.0.0.1:3031', qr/'127\.0\.0\.1:3031' is an address,.* use --listen 127\.0\.0\.1:3031/ ],
        '--control'      => [ 'localhost:9', qr/'localhost:9' is an address, not the path of a unix socket/ ],
        '--max-lifetime' => [ '1w',          qr/'1w' is not a time: .* or 7d$/m ],
    );
    for my $option ( sort keys %wrong ) {
        my ( $value, $named ) = @{ $wrong{$option} };
        my ( $how, $said )
            = run_once( app => $APP, args => [ "$option=$value", $option eq '--port' ? () : qw(--port=0) ] );
        is $how, 'exit 2', "$option=$value: exit 2";
        like $said,   $named,               'it is named';
        unlike $said, qr/ at \S+ line \d+/, 'to a human';
        cmp_ok scalar( my @line = split /\n/, $said ), '<=', 3, 'in a few words';
    }
};

# What is in the limits of the table is in those of each program that gets it
subtest 'the greatest values, and the least' => sub {
    my %other = map  { $_ => 1 } qw(drain-delay edges max-servers min-reqs-per-child min-servers workers);
    my @rows  = grep { defined $_->{max} && !$other{ $_->{name} } } Sirius::Config::Options->rows;
    for my $end (qw(max min)) {
        my @args = map {
            "--$_->{name}="
                . ( $_->{type} eq 'bytes' ? Sirius::Config::Usage->bytes( $_->{$end} ) : $_->{$end} )
        } @rows;
        my $server = Sirius::Test::Server->start(
            app  => $APP,
            args => [ '--access-log', "$dir/access", '--workers', 1, @args ]
        );
        is $server->ask('GET /')->status, 200, 'the greatest: a page' if $end eq 'max';
        $server->stop;
    }
    my ( $how, $said ) = run_once( app => $APP, args => [qw(--port 0 --max-queue 50001)] );
    is $how,  'exit 2', 'more than there is room for';
    is $said, "sirius: --max-queue: 50001 is too large: the maximum is 50000\n", 'which it says';
};

subtest 'TLS without what it needs is refused' => sub {
    for my $args ( ['--enable-ssl'], [ '--ssl-cert', 'x' ], ['--ssl-key=x'], [ '--listen', ':443:ssl' ] ) {
        my ( $how, $said ) = run_once( app => $APP, args => $args );
        is $how, 'exit 2', "@$args: exit 2";
        like $said, qr/\Asirius: --(?:tls|listen|enable-ssl)[^\n]*(?: TLS|--tls-cert)[^\n]*\n\z/, 'one line';
    }
};

subtest '--help and --version' => sub {
    my ( $how, $said ) = run_once( args => [ '--help', '--port=0' ] );
    is $how, 'exit 0', '--help';
    like $said, qr/--max-header-fields/, 'lists the options';
    ( $how, $said ) = run_once( args => [ '-h', '--port=0' ] );
    is $how, 'exit 0', '-h';
    like $said,   qr/--workers.*sirius --help lists all/s, 'lists some of them';
    unlike $said, qr/--max-header-fields/,                 'not all';
    ( $how, $said ) = run_once( args => [ '--version', '--port=0' ] );
    is $how, 'exit 0', '--version';
    like $said, qr/\d+\.\d+/, 'says it';
};

my $lib = "$dir/lib";
mkdir $lib or die "$lib: $!";
spew( "$lib/OptionTest.pm",
    "package OptionTest;\nsub app { sub { [ 200, [], [ 'from a module' ] ] } }\n1;\n" );

for my $folder (qw(one two)) {
    mkdir "$dir/$folder" or die "$dir/$folder: $!";
    spew( "$dir/$folder/name", $folder );
}

my %command = ( 'bin/sirius' => undef );
$command{'plackup -s Sirius'} = [ $^X, $plackup, '-s', 'Sirius', '-E', 'deployment' ] if $plackup;
for my $name ( sort keys %command ) {
    my @command = $command{$name} ? ( command => $command{$name} ) : ();
    subtest $name => sub {
        my %case = (
            'a file' => [ $APP,  [],                                             'GET /x', '' ],
            '-e'     => [ undef, [ '-e', 'sub { [ 200, [], [ "from -e" ] ] }' ], 'GET /',  'from -e' ],
            '-I -M'  =>
                [ undef, [ "-I$lib", '-MOptionTest', '-e', 'OptionTest::app()' ], 'GET /', 'from a module' ],
            '-E' => [
                undef, [ '-E', 'test', '-e', 'sub { [ 200, [], [ $ENV{PLACK_ENV} ] ] }' ], 'GET /', 'test'
            ],
            '--path'          => [ $APP,  [ '--path', '/mounted' ], 'GET /mounted/x', '/mounted' ],
            '-L Delayed'      => [ $APP,  [ '-L', 'Delayed' ],      'GET /x',         '' ],
            '-a'              => [ undef, [ '-a', write_app() ],    'GET /x',         '' ],
            'underscores'     => [ $APP,  [ '--max_body', '10', '--keepalive_timeout=5' ], 'GET /x', '' ],
            'no value in ='   => [ $APP,  [ '--disable-keepalive', '--workers=1' ],        'GET /x', '' ],
            'names of others' => [
                $APP,     [ '--max-workers=2', '--max-requests=1000', '--timeout=20', '--preload-app=1' ],
                'GET /x', ''
            ],
            'more of them' => [
                $APP,
                [   '--min-servers=1',          '--max-servers=2',
                    '--disable-proctitle',      '--no-keepalive=1',
                    '--net-server-log_level=4', '--max-spare-servers=2'
                ],
                'GET /x', ''
            ],
            'repeated, the first' =>
                [ $APP, [ '--static', "/1=$dir/one", '--static', "/2=$dir/two" ], 'GET /1/name', 'one' ],
            'repeated, the last' =>
                [ $APP, [ '--static', "/1=$dir/one", '--static', "/2=$dir/two" ], 'GET /2/name', 'two' ],
            '-L Shotgun' => [ undef, [ '-L', 'Shotgun', write_app() ], 'GET /x', '' ],
        );
        for my $case ( sort keys %case ) {
            my ( $app, $args, $ask, $want ) = @{ $case{$case} };
            my $server
                = eval { Sirius::Test::Server->start( app => $app, args => [ @LISTEN, @$args ], @command ); };
            ok $server, "$case: starts" or diag($@), next;
            is $server->ask($ask)->body, $want, "$case: works";
            $server->stop;
        }
        my $log    = "$dir/access_log";
        my $server = Sirius::Test::Server->start(
            app  => $APP,
            args => [ @LISTEN, '--access-log', $log, '--workers', 1 ],
            @command
        );
        is $server->ask('GET /logged')->status, 200, '--access-log';
        ok until_true( 5, sub { Sirius::Test::Server::slurp($log) =~ m{GET /logged} } ), 'has the line';
        $server->stop;
        unlink $log;
    };
}

subtest 'an address without a port, or with a wrong one, is none' => sub {
    my $conf = spew( "$dir/listen.conf", "workers = 1\nlisten = 127.0.0.1\n" );
    my $here = qr/or unix:(\S+) or [.]\/\1 for a unix socket/;
    my @case = (
        [   qr/--listen: '127[.]0[.]0[.]1' has no port: write 127[.]0[.]0[.]1:5000, $here/, '--listen',
            '127.0.0.1'
        ],
        [   qr/--listen: '127[.]0[.]0[.]1:5000x': 5000x is not a port number: .*$here/, '-l',
            '127.0.0.1:5000x'
        ],
        [   qr/--listen: 'app[.]sock' has no port: .*unix:app[.]sock or [.]\/app[.]sock/, '--listen',
            'app.sock'
        ],
        [ qr/--listen: 'a' has no port/,                       '--listen', ':0', '--listen', 'a' ],
        [ qr/--listen: 'http:.*is a URL/,                      '--listen', 'http://127.0.0.1:0' ],
        [ qr/--admin: '127[.]0[.]0[.]1' has no port/,          qw(--port 0 --admin 127.0.0.1) ],
        [ qr/--admin: .*909O is not a port number/,            qw(--port 0 --admin 127.0.0.1:909O) ],
        [ qr/--host: '[.]\/a' is not a host/,                  qw(--host ./a --port 0) ],
        [ qr/--port: '5000x' is not a whole number/,           qw(--host 127.0.0.1 --port 5000x) ],
        [ qr/--path: 'shop' is not the path of a URL/,         qw(--path shop --port 0) ],
        [ qr/has no port.*\(from \S+listen[.]conf, line 2\)/,  '--config', $conf ],
        [ qr/'localhost' has no port.*\(from SIRIUS_LISTEN\)/, { SIRIUS_LISTEN => 'localhost' } ],
        [ qr/'::1' is not an address.*\(from SIRIUS_ADMIN\)/,  qw(--port 0), { SIRIUS_ADMIN => '::1' } ],
    );
    my $cwd = File::Temp->newdir;
    for my $command ( [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius" ], $command{'plackup -s Sirius'} || () )
    {
        for my $case (@case) {
            my ( $want, @args ) = @$case;
            my $env     = ref $args[-1] ? pop @args : {};
            my $plackup = grep {/plackup/} @$command;
            next
                if $plackup && "@args" =~ /--host|--path|--port 5000x/; # plackup puts them together by itself
            my ( $how, $said ) = run_once(
                app     => $APP,
                plain   => 1,
                env     => $env,
                command => [ 'sh', '-c', 'cd "$0" && exec "$@"', "$cwd", @$command ],
                args    => \@args
            );
            is $how, 'exit 2', ( $plackup ? 'plackup ' : 'sirius ' ) . join ' ', @args, %$env;
            like $said, qr/^sirius: .*$want/m, 'it says what to write';
        }
    }
    opendir my $dh, "$cwd" or die $!;
    is join( ' ', grep { !/\A[.]/ } readdir $dh ), '', 'no socket is made in the current directory';
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command =>
            [ 'sh', '-c', 'cd "$0" && exec "$@"', "$cwd", $^X, "$Sirius::Test::Server::ROOT/bin/sirius" ],
        args  => [qw(--workers 1 --listen ./a.sock --listen unix:b --socket c)],
        plain => 1,
    );
    is $server->connect( to => "unix:$cwd/$_" )->ask('GET /')->status, 200, "$_ is asked for"
        for qw(a.sock b c);
    $server->stop;
};

subtest 'variables that Kubernetes sets for a Service named sirius' => sub {
    my %env = (
        SIRIUS_PORT              => 'tcp://10.0.0.1:80',
        SIRIUS_PORT_80_TCP       => 'tcp://10.0.0.1:80',
        SIRIUS_PORT_80_TCP_ADDR  => '10.0.0.1',
        SIRIUS_PORT_80_TCP_PORT  => 80,
        SIRIUS_PORT_80_TCP_PROTO => 'tcp',
        SIRIUS_SERVICE_HOST      => '10.0.0.1',
        SIRIUS_SERVICE_PORT      => 80,
        SIRIUS_SERVICE_PORT_HTTP => 80,
    );
    my $server
        = Sirius::Test::Server->start( app => $APP, args => [ @LISTEN, qw(--workers 1) ], env => \%env );
    is $server->ask('GET /')->status, 200, 'it serves';
    my @said = grep {/SIRIUS_/} split /\n/, $server->log;
    is scalar @said, 1, 'one line';
    like $said[0], qr/SIRIUS_PORT and 7 more variables are ignored: Kubernetes/, 'says why';
    $server->stop;
    my ( $how, $said ) = run_once( app => $APP, plain => 1, env => { SIRIUS_PORT => 'abc' } );
    is $how, 'exit 2', 'a value that is wrong';
    like $said, qr/--port: 'abc' is not a whole number \(from SIRIUS_PORT\)/, 'is named';
};

subtest '--max-rss 300' => sub {
    my ( $how, $said ) = run_once( app => $APP, args => [ @LISTEN, qw(--max-rss 300) ] );
    is $how, 'exit 2', 'exit 2';
    is $said, "sirius: --max-rss: 300 means 300 bytes, less than any worker needs; did you mean 300m?\n",
        'it asks';
};

subtest '--chdir: the application is looked for there' => sub {
    my $top = File::Temp->newdir;
    mkdir "$top/$_" or die $! for qw(app app/lib else else/lib);
    my $text = 'use Cwd (); use Where; my $at = Cwd::getcwd(); my $where = Where->new;'
        . ' sub { [ 200, [], [ join q(|), NAME, $at, Cwd::getcwd(), $where, Where->new ] ] }' . "\n";
    for my $name (qw(app else)) {
        spew( "$top/$name/lib/Where.pm", "package Where; sub new { '$name' } 1;\n" );
        spew( "$top/$name/lib/Early.pm", "package Early; use Cwd (); \$main::early = Cwd::getcwd(); 1;\n" );
        spew( "$top/$name/$_",           $text =~ s/NAME/'$name'/r ) for 'app.psgi', 'other.psgi';
    }
    spew( "$top/else/s.conf", "chdir = ../app\napp = other.psgi\nI = lib\n" );
    my $app  = Cwd::realpath("$top/app");
    my $want = "app|$app|$app|app|app";
    my %case = (
        'an application'    => [qw(-I lib --chdir ../app other.psgi)],
        'app.psgi'          => [qw(-I lib --chdir ../app)],
        '-a'                => [qw(-I lib --chdir ../app -a app.psgi)],
        'the command first' => [qw(app.psgi -Ilib --chdir=../app)],
        'by absolute names' => [ '-I', "$app/lib", '--chdir', $app,     "$app/app.psgi" ],
        'from elsewhere'    => [ '-I', 'lib',      '--chdir', '../app', '../app/app.psgi' ],
        '--config'     => [qw(--config s.conf)],
        'SIRIUS_CHDIR' => [ {qw(SIRIUS_CHDIR ../app SIRIUS_INCLUDE lib)} ],
        'SIRIUS_APP'   => [ qw(-I lib --chdir ../app), { SIRIUS_APP => 'other.psgi' } ],
        '-L Delayed'   => [qw(-I lib --chdir ../app -L Delayed app.psgi)],
        '-M'           => [qw(-I lib -M Early --chdir ../app app.psgi)],
        '-e'           => [ '-I', 'lib', '--chdir', '../app', '-e', 'Plack::Util::load_psgi("./app.psgi")' ],
        '--workers 0'  => [qw(-I lib --chdir ../app --workers 0)],
        '--path'       => [qw(-I lib --chdir ../app --path /at)],
    );
    my @command
        = ( 'sh', '-c', 'cd "$0" && exec "$@"', "$top/else", $^X, "$Sirius::Test::Server::ROOT/bin/sirius" );
    for my $case ( sort keys %case ) {
        my @args   = @{ $case{$case} };
        my $env    = ref $args[-1] ? pop @args : {};
        my $server = eval {
            Sirius::Test::Server->start(
                command => \@command,
                plain   => 1,
                env     => $env,
                args    => [
                    @LISTEN,
                    qw(--listen ./rel.sock --pid ./pid),
                    ( grep { $_ eq '--workers' } @args ) ? () : qw(--workers 1), @args
                ],
                app => undef,
            );
        };
        ok $server, "$case: starts" or diag($@), next;
        my $path = $case eq '--path' ? '/at' : '/';
        is $server->connect( to => "unix:$top/else/rel.sock" )->ask("GET $path")->body, $want,
            'all of it is there';
        ok -s "$top/else/pid", 'files of other options are where the command was given';
        if ( $case =~ /an application|-L|config/ ) {
            spew( "$top/app/lib/Where.pm", "package Where; sub new { 'new' } 1;\n" );
            $server->signal('HUP');
            ok until_true(
                30,
                sub {
                    $server->connect( to => "unix:$top/else/rel.sock" )->ask('GET /')->body eq
                        "app|$app|$app|new|new";
                }
                ),
                'a reload finds it again'
                or diag $server->log;
            spew( "$top/app/lib/Where.pm", "package Where; sub new { 'app' } 1;\n" );
        }
        $server->stop;
    }
    my ( $how, $said )
        = run_once( command => \@command, plain => 1, args => [ @LISTEN, qw(--chdir ../app none.psgi) ] );
    is $how, 'exit 1', 'one that is not there';
    like $said, qr{/app/none[.]psgi}, 'is named as it was looked for';
};

subtest '-E development: Lint finds nothing' => sub {
    my $server = Sirius::Test::Server->start(
        app   => "sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['ok'] ] }\n",
        args  => [ '-E', 'development', '--workers', 1 ],
        ready => 0
    );
    ok $server->wait_log( qr/127\.0\.0\.1:(\d+)/, 10 ), 'it starts';
    my ($port) = $server->log =~ /127\.0\.0\.1:(\d+)/;
    is $server->connect( to => "127.0.0.1:$port" )->ask('GET /')->status, 200, 'it serves'
        or diag $server->log;
    $server->stop;
};

subtest '-r: a changed application is loaded' => sub {
    my $app    = write_app('sub { [ 200, [], ["one"] ] }');
    my $server = eval {
        Sirius::Test::Server->start(
            app  => $app,
            args => [ '-r', '--workers', 1, '--port', 0, '--host', '127.0.0.1' ]
        );
    };
    ok $server, 'starts' or diag($@), return;
    is $server->ask('GET /')->body, 'one', 'the first';
    sleep 1;
    write_app('sub { [ 200, [], ["two"] ] }');
    ok until_true(
        15,
        sub {
            my ($last) = reverse $server->listeners;
            eval { $server->connect( to => $last )->ask('GET /')->body eq 'two' }
        }
        ),
        'the second'
        or diag $server->log;
    $server->stop;
};

subtest 'Plack::Loader' => sub {
    my $server = Sirius::Test::Server->start(
        command => [
            $^X,  '-MPlack::Loader',
            '-e', 'Plack::Loader->load("Sirius", @ARGV)->run(sub { [ 200, [], ["loaded"] ] })'
        ],
        args  => [qw(host 127.0.0.1 port 0 workers 1)],
        ready => 1,
        app   => undef,
        plain => 1
    );
    is $server->ask('GET /')->body, 'loaded', 'serves';
    $server->stop;
};

sub write_app { return spew( "$dir/option.psgi", shift || $APP ) }

done_testing;
