use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Fcntl      qw(LOCK_EX LOCK_UN);
use File::Temp ();
use JSON::PP   ();
use POSIX      ();
use Test::More;
use Time::HiRes ();
use Sirius::Test;

# --slow-log: a request that runs for long is in the error log, once, with its stack, and its worker does not
# notice

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $json = JSON::PP->new->utf8;
chmod 0755, "$dir" or die $!;

# Each path ends by itself after some 3 seconds, or when the test has done something; and says what it has
# noticed
my $APP = <<"APP";
use Time::HiRes ();
my \$dir = '$dir';
APP
$APP .= <<'APP';
my $now = sub { Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) };
package Shop::Report {
use Fcntl qw(LOCK_EX);
#line 100 "lib/Shop/Report.pm"
    sub spin  { my $n = 0; until ( -e "$dir/go" ) { for my $i ( 1 .. 1000 ) {
        $n += $i; } }
        return "spun" }
    sub nap   { my $t = $now->();
        my $slept = sleep 3;
        return sprintf '%d %d', $slept, $now->() - $t >= 2.99 }
    sub wait  { my $t = $now->();
        my $n = select undef, undef, undef, 3;
        return sprintf '%d %d', $n, $now->() - $t >= 2.99 }
    sub lock  { open my $fh, '<', "$dir/lock" or die $!;
        my $got = flock $fh, LOCK_EX;
        return $got ? 'locked' : "failed: $!" }
    sub hear  { open my $fh, '+<', "$dir/fifo" or die $!; my $text;
        my $n = sysread $fh, $text, 3;
        return defined $n ? "read $text" : "failed: $!" }
    sub timed { my $t = $now->(); my $said = 'none'; open my $fh, '+<', "$dir/silent" or die $!;
        eval { local $SIG{ALRM} = sub { die "timeout\n" }; alarm 3;
            sysread $fh, my $text, 3; $said = "returned: $!"; };
        return sprintf '%s %d %s', $@ =~ s/\n//r, $now->() - $t >= 2.5, $said }
    sub base  { require DBI; my ( $one, $two ) = map { DBI->connect( "dbi:SQLite:$dir/base", '', '', { PrintError => 0 } ) } 1, 2;
        $one->do('begin exclusive'); $two->sqlite_busy_timeout(3000); my $t = $now->();
        my $done = $two->do('create table t (x)');
        return sprintf '%s %d', $two->errstr, $now->() - $t >= 2.5 }
}
#line 1 "app"
sub stream { my $w = $_[0]->( [ 200, [] ] ); $w->write('begun ');
    select undef, undef, undef, 0.05 until -e "$dir/go";
    $w->write('ended'); $w->close }
sub flood { my $w = $_[0]->( [ 200, [] ] ); my $piece = 'x' x 65_536;
    $w->write($piece) until -e "$dir/go";
    $w->close }
my %DO = map { my $name = $_; "/$name" => sub {
    [ 200, [], [ Shop::Report->can($name)->() ] ] } } qw(spin nap wait lock hear timed base);
#line 20 "app"
$DO{'/stream'} = sub { \&stream };
$DO{'/flood'}  = sub { \&flood };
$DO{'/io'}     = sub { my $io = $_[0]{'psgix.io'}; syswrite $io, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    select undef, undef, undef, 0.05 until -e "$dir/go"; close $io; [ 200, [], [] ] };
$DO{'/post'}   = sub { my $n = read $_[0]{'psgi.input'}, my $body, 1e7;
    select undef, undef, undef, 0.05 until -e "$dir/go"; [ 200, [], [$n] ] };
$DO{'/after'}  = sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { select undef, undef, undef, 0.05 until -e "$dir/go" };
    [ 200, [], ['early'] ] };
sub { my $do = $DO{ $_[0]{PATH_INFO} }; $do ? &$do : [ 200, [], ["$$"] ] }
APP

sub go {
    my $file = spew( "$dir/go", '' );
    return sub { unlink $file };
}

