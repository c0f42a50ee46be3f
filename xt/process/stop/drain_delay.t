use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use IO::Socket::INET;
use Socket      qw(AF_INET SOCK_STREAM SOL_SOCKET SO_ATTACH_FILTER);
use Time::HiRes qw(sleep);
use Sirius::Test;

# --drain-delay: after TERM everything is served while load balancers go elsewhere; then newcomers are refused

my $APP = <<'APP';
sub {
    select undef, undef, undef, $1 if $_[0]{PATH_INFO} =~ m{\A/sleep/([\d.]+)};
    $_[0]{'psgi.input'}->read( my $body, 100 );
    return [ 200, [], [ 'done', $body ] ];
}
APP
my @ADMIN = qw(--admin 127.0.0.1:0);

sub admin { return shift->log =~ m{^.*admin on http://([^/\s]+)/$}m ? $1 : undef }

sub ready {
    my $server = shift;
    my $answer = eval { Sirius::Test::Client->new( admin($server) )->ask('GET /readyz') }
        or return 'no answer';
    return $answer->status . q{ } . $answer->body;
}

# "in", "refused", or the error of a connection that is tried now
sub newcomer {
    my $server = shift;
    my $socket = IO::Socket::INET->new( PeerAddr => $server->address, Timeout => 10 );
    return $socket ? 'in' : $!{ECONNREFUSED} ? 'refused' : "$!";
}

subtest 'TERM, after a reload' => sub {
    my $server = start_server( $APP, qw(--workers 2 --drain-delay 2.5), @ADMIN );
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 30 ), 'reloaded';
    like ready($server), qr/\A200 ready/, 'ready';
    my $kept = $server->connect;
    ok !$kept->ask('GET /')->closes, 'a connection is kept';
    my $slow = $server->connect;
    $slow->send( request('GET /sleep/6') );
    $server->signal('TERM');
    ok until_true( 2, sub { ready($server) =~ /\A503 not ready: the server is stopping/ } ), 'not ready';

    for my $client ( $kept, $server->connect ) {
        my $answer = $client->ask( 'POST /', \'abc' );
        is $answer->body, 'doneabc', 'all are served still';
        ok $answer->closes, 'and told to come back elsewhere';
        is $client->end, 'eof', 'which they have to';
    }
    ok until_true( 20, sub { newcomer($server) eq 'refused' } ), 'then newcomers are refused';
    is $slow->response( patience => 30 )->body, 'done',   'what was begun is answered';
    is $server->wait_exit,                      'exit 0', 'then it ends';
    $server->stop;
};

# Some kernels let only root do it, and then a few are
sub may_filter {
    my $all = pack 'SCCL', 6, 0, 0, 0xffff;
    socket my $socket, AF_INET, SOCK_STREAM, 0 or die "socket: $!";
    return setsockopt $socket, SOL_SOCKET, SO_ATTACH_FILTER, pack 'S x![P] P', 1, $all;
}

subtest 'nobody is reset at the end' => sub {
    linux_only('a gate for newcomers');
    plan skip_all => 'only root may attach a filter to a socket here' if !may_filter();
    my $server = start_server( $APP, qw(--workers 2 --drain-delay 1) );
    my ( %result, $stopped );
    until ( $server->exited ) {
        my $client = eval { $server->connect } or last;
        $result{ $client->ask( 'POST /', \'x' )->status }++;
        $server->signal('TERM') if !$stopped++;
    }
    is_deeply [ keys %result ], [200], 'until they are refused all are answered';
    cmp_ok $result{200}, '>', 2, 'many of them';
    is $server->wait_exit, 'exit 0', 'it ends';
    $server->stop;
};

subtest 'what does not wait' => sub {
    for my $signals ( ['INT'], [ 'TERM', 'INT' ], [ 'TERM', 'TERM' ] ) {
        my $server = start_server( $APP, qw(--workers 2 --drain-delay 600) );
        for (@$signals) { $server->signal($_); $server->wait_log(qr/: $_/) }
        is $server->wait_exit, 'exit 0', "@$signals";
        unlike $server->log, qr/--drain-delay is over/, 'before its time is over';
        $server->stop;
    }
};

subtest 'a socket that somebody else has bound is not touched' => sub {
    local $^F = 99;
    my $socket = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 8 ) or die "listen: $!";
    my $server = Sirius::Test::Server->start(
        app   => $APP,
        args  => [ qw(--workers 2 --drain-delay 0.6 --listen), 'fd:' . fileno $socket ],
        plain => 1
    );
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->signal('TERM');
    is $server->wait_exit, 'exit 0', 'it ends';
    my $waiting = Sirius::Test::Client->new( '127.0.0.1:' . $socket->sockport );
    $waiting->send( request('GET /') );
    my $next = Sirius::Test::Server->start(
        app   => $APP,
        args  => [ qw(--workers 2 --listen), 'fd:' . fileno $socket ],
        plain => 1
    );
    is $waiting->response->status, 200, 'who waited there is served by the next one';
    $_->stop for $server, $next;
};

subtest '--workers 0' => sub {
    my $server = Sirius::Test::Server->spawn( app => $APP, args => [qw(--workers 0 --drain-delay 3)] );
    is $server->wait_exit, 'exit 2', 'refused';
    is $server->log, "sirius: --drain-delay: not available with --workers 0; use --workers 1 or more\n",
        'and why';
};

subtest 'a generation that is killed meanwhile is replaced' => sub {
    for my $workers ( 0, 1 ) {    # left alone, or killed with it
        my $server = start_server( $APP, qw(--workers 2 --drain-delay 60), @ADMIN );
        ok $server->wait_log( qr/2 workers are serving$/m, 20 ), 'it serves';
        $server->signal('TERM');
        ok $server->wait_log( qr/\(--drain-delay\), .*: TERM/, 20 ), 'it is to stop';
        kill KILL => $server->generations, $workers ? $server->workers : ();
        ok $server->wait_log( qr/generation 2 is serving in place of generation 1/, 20 ), 'another one serves'
            or diag $server->log;
        ok until_true( 20, sub { $server->workers == 2 } ), 'with as many workers';
        my $answer = $server->ask('GET /');
        is $answer->body, 'done', 'requests are served';
        ok $answer->closes, 'with Connection: close';
        like ready($server), qr/\A503 not ready: the server is stopping/, 'not ready all the same';
        $server->signal('TERM');
        is $server->wait_exit(20), 'exit 0', 'a second TERM ends it' or diag $server->log;
    }
};

subtest 'signals meanwhile' => sub {
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $server = Sirius::Test::Server->start(
        app       => $APP,
        args      => [qw(--workers 2 --drain-delay 60)],
        error_log => "$dir/log"
    );
    my $log = sub { Sirius::Test::Server::slurp("$dir/log") };
    $server->signal('TERM');
    ok until_true( 20, sub { $log->() =~ /\(--drain-delay\)/ } ), 'it is to stop';
    for my $name (qw(HUP TTIN TTOU)) {
        $server->signal($name);
        ok until_true(
            20, sub { $log->() =~ /warn sirius: ignored $name from PID $$.*: the server is stopping$/m }
            ),
            "$name is not heeded, and the log says so"
            or diag $log->();
    }
    rename "$dir/log", "$dir/log.1";
    $server->signal('USR1');
    ok until_true( 20, sub { -e "$dir/log" } ), 'USR1 opens the log anew';
    is $server->workers, 2, 'as many workers as before';
    $server->signal('TERM');
    $server->stop;
};

done_testing;
