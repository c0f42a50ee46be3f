use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use POSIX      ();
use Test::More;
use Sirius::Test;

# --warm-up: the application answers requests before the first worker is forked

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
chmod 0777, "$dir" or die $!;

# Notes in a file what it is asked for, in which process; "$dir/code" is perl that it runs at /code
my $APP = <<"APP";
use POSIX ();
my \%do = (
    '/die'       => sub { die "no luck\\nat all\\n" },
    '/object'    => sub { die bless [], 'Thrown' },
    '/500'       => sub { [ 503, [], ['busy'] ] },
    '/404'       => sub { [ 404, [], ['none'] ] },
    '/exit'      => sub { exit 3 },
    '/exit0'     => sub { exit },
    '/_exit'     => sub { POSIX::_exit(0) },
    '/kill'      => sub { kill KILL => \$\$; sleep 20 },
    '/last'      => sub { no warnings; last },
    '/redo'      => sub { no warnings; redo },
    '/undef'     => sub { undef },
    '/wide'      => sub { [ 200, [], ["\\x{263a}"] ] },
    '/handle'    => sub { open my \$fh, '<', \$0 or die; [ 200, [], \$fh ] },
    '/object-body' => sub { [ 200, [], bless [ 3 ], 'Body' ] },
    '/delayed'   => sub { sub { shift->( [ 200, [], ['later'] ] ) } },
    '/stream'    => sub { sub { my \$w = shift->( [ 200, [] ] ); \$w->write('x') for 1 .. 3; main::note('streamed'); \$w->close } },
    '/unclosed'  => sub { sub { shift->( [ 200, [] ] ); return } },
    '/silent'    => sub { sub { } },
    '/stream-500' => sub { sub { my \$w = shift->( [ 500, [] ] ); \$w->close } },
    '/fork'      => sub { defined( my \$pid = fork ) or die; waitpid \$pid, 0 if \$pid; main::note( \$pid ? 'parent' : 'child' ); [ 200, [], [] ] },
    '/system'    => sub { main::note( 'system ' . join ' ', system('exit 3;') >> 8, `echo out` ); [ 200, [], [] ] },
    '/alarm'     => sub { eval { local \$SIG{ALRM} = sub { die "time\\n" }; alarm 1; select undef, undef, undef, 20; 1 } or main::note("alarm \$@"); alarm 1; [ 200, [], [] ] },
    '/cleanup'   => sub { my \$env = shift; push \@{ \$env->{'psgix.cleanup.handlers'} }, sub { main::note('cleaned') }, sub { die "oh\\n" }; \$env->{'psgix.harakiri.commit'} = 1; [ 200, [], [] ] },
    '/close'     => sub { POSIX::close(\$_) for 3 .. 200; [ 200, [], [] ] },
    '/hang'      => sub { main::note('hangs'); select undef, undef, undef, 0.1 while 1 },
    '/stubborn'  => sub { \$SIG{\$_} = 'IGNORE' for qw(INT QUIT); main::note('hangs'); select undef, undef, undef, 0.1 while 1 },
    '/perl'      => sub { ( \$/, \$, ) = ( undef, '-' ); \$SIG{__WARN__} = sub { exit 9 }; \$ENV{WARM} = 'set'; [ 200, [], [] ] },
    '/io'        => sub { my \$io = shift->{'psgix.io'}; main::note( 'io ' . join ' ', ref \$io, defined fileno \$io ? 'open' : 'closed', defined syswrite( \$io, 'x' ) ? 'sent' : 'not' ); [ 200, [], [] ] },
);
our \%seen;
sub main::note { open my \$out, '>>', '$dir/notes' or die \$!; syswrite \$out, join( '', \@_ ) =~ s/\\n//gr . "\\n"; return }
sub Thrown::DESTROY { }
{ package Thrown; use overload '""' => sub { die "not even as text\\n" } }
sub Body::getline { my \$self = shift; return \$self->[0]-- > 0 ? 'piece' : undef }
sub Body::close { main::note('closed') }
sub {
    my \$env = shift;
    my \$path = \$env->{PATH_INFO};
    \$seen{\$path} ||= \$\$;
    main::note( "asked \$env->{REQUEST_METHOD} \$env->{REQUEST_URI} \$\$" ) if \$env->{HTTP_USER_AGENT} && \$env->{HTTP_USER_AGENT} =~ /warm-up/;
    if ( \$path =~ m{^/env} ) {
        my \$text = join "\\n", map { my \$v = \$env->{\$_}; "\$_=" . ( ref \$v eq 'ARRAY' ? "[\@\$v]" : ref \$v ? ref \$v : \$v ) } sort keys \%\$env;
        if ( \$env->{HTTP_USER_AGENT} =~ /warm-up/ ) { open my \$out, '>', '$dir/env' or die \$!; print {\$out} \$text }
        return [ 200, [], [\$text] ];
    }
    return \$do{\$path}->(\$env) if \$do{\$path} && !( \$env->{HTTP_HOST} eq 'a' );
    return [ 200, [], [ ( \$seen{ \$env->{QUERY_STRING} } || 'none' ) . ' ' . ( \$ENV{WARM} || '' ) ] ];
};
APP

sub notes { return Sirius::Test::Server::slurp("$dir/notes") }

sub start {
    my @args = @_;
    unlink "$dir/notes", "$dir/env";
    return start_server( $APP, qw(--workers 2 --disable-warm-up-workers), @args );
}

# Starts a server that does not start: how it ends, and its log
sub fails {
    my @args = @_;
    unlink "$dir/notes";
    my $server = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ qw(--workers 2 --host 127.0.0.1 --port 0), @args ]
    );
    my $how  = $server->wait_exit(30) || 'still running';
    my @left = until_true( 5, sub { !$server->processes } ) ? () : 'processes are left';
    return ( join( ' ', $how, @left ), $server->log );
}

