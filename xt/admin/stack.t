use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use POSIX      ();
use Sirius::Admin::Sampling;
use Sirius::Test;
use Test::More;
use Time::HiRes qw(sleep time);

# What the admin port tells of the application: the stack of a worker, and a profile

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $json = JSON::PP->new->utf8;
chmod 0777, "$dir" or die $!;

my $APP = <<'APP';
#line 1 "shop.psgi"
package Shop;
use Time::HiRes ();
sub burn { my $until = Time::HiRes::time() + 0.02; my $n = 0; while ( Time::HiRes::time() < $until ) { $n++ } }
sub pause { Time::HiRes::sleep( $_[0] ) }
sub deep { my $n = shift; $n ? deep( $n - 1 ) : pause(20) }
#line 20 "shop.psgi"
sub { my $path = $_[0]{PATH_INFO};
    if ( $path =~ m{^/burn} ) { burn() }
    if ( $path =~ m{^/pause} ) { pause(20) }
    if ( $path =~ m{^/deep} ) { deep(1000) }
    [ 200, [], [$$] ] };
APP

our $server;

sub admin {
    my ( $line, @fields ) = @_;
    my $response = $server->connect( to => "unix:$dir/admin" )->ask( $line, 'Host: localhost', @fields );
    return ( $response->status, $response->body );
}

sub status { return $json->decode( ( admin('GET /status.json') )[1] ) }

sub busy {
    return grep { $_->{began} } @{ status()->{workers} };
}

$server
    = start_server( $APP, '--workers', 2, '--admin', "$dir/admin",
    '--control', "$dir/control", qw(--trust-proxy unix --listen 127.0.0.1:0),
    '--listen',  "$dir/sock" );

