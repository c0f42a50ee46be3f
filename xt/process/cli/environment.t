use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use File::Temp;
use JSON::PP ();
use Sirius::Test;
use Sirius::Test::Dev;

# The environment of the application and of the server: PORT and --env-file

my $dir     = File::Temp->newdir;
my @command = ( command => [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius" ], plain => 1 );
my $APP     = <<'APP';
use JSON::PP ();
my %loaded = %ENV;
sub {
    my $name = $_[0]{PATH_INFO} =~ s{\A/}{}r;
    [ 200, [], [ JSON::PP->new->allow_nonref->encode( [ $loaded{$name}, $ENV{$name} ] ) ] ];
}
APP
my $app = spew( "$dir/app.psgi", $APP );

# What the application has had of a variable when it was loaded; it has the same in a request
sub has {
    my ( $server, $name ) = @_;
    my $values = JSON::PP->new->decode( $server->ask("GET /$name")->body );
    return 'not the same' if ( $values->[0] // '(none)' ) ne ( $values->[1] // '(none)' );
    return $values->[0];
}

# Runs it until it ends by itself
sub run_once {
    my $server = Sirius::Test::Server->spawn( @command, @_ );
    return ( $server->wait_exit || 'still running', $server->log );
}

subtest 'PORT' => sub {
    my $port   = free_port();
    my $file   = spew( "$dir/port.conf", "port = 0\nhost = 127.0.0.1\n" );
    my $socket = "$dir/app.sock";
    my @case   = (
        [ "0.0.0.0:$port",   [],                              'sets the port of all IPv4 addresses' ],
        [ "127.0.0.1:$port", [qw(--host 127.0.0.1)],          'and of --host' ],
        [ '127.0.0.1:0',     [qw(--host 127.0.0.1 --port 0)], '--port wins' ],
        [ '127.0.0.1:0',     [qw(--listen 127.0.0.1:0)],      '--listen wins' ],
        [ "unix:$socket",    [ '--socket', $socket ],         '--socket wins' ],
        [ '127.0.0.1:0',     [ '--config', $file ],           'the file wins' ],
        [ '127.0.0.1:0',     [qw(--host 127.0.0.1)],          'SIRIUS_PORT wins', SIRIUS_PORT => 0 ],
    );
    for my $case (@case) {
        my ( $want, $args, $name, %env ) = @$case;
        my $server = Sirius::Test::Server->start(
            @command,
            app  => $app,
            args => [ qw(--workers 1), @$args ],
            env  => { PORT => $port, %env }
        );
        my ($address) = $server->listeners;
        $address =~ s/:\d+\z/:0/ if $want =~ /:0\z/ && $address !~ /:$port\z/;
        is $address, $want, $name;
        $server->stop;
    }
    for my $wrong ( 'abc', '80 80', '-1', '65536', 'tcp://10.0.0.1:80' ) {
        my ( $how, $log ) = run_once( app => $app, env => { PORT => $wrong } );
        is $how, 'exit 2', "PORT=$wrong: exit 2";
        like $log, qr/\Asirius: --port: [^\n]* \(from PORT\)\n\z/, 'one line names it';
    }
    my $server = Sirius::Test::Server->start(
        @command,
        app  => $app,
        args => [qw(--listen 127.0.0.1:0)],
        env  => { PORT => 'abc' }
    );
    is $server->ask('GET /PORT')->status, 200, 'a wrong one that is not needed does not matter';
    $server->stop;
};

subtest 'A file, and reloads' => sub {
    my $file   = spew( "$dir/env", "FROM_FILE=1\nOURS=file\nGONE=soon\nexport QUOTED=\"a b\" # c\n" );
    my $server = Sirius::Test::Server->start(
        @command,
        app  => $app,
        args => [ qw(--listen 127.0.0.1:0 --workers 1), '--env-file', $file ],
        env  => { OURS => 'environment' }
    );
    is has( $server, 'FROM_FILE' ), 1,             'a variable of the file';
    is has( $server, 'QUOTED' ),    'a b',         'another';
    is has( $server, 'OURS' ),      'environment', 'what is set already wins';
    my $changes = sub {
        my ( $name, $want ) = @_;
        return until_true( 20, sub { ( has( $server, $name ) // '(none)' ) eq $want } );
    };
    spew( "$dir/env", "FROM_FILE=2\nNEW=3\n" );
    $server->signal('HUP');
    ok $changes->( FROM_FILE => 2 ), 'a reload reads the file again';
    until_true( 20, sub { $server->generations == 1 } );    # workers of the old one may answer until then
    is has( $server, 'NEW' ),  3,             'what is new in it';
    is has( $server, 'GONE' ), undef,         'what was removed is gone';
    is has( $server, 'OURS' ), 'environment', 'what is set already still wins';

    spew( "$dir/env", "FROM_FILE=4\nbroken secret line\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/\Q$dir\E\/env, line 2: not NAME=VALUE/, 20 ), 'a broken file fails the reload';
    is has( $server, 'FROM_FILE' ), 2, 'and the old code serves on';
    unlike $server->log, qr/secret/, 'the line is not in the log';
    spew( "$dir/env", "FROM_FILE=5\n" );
    $server->signal('HUP');
    ok $changes->( FROM_FILE => 5 ), 'the next one succeeds';
    $server->stop;
};

subtest 'sirius dev' => sub {
    my $file = spew( "$dir/dev.env", "FROM_FILE=1\nGONE=soon\n" );
    my $server
        = Sirius::Test::Dev->start( $APP, qw(--workers 1 --no-default-middleware), '--env-file', $file );
    is has( $server, 'FROM_FILE' ), 1, 'a variable of the file';
    spew( $file, "FROM_FILE=2\n" );
    ok until_true( 20, sub { ( has( $server, 'FROM_FILE' ) // '' ) eq '2' } ),
        'a save of the file loads it again';
    is has( $server, 'GONE' ), undef, 'what was removed is gone';
    $server->stop;
};

subtest 'Several files, named anywhere' => sub {
    my $one  = spew( "$dir/one",      "A=1\nB=1\nPLACK_ENV=test\n" );
    my $two  = spew( "$dir/two",      "B=2\nSIRIUS_WORKERS=2\nPORT=0\nSIRIUS_HOST=127.0.0.1\n" );
    my $conf = spew( "$dir/env.conf", "env-file = $one\nenv-file = $two\n" );
    my @case = (
        [ {}, '--env-file', $one, "--env-file=$two" ],
        [ { SIRIUS_ENV_FILE => "$one $two" } ],
        [ {}, '--config', $conf ],
    );
    for my $case (@case) {
        my ( $env, @args ) = @$case;
        my $server = Sirius::Test::Server->start( @command, app => $app, args => \@args, env => $env );
        is has( $server, 'A' ) . has( $server, 'B' ), '12',
            'the last one wins' . ( @args ? " ($args[0])" : '' );
        is has( $server, 'PLACK_ENV' ), 'test', 'PLACK_ENV';
        ok until_true( 10, sub { $server->workers == 2 } ), 'SIRIUS_WORKERS';
        $server->stop;
    }
};

subtest 'Wrong files' => sub {
    my $wrong = spew( "$dir/wrong", "A=1\nSIRIUS_WORKERS=many\n" );
    my @case  = (
        [ qr{\Asirius: --env-file /nowhere: No such file or directory\n\z}, '--env-file', '/nowhere' ],
        [ qr{\Asirius: --env-file requires a value\n\z},    '--env-file' ],
        [ qr{\Asirius: --env-file: '/' is a directory\n\z}, '--env-file=/' ],
        [   qr{\Asirius: --workers: 'many' is not .* \(from SIRIUS_WORKERS in \Q$wrong\E, line 2\)\n\z},
            '--env-file', $wrong
        ],
    );
    for my $case (@case) {
        my ( $said, @args ) = @$case;
        my ( $how, $log )
            = run_once( args => [ $args[0] eq '--env-file' && @args == 1 ? () : ( '-a', $app ), @args ] );
        is $how, 'exit 2', "@args: exit 2";
        like $log, $said, 'one line';
    }
    my $plackup = program('plackup') or return;
    my ( $how, $log ) = run_once(
        command => [ $^X, $plackup, qw(-s Sirius -E deployment) ],
        app     => $app,
        args    => [ "--env-file=$wrong", '--listen=127.0.0.1:0' ]
    );
    is $how, 'exit 2', 'plackup: exit 2';
    like $log, qr/\Asirius: --env-file is an option of the command line, not of the handler\n\z/, 'one line';
};

subtest '--show-config' => sub {
    my $secret = spew( "$dir/secret", "PASSWORD=hunter2\nSIRIUS_MAX_BODY=20m\n" );
    my $conf
        = spew( "$dir/show.conf", "\nworkers = 3\nlisten = :8080\nlisten = /run/x.sock\nmax-rss=500m\n" );
    my $show = sub {
        my ( $env, @args ) = @_;
        my $server = Sirius::Test::Server->spawn( @command, args => [ '--show-config', @args ], env => $env );
        my $how    = $server->wait_exit || 'still running';
        my $text   = $server->output;
        my %value;
        push @{ $value{$1} }, "$2 ($3)" while $text =~ /^(\S+) += (.*?) +\(([^()]*)\)$/mg;
        return ( $how, { map { $_ => join ' ', @{ $value{$_} } } keys %value }, $text, $server->log );
    };
    my ( $how, $value, $text, $log ) = $show->(
        { SIRIUS_BACKLOG => 10, PLACK_ENV => 'test' },
        '--config', $conf, '--env-file', $secret, qw(--workers=4 --disable-keepalive --timeout 5s x.psgi)
    );
    is $how, 'exit 0', 'exit 0, without an application or a server';
    my %want = (
        app                => 'x.psgi (command line)',
        backlog            => '10 (SIRIUS_BACKLOG)',
        'body-timeout'     => '5s (--timeout, command line)',
        config             => "$conf (command line)",
        edges              => '1 (default)',
        env                => 'test (PLACK_ENV)',
        'env-file'         => "$secret (command line)",
        keepalive          => 'no (command line)',
        listen             => ":8080 ($conf, lines 3, 4) /run/x.sock ($conf, lines 3, 4)",
        'log-prefix'       => 'no (default)',
        'max-body'         => "20m (SIRIUS_MAX_BODY in $secret, line 2)",
        'max-rss'          => "500m ($conf, line 5)",
        'max-header-bytes' => '64k (default)',
        port               => undef,
        proctitle          => 'yes (default)',
        workers            => '4 (command line)',
    );
    is $value->{$_}, $want{$_}, $_ for sort keys %want;
    unlike $text, qr/hunter2|PASSWORD/,         'nothing of the variables';
    like $text,   qr/^# Not set: .*\badmin\b/m, 'and what is not set';

    # an option with three behaviours: yes, no, and neither
    like $text, qr/^#.*\bwarm-up-workers\b/m, 'one that is not set, and is neither yes nor no';
    is $value->{'warm-up-workers'}, undef, 'has no value';
    for my $set ( [ 'enable', 'yes' ], [ 'disable', 'no' ] ) {
        ( undef, my $other ) = $show->( {}, qw(--warm-up /), "--$set->[0]-warm-up-workers" );
        is $other->{'warm-up-workers'}, "$set->[1] (command line)", "--$set->[0]-warm-up-workers";
    }

    ( $how, $value ) = $show->( { PORT => 81 }, qw(--host ::1) );
    is $value->{port},   '81 (PORT)',          'PORT';
    is $value->{host},   '::1 (command line)', 'host';
    is $value->{listen}, undef,                'and no other address';
    is $value->{app},    'app.psgi (default)', 'the default application';
    ( $how, $value ) = $show->( {}, '-e', "sub {\n  1\n}" );
    is $value->{e},      'sub { 1 } (command line)', 'code in one line';
    is $value->{listen}, ':5000 (default)',          'the default address';
    ( $how, $value, $text, $log ) = $show->( {}, qw(--workers x) );
    is $how,  'exit 2', 'a wrong option: exit 2';
    is $text, '',       'and nothing on STDOUT';
};

done_testing;