# The lines of the log about a request, once they are there
sub lines_of {
    my ( $server, $path, $patience ) = @_;
    my $pattern = qr/^\[sirius \d+\] warn: (worker \d+: slow request: \S+ \Q$path\E .*\n(?:\t.*\n)*)/m;
    $server->wait_log( $pattern, $patience || 15 );
    my @all = $server->log =~ /$pattern/g;
    return @all;
}

sub slow_of {
    my $server = shift;
    return $json->decode(
        Sirius::Test::Client->new("unix:$dir/admin")->ask( 'GET /status.json', 'Host: localhost' )->body )
        ->{totals}{slow};
}

my $run = qr/has run for (?:0\.[5-9]|[12]\.\d) s after waiting \d+\.\d s/;
my $id  = qr/request id [0-9a-f]{32}, traceparent -/;

subtest 'Wherever it is, the line says it, and nothing changes' => sub {
    spew( "$dir/lock", '' );
    POSIX::mkfifo( "$dir/$_", 0666 ) or die "mkfifo: $!" for qw(fifo silent);
    my $dbi   = eval { require DBD::SQLite; 1 };
    my @paths = ( qw(spin nap wait lock hear timed), $dbi ? 'base' : () );
    my $server
        = start_server( $APP, '--workers', 1 + @paths, qw(--slow-log 500ms --admin), "unix:$dir/admin" );
    open my $lock, '<', "$dir/lock" or die $!;
    flock $lock, LOCK_EX;
    open my $fifo, '+<', "$dir/fifo" or die $!;
    my %client = map { $_ => $server->connect } @paths;
    $client{$_}->send( request("GET /$_?q=1") ) for @paths;
    is $server->ask('GET /')->status, 200, 'a request that is not slow, meanwhile';

    my %want = (
        spin  => [ qr/(?:spin at \S+ line 10[01])/,            '' ],
        nap   => [ qr/nap at lib\/Shop\/Report.pm line 104/,   qr/in the system call (?:clock_)?nanosleep/ ],
        wait  => [ qr/wait at lib\/Shop\/Report.pm line 107/,  qr/in the system call p?select6?/ ],
        lock  => [ qr/lock at lib\/Shop\/Report.pm line 110/,  qr/in the system call flock/ ],
        hear  => [ qr/hear at lib\/Shop\/Report.pm line 113/,  qr/in the system call read/ ],
        timed => [ qr/timed at lib\/Shop\/Report.pm line 117/, qr/in the system call read/ ],
        base  => [ qr/base at lib\/Shop\/Report.pm line 121/,  qr/in the system call (?:clock_)?nanosleep/ ],
    );
    my %text;

    for my $path (@paths) {
        ( $text{$path}, my @more ) = lines_of( $server, "/$path?q=1" );
        ok $text{$path}, "/$path is in the log" or diag $server->log;
        like $text{$path}, qr/GET \/\S+ from 127\.0\.0\.1:\d+ $run; $id; /, 'what it is';
        my ( $first, @frames ) = split /\n\t?/, $text{$path};
        my ( $innermost, $call ) = @{ $want{$path} };
        like $text{$path}, $innermost, 'where it is' or diag $text{$path};
        like $first,       $call,      'and in which system call' if $call;
        like $frames[-3], qr/\AShop::Report::$path at lib\/Shop\/Report.pm line \d+\z/, 'from there'
            or diag $text{$path};
        is "@frames[-2, -1]", 'main::__ANON__ at app line 8 main::__ANON__ at app line 28',
            'from the application, and no further'
            or diag $text{$path};
    }
    syswrite $fifo, 'now';
    flock $lock, LOCK_UN;
    my $stop = go();
    my %said = (
        spin  => 'spun',
        nap   => qr/\A[34] 1\z/,         # by the clock of the day in seconds, which may have gone one further
        wait  => '0 1',
        lock  => 'locked',
        hear  => 'read now',
        timed => 'timeout 1 none',
        base  => 'database is locked 1',
    );
    like $client{$_}->response->body, qr/\A(?:$said{$_})\z/, "/$_ was not disturbed" for @paths;
    $stop->();
    is scalar lines_of( $server, "/$_?q=1" ), 1,             "/$_ is there once" for @paths;
    is slow_of($server),                      scalar @paths, 'all of them are counted';
    my $metrics = Sirius::Test::Client->new("unix:$dir/admin")->ask('GET /metrics')->body;
    like $metrics, qr/^sirius_slow_requests_total ${\ scalar @paths}$/m, 'a metric';
    $server->stop;
};

