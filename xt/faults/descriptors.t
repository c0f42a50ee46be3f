use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Errno qw(EAGAIN EMFILE ENFILE ENOBUFS ENOMEM ENOSPC ETOOMANYREFS);
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::Faults;
use Traffic;

# No descriptor is free, or the kernel has no room to watch one: who comes waits, nobody spins, and all are
# served after

my $faults = Sirius::Test::Faults->new;

my $two = $faults->start( app => $APP, args => [qw(--workers 2 --err-respawn-interval 0.1)], may_crash => 1 );
my $one = $faults->start( app => $APP, args => [qw(--workers 1)] );

sub serving { return shift->ask('GET /serving')->body }

until_true( 20, sub { serving($two) == 2 } );

# While the code runs; a worker that sleeps uses hundredths
sub is_calm {
    my ( $code, @pid ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ( $cpu, $sleeps ) = Sirius::Test::Faults->load_of( $code, @pid );
    return cmp_ok $cpu, '<', 0.08, "they do not spin: $cpu s of CPU, $sleeps sleeps";
}

# As long as there is the fault, nobody answers, and nobody spins; then all are answered
sub waits {
    my ( $server, $name, $errno ) = @_;
    my $before  = $faults->injected('accept');
    my @workers = $server->workers;
    $faults->set( accept => [ 1, $errno ] );
    my @client = map { $server->connect } 1 .. 5;
    $_->send( request('GET /bytes/9') ) for @client;
    is_calm( sub { sleep 0.6 }, $server->owners, @workers );
    is join( '', map { $_->some( 1, 0 ) } @client ), '', "$name: they wait";
    cmp_ok $faults->injected('accept'), '>', $before, 'it has happened';
    $faults->clear;
    is join( ' ', map { $_->response->status } @client ), '200 200 200 200 200', 'then they are answered';
    is_deeply [ $server->workers ], \@workers, 'by the same workers';
    $_->close for @client;
    return;
}

subtest 'accept' => sub {
    waits( $two, 'EMFILE',  EMFILE );
    waits( $two, 'ENFILE',  ENFILE );
    waits( $two, 'ENOBUFS', ENOBUFS );
};

subtest 'a new worker' => sub {
    my ($edge) = $two->edges;
    $faults->only($edge);
    $faults->set( handle => [ 1, ENOMEM ] );
    kill KILL => $two->workers;
    ok $two->wait_log(
        qr/error: an edge cannot take a new worker, and requests may wait for it: Cannot allocate memory: \d+ attempts? failed/,
        20
        ),
        'the log says why no worker comes';
    $faults->clear;
    ok until_true( 20, sub { serving($two) == 2 } ), 'then they come';
};

subtest 'accept, while the application has a request' => sub {
    my $long = $one->connect;
    $one->board;    # its reader is there before the request
    $long->send( request('GET /sleep/1') );
    $one->wait_busy( 1, qr{/sleep/1} );
    waits( $one, 'EMFILE', EMFILE );
    is $long->response->status, 200, 'and so is that request';
};

subtest 'trying again does not cost all idle connections' => sub {
    my @idle = map { my $client = $one->connect; $client->ask('GET /bytes/1'); $client } 1 .. 40;
    $faults->set( accept => [ 1, ENFILE ] );
    my $new = $one->connect;
    $new->send( request('GET /bytes/9') );
    sleep 0.25;
    $faults->clear;
    is $new->response->status, 200, 'it is answered';
    my $kept = grep { $_->ask('GET /bytes/1')->status eq '200' } @idle;
    cmp_ok $kept, '>=', 20, "$kept of 40 are there";
    $_->close for @idle;
};

subtest 'no room to watch' => sub {
    my $before = $faults->injected('watch');
    my $long   = $one->connect;
    $faults->set( watch => [ 1, ENOSPC ] );
    $long->send( request('GET /sleep/0.3') );
    is $long->response->status, 200, 'a request that runs is answered';
    sleep 0.2;
    cmp_ok $faults->injected('watch'), '>', $before, 'a descriptor could not be watched';
    $faults->clear;
    is_whole( $one, 'the worker listens again' );
};

# As many as the kernel gives, really
sub with_100 {
    my @args = @_;
    return $faults->start(
        app     => $APP,
        args    => [ @args, qw(--max-connections 1000 --header-timeout 60) ],
        command =>
            [ 'sh', '-c', 'ulimit -n 100; exec "$@"', 'sh', $^X, "$Sirius::Test::Server::ROOT/bin/sirius" ],
    );
}

# Nobody but root may look into an edge
sub crowded {
    my $pid = shift;
    return sleep 0.2 if $>;
    my $count = () = Sirius::Test::Server->descriptors($pid);
    return $count >= 100 - 12;
}

sub halves {
    my ( $server, $path, $count ) = @_;
    my @half = map { $server->connect } 1 .. $count;
    $_->send("GET $path HTTP/1.1\r\nHost:") for @half;
    return @half;
}

subtest 'ulimit -n' => sub {
    my $server   = with_100(qw(--workers 0));
    my ($worker) = $server->owners;
    my @half     = halves( $server, '/bytes/9', 120 );
    ok until_true( 5, sub { crowded($worker) } ), 'its table is full'
        or diag scalar( () = Sirius::Test::Server->descriptors($worker) );
    is_calm( sub { sleep 0.6 }, $worker );
    cmp_ok scalar( () = Sirius::Test::Server->descriptors($worker) ), '<', 100, 'but for what is kept';
    $_->send(" a\r\n\r\n") for @half;
    my %status;
    $status{ $_->response->status }++ for @half;
    is_deeply \%status, { 200 => 120 }, 'all are answered: who is idle makes room for who waits';
    $_->close for @half;
    ok until_true( 5, sub { $server->ask('GET /file')->status eq '200' } ), 'there is one for a file again';
    is_whole( $server, 'and for all else' );
    $server->stop;
};

subtest 'ulimit -n, two workers' => sub {
    my $server = with_100(qw(--workers 2));
    my @half   = halves( $server, '/sleep/0.01', 240 );
    ok until_true(
        5,
        sub {
            $server->owners == grep { crowded($_) } $server->owners;
        }
        ),
        'all tables are full';
    is_calm( sub { sleep 0.6 }, $server->owners, $server->workers );
    $_->send(" a\r\n\r\n") for @half;
    my %status;
    $status{ $_->response->status }++ for @half;
    is_deeply \%status, { 200 => 240 }, 'all are answered';
    $_->close for @half;
    is_whole( $server, 'service is there' );
    $server->stop;
};

subtest 'ulimit -n, and the application has most of them' => sub {
    my $server = with_100(qw(--workers 1));
    my $client = $server->connect;
    cmp_ok $client->ask('GET /hold/40')->body, '==', 40, 'it has 40 files';
    $client->close;
    my ($worker) = $server->workers;
    my $free = 100 - ( () = Sirius::Test::Server->descriptors($worker) );
    is $server->ask( 'GET /hold/' . ( $free - 4 ) )->status, '200', 'and leaves four';
    is join( ' ', map { $server->ask('GET /bytes/9')->status } 1 .. 20 ), join( ' ', (200) x 20 ),
        'service goes on';
    $server->stop;
};

# Head and body of a large request pass to the worker in files, and so does the file of a response to the
# edge. Odd ones are the former
sub passed {
    my ( $server, $count ) = @_;
    my @client = map { $server->connect } 1 .. $count;
    $_ % 2
        ? $client[$_]->send( request( 'POST /', \( 'x' x 100_000 ) ) )
        : $client[$_]->send( request('GET /file') )
        for 0 .. $#client;
    return @client;
}

sub statuses {
    my @client = @_;
    my %status;
    $status{ $_ % 2 ? 'body' : 'file' }{ $client[$_]->response->status }++ for 0 .. $#client;
    return \%status;
}

subtest 'descriptors can not be passed' => sub {
    my @before = $two->workers;
    my %error  = ( ENOBUFS => ENOBUFS, ETOOMANYREFS => ETOOMANYREFS );
    for my $name ( sort keys %error ) {
        my $before = $faults->injected('give');
        $faults->set( give => [ 1, $error{$name} ] );
        is_deeply statuses( passed( $two, 8 ) ), { body => { 503 => 4 }, file => { 200 => 4 } },
            "$name: files are read instead, bodies are refused";
        cmp_ok $faults->injected('give'), '>', $before, 'it has happened';
        $faults->clear;
    }
    my $before = $faults->injected('take');
    $faults->set( take => [ 1, ENOMEM ] );
    my @client = passed( $two, 8 );
    sleep 0.4;
    is_calm( sub { sleep 0.6 }, $two->owners, $two->workers );
    cmp_ok $faults->injected('take'), '>', $before, 'ENOMEM: they were to be taken';
    $faults->clear;
    my $status = statuses(@client);
    is_deeply [ grep { $_ !~ /\A(?:200|cut|reset)\z/ } keys %{ $status->{file} } ], [],
        'then files are, or visibly cut';
    is_deeply [ grep { $_ !~ /\A(?:200|503)\z/ } keys %{ $status->{body} } ], [],
        'bodies are taken or refused';
    is_deeply [ $two->workers ], \@before, 'no worker is blamed';
    is_whole( $two, 'service is there' );
};

subtest 'no descriptor is free for one that is passed' => sub {
    my @before = $one->workers;
    my $before = $faults->injected('take');
    $faults->set( take => [ 1, EMFILE ] );
    my $status = statuses( passed( $one, 20 ) );
    cmp_ok $faults->injected('take'), '>', $before + 10, 'they came without';
    $faults->clear;
    is_deeply $status, { body => { 503 => 10 }, file => { cut => 10 } },
        'what is not begun is refused, what is begun is visibly cut';
    ok $one->wait_log(
        qr/ answered with 503 because no descriptor was free: Too many open files; raise the limit/),
        'the log says so'
        or diag $one->log;
    is_deeply [ $one->workers ], \@before, 'no worker is blamed';
    is_whole( $one, 'service is there' );
};

subtest 'an answer that nobody waits for any more is for no other request' => sub {
    for my $kind (qw(first second)) {
        $faults->nth( take => $kind eq 'first' ? 1 : 2, ENOMEM );
        my $body   = 'a' x 100_000;
        my $status = $one->ask( 'POST /', \$body )->status;
        $faults->clear;
        like $status, qr/\A(?:200|503)\z/, "$kind message: $status";
        is_whole( $one, 'each of the next has its own body' );
    }
};

# What the client has sent behind its request is passed with the socket
subtest 'no descriptor for what psgix.io is to read first' => sub {
    my $server = $faults->start( app => <<'IO', args => [qw(--workers 1)] );
sub {
    my $env = shift;
    return [ 200, [], ['ok'] ] if $env->{PATH_INFO} ne '/io';
    my $io = $env->{'psgix.io'};
    read $io, my $first, 9 or return [ 500, [], ["no socket: $!"] ];
    syswrite $io, "HTTP/1.1 200 OK\r\nContent-Length: " . length($first) . "\r\nDate: Sun, 22 Nov 2026 00:00:00 GMT\r\n\r\n$first";
    close $io;
    return sub { };
}
IO
    my $ask = sub {
        my $client = $server->connect;
        $client->send( request('GET /io') . 'behind it' );
        $client->response( patience => 5 );
    };
    is $ask->()->body, 'behind it', 'the application reads it';
    my $before = $faults->injected('handle');
    $faults->set( handle => 1 );
    my $answer = $ask->();
    cmp_ok $faults->injected('handle'), '>', $before, 'it has happened';
    $faults->clear;
    is $answer->status, 500, 'it gets no socket rather than one that has lost that';
    like $answer->body, qr/\Ano socket: /, 'and is told so';
    is $ask->()->body, 'behind it', 'then it reads it again';
    $server->stop;
};

subtest 'a new edge does not get what it needs' => sub {
    my ($edge) = $two->edges;
    my @before = $two->workers;
    my $before = $faults->injected('handle');
    $faults->set( handle => 1 );
    kill KILL => $edge;
    ok $two->wait_log(qr/edge \d+ exited with status 1; it never became ready; next attempt in /),
        'it ends, and is tried again'
        or diag $two->log;
    $faults->clear;
    ok until_true(
        20, sub { my ($now) = $two->edges; $now && $now != $edge && $two->log =~ /\n/ && serving($two) }
        ),
        'then there is one';
    is_whole( $two, 'it serves' );
    is_deeply [ $two->workers ], \@before, 'the same workers';
};
subtest 'a new worker does not get what it needs' => sub {
    my $server = $two;
    for my $fault (qw(handle fork)) {
        ok until_true( 20, sub { serving($server) == 2 } ), 'two serve';
        my ( $victim, $other ) = $server->workers;
        my $before = $faults->injected($fault);
        $faults->set( $fault => 1 );
        kill KILL => $victim;
        ok until_true( 10, sub { $faults->injected($fault) > $before + 1 } ), "$fault: it is tried again";
        is $server->ask('GET /pid')->body, $other, 'the other one serves';
        $faults->clear;
    }
    ok until_true( 20, sub { serving($server) == 2 } ), 'then there are two again';
    is_whole( $server, 'they serve' );
};

$_->stop for $one, $two;
done_testing;
