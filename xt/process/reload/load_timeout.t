use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;

# Its version, and perl that it runs while it is loaded
sub version {
    my ( $version, $code ) = @_;
    spew( "$dir/new", "package My; our \$VERSION = $version; " . ( $code || '' ) . ";\n1;\n" );
    rename "$dir/new", "$dir/My.pm" or die $!;
    return;
}

my $APP     = "use lib '$dir'; use My; sub { [ 200, [], [\$My::VERSION] ] };\n";
my $DELAYED = "do '$dir/My.pm' or die \$@; sub { [ 200, [], [\$My::VERSION] ] };\n";
my $HANG    = "{ open my \$out, '>', '$dir/hangs'; } select undef, undef, undef, 0.1 while 1";

sub start {
    my ( $app, @args ) = @_;
    unlink "$dir/hangs";
    version(1);
    my $server = Sirius::Test::Server->start(
        app       => $app,
        args      => [ qw(--workers 2), '--control', "$dir/control", @args ],
        may_crash => 1,
    );
    $server->wait_log( qr/2 workers are serving$/m, 20 );
    return $server;
}

sub ctl {
    my @words = @_;
    my $text
        = `$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius ctl --control $dir/control @words 2>&1`;
    return wantarray ? ( $? >> 8, $text ) : $text;
}

# The old code serves, by one generation, and the next reload works
sub goes_on {
    my $server = shift;
    ok until_true( 20, sub { $server->generations == 1 && $server->workers == 2 } ), 'nothing of it is left'
        or diag $server->log;
    is $server->ask('GET /')->body, 1, 'the old code goes on';
    version(3);
    $server->signal('HUP');
    ok until_true( 20, sub { $server->ask('GET /')->body eq '3' } ), 'the next reload works'
        or diag $server->log;
    $server->stop;
    return;
}

my %WAY = ( 'loaded before the fork' => [$APP], '-L Delayed' => [ $DELAYED, qw(-L Delayed) ] );

for my $way ( sort keys %WAY ) {
    my ( $app, @args ) = @{ $WAY{$way} };
    subtest "A reload that hangs fails after --load-timeout: $way" => sub {
        my $server = start( $app, @args, qw(--load-timeout 4) );
        version( 2, $HANG );
        $server->signal('HUP');
        ok $server->wait_log(
            qr/reload aborted after \S+.*: generation 2 was not ready within 4 s \(--load-timeout\).*; generation 1 keeps serving$/m,
            20
            ),
            'the log says so'
            or diag $server->log;
        goes_on($server);
    };

    subtest "A newer reload replaces one that hangs: $way" => sub {
        my $server = start( $app, @args, qw(--load-timeout 0) );
        version( 2, "\$SIG{TERM} = 'IGNORE'; $HANG" );
        $server->signal('HUP');
        ok until_true( 20, sub { -e "$dir/hangs" } ), 'it hangs';
        version(3);
        my ( $status, $text ) = ctl(qw(reload --wait --timeout 25));
        is $status,                     0, 'reload --wait' or diag $text, $server->log;
        is $text,                       "generation 3 is serving\n", 'brings the next';
        is $server->ask('GET /')->body, 3,                           'which serves';
        like $server->log,
            qr/reload aborted after \S+.*: a newer reload was requested; generation 1 keeps serving$/m,
            'the log says why';
        ok until_true( 20, sub { $server->generations == 1 && $server->workers == 2 } ),
            'nothing of the others is left';
        $server->stop;
    };

    subtest "ctl reload --abort: $way" => sub {
        my $server = start( $app, @args );
        is_deeply [ ctl(qw(reload --abort)) ], [ 1, "sirius ctl: no reload is in progress\n" ],
            'there is none';
        version( 2, $HANG );
        $server->signal('HUP');
        ok until_true( 20, sub { -e "$dir/hangs" } ), 'it hangs';
        like ctl('status'), qr/^reload in progress: generation 2 for /m, 'status says that it is under way';
        my $json = JSON::PP->new->decode( scalar ctl(qw(status --json)) );
        is $json->{status}{loading}{number}, 2, 'also for programs';
        is_deeply [ ctl(qw(reload --abort)) ], [ 0, "reload aborted\n" ], 'it is given up';
        ok $server->wait_log(qr/reload aborted after .*; generation 1 keeps serving$/m), 'the log says so';
        like ctl('status'),   qr/^last reload, .*: reload aborted/m, 'and status';
        unlike ctl('status'), qr/under way/,                         'nothing is under way';
        goes_on($server);
    };
}

subtest 'Who waits for a reload that is replaced gets the newer one' => sub {
    my $server = start( $APP, qw(--load-timeout 20) );
    version( 2, $HANG );
    my $out = "$dir/waits";
    my $pid = fork;
    if ( !$pid ) {
        open STDOUT, '>', $out or die $!;
        exec $^X, "-I$root/blib/lib", "-I$root/blib/arch", "$root/bin/sirius", 'ctl', '--control',
            "$dir/control", qw(reload --wait --timeout 30);
    }
    ok until_true( 20, sub { -e "$dir/hangs" } ), 'it hangs';
    version(3);
    $server->signal('HUP');
    waitpid $pid, 0;
    is $?,                                0,                           'its exit status';
    is Sirius::Test::Server::slurp($out), "generation 3 is serving\n", 'and text';
    $server->stop;
};

my $SLEEP = "select undef, undef, undef, 0.1 while -e '$dir/hang'";

sub hook {
    return ( "--$_[0]", "sub { if ( -e '$dir/hang' ) { open my \$out, '>', '$dir/hangs'; $SLEEP } }" );
}

