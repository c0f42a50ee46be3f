use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Config;
use File::Temp;
use Test::More;
use Sirius::Test;

# Code of an application runs wherever perl touches a value of it: overloads, ties, magic, DESTROY, layers,
# handlers of signals. In every such place it may die, fork, sleep or exit, and nobody but its own request
# suffers. docs/HACKING.md lists the places.

my $dir = File::Temp->newdir;

my $app = <<'APP';
use Hash::Util ();
use POSIX ();
use Time::HiRes ();
package Dies  { use overload map( { my $what = $_; $what => sub { die "in $what\n" } } qw(bool "" @{} &{} == eq 0+) ), fallback => 0 }
package Tied  { sub TIESCALAR { bless [] } sub FETCH { die "in FETCH\n" } sub STORE { } }
package Array { sub TIEARRAY { bless [ $_[1] ] } sub FETCHSIZE { die "in FETCHSIZE\n" if $_[0][0]; 1 } sub FETCH { die "in FETCH\n" } }
package Hash  { require Tie::Hash; our @ISA = 'Tie::StdHash'; sub FETCH { die "in FETCH\n" if $Hash::on; $_[0]{ $_[1] } } sub EXISTS { die "in EXISTS\n" if $Hash::on; exists $_[0]{ $_[1] } } }
package Guard { sub new { bless [ $_[1] ], $_[0] } sub DESTROY { my $do = $_[0][0]; local $@; eval { $do->(); 1 } or die $@ } }
package Body  { our @ISA = 'Guard'; sub getline { undef } sub close { } }
package Frees { sub TIESCALAR { bless [] } sub FETCH { @main::only = (); 'ok' } sub STORE { } }
package Clears { use overload '""' => sub { @main::only = (); 'ok' }, fallback => 1 }
package Layer { sub PUSHED { bless [], $_[0] } sub FILENO { die "in FILENO\n" } sub FILL { undef } sub POPPED { } sub FLUSH { 0 } }
package main;
my $dies  = bless [], 'Dies';
my $tied  = sub { tie my $x, 'Tied'; \$x };
my %do = (
    'commit, overloaded'      => sub { $_[0]{'psgix.harakiri.commit'} = $dies },
    'commit, tied'            => sub { tie $_[0]{'psgix.harakiri.commit'}, 'Tied' },
    'handlers, overloaded'    => sub { $_[0]{'psgix.cleanup.handlers'} = bless {}, 'Dies' },
    'handlers, tied value'    => sub { tie $_[0]{'psgix.cleanup.handlers'}, 'Tied' },
    'handlers, tied array'    => sub { tie my @a, 'Array'; $_[0]{'psgix.cleanup.handlers'} = \@a; 0 },
    'handlers, tied size'     => sub { tie my @a, 'Array', 1; $_[0]{'psgix.cleanup.handlers'} = \@a; 0 },
    'handlers, tied in place' => sub { tie @{ $_[0]{'psgix.cleanup.handlers'} }, 'Array', 1 },
    'a handler that dies'     => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { die "in a handler\n" } },
    'a handler, overloaded'   => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, $dies },
    'a handler, tied'         => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, undef; tie $_[0]{'psgix.cleanup.handlers'}[0], 'Tied' },
    'a handler that ties'     => sub { my $env = $_[0]; push @{ $env->{'psgix.cleanup.handlers'} }, sub { tie %$env, 'Hash'; $Hash::on = 1 }, sub { 1 } },
    'a handler that empties'  => sub { my $env = $_[0]; push @{ $env->{'psgix.cleanup.handlers'} }, sub { %$env = (); @{ $_[0]{x} } = () }, sub { 1 } },
    '%env, tied'              => sub { my %copy = %{ $_[0] }; tie %{ $_[0] }, 'Hash'; %{ $_[0] } = %copy; $Hash::on = 1 },
    '%env, locked keys'       => sub { Hash::Util::lock_keys( %{ $_[0] } ) },
    '%env, locked'            => sub { Hash::Util::lock_hash( %{ $_[0] } ) },
    '%env, locked and a dead request' => sub { delete $_[0]{REQUEST_URI}; delete $_[0]{REMOTE_ADDR}; Hash::Util::lock_keys( %{ $_[0] } ); die "dead\n" },
    'a value of %env, tied'   => sub { tie $_[0]{REQUEST_URI}, 'Tied'; tie $_[0]{HTTP_X_LOGGED}, 'Tied' },
    'a value of %env, overloaded' => sub { $_[0]{$_} = $dies for qw(REQUEST_METHOD REQUEST_URI REMOTE_ADDR HTTP_X_LOGGED) },
    'a guard that dies'       => sub { $_[0]{guard} = Guard->new( sub { die "in DESTROY\n" } ) },
    'a guard in a value'      => sub { $_[0]{HTTP_HOST} = Guard->new( sub { die "in DESTROY\n" } ) },
    'a guard that looks at %env' => sub { my $env = $_[0]; $_[0]{guard} = Guard->new( sub { %$env = ( a => 1 ); $env->{$_} = 1 for 1 .. 99 } ) },
    'a guard in the list of handlers' => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, Guard->new( sub { die "in DESTROY\n" } ) },
    'the reference itself'    => sub { bless \$_[0], 'Guard' },
    'a body that dies as it goes'  => sub { [ 200, [], Body->new( sub { die "in DESTROY\n" } ) ] },
    'a body that is reblessed'     => sub { my $x = 'ok'; my $r = [ 200, [], ['ok'] ]; bless \$r->[2][0], 'Guard'; ${ $r->[2] }[0] = 'ok'; $r },
    'an exception, overloaded'     => sub { die $dies },
    'an exception that is false'   => sub { die bless [], 'Guard' },
    'a status, overloaded'    => sub { [ $dies, [], [] ] },
    'a response, tied'        => sub { tie my @a, 'Array'; \@a },
    'a header, tied'          => sub { my @h = ( 'X-A' => 1 ); tie $h[1], 'Tied'; [ 200, \@h, [] ] },
    'a header, overloaded'    => sub { [ 200, [ $dies => 1 ], [] ] },
    'a body, tied'            => sub { tie my @b, 'Array'; [ 200, [], \@b ] },
    'a body of objects'       => sub { [ 200, [], [$dies] ] },
    'a body with a layer of Perl' => sub { open my $in, '<', __FILE__ or die; binmode $in, ':via(Layer)'; [ 200, [], $in ] },
    'wide characters in chunks'   => sub { [ 200, [ 'Transfer-Encoding' => 'chunked' ], [ "2\r\nab\r\n", "\x{263a}" ] ] },
    'wide characters'         => sub { [ 200, [], ["\x{263a}"] ] },
    'a signal while it waits' => sub { $SIG{ALRM} = sub { die "in a handler of ALRM\n" }; Time::HiRes::ualarm(100_000); },
    'a signal whose handler forks' => sub { $SIG{ALRM} = sub { my $pid = fork; waitpid $pid, 0 if $pid }; Time::HiRes::ualarm(100_000); },
    'exit in a child of a guard'   => sub { $_[0]{guard} = Guard->new( sub { my $pid = fork; exit 3 if !$pid; waitpid $pid, 0 } ) },
    'a child of a guard'           => sub { $_[0]{guard} = Guard->new( sub { my $pid = fork; waitpid $pid, 0 if $pid } ) },
    'a child of a body'            => sub { [ 200, [], Body->new( sub { my $pid = fork; waitpid $pid, 0 if $pid } ) ] },
    'a child of an early hint'     => sub { $_[0]{'psgix.informational'}->( 103, [ Link => '<a>' ] ); my $pid = fork; waitpid $pid, 0 if $pid; return },
    'psgi.input, reblessed'        => sub { bless *{ $_[0]{'psgi.input'} }{IO}, 'Guard'; bless $_[0]{'psgi.input'}, 'Guard' },
    'psgi.input, with a format'    => sub { my $old = select $_[0]{'psgi.input'}; $~ = 'ODD'; $^ = 'ODD'; $= = 7; $| = 1; select $old },
    'a responder that gets rubbish' => sub { sub { $_[0]->($dies) } },
    'a responder, twice'           => sub { sub { $_[0]->( [ 200, [], ['ok'] ] ); $_[0]->( [ 200, [], ['no'] ] ) } },
    'a writer, and dies'           => sub { sub { my $w = $_[0]->( [ 200, [ 'Content-Length' => 2 ] ] ); $w->write('ok'); die $dies } },
    'writes what frees itself, tied'       => sub { sub { my $w = $_[0]->( [ 200, [ 'Content-Length' => 2 ] ] ); our @only = (1); tie $only[0], 'Frees'; $w->write( $only[0] ); $w->close } },
    'writes what frees itself, overloaded' => sub { sub { my $w = $_[0]->( [ 200, [ 'Content-Length' => 2 ] ] ); our @only = ( bless [], 'Clears' ); $w->write( $only[0] ); $w->close } },
    'an early hint that frees itself'      => sub { our @only = ( 'X-A', 1, 'X-B', 1 ); tie $only[1], 'Frees'; $_[0]{'psgix.informational'}->( 103, \@only ); return },
    'writes an object'             => sub { sub { my $w = $_[0]->( [ 200, [ 'Content-Length' => 2 ] ] ); eval { $w->write($dies) }; $w->write('ok'); $w->close } },
);
sub {
    my $env = $_[0];
    return [ 200, [], [ join "\n", sort keys %do ] ] if $env->{PATH_INFO} eq '/all';
    return [ 200, [], [ ref( $env->{'psgi.input'} ), ref *{ $env->{'psgi.input'} }{IO}, ( select( ( select( $env->{'psgi.input'} ), $~ )[0] ) )[0] ? '' : '' ] ] if $env->{PATH_INFO} eq '/input';
    return [ 200, [], [$$] ] if $env->{PATH_INFO} ne '/do';
    $Hash::on = 0;
    ( my $what = $env->{QUERY_STRING} ) =~ s/%([0-9a-f]{2})/chr hex $1/ge;
    my $answer = $do{$what}->( $_[0] );
    return $answer if ref $answer eq 'CODE' || ref $answer eq 'ARRAY' && @$answer > 2 || tied @{ ref $answer eq 'ARRAY' ? $answer : [] };
    return [ 200, [], ['ok'] ];
}
APP

