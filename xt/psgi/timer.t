use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use POSIX      ();
use Test::More;
use Time::HiRes ();
use Sirius::Test;
use Sirius::Test::Server;

# Time limits of applications by POSIX::sigaction, whose handlers perl does not defer, and by %SIG: they die
# while a writer writes. What is on the wire stays in order, and the worker goes on.

my $APP = <<'APP';
use POSIX ();
use Time::HiRes qw(time ualarm);
my $on  = 0;    # a handler that comes after its eval must not end the request
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
        $set->( $how, sub { if ($on) { $on = 0; die "timeout\n" } } );
        if ( $what eq 'slow' ) {
            my $done = eval { $on = 1; ualarm 300_000; $w->write( 'x' x 30_000_000 ); $on = 0; ualarm 0; 1 };
            ualarm 0;
            warn "$how: $@" if !$done;
            $w->write("\nERROR\n");
        }
        else {
            my ( $died, $end ) = ( 0, time + 1.5 );
            while ( time < $end ) {
                eval { $on = 1; ualarm( 200 + rand 600 ); $w->write("0123456789") for 1 .. 10_000; $on = 0; 1 } or $died++;
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
        ok $server->wait_log( qr/\Q$how\E: timeout/, 30 ), 'a write that waits for its reader is left';
        my $answer = $slow->response;
        is $answer->status, 'cut', 'the response is cut';
        unlike $slow->pending, qr/ERROR|\r\n0\r\n\r\n/, 'and nothing stands in the middle of a chunk';

        my $fast   = $server->connect;
        my $reader = fork;
        die "fork: $!" if !defined $reader;
        if ( !$reader ) { $fast->send( request("GET /many/$how") ); $fast->rest(60); POSIX::_exit(0) }
        ok $server->wait_log( qr/\Q$how\E died: [1-9]/, 30 ), 'and many writes of small pieces';
        is $server->connect->ask('GET /')->body, $pid, 'the worker serves on';
        kill KILL => $reader;
        waitpid $reader, 0;
        $_->close for $slow, $fast;
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
        ok $server->wait_log( qr/five times/, 30 ), 'handlers run while a write waits';
        my $answer = eval { $slow->response( patience => 30 ) };
        is length( $answer ? $answer->body : '' ),     30_000_003, 'the response is whole';
        is substr( $answer ? $answer->body : '', -3 ), 'end',      '$@ is what it was';
        is eval { $server->connect->ask('GET /')->body }, $pid, 'the worker serves on';
        $server->stop;
    };
}

# What makes text of an object may free it, and then a handler runs while its text is written
subtest 'an object that frees itself as it is made text' => sub {
    my $server = start_server( <<'APP', qw(--workers 1 --write-timeout 20) );
package Clears { use overload '""' => sub { @main::only = (); 'x' x 20_000_000 }, fallback => 1 }
package main;
use Time::HiRes qw(ualarm);
our @only;
sub {
    my $env = shift;
    return [ 200, [], ["$$"] ] if $env->{PATH_INFO} eq '/';
    return sub {
        my $w = shift->( [ 200, [] ] );
        my ( $n, @keep ) = 0;
        local $SIG{ALRM} = sub { push @keep, map { [ $_, "abc$_" ] } 1 .. 1000; ++$n > 5 and ualarm 0, warn "five times\n" };
        for ( 1 .. 3 ) { @only = ( bless [], 'Clears' ); $n = 0; ualarm 50_000, 50_000; $w->write( $only[0] ); ualarm 0 }
        $w->close;
    };
}
APP
    my ($pid) = $server->workers;
    my $slow = $server->connect;
    $slow->send( request('GET /slow') );
    ok $server->wait_log( qr/five times/, 30 ), 'handlers run while a write waits';
    my $answer = eval { $slow->response( patience => 30 ) };
    is length( $answer ? $answer->body : '' ),        60_000_000, 'the response is whole';
    is eval { $server->connect->ask('GET /')->body }, $pid,       'the worker serves on';
    is $server->crashes,                              0,          'and nothing was freed twice';
    $server->stop;
};

