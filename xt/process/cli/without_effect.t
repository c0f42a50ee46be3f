use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Sirius::Test;

# What cannot be as it was asked for is told, and at once

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
my $APP  = "sub { [ 200, [], ['fine'] ] }\n";

sub ctl {
    my $text = `$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius ctl --control $dir/control @_ 2>&1`;
    return $? >> 8, $text;
}

subtest 'Options in the file that a reload cannot change' => sub {
    my $file = sub {
        spew( "$dir/conf", "listen = 127.0.0.1:0\nworkers = 1\n", map {"$_\n"} @_ );
    };
    $file->('keepalive-timeout = 10');
    my $server = Sirius::Test::Server->start( app => $APP, args => [ '--config', "$dir/conf" ], plain => 1 );
    my $reload = sub {
        my $number = shift;
        $server->signal('HUP');
        return until_true( 20,
            sub { $server->log =~ /generation $number is serving$/m && $server->generations == 1 } );
    };
    ok $reload->(2), 'a reload without a change';
    unlike $server->log, qr/a reload cannot change/, 'has nothing to say';
    for my $number ( 3, 4 ) {    # by the first supervisor, and by one that has become a new program
        $file->( 'listen = 127.0.0.1:5', 'graceful-timeout = 7', "pid = $dir/pid", 'keepalive-timeout = 20' );
        ok $reload->($number), 'a reload with changes' or diag $server->log;
        my @told = $server->log =~ /warn: (--\S+: a reload cannot .*)$/mg;
        is_deeply [ @told[ -3 .. -1 ] ],
            [
            map { s/:/: a reload cannot change it/r . '; restart the server' }
                "--graceful-timeout: from '30' to '7'",
            "--listen: from '127.0.0.1:0' to '127.0.0.1:0 127.0.0.1:5'",
            "--pid: from unset to '$dir/pid'",
            ],
            'names what stays as it was';
        is scalar @told, 3 * ( $number - 2 ), 'and nothing else';
    }
    $server->stop;
};

# PIDs and users of all its processes but the supervisor
sub users {
    my $server = shift;
    my %user;
    for my $pid ( grep { $_ != $server->pid } $server->processes ) {
        my ($uid) = Sirius::Test::Server::slurp("/proc/$pid/status") =~ /^Uid:\s+(\d+)/m;
        $user{$uid} = 1 if defined $uid;
    }
    return join q( ), sort keys %user;
}

# As root each gives processes another user. Another user may only name itself
subtest 'user and group in the file' => sub {
    my $own    = getpwuid $>;
    my $nobody = getpwnam 'nobody';
    chmod 0755, $dir;
    my @steps
        = $>
        ? ( [ [], ["user = $own"] ] )
        : (
        [ [],                 ['user = nobody'] ],
        [ ['user = nobody'],  [] ],
        [ ['user = nobody'],  ['user = daemon'] ],
        [ ['user = nobody'],  [ 'user = nobody', 'group = daemon' ] ],
        [ ['group = daemon'], [] ],
        );
    for my $step (@steps) {
        my ( $before, $after ) = @$step;
        my $file = sub {
            spew( "$dir/conf", "listen = 127.0.0.1:0\nworkers = 1\n", map {"$_\n"} @_ );
        };
        $file->(@$before);
        my $server
            = Sirius::Test::Server->start( app => $APP, args => [ '--config', "$dir/conf" ], plain => 1 );
        $server->wait_log(qr/1 worker is serving/);
        my $users = users($server);
        my $other = !$> && "@$before" =~ /user/;
        is $users, $other ? $nobody : $>, "@$before: all processes are of one user";
        for my $number ( 2, 3 ) {
            $file->( @$after, "keepalive-timeout = $number" );    # edges are renewed too
            $server->signal('HUP');
            ok until_true(
                20, sub { $server->log =~ /generation $number is serving$/m && $server->generations == 1 }
                ),
                "then @$after: a reload";
            ok until_true( 20, sub { $server->edges == 1 && users($server) eq $users } ),
                'nothing has another user'
                or diag users($server);
        }
        my ($name)
            = ( "@$before" eq 'user = nobody' && "@$after" =~ /group/ )
            ? 'group'
            : "@$before @$after" =~ /(user|group)/;
        my @told = $server->log =~ /warn: --$name: a reload cannot change it from .*; restart the server$/mg;
        is scalar @told,                2,      'each reload says so' or diag $server->log;
        is $server->ask('GET /')->body, 'fine', 'it serves';
        $server->stop;
    }
};

