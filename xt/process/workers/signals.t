use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Load;

# Every signal of the manual: alone, where it is least expected, and in a storm

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

my $APP = <<'APP';
package My;
use Time::HiRes qw(sleep time);
select undef, undef, undef, 1 if -e __FILE__ . '.slow';
sub pause { my $until = time + shift; sleep 0.02 while time < $until; return }
sub inner { return pause(@_) }
sub {
    my $env = shift;
    inner($1) if $env->{PATH_INFO} =~ m{\A/sleep/([\d.]+)};
    return [ 200, [], [ 'x' x 1_000_000 ] ] if $env->{PATH_INFO} eq '/big';
    my $body = do { local $/ = undef; readline $env->{'psgi.input'} };
    return [ 200, [], [ defined $body && length $body ? length $body : 'ok' ] ];
};
APP

my $megabyte = 'y' x 1_000_000;
my @ASK
    = ( [ 2, 'GET /' ], [ 1_000_000, 'GET /big' ], [ 7, 'POST /', \$megabyte ], [ 2, 'GET /sleep/0.01' ] );

# Clients that ask for all of that, and know how long the answers have to be
sub load {
    my $server = shift;
    return Sirius::Test::Load->start(
        $server,
        ask => sub {
            my ( undef, @ask ) = @{ $ASK[ $_[1] % @ASK ] };
            return @ask;
        },
        sign => sub {
            my ( $got, undef, $number ) = @_;
            my $whole = length $got->body == $ASK[ $number % @ASK ][0];
            return join ' ', $got->status, $whole ? () : 'with another body';
        },
    );
}

# So many workers, of one generation
sub settled {
    my ( $server, $workers ) = @_;
    return until_true( 30, sub { $server->generations == 1 && $server->workers == $workers } );
}

# A server that is as it should be after all that
sub is_well {
    my ( $server, $workers ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok !$server->exited,             'the same supervisor';
    ok settled( $server, $workers ), "one generation, $workers workers" or diag $server->log;
    is $server->ask('GET /')->status, 200, 'it serves';
    ok until_true( 10, sub { !zombies($server) } ), 'no zombie is left';
    is_deeply [ $server->log =~ /^(.*\b(?:was killed|exited with|failed).*)$/mg ], [], 'nobody died';
    return;
}

sub zombies {
    my $server = shift;
    return grep { $_->{group} == $server->pid && $_->{state} eq 'Z' } Sirius::Test::Server::all_processes();
}

subtest 'a storm of HUP, USR1, USR2, TTIN, TTOU and CHLD under load loses no request' => sub {
    my $server = start_server( $APP, qw(--workers 3) );
    my $load   = load($server);
    my @names  = qw(USR1 USR2 TTIN TTOU CHLD WINCH);
    my ( $until, $sent, $next ) = ( time + 3, 0, 0 );
    while ( time < $until ) {
        $server->signal( $names[ rand @names ] ), $sent++ for 1 .. 5;
        if ( time > $next ) { $server->signal('HUP'); $next = time + 0.7 }
        sleep 0.01;
    }
    my $got = $load->stop;
    is_deeply [ keys %$got ], [200], "all requests were answered during $sent signals" or diag explain $got;

    # How many workers it is to have nobody has counted: signals of one name that wait are one. The log knows
    until_true( 10,
        sub { Sirius::Test::Server::slurp( '/proc/' . $server->pid . '/status' ) =~ /^ShdPnd:\s+0+$/m } );
    sleep 0.2;
    my $told = sub { return ( 3, $server->log =~ /number of workers changed from \d+ to (\d+)/g )[-1] };
    for ( my $number = $told->(); $number != 2; $number = $told->() ) {
        $server->signal( $number < 2 ? 'TTIN' : 'TTOU' );
        until_true( 20, sub { $told->() != $number } ) or last;
    }
    is_well( $server, 2 );
    cmp_ok scalar( () = $server->log =~ /generation \d+ is serving$/mg ), '>=', 1,
        'it was reloaded meanwhile';
    $server->stop;
};

subtest 'a storm of signals to workers and generations under load loses no request' => sub {
    my $server = start_server( $APP, qw(--workers 3) );
    my $load   = load($server);
    my @pids   = ( $server->workers, $server->generations );
    my ( $until, $sent ) = ( time + 2, 0 );
    while ( time < $until ) {
        kill $_ => @pids for qw(USR1 USR2 TTIN TTOU CHLD WINCH);
        $sent += @pids * 6;
        sleep 0.005;
    }
    my $got = $load->stop;
    is_deeply [ keys %$got ], [200], "all requests were answered during $sent signals" or diag explain $got;
    is_deeply [ $server->workers, $server->generations ], \@pids, 'by the same processes';
    is_well( $server, 3 );
    $server->stop;
};

subtest 'USR1, USR2, TTIN and TTOU while new code loads' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    $server->file( 'app.psgi.slow', '' );
    $server->signal('HUP');
    until_true( 10, sub { $server->generations == 2 } );
    for my $name (qw(USR1 USR2 TTIN TTIN TTOU)) { $server->signal($name); sleep 0.1 }
    ok $server->wait_log( qr/generation 2 is serving$/m, 30 ), 'it is loaded';
    is_well( $server, 3 );
    $server->stop;
};

