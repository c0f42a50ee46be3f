package Bench::Case;

# What is measured: the cases, in the order of the report, and how each is run.

use strict;
use warnings;

use Bench::Encrypted;
use Bench::Fairness;
use Bench::Idle;
use Bench::Load qw(dial exactly think);
use Bench::Memory;
use Bench::Start;
use Bench::Throughput;
use Bench::Trace;

my $FORM   = '/foo?foo=bar&bar=baz&baz=hoge&hoge=foo';
my $KEPT   = 'keep-alive';
my $TLS    = 'over TLS 1.3';
my $CLOSED = 'a connection for each request';
my @FRESH  = ( workers => 2, clients => 4, think => 10, close => 1 );

# name, title, fields. full: measured with all rounds; the others show how it goes on, with at most three.
# quick: in --quick too.
my @THROUGHPUT = (
    [ 'ok',            "OK, $KEPT",             app => 'ok', connections => 16, full    => 1,    quick => 1 ],
    [ 'ok-16-workers', "OK, $KEPT, 16 workers", app => 'ok', connections => 15, workers => 16,   full  => 1 ],
    [ 'ok-close-c1',   "OK, $CLOSED",           app => 'ok', connections => 1,  client  => 'ab', quick => 1 ],
    [ 'hello-c16',     "Hello, $KEPT",          app => 'hello', connections => 16, full => 1,    quick => 1 ],
    [   'hello-16-workers', "Hello, $KEPT, 16 workers",
        app         => 'hello',
        connections => 15,
        workers     => 16,
        full        => 1
    ],
    [ 'hello-c1',  "Hello, $KEPT",   app => 'hello', connections => 1, full => 1, quick => 1 ],
    [ 'hello-c4',  "Hello, $KEPT",   app => 'hello', connections => 4 ],
    [ 'hello-c64', "Hello, $KEPT",   app => 'hello', connections => 64 ],
    [ 'hello-ab',  "Hello, $KEPT",   app => 'hello', connections => 16, client => 'ab -k' ],
    [ 'close-c1',  "Hello, $CLOSED", app => 'hello', connections => 1,  client => 'ab' ],
    [ 'close-c8', "Hello, $CLOSED", app => 'hello', connections => 8, client => 'ab', full => 1, quick => 1 ],
    [ 'close-c64', "Hello, $CLOSED",     app => 'hello',    connections => 64, client => 'ab' ],
    [ 'body8000',  "8,000 bytes, $KEPT", app => 'body8000', connections => 16, full   => 1, quick => 1 ],
    [ 'body8000-close-c1',  "8,000 bytes, $CLOSED", app => 'body8000', connections => 1,  client => 'ab' ],
    [ 'body8000-close-c8',  "8,000 bytes, $CLOSED", app => 'body8000', connections => 8,  client => 'ab' ],
    [ 'body8000-close-c32', "8,000 bytes, $CLOSED", app => 'body8000', connections => 32, client => 'ab' ],
    [   'request', "Plack::Request and AccessLog, $KEPT",
        app         => 'request',
        path        => $FORM,
        connections => 16,
        full        => 1,
        quick       => 1
    ],
    [   'request-close', "Plack::Request and AccessLog, $CLOSED",
        app         => 'request',
        path        => $FORM,
        connections => 8,
        client      => 'ab'
    ],
    [   'log', "Hello with the server's access log in a file, $KEPT",
        app         => 'hello',
        log         => 1,
        connections => 16,
        full        => 1,
        quick       => 1
    ],
    [   'static', "A file of 4,096 bytes with the server's access log in a file, $KEPT",
        app         => 'static',
        path        => '/files/4096.txt',
        log         => 1,
        connections => 16,
        quick       => 1
    ],
    [   'log-close', "Hello with the server's access log in a file, $CLOSED",
        app         => 'hello',
        log         => 1,
        connections => 8,
        client      => 'ab'
    ],
    [ 'tls-hello', "Hello $TLS, $KEPT", app => 'hello', connections => 16, tls => 1, full => 1, quick => 1 ],
    [   'h2-hello', 'Hello over HTTP/2 and TLS 1.3, 4 connections with 16 streams each',
        app         => 'hello',
        connections => 4,
        tls         => 1,
        http2       => 1,
        client      => 'h2load',
        full        => 1,
        quick       => 1
    ],
    [   'tls-handshake', "Full handshakes $TLS (ECDSA P-256)",
        app         => 'hello',
        connections => 16,
        tls         => 1,
        client      => 'tlsclient handshakes',
        full        => 1
    ],
    [   'tls-resume', "Resumed handshakes $TLS",
        app         => 'hello',
        connections => 16,
        tls         => 1,
        client      => 'tlsclient resume',
        full        => 1
    ],
    [   'tls-download', "MiB of a file of 1 GiB $TLS",
        app         => 'static',
        path        => '/files/1GiB',
        connections => 1,
        tls         => 1,
        client      => 'tlsclient download'
    ],
);

