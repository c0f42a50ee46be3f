use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use List::Util qw(max);
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Server;

# Reloads and recycling under load. SIRIUS_TEST_LONG=1: the full numbers, for a quarter of an hour

my $long = $ENV{SIRIUS_TEST_LONG};

# Runs a program beside the server, calls the code every so many seconds, returns what the program has printed
sub beside {
    my ( $seconds, $code, @command ) = @_;
    my $out = File::Temp->new;
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        open STDOUT, '>&', $out or die $!;
        open STDERR, '>&', $out or die $!;
        exec @command or POSIX::_exit(1);
    }
    my ( $next, $until ) = ( time + $seconds, time + 300 );
    while ( !waitpid $pid, POSIX::WNOHANG() ) {
        sleep 0.02;
        if ( time > $until ) { kill KILL => $pid }
        next if time < $next;
        $next += $seconds;
        $code->();
    }
    return Sirius::Test::Server::slurp("$out");
}

sub settled {
    my ( $server, $workers ) = @_;
    return until_true( 20, sub { $server->generations == 1 && $server->workers == $workers } );
}

my $hello = "sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['Hello World'] ] }\n";

SKIP: {
    skip 'needs ab', 2 if !program('ab');
    my $count = $long ? 100_000 : 20_000;
    for my $keep ( [], ['-k'] ) {
        subtest "ab @$keep while HUP comes every second" => sub {
            my $server = start_server( $hello, qw(--workers 4) );
            my $hups   = 0;
            my $text   = beside( 1, sub { $server->signal('HUP'); $hups++ },
                'ab', '-q', '-r', @$keep, '-c', 20, '-n', $count, 'http://' . $server->address . '/' );
            my ($complete) = $text =~ /^Complete requests:\s+(\d+)/m;
            my ($failed)   = $text =~ /^Failed requests:\s+(\d+)/m;
            is $complete, $count, "$count requests, $hups reloads" or diag $text;
            is $failed,   0,      'none failed'                    or diag $text;
            unlike $text, qr/^Non-2xx/m, 'all with 200';
            ok settled( $server, 4 ), 'one generation is left';
            $server->stop;
        };
    }
}

SKIP: {
    skip 'needs wrk', 1 if !program('wrk');
    subtest 'wrk while HUP comes every second' => sub {
        my $server = start_server( $hello, qw(--workers 4) );
        my $text   = beside(
            1,
            sub { $server->signal('HUP') },
            qw(wrk -t1 -c32),
            '-d' . ( $long ? 20 : 5 ),
            'http://' . $server->address . '/'
        );
        unlike $text, qr/Socket errors|Non-2xx/, 'no connection was closed, no error' or diag $text;
        like $text,   qr/requests in/,           'it was served';
        $server->stop;
    };
}

subtest 'TERM at any moment of a request' => sub {
    my ( %answer, %end );
    my $rounds = $long ? 200 : 20;
    for my $round ( 1 .. $rounds ) {
        my $server = start_server( <<'APP', qw(--workers 2) );
sub { select undef, undef, undef, 0.005; [ 200, [ 'Content-Type' => 'text/plain' ], [ 'x' x 100_000 ] ] }
APP
        my $client = $server->connect;
        $client->send( request('GET /') );
        sleep rand 0.02;
        $server->signal('TERM');
        my $got = $client->response;
        $answer{ $got->status . ' ' . length $got->body }++;
        $end{ $server->wait_exit || 'none' }++;
        $server->kill_hard;
    }
    is_deeply \%answer, { '200 100000' => $rounds }, "$rounds responses are whole" or diag explain \%answer;
    is_deeply \%end,    { 'exit 0'     => $rounds }, 'exit 0 each time'            or diag explain \%end;
};

subtest 'many HUPs leave nothing behind' => sub {
    my $server = start_server( $hello, qw(--workers 2) );
    my $reload = sub {
        my $done = () = $server->log =~ /is serving$/mg;
        $server->signal('HUP');
        return until_true( 20, sub { $done < ( () = $server->log =~ /is serving$/mg ) } );
    };
    $reload->() for 1 .. 5;
    settled( $server, 2 );
    my $now = sub {
        return ( Sirius::Test::Server->memory( $server->pid ), scalar $server->descriptors( $server->pid ) );
    };
    my @before = (0) x 2;
    for ( 1 .. 20 ) {    # it becomes a new program itself, which has less at first
        sleep 0.05;
        my @sample = $now->();
        $before[$_] = max $before[$_], $sample[$_] for 0, 1;
    }
    my $rounds = $long ? 500 : 20;
    my $failed = grep { !$reload->() } 1 .. $rounds;
    is $failed, 0, "$rounds reloads";
    ok settled( $server, 2 ), 'one generation and two workers are left';
    ok until_true( 5, sub { my @all = $server->processes; @all == 4 + $server->edges } ), 'no other process';
    my $room = $ENV{ASAN_OPTIONS} ? 32_768 : 1024;    # KiB; the sanitizer keeps back what was freed
    my @after;
    ok until_true( 5, sub { @after = $now->(); $after[1] <= $before[1] } ), 'no descriptor more';
    ok until_true( 5, sub { @after = $now->(); $after[0] - $before[0] < $room } ),
        'memory of the supervisor is flat'
        or diag "@before KiB, @after";
    $server->stop;
};

subtest 'an application that leaks' => sub {
    linux_only('memory of processes');
    my ( $limit, $count ) = $long ? ( 200, 20_000 ) : ( 60, 600 );
    my $server = start_server( <<'APP', qw(--workers 2), '--max-rss', "${limit}m" );
my @leak;
sub {
    push @leak, 'x' x 2**20;
    open my $in, '<', '/proc/self/statm' or die $!;
    my ( undef, $pages ) = split ' ', <$in>;
    [ 200, [ 'X-Worker' => $$ ], [ $pages * 4 / 1024 ] ];
}
APP
    my ( %status, %worker );
    my ( $most,   $client ) = ( 0, $server->connect );
    for ( 1 .. $count ) {
        my $got = $client->ask('GET /');
        $status{ $got->status }++;
        $worker{ $got->header('X-Worker') || '' }++;
        $most   = max $most, $got->body || 0;
        $client = $server->connect if $got->closes;
    }
    is_deeply \%status, { 200 => $count }, "$count requests, none failed";
    cmp_ok $most, '<', $limit + 3, "no worker had more than the limit and one request ($most MiB)";
    cmp_ok scalar keys %worker, '>=', $count / $limit, 'by many workers';
    like $server->log, qr/exited: max-rss/, 'the log has the reason';
    $server->stop;
};

done_testing;
