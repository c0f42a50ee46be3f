use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::Load;

# The number of workers changes, by load or by an operator; no request notices

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP = "sub { select undef, undef, undef, 0.03; [ 200, [], ['ok'] ] }\n";

sub are {
    my ( $server, $number, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok( until_true( 30, sub { $server->workers == $number } ), $name ) || diag $server->log;
}

sub all_answered {
    my $load = shift;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = $load->stop;
    return is_deeply [ keys %$got ], [200],
        "no request failed, $got->{200} were answered" || diag explain $got;
}

subtest 'TTIN and TTOU' => sub {
    my $server = start_server( $APP, qw(--workers 1) );
    my $load   = Sirius::Test::Load->start($server);
    for my $step ( [ TTIN => 2 ], [ TTIN => 3 ], [ TTOU => 2 ], [ TTOU => 1 ] ) {
        $server->signal( $step->[0] );
        are( $server, $step->[1], "$step->[0]: $step->[1]" );
    }
    $server->signal('TTOU');
    sleep 0.3;
    are( $server, 1, 'never less than one' );
    $server->signal('TTIN');
    are( $server, 2, 'one more' );
    $server->signal('HUP');
    ok until_true( 30, sub { $server->log =~ /generation 2 is serving/ && $server->generations == 1 } ),
        'reload';
    are( $server, 2, 'the number stays' );
    all_answered($load);
    $server->stop;
};

subtest 'ctl workers N' => sub {
    my $server = start_server( $APP, qw(--workers 2 --control), "$dir/control" );
    my $load   = Sirius::Test::Load->start($server);
    for my $number ( 5, 1, 3 ) {
        my $text = ctl( 'workers', $number, qw(--wait --timeout 60) );
        is $text, "$number workers\n", "$number, and it waits until they serve";
        are( $server, $number, 'there are so many' );
    }
    all_answered($load);
    $server->stop;
};

sub ctl {
    my @args = ( $^X, "$Sirius::Test::Server::ROOT/bin/sirius", 'ctl', '--control', "$dir/control", @_ );
    local $ENV{PERL5LIB} = join ':', map {"$Sirius::Test::Server::ROOT/blib/$_"} qw(lib arch);
    open my $out, '-|', @args or die "ctl: $!";
    local $/ = undef;
    return readline $out;
}

# Half a minute of calm is one second and a half: the clock of the scaling alone is twenty times as fast
my $FAST = <<'FAST';
package FastClock;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);
use Sirius::Process::Scaling;
no warnings 'redefine';
my $start = clock_gettime(CLOCK_MONOTONIC);
*Sirius::Process::Scaling::now = sub { $start + 20 * ( clock_gettime(CLOCK_MONOTONIC) - $start ) };
*Sirius::Process::Scaling::due  = sub { clock_gettime(CLOCK_MONOTONIC) + 0.05 };
1;
FAST

subtest '--workers MIN:MAX grows when requests wait, shrinks when it is calm' => sub {
    spew( "$dir/FastClock.pm", $FAST );
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        args    => [qw(--workers 1:4)],
        command =>
            [ $^X, "-I$dir", '-MFastClock', "$Sirius::Test::Server::ROOT/bin/sirius", qw(-E deployment) ],
    );
    are( $server, 1, 'it starts with the fewest' );
    my $few = Sirius::Test::Load->start( $server, clients => 1, ask => sub { sleep 0.1; 'GET /' } );
    sleep 0.5;
    are( $server, 1, 'one client does not need more' );
    my $many = Sirius::Test::Load->start( $server, clients => 10 );
    are( $server, 4, 'with ten there are as many as there may be' );
    sleep 0.5;
    are( $server, 4, 'not more' );
    all_answered($many);
    ok until_true( 30, sub { $server->workers <= 2 } ),
        'fewer when they have gone, while the one client goes on';
    all_answered($few);
    are( $server, 1, 'as few as before when nobody asks' );
    like $server->log, qr/exited: fewer workers are wanted$/m, 'the log has the reason';
    $server->stop;
};

done_testing;
