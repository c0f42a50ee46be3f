use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Load;

# What the server tells of its limits, of overload and of disks that fail: once in a period, with a count,
# never once a request. What is left is told when it stops, so that the counts can be added up

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP = <<'APP';
sub {
    my $env = shift;
    select undef, undef, undef, $1 if $env->{PATH_INFO} =~ m{\A/sleep/([\d.]+)};
    [ 200, [ 'Content-Type' => 'text/plain' ], ['ok'] ];
}
APP

# Numbers at this place of the lines
sub numbers {
    my ( $server, $line ) = @_;
    return $server->log =~ /^\[sirius \d+\] $line$/mg;
}

sub sum {
    my $sum = 0;
    $sum += $_ for @_;
    return $sum;
}

sub statuses {
    my ( $server, $number, @request ) = @_;
    my %seen;
    $seen{ $server->ask(@request)->status }++ for 1 .. $number;
    return \%seen;
}

sub wakes {
    my $server = shift;
    my $text   = Sirius::Test::Server::slurp( '/proc/' . $server->pid . '/status' );
    return $text =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : 0;
}

for my $workers ( 2, 0 ) {
    subtest "requests over a limit, --workers $workers: a line for all of them" => sub {
        my $server = start_server( $APP, '--workers', $workers,
            qw(--max-body 1000 --max-header-bytes 2k --max-request-line 100 --header-timeout 0.2) );
        my $large = 'x' x 2000;
        is_deeply statuses( $server, 20, 'POST /', \$large ),  { 413 => 20 }, '20 large bodies';
        is_deeply statuses( $server, 7, 'GET /' . 'x' x 200 ), { 414 => 7 },  '7 long request lines';
        is_deeply statuses( $server, 6, 'GET /', map {"X-$_: $large"} 1 .. 3 ), { 431 => 6 }, '6 large heads';
        for ( 1 .. 5 ) {
            my $client = $server->connect;
            $client->send("GET / HTTP/1.1\r\nBad header\r\n\r\n");
            $client->response;
        }
        my @slow = map { $server->connect } 1 .. 4;
        $_->send("GET / HTTP/1.1\r\nHo") for @slow;
        is_deeply [ map { $_->response->status } @slow ], [ (408) x 4 ], '4 slow clients';
        ok $server->wait_log( qr/^\[sirius \d+\] info: --max-body/m, 20 ), 'a line while it serves';
        $server->stop;
        my %line = (
            '--max-body \(1000\) exceeded'                              => [ 20, 413 ],
            '--max-request-line \(100\) exceeded'                       => [ 7,  414 ],
            '--max-header-bytes \(2k\) or --max-header-fields exceeded' => [ 6,  431 ],
            '--header-timeout \(0.2 s\) exceeded'                       => [ 4,  408 ],
        );

        for my $limit ( sort keys %line ) {
            my ( $number, $status ) = @{ $line{$limit} };
            my @told
                = numbers( $server,
                qr/info: $limit: (\d+) requests? (?:was|were) answered with $status(?: in the last \d+ s)?/ );
            is sum(@told), $number, "$limit: all are told" or diag $server->log;
            cmp_ok @told, '<=', 2, 'in one line, or in another at the end';
        }
        is sum( numbers( $server, qr/info: (\d+) requests? (?:was|were) answered with 400 .*/ ) ), 5,
            'what is no HTTP';
    };
}

subtest 'more connections than there may be' => sub {
    my $server = start_server( $APP, qw(--workers 1 --max-connections 3) );
    my @full   = map { $server->connect } 1 .. 3;
    $_->send("GET / HTTP/1.1\r\n") for @full;
    my $late;
    ok until_true(
        10,
        sub {
            $late = eval { $server->ask('GET /') };
            $late && $late->status == 503;
        }
        ),
        'one is refused';
    $server->stop;
    ok numbers(
        $server,
        qr/warn: --max-connections \(3\) reached: (\d+) requests? (?:was|were) answered with 503, because no other connection was idle/
        ),
        'the log says so'
        or diag $server->log;
};

subtest 'no descriptor for another connection' => sub {
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        args    => [qw(--workers 1 --max-connections 1000)],
        command => [
            'sh', '-c', 'ulimit -n 64 && exec "$@"',
            'sh', $^X,  '-Mblib', "$Sirius::Test::Server::ROOT/bin/sirius"
        ]
    );
    my @open = map { $server->connect } 1 .. 100;
    $_->send("GET / HTTP/1.1\r\nHo") for @open;
    ok $server->wait_log(
        qr/^\[sirius \d+\] error: new connections must wait: Too many open files; a process may have 64 descriptors open: .*LimitNOFILE=/m,
        20
        ),
        'the log says so'
        or diag $server->log;
    $_->close for @open;
    ok until_true(
        20,
        sub {
            my $answer = eval { $server->ask('GET /') };
            $answer && $answer->status == 200;
        }
        ),
        'it serves again';
    $server->stop;
    cmp_ok scalar( () = $server->log =~ /must wait/g ), '<=', 2, 'once, or again at the end';
};