subtest 'The stack of a worker' => sub {
    my $client = $server->connect( to => "unix:$dir/sock" );
    $client->send( request( 'GET /pause?x=1', 'Host: a', 'X-Request-Id: from-the-proxy' ) );
    ok until_true( 20, sub { busy() == 1 } ), 'a worker is busy';
    my ($worker) = busy();
    is $worker->{id}, 'from-the-proxy', 'the id of its request, from a trusted proxy';
    my ( $status, $body ) = admin("GET /stack.json?pid=$worker->{pid}");
    is $status, 200, 'its stack';
    my $stack = $json->decode($body);
    cmp_ok delete $stack->{seconds}, '>', 0, 'since when';
    is_deeply $stack,
        {
        pid    => $worker->{pid},
        state  => 'busy',
        line   => 'GET /pause?x=1',
        kind   => 'wait',
        frames => [
            'Shop::__ANON__[shop.psgi:20] shop.psgi:22',
            'Shop::pause shop.psgi:4',
            'Time::HiRes::sleep (XS)'
        ]
        },
        'from the outside to the inside';
    my ($idle) = grep { !$_->{began} } @{ status()->{workers} };
    is_deeply $json->decode( ( admin("GET /stack.json?pid=$idle->{pid}") )[1] ),
        { pid => $idle->{pid}, state => 'idle' }, 'one without a request';

    for my $pid ( $$, 1, $server->pid, ( $server->edges )[0] ) {
        is_deeply [ admin("GET /stack.json?pid=$pid") ], [ 404, "there is no worker $pid\n" ],
            "no worker: $pid";
    }
    my $root = $Sirius::Test::Server::ROOT;
    my @top  = (
        $^X, "-I$root/blib/lib", "-I$root/blib/arch", "$root/bin/sirius", 'top', '--admin', "unix:$dir/admin"
    );
    like `@top --once`, qr/^ +$worker->{pid} +1 busy .* from-the-proxy +GET \/pause\?x=1$/m,
        'sirius top: the id';
    like `@top --stack $worker->{pid}`,
        qr/\Aworker $worker->{pid}: GET \/pause\?x=1, for [\d.]+ s, waiting\n    Time::HiRes::sleep \(XS\)\n    Shop::pause shop.psgi:4\n    Shop::__ANON__/,
        'sirius top --stack';
    like `@top --json --stack $worker->{pid}`, qr/\A\{"frames":\["Shop::/,        'as JSON';
    like `@top --stack 4194303 2>&1`,          qr/: there is no worker 4194303$/, 'and no worker';
    @top[ -2, -1 ] = ( '--control', "$dir/control" );
    like `@top --once`, qr/^State        Serving/m, 'by the control socket: the verdict';
    like `@top --stack $worker->{pid}`, qr/\Aworker $worker->{pid}: GET .*\n    Time::HiRes::sleep \(XS\)\n/,
        'and the stack';
    like `@top --stack 4194303 2>&1`, qr/: there is no worker 4194303$/, 'and no worker';
    kill KILL => $worker->{pid};
    $server->{may_crash} = 1;
    ok $server->wait_log(
        qr{error: worker $worker->{pid} exited while serving GET /pause\?x=1 for \S+, after [\d.]+ s: the client got 502; request id from-the-proxy$}m,
        20
        ),
        'killed in its request: the line has the id'
        or diag $server->log;
};

subtest 'A deep one is bounded' => sub {
    my $client = $server->connect;
    $client->send( request('GET /deep') );
    ok until_true( 20, sub { busy() == 1 } ), 'a worker is busy';
    my ($worker) = busy();
    like $worker->{id}, qr/\A[0-9a-f]{32}\z/, 'the server has made an id';
    my $frames;
    ok until_true(
        20,
        sub {
            @{ $frames = $json->decode( ( admin("GET /stack.json?pid=$worker->{pid}") )[1] )->{frames} || [] }
                > 100;
        }
        ),
        'many frames';
    cmp_ok scalar @$frames, '<=', 402, 'but not all';
    is $frames->[-1], 'Time::HiRes::sleep (XS)', 'to the innermost';
    kill KILL => $worker->{pid};
    is $client->response->status, 502, 'killed';
};

subtest 'A profile' => sub {
    $server->with_load(
        '/burn/4711',
        sub {
            until_true( 20, sub { busy() } );
            my $began = time;
            is_deeply [ admin('POST /profile') ],
                [ 202, "A profile is being taken. It will be at /profile.html\n" ], 'begun';
            is( ( admin( 'POST /profile', 'Sec-Fetch-Site: same-origin' ) )[0], 202, 'a second click' );
            is( ( admin( 'POST /profile', 'Sec-Fetch-Site: cross-site' ) )[0],  403, 'not from elsewhere' );
            is status()->{profile}{phase},    'running', 'it runs';
            is $server->ask('GET /')->status, 200,       'the server serves';
            is( ( admin('GET /readyz') )[0], 200, 'probes are answered' );
            $server->signal('HUP');
            ok $server->wait_log( qr/generation 2 is serving/, 20 ), 'a reload does not interrupt it';
            my $slowest = 0;

            while ( time - $began < 25 && status()->{profile}{phase} eq 'running' ) {
                my $asked = time;
                admin('GET /healthz');
                $slowest = time - $asked if time - $asked > $slowest;
                sleep 0.2;
            }
            cmp_ok time - $began, '>', 9, 'for ten seconds';
            note "slowest probe: $slowest s";
        }
    );
    my $profile = status()->{profile};
    is $profile->{phase}, 'done', 'done' or diag explain $profile;
    cmp_ok $profile->{samples}, '>', 300, 'samples';
    my ( $status, $html ) = admin('GET /profile.html');
    is $status, 200, 'the flame graph';
    like $html, qr{"GET /burn/\*"},                          'the request';
    like $html, qr{"Shop::burn shop\.psgi:\d"|"Shop::burn"}, 'the function';
    is( ( admin('GET /profile.html') )[0], 200, 'again' );
};

$server->stop;

# In a container without that right, and --user
subtest 'The kernel forbids it' => sub {
    plan skip_all => 'needs root and setpriv' if $> || system('setpriv --version >/dev/null 2>&1');
    my @without = qw(setpriv --inh-caps=-sys_ptrace --bounding-set=-sys_ptrace);
    local $server = Sirius::Test::Server->start(
        app     => $APP,
        args    => [ qw(--workers 1 --user nobody --admin), "$dir/admin" ],
        command => [ @without, $^X, "$Sirius::Test::Server::ROOT/bin/sirius", qw(-E deployment) ],
    );
    my $worker;
    until_true(
        20,
        sub {
            ( eval { $worker = status()->{workers}[0] } || {} )->{pid};
        }
    );
    my ( $status, $text ) = admin("GET /stack.json?pid=$worker->{pid}");
    is $status, 503, 'no stack';
    like $text,
        qr/\Acannot read the memory of process $worker->{pid}: [^\n]+; the server has no capability SYS_PTRACE, [^\n]+\n\z/,
        'and why';
    ( $status, $text ) = admin('POST /profile');
    is $status, 503, 'no profile';
    like $text, qr/the server has no capability SYS_PTRACE/, 'and why';
    is status()->{profile}{phase}, 'none', 'none';
    $server->stop;
};

# The rights of the supervisor are needed
subtest '--user' => sub {
    plan skip_all => 'only root can become another user' if $>;
    local $server = start_server( $APP, qw(--workers 1 --user nobody --admin), "$dir/admin" );
    my $client = $server->connect;
    $client->send( request('GET /pause') );
    ok until_true(
        20,
        sub {
            eval { busy() }
        }
        ),
        'a worker is busy';
    my ($worker) = busy();
    my ( $status, $body ) = admin("GET /stack.json?pid=$worker->{pid}");
    is $status,                            200,                       'its stack' or diag $body;
    is $json->decode($body)->{frames}[-1], 'Time::HiRes::sleep (XS)', 'is read';
    kill KILL => $worker->{pid};
    $server->{may_crash} = 1;
    $server->stop;
};

# A worker writes its row itself, so it can name any process of the machine
{

    package Board;
    sub new      { my ( $class, $pid ) = @_; return bless { pid => $pid }, $class }
    sub occupied { return 0 }
    sub requests { return [ 0, shift->{pid}, 1, 'GET /' ] }
    sub row      { return { pid => shift->{pid}, state => 'busy', began => 1 } }
}

subtest 'A PID that is none of ours' => sub {
    my $pid = fork // die $!;
    if ( !$pid ) { sleep 30; POSIX::_exit(0) }
    my $may = 1;
    my @asked;
    my $sampling = Sirius::Admin::Sampling->new(
        board => Board->new($pid),
        only  => sub { push @asked, shift; return $may }
    );
    like eval { $sampling->stack($pid) } // $@, qr/"frames":/, 'one of ours is read';
    $may = 0;
    ok !eval { $sampling->stack($pid) }, 'another one is not';
    is $@,               "there is no worker $pid\n", 'as if it were none';
    is $sampling->begin, 'begun 10',                  'a profile';
    ok $sampling->pending, 'is taken';
    is $sampling->begin,      'running', 'one at a time';
    is $sampling->samples(0), 'running', 'which lasts';
    for ( 1 .. 40 ) { sleep 0.01; $sampling->act }
    $sampling->{collector}->end;
    $sampling->act;
    ok $sampling->pending, 'ended, and its page is looked at';
    my ( $left, $text ) = $sampling->samples(0) =~ /\Aleft (\d+) (.*)/s;
    my ( $facts, $folded ) = split /\n/, $text, 2;
    is $folded,                          '',       'nothing of it in the samples';
    is $json->decode($facts)->{taken},   0,        'none was taken';
    is "$left " . $sampling->samples(0), '0 none', 'the samples are given once';
    $sampling->{until} = 1;
    $sampling->act;
    ok !$sampling->pending, 'for a minute';
    is_deeply [ grep { $_ != $pid } @asked ], [], 'who was asked about';
    kill KILL => $pid;
    waitpid $pid, 0;
};

subtest 'A process that cannot be read' => sub {
    my $pid = fork // die $!;
    if ( !$pid ) {
        { exec qw(sleep 60) }
        POSIX::_exit(1);
    }
    until_true( 20, sub { Sirius::Test::Server::comm($pid) eq 'sleep' } );
    my $asked    = 0;
    my $sampling = Sirius::Admin::Sampling->new(
        board => Board->new($pid),
        only  => sub { $asked++; return $asked > 1 }
    );
    is $sampling->begin, 'begun 10', 'a profile';    # it was none of ours at that moment
    my $until = time + 0.8;
    while ( time < $until ) { sleep 0.002; $sampling->act }
    cmp_ok $asked, '>', 8,  'it is tried again';
    cmp_ok $asked, '<', 16, 'some times';
    kill KILL => $pid;
    waitpid $pid, 0;
};

subtest 'Long names' => sub {
    my ( $name, $file ) = ( 'P' x 190, "\xff" x 190 );
    my $pid = fork // die $!;
    if ( !$pid ) {
        no warnings 'recursion';
        eval
            qq(package $name;\n#line 1 "$file"\nsub $name { my \$n = shift; \$n ? $name( \$n - 1 ) : Time::HiRes::sleep(30) } $name(1000))
            or POSIX::_exit(1);
        POSIX::_exit(0);
    }
    my $sampling = Sirius::Admin::Sampling->new( board => Board->new($pid), only => sub {1} );
    my ( $text, $frames ) = ('');
    until_true(
        20,
        sub {
            $text   = $sampling->stack($pid);
            $frames = $json->decode($text)->{frames};
            $frames && @$frames > 50 && $frames->[-1] =~ /sleep/;    # it has come to its end
        }
    );
    cmp_ok length $text, '<=', 128 * 1024, 'fit a message';
    is "$frames->[0] $frames->[-1]", '... Time::HiRes::sleep (XS)', 'with the inner part of the stack';
    like $frames->[-2], qr/\A${name}::$name (?:\\xff)+:1\z/, 'whole ones';
    kill KILL => $pid;
    waitpid $pid, 0;
};

done_testing;
