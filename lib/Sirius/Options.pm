package Sirius::Options;

use strict;
use warnings;

use File::Spec ();
use List::Util qw(max min);
use Sirius::Config;
use Sirius::Type;

my $MANY = 0x7fff_ffff;
my $WEEK = 7 * 86400;

# A string opens a group, an array is an option: name, type, default, one line of text, and what else there is:
#   alias     other names
#   command   for the command line only, neither in the environment nor in a file
#   family    any name that begins with this one and a dash is meant as well
#   hidden    for programs, not for the command line
#   list      several values with commas
#   many      may be given several times
#   min, max  limits of the value
#   noop      has no effect here: why
#   passed    frameworks pass it on to the handler, where it says nothing
#   plackup   what only Plack::Runner can do; "flag" when it takes no value
#   refused   an error: why
#   short     letter
#   typed     how the name is shown when that is not --name
#   value     word for the value in the list of options
#<<< a table: its columns mean more than the tidier's
my @TABLE = (
    'Application',
    [ 'app', 'string', undef, 'application file (default: the first argument, or app.psgi)', { short => 'a', plackup => 1, passed => 1, value => 'FILE' } ],
    [ 'e', 'string', undef, 'application as Perl text', { alias => ['eval'], plackup => 1, value => 'CODE' } ],
    [ 'I', 'string', undef, 'directory to look for modules in, before all others', { alias => ['include'], many => 1, plackup => 1, value => 'DIR' } ],
    [ 'M', 'string', undef, 'module to load first', { alias => ['module'], many => 1, plackup => 1, value => 'MODULE' } ],
    [ 'env', 'string', 'deployment', 'PLACK_ENV; development adds Lint, StackTrace and AccessLog', { short => 'E', plackup => 1, passed => 1, value => 'NAME' } ],
    [ 'path', 'string', undef, 'mount the application under this path', { plackup => 1 } ],
    [ 'loader', 'string', undef, 'way to load the application: Delayed, Shotgun or Restarter', { short => 'L', plackup => 1, value => 'NAME' } ],
    [ 'reload', 'bool', undef, 'restart when the application or its lib directory changes', { short => 'r', plackup => 'flag' } ],
    [ 'Reload', 'string', undef, 'the same for these directories, with commas', { alias => ['reload-dirs'], short => 'R', plackup => 1, value => 'DIRS' } ],
    [ 'default-middleware', 'bool', undef, 'without the middleware of development', { typed => '--no-default-middleware', plackup => 'flag' } ],
    [ 'server', 'string', 'Sirius', 'another Plack handler', { short => 's', plackup => 1, value => 'NAME' } ],
    [ 'version', 'bool', undef, 'print the version and exit', { command => 1, short => 'v', plackup => 'flag' } ],
    [ 'help', 'bool', undef, 'print this list and exit', { command => 1, short => 'h', plackup => 'flag' } ],

    'Listening',
    [ 'listen', 'listen', ':5000', 'host:port, :port, *:port, [v6]:port, the path of a unix socket, unix:PATH?mode=0660&group=NAME, @abstract, fd:N, systemd:NAME; may be given several times', { short => 'l', many => 1 } ],
    [ 'host', 'string', undef, 'address for --port (default: all of IPv4)', { short => 'o', value => 'HOST' } ],
    [ 'port', 'port', undef, 'TCP port; 0 lets the system choose', { short => 'p' } ],
    [ 'socket', 'string', undef, 'path of a unix socket', { short => 'S', alias => ['socket-path'], value => 'PATH' } ],
    [ 'backlog', 'count', 4096, 'connections the kernel holds until they are accepted; its own limit is net.core.somaxconn', { min => 1, max => 65535 } ],
    [ 'socket-mode', 'octal', undef, 'file mode of unix sockets that have no ?mode= in their address', {} ],
    [ 'socket-owner', 'user', undef, 'owner of unix sockets without ?owner=', {} ],
    [ 'socket-group', 'group', undef, 'group of unix sockets without ?group=', {} ],

    'Workers',
    [ 'workers', 'workers', 10, 'worker processes: a number, auto (as many as CPUs), MIN:MAX or MIN:auto (as the load asks for), or 0 (serve in one process)', { alias => ['max-workers'], max => 4096, value => 'N' } ],
    [ 'min-servers', 'count', undef, 'the fewest workers: MIN of --workers MIN:MAX', { min => 1, max => 4096 } ],
    [ 'max-servers', 'count', undef, 'the most workers: MAX of --workers MIN:MAX', { min => 1, max => 4096 } ],
    [ 'max-reqs-per-child', 'count', 0, 'requests after which a worker is replaced; 0 is never', { alias => ['max-requests'], min => 0, max => $MANY } ],
    [ 'min-reqs-per-child', 'count', undef, 'replace it after a random number of requests from this one up (default: 90 % of the other)', { min => 1, max => $MANY } ],
    [ 'max-rss', 'bytes', 0, 'of RAM past which a worker is replaced; 0 is no limit', { min => 0, max => 1 << 50 } ],
    [ 'max-lifetime', 'seconds', 0, 'after which a worker is replaced, up to 10 % earlier by chance; 0 is never', { min => 0, max => 52 * $WEEK } ],
    [ 'drain-delay', 'seconds', 0, 'that TERM goes on serving while /readyz is 503 already, for load balancers to find other servers', { min => 0, max => $WEEK } ],
    [ 'graceful-timeout', 'seconds', 30, 'what TERM leaves to the workers to finish; then they are killed', { min => 0, max => $WEEK } ],
    [ 'spawn-interval', 'seconds', 0, 'between the starts of two workers', { min => 0, max => 3600 } ],
    [ 'err-respawn-interval', 'seconds', 1, 'before a worker that failed at once is tried again, doubled up to 30', { min => 0.01, max => 3600 } ],
    [ 'before-fork', 'code', undef, q('sub {...}' called before each fork of a worker, in the process that forks), {} ],
    [ 'after-fork', 'code', undef, q('sub {...}' that each worker calls before it serves), {} ],
    [ 'child-exit', 'code', undef, q('sub {...}' that each worker calls at its end), {} ],
    [ 'on-reload', 'code', undef, q('sub {...}' called when a reload has replaced the workers, in the process that they came from), {} ],

    'Keep-alive',
    [ 'keepalive', 'bool', 1, 'close each connection after one response, or do not', { typed => '--disable-keepalive, --enable-keepalive' } ],
    [ 'keepalive-timeout', 'seconds', 75, 'an idle connection is closed after', { min => 0, max => $WEEK } ],
    [ 'max-keepalive-reqs', 'count', 0, 'requests on one connection; 0 is no limit, 1 no keep-alive', { min => 0, max => $MANY } ],

    'Waiting',
    [ 'max-connections', 'count', 0, 'in all; the oldest idle one makes room, without one 503. 0: as many as descriptors allow', { min => 0, max => $MANY } ],
    [ 'max-queue', 'count', 1000, 'complete requests that wait for a worker; 503 past that', { min => 1, max => $MANY } ],
    [ 'queue-timeout', 'seconds', 30, 'that a complete request may wait (503); 0 is no limit', { min => 0, max => $WEEK } ],
    [ 'companion', 'bool', 1, 'off: connections of a busy worker wait for it', { hidden => 1 } ],

    'Time limits',
    [ 'header-timeout', 'seconds', 30, 'for a whole request head (408)', { alias => ['read-timeout'], min => 0.01, max => $WEEK } ],
    [ 'body-timeout', 'seconds', 30, 'over which --body-rate is measured (408)', { min => 0.01, max => $WEEK } ],
    [ 'body-rate', 'count', 100, 'bytes a second that a request body must bring', { min => 0, max => $MANY } ],
    [ 'write-timeout', 'seconds', 60, 'without progress of a response', { min => 0.01, max => $WEEK } ],
    [ 'request-timeout', 'seconds', 0, 'from the complete request to the response, waiting included (504); its worker is replaced. 0 is no limit', { min => 0, max => $WEEK } ],
    [ 'stream-timeout', 'seconds', 0, 'without a byte of a response that the application has begun; then it is cut. 0 is no limit', { min => 0, max => $WEEK } ],
    [ 'timeout', 'seconds', undef, 'sets --write-timeout and --body-timeout where they are not given', { min => 0.01, max => $WEEK } ],

    'Size limits',
    [ 'max-request-line', 'bytes', 8192, 'of the request line (414)', { min => 16, max => 1 << 24 } ],
    [ 'max-header-bytes', 'bytes', 65536, 'of the whole request head (431)', { min => 64, max => 1 << 24 } ],
    [ 'max-header-fields', 'count', 100, 'header fields (431)', { min => 1, max => 256 } ],
    [ 'max-body', 'bytes', 1 << 30, 'of a request body (413)', { min => 0, max => 1 << 50 } ],
    [ 'body-memory', 'bytes', 65536, 'of a request body held in memory; a larger one goes to a file', { min => 0, max => 1 << 30 } ],
    [ 'tmpdir', 'dir', File::Spec->tmpdir, 'for those files (default: the system\'s)', { writable => 1 } ],

    'Process',
    [ 'config', 'path', undef, 'file with more options, a line "name = value" for each', { command => 1 } ],
    [ 'control', 'path', undef, 'unix socket for "sirius ctl"', {} ],
    [ 'pid', 'path', undef, 'file for the PID of the supervisor', { alias => [qw(pid-file pidfile)] } ],
    [ 'user', 'user', undef, 'user to become after listening; for a start as root', {} ],
    [ 'group', 'group', undef, 'group to become, others behind commas (default: those of --user)', { list => 1 } ],
    [ 'umask', 'octal', undef, 'file mode creation mask', {} ],
    [ 'chdir', 'dir', undef, 'directory to work in', {} ],
    [ 'daemonize', 'bool', undef, 'go to the background once it serves', { short => 'D' } ],
    [ 'error-log', 'path', undef, 'file for STDERR', { alias => ['log-file'] } ],
    [ 'log-prefix', 'bool', undef, 'time, PID and level before each line of the log (default: with --error-log)', { typed => '--enable-log-prefix, --disable-log-prefix' } ],
    [ 'proctitle', 'bool', 0, 'show in ps what each process does', { typed => '--enable-proctitle, --disable-proctitle' } ],

    'Seeing what it does',
    [ 'access-log', 'string', undef, 'a line for each request into a file, - (STDOUT), syslog:FACILITY or "|COMMAND"', { value => 'FILE' } ],
    [ 'access-log-format', 'string', 'combined', 'its format: common, combined, ltsv, json, or of Apache\'s LogFormat', { value => 'FORMAT' } ],
    [ 'access-log-min-time', 'seconds', 0, 'only requests that took at least so long', { min => 0, max => $WEEK } ],
    [ 'access-log-errors-only', 'bool', 0, 'only responses of 4xx and 5xx, and those that were cut', {} ],
    [ 'admin', 'listen', undef, 'address of the status page, metrics and probes; a loopback address or a unix socket. May be given several times', { many => 1 } ],
    [ 'admin-public', 'bool', 0, 'let --admin listen on addresses that others can reach', {} ],

    'Proxies in front',
    [ 'trust-proxy', 'proxies', undef, 'networks of proxies whose X-Forwarded-For, -Proto and -Port are believed: 10.0.0.0/8,::1, or unix; with x-forwarded-host in the list that as well, with forwarded only the header of this name', { value => 'CIDR,...' } ],
    [ 'proxy-protocol', 'bool', 0, 'each connection begins with the header of the PROXY protocol, 1 or 2; only peers in --trust-proxy may connect, where that is given', {} ],

    'Other',
    [ 'server-software', 'token', 'Sirius', 'value of the Server header; empty for none', {} ],
    [ 'server-ready', 'code', undef, 'called for each TCP listener once it is served', { hidden => 1 } ],
    [ 'listen-sock', 'any', undef, 'a socket that listens already', { hidden => 1 } ],
    [ 'sources', 'any', undef, 'a Sirius::Config that is read already', { hidden => 1 } ],
    ( map { [ $_, 'any', undef, 'what frameworks pass to every handler', { hidden => 1 } ] } qw(argv extra-argv) ),

    'Known from other servers',
    [ 'preload-app', 'bool', undef, '', { noop => 'the application is always loaded before the workers; -L Delayed is the opposite' } ],
    [ 'max-keepalive-connection', 'count', undef, '', { alias => ['max-keepalive-connections'], noop => 'an idle connection costs no worker; --max-connections bounds all' } ],
    ( map { [ "$_-readahead-reqs", 'count', undef, '', { noop => 'a worker never waits on one connection' } ] } qw(max min) ),
    ( map { [ "$_-spare-servers", 'count', undef, '', { noop => 'the load decides between MIN and MAX of --workers' } ] } qw(min max) ),
    [ 'net-server', 'any', undef, '', { family => 1, typed => '--net-server-*', noop => 'Sirius does not stand on Net::Server' } ],
    [ 'ssl', 'bool', undef, '', { family => 1, typed => '--enable-ssl, --ssl-*', refused => 'TLS ends at a proxy in front; Sirius speaks HTTP only' } ],
);
#>>>

