package Sirius::Test::Server;

# A server under test, with a process group of its own, on port 0, with STDERR in a file. It is stopped or
# killed at the end in any case. SIRIUS_TEST_WRAP in the environment is a command that runs it, such as
# valgrind; then all waiting may take ten times as long. SIRIUS_TEST_PATIENCE says how many times as long
# otherwise (1).

use strict;
use warnings;
use Cwd ();
use File::Spec;
use File::Temp;
use IO::Socket::INET;
use POSIX        qw(WNOHANG);
use Scalar::Util qw(weaken);
use Test::More   ();
use Time::HiRes  qw(sleep time);
use Sirius::Test::Board;
use Sirius::Test::Client;

our $ROOT = do {
    my ( $volume, $path ) = File::Spec->splitpath( File::Spec->rel2abs(__FILE__) );
    Cwd::abs_path( File::Spec->catdir( $path, ( File::Spec->updir ) x 4 ) );
};

my @wrap = split q( ), $ENV{SIRIUS_TEST_WRAP} || '';
my $slow = ( @wrap ? 10 : 1 ) * ( $ENV{SIRIUS_TEST_PATIENCE} || 1 );
$Sirius::Test::Client::PATIENCE *= $slow;

my %running;
my $ports = 0;

# Options: app (file or source text), args (of the command), command (instead of bin/sirius), env, error_log
# (its file), ready (lines to wait for, by default one per --listen), plain (args are complete: no --port 0),
# may_crash (workers are killed on purpose)
sub start {
    my ( $class, %option ) = @_;
    my $self = $class->spawn(%option);
    my $ready
        = defined $option{ready} ? $option{ready} : ( grep {/\A(?:-l|--listen)\z/} @{ $self->{args} } ) || 1;
    return $self if until_true( 30, sub { $self->listeners >= $ready || $self->_reap } ) && !$self->exited;
    my $log = $self->log;
    die "the server did not start: " . ( $self->exited || 'not ready' ) . "\n@{ $self->{command} }\n$log";
}

# The same, but does not wait until it is ready
sub spawn {
    my ( $class, %option ) = @_;
    -d "$ROOT/blib" or die "no blib/: run 'perl Makefile.PL && make' first\n";
    my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my @args = @{ $option{args} || [] };
    my $self = bless { %option, args => \@args, dir => $dir, owner => $$ }, $class;

    # plackup would turn 0 into 5000
    unshift @args, grep( {/plackup/} @{ $option{command} || [] } )
        ? qw(--listen 127.0.0.1:0)
        : qw(--host 127.0.0.1 --port 0)
        if !$option{plain} && !grep {/\A(?:-l|--listen|--port|-p|-S|--socket)\b/} @args;
    push @args, ( grep {/plackup/} @{ $option{command} || [] } )
        ? qw(--enable-ssl=1 --tls-self-signed=1)    # to plackup, the next word would be its value
        : qw(--enable-ssl --tls-self-signed)
        if $Sirius::Test::Client::TLS && !grep {/\A--tls-|ssl|tls\z/} @args;
    _speak_http2( \@args ) if $Sirius::Test::Client::H2;
    push @args, '--error-log', $option{error_log} if defined $option{error_log};
    my @app = defined $option{app} ? $self->app_file( $option{app} ) : ();
    $self->{command}
        = [ @wrap, @{ $option{command} || [ $^X, "$ROOT/bin/sirius", '-E', 'deployment' ] }, @args, @app ];
    $self->_exec;
    $running{$self} = $self;
    weaken $running{$self};
    return $self;
}

# Returns the name of a file with this source text, or the file that is named
sub app_file {
    my ( $self, $app ) = @_;
    return $app if $app !~ /\n/ && -e $app;
    return $self->file( 'app.psgi', $app );
}

# Writes a file into the server's own directory and returns its path
sub file {
    my ( $self, $name, $text ) = @_;
    return spew( "$self->{dir}/$name", $text );
}

sub address { return ( shift->listeners )[0] }

# What its scoreboard shows now: a snapshot of Sirius::Scoreboard
sub board {
    my $self = shift;
    $self->{board} ||= Sirius::Test::Board->new( $self->{supervisor} || $self->{pid},
        "$ROOT/t/lib", "$ROOT/blib/lib", "$ROOT/blib/arch" );
    return $self->{board}->snapshot;
}

# One request on a connection of its own
sub ask {
    my ( $self, @request ) = @_;
    return $self->connect->ask(@request);
}

sub connect {
    my ( $self, %option ) = @_;
    return Sirius::Test::Client->new( delete $option{to} || $self->address, %option );
}

