use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use File::Temp;
use IO::Socket::UNIX;
use JSON::PP    ();
use POSIX       ();
use Time::HiRes qw(sleep time);
use Sirius::Control::Client;
use Sirius::Control::Place;
use Sirius::Control::Server;
use Sirius::Test;

# sirius ctl: first with a server whose answers the test chooses, then with a real one

my $dir  = File::Temp->newdir;
my $root = $Sirius::Test::Server::ROOT;
my $json = JSON::PP->new->utf8;

delete $ENV{SIRIUS_CONTROL};
$ENV{TZ} = 'UTC';

# Exit status, STDOUT and STDERR of sirius ctl
sub ctl {
    my @args = @_;
    my $pid  = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
        open STDOUT, '>', "$dir/out" or POSIX::_exit(126);
        open STDERR, '>', "$dir/err" or POSIX::_exit(126);
        { exec $^X, "$root/bin/sirius", 'ctl', @args }
        POSIX::_exit(127);
    }
    if ( !until_true( 60, sub { waitpid $pid, POSIX::WNOHANG() } ) ) {
        kill KILL => $pid;
        waitpid $pid, 0;
    }
    return ( $? & 127 ? "signal $?" : $? >> 8, map { Sirius::Test::Server::slurp("$dir/$_") } qw(out err) );
}

# A server in a child that answers each request as the sub does; its PID
my @fakes;

sub fake {
    my ( $path, $dispatch ) = @_;
    my $parent = $$;
    my $pid    = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        $SIG{TERM} = 'DEFAULT';
        my $control = Sirius::Control::Server->new($path);
        while ( getppid == $parent ) { $control->serve($dispatch); sleep 0.01 }
        POSIX::_exit(0);
    }
    push @fakes, $pid;
    until_true( 20, sub { -S $path } ) or die "$path: not there\n";
    return $pid;
}

END {
    my $status = $?;
    for my $pid (@fakes) {
        kill KILL => $pid;
        waitpid $pid, 0;
    }
    $? = $status;
}

my $STATUS = {
    generations => [
        { number => 1, pid => 301, state => 'draining', since => 2 },
        { number => 2, pid => 302, state => 'serving',  since => 86_400 * 4 },
    ],
    last_reload => { ok => 1, text => 'generation 2 is serving', at => 1_700_000_000 },
    listeners   => [ 'http://127.0.0.1:5000/', 'unix:/run/app.sock' ],
    now         => 86_400 * 4 + 7.25,
    pid         => 300,
    rows        => [
        {   generation  => 2,
            pid         => 1002,
            state       => 'busy',
            requests    => 12_345,
            connections => 40,
            since       => 1,
            began       => 86_400 * 4 - 4000,
            line        => "GET /caf\xc3\xa9\e[2J"
        },
        { generation => 1, pid => 99, state => 'idle', requests => 7, connections => 0, since => 86_400 * 4 },
    ],
    version => '1.23',
    workers => 2,
};

my $TABLE = <<'TABLE';
Sirius 1.23, PID 300, 2 workers
listening on http://127.0.0.1:5000/
listening on unix:/run/app.sock

GENERATION  PID  STATE     AGE
         1  301  draining  4 d 0 h
         2  302  serving   7.2 s