my ( @ROWS, %BY_NAME, $group );
for my $entry (@TABLE) {
    if ( !ref $entry ) { $group = $entry; next }
    my ( $name, $type, $default, $text, $more ) = @$entry;
    $text = "no effect: $more->{noop}"  if $more->{noop};
    $text = "refused: $more->{refused}" if $more->{refused};
    push @ROWS, { name => $name, type => $type, default => $default, text => $text, group => $group, %$more };
    $BY_NAME{$_} ||= $ROWS[-1] for $name, @{ $more->{alias} || [] }, grep {defined} $more->{short};
}

sub check {
    my ( $class, $row, $value, $from ) = @_;
    return if $row->{refused} && $value =~ /\A0?\z/;    # what plackup makes of --disable-ssl
    local $SIG{__DIE__};
    my ($checked) = eval { die "$row->{refused}\n" if $row->{refused}; Sirius::Type->check( $row, $value ) };
    return $checked if !$@;
    chomp( my $error = $@ );
    return $class->fail( "--$row->{name}: $error", $from );
}

sub closest {
    my ( $class, $name )  = @_;
    my ( $best,  $least ) = ( undef, 1 + min 3, int( length($name) / 2 ) );
    for my $candidate ( sort grep { length > 1 && !$BY_NAME{$_}{hidden} } keys %BY_NAME ) {
        my $distance = _distance( $name, $candidate );
        ( $best, $least ) = ( $candidate, $distance ) if $distance < $least;
    }
    return $best;
}