subtest 'ctl workers' => sub {
    my $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [ qw(--workers 2), '--control', "$dir/control" ]
    );
    my ( $status, $text ) = ctl(qw(workers 20));
    is $status, 1, 'more than there is room for: exit status';
    like $text, qr/\Asirius ctl: only 8 workers are possible, not 20; .*--workers/, 'and what to do';
    is_deeply [ ctl(qw(workers 8)) ], [ 0, "8 workers\n" ], 'all that there is room for';
    $server->stop;
};

subtest '--listen beside sockets of systemd' => sub {
    my $socket  = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 5 ) or die $@;
    my $program = spew( "$dir/activate", <<"PROGRAM" );
use POSIX ();
POSIX::dup2( shift, 3 );
\@ENV{qw(LISTEN_FDS LISTEN_PID)} = ( 1, \$\$ );
exec \@ARGV;
PROGRAM
    for my $case ( [ 0 => qw(--workers 1) ], [ 1 => qw(--workers 1 --listen 127.0.0.1:0) ] ) {
        my ( $told, @args ) = @$case;
        require Fcntl;
        fcntl $socket, Fcntl::F_SETFD(), 0;
        my $server = Sirius::Test::Server->start(
            app     => $APP,
            args    => \@args,
            plain   => 1,
            command => [ $^X, $program, fileno $socket, $^X, "$root/bin/sirius", qw(-E deployment) ],
        );
        is $server->port, $socket->sockport, 'it listens on that socket';
        is scalar( () = $server->log =~ /warn: --listen 127.0.0.1:0 has no effect: systemd/g ), $told,
            "@args";
        $server->stop;
    }
};

# To listen without TLS where it was asked for would be worse than not to listen
subtest '--listen ADDRESS,tls beside sockets of systemd and start_server' => sub {
    my $socket  = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 5 ) or die $@;
    my $port    = $socket->sockport;
    my $program = spew( "$dir/activate_tls", <<"PROGRAM" );
use POSIX ();
POSIX::dup2( shift, 3 );
shift eq 'systemd' ? \@ENV{qw(LISTEN_FDS LISTEN_PID)} = ( 1, \$\$ ) : \$ENV{SERVER_STARTER_PORT} = '127.0.0.1:$port=3';
exec \@ARGV;
PROGRAM
    fcntl $socket, Fcntl::F_SETFD(), 0;
    for my $giver (qw(systemd start_server)) {
        my @command = ( $^X, $program, fileno $socket, $giver, $^X, "$root/bin/sirius", qw(-E deployment) );
        my @args    = ( '--tls-self-signed', '--workers', 1, '--listen' );
        my $server  = Sirius::Test::Server->start(
            app     => $APP,
            args    => [ @args, "127.0.0.1:$port,tls" ],
            plain   => 1,
            command => \@command
        );
        like $server->log,   qr{listening on https://127\.0\.0\.1:$port/}, "$giver: the socket speaks TLS";
        unlike $server->log, qr/has no effect/,                            'and --listen has an effect';
        $server->stop;
        $server = Sirius::Test::Server->spawn(
            app     => $APP,
            args    => [ @args, '127.0.0.1:1,tls' ],
            plain   => 1,
            command => \@command
        );
        is $server->wait_exit(20), 'exit 1', 'another address: it does not start';
        like $server->log,
            qr/^sirius: cannot listen on 127\.0\.0\.1:1,tls: $giver has opened the sockets, but none at this address/m,
            'and says why';
        $server = Sirius::Test::Server->start(
            app     => $APP,
            args    => [ '--workers', 1, '--listen', "127.0.0.1:$port,h2c" ],
            plain   => 1,
            command => \@command
        );
        like $server->log, qr{listening on http://127\.0\.0\.1:$port/ \(h2c\)$}m, 'the socket takes HTTP/2';
        $server->stop;
    }
};

subtest 'An address in use is told before the application is loaded' => sub {
    my $taken = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 5 ) or die $@;
    my $unix
        = Sirius::Test::Server->start( app => $APP, args => [ '--workers', 0, '--listen', "$dir/sock" ] );
    my $app  = "BEGIN { open my \$out, '>', '$dir/loaded' }\n$APP";
    my %case = (
        'a port'            => [ '--listen',  '127.0.0.1:' . $taken->sockport ],
        'with --workers 0'  => [ '--workers', 0, '--listen', '127.0.0.1:' . $taken->sockport ],
        'a unix socket'     => [ '--listen',  "$dir/sock" ],
        'of the admin port' => [ '--port',    0, '--admin', '127.0.0.1:' . $taken->sockport ],
    );
    for my $name ( sort keys %case ) {
        unlink "$dir/loaded";
        my $server = Sirius::Test::Server->spawn( app => $app, args => $case{$name}, plain => 1 );
        is $server->wait_exit(20), 'exit 1', "$name: it does not start";
        like $server->log, qr/\Asirius: cannot listen on .*in use/i, 'says why';
        ok !-e "$dir/loaded", 'and has not loaded the application';
    }
    $unix->stop;
};

