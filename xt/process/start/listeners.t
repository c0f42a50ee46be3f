use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Fcntl qw(F_SETFD);
use File::Temp;
use Socket qw(AF_INET AF_INET6 SOCK_STREAM inet_pton pack_sockaddr_in6 sockaddr_family unpack_sockaddr_in
    unpack_sockaddr_in6);
use Sys::Hostname qw(hostname);
use Sirius::Test;

# Several addresses at once, and what the application is told of them

my $APP = <<'APP';
sub { my $env = shift; [ 200, [], [ join '|', map { defined $env->{$_} ? $env->{$_} : 'undef' } qw(SERVER_NAME SERVER_PORT REMOTE_ADDR REMOTE_PORT) ] ] }
APP
my $dir = File::Temp->newdir;

my $probe;
my $six = socket( $probe, AF_INET6, SOCK_STREAM, 0 ) && bind $probe,
    pack_sockaddr_in6( 0, inet_pton( AF_INET6, '::1' ) );

subtest 'two TCP ports and a unix socket' => sub {
    my $server = start_server( $APP, '--workers', 2, map { ( '--listen', $_ ) } '127.0.0.1:0',
        '127.0.0.1:0', "$dir/sock" );
    my @listener = $server->listeners;
    is scalar @listener, 3,                "@listener";
    isnt $listener[0],   $listener[1],     'two ports';
    is $listener[2],     "unix:$dir/sock", 'the path';
    for my $listener (@listener) {
        my $client = $server->connect( to => $listener );
        my ( $name, $port, $addr ) = split /\|/, $client->ask('GET /')->body;
        is $client->ask('GET /')->status, 200, "$listener is kept";
        ok length $name && $name ne 'undef', "SERVER_NAME $name";
        if ( $listener =~ /:(\d+)\z/ ) { is $port, $1, 'SERVER_PORT' }
        else                           { like $port, qr/\A\d+\z/, 'SERVER_PORT is not empty' }
        like $addr, qr/\A(?:127\.0\.0\.1)?\z/, 'REMOTE_ADDR is defined';
    }
    $server->stop;
    ok !-e "$dir/sock", 'the socket is removed';
};

subtest '[::1]' => sub {
    plan skip_all => 'no IPv6 here' if !$six;
    my $server = start_server( $APP, '--listen', '[::1]:0' );
    my ( undef, $port, $addr ) = split /\|/, $server->ask('GET /')->body;
    is $addr, '::1',         'REMOTE_ADDR without brackets';
    is $port, $server->port, 'SERVER_PORT';
    $server->stop;
};

subtest '*: IPv4 and IPv6 on one port' => sub {
    plan skip_all => 'no IPv6 here' if !$six;
    my $server = start_server( $APP, '--listen', '*:0' );
    my $port   = $server->port;
    my $name   = hostname();
    for my $case ( [ "127.0.0.1:$port", '127.0.0.1' ], [ "[::1]:$port", '::1' ] ) {
        my ( $to, $addr ) = @$case;
        my $client = $server->connect( to => $to );
        my $own    = getsockname $client->socket;
        my ($from) = sockaddr_family($own) == AF_INET6 ? unpack_sockaddr_in6($own) : unpack_sockaddr_in($own);
        is $client->ask('GET /')->body, "$name|$port|$addr|$from", "REMOTE_ADDR $addr";
    }
    $server->stop;
};

subtest 'an abstract unix socket' => sub {
    plan skip_all => 'Linux only' if $^O ne 'linux';
    my $name   = "sirius-listeners-$$";
    my $server = start_server( $APP, '--listen', "\@$name" );
    is $server->address, "unix:\@$name", 'its name is shown';
    my $client = $server->connect( to => "unix:\0$name" );
    is $client->ask('GET /')->body =~ s/\|\w*\z//r, 'localhost|80|127.0.0.1', 'it serves';
    $server->stop;
};

subtest 'a unix socket that a killed server left' => sub {
    my $server = start_server( $APP, '--listen', "unix:$dir/stale" );
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->kill_hard;
    ok -S "$dir/stale", 'killed: the file is left';
    $server = start_server( $APP, '--listen', "unix:$dir/stale" );
    is $server->ask('GET /')->status, 200, 'replaced';
    $server->stop;
};

subtest 'an address that is given twice' => sub {
    my $number = free_port();
    my $server = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ '--listen', "127.0.0.1:$number", '--listen', "127.0.0.1:$number" ]
    );
    like $server->wait_exit, qr/\Aexit [1-9]/, 'refused';
    like $server->log, qr/in use by this server: it is given twice/, 'not as if another server had it'
        or diag $server->log;
};

subtest 'an address that is taken' => sub {
    my $first  = start_server( $APP, '--listen', "$dir/taken" );
    my $second = Sirius::Test::Server->spawn( app => $APP, args => [ '--listen', "$dir/taken" ] );
    like $second->wait_exit, qr/\Aexit [1-9]/,   'a unix socket that is served: refused';
    like $second->log,       qr{\Q$dir/taken\E}, 'and named';
    is $first->ask('GET /')->status, 200, 'the first is not harmed';
    my $port = start_server($APP);
    $second = Sirius::Test::Server->spawn( app => $APP, args => [ '--listen', $port->address ] );
    like $second->wait_exit, qr/\Aexit [1-9]/,       'a port that is served: refused';
    like $second->log,       qr/@{[ $port->port ]}/, 'and named';
    $_->stop for $first, $port;
};