subtest 'What is known of its response' => sub {
    my $server = start_server( $APP, qw(--workers 6 --slow-log 500ms --listen 127.0.0.1:0 --listen),
        "unix:$dir/http" );
    my @client = map { $server->connect } 0 .. 4;
    $client[1] = $server->connect( to => "unix:$dir/http" );    # which holds less than a connection of TCP
    $client[0]->send( request('GET /stream') );
    $client[1]->send( request('GET /flood') );
    $client[2]->send( request('GET /io') );
    $client[3]->send( request('GET /spin?left') );
    $client[4]->send( request('GET /after') );
    is $client[4]->response->body, 'early', 'a response before its cleanup handler';
    $client[3]->abort;
    like + ( lines_of( $server, '/stream' ) )[0],
        qr/$run, its response has begun; $id; .*:\n\tmain::stream at app line 2\n\z/,
        'a stream';
    like + ( lines_of( $server, '/flood' ) )[0],
        qr/$run, it waits for its client to read the response; $id; .*\n\tmain::flood at app line 5\n\z/,
        'a client that does not read';
    like + ( lines_of( $server, '/io' ) )[0],
        qr/$run, it has the connection \(psgix\.io\); $id; .*\n\tmain::__ANON__ at app line 2[23]\n\tmain::__ANON__ at app line 28\n\z/,
        'psgix.io';
    like + ( lines_of( $server, '/spin?left' ) )[0],
        qr/from 127\.0\.0\.1:\d+ $run, its client is gone; $id; /, 'a client that has gone';
    my $stop = go();
    $client[1]->abort;
    $server->stop;
    $stop->();
    unlike $server->log, qr{GET /after}, 'a cleanup handler is no request';
};

subtest 'Names of a request' => sub {
    my $parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    my $log    = "$dir/access";
    my @format = ( '--access-log', $log, '--access-log-format', '%U %{request-id}x %{traceparent}x' );
    for my $trust ( [], [qw(--trust-proxy 127.0.0.1)] ) {
        my $stop;
        unlink $log;
        my $server = start_server( $APP, qw(--workers 4 --slow-log 500ms), @format, @$trust );
        my @client = map { $server->connect } 0 .. 3;
        my $long   = '/post?' . 'l' x 3000;
        $client[0]->send( request( 'GET /stream', 'X-Request-Id: shop-1', "traceparent: $parent" ) );
        $client[1]->send(
            request( 'POST /post?big', 'X-Request-Id: shop-2', "traceparent: $parent", \( 'b' x 300_000 ) ) );
        $client[2]->send( request("GET $long") );
        $client[3]->send(
            request( "GET /spin?gr\xc3\xbc\xc3\x9f", 'X-Request-Id: not "valid"', 'traceparent: junk' ) );
        my %line = map { my ($l) = lines_of( $server, $_ ); $_ => $l }
            ( '/stream', '/post?big', '/spin?gr\xc3\xbc\xc3\x9f' );
        my $given = sub { return @$trust ? "shop-$_[0]" : '[0-9a-f]{32}' };
        like $line{'/stream'}, qr/request id ${\ $given->(1)}, traceparent $parent; it/, 'both';
        like $line{'/post?big'}, qr/request id ${\ $given->(2)}, traceparent $parent; /,
            'of a request in a file';
        like $line{'/spin?gr\xc3\xbc\xc3\x9f'}, qr/request id [0-9a-f]{32}, traceparent -; /,
            'neither is valid';
        ok $server->wait_log( qr/slow request: GET \/post\?l{150,200} from/, 15 ), 'a long target is cut';
        $stop = go();
        is $client[$_]->response->status, 200, 'answered' for 0 .. 3;
        ok until_true( 10, sub { 4 == ( () = Sirius::Test::Server::slurp($log) =~ /\n/g ) } ),
            'the access log';
        my $access = Sirius::Test::Server::slurp($log);
        my %named  = $access =~ /^(\S+) (\S+)/mg;
        my ($made) = $line{'/spin?gr\xc3\xbc\xc3\x9f'} =~ /request id (\w+)/;
        is $named{'/spin'}, $made, 'has the same id';
        like $access, qr/^\/stream ${\ $given->(1)} $parent$/m, 'and the same traceparent';
        my %ids = map { $_ => 1 } $access =~ /^\S+ (\S+)/mg;
        is scalar keys %ids, 4, 'each has its own'
            or diag $access;
        $server->stop;
        $stop->();
    }
};