subtest 'HUP while the server loads its first code' => sub {
    my $server = Sirius::Test::Server->spawn(
        app  => "print STDERR qq(loads\n); select undef, undef, undef, 1.5; sub { [ 200, [], ['ok'] ] }\n",
        args => [qw(--listen 127.0.0.1:0 --workers 1)]
    );
    ok $server->wait_log( qr/^loads$/m, 20 ), 'it has begun';
    $server->signal('HUP');
    ok $server->wait_log( qr/HUP from PID $$ /, 20 ), 'its sender is named' or diag $server->log;
    $server->signal('TERM');
    $server->wait_exit(20);
    $server->kill_hard;
};

subtest 'USR2: a stack trace of what a worker is running' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    my $client = $server->connect;
    $server->board;    # its reader is there before the request
    $client->send( request('GET /sleep/2') );
    $server->wait_busy( 1, qr{/sleep/2} );
    my $busy;
    my $traced = sub {
        kill USR2 => $server->workers;
        return $server->wait_log( qr/^\[sirius \d+\] this worker is at \S+ line \d+\.?\n(?:\t.*\n)*/m, 1 )
            && ( ($busy) = $server->log =~ /^\[sirius (\d+)\] this worker is at /m );
    };
    ok until_true( 10, $traced ), 'the worker writes it' or diag $server->log;
    my ($trace) = $server->log =~ /^\[sirius $busy\] this worker is (at .*\n(?:\t.*\n)*)/m;
    like $trace,   qr/\Aat .*app\.psgi line 4\b/,                          'where it is';
    like $trace,   qr/^\tMy::pause\(.*\) called at .*app\.psgi line 5$/m,  'who has called that';
    like $trace,   qr/^\tMy::inner\(.*\) called at .*app\.psgi line 8\n/m, 'and that';
    unlike $trace, qr/^\tSirius/m,                                         'nothing of the server';
    is $client->response->status, 200, 'and goes on';
    $client->close;

    my ($idle) = grep { $_ != $busy } $server->workers;
    ok $server->wait_log(qr/^\[sirius $idle\] this worker is not running any application code$/m),
        'an idle one says so';

    my $before = length $server->log;
    $server->signal('USR2');
    ok until_true( 10, sub { 2 == ( () = substr( $server->log, $before ) =~ /\] this worker is /g ) } ),
        'to the server: every worker';
    is_well( $server, 2 );
    $server->stop;
};

# The handler of TERM calls exit inside that of USR2
my $INTERRUPTED = <<'APP';
use Carp        ();
use Time::HiRes ();
my $trace = \&Carp::longmess;
my $first = __FILE__ . '.first';
no warnings 'redefine';
*Carp::longmess = sub {
    kill( TERM => $$ ), Time::HiRes::sleep(0.01) if $ENV{LEAVES};
    goto &$trace;
};
sub main::hook {
    return if !unlink $first;
    $ENV{LEAVES} = 1;
    kill USR2 => $$;
    Time::HiRes::sleep(0.01) while 1;
}
END {
    if ( $ENV{LEAVES} ) {
        kill $_ => $$ for qw(HUP USR1 USR2 TTIN TTOU);
        print STDERR "the end of $$\n";
    }
}
sub { [ 200, [], ['ok'] ] };
APP

subtest 'a worker that ends before it is ready: nothing kills it on its way out' => sub {
    my $server = start_server( $INTERRUPTED, '--workers', 1, '--after-fork',
        'sub { main->can("hook") && main::hook() }' );
    my ($first) = $server->workers;
    $server->file( 'app.psgi.first', '' );
    kill TERM => $first;
    ok $server->wait_log( qr/worker \d+ [^\n]*\bit never became ready/, 20 ), 'one ends' or diag $server->log;
    my ($pid) = $server->log =~ /worker (\d+) [^\n]*it never became ready/;
    like $server->log,   qr/^the end of $pid$/m, 'what the application does at the end of a process is done';
    unlike $server->log, qr/worker $pid was killed/, 'it exits';
    ok until_true( 20, sub { $server->workers == 1 && $server->ask('GET /')->status == 200 } ),
        'another one serves';
    $server->stop;
};

subtest '--workers 0: signals of a supervisor do no harm' => sub {
    my $server = start_server( $APP, qw(--workers 0) );
    $server->signal($_) for qw(HUP TTIN TTOU USR1 USR2);
    ok $server->wait_log(qr/ignored HUP: with --workers 0/), 'HUP is heeded';
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
};

done_testing;
