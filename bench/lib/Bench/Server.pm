package Bench::Server;

# A server under measurement: started on one core, its whole process tree watched, stopped at the end.

use strict;
use warnings;

use Cwd        qw(abs_path);
use File::Path qw(make_path);
use IO::Socket::INET;
use POSIX       qw(WNOHANG setsid);
use Time::HiRes qw(sleep time);

our $ROOT = abs_path( __FILE__ =~ s{[^/]*\z}{../../..}r );
my $DIR = "$ROOT/build/bench";
my $TPS = POSIX::sysconf(POSIX::_SC_CLK_TCK);

my $NEVER    = 1_000_000_000;
my @PREFORK  = ( '--max-reqs-per-child', $NEVER );
my @LONG     = ( '--max-keepalive-reqs', $NEVER );
my %BODY_LEN = ( hello => 11, ok => 2, body8000 => 8000 );
my $PORT     = 20_000 + $$ % 10_000;

# name => what plackup calls it, its options with one worker, and without forking (undef: it cannot)
my %PLACK = (
    feersum   => [ 'Feersum',   ['--keepalive=1'],                       ['--keepalive=1'] ],
    gazelle   => [ 'Gazelle',   [ '--max-workers', 1, @PREFORK ],        undef ],
    monoceros => [ 'Monoceros', [ '--max-workers', 1, @PREFORK, @LONG ], undef ],
    starlet   =>
        [ 'Starlet', [ '--max-workers', 1, @PREFORK, @LONG ], [ '--max-workers', 0, @PREFORK, @LONG ] ],
    starman => [ 'Starman', [ '--workers', 1, '--max-requests', $NEVER ], undef ],
    twiggy  => [ 'Twiggy',  [],                                           [] ],
);

sub names { return ( 'floor', 'sirius', sort keys %PLACK, 'uwsgi' ) }

# Fields: name (of the list above, or sirius@DIR for another build), app, close (one request each connection),
# alone (without forking), under (a command to run it)
sub new {
    my ( $class, %field ) = @_;
    return bless { under => [], %field }, $class;
}

sub is_event_driven { return shift->{name} =~ /\A(?:floor|sirius|feersum|twiggy)/ }

# Empty when it is not installed
sub version {
    my $self = shift;
    my $name = $self->{name};
    return '-' if $name eq 'floor';
    if ( $name eq 'uwsgi' ) {
        return `uwsgi --version 2>/dev/null` =~ s/\s+\z//r;
    }
    my $module = $PLACK{$name} ? "Plack::Handler::$PLACK{$name}[0]" : 'Sirius';
    my $main   = $PLACK{$name} ? $PLACK{$name}[0]                   : 'Sirius';
    local $ENV{PERL5LIB} = $self->_inc;
    my $version
        = `$^X -e 'require $module; eval "require $main"; print $main->VERSION || $module->VERSION' 2>/dev/null`;
    return $? ? '' : $version || '?';
}

sub start {
    my $self = shift;
    make_path($DIR);
    $self->{port} = $PORT++;
    $self->{log}  = "$DIR/$self->{name}.log" =~ s{\@.*/}{-}r;
    my @command = ( 'taskset', '-c', 0, @{ $self->{under} }, $self->_command );
    defined( $self->{pid} = fork ) or die "fork: $!\n";
    if ( !$self->{pid} ) {
        setsid;
        local $ENV{PERL5LIB} = $self->_inc;
        open STDIN,  '<',  '/dev/null'  or die $!;
        open STDOUT, '>',  $self->{log} or die $!;
        open STDERR, '>&', \*STDOUT     or die $!;
        exec @command or print "$command[0]: $!\n";
        POSIX::_exit(127);
    }
    my $until = time + ( @{ $self->{under} } ? 120 : 20 );
    while ( !$self->_answers ) {
        next if time < $until && waitpid( $self->{pid}, WNOHANG ) == 0 && sleep 0.05;
        my $log = do { local ( @ARGV, $/ ) = $self->{log}; <> };
        $self->stop;
        die "$self->{name} does not start: @command\n$log\n";
    }
    return $self;
}