subtest 'At most 20 a minute' => sub {
    my $server = start_server( $APP, qw(--workers 25 --slow-log 300ms --admin), "unix:$dir/admin" );
    my @client = map { $server->connect } 1 .. 25;
    $_->send( request('GET /post') ) for @client;
    ok until_true( 20, sub { slow_of($server) == 25 } ), 'all are counted';
    my $stop = go();
    is $_->response->status, 200, 'answered' for @client;
    $server->stop;
    $stop->();
    my $lines = () = $server->log =~ /slow request: GET/g;
    my ($more)
        = $server->log
        =~ /warn: (\d+) more requests? ran for longer than 0\.3 s; not all of them are logged \(--slow-log\)$/m;
    cmp_ok $lines, '<=', 20, "some are logged: $lines";
    cmp_ok $lines, '>=', 10, 'ten at once';
    $lines += $more;
    is $lines, 25, 'and the rest is counted, at the end at the latest';
};

subtest 'Below the limit' => sub {
    my $server = start_server( $APP, qw(--workers 2 --slow-log 30), '--admin', "unix:$dir/admin" );
    is $server->ask('GET /wait')->body, '0 1', 'three seconds';
    is slow_of($server),                0,     'are not slow';
    unlike $server->log, qr/slow request/, 'and not in the log';
    $server->stop;
};

subtest 'One process' => sub {
    my $server = start_server( $APP, qw(--workers 0 --slow-log 500ms) );
    like $server->ask('GET /nap')->body, qr/\A[34] 1\z/, 'is not disturbed';
    my $pid = $server->pid;
    like $server->log,
        qr/^\[sirius $pid\] warn: slow request: GET \/nap from 127\.0\.0\.1:\d+ $run; $id; with --workers 0 its stack is not read$/m,
        'the line has no stack';
    $server->stop;
};

subtest 'A reload' => sub {
    my $config = "$dir/sirius.conf";
    spew( $config, "slow-log = 0\n" );
    my $server = start_server( $APP, '--config', $config, qw(--workers 2) );
    spew( $config, "slow-log = 0.5\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload completed/,  30 ), 'with another limit';
    ok $server->wait_log( qr/edge \d+ replaces/, 30 ), 'takes effect';
    like $server->ask('GET /nap')->body,       qr/\A[34] 1\z/, 'a request';
    like + ( lines_of( $server, '/nap' ) )[0], qr/nap at lib/, 'is slow now';
    $server->stop;
};

subtest 'Another user' => sub {
    plan skip_all => 'for root, where there are other users'
        if $> || 'yes' ne in_child( sub { POSIX::setgid(65533) && POSIX::setuid(65532) ? 'yes' : 'no' } );
    my $server = start_server( $APP, qw(--workers 1 --slow-log 500ms --user 65532 --group 65533) );
    like $server->ask('GET /nap')->body, qr/\A[34] 1\z/, 'a request';
    my ($lines) = lines_of( $server, '/nap' );
    like $lines,
        qr/\n\tShop::Report::nap at lib\/Shop\/Report.pm line 104\n\tmain::__ANON__ at app line 8\n\tmain::__ANON__ at app line 28\n\z/,
        'has its stack'
        or diag $server->log;
    $server->stop;
};

done_testing;
