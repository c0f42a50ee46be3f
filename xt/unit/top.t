use strict;
use warnings;
use List::Util qw(max);
use POSIX      ();
use Test::More;
use Sirius::Admin::Change;
use Sirius::Base::Text;
use Sirius::CLI::Top::Client;
use Sirius::CLI::Top::Picture;

POSIX::setlocale( POSIX::LC_CTYPE(), 'C' );
local $SIG{__WARN__} = sub { die "a warning: $_[0]" };

# What /status.json says, with so many seconds and requests since a first time
sub status {
    my ( $seconds, $requests, %more ) = @_;
    return {
        connections => { open => 120, idle => 110, waiting => 3 },
        latency     => histogram( 1000 + $requests ),
        listeners   => [ 'http://127.0.0.1:5000/', 'unix:/run/app.sock' ],
        now         => 5000 + $seconds,
        pid         => 4711,
        queue       => { count => 0, buckets => [] },
        started     => 1_700_000_000,
        stopping    => 0,
        totals      => {
            requests  => 1000 + $requests,
            responses => { 1 => 0, 2 => 900 + $requests, 3 => 0, 4 => 100, 5 => 0 },
            bytes     => 4096 * ( 1000 + $requests ),
            aborted   => 5,
            refused   => 0,
        },
        uptime  => 4000 + $seconds,
        version => '1.23',
        wanted  => 3,
        workers => [
            { pid => 31, generation => 2, state => 'idle', since => 4999, began => 0, requests => 7 },
            {   pid        => 32,
                generation => 2,
                state      => 'busy',
                since      => 4990,
                began      => 4990,
                requests   => 900 + $requests,
                rss        => 34_603_008,
                private    => 5 << 20,
                line       => 'GET /late',
                client     => '127.0.0.1:5555',
                id         => '5b1f0c6e9d3a4e7700000000000003e9'
            },
            {   pid        => 30,
                generation => 2,
                state      => 'busy',
                began      => 4900,
                requests   => 93,
                rss        => 1 << 30,
                line       => 'POST /early',
                mark       => 'step 3'
            },
        ],
        %more,
    };
}

# Half below 1 ms, half below 3 ms; percentiles that only the server knows
sub histogram {
    my $count = shift;
    return {
        count   => $count,
        buckets => [ [ 0.001, $count / 2 ], [ 0.003, $count ], [ 10, $count ] ],
        p50     => 0.25,
        p90     => 0.5,
        p99     => 0.75,
        p999    => 1
    };
}

sub lines {
    my ( $now, $before, @size ) = @_;
    my @lines = Sirius::CLI::Top::Picture->new( $now, $before )->lines(@size);
    s/, \d\d:\d\d:\d\d, /, NOW, / for $lines[0];
    return @lines;
}

subtest 'The first picture' => sub {
    is join( "\n", lines( status( 0, 0 ) ), '' ), <<'PICTURE', 'about the time since the start';
Sirius 1.23, PID 4711, up 66 min, NOW, rates since the start
Address      http://127.0.0.1:5000/ unix:/run/app.sock
Workers      3 wanted, 2 busy, 1 idle
Requests     0.2/s, 2xx 0.2, 4xx 0.0, aborted 0.0, 1.0 KB/s sent
Connections  120 open, 110 idle, 3 waiting
Latency      p50 250 ms, p90 500 ms, p99 750 ms, p99.9 1.0 s
Queue        3 in it

    PID GEN STATE          FOR  REQ/S   REQUESTS    RSS    OWN CLIENT                ID                               DOING
     30   2 busy         1 min    0.0         93 1.0 GB                                                               POST /early [step 3]
     32   2 busy          10 s    0.2        900  33 MB 5.0 MB 127.0.0.1:5555        5b1f0c6e9d3a4e7700000000000003e9 GET /late
     31   2 idle         1.0 s    0.0          7
PICTURE
};

subtest 'HTTP/2' => sub {
    my $status = status( 0, 0 );
    @{ $status->{connections} }{qw(http2 streams)} = ( 5, 12 );
    is( ( lines($status) )[4],
        'Connections  120 open, 110 idle, 3 waiting, 5 with HTTP/2, 12 streams',
        'connections and streams'
    );
};

