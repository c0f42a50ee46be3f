use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use List::Util qw(sum0);
use Test::More;
use Sirius::Test;

# Where the time goes, and what the application has died of: from the request to the scoreboard, which the
# admin port shows

# The times of calls are those that the application measures itself
my $APP = <<'APP';
use Time::HiRes ();
my %DO = (
    sleep => sub { Time::HiRes::sleep(shift) },
    busy  => sub { my $until = Time::HiRes::time() + shift; 1 while Time::HiRes::time() < $until },
    die   => sub { die $_[0] eq 'object' ? bless( {}, 'My::Error' ) : "no order 42 in HASH(0x55d0c8a3e2f8)" },
    multi => sub { die "\n[4711] first\nsecond line 9\n" },
    bytes => sub { die "red \e[31m \x{263a} \x9b" . 'x' x 100_000 },
    caught => sub {
        my ( $way, $env ) = @_;
        eval { die "cannot connect to 10.0.0.$$" };
        warn "Use of nothing\n" if $way eq 'warn';
        my $log = $env->{'psgi.errors'};
        if ( $way eq 'pieces' ) { print {$log} '[App] ', "caught: ", "$@"; print {$log} "\tcalled at x line 3\n" }
        else { $log->print("[error] caught: $@") }
        return [ 500, [], ['sorry'] ];
    },
    said => sub { warn "only a warning at x line 3.\n"; return [ $_[0], [], [''] ] },
    quiet => sub { return [ 500, [], [''] ] },
    exit => sub { exit 3 },
    cleanup => sub { push @{ $_[1]{'psgix.cleanup.handlers'} }, sub { die "in the cleanup\n" }; return },
    stream => sub { return sub { my $w = shift->( [ 200, [] ] ); $w->write('x'); die "within\n" } },
);
sub {
    my $env = shift;
    my ( undef, $do, $with ) = split m{/}, $env->{PATH_INFO};
    my $response = $DO{ $do || '' } && $DO{$do}->( $with, $env );
    return ref $response ? $response : [ 200, [], ["$$"] ];
}
APP

my $server;

