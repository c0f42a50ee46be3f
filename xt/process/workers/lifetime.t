use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Load;

# --max-lifetime: workers are replaced by age, asked for something or not

my $APP = "sub { [ 200, [ 'X-Worker' => \$\$ ], ['ok'] ] }\n";

subtest 'idle workers past --max-lifetime are replaced, without a request' => sub {
    my $server = start_server( $APP, qw(--workers 2 --max-lifetime 1.5) );
    until_true( 20, sub { $server->workers == 2 } );
    my %old = map { $_ => 1 } $server->workers;
    ok until_true(
        30,
        sub {
            my @now = $server->workers;
            @now == 2 && !grep { $old{$_} } @now;
        }
        ),
        'both of them';
    ok $server->wait_log(qr/worker \d+ exited: max-lifetime \(\d+ s\)$/m), 'the log has the reason';
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
};

subtest 'under load, the next is ready before one goes' => sub {
    my $server = start_server( $APP, qw(--workers 2 --max-lifetime 1) );
    my %worker;
    my $load = Sirius::Test::Load->start( $server,
        sign => sub { join ' ', $_[0]->status, $_[0]->header('X-Worker') || '' } );
    my $ended = sub { scalar( () = $server->log =~ /exited: max-lifetime/g ) };
    ok until_true( 30, sub { $ended->() >= 6 } ), 'six of them have come and gone';
    my $got = $load->stop;
    is_deeply [ grep { !/\A200 \d+\z/ } keys %$got ], [], 'no request failed' or diag explain $got;
    cmp_ok scalar( keys %$got ), '>', 5, 'many workers have served';
    $server->stop;
};

done_testing;