sub ctl {
    my @words = @_;
    my $text
        = `$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius ctl --control $dir/control @words 2>&1`;
    return ( $? >> 8, $text );
}

subtest 'Paths are requested once, before the workers, in the process that forks them' => sub {
    my $server       = start( '--warm-up', '/a,/b?x=1,2', '--warm-up', '/c%20d' );
    my ($generation) = $server->generations;
    my @asked        = notes() =~ /^asked (.*)$/mg;
    is_deeply \@asked, [ map {"GET $_ $generation"} '/a', '/b?x=1,2', '/c%20d' ], 'in their order';
    is $server->ask("GET /x?$_")->body, "$generation ", "a worker has what the warm-up has left: $_"
        for '/a', '/b';
    is $server->ask('GET /x?/never')->body, 'none ', 'and nothing else';
    like $server->log, qr/^\[sirius $generation\] warmed up with 3 requests in [\d.]+ (?:us|ms|s)$/m,
        'the log says so';
    like $server->log, qr/warmed up with.*^Sirius.* listening on/ms, 'before it is ready';

    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 30 ), 'a reload';
    is scalar( () = notes() =~ /^asked/mg ), 6, 'warms up again';
    $server->stop;
};

subtest 'The same %env as in a worker' => sub {
    my %differ = map { $_ => 1 }
        qw(HTTP_HOST HTTP_USER_AGENT HTTP_X_REQUEST_ID REMOTE_PORT psgix.queue_time psgix.request_id psgix.request_start);
    my @ask = ( 'GET /env/a%2Fb%20c?x=%20y', 'Host: b', 'Accept: */*', 'User-Agent: test' );
    for my $case ( [ 'TCP', '127.0.0.1:0' ], [ 'a unix socket', "$dir/socket" ] ) {
        my ( $name, $listen ) = @$case;
        my $server = start( '--warm-up', '/env/a%2Fb%20c?x=%20y', '--listen', $listen );
        my ( $warm, $real ) = map {
            my %env = map {/\A([^=]*)=(.*)/s} split /\n/, $_;
            \%env
        } Sirius::Test::Server::slurp("$dir/env"), $server->ask(@ask)->body;
        is_deeply [ sort keys %$warm ], [ sort keys %$real ], "$name: the keys";
        my %same = map { $_ => $real->{$_} } grep { !$differ{$_} } keys %$real;
        delete @{$warm}{ keys %differ };
        @{$warm}{qw(REMOTE_ADDR psgix.io)} = @same{qw(REMOTE_ADDR psgix.io)} if $name ne 'TCP';
        is_deeply $warm, \%same, 'and the values';
        $server->stop;
    }
};

