use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# What an application leaves behind is freed after its response, and what it returns or writes is looked at
# before: its code runs in both places. There it may sleep, and no other client waits; die, and the worker
# goes on; or fork, and the child serves nobody.

my $dir = File::Temp->newdir;

# Whether a client that comes while a worker is busy in the application gets an answer of the edge
sub greeted {
    my ($server) = @_;
    my $client = $server->connect;
    $client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
    return $client->some(12) =~ /\AHTTP\/1\.1 100 / ? 'continue' : 'silence';
}

my $busy = <<'APP';
use POSIX ();
package Busy;
sub new  { bless [ $_[1] ], $_[0] }
sub wait { my $file = shift; open my $mark, '>', "$file.in"; my $n = 0; select undef, undef, undef, 0.02 while -e $file && $n++ < 400; unlink "$file.in" }
sub fork { my $pid = CORE::fork; my $n = 0; select undef, undef, undef, 0.02 while $pid && !waitpid( $pid, POSIX::WNOHANG ) && $n++ < 150 }
sub DESTROY { my ($do) = @{ $_[0] }; $do->() }
package main;
APP

# While the code waits, everybody else goes on
sub waits_alone {
    my ( $server, $path, $file, $name ) = @_;
    spew( $file, '' );
    my $client = $server->connect;
    $client->send( request("GET $path") );
    ok until_true( 10, sub { -e "$file.in" } ), "$name: it is busy";
    is greeted($server), 'continue', "$name: a neighbour is looked at";
    ok -e "$file.in", "$name: and it has not ended meanwhile";
    unlink $file;
    is $client->response->body, 'ok', "$name: the response";
    return;
}

subtest 'a closure that is returned' => sub {
    my $file   = "$dir/closure";
    my $server = start_server( $busy . "my \$file = '$file';\n" . <<'APP', qw(--workers 1) );
my $worker;
sub {
    my ($env) = @_;
    $worker ||= $$;
    return [ 200, [], ["$$ of $worker"] ] if $env->{PATH_INFO} eq '/';
    my $busy = Busy->new( $env->{PATH_INFO} eq '/fork' ? \&Busy::fork : sub { Busy::wait($file) } );
    return sub { my $hold = $busy; $_[0]->( [ 200, [], ['ok'] ] ) };
}
APP
    my ($worker) = $server->workers;
    my $client = $server->connect;
    $client->ask('GET /') for 1 .. 3;    # the hash of this shape has been used, and is clean
    waits_alone( $server, '/wait', $file, 'its DESTROY waits' );
    is $server->ask('GET /fork')->body, 'ok', 'its DESTROY forks';
    my @got = map { $server->connect->ask('GET /')->body } 1 .. 6;
    is "@got",           join( ' ', ("$worker of $worker") x 6 ), 'the child serves nobody';
    is $server->crashes, 0,                                       'nothing crashed';
    $server->stop;
};

# Of an object with an overloaded &{} perl keeps the sub until the request is over
subtest 'an application that is an object' => sub {
    my $file   = "$dir/object";
    my $server = start_server( $busy . "my \$file = '$file';\n" . <<'APP', qw(--workers 1) );
my $wait;
package App { use overload fallback => 1, bool => sub {1}, '&{}' => sub { my $busy = Busy->new( sub { Busy::wait($file) if $wait; $wait = 0 } ); sub { my $hold = $busy; $wait = $_[0]{PATH_INFO} eq '/wait'; [ 200, [], ['ok'] ] } } }
bless [], 'App';
APP
    my $client = $server->connect;
    $client->ask('GET /') for 1 .. 3;
    waits_alone( $server, '/wait', $file, 'what its sub holds' );
    is $client->ask('GET /')->body, 'ok', 'the worker goes on';
    is $server->crashes,            0,    'nothing crashed';
    $server->stop;
};

