use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Fair;

# An application that forks, calls alarm and system and sets signal handlers, as under any other server

my $APP = <<'APP';
use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(sleep);
sub answer { return [ 200, [ 'X-Worker' => $$ ], [ join '', @_ ] ] }
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    sleep $1 if $path =~ m{\A/sleep/([\d.]+)};
    if ( $path =~ m{\A/(?:fork|exit|return|die|stream)\z} ) {
        my $server = $$;
        my $stream;
        my $child = fork;
        die "fork: $!" if !defined $child;
        return answer("$server $child") if $child;
        POSIX::_exit( sleep 60 )        if $path eq '/fork';
        exit 3                          if $path eq '/exit';
        die "in a child\n"              if $path eq '/die';
        return answer('STRAY');
    }
    if ( $path eq '/clone' ) {    # a fork without the C library, as some modules in C have it
        my $number = { x86_64 => 56, aarch64 => 220 }->{ ( POSIX::uname() )[4] } or die 'which number has clone?';
        my $child = syscall $number, POSIX::SIGCHLD(), 0, 0, 0, 0;
        return answer( $child ? $$ : 'STRAY' );
    }
    if ( $path eq '/writer' ) {
        return sub {
            my $writer = shift->( [ 200, [ 'X-Worker' => $$ ] ] );
            $writer->write('one ');
            my $child = fork;
            if ( !$child ) { $writer->write('STRAY '); $writer->close; POSIX::_exit(0) }
            waitpid $child, 0;
            $writer->write('two');
            $writer->close;
        };
    }
    return answer( system('sleep 0.05; exit 7') >> 8 ) if $path eq '/system';
    return answer(`echo shell; sleep 0.05`) if $path eq '/shell';
    if ( $path eq '/chld' ) {
        my $seen = 0;
        local $SIG{CHLD} = sub { $seen++ };
        my $child = fork;
        POSIX::_exit(5) if !$child;
        sleep 0.3;
        my $got = waitpid $child, 0;
        return answer( "$seen ", $got == $child ? 'reaped ' : "lost $! ", $? >> 8 );
    }
    if ( $path eq '/ignore' ) {
        local $SIG{CHLD} = 'IGNORE';
        my $child = fork;
        POSIX::_exit(0) if !$child;
        sleep 0.2;
        return answer( waitpid( $child, 0 ) );
    }
    if ( $path eq '/alarm' ) {
        my $before = Time::HiRes::time();
        my $ok = eval { local $SIG{ALRM} = sub { die "rang\n" }; alarm 1; sleep 10; 1 };
        alarm 0;
        return answer( $ok ? 'slept' : $@ =~ s/\n//r, ' ', sprintf '%.0f', Time::HiRes::time() - $before );
    }
    if ( $path eq '/usr1' ) {
        my $got = 0;
        local $SIG{USR1} = sub { $got++ };
        sleep 0.01;
        for ( 1 .. 50 ) { kill USR1 => $$; sleep 0.001 }
        return answer($got);
    }
    return answer($$);
}
APP

my $server = start_server( $APP, qw(--workers 2 --keepalive-timeout 5) );
$server->wait_board( sub {
    2 == grep { $_->{state} eq 'idle' } @{ $_[0]{workers} };
} );
my @child;

