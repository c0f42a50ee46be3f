use strict;
use warnings;
use lib 't/lib';
use Test::More;
use File::Temp qw(tempdir);
use Sirius::CLI::Runner;
use Sirius::Config::Options;
use Sirius::Config::Values;
use Sirius::Config::Sources;
use Sirius::Test::Server;

# What is read is looked at, not whether an address is free: others may listen on the port of the default
{
    no warnings 'redefine';
    *Sirius::Listen::Listener::probe = sub { };
}

my $dir = tempdir( CLEANUP => 1 );

# A file with this text
sub file { return Sirius::Test::Server::spew( "$dir/sirius.conf", shift ) }

# The configuration that a program gets, with these variables
sub conf {
    my ( $env, %raw ) = @_;
    local %ENV = ( ( map { $_ => $ENV{$_} } grep { !/\ASIRIUS_/ } keys %ENV ), %$env );
    return Sirius::Config::Values->parse( \%raw );
}

sub refused {
    local $@;
    eval { conf(@_); 1 } and return 'accepted';
    my $error = $! + 0 == 2 ? $@ : "errno $!: $@";
    return $error =~ s/\Q$dir\E/DIR/gr =~ s/\n\z//r;
}

# What becomes of a command line
sub command {
    my ( $env, @args ) = @_;
    local %ENV = ( ( map { $_ => $ENV{$_} } grep { !/\ASIRIUS_/ } keys %ENV ), %$env );
    my $runner = Sirius::CLI::Runner->new( server => 'Sirius', env => 'deployment' );
    eval { $runner->parse_options(@args); 1 } or return $@;
    my %options = @{ $runner->{options} };
    return { runner => $runner, options => \%options, conf => Sirius::Config::Values->parse( {%options} ) };
}