subtest 'A helper that the application has forked while it was loaded does not keep the port' => sub {
    my $server = start_server( <<"APP", qw(--workers 1) );
if ( !fork ) { \$0 = 'helper'; \$SIG{\$_} = 'IGNORE' for qw(TERM INT); open my \$out, '>>', '$dir/helpers'; syswrite \$out, "\$\$\\n"; close \$out; setpgrp; sleep 30; POSIX::_exit(0) }
sub { [ 200, [], ['fine'] ] };
APP
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 20 ), 'a reload';
    my ( $host, $port ) = split /:/, $server->address;
    $server->stop;
    my @helpers = split /\n/, Sirius::Test::Server::slurp("$dir/helpers");
    ok @helpers >= 2 && !( grep { !kill 0 => $_ } @helpers ),          'the helpers live on';
    ok !IO::Socket::INET->new( PeerAddr => $host, PeerPort => $port ), 'nobody listens any more';
    my $again = eval {
        Sirius::Test::Server->start( app => $APP, args => [ '--workers', 1, '--listen', "$host:$port" ] );
    };
    ok $again, 'another server can have the port' or diag $@;
    $again->stop if $again;
    kill KILL => @helpers;
};

# The notice about an option, and whether it is true: a request to the server, and the expected answer
my $SLOW
    = "sub { if ( \$_[0]{PATH_INFO} eq '/slow' ) { open my \$out, '>', '$dir/slow'; select undef, undef, undef, 2 }"
    . " [ 200, [], [\$\$] ] }\n";
my %CASE = (
    'max-reqs-per-child' => [
        [qw(--workers 0 --max-reqs-per-child 2)],
        sub {
            my $server = shift;
            return join ' ', map { $server->ask('GET /')->body eq $server->pid ? 'same' : 'other' } 1 .. 5;
        },
        'same same same same same'
    ],
    'after-fork' => [
        [ qw(--workers 0 --after-fork), 'sub { warn "called" }' ],
        sub { my $server = shift; $server->ask('GET /'); return scalar( () = $server->log =~ /called at/g ) },
        0
    ],
    'graceful-timeout' => [
        [qw(--workers 0 --graceful-timeout 0.2)],
        sub {
            my $server = shift;
            my $client = $server->connect;
            $client->send( request('GET /slow') );
            until_true( 20, sub { -e "$dir/slow" } );
            $server->signal('TERM');
            my $status = $client->response->status;
            $server->wait_exit(20);
            return $status;
        },
        200
    ],
    'control'           => [ [ qw(--workers 0 --control), "$dir/none" ], sub { -e "$dir/none" ? 1 : 0 }, 0 ],
    'keepalive-timeout' => [
        [qw(--workers 1 --disable-keepalive --keepalive-timeout 0.2)],
        sub {
            my $client = shift->connect;
            select undef, undef, undef, 1;    # idle, and without a first request that is not for this limit
            return $client->ask('GET /')->status . q( ) . $client->end;
        },
        '200 eof'
    ],
    'body-timeout' => [
        [qw(--workers 1 --body-rate 0 --body-timeout 0.2)],
        sub {
            my $client = shift->connect;
            $client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
            select undef, undef, undef, 1;
            $client->send('b');
            return $client->response->status;
        },
        200
    ],
    'socket-mode' => [
        [ qw(--workers 1 --socket-mode 0600 --listen), "unix:$dir/own?mode=0640" ],
        sub { return sprintf '%o', 07777 & ( stat "$dir/own" )[2] },
        '640'
    ],
    'access-log-min-time' =>
        [ [qw(--workers 1 --access-log-min-time 0.001)], sub { shift->ask('GET /')->status }, 200 ],
    'admin-public' => [ [qw(--workers 1 --admin-public)], sub { shift->ask('GET /')->status }, 200 ],
);
for my $name ( sort keys %CASE ) {
    subtest "--$name without effect" => sub {
        my ( $args, $code, $want ) = @{ $CASE{$name} };
        my $server = Sirius::Test::Server->start( app => $SLOW, args => $args );
        is scalar( () = $server->log =~ /^sirius: --$name has no effect: \w/mg ), 1, 'is told once'
            or diag $server->log;
        is scalar( () = $server->log =~ /no effect/g ), 1,     'and nothing else is';
        is $code->($server),                            $want, 'and is true';
        $server->stop;
    };
}

done_testing;
