use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# All kinds of bodies that PSGI knows

my $server = start_server( <<'APP', qw(--workers 1) );
use IO::File;
use IO::Handle;
use File::Temp;
my $file = File::Temp->new;
print {$file} "one\ntwo\nthree\n";
$file->flush;
package Getline  { my $closed = 0; sub new { my $c = shift; bless { list => [@_] }, $c } sub getline { shift @{ $_[0]{list} } } sub close { $closed++ } sub closed { $closed } }
package Recorder { our @ISA = 'Getline'; our @SIZE; sub getline { push @SIZE, ref $/ ? ${$/} : 'line'; shift @{ $_[0]{list} } } }
package Path     { our @ISA = 'Getline'; sub path { "$file" } }
package NoClose  { sub new { bless [ 1, 2 ], shift } sub getline { shift @{ $_[0] } } }
package Locked   { our @ISA = 'IO::File'; our @closed; sub close { my $self = shift; push @closed, ref $self; return $self->SUPER::close } }
package Lines    { our @ISA = 'Locked'; sub getline { my $self = shift; return scalar readline $self } }
package Titled   { our @ISA = 'Locked'; sub path { "$file" } }
package Stands   { our @closed; sub new { bless {}, shift } sub getline { die "not asked\n" } sub path { "$file" } sub close { push @closed, ref shift; return 1 } }
package Dies     { our @ISA = 'IO::File'; sub close { die "in close\n" } }
package Mute     { }
package Bytes    { use overload '""' => sub {'overloaded'}, fallback => 1; sub new { bless [], shift } }
package Tied     { require Tie::Handle; our @ISA = 'Tie::Handle'; sub TIEHANDLE { bless [ 'tied ', 'handle' ], shift } sub READLINE { shift @{ $_[0] } } sub CLOSE {1} }
package main;
my ( $utf8, $kept ) = "caf\xe9";
utf8::upgrade($utf8);
my %body = (
    array    => sub { [ 'a', 'bc', '', 'def' ] },
    numbers  => sub { [ 1, 2.5, 0, -3 ] },
    upgraded => sub { [$utf8] },
    objects  => sub { [ Bytes->new ] },
    many     => sub { [ map {"$_,"} 1 .. 20_000 ] },
    large    => sub { [ 'x' x 5_000_000, 'y' x 5_000_000 ] },
    handle   => sub { open my $fh, '<', "$file" or die $!; $fh },
    iofile   => sub { IO::File->new( "$file", 'r' ) },
    iohandle => sub { my $io = IO::Handle->new; open $io, '<', "$file" or die $!; $io },
    glob     => sub { no warnings; open GLOB, '<', "$file" or die $!; \*GLOB },
    memory   => sub { my $text = "in\nmemory"; open my $fh, '<', \$text or die $!; $fh },
    layer    => sub { open my $fh, '<:crlf', "$file" or die $!; $fh },
    pipe     => sub { open my $fh, '-|', 'echo from a pipe' or die $!; $fh },
    getline  => sub { Getline->new( 'a', 'b', 'c' ) },
    record   => sub { Recorder->new( 'r', 's' ) },
    noclose  => sub { NoClose->new },
    path     => sub { Path->new('not this') },
    tied     => sub { tie *TIED, 'Tied'; \*TIED },
    closed   => sub { [ Getline->closed ] },
    locked   => sub { Locked->new( "$file", 'r' ) },
    lines    => sub { Lines->new( "$file", 'r' ) },
    titled   => sub { Titled->new( "$file", 'r' ) },
    stands   => sub { Stands->new },
    kept     => sub { open $kept, '<', "$file" or die $!; $kept },
    keptio   => sub { $kept = IO::File->new( "$file", 'r' ) },
    mute     => sub { open my $fh, '<', "$file" or die $!; $kept = bless $fh, 'Mute' },
    dies     => sub { Dies->new( "$file", 'r' ) },
    sysfs    => sub { open my $fh, '<', '/sys/devices/system/cpu/online' or die $!; $fh },
    closes   => sub { [ join q( ), @Locked::closed, @Stands::closed ] },
    open     => sub { [ defined fileno $kept ? 'open' : 'closed' ] },
    sizes    => sub { [ join ',', @Recorder::SIZE ] },
    pwd      => sub { open my $fh, '<', '/dev/null' or die $!; $fh },
    proc     => sub { open my $fh, '<', '/proc/self/status' or die $!; $fh },
);
sub { my $name = substr $_[0]{PATH_INFO}, 1; [ 200, [ 'Content-Type' => 'text/plain' ], $body{$name}->() ] }
APP