sub fail {
    my ( $class, $message, $from ) = @_;
    $message .= " (from $from)" if defined $from;
    $! = 2;    # what perl exits with when nobody catches this
    die 'sirius: ' . $message =~ s/([\0-\x1f\x7f])/sprintf '\x%02x', ord $1/ger . "\n";
}

sub find {
    my ( $class, $name ) = @_;
    $name =~ tr/_/-/;
    my $row = $class->row($name);
    return $row if $row || $name !~ /\A(enable|disable|no)-(.+)\z/;
    my $sense = $1 eq 'enable' ? 1 : 0;
    $row = $class->row($2);
    return $row && $row->{type} eq 'bool' && !$row->{command} ? ( $row, $sense ) : ();
}

sub parse {
    my ( $class, $raw ) = @_;
    my $given  = Sirius::Config->given($raw);
    my $config = $given->{sources} || Sirius::Config->read( file => $given->{config} );
    my $from   = $config->fill($given);
    my %conf   = ( notices => [ $config->notices ] );
    for my $row ( ( grep { !$_->{plackup} } @ROWS ), _family($given) ) {
        my $key   = $class->key( $row->{name} );
        my $value = $given->{$key};
        $value = $class->check( $row, $value, $from->{$key} ) if defined $value;
        if ( !$row->{noop} && !$row->{refused} ) {
            $conf{$key} = defined $value ? $value : $row->{default};
        } elsif ( defined $value ) {
            push @{ $conf{notices} }, "sirius: --$row->{name} has no effect: $row->{noop}"
                . ( $from->{$key} ? " (from $from->{$key})" : '' );
        }
    }
    return $class->_together( \%conf, $given, $from );
}