WORKER  GENERATION  STATE  REQUESTS  CONNECTIONS  DOING
    99           1  idle          7            0  7.2 s
  1002           2  busy      12345           40  GET /caf\xe9\x1b[2J (66 min)

last reload, 2023-11-14 22:13:20: generation 2 is serving
TABLE

subtest 'The table of status' => sub {
    my $path = "$dir/status";
    fake( $path, sub { $_[1]->( { ok => 1, status => $STATUS } ) } );
    my ( $status, $out, $error ) = ctl( '--control', $path, 'status' );
    is $status, 0,      'exit status 0';
    is $out,    $TABLE, 'a table; what a client sent does not reach the terminal as it is';
    is $error,  '',     'no more';
    ( $status, $out ) = ctl( "--control=$path", '--json', 'status' );
    is $out =~ tr/\n//, 1, '--json: one line';
    is_deeply eval { $json->decode($out)->{status}{generations} }, $STATUS->{generations}, 'with all of it';
    local $ENV{SIRIUS_CONTROL} = $path;
    is( ( ctl('status') )[1], $TABLE, 'SIRIUS_CONTROL' );
};

subtest 'Exit status 1: the server says no' => sub {
    my $path = "$dir/no";
    my %said = ( reload => "syntax error at caf\xc3\xa9.psgi line 1\nsecond line" );
    fake(
        $path,
        sub {
            my ( $request, $reply ) = @_;
            $reply->( { ok => 0, error => 'reload failed: why', said => $said{ $request->{command} } } );
        }
    );
    is_deeply [ ctl( '--control', $path, 'reload', '--wait' ) ],
        [ 1, '', "sirius ctl: reload failed: why\n$said{reload}\n" ], 'the reason, and what Perl said';
    is_deeply [ ctl( '--control', $path, 'stop', '--wait' ) ], [ 1, '', "sirius ctl: reload failed: why\n" ],
        'the reason alone';
    my ( $status, $out, $error ) = ctl( '--control', $path, 'reload', '--json' );
    is $status,                     1,                                                  '--json: the same';
    is $error,                      '',                                                 'nothing more';
    is $json->decode($out)->{said}, "syntax error at caf\xe9.psgi line 1\nsecond line", 'said is in it';

    fake( "$dir/mute", sub { POSIX::_exit(0) } );
    is_deeply [ ctl( '--control', "$dir/mute", 'reload' ) ],
        [ 1, '', "sirius ctl: the server at $dir/mute closed the connection without an answer\n" ],
        'a server that dies';
    fake( "$dir/mute2", sub { POSIX::_exit(0) } );
    is_deeply [ ctl( '--control', "$dir/mute2", 'stop', '--wait' ) ], [ 0, "stopped\n", '' ],
        'to stop, that is what was wanted';

    my $listener = IO::Socket::UNIX->new( Local => "$dir/mute3", Listen => 1 ) or die "$dir/mute3: $!";
    my $pid      = fork // die "fork: $!";
    if ( !$pid ) {
        my $client = $listener->accept;
        readline $client;
        close $client;
        sleep 60;
        POSIX::_exit(0);
    }
    is_deeply [ ctl( '--control', "$dir/mute3", 'stop' ) ],
        [ 1, '', "sirius ctl: the server at $dir/mute3 closed the connection without an answer\n" ],
        'but not if it has not ended';
    kill KILL => $pid;
    waitpid $pid, 0;
};

subtest 'Exit status 2: wrong usage, one line' => sub {
    my @case = (
        [   qr/no command given: use status, ready, reload, stop, workers N, channels or publish CHANNEL/,
            '--control', 'x'
        ],
        [ qr/--wait: not valid with ready/,                  qw(--control x ready --wait) ],
        [ qr/unknown command 'fly'/,                         '--control', 'x', 'fly' ],
        [ qr/unknown option --fly/,                          '--control', 'x', 'status', '--fly' ],
        [ qr/workers: the number of workers is missing/,     '--control', 'x', 'workers' ],
        [ qr/workers: '0' is not a whole number above 0/,    '--control', 'x', 'workers', 0 ],
        [ qr/workers: 'many' is not a whole number above 0/, '--control', 'x', 'workers', 'many' ],
        [ qr/unexpected argument 'now'/,                     '--control', 'x', 'stop',    'now' ],
        [ qr/--control requires a value/,                    'status',    '--control' ],
        [ qr/--control requires a value/,                    'status',    '--control=' ],
        [ qr/--timeout: 'soon' is not a time/,               qw(--control x --timeout soon status) ],
        [ qr/--timeout: 0 is too small/,                     qw(--control x --timeout 0 status) ],
        [ qr/--wait takes no value/,                         qw(--control x --wait=1 status) ],
        [ qr/--control: cannot be combined with --pid/,      qw(--control x --pid 1 status) ],
        [ qr/the path has more than 107 bytes/,              'status', '--control', 'x' x 108 ],
    );
    for my $case (@case) {
        my ( $pattern, @args ) = @$case;
        my ( $status, $out, $error ) = ctl(@args);
        is $status, 2, "sirius ctl @args";
        like $error, qr/\Asirius ctl: .*$pattern[^\n]*\n\z/, 'says why';
    }
    is_deeply [ ( ctl('--help') )[ 0, 2 ] ], [ 0, '' ], '--help';
};

subtest 'Exit status 3: no server' => sub {
    is_deeply [ ctl( '--control', "$dir/none", 'status' ) ],
        [ 3, '', "sirius ctl: no server is listening on $dir/none: No such file or directory\n" ], 'no file';
    close IO::Socket::UNIX->new( Local => "$dir/stale", Listen => 1 );
    is_deeply [ ctl( '--control', "$dir/stale", 'status' ) ],
        [ 3, '', "sirius ctl: no server is listening on $dir/stale: Connection refused\n" ], 'left behind';
    is_deeply [ ctl( "--control", "$dir/out", "status" ) ],
        [ 3, '', "sirius ctl: no server is listening on $dir/out: Connection refused\n" ], 'no socket';
};

subtest 'Exit status 4: no answer in time' => sub {
    my $path = "$dir/late";
    my $fake = fake( $path, sub { $_[1]->( { ok => 1, text => 'stopping' } ) if $_[0]{command} eq 'stop' } );
    for my $wait ( [], ['--wait'] ) {
        is_deeply [ ctl( '--control', $path, '--timeout', '200ms', @$wait, 'reload' ) ],
            [ 4, '', "sirius ctl: $path: no answer after 0.2 s\n" ], "reload @$wait";
    }
    is_deeply [ ctl( '--control', $path, '--timeout', '0.2', '--wait', 'stop' ) ],
        [ 4, '', "sirius ctl: $path: PID $fake has not exited after 0.2 s\n" ],
        'stop: the process that listened lives';
};

subtest 'Something else listens there' => sub {
    my $listener = IO::Socket::UNIX->new( Local => "$dir/else", Listen => 5 ) or die $!;
    my $pid      = fork;
    if ( !$pid ) {
        my $client = $listener->accept;
        print {$client} "220 mail.example.com ESMTP\r\n";
        POSIX::_exit(0);
    }
    is_deeply [ ctl( '--control', "$dir/else", 'stop', '--wait' ) ],
        [ 1, '', "sirius ctl: $dir/else is not the control socket of a Sirius server\n" ], 'it says so';
    waitpid $pid, 0;
};

subtest 'A server of somebody else, found by root' => sub {
    my $path = "$dir/hostile";
    my $fake = fake( $path, sub { $_[1]->( { ok => 0, error => "\e]0;title\a \x{9b}2J \x{e4}\n" } ) } );
    like join( '', ( ctl( '--control', $path, 'status' ) )[ 1, 2 ] ),
        qr/\\x1b\]0;title\\x07 \\x9b2J \xc3\xa4$/m,
        'does not steer the terminal';
    kill KILL => $fake;
};

