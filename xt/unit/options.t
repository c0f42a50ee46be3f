use strict;
use warnings;
use File::Temp ();
use Test::More;
use Cwd qw(getcwd);
use Sirius::Config::Options;
use Sirius::Config::Values;
use Sirius::Config::Usage;
use Sirius::OS::Cpus;

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };

sub conf { return Sirius::Config::Values->parse( {@_} ) }

sub refused {
    my %raw = @_;
    local $@;
    eval { Sirius::Config::Values->parse( \%raw ); 1 } and return 'accepted';
    return $! + 0 == 2 ? $@ : "errno $!: $@";
}

subtest 'Defaults' => sub {
    my $conf = conf();
    is_deeply $conf->{listen}, [':5000'], 'right address';
    is $conf->{workers},           10,    'right number of workers';
    is $conf->{keepalive_timeout}, 75,    'right time';
    is $conf->{max_body},          2**30, 'right size';
    is $conf->{body_memory},       2**16, 'right size';
    is $conf->{keepalive},         1,     'keep-alive';
    is $conf->{write_timeout},     60,    'right time';
    is $conf->{workers_max},       10,    'the most are as many';
    is $conf->{umask},             undef, 'left as it is';
    is $conf->{daemonize},         undef, 'in the foreground';
    is_deeply $conf->{notices}, [], 'nothing to say';
    ok !exists $conf->{$_}, "no $_ any more" for qw(host port socket sources timeout min_servers max_servers);
};

subtest 'Names' => sub {
    is conf( max_workers    => 3 )->{workers},                   3,  'alias, as plackup gives it';
    is conf( 'max-workers'  => 3 )->{workers},                   3,  'alias with dashes';
    is conf( 'max-requests' => 3 )->{max_reqs_per_child},        3,  'alias';
    is conf( read_timeout   => 3 )->{header_timeout},            3,  'alias';
    is conf( workers        => 2, max_workers => 3 )->{workers}, 2,  'the own name wins';
    is conf( workers        => undef )->{workers},               10, 'undef is not given';
    like conf( $_ => 'x' )->{pid},       qr{/x\z}, "$_ is --pid"       for qw(pid pid_file pidfile);
    like conf( $_ => 'x' )->{error_log}, qr{/x\z}, "$_ is --error-log" for qw(error-log log-file);
    is conf( no_keepalive        => 1 )->{keepalive}, 0, 'what plackup makes of --no-keepalive=1';
    is conf( 'disable-keepalive' => 0 )->{keepalive}, 1, 'off is off';
    is conf( enable_proctitle    => 1 )->{proctitle}, 1, 'on';
};