# name, title, fields (see Bench::Fairness). short: its column beside the others, where a worker is free for
# every request; the letters are those of bench/fair.
my @FAIRNESS = (
    [   'fairness', "Fast requests beside slow ones, $KEPT",
        short => 'slow requests',
        slow  => 25,
        full  => 1,
        quick => 1
    ],
    [   'fairness-close', "Fast requests beside slow ones, $CLOSED",
        short => 'slow requests, a connection each',
        slow  => 25,
        full  => 1,
        quick => 1,
        close => 1
    ],
    [   'fair-think', 'Requests of 1 ms, beside 2 of 1,000 that take 500 ms, 32 clients',
        short   => 'a: requests of 500 ms',
        clients => 32,
        think   => 100,
        slow    => 2,
        fast    => '/',
        late    => '/slow'
    ],
    [   'fair-busy', 'The same without a pause: all workers are busy all the time',
        clients => 32,
        think   => 0,
        slow    => 2,
        fast    => '/',
        late    => '/slow'
    ],
    [   'fair-saturated', 'Requests of 1 ms without a pause, 32 clients, two workers',
        workers => 2,
        clients => 32,
        think   => 0,
        fast    => '/'
    ],
    [   'fair-cpu', 'Calls that compute for 5 ms, two cores that are busy for 80 %',
        clients => 64,
        think   => 190,
        fast    => '/burn',
        cores   => 'all'
    ],
    [   'fair-long', 'Four busy clients beside one request of 10 s',
        short   => 'b: a request of 10 s',
        beside  => [ long => 1 ],
        clients => 4,
        think   => 0
    ],
    [   'fair-silent', 'New clients beside 1,000 connections that send nothing',
        short  => 'd: 1,000 silent clients',
        beside => [ silent => 1000 ],
        @FRESH
    ],
    [   'fair-headers', 'New clients beside 500 that send a header field each second',
        short  => 'e: 500 slow headers',
        beside => [ headers => 500 ],
        @FRESH
    ],
    [   'fair-bodies', 'New clients beside 500 that send a byte of a body each second',
        short  => 'e: 500 slow bodies',
        beside => [ bodies => 500 ],
        @FRESH
    ],
    [   'fair-readers', 'New clients beside 1,000 that read 1 MB with 10 KB a second',
        short  => 'e: 1,000 slow readers',
        beside => [ readers => 1000 ],
        @FRESH
    ],
    [   'fair-retire', '64 busy clients, workers that end after 100 requests',
        retire  => 100,
        clients => 64,
        think   => 0
    ],
);

# name, title, what measures, what plans, fields
my @OTHERS = (
    [ 'fair',   'bench/fair, of Sirius alone', \&Bench::Fairness::own,          \&Bench::Fairness::own_plan ],
    [ 'idle',   'Idle connections',            \&Bench::Idle::measure,          \&Bench::Idle::plan ],
    [ 'memory', 'Memory',                      \&Bench::Memory::measure,        \&Bench::Memory::plan ],
    [ 'start',  'From the start to the first response', \&Bench::Start::up,     \&Bench::Start::up_plan ],
    [ 'reload', 'Reload under load',                    \&Bench::Start::reload, \&Bench::Start::reload_plan ],
    [ 'syscalls', 'System calls for each request', \&Bench::Trace::syscalls, \&Bench::Trace::syscalls_plan ],
    [   'instructions',               'Instructions for each request',
        \&Bench::Trace::instructions, \&Bench::Trace::instructions_plan
    ],
    [   'tls-idle', "Idle connections $TLS", \&Bench::Encrypted::idle, \&Bench::Encrypted::idle_plan,
        tls => 1
    ],
    [   'tls-flood',               "A flood of handshakes $TLS",
        \&Bench::Encrypted::flood, \&Bench::Encrypted::flood_plan,
        tls => 1
    ],
);

