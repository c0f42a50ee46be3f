use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use File::Temp;
use Socket      qw(:DEFAULT MSG_DONTWAIT);
use Time::HiRes qw(sleep time);
use Sirius::Test;

# As a service of systemd: this test is systemd

my $dir = File::Temp->newdir;
my $APP = <<'APP';
select undef, undef, undef, $ENV{TEST_LOAD} if $ENV{TEST_LOAD} && -e "$ENV{TEST_DIR}/slow";
my $version = do { open my $in, '<', "$ENV{TEST_DIR}/version"; my $line = readline $in; defined $line ? $line : 0 };
die "version 3 is broken\n" if $version eq '3';
sub { [ 200, [], [ join ' ', $version, sort grep {/^(?:LISTEN|NOTIFY|WATCHDOG)_/} keys %ENV ] ] }
APP
my $ACTIVATE = <<'ACTIVATE';
use Fcntl; use POSIX ();
my @high = map { open my $fh, '<&=', $_ or die "$_: $!"; fcntl $fh, F_DUPFD, 100 } split /,/, shift;
POSIX::dup2( $high[$_], 3 + $_ ), POSIX::close( $high[$_] ) for 0 .. $#high;
$ENV{LISTEN_FDS} = @high;
$ENV{LISTEN_PID} = $$ + ( $ENV{TEST_OTHER_PID} || 0 );
$ENV{WATCHDOG_PID} = $$;
exec @ARGV or die $!;
ACTIVATE

sub version {
    my ( $number, $name ) = ( @_, 'version' );
    return spew( "$dir/$name", $number );
}

# A listening socket that an exec leaves open
sub listening {
    my ( $family, $address, $type ) = @_;
    local $^F = 99;
    socket my $fh, $family, $type || SOCK_STREAM, 0 or die "socket: $!";
    bind $fh, $address or die "bind: $!";
    $type || listen $fh, 64 or die "listen: $!";
    return $fh;
}

sub tcp { return listening( AF_INET, pack_sockaddr_in( 0, INADDR_LOOPBACK ) ) }

sub port { return ( unpack_sockaddr_in( getsockname shift ) )[0] }

# Options: sockets, env, args, and those of Sirius::Test::Server
sub activate {
    my (%option) = @_;
    my $root     = $Sirius::Test::Server::ROOT;
    my $spawn    = delete $option{spawn} ? 'spawn' : 'start';
    my $fds      = join ',', map { fileno $_ } @{ delete $option{sockets} || [] };
    return Sirius::Test::Server->$spawn(
        app     => $APP,
        command => [ $^X, '-e', $ACTIVATE, $fds, $^X, "$root/bin/sirius", '-E', 'deployment' ],
        %option,
        args => [ '--workers', 2, @{ $option{args} || [] } ],
        env  => { TEST_DIR => "$dir", %{ $option{env} || {} } },
    );
}

# All that was said to systemd so far
my ( $systemd, @said );

sub said {
    while ( defined recv $systemd, my $text, 65_536, MSG_DONTWAIT ) {
        push @said, $text;
    }
    return @said;
}

# True when a message of this kind has come; what was before it is forgotten
sub hears {
    my $pattern = shift;
    return until_true(
        20,
        sub {
            my ($first) = grep { $said[$_] =~ $pattern } 0 .. $#{ [said] };
            return defined $first && do { splice @said, 0, $first + 1; 1 };
        }
    );
}

$systemd = listening( AF_UNIX, pack_sockaddr_un("$dir/notify"), SOCK_DGRAM );

subtest 'socket activation: the descriptors are served, the default address is not bound' => sub {
    my ( $tcp, $unix ) = ( tcp(), listening( AF_UNIX, pack_sockaddr_un("$dir/activated") ) );
    my $server = activate(
        sockets => [ $tcp, $unix ],
        env     => { LISTEN_FDNAMES => 'web:local' },
        ready   => 2
    );
    is_deeply [ $server->listeners ], [ '127.0.0.1:' . port($tcp), "unix:$dir/activated" ],
        'both, and no other';
    is $server->connect( to => $_ )->ask('GET /')->body, '0', "$_: a page, and nothing of it in %ENV"
        for $server->listeners;
    $server->stop;
    ok -S "$dir/activated", 'the inherited unix socket is not removed';
    is $server->exited, 'exit 0', 'stopped';
    my $later = activate( sockets => [ $tcp, $unix ], ready => 2 );
    is $later->ask('GET /')->status, 200, 'started again on the same socket';
    $later->stop;
};

# LISTEN_PID is the PID of the command, not that of the process that goes on
subtest 'socket activation with --daemonize' => sub {
    my $tcp    = tcp();
    my $server = activate(
        sockets => [$tcp],
        spawn   => 1,
        args    => [ '--daemonize', '--pid', "$dir/daemon.pid", '--error-log', "$dir/daemon.log" ],
    );
    is $server->wait_exit, 'exit 0', 'the command is over';
    my $log = Sirius::Test::Server::slurp("$dir/daemon.log");
    is_deeply [ $log =~ m{listening on (\S+)}g ], [ 'http://127.0.0.1:' . port($tcp) . '/' ],
        'the socket is served, and no other address'
        or diag $log;
    is $server->connect( to => '127.0.0.1:' . port($tcp) )->ask('GET /')->body, '0', 'a page';
    my ($pid) = Sirius::Test::Server::slurp("$dir/daemon.pid") =~ /(\d+)/;
    kill TERM => $pid;
    ok until_true( 20, sub { !kill 0, $pid } ), 'stopped';
};