subtest 'Host and scheme' => sub {
    my $server = start( '--warm-up', '/env,https://shop.example:8443/env2' );
    my $port   = $server->port;
    my %env    = Sirius::Test::Server::slurp("$dir/env") =~ /^([^=\n]+)=(.*)$/mg;
    is_deeply [ @env{qw(HTTP_HOST psgi.url_scheme PATH_INFO SERVER_PORT)} ],
        [ 'shop.example:8443', 'https', '/env2', $port ], 'of a URL';
    is $env{HTTPS}, 'on', 'which some applications look at';
    like $env{HTTP_USER_AGENT}, qr{\ASirius/[\d.]+ \(warm-up\)\z}, 'the user agent';
    $server->stop;

    $server = start(qw(--warm-up /env));
    %env    = Sirius::Test::Server::slurp("$dir/env") =~ /^([^=\n]+)=(.*)$/mg;
    is $env{HTTP_HOST}, '127.0.0.1:' . $server->port, 'of the first address';
    $server->stop;
};

subtest 'Code' => sub {
    my $code = <<'CODE' =~ tr/\n/ /r;
sub {
    my ( $app, $request ) = @_;
    main::note( 'own ' . $app->( { PATH_INFO => '/own', HTTP_HOST => 'c' } )->[0] );
    main::note( 'status ' . $request->( '/posted?q', REQUEST_METHOD => 'POST', HTTP_COOKIE => 'a=b' ) );
    main::note( 'status ' . $request->('/die') );
}
CODE
    my $server = start( '--warm-up', $code, '--warm-up', '/after' );
    like notes(),
        qr{^own 200\nasked POST /posted\?q \d+\nstatus 200\nasked GET /die \d+\nstatus 500\nasked GET /after}m,
        'is called with the application and a sub for requests';
    like $server->log, qr/warmed up with 3 requests in .*, 1 failed$/m, 'which are counted';
    $server->stop;

    $server = start( '--warm-up', 'sub { die "on purpose\n" }' );
    like $server->log, qr/error: warm-up: the code of --warm-up died: on purpose$/m, 'that dies';
    is $server->ask('GET /')->status, 200, 'it serves all the same';
    $server->stop;

    $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [ '--workers', 1 ],
        env  => { SIRIUS_WARM_UP => 'sub { main::note( "of", "_the environment" ) }' }
    );
    like notes(), qr/^of_the environment$/m, 'in the environment, with blanks and commas';
    $server->stop;
    spew( "$dir/conf",
        "listen = 127.0.0.1:0\nworkers = 1\nwarm-up = /one, /two\nwarm-up = sub { main::note('three') }\n" );
    unlink "$dir/notes";
    $server = Sirius::Test::Server->start( app => $APP, args => [ '--config', "$dir/conf" ], plain => 1 );
    like notes(), qr{^asked GET /one .*^asked GET /two .*^three$}ms, 'in the file';
    $server->stop;
};

