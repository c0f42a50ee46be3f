use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use File::Temp;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Load;

# Under start_server (Server::Starter), whose HUP is TERM and a new server: no request fails, no client
# notices, however many they are

BEGIN { skip_without('Server::Starter') }
my $ab = program('ab');
plan skip_all => 'start_server is not in PATH' if !program('start_server');

sub start {
    my $signal = shift || 'TERM';
    my $app    = <<'APP';
sub {
    my $until = time + ( $_[0]{PATH_INFO} eq '/slow' ? 8 : 0 );
    select undef, undef, undef, 0.2 while time < $until;
    return [ 200, [], [ $ENV{SERVER_STARTER_GENERATION} ] ];
}
APP
    return Sirius::Test::Server->start(
        app     => $app,
        args    => [qw(--workers 3)],
        command => [
            map { $_ eq 'TERM' ? $signal : $_ }
                @{ Sirius::Test::Server->below_starter( '127.0.0.1:' . free_port() ) }
        ],
        ready => 1,
        plain => 1,
    );
}

# Until that one serves alone
sub restart {
    my ( $server, $number ) = @_;
    $server->signal('HUP');
    return until_true( 30, sub { $server->generations == 1 && $server->ask('GET /')->body eq $number } );
}

my $dir    = File::Temp->newdir;
my $port   = free_port();
my $server = Sirius::Test::Server->start(
    app     => "sub { [ 200, [], [\$ENV{SERVER_STARTER_GENERATION}] ] }\n",
    args    => [ '--listen', '127.0.0.1:1', qw(--workers 2) ],
    command => Sirius::Test::Server->below_starter( "127.0.0.1:$port", "$dir/sock" ),
    ready   => 2,
);

is_deeply [ sort $server->listeners ], [ "127.0.0.1:$port", "unix:$dir/sock" ],
    'both of its sockets are served';
is $server->connect( to => $_ )->ask('GET /')->body, 1, "generation 1 on $_" for $server->listeners;

subtest 'HUP' => sub {
    my ( %status, %generation );
    my $client = $server->connect;
    $server->signal('HUP');
    my $until = time + 15;
    my $since;
    while ( time < $until && ( !$since || time < $since + 1 ) ) {
        for my $answer ( $client->ask('GET /'), $server->ask('GET /') ) {
            $status{ $answer->status }++;
            $generation{ $answer->body }++;
            $since ||= time            if $answer->body eq '2';
            $client = $server->connect if $answer->closes;
        }
        sleep 0.001;
    }
    is_deeply [ keys %status ],          [200],    'no request failed' or diag explain \%status;
    is_deeply [ sort keys %generation ], [ 1, 2 ], 'served by the old and the new';
    is $server->ask('GET /')->body, 2, 'in the end by the new';
};

$server->stop;

subtest 'restarts while clients ask without a pause, on kept connections and on new ones' => sub {
    my $server = start();
    my $load   = Sirius::Test::Load->start(
        $server,
        clients => 6,
        sign    => sub { $_[0]->status . ' ' . $_[0]->body }
    );
    ok restart( $server, $_ ), "server $_ has taken over" or diag $server->log for 2 .. 3;
    my $got = $load->stop;
    is_deeply [ sort keys %$got ], [ map {"200 $_"} 1 .. 3 ], 'all of them have answered, and nothing failed'
        or diag explain $got;
    $server->stop;
};

for my $signal (qw(QUIT TERM)) {
    subtest "--signal-on-hup $signal, and a request outlasts the second HUP" => sub {
        my $server = start($signal);
        my $client = $server->connect;
        $client->send( request('GET /slow') );
        sleep 0.5;
        for my $number ( 2, 3 ) {
            $server->signal('HUP');
            ok until_true( 30, sub { $server->ask('GET /')->body eq $number } ), "server $number serves";
        }
        is $client->response( patience => 20 )->body, 1, 'the request is answered' or diag $server->log;
        unlike $server->log, qr/stopping at once/, 'no server has stopped at once';
        $server->stop;
    };
}

for my $keep ( [], ['-k'] ) {
    subtest "ab @$keep meanwhile" => sub {
        plan skip_all => 'ab is not installed' if !$ab;
        my $server = start();
        my $count  = 1_000_000;    # it ends by the time
        open my $out, '-|', $ab, qw(-q -r -t 3 -c 20 -n), $count, @$keep, 'http://' . $server->address . '/'
            or die "ab: $!";
        my $restarted = restart( $server, 2 );
        my $text      = do { local $/ = undef; readline $out };
        ok $restarted, 'it was restarted';
        my ($complete) = $text =~ /^Complete requests:\s+(\d+)/m;
        like $text,   qr/^Failed requests:\s+0$/m, "none of $complete requests failed" or diag $text;
        unlike $text, qr/^Non-2xx/m,               'all with 200';
        $server->stop;
    };
}

done_testing;