# As the kubelet makes them for the Services of a namespace
subtest 'Variables of Kubernetes' => sub {
    my $service = sub {
        my ( $name, $address, %port ) = @_;
        my %env = ( "${name}_SERVICE_HOST" => $address, "${name}_SERVICE_PORT" => ( values %port )[0] );
        $env{"${name}_SERVICE_PORT_$_"} = $port{$_} for keys %port;
        for my $proto (qw(tcp udp sctp)) {
            for my $number ( values %port ) {
                my $link = "${name}_PORT_${number}_" . uc $proto;
                $env{"${name}_PORT"} = $env{$link} = "$proto://$address:$number";
                @env{ map {"${link}_$_"} qw(PROTO PORT ADDR) } = ( $proto, $number, $address );
            }
        }
        return %env;
    };
    my %env = $service->( SIRIUS => '10.0.0.1', HTTP => 80, ADMIN => 9090 );
    my $why = 'ignored: Kubernetes sets them for a Service of that name (see enableServiceLinks)';
    for my $link (qw(tcp://10.0.0.1:80 udp://[fd00::1]:53 sctp://10.0.0.1:80)) {
        my $conf = conf( { %env, SIRIUS_PORT => $link } );
        is "@{ $conf->{listen} }", ':5000', "SIRIUS_PORT=$link is not taken";
        is_deeply $conf->{notices}, ["sirius: SIRIUS_PORT and 28 more variables are $why"], 'one line says so'
            or diag explain $conf->{notices};
    }
    my $conf = conf( { %env, SIRIUS_LISTEN => ':80', SIRIUS_WORKERS => 3 } );
    is "@{ $conf->{listen} } $conf->{workers}", ':80 3', 'options beside them are';
    $conf = conf(
        { $service->( SIRIUS_ADMIN => '10.0.0.2', HTTP => 80 ), $service->( SIRIUS_A_B => '::1', X => 1 ) } );
    is scalar @{ $conf->{notices} }, 1, 'services named sirius-admin and sirius-a-b'
        or diag explain $conf->{notices};
    is conf( { SIRIUS_PORT => 81 } )->{listen}[0], ':81', 'a real port';
    is refused( { SIRIUS_PORT => $_ } ), "sirius: --port: '$_' is not a whole number (from SIRIUS_PORT)",
        "a wrong one: $_"
        for 'abc', '80/tcp', 'http://10.0.0.1:80', '10.0.0.1:80';
    like refused( { %env, SIRIUS_WORKERS => 'tcp://10.0.0.1:80' } ), qr/--workers/, 'nor another option';
    is_deeply conf( { SIRIUS_SERVICE_HOST => '10.0.0.1' } )->{notices},
        ["sirius: SIRIUS_SERVICE_HOST is $why"], 'one alone';
    like conf( { SIRIUS_PORTS => 1 } )->{notices}[0], qr/SIRIUS_PORTS does not name an option/,
        'what looks like them only';
    is command( {%env} )->{conf}{listen}[0], ':5000', 'the command as well';
};

subtest 'Every option is a variable' => sub {
    is conf( { SIRIUS_WORKERS     => 3 } )->{workers},                      3,          'workers';
    is conf( { SIRIUS_MAX_WORKERS => 3 } )->{workers},                      3,          'an alias';
    is conf( { SIRIUS_MAX_BODY    => '10m' } )->{max_body},                 2**20 * 10, 'a size';
    is conf( { SIRIUS_CHILD_EXIT  => 'sub { 42 }' } )->{child_exit}->(),    42,         'code';
    is conf( { SIRIUS_MAX_WORKERS => 3, SIRIUS_WORKERS => 4 } )->{workers}, 4,          'the own name wins';
    is conf( { SIRIUS_PROCTITLE   => $_ } )->{proctitle},      1, "'$_' is on"  for qw(1 yes on true ON);
    is conf( { SIRIUS_KEEPALIVE   => $_ } )->{keepalive},      0, "'$_' is off" for qw(0 no off false No);
    is conf( { SIRIUS_DISABLE_KEEPALIVE => 1 } )->{keepalive}, 0, 'the name that --help shows';
    is "@{ conf( { SIRIUS_LISTEN => $_ } )->{listen} }", ':80 [::1]:81 /s', "several addresses: '$_'"
        for ':80 [::1]:81 /s', ':80,[::1]:81,/s', ' :80, [::1]:81 , /s ';
    is "@{ conf( { SIRIUS_PORT => 80, SIRIUS_HOST => 'a' } )->{listen} }", 'a:80', 'host and port';

    my %any = map { $_ => 1 } qw(any beside code listen path paths string token);
    for my $row ( grep { !$_->{plackup} && !$_->{noop} && !$any{ $_->{type} } }
        Sirius::Config::Options->rows )
    {
        my $name = 'SIRIUS_' . uc $row->{name} =~ tr/-/_/r;
        next if $row->{command} || $row->{hidden};
        like refused( { $name => '!?' } ), qr/\Asirius: --\Q$row->{name}\E: '!\?' .* \(from $name\)\z/, $name;
    }
};

subtest 'The arguments of a handler' => sub {
    my @case = (
        [ 'nothing', [],                                       {} ],
        [ 'one',     [ tls_cert => 'a' ],                      { tls_cert => 'a' } ],
        [ 'several', [ map { ( tls_cert => $_ ) } qw(a b c) ], { tls_cert => [qw(a b c)] } ],
        [   'by several names',
            [ 'tls-cert' => 'a', ssl_cert => 'b', tls_cert => 'c' ],
            { tls_cert => [qw(a b c)] }
        ],
        [ 'not a list',         [ workers => 1, workers => 2 ],       { workers => 2 } ],
        [ 'unknown',            [ wrokers => 1, wrokers => 2 ],       { wrokers => 2 } ],
        [ 'a list, as plackup', [ listen => [ ':1', ':2' ] ],         { listen => [ ':1', ':2' ] } ],
        [ 'a list at the end',  [ listen => ':1', listen => [':2'] ], { listen => [':2'] } ],
        [ 'a text behind it',   [ listen => [':1'], listen => ':2' ], { listen => ':2' } ],
        [   'two behind it',
            [ listen => [':1'], listen => ':2', listen => ':3' ],
            { listen => [ ':2', ':3' ] }
        ],
        [ 'taken back',          [ admin => ':1', admin => undef ],                {} ],
        [ 'given again',         [ admin => ':1', admin => undef, admin => ':2' ], { admin => ':2' } ],
        [ 'an alias that is no', [ tls_cert => 'a', ssl_cert => undef ],           { tls_cert => 'a' } ],
    );
    is_deeply( Sirius::Config::Sources->pairs( @{ $_->[1] } ), $_->[2], $_->[0] ) for @case;
    my $given = [':1'];
    Sirius::Config::Sources->pairs( listen => $given, listen => ':2', listen => ':3' );
    is_deeply $given, [':1'], 'the list of a program stays as it is';
};

subtest 'Variables that are none' => sub {
    my %notice = (
        SIRIUS_WROKERS     => 'SIRIUS_WROKERS does not name an option (did you mean SIRIUS_WORKERS?)',
        SIRIUS_XYZZY_PLUGH => 'SIRIUS_XYZZY_PLUGH does not name an option',
        SIRIUS_VERSION     => 'SIRIUS_VERSION does not name an option',
        SIRIUS_COMPANION   => 'SIRIUS_COMPANION does not name an option',
        SIRIUS_P           => 'SIRIUS_P does not name an option',
        SIRIUS_APP => 'SIRIUS_APP has no effect: only the sirius command reads app from the environment',
        SIRIUS_PRELOAD_APP => qr/\A--preload-app has no effect: .* \(from SIRIUS_PRELOAD_APP\)\z/,
        SIRIUS_WORKERS     => undef,
        map { $_ => undef }
            qw(SIRIUS_GENERATION SIRIUS_DEV SIRIUS_BENCH_X SIRIUS_TEST SIRIUS_TEST_X SIRIUS_ OTHER),
    );
    for my $name ( sort keys %notice ) {
        my @notices = map {s/\Asirius: //r} @{ conf( { $name => 1 } )->{notices} };
        if ( !defined $notice{$name} ) { is_deeply \@notices, [], "nothing about $name" }
        elsif ( ref $notice{$name} ) { like "@notices", $notice{$name}, $name }
        else                         { is_deeply \@notices, [ $notice{$name} ], $name }
    }
    is conf( { map { $_ => '' } qw(SIRIUS_WORKERS SIRIUS_KEEPALIVE SIRIUS_LISTEN SIRIUS_CONFIG) } )
        ->{keepalive}, 1, 'empty is not set';
    is conf( { SIRIUS_SERVER_SOFTWARE => '' } )->{server_software}, '', 'but for the empty header';
};

subtest 'A file' => sub {
    my $file = file(<<"FILE");
\xef\xbb\xbf# a comment
workers = 3
  ; another

max_body=10m\r
listen = :80
  listen = /run/my app.sock
server-software = "My \# Server "
child-exit = sub { "42" }
disable-keepalive = yes
tmpdir = '/tmp'
xyzzy-plugh = no
FILE
    is refused( {}, config => $file ), 'sirius: DIR/sirius.conf, line 12: unknown option xyzzy-plugh',
        'one wrong line';
    $file = file(
        do { local $/; open my $in, '<:raw', $file or die; <$in> }
            =~ s/^xyzzy-plugh.*//mr
    );
    my $conf = conf( {}, config => $file );
    is $conf->{workers},         3,              'a number';
    is $conf->{max_body},        10 * 2**20,     'an underscore, no spaces, the end of a line as on Windows';
    is $conf->{server_software}, 'My # Server ', 'quotes, and no comment at the end of a line';
    is $conf->{keepalive},       0,              'off';
    is $conf->{child_exit}->(),  42,             'code';
    is $conf->{tmpdir},          '/tmp',         'quotes';
    is_deeply $conf->{listen}, [ ':80', '/run/my app.sock' ], 'all addresses, with a space';
    is conf( { SIRIUS_CONFIG => $file } )->{workers}, 3, 'SIRIUS_CONFIG';
    is conf( { SIRIUS_CONFIG => '/nowhere' }, config => $file )->{workers},    3,  '--config comes before it';
    is conf( {},                              config => file('') )->{workers}, 10, 'an empty file';
    is conf( {}, config => file('workers = 3') )->{workers},                   3,  'without an end of line';
    is conf( {}, config => file("server-software =\n") )->{server_software},   '', 'nothing behind =';
};

subtest 'A wrong file: one line that names the place' => sub {
    my @case = (
        [ "\nwrokers = 3\n" => 'DIR/sirius.conf, line 2: unknown option wrokers (did you mean workers?)' ],
        [ "max_bodi = 3\n"  => 'DIR/sirius.conf, line 1: unknown option max_bodi (did you mean max-body?)' ],
        [ "p = 3\n"         => 'DIR/sirius.conf, line 1: unknown option p' ],
        [ "companion = 0\n" => 'DIR/sirius.conf, line 1: unknown option companion' ],
        [ "config = x\n"    => 'DIR/sirius.conf, line 1: config can only be given on the command line' ],
        [ "help = 1\n"      => 'DIR/sirius.conf, line 1: help can only be given on the command line' ],
        [ "workers\n"       => q(DIR/sirius.conf, line 1: 'workers' is not 'name = value') ],
        [ "--workers = 3\n" => q(DIR/sirius.conf, line 1: '--workers = 3' is not 'name = value') ],
        [ "[server]\n"      => q(DIR/sirius.conf, line 1: '[server]' is not 'name = value') ],
        [ "keepalive =\n"   => 'DIR/sirius.conf, line 1: keepalive has no value' ],
        [   "workers = 3\n\nmax-workers = 4\n" =>
                'DIR/sirius.conf, line 3: max-workers is already set in line 1'
        ],
        [ "chdir = a\0b\n" => '--chdir: the value contains a NUL byte (from DIR/sirius.conf, line 1)' ],
        [   "pid = a\nworkers = x\n" =>
                q(--workers: 'x' is not a number of workers: use a whole number, auto, auto*N, MIN:MAX or MIN:auto (from DIR/sirius.conf, line 2))
        ],
        [   "no-keepalive = x\n" =>
                q(--no-keepalive: 'x' is not a boolean: use 1 or 0 (from DIR/sirius.conf, line 1))
        ],
        [   "ssl-cert = x\n" =>
                '--tls-cert: no address of --listen speaks TLS: write --listen ADDRESS,tls (from DIR/sirius.conf, line 1)'
        ],
        [   "listen = :80\nlisten = :99999\n" =>
                q(--listen: port 99999 is out of range: use 0 to 65535 (from DIR/sirius.conf, lines 1, 2))
        ],
        [   "listen = :80, :81\n" =>
                q(--listen: ':80, :81' is not an address: write [IPV6]:PORT or unix:PATH (from DIR/sirius.conf, line 1))
        ],
        [   "max-requests = 5\nmin-reqs-per-child = 6\n" =>
                '--min-reqs-per-child: 6 is greater than --max-reqs-per-child, which is 5 (from DIR/sirius.conf, line 2)'
        ],
    );
    for my $case (@case) {
        my ( $text, $message ) = @$case;
        like refused( {}, config => file($text) ), qr/\Asirius: \Q$message\E[^\n]*\z/, $message;
    }
    is refused( {}, config => '/nowhere' ), 'sirius: --config /nowhere: No such file or directory', 'no file';
    is refused( { SIRIUS_CONFIG => '/nowhere' } ),
        'sirius: --config /nowhere: No such file or directory (from SIRIUS_CONFIG)', 'no file';
    like refused( {}, config => $dir ), qr/\Asirius: --config DIR: .*directory\z/i, 'a directory';
    is refused( {}, config => file("app = x\n") ),
        'sirius: DIR/sirius.conf, line 1: only the sirius command reads app from a file', 'plackup';
};

subtest 'Command line, environment, file, default' => sub {
    my $file = file("workers = 2\nbacklog = 20\nmax-queue = 200\n");
    my $conf = conf( { SIRIUS_WORKERS => 3, SIRIUS_BACKLOG => 30, SIRIUS_CONFIG => $file }, workers => 4 );
    is $conf->{workers},                                                4,   'command line';
    is $conf->{backlog},                                                30,  'environment';
    is $conf->{max_queue},                                              200, 'file';
    is $conf->{queue_timeout},                                          30,  'default';
    is conf( { SIRIUS_MAX_WORKERS => 3 }, config => $file )->{workers}, 3,   'an alias of higher rank';
    like refused( { SIRIUS_WORKERS => 'x' }, config => $file ), qr/ \(from SIRIUS_WORKERS\)\z/,
        'it is said who it was';
    unlike refused( { SIRIUS_WORKERS => 2 }, config => $file, workers => 'x' ), qr/from/,
        'nobody but the command line';
    is conf( { SIRIUS_WORKERS => 'x' }, workers => 3 )->{workers}, 3,
        'what is not asked for is not looked at';

    $file
        = file(
        "workers = 2\nmax-servers = 8\nwrite-timeout = 7\nmin-reqs-per-child = 90\nmax-reqs-per-child = 100\n"
        );
    is conf( {}, config => $file )->{workers_max}, 8, 'together';
    is conf( {}, config => $file, workers      => 4 )->{workers_max},   4, '--workers replaces the numbers';
    is conf( {}, config => $file, max_servers  => 4 )->{workers_max},   4, 'one of them';
    is conf( {}, config => $file, timeout      => 5 )->{write_timeout}, 5, '--timeout replaces what it sets';
    is conf( {}, config => $file, max_requests => 5 )->{min_reqs_per_child}, undef,
        '--max-requests replaces both';
};

subtest 'Addresses of several sources' => sub {
    my $file = file("listen = :80\nlisten = :81\n");
    my @case = (
        [ ':80 :81', {},                                             [] ],
        [ ':82',     { SIRIUS_LISTEN => ':82' },                     [] ],
        [ ':83',     { SIRIUS_PORT => 82 },                          [ port => 83 ] ],
        [ 'a:5000',  {},                                             [ host => 'a' ] ],
        [ 'a:82',    { SIRIUS_PORT => 82 },                          [ host => 'a' ] ],
        [ 'a:83',    { SIRIUS_HOST => 'a', SIRIUS_LISTEN => ':82' }, [ port => 83 ] ],
        [ '/s',      { SIRIUS_PORT => 82 },                          [ socket => '/s' ] ],
        [ '/s',      { SIRIUS_SOCKET => '/s' },                      [] ],

        # as Plack::Runner gives them
        [ ':80 :81', {}, [ host => undef, port => 5000, listen => [':5000'], socket => undef ] ],
        [   ':82',
            { SIRIUS_PORT => 82 },
            [ host => undef, port => 5000, listen => [':5000'], socket => undef ]
        ],
        [ ':83', { SIRIUS_PORT => 82 }, [ host => undef, port => 83, listen => [':83'], socket => undef ] ],
        [ 'a:5000', {}, [ host => 'a',   port => 5000,  listen => ['a:5000'], socket => undef ] ],
        [ '/s',     {}, [ host => undef, port => undef, listen => ['/s'],     socket => '/s' ] ],
    );
    for my $case (@case) {
        my ( $want, $env, $raw ) = @$case;
        is "@{ conf( { %$env, SIRIUS_CONFIG => $file }, @$raw )->{listen} }", $want, $want;
    }
};

subtest 'The command: what is up to Plack otherwise' => sub {
    my $file = file(<<"FILE");
app = /srv/app.psgi
env = test
I = lib
I = t/lib
M = Foo
access-log = log
loader = Delayed
path = /x
default-middleware = no
workers = 3
FILE
    my $command = command( {}, '--config', $file );
    my $runner  = $command->{runner};
    is $runner->{app}, '/srv/app.psgi', 'app';
    is $runner->{env}, 'test',          'env';
    is_deeply $runner->{includes}, [qw(lib t/lib)], 'I';
    is_deeply $runner->{modules},  ['Foo'],         'M';
    is $command->{conf}{access_log},  'log',     'access-log';
    is $runner->{loader},             'Delayed', 'loader';
    is $runner->{path},               '/x',      'path';
    is $runner->{default_middleware}, 0,         'default-middleware';
    is $command->{conf}{workers},     3,         'workers';
    is_deeply $command->{conf}{notices}, [], 'nothing to say';

    $runner = command( { SIRIUS_ENV => 'env', SIRIUS_INCLUDE => 'a,b c' }, '--config', $file, '-E', 'line' )
        ->{runner};
    is $runner->{env}, 'line', 'the command line wins';
    is_deeply $runner->{includes}, [qw(a b c)], 'a list is replaced';
    $runner = command( { SIRIUS_ENV => 'env' }, '--config', $file, 'my.psgi' )->{runner};
    is $runner->{env},         'env',     'the environment wins';
    is $runner->{app},         undef,     'not the app of the file';
    is "@{ $runner->{argv} }", 'my.psgi', 'but that of the command line';
    $runner = command( {}, '--config', $file, '-e', 'sub {}' )->{runner};
    is $runner->{app}, undef, 'not the app of the file beside -e';
    $runner = command( {}, '--config', $file, '-r' )->{runner};
    is $runner->{loader}, 'Restarter', '-r replaces the loader';
    $runner = command( { SIRIUS_RELOAD => 1 }, '--no-reload' )->{runner};
    is $runner->{loader},                                       'Plack::Loader',        '--no-reload';
    is command( { SIRIUS_RELOAD => 1 } )->{runner}{loader},     'Restarter',            'SIRIUS_RELOAD';
    is command( { SIRIUS_DAEMONIZE => 1 } )->{conf}{daemonize}, 1,                      'SIRIUS_DAEMONIZE';
    is command( { SIRIUS_DAEMONIZE => 1 }, '--no-daemonize' )->{conf}{daemonize}, 0,    '--no-daemonize';
    is command( { SIRIUS_LISTEN => ':1' }, qw(-l :2 -l :3) )->{conf}{listen}[1],  ':3', '--listen';
    is scalar @{ command( { SIRIUS_LISTEN => ':1 :2' }, qw(-l :5000) )->{conf}{listen} }, 1,
        'here :5000 is what was said';
    like command( { SIRIUS_RELOAD => 'x' } ),
        qr/\Asirius: --reload: 'x' is not a boolean: use 1 or 0 \(from SIRIUS_RELOAD\)\n\z/, 'a wrong value';
    like command( { SIRIUS_PORT => 'x' } ), qr/\Asirius: --port: 'x' .* \(from SIRIUS_PORT\)\n\z/,
        'a wrong value';
    local $ENV{SIRIUS_CONFIG} = '/nowhere';
    ok eval { Sirius::CLI::Runner->new->parse_options('--help'); 1 }, '--help helps in any case';
};

done_testing;