subtest 'What goes wrong in a request is one line, and the server starts' => sub {
    my %says = (
        '/die' =>
            qr{error: warm-up: GET /die: status 500 after [\d.]+ \w+: the application died: no luck; at all$},
        '/object' =>
            qr{error: warm-up: GET /object: .*: the application died: an exception that cannot be converted to text$},
        '/500'        => qr{error: warm-up: GET /500: status 503 after [\d.]+ \w+$},
        '/404'        => qr{\] warm-up: GET /404: status 404 after [\d.]+ \w+$},
        '/last'       => qr{error: warm-up: GET /last: status 500 .*last or next},
        '/redo'       => qr{error: warm-up: GET /redo: status 500 .*redo},
        '/undef'      => qr{error: warm-up: GET /undef: status 500 after .*: invalid response: },
        '/wide'       => qr{error: warm-up: GET /wide: status 500 after .*: invalid response: .*255},
        '/unclosed'   => qr{error: warm-up: GET /unclosed: .*without closing the writer$},
        '/silent'     => qr{error: warm-up: GET /silent: .*without calling the responder$},
        '/stream-500' => qr{error: warm-up: GET /stream-500: status 500 after [\d.]+ \w+$},
    );
    my @paths  = sort keys %says;
    my $server = start( '--warm-up', join ',', @paths );
    for my $path (@paths) {
        my @lines = grep {/warm-up: GET \Q$path\E:/} split /\n/, $server->log;
        is scalar @lines, 1, "$path: one line";
        like $lines[0] || '', $says{$path}, 'which says it';
    }
    like $server->log, qr/warmed up with 11 requests in .*, 10 failed$/m, 'how many';
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
};

subtest 'Bodies of all kinds are read to their end' => sub {
    my $server = start( '--warm-up', '/handle,/object-body,/delayed,/stream,/cleanup,/io' );
    is_deeply [ grep { !/^asked/ } split /\n/, notes() ],
        [ qw(closed streamed cleaned), 'io IO::Socket::INET closed not' ],
        'objects, streams; and cleanup handlers are called';
    like $server->log, qr/error: warm-up: a cleanup handler died: oh$/m, 'one that dies';
    like $server->log, qr/warmed up with 6 requests in [^,]*$/m,         'none has failed';
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
};

subtest 'Processes, timers and what perl has' => sub {
    my $server = start( '--warm-up', '/fork,/system,/alarm,/perl' );
    my ($generation) = $server->generations;
    is scalar( () = notes() =~ /^parent$/mg ), 1, 'a child that comes back does not go on';
    is scalar( () = notes() =~ /^child$/mg ),  1, 'it has been there';
    like notes(),      qr/^system 3 out$/m,                      'programs';
    like notes(),      qr/^alarm time$/m,                        'a timer of its own';
    like $server->log, qr/warmed up with 4 requests in [^,]*$/m, 'once';
    is $server->ask('GET /x?/perl')->body, "$generation set", 'workers have what it has changed';
    my ($worker) = $server->workers;
    $server->{may_crash} = 1;
    kill KILL => $worker;
    ok until_true(
        10,
        sub {
            2 == grep { $_ != $worker } $server->workers;
        }
        ),
        'the generation goes on: no timer is left';
    is_deeply [ $server->generations ], [$generation], 'the same one';
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 30 ), 'a reload';
    $server->stop;
};

subtest '--warm-up-required: a failure is the end of the start' => sub {
    for my $workers ( 0, 2 ) {
        my ( $how, $log ) = fails( '--warm-up', '/,/500', '--warm-up-required', '--workers', $workers );
        is $how, 'exit 1', "--workers $workers: exit status 1, and nothing is left" or diag $log;
        like $log,   qr/error: warm-up: GET \/500: status 503/, 'why';
        like $log,   qr/the server cannot start$/m,             'what becomes of it';
        unlike $log, qr/listening on|next attempt/,             'it was never ready';
    }
    my $server = start( '--warm-up', '/,/404', '--warm-up-required' );
    is $server->ask('GET /')->status, 200, '404 is none';
    $server->stop;
};

