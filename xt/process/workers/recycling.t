use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Sirius::Test;

# --max-rss and --max-reqs-per-child: a worker is replaced before it has to go, and nobody notices

my $MIB = 1 << 20;

# Leaks so many MiB for each request; answers with its PID and what it has in RAM at the end of the request
my $APP = <<'APP';
my @leak;
sub {
    my $env = shift;
    push @leak, 'x' x ( $1 << 20 ) if $env->{PATH_INFO} =~ m{\A/leak/(\d+)};
    open my $fh, '<', '/proc/self/statm' or die $!;
    my ( undef, $pages ) = split ' ', readline $fh;
    [ 200, [], ["$$ " . $pages * POSIX::sysconf( POSIX::_SC_PAGESIZE() ) ] ];
}
APP
$APP = "use POSIX ();\n$APP";

# Asks over kept connections; counts answers by status, and collects the sizes that each worker had
sub ask {
    my ( $server, $count, $path ) = @_;
    my @client = map { $server->connect } 1 .. 4;
    my ( %status, %sizes );
    for my $i ( 1 .. $count ) {
        my $client = \$client[ $i % @client ];
        my $answer = $$client->ask("GET $path");
        $status{ $answer->status }++;
        my ( $pid, $size ) = split ' ', $answer->body;
        push @{ $sizes{$pid} }, $size if $size;
        $$client = $server->connect if $answer->closes;
    }
    return \%status, \%sizes;
}

my $base = do {
    my $server = start_server( $APP, qw(--workers 1) );
    my ($size) = map {/\A\d+ (\d+)/} $server->ask('GET /')->body;
    $server->stop;
    $size;
};

for my $workers ( 1, 2 ) {
    subtest "--max-rss, $workers workers that leak: none is above the limit by more than one request" => sub {
        linux_only('memory of processes');
        my $megabytes = 60 + int $base / $MIB;
        my $limit     = $megabytes * $MIB;
        my $server    = start_server( $APP, '--workers', $workers, '--max-rss', $limit );
        my ( $status, $sizes ) = ask( $server, 150, '/leak/3' );
        is_deeply $status, { 200 => 150 }, 'every request is answered' or diag $server->log;
        cmp_ok scalar keys %$sizes, '>=', 4, 'by several workers';
        my @over = grep { $_ > $limit + 8 * $MIB } map {@$_} values %$sizes;
        is scalar @over, 0, 'none has more' or diag "limit $limit: @over";
        ok $server->wait_log(
            qr/worker \d+ exited: max-rss \(\d+\.\d MiB, the limit is $megabytes MiB\)$/m, 15
            ),
            'the log says why they went'
            or diag $server->log;
        unlike $server->log, qr/signal (?:4|6|7|8|9|11)\b|exited with/, 'and none died';
        $server->stop;
    };
}

subtest '--max-rss below what a worker needs: one request each, and it serves' => sub {
    my $server = start_server( $APP, qw(--workers 2 --max-rss 8m) );
    my ( $status, $sizes ) = ask( $server, 10, '/' );
    is_deeply $status, { 200 => 10 }, 'every request is answered' or diag $server->log;
    $server->stop;
};

for my $max ( 1, 2, 3, 25 ) {
    for my $workers ( 1, 2 ) {
        subtest "--max-reqs-per-child $max, $workers workers" => sub {
            my $server = start_server( $APP, '--workers', $workers, '--max-reqs-per-child', $max );
            my ( $status, $sizes ) = ask( $server, 60, '/' );
            is_deeply $status, { 200 => 60 }, 'every request is answered' or diag $server->log;
            my @served = map { scalar @$_ } values %$sizes;
            is scalar( grep { $_ > $max } @served ), 0, "no worker served more than $max" or diag "@served";
            unlike $server->log, qr/signal (?:4|6|7|8|9|11)\b|exited with/, 'and none died';
            ok $server->wait_log( qr/exited: max-requests/, 15 ), 'the log says why they went'
                or diag $server->log;
            $server->stop;
        };
    }
}

subtest 'when a successor is asked for: spread, and before the worker has to go' => sub {
    require Sirius::Worker;
    my %wrong;
    for my $max ( 1 .. 60, 1000, 1001 ) {
        for my $min ( undef, 1, int $max / 2 || 1, $max ) {
            my $worker = Sirius::Worker->new(
                conf         => { min_reqs_per_child => $min, max_reqs_per_child => $max },
                multiprocess => 1
            );
            my $from = $min || int( $max * 0.9 ) || 1;
            my %seen;
            for ( 1 .. 50 ) {
                my %limit = $worker->_max_requests;
                $wrong{hard}++ if $limit{max_requests} != $max;
                $wrong{soon}++ if $limit{soon_requests} < $from || $limit{soon_requests} > $max;
                $wrong{margin}++
                    if $limit{soon_requests} > $from && $limit{soon_requests} > $max - int $max / 20;
                $seen{ $limit{soon_requests} }++;
            }
            $wrong{spread}++ if $max >= 1000 && $from < $max && keys %seen < 20;
        }
    }
    is_deeply \%wrong, {}, 'always';
    my $alone = Sirius::Worker->new( conf => { max_reqs_per_child => 10 }, multiprocess => 0 );
    is_deeply { $alone->_max_requests }, { soon_requests => 0, max_requests => 0 }, 'not with --workers 0';
};

done_testing;
