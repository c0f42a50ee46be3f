use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use JSON::PP   ();
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# What is counted of workers that end, of reloads and of time limits: it goes on over reloads and over the
# renewal of the supervisor, and the admin port tells it

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $json = JSON::PP->new->utf8;
my $app  = "$dir/app.psgi";

sub application {
    my $more = shift;
    rename spew( "$app.new", <<"APP" ), $app or die "$app: $!";
use POSIX ();
$more
sub {
    my \$env  = shift;
    my \$path = \$env->{PATH_INFO};
    if ( \$path eq '/crash' ) { \$SIG{SEGV} = 'DEFAULT'; kill SEGV => \$\$; sleep 10 }
    if ( \$path eq "/grow" ) { my \@all; push \@all, "x" x ( 1_000_000 + \$_ ) for 1 .. 1000 }
    POSIX::_exit(3) if \$path eq '/exit';
    \$env->{'psgix.harakiri.commit'} = 1 if \$path eq '/harakiri';
    if ( \$path eq '/long' )   { select undef, undef, undef, 0.02 until -e "$dir/go" }
    if ( \$path eq '/stream' ) {
        return sub {
            my \$writer = shift->( [ 200, [] ] );
            \$writer->write('begun');
            select undef, undef, undef, 0.02 until -e "$dir/go";
        };
    }
    return [ 200, [], ["\$\$"] ];
}
APP
    return;
}

sub start {
    my @args = @_;
    return Sirius::Test::Server->start(
        app  => $app,
        args => [ qw(--admin 127.0.0.1:0 --err-respawn-interval 0.01), @args ]
    );
}

