use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use Sirius;

# A request loop that serves nobody until it is told to stop, and does what a line in the file "orders" says
our ( $ORDERS, $SUPERVISOR );
{
    no warnings 'redefine';
    *Sirius::Worker::RequestLoop::abandon = sub { };
    *Sirius::Worker::RequestLoop::DESTROY = sub { };
    *Sirius::Worker::RequestLoop::drain   = sub { my $self = shift; $self->{why} ||= 'drained'; return };
    *Sirius::Worker::RequestLoop::stop    = sub { my $self = shift; $self->{why} = 'stopped';   return };
    *Sirius::Worker::RequestLoop::new     = sub { my ( $class, $conf ) = @_; return bless {%$conf}, $class };
    *Sirius::Worker::RequestLoop::serve   = sub {
        my ( $self, $app ) = @_;
        while ( !$self->{why} ) {
            my $ended = '';
            vec( $ended, $self->{edge}, 1 ) = 1 if $self->{edge} >= 0;
            return 'over' if 0 < select $ended, undef, undef, 0.02;
            return 'over' if $self->{scoreboard}->stopped || !kill 0 => $SUPERVISOR;   # the edge would say so
            $app->($self) if unlink $ORDERS;
        }
        return $self->{why};
    };
}

use Sirius::Config::Values;
use Sirius::Listen::Listener;
use Sirius::Process::Supervisor;

plan skip_all => 'needs /proc' if !-r "/proc/$$/stat";

my $dir = tempdir( CLEANUP => 1 );
$ORDERS = "$dir/order";

my ( $server, $conf );

sub start {
    my %args = @_;
    my $app  = delete $args{app};
    my $make = delete $args{builder};
    unlink "$dir/order", "$dir/log";
    $server = fork;
    return until_true( sub { log_text() =~ /starting Sirius .*\n.*\S/ } ) if $server;
    $SUPERVISOR = $$;
    open STDERR, '>', "$dir/log" or die $!;
    STDERR->autoflush(1);
    my $conf = Sirius::Config::Values->parse( { listen => '127.0.0.1:0', workers => 2, %args } );
    eval {
        my @listeners = Sirius::Listen::Listener->open_all($conf);
        local $SIG{TERM} = 'IGNORE';
        Sirius::Process::Supervisor->new(
            app       => $app,
            builder   => $make,
            conf      => $conf,
            listeners => \@listeners
        )->run;
        print {*STDERR} "SIG is $SIG{TERM}\n";
        1;
    } or print {*STDERR} $@;
    POSIX::_exit( $@ ? 1 : 0 );
}

sub log_text {
    open my $in, '<', "$dir/log" or return '';
    local $/;
    return scalar <$in> || '';
}

sub order { open my $out, '>', "$dir/order" or die $!; return }

sub until_true {
    my $code  = shift;
    my $until = time + 5;
    sleep 0.01 until $code->() || time > $until;
    return $code->();
}

# PIDs of its workers that are no zombies: the children of its children
sub workers {
    my @generations = children($server);
    return children(@generations);
}

sub children {
    my %of = map { $_ => 1 } @_;
    my @pids;
    for my $file ( glob '/proc/[0-9]*/stat' ) {
        open my $in, '<', $file or next;
        my ( $pid, $state, $parent ) = ( <$in> || '' ) =~ /\A(\d+) \(.*\) (\S) (\d+)/s or next;
        push @pids, $pid if $of{$parent} && $state ne 'Z';
    }
    return @pids;
}

sub gone {
    my $pid = shift;
    open my $in, '<', "/proc/$pid/stat" or return 1;
    return ( <$in> || 'Z' ) =~ /\) Z|\AZ/;
}

sub ended {
    my ($signal) = @_;
    my $start = time;
    kill $signal => $server if $signal;
    waitpid $server, 0;
    return ( $?, time - $start );
}

subtest 'A clean life' => sub {
    start();
    like log_text(),
        qr{\A\[sirius \d+\] starting Sirius 0\.01: [^\n]+\nSirius/0\.01 listening on http://127\.0\.0\.1:[1-9]\d*/\n},
        'right lines';
    ok until_true( sub { workers() == 2 } ), 'two workers';
    my ($status) = ended('TERM');
    is $status, 0, 'right status';
    unlike log_text(), qr/\] (?:error|warn|info): |worker \d/, 'nothing to report';
    like log_text(),   qr/^SIG is IGNORE$/m,                   'signals as before';
};

subtest 'Idle costs nothing' => sub {
    start();
    until_true( sub { workers() == 2 && log_text() =~ /ready after/ } );
    my $switches = sub {
        open my $in, '<', "/proc/$server/status" or die $!;
        return join '', grep {/ctxt/} <$in>;
    };
    my $before;
    for ( 1 .. 10 ) {    # what belongs to the start may still come where others are at work
        $before = $switches->();
        sleep 1;
        last if $switches->() eq $before;
    }
    is $switches->(), $before, 'not once awake';
    ended('TERM');
};