for my $mode ( [qw(--workers 1)], [qw(--workers 0)] ) {
    subtest "a close that dies, @$mode" => sub {
        my $server = start_server( <<'APP', @$mode );
use Time::HiRes ();
package Layer  { sub PUSHED { bless [], $_[0] } sub FILL { undef } sub WRITE { length $_[1] } sub FLUSH { 0 } sub POPPED { die "in POPPED\n" if ${^GLOBAL_PHASE} ne 'DESTRUCT'; 0 } }
package Handle { sub of { open my $fh, '<:via(Layer)', $0 or die "open: $!"; $fh } }
package Owner  { sub DESTROY { Time::HiRes::ualarm(300_000) } }
package main;
my %do = (
    '/pipe'      => sub { my $pid = open my $pipe, '-|', qw(sleep 6) or die; $SIG{ALRM} = sub { kill KILL => $pid; die "time is over\n" }; $_[0]{owner} = bless [$pipe], 'Owner'; 0 },
    '/env'       => sub { $_[0]{'my.fh'} = Handle::of(); 0 },
    '/env/twice' => sub { @{ $_[0] }{qw(a b c)} = map { Handle::of() } 1 .. 3; 0 },
    '/known'     => sub { $_[0]{HTTP_HOST} = Handle::of(); $_[0]{PATH_INFO} = Handle::of(); 0 },
    '/io'        => sub { binmode $_[0]{'psgix.io'}, ':via(Layer)' or die "binmode: $!"; 0 },
    '/input'     => sub { binmode $_[0]{'psgi.input'}, ':via(Layer)' or die "binmode: $!"; 0 },
    '/response'  => sub { [ 200, [ 'X-A' => 1 ], bless( [ Handle::of() ], 'Body' ) ] },
    '/closure'   => sub { my $fh = Handle::of(); sub { my $hold = $fh; $_[0]->( [ 200, [], ['ok'] ] ) } },
    '/exception' => sub { die [ Handle::of() ] },
    '/reference' => sub { my $env = $_[0]; $_[0] = Handle::of(); 0 },
);
sub Body::getline { undef }
sub Body::close { 1 }
sub {
    my $path = $_[0]{PATH_INFO};
    return [ 200, [], [ join ' ', $$, sort keys %{ $_[0] } ] ] if !$do{$path};
    return $do{$path}->( $_[0] ) || [ 200, [], ['ok'] ];
}
APP
        my $client = $server->connect;
        my $worker = $client->ask('GET /')->body;
        my $died   = 0;
        for my $path (qw(/pipe /env /env/twice /known /io /input /response /closure /exception /reference)) {
            next if $path eq '/io' && !http1( $path, 'a stream has no psgix.io' );
            for my $round ( 1, 2 ) {
                my $want = $path eq '/exception' ? 500 : 200;
                is $server->ask("GET $path")->status, $want, "$path: the response";
                is $client->ask('GET /')->body, $worker,
                    "$path: the worker goes on, and its next %env is clean";
            }
            my $all = ()
                = $server->log =~ /a destructor died after the request: (?:in POPPED|time is over)$/mg;
            cmp_ok $all, '>=', $died + 2, "$path: the log has it";
            $died = $all;
        }
        is $server->crashes, 0, 'nothing crashed';
        $server->stop;
    };
}

