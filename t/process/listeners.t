use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use File::Temp;
use Socket qw(AF_INET6 SOCK_STREAM inet_pton pack_sockaddr_in6 sockaddr_family unpack_sockaddr_in
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

subtest 'Lint is content with a unix socket' => sub {
    my $server = start_server( <<'APP', '--listen', "$dir/lint" );
use Plack::Middleware::Lint;
Plack::Middleware::Lint->wrap( sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['ok'] ] } )
APP
    is $server->ask('GET /')->status, 200, 'no complaint' or diag $server->log;
    $server->stop;
};

done_testing;
