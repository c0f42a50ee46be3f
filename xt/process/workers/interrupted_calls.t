use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Fcntl      qw(:flock);
use File::Temp ();
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# Signals of the server reach a worker while its application waits in a system call: those that Linux can
# restart go on as if nothing had been (signal(7)), and the server goes on with what it was told without
# waiting for them

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
POSIX::mkfifo( "$dir/fifo",  oct 600 ) or die $!;
POSIX::mkfifo( "$dir/fifo2", oct 600 ) or die $!;

# Each says whether the call did what it was to do; "$dir/NAME" tells that it is about to begin
my $APP = <<"APP";
use Fcntl qw(:DEFAULT :flock F_SETLKW);
use POSIX ();
use Socket;
my %call = (
    flock => sub { open my \$fh, '>>', '$dir/lock' or die; my \$ok = flock \$fh, LOCK_EX; \$ok ? 'ok' : "\$!" },
    sysread => sub { my \$n = sysread our \$fifo, my \$byte, 1; defined \$n ? "ok" : "\$!" },
    open => sub { sysopen( my \$fh, '$dir/fifo2', O_RDONLY ) ? 'ok' : "\$!" },
    waitpid => sub { my \$pid = fork; if ( !\$pid ) { \$SIG{\$_} = 'IGNORE' for qw(TERM INT QUIT); sleep 1 until -e '$dir/go'; POSIX::_exit(3) } my \$got = waitpid \$pid, 0; \$got == \$pid && \$? >> 8 == 3 ? 'ok' : "\$got \$!" },
    accept => sub { socket my \$l, AF_UNIX, SOCK_STREAM, 0; unlink '$dir/accept.s'; bind \$l, pack_sockaddr_un('$dir/accept.s') or die; listen \$l, 1; accept( my \$c, \$l ) ? 'ok' : "\$!" },
    recv => sub { socketpair my \$a, my \$b, AF_UNIX, SOCK_STREAM, 0; if ( !( my \$pid = fork ) ) { \$SIG{\$_} = 'IGNORE' for qw(TERM INT QUIT); select undef, undef, undef, 0.1 until -e '$dir/go'; syswrite \$b, 'x'; POSIX::_exit(0) } close \$b; defined recv( \$a, my \$byte, 1, 0 ) ? 'ok' : "\$!" },
);
sysopen our \$fifo, '$dir/fifo', O_RDWR or die;
sub {
    my (\$name) = \$_[0]{PATH_INFO} =~ m{/(\\w+)};
    return [ 200, [], [\$\$] ] if !\$name;
    open my \$fh, '>', "$dir/\$name" or die; close \$fh;
    my \$got = \$call{\$name}->();
    return [ 200, [], ["\$got \$\$"] ];
};
APP

open my $lock, '>>', "$dir/lock" or die $!;

my %RELEASE = (
    flock   => sub { flock $lock, LOCK_UN },
    sysread => sub { open my $fh, '+<', "$dir/fifo"  or die $!; syswrite $fh, 'x'; sleep 0.3 },
    open    => sub { open my $fh, '+<', "$dir/fifo2" or die $!; sleep 0.3 },
    accept  => sub { IO::Socket::UNIX->new( Peer => "$dir/accept.s" ) },
    waitpid => sub { spew("$dir/go") },
    recv    => sub { spew("$dir/go") },
);
require IO::Socket::UNIX;

my %SIGNAL = (
    'USR1 to the server' => [ 1, sub { shift->signal('USR1') } ],
    'a reload'           => [
        0,
        sub {
            my $server = shift;
            $server->signal('HUP');
            $server->wait_log( qr/generation 2 is serving$/m, 30 );
        }
    ],
    'a stop'                           => [ 0, sub { shift->signal('TERM') } ],
    'TERM to the worker'               => [ 0, sub { kill TERM => $_[1] } ],
    'HUP, TTIN and PIPE to the worker' => [ 1, sub { kill $_   => $_[1] for qw(HUP TTIN TTOU PIPE USR1) } ],
);

for my $signal ( sort keys %SIGNAL ) {
    subtest $signal => sub {
        my ( $stays, $send ) = @{ $SIGNAL{$signal} };
        my @names = sort keys %RELEASE;
        @names = qw(flock recv sysread) if !$stays;
        while (@names) {
            my $name = shift @names;
            unlink "$dir/go", "$dir/$name";
            my $server = start_server( $APP, qw(--workers 1) );
            my $worker = $server->ask('GET /')->body;
            flock $lock, LOCK_EX or die $!;
            my $client = $server->connect;
            $client->send( request("GET /$name") );
            ok until_true( 10, sub { -e "$dir/$name" } ), "$name is called";
            until_true( 10, sub { Sirius::Test::Server::slurp("/proc/$worker/stat") =~ /\) S/ } );
            sleep 0.1;
            $send->( $server, $worker );
            sleep 0.3;
            $RELEASE{$name}->($server);
            is $client->response->body, "ok $worker", "$name goes on";
            $server->stop;
        }
    };
}

subtest 'What it was told begins at once all the same' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    until_true( 10, sub { $server->workers == 2 } );
    flock $lock, LOCK_EX or die $!;
    my $kept = $server->connect;
    my $here = $kept->ask('GET /')->body;
    my $busy = $server->connect;
    unlink "$dir/flock";
    until_true(
        10,
        sub {    # the same worker is to have both
            my $client = $server->connect;
            return $client->ask('GET /')->body eq $here && ( $busy = $client );
        }
    );
    $busy->send( request('GET /flock') );
    ok until_true( 10, sub { -e "$dir/flock" } ), 'a worker is in flock';
    sleep 0.1;
    $server->signal('TERM');
    is $kept->end(10), 'eof', 'a stop: an idle connection is closed, though perl has not got the signal';
    flock $lock, LOCK_UN;
    like $busy->response->body, qr/\Aok /, 'and the call goes on';
    $server->stop;
};

subtest 'A handler that the application has put there is its own' => sub {
    my $server = start_server( <<'APP', qw(--workers 1) );
sub {
    my $got = 0;
    local $SIG{TERM} = sub { $got++ };
    kill TERM => $$;
    select undef, undef, undef, 0.3;
    return [ 200, [], ["$got"] ];
};
APP
    is $server->ask('GET /')->body, 1, 'it is called';
    is $server->ask('GET /')->body, 1, 'and nothing else has happened';
    unlike $server->log, qr/drained|exited/, 'the worker has not drained';
    $server->stop;
};

subtest '--workers 0: INT ends a call that waits' => sub {
    my $server = start_server( $APP, qw(--workers 0) );
    flock $lock, LOCK_EX or die $!;
    my $client = $server->connect;
    unlink "$dir/flock";
    $client->send( request('GET /flock') );
    ok until_true( 10, sub { -e "$dir/flock" } ), 'it is called';
    sleep 0.1;
    $server->signal('INT');
    ok $server->wait_exit(10), 'the server ends';
    flock $lock, LOCK_UN;
};

done_testing;