# What the client gets where it is not "ok"
my %ANSWER = (
    (   map { $_ => '500' } '%env, locked and a dead request',
        'an exception, overloaded',
        'an exception that is false',
        'a status, overloaded',
        'a response, tied',
        'a header, tied',
        'a header, overloaded',
        'a body, tied',
        'a body of objects',
        'wide characters in chunks',
        'wide characters',
        'a responder that gets rubbish'
    ),
    'a body that dies as it goes' => '200',
    'a child of a body'           => '200',
    'a body with a layer of Perl' => '200',
);

sub try_all {
    my ( $server, $worker, $fields, @what ) = @_;
    my $beside = $server->connect;
    for my $what (@what) {
        ( my $query = $what ) =~ s/([^a-z])/sprintf '%%%02x', ord $1/ge;
        my @got;
        for my $round ( 1, 2 ) {
            my $answer = $server->ask( "GET /do?$query", 'X-Logged: yes', @$fields );
            push @got, $answer->status eq '200' && length $answer->body ? $answer->body : $answer->status;
            select undef, undef, undef, 0.15 if $what =~ /signal/;
            push @got, grep { $_ ne $worker } $beside->ask('GET /')->body, $server->ask('GET /')->body;
        }
        my $want = $ANSWER{$what} || 'ok';
        @got = map {s/\AInternal.*/500/sr} @got if $want eq '500';
        is "@got", "$want $want", $what;
    }
    return;
}

