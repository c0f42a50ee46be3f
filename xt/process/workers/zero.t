use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp  ();
use POSIX       ();
use Time::HiRes qw(sleep time);
use Test::More;
use Sirius::Test;

# --workers 0: the application runs in the process that was started, for debuggers and profilers; its
# connections belong to an edge beside it, which is nobody's child and ends with it

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP = <<'APP';
use POSIX ();
use Time::HiRes qw(sleep time);
my %do = (
    '/alarm'  => sub { local $SIG{ALRM} = sub { die "time\n" }; alarm 1; sleep 20; 'no' },
    '/die'    => sub { die "on purpose\n" },
    '/exit'   => sub { exit 3 },
    '/fork'   => sub { defined( my $pid = fork ) or die; if ( !$pid ) { sleep 60; POSIX::_exit(0) } $pid },
    '/ignore' => sub { $SIG{CHLD} = 'IGNORE'; system 'true'; $SIG{CHLD} = 'DEFAULT'; 'ok' },
    '/kill'   => sub { kill KILL => $$; sleep 20 },
    '/stdin'  => sub { scalar readline STDIN },
    '/stdout' => sub { print "printed\n"; STDOUT->flush; 'ok' },
    '/system' => sub { join ' ', system('exit 3;') >> 8, `echo out` =~ s/\n//r },
    '/wait'   => sub { join ' ', wait, waitpid( -1, POSIX::WNOHANG() ) },
    '/_exit'  => sub { POSIX::_exit(4) },
);
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    my $end = $path =~ m{\A/work/([\d.]+)} ? time + $1 : 0;
    sleep 0.05 while time < $end;
    [ 200, [], [ $do{$path} ? $do{$path}->($env) : $$ ] ];
}
APP

sub server {
    my $server = start_server( $APP, qw(--workers 0), @_ );
    $server->{may_crash} = 1;
    $server->board;    # its reader is there when it is needed
    return $server;
}

# Of the same process group, with any parent
sub edge {
    my $server = shift;
    return ( grep { Sirius::Test::Server::comm($_) eq 'sirius: edge' } $server->processes )[0];
}

sub served {
    my $server = shift;
    return ( eval { $server->ask('GET /')->body } || '' ) eq $server->pid;
}

sub parent { return Sirius::Test::Server::slurp( '/proc/' . shift() . '/stat' ) =~ /\) \S (\d+)/ ? $1 : 0 }

subtest 'the application is in the process that was started' => sub {
    my $server = server();
    is $server->ask('GET /')->body,       $server->pid, 'its PID';
    isnt parent( edge($server) ),         $server->pid, 'the edge is not its child';
    is $server->ask('GET /wait')->body,   '-1 -1',      'so the application finds none to wait for';
    is $server->ask('GET /system')->body, '3 out',      'those of its own it does';
    is $server->ask('GET /ignore')->body, 'ok',         'CHLD may be ignored';
    is $server->ask('GET /stdout')->body, 'ok',         'it prints';
    ok until_true( 5, sub { $server->output eq "printed\n" } ), 'to STDOUT';
    is $server->ask('GET /die')->status,   500, 'it dies';
    is $server->ask('GET /alarm')->status, 500, 'a time limit of its own';
    like $server->log, qr/GET \/alarm from \S+ .*: the application died: time$/m, 'ends the call';
    ok served($server), 'the server goes on';
    my $body = 'x' x 300_000;
    is $server->ask( 'POST /', \$body )->status, 200, 'a large body';
    $server->stop;
};

subtest 'kill -9: no edge is left, and the address is free' => sub {
    my $server = server( '--listen', '127.0.0.1:' . free_port() );
    my $client = $server->connect;
    is $client->ask('GET /')->status, 200, 'it serves';
    my $edge = edge($server);
    ok $edge, 'by an edge';
    kill KILL => $server->pid;
    is $server->wait_exit, 'signal 9', 'it is killed';
    is $client->end,       'eof',      'the connection closes';
    ok until_true( 10, sub { !$server->processes } ), 'its edge ends';
    my $next = Sirius::Test::Server->start(
        app   => $APP,
        args  => [ qw(--workers 0 --listen), $server->address ],
        plain => 1
    );
    ok served($next), 'another one has its address';
    $next->stop;
};