sub asks {
    my @paths = @_;
    for my $path (@paths) {
        my $client = $server->connect;
        $client->send("GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        $client->rest;
    }
    return;
}

# { path => { calls, seconds ... } }, once there are so many calls
sub paths {
    my $calls = shift;
    my $board;
    until_true( 20, sub { $board = $server->board; $board->{calls}{calls} >= $calls } )
        or diag "calls: $board->{calls}{calls}";
    my $all = $board->{calls};
    return { other => $all->{other}, map { $_->{path} => $_ } @{ $all->{paths} } };
}

sub exceptions { return $server->board->{exceptions} }

# [ text, count, path ] of each, the last first
sub kinds {
    return map { [ @{$_}{qw(text count path)} ] } @{ exceptions()->{last} };
}

subtest 'Paths' => sub {
    $server = start_server( $APP, '--workers', 2 );
    asks( '/sleep/0.05', '/sleep/0.06?x=/y', '/busy/0.02', ('/order/42/edit') x 20, '/die/7', '/exit' );
    my $paths = paths( 2 + 1 + 1 );
    my $sleep = $paths->{'/sleep/:id'};
    is $sleep->{calls}, 2, 'calls of a path, without its ids and its query';
    cmp_ok $sleep->{seconds}, '>=', 0.11,                         'their time';
    cmp_ok $sleep->{p50},     '>=', 0.05,                         'half of them';
    cmp_ok $sleep->{p99},     '>',  $sleep->{p50},                'nearly all of them';
    cmp_ok $sleep->{share},   '>',  $paths->{'/busy/:id'}{share}, 'its share';
    is $sleep->{errors}, 0, 'no error';
    is_deeply [ map { $paths->{$_}{errors} } qw(/die/:id /exit) ], [ 1, 1 ],
        'an exception, and a worker that has ended';
    my $board = $server->board;
    my @all   = ( values %$paths );

    for my $name (qw(calls seconds)) {
        cmp_ok abs( sum0( map { $_->{$name} } @all ) - $board->{calls}{$name} ), '<', 1e-6,
            "the sum of $name is true";
    }
    cmp_ok abs( sum0( map { $_->{share} } @all ) - 1 ), '<', 1e-9, 'and that of shares';
    my ($first) = @{ $board->{calls}{paths} };
    is $first->{path}, '/sleep/:id', 'the most time first';
    ok !exists $server->board->{calls}{other}{path}, 'the others have no path';
    $server->stop;
};

subtest 'A client that leaves, a time limit' => sub {
    $server = start_server( $APP, '--workers', 2, '--request-timeout', 4 );
    my $client = $server->connect;
    $client->send("GET /sleep/2 HTTP/1.1\r\nHost: a\r\n\r\n");
    $server->wait_busy(1);
    $client->close;
    my $sleep = paths(1)->{'/sleep/:id'};
    cmp_ok $sleep->{seconds}, '>=', 1.99, 'the call counts to its end';
    is $sleep->{errors}, 0, 'the client is no error of the application';
    like $server->ask('GET /sleep/20')->status, qr/504/, 'a call that takes too long';
    is paths(2)->{'/sleep/:id'}{errors}, 1, 'is one';
    $server->stop;
};

subtest 'Who waits' => sub {
    $server = start_server( $APP, '--workers', 1 );
    my @clients = map { $server->connect } 1 .. 3;
    $_->send("GET /sleep/0.5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") for @clients;
    $_->rest for @clients;
    my $sleep = paths(3)->{'/sleep/:id'};
    cmp_ok $sleep->{waited}, '>=', 0.7, 'the time in the queue';
    cmp_ok $sleep->{waited}, '<',  30,  'and no more';
    $server->stop;
};

subtest 'A hostile client' => sub {
    $server = start_server( $APP, '--workers', 1 );
    my $client = $server->connect;
    my @words  = map {
        my $a = $_;
        map {"$a$_"} 'a' .. 'z'
    } 'a' .. 'k';
    asks( ('/sleep/0.01') x 5 );
    for my $word (@words) {
        $client->ask("GET /invented-$word/0") for 1;
        $client->ask("GET /busy/0.0015?$word");
    }
    $client->ask( 'GET /' . 'x' x 4000 );
    $client->ask('GET /%00%1b%5b%22\"<script>');
    $client->ask("GET http://a/abs/42");
    my $paths = paths( 5 + 0.9 * @words );
    is $paths->{'/sleep/:id'}{calls}, 5, 'what takes time stays';
    cmp_ok $paths->{'/busy/:id'}{calls}, '>=', 0.6 * @words, 'and what comes often';
    cmp_ok scalar( keys %$paths ),       '<=', 65,           'no more rows than allowed';
    is_deeply [ grep { /[^\x21-\x7e]/ || length > 120 } keys %$paths ], [],
        'of printable characters, none is long';
    $server->stop;
};

subtest 'Another edge in its place, other workers' => sub {
    $server = start_server( $APP, '--workers', 1 );
    asks( '/sleep/0.01', '/die/1' );
    paths(2);
    $server->signal('HUP');
    until_true( 30, sub { $server->board->{reload}{ok} } ) or fail 'the reload';
    asks( '/sleep/0.01', '/die/2' );
    is paths(4)->{'/sleep/:id'}{calls}, 2, 'after a reload calls go on';
    is_deeply [ map { $_->[1] } kinds() ], [2], 'and exceptions';
    my ($edge) = map { $_->{pid} } @{ $server->board->{edges} };
    $server->{may_crash} = 1;
    kill KILL => $edge;
    until_true( 30,
        sub { ( grep { $_->{pid} != $edge && $_->{state} eq 'idle' } @{ $server->board->{edges} } ) } )
        or fail 'another edge';
    asks('/sleep/0.01');
    is paths(5)->{'/sleep/:id'}{calls}, 3, 'another edge goes on when one was killed';
    $server->stop;
};

subtest 'Exceptions' => sub {
    $server = start_server( $APP, '--workers', 2 );
    is_deeply exceptions(), { count => 0, last => [] }, 'none at first';
    asks(
        ('/die/1') x 3,  '/multi',       '/bytes',         '/caught/plain',
        '/caught/plain', '/caught/warn', '/caught/pieces', '/cleanup',
        '/stream'
    );
    until_true( 20, sub { exceptions()->{count} >= 11 } ) or diag explain exceptions();
    my %count   = map  { $_->[0] => $_->[1] } kinds();
    my %path    = map  { $_->[0] => $_->[2] } kinds();
    my ($order) = grep {/order/} keys %count;
    like $order, qr/\Ano order N in HASH\(0x\.\.\.\) at \S+ line \d+\z/,
        'without addresses and numbers, with its place';
    is $count{$order}, 3,          'each is counted';
    is $path{$order},  '/die/:id', 'with the path of the last';
    is $count{first},  1,          'the first line that says something';
    my ($long) = grep {/red/} keys %count;
    unlike $long, qr/[\0-\x1f\x7f]/, 'no control character';
    cmp_ok length $long, '<=', 240, 'a long one is cut';
    my ($caught) = grep {/caught/} keys %count;
    like $caught, qr/\Acaught: cannot connect to N\.N\.N\.N at \S+ line \d+\z/,
        'what the application has caught and written to the log when it answers 500';
    is $count{$caught}, 4, 'whatever else it writes, and in how many pieces';
    is_deeply [ grep { $count{$_} != 1 || $path{$_} ne '/cleanup' } grep {/cleanup/} keys %count ], [],
        'in a cleanup handler';
    ok $count{within}, 'and within a stream';
    my $sum = exceptions()->{count};
    asks( '/said/200', '/said/503', '/quiet' );
    is exceptions()->{count}, $sum, 'a warning is no exception, nor is a status';
    my ($one) = grep { $_->{text} eq $order } @{ exceptions()->{last} };
    cmp_ok abs( $one->{at} - time ), '<',  60,         'the time of the last';
    cmp_ok $one->{first},            '<=', $one->{at}, 'and of the first';
    asks('/die/object');
    is scalar( grep { $_->[0] eq 'My::Error=HASH(0x...)' } kinds() ), 1, 'an object';
    $server->stop;
};

# The kernel tells it in hundredths of a second
subtest 'CPU of workers' => sub {
    $server = start_server( $APP, '--workers', 1, '--admin', '127.0.0.1:0' );
    asks( '/busy/0.3', '/sleep/0.3' );
    my $paths   = paths(2);
    my ($admin) = $server->log =~ m{admin on http://(.*)/$}m;
    my $status  = JSON::PP->new->utf8->decode(
        $server->connect( to => $admin )->ask( 'GET /status.json', 'Host: localhost' )->body );
    my $worker = $status->{workers}[0];
    is_deeply [ sort map { $_->{path} } @{ $status->{calls}{paths} } ], [ '/busy/:id', '/sleep/:id' ],
        'status.json has the paths';
    cmp_ok $worker->{cpu}, '>', 0, 'what it has computed';
    cmp_ok $worker->{cpu}, '<', $paths->{'/busy/:id'}{seconds} + $paths->{'/sleep/:id'}{seconds} + 0.2,
        'without what it has waited';
    $server->stop;
};

subtest 'A large request whose client has left' => sub {
    my $log = File::Temp->newdir;
    $server = start_server( $APP, qw(--workers 1 --access-log), "$log/access.log" );
    my $body  = 'b' x 40_000;
    my $first = $server->ask( 'POST /said/200/stayed', \$body );
    is $first->status, 200, 'after one that is answered';
    my $client = $server->connect;
    $client->send( request( 'POST /sleep/2/left', \$body ) );
    ok $server->wait_busy(1), 'it runs';
    $client->abort;
    my $paths = paths(2);
    is_deeply [ sort map {m{(\w+)\z}} grep { $_ ne 'other' } keys %$paths ], [qw(left stayed)],
        'each has its own path';
};

done_testing;