my $LINES = "one\ntwo\nthree\n";
my %WANT  = (
    array    => 'abcdef',
    getline  => 'abc',
    glob     => $LINES,
    handle   => $LINES,
    iofile   => $LINES,
    iohandle => $LINES,
    large    => 'x' x 5_000_000 . 'y' x 5_000_000,
    layer    => $LINES,
    many     => join( '', map {"$_,"} 1 .. 20_000 ),
    memory   => "in\nmemory",
    noclose  => '12',
    numbers  => '12.50-3',
    objects  => 'overloaded',
    path     => $LINES,
    pipe     => "from a pipe\n",
    pwd      => '',
    record   => 'rs',
    tied     => 'tied handle',
    upgraded => "caf\xe9",
);

subtest 'on one connection' => sub {
    my $client = $server->connect;
    is $client->ask("GET /$_")->body, $WANT{$_}, $_ for sort keys %WANT;
};

subtest 'over HTTP/1.0' => sub {
    http1_only('HTTP/1.0');
    is $server->ask("GET /$_ HTTP/1.0")->body, $WANT{$_}, $_ for sort keys %WANT;
};

subtest 'HEAD' => sub {
    my $client = $server->connect;
    is $client->ask("HEAD /$_")->status, 200,      $_ for sort keys %WANT;
    is $client->ask('GET /array')->body, 'abcdef', 'no body was left on the connection';
};

subtest 'a file whose size says 0 but which is not empty' => sub {
    like $server->ask('GET /proc')->body, qr/^Name:/, 'is sent';
};

subtest 'a file whose size says more than there is' => sub {
    open my $in, '<', '/sys/devices/system/cpu/online' or die "open: $!";
    my $want   = <$in>;
    my $client = $server->connect;
    cmp_ok -s $in, '>', length $want, 'the size is not its own';
    is $client->ask('GET /sysfs')->body,                      $want,        'its content';
    is $client->ask('HEAD /sysfs')->header('Content-Length'), length $want, 'and its length';
    is $server->ask('GET /sysfs HTTP/1.0')->body, $want, 'in HTTP/1.0' if http1( 'sysfs', 'HTTP/1.0' );
};

subtest 'handles are closed' => sub {
    my $client = $server->connect;
    is $client->ask("GET /$_")->body,        $LINES, "a body: $_" for qw(locked lines titled stands);
    is $client->ask('GET /closes')->body,    'Locked Lines Titled Stands', 'each by its own close, once';
    is $client->ask('HEAD /locked')->status, 200,                          'for HEAD';
    is $client->ask('GET /closes')->body,    'Locked Lines Titled Locked Stands', 'too';
    for my $name (qw(kept keptio)) {
        is $client->ask("GET /$name")->body, $LINES,   "a body: $name";
        is $client->ask('GET /open')->body,  'closed', 'which the application has kept';
    }
    is $client->ask('GET /mute')->body, $LINES, 'one whose class has no close';
    is $client->ask('GET /open')->body, 'open', 'stays open';
    is $client->ask('GET /dies')->body, $LINES, 'one whose close dies';
    ok $server->wait_log(qr{GET /dies from .*: the close of the body died: in close}),
        'costs a line of the log';
    is $client->ask('GET /array')->body, 'abcdef', 'and nothing else';
};

subtest 'objects are closed, and asked for blocks, not for lines' => sub {
    my $before = $server->ask('GET /closed')->body;
    $server->ask('GET /getline') for 1 .. 3;
    is $server->ask('GET /closed')->body - $before, 3, 'closed once each';
    unlike $server->ask('GET /sizes')->body, qr/line/, '$/ is a reference to a size';
};

$server->stop;
done_testing;