my @log = ( '--access-log', "$dir/log", '--access-log-format', '%h %m %U %{X-Logged}i %V' );
for my $case (
    [ 'without an access log'               => [],    [] ],
    [ 'with one'                            => \@log, [] ],
    [ 'a request whose %env is made for it' => \@log, [ 'X-Twice: 1', 'X-Twice: 2' ] ]
    )
{
    my ( $name, $log, $fields ) = @$case;
    subtest $name => sub {
        my $server = start_server( $app, qw(--workers 1), @$log );
        my ($worker) = $server->workers;
        try_all( $server, $worker, $fields, split /\n/, $server->ask('GET /all')->body );
        is $server->ask('GET /input')->body, 'GLOBIO::File', 'psgi.input of the next is as it was';
        is $server->crashes,                 0,              'nothing crashed';
        is_deeply [ $server->workers ], [$worker], 'one worker, and no child of it that serves';
        $server->stop;
    };
}

# A hash that serves again is cleaned before: what was looked at already may be changed by a DESTROY of what
# comes later, and a weak reference does not count as a holder
subtest 'the next request is out of reach' => sub {
    my $server = start_server( <<'APP', qw(--workers 1) );
package Guard { sub DESTROY { $_[0][0]->() } }
package main;
use Scalar::Util qw(weaken);
our %weak;
sub spoil {
    my $env = shift;
    close $env->{'psgi.input'};
    push @{ $env->{$_} }, 7 for qw(psgi.version psgix.cleanup.handlers);
    $env->{$_} = \'evil' for qw(REQUEST_METHOD PATH_INFO HTTP_HOST SERVER_NAME psgi.url_scheme);
}
my %do = (
    ( map { my $key = $_; ( "/guard/$key" => sub { my $env = shift; weaken $env; $env->{$key} = bless [ sub { spoil($env) } ], 'Guard' } ) }
        qw(REQUEST_METHOD REMOTE_PORT psgi.input psgix.io psgi.version psgix.input.buffered HTTP_HOST CONTENT_LENGTH new) ),
    '/weak' => sub { my $env = shift; weaken( $weak{$_} = $env->{$_} ) for qw(psgi.input psgi.version psgix.cleanup.handlers psgix.io); weaken( $weak{io} = *{ $env->{'psgi.input'} }{IO} ) },
);
sub {
    my $env = $_[0];
    my $do  = $do{ $env->{PATH_INFO} };
    if ($do) { $do->( $_[0] ); return [ 200, [], ['done'] ] }
    if ( $env->{QUERY_STRING} ) {
        no strict 'refs';
        @{ $weak{$_} } = ( 7, 8, 9 ) for grep { $weak{$_} } qw(psgi.version psgix.cleanup.handlers);
        bless $weak{io}, 'Odd' if $weak{io};
        close $weak{'psgi.input'} if $weak{'psgi.input'};
    }
    my $body = join '', readline $env->{'psgi.input'};
    return [ 200, [], [ join '|', @{$env}{qw(REQUEST_METHOD HTTP_HOST SERVER_NAME psgi.url_scheme)}, @{ $env->{'psgi.version'} },
        scalar @{ $env->{'psgix.cleanup.handlers'} }, ref *{ $env->{'psgi.input'} }{IO}, $body ] ];
}
APP
    my $client = $server->connect;
    my $scheme = $ENV{SIRIUS_TEST_TLS} ? 'https' : 'http';
    my $right  = "POST|a|127.0.0.1|$scheme|1|1|0|IO::File|body";
    for my $what (
        map( {"/guard/$_"}
            qw(REQUEST_METHOD REMOTE_PORT psgi.input psgix.io psgi.version psgix.input.buffered HTTP_HOST CONTENT_LENGTH new)
        ),
        '/weak'
        )
    {
        my @got = map { $client->ask( "POST $_", \'body' )->body } $what, '/look?weak', '/look';
        is_deeply \@got, [ 'done', $right, $right ], $what;
    }
    is $server->crashes, 0, 'nothing crashed';
    $server->stop;
};

