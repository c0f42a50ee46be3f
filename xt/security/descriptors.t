use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use POSIX      ();
use Socket     qw(AF_INET INADDR_LOOPBACK SOCK_STREAM pack_sockaddr_in unpack_sockaddr_in);
use Test::More;
use Sirius::Test;

# Programs that an application starts get descriptors 0 to 2 and none of the server's: not while it loads, not
# while it serves, in no kind of process

# What this test has from who runs it. What perl itself has opened is closed on exec
BEGIN {
    for my $fd ( grep { $_ > 2 && defined readlink "/proc/self/fd/$_" } 0 .. 4095 ) {
        my ($flags) = Sirius::Test::Server::slurp("/proc/self/fdinfo/$fd") =~ /^flags:\s*(\d+)/m;
        POSIX::close($fd) if defined $flags && !( oct($flags) & oct 2_000_000 );
    }
}

my $root = $Sirius::Test::Server::ROOT;
my $top  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
chmod 0755, "$top" or die $!;    # for the other user
my ( $dir, $cases, $daemon ) = ( '', 0 );

END {
    my $status = $?;
    kill KILL => -$daemon if $daemon;
    $? = $status;
}

# Tells in a file what it has: "0 1 2"
my $PROBE = <<'PROBE';
my ( $name, @fd ) = ( pop, grep { defined readlink "/proc/self/fd/$_" } 0 .. 4095 );
my @what = map { $_ < 3 ? $_ : "$_=" . readlink "/proc/self/fd/$_" } @fd;
open my $out, '>>', pop or die $!;
syswrite $out, "$name: @what\n";
PROBE

# A body that is in a file, an input that was opened and a client that waits are there, too, in a request
my $APP = <<'APP';
use POSIX ();
my $probe = sub {
    my $when = shift;
    my @probe = ( $^X, $ENV{TEST_PROBE}, $ENV{TEST_SEEN} );
    system @probe, "$when, system";
    system "'$probe[0]' '$probe[1]' '$probe[2]' '$when, shell'";
    my $pid = fork;
    { exec @probe, "$when, exec" or POSIX::_exit(1) if !$pid }
    waitpid $pid, 0;
    my $nothing = `'$probe[0]' '$probe[1]' '$probe[2]' '$when, backticks'`;
    open my $in, '-|', @probe, "$when, pipe" or die $!;
    close $in;
    return "done\n";
};
$probe->('load');
sub {
    my $env = shift;
    read $env->{'psgi.input'}, my $body, 100;
    my $socket = $env->{QUERY_STRING} && $env->{'psgix.io'};
    return [ 200, [], [ $probe->("generation $ENV{TEST_GENERATION}") ] ];
}
APP
$APP = "BEGIN { \$ENV{TEST_GENERATION} = 1 + ( -s \"\$ENV{TEST_SEEN}.loads\" || 0 );
    open my \$out, '>>', \"\$ENV{TEST_SEEN}.loads\" or die \$!; syswrite \$out, 'x' }\n$APP";

sub slurp { return Sirius::Test::Server::slurp(shift) }

# A folder of its own, and the options of a server there
sub case {
    my %option = @_;
    mkdir $dir = "$top/" . ++$cases or die $!;
    spew( "$dir/seen", '' );
    chmod 0777, $dir;
    chmod 0666, "$dir/seen";
    my $app = spew( "$dir/app.psgi", $APP );
    my %env = ( TEST_PROBE => spew( "$dir/probe", $PROBE ), TEST_SEEN => "$dir/seen" );
    return ( %option, app => $app, env => { %env, %{ $option{env} || {} } } );
}