sub stop {
    my $self = shift;
    my $pid  = delete $self->{pid} or return;
    kill TERM => $pid;
    my $until = time + ( @{ $self->{under} } ? 60 : 5 );
    while ( waitpid( $pid, WNOHANG ) == 0 ) {
        next if time < $until && sleep 0.02;
        kill KILL => -$pid;
        waitpid $pid, 0;
        last;
    }
    kill KILL => -$pid;
    return;
}

sub DESTROY {
    my $self = shift;
    local ( $?, $@ );
    $self->stop;
    return;
}

# Supervisor first
sub pids {
    my $self = shift;
    my %children;
    for my $stat ( map { read_file($_) } glob '/proc/[0-9]*/stat' ) {
        push @{ $children{$2} }, $1 if $stat =~ /\A([0-9]+) \(.*\) \S ([0-9]+)/s;
    }
    my @pids = $self->{pid};
    push @pids, @{ $children{$_} || [] } for @pids;
    return @pids;
}

# User and system time of all its processes, those that have ended too
sub cpu_seconds {
    my $self  = shift;
    my $ticks = 0;
    for my $pid ( $self->pids ) {
        my @field = split ' ', read_file("/proc/$pid/stat") =~ s/\A.*\) //sr;
        $ticks += $_ for grep {defined} @field[ 11 .. 14 ];
    }
    return $ticks / $TPS;
}

# Kilobytes that belong to this process alone
sub private_memory {
    my ( $self, $pid ) = @_;
    my $kilobytes = 0;
    $kilobytes += $_ for read_file("/proc/$pid/smaps_rollup") =~ /^Private_\w+:\s+([0-9]+)/mg;
    return $kilobytes;
}

sub _answers {
    my $self   = shift;
    my $socket = IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 5 )
        or return 0;
    print {$socket} "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    my $line = <$socket>;
    return defined $line && $line =~ m{\AHTTP/1\.[01] 200};
}

sub _command {
    my $self = shift;
    my ( $name, $app, $port ) = ( $self->{name}, "$ROOT/bench/$self->{app}.psgi", $self->{port} );
    return ( "$DIR/floor", ( $self->{close} ? '-c' : () ), '-b', $BODY_LEN{ $self->{app} }, $port )
        if $name eq 'floor';
    if ( $name eq 'uwsgi' ) {
        my $socket = $self->{close} ? '--http-socket' : '--http11-socket';
        return ( qw(uwsgi --plugin psgi --processes 1 --disable-logging --die-on-term),
            $socket, "127.0.0.1:$port", '--psgi', $app );
    }
    my @address = ( '--host', '127.0.0.1', '--port', $port );
    if ( !$PLACK{$name} ) {
        return ( $^X, _tree($name) . '/bin/sirius', @address, '--workers', $self->{alone} ? 0 : 1, $app );
    }
    my ( $handler, $forking, $alone ) = @{ $PLACK{$name} };
    my $options = $self->{alone} ? $alone : $forking;
    die "$name cannot serve without forking\n" if !$options;
    return ( $^X, '-S', 'plackup', '-s', $handler, '-E', 'production', @address, @$options, $app );
}

sub _inc {
    my $self = shift;
    my $name = $self->{name};
    my $more = $ENV{ 'SIRIUS_BENCH_INC_' . uc $name };
    my @inc  = $name =~ /\Asirius/ ? map { _tree($name) . "/blib/$_" } qw(lib arch) : ();
    return join ':', @inc, grep {defined} $more, $ENV{PERL5LIB};
}

sub read_file {
    my $file = shift;
    open my $fh, '<', $file or return '';
    local $/ = undef;
    my $text = <$fh> // '';
    close $fh;
    return $text;
}

sub _tree {
    my $name = shift;
    return $name =~ /\@(.+)/ ? abs_path($1) : $ROOT;
}

1;