# Two workers, and a DESTROY that takes its time: the other worker serves all clients, those of its worker too
subtest 'a slow DESTROY keeps nobody waiting' => sub {
    my $server = start_server( <<'APP', qw(--workers 2) );
package Slow { sub DESTROY { select undef, undef, undef, 0.01 while -e $_[0][0] } sub getline { } sub close { } }
package main;
sub {
    my $env = shift;
    my $slow = bless [ $env->{QUERY_STRING} ], 'Slow';
    return [ 200, [ 'X-Worker' => $$ ], $slow ] if $env->{PATH_INFO} eq '/body';
    $env->{'x.slow'} = $slow if $env->{PATH_INFO} eq '/env';
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { my $keep = $slow } if $env->{PATH_INFO} eq '/handler';
    return [ 200, [ 'X-Worker' => $$ ], [$$] ];
}
APP
    for my $where (qw(body env handler)) {
        my %of;
        for ( 1 .. 12 ) {
            my $client = $server->connect;
            push @{ $of{ $client->ask('GET /?none')->header('X-Worker') } }, $client;
        }
        my ($most) = sort { @{ $of{$b} } <=> @{ $of{$a} } } keys %of;
        my ( $slow, @others ) = @{ $of{$most} };
        spew( "$dir/slow-$where", '' );
        $slow->send( request("GET /$where?$dir/slow-$where") );
        $slow->response;
        my @got = map { $_->ask('GET /?none')->status } @others;
        ok -e "$dir/slow-$where", 'it has not ended';
        is "@got", join( ' ', ('200') x @others ), @others . " others are answered during a slow $where";
        unlink "$dir/slow-$where";
    }
    $server->stop;
};