subtest 'What ends the process is the end of the start, required or not' => sub {
    my %case = (
        '/exit'  => [ 3, qr/the application called exit \(status 3\) during the warm-up$/m ],
        '/exit0' => [ 1, qr/the application called exit \(status 0\) during the warm-up$/m ],
        '/_exit' => [ 0, qr/generation 1 exited/ ],
        '/kill'  => [ 9, qr/generation 1 was killed by signal 9/ ],
        '/close' => [ 1, qr/the application has closed descriptors that the server needs$/m ],
    );
    for my $path ( sort keys %case ) {
        my ( $status, $says ) = @{ $case{$path} };
        my ( $how,    $log )  = fails( '--warm-up', $path );
        is $how, 'exit 1', "$path: exit status 1, and nothing is left";
        like $log, $says, 'why';
        like $log, qr/^sirius: generation 1 .* during the warm-up: the server cannot start$/m,
            'what becomes of it';
    }
    my ( $how, $log ) = fails(qw(--workers 0 --warm-up /exit));
    is $how, 'exit 3', '--workers 0: exit is exit';
    like $log, qr/the application called exit \(status 3\)/, 'and is told';

    ( $how, $log ) = fails(qw(--warm-up /hang --load-timeout 3));
    is $how, 'exit 1', 'it hangs: exit status 1, and nothing is left';
    like $log,
        qr/^sirius: generation 1 was killed: --warm-up ran for more than 3 s \(--load-timeout\): the server cannot start$/m,
        'why'
        or diag $log;
};

subtest 'A reload that does not warm up leaves the old code' => sub {
    my $set = sub {
        spew( "$dir/conf", "listen = 127.0.0.1:0\nworkers = 2\ncontrol = $dir/control\n", map {"$_\n"} @_ );
    };
    $set->('warm-up = /a');
    my $server = Sirius::Test::Server->start(
        app       => $APP,
        args      => [ '--config', "$dir/conf" ],
        plain     => 1,
        may_crash => 1
    );
    $server->wait_log( qr/2 workers are serving/, 20 );
    my @workers = $server->workers;
    my %case    = (
        "warm-up = /500\nwarm-up-required = 1" => qr/warm-up: GET \/500: status 503 after/,
        'warm-up = /exit'  => qr/the application called exit \(status 3\) during the warm-up/,
        'warm-up = /close' => qr/the application has closed descriptors/,
    );
    for my $lines ( sort keys %case ) {
        $set->($lines);
        my ( $status, $text ) = ctl(qw(reload --wait --timeout 30));
        is $status, 1, ( $lines =~ s/\n/, /r ) . ': it fails';
        like $server->log, $case{$lines}, 'the log says why';
        like $text, $lines =~ /close/ ? qr/during the warm-up/ : $case{$lines}, 'and so does sirius ctl'
            or diag $server->log;
        ok until_true( 10, sub { $server->generations == 1 } ), 'nothing of it is left';
        is_deeply [ $server->workers ], \@workers, 'the same workers';
        is $server->ask('GET /x?/a')->status, 200, 'serve';
    }
    $set->( 'warm-up = /500', 'warm-up-required = 0' );
    my ( $status, $text ) = ctl(qw(reload --wait --timeout 30));
    is $status, 0, 'where it is not required it is only told' or diag $text, $server->log;
    $server->stop;

    # On a slow machine the time may be over before the warm-up has begun
    $set->( 'warm-up = sub { sleep 60 if -e "' . $dir . '/slow" }' );
    $server = Sirius::Test::Server->start(
        app       => $APP,
        args      => [ '--config', "$dir/conf", qw(--load-timeout 5) ],
        plain     => 1,
        may_crash => 1
    );
    spew("$dir/slow");
    ( $status, $text ) = ctl(qw(reload --wait --timeout 30));
    is $status, 1, 'one that hangs' or diag $text;
    like $text, qr/not ready within 5 s \(--load-timeout\) while (?:running --warm-up|loading)/,
        'fails when the time is over';
    ok until_true( 10, sub { $server->generations == 1 } ), 'and is ended';
    is $server->ask('GET /x')->status, 200, 'the old code serves';
    unlink "$dir/slow";
    $server->stop;
};