# --- a real server; its application says what is in a file ---

my $module = "$dir/Version.pm";

sub write_version {
    my $text = shift;
    rename spew( "$module.new", $text ), $module or die $!;
    return;
}

my $APP = <<"APP";
use lib '$dir';
use Time::HiRes qw(sleep);
use Version;
sub {
    sleep \$1 if \$_[0]{PATH_INFO} =~ m{\\A/sleep/([\\d.]+)};
    return [ 200, [], ["\$Version::TEXT"] ];
};
APP

sub version { return "package Version; our \$TEXT = '$_[0]'; 1;\n" }
write_version( version('one') );

my $control = "$dir/control";
my $server  = start_server( $APP, '--workers', 2, '--control', $control, '--graceful-timeout', 20 );

sub ctl_here { return ctl( '--control', $control, @_ ) }

sub status_of {
    my ( $status, $out ) = ctl_here( 'status', '--json' );
    return eval { $json->decode($out)->{status} } || {};
}

subtest 'Status tells the truth' => sub {
    is sprintf( '%04o', ( stat $control )[2] & 07777 ), '0600', 'the socket is private';
    my $status;
    ok until_true(
        20,
        sub {
            $status = status_of();
            2 == grep { $_->{state} eq 'idle' } @{ $status->{rows} };
        }
        ),
        'two idle workers'
        or diag explain $status;
    is $status->{pid}, $server->pid, 'the PID';
    is_deeply $status->{listeners}, [ 'http://' . $server->address . '/' ],                'the address';
    is_deeply [ map { $_->{pid} } @{ $status->{generations} } ], [ $server->generations ], 'the generation';
    is_deeply [ sort { $a <=> $b } map { $_->{pid} } @{ $status->{rows} } ], [ $server->workers ],
        'the workers';
    is $status->{last_reload}, undef, 'no reload yet';
    my $client = $server->connect;
    $client->send( request('GET /sleep/2') );
    my ( $code, $out );
    ok until_true( 10, sub { ( $code, $out ) = ctl_here('status'); $out =~ /\bbusy\b/ } ), 'one is busy'
        or diag $out;
    like $out,
        qr/\ASirius \S+, PID ${\ $server->pid }, 2 workers\nlistening on \S+\n\nGENERATION .*no reload yet\n\z/s,
        'the table';
    my @edges = $server->edges;
    is_deeply [ map { $_->{pid} } @{ status_of()->{edges} } ], \@edges, 'the edges, if there are any';
    my $edge = join "\n", ' *EDGE.* CONNECTIONS +IDLE +WAITING +WAIT +ACCEPTED',
        map {" *$_ .* 1 +0 +0 +- +\\d+"} @edges;

    if (@edges) {
        like $out, qr/^$edge\n\nWORKER +GENERATION +STATE +REQUESTS +DOING$/m, 'in a table of their own';
    } else {
        unlike $out, qr/EDGE/, 'nothing of any';
    }
    is $client->response->status, 200, 'its answer';
};