# Of a library that the application has loaded: no perl is in it. It ends before the worker: perl panics if
# somebody forks while it ends
subtest 'a thread in C that forks' => sub {
    spew( "$dir/forks.c", <<"SOURCE" );
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *run(void *none)
{
    while (access("$dir/enough", F_OK)) {
        usleep(20000);
        pid_t pid = fork();
        if (!pid)
            _exit(0);
        waitpid(pid, 0, 0);
    }
    close(open("$dir/ended", O_CREAT | O_WRONLY, 0644));
    return none;
}
__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
}
SOURCE
    my $built = system("$Config{cc} -shared -fPIC -pthread -o $dir/forks.so $dir/forks.c") == 0;
    ok $built, 'a library with a thread that forks';
    my $server = start_server( <<"APP", qw(--workers 1) );
use DynaLoader ();
use Time::HiRes ();
my \$library;
sub {
    my \$env = shift;
    \$library ||= DynaLoader::dl_load_file('$dir/forks.so') or die DynaLoader::dl_error();
    my \$io = \$env->{'psgix.io'};
    Time::HiRes::sleep(0.3);
    return [ 200, [], [\$\$] ];
}
APP
    my ($worker) = $server->workers;
    is $server->ask('GET /')->body, $worker, "request $_" for 1 .. 3;
    is $server->crashes,            0,       'nothing crashed';
    spew( "$dir/enough", '' );
    ok until_true( 20, sub { -e "$dir/ended" } ), 'the thread has ended';
    $server->stop;
};

subtest 'threads of the application' => sub {
    plan skip_all => 'this perl has no threads' if !$Config{useithreads};
    my $server = start_server( <<'APP', qw(--workers 1 --access-log), "$dir/threads" );
use threads;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    my $io   = $env->{'psgix.io'};
    my $do   = {
        '/plain' => sub {42},
        '/env'   => sub { my %copy = %$env; join ',', map { defined $_ ? 1 : 0 } @copy{qw(PATH_INFO psgix.io)} },
        '/io'    => sub { my $n = fileno $io; my $done = syswrite $io, 'x'; ( defined $n ? $n : 'undef' ) . ( $done ? ' written' : ' not' ) },
        '/hint'  => sub { eval { $env->{'psgix.informational'}->( 103, [ Link => 'x' ] ); 1 } ? 'ok' : 'died' },
        '/board' => sub { my $board = Sirius::Scoreboard->current; Sirius::Scoreboard->mark('x'); defined $board ? 'a board' : 'none' },
        '/input' => sub { my $in = $env->{'psgi.input'}; join '', <$in> },
        '/many'  => sub { join ',', map { $_->join } map { my $n = $_; threads->create( sub {$n} ) } 1 .. 5 },
    }->{$path} or return [ 200, [], [$$] ];
    return sub {
        my $respond = shift;
        my $writer  = $respond->( [ 200, [] ] );
        my $got = threads->create( sub { eval { $writer->write('from the thread') }; eval { $respond->( [ 200, [], [] ] ) }; $do->() } )->join;
        $writer->write($got);
        $writer->close;
    } if $env->{QUERY_STRING};
    return [ 200, [], [ threads->create($do)->join ] ];
}
APP
    my %want = (
        plain => 42,
        env   => $ENV{SIRIUS_TEST_H2} ? '1,0'       : '1,1',      # there is no psgix.io
        io    => $ENV{SIRIUS_TEST_H2} ? 'undef not' : '-1 not',
        hint  => 'ok',
        board => 'none',
        input => 'a body',
        many  => '1,2,3,4,5'
    );
    my $client = $server->connect;
    my ($worker) = $server->workers;
    for my $what ( sort keys %want ) {
        for my $writer ( '', '?writer' ) {
            my $answer = $client->ask( "POST /$what$writer", \'a body' );
            is $answer->body,               $want{$what}, "$what$writer";
            is $client->ask('GET /')->body, $worker,      'the connection goes on, and the worker';
        }
    }
    is $server->crashes, 0, 'nothing crashed';
    $server->stop;
};

done_testing;
