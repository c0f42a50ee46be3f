use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use POSIX      ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Server;

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
        my $slow   = $server->connect( rcvbuf => 262_144 );    # what was written before is read to its end
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

# A write that waits runs the handler of a signal, and $@ may be anything then
for my $case (
    [ 'tied'       => 'tie $@, "Tied"' ],
    [ 'overloaded' => '$@ = bless [], "Dies"' ],
    [ 'a guard'    => '$@ = bless [], "Guard"' ]
    )
{
    my ( $name, $set ) = @$case;
    subtest "\$@ is $name" => sub {
        my $server = start_server( <<"APP", qw(--workers 1 --write-timeout 20) );
package Tied  { sub TIESCALAR { bless [] } sub FETCH { die "in FETCH\n" if \$main::on; '' } sub STORE { } }
package Dies  { use overload map( { \$_ => sub { die "in overload\n" } } qw(bool "" == eq 0+) ), fallback => 0 }
package Guard { sub DESTROY { die "in DESTROY\n" } }
package main;
use Scalar::Util ();
use Time::HiRes qw(ualarm);
our \$on;
sub {
    my \$env = shift;
    return [ 200, [], ["\$\$"] ] if \$env->{PATH_INFO} eq '/';
    return sub {
        my \$w = shift->( [ 200, [ 'Content-Length' => 30_000_003 ] ] );
        my \$n = 0;
        local \$SIG{ALRM} = sub { ++\$n == 5 and ualarm 0, warn qq(five times\n); eval { die bless [], 'Guard' } };
        $set;
        my \$was = \\\$@;
        my \$tied = tied \$@;
        my \$at = \$tied || Scalar::Util::refaddr(\$@);
        \$on = 1;
        ualarm 100_000, 50_000;
        \$w->write( 'x' x 30_000_000 );
        \$on = 0;
        my \$is = tied \$@ || Scalar::Util::refaddr(\$@);
        \$w->write( \$n == 5 && \$was == \\\$@ && \$is == \$at ? 'end' : 'bad' );
        \$w->close;
    };
}
APP
        my ($pid) = $server->workers;
        my $slow = $server->connect;
        $slow->send( request('GET /slow') );
        ok $server->wait_log( qr/five times/, 10 ), 'handlers run while a write waits';
        my $answer = eval { $slow->response( patience => 30 ) };
        is length( $answer ? $answer->body : '' ),     30_000_003, 'the response is whole';
        is substr( $answer ? $answer->body : '', -3 ), 'end',      '$@ is what it was';
        is eval { $server->connect->ask('GET /')->body }, $pid, 'the worker serves on';
        $server->stop;
    };
}

# Under plackup the application is loaded before the server, and so are its handlers. PROF is one that the server leaves alone.
my $EARLY = <<'APP';
use POSIX ();
use Time::HiRes qw(time setitimer ITIMER_PROF);
my $prof = 27;    # SIGPROF of Linux, which POSIX does not name
my $action = POSIX::SigAction->new( sub { die "timeout\n" }, POSIX::SigSet->new, HOW eq 'info' ? POSIX::SA_SIGINFO() : 0 );
$action->safe(1) if HOW eq 'safe';
HOW eq 'sig' ? $SIG{PROF} = sub { die "timeout\n" } : POSIX::sigaction( $prof, $action );
sub {
    return [ 200, [], ["$$"] ] if $_[0]{PATH_INFO} eq '/';
    return sub {
        my $w = shift->( [ 200, [] ] );
        my $died = 0;
        while ( $died < 20 ) {
            eval { setitimer( ITIMER_PROF, 0.0002 ); $w->write("0123456789") for 1 .. 10_000; 1 } or $died++;
            setitimer( ITIMER_PROF, 0 );
        }
        warn "died: $died\n";
        select undef, undef, undef, 0.05 until -e 'DIR/go';
        $w->close;
    };
}
APP
my $plackup = program('plackup') or BAIL_OUT('plackup, which is a part of Plack, is not installed');
for my $how (qw(sigaction info safe sig)) {
    subtest "$how, before the server was loaded" => sub {
        my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
        my $server = Sirius::Test::Server->start(
            app     => $EARLY =~ s/HOW/'$how'/gr =~ s/DIR/$dir/r,
            command => [ $^X, $plackup, qw(-s Sirius -E deployment) ],
            args    => [qw(--workers 0 --write-timeout 20 --queue-timeout 1)],
        );
        my $client = $server->connect;
        my $reader = fork;
        die "fork: $!" if !defined $reader;
        if ( !$reader ) {
            $client->send( request('GET /many') );
            POSIX::_exit( eval { $client->response( patience => 20 )->body }
                    =~ /\A(?:0123456789)+\z/ ? 0 : 1 );
        }
        ok $server->wait_log( qr/died: [1-9]/, 20 ), 'writes are left';
        my $other = $server->connect;
        $other->send( request('GET /') );
        is eval { $other->response( patience => 15 )->status }, 503,
            'and the rest of the server goes on meanwhile';
        spew( "$dir/go", '' );
        waitpid $reader, 0;
        is $?,                                            0, 'all that the client gets is what was written';
        is eval { $server->connect->ask('GET /')->body }, $server->pid, 'the server serves on';
        $server->stop;
    };
}

done_testing;