subtest 'killed in the middle of a request, with a child of the application' => sub {
    linux_only('an end that nobody has waited for is seen');
    my $server = server();
    my $child  = $server->ask('GET /fork')->body;
    my $client = $server->connect;
    $client->send( request('GET /kill') );
    is $client->response->status, 502, 'its client gets 502';
    my $edge = edge($server);
    ok until_true( 10, sub { !edge($server) } ), 'the edge ends, though a child has all of its descriptors';
    kill KILL => $child;
    ok until_true( 10, sub { !$server->processes } ), 'nothing is left';
};

subtest 'the edge is killed' => sub {
    my $server = server();
    for my $round ( 1 .. 3 ) {
        my $edge = edge($server);
        kill KILL => $edge;
        ok until_true( 20, sub { served($server) } ), "round $round: it serves again";
        isnt edge($server), $edge, 'by another edge';
        ok $server->wait_log(
            qr/error: edge $edge exited; its connections were closed; starting another$/m, 5
            ),
            'the log says so'
            or diag $server->log;
    }
    my $descriptors = Sirius::Test::Server->descriptors( $server->pid );
    my $client      = $server->connect;
    $client->send( request('GET /work/1') );
    $server->wait_busy( 1, qr{/work/1} );
    kill KILL => edge($server);
    is $client->end, 'eof', 'in the middle of a call: the connection closes';
    ok until_true( 20, sub { served($server) } ), 'and the next one is served';
    is scalar( Sirius::Test::Server->descriptors( $server->pid ) ), $descriptors,
        'no descriptor is left open';
    is $server->exited, undef, 'it is the same process';
    $server->stop;
};

subtest 'the edge is killed at the stop' => sub {
    my $server = server();
    my $client = $server->connect;
    $client->send( request('GET /work/1') );
    $server->wait_busy( 1, qr{/work/1} );
    my $edge = edge($server);
    $server->signal('TERM');
    $server->wait_log( qr/stopping: TERM/, 5 );
    kill KILL => $edge;
    $server->stop;
};

# As soon as there is a process, and before this one knows of it
for my $signal (qw(TERM INT)) {
    subtest "$signal while the edge is being started" => sub {
        my $server = Sirius::Test::Server->spawn( app => <<"APP", args => [qw(--workers 0)] );
{
    no warnings 'redefine';
    my \$own = \\&Sirius::Edge::Beside::_run;
    *Sirius::Edge::Beside::_run = sub { my \@made = \$own->(\@_); kill $signal => \$\$; return \@made };
}
sub { [ 200, [], ['ok'] ] };
APP
        is $server->wait_exit(20), 'exit 0', 'it ends' or diag $server->log;
        $server->stop;
    };
}

subtest 'Ctrl-C' => sub {
    my $server = server();
    kill INT => -$server->pid;
    is $server->wait_exit(20), 'exit 0', 'once, and nothing under way: it ends';
    $server->stop;
    my %client;
    for my $times ( 1, 2 ) {
        $server = server();
        my $busy = $server->connect;
        my $idle = $server->connect;
        is $idle->ask('GET /')->status, 200, 'it serves';
        $busy->send( request('GET /work/30') );
        $server->wait_busy( 1, qr{/work/30} );
        my $start = time;
        kill INT => -$server->pid;
        $server->wait_log( qr/stopping at once: INT/, 5 );
        kill INT => -$server->pid if $times > 1;
        is $busy->response( patience => 20 )->status, 500,      "$times: the request at hand gets 500";
        is $idle->end,                                'eof',    'what is idle closes';
        is $server->wait_exit(20),                    'exit 0', 'it ends';
        cmp_ok time - $start, '>', 0.9, 'after a second' if $times == 1;
        cmp_ok time - $start, '<', 15,  'and not after its request';
        $server->stop;
    }
};