# Lines about a worker that was killed by a signal, or about a broken interpreter
sub crashes {
    my $self = shift;
    return grep {
        /\bsignal[ ](?:4|5|6|7|8|9|11)\b|SIG(?:SEGV|ABRT|BUS)|Segmentation|panic:|Bizarre[ ]copy|
         Attempt[ ]to[ ]free|Sanitizer|runtime[ ]error:/x
    } split /\n/, $self->log;
}

# The command that runs it below start_server, which has opened these sockets: "127.0.0.1:80", or the path of
# one. HUP replaces it
sub below_starter {
    my ( $class, @listen ) = @_;
    return [
        $^X, program('start_server'),
        ( map { m{\A/} ? '--path' : '--port', $_ } @listen ),
        qw(--interval 1 --signal-on-hup TERM --),
        $^X, "$ROOT/bin/sirius", qw(-E deployment)
    ];
}

sub dir { return '' . shift->{dir} }

# "exit 0", "signal 9", or undef while it runs
sub exited {
    my $self = shift;
    return if !defined $self->{status};
    return $self->{status} & 127 ? 'signal ' . ( $self->{status} & 127 ) : 'exit ' . ( $self->{status} >> 8 );
}

# The addresses it listens on, in the order of its ready lines: "127.0.0.1:80", "[::1]:80", "unix:/path"
sub listeners {
    my $self = shift;
    my %seen;
    return grep { !$seen{$_}++ }
        map     { s{\Ahttps?://}{}; s{/\z}{} if !/\Aunix:/; $_ }
        $self->log =~ /^.*listening on (\S+)(?: \((?:TLS|h2c)\))?[ \t]*$/mg;
}

# What it has written to STDERR so far, or to the file that is its log now
sub log {
    my $self = shift;
    return join '', map { slurp($_) } grep {defined} "$self->{dir}/stderr", $self->{error_log};
}

sub output {
    my $self = shift;
    return slurp("$self->{dir}/stdout");
}

sub pid  { return shift->{pid} }
sub port { return ( shift->address =~ /:(\d+)\z/ )[0] }

# PIDs of all its processes except zombies
sub processes {
    my $self = shift;
    return map { $_->{pid} } grep { $_->{group} == $self->{pid} && $_->{state} ne 'Z' } all_processes();
}

# PIDs of its generations: its own children
sub generations {
    my $self = shift;
    my @pids = grep { !$self->is_edge($_) } $self->_children( $self->{pid} );
    return @pids;    # in scalar context: how many
}

# PIDs of its edges
sub edges {
    my $self = shift;
    my @pids = grep { $self->is_edge($_) == 1 } $self->_children( $self->{pid} );
    return @pids;
}

# PIDs of its edges. With --workers 0 the edge is not a child
sub owners {
    my $self = shift;
    my @pids = $self->edges;
    @pids = $self->beside if !@pids;
    return @pids;
}

# With --workers 0: the PID of the edge, which is nobody's child
sub beside {
    my $self = shift;
    return grep { $_ != $self->{pid} && $self->is_edge($_) } $self->processes;
}

# The PID of the edge of the admin port
sub admin_edge {
    my $self = shift;
    return ( grep { $self->is_edge($_) == 2 } $self->_children( $self->{pid} ) )[0];
}

# Once it is that program; the kernel keeps 15 bytes of a name
sub is_edge {
    my ( $class, $pid ) = @_;
    my $name = comm($pid);
    return
          $name =~ /\Asirius(?:-edge|: edge)/ ? 1
        : $name =~ /\Asirius: admin e/        ? 2
        : $name =~ /\Asirius: keeper/         ? 3
        :                                       0;
}

# PIDs of its workers, which are children of the generations
sub workers {
    my $self = shift;
    return $self->_children( $self->generations );
}

sub _children {
    my ( $self, @parents ) = @_;
    my %parent = map { $_ => 1 } @parents;
    my @pids   = map { $_->{pid} } grep { $parent{ $_->{parent} } && $_->{state} ne 'Z' } all_processes();
    @pids = sort { $a <=> $b } @pids;
    return @pids;    # in scalar context: how many
}

sub signal {
    my ( $self, $name ) = @_;
    return kill $name => $self->{pid};
}

# A test: the signal (TERM) stops it with exit status 0, all its processes are gone, and no worker has crashed
sub stop {
    my ( $self, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $self->signal( $name || 'TERM' ) if !$self->exited;
    my $how  = $self->wait_exit || 'still running';
    my @left = until_true( 3, sub { !$self->processes } ) ? () : $self->processes;
    $how .= ", processes left: @left" if @left;
    my @crash = $self->{may_crash} ? () : $self->crashes;
    my $ok
        = Test::More::is( join( "\n", $how, @crash ), 'exit 0', 'the server stops, exit 0, nothing crashed' );
    Test::More::diag( $self->log ) if !$ok;
    $self->kill_hard;
    return $ok;
}

# How many connections are held, of these kinds; by default responses, not WebSockets
sub held {
    my ( $self, @kinds ) = @_;
    my ( $held, $sum )   = ( $self->board->{held}, 0 );
    $sum += $held->{$_} for @kinds ? @kinds : qw(stream response);
    return $sum;
}

# So many clients whose responses are held
sub subscribers {
    my ( $self, $number, $way ) = @_;
    my $before = $self->held;
    my @all    = map { $self->connect } 1 .. $number;
    $_->send( Sirius::Test::Client::request("GET $way") ) for @all;
    until_true( 20, sub { $self->held == $before + $number } );
    return @all;
}

# Kills a worker that is in a request, but none twice: the scoreboard shows it for a moment
sub kill_busy {
    my $self = shift;
    my $pid;
    $self->wait_board(
        sub {
            ($pid) = grep { !$self->{killed}{$_} }
                map { $_->{state} eq 'busy' ? $_->{pid} : () } @{ $_[0]{workers} };
            return $pid;
        },
        20
    ) or return;
    $self->{killed}{$pid} = 1;
    return kill KILL => $pid;
}

# True once the code returns true for what the scoreboard shows. A server that does not get there is a
# failure, which shows its state
sub wait_board {
    my ( $self, $code, $patience ) = @_;
    my $board;
    return 1 if until_true( $patience || 10, sub { $code->( $board = $self->board ) } );
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    Test::More::fail('the server gets into the state that the test waits for');
    Test::More::diag( Test::More::explain( { map { $_ => $board->{$_} } qw(connections workers) } ),
        $self->log );
    return;
}

# The same, once so many workers are in requests, whose method and target match
sub wait_busy {
    my ( $self, $count, $pattern ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $self->wait_board( sub {
        $count <= grep { $_->{state} eq 'busy' && $_->{line} =~ ( $pattern // qr/./ ) } @{ $_[0]{workers} };
    } );
}

# The same, once so many connections are open, and so many of them idle
sub wait_open {
    my ( $self, $count, $idle ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $self->wait_board( sub {
        my $connections = $_[0]{connections};
        $connections->{open} == $count && $connections->{idle} == ( $idle // $connections->{idle} );
    } );
}

# The same, once so many complete requests wait for a worker
sub wait_waiting {
    my ( $self, $count ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $self->wait_board( sub { $_[0]{connections}{waiting} >= $count } );
}

# Waits for its end and returns how it ended; undef if it does not end
sub wait_exit {
    my ( $self, $patience ) = @_;
    until_true( $patience || 20, sub { $self->_reap } );
    return $self->exited;
}

# True once the log matches, within the time
sub wait_log {
    my ( $self, $pattern, $patience ) = @_;
    return until_true( $patience || 5, sub { $self->log =~ $pattern } );
}

# Runs the code while a client asks for a path, one request after the other. Returns what the code does
sub with_load {
    my ( $self, $path, $code ) = @_;
    my $parent = $$;
    my $pid    = fork // die "fork: $!";
    if ( !$pid ) {
        $SIG{TERM} = 'DEFAULT';
        while ( getppid == $parent ) {
            eval { $self->ask("GET $path") }
        }
        POSIX::_exit(0);
    }
    my @got = $code->();
    kill KILL => $pid;
    waitpid $pid, 0;
    return @got;
}

sub kill_hard {
    my $self = shift;
    return if $self->{owner} != $$ || !$self->{pid};
    local ( $?, $!, $@ );
    kill KILL => -$self->{pid} if !$self->exited || $self->processes;
    until_true( 5, sub { $self->_reap } );
    delete $running{$self};
    delete $self->{board};
    return;
}

# Calls the code until it returns true, for so many seconds at most; returns that value
sub until_true {
    my ( $patience, $code ) = @_;
    my $until = time + $slow * $patience;
    my $wait  = 0.002;
    while (1) {
        my $result = $code->();
        return $result if $result || time > $until;
        sleep $wait;
        $wait *= 1.5 if $wait < 0.05;
    }
}

# Open descriptors of a process
sub descriptors {
    my ( $class, $pid ) = @_;
    opendir my $dir, "/proc/$pid/fd" or return;
    return grep {/\A\d+\z/} readdir $dir;
}

# Resident memory of a process in KiB
sub memory {
    my ( $class, $pid ) = @_;
    return slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0;
}

# pid, parent, group and state of every process
sub all_processes {
    opendir my $dir, '/proc' or return;
    return map {
        slurp("/proc/$_/stat") =~ /\A(\d+) \(.*\) (\S) (\d+) (\d+)/s
            ? { pid => $1, state => $2, parent => $3, group => $4 }
            : ()
    } grep {/\A\d+\z/} readdir $dir;
}

# A port of 127.0.0.1 that nobody listens on, below those that systems give to sockets that ask for any, as
# others do meanwhile
sub free_port {
    for ( 1 .. 1000 ) {
        my $port = 10_000 + ( $$ * 31 + $ports++ ) % 20_000;
        return $port if IO::Socket::INET->new( Listen => 1, LocalAddr => "127.0.0.1:$port" );
    }
    die "no free port: $!";
}

# The path of a program, undef if it is not installed; a user's PATH may lack the directories for root
sub program {
    my $name   = shift;
    my ($path) = grep {-x} map {"$_/$name"} split( /:/, $ENV{PATH} ), qw(/usr/sbin /sbin /usr/local/sbin);
    return $path;
}

# The name of a process that the kernel keeps, 15 bytes; empty if the process is gone
# The short name of a process. With dev/test --portable, where none has one, what its title begins with
sub comm {
    my $pid = shift;
    return slurp("/proc/$pid/comm") =~ s/\n\z//r if !$ENV{SIRIUS_TEST_PORTABLE};
    my ($title) = slurp("/proc/$pid/cmdline") =~ m{\A(?:[^\0:]*/)?([^\0]*)};
    return 'sirius' if $title =~ /\Asirius: s/;    # server, supervisor
    my ($role) = $title =~ /\A(sirius: (?:generation [0-9]+|admin edge|[a-z]+))/ or return $title;
    return substr $role =~ s/generation/gen/r, 0, 15;
}

sub slurp {
    my $path = shift;
    open my $in, '<:raw', $path or return '';
    local $/ = undef;
    my $text = <$in>;
    return defined $text ? $text : '';
}

# Writes a file and returns its path
sub spew {
    my ( $path, @text ) = @_;
    open my $out, '>:raw', $path or die "$path: $!";
    print {$out} @text;
    close $out or die "$path: $!";
    return $path;
}

# Without TLS, by which it is spoken in any case, the addresses have to say it
sub _speak_http2 {
    my $args = shift;
    return if grep {/\A--(?:enable-ssl|disable-http2)\b/} @$args;
    splice @$args, 0, 4, '--listen', '127.0.0.1:0' if "@$args" =~ /\A--host 127\.0\.0\.1 --port 0\b/;
    for my $n ( 1 .. $#$args ) {
        $args->[$n] .= ',h2c'
            if $args->[ $n - 1 ] =~ /\A(?:-l|--listen)\z/ && $args->[$n] !~ /(?:,tls|,h2c|:ssl)\z/;
    }
    return;
}

sub _exec {
    my $self = shift;
    my $pid  = fork;
    defined $pid or die "fork: $!";
    if ( !$pid ) {
        setpgrp 0, 0;
        delete @ENV{ qw(PLACK_ENV PLACK_SERVER PORT SERVER_STARTER_PORT LISTEN_FDS LISTEN_PID LISTEN_FDNAMES
            NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID) };
        %ENV = (
            %ENV,
            XDG_RUNTIME_DIR => "$self->{dir}",
            XDG_STATE_HOME  => "$self->{dir}/state",
            %{ $self->{env} || {} }
        );
        $ENV{PERL5LIB} = join ':', "$ROOT/blib/lib", "$ROOT/blib/arch", $ENV{PERL5LIB} || ();
        open STDIN,  '<',  '/dev/null'           or POSIX::_exit(126);
        open STDOUT, '>>', "$self->{dir}/stdout" or POSIX::_exit(126);
        open STDERR, '>>', "$self->{dir}/stderr" or POSIX::_exit(126);
        { exec { $self->{command}[0] } @{ $self->{command} } }
        POSIX::_exit(127);
    }
    setpgrp $pid, $pid;    # both processes do this, whichever runs first
    $self->{pid} = $pid;
    return;
}

sub _reap {
    my $self = shift;
    return 1 if defined $self->{status};
    local $?;
    return 0 if waitpid( $self->{pid}, WNOHANG ) != $self->{pid};
    $self->{status} = $?;
    return 1;
}

sub DESTROY { return shift->kill_hard }

END {
    my $status = $?;
    $_->kill_hard for grep {defined} values %running;
    $? = $status;
}

1;