subtest 'overload: when it begins and when it is over' => sub {
    my $server = start_server( $APP, qw(--workers 2 --max-queue 6 --queue-timeout 8) );
    my $before = wakes($server);
    sleep 0.5;
    my @busy = map { $server->connect } 1 .. 2;
    $_->send( request('GET /sleep/11') ) for @busy;
    ok $server->wait_busy( 2, qr{/sleep/11} ), 'both workers are busy';
    my @wait = map { $server->connect } 1 .. 4;
    $_->send( request('GET /') ) for @wait;
    ok $server->wait_log(
        qr/^\[sirius \d+\] warn: overload: all 2 workers have been busy for [4-7] s, 4 requests are waiting: raise --workers, or find the slow requests/m,
        30
        ),
        'it begins'
        or diag $server->log;
    my @late = map { $server->connect } 1 .. 4;
    $_->send( request('GET /') ) for @late;
    is_deeply [ sort map { $_->response( patience => 30 )->status } @wait, @late ], [ (200) x 2, (503) x 6 ],
        'some waited, some were refused';
    ok $server->wait_log(
        qr/^\[sirius \d+\] overload ended after \d+ s: 2 requests were delayed, the longest wait was 8\.\d s; 6 requests were answered with 503$/m,
        30
        ),
        'it is over'
        or diag $server->log;
    is scalar( () = $server->log =~ /overload/g ), 2, 'two lines';
    like $server->log, qr/warn: --max-queue \(6\) reached: 2 requests were answered with 503/, 'the queue';
    like $server->log, qr/warn: --queue-timeout \(8 s\) exceeded: 4 requests were answered with 503/,
        'the time';

    my $count;
    ok until_true(
        30, sub { my $last = $count || 0; $count = wakes($server); sleep 3; wakes($server) <= $count + 3 }
        ),
        'the supervisor only looks whether its edges turn, every 2 s';
    $server->stop;
};

for my $workers ( 1, 0 ) {
    subtest "a folder for temporary files that is gone, --workers $workers" => sub {
        mkdir "$dir/tmp" or die $!;
        my $server = start_server( $APP, '--workers', $workers, qw(--body-memory 10 --tmpdir), "$dir/tmp" );
        rmdir "$dir/tmp" or die $!;
        my $large = 'x' x 100;
        is_deeply statuses( $server, 9, 'POST /', \$large ), { 500 => 9 }, 'nine bodies that need a file';
        is $server->ask( 'POST /', \'x' )->status, 200, 'others do not';
        my $line
            = qr/error: cannot write request bodies to temporary files in \Q$dir\E\/tmp: No such file or directory: /;
        ok $server->wait_log( qr/$line/, 20 ), 'the log says what failed';
        $server->stop;
        is sum( numbers( $server, qr/$line(\d+) requests? (?:was|were) refused.*--tmpdir.*/ ) ), 9,
            'and how often'
            or diag $server->log;
    };
}

# It looks between two requests too, and tells at the end what it has not told yet
subtest 'a process that serves alone, and has no rest' => sub {
    my $server = start_server( $APP, qw(--workers 0 --max-body 10) );
    my $load   = Sirius::Test::Load->start( $server, ask => sub { return 'GET /' } );
    is $server->ask( 'POST /', \( 'x' x 100 ) )->status, 413, 'a body that is too large';
    my $line = qr/info: --max-body \(10\) exceeded: (\d+) requests? (?:was|were) answered with 413/;
    ok $server->wait_log( $line, 20 ), 'is told under load';
    $load->stop;
    is $server->ask( 'POST /', \( 'x' x 100 ) )->status, 413, 'another one' for 1 .. 2;
    $server->stop;
    is sum( numbers( $server, qr/$line.*/ ) ), 3, 'is told at the end' or diag $server->log;
};

# A folder that is named is looked at with the options; the system's own may be on a file system that is
# read-only by then
subtest 'a folder for temporary files that cannot be written from the start' => sub {
    my ($unshare)
        = grep { !system "@$_ sh -c 'mount -t tmpfs -o ro none /tmp' >/dev/null 2>&1" } [qw(unshare --mount)],
        [qw(unshare --mount --user --map-root-user)];
    plan skip_all => 'no namespace of mounts can be made here' if !$unshare;
    mkdir "$dir/ro" or die $!;
    for my $workers ( 1, 0 ) {
        my $server = Sirius::Test::Server->start(
            app     => $APP,
            args    => [ qw(--body-memory 10 --workers), $workers ],
            env     => { TMPDIR => "$dir/ro" },
            command => [
                @$unshare, qw(sh -c), 'mount -t tmpfs -o ro none "$TMPDIR" && exec "$@"',
                'sh', $^X, '-Mblib', "$Sirius::Test::Server::ROOT/bin/sirius"
            ],
        );
        like $server->log,
            qr{^\[sirius \d+\] warn: cannot create temporary files in \Q$dir\E/ro: Read-only file system: requests with a body of more than 10 bytes are answered with 500, and slow clients lose their responses; .*--tmpdir to another directory$}m,
            "--workers $workers: the log warns";
        is $server->ask( 'POST /', \( 'x' x 100 ) )->status, 500, 'as it happens';
        is $server->ask('GET /')->status,                    200, 'all else is served';
        $server->stop;
    }
};