subtest 'Held connections' => sub {
    my $status = status( 0, 0 );
    $status->{held} = { stream => 40, response => 2, websocket => 8 };
    is( ( lines($status) )[4], 'Connections  120 open, 110 idle, 3 waiting, 50 held', 'all of them' );
    $status->{held} = { stream => 'x', response => {} };
    is( ( lines($status) )[4], 'Connections  120 open, 110 idle, 3 waiting', 'what is no number is none' );
};

subtest 'Files of --static are requests, too' => sub {
    my @status = ( status( 2, 500 ), status( 0, 0 ) );
    @{ $_->{totals} }{qw(files)} = 3000 for @status;
    $status[0]{totals}{files} += 900;
    like + ( lines(@status) )[3], qr{^Requests     700/s, files 450, 2xx 250, }, 'counted, and told';
    my $none = ( lines( status( 2, 500 ), status( 0, 0 ) ) )[3];
    like $none, qr{^Requests     250/s, 2xx 250, }, 'not told where there are none';
    is( ( lines(@status) )[7], 'Files        450/s, 0 B/s sent', 'a line of their own' );
    @{ $status[0]{totals} }{qw(files_bytes files_unchanged files_missing)} = ( 8 << 20, 300, 4 );
    is( ( lines(@status) )[7],
        'Files        450/s, 4.0 MB/s sent, 304 150, 404 2.0',
        'how they were answered'
    );
};

subtest 'The next one' => sub {
    my @lines = lines( status( 2, 500 ), status( 0, 0 ) );
    is $lines[0], 'Sirius 1.23, PID 4711, up 66 min, NOW, rates over 2.0 s',         'about two seconds';
    is $lines[3], 'Requests     250/s, 2xx 250, 1.0 MB/s sent',                      'what has come in them';
    is $lines[5], 'Latency      p50 < 1.0 ms, p90 2.6 ms, p99 3.0 ms, p99.9 3.0 ms', 'and how long it took';
    like $lines[10], qr{^     32   2 busy          12 s    250 }, 'by whom';
    is + ( lines( status( 2, 0 ), status( 0, 0 ) ) )[5], 'Latency', 'no requests, no times';
};

subtest 'Where the time goes' => sub {
    my %answer = (
        calls => {
            calls   => 40,
            seconds => 100,
            paths   => [
                { path => "/rep\e[31mort", share => 0.6 },
                { path => '/',             share => 0.3 },
                { path => '/x',            share => 0.001 },
                7
            ],
        },
        exceptions => { count => 9, last => [ { text => "boom\n at a.pl line 7", at => 1_700_003_990 } ] },
        time       => 1_700_004_000,
    );
    my @lines = lines( status( 0, 0, %answer ) );
    is_deeply [ grep {/^(?:Time|Paths|Exceptions)/} @lines ],
        [
        'Paths        /rep\x1b[31mort 60 %, / 30 %',
        'Exceptions   9, the last 10 s ago: boom\x0a at a.pl line 7'
        ],
        'the first time: shares, and the last exception';
    my ( $now, $before ) = map { status( $_, 0, %answer ) } 2, 0;
    $now->{workers}[1]{cpu}    = 8;
    $before->{workers}[1]{cpu} = 7;
    $now->{calls}              = { %{ $now->{calls} }, seconds => 99 };
    $now->{workers}[2]{since}  = $before->{workers}[2]{since} = 4900;
    is + ( grep {/^Time/} lines( $now, $before ) )[0],
        'Time         1.5 workers busy, computing 33 %, waiting 67 %',
        'then how much was computation';
    $now->{workers}[1]{cpu} = 12;
    like + ( grep {/^Time/} lines( $now, $before ) )[0], qr/computing 100 %, waiting 0 %/, 'no more than all';
    $before->{workers}[1]{cpu} = undef;
    like + ( grep {/^Time/} lines( $now, $before ) )[0], qr/computing 0 %/,
        'a worker whose CPU time is not known';
    $now->{calls}{seconds} = 90;
    like + ( grep {/^Time/} lines( $now, $before ) )[0], qr/\ATime         0 workers busy\z/,
        'nobody was busy';
    is_deeply [
        grep {/^(?:Time|Paths|Exceptions)/} map { lines( status( 0, 0, calls => $_, exceptions => $_ ) ) } 7,
        {},
        [],
        { paths => 3, last => {} }
        ],
        [], 'nothing that makes sense';
};

