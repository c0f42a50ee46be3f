use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(time);
use Sirius::Test;
use Sirius::Test::Server;

# The program of edges cannot start any more, hangs, crashes or is removed: another build that works takes
# over, and ctl says why

my $ROOT = $Sirius::Test::Server::ROOT;
my $dir  = File::Temp->newdir( 'sirius-fallback-XXXXXX', TMPDIR => 1 );
my $home = "$dir/installed";
system( 'cp', '-a', "$ROOT/blib", $home ) == 0 or die "cp: $?";
my $file = "$home/arch/auto/Sirius/sirius-edge";
my $real = "$dir/real";
system( 'cp', '-p', $file, $real ) == 0 or die "cp: $?";
my $control = "$dir/control";
my $admin   = "$dir/admin";
my $builds  = 0;

# Each build is another file, with a time of its own
sub install {
    my $text = shift;
    if ( defined $text ) { spew( "$file.new", $text ) }
    else                 { system( 'cp', $real, "$file.new" ) == 0 or die "cp: $?" }
    chmod 0755, "$file.new";
    my $at = time - 1000 + 10 * ++$builds;
    utime $at, $at, "$file.new";
    return rename "$file.new", $file;
}

sub ctl {
    my @words = @_;
    my $text  = qx(timeout 80 "$^X" -Mblib=$ROOT/blib $ROOT/bin/sirius ctl --control $control @words 2>&1);
    return ( $? >> 8, $text );
}

sub server {
    my $server = Sirius::Test::Server->start(
        app       => q(sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['Hello'] ] }),
        command   => [ qw(env -u PERL5LIB), $^X, "-I$home/lib", "-I$home/arch", "$ROOT/bin/sirius" ],
        args      => [ qw(--workers 1 --err-respawn-interval 0.1 --control), $control, @_ ],
        may_crash => 1,
    );
    $server->wait_log( qr/ready after /, 20 );
    return $server;
}

sub serves {
    my $server = shift;
    return ( eval { $server->ask('GET /')->status } || 0 ) == 200;
}

sub probe {
    return eval { Sirius::Test::Client->new("unix:$admin")->ask('GET /healthz')->status } || 0;
}

subtest 'the program of the start cannot start any more' => sub {
    my $library = "$dir/sirius-edge";
    system( 'cp', '-p', $real, $library ) == 0 or die "cp: $?";
    install("#!/bin/sh\nexec $library \"\$@\"\n");
    my $server = server();
    ok serves($server), 'it serves';
    unlink $library or die "$library: $!";
    install();
    kill KILL => $server->edges;
    ok $server->wait_log(
        qr/error: edge \d+ exited with status \d+; it never became ready; next attempt in \S+ s with the installed sirius-edge$/m,
        20
        ),
        'the log says that the installed one is tried'
        or diag $server->log;
    ok until_true( 20, sub { serves($server) } ), 'which serves';
    my ( $status, $text ) = ctl(qw(reload --wait));
    is $status, 0, 'a reload completes' or diag $text;
    $server->stop;
};

subtest 'no program starts' => sub {
    my $library = "$dir/sirius-edge";
    system( 'cp', '-p', $real, $library ) == 0 or die "cp: $?";
    install("#!/bin/sh\nexec $library \"\$@\"\n");
    my $server = server();
    unlink $library or die "$library: $!";
    install("#!/bin/sh\nexit 3\n");
    kill KILL => $server->edges;
    ok $server->wait_log(
        qr/exited with status 3; it never became ready; next attempt in \S+ s with the previous sirius-edge$/m,
        20
        ),
        'both are tried in turn'
        or diag $server->log;
    my ( $status, $text ) = ctl('status');
    is $status, 0, 'ctl status';
    like $text,   qr/^no edge is running/m, 'says that there is none';
    unlike $text, qr/uninitialized/,        'without a warning' or diag $text;
    install();
    ok until_true( 30, sub { serves($server) } ), 'one that is installed now, and works, serves'
        or diag $server->log;
    $server->stop;
};

subtest 'the installed program hangs' => sub {
    install();
    my $server = server( '--admin', $admin );
    my ($edge) = $server->edges;
    install("#!/bin/sh\nexec sleep 1000\n");
    my ( $status, $text ) = ctl(qw(reload --wait));
    is $status, 1, 'a reload fails';
    like $text, qr/is serving, but edge \d+ was killed .* edge $edge keeps serving/, 'with the reason';
    ok $server->wait_log( qr/the supervisor now runs/, 20 ), 'the supervisor is renewed';
    my $start = time;
    ok until_true( 20, sub { probe() == 200 } ), 'the admin port answers';
    cmp_ok time - $start, '<', 15, 'soon';
    kill KILL => $server->admin_edge;
    ok until_true( 20, sub { probe() == 200 } ), 'and again when its edge was killed';
    $server->stop;
};

subtest 'the installed program is removed, or cannot be executed' => sub {
    install();
    my $server = server( '--admin', $admin );
    my ($edge) = $server->edges;
    for my $case ( [ 'not executable' => sub { install() && chmod 0644, $file } ],
        [ removed => sub { unlink $file } ] )
    {
        my ( $what, $code ) = @$case;
        $code->() or die "$file: $!";
        my ( $status, $text ) = ctl(qw(reload --wait));
        is $status, 1, "$what: a reload fails";
        like $text,
            qr/is serving, but sirius-edge is not installed, or cannot be executed: edges keep running the previous one/,
            'with the reason';
        is_deeply [ $server->edges ], [$edge], 'the edge goes on';
        ok until_true( 20, sub { $server->log =~ /now runs the installed code/ && probe() == 200 } ),
            'the admin port answers';
        like( ( ctl('status') )[1], qr/^sirius-edge is not installed/m, 'ctl status shows it' );
    }
    install();
    my ( $status, $text ) = ctl(qw(reload --wait));
    is $status, 0, 'it is installed again: a reload succeeds' or diag $text;
    unlike( ( ctl('status') )[1], qr/sirius-edge/, 'the fault is gone' );
    $server->stop;
};

subtest 'a new program gets ready, and crashes' => sub {
    install();
    my $server = server( '--admin', $admin );
    install(qq(#!/bin/sh\n(sleep 1.2; kill -SEGV \$\$) >/dev/null 2>&1 &\nexec $real "\$@"\n));
    ctl(qw(reload --wait));
    ok $server->wait_log(
        qr/error: edge \d+ was killed by signal 11 [^;]*; 3 in a row ended within 10 s: edges run the previous sirius-edge until a reload$/m,
        30
        ),
        'the log says that the previous one takes over'
        or diag $server->log;
    my $text = '';
    ok until_true(
        20,
        sub { $text = ( ctl('status') )[1]; $text =~ /^edge \d+ was killed by signal 11 .* until a reload$/m }
        ),
        'ctl status too'
        or diag $text;
    ok until_true( 20, sub { serves($server) } ), 'it serves';
    my @edges = $server->edges;
    ok !until_true( 4, sub { "@edges" ne join q( ), $server->edges } ), 'and lives';
    ok until_true( 20, sub { probe() == 200 } ),                        'the admin port answers';
    my @port = $server->admin_edge;
    ok !until_true( 3, sub { "@port" ne join q( ), $server->admin_edge } ), 'by an edge that lives as well'
        or diag $server->log;
    install();
    my $status;
    ( $status, $text ) = ctl(qw(reload --wait));
    is $status, 0, 'a reload with a program that works succeeds' or diag $text;
    unlike( ( ctl('status') )[1], qr/signal 11/, 'and ends the fault' );
    $server->stop;
};

done_testing;
