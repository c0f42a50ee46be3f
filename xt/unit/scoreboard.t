use strict;
use warnings;
use Fcntl qw(F_SETFD);
use POSIX ();
use Test::More;
use Sirius::OS::Inherit;
use Sirius::Process::Renewal;
use Sirius::Scoreboard;

# Without workers: what there is at first, and whose it is. With workers: xt/process/workers/scoreboard.t

sub error {
    my $code = shift;
    return eval { $code->(); 1 } ? '' : $@;
}

is( Sirius::Scoreboard->current, undef, 'no scoreboard at first' );
like error( sub { Sirius::Scoreboard->snapshot } ), qr/\Athis process does not belong to a server at \Q$0\E/,
    'and no snapshot';
is error( sub { Sirius::Scoreboard->mark('x') } ), '', 'a mark is no error anywhere';

my $board = Sirius::Scoreboard->new(3);
is_deeply( Sirius::Scoreboard->current, $board, 'the one of this process' );
is $board->rows, 3, 'its rows';
is_deeply [ $board->occupied ], [], 'nobody is there';

subtest 'a snapshot' => sub {
    my $got = Sirius::Scoreboard->snapshot;
    is_deeply $got->{workers}, [], 'no worker';
    is_deeply $got->{connections}, { map { $_ => 0 } qw(http2 idle open spooled streams waiting) },
        'no connection';
    is_deeply $got->{held}, { map { $_ => 0 } qw(response stream websocket) }, 'nor one that is held';
    is_deeply [ @{$got}{qw(wanted stopping)} ], [ 0, 0 ], 'nothing asked';
    is_deeply $got->{reload},
        { certificates => [], crls => [], map { $_ => 0 } qw(failed loading loading_since ok) },
        'no reload';
    cmp_ok abs( $got->{time} - time ), '<', 60, 'when';
    is_deeply $got->{totals}, {
        (   map { $_ => 0 }
                qw(aborted accepted bytes delivered files files_bytes files_missing files_unchanged given goaways handshakes hold_gaps hold_slow http2 log_lost lost paused published refused requests slow
                streams streams_cancelled streams_reset taken unpublished)
        ),
        refusals => {
            map { $_ => 0 }
                qw(body-timeout descriptors expect half-closed header-timeout hold-per-client http-version incomplete lane-queue lane-timeout malformed max-body max-connections
                max-header max-queue max-request-line memory not-implemented not-tls queue-timeout request-timeout
                max-temp-file-size static-file stop tmpdir upgrade worker-lost)
        },
        closed => {
            map { $_ => 0 }
                qw(after-response application body-timeout client error header-timeout hold-buffer keepalive-timeout max-temp-file-size
                proxy-protocol refused room stop tls-handshake write-timeout)
        },
        floods => {
            map { $_ => 0 }
                qw(continuation empty-data errors head other ping priority resets settings streams unread window-update)
        },
        handshakes_failed =>
            { map { $_ => 0 } qw(alert certificate cipher closed not_tls other timeout version) },
        exits => {
            map { $_ => 0 }
                qw(crash exit fewer-workers graceful-timeout harakiri killed load-timeout max-lifetime max-requests max-rss
                out-of-memory request-timeout stop)
        },
        limits    => { map { $_ => 0 } qw(body header keepalive queue request stream write) },
        responses => { map { $_ => 0 } 1 .. 5 },
        },
        'all counters';
    for my $time ( @{$got}{qw(latency queue)} ) {
        my @buckets = @{ delete $time->{buckets} };
        is_deeply $time, { map { $_ => 0 } qw(count sum p50 p90 p99 p999) }, 'no times';
        cmp_ok $buckets[0][0],  '<=', 20e-6, 'buckets from 16 us';
        cmp_ok $buckets[-1][0], '>=', 128,   'to 128 s';
        ok !( grep { $buckets[ $_ - 1 ][0] >= $buckets[$_][0] || $buckets[$_][1] } 1 .. $#buckets ),
            'in order, empty';
    }
    $board->workers(2);
    $board->stop;
    is_deeply [ @{ $board->snapshot }{qw(wanted stopping)} ], [ 2, 1 ], 'of an object as well';
};

subtest 'rows' => sub {
    my $number = $board->claim(7);
    is $number, 0, 'claimed for a worker';
    is_deeply [ $board->occupied ], [], 'who is not there yet';
    my $row = $board->row($number);
    is_deeply $row,
        {
        ( map { $_ => 0 } qw(began last_status requests since) ),
        ( map { $_ => '' } qw(client id last_client last_line line mark) ),
        generation => 7,
        pid        => -$$,
        state      => 'starting',
        },
        'all of a row';
    like error( sub { $board->row(3) } ),     qr/there is no row 3/, 'no such row';
    like error( sub { $board->release(3) } ), qr/there is no row 3/, 'nor there';
    is_deeply [ $board->requests, map { $board->requests($_) } 0, 3 ], [], 'no request';
    ok !$board->occupy( $number, $$ + 1 ), 'for no child of another process';
    ok $board->occupy( $number,  $$ ),     'for one of this';
    is_deeply [ $board->occupied ], [$number], 'which is there then';
    ok !$board->occupy( $number, $$ ), 'once';
    $board->release($number);
    is $board->row($number)->{pid}, 0, 'free again';
};

subtest 'what a generation leaves that was killed' => sub {
    my $pid = fork // die "cannot fork: $!\n";
    if ( !$pid ) {
        $board->occupy( $board->claim(7), $$ );
        POSIX::_exit(0);
    }
    $board->occupy( $board->claim(7), $$ );
    $board->claim(7);
    waitpid $pid, 0;
    is_deeply [ sort { $a <=> $b } map { $board->row($_)->{pid} } 0 .. 2 ],
        [ sort { $a <=> $b } -$$, $$, $pid ],
        'a worker, one that has ended, and one that was not forked';
    my ($ended) = grep { $_->{pid} == $pid } @{ $board->snapshot->{workers} };
    is_deeply [ @{$ended}{qw(cpu rss)} ], [ undef, 0 ],
        'nothing is known of the CPU time of one that has ended';
    $board->clear(8);
    is_deeply [ sort { $a <=> $b } map { $board->row($_)->{pid} } 0 .. 2 ],
        [ sort { $a <=> $b } -$$, $$, $pid ],
        'another generation has left nothing';
    $board->clear(7);
    is_deeply [ sort { $a <=> $b } map { $board->row($_)->{pid} } 0 .. 2 ], [ 0, 0, $$ ],
        'who runs keeps its row';
    $board->release($_) for $board->occupied;
};

subtest 'ends of workers' => sub {
    $board->exited($_) for qw(crash max-requests max-requests);
    my $exits = $board->totals->{exits};
    is_deeply [ @{$exits}{qw(crash max-requests stop)} ], [ 1, 2, 0 ], 'counted by cause';
    like error( sub { $board->exited('boredom') } ), qr/there is no cause 'boredom'/, 'no such cause';
};

subtest 'edges' => sub {
    my $with = Sirius::Scoreboard->new( 1, 2 );
    is $with->edges, 2, 'two places';
    my $got = $with->snapshot;
    is_deeply $got->{edges}, [], 'nobody has one';
    is_deeply $got->{totals}{edge_exits},
        { map { $_ => 0 } qw(crash exit graceful-timeout killed out-of-memory stop) }, 'none has ended';
    $with->edge_exited($_) for qw(killed killed stop);
    is_deeply [ @{ $with->totals->{edge_exits} }{qw(crash killed stop)} ], [ 0, 2, 1 ], 'counted by cause';
    is $with->totals->{exits}{killed}, 0, 'not as workers';
    like error( sub { $with->edge_exited('boredom') } ), qr/there is no cause 'boredom'/, 'no such cause';
    my $row = $with->edge_row(1);
    is_deeply [ sort keys %$row ],
        [
        qw(accepted bytes connections hangs_since held http2 idle pid spooled started state streams waiting waiting_since)
        ],
        'what there is of one';
    is $row->{pid}, 0, 'that does not run';
    like error( sub { $with->edge_row(2) } ), qr/there is no edge 2/, 'no such place';
    $with->edge_hangs( 1, 12.5 );
    is $with->edge_row(1)->{hangs_since}, 12.5, 'one that does not respond, since when';
    $with->release(2);
    is $with->edge_row(1)->{hangs_since}, 0, 'unless it has ended';
    like error( sub { $with->edge_hangs( 2, 1 ) } ), qr/there is no edge 2/, 'no such place';
    is $with->snapshot->{edges_wanted}, 1, 'the second place is for the one that replaces the first';
    my $number = $with->claim(1);
    $with->occupy( $number, $$ );
    my ($worker) = @{ $with->snapshot->{workers} };
    is_deeply [ grep { exists $worker->{$_} } qw(bytes connections given idle taken waiting) ], [],
        'and its workers have no connections';
};

subtest 'reloads' => sub {
    my $none = {
        beside       => [],
        certificates => [],
        crls         => [],
        map { $_ => 0 } qw(failed loading loading_since ok)
    };
    local $SIG{__DIE__} = sub { fail "a handler of the application hears: $_[0]" };
    local $@ = 'of the application';
    for my $text ( '', 'x', '[]', '{}', '{"last":[],"loading":7,"reloads":"no"}', '{"last":{"at":"soon"}}' ) {
        ok $board->tell($text), "'$text'";
        is $board->told, $text, 'told';
        is_deeply $board->reload, $none, 'is none';
    }
    my $said = '{"loading":{"number":3,"since":70.5},"reloads":{"ok":2,"failed":1},'
        . '"last":{"at":1700000000,"ok":0,"seconds":1.5,"error":"no","said":"\\u00e2\\u0082\\u00ac"}}';
    ok $board->tell($said), 'one that failed, while another loads';
    is_deeply $board->reload,
        {
        beside        => [],
        certificates  => [],
        crls          => [],
        failed        => 1,
        last_at       => 1_700_000_000,
        last_ok       => 0,
        last_said     => "\xe2\x82\xac",
        last_seconds  => 1.5,
        last_text     => 'no',
        loading       => 3,
        loading_since => 70.5,
        ok            => 2
        },
        'is that';
    my $beside = '{"name":"jobs","pid":7,"restarts":1,"since":70.5,"state":"running"}';
    my @odd    = map { '{' . $_ . '}' } '', '"name":"Jobs","state":"running"', '"name":[],"state":"running"',
        '"name":"a","state":"\\u001b"', '"name":"a\\n","state":"running"';
    $board->tell( '{"beside":[' . join( ',', $beside, 1, '[]', @odd ) . ']}' );
    is_deeply $board->reload->{beside},
        [ { name => 'jobs', pid => 7, restarts => 1, since => 70.5, state => 'running' } ],
        'commands beside the workers, and nothing that looks otherwise';
    ok $board->tell($said),         'the one before';
    ok !$board->tell( 'x' x 8193 ), 'too long';
    is $board->told, $said,                'the one before stays';
    is $board->kept, '',                   'the admin port has a place of its own';
    is $@,           'of the application', 'nothing is left in $@';
    $SIG{__DIE__} = 'DEFAULT';    ## no critic (RequireLocalizedPunctuationVars)
    ok $board->keep("\0\xff"), 'for bytes of any kind';
    is $board->kept, "\0\xff", 'which are there';
    is $board->told, $said,    'and the other stays';
    like error( sub { $board->tell("\x{263a}") } ), qr/Wide character/, 'bytes only';
};

# One that has nothing but the descriptor, by its number. Here two objects would own it, and both would close
# it
subtest 'a new program' => sub {
    my $descriptor = $board->descriptor;
    my $size       = -s "/proc/self/fd/$descriptor";
    my $pid        = open( my $from, '-|' ) // die "fork: $!";
    if ( !$pid ) {
        my $memory = Sirius::OS::Inherit->handle($descriptor);
        fcntl $memory, F_SETFD, 0 or die $!;
        exec $^X, ( map {"-I$_"} @INC ), '-MSirius::Scoreboard', '-e', <<'PROGRAM', $descriptor;
my $board = Sirius::Scoreboard->adopt( $ARGV[0] );
open my $in, '<', "/proc/self/fdinfo/$ARGV[0]" or die $!;
my ($flags) = map {/^flags:\s+([0-7]+)/} readline $in;
print join ' ', $board->workers, oct($flags) & oct 2_000_000 ? 'closed' : 'open',    # O_CLOEXEC
    $board == Sirius::Scoreboard->current ? 'current' : 'another';
PROGRAM
    }
    my ( $workers, $flags, $which ) = split q( ), readline($from) // '';
    ok close $from, 'starts';
    is $workers, 2,         'adopts it';
    is $flags,   'closed',  'keeps it from programs that it starts';
    is $which,   'current', 'and has it as the one of its process';

    # The server's own cannot change its size: it is sealed
    for my $other ( $size - 64, $size + 64, $size * 2, 10 ) {
        open my $memory_of_another, '+>', undef or die $!;
        truncate $memory_of_another, $other or die $!;
        like error( sub { Sirius::Scoreboard->adopt( POSIX::dup( fileno $memory_of_another ) ) } ),
            qr/\Asirius: the scoreboard of this server has layout 0\.0, and the installed version of Sirius layout \d+\.\d+; a reload is not enough, restart the server\n\z/,
            "not one of $other bytes instead of $size";
    }
};

subtest 'a supervisor that would become a new version' => sub {
    my $layout = Sirius::Scoreboard->layout;
    like $layout, qr/\A\d+-\d+\z/, 'the layout';
    is error( sub { Sirius::Process::Renewal->tried($layout) } ), '', 'the same one';
    like error( sub { Sirius::Process::Renewal->tried('1-1') } ),
        qr/\Asirius: the scoreboard of this server has layout 1-1, and .* layout \Q$layout\E; restart the server\n\z/,
        'another one';
};

done_testing;