# Under plackup the application is loaded before the server, and so are its handlers. PROF is one that the
# server leaves alone. The test sends it, so that it comes at any moment: a timer of processor time stands
# still while a write waits for the edge. Each piece is larger than what a worker can say to the edge at once,
# so that a handler that is not deferred leaves a part of one; and the application is nearly always in a
# write, since perl itself does not bear handlers that die anywhere.
my $PIECE  = '<' . '0123456789' x 20_000 . '>';
my $DEATHS = 15;
my $EARLY  = <<'APP';
use POSIX ();
my $prof  = 27;                   # SIGPROF of Linux, which POSIX does not name
my $piece = '<' . '0123456789' x 20_000 . '>';
my $on    = 0;
my $die   = sub { if ($on) { $on = 0; die "timeout\n" } };
my $action = POSIX::SigAction->new( $die, POSIX::SigSet->new, HOW eq 'info' ? POSIX::SA_SIGINFO() : 0 );
$action->safe(1) if HOW eq 'safe';
HOW eq 'sig' ? $SIG{PROF} = $die : POSIX::sigaction( $prof, $action );
sub {
    return [ 200, [], ["$$"] ] if $_[0]{PATH_INFO} eq '/';
    return sub {
        my $w = shift->( [ 200, [] ] );
        my ( $died, $whole, $why ) = ( 0, 0, 'timeout' );
        while ( $died < DEATHS && $why eq 'timeout' ) {
            eval { $on = 1; $w->write($piece) ? $whole++ : die "cut\n" for 1 .. 100; $on = 0; 1 } and next;
            chomp( $why = $@ );
            $died++ if $why eq 'timeout';
        }
        $on = 0;    # the next write knows of the last one that was left
        if ( $why eq 'timeout' ) { $w->write($piece) ? $whole++ : ( $why = 'cut' ) }
        warn "$why, died: $died, whole: $whole.\n";
        select undef, undef, undef, 0.05 until -e 'DIR/go';
        $w->close;
    };
}
APP
my $plackup = program('plackup') or BAIL_OUT('plackup, which is a part of Plack, is not installed');

# The bytes of the chunks that came whole; dies of what is no chunk
sub decoded {
    my ($in) = @_;
    my ( $at, $body ) = ( 0, '' );
    while ( ( my $end = index $in, "\r\n", $at ) >= 0 ) {
        my $size = substr $in, $at, $end - $at;
        die "chunk size '$size'\n" if $size !~ /\A[0-9a-f]{1,8}\z/i;
        my $next = $end + 2 + hex($size) + 2;
        last                                  if $next > length $in;
        die "no end of a chunk of $size\n"    if substr( $in, $next - 2, 2 ) ne "\r\n";
        return ( $body, $next == length $in ) if !hex $size;
        $body .= substr $in, $end + 2, hex $size;
        $at = $next;
    }
    return ( $body, 0 );
}