subtest 'Ends of workers' => sub {
    my @case = (
        [ sub { kill KILL => $$; sleep 1 }, 'was killed by signal 9 \(KILL\); starting another' ],
        [ sub { POSIX::_exit(3) },          'exited with status 3; starting another' ],
        [ sub { exit 0 },                   'exited with status 0 inside the application; starting another' ],
        [ sub { kill TERM => $$ },          'exited: drained; starting another' ],
        [ sub { die "oops\n" },             'exited with status 1; starting another' ],
    );
    for my $case (@case) {
        my ( $app, $message ) = @$case;
        start( app => $app, err_respawn_interval => 0.01, workers => 1 );
        until_true( sub { workers() == 1 } );
        my ($first) = workers();
        order();
        ok until_true( sub { my ($now) = workers(); $now && $now != $first } ), 'replaced';
        like log_text(), qr/^\[sirius \d+\] \w+: worker $first $message$/m, $message;
        is + ( ended('TERM') )[0], 0, 'right status';
    }
};

subtest 'Asked for: one line with the reason' => sub {
    for my $why (qw(max-requests harakiri)) {
        start( app => sub { $_[0]{why} = $why }, workers => 1 );
        my ( $first, $generation );
        until_true( sub { ($first) = workers() } );
        ($generation) = grep {
            grep { $_ == $first }
                children($_)
        } children($server);
        order();
        ok until_true( sub { my ($now) = workers(); $now && $now != $first } ), "replaced after $why";
        is join( '', log_text() =~ /^(\[sirius.*worker \d+ .*\n)/mg ),
            "[sirius $generation] info: worker $first exited: $why\n",
            'right line';
        ended('TERM');
    }
};

subtest 'Failed at once' => sub {
    start( app => sub { POSIX::_exit(3) }, err_respawn_interval => 3, workers => 1 );
    ok until_true( sub { order() if workers(); log_text() =~ /exited with status 3; next attempt in 3 s$/m }
        ),
        'right line after a few that were replaced at once';
    unlink "$dir/order";    # given while the last one was already on its way out: the next would obey it
    is workers(), 0, 'not yet';
    ok until_true( sub { workers() == 1 } ), 'now';
    ended('TERM');
};

subtest 'Never ready' => sub {
    start( builder => sub { die "no luck\n" }, err_respawn_interval => 0.1, workers => 5 );
    until_true( sub { 4 <= ( () = log_text() =~ /next attempt/g ) } );
    my ( $status, $time ) = ended('TERM');
    is $status, 0, 'right status';
    cmp_ok $time, '<', 20, 'without waiting for --graceful-timeout';
    my $log = log_text();
    like $log, qr/worker failed: no luck$/m, 'right reason';
    is join( ' ', $log =~ /never became ready; next attempt in (\S+) s$/mg ), '0.1 0.2 0.4 0.8', 'ever later';
    unlike $log, qr/listening/, 'never said it was';
};

subtest 'Stuck' => sub {
    my $stuck = sub { 1 while 1 };
    my @case
        = ( [ 0.3, 0.3, 'TERM' ], [ 30, 1, 'INT' ], [ 30, 1, qw(TERM TERM) ], [ 30, 0, qw(TERM INT INT) ] );
    for my $case (@case) {
        my ( $grace, $expected, @signals ) = @$case;
        my $last = pop @signals;
        start( app => $stuck, graceful_timeout => $grace );
        order();
        until_true( sub { !-e "$dir/order" } );
        for my $signal (@signals) {
            kill $signal => $server;
            until_true( sub { log_text() =~ /stopping.*: $signal\b/ } );
        }
        my ( $status, $time ) = ended($last);
        is $status, 0, "@signals $last: right status";
        cmp_ok $time, '>', $expected - 0.1, "not before $expected s";
        cmp_ok $time, '<', $expected + 20,  'nor as late as a longer limit';

        # They have no request. At a graceful stop such workers are told to end by the edge, which there is
        # none of here
        my $line
            = qr/\[sirius \d+\] warn: workers without a request that did not end in time were killed: \d+$/m;
        if ( $grace < 1 ) { unlike log_text(), qr/were killed/, 'no line' }
        else              { like log_text(), $line, 'right line' }
    }
};

subtest 'Without a supervisor' => sub {
    start();
    until_true( sub { workers() == 2 } );
    my @workers = workers();
    ended('KILL');
    ok until_true( sub {
        !grep { !gone($_) } @workers;
        } ),
        'the workers go';
};

subtest 'In one process' => sub {
    for my $signal (qw(TERM QUIT INT)) {
        start( workers => 0 );
        like log_text(), qr/listening/, 'right line';
        is workers(),               0, 'no child';
        is + ( ended($signal) )[0], 0, "$signal: right status";
    }
    my $turns = 0;
    start( workers => 0, app => sub { $_[0]{why} = $turns++ ? 'stopped' : 'harakiri' } );
    for ( 1, 2 ) {
        order();
        until_true( sub { !-e "$dir/order" } );
    }
    is + ( ended() )[0], 0, 'goes on after harakiri';
};

subtest 'Ready callback and exit hook' => sub {
    start(
        server_ready => sub { print {*STDERR} "ready on $_[0]{host} at $_[0]{port}\n" },
        child_exit   => sub { print {*STDERR} "exit hook\n" },
    );
    like log_text(), qr/^ready on 127\.0\.0\.1 at [1-9]\d*\n/m, 'right line';
    until_true( sub { workers() == 2 } );
    ended('TERM');
    is scalar( () = log_text() =~ /^exit hook$/mg ), 2, 'once in each';
};

done_testing;
