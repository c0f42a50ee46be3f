use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# A child that the application forks is a program of its own: signals end it as they end any other, and it
# never serves

my $app = <<'APP';
use POSIX ();
use Time::HiRes ();
$SIG{CHLD} = 'DEFAULT';
sub {
    my $env = shift;
    my ( undef, $how, $signal ) = split m{/}, $env->{PATH_INFO};
    return [ 200, [], [$$] ] if !$how;
    local $SIG{$signal} = sub { POSIX::_exit(7) } if $how eq 'own';
    pipe my $ready, my $tell or die "pipe: $!";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        if ( $how eq 'local' ) { local $SIG{$signal} = 'IGNORE' }
        syswrite $tell, 'x';
        if ( $how eq 'blocked' ) { pipe my $never, my $open or die; sysread $never, my $nothing, 1 }
        Time::HiRes::sleep(0.02) for 1 .. 1000;
        POSIX::_exit(9);
    }
    sysread $ready, my $x, 1;
    kill $signal => $pid;
    waitpid $pid, 0;
    return [ 200, [], [ $? & 127 ? 'signal ' . ( $? & 127 ) : 'exit ' . ( $? >> 8 ) ] ];
}
APP

my %NUMBER = ( HUP => 1, INT => 2, QUIT => 3, USR1 => 10, USR2 => 12, TERM => 15 );

for my $workers ( 0, 1 ) {
    subtest "--workers $workers" => sub {
        my $server = start_server( $app, '--workers', $workers );
        my $worker = $server->ask('GET /')->body;
        for my $signal ( sort keys %NUMBER ) {
            is $server->ask("GET /plain/$signal")->body, "signal $NUMBER{$signal}", "$signal ends it";
            is $server->ask("GET /blocked/$signal")->body, "signal $NUMBER{$signal}",
                "$signal, in the middle of a system call";
            is $server->ask("GET /local/$signal")->body, "signal $NUMBER{$signal}",
                "$signal, when perl has put the handler of its parent back";
            is $server->ask("GET /own/$signal")->body, 'exit 7', "$signal with a handler of the application";
        }
        is $server->ask('GET /')->body, $worker, 'the worker has not noticed';
        $server->stop;
    };
}

# A child that returns from code of the application into that of the server must not become another
# supervisor, generation or worker

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

# Answers with what was in the file when it was loaded, which may fork then
my $LOADS = <<"APP";
open my \$in, '<', '$dir/version' or die "version: \$!";
my \$version = readline \$in;
if ( -e '$dir/code' ) { do '$dir/code'; die \$\@ if \$\@ }
sub { [ 200, [], [\$version] ] };
APP

sub version {
    my ( $text, $code ) = @_;
    Sirius::Test::Server::spew( "$dir/version", $text );
    unlink "$dir/code";
    Sirius::Test::Server::spew( "$dir/code", $code ) if defined $code;
    return;
}

# All processes of the server but the supervisor, by the names that the kernel keeps
sub names {
    my $server = shift;
    return join q( ), sort map { Sirius::Test::Server::comm($_) =~ s/\Asirius: //r =~ s/\Agen\K \d+\z//r }
        grep { $_ != $server->pid } $server->processes;
}

my %FORKS = (
    'exec fails'             => q[no warnings; if ( !fork ) { exec '/missing/helper' } 1],
    'both go on'             => q[fork; 1],
    'in BEGIN'               => q[BEGIN { fork } 1],
    'a session of its own'   => q[require POSIX; POSIX::setsid() if !fork; 1],
    'a grandchild'           => q[require POSIX; if ( !fork ) { fork; } 1],
    'the child of an eval'   => q[eval { die "child\n" if !fork; 1 }; 1],
    'a child in backticks'   => q[my $x = `exit 3`; fork if $?; 1],
    'a child after a system' => q[system 'true'; fork; 1],
);

for my $how ( sort keys %FORKS ) {
    subtest "while the application is loaded: $how" => sub {
        version('one');
        my $server = start_server( $LOADS, qw(--workers 2 --no-proctitle) );
        $server->wait_log(qr/2 workers are serving/);
        my $names = names($server);
        version( two => $FORKS{$how} );
        $server->signal('HUP');
        ok $server->wait_log(qr/generation 2 is serving/), 'a reload in which it forks';
        ok $server->wait_log(
            qr/warn: the application has forked while it was loaded, and the child \(PID \d+\)/),
            'the log says what was ended';
        ok until_true( 10, sub { names($server) eq $names } ), 'it has the processes it had'
            or diag names($server);
        version('three');
        $server->signal('HUP');
        ok $server->wait_log(qr/generation 3 is serving/),     'a reload in which it does not';
        ok until_true( 10, sub { names($server) eq $names } ), 'and again';
        is_deeply [ grep { $_ ne 'three' } map { $server->ask('GET /')->body } 1 .. 20 ], [],
            'all answers are new';
        $server->stop;
    };
}

subtest 'at the start' => sub {
    for my $args ( [qw(--workers 2)], [qw(--workers 0)], [qw(--workers 1 -L Delayed)] ) {
        version( one => $FORKS{'exec fails'} );
        my $server = start_server( $LOADS, @$args );
        ok $server->wait_log(qr/warn: the application has forked while it was loaded/), "@$args: it is ended";
        ok $server->wait_log(qr/ready after/), 'and the server serves' or diag $server->log;
        is $server->ask('GET /')->body, 'one', 'it answers';
        unlike $server->log, qr/cannot listen|error: /, 'nobody else wants to serve';
        is scalar( grep {/gen/} split / /, names($server) ), $args->[1] ? 1 : 0, 'there is one generation';
        $server->stop;
    }
};

subtest 'hooks' => sub {
    version('one');
    my $fork   = q[no warnings; if ( !fork ) { exec '/missing/helper' }];
    my @hooks  = qw(before-fork after-fork on-reload child-exit);
    my $server = start_server( $LOADS, '--workers', 2, map { ( "--$_" => "sub { $fork }" ) } @hooks );
    $server->wait_log(qr/2 workers are serving/);
    is $server->generations, 1, 'a generation';
    ok until_true( 10, sub { $server->workers == 2 } ), 'and two workers';
    version('two');
    $server->signal('HUP');
    ok $server->wait_log(qr/generation 2 is serving/),                               'a reload';
    ok until_true( 10, sub { $server->generations == 1 && $server->workers == 2 } ), 'the same again';
    is_deeply [ grep { $_ ne 'two' } map { $server->ask('GET /')->body } 1 .. 20 ], [], 'all answers are new';
    $server->stop;
    like $server->log, qr/warn: the application has forked in --$_, and the child/, "--$_" for @hooks;
};

done_testing;
