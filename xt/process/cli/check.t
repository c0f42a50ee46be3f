use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use File::Temp;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Sirius::CLI::Check;
use Sirius::Test;

# sirius check: one line for each fault of a set-up, and none for what works

my $dir  = File::Temp->newdir;
my $root = $Sirius::Test::Server::ROOT;
my $FINE = "sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['hello'] ] }\n";
chmod 0755, "$dir";
delete @ENV{ grep {/\A(?:SIRIUS_(?!TEST_)|PLACK_ENV|PORT\z)/} keys %ENV };

# Exit status and all that is printed: of a child that has the modules already, or of the program if it is to
# be another user, or to have fewer descriptors
sub run_check {
    my ( $how, @args ) = @_;
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
        %ENV = ( %ENV, %{ $how->{env} || {} } );
        open STDOUT, '>',  "$dir/out" or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT   or POSIX::_exit(126);
        STDOUT->autoflush(1);
        chdir "$dir" or POSIX::_exit(126);
        my @program = ( $^X, "$root/bin/sirius", 'check' );
        if ( $how->{ulimit} ) {
            exec 'sh', '-c', 'ulimit -n "$0"; exec "$@"', $how->{ulimit}, @program, @args;
        } elsif ( $how->{nobody} ) {
            my ( $uid, $gid ) = ( getpwnam 'nobody' )[ 2, 3 ];
            $) = "$gid $gid";
            POSIX::setgid($gid);
            POSIX::setuid($uid);
            exec @program, @args;
        } elsif ( $how->{no_proc} ) {
            exec 'unshare', '-m', 'sh', '-c', 'umount -l /proc && exec "$0" "$@"', @program, @args;
        } elsif ( $how->{program} ) {
            exec @program, @args;
        }
        POSIX::_exit( Sirius::CLI::Check->run(@args) );
    }
    local $SIG{ALRM} = sub { kill KILL => $pid };
    alarm 60;
    waitpid $pid, 0;
    alarm 0;
    return ( $? & 127 ? "signal $?" : $? >> 8, Sirius::Test::Server::slurp("$dir/out") );
}

sub app { return spew( "$dir/" . ( $_[1] || 'app.psgi' ), shift ) }

