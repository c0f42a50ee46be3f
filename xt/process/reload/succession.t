use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Fcntl      qw(LOCK_EX);
use File::Temp ();
use IO::Handle ();
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP ();
use Socket   qw(SOCK_STREAM);
use Sirius::Test;

# Under start_server (Server::Starter) a new server starts beside the one before it. What only one of them can
# have is taken over when that has ended

BEGIN { skip_without('Server::Starter') }
plan skip_all => 'start_server is not in PATH' if !program('start_server');
my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

sub start {
    my (@args) = @_;
    return Sirius::Test::Server->start(
        app =>
            "sub { sleep 6 if \$_[0]{PATH_INFO} eq '/slow'; [ 200, [], [\$ENV{SERVER_STARTER_GENERATION}] ] }\n",
        args    => [@args],
        command => Sirius::Test::Server->below_starter( '127.0.0.1:' . free_port() ),
        plain   => 1,
        ready   => !grep { $_ eq '0' } @args,
    );
}

sub answers {
    my ( $server, $number ) = @_;
    return until_true(
        30,
        sub {
            return defined $server->address && ( eval { $server->ask('GET /')->body } // q() ) eq $number;
        }
    );
}

sub pid_in {
    my $file = shift;
    open my $in, '<', $file or return 0;
    my $pid = readline $in;
    return $pid && $pid =~ /\A(\d+)\n\z/ ? $1 : 0;
}

sub status_of {
    my $control = shift;
    my $socket  = IO::Socket::UNIX->new( Type => SOCK_STREAM, Peer => $control ) or return q();
    print {$socket} qq({"command":"status"}\n);
    my $answer = eval { JSON::PP->new->decode( readline $socket ) };
    return $answer ? $answer->{status}{pid} : q();
}

sub admin_of {
    my $port   = shift;
    my $socket = IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $port ) or return q();
    print {$socket} "GET /status.json HTTP/1.0\r\n\r\n";
    my $text   = do { local $/ = undef; readline $socket };
    my $status = eval { JSON::PP->new->decode( $text =~ s/\A.*?\r\n\r\n//sr ) };
    return $status ? $status->{pid} : $text;
}

subtest 'an admin port, a control socket and a PID file' => sub {
    my ( $port, $control, $pid ) = ( free_port(), "$dir/control", "$dir/pid" );
    my $server = start( '--workers', 2, '--admin', "127.0.0.1:$port", '--control', $control, '--pid', $pid );
    my $before = 0;
    for my $number ( 1 .. 3 ) {
        $server->signal('HUP') if $number > 1;
        ok answers( $server, $number ), "server $number serves" or diag $server->log;
        ok until_true( 30, sub { my $now = pid_in($pid); $now && $now != $before } ), 'it has the PID file';
        my $now = pid_in($pid);
        ok until_true( 10, sub { status_of($control) eq $now } ), 'and the control socket'
            or diag status_of($control), " $now ", $server->log;
        ok until_true( 10, sub { admin_of($port) eq $now } ), 'and the admin port'
            or diag admin_of($port);
        $before = $now;
    }
    $server->stop;
    ok !-e $control, 'no socket is left';
    ok !-e $pid,     'and no PID file';
};

subtest 'a server that takes long to end keeps them until then' => sub {
    my $control = "$dir/slow";
    my $server  = start( '--workers', 2, '--control', $control, '--admin', '127.0.0.1:' . free_port(),
        '--pid', "$dir/slow.pid" );
    my $first  = status_of($control);
    my $client = $server->connect;
    $client->send( request('GET /slow') );
    $server->signal('HUP');
    ok answers( $server, 2 ), 'the new one serves';
    is status_of($control),                       $first, 'while the old one has the socket';
    is $client->response( patience => 10 )->body, 1,      'the old one answers its request';
    ok until_true( 20, sub { my $pid = status_of($control); $pid && $pid != $first } ),
        'then the new one has it'
        or diag $server->log;

    for my $name (qw(admin control pid)) {
        ok $server->wait_log(
            qr/warn: --$name: in use by [^\n]+ \(?(?:with )?PID \d+\)?, which start_server is about to end/,
            20 ),
            "--$name: it is said who has it";
        ok $server->wait_log( qr/--$name: taken over, [^\n]+ has ended/, 20 ), 'and when that has ended';
    }
    $server->stop;
};

# start_server sends TERM to all previous servers, again and again
subtest 'a restart while the one before last still answers' => sub {
    my $server = start( '--workers', 2 );
    my $client = $server->connect;
    $client->send( request('GET /slow') );
    $server->signal('HUP');
    ok answers( $server, 2 ), 'the second server serves';
    $server->signal('HUP');
    is $client->response( patience => 20 )->body, 1, 'the first one answers its request all the same'
        or diag $server->log;
    ok answers( $server, 3 ), 'the third one serves';
    $server->stop;
};

subtest 'what another process has is not waited for' => sub {
    my $pid    = "$dir/foreign";
    my $server = start( '--workers', 1, '--pid', $pid );
    unlink $pid or die "unlink: $!";
    open my $out, '>', $pid or die "open: $!";
    print {$out} "$$\n";
    $out->flush;
    flock $out, LOCK_EX or die "flock: $!";
    $server->signal('HUP');
    ok until_true( 20, sub { $server->log =~ /^sirius: --pid \Q$pid\E: a server with PID $$ is running/m } ),
        'the new server says that it cannot start'
        or diag $server->log;
    is $server->ask('GET /')->body, 1, 'the one before serves' or diag $server->log;
    $server->stop;
    ok -e $pid, 'the file is that of the other process still';
};

subtest '--workers 0' => sub {
    my $pid    = "$dir/alone";
    my $server = start( '--workers', 0, '--pid', $pid );
    ok answers( $server, 1 ), 'it serves';
    my $before = pid_in($pid);
    $server->signal('HUP');
    ok answers( $server, 2 ), 'so does the next one' or diag $server->log;
    ok until_true( 20, sub { my $now = pid_in($pid); $now && $now != $before } ), 'which has the PID file'
        or diag $server->log;
    $server->stop;
};

done_testing;
