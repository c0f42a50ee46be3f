use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use IO::Handle ();
use JSON::PP   ();
use POSIX      ();
use Sirius::OS::Passing;
use Test::More;
use Time::HiRes ();
use Sirius::Admin::Line;
use Sirius::Admin::Memory;
use Sirius::Test;

# The private memory of workers: how often the kernel is asked, and where it is shown

# A clock that only moves when it is told to, and processes that need so many seconds to be looked at
my ( $time, $cost, @asked ) = ( 100, 0.001 );

sub memory {
    @asked = ();
    return Sirius::Admin::Memory->new(
        clock => sub {$time},
        read  =>
            sub { my $pid = shift; push @asked, $pid; $time += $cost; return $pid < 90 ? $pid * 1000 : undef }
        ,
    );
}

sub workers {
    return map { { pid => $_ } } @_;
}

subtest 'What each worker gets' => sub {
    my $memory  = memory();
    my @workers = workers( 10, 20, 95 );
    $memory->add(@workers);
    is_deeply [ map { $_->{private} } @workers ], [ 10_000, 20_000, undef ], 'bytes, or nothing';
    is_deeply [ sort { $a cmp $b } map { keys %$_ } @workers ], [ ('pid') x 3, ('private') x 3 ],
        'in any case';
};

subtest 'The kernel is not asked more than once a second' => sub {
    my $memory = memory();
    $memory->add( workers( 10, 20 ) ) for 1 .. 50;
    is_deeply \@asked, [ 10, 20 ], 'about each';
    $time += 0.9;
    my @more = workers( 10, 30 );
    $memory->add(@more);
    is_deeply \@asked, [ 10, 20, 30 ], 'a new one is looked at';
    is_deeply [ map { $_->{private} } @more ], [ 10_000, 30_000 ], 'the others have what they had';
    $time += 0.3;
    $memory->add( workers( 10, 20, 30 ) );
    is_deeply \@asked, [ 10, 20, 30, 10, 20 ], 'after a second anew, and one that came back';
};

subtest 'Nor for more than a fiftieth of the time' => sub {
    $cost = 0.01;
    my $memory = memory();
    my @pids   = 1 .. 40;
    my $began  = $time;
    for ( 1 .. 2000 ) {
        $memory->add( workers(@pids) );
        $time += 0.1;
    }
    my $share = @asked * $cost / ( $time - $began );
    cmp_ok $share, '<=', 0.022, "40 large workers, ten looks a second: $share of the time";
    cmp_ok $share, '>',  0.01,  'but as often as may be';
};

subtest 'A server' => sub {
    my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $app = <<'APP';
my %own;
sub { my $env = shift; $own{$$} = 'x' x 30_000_000 if $env->{PATH_INFO} eq '/grow'; [ 200, [], [$$] ] }
APP
    my $server = start_server( $app, qw(--workers 1), '--admin', "$dir/admin" );
    my $get    = sub {
        return $server->connect( to => "unix:$dir/admin" )->ask( 'GET ' . shift, 'Host: localhost' )->body;
    };
    my $worker = sub { return JSON::PP->new->utf8->decode( $get->('/status.json') )->{workers}[0] };
    until_true( 10, sub { $server->workers == 1 } );
    my ($pid) = $server->workers;
    plan skip_all => 'this kernel has no smaps_rollup' if !-e "/proc/$pid/smaps_rollup";
    cmp_ok $worker->()->{private}, '>', 0,                  'private memory in status.json';
    cmp_ok $worker->()->{private}, '<', $worker->()->{rss}, 'less than all of it';
    is $server->ask('GET /grow')->body, $pid, 'the worker takes 30 MB';
    ok until_true( 20, sub { $worker->()->{private} >= 30_000_000 } ), 'which are its own';
    my $really = Sirius::Test::Server::slurp("/proc/$pid/smaps_rollup");
    my ($kib) = $really =~ /^Private_Dirty:\s+(\d+)/m;
    ok abs( $worker->()->{private} / 1024 - $kib ) < 4096, 'as the kernel says' or diag $really;
    like $get->('/metrics'), qr/^sirius_worker_private_bytes\{worker="0"\} [3-9]\d{7}$/m, 'in the metrics';
    my $root = $Sirius::Test::Server::ROOT;
    my $top  = `$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius top --once --admin unix:$dir/admin`;
    like $top, qr/^ +PID .*  RSS +OWN /m,       'in sirius top';
    like $top, qr/^ +$pid .* MB +\d\d MB\s*$/m, 'with its unit' or diag $top;
    $server->stop;
};