sub key {
    my ( $class, $name ) = @_;
    return $name =~ tr/-/_/r;
}

sub row {
    my ( $class, $name ) = @_;
    $name =~ tr/_/-/;
    return $BY_NAME{$name} if $BY_NAME{$name};
    my ($family) = grep { $_->{family} && index( $name, "$_->{name}-" ) == 0 } @ROWS or return;
    return { %$family, name => $name, type => 'any' };
}

sub rows { return @ROWS }

sub unknown {
    my ( $class, $name ) = @_;
    $name =~ tr/_/-/;
    my $closest = $class->closest($name);
    return $class->fail(
        "unknown option --$name" . ( defined $closest ? " (did you mean --$closest?)" : '' ) );
}

# All that was said about addresses, as one list
sub _addresses {
    my ( $class, $conf, $given,  $from )   = @_;
    my ( $host,  $port, $listen, $socket ) = delete @{$conf}{qw(host port listen socket)};
    my @listen = $given->{listen} ? @$listen : ();
    if (@listen) {
        push @{ $conf->{notices} }, "sirius: --$_ has no effect: the addresses are those of --listen"
            for grep { defined $given->{$_} } qw(host port);
    } elsif ( defined $port || defined $host || !defined $socket ) {
        $host   = '' if !defined $host;
        @listen = ( ( $host =~ /\A[^\[].*:/ ? "[$host]" : $host ) . ':' . ( defined $port ? $port : 5000 ) );
    }
    push @listen, $socket if defined $socket && !grep { $_ eq $socket } @listen;
    $conf->{listen} = $class->check( $BY_NAME{listen}, \@listen );
    return;
}

# Levenshtein's
sub _distance {
    my ( $from, $to ) = @_;
    my @last = 0 .. length $to;
    for my $i ( 1 .. length $from ) {
        my @line = ($i);
        for my $j ( 1 .. length $to ) {
            my $same = substr( $from, $i - 1, 1 ) eq substr( $to, $j - 1, 1 );
            push @line, min $last[ $j - 1 ] + !$same, $last[$j] + 1, $line[-1] + 1;
        }
        @last = @line;
    }
    return $last[-1];
}

# Of names such as net-server-port, which stand for all that begin so
sub _family {
    my $given = shift;
    return map { __PACKAGE__->row($_) } grep { !$BY_NAME{tr/_/-/r} } sort keys %$given;
}

# What depends on more than one option
sub _together {
    my ( $class, $conf, $given, $from ) = @_;
    $class->_addresses( $conf, $given );
    my ( $min, $max ) = @{$conf}{qw(min_reqs_per_child max_reqs_per_child)};
    $class->fail( "--min-reqs-per-child: $min is more than --max-reqs-per-child, which is $max",
        $from->{min_reqs_per_child} )
        if defined $min && $min > $max;
    $class->_workers( $conf, $given );
    $class->fail( '--drain-delay: with --workers 0 there is no other process to wait', $from->{drain_delay} )
        if $conf->{drain_delay} && !$conf->{workers};
    my ( undef, $timeout ) = delete @{$conf}{qw(sources timeout)};
    for my $key ( defined $timeout ? qw(body_timeout write_timeout) : () ) {
        $conf->{$key} = $timeout if !defined $given->{$key};
    }
    $conf->{keepalive} = 0 if !$conf->{keepalive_timeout};
    return $conf;
}

# --workers as two numbers: those of the start, and the most there may be
sub _workers {
    my ( $class, $conf, $given ) = @_;
    my ( $workers, $min, $max )  = delete @{$conf}{qw(workers min_servers max_servers)};
    my $fixed = defined $given->{workers} && $given->{workers} =~ /\A\d+\z/;
    my ( $low, $high ) = ref $workers ? @$workers : ( $workers, $workers );
    if ( ref $workers ) {
        push @{ $conf->{notices} }, "sirius: --$_ has no effect: --workers says both numbers"
            for grep { defined $given->{ $class->key($_) } } qw(min-servers max-servers);
    } else {
        my ($name) = defined $min ? '--min-servers' : '--max-servers';
        $class->fail("$name: there is one process with --workers 0") if !$workers && ( $min || $max );
        $class->fail("--min-servers: $min is more than --workers, which is $workers")
            if defined $min && !defined $max && $fixed && $min > $workers;
        $class->fail("--max-servers: $max is less than --workers, which is $workers")
            if defined $max && !defined $min && $fixed && $max < $workers;
        $class->fail("--min-servers: $min is more than --max-servers, which is $max")
            if defined $min && defined $max && $min > $max;
        $low  = defined $min ? $min : min $workers, grep {defined} $max;
        $high = defined $max ? $max : max $low,     $workers;
    }
    @{$conf}{qw(workers workers_max)} = ( $low, $high );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Options - every option, in one table

=head1 SYNOPSIS

  use Sirius::Options;

  my $conf = Sirius::Options->parse({ 'max-body' => '10m', workers => 4 });
  print $conf->{max_body};    # 10485760

=head1 DESCRIPTION

One table has the name, aliases, type, limits, default and text of every option. Parsing, checking, C<sirius --help> and
the list in L<sirius> come from it, so they cannot differ.

=head1 METHODS

=head2 check

  my $value = Sirius::Options->check( $row, $text, $from );

One value in its final form (see L<Sirius::Type>), or L</fail>.

=head2 closest

  my $name = Sirius::Options->closest('wrokers');    # workers

The name that was meant, undefined when none is near.

=head2 fail

  Sirius::Options->fail('--workers: why');
  Sirius::Options->fail( '--workers: why', 'SIRIUS_WORKERS' );

Dies with C<sirius: --workers: why>, or C<sirius: --workers: why (from SIRIUS_WORKERS)>. C<$!> is 2, so that a program that
doesn't catch it exits with 2.

=head2 find

  my ( $row, $sense ) = Sirius::Options->find('disable-keepalive');

The L</row> of a name. For C<enable->, C<disable-> or C<no-> before the name of a yes-or-no option also what that means:
1 or 0.

=head2 key

  my $key = Sirius::Options->key('max-body');    # max_body

=head2 parse

  my $conf = Sirius::Options->parse(\%raw);

From names with dashes or underscores, aliases included, to a hash of checked values by their own names with
underscores; what is not there is looked for in the environment and in the file of C<config> (see L<Sirius::Config>),
then the default is taken. C<undef> counts as not given. C<listen> is the list of all addresses, from C<listen>,
C<host>, C<port> and C<socket>; C<workers> and C<workers_max> are the numbers of workers at the start and at the most;
C<notices> is a list of lines about options without effect.

=head2 row

  my $row = Sirius::Options->row('max-requests');

A hash with C<name>, C<type>, C<default>, C<text>, C<group> and what the table says.

=head2 rows

  my @rows = Sirius::Options->rows;

All of them, in the table's order.

=head2 unknown

  Sirius::Options->unknown('wrokers');

L</fail>s with C<unknown option --wrokers (did you mean --workers?)>.

=head1 SEE ALSO

L<Sirius>, L<sirius>, L<Sirius::Config>, L<Sirius::Type>, L<Sirius::Usage>.

=cut