# A test: each of these has been, in every way, and all of them saw the same
sub is_closed {
    my ( $name, @when ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my %seen  = map  { /\A(.*?): (.*)\z/ ? ( $1 => $2 ) : () } split /\n/, slurp("$dir/seen");
    my @wrong = grep { !/\A[^:]*: 0 1 2\z/ } split /\n/, slurp("$dir/seen");
    for my $when (@when) {
        push @wrong, map {"$when, $_: was not"}
            grep { !$seen{"$when, $_"} } qw(system shell exec backticks pipe);
    }
    return is_deeply \@wrong, [], $name;
}

sub ask {
    my ($server) = @_;
    my $waits    = $server->connect;    # a client that has asked for nothing
    my $body     = 'x' x 200_000;
    return $server->ask(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\nConnection: close\r\n\r\n$body")->status
        . ' '
        . $server->ask('GET /?io')->status;
}

# A supervisor that has become its own new version, so that what it has comes from another program
sub reload {
    my ( $server, $number ) = @_;
    my $before = slurp( '/proc/' . $server->pid . '/cmdline' );
    $server->signal('HUP');
    return until_true( 30, sub { $server->log =~ /generation $number is serving/ } )
        && ( $number > 2
        || until_true( 20, sub { slurp( '/proc/' . $server->pid . '/cmdline' ) ne $before } ) );
}

subtest 'Workers, over two reloads' => sub {
    my $server = Sirius::Test::Server->start( case ( args => [qw(--workers 2 --body-memory 4096)] ) );
    is ask($server), '200 200', 'asked';
    for my $number ( 2, 3 ) {
        ok reload( $server, $number ), "generation $number";
        is ask($server), '200 200', 'asked';
    }
    is_closed( 'all that was started', 'load', map {"generation $_"} 1 .. 3 );
    $server->stop;
};

subtest 'With everything that a server may have open' => sub {
    my %option = case ();
    my @more   = $> ? () : qw(--user 65532 --group 65532);
    my $server = Sirius::Test::Server->start(
        %option,
        args => [
            qw(--workers 2 --body-memory 4096 --admin 127.0.0.1:0 --listen 127.0.0.1:0 --log-prefix), @more,
            '--listen',     "$dir/socket",
            '--control',    "$dir/control",
            '--pid',        "$dir/pid",
            '--error-log',  "$dir/error.log",
            '--access-log', "|'$^X' '$dir/probe' '$dir/seen' 'log command'; exec cat >'$dir/access.log'"
        ],
        ready     => 2,
        error_log => "$dir/error.log",
    );
    is ask($server), '200 200', 'asked';
    ok reload( $server, 2 ), 'reloaded';
    is ask($server), '200 200', 'asked';
    ok until_true( 20, sub { slurp("$dir/seen") =~ /^log command: /m } ),
        'the command of the log has said it';
    is_closed( 'all that was started', 'load', 'generation 1', 'generation 2' );
    $server->stop;
};

subtest 'An application that each worker loads' => sub {
    my $server
        = Sirius::Test::Server->start( case ( args => [qw(--workers 1 --body-memory 4096 -L Delayed)] ) );
    is ask($server), '200 200', 'asked';
    ok reload( $server, 2 ), 'reloaded';
    is ask($server), '200 200', 'asked';
    is_closed( 'all that was started', 'load', 'generation 1', 'generation 2' );
    $server->stop;
};

subtest 'One process' => sub {
    my $server = Sirius::Test::Server->start( case ( args => [qw(--workers 0 --body-memory 4096)] ) );
    is ask($server), '200 200', 'asked';
    is_closed( 'all that was started', 'load', 'generation 1' );
    $server->stop;
};

subtest 'A daemon' => sub {
    my %option = case ();
    my $server = Sirius::Test::Server->spawn( %option,
        args => [ qw(--workers 1 --body-memory 4096 --daemonize --pid), "$dir/pid" ] );
    is $server->wait_exit(60), 'exit 0', 'started' or return diag $server->log;
    ($daemon) = slurp("$dir/pid") =~ /(\d+)/ or return fail 'no PID';
    is ask($server), '200 200', 'asked';
    is_closed( 'all that was started', 'load', 'generation 1' );
    kill TERM => $daemon;
    undef $daemon if until_true( 20, sub { !kill 0 => $daemon } );
    ok !$daemon, 'stopped';
};

# A listening socket that an exec leaves open
sub listening {
    local $^F = 99;
    socket my $fh, AF_INET, SOCK_STREAM, 0 or die $!;
    bind $fh, pack_sockaddr_in( 0, INADDR_LOOPBACK ) or die $!;
    listen $fh, 64 or die $!;
    return $fh;
}

subtest 'Sockets that were open at the start: fd:N, systemd and Server::Starter' => sub {
    my $socket  = listening();
    my $fd      = fileno $socket;
    my $port    = ( unpack_sockaddr_in( getsockname $socket ) )[0];
    my @program = ( $^X, "$root/bin/sirius", '-E', 'deployment' );
    my $activate
        = 'use POSIX; POSIX::dup2( $ARGV[0], 3 ); POSIX::close( $ARGV[0] ) if 3 < shift; $ENV{LISTEN_FDS} = 1; $ENV{LISTEN_PID} = $$; exec @ARGV';
    my %way = (
        "--listen fd:$fd"     => [ args => [ '--listen', "fd:$fd" ] ],
        "--listen fd:$fd,tls" => [ args => [ '--listen', "fd:$fd,tls", '--tls-self-signed' ], tls => 1 ],
        'LISTEN_FDS' => [ command => [ $^X, '-e', $activate, $fd, @program ], plain => 1, ready => 1 ],
        'SERVER_STARTER_PORT' => [ env => { SERVER_STARTER_PORT => "127.0.0.1:$port=$fd" }, ready => 1 ],
    );
    for my $way ( sort keys %way ) {
        next if $way !~ /--listen/ && !http1( $way, 'it says nothing of h2c' );
        my %option = case ( @{ $way{$way} } );
        local $Sirius::Test::Client::TLS = 1 if delete $option{tls};
        my $server = Sirius::Test::Server->start( %option,
            args => [ qw(--workers 1 --body-memory 4096), @{ $option{args} || [] } ] );
        is ask($server), '200 200', "$way: asked";
        ok reload( $server, 2 ), 'reloaded';
        is ask($server), '200 200', 'asked';
        is_closed( 'all that was started', 'load', 'generation 1', 'generation 2' );
        $server->stop;
    }
};

done_testing;
