use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# A URL that calls exit must not take the workers away for a while; one that is in a loop of exits waits

my $APP = <<'APP';
sub {
    my $path = $_[0]{PATH_INFO};
    exit 3 if $path eq '/exit';
    exit 0 if $path eq '/end';
    [ 200, [], ["$$"] ];
}
APP

for my $path (qw(/exit /end)) {
    subtest "$path, as often as there are workers" => sub {
        my $server = start_server( $APP, qw(--workers 3 --err-respawn-interval 20) );
        ok until_true( 10, sub { $server->workers == 3 } ), 'three workers';
        is $server->ask("GET $path")->status, 500, "its client gets 500 ($_)" for 1 .. 3;
        my %ended;    # a successor may have been asked as well
        ok until_true(
            10,
            sub {
                %ended = map { $_ => 1 } $server->log =~ /worker (\d+) exited/g;
                3 == keys %ended && $server->workers == 3 && !grep { $ended{$_} } $server->workers;
            }
            ),
            'each has a successor, long before the interval is over'
            or diag $server->log;
        is $server->ask('GET /')->status, 200, 'which serve';
        unlike $server->log, qr/next attempt in/, 'none was delayed';
        $server->stop;
    };
}

subtest 'a loop' => sub {
    my $server = start_server( $APP, qw(--workers 1 --err-respawn-interval 20) );
    my $asked  = 0;
    until_true(
        15,
        sub {
            $server->connect->send( request('GET /exit') ) if ++$asked < 10;
            $server->log =~ /next attempt in 20 s/;
        }
    );
    like $server->log, qr/next attempt in 20 s/, 'is broken after a few';
    $server->stop;
};

done_testing;