# Names of the processes that have a descriptor of a socket that listens at one of these addresses
sub holders {
    my ( $server, @addresses ) = @_;
    my %port = map { /\A[\d.]+:(\d+)\z/     ? ( sprintf( '%04X', $1 ) => 1 ) : () } @addresses;
    my %path = map { /\Aunix:(.+?)(?: |\z)/ ? ( $1                    => 1 ) : () } @addresses;
    my %inode;
    for ( split /\n/, Sirius::Test::Server::slurp('/proc/net/tcp') ) {
        my @field = split;
        $inode{ $field[9] } = 1 if $field[1] =~ /:(\w{4})\z/ && $port{$1} && $field[3] eq '0A';
    }
    for ( split /\n/, Sirius::Test::Server::slurp('/proc/net/unix') ) {
        my @field = split;
        $inode{ $field[6] } = 1 if defined $field[7] && $path{ $field[7] };
    }
    my @found;
    for my $pid ( $server->processes ) {
        my @links = map { readlink("/proc/$pid/fd/$_") // q() } $server->descriptors($pid);
        push @found, Sirius::Test::Server::comm($pid) if grep { /\Asocket:\[(\d+)\]/ && $inode{$1} } @links;
    }
    return join q(, ), sort @found;
}

# What has them can accept clients, and keep the address when the server is gone
subtest 'only the supervisor and the edge have the sockets' => sub {
    my $code
        = "sub { if ( \$_[0]{PATH_INFO} eq '/job' ) { my \$pid = fork; if ( !\$pid ) { sleep 30; require POSIX;"
        . " POSIX::_exit(0) } return [ 200, [], [\$pid] ] } [ 200, [], ['x'] ] }\n";
    socket my $open, AF_INET, SOCK_STREAM, 0 or die "socket: $!";
    listen $open, 5 or die "listen: $!";
    my $number = fileno $open;
    fcntl $open, F_SETFD, 0;
    my %case = (
        'TCP'               => [ qw(--listen 127.0.0.1:0), '--listen', "$dir/held" ],
        'a descriptor'      => [ '--listen', "fd:$number" ],
        '-L Delayed'        => [qw(--listen 127.0.0.1:0 -L Delayed)],
        'and an admin port' => [ qw(--listen 127.0.0.1:0), '--admin', "$dir/admin" ],
    );
    for my $name ( sort keys %case ) {
        my $server = start_server( $code, qw(--workers 2), @{ $case{$name} } );
        $server->wait_log(qr/2 workers are serving/);
        my @addresses = ( $server->listeners, $name =~ /admin/ ? "unix:$dir/admin" : () );
        my $admin     = $name =~ /admin/ ? 'sirius: admin e, ' : q();
        is holders( $server, @addresses ), "sirius, ${admin}sirius: edge", "$name: at the start";
        $server->signal('HUP');
        $server->wait_log(qr/generation 2 is serving/);
        ok until_true( 10, sub { holders( $server, @addresses ) eq "sirius, ${admin}sirius: edge" } ),
            'after a reload'
            or diag holders( $server, @addresses );
        my $job = $server->ask('GET /job')->body;
        ok until_true(
            10, sub { holders( $server, @addresses ) =~ /\A(?:sirius|perl), \Q$admin\Esirius: edge\z/ }
            ),
            'a child of the application has none'
            or diag holders( $server, @addresses );
        kill KILL => $job;
        $server->stop;
    }
};

subtest 'the supervisor is killed while code loads: the address is free' => sub {
    linux_only('a child ends with its parent');
    my $hang  = "if ( -e '$dir/hang' ) { open my \$out, '>', '$dir/hangs' or die; sleep 60 }";
    my %hangs = (
        'while the application is loaded' => [ '',              $hang ],
        'in --before-fork'                => [ "sub { $hang }", '' ],
    );
    for my $name ( sort keys %hangs ) {
        my ( $hook, $code ) = @{ $hangs{$name} };
        unlink "$dir/hang", "$dir/hangs";
        my $server = Sirius::Test::Server->start(
            app  => "$code; sub { [ 200, [], ['x'] ] }\n",
            args => [
                qw(--workers 1 --graceful-timeout 1 --listen),
                '127.0.0.1:' . free_port(),
                length $hook ? ( '--before-fork' => $hook ) : ()
            ],
            may_crash => 1
        );
        $server->wait_log(qr/1 worker is serving/);
        Sirius::Test::Server::spew( "$dir/hang", '' );
        my $before = $server->processes;
        $server->signal('HUP');
        ok until_true( 10, sub { $server->processes > $before } ), "$name: a reload hangs";
        ok until_true( 10, sub { -e "$dir/hangs" } ),              'it is there';
        $server->signal('KILL');
        $server->wait_exit;
        ok until_true( 15, sub { !$server->processes } ), 'nothing is left of the server'
            or diag $server->log;
        my $next = start_server( "sub { [ 200, [], ['x'] ] }\n", '--listen', $server->address );
        is $next->ask('GET /')->status, 200, 'the next server listens there';
        $next->stop;
    }
};

subtest 'a stop while code loads that ignores signals' => sub {
    unlink "$dir/hang";
    my $server = start_server(
        "if ( -e '$dir/hang' ) { \$SIG{TERM} = 'IGNORE'; while (1) { select undef, undef, undef, 1 } }"
            . " sub { [ 200, [], ['x'] ] }\n",
        qw(--workers 1)
    );
    $server->wait_log(qr/1 worker is serving/);
    Sirius::Test::Server::spew( "$dir/hang", '' );
    my $before = $server->processes;
    $server->signal('HUP');
    ok until_true( 10, sub { $server->processes > $before } ), 'a reload hangs';
    $server->stop;
};

subtest 'Lint is content with a unix socket' => sub {
    my $server = start_server( <<'APP', '--listen', "$dir/lint" );
use Plack::Middleware::Lint;
Plack::Middleware::Lint->wrap( sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['ok'] ] } )
APP
    is $server->ask('GET /')->status, 200, 'no complaint' or diag $server->log;
    $server->stop;
};

done_testing;