for my $how (qw(sigaction info safe sig)) {
    subtest "$how, before the server was loaded" => sub {
        my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
        my $server = Sirius::Test::Server->start(
            app     => $EARLY =~ s/HOW/'$how'/gr =~ s/DIR/$dir/r =~ s/DEATHS/$DEATHS/r,
            command => [ $^X, $plackup, qw(-s Sirius -E deployment) ],
            args    => [qw(--workers 0 --write-timeout 20 --queue-timeout 0.5)],
        );
        my $client = $server->connect;
        $client->send( request( 'GET /many', 'Connection: close' ) );
        my ( $in, $round, $until, @said ) = ( '', 0, time + 60 );
        while ( !@said && time < $until && !$server->exited ) {
            kill PROF => $server->pid;
            my $next = Time::HiRes::time() + 0.002;
            $in .= $client->some( 1, 0.002 ) while Time::HiRes::time() < $next && !$client->{end};
            @said = $server->log =~ /^(timeout|cut), died: (\d+), whole: (\d+)\.$/m if ++$round % 10 == 0;
        }
        my ( $why, $died, $whole ) = ( @said, '', 0, 0 );
        cmp_ok $died, '>', 0, 'writes are left';
        my $other = $server->connect;
        $other->send( request('GET /') );
        is eval { $other->response( patience => 15 )->status }, 503,
            'and the rest of the server goes on meanwhile';
        spew( "$dir/go", '' );
        $in .= $client->rest(15);
        my ( undef, $chunks ) = split /\r\n\r\n/, $in, 2;
        my ( $body, $ended ) = eval { decoded($chunks) };
        is $@, '', 'what the client gets is in order';
        my $pieces = int( length($body) / length $PIECE );
        ok $body eq substr( $PIECE x ( $pieces + 1 ), 0, length $body ), 'piece after piece';
        cmp_ok $pieces, '<=', $whole + $died, 'none twice';

        # a write that is left while it waits for long cuts the response: so it is where a busy machine stops
        # the edge or this reader
        if ( $why eq 'timeout' ) {
            is length($body) % length $PIECE, 0, 'all of them whole';
            cmp_ok $pieces, '>=', $whole, 'none missing';
        }
        is $ended ? 'timeout' : 'cut',                    $why, 'and the end only if no write was cut';
        is eval { $server->connect->ask('GET /')->body }, $server->pid, 'the server serves on';
        $server->stop;
    };
}

# On the way into the call that runs the handlers, and out of it, there is no eval yet, or no longer: a
# handler that is not deferred there and dies ends the server. So many come that some meet these few
# instructions. Each is sent when the one before has run: a handler that dies lets the next one in before its
# frame is gone, and a flood of them fills the stack of any perl program.
for my $how (qw(sigaction info)) {
    subtest "$how, a handler that always dies, in a server that has nothing to do" => sub {
        linux_only('ppoll(2); else a second one comes while perl still allocates memory for the first');
        my $dir    = File::Temp->newdir;
        my $flags  = $how eq 'info' ? 'POSIX::SA_SIGINFO()' : 0;
        my $server = Sirius::Test::Server->start(
            app =>
                <<"APP", command => [ $^X, $plackup, qw(-s Sirius -E deployment) ], args => [qw(--workers 0 --max-request-line 20)] );
use POSIX ();
open my \$died, '>>', '$dir/died' or die \$!;
POSIX::sigaction( 27,
    POSIX::SigAction->new( sub { return if !\$main::on; syswrite \$died, '.'; die "at any moment\n" }, POSIX::SigSet->new, $flags ) );
sub { \$main::on++ if \$_[0]{PATH_INFO} eq '/on'; [ 200, [], [\$\$] ] }
APP
        is $server->ask('GET /on')->body, $server->pid, 'it serves';

        # from now on, Perl of the server looks now and then for what has to be told of it
        is $server->ask('GET /?more-than-it-takes')->status, 414, 'the edge has something to tell';

        # a busy machine runs fewer of them in 6 s
        my ( $enough, $until, $seen ) = ( map( { Time::HiRes::time() + $_ } 6, 60 ), 0 );
        while ( ( Time::HiRes::time() < $enough || $seen <= 1000 && Time::HiRes::time() < $until )
            && kill PROF => $server->pid )
        {
            my $patience = Time::HiRes::time() + 0.01;
            1 while -s "$dir/died" == $seen && Time::HiRes::time() < $patience;
            $seen = -s _;
            my $phase = Time::HiRes::time() + rand 60e-6;
            1 while Time::HiRes::time() < $phase;
        }
        cmp_ok $seen, '>', 1000, 'handlers have died';
        ok $server->wait_log( qr/a signal handler died: at any moment/, 10 ), 'the log says so';
        is eval { $server->connect->ask('GET /')->body }, $server->pid, 'it serves on';
        $server->stop;
    };
}

done_testing;