subtest 'Values' => sub {
    is conf( max_body => $_->[0] )->{max_body}, $_->[1], "$_->[0] bytes"
        for [ 0, 0 ], [ '10', 10 ], [ '64k', 65_536 ], [ '10M', 10_485_760 ], [ '2g', 2**31 ];
    is conf( timeout => $_->[0] )->{write_timeout}, $_->[1], "$_->[0] seconds"
        for [ 5, 5 ], [ '0.25', 0.25 ], [ '.5', 0.5 ], [ '500ms', 0.5 ], [ '2m', 120 ], [ '1h', 3600 ],
        [ '7d', 604_800 ], [ '1D', 86_400 ], [ '0.5M', 30 ];
    is conf( keepalive       => $_ )->{keepalive}, 1, "'$_' is true"  for 1,  100, 'yes', 'On',  'true';
    is conf( keepalive       => $_ )->{keepalive}, 0, "'$_' is false" for '', 0,   'no',  'off', 'false';
    is conf( child_exit      => 'sub { 42 }' )->{child_exit}->(), 42, 'code as text';
    is conf( child_exit      => sub {43} )->{child_exit}->(),     43, 'code';
    is conf( server_software => '' )->{server_software},          '', 'an empty header value';
    is conf( $_              => 'sub { 42 }' )->{$_}->(), 42, $_   for qw(before_fork after_fork on_reload);
    is conf( umask => $_->[0] )->{umask}, $_->[1], "umask $_->[0]" for [ '022', 18 ], [ 77, 63 ], [ '0', 0 ];
    is conf( socket_mode  => '0660' )->{socket_mode}, 432,                'mode';
    is conf( max_rss      => '200m' )->{max_rss},     200 * 2**20,        'memory';
    is conf( max_lifetime => '1h' )->{max_lifetime},  3600,               'time';
    is conf( pid          => 'a/../b' )->{pid},       getcwd . '/a/../b', 'a whole path';
    is conf( control      => 'none' )->{control},     'none',             'no socket';
    is conf( control      => './none' )->{control},   getcwd . '/none',   'a file of that name';
    is conf( chdir        => '/' )->{chdir},          '/',                'a directory';
    is conf( user         => 'root' )->{user},        'root',             'a user';
    is conf( user         => 12_345 )->{user},        12_345,             'the number of one';
    is conf( group        => 54_321 )->{group},       54_321,             'the number of a group';
    is_deeply conf( trust_proxy => $_->[0] )->{trust_proxy}, $_->[1], "proxies: $_->[0]"
        for [ '10.0.0.0/8', { networks => ['10.0.0.0/8'] } ],
        [ ' 127.0.0.1 , ::1,UNIX', { networks => [qw(127.0.0.1 ::1 unix)] } ],
        [ '0.0.0.0/0,::/0',        { networks => [qw(0.0.0.0/0 ::/0)] } ],
        [ 'forwarded,::1',         { networks => ['::1'], forwarded          => 1 } ],
        [ '::1,X-Forwarded-Host',  { networks => ['::1'], 'x-forwarded-host' => 1 } ];
    is conf()->{trust_proxy}, undef, 'nobody is trusted';
    is_deeply conf( warm_up => $_->[0] )->{warm_up}, $_->[1], 'warm-up'
        for [ '/', ['/'] ],
        [ '/a,/b?c=1,2, /d,', [ '/a', '/b?c=1,2', '/d' ] ],
        [ [ '/a', '/b,http://c:80/d' ], [qw(/a /b http://c:80/d)] ],
        [ 'https://[::1]:8080,http://a/', [qw(https://[::1]:8080 http://a/)] ];
    is conf( warm_up => [ '/', " sub {\n42 }" ] )->{warm_up}[1]->(), 42, 'warm-up by code as text';
    is conf( warm_up => sub {43} )->{warm_up}[0]->(),                43, 'by code';
    is conf()->{warm_up}, undef, 'none';
};

subtest 'The number of workers' => sub {
    my $auto = Sirius::OS::Cpus->workers;
    my $most = $auto > 3 ? $auto : 3;
    my @case = (
        [ '4 4',                           workers     => 4 ],
        [ '0 0',                           workers     => 0 ],
        [ "$auto $auto",                   workers     => 'auto' ],
        [ '2 6',                           workers     => '2:6' ],
        [ join( q( ), ( 4 * $auto ) x 2 ), workers     => 'auto*4' ],
        [ "1 " . 3 * $auto,                workers     => '1:auto*3' ],
        [ "$auto " . 2 * $auto,            workers     => 'auto:auto*2' ],
        [ '2 2',                           workers     => '2:2' ],
        [ "3 $most",                       workers     => '3:auto' ],
        [ '2 6',                           min_servers => 2, max_servers => 6 ],
        [ '2 6',                           min_servers => 2, max_servers => 6, workers => 4 ],
        [ '2 6',                           min_servers => 2, workers     => 6 ],
        [ '2 6',                           max_servers => 6, workers     => 2 ],
        [ '2 10',                          min_servers => 2 ],
        [ '12 12',                         min_servers => 12 ],
        [ '10 12',                         max_servers => 12 ],
        [ '2 2',                           max_servers => 2 ],
        [ '1 1',                           max_servers => 1, workers => 'auto' ],
    );
    for my $case (@case) {
        my ( $want, @given ) = @$case;
        my $conf = conf(@given);
        is "$conf->{workers} $conf->{workers_max}", $want, "@given";
        is_deeply $conf->{notices}, [], 'nothing to say';
    }
    my $conf = conf( workers => '2:6', max_servers => 4 );
    is $conf->{workers_max}, 6, '--workers MIN:MAX beats --max-servers';
    is_deeply $conf->{notices}, ['sirius: --max-servers has no effect: --workers sets both limits'],
        'and says so';
    my @wrong = (
        [ [ workers          => '6:2' ],   q(--workers: '6:2': the minimum 6 is greater than the maximum 2) ],
        [ [ workers          => '0:2' ],   '--workers: 0 is too small: the minimum is 1' ],
        [ [ 'websocket-ping' => '500ms' ], '--websocket-ping: 0.5 is too small: the minimum is 1, or 0' ],
        [   [ workers => '2:' ],
            q(--workers: '2:' is not a number of workers: use a whole number, auto, auto*N, MIN:MAX or MIN:auto)
        ],
        [ [ workers => 'auto*0' ],    q(--workers: 'auto*0': auto*0 would be no workers) ],
        [ [ workers => 'auto*9999' ], '--workers: ' . 9999 * $auto . ' is too large' ],
        [ [ workers => 'auto*' ],     q(--workers: 'auto*' is not a number of workers) ],
        [ [ workers => 'auto:2:3' ],  q(--workers: 'auto:2:3' is not) ],
        [   [ min_servers => 6, max_servers => 2 ],
            '--min-servers: 6 is greater than --max-servers, which is 2'
        ],
        [ [ min_servers => 6, workers => 2 ], '--min-servers: 6 is greater than --workers, which is 2' ],
        [ [ max_servers => 2, workers => 6 ], '--max-servers: 2 is less than --workers, which is 6' ],
        [ [ max_servers => 2, workers => 0 ], '--max-servers: not available with --workers 0' ],
    );
    like refused( @{ $_->[0] } ), qr/\Asirius: \Q$_->[1]\E/, $_->[1] for @wrong;
};

subtest 'The number of edges' => sub {
    my $auto = int( ( Sirius::OS::Cpus->count + 7 ) / 8 );
    is conf()->{edges}, 1, 'one';
    is conf( edges => $_->[0] )->{edges}, $_->[1], "edges $_->[0]"
        for [ 1, 1 ], [ 2, 2 ], [ auto => $auto > 32 ? 32 : $auto ];
    like refused( edges => 33 ), qr/\Asirius: --edges: 33 is too large: the maximum is 32/, 'too many';
    like refused( edges => -1 ), qr/\Asirius: --edges: -1 is too small: the minimum is 1/,  'too few';
    like refused( edges => '1:2' ),
        qr/\Asirius: --edges: '1:2' is not a number of processes: use a whole number or auto/, 'no range';
};

subtest 'What one option says about another' => sub {
    my $conf = conf( timeout => 7, write_timeout => 8 );
    is $conf->{write_timeout},                      8, 'given, not changed';
    is $conf->{body_timeout},                       7, 'from --timeout';
    is conf( keepalive_timeout => 0 )->{keepalive}, 0, 'no time, no keep-alive';
    like refused( min_reqs_per_child => 5, max_reqs_per_child => 4 ),
        qr/\Asirius: --min-reqs-per-child: 5 is greater/, 'right error';
    like refused( min_reqs_per_child => 5 ), qr/\Asirius: --min-reqs-per-child: 5 is greater/, 'right error';
};

subtest 'Wrong values' => sub {
    my @wrong = (
        [ workers => 'abc',  q('abc' is not a number of workers: use a whole number, auto, auto*N, MIN:MAX) ],
        [ workers => '1.5',  q('1.5' is not a number of workers) ],
        [ workers => '',     q('' is not a number of workers) ],
        [ workers => -1,     q(-1 is too small: the minimum is 0) ],
        [ workers => 10_000, q(10000 is too large: the maximum is 4096) ],
        [ workers             => '9' x 40,    q(is not a number of workers) ],
        [ workers             => "1\n",       q(is not a number of workers) ],
        [ backlog             => 0,           q(0 is too small: the minimum is 1) ],
        [ 'max-body'          => '10x',       q('10x' is not a size) ],
        [ 'max-body'          => -1,          q('-1' is not a size) ],
        [ 'max-header-fields' => 257,         q(257 is too large: the maximum is 256) ],
        [ 'write-timeout'     => 'soon',      q('soon' is not a time) ],
        [ 'websocket'     => [ 'off', '/a' ], q('off' and a path contradict each other: give one of them) ],
        [ 'write-timeout' => 0,               q(0 is too small: the minimum is 0.01) ],
        [ keepalive       => 'maybe',         qq('maybe' is not a boolean: use 1 or 0\n) ],
        [   'preload-app' => 'app.psgi',
            q('app.psgi' is not a boolean: use 1 or 0; with plackup, write --preload-app=1)
        ],
        [   'no-proctitle' => '-D',
            q('-D' is not a boolean: use 1 or 0; with plackup, write --no-proctitle=1)
        ],
        [ 'min-spare-servers' => 'app.psgi', q('app.psgi' is not a whole number) ],
        [ umask               => '9',        q('9' is not a file mode: use an octal number from 0 to 0777) ],
        [ 'socket-mode'  => '01777',    q('01777' is not a file mode: use an octal number from 0 to 0777) ],
        [ user           => 'no such',  q('no such' is not a known user) ],
        [ group          => 'no such',  q('no such' is not a known group) ],
        [ 'socket-owner' => '',         q('' is not a known user) ],
        [ chdir          => '/nowhere', q('/nowhere' is not a directory) ],
        [ 'error-log'    => '/',        q('/' is a directory) ],
        [ pid            => '',         q(is empty) ],
        [   'after-fork' => 'sub {',
            qq(does not compile: Missing right curly or square bracket at line )
        ],
        [ 'max-rss' => 'much',  q('much' is not a size) ],
        [ 'max-rss' => 300,     q(300 means 300 bytes, less than any worker needs; did you mean 300m?) ],
        [ 'max-rss' => '0500k', q(0500k means 512000 bytes, less than any worker needs; did you mean 500m?) ],
        [ 'max-rss' => '8191k', q(less than any worker needs) ],
        [ 'max-request-line'       => 8,       q(8 means 8 bytes, the minimum is 16; did you mean 8k?) ],
        [ 'max-header-bytes'       => 32,      q(32 means 32 bytes, the minimum is 64; did you mean 32k?) ],
        [ 'underscores-in-headers' => 'maybe', q('maybe' is not one of off, on, trusted) ],
        [   'underscores-in-headers' => 'trusted',
            q(trusted requires --trust-proxy, which is not given)
        ],
        [ listen => '127.0.0.1',      q('127.0.0.1' has no port: write 127.0.0.1:5000) ],
        [ admin  => '127.0.0.1:909O', q(909O is not a port number) ],
        [ host   => 'fd',             q('fd' is not a host) ],
        [ host   => '/run/app',       q('/run/app' is not a host: use --listen HOST:PORT, or --socket PATH) ],
        [ host   => '@app',           q('@app' is not a host) ],
        [ host   => 'unix:a',         q('unix:a' is not a host) ],
        [ host   => 'a:80',           q('a:80' is not a host) ],
        [ host   => 'a b',            q('a b' is not a host) ],
        [ listen => '[a::b::c]:80',   q(a::b::c is not an IPv6 address) ],
        [ 'request-timeout' => -1,          q(-1 is too small: the minimum is 0) ],
        [ 'child-exit'      => 'sub { $',   q(does not compile) ],
        [ 'child-exit'      => '42',        q('42' is not a sub) ],
        [ tmpdir            => '/nowhere',  q('/nowhere' is not a directory) ],
        [ 'server-software' => "a\r\nb: c", q(the value contains the character 0x0d) ],
        [ port              => 65_536,      q(65536 is too large: the maximum is 65535) ],
        [ 'trust-proxy'     => '',          q(is empty) ],
        [ 'trust-proxy'     => '::1,',      q('' is not a network) ],
        [   'trust-proxy' => '::1,10.0.0.1/8,x',
            q('10.0.0.1/8' has bits set after the first 8; did you mean 10.0.0.0/8?)
        ],
        [   'trust-proxy' => '2001:db8::1/32',
            q('2001:db8::1/32' has bits set after the first 32; did you mean 2001:db8::/32)
        ],
        (
            map { [ 'trust-proxy' => $_, qq('$_' is not a network) ] }
                qw(localhost 10.0.0 10.0.0.0/33 ::1/129 10.0.0.0/08 10.0.0.0/ /8 127.1 010.0.0.0/8 * 10.0.0.0/255.0.0.0)
        ),
        [ 'trust-proxy' => 'forwarded', q('forwarded' contains no network) ],
        [   'trust-proxy' => '::1,forwarded,x-forwarded-host',
            q(forwarded cannot be combined with x-forwarded-host)
        ],
        [   'trust-proxy' => join( ',', map {"10.0.0.$_"} 1 .. 65 ),
            q(65 networks are too many: the maximum is 64)
        ],
        [ listen => 'a:65536', q(port 65536 is out of range: use 0 to 65535) ],
        [   'warm-up' => 'login',
            q('login' is not a path: write /PATH, http://HOST/PATH or 'sub { ... }')
        ],
        [ 'warm-up' => '',              q('' is not a path) ],
        [ 'warm-up' => [ '/', '/a b' ], q('/a b' is not a path) ],
        [ 'warm-up' => '/a#b',          q('/a#b' is not a path) ],
        [ 'warm-up' => 'ftp://a/',      q('ftp://a/' is not a path) ],
        [ 'warm-up' => 'http:///a',     q('http:///a' is not a path) ],
        [ 'warm-up' => "/caf\xc3\xa9",  q(is not a path) ],
        [ 'warm-up' => 'sub { 1 +',     q(the code does not compile) ],
        [ 'warm-up' => 'subs',          q('subs' is not a path) ],
    );
    for my $wrong (@wrong) {
        my ( $name, $value, $message ) = @$wrong;
        like refused( $name => $value ), qr/\Asirius: --$name: .*?\Q$message\E/s, "--$name: $message";
    }
};

subtest 'Sizes' => sub {
    is conf( 'max-rss' => $_->[0] )->{max_rss}, $_->[1], "--max-rss $_->[0]"
        for [ 0, 0 ], [ '8m', 8 << 20 ], [ '300M', 300 << 20 ], [ '1g', 1 << 30 ],
        [ 314_572_800, 300 << 20 ];
    my $notices = sub { return join '|', @{ conf( 'max-body' => shift )->{notices} } };
    is $notices->($_), "sirius: --max-body $_ means $_ bytes; for megabytes, write ${_}m", "--max-body $_"
        for 1, 10, 1023;
    is $notices->($_), '', "--max-body $_" for 0, 1024, '10m', '10b', '1k', 65_536;
    is conf( 'underscores-in-headers' => $_->[0] )->{underscores_in_headers}, $_->[1], "'$_->[0]' is $_->[1]"
        for [qw(off off)], [qw(On on)], [qw(yes on)], [qw(0 off)], [qw(1 on)];
};

subtest 'Unknown options' => sub {
    is refused( wrokers => 3 ), "sirius: unknown option --wrokers (did you mean --workers?)\n", 'right error';
    is refused( 'max_bodi' => 3 ), "sirius: unknown option --max-bodi (did you mean --max-body?)\n",
        'right error';
    is refused( xyzzy_frobnicate => 3 ), "sirius: unknown option --xyzzy-frobnicate\n", 'right error';
    like refused( w      => 3 ), qr/\Asirius: unknown option --w\b/, 'no letters for programs';
    like refused( loader => 3 ), qr/command line/,                   'known to the command only';
};

subtest 'Addresses' => sub {
    my @case = (
        [ [ port => 80 ],                  ':80' ],
        [ [ port => 0 ],                   ':0' ],
        [ [ host => 'a', port => 80 ],     'a:80' ],
        [ [ host => '::1', port => 80 ],   '[::1]:80' ],
        [ [ host => '[::1]', port => 80 ], '[::1]:80' ],
        [ [ host          => 'a' ],              'a:5000' ],
        [ [ socket        => '/s' ],             '/s' ],
        [ [ socket        => '/s', port => 80 ], ':80 /s' ],
        [ [ 'socket-path' => '/s' ],             '/s' ],
        [ [ socket        => 'app.sock' ],       'unix:app.sock' ],
        [ [ socket        => './127.0.0.1:80' ], './127.0.0.1:80' ],
        [ [ socket        => '@app' ],           '@app' ],
        [ [ listen        => ':80' ],            ':80' ],
        [ [ listen        => [ ':80', '/s' ] ],  ':80 /s' ],

        # as Plack::Runner gives them
        [ [ host => undef, port => 5000,     listen => [':5000'],    socket => undef ], ':5000' ],
        [ [ host => '::1', port => 80,       listen => ['::1:80'],   socket => undef ], '::1:80' ],
        [ [ host => '[',   port => ':1]:80', listen => ['[::1]:80'], socket => undef ], '[::1]:80' ],
        [ [ host => undef, port => undef,    listen => ['/s'],       socket => '/s' ],  '/s' ],
        [ [ host => undef, port => 80,       listen => [':80'],      socket => '/s' ],  ':80 /s' ],
        [ [ host => undef, port => 5000, listen => [':5000'], socket => undef, socket_path => '/s' ], '/s' ],
    );
    is "@{ conf( @{ $_->[0] } )->{listen} }", $_->[1], $_->[1] for @case;
};

subtest 'Without effect, with one line' => sub {
    for my $name ( qw(max-readahead-reqs min-readahead-reqs max-keepalive-connection preload-app),
        qw(min-spare-servers max-spare-servers net-server-port) )
    {
        my $conf = conf( $name => 1 );
        is @{ $conf->{notices} }, 1, 'one line';
        like $conf->{notices}[0], qr/\Asirius: --$name has no effect: \w/, "--$name";
    }
    my $conf = conf( net_server_port => 1, net_server_log_level => 2 );
    is_deeply [ map {/(--\S+)/} @{ $conf->{notices} } ], [qw(--net-server-log-level --net-server-port)],
        'each is named';
    $conf = conf(
        listen  => ':80',
        socket  => '/s',
        sources => Sirius::Config::Sources->read( env => {} ),
        port    => 8080
    );
    is_deeply $conf->{notices}, ['sirius: --port has no effect: --listen sets all addresses'], '--port';
};

subtest 'Without effect beside others' => sub {
    my $code  = 'sub { }';
    my @alone = ( workers => 0 );
    my @tls   = ( listen  => ':443,tls', tls_self_signed => 1 );
    #<<< a table: the option without effect, words of the reason, what is given
    my @case = (
        [ 'max-reqs-per-child'     => qr/--workers 0 there is no worker to replace/,  @alone, max_requests => 10 ],
        [ 'max-rss'                => qr/--workers 0 there is no worker to replace/,  @alone, max_rss => '100m' ],
        [ 'max-lifetime'           => qr/--workers 0 there is no worker to replace/,  @alone, max_lifetime => '1h' ],
        [ 'before-fork'            => qr/--workers 0 no worker is forked/,     @alone, before_fork => $code ],
        [ 'after-fork'             => qr/--workers 0 no worker is forked/,     @alone, after_fork => $code ],
        [ 'on-reload'              => qr/--workers 0 the server cannot be reloaded/,  @alone, on_reload => $code ],
        [ 'graceful-timeout'       => qr/--workers 0 a stop always waits/, @alone, graceful_timeout => 5 ],
        [ 'beside'                 => qr/--workers 0 no command is started/, @alone, beside => 'x' ],
        [ 'control'                => qr/--workers 0 .*use signals/,       @alone, control => '/c' ],
        [ 'spawn-interval'         => qr/--workers 0 no worker is started/,    @alone, spawn_interval => 1 ],
        [ 'enable-http2'           => qr/no address of --listen ends with ",tls"/, http2 => 1 ],
        [ 'enable-http2'           => qr/those with ",h2c" speak HTTP\/2 without it/, listen => ':80,h2c', http2 => 1 ],
        [ ''                       => qr//,                                @tls, http2 => 1 ],
        [ ''                       => qr//,                                http2 => 0 ],
        [ 'err-respawn-interval'   => qr/--workers 0 no worker is started/,    @alone, err_respawn_interval => 2 ],
        [ ''                       => qr//, @alone, err_respawn_interval => 2, access_log => '|cat' ],
        [ ''                       => qr//, @alone, child_exit => $code, request_timeout => 3, load_timeout => 5 ],
        [ ''                       => qr//, @alone, max_rss => 0, graceful_timeout => 30 ],
        [ ''                       => qr//, workers => 1, max_rss => '100m', control => '/c', on_reload => $code ],
        [ 'admin-public'           => qr/no --admin is given/,             admin_public => 1 ],
        [ ''                       => qr//,                                admin_public => 0 ],
        [ 'warm-up-required'       => qr/no --warm-up is given/,           warm_up_required => 1 ],
        [ ''                       => qr//, @alone, warm_up => '/', warm_up_required => 1 ],
        [ 'enable-warm-up-workers' => qr/no --warm-up is given/,           warm_up_workers => 1 ],
        [ 'enable-warm-up-workers' => qr/--workers 0 the warm-up is in/,   @alone, warm_up => '/', warm_up_workers => 1 ],
        [ ''                       => qr//, warm_up => '/', warm_up_workers => 1 ],
        [ ''                       => qr//,                                admin_public => 1, admin => ':1' ],
        [ 'access-log-format'      => qr/no --access-log is given/,        access_log_format => 'json' ],
        [ 'access-log-min-time'    => qr/no --access-log is given/,        access_log_min_time => 1 ],
        [ 'access-log-errors-only' => qr/no --access-log is given/,        access_log_errors_only => 1 ],
        [ ''                       => qr//, access_log => '-', access_log_errors_only => 1, access_log_format => 'json' ],
        [ 'socket-mode'            => qr/no unix socket with a path/,      socket_mode => '0660' ],
        [ 'socket-mode'            => qr/no unix socket with a path/,      socket_mode => '0660', listen => [ '@a', 'unix:@b', 'fd:3', 'systemd:a/b' ] ],
        [ 'socket-group'           => qr/each unix socket has a group/,    socket_group => 'root', listen => 'unix:/s?mode=0600&group=root' ],
        [ ''                       => qr//, socket_group => 'root', listen => [ 'unix:/s?mode=0600&group=root', '/t' ] ],
        [ ''                       => qr//, socket_mode => '0660', socket => 's' ],
        [ 'backlog'                => qr/opened by another process/,                backlog => 10, listen => [qw(fd:3 systemd:a)] ],
        [ ''                       => qr//, backlog => 10, listen => [qw(fd:3 :80)] ],
        [ 'keepalive-timeout'      => qr/--disable-keepalive/,             keepalive => 0, keepalive_timeout => 5 ],
        [ 'max-keepalive-reqs'     => qr/--disable-keepalive/,             keepalive => 0, max_keepalive_reqs => 5 ],
        [ 'max-keepalive-reqs'     => qr/--keepalive-timeout 0/,           keepalive_timeout => 0, max_keepalive_reqs => 5 ],
        [ 'keepalive-timeout'      => qr/--max-keepalive-reqs 1/,          keepalive_timeout => 5, max_keepalive_reqs => 1 ],
        [ ''                       => qr//, keepalive_timeout => 5, max_keepalive_reqs => 2 ],
        [ ''                       => qr//, keepalive_timeout => 0 ],
        [ 'hold-buffer'            => qr/no --hold is given/,              hold_buffer => 5 ],
        [ 'hold-per-client'        => qr/no --hold is given/,              hold_per_client => 5 ],
        [ 'websocket'              => qr/no --hold is given/,              websocket => '/a' ],
        [ 'websocket-ping'         => qr/no --hold is given/,              websocket_ping => 5 ],
        [ 'websocket-rate'         => qr/--websocket off/,                 hold => 1, websocket => 'off', websocket_rate => 5 ],
        [ ''                       => qr//, hold => 1, websocket => '/a', websocket_rate => 5, hold_buffer => 5 ],
        [ 'body-timeout'           => qr/--body-rate 0/,                   body_rate => 0, body_timeout => 5 ],
        [ ''                       => qr//, body_rate => 0, timeout => 5 ],
        [ 'timeout'                => qr/--body-timeout and --write-timeout are given/, timeout => 5, body_timeout => 6, write_timeout => 7 ],
        [ 'tls-ciphers'            => qr/--tls-min 1\.3 only ciphers of TLS 1\.3 .*TLS_/,
            @tls, tls_min => '1.3', tls_ciphers => 'ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-TLS_' ],
        [ ''                       => qr//, @tls, tls_min => '1.3', tls_ciphers => 'ECDHE-RSA-AES256-GCM-SHA384:TLS_AES_256_GCM_SHA384' ],
        [ ''                       => qr//, @tls, tls_min => '1.2', tls_ciphers => 'ECDHE-RSA-AES256-GCM-SHA384' ],
        [ ''                       => qr//, @tls, tls_min => '1.3', tls_ciphers => 'DEFAULT:@SECLEVEL=3' ],
        [ ''                       => qr//, @tls, tls_min => '1.3' ],
    );
    #>>>
    for my $case (@case) {
        my ( $name, $why, @given ) = @$case;
        my @notices = @{ conf(@given)->{notices} };
        my @words   = map { ref $_ ? @$_ : $_ } @given;
        if ( !length $name ) { is_deeply \@notices, [], "@words: nothing to say" }
        else                 { like "@notices", qr/\Asirius: --$name has no effect: [^\n]*$why/, "@words" }
    }
    is_deeply [ grep {/tls-ciphers/} @{ conf( tls_min => '1.3', tls_ciphers => 'AES128-SHA' )->{notices} } ],
        ['sirius: --tls-ciphers has no effect: no address of --listen ends with ",tls"'],
        'one reason is enough';
    is_deeply [ map {/(--\S+)/}
            @{ conf( workers => 0, max_requests => 9, min_reqs_per_child => 8 )->{notices} } ],
        [qw(--max-reqs-per-child --min-reqs-per-child)], 'one line for each';
    my $from = Sirius::Config::Sources->read( env => { SIRIUS_ADMIN_PUBLIC => 1 } );
    is_deeply conf( sources => $from )->{notices},
        ['sirius: --admin-public has no effect: no --admin is given (from SIRIUS_ADMIN_PUBLIC)'],
        'and where it is';
};

subtest 'HTTP/2' => sub {
    is conf( listen => ':80' )->{http2}, undef, 'where the build has it';
    for my $listen ( split q( ), q(127.0.0.1:80,h2c unix:/x,h2c [::1]:80,H2C fd:3,h2c systemd:x,h2c) ) {
        is_deeply conf( listen => [$listen] )->{listen}, [$listen], $listen;
        like refused( listen => $listen, http2 => 0 ),
            qr/\Asirius: --disable-http2: cannot be combined with --listen \Q$listen\E/,
            'not with --disable-http2';
        like refused( listen => $listen, ssl => 1, tls_self_signed => 1 ),
            qr/\Asirius: --enable-ssl: cannot be combined with --listen \Q$listen\E/, 'nor with --enable-ssl';
    }
    like refused( listen => $_ ), qr/\Asirius: --listen: '\Q$_\E': an address speaks TLS or h2c/, $_
        for ':80,h2c,tls', ':80,tls,h2c', ':80,h2c,h2c', ':80:ssl,h2c';
    like refused( listen => "/x.sock$_?mode=0660" ),
        qr/\Asirius: --listen: '\S+': $_ comes last: write \/x\.sock\?mode=0660$_\n?\z/, $_
        for ',h2c', ',tls';
    my $file = Sirius::Config::Sources->read( env => { SIRIUS_LISTEN => '/x,h2c?mode=0660,:81' } );
    like refused( sources => $file ), qr/,h2c comes last/, 'in a list too';
    is_deeply conf( admin => ':0,h2c' )->{admin}, [':0,h2c'], 'also for the status page';
    my $from = Sirius::Config::Sources->read( env => { SIRIUS_LISTEN => ':80,h2c,:81,:82,h2c :83' } );
    is_deeply conf( sources => $from )->{listen}, [ split q( ), q(:80,h2c :81 :82,h2c :83) ],
        'in the environment';
};

subtest 'TLS' => sub {
    for my $name (qw(ssl enable_ssl)) {
        like refused( $name => 1 ), qr/\Asirius: --enable-ssl: TLS needs a certificate: [^\n]+\n\z/,
            "--$name";
    }
    for my $name (qw(ssl_cert ssl-key tls_dir tls-client-ca tls_self_signed)) {
        like refused( $name => $name =~ /dir/ ? '/' : 1 ),
            qr/\Asirius: --(?:tls|ssl)-[a-z-]+: (?:no address of --listen speaks TLS: write --listen ADDRESS,tls|1 given for 0)/,
            "$name without an address";
    }
    like refused( ssl_anything => 1 ), qr/\Asirius: unknown option --ssl-anything/, 'another one';
    for my $listen ( split q( ), q(127.0.0.1:443:ssl 127.0.0.1:443,tls unix:/x,tls [::1]:443,tls fd:3,tls) ) {
        like refused( listen => $listen ), qr/\Asirius: --listen \Q$listen\E: TLS needs a certificate/,
            $listen;
        is_deeply conf( listen => [$listen], tls_self_signed => 1 )->{listen}, [$listen], 'with one';
    }
    like refused( admin => '127.0.0.1:0,tls' ),
        qr/\Asirius: --admin: 127\.0\.0\.1:0,tls: the status page speaks plain HTTP only/,
        'not for the status page';
    is_deeply conf( listen => [ ':80', '/x.sock', ':443,tls' ], ssl => 1, tls_self_signed => 1 )->{listen},
        [ ':80,tls', '/x.sock,tls', ':443,tls' ], '--enable-ssl: all addresses';
    is_deeply conf( listen => [ $_, '/x' ], socket => $_, tls_self_signed => 1, ssl => 1 )->{listen},
        [ /,tls/ ? $_ : "$_,tls", '/x,tls' ], "$_ is no path of a unix socket, as plackup thinks"
        for '[::1]:443,tls', 'systemd:https';
    is_deeply conf( listen => [':443,tls'], tls_cert => [ '/a', '/b' ], ssl_key => [ '/c', '/d' ] )
        ->{tls_key}, [ '/c', '/d' ], 'pairs';
    like refused( listen => ':443,tls', tls_cert => '/a', tls_key => [ '/b', '/c' ] ),
        qr/\Asirius: --tls-key: 2 given for 1 --tls-cert/, 'no pairs';
    like refused( listen => ':443,tls', tls_cert => '/a', tls_self_signed => 1 ),
        qr/\Asirius: --tls-self-signed: cannot be combined/, 'two kinds';
    like refused( listen => ':443,tls', tls_cert => '/a', tls_client_verify => 'optional' ),
        qr/\Asirius: --tls-client-verify: requires --tls-client-ca/, 'no CA';
    like refused( listen => ':443,tls', tls_cert => '/a', tls_min => '1.1' ),
        qr/\Asirius: --tls-min: '1\.1' is not one of 1\.2, 1\.3/, 'a version';
    my $keys = File::Temp->newdir( DIR => '/tmp' );    # others may enter that
    open my $out, '>', "$keys/key" or die "$keys/key: $!";
    close $out or die "$keys/key: $!";

    for my $case ( [ 0644, 0755, 1 ], [ 0604, 0711, 1 ], [ 0640, 0755, 0 ], [ 0644, 0750, 0 ] ) {
        my ( $mode, $above, $told ) = @$case;
        chmod $mode,  "$keys/key" or die $!;
        chmod $above, "$keys"     or die $!;
        is_deeply conf( listen => ':443,tls', tls_cert => '/a', tls_key => "$keys/key" )->{notices},
            [ ("sirius: private key $keys/key is readable by every user: run chmod 0600 $keys/key") x $told ],
            sprintf 'a key with mode %04o in a directory with %04o', $mode, $above;
    }
    my $from = Sirius::Config::Sources->read(
        env => { SIRIUS_LISTEN => ':80,:443,tls :8080', SIRIUS_TLS_SELF_SIGNED => 1 } );
    is_deeply conf( sources => $from )->{listen}, [ ':80', ':443,tls', ':8080' ], 'in the environment';
    $from = Sirius::Config::Sources->read(
        env => { SIRIUS_LISTEN => ':80,:443,TLS,:444,Tls', SIRIUS_TLS_SELF_SIGNED => 1 } );
    is_deeply conf( sources => $from )->{listen}, [ ':80', ':443,TLS', ':444,Tls' ],
        'in capitals, as on the command line';
    is conf( ssl => '' )->{workers}, 10, '--disable-ssl';
};

subtest 'TLS in the web' => sub {
    my @both = ( listen => [ ':80', ':443,tls' ], tls_self_signed => 1 );
    is conf(@both)->{$_}, undef, "no $_" for qw(https_redirect hsts acme_webroot);
    for my $case (
        [ 1,     'yes' ],
        [ 1,     1 ],
        [ 1,     'On' ],
        [ 0,     'no' ],
        [ 0,     0 ],
        [ 0,     '' ],
        [ 443,   '443' ],
        [ 65535, '65535' ],
        )
    {
        is conf( @both, https_redirect => $case->[1] )->{https_redirect}, $case->[0],
            "--https-redirect=$case->[1]";
    }
    like refused( @both, https_redirect => $_ ), qr/\Asirius: --https-redirect: '\Q$_\E' is not a port: use/,
        "not $_"
        for qw(65536 app.psgi -1 1.5 :443), '443,80';
    for my $case (
        [ 'max-age=31536000',                             '31536000' ],
        [ 'max-age=31536000',                             '365d' ],
        [ 'max-age=300',                                  '5m' ],
        [ 'max-age=0',                                    '0' ],
        [ 'max-age=129600',                               '1.5d' ],
        [ 'max-age=2',                                    '2000ms' ],
        [ 'max-age=60; includeSubDomains',                '60,includeSubDomains' ],
        [ 'max-age=31536000; includeSubDomains; preload', '365d, preload , INCLUDEsubdomains' ],
        [ 'max-age=3600; includeSubDomains',              'max-age=3600; includeSubDomains' ],
        )
    {
        my $conf = conf( @both, hsts => $case->[1] );
        is $conf->{hsts}, $case->[0], "--hsts $case->[1]";
        is_deeply $conf->{notices}, [], 'nothing to say';
    }
    like refused( @both, hsts => $_ ), qr/\Asirius: --hsts: '\Q$_\E' does not begin with a time/, "not '$_'"
        for 'x', '', 'preload', '-1', '1.5', '1y', ',preload';
    like refused( @both, hsts => $_ ), qr/\Asirius: --hsts: \d+ is too large: the maximum is 9999999999\b/,
        "too large: $_"
        for qw(10000000000 99999999999 max-age=99999999999999999999d);
    is conf( @both, hsts => '0009999999999' )->{hsts}, 'max-age=9999999999', 'the largest';
    like refused( @both, hsts => "60,$_" ),
        qr/\Asirius: --hsts: '\Q$_\E' is not one of includeSubDomains, preload/, "nor 60,$_"
        for 'x', '', 'includeSubDomain';
    like conf( @both, hsts => $_ )->{notices}[0], qr/\Asirius: --hsts: browsers put a name/,
        "$_ is not for the list"
        for '365d,preload', '364d,includeSubDomains,preload';
    like refused( @both, acme_webroot => '/nonexistent/x' ),
        qr{\Asirius: --acme-webroot: '/nonexistent/x' is not a directory\n\z}, 'no directory';

    my $only = sub { return join "\n", @{ conf(@_)->{notices} } };
    is $only->( listen => ':80', https_redirect => 443 ), '', 'a port somewhere else';
    like $only->( listen => ':80', https_redirect => 1 ),
        qr/\Asirius: --https-redirect leads to port 443, but no address of --listen speaks TLS: add one/,
        'no TLS';
    is $only->( listen => ':80', https_redirect => 0 ), '', 'but it is off';
    my $tls = [ ':443,tls', '/x.sock' ];
    like $only->( @both, listen => $tls, https_redirect => 1 ),
        qr/\Asirius: --https-redirect has no effect: --listen has no address without TLS that is not a unix socket/,
        'nothing to redirect';
    is $only->( @both, listen => [ @$tls, 'fd:3' ], https_redirect => 1 ), '', 'a descriptor may be one';
    like $only->( listen => ':80', hsts => 60 ),
        qr/\Asirius: --hsts has no effect: no address of --listen ends with ",tls"\z/, 'no TLS';
    like $only->( @both, listen => ':443,tls', acme_webroot => '/' ),
        qr/\Asirius: --acme-webroot has no effect: all addresses of --listen speak TLS/, 'only TLS';
    is $only->( @both, listen => $tls, acme_webroot => '/' ), '', 'a unix socket is without';
};

subtest 'What programs pass' => sub {
    my $code = sub { };
    is conf( server_ready => $code )->{server_ready}, $code, 'callback';
    ok conf( argv => [], extra_argv => [], env => 'x', app => $code ), 'ignored';
};

subtest 'Every option is documented' => sub {
    open my $in, '<', 'bin/sirius' or die "bin/sirius: $!";
    my $manual = do { local $/; <$in> };
    ok index( $manual, Sirius::Config::Usage->pod ) > 0,
        'bin/sirius has the list (else: perl -Ilib -MSirius::Config::Usage -e "print Sirius::Config::Usage->pod")';
    my $help = Sirius::Config::Usage->help;
    for my $row ( grep { !$_->{hidden} } Sirius::Config::Options->rows ) {
        like $help, qr/--?(?:\w+-)?\Q$row->{name}\E\b/, $row->{name};
        ok length $row->{text}, 'with a text';
        is( Sirius::Config::Options->row($_), $row, "$_ is an alias" ) for @{ $row->{alias} || [] };
    }
    unlike $help, qr/.{101}/, 'not too wide';
    for my $command ( undef, 'dev' ) {
        my $short = Sirius::Config::Usage->help( $command, 1 );
        my @shown = $short =~ /^  (-.*)/mg;
        my $name  = 'sirius' . ( $command ? ' dev' : '' );
        is @shown, 20, "$name -h: twenty";
        like $short, qr/\n$name --help lists all \d+\.\n\z/, 'and where the others are';
        cmp_ok( ( () = $short =~ /\n/g ), '<', 50, 'on one screen' );
        unlike $short,                                qr/.{101}/,              'not too wide';
        like + Sirius::Config::Usage->help($command), qr/--max-header-fields/, "$name --help: all";
    }
};

subtest 'The name of a header field' => sub {
    for my $name (qw(X-Request-Id x-correlation-id Request-Id X-Trace)) {
        is conf( request_id_header => $name )->{request_id_header}, $name, $name;
    }
    like refused( request_id_header => $_ ),
        qr/\Asirius: --request-id-header: '.*' is not the name of a header field/s, "not '$_'"
        for '', 'X Id', 'X-Id:', "X-Id\r\nX-Evil", "X-Id\n", 'X-' . 'x' x 100, "X-\x{e4}";
    like refused( request_id_header => $_ ),
        qr/\Asirius: --request-id-header: '$_' is a field with another meaning: use X-Request-Id/, "nor $_"
        for qw(Content-Length Transfer-Encoding Connection Date Server Set-Cookie Location Upgrade);
    is conf()->{request_id_header}, undef, 'none by default';
};

done_testing;