subtest 'ready' => sub {
    is_deeply [ ctl_here('ready') ], [ 0, "ready\n", '' ], 'as /readyz';
    is_deeply [ ctl( '--control', "$dir/none", 'ready' ) ],
        [ 3, '', "sirius ctl: no server is listening on $dir/none: No such file or directory\n" ],
        'nobody is there';
    my $path   = "$dir/unready";
    my %figure = ( edges => [], edges_wanted => 0, now => 1, workers => [] );
    fake(
        $path,
        sub {
            my ( $request, $reply ) = @_;
            $reply->( { ok => 1, status => \%figure } ) if $request->{command} eq 'figures';
        }
    );
    is_deeply [ ctl( '--control', $path, 'ready' ) ],
        [ 1, '', "sirius ctl: not ready: no worker has started yet\n" ], 'and why it is not';
};

subtest 'A second server cannot have the same socket' => sub {
    my $second = Sirius::Test::Server->spawn( app => $APP, args => [ '--control', $control ] );
    is $second->wait_exit, 'exit 1', 'it ends';
    my $name = linux( 'its name', 'names of processes' ) ? 'sirius' : qr/\S+/;
    like $second->log,
        qr{^sirius: --control \Q$control\E: already in use by $name \(PID ${\ $server->pid }\)$}m,
        'and says why';
    is + ( ctl_here('status') )[0], 0, 'the first is there still';
};

subtest 'reload --wait returns 0 only after the new generation answers and the old one is gone' => sub {
    my ($old) = $server->generations;
    my $client = $server->connect;
    $server->board;    # its reader is there before the request
    $client->send( request('GET /sleep/1.5') );
    $server->wait_busy( 1, qr{/sleep/1.5} );
    write_version( version('two') );
    my ( $status, $out, $error ) = ctl_here(qw(reload --wait --timeout 60));
    is $status, 0, 'exit status 0' or diag $error, $server->log;
    is $out, "generation 2 is serving\n", 'says so';
    ok !kill( 0, $old ), 'the old generation is gone';
    is $server->ask('GET /')->body,    'two', 'new code';
    is $client->response->body,        'one', 'the request that was running is answered by the old';
    is status_of()->{last_reload}{ok}, 1,     'status knows';
};