subtest 'TERM to the whole group' => sub {
    my $server = server(qw(--graceful-timeout 0.5));
    my $busy   = $server->connect;
    my @wait   = map { $server->connect } 1 .. 3;
    $busy->send( request('GET /work/2') );
    $server->wait_busy( 1, qr{/work/2} );
    $_->send( request('GET /') ) for @wait;
    $server->wait_waiting(3);
    kill TERM => -$server->pid;
    is $busy->response->status, 200, 'the request at hand is finished, whatever time it takes';
    is_deeply [ map { $_->response->status } @wait ], [ (200) x 3 ], 'and so are those that have come';
    is $server->wait_exit(20), 'exit 0', 'then it ends';
    $server->stop;
};

subtest 'exit in a request' => sub {
    linux_only('an end that nobody has waited for is seen');
    for my $path (qw(/exit /_exit)) {
        my $server = server();
        my $want   = $path eq '/exit' ? [ 500, 'exit 3' ] : [ 502, 'exit 4' ];
        is $server->ask("GET $path")->status, $want->[0], "$path: $want->[0]";
        is $server->wait_exit(10),            $want->[1], $want->[1];
        ok until_true( 10, sub { !$server->processes } ), 'and nothing is left';
    }
};

subtest 'a time limit of the server, in a call that returns after all' => sub {
    my $server = server(qw(--request-timeout 0.5));
    is $server->ask('GET /work/3')->status, 504, 'the client gets 504';
    ok $server->wait_busy( 1, qr{/work/3} ), 'while the application runs';
    my $pid = $server->pid;
    ok $server->wait_log(
        qr{^\[sirius $pid\] error: GET /work/3 ran for \d\.\d s, the client got 504; request id [0-9a-f]{32}$}m,
        5
        ),
        'the log says so at once'
        or diag $server->log;
    ok until_true( 20, sub { served($server) } ), 'then it goes on';
    $server->stop;
};

subtest 'logs are opened anew' => sub {
    my ( $errors, $access ) = ( "$dir/errors", "$dir/access" );
    my $server = Sirius::Test::Server->start(
        app       => $APP,
        args      => [ qw(--workers 0 --request-timeout 0.5 --access-log), $access ],
        error_log => $errors
    );
    ok served($server), 'it serves';
    my $client = $server->connect;
    rename $_, "$_.1" or die $! for $errors, $access;
    $server->signal('USR1');
    ok until_true( 5, sub { -e $errors && -e $access } ), 'the files are there';
    is $client->ask('GET /work/2')->status, 504, 'a request that takes too long';
    ok until_true( 10, sub { Sirius::Test::Server::slurp($errors) =~ m{GET /work/2 ran for} } ),
        'what the edge says of it is in the new file';
    ok until_true( 10, sub { Sirius::Test::Server::slurp($access) =~ m{"GET /work/2 HTTP/1.1" 504} } ),
        'and its line';
    $server->stop;
};

# The operator types into the debugger what he is asked, the application runs under it
subtest 'perl -d, and a profiler' => sub {
    my $root = $Sirius::Test::Server::ROOT;
    for my $case (
        [ 'perl -d',                  ['-d'],        { PERLDB_OPTS => "NonStop=1 LineInfo=$dir/db" } ],
        [ 'a profiler of statements', ['-d:Counts'], { PERL5LIB    => "$dir" } ]
        )
    {
        my ( $name, $flags, $env ) = @$case;
        mkdir "$dir/Devel";
        spew( "$dir/Devel/Counts.pm", <<"DB" );
package Devel::Counts;
my %pid;
sub DB::DB { \$pid{\$\$}++ }
END { open my \$out, '>>', "$dir/counts"; print \$out join( ' ', \$\$, sort keys %pid ), "\\n" }
1;
DB
        my $server = Sirius::Test::Server->start(
            command => [ $^X, @$flags, "$root/bin/sirius" ],
            env     => $env,
            app     => $APP,
            args    => [qw(--workers 0)]
        );
        ok served($server), "$name: it serves, in the process that was started";
        is $server->ask('GET /die')->status, 500, 'it dies';
        kill KILL => edge($server);
        ok until_true( 20, sub { served($server) } ), 'another edge';
        my $pid = $server->pid;
        $server->{may_crash} = 1;
        $server->stop;
        is Sirius::Test::Server::slurp("$dir/counts"), "$pid $pid\n",
            'no other process has run any code under it'
            if $env->{PERL5LIB};
    }
};

done_testing;
