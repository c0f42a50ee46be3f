use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# A child that the application forks is a program of its own: signals end it as they end any other, and it never serves

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

done_testing;