subtest 'reload --wait of broken code: exit status 1, the Perl error, the old one goes on' => sub {
    write_version("package Version; our \$TEXT = ;\n");
    my ( $status, $out, $error ) = ctl_here(qw(reload --wait --timeout 60));
    is $status, 1, 'exit status 1';
    like $error, qr/\Asirius ctl: reload failed: generation 3 .*generation 2 keeps serving\n/,
        'what happened';
    like $error, qr/syntax error at \Q$module\E line 1/, 'the Perl error';
    is $server->ask('GET /')->body, 'two', 'it serves';
    ( $status, $out ) = ctl_here('status');
    like $out, qr/^last reload, .*: reload failed: .*syntax error/ms, 'status shows it';
    write_version( version('four') );
    is + ( ctl_here(qw(reload --wait --timeout 60)) )[0], 0,      'the next works';
    is $server->ask('GET /')->body,                       'four', 'newest code';
};

subtest 'reload without --wait' => sub {
    write_version( version('five') );
    is_deeply [ ctl_here('reload') ], [ 0, "reload started\n", '' ], 'accepted';
    ok until_true( 30, sub { $server->ask('GET /')->body eq 'five' } ), 'it comes';
};

# When the server was started, as sirius top has it
sub started {
    my ($answer) = Sirius::Control::Client->new( $control, 10 )->ask( { command => 'figures' } );
    return $answer->{status}{started};
}

subtest 'No request is lost while the supervisor becomes a new program' => sub {
    my ( %got, $number );
    my $started = started();
    for ( 1 .. 2 ) {
        is + ( ctl_here('reload') )[0], 0, 'reload';
        my $until = time + 4;
        while ( time < $until ) {
            my $socket = IO::Socket::UNIX->new( Peer => $control, Timeout => 20 )
                or $got{"connect: $!"}++, last;
            sleep 0.01;
            print {$socket} qq({"command":"status"}\n);
            $socket->flush;
            my $bits = '';
            vec( $bits, fileno $socket, 1 ) = 1;
            my $line   = select( $bits, undef, undef, 20 ) ? readline $socket : 'nothing in 20 s';
            my $status = eval { $json->decode($line)->{status} };
            $got{ $status ? 'status' : defined $line ? $line : 'end' }++;
            $number = $status->{generations}[-1]{number};
        }
    }
    is_deeply [ keys %got ], ['status'], 'all are answered' or diag explain \%got;
    cmp_ok $number, '>', 5, 'there were new generations';
    is started(), $started, 'since the same time';
};

subtest 'workers' => sub {
    ok until_true( 30, sub { 1 == @{ status_of()->{generations} || [] } } ), 'one generation';
    for my $number ( 4, 1 ) {
        is_deeply [ ctl_here( 'workers', $number, qw(--wait --timeout 60) ) ], [ 0, "$number workers\n", '' ],
            "$number, done";
        is status_of()->{workers}, $number, 'status knows';
        ok until_true( 20, sub { $number == $server->workers } ), 'there are so many' or diag $server->log;
    }
    is_deeply [ ctl_here( 'workers', 2 ) ], [ 0, "2 workers\n", '' ], 'without --wait';
    like $server->log,
        qr/^\[sirius \d+\] number of workers changed from \d to 2: sirius ctl workers from PID \d+.*, user \S+$/m,
        'the log says who has asked for it';
    $server->signal('TTIN');
    ok $server->wait_log(
        qr/^\[sirius \d+\] number of workers changed from 2 to 3: TTIN from PID $$ \(.*\), user \S+$/m, 10
        ),
        'and who has sent a signal';
    $server->signal('TTOU');
    ok $server->wait_log( qr/number of workers changed from 3 to 2: TTOU from/, 10 ), 'or the other';
    ok until_true( 20, sub { 2 == $server->workers } ),                               'it comes';
};

subtest 'A server that does not run: exit status 4' => sub {
    $server->signal('STOP');
    is_deeply [ ctl_here(qw(status --timeout 0.3)) ],
        [ 4, '', "sirius ctl: $control: no answer after 0.3 s\n" ], 'no answer in time';
    $server->signal('CONT');
    is + ( ctl_here('status') )[0], 0, 'it goes on, that client is forgotten';
};

