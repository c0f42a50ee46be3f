use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# Options from the environment and from a file, through bin/sirius and through plackup

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };

my $dir     = File::Temp->newdir;
my $app     = spew( "$dir/app.psgi", "sub { [ 200, [], [ \$ENV{PLACK_ENV} ] ] }\n" );
my $plackup = program('plackup');
my %command = ( 'bin/sirius' => [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius" ] );
$command{'plackup -s Sirius'} = [ $^X, $plackup, qw(-s Sirius -E deployment) ] if $plackup;

# What a server says about itself
sub name { return shift->ask('GET /')->header('server') }

# Runs it until it ends by itself
sub run_once {
    my $server = Sirius::Test::Server->spawn( plain => 1, @_ );
    return ( $server->wait_exit || 'still running', $server->log . $server->output );
}

for my $name ( sort keys %command ) {
    my @command = ( command => $command{$name}, plain => 1 );
    subtest "$name: command line, environment, file" => sub {
        my $file = spew( "$dir/some.conf", <<'FILE');
# as operators write it
listen          = 127.0.0.1:0
workers         = 1   # for the test
server-software = "file"	#	and no other
max-body        = 3
FILE
        my @case = (
            [ 'file', {}, '--config', $file ],
            [ 'file', { SIRIUS_CONFIG => $file } ],
            [ 'env',  { SIRIUS_CONFIG => $file, SIRIUS_SERVER_SOFTWARE => 'env' } ],
            [ 'line', { SIRIUS_CONFIG => $file, SIRIUS_SERVER_SOFTWARE => 'env' }, '--server-software=line' ],
        );
        for my $case (@case) {
            my ( $want, $env, @args ) = @$case;
            my $server = Sirius::Test::Server->start( @command, app => $app, args => \@args, env => $env );
            is name($server), $want, "$want wins";
            is $server->ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")->status, 413,
                'and the rest of the file counts'
                if $want eq 'line';
            $server->stop;
        }
        my %env
            = ( SIRIUS_HOST => '127.0.0.1', SIRIUS_PORT => 0, SIRIUS_WORKERS => '2', SIRIUS_WROKERS => 3 );
        my $server = Sirius::Test::Server->start( @command, app => $app, env => \%env );
        ok until_true( 10, sub { $server->workers == 2 } ), 'SIRIUS_WORKERS';
        is
            scalar( ()
            = $server->log
                =~ /^sirius: SIRIUS_WROKERS does not name an option \(did you mean SIRIUS_WORKERS\?\)$/mg ),
            1, 'an unknown variable is named once, and no more';
        $server->stop;
    };

    subtest "$name: what is wrong ends it with 2 and is named" => sub {
        my @case = (
            [ qr/\Asirius: --workers: 'x' is not .* \(from SIRIUS_WORKERS\)\n\z/, { SIRIUS_WORKERS => 'x' } ],
            [   qr/\Asirius: --backlog: 0 is too small: the minimum is 1 \(from \S+, line 2\)\n\z/,
                {}, '--config', spew( "$dir/wrong.conf", "\nbacklog = 0\n" )
            ],
            [   qr/\Asirius: \S+, line 1: unknown option wrokers \(did you mean workers\?\)\n\z/,
                {}, '--config', spew( "$dir/unknown.conf", "wrokers = 0\n" )
            ],
            [   qr{\Asirius: --config /nowhere: No such file or directory \(from SIRIUS_CONFIG\)\n\z},
                { SIRIUS_CONFIG => '/nowhere' }
            ],
            [   qr/\Asirius: --tls-cert: no address of --listen speaks TLS: write --listen ADDRESS,tls\n\z/,
                {}, '--ssl-cert=x'
            ],
            [ qr/\Asirius: --enable-ssl: TLS needs a certificate: [^\n]+\n\z/,         {}, '--enable-ssl' ],
            [ qr/\Asirius: unknown option --wrokers \(did you mean --workers\?\)\n\z/, {}, '--wrokers=3' ],
        );
        for my $case (@case) {
            my ( $said, $env, @args ) = @$case;
            my ( $how, $log ) = run_once( @command, app => $app, args => \@args, env => $env );
            is $how, 'exit 2', "@args @{[ %$env ]}: exit 2";
            like $log, $said, 'one line';
        }
    };
}

subtest 'plackup: what swallows the application is named' => sub {
    plan skip_all => 'no plackup' if !$plackup;
    my @command = ( command => $command{'plackup -s Sirius'} );
    chdir $dir or die $!;    # where plackup finds app.psgi
    my ( $how, $log ) = run_once( @command, args => [ '--preload-app', $app ] );
    is $how, 'exit 2', 'exit 2';
    like $log,
        qr/\Asirius: --preload-app: '\S+app.psgi' is not a boolean: use 1 or 0; with plackup, write --preload-app=1\n\z/,
        'the way out is shown';
    ( $how, $log ) = run_once( @command, args => [ '--config', spew( "$dir/app.conf", "app = $app\n" ) ] );
    is $how, 'exit 2', 'exit 2';
    like $log, qr/\Asirius: \S+, line 1: only the sirius command reads app from a file\n\z/,
        'the application in the file';
    chdir '/' or die $!;
};

subtest 'bin/sirius: all in one file' => sub {
    my $file = spew( "$dir/all.conf",
        "app = $app\nenv = test\nlisten = 127.0.0.1:0\nworkers = 1\nserver-software = one\n" );
    my $server = Sirius::Test::Server->start(
        command => $command{'bin/sirius'},
        plain   => 1,
        args    => [ '--config', $file ]
    );
    is $server->ask('GET /')->body, 'test', 'app and env';
    is name($server),               'one',  'and the rest';

    spew( "$dir/all.conf",
        "app = $app\nenv = other\nlisten = 127.0.0.1:0\nworkers = 1\nserver-software = two\n" );
    $server->signal('HUP');
    ok until_true( 20, sub { name($server) eq 'two' } ), 'a reload reads it again' or diag $server->log;
    is $server->ask('GET /')->body, 'other', 'env as well';
    $server->stop;
};

subtest 'another number of workers at a reload' => sub {
    my $write = sub {
        spew( "$dir/number.conf",
            "app = $app\nlisten = 127.0.0.1:0\nworkers = $_[0]\nserver-software = $_[1]\n" );
    };
    my $server = Sirius::Test::Server->start(
        command => $command{'bin/sirius'},
        plain   => 1,
        args    => [ '--config', $write->( 1, 'zero' ) ]
    );
    my $reloads = 0;
    my $reload  = sub {
        my ( $workers, $name ) = @_;
        $write->( $workers, $name );
        $server->signal('HUP');
        $reloads++;
        return until_true(
            20,
            sub {
                $reloads == ( () = $server->log =~ /generation \d+ is serving$/mg ) && name($server) eq $name;
            }
        );
    };
    my $serve = sub {
        my $number = shift;
        return until_true( 20, sub { $server->workers == $number } );
    };
    $server->signal('TTIN');
    ok $serve->(2),                          'TTIN: one more';
    ok $reload->( 1, 'one' ) && $serve->(2), 'the same number says nothing' or diag $server->log;
    unlike $server->log, qr/number of workers changed from 2 to/, 'and nothing is changed';
    for my $step ( [ 3, 'two', 3 ], [ '1:2', 'three', 2 ], [ '1:2', 'four', 2 ] ) {
        my ( $workers, $name, $number ) = @$step;
        ok $reload->( $workers, $name ) && $serve->($number), "workers = $workers: $number"
            or diag $server->log;
    }
    ok $reload->( 100, 'five' ) && $serve->(8), 'too many: as many as there is room for' or diag $server->log;
    like $server->log, qr/only 8 workers are possible, not 100, until the server is restarted$/m,
        'the log says so';
    $server->stop;
};

subtest 'bin/sirius ctl' => sub {
    my @command = ( command => $command{'bin/sirius'} );
    my ( $how, $log ) = run_once( @command, args => [qw(ctl no-such-command)] );
    is $how, 'exit 2', 'is another program';
    like $log, qr/ctl.*status/s, 'which says how it is used';
    my $server = Sirius::Test::Server->start( @command,
        args => [ '--workers', 1, '-a', spew( "$dir/ctl", "sub { [ 200, [], ['ctl'] ] }\n" ) ] );
    is $server->ask('GET /')->body, 'ctl', 'a file of that name is served with -a';
    $server->stop;
};

done_testing;