subtest 'In a word' => sub {
    my $now = status( 0, 0, verdict => { mood => 'bad', text => "Serving, but \e[2J" } );
    is( ( lines($now) )[1], 'State        Serving, but \x1b[2J', 'the verdict of the server' );
};

subtest 'A stack' => sub {
    my %stack = (
        pid     => 32,
        state   => 'busy',
        line    => "GET /\e[2J",
        seconds => 12,
        kind    => 'wait',
        frames  => [qw(main::a main::b)]
    );
    my @lines = Sirius::CLI::Top::Picture->stack( \%stack );
    is_deeply \@lines, [ 'worker 32: GET /\x1b[2J, for 12 s, waiting', '    main::b', '    main::a' ],
        'innermost first';
    is_deeply [ Sirius::CLI::Top::Picture->stack( \%stack, 9, 2 ) ], [ 'worker 32', '    main:' ],
        'as much as fits';
    is_deeply [ Sirius::CLI::Top::Picture->stack( { pid => 32, state => 'idle' } ) ], ['worker 32: idle'],
        'none';
    is_deeply [ Sirius::CLI::Top::Picture->new( status( 0, 0 ) )->busy ], [ 30, 32 ], 'who is busy';
    for my $junk ( '', "\e[2J", 9**9**9, [], {}, [ [] ] ) {
        my @all = map { Sirius::CLI::Top::Picture->stack($_) } { %stack, frames => $junk },
            { map { $_ => $junk } keys %stack };
        is_deeply [ grep {/[^\x20-\x7e]/} @all ], [], 'a stack of ' . ( ref $junk || 'junk' );
    }
};

subtest 'Lanes' => sub {
    my @lanes = (
        {   name          => "/rep\e[31mort",
            limit         => 2,
            running       => 2,
            waiting       => 48,
            waiting_since => 4990,
            refused       => 3,
            timed_out     => 1
        },
        { name => 'POST /import', limit => 1, running => 0, waiting => 0, waiting_since => 0 }
    );
    my @lines = lines( status( 0, 0, lanes => [ @lanes, 'no hash' ] ) );
    is $lines[7],
        'Lane         /rep\x1b[31mort: 2 of 2 running, 48 waiting, the first for 10 s, 3 refused, 1 timed out',
        'a full one';
    is $lines[8], 'Lane         POST /import: 0 of 1 running, 0 waiting', 'an empty one';
};

subtest 'Edges' => sub {
    my %edge = (
        pid           => 29,
        state         => 'idle',
        started       => 400,
        connections   => 120,
        idle          => 110,
        waiting       => 3,
        waiting_since => 4998.5,
        accepted      => 4000,
        bytes         => 1e9,
        cpu           => 12,
        rss           => 14 << 20
    );
    my @now = (
        { %edge, cpu => 12.5 },
        { %edge, pid => 28, state => 'draining', waiting => 0, waiting_since => 0 }
    );
    my $before = status( 0, 0, edges => [ \%edge ] );
    my $now    = status( 2, 0, edges => \@now );
    my @lines  = lines( $now, $before );
    my $up     = Sirius::Base::Text->age( $now->{now} - 400 );
    my $wait   = Sirius::Base::Text->age( $now->{now} - 4998.5 );
    is_deeply [ @lines[ 4, 5 ] ],
        [
        "Edge         PID 29, up $up, 120 open, 110 idle, 3 waiting, the first for $wait, 25 % CPU, 14 MB",
        "Edge         PID 28, draining, up $up, 120 open, 110 idle, 0 waiting, 14 MB",
        ],
        'a line each';
    is $lines[8], 'Queue        3 in it', 'what waits in them is in the queue';
    like $lines[12], qr/33 MB 5\.0 MB 127\.0\.0\.1:5555 +\w{32} GET \/late/,
        'the other columns stay where they are';
};

subtest 'Which server' => sub {
    my ($line) = lines( status( 2, 500, app => "shop.psgi\e[2J", host => 'web1' ), status( 0, 0 ) );
    is $line, 'Sirius 1.23, shop.psgi\x1b[2J on web1, PID 4711, up 66 min, NOW, rates over 2.0 s',
        'the application and the machine';
};