subtest 'A stop during the warm-up' => sub {
    for my $case (
        [ TERM => 2, '/hang' ],
        [ INT  => 2, '/hang' ],
        [ TERM => 0, '/hang' ],
        [ TERM => 2, '/stubborn' ]
        )
    {
        my ( $signal, $workers, $path ) = @$case;
        unlink "$dir/notes";
        my $server = Sirius::Test::Server->spawn(
            app  => $APP,
            args => [ '--workers', $workers, '--warm-up', $path ]
        );
        ok until_true( 20, sub { notes() =~ /hangs/ } ), "$signal, --workers $workers, $path";
        $server->signal($signal);
        is $server->wait_exit(10), 'exit 0', 'ends it soon' or diag $server->log;
        ok until_true( 5, sub { !$server->processes } ), 'and all of it';
        unlike $server->log, qr/called exit|cannot start/, 'without an error';
        $server->kill_hard;
    }
};

subtest 'A reload during the warm-up of the start takes its place' => sub {
    unlink "$dir/notes";
    spew( "$dir/conf", "listen = 127.0.0.1:0\nworkers = 1\nwarm-up = /hang\n" );
    my $server = Sirius::Test::Server->spawn( app => $APP, args => [ '--config', "$dir/conf" ], plain => 1 );
    ok until_true( 20, sub { notes() =~ /hangs/ } ), 'it hangs';
    spew( "$dir/conf", "listen = 127.0.0.1:0\nworkers = 1\nwarm-up = /a\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 30 ), 'the other serves' or diag $server->log;
    ok until_true( 20, sub { $server->generations == 1 } ),    'the first is gone';
    unlike $server->log, qr/error/, 'which is no error';
    $server->stop;
};

subtest '--warm-up-workers' => sub {
    my $server = start(qw(--warm-up /a --warm-up-workers));
    until_true( 20, sub { $server->workers == 2 && $server->log =~ /2 workers are serving/ } );
    my @pids = ( $server->generations, $server->workers );
    is_deeply [ sort { $a <=> $b } notes() =~ /^asked GET \/a (\d+)$/mg ], [ sort { $a <=> $b } @pids ],
        'once in the generation and once in each worker';
    $server->{may_crash} = 1;
    kill KILL => $pids[-1];
    ok until_true( 20, sub { 4 == ( () = notes() =~ /^asked/mg ) } ), 'also in one that comes later';
    is $server->ask('GET /x?/a')->status, 200, 'it serves';
    $server->stop;

    my $code = 'sub { $_[1]->( getppid == $main::generation ? "/500" : "/a" ); $main::generation = $$ }';
    my ( $how, $log );
    $server = start( qw(--warm-up-workers --warm-up), $code );
    like $server->log, qr/error: warm-up: GET \/500: status 503 after/, 'a failure in a worker is told';
    is $server->ask('GET /')->status, 200, 'and no more';
    $server->stop;
    $server = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ qw(--workers 1 --warm-up-workers --warm-up-required --warm-up), $code ]
    );
    ok $server->wait_log( qr/error: worker failed: --warm-up failed$/m, 20 ),
        'where it is required, the worker fails';
    unlike $server->log, qr/listening on/, 'and does not serve';
    $server->stop;

    unlink "$dir/notes";
    $server = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ qw(--workers 1 --warm-up-workers --load-timeout 4 --warm-up), $code =~ s{/500}{/hang}r ],
        may_crash => 1
    );
    ok $server->wait_log( qr/error: worker \d+ was killed: --warm-up ran for more than 4 s/, 20 ),
        'one that hangs is killed'
        or diag $server->log;
    $server->stop;
};

