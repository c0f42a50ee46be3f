use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Fcntl      qw(O_NOCTTY O_RDWR);
use File::Temp ();
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP ();
use POSIX    ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# sirius top, with a server whose answers the test chooses, then with a real one

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
my $json = JSON::PP->new->utf8->canonical;

delete $ENV{SIRIUS_ADMIN};
$ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
my @TOP = ( $^X, "$root/bin/sirius", 'top' );

my @children;

END {
    my $status = $?;
    for my $pid (@children) {
        kill KILL => $pid;
        waitpid $pid, 0;
    }
    $? = $status;
}

sub child {
    my $code = shift;
    my $pid  = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        $SIG{$_} = 'DEFAULT' for qw(HUP INT PIPE TERM);
        eval { $code->() };
        POSIX::_exit(127);
    }
    push @children, $pid;
    return $pid;
}

# A server in a child that answers each request with the same bytes
sub fake {
    my ( $socket, $answer ) = @_;
    my $parent = $$;
    return child( sub {
        $SIG{ALRM} = sub { POSIX::_exit(0) if getppid != $parent; alarm 1 };
        alarm 1;
        while (1) {
            my $client = $socket->accept or next;
            sysread $client, my $request, 4096;
            syswrite $client, $answer;
        }
    } );
}

sub listening {
    return IO::Socket::INET->new( Listen => 5, LocalAddr => '127.0.0.1', ReuseAddr => 1 ) || die $@;
}

sub ok_with { return "HTTP/1.1 200 OK\r\nContent-Length: " . length( $_[0] ) . "\r\n\r\n$_[0]" }

# Exit status, STDOUT and STDERR
sub top {
    my @args = @_;
    my $pid  = child( sub {
        open STDIN,  '<', '/dev/null' or die;
        open STDOUT, '>', "$dir/out"  or die;
        open STDERR, '>', "$dir/err"  or die;
        exec @TOP, @args;
    } );
    until_true( 60, sub { waitpid $pid, POSIX::WNOHANG() } ) or return 'it lasts';
    return ( $? & 127 ? "signal $?" : $? >> 8, map { Sirius::Test::Server::slurp("$dir/$_") } qw(out err) );
}

# Of Linux: linux/tty.h
use constant { TIOCGPTN => 0x8004_5430, TIOCSPTLCK => 0x4004_5431, TIOCSWINSZ => 0x5414 };

# sirius top in a terminal of its own
sub terminal {
    my ( $term, @args ) = @_;
    sysopen my $master, '/dev/ptmx', O_RDWR | O_NOCTTY or plan skip_all => "/dev/ptmx: $!";
    my $number = pack 'i', 0;
    ioctl $master, TIOCSPTLCK, $number or die "TIOCSPTLCK: $!";
    ioctl $master, TIOCGPTN,   $number or die "TIOCGPTN: $!";
    my $path = '/dev/pts/' . unpack 'i', $number;
    sysopen my $slave, $path, O_RDWR | O_NOCTTY or plan skip_all => "$path: $!";
    my $self = { master => $master, slave => $slave, out => '' };
    resize( $self, 90, 24 );
    $self->{before} = modes($self);
    $self->{pid}    = child( sub {
        POSIX::setsid();
        open STDIN,  '<',  $path    or die;    # makes it the controlling one
        open STDOUT, '>',  $path    or die;
        open STDERR, '>&', \*STDOUT or die;
        $ENV{TERM} = $term;
        exec @TOP, @args;
    } );
    return $self;
}

sub ended {
    my $self = shift;
    until_true( 30, sub { waitpid $self->{pid}, POSIX::WNOHANG() } );
    return $?;
}

sub modes {
    my $self    = shift;
    my $termios = POSIX::Termios->new;
    $termios->getattr( fileno $self->{slave} ) or die "termios: $!";
    return $termios->getlflag;
}

sub resize {
    my ( $self, $columns, $lines ) = @_;
    return ioctl $self->{master}, TIOCSWINSZ, pack 'S4', $lines, $columns, 0, 0;
}

# What comes until it matches; all that came before is forgotten
sub shows {
    my ( $self, $pattern, $name ) = @_;
    my $until = time + 30;
    while ( $self->{out} !~ $pattern ) {
        my $left = $until - time;
        vec( my $bits = '', fileno $self->{master}, 1 ) = 1;
        last if $left <= 0 || select( $bits, undef, undef, $left ) <= 0;
        sysread $self->{master}, $self->{out}, 65_536, length $self->{out} or last;
    }
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $found = $self->{out} =~ /$pattern(.*)\z/s ? $+ : undef;
    like $self->{out}, $pattern, $name;
    $self->{out} = $found if defined $found;
    return;
}