# A test: one line like that, of this level, and the exit status
sub finds {
    my ( $line, $name, $how, @args ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ( $status, $out ) = run_check( $how, @args );
    my ($level) = $line =~ /^\(\?\^\w*:\^?(\w+)/;
    my @like    = grep { $_ =~ $line } split /\n/, $out;
    my $want    = $how->{status} // ( $level eq 'error' ? 1 : 0 );
    ok @like == 1 && $status eq $want, $name or diag "exit $status, not $want\n$out";
    return $out;
}

my @LISTEN = qw(--listen 127.0.0.1:0);

subtest 'All is well' => sub {
    my ( $status, $out ) = run_check( { program => 1 }, @LISTEN, app($FINE) );
    is $status, 0, 'exit 0';
    unlike $out, qr/^(?:error|warning): /m,                                    'nothing to say';
    like $out,   qr/^ok: app\.psgi loads in /m,                                'it loads';
    like $out,   qr{^ok: GET / is answered with 200, 5 B of text/plain, in }m, 'it answers';
    like $out,   qr/^no problem found\n\z/m,                                   'the last line';
    ( $status, $out ) = run_check( {}, '--quiet', @LISTEN, app($FINE) );
    is "$status $out", '0 ', '--quiet';
SKIP: {
        skip 'file systems cannot be unmounted here', 1
            if system 'unshare -m umount -l /proc >/dev/null 2>&1';
        ( $status, $out ) = run_check( { no_proc => 1 }, @LISTEN, app($FINE) );
        like $out, qr/^ok: app\.psgi loads in .*^no problem found\n\z/ms, 'without /proc';
    }

    for my $kind (
        [ 'delayed',  q(sub { my $e = shift; sub { $_[0]->([ 200, [], ['x'] ]) } }) ],
        [ 'streamed', q(sub { sub { my $w = $_[0]->([ 200, [] ]); $w->write('x') for 1 .. 3; $w->close } }) ],
        [   'without an end',
            q(sub { sub { my $w = $_[0]->([ 200, [] ]); while (1) { eval { $w->write('x' x 9999) } } } })
        ],
        [ 'a file',  q(sub { open my $f, '<', $0; [ 200, [], $f ] }) ],
        [ 'a query', q(sub { die if $_[0]{QUERY_STRING} ne 'a=1'; [ 200, [], [] ] }), '--get', '/x?a=1' ],
        [   'the whole %env',
            q(sub { my $e = shift; exists $e->{"psgix.$_"} or die $_ for qw(io cleanup harakiri informational input.buffered); [ 200, [], [] ] })
        ],
        [   'a hook',
            q(our $x; sub { $x or die; [ 200, [], [] ] }),
            '--after-fork',
            'sub { $Plack::Sandbox::x = $main::x = 1 }'
        ],
        [ 'Delayed', q(sub { [ 200, [], [] ] }),                                    qw(-L Delayed) ],
        [ 'a mount', q(sub { die if $_[0]{SCRIPT_NAME} ne '/m'; [ 200, [], [] ] }), qw(--path /m --get /m/) ],
        [ 'a mount by itself', q(sub { die if $_[0]{SCRIPT_NAME} ne '/m'; [ 200, [], [] ] }), qw(--path /m) ],
        )
    {
        my ( $name, $code, @args ) = @$kind;
        $code =~ s/our \$x;// if $name eq 'a hook';
        $code =~ s/\$x or/\$main::x or/;
        ( $status, $out ) = run_check( {}, @LISTEN, @args, app($code) );
        ok $status == 0 && $out !~ /^error/m, $name or diag $out;
    }
    ( $status, $out ) = run_check( {}, @LISTEN, app("fork; $FINE") );
    is scalar( () = $out =~ /^ok: GET/mg ), 1, 'a child that the application forks and forgets says nothing';
    ( $status, $out ) = run_check( {}, @LISTEN, '-e', 'sub { [ 200, [], [] ] }' );
    is $status, 0, '-e';
    ( $status, $out ) = run_check( {}, '--help' );
    ok !$status && $out =~ /^Usage: sirius check/, '--help';
};

subtest 'The application' => sub {
    finds( qr/^error: the application file \S+none\.psgi does not exist: name it as/,
        'no file', {}, @LISTEN, 'none.psgi' );
    finds(
        qr/^error: app\.psgi does not load: the module No::Such::Module, which \S+app\.psgi line 2 needs, was not found: install it/,
        'a module is missing', {}, @LISTEN, app("\nuse No::Such::Module;\n$FINE")
    );
    mkdir "$dir/lib";
    spew( "$dir/lib/Near.pm", "package Near; 1;\n" );
    finds( qr/^error: .* the module Near, .* it is in lib: add -I lib$/,
        'it is in lib', {}, @LISTEN, app("use Near;\n$FINE") );
    finds(
        qr/^error: app\.psgi does not load: syntax error at \S+app\.psgi line 1, near/,
        'a syntax error',
        {}, @LISTEN, app("sub { ]\n")
    );
    finds(
        qr/^error: app\.psgi: the application is not a code reference but '1'/,
        'no application',
        {}, @LISTEN, app("sub { [] };\n1;\n")
    );
    finds( qr/^error: app\.psgi does not load: no database at \S+app\.psgi line 1$/,
        'it dies', {}, @LISTEN, app(qq(die "no database";\n)) );
    finds(
        qr/^error: loading app\.psgi: the process exited with status 3; the last line that it printed: no licence; an application must not call exit/,
        'it exits', {}, @LISTEN, app("print STDERR qq(no licence\\n); exit 3;\n")
    );
    finds(
        qr/^error: loading app\.psgi: the process exited with status 0 inside/,
        'it exits with 0',
        {}, @LISTEN, app("exit 0;\n")
    );
    finds( qr/^error: loading app\.psgi: the process was killed by signal 9 \(KILL\)/,
        'it is killed', {}, @LISTEN, app('kill 9, $$; sleep 9;') );
    finds(
        qr/^error: loading app\.psgi takes more than 0\.5 s; it is at \S+app\.psgi line 2: /,
        'it takes too long',
        {},      qw(--limit 0.5),
        @LISTEN, app("\nsleep 100;\n$FINE")
    );
    finds(
        qr/^error: loading app\.psgi takes more than 0\.5 s: /,
        'and cannot be asked',
        {},      qw(--limit 500ms),
        @LISTEN, app("\$SIG{USR2} = 'IGNORE'; 1 while 1;\n")
    );
};

# Ctrl-C reaches the check, and not the process group of the application
subtest 'A check that is ended' => sub {
    for my $signal (qw(INT TERM KILL)) {
        my $tmp = File::Temp->newdir;
        app("fork; open my \$to, '>', '$tmp/'.\$\$ or die; close \$to; \$SIG{INT} = \$SIG{TERM} = 'IGNORE'; 1 while 1;\n"
        );
        my $pid = fork;
        die "fork: $!" if !defined $pid;
        if ( !$pid ) {
            chdir "$dir";
            $ENV{TMPDIR} = "$tmp";
            open STDOUT, '>', '/dev/null';
            POSIX::_exit( Sirius::CLI::Check->run( '--limit', 60, '--listen', '127.0.0.1:0', 'app.psgi' ) );
        }
        my $app = sub {
            map {m{/(\d+)\z}} glob "$tmp/*";
        };
        ok until_true( 30, sub { $app->() == 2 } ), "$signal while the application is loaded";
        my @app = $app->();
        kill $signal => $pid;
        waitpid $pid, 0;
        my @left;
        ok until_true(
            20,
            sub {
                !( @left = grep { length Sirius::Test::Server::slurp("/proc/$_/cmdline") } @app );
            }
            ),
            'ends it as well';
        kill KILL => @left;
        is_deeply [ grep { !m{/\d+\z} } glob "$tmp/*" ], [], 'and leaves no file';
    }
};

subtest 'A page' => sub {
    my @case = (
        [   qr{^error: GET /: the application dies: no database at \S+ line 1$},
            'it dies', 'sub { die "no database" }'
        ],
        [ qr{^error: GET /: the application dies: late at}, 'in its callback', 'sub { sub { die "late" } }' ],
        [   qr{^error: GET /: the application dies while it sends the response: cut at},
            'in its stream',
            'sub { sub { $_[0]->([ 200, [] ])->write("x"); die "cut" } }'
        ],
        [   qr{^error: GET /: the response breaks PSGI: Response should be array ref or code ref: hello$},
            'a string', 'sub { "hello" }'
        ],
        [   qr{^error: GET /: the response breaks PSGI: Body should be an array ref or filehandle: hello$},
            'a body that is none',
            'sub { [ 200, [], "hello" ] }'
        ],
        [   qr{^error: GET /: the response breaks PSGI: Body must be bytes .*: encode it},
            'wide characters',
            'sub { [ 200, [], ["\x{263a}"] ] }'
        ],
        [   qr{^error: GET /: the body has characters above 255},
            'in a stream',
            'sub { sub { my $w = $_[0]->([ 200, [] ]); $w->write("\x{263a}"); $w->close } }'
        ],
        [   qr{^error: GET /: the response breaks PSGI: The number of response headers},
            'odd fields', 'sub { [ 200, [1], [] ] }'
        ],
        [   qr{^error: GET /: Content-Length is 3, but the body has 5 bytes$},
            'Content-Length',
            'sub { [ 200, [ "Content-Length" => 3 ], ["hello"] ] }'
        ],
        [   qr{^error: GET /: the application returns a callback, but never calls},
            'no answer', 'sub { sub { } }'
        ],
        [   qr{^error: GET / is answered with 500, and the application prints: it is broken$},
            'status 500',
            'sub { print STDERR "it is broken\n"; [ 500, [], [] ] }'
        ],
        [ qr{^error: GET / takes more than 0\.5 s; it is at \S+ line 1: }, 'it hangs', 'sub { sleep 100 }' ],
        [ qr{^error: GET /: the process exited with status 2; an application}, 'it exits', 'sub { exit 2 }' ],
    );
    for my $case (@case) {
        my ( $line, $name, $code ) = @$case;
        finds( $line, $name, {}, '--limit', $name eq 'it hangs' ? '0.5' : 20, @LISTEN, app("$code\n") );
    }
    finds(
        qr/^error: --after-fork dies: no database at/,
        'a hook', {}, '--after-fork', 'sub { die "no database" }',
        @LISTEN,      app($FINE)
    );
    finds(
        qr{^ok: GET /x is answered with 404},
        '404 is an answer',
        {}, qw(--get /x), @LISTEN, app('sub { [ 404, [], [] ] }')
    );
    my $some = app(
        q[sub { my $p = $_[0]{PATH_INFO}; return [ $p eq '/b' ? 500 : 200, [], [$p] ] if $p ne '/end';
        return sub { my $w = $_[0]->([ 200, [] ]); while (1) { eval { $w->write('x' x 9999) } } } }]
    );
    my ( $status, $out ) = run_check( {}, ( map { ( '--get', $_ ) } qw(/a /b /end /c) ), @LISTEN, $some );
    is $status, 1, 'one of several pages fails';
    is join( ' ', $out =~ m{^(\w+: GET /\w+) }mg ), 'ok: GET /a error: GET /b ok: GET /end ok: GET /c',
        'each is asked for';
};

subtest 'What is shared, needless or slow' => sub {
    my $listener = IO::Socket::INET->new( Listen => 5, LocalAddr => '127.0.0.1' ) or die $@;
    my $port     = $listener->sockport;
    finds(
        qr/^warning: a socket to 127\.0\.0\.1:$port is opened while the application is loaded, so all workers will share it: /,
        'a socket',
        {},
        @LISTEN,
        app("use IO::Socket::INET; our \$s = IO::Socket::INET->new('127.0.0.1:$port') or die;\n$FINE")
    );
    finds( qr/^warning: \Q$dir\E\/data is opened while/,
        'a file', {}, @LISTEN, app("open our \$f, '+>', '$dir/data' or die;\n$FINE") );
    my ( $status, $out )
        = run_check( {}, @LISTEN,
        app("open our \$f, '>>', '$dir/log' or die; open our \$g, '<', '$dir/log';\n$FINE") );
    unlike $out, qr/^warning/m, 'a log, and a file that is read';
    ( $status, $out )
        = run_check( {}, @LISTEN,
        app("use Mojolicious::Lite -signatures; get '/' => { text => 'x' }; app->start;\n") );
    unlike $out, qr/^(?:error|warning: (?!\S+::XS would))/m, 'an event loop that knows of forks'
        if eval { require Mojolicious };

    for my $name (qw(ContentLength Head Runtime Chunked AccessLog StackTrace)) {
        my $app
            = "use Plack::Builder; builder { enable '$name'; enable 'Static', path => sub { 0 }, root => '.'; $FINE };\n";
        finds( qr/^warning: Plack::Middleware::$name \w/, $name, {}, @LISTEN, app($app) );
    }
    my $deep
        = "use Plack::Builder; builder { mount '/a' => builder { enable_if { 1 } 'ContentLength'; $FINE }; mount '/' => $FINE };\n";
    finds(
        qr/^warning: Plack::Middleware::ContentLength /,
        'below a mount and a condition',
        {}, @LISTEN, app($deep)
    );
    finds( qr/^warning: Plack::Middleware::ReverseProxy .* --trust-proxy/,
        'ReverseProxy', {}, @LISTEN, app("use Plack::Builder; builder { enable 'ReverseProxy'; $FINE };\n") )
        if eval { require Plack::Middleware::ReverseProxy };

    # The modules in C, whether or not they are here
    spew( "$dir/lib/Hide.pm", <<'HIDE' );
package Hide;
unshift @INC, sub { die "hidden\n" if $_[1] =~ m{\A(?:WWW/Form/UrlEncoded|Cookie/Baker)/XS\.pm\z}; return };
@Hide::KEPT = $INC[0];
1;
HIDE
    my $form
        = 'use Plack::Request; sub { my $r = Plack::Request->new(shift); $r->parameters; $r->cookies; [ 200, [], [] ] }';
    for my $module (qw(WWW::Form::UrlEncoded::XS Cookie::Baker::XS)) {
        my $class = $module =~ s/::XS//r;
        finds(
            qr/^warning: \Q$module\E (?:would help: .* us instead of [\d.]+; install it|is installed, but not used)/,
            $module, {}, @LISTEN, qw(-I lib -M Hide), app("use $class;\n$form\n")
        );
    }
    finds(
        qr/^warning: the application prints a warning of perl: \S+ .* at \S+app\.psgi line 1/,
        'a warning of perl',
        {}, @LISTEN, app("use warnings; my \$x = 1 + undef;\n$FINE")
    );
    ( $status, $out )
        = run_check( {}, '--strict', @LISTEN,
        app("use Plack::Builder; builder { enable 'Head'; $FINE };\n") );
    is $status, 1, '--strict: exit 1';
    like $out, qr/^1 warning\n\z/m, 'the last line';
};

subtest 'Certificates' => sub {
    finds( qr/^ok: certificates and keys are in order/,
        'in order', {}, '--listen', '127.0.0.1:0,tls', '--tls-self-signed', app($FINE) );
    my $none = spew( "$dir/none.pem", "no certificate\n" );
    finds( qr/^error: --tls-cert \Q$none\E: contains no certificate/,
        'wrong', {}, '--listen', '127.0.0.1:0,tls', '--tls-cert', $none, app($FINE) );
};

subtest 'Redirects, challenges, Strict-Transport-Security' => sub {
    my @tls = ( '--listen', '127.0.0.1:0,tls', '--tls-self-signed' );
    finds(
        qr/^warning: --https-redirect leads to port 443, but no address of --listen speaks TLS: add one/,
        'no address with TLS',
        {}, @LISTEN, '--https-redirect', app($FINE)
    );
    finds( qr/^warning: --https-redirect has no effect: --listen has no address without TLS/,
        'none without', {}, @tls, '--https-redirect', app($FINE) );
    finds(
        qr/^warning: --hsts has no effect: no address of --listen ends with ",tls"/,
        'nothing for --hsts',
        {}, @LISTEN, '--hsts', '1h', app($FINE)
    );
    finds(
        qr/^warning: --acme-webroot has no effect: all addresses of --listen speak TLS/,
        'nothing for --acme-webroot',
        {}, @tls, '--acme-webroot', "$dir", app($FINE)
    );
    mkdir "$dir/webroot" or die $!;
    my $out = finds( qr/^ok: the challenges below \Q$dir\E\/webroot can be read/,
        'all is well', {}, @LISTEN, @tls, '--https-redirect', '--hsts', '1h', '--acme-webroot',
        "$dir/webroot",    app($FINE) );
    unlike $out, qr/^(?:warning|error): /m, 'nothing else to say';
    my ( $status, $said ) = run_check( {}, @LISTEN, '--acme-webroot', "$dir/none", app($FINE) );
    is $status, 2, 'no directory: exit 2';
    like $said, qr/^sirius check: --acme-webroot: '\Q$dir\E\/none' is not a directory/m, 'which is named';
    mkdir "$dir/webroot/.well-known" or die $!;
    chmod 0700, "$dir/webroot/.well-known";
    my $nobody = $> ? undef : getpwnam 'nobody';
    chmod 0, "$dir/webroot/.well-known" if !defined $nobody;
    finds(
        qr/^error: --acme-webroot \Q$dir\E\/webroot: user \w+ may not enter \Q$dir\E\/webroot\/\.well-known: /,
        'a closed one',
        {},
        @LISTEN,
        '--acme-webroot',
        "$dir/webroot",
        defined $nobody ? qw(--user nobody) : (),
        app($FINE)
    );
    chmod 0755, "$dir/webroot/.well-known";
};

subtest 'Addresses' => sub {
    my $listener = IO::Socket::INET->new( Listen => 5, LocalAddr => '127.0.0.1' ) or die $@;
    my $port     = $listener->sockport;
    finds( qr/^error: --listen 127\.0\.0\.1:$port is in use by \S+ \(PID $$\): stop it, or choose/,
        'in use', {}, '--listen', "127.0.0.1:$port", app($FINE) );
    finds(
        qr/^error: --listen 192\.0\.2\.1:5000: no network interface/,
        'not of this machine',
        {}, qw(--listen 192.0.2.1:5000),
        app($FINE)
    );
    finds(
        qr/^error: --listen x+\.invalid:5000: \w/,
        'an unknown name',
        {}, '--listen', 'x' x 70 . '.invalid:5000',
        app($FINE)
    );
    finds( qr/^error: --listen \S+\/none\/x\.sock: the directory \S+\/none does not exist: make it$/,
        'no folder', {}, '--listen', "$dir/none/x.sock", app($FINE) );
    finds(
        qr/^error: --listen \S+: the path has \d+ bytes, and the system allows 107/,
        'too long', {}, '--listen', "$dir/" . 'x' x 120,
        app($FINE)
    );
    finds( qr/^error: --listen \S+: there is a file that is not a socket/,
        'a file', {}, '--listen', app($FINE), app($FINE) );
    finds(
        qr/^error: --admin 127\.0\.0\.1:5009: --listen 127\.0\.0\.1:5009 is the same address/,
        'twice', {}, qw(--listen 127.0.0.1:5009 --admin 127.0.0.1:5009),
        app($FINE)
    );
    finds(
        qr/^error: --listen 127\.0\.0\.1:5009: --listen :5009 uses the same port/,
        'one port', {}, qw(--listen :5009 --listen 127.0.0.1:5009),
        app($FINE)
    );
    my $unix = IO::Socket::UNIX->new( Listen => 5, Local => "$dir/busy.sock" ) or die $!;
    finds(
        qr/^error: --listen \S+busy\.sock is in use by \S+ \(PID $$\)/,
        'a unix socket in use',
        {}, '--listen', "$dir/busy.sock", app($FINE)
    );
    $unix->blocking(0);
    ok !$unix->accept, 'it was not connected to';
    close $unix;
    finds(
        qr/^ok: --listen \S+busy\.sock can be bound$/,
        'one that was left behind',
        { status => 0 },
        '--listen', "$dir/busy.sock", app($FINE)
    );

    my $server = start_server( $FINE, qw(--workers 1),
        '--pid', "$dir/pid", '--control', "$dir/control", '--admin', "unix:$dir/admin" );
    my @here = ( '--listen', $server->address, '--control', "$dir/control", app($FINE) );
    $server->wait_log(qr/ready after/);    # the last line of its start
    my ( $pid, $before ) = ( $server->pid, $server->log );
    finds(
        qr/^ok: --listen \S+ is in use by the server with PID $pid, which --pid names$/,
        'our own server',
        { status => 0 },
        '--pid', "$dir/pid", @here
    );
    finds(
        qr/^warning: --listen \S+ is in use by a server of Sirius with PID $pid: well if/,
        'maybe our own',
        {}, @here
    ) if linux( 'maybe our own', 'names of processes' );
    is $server->log, $before, 'it noticed nothing';
    $server->stop;
SKIP: {
        skip 'only root can become another user', 2 if $>;
        skip 'this system lets everybody bind port 80', 1
            if Sirius::Test::Server::slurp('/proc/sys/net/ipv4/ip_unprivileged_port_start') <= 80;
        finds(
            qr/^error: --listen :80: this user may not listen on port 80: use a port above 1023/,
            'a privileged port',
            { nobody => 1 },
            qw(--listen :80),
            app($FINE)
        );
    }
};

subtest 'Files' => sub {
    finds( qr/^error: --error-log \S+: the directory \S+\/none does not exist: make it$/,
        'no folder', {}, '--error-log', "$dir/none/log", @LISTEN, app($FINE) );
    finds(
        qr/^error: --beside jobs: there is no program no-such-program: install it, or write its whole path$/,
        'a command that is not there', {}, '--beside', 'jobs=no-such-program -x', @LISTEN, app($FINE)
    );
    finds( qr/^ok: --beside ls: there is a program ls$/,
        'one that is', {}, '--beside', 'ls -l', '--beside', 'x=a; b', @LISTEN, app($FINE) );
    finds( qr/^error: --access-log \S+: the directory \S+\/none does not exist: make it$/,
        'no folder', {}, '--access-log', "$dir/none/log", @LISTEN, app($FINE) );
    finds(
        qr/^error: --access-log \|no-such-program -x: there is no program no-such-program/,
        'no program', {}, '--access-log', '|no-such-program -x',
        @LISTEN,          app($FINE)
    );
    finds( qr/^error: --pid \S+: there is something that is not a PID file/,
        'no PID file', {}, '--pid', app($FINE), @LISTEN, app($FINE) );
    POSIX::mkfifo( "$dir/fifo", 0600 ) or die "mkfifo: $!";
    finds( qr/^error: --pid \S+: there is something that is not a PID file/,
        'a FIFO', {}, '--pid', "$dir/fifo", @LISTEN, app($FINE) );
    finds(
        qr/^ok: --pid \S+ is left from an earlier server/,
        'an old PID file',
        { status => 0 },
        '--pid', spew( "$dir/old", "99999999\n" ),
        @LISTEN, app($FINE)
    );
SKIP: {
        skip 'only root can become another user', 3 if $>;
        mkdir "$dir/closed", 0700;
        finds(
            qr/^error: --error-log \S+: user nobody may not create files in \S+closed: give/,
            'a closed folder',
            { nobody => 1 },
            '--error-log', "$dir/closed/log", @LISTEN, app($FINE)
        );
        my $file = spew( "$dir/env", "A=1\n" );
        chmod 0600, $file;
        chmod 0755, "$dir";
        finds(
            qr/^warning: --env-file \S+: user nobody may not read it, so a reload would fail/,
            'a file that only root can read',
            {}, '--user', 'nobody', '--env-file', $file, @LISTEN, app($FINE)
        );
        finds(
            qr/^error: --user root: only root can change that/,
            '--user',
            { nobody => 1 },
            qw(--user root),
            @LISTEN, app($FINE)
        );
    }
};

subtest 'Limits' => sub {
    finds(
        qr/^warning: --max-connections 5000: the limit of open files, 512, leaves room for about \d+ connections: raise/,
        'too many',
        { ulimit => 512 },
        qw(--max-connections 5000),
        @LISTEN,
        app($FINE)
    );
    finds(
        qr/^error: the limit of open files is 64, which is not enough for 100 workers/,
        'far too few',
        { ulimit => 64 },
        qw(--workers 100),
        @LISTEN, app($FINE)
    );
    my $most = Sirius::Test::Server::slurp('/proc/sys/net/core/somaxconn') + 0;
    finds(
        qr/^warning: --backlog 65535: the kernel allows $most connections to wait/,
        'the backlog', {}, qw(--backlog 65535),
        @LISTEN,           app($FINE)
    ) if $most < 65_535;
};

subtest 'Options' => sub {
    my @case = (
        [ qr/\Asirius check: unknown option --wrokers \(did you mean --workers\?\)\n\z/, '--wrokers', 3 ],
        [ qr/\Asirius check: --workers: 'x' is not /, qw(--workers x) ],
        [   qr/\Asirius check: \S+, line 2: unknown option wrokers/,
            '--config',
            spew( "$dir/wrong.conf", "\nwrokers = 3\n" )
        ],
        [   qr/\Asirius check: --env-file \S+, line 1: not NAME=VALUE/,
            '--env-file',
            spew( "$dir/wrong.env", "x\n" )
        ],
        [ qr/\Asirius check: --limit: 'soon' is not a time/,                       qw(--limit soon) ],
        [ qr/\Asirius check: --get requires a value; see sirius check --help\n\z/, '--get' ],
        [ qr/\Asirius check: --quiet takes no value; see sirius check --help\n\z/, '--quiet=1' ],
        [ qr/\Asirius check: --get x: a path begins with \/\n\z/,                  qw(--get x) ],
        [ qr/\Asirius check: --admin :80: other machines can reach this address/,  qw(--admin :80) ],
        [ qr/\Asirius check: --access-log-format: /, qw(--access-log x --access-log-format %{) ],
        [ qr/\Asirius check: --server Starman: sirius check knows Sirius only\n\z/, qw(-s Starman) ],
    );
    for my $case (@case) {
        my ( $said,   @args ) = @$case;
        my ( $status, $out )  = run_check( {}, @args );
        is $status, 2, "@args: exit 2";
        like $out, $said, 'one line';
    }
    finds(
        qr/^warning: --max-keepalive-reqs has no effect: /,
        'without effect',
        {},      qw(--disable-keepalive --max-keepalive-reqs 5),
        @LISTEN, app($FINE)
    );
    finds(
        qr/^warning: SIRIUS_WROKERS does not name an option/,
        'a variable', { env => { SIRIUS_WROKERS => 3 } },
        @LISTEN, app($FINE)
    );
    my ( $status, $out ) = run_check( {}, qw(--show-config --workers 3), @LISTEN, app($FINE) );
    ok !$status && $out =~ /^workers += 3 +\(command line\)\n.*^ok: GET/ms, '--show-config';
};

done_testing;