subtest 'What cannot be compared' => sub {
    my $now   = status( 2, 500 );
    my %other = (
        'started again'   => status( 0, 0, started => 1 ),
        'counters anew'   => status( 0, 501 ),
        'the same moment' => status( 2, 0 ),
    );
    for my $name ( sort keys %other ) {
        my $change = Sirius::Admin::Change->new( $now, $other{$name} );
        ok !$change->is_partial, "$name: since the start";
        is $change->growth(qw(totals requests)), 1500, 'all requests';
    }
    my $new = { %{ $now->{workers}[0] }, pid => 99 };
    is( Sirius::Admin::Change->new( $now, status( 0, 0 ) )->worker_rate($new), undef,
        'a worker that is new' );
};

subtest 'No finer than the buckets' => sub {
    my @buckets = ( [ 16.384e-6, 50 ], [ 20.48e-6, 60 ], [ 100, 90 ], [ 137.4, 90 ] );
    my $change
        = Sirius::Admin::Change->new( status( 1, 1, latency => { count => 100, buckets => \@buckets } ) );
    my %case = (
        1e-9      => '< 16 us',
        8.2e-6    => '< 16 us',
        16.384e-6 => '< 16 us',
        17e-6     => '17 us',
        0.25      => '250 ms',
        137       => '2 min',
        137.4     => '> 2 min',
    );
    is $change->words( latency => $_ ), $case{$_}, "$_ s" for sort { $a <=> $b } keys %case;
    my $none = Sirius::Admin::Change->new( status( 1, 1, latency => [] ) );
    is $none->words( latency => 1e-9 ), '0 us', 'without buckets';
    my ($line) = grep {/\ALatency/} lines( status(
        1,
        1,
        latency => { count => 100, buckets => \@buckets, p50 => 8e-6, p90 => 99, p99 => 137.4, p999 => 137.4 }
    ) );
    is $line, 'Latency      p50 < 16 us, p90 99 s, p99 > 2 min, p99.9 > 2 min', 'in the picture';
};

subtest 'Percentiles' => sub {
    my $times = sub {
        my ( $now, $before ) = map { status( $_->[0], $_->[0], latency => $_->[1] ) } [ 1, shift ],
            [ 0, shift ];
        return [ map { defined $_ ? 0 + sprintf '%.4f', $_ : undef }
                Sirius::Admin::Change->new( $now, $before )->quantiles('latency') ];
    };
    my $old = { count => 10, buckets => [ [ 1, 10 ] ] };
    is_deeply $times->( { count => 20, buckets => [ [ 1, 10 ], [ 2, 20 ] ] }, $old ),
        [ 1.5, 1.9, 1.99, 1.999 ],
        'a bucket that was not there before';
    is_deeply $times->( { count => 20, buckets => [ [ 1, 15 ], [ '+Inf', 20 ] ] }, $old ), [ 1, 1, 1, 1 ],
        'one without an end: where it begins';
    is_deeply $times->( { count => 20, buckets => [ [ 1, 15 ] ] }, $old ), [ 1, 1, 1, 1 ],
        'more than the buckets have: the end of the last';
    is_deeply $times->( $old, $old ), [], 'none';
};

subtest 'Sizes' => sub {
    my $now = status( 0, 0 );
    push @{ $now->{workers} }, map { { pid => 1000 + $_, state => 'idle' } } 1 .. 97;
    my ( @wide, @high );
    for my $width ( 1 .. 200 ) {
        push @wide, grep { length > $width } lines( $now, undef, $width );
    }
    is_deeply \@wide, [], 'no line is too long';
    for my $height ( 1 .. 120 ) { push @high, $height if $height < lines( $now, undef, 80, $height ) }
    is_deeply \@high, [], 'nor are there too many';
    my @lines = lines( $now, undef, 80, 24 );
    is scalar @lines, 24,                    'the room is used';
    is $lines[-1],    'and 86 more workers', 'what is missing is said';
    is $lines[9],     '     30   2 busy         1 min    0.0 1.0 GB POST /early [step 3]', 'fewer columns';
    is + ( lines( $now, undef, 50 ) )[9], '     30 busy         1 min    0.0 POST /early [ste', 'still fewer';
    is scalar( lines( $now, undef, 80 ) ), 109, 'all of them without a limit';
};