for my $name (qw(before-fork after-fork)) {
    subtest "--$name hangs in a reload" => sub {
        unlink "$dir/hang";
        my $server = start( $APP, hook($name), qw(--load-timeout 4) );
        spew("$dir/hang");
        $server->signal('HUP');
        ok $server->wait_log(
            qr/generation 2 was not ready within 4 s \(--load-timeout\) while running --$name; generation 1 keeps serving$/m,
            20
            ),
            'the reload fails, and the log names it'
            or diag $server->log;
        unlink "$dir/hang";
        goes_on($server);
    };

    subtest "--$name hangs when a worker is replaced" => sub {
        unlink "$dir/hang";
        my $server = start( $APP, hook($name), qw(--load-timeout 3 --err-respawn-interval 0.1) );
        spew("$dir/hang");
        kill KILL => ( $server->workers )[0];
        ok $server->wait_log(
            qr/error: (?:generation|worker) \d+ was killed: --$name ran for more than 3 s \(--load-timeout\); /,
            20
            ),
            'the log names it'
            or diag $server->log;
        is $server->ask('GET /')->body, 1, 'it serves meanwhile';
        unlink "$dir/hang";
        ok until_true( 30, sub { $server->generations == 1 && $server->workers == 2 } ), 'it gets over it'
            or diag $server->log;
        goes_on($server);
    };
}

subtest '--child-exit hangs' => sub {
    unlink "$dir/hang";
    my $server = start( $APP, hook('child-exit'), qw(--load-timeout 3) );
    my ($worker) = $server->workers;
    spew("$dir/hang");
    kill TERM => $worker;
    ok $server->wait_log(
        qr/error: worker $worker was killed: --child-exit ran for more than 3 s \(--load-timeout\); starting another$/m,
        20
        ),
        'the log names it';
    unlink "$dir/hang";
    goes_on($server);
};

subtest '--on-reload hangs: requests of the old workers are finished' => sub {
    unlink "$dir/hang";
    my $server = start( $APP, hook('on-reload'), qw(--load-timeout 3) );
    spew("$dir/hang");
    version(3);
    $server->signal('HUP');
    ok $server->wait_log(
        qr/error: generation 1 was killed: --on-reload ran for more than 3 s \(--load-timeout\)$/m, 20
        ),
        'the log names it'
        or diag $server->log;
    ok until_true( 20, sub { $server->generations == 1 && $server->workers == 2 } ),
        'the new one is left alone'
        or diag $server->log;
    is $server->ask('GET /')->body, 3, 'it serves' for 1 .. 4;
    unlink "$dir/hang";
    $server->stop;
};

subtest '--after-fork dies: the worker fails, and the reload' => sub {
    unlink "$dir/broken";
    my $server = start( $APP, '--after-fork', "sub { die qq(no database\\n) if -e '$dir/broken' }" );
    spew("$dir/broken");
    version(2);
    my ( $status, $text ) = ctl(qw(reload --wait --timeout 25));
    is $status, 1, 'reload --wait fails';
    like $text, qr/reload failed: generation 2 .*generation 1 keeps serving$/m, 'and says so';
    like $text, qr/error: --after-fork died: no database$/m,                    'and why';
    is scalar( () = $text =~ /--after-fork died/g ), 1, 'once for each worker';
    like scalar( ctl('status') ), qr/^last reload, .*--after-fork died: no database$/ms, 'so does status';
    like $server->log,            qr/--after-fork died: no database$/m,                  'the log says why';
    unlink "$dir/broken";
    goes_on($server);
};

subtest 'What a worker dies of while it loads is in the answer of reload --wait' => sub {
    my $server = start( $DELAYED, qw(-L Delayed) );
    version( 2, 'die qq(no tables\n)' );
    my ( $status, $text ) = ctl(qw(reload --wait --timeout 25));
    is $status, 1, 'exit status';
    like $text, qr/error: worker failed: .*no tables$/m, 'and why' or diag $text;
    goes_on($server);
};

for my $signal (qw(TERM INT QUIT)) {
    for my $hook ( 0, 1 ) {
        my $where = $hook ? 'in --after-fork' : 'while it loads';
        subtest "$signal ends a worker that hangs $where" => sub {
            version(1);
            spew("$dir/hang");
            unlink "$dir/hangs";
            version( 1, "if ( -e '$dir/hang' ) { eval { $HANG }; die }" ) if !$hook;
            my $server = Sirius::Test::Server->spawn(
                app  => $DELAYED,
                args => [
                    qw(--workers 1 -L Delayed), '--listen',
                    "unix:$dir/early",          $hook ? hook('after-fork') : ()
                ],
            );
            ok until_true( 20, sub { -e "$dir/hangs" } ), 'it hangs';
            my $began  = time;
            my $client = $server->connect( to => "unix:$dir/early" );
            $client->send( request('GET /') );
            $server->signal($signal);
            is $server->wait_exit(20), 'exit 0', 'the server stops';
            cmp_ok time - $began, '<', 15, 'long before --graceful-timeout';
            like $client->response->status, qr/\A(?:503|eof|reset)\z/, 'who waited is told';
            unlike $server->log,            qr/killed|error/, 'nobody was killed' or diag $server->log;
            unlink "$dir/hang";
        };
    }
}

subtest 'At the start' => sub {
    unlink "$dir/hangs";
    version( 1, "if ( !-e '$dir/hangs' ) { $HANG }" );
    my $server = Sirius::Test::Server->start(
        app       => $DELAYED,
        args      => [qw(-L Delayed --workers 1 --load-timeout 3 --err-respawn-interval 0.1)],
        may_crash => 1,
    );
    is $server->ask('GET /')->body, 1, 'another attempt is made';
    like $server->log,
        qr/worker \d+ was killed: it was not ready within 3 s \(--load-timeout\); it never became ready; next attempt/,
        'the log says why';
    $server->stop;
};

done_testing;
