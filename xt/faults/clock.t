use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Faults;
use Traffic;

# The clock on the wall jumps, as after a suspended machine or by a wrong server of time: no time limit is by
# that clock

use constant { HOUR => 3600, DAY => 86_400 };

my $faults = Sirius::Test::Faults->new;
my $log    = "$faults->{dir}/access.log";
my @limits = map { ( "--$_-timeout" => 20 ) } qw(header body keepalive write queue request graceful);
my $server = $faults->start(
    app  => $APP,
    args => [
        qw(--workers 2 --max-lifetime 3600), @limits, '--access-log', $log,
        '--access-log-format', '%{%s}t %r'
    ],
);
until_true( 20, sub { $server->workers == 2 } );
my @pids = ( $server->pid, $server->edges, $server->generations, $server->workers );

sub date_of {
    my $answer = shift;
    my %month;
    @month{qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec)} = 0 .. 11;
    my ( $day, $month, $year, $h, $m, $s )
        = $answer->header('Date') =~ /(\d+) (\w+) (\d+) (\d+):(\d+):(\d+) GMT\z/
        or return 0;
    require Time::Local;
    return Time::Local::timegm( $s, $m, $h, $day, $month{$month}, $year );
}

subtest 'Date and the log go with the clock' => sub {
    for my $wrong ( HOUR, -HOUR(), DAY, -DAY() ) {
        $faults->clock($wrong);
        $server->ask('GET /bytes/1') for 1 .. 4;    # both workers look at it
        my $answer = $server->ask("GET /bytes/2?wrong=$wrong");
        my $off    = date_of($answer) - time;
        cmp_ok abs( $off - $wrong ), '<', 30, "Date is off by $wrong s: $off";
        ok until_true( 5, sub { Sirius::Test::Server::slurp($log) =~ m{^\[(\d+)\] .*wrong=$wrong }m } ),
            'there is a line';
        my ($at) = Sirius::Test::Server::slurp($log) =~ m{^\[(\d+)\] .*wrong=$wrong }m;
        cmp_ok abs( $at - time - $wrong ), '<', 30, 'as is the log';
    }
    $faults->clear;
    cmp_ok abs( date_of( $server->ask('GET /bytes/1') ) - time ), '<', 30,
        'and when it is right again, they are right';
};

subtest 'jumps every 50 ms' => sub {
    my $before = $faults->injected('clock');
    my $idle   = $server->connect;
    is $idle->ask('GET /bytes/1')->status, 200, 'an idle connection';
    my $half = $server->connect;
    $half->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nx");
    my $busy = $server->connect;
    $busy->send( request('GET /sleep/1') );
    my $calm = sub {

        for my $wrong ( ( HOUR, -HOUR(), DAY, -DAY(), 0 ) x 3 ) {
            $faults->clock($wrong);
            sleep 0.05;
        }
    };
    my ( $cpu, $sleeps ) = Sirius::Test::Faults->load_of( $calm, @pids );
    cmp_ok $cpu, '<', 0.2, "nobody spins: $cpu s of CPU, $sleeps sleeps";
    my $load = traffic( $server, clients => 2 );
    $calm->();
    is_deeply [ keys %{ $load->stop } ], ['whole'], 'others are served';
    cmp_ok $faults->injected('clock') - $before, '>', 10, 'the clock was read while it was wrong';
    is $busy->response->status,            200, 'a request that runs is answered, no limit is over';
    is $idle->ask('GET /bytes/2')->status, 200, 'the idle connection is kept';
    $half->send('yz');
    is $half->response->status, 200, 'a body that takes its time is read';
    $faults->clear;
    is_deeply [ $server->pid, $server->edges, $server->generations, $server->workers ], \@pids,
        'nobody was replaced for his age';
};

subtest 'reload, stop' => sub {
    $faults->clock(DAY);
    my @generation = $server->generations;
    $server->signal('HUP');
    ok until_true(
        30,
        sub {
            $faults->clock( ( HOUR, -HOUR(), DAY, -DAY() )[ rand 4 ] );
            my @now = $server->generations;
            @now == 1 && $now[0] != $generation[0];
        }
        ),
        'a reload is neither given up nor hurried';
    is_whole( $server, 'the new one serves' );
};

my $long = $server->connect;
$server->board;    # its reader is there before the request
$long->send( request('GET /sleep/1') );
$server->wait_busy( 1, qr{/sleep/1} );
$server->signal('TERM');
$faults->clock(DAY);
is $long->response->status, 200, 'a stop waits for what runs, whatever the clock says';
$server->stop;
done_testing;