subtest 'By default workers repeat the GET requests' => sub {
    my $code = <<'CODE' =~ tr/\n/ /r;
sub {
    my ( $app, $request ) = @_;
    main::note("code $$");
    open my $body, "<", \ "x=1" or die $!;
    for ( 1 .. 3 ) {
        $request->( "/a", HTTP_COOKIE => "a=b" );
        $request->( "/a", HTTP_COOKIE => "c=d" );
        $request->( "/posted", REQUEST_METHOD => "POST" );
        $request->( "/body", "psgi.input" => $body );
        $request->("/500");
        $request->("/404");
    }
}
CODE
    unlink "$dir/notes";
    my $server = start_server( $APP, qw(--workers 2 --warm-up /b --warm-up), $code );
    ok $server->wait_log( qr/2 workers are serving/, 20 ), 'ready';
    my ($generation) = $server->generations;
    for my $pid ( $server->workers ) {
        is_deeply [ notes() =~ m{^asked (\S+ \S+) $pid$}mg ], [ 'GET /b', 'GET /a', 'GET /a', 'GET /404' ],
            'each once';
    }
    is_deeply [ notes() =~ /^code (\d+)$/mg ], [$generation], 'the code is called once';
    is scalar( () = $server->log =~ /\] warm-up: GET \/404/g ), 3, 'a status is told by the generation';
    is scalar( () = $server->log =~ /\] warmed up with/g ),     1, 'as is the end';
    is $server->ask('GET /x?/a')->body, "$generation ", 'it serves';
    $server->stop;

    # What fails only in a worker
    my $path = "$dir/worker.psgi";
    spew( $path, <<'PSGI' );
my $first;
sub { $first ||= $$; die "not here\n" if $$ != $first && ( $_[0]{HTTP_USER_AGENT} || '' ) =~ /warm-up/; [ 200, [], ['served'] ] };
PSGI
    $server = Sirius::Test::Server->start(
        app       => $path,
        args      => [qw(--workers 1 --warm-up / --warm-up-required)],
        may_crash => 1
    );
    ok $server->wait_log( qr/error: warm-up: GET \/: status 500 .* not here$/m, 20 ), 'a failure is told';
    is $server->ask('GET /')->body, 'served', 'and nothing else, required or not';
    $server->stop;
};

subtest 'Sockets that it opens' => sub {
    my $code
        = 'sub { require IO::Socket::INET; our $listens = IO::Socket::INET->new( LocalAddr => "127.0.0.1", Listen => 5 ) }';
    my $server = start( '--warm-up', $code );
    ok $server->wait_log(
        qr/warn: a socket on 127\.0\.0\.1:\d+ was opened by the warm-up, before the fork, so all workers share it: close it in --before-fork$/m,
        10
        ),
        'are told of';
    $server->stop;
    $server = start( '--warm-up', $code, '--before-fork', 'sub { undef our $listens }' );
    ok until_true( 10, sub { $server->workers == 2 } ), 'closed before the fork';
    unlike $server->log, qr/before the fork/, 'they are none';
    $server->stop;
};

subtest '--user' => sub {
    plan skip_all => 'only root can become another user' if $>;
    my $server = start( qw(--user nobody --warm-up), 'sub { main::note( "uid ", $> ) }' );
    like notes(), qr/^uid @{[ scalar getpwnam 'nobody' ]}$/m, 'with the rights of the workers';
    $server->stop;
};

subtest '--workers 0' => sub {
    my $server = start( '--workers', '0', '--warm-up', '/a,/fork' );
    my $pid    = $server->pid;
    like $server->log, qr/^\[sirius $pid\] warmed up with 2 requests in/m, 'in the one process';
    is $server->ask('GET /x?/a')->body, "$pid ", 'it serves';
    $server->stop;
};

subtest 'Without effect' => sub {
    my $server = start(qw(-L Delayed --warm-up /));
    like $server->log, qr/warn: --warm-up has no effect: with -L Delayed each worker loads/, '-L Delayed';
    $server->stop;
    my $other = start(qw(--warm-up-required));
    like $other->log, qr/--warm-up-required has no effect: no --warm-up is given/, '--warm-up-required alone';
    $other->stop;
};

done_testing;