sub types { return syswrite shift->{master}, shift }

my %STATUS = (
    connections => { open  => 3, idle    => 1, waiting => 0 },
    latency     => { count => 0, buckets => [] },
    listeners   => ['http://127.0.0.1:5000/'],
    now         => 100,
    pid         => 4711,
    queue       => { count => 0, buckets => [] },
    started     => 1_700_000_000,
    stopping    => 0,
    time        => 1_700_000_090,
    totals      => { requests => 30, bytes => 0, responses => {} },
    uptime      => 10,
    version     => '1.23',
    wanted      => 1,
    workers     =>
        [ { pid => 31, state => 'busy', began => 90, since => 90, line => "GET /\x{9b}2J\x{e9}\e[1m" } ],
);

subtest 'One picture' => sub {
    my $tcp  = listening();
    my $unix = IO::Socket::UNIX->new( Listen => 5, Local => "$dir/admin" ) or die $!;
    fake( $_, ok_with( $json->encode( \%STATUS ) ) ) for $tcp, $unix;
    my $address = '127.0.0.1:' . $tcp->sockport;
    for my $to ( $address, "http://$address/", "$dir/admin", "unix:$dir/admin" ) {
        my ( $status, $out, $error ) = top( '--once', '--admin', $to );
        is "$status$error", 0, "$to: exit status 0";
        like $out,
            qr/\ASirius 1\.23, PID 4711, .* since the start\n.*\n     31 .* GET \/\\x9b2J\\xe9\\x1b\[1m\n\z/s,
            'a picture';
    }
    local $ENV{SIRIUS_ADMIN} = "$address, $dir/none";
    my ( $status, $out ) = top('--once');
    is $status, 0, 'the address of the environment';
    ( $status, $out ) = top(qw(--once --json));
    unlike $out, qr/[^\x20-\x7e\n]/, '--json: ASCII';
    is $out =~ tr/\n//, 1, 'one line';
    is_deeply $json->decode($out), $json->decode( $json->encode( \%STATUS ) ), 'with all of it';
};

subtest 'Pictures without a terminal' => sub {
    my $tcp  = listening();
    my $fake = fake( $tcp, ok_with( $json->encode( \%STATUS ) ) );
    open my $out, '-|', "@TOP --interval 0.1 --admin 127.0.0.1:" . $tcp->sockport . " 2>$dir/err" or die $!;
    my $pictures = 0;
    while ( $pictures < 3 && defined( my $line = readline $out ) ) { $pictures++ if $line =~ /^Sirius/ }
    is $pictures, 3, 'one after the other';
    kill KILL => $fake;
    waitpid $fake, 0;
    close $tcp;
    1 while defined readline $out;
    close $out;
    is $? >> 8, 1, 'the server has gone: exit status 1';
    like Sirius::Test::Server::slurp("$dir/err"), qr/\Asirius top: 127\.0\.0\.1:\d+: [^\n]+\n\z/,
        'and a line';
};

subtest 'What is no admin port' => sub {
    my $gone = listening();
    my %case = (
        '127.0.0.1:' . $gone->sockport => 'Connection refused',
        "$dir/none"                    => 'No such file or directory',
    );
    close $gone;
    my @sockets;
    for my $case (
        [   "HTTP/1.1 404 Not \e[2JFound\r\n\r\nno" =>
                'the answer is 404 Not \x1b[2JFound: not an admin port of Sirius'
        ],
        [ "SSH-2.0\r\n\r\n"                                => 'not an HTTP server' ],
        [ ''                                               => 'the connection was closed without an answer' ],
        [ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}" => 'the answer is incomplete' ],
        [ ok_with('{'),  'not an admin port of Sirius' ],
        [ ok_with('[]'), 'not an admin port of Sirius' ],
        [ ok_with('{}'), 'not an admin port of Sirius' ],
        )
    {
        push @sockets, listening();
        fake( $sockets[-1], $case->[0] );
        $case{ '127.0.0.1:' . $sockets[-1]->sockport } = $case->[1];
    }
    for my $address ( sort keys %case ) {
        my ( $status, $out, $error ) = top( '--once', '--admin', $address );
        is "$status $error$out", "1 sirius top: $address: $case{$address}\n", $case{$address};
    }
};

subtest 'Wrong usage' => sub {
    my $usage = 'see sirius top --help';
    my %case  = (
        '--admin x:1 --pid 1' => '--admin: cannot be combined with --pid',
        '--foo'               => "unknown option --foo; $usage",
        '--onc'               => "unknown option --onc; $usage",
        '--once now'          => "unexpected argument 'now'; $usage",
        '--admin shop'        =>
            q(--admin: 'shop' has no port: write shop:5000, or unix:shop or ./shop for a unix socket),
        '--interval'              => "--interval requires a value; $usage",
        '--interval 0 --admin x'  => '--interval: 0 is too small: the minimum is 0.1',
        '--interval 2w --admin x' =>
            q(--interval: '2w' is not a time: use a number of seconds, such as 30, 0.5, 500ms, 5m or 7d),
    );
    for my $words ( sort keys %case ) {
        my ( $status, $out, $error ) = top( split ' ', $words );
        is $status,      2,                             "'$words': exit status 2";
        is "$out$error", "sirius top: $case{$words}\n", 'one line';
    }
    is_deeply [ top('--help') ], [ 0, <<'HELP', '' ], '--help';
Usage: sirius top [options]

  --admin ADDRESS     Connect to the admin port at ADDRESS (default: the first in SIRIUS_ADMIN, or
                      the only server without --control)
  --control PATH      Connect to the control socket at PATH instead
  --pid PID           Watch the server with this PID
  --interval SECONDS  Ask the server again after this time (default: 2)
  --once              Print the figures once and exit
  --json              Print the answer of the server as one line of JSON
  --stack PID         Print what this worker does now, with its Perl stack, and exit
  -h, --help          Print this help and exit
HELP
};

subtest 'A server without an admin port' => sub {
    my $server = start_server( "sub { [ 200, [], ['hello'] ] }\n", '--workers', 2 );
    $server->ask('GET /');
    my ( $status, $out, $error ) = top( '--once', '--pid', $server->pid );
    is "$status$error", 0, 'is asked at its control socket';
    like $out,
        qr/\ASirius [\d.]+, app\.psgi on \S+, PID @{[ $server->pid ]}, .*^Workers +2 wanted, 2 idle\n.*^ *\d+ +1 idle/ms,
        'which has the figures';
    ( $status, $out ) = top( '--json', '--once', '--pid', $server->pid );
    is $json->decode($out)->{totals}{requests}, 1, 'as JSON, too';
    my $path = $server->dir . '/sirius-' . $server->pid . '.control';
    is + ( top( '--once', '--control', $path ) )[0], 0, '--control';
    $server->stop;
    ( $status, $out, $error ) = top( '--once', '--pid', $server->pid );
    is $status, 1, 'none';
    like $error, qr/\Asirius top: no server with the PID @{[ $server->pid ]}/, 'which it says';
};

subtest 'Keys' => sub {
    my $tcp = listening();
    fake( $tcp, ok_with( $json->encode( \%STATUS ) ) );
    my $terminal = terminal( 'xterm', '--interval', 60, '--admin', '127.0.0.1:' . $tcp->sockport );
    shows(
        $terminal,
        qr/\A.*Sirius 1\.23.*\r\nq quit  SPACE refresh now  \+ - every 60 s  s stack  \? help\e\[K/s,
        'the keys stand below the picture'
    );
    types( $terminal, '?' );
    shows( $terminal, qr/Latency  time from .*DOING .*\r\nq quit/s, '? explains the figures' );
    types( $terminal, '?' );
    shows( $terminal, qr/since the start.*\r\nq quit/s, 'and goes back' );
    types( $terminal, '-' );
    shows( $terminal, qr/- every 30 s/, '- asks more often' );
    types( $terminal, '-' x 9 );
    shows( $terminal, qr/- every 500 ms/, 'down to the least' );
    types( $terminal, '+' x 20 );
    shows( $terminal, qr/- every 60 s/, '+ less often' );
    shows( $terminal, qr/Sirius/,       'it is drawn on' );
    resize( $terminal, 30, 2 );
    shows( $terminal, qr/q quit  SPACE refresh now  \+ -(?! )/, 'they are cut to a narrow screen' );
    types( $terminal, 'q' );
    is ended($terminal), 0, 'q ends it';
};

subtest 'The space bar' => sub {
    my $tcp = listening();
    my ( $count, $file ) = ( 0, "$dir/asked" );
    child( sub {
        while ( my $client = $tcp->accept ) {
            sysread $client, my $request, 4096;
            syswrite $client, ok_with( $json->encode( { %STATUS, pid => 8000 + ++$count } ) );
        }
    } );
    my $terminal = terminal( 'xterm', '--interval', 60, '--admin', '127.0.0.1:' . $tcp->sockport );
    shows( $terminal, qr/PID 8001/, 'the first answer' );
    types( $terminal, ' ' );
    shows( $terminal, qr/PID 8002/, 'space: the next one at once' );
    types( $terminal, 'q' );
    ended($terminal);
};

my $LEFT = qr/\e\[\?25h\e\[\?1049l/;

subtest 'On a screen' => sub {
    my $tcp = listening();
    fake( $tcp, ok_with( $json->encode( \%STATUS ) ) );
    my @args = ( '--interval', 600, '--admin', '127.0.0.1:' . $tcp->sockport );
    for my $end (
        [ 'q',      sub { types( shift, 'q' ) } ],
        [ 'Ctrl-C', sub { types( shift, "\x03" ) } ],
        [ 'TERM',   sub { kill TERM => shift->{pid} } ]
        )
    {
        my ( $name, $code ) = @$end;
        my $terminal = terminal( 'xterm', @args );
        shows( $terminal, qr/\e\[\?1049h.*GET \/[^\r]*/s, 'a picture' );
        isnt modes($terminal), $terminal->{before}, 'single characters are read';
        $code->($terminal);
        shows( $terminal, $LEFT, "$name: the screen is given back" );
        is ended($terminal), 0,                   'exit status 0';
        is modes($terminal), $terminal->{before}, 'the terminal is as before';
    }
};

subtest 'Another size, and Ctrl-Z' => sub {
    my $tcp = listening();
    fake( $tcp, ok_with( $json->encode( \%STATUS ) ) );
    my $terminal = terminal( 'xterm', '--interval', 600, '--admin', '127.0.0.1:' . $tcp->sockport );
    shows( $terminal, qr/PID GEN STATE .* DOING/, 'wide' );
    resize( $terminal, 50, 10 );
    shows( $terminal, qr/PID STATE .* DOING/, 'narrow, at once' );
    types( $terminal, "\x1a" );
    shows( $terminal, $LEFT, 'Ctrl-Z gives the screen back' );
    ok until_true( 30, sub { waitpid( $terminal->{pid}, POSIX::WNOHANG() | POSIX::WUNTRACED() ) > 0 } ),
        'it stops';
    is modes($terminal), $terminal->{before}, 'the terminal is as before';
    kill CONT => $terminal->{pid};
    shows( $terminal, qr/\e\[\?1049h.*DOING/s, 'fg: the picture is back' );
    types( $terminal, 'q' );
    is ended($terminal), 0, 'exit status 0';
};

subtest 'The server goes and comes back' => sub {
    my $tcp      = listening();
    my $port     = $tcp->sockport;
    my $fake     = fake( $tcp, ok_with( $json->encode( \%STATUS ) ) );
    my $terminal = terminal( 'xterm', '--interval', 0.1, '--admin', "127.0.0.1:$port" );
    shows( $terminal, qr/\e\[HSirius 1\.23/, 'a picture' );
    kill KILL => $fake;
    waitpid $fake, 0;
    close $tcp;
    shows( $terminal, qr/\e\[H127\.0\.0\.1:$port: [^\r]+; trying again.*Sirius 1\.23/s, 'it is asked on' );
    my $again
        = IO::Socket::INET->new( Listen => 5, LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1 );
    plan skip_all => "port $port is taken" if !$again;
    fake( $again, ok_with( $json->encode( { %STATUS, version => '1.24' } ) ) );
    shows( $terminal, qr/\e\[HSirius 1\.24/, 'and is back' );
    types( $terminal, 'q' );
    is ended($terminal), 0, 'exit status 0';
};

subtest 'A dumb terminal' => sub {
    my $tcp = listening();
    fake( $tcp, ok_with( $json->encode( \%STATUS ) ) );
    my $terminal = terminal( 'dumb', '--interval', 0.1, '--admin', '127.0.0.1:' . $tcp->sockport );
    shows( $terminal, qr/\A[\x20-\x7e\r\n]*Sirius[^\e]*Sirius[^\e]*Sirius/, 'one picture after the other' );
    kill INT => $terminal->{pid};
    is ended($terminal), 2, 'until Ctrl-C';
};

subtest 'A real server' => sub {
    my $server = start_server( <<"APP", '--workers', 1, '--admin', "$dir/real" );
sub { select undef, undef, undef, 0.02 until -e "$dir/go"; [ 200, [], ['done'] ] }
APP
    my $client = $server->connect;
    $client->send( request('GET /stuck') );
    my $picture;
    ok until_true( 30,
        sub { ( undef, $picture ) = top( '--once', '--admin', "$dir/real" ); $picture =~ m{ GET /stuck$}m } ),
        'what its worker does';
    my @edge = $picture =~ /^Edge +PID (\d+), up \d[^,]*, 1 open, 0 idle, 0 waiting, [\d.]+ MB$/mg;
    is_deeply \@edge, [ $server->edges ], 'and who has its connection, if it is another process'
        or diag $picture;
    open my $go, '>', "$dir/go" or die $!;
    is $client->response->status, 200, 'it is answered';
    $server->stop;
};

done_testing;