subtest 'lines of the access log that are lost' => sub {
    symlink '/dev/full', "$dir/access.log" or die $!;
    my $server  = start_server( $APP, qw(--workers 1 --admin 127.0.0.1:0 --access-log), "$dir/access.log" );
    my ($admin) = $server->log =~ m{admin on http://([^/]+)/};
    my $lost    = sub {
        my $text = $server->connect( to => $admin )->ask('GET /metrics')->body;
        return $text =~ /^sirius_access_log_lost_lines_total (\d+)$/m ? $1 : 0;
    };

    # Batches that are full before half a second is over, for as long as it takes
    my $load = Sirius::Test::Load->start( $server,
        ask => sub { return ( 'GET /', 'User-Agent: ' . 'x' x 8000 ) } );
    my ( $began, $during ) = (time);
    until_true( 20, sub { $during = $lost->() } );
    ok $during, 'are counted while the load is steady';
    ok $server->wait_log(
        qr{^\[sirius \d+\] error: --access-log \Q$dir\E/access\.log: No space left on device: \d+ lines were lost$}m,
        20
        ),
        'and told'
        or diag $server->log;
    unlink "$dir/access.log" or die $!;
    $server->signal('USR1');
    ok $server->wait_log(
        qr/^\[sirius \d+\] --access-log: writing again after [\d.]+ (?:s|min); \d+ lines were lost$/m, 20
        ),
        'and that it works again'
        or diag $server->log;
    ok -s "$dir/access.log", 'it does';
    my $got = $load->stop;
    is_deeply [ keys %$got ], [200], 'no request has noticed' or diag explain $got;
    $server->stop;
};

subtest 'a reload, and the new version of the supervisor, lose no count' => sub {
    unlink "$dir/access.log";
    symlink '/dev/full', "$dir/access.log" or die $!;
    my $server = start_server( $APP, qw(--workers 1 --max-body 1000 --admin 127.0.0.1:0 --access-log),
        "$dir/access.log" );
    my ($admin) = $server->log =~ m{admin on http://([^/]+)/};
    my $lost = sub {
        my $text = $server->connect( to => $admin )->ask('GET /metrics')->body;
        return $text =~ /^sirius_access_log_lost_lines_total (\d+)$/m ? $1 : 0;
    };
    my $refuse = sub {
        my ( $number, $until ) = @_;
        $server->ask( 'POST /', \( 'x' x 2000 ) ) for 1 .. $number;
        return until_true( 20, sub { $lost->() >= $until } );
    };
    my $began = time;
    ok $refuse->( 5, 5 ), 'lines are lost';
    ok $server->wait_log( qr/info: --max-body \(1000\) exceeded: \d+ request/, 20 )
        && $server->wait_log( qr/No space left on device: \d+ lines? w/, 20 ), 'and told';
    ok $refuse->( 7, 12 ), 'more, of which nothing is told within a minute';
    for my $generation ( 2, 3 ) {
        $server->signal('HUP');
        ok until_true(
            30,
            sub { $generation - 1 == ( () = $server->log =~ /the supervisor now runs the installed code/g ) }
            ),
            'a reload';
        ok $refuse->( 3, 12 + 3 * ( $generation - 1 ) ), 'and more';
    }
    my $outage = time - $began;
    unlink "$dir/access.log" or die $!;
    $server->signal('USR1');
    ok until_true(
        30,
        sub {
            $server->ask('GET /');
            $server->log =~ /--access-log: writing again/;
        }
        ),
        'it works again'
        or diag $server->log;
    my $all = $lost->();
    $server->stop;
    my ( $after, $lines )
        = $server->log =~ /--access-log: writing again after ([\d.]+) s; (\d+) lines were lost$/m;
    is $lines, $all, 'all lost lines are told' or diag $server->log;
    cmp_ok $after, '>=', $outage - 3, 'and the time of the whole outage';
    is sum( numbers( $server, qr/error: --access-log \S+: No space .*: (\d+) lines? (?:was|were) lost.*/ ) ),
        $all,
        'also in the lines before';
    is sum( numbers( $server, qr/info: --max-body \(1000\) exceeded: (\d+) requests? .*/ ) ), 18,
        'all refused requests are told'
        or diag $server->log;
};

done_testing;