# A client of the server, or a server that is none, must not speak to the terminal
subtest 'Hostile answers' => sub {
    my $bad = "a\e[2J\x{9b}31m\r\n\x{263a}\x07\x7f";
    my $now = status( 0, 0, version => $bad, listeners => [ $bad, $bad ] );
    $_->{line} = $_->{client} = $_->{mark} = $_->{state} = $bad for @{ $now->{workers} };
    my @lines = lines($now);
    is_deeply [ grep {/[^\x20-\x7e]/} @lines ], [], 'printable ASCII only';
    like $lines[9], qr/a\\x1b\[2J\\x9b31m\\x0d\\x0a\\x\{263a\}\\x07\\x7f/, 'escaped';

    for my $junk ( undef, '', 'abc', "\e[2J", 9**9**9, -1, [], {}, [ [] ],
        { buckets => [ 1, [], ['a'] ], count => 5 } )
    {
        my %status = map { $_ => $junk } keys %$now;
        my @all    = map { lines( $_->[0], $_->[1] ) } [ { %status, workers => [] } ],
            [ { %status, workers => [$junk] } ],
            [ { %$now, map { $_ => $junk } qw(totals latency queue connections listeners edges verdict) } ],
            [ {
            %$now,
            edges => [ $junk, { map { $_ => $junk } qw(pid state started waiting_since rss cpu waiting) } ]
            } ],
            [ { %$now, workers => [ { map { $_ => $junk } keys %{ $now->{workers}[1] } } ] } ],
            [ status( 2, 2 ), { %$now, latency => $junk, workers => [$junk] } ],
            [ status( 2, 2 ), { %status, workers => [] } ];
        is_deeply [ grep {/[^\x20-\x7e]/} @all ], [],
            'a picture of ' . ( defined $junk ? ref $junk || 'junk' : 'nothing' );
    }
};

subtest 'What the application says in its language' => sub {
    my $now = status( 0, 0 );
    $now->{exceptions} = { count => 1, last => [ { at => 0, text => "Stra\x{df}e fehlt: \x{4e2d}\e[2J" } ] };
    $_->{mark}         = "\x{4e2d}" x 100 for @{ $now->{workers} };
    like join( "\n", lines($now) ), qr/: Stra\\xdfe fehlt: \\x\{4e2d\}\\x1b\[2J$/m,
        'where the locale is ASCII';
SKIP: {
        skip 'there is no locale C.UTF-8', 2 if !POSIX::setlocale( POSIX::LC_CTYPE(), 'C.UTF-8' );
        my @lines = lines( $now, undef, 80 );
        like join( "\n", lines($now) ), qr/: Stra\x{df}e fehlt: \x{4e2d}\\x1b\[2J$/m, 'where it is UTF-8';
        my ($marked) = grep {/\x{4e2d}{2}/} @lines;
        cmp_ok( Sirius::Base::Text->columns($marked), '<=', 80, 'no line is too long' );
        POSIX::setlocale( POSIX::LC_CTYPE(), 'C' );
    }
};

subtest 'Addresses' => sub {
    my %case = (
        '9090'                   => '127.0.0.1:9090',
        ':9090'                  => '127.0.0.1:9090',
        '*:9090'                 => '127.0.0.1:9090',
        'localhost:9090'         => 'localhost:9090',
        '[::1]:9090'             => '::1:9090',
        'http://127.0.0.1:9090/' => '127.0.0.1:9090',
        'http://[::1]:9090'      => '::1:9090',
        '/run/a.sock?mode=0600'  => '/run/a.sock',
        'unix:/run/a.sock'       => '/run/a.sock',
        '@admin'                 => "\0admin",
    );
    for my $text ( sort keys %case ) {
        my $client = Sirius::CLI::Top::Client->new($text);
        my $is     = defined $client->{path} ? $client->{path} : "$client->{host}:$client->{port}";
        is $is, $case{$text}, "'$text'";
    }
    for my $text ( 'fd:3', 'systemd:admin', '[::1', '', 'a:99999' ) {
        ok !eval { Sirius::CLI::Top::Client->new($text) }, "'$text' is none";
        like $@, qr/\A[^\n]+\n\z/, 'one line';
    }
};

done_testing;