my %CASE;
for (@THROUGHPUT) {
    my ( $name, $title, %field ) = @$_;
    my %all = ( client => 'wrk', workers => 1, %field, name => $name, title => $title, kind => 'throughput' );
    $CASE{$name} = { %all, code => \&Bench::Throughput::measure, plan => \&Bench::Throughput::plan };
}
for (@FAIRNESS) {
    my ( $name, $title, %field ) = @$_;
    my %all = (
        workers => 4,
        clients => 16,
        think   => 50,
        slow    => 0,
        fast    => '/hello',
        late    => '/sleep',
        quick   => 0,
        %field,
        name  => $name,
        title => $title,
        kind  => 'fairness'
    );
    $CASE{$name} = { %all, code => \&Bench::Fairness::measure, plan => \&Bench::Fairness::plan };
}
for (@OTHERS) {
    my ( $name, $title, $code, $plan, %field ) = @$_;
    $CASE{$name}
        = { %field, name => $name, title => $title, kind => $name, code => $code, plan => $plan, quick => 1 };
}

# All, or those of --quick
sub names {
    my ( $class, %option ) = @_;
    return grep { !$option{quick} || $CASE{$_}{quick} } map { $_->[0] } @THROUGHPUT, @FAIRNESS, @OTHERS;
}

# The fields of a case
sub case {
    my ( $class, $name ) = @_;
    return $CASE{$name} || die "No such case: $name. There are: @{[ names() ]}\n";
}

# The cases of fairness in which a worker is free for every request
sub waiting {
    return grep { $CASE{$_}{short} } map { $_->[0] } @FAIRNESS;
}

# Steps and seconds of a case with so many servers
sub plan {
    my ( $class, $name, $options, $count ) = @_;
    my $case = $class->case($name);
    return $case->{plan}->( _fields( $case, $options ), $count );
}

# The fields of the case that explain it, and { servers => { name => figures } }: of those that speak TLS or
# HTTP/2, if the case does
sub run {
    my ( $class, $name, $options, @names ) = @_;
    my $case   = $class->case($name);
    my $fields = _fields( $case, $options );
    my %said   = map { $_ => $fields->{$_} }
        grep { defined $fields->{$_} }
        qw(title kind short close app client connections workers log tls http2 rounds seconds count pause requests);
    my @fit = grep {
        my $peer = Bench::Peer::peer($_);
              $case->{http2} ? Bench::Peer::has_http2($_)
            : $case->{tls}   ? $peer->{tls}
            : !$peer->{encrypted}
    } @names;
    return { %said, servers => $case->{code}->( $fields, @fit ) };
}

# What a reader must know of a server before he looks at figures. keeps: it keeps connections alive; at_once:
# how many of 16 busy connections one worker has served within half a second.
sub probe {
    my ( $class, $name, $version ) = @_;
    my $server  = Bench::Server->new( name => $name, app => 'hello' )->start;
    my $got     = think( $server->{port}, 16, 0, 0, 0.5, '/', '/' );
    my @command = map {s{\Q$Bench::Peer::ROOT\E/}{}gr} $server->command;
    $command[0] = 'perl' if $command[0] eq $^X;
    my %probe = (
        name    => $name,
        label   => Bench::Peer::label( $name, $version ),
        version => $version,
        kind    => Bench::Peer::peer($name)->{kind},
        keeps   => $got->{reconnects} * 2 < $got->{fast} ? 1 : 0,
        at_once => $got->{served} + 0,
        command => join( ' ', map { /[^\w.\/:=,+-]/ ? "'$_'" : $_ } @command )
            =~ s/\b$server->{port}\b/PORT/gr
    );
    $server->stop;
    return \%probe;
}

# Quick runs are short in everything; a case that is not full has three rounds
sub _fields {
    my ( $case, $options ) = @_;
    my $quick = $options->{quick};
    my %kind  = (
        throughput  => { rounds => $case->{full} ? undef : 3 },
        fairness    => { rounds => $quick ? 1 : $case->{full} ? 3 : 2, seconds => $quick ? 3 : 5 },
        idle        => { count  => $options->{idle}, pause => $quick ? 3 : 10 },
        start       => {},
        reload      => { seconds  => $quick ? 5   : 10 },
        syscalls    => { requests => $quick ? 500 : $options->{requests} },
        'tls-idle'  => { count    => $options->{idle}, pause => $quick ? 1 : 5 },
        'tls-flood' => { seconds  => $quick ? 1 : 5 },
    );
    my $own = $kind{ $case->{kind} } || {};
    my %own = map { $_ => $own->{$_} } grep { defined $own->{$_} } keys %$own;
    $own{rounds} = $options->{rounds} if $own{rounds} && $own{rounds} > $options->{rounds};
    return { %$options, %own, map { $_ => $case->{$_} } grep { !/\A(?:code|plan|quick)\z/ } keys %$case };
}

1;