# The kernel tells nothing of a process that has changed its user to others of that user, so the supervisor is
# asked
subtest 'Workers of --user' => sub {
    plan skip_all => 'only root can become another user' if $>;
    my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    chmod 0777, "$dir" or die $!;
    my $app = <<'APP';
my $own;
sub { my $env = shift; $own = 'x' x 30_000_000 if $env->{PATH_INFO} eq '/grow'; [ 200, [], [$$] ] }
APP
    my $server = start_server( $app, qw(--workers 1 --user nobody), '--admin', "$dir/admin" );
    my $get    = sub {
        return $server->connect( to => "unix:$dir/admin" )->ask( 'GET ' . shift, 'Host: localhost' )->body;
    };
    my $worker = sub { return JSON::PP->new->utf8->decode( $get->('/status.json') )->{workers}[0] };
    my $pid    = $server->ask('GET /')->body;
    plan skip_all => 'this kernel has no smaps_rollup' if !-e "/proc/$pid/smaps_rollup";
    ok until_true( 20, sub { ( $worker->()->{private} // 0 ) > 100_000 } ), 'are known';
    $server->ask('GET /grow');
    ok until_true( 20, sub { $worker->()->{private} >= 30_000_000 } ), 'and anew';
    like $get->('/metrics'), qr/^sirius_worker_private_bytes\{worker="0"\} [3-9]\d{7}$/m, 'in the metrics';

    # Another process answers, on another line
    my ($admin) = grep { Sirius::Test::Server::comm($_) eq 'sirius: admin' } $server->processes;
    $server->{may_crash} = 1;
    kill KILL => $admin;
    ok until_true(
        20,
        sub {
            ( eval { $worker->()->{private} } // 0 ) >= 30_000_000;
        }
        ),
        'also to its successor';
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving/, 20 ), 'a reload';
    ok until_true(
        20,
        sub {
            ( eval { $worker->()->{private} } // 1e9 ) < 20_000_000;
        }
        ),
        'and after a reload, with its new supervisor';
    $server->stop;
};

subtest 'The line to the supervisor' => sub {
    my ( $own, $theirs ) = Sirius::OS::Passing->pair or die $!;
    $_->blocking(0) for $own, $theirs;
    my $line    = Sirius::Admin::Line->new($own);
    my $memory  = Sirius::Admin::Memory->new( read => sub { $_[0] == 10 ? 10_000 : undef }, line => $line );
    my @workers = workers( 10, 20, 30 );
    my $began   = Time::HiRes::time();
    $memory->add(@workers);
    cmp_ok Time::HiRes::time() - $began, '<', 5, 'a supervisor that does not answer holds nobody up';
    is_deeply [ map { $_->{private} } @workers ], [ 10_000, undef, undef ], 'what the kernel tells is known';

    my $calls = 0;
    my %tell  = ( memory => sub { $calls++; return '20 20000 40 40000' } );
    ok( Sirius::Admin::Line->answer( $theirs, %tell ), 'it answers later' );
    is $calls, 1, 'once';

    # While the other waits for the answer
    my $child = fork // die $!;
    if ( !$child ) {
        close $own;
        vec( my $read = '', fileno $theirs, 1 ) = 1;
        select $read, undef, undef, 10;
        Sirius::Admin::Line->answer( $theirs, memory => sub {'20 21000'} );
        POSIX::_exit(0);
    }
    close $theirs;
    $memory  = Sirius::Admin::Memory->new( read => sub {undef}, line => $line );
    @workers = workers( 20, 30 );
    ok until_true(
        20,
        sub {
            $memory->add(@workers);
            defined $workers[0]{private};
        }
        ),
        'the next time';
    is_deeply [ map { $_->{private} } @workers ], [ 21_000, undef ], 'with what is so now';
    waitpid $child, 0;
    local $SIG{PIPE} = sub { fail 'SIGPIPE' };
    $memory = Sirius::Admin::Memory->new( read => sub {undef}, line => $line );
    $memory->add(@workers);
    is_deeply [ map { $_->{private} } @workers ], [ undef, undef ], 'when it has ended there is nothing';
    ok !Sirius::Admin::Line->answer( $own, %tell ), 'the end of the line is told';
};

done_testing;