subtest 'a handle of the body' => sub {
    my $file = "$dir/layer";
    spew( "$dir/text", "some text\n" );
    my $server = start_server(
        $busy . "my ( \$file, \$text ) = ( '$file', '$dir/text' );\n" . <<'APP', qw(--workers 1) );
use Encode;
use PerlIO::encoding;
my ( $now, $path, $worker );
sub now { return if !$now || $path ne $_[0]; $now = 0; $path =~ /wait/ ? Busy::wait($file) : $path =~ /fork/ ? Busy::fork() : die "in $_[0]\n" }
package Layer { sub PUSHED { bless [], $_[0] } sub FILL { my $line = readline $_[1]; defined $line ? uc $line : undef } sub POPPED { 0 } sub GETARG { main::now($_) for qw(/getarg /wait /fork); 'x' } }
package Odd { use parent 'Encode::Encoding'; __PACKAGE__->Define('odd'); sub decode { my $text = $_[1]; $_[1] = ''; uc $text } sub renew { $_[0] } sub renewed { 0 } sub perlio_ok { 1 } sub name { main::now('/name'); 'odd' } sub mime_name { main::now('/name'); 'odd' } }
package NoOrder::A { } package NoOrder::B { our @ISA = 'NoOrder::A' } package NoOrder { use mro 'c3'; our @ISA }
package Unloaded { our @ISA = 'Not::Loaded'; sub DESTROY { } sub close { } }
package Own      { our @ISA = 'IO::File'; sub getline { my $line = readline $_[0]; defined $line ? "own $line" : undef } }
package Heir     { our @ISA = 'IO::File' }
package main;
require IO::File;
eval { @NoOrder::ISA = ( 'NoOrder::A', 'NoOrder::B' ) };
my $open = sub { open my $fh, "<$_[0]", $text or die "open: $!"; $fh };
my %do = (
    '/getarg' => sub { $open->(':via(Layer)') },
    '/wait'   => sub { $open->(':via(Layer)') },
    '/fork'   => sub { $open->(':via(Layer)') },
    '/name'   => sub { $open->(':encoding(odd)') },
    '/c3'     => sub { bless $open->(''), 'NoOrder' },
    '/warn'   => sub { $SIG{__WARN__} = sub { delete $SIG{__WARN__}; die "fatal: $_[0]" }; bless $open->(''), 'Unloaded' },
    '/own'    => sub { bless $open->(''), 'Own' },
    '/heir'   => sub { bless $open->(''), 'Heir' },
    '/crlf'   => sub { $open->(':crlf') },
    '/none'   => sub { $open->('') },
    '/io'     => sub { my $fh = $open->(''); *{$fh}{IO} },
);
sub {
    $path = $_[0]{PATH_INFO};
    $SIG{__WARN__} = 'DEFAULT';
    $worker ||= $$;
    return [ 200, [], ["$$ of $worker"] ] if !$do{$path};
    my $body = $do{$path}->();
    $now = 1;
    return [ 200, [ 'X-Path' => $path ], $body ];
}
APP
    my ($worker) = $server->workers;
    my $client   = $server->connect;
    my %want     = (
        '/none' => "some text\n",
        '/io'   => "some text\n",
        '/heir' => "some text\n",
        '/crlf' => "some text\n",
        '/own'  => "own some text\n",
        '/c3'   => 500,
        '/warn' => 500,
    );
    for my $path (qw(/getarg /name /fork /c3 /warn /own /heir /crlf /none /io)) {
        my $want = $want{$path} || "SOME TEXT\n";
        for my $round ( 1, 2 ) {
            my $answer = $client->ask("GET $path");
            my $other  = $server->connect->ask('GET /');
            is $answer->status eq '200' ? $answer->body : $answer->status, $want, "$path: the response";
            is $client->ask('GET /')->body, "$worker of $worker", "$path: the connection goes on";
            is $other->body,                "$worker of $worker", "$path: and the worker";
        }
    }
    like $server->log, qr{GET /c3 from .*: the response is invalid: Inconsistent hierarchy},
        'the log says what is wrong with a class';
    like $server->log, qr{GET /warn from .*: the response is invalid: fatal: },
        'and what a warning has died of';
    is $server->crashes, 0, 'nothing crashed';
    $server->stop;
};

subtest 'what is written, and a label' => sub {
    my $server = start_server( <<'APP', qw(--workers 1) );
package Forks  { use overload '""' => sub { my $pid = fork; waitpid $pid, 0 if $pid; "from $$\n" } }
package Labels { use overload '""' => sub { my $pid = fork; if ( !defined $pid || $pid ) { waitpid $pid, 0 if $pid } else { $main::child = 1 } "label of $$" } }
package Closes { use overload '""' => sub { $_[0][0]->close; "too late\n" } }
package main;
sub {
    my $path = $_[0]{PATH_INFO};
    my $pid  = $$;
    if ( $path eq '/mark' ) {
        our $child = 0;
        Sirius::Scoreboard->mark( bless [], 'Labels' );
        POSIX::_exit(0) if $child;
        my $board = Sirius::Scoreboard->current;
        my ($row) = grep { $_->{pid} == $$ } map { $board->row($_) } 0 .. $board->rows - 1;
        return [ 200, [], ["$row->{mark} in $$"] ];
    }
    return sub {
        my $writer = $_[0]->( [ 200, [] ] );
        $writer->write("worker $pid\n");
        $writer->write( $path eq '/close' ? bless [$writer], 'Closes' : bless [], 'Forks' );
        $writer->write("end\n");
        $writer->close;
    };
}
APP
    my ($worker) = $server->workers;
    my $client = $server->connect;
    for my $round ( 1, 2 ) {
        is $client->ask('GET /write')->body, "worker $worker\nfrom $worker\nend\n",
            'a child writes nothing of its parent';
        is $client->ask('GET /close')->body, "worker $worker\n",            'nothing comes behind the end';
        is $client->ask('GET /mark')->body,  "label of $worker in $worker", 'the label is that of the worker';
    }
    is $server->crashes, 0, 'nothing crashed';
    $server->stop;
};

done_testing;
