use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use File::Temp;
use Sirius::Test;

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

subtest 'what a proxy does is refused' => sub {
    for my $args ( ['--enable-ssl'], [ '--ssl-cert', 'x' ], ['--ssl-key=x'], [ '--listen', ':443:ssl' ] ) {
        my ( $how, $said ) = run_once( app => $APP, args => $args );
        is $how, 'exit 2', "@$args: exit 2";
        like $said, qr/\Asirius: --(?:ssl|listen)[^\n]*: Sirius speaks HTTP only[^\n]*\n\z/, 'one line';
    }
};

subtest '--help and --version' => sub {
    my ( $how, $said ) = run_once( args => [ '--help', '--port=0' ] );
    is $how, 'exit 0', '--help';
    like $said, qr/--workers/, 'lists the options';
    ( $how, $said ) = run_once( args => [ '--version', '--port=0' ] );
    is $how, 'exit 0', '--version';
    like $said, qr/\d+\.\d+/, 'says it';
};

my $lib = "$dir/lib";
mkdir $lib or die "$lib: $!";
spew( "$lib/OptionTest.pm",
    "package OptionTest;\nsub app { sub { [ 200, [], [ 'from a module' ] ] } }\n1;\n" );

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
