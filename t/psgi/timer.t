use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use POSIX ();
use Test::More;
use Sirius::Test;

# Time limits of applications by POSIX::sigaction, whose handlers perl does not defer, and by %SIG: they die while a writer
# writes. What is on the wire stays in order, and the worker goes on.

my $APP = <<'APP';
use POSIX ();
use Time::HiRes qw(time ualarm);
my $set = sub {
    my ( $how, $code ) = @_;
    if ( $how eq 'sig' ) { $SIG{ALRM} = $code; return }
    my $action = POSIX::SigAction->new( $code, POSIX::SigSet->new, $how eq 'info' ? POSIX::SA_SIGINFO() : 0 );
    $action->safe(1) if $how eq 'safe';
    POSIX::sigaction( POSIX::SIGALRM(), $action );
};
sub {
    my $env = shift;
    my ( undef, $what, $how ) = split m{/}, $env->{PATH_INFO};
    return [ 200, [], ["$$"] ] if !$what;
    return sub {
        my $w = shift->( [ 200, [] ] );
        $set->( $how, sub { die "timeout\n" } );
        if ( $what eq 'slow' ) {
            my $done = eval { ualarm 300_000; $w->write( 'x' x 30_000_000 ); ualarm 0; 1 };
            ualarm 0;
            warn "$how: $@" if !$done;
            $w->write("\nERROR\n");
        }
        else {
            my ( $died, $end ) = ( 0, time + 1.5 );
            while ( time < $end ) {
                eval { ualarm( 200 + rand 600 ); $w->write("0123456789") for 1 .. 10_000; 1 } or $died++;
                ualarm 0;
            }
            warn "$how died: $died\n";
        }
        $w->close;
    };
}
APP

for my $how (qw(sigaction info safe sig)) {
    subtest $how => sub {
        my $server = start_server( $APP, qw(--workers 1 --write-timeout 20) );
        my ($pid)  = $server->workers;
        my $slow   = $server->connect( rcvbuf => 8192 );
        $slow->send( request("GET /slow/$how") . request('GET /') );
        ok $server->wait_log( qr/\Q$how\E: timeout/, 6 ), 'a write that waits for its reader is left';
        my $answer = $slow->response;
        is $answer->status, 'cut', 'the response is cut';
        unlike $slow->pending, qr/ERROR|\r\n0\r\n\r\n/, 'and nothing stands in the middle of a chunk';

        my $fast   = $server->connect;
        my $reader = fork;
        die "fork: $!" if !defined $reader;
        if ( !$reader ) { $fast->send( request("GET /many/$how") ); $fast->rest(8); POSIX::_exit(0) }
        ok $server->wait_log( qr/\Q$how\E died: [1-9]/, 8 ), 'and many writes of small pieces';
        is $server->connect->ask('GET /')->body, $pid, 'the worker serves on';
        kill KILL => $reader;
        waitpid $reader, 0;
        $server->stop;
    };
}

done_testing;