# A child that lives until the end of the test, and the worker that has forked it
sub forks {
    my ($client) = @_;
    my ( $parent, $child ) = split / /, $client->ask( 'GET /fork', @_[ 1 .. $#_ ] )->body;
    push @child, $child;
    return ( $child, $parent );
}

subtest 'a child lives on: its parent\'s connections are the parent\'s' => sub {
    my $closing = $server->connect;
    my @kept    = map { $server->connect } 1 .. 10;
    $_->ask('GET /') for @kept;
    my ($child) = forks( $closing, 'Connection: close' );
    is $closing->end, 'eof', 'a connection that is closed';
    ok !over($child), 'is seen to be closed although the child lives';
    my %status;
    for my $client (@kept) { $status{ $client->ask('GET /')->status }++ for 1 .. 10 }
    is_deeply \%status, { 200 => 100 }, 'kept ones go on';
    my $kept = $server->connect;
    my ($other) = forks($kept);
    is $kept->ask('GET /')->status, 200, 'the one that forked as well';
    my $bad = $server->connect;
    $bad->send( request( 'GET /%zz', 'Connection: close' ) );
    is $bad->response->status, 400,   'a refused one';
    is $bad->end,              'eof', 'is closed';
    ok !over($_), 'while the children live' for $child, $other;
    kill KILL => $child, $other;
    ok until_true( 10, sub { over($child) && over($other) } ), 'the children end';
    is $_->ask('GET /')->status, 200, 'and nothing changes for a kept one' for @kept[ 0, 5, 9 ];
};

subtest 'an idle connection times out while a child holds it' => sub {
    my $client = $server->connect;
    my @own    = map { ( forks($client) )[0] } 1, 2;
    is $client->end(20), 'eof', 'it is closed';
    ok !grep( { over($_) } @own ), 'while the children live';
};

subtest 'a child that was forked past the C library serves nothing' => sub {
    my %worker = map { $_ => 1 } worker_pids($server);
    my $client = $server->connect;
    my %body;
    $body{ $client->ask('GET /clone')->body }++ for 1 .. 10;
    is_deeply [ grep { !$worker{$_} } keys %body ], [], 'the workers answer' or diag explain \%body;
    my %served;
    $served{ $server->ask('GET /')->body }++ for 1 .. 60;
    is_deeply [ grep { !$worker{$_} } keys %served ], [], 'and go on' or diag explain \%served;
    is $client->some( 1, 0.1 ), '', 'no stray bytes';
};

for my $path (qw(/exit /return /die)) {
    subtest "a child that leaves the application by $path" => sub {
        my $client = $server->connect;
        my ( %parent, @left );
        for ( 1 .. 20 ) {
            my $answer = $client->ask("GET $path");
            my ( $parent, $child ) = split / /, $answer->body;
            push @left, $child;
            is $answer->header('X-Worker'), $parent, 'the parent answers';
            $parent{$parent}++;
        }
        until_true(
            10,
            sub {
                !grep { !over($_) } @left;
            }
        );
        is $client->some( 1, 0.1 ),       '',  'no stray bytes';
        is $client->ask('GET /')->status, 200, 'the connection goes on';
        is_deeply [
            grep {
                my $pid = $_;
                !grep { $_ == $pid } worker_pids($server)
            } keys %parent
            ],
            [],
            'the worker lives';
    };
}

subtest 'a child with a writer' => sub {
    my $client = $server->connect;
    is $client->ask('GET /writer')->body, 'one two', 'only the parent writes' for 1 .. 10;
    is $client->some( 1, 0.1 ),           '',        'no stray bytes';
};

subtest 'system, backticks, CHLD, alarm, other signals' => sub {
    my @other = map { $server->connect } 1 .. 8;
    $_->ask('GET /') for @other;
    my @job = (
        [ '/system', '7' ],
        [ '/shell',  "shell\n" ],
        [ '/chld',   '1 reaped 5' ],
        [ '/ignore', '-1' ],
        [ '/alarm',  'rang 1' ],
        [ '/usr1',   '50' ],
    );
    for my $job (@job) {
        my $client = $server->connect;
        $client->send( request("GET $job->[0]") );
        my %status;
        $status{ $_->ask('GET /')->status }++ for @other;
        my $answer = $client->response;
        is $answer->body, $job->[1], "$job->[0]: as everywhere";
        is_deeply \%status, { 200 => 8 }, 'others are served meanwhile';
    }
};

subtest 'both at the same time' => sub {
    my @client = map { $server->connect } 1 .. 6;
    my @path   = qw(/alarm /chld /system /fork /usr1 /ignore);
    for my $round ( 1 .. 3 ) {
        $client[$_]->send( request("GET $path[$_]") ) for 0 .. $#client;
        my @answer = map { $_->response } @client;
        is_deeply [ map { $_->status } @answer ], [ (200) x 6 ], "round $round";
        push @child, ( split / /, $answer[3]->body )[1];
    }
};

unlike $server->log, qr/STRAY/, 'nothing stray';
is worker_pids($server), 2, 'two workers';
kill KILL => @child;
$server->stop;

# Some modules for XS code and sandboxes call the kernel directly: pthread_atfork does not hear of it
subtest 'a child made by the system call itself' => sub {
    my $server = start_server( <<'APP', qw(--workers 1) );
use POSIX ();
my %CLONE = ( x86_64 => 56, aarch64 => 220 );
sub child { return syscall( $CLONE{ ( POSIX::uname() )[4] }, POSIX::SIGCHLD(), 0, 0, 0, 0 ) }
my %way = (
    returns => sub { my $child = child(); [ 200, [], [$child] ] },
    dies    => sub { my $child = child(); die "in a child\n" if !$child; [ 200, [], [$child] ] },
    exits   => sub { my $child = child(); exit 3 if !$child; [ 200, [], [$child] ] },
    writes  => sub {
        my $respond = shift;
        sub { my $writer = $_[0]->( [ 200, [] ] ); my $child = child(); $writer->write($child); $writer->close };
    },
    answers => sub { sub { my $child = child(); $_[0]->( [ 200, [], [$child] ] ) } },
    socket  => sub { my $io = $_[0]{'psgix.io'}; my $child = child(); fileno $io if !$child; [ 200, [], [$child] ] },
);
sub { my ( undef, $how ) = split m{/}, $_[0]{PATH_INFO}; $how ? $way{$how}->( $_[0] ) : [ 200, [], [$$] ] };
APP
    my ($worker) = $server->workers;
    for my $how (qw(returns dies exits writes answers socket)) {
        my $client = $server->connect;
        my $child  = $client->ask("GET /$how")->body;
        like $child, qr/\A[1-9]\d*\z/, "$how: the response is that of the worker";
        is_deeply [ map { $server->ask('GET /')->body } 1 .. 20 ], [ ($worker) x 20 ], 'who serves on';
        ok until_true( 10, sub { over($child) } ), 'and the child ends';
    }
    $server->stop;
};

done_testing;

# Its parent is the worker, which waits for nobody
sub over {
    my $pid = shift;
    open my $in, '<', "/proc/$pid/stat" or return 1;
    return ( <$in> // '' ) =~ /\) Z /;
}
