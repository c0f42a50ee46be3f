use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius;
use Sirius::Test;

# --admin: a process of its own that answers whatever the workers do

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
my $json = JSON::PP->new->utf8;
chmod 0755, "$dir" or die $!;

END {
    my $status = $?;
    kill KILL => daemon() if $dir;    # a test has failed: it is no child of ours
    $? = $status;
}

# /wait waits for a file of that name in the folder of the test
my $APP = <<"APP";
our \$large = 'x' x 50_000_000;
sub {
    my \$path = \$_[0]{PATH_INFO};
    if ( \$path ne '/' ) { select undef, undef, undef, 0.02 until -e "$dir\$path" }
    return [ 200, [], ["worker \$\$"] ];
}
APP

# The process; from its start to its name it takes a moment
sub admin {
    my $server = shift;
    return until_true(
        20,
        sub {
            ( grep { Sirius::Test::Server::comm($_) eq 'sirius: admin' } $server->generations )[0];
        }
    );
}

sub addresses {
    return map {s{\Ahttp://(.*)/\z}{$1}r} shift->log =~ /admin on (\S+)$/mg;
}

# The one of the last test
sub daemon { return Sirius::Test::Server::slurp("$dir/pid") =~ /\A(\d+)/ ? $1 : () }

sub cmdline { return Sirius::Test::Server::slurp( '/proc/' . shift() . '/cmdline' ) }

sub get {
    my ( $server, $path ) = @_;
    my ($address) = addresses($server);
    return $server->connect( to => $address )->ask( "GET $path", 'Host: localhost' );
}

# Has sent a request, and has not read the answer
sub asking {
    my ( $server, $path ) = @_;
    my ($address) = addresses($server);
    my $client = $server->connect( to => $address );
    $client->send("GET $path HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    return $client;
}

sub status { return $json->decode( get( shift, '/status.json' )->body ) }

sub start {
    my @args = @_;
    @args = ( '--admin', '127.0.0.1:0', @args ) if !grep { $_ eq '--admin' } @args;
    return start_server( $APP, '--workers', 2, @args );
}

sub touch { return spew( "$dir/" . shift, '' ) }

sub uid { return Sirius::Test::Server::slurp( '/proc/' . shift() . '/status' ) =~ /^Uid:\s+(\d+)/m ? $1 : -1 }

subtest 'Addresses that are refused' => sub {
    my $public = 'other machines can reach this address; '
        . 'use a loopback address or a unix socket, or add --admin-public';
    my %case = (
        '9090'        => "--admin 9090: $public",
        '[::]:0'      => "--admin [::]:0: $public",
        '128.0.0.1:0' => "--admin 128.0.0.1:0: $public",
        'fe80::1:80'  => "--admin fe80::1:80: $public",
        '[::1'        => q(--admin: '[::1' is not an address: write [IPV6]:PORT or unix:PATH),
        '127.0.0.1:0' => '--admin: not available with --workers 0; use --workers 1 or more',
    );
    for my $address ( sort keys %case ) {
        my @workers = ( '--workers', $address =~ /127/ ? 0 : 1 );
        my $server  = Sirius::Test::Server->spawn(
            app  => "die qq(loaded\\n);\n",
            args => [ '--admin', $address, @workers ]
        );
        is $server->wait_exit, 'exit 2',                    "$address: exit status 2";
        is $server->log,       "sirius: $case{$address}\n", 'one line; the application is not loaded';
    }
};

subtest 'All workers are stuck' => sub {
    my $server = start();
    my @client = map { $server->connect } 1 .. 2;
    $client[$_]->send( request("GET /stuck?$_") ) for 0, 1;
    my $lines = sub {
        join ' ', sort map { $_->{line} } grep { $_->{began} } @{ status($server)->{workers} };
    };
    ok until_true( 20, sub { $lines->() eq 'GET /stuck?0 GET /stuck?1' } ), 'it says what they do';
    is get( $server, '/healthz' )->status, 200, 'it is alive';
    my $status = status($server);
    is_deeply [ sort map { $_->{pid} } @{ $status->{workers} } ], [ sort $server->workers ],
        'no other is counted as a worker';
    is_deeply $status->{listeners}, [ 'http://' . $server->address . '/' ], 'the addresses of the server';
    is $client[0]->some( 1, 0 ), '', 'and they still wait';
    touch('stuck');
    is $_->response->status, 200, 'answered' for @client;
    $server->stop;
};

subtest 'A small process that sleeps and lets sleep' => sub {
    my $server = start();
    my $pid    = admin($server);
    is get( $server, '/readyz' )->status, 200, 'it answers';
    cmp_ok( Sirius::Test::Server->memory($pid), '<', 50_000, 'it has not loaded the application' );
    like cmdline($pid), qr/\Asirius: admin\0*\z/, 'its title';
    my $wakes = sub {
        my $text = Sirius::Test::Server::slurp("/proc/$_[0]/status");
        return $text =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : 0;
    };
    my ( $before, $asleep ) = ( $wakes->( $server->pid ), $wakes->($pid) );
    sleep 0.5;
    cmp_ok( $wakes->($pid) - $asleep, '<', 10, 'nothing wakes it' );
    get( $server, '/healthz' ) for 1 .. 50;
    cmp_ok( $wakes->( $server->pid ) - $before, '<', 10, 'nor does it wake the supervisor' );
    $server->stop;
};

subtest 'It dies' => sub {
    my $server = start();
    $server->{may_crash} = 1;
    my $first = admin($server);
    get( $server, '/healthz' );
    kill $_ => $first for qw(HUP INT QUIT TERM USR1 USR2);
    is get( $server, '/healthz' )->status, 200,    'signals that a whole group may get do not end it';
    is admin($server),                     $first, 'it is the same';
    my $killed = "admin port: process $first was killed by signal 9 (KILL); starting another";
    kill KILL => $first;
    is get( $server, '/healthz' )->status, 200, 'killed: the next one answers at once; nobody was refused';
    like $server->log, qr/^\[sirius \d+\] error: \Q$killed\E$/m, 'the log says so';

    for my $pause ( 1, 2 ) {
        kill KILL => admin($server);
        ok $server->wait_log( qr/^\[sirius \d+\] error: admin port: .* next attempt in $pause s$/m, 20 ),
            "again: a pause of $pause s";
    }
    is get( $server, '/healthz' )->status, 200, 'clients wait';
    is $server->ask('GET /')->status,      200, 'the workers serve';
    $server->stop;
};

subtest 'Reload' => sub {
    my $server = start();
    $server->{may_crash} = 1;
    my ( $pid, %answers ) = ( admin($server) );
    my $kept = $server->connect( to => addresses($server) );
    is $kept->ask('GET /healthz')->status, 200, 'before';
    $server->signal('HUP');
    my $renewed = sub {
        $answers{ join ' ', map { $_->status, $_->body } get( $server, '/readyz' ) }++;
        return admin($server) != $pid;
    };
    ok until_true( 20, $renewed ), 'the supervisor is a new program and has started a new one';
    is_deeply [ keys %answers ], ["200 ready\n"], 'it was ready all the time';
    like cmdline( $server->pid ),   qr/\Asirius: supervisor app\.psgi/, 'both say';
    like cmdline( admin($server) ), qr/\Asirius: admin\0*\z/,           'what they are';
    ok until_true( 20, sub { $server->generations == 2 } ), 'the old one ends';
    is $kept->end,                                'eof', 'with what was idle there';
    is status($server)->{workers}[0]{generation}, 2,     'the new one knows of the new workers';
    kill KILL => admin($server);
    is get( $server, '/readyz' )->status, 200, 'and is watched as well';
    unlike $server->log, qr/admin port: process $pid/, 'that the old one has ended is no news';
    $server->stop;
};

subtest 'A generation that takes long to start' => sub {
    touch('start');
    my $server = start( '--after-fork', "sub { select undef, undef, undef, 0.02 until -e '$dir/start' }" );
    unlink "$dir/start" or die $!;
    $server->signal('HUP');
    my $state = sub {
        join ' ', map { $_->{state} } grep { $_->{generation} == 2 } @{ status($server)->{workers} };
    };
    ok until_true( 20, sub { $state->() eq 'starting' } ), 'its first worker starts';
    is get( $server, '/readyz' )->body, "ready\n", 'the one before it serves';
    touch('start');
    ok until_true( 20, sub { $state->() eq 'idle idle' } ), 'it is there';
    is get( $server, '/readyz' )->body, "ready\n", 'ready';
    $server->stop;
};

subtest 'Stop: it is there until the last worker is gone' => sub {
    my $server = start( '--admin', '127.0.0.1:0', '--admin', "$dir/socket" );
    my ( $tcp, $unix ) = addresses($server);
    is $unix, "unix:$dir/socket", 'two addresses';
    is sprintf( '%04o', ( stat "$dir/socket" )[2] & 07777 ), '0600',
        'the file of the socket is for its owner';
    my $client = $server->connect;
    $client->send( request('GET /stopping') );
    ok until_true(
        20,
        sub {
            grep { $_->{began} } @{ status($server)->{workers} };
        }
        ),
        'a request that lasts';
    my $pid = admin($server);
    kill TERM => $server->pid, $pid;
    for my $address ( $tcp, $unix ) {
        my $ready = sub { $server->connect( to => $address )->ask('GET /readyz')->status };
        ok until_true( 20, sub { $ready->() == 503 } ), "$address: not ready";
    }
    is admin($server), $pid, 'the same process';
    touch('stopping');
    is $client->response->status, 200, 'the request is answered';
    $server->stop;
    ok !-e "$dir/socket", 'the file is removed';
};

subtest 'The supervisor is killed' => sub {
    my $server = start();
    is get( $server, '/healthz' )->status, 200, 'before';
    kill KILL => $server->pid;
    ok until_true( 20, sub { !$server->processes } ), 'all of it ends';
};

subtest 'Mode of a unix socket' => sub {
    my $server = start( '--admin', "$dir/mode?mode=0660", qw(--socket-mode 0666 --listen 127.0.0.1:0) );
    is sprintf( '%04o', ( stat "$dir/mode" )[2] & 07777 ), '0660', 'as the address says';
    is get( $server, '/healthz' )->status,                 200,    'it answers';
    $server->stop;
};

subtest '--admin-public' => sub {
    my $server = start(qw(--admin 0.0.0.0:0 --admin-public));
    is get( $server, '/healthz' )->status, 200, 'it answers';
    $server->stop;
};

subtest '--user' => sub {
    plan skip_all => 'only root can become another user' if $>;
    my $server = start( qw(--user nobody), '--admin', "$dir/user" );
    is uid( admin($server) ), scalar getpwnam 'nobody', 'the rights of the workers';
    is( ( stat "$dir/user" )[4], scalar getpwnam 'nobody', 'the socket is theirs' );
    cmp_ok status($server)->{workers}[0]{rss}, '>', 0, 'it sees their memory' if status($server)->{workers};
    $server->stop;
};

subtest 'USR1' => sub {
    my $log    = "$dir/log";
    my $server = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ '--admin', "$dir/usr1", '--error-log', $log, '--workers', 1 ]
    );
    ok until_true(
        20, sub { Sirius::Test::Server::slurp($log) =~ m{ Sirius/\S+ admin on unix:$dir/usr1$}m }
        ),
        'the address is in the log';
    is $server->connect( to => "unix:$dir/usr1" )->ask('GET /healthz')->status, 200, 'it answers';
    rename $log, "$log.1" or die $!;
    $server->signal('USR1');
    ok until_true( 20, sub { readlink( '/proc/' . admin($server) . '/fd/2' ) eq $log } ),
        'it writes to the new file';
    $server->stop;
};

# Two samples, and a new program of the supervisor, which starts another process
subtest 'The last minutes' => sub {
    my $server  = start();
    my $past    = sub { @{ $json->decode( get( $server, '/history.json' )->body )->{samples} } };
    my ($first) = $past->();
    ok $first, 'it begins at the start';
    $server->ask('GET /') for 1 .. 3;
    ok until_true( 60, sub { $past->() > 1 } ), 'a sample comes by itself';
    my $names = $json->decode( get( $server, '/history.json' )->body )->{names};
    my %last;
    ok until_true( 60, sub { @last{@$names} = @{ ( $past->() )[-1] }; $last{requests} == 3 } ),
        'with what came';
    my $pid = admin($server);
    $server->signal('HUP');
    ok until_true( 60, sub { my $now = admin($server); $now && $now != $pid } ), 'another process';
    ok until_true(
        60,
        sub {
            eval { $past->() }
        }
        ),
        'it answers';
    is_deeply [ $past->() ]->[0], $first, 'it knows what the one before has seen';
    is status($server)->{app}, 'app.psgi', 'and what is served';
    is status($server)->{host}, ( POSIX::uname() )[1], 'and where';
    $server->stop;
};

# The command ends when nobody has its STDOUT and STDERR any more
subtest '--daemonize' => sub {
    my @command = (
        $^X,           "-I$root/blib/lib", "-I$root/blib/arch", "$root/bin/sirius",
        '-D',          '--listen',         "$dir/listen",       '--admin',
        "$dir/daemon", '--pid',            "$dir/pid",          '--workers',
        1
    );
    open my $out, '-|', "@command -e 'sub { [ 200, [], [] ] }' 2>&1" or die $!;
    local $SIG{ALRM} = sub { die "it lasts\n" };
    alarm 60;
    my $text = eval { join '', readline $out };
    alarm 0;
    is $text =~ s/\A\[sirius \d+\] starting Sirius .*\n//r,
        "Sirius/${\ Sirius->VERSION } listening on unix:$dir/listen\n"
        . "Sirius/${\ Sirius->VERSION } admin on unix:$dir/daemon\n", 'it says where it listens, and lets go';
    my $client = Sirius::Test::Client->new("unix:$dir/daemon");
    is $client->ask('GET /healthz')->status, 200, 'it answers';
    kill TERM => daemon();
    ok until_true( 20, sub { !-e "$dir/pid" && !-e "$dir/daemon" } ), 'it ends';
};

subtest 'many connections that send no request do not keep a probe out' => sub {
    my $server    = start_server( $APP, qw(--workers 1 --admin 127.0.0.1:0) );
    my ($address) = addresses($server);
    my %half      = (
        'nothing'          => '',
        'a part of a head' => "GET /readyz HTTP/1.1\r\nHo",
        'a part of a body' => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\nx",
        'a whole request'  => "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    );
    for my $what ( sort keys %half ) {
        my @open = map { $server->connect( to => $address ) } 1 .. 300;
        $_->send( $half{$what} ) for $what eq 'nothing' ? () : @open;
        my @status = map { get( $server, $_ )->status } ( '/readyz', '/healthz' ) x 3;
        is_deeply \@status, [ (200) x 6 ], "300 connections with $what";
    }
    $server->stop;
};

# All are accepted, or wait to be, before the first is answered
subtest 'many connections with a whole request keep no probe out: it waits its turn' => sub {
    my $server = start_server( $APP, qw(--workers 1 --admin 127.0.0.1:0) );
    my $admin  = admin($server);
    for my $round ( 1 .. 3 ) {
        kill STOP => $admin;
        my @open  = map { asking( $server, '/healthz' ) } 1 .. 300;
        my @probe = map { asking( $server, '/readyz' ) } 1 .. 6;
        sleep 0.3;
        kill CONT => $admin;
        my @status = map { $_->response( patience => 20 )->status } @probe;
        is_deeply \@status, [ (200) x 6 ], "round $round: probes";
        is_deeply [ grep { $_ != 200 } map { $_->response( patience => 20 )->status || 0 } @open ], [],
            'and all before them';
    }
    $server->stop;
};

done_testing;