sub get {
    my ( $server, $path ) = @_;
    my ($address) = $server->log =~ m{admin on http://([^/\s]+)/};
    return $server->connect( to => $address )->ask( "GET $path", 'Host: localhost' )->body;
}

sub status { return $json->decode( get( shift, '/status.json' ) ) }

sub exits { return status(shift)->{totals}{exits} }

# Waits for so many, and says how many there are
sub counted {
    my ( $server, $cause, $want ) = @_;
    my $got;
    until_true( 30, sub { ( $got = exits($server)->{$cause} ) >= $want } );
    return $got;
}

sub reloads {
    my ( $server, $ok, $failed ) = @_;
    my $reload;
    until_true( 60,
        sub { $reload = status($server)->{reload}; $reload->{ok} == $ok && $reload->{failed} == $failed } );
    return $reload;
}

subtest 'Ends of workers' => sub {
    application('');
    my $server = start( '--workers', 2 );
    $server->{may_crash} = 1;
    is_deeply [ grep {$_} values %{ exits($server) } ], [], 'none at first';
    for (qw(crash exit)) {
        eval { $server->ask("GET /$_"); 1 }
    }
    is counted( $server, 'crash', 1 ), 1, 'a crash';
    is counted( $server, 'exit',  1 ), 1, 'an exit of the application';
    $server->ask('GET /harakiri');
    is counted( $server, 'harakiri', 1 ), 1, 'harakiri';
    my $victim = $server->ask('GET /')->body;
    kill KILL => $victim;
    is counted( $server, 'killed', 1 ), 1, 'killed from outside';
    $server->signal('TTOU');
    is counted( $server, 'fewer-workers', 1 ), 1, 'fewer workers';
    $server->signal('HUP');
    my $reload = reloads( $server, 1, 0 );
    is counted( $server, 'stop', 1 ), 1, 'replaced by a reload';
    my $exits = exits($server);
    is_deeply [ @{$exits}{qw(crash exit harakiri killed fewer-workers)} ], [ (1) x 5 ], 'and the others stay';

    ok $reload->{last_ok}, 'the reload was a good one';
    cmp_ok abs( $reload->{last_at} - time ), '<', 60, 'it was now';
    cmp_ok $reload->{last_seconds},          '>', 0,  'it took some time';
    is $reload->{last_text}, 'generation 2 is serving', 'in words';

    # Another program has taken the supervisor's place: it counts on
    ok until_true(
        30, sub { status($server)->{pid} == $server->pid && !status($server)->{reload}{loading} }
        ),
        'the supervisor is there';
    $server->signal('HUP');
    is reloads( $server, 2, 0 )->{last_text}, 'generation 3 is serving', 'another reload';
    is exits($server)->{crash},               1,                         'nothing is lost';
    like get( $server, '/metrics' ), qr/^sirius_worker_exits_total\{cause="crash"\} 1$/m, 'a metric';
    like get( $server, '/metrics' ), qr/^sirius_reloads_total\{result="ok"\} 2$/m,        'of reloads too';
    like get( $server, '/metrics' ),
        qr/^sirius_last_reload_duration_seconds 0\.\d*[1-9]\d*$|^sirius_last_reload_duration_seconds [1-9]/m,
        'how long it took';
    $server->stop;
};

subtest 'A hook that hangs' => sub {
    application('');
    my $server
        = start( qw(--workers 2 --load-timeout 2), '--child-exit', "sub { sleep 60 if -e '$dir/hang' }" );
    spew( "$dir/hang", '' );
    my ($worker) = $server->workers;
    kill TERM => $worker;
    is counted( $server, 'load-timeout', 1 ), 1, 'is a cause of its own';
    unlink "$dir/hang";
    ok until_true( 20, sub { $server->workers == 2 } ), 'the worker is replaced';
    $server->stop;
    my @told = $server->log =~ /^(.*worker $worker .*)$/mg;
    is @told, 1, 'told once' or diag join "\n", @told;
    like $told[0],
        qr/error: worker $worker was killed: --child-exit ran for more than 2 s \(--load-timeout\); starting another/,
        'with the reason';
};

subtest 'Recycled, and out of time' => sub {
    application('');
    my $server = start(qw(--workers 1 --max-reqs-per-child 3 --request-timeout 0.3 --stream-timeout 0.3));
    for ( 1 .. 4 ) { $server->ask('GET /') }
    cmp_ok counted( $server, 'max-requests', 1 ), '>=', 1, 'after enough requests';
    is $server->ask('GET /long')->status,        504, 'a request that lasts';
    is counted( $server, 'request-timeout', 1 ), 1,   'costs a worker';
    my $client = $server->connect;
    $client->send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    is counted( $server, 'request-timeout', 2 ), 2, 'so does a stream that stands still';
    my $limits = status($server)->{totals}{limits};
    is $limits->{request}, 1, 'the limit of the request was hit once';
    is $limits->{stream},  1, 'that of the stream too';
    spew( "$dir/go", '' );
    $server->stop;
    unlink "$dir/go";
};

# perl says "Out of memory!" and exits with status 1, as if it had been told to. A constant would be made when
# the application is compiled
subtest 'perl gets no memory' => sub {
    my $server = start_server(
        "sub { if ( \$_[0]{PATH_INFO} eq '/much' ) { my \$n = 1 << 32; my \$x = 'x' x \$n } [ 200, [], ['ok'] ] }\n",
        '--workers', 1
    );
    is system( 'prlimit', '--as=1000000000', map { ( '--pid', $_ ) } $server->workers ), 0,
        'a limit of memory';
    is $server->ask('GET /')->body,       'ok', 'it serves';
    is $server->ask('GET /much')->status, 500,  'a request that needs more than there is';
    ok $server->wait_log( qr/worker \d+ exited with status 1: perl ran out of memory; starting another/, 10 ),
        'the log says why'
        or diag $server->log;
    is $server->ask('GET /')->body, 'ok', 'another serves';
    $server->stop;
};

# In a control group of its own, so that nobody else is killed
subtest 'Out of memory' => sub {
    my ($group) = grep { mkdir $_ } map {"/sys/fs/cgroup/$_/sirius-test-$$"} qw(memory unified .);
    plan skip_all => 'no control group can be made here' if !$group;
    my $limit = -e "$group/memory.max" ? 'memory.max' : 'memory.limit_in_bytes';
    my $put   = sub {
        my ( $file, $text ) = @_;
        open my $out, '>', "$group/$file" or return 0;
        print {$out} $text;
        return close $out;
    };
    application('');
    my $server = start( '--workers', 1 );
    $server->{may_crash} = 1;
SKIP: {
        my $confined = -e "$group/$limit" && $put->( $limit, 150 << 20 );
        skip 'no limit of memory can be set here', 1 if !$confined;
        $put->( 'cgroup.procs', $_ ) for $server->processes;
        eval { $server->ask('GET /grow') };
        is counted( $server, 'out-of-memory', 1 ), 1, 'it is known why the worker was killed';
        like $server->log, qr/worker \d+ was killed by the kernel: out of memory; starting another/,
            'the log says it';
        is $server->ask('GET /')->status, 200, 'another serves';
    }
    $server->stop;
    until_true( 10, sub { rmdir $group } );
};

subtest 'A request that waits for too long' => sub {
    application('');
    my $server = start(qw(--workers 1 --queue-timeout 0.2 --graceful-timeout 0.3));
    my $busy   = $server->connect;
    $busy->send("GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
    ok until_true(
        30,
        sub {
            grep { $_->{began} } @{ status($server)->{workers} };
        }
        ),
        'the worker is busy';
    is $server->ask('GET /')->status,            503, 'nobody is free';
    is status($server)->{totals}{limits}{queue}, 1,   'that is counted';
    my ($worker) = $server->workers;
    $server->signal('HUP');
    is reloads( $server, 1, 0 )->{last_ok},       1, 'a reload';
    is counted( $server, 'graceful-timeout', 1 ), 1, 'the one that did not end in time was killed';
    spew( "$dir/go", '' );
    $server->stop;
    unlink "$dir/go";
};

subtest 'What an idle worker did last' => sub {
    application('');
    my $server = start(qw(--workers 1));
    is status($server)->{workers}[0]{last_line}, '', 'nothing yet';
    $server->ask('GET /first?a=1');
    my $row;
    ok until_true(
        30, sub { ( $row = status($server)->{workers}[0] )->{state} eq 'idle' && $row->{last_line} }
        ),
        'it is idle again';
    is $row->{last_line},   'GET /first?a=1', 'its request';
    is $row->{last_status}, 200,              'and the status';
    like $row->{last_client}, qr/\A127\.0\.0\.1:\d+\z/, 'for whom';
    is $row->{line}, '', 'it does nothing now';
    $server->signal('HUP');
    ok until_true( 60, sub { ( status($server)->{workers} || [] )->[0]{generation} == 2 } ), 'its successor';
    is_deeply [
        grep {length}
        map { $_->{last_line} } grep { $_->{generation} == 2 } @{ status($server)->{workers} }
        ],
        [], 'has done nothing yet';
    $server->stop;
};

subtest 'A reload that fails, and one that loads' => sub {
    application('');
    my $server = start(qw(--workers 1));
    is_deeply status($server)->{reload},
        { certificates => [], crls => [], failed => 0, loading => 0, loading_since => 0, ok => 0 },
        'none yet';
    application("print STDERR qq(caf\\xc3\\xa9\\n); die qq(no database: <b>x</b>\\n);");
    $server->signal('HUP');
    my $reload = reloads( $server, 0, 1 );
    is $reload->{last_ok}, 0, 'it failed';
    like $reload->{last_text},       qr/\Areload failed: generation 2 /,       'it says so';
    like $reload->{last_said},       qr/caf\x{e9}\n.*no database: <b>x<\/b>/s, 'with what the program said';
    like get( $server, '/metrics' ), qr/^sirius_last_reload_successful 0$/m,   'for Prometheus';

    application("select undef, undef, undef, 0.02 until -e '$dir/go';");
    $server->signal('HUP');
    ok until_true( 30, sub { $reload = status($server)->{reload}; $reload->{loading} } ), 'one that loads';
    is $reload->{loading}, 3, 'its number';
    my $status = status($server);
    cmp_ok $status->{now}, '>=', $status->{reload}{loading_since}, 'since when';
    is $status->{reload}{failed}, 1, 'and the one before';
    like get( $server, '/metrics' ), qr/^sirius_reload_age_seconds (?:0?\.\d|\d*[1-9])/m, 'its age';
    spew( "$dir/go", '' );
    is reloads( $server, 1, 1 )->{last_ok}, 1, 'it is done';
    is status($server)->{reload}{loading},  0, 'nothing loads';

    application('die join q(), map { qq(\xff) x 300 } 1 .. 40;');
    $server->signal('HUP');
    $reload = reloads( $server, 1, 2 );
    cmp_ok length( $reload->{last_said} ), '>', 100, 'a flood of what needs many bytes is cut';
    $server->stop;
};

done_testing;