subtest 'one of them, and an address beside it' => sub {
    my ( $tcp, $other ) = ( tcp(), tcp() );
    my $server = activate(
        sockets => [ $other, $tcp ],
        env     => { LISTEN_FDNAMES => 'other:web' },
        args    => [ '--listen', 'systemd:web', '--listen', "$dir/beside" ],
    );
    is_deeply [ $server->listeners ], [ '127.0.0.1:' . port($tcp), "unix:$dir/beside" ], 'these two';
    is $server->connect( to => $_ )->ask('GET /')->status, 200, $_ for $server->listeners;
    $server->stop;
};

subtest 'what --admin names is not served by the workers' => sub {
    my ( $tcp, $admin ) = ( tcp(), tcp() );
    my $server = activate(
        sockets => [ $admin, $tcp ],
        env     => { LISTEN_FDNAMES => 'admin:web' },
        args    => [ '--admin', 'systemd:admin' ],
    );
    is_deeply [ $server->listeners ], [ '127.0.0.1:' . port($tcp) ], 'the other one is';
    my $url = 'http://127.0.0.1:' . port($admin) . '/';
    like $server->log, qr/admin on \Q$url\E$/m, 'it has an admin port';
    $server->stop;
};

subtest 'LISTEN_PID is not ours: ignored' => sub {
    my $tcp    = tcp();
    my $server = activate( sockets => [$tcp], env => { TEST_OTHER_PID => 1 } );
    isnt $server->port,             port($tcp), 'an address of its own';
    is $server->ask('GET /')->body, '0',        'and nothing of it in %ENV';
    $server->stop;
};

subtest 'what is no listening socket is named' => sub {
    my $datagram = listening( AF_INET, pack_sockaddr_in( 0, INADDR_LOOPBACK ), SOCK_DGRAM );
    my $server   = activate( sockets => [ tcp(), $datagram ], spawn => 1 );
    is $server->wait_exit, 'exit 1', 'it does not start';
    is $server->log, "sirius: LISTEN_FDS: unknown: descriptor 4 is not a listening stream socket\n",
        'right error';
};

subtest 'systemd-socket-activate' => sub {
    my $program = program('systemd-socket-activate');
    plan skip_all => 'it is not installed' if !$program;
    my $probe = tcp();
    my $port  = port($probe);
    close $probe;
    my @sanitizer = grep { defined $ENV{$_} } qw(ASAN_OPTIONS UBSAN_OPTIONS);
    my $server    = Sirius::Test::Server->spawn(
        app     => $APP,
        env     => { TEST_DIR => "$dir" },
        command => [
            $program, '-l', "127.0.0.1:$port", ( map { ( '-E', $_ ) } qw(PERL5LIB TEST_DIR), @sanitizer ),
            $^X,      "$Sirius::Test::Server::ROOT/bin/sirius",
            '-E',     'deployment'
        ],
    );
    my $client = until_true(
        20,
        sub {
            eval { $server->connect( to => "127.0.0.1:$port" ) }
        }
    );
    is $client->ask('GET /')->body, '0', 'the first request, which starts it, is answered';
    $server->stop;
};

subtest 'Type=notify-reload: READY, RELOADING, READY, STOPPING, with one main process' => sub {
    @said = ();
    version(1);
    my $server = activate( env => { NOTIFY_SOCKET => "$dir/notify" } );
    my $pid    = $server->pid;
    ok hears(qr/^READY=1$/m), 'READY';
    is $server->ask('GET /')->body, '1', 'children do not know of it';

    version(2);
    $server->signal('HUP');
    ok hears(qr/^RELOADING=1\nMONOTONIC_USEC=[1-9]\d*$/m), 'RELOADING';
    ok hears(qr/^READY=1\n(?:.*\n)*MAINPID=$pid$/m),       'READY, the main process is the same';
    my $body;
    ok until_true( 20, sub { ( $body = $server->ask('GET /')->body ) =~ /\A2\b/ } ), 'the new code serves';
    is $body, '2', 'and does not know of it either';

    version(3);
    $server->signal('HUP');
    ok hears(qr/^RELOADING=1$/m),                    'a reload that fails: RELOADING';
    ok hears(qr/^READY=1\n(?:.*\n)*STATUS=.*fail/m), 'READY all the same, and why';
    like $server->ask('GET /')->body, qr/\A2\b/, 'the old code serves';

    $server->stop;
    ok hears(qr/^STOPPING=1$/m), 'STOPPING';
    version(0);
};

subtest 'a reload on inherited sockets' => sub {
    my $tcp    = tcp();
    my $server = activate( sockets => [$tcp], env => { NOTIFY_SOCKET => "$dir/notify" } );
    version(1);
    $server->signal('HUP');
    ok until_true( 20, sub { $server->ask('GET /')->body =~ /\A1/ } ), 'the new generation serves them'
        or diag $server->log;
    is_deeply [ $server->listeners ], [ '127.0.0.1:' . port($tcp) ], 'nothing else is bound';
    $server->stop;
    version(0);
};

subtest 'the watchdog is fed, while a slow application is reloaded as well' => sub {
    @said = ();
    my $usec = 300_000;
    my $server
        = activate( env => { NOTIFY_SOCKET => "$dir/notify", WATCHDOG_USEC => $usec, TEST_LOAD => 2 } );
    ok hears(qr/\AWATCHDOG=1\z/), "ping $_" for 1 .. 3;
    version( 1, 'slow' );
    $server->signal('HUP');
    ok hears(qr/^RELOADING=1$/m), 'RELOADING';
    my $pings;
    ok until_true(
        20,
        sub {
            $pings = grep { $_ eq 'WATCHDOG=1' } said();
            grep {/^READY=1$/m} @said;
        }
        ),
        'READY';
    cmp_ok $pings, '>=', 3, 'pings between them';
    $server->stop;
    unlink "$dir/slow";
};

done_testing;