subtest 'What nobody waits for any more is not done' => sub {
    $server->signal('STOP');
    for my $command ( 'reload', 'workers 3', 'stop' ) {
        is + ( ctl_here( split( q( ), $command ), qw(--timeout 0.3) ) )[0], 4, "$command: no answer in time";
    }
    my $before = $server->log;
    $server->signal('CONT');
    ok $server->wait_log(
        qr/warn: ignored sirius ctl $_ from PID .*: it no longer waits for the answer$/m, 20
        ),
        "$_ is not done, and the log says so"
        for qw(reload workers stop);
    is + ( ctl_here('status') )[0], 0, 'it goes on';
    unlike substr( $server->log, length $before ), qr/reload started|number of workers|stopping:/,
        'as before';
};

subtest 'Other users' => sub {
    plan skip_all => 'needs root' if $>;
    my $nobody = getpwnam 'nobody' or plan skip_all => 'there is no nobody';
    chmod 0755, "$dir";
    my $pid = fork;
    if ( !$pid ) {
        ( $<, $> ) = ( $nobody, $nobody );
        POSIX::_exit( IO::Socket::UNIX->new( Peer => $control ) ? 1 : $!{EACCES} ? 0 : 2 );
    }
    waitpid $pid, 0;
    is $?, 0, 'are kept out';
};

subtest 'stop --wait returns when the server is gone' => sub {
    my $client = $server->connect;
    $server->board;    # its reader is there before the request
    $client->send( request('GET /sleep/1') );
    $server->wait_busy( 1, qr{/sleep/1} );
    is_deeply [ ctl_here(qw(stop --wait --timeout 60)) ], [ 0, "stopped\n", '' ], 'done';
    is $server->wait_exit(0),   'exit 0', 'it is gone already';
    is $client->response->body, 'five',   'what it was doing is done';
    ok !-e $control, 'so is the socket';
    is_deeply [ ctl_here('status') ],
        [ 3, '', "sirius ctl: no server is listening on $control: No such file or directory\n" ],
        'exit status 3 then';
    $server->stop;
};

subtest 'stop without --wait' => sub {
    $server = start_server( $APP, '--workers', 1, '--control', $control );
    is_deeply [ ctl_here('stop') ], [ 0, "stopping\n", '' ], 'accepted';
    is $server->wait_exit, 'exit 0', 'it comes';
    $server->stop;
};

subtest 'Without --control' => sub {
    $server = start_server( $APP, '--workers', 1 );
    my $path = $server->dir . '/sirius-' . $server->pid . '.control';
    is( ( stat $path )[2] & 0777, oct 600, 'a socket for its user alone' );
    my ( $status, $out, $error ) = ctl( '--pid', $server->pid, 'status' );
    is "$status$error", 0, '--pid';
    like $out, qr/PID @{[ $server->pid ]}, 1 worker$/m, 'is that server';
    is_deeply [ ctl( '--pid', $server->pid, 'reload', '--wait' ) ], [ 0, "generation 2 is serving\n", '' ],
        'a reload';
    is + ( ctl( '--pid', $server->pid, 'status' ) )[0], 0, 'after which it is there';

    # Servers of other tests come and go
    my $found = until_true( 30, sub { !( ctl('status') )[0] } );
SKIP: {
        my @others = grep { $_->{pid} != $server->pid } Sirius::Control::Place->all;
        skip 'other servers run on this machine', 1 if !$found && @others;
        ok $found, 'the only server is found';
    }
    is_deeply [ ctl( '--pid', $server->pid, qw(stop --wait) ) ], [ 0, "stopped\n", '' ], 'a stop';
    ok !-e $path, 'takes it away';
    ( $status, $out, $error ) = ctl( '--pid', $server->pid, 'status' );
    is $status, 3, 'then there is none';
    like $error, qr/\Asirius ctl: no server with the PID @{[ $server->pid ]}/, 'which it says';
    $server->stop;
    $server = start_server( $APP, qw(--workers 1 --control none) );
    is_deeply [ glob $server->dir . '/*.control' ], [], '--control none: no socket';
    $server->stop;
    $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [qw(--workers 1)],
        env  => { RUNTIME_DIRECTORY => '/proc', XDG_RUNTIME_DIR => '/nowhere', TMPDIR => "$dir/no" }
    );
    like $server->log,
        qr{warn: sirius ctl, top and profile will not find this server, as it has no control socket: /proc/\S+: No such file},
        'a server that finds no place for one says so';
    $server->stop;
};

done_testing;
