package Sirius::Config::Options;

use strict;
use warnings;

use File::Spec ();
use List::Util qw(max min);
use Sirius::Config::Type;

my $MANY = 0x7fff_ffff;
my $WEEK = 7 * 86400;

# A string opens a group, an array is an option: name, type, default, one line of text, and what else there is:
#   alias     other names
#   command   for the command line only, neither in the environment nor in a file
#   family    any name that begins with this one and a dash is meant as well
#   few       bytes: for fewer, given without a unit, a notice asks whether one was forgotten
#   hidden    for programs, not for the command line
#   least     of a size that is not 0: a smaller one is an error, since a unit was forgotten (why)
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
    [ 'app', 'string', undef, 'application file to load (default: the first argument, or app.psgi)', { short => 'a', plackup => 1, passed => 1, value => 'FILE' } ],
    [ 'e', 'string', undef, 'Perl code that returns the application, used in place of a file', { alias => ['eval'], plackup => 1, value => 'CODE' } ],
    [ 'I', 'string', undef, 'directory to search for modules before all others; may be given several times', { alias => ['include'], many => 1, plackup => 1, value => 'DIR' } ],
    [ 'M', 'string', undef, 'module to load before the application; may be given several times', { alias => ['module'], many => 1, plackup => 1, value => 'MODULE' } ],
    [ 'env', 'string', 'deployment', 'value of PLACK_ENV; development adds the middleware Lint, StackTrace and AccessLog', { short => 'E', plackup => 1, passed => 1, value => 'NAME' } ],
    [ 'path', 'string', undef, 'URL path at which the application is mounted (default: /)', { plackup => 1 } ],
    [ 'loader', 'string', undef, 'how the application is loaded: Delayed (by each worker), Shotgun (for each request) or Restarter (again when a file changes)', { short => 'L', plackup => 1, value => 'NAME' } ],
    [ 'reload', 'bool', undef, 'restart the server when the application file or its lib directory changes', { short => 'r', plackup => 'flag' } ],
    [ 'Reload', 'string', undef, 'restart the server when a file in these comma-separated directories changes', { alias => ['reload-dirs'], short => 'R', plackup => 1, value => 'DIRS' } ],
    [ 'default-middleware', 'bool', undef, 'do not add the middleware of the development environment', { typed => '--no-default-middleware', plackup => 'flag' } ],
    [ 'server', 'string', 'Sirius', 'Plack handler that serves the application', { short => 's', plackup => 1, value => 'NAME' } ],
    [ 'version', 'bool', undef, 'print the version and exit', { command => 1, short => 'v', plackup => 'flag' } ],
    [ 'help', 'bool', undef, 'print this help and exit', { command => 1, short => 'h', plackup => 'flag' } ],

    'Listening',
    [ 'listen', 'listen', ':5000', 'address to listen on: HOST:PORT, :PORT, *:PORT, [IPV6]:PORT, the path of a unix socket with a slash in it, unix:PATH?mode=0660&group=NAME, @ABSTRACT, fd:N or systemd:NAME; may be given several times', { short => 'l', many => 1 } ],
    [ 'host', 'string', undef, 'address to listen on, together with --port (default: all IPv4 addresses)', { short => 'o', value => 'HOST' } ],
    [ 'port', 'port', undef, 'TCP port to listen on; with 0 the system chooses one (default: 5000)', { short => 'p' } ],
    [ 'socket', 'string', undef, 'path of a unix socket to listen on', { short => 'S', alias => ['socket-path'], value => 'PATH' } ],
    [ 'backlog', 'count', 4096, 'maximum number of connections that wait in the kernel to be accepted; the kernel limits it to net.core.somaxconn', { min => 1, max => 65535 } ],
    [ 'socket-mode', 'octal', undef, 'file mode, in octal, of unix sockets whose address has no ?mode= (default: 0777 less the umask)', {} ],
    [ 'socket-owner', 'user', undef, 'owner of unix sockets whose address has no ?owner=', {} ],
    [ 'socket-group', 'group', undef, 'group of unix sockets whose address has no ?group=', {} ],

    'Workers',
    [ 'workers', 'workers', 10, 'number of worker processes; auto: one for each CPU; MIN:MAX or MIN:auto: between these two, as the load requires; 0: serve in a single process', { alias => ['max-workers'], max => 4096, value => 'N' } ],
    [ 'edges', 'edges', 1, 'number of edge processes, which own the connections, so that workers only run the application; auto: one for each 8 CPUs', { min => 1, max => 32, value => 'N' } ],
    [ 'min-servers', 'count', undef, 'minimum number of workers: MIN of --workers MIN:MAX', { min => 1, max => 4096 } ],
    [ 'max-servers', 'count', undef, 'maximum number of workers: MAX of --workers MIN:MAX', { min => 1, max => 4096 } ],
    [ 'max-reqs-per-child', 'count', 0, 'number of requests after which a worker is replaced; 0: never', { alias => ['max-requests'], min => 0, max => $MANY } ],
    [ 'min-reqs-per-child', 'count', undef, 'replace each worker after a random number of requests between this one and --max-reqs-per-child (default: 90 % of that)', { min => 1, max => $MANY } ],
    [ 'max-rss', 'bytes', 0, 'resident memory, in bytes, above which a worker is replaced; 0: no limit', { min => 0, max => 1 << 50, least => 8 << 20, why => 'less than any worker needs' } ],
    [ 'max-lifetime', 'seconds', 0, 'seconds after which a worker is replaced, less a random part of up to 10 %; 0: never', { min => 0, max => 52 * $WEEK } ],
    [ 'drain-delay', 'seconds', 0, 'seconds for which the server keeps serving after TERM while /readyz already answers 503, so that load balancers stop sending requests before it closes its sockets', { min => 0, max => $WEEK } ],
    [ 'graceful-timeout', 'seconds', 30, 'seconds that workers have to finish their requests after TERM or a reload; then they are killed', { min => 0, max => $WEEK } ],
    [ 'load-timeout', 'seconds', 300, 'seconds that loading the application and each hook may take; after that a start fails, a reload fails and the old code goes on, and a worker is killed and replaced. 0: no limit', { min => 0, max => $WEEK } ],
    [ 'spawn-interval', 'seconds', 0, 'seconds to wait between the starts of two workers', { min => 0, max => 3600 } ],
    [ 'err-respawn-interval', 'seconds', 1, 'seconds to wait before a worker that failed to start is started again; doubles with each failure, up to 30', { min => 0.01, max => 3600 } ],
    [ 'before-fork', 'code', undef, q('sub {...}' to call before each fork of a worker, in the parent process), {} ],
    [ 'after-fork', 'code', undef, q('sub {...}' to call in each worker before it serves), {} ],
    [ 'child-exit', 'code', undef, q('sub {...}' to call in each worker before it exits), {} ],
    [ 'on-reload', 'code', undef, q('sub {...}' to call after a reload, in the parent process of the old workers), {} ],

    'Keep-alive',
    [ 'keepalive', 'bool', 1, 'close each connection after one response, or keep it open for more requests (default: enabled)', { typed => '--disable-keepalive, --enable-keepalive' } ],
    [ 'keepalive-timeout', 'seconds', 75, 'seconds after which an idle connection is closed', { min => 0, max => $WEEK } ],
    [ 'max-keepalive-reqs', 'count', 0, 'number of requests served on one connection before it is closed; 0: no limit, 1: no keep-alive', { min => 0, max => $MANY } ],

    'Waiting',
    [ 'max-connections', 'count', 0, 'maximum number of open connections; at the limit the one that has been idle longest is closed, and if none is idle, a new one is answered 503. 0: as many as the limit of file descriptors allows', { min => 0, max => $MANY } ],
    [ 'max-queue', 'count', 1000, 'maximum number of complete requests that wait for a worker; further ones are answered 503', { min => 1, max => 50_000 } ],
    [ 'queue-timeout', 'seconds', 30, 'seconds that a complete request may wait for a worker before it is answered 503; 0: no limit', { min => 0, max => $WEEK } ],

    'Time limits',
    [ 'header-timeout', 'seconds', 30, 'seconds for a client to send a complete request head; then 408', { alias => ['read-timeout'], min => 0.01, max => $WEEK } ],
    [ 'body-timeout', 'seconds', 30, 'seconds over which the rate of a request body is measured; below --body-rate it is answered 408', { min => 0.01, max => $WEEK } ],
    [ 'body-rate', 'count', 100, 'minimum rate of a request body, in bytes per second; 0: none', { min => 0, max => $MANY } ],
    [ 'write-timeout', 'seconds', 60, 'seconds without progress of a response, after which the connection is closed', { min => 0.01, max => $WEEK } ],
    [ 'request-timeout', 'seconds', 0, 'seconds from the complete request to the start of its response, waiting included; then it is answered 504 and its worker is replaced. 0: no limit', { min => 0, max => $WEEK } ],
    [ 'stream-timeout', 'seconds', 0, 'seconds that the application may pause in a response that it has begun; then the response is cut off. 0: no limit', { min => 0, max => $WEEK } ],
    [ 'timeout', 'seconds', undef, 'seconds for --write-timeout and --body-timeout where these are not given', { min => 0.01, max => $WEEK } ],

    'Size limits',
    [ 'max-request-line', 'bytes', 16384, 'maximum size of the request line, in bytes; longer ones are answered 414', { min => 16, max => 1 << 24 } ],
    [ 'max-header-bytes', 'bytes', 65536, 'maximum size of the request head, in bytes; larger ones are answered 431', { min => 64, max => 1 << 24 } ],
    [ 'max-header-fields', 'count', 100, 'maximum number of header fields in a request; with more it is answered 431', { min => 1, max => 256 } ],
    [ 'max-body', 'bytes', 1 << 30, 'maximum size of a request body, in bytes; larger ones are answered 413', { min => 0, max => 1 << 50, few => 1024 } ],
    [ 'body-memory', 'bytes', 65536, 'maximum size, in bytes, of a request body that is kept in memory; larger ones go to a file in --tmpdir', { min => 0, max => 1 << 30 } ],
    [ 'tmpdir', 'dir', File::Spec->tmpdir, 'directory for temporary files: large request bodies, and responses that clients read slowly (default: TMPDIR, or /tmp)', { writable => 1 } ],

    'Process',
    [ 'config', 'path', undef, 'file to read options from, one "name = value" on each line', { command => 1 } ],
    [ 'control', 'path', undef, 'path of the unix socket for "sirius ctl"', {} ],
    [ 'pid', 'path', undef, 'file to write the PID of the supervisor to', { alias => [qw(pid-file pidfile)] } ],
    [ 'user', 'user', undef, 'user to run as once the server listens; needs to be started as root', {} ],
    [ 'group', 'group', undef, 'group to run as, and further groups after commas (default: the groups of --user)', { list => 1 } ],
    [ 'umask', 'octal', undef, 'file mode creation mask, in octal', {} ],
    [ 'chdir', 'dir', undef, 'directory to change to before the application is loaded; its file, -I and -R are looked for there', {} ],
    [ 'daemonize', 'bool', undef, 'run in the background once the server is ready', { short => 'D' } ],
    [ 'error-log', 'path', undef, 'file to which everything printed to STDERR is appended; USR1 reopens it', { alias => ['log-file'] } ],
    [ 'log-prefix', 'bool', undef, 'start each line of the error log with time, PID and level (default: enabled with --error-log)', { typed => '--enable-log-prefix, --disable-log-prefix' } ],
    [ 'proctitle', 'bool', 1, 'show in ps what each process does and for which application, or leave the command line as it is (default: enabled)', { typed => '--enable-proctitle, --disable-proctitle' } ],

    'Seeing what it does',
    [ 'access-log', 'string', undef, 'where to log each request: a file, - (STDOUT), syslog:FACILITY or "|COMMAND"', { value => 'FILE' } ],
    [ 'access-log-format', 'string', 'combined', 'format of the access log: common, combined, ltsv, json, or a format string of Apache\'s LogFormat', { value => 'FORMAT' } ],
    [ 'access-log-min-time', 'seconds', 0, 'log only requests that took at least this many seconds', { min => 0, max => $WEEK } ],
    [ 'access-log-errors-only', 'bool', 0, 'log only responses with a status of 4xx or 5xx and those that were cut off', {} ],
    [ 'admin', 'listen', undef, 'address of the status page, metrics and probes: a loopback address or a unix socket; may be given several times', { many => 1 } ],
    [ 'admin-public', 'bool', 0, 'allow --admin to listen on addresses that other machines can reach', {} ],

    'Proxies in front',
    [ 'trust-proxy', 'proxies', undef, 'comma-separated networks of proxies whose X-Forwarded-For, -Proto and -Port are trusted, such as 10.0.0.0/8,::1, or unix; add x-forwarded-host to trust that field too, or forwarded to trust only the Forwarded field', { value => 'CIDR,...' } ],
    [ 'underscores-in-headers', 'choice', 'off', 'whether header fields with an underscore in the name reach the application: off drops them, on passes them on, trusted passes on those of the peers in --trust-proxy', { of => [qw(off on trusted)], value => 'off|on|trusted' } ],
    [ 'proxy-protocol', 'bool', 0, 'expect the header of the PROXY protocol, version 1 or 2, at the start of each connection; with --trust-proxy only from these networks', {} ],

    'Other',
    [ 'server-software', 'token', 'Sirius', 'value of the Server response header; empty: no such header', {} ],
    [ 'server-ready', 'code', undef, 'called for each TCP listener once it is served', { hidden => 1 } ],
    [ 'listen-sock', 'any', undef, 'a socket that listens already', { hidden => 1 } ],
    [ 'sources', 'any', undef, 'what other sources say, read already', { hidden => 1 } ],
    ( map { [ $_, 'any', undef, 'what frameworks pass to every handler', { hidden => 1 } ] } qw(argv extra-argv) ),

    'Known from other servers',
    [ 'preload-app', 'bool', undef, '', { noop => 'the application is always loaded before the workers are forked, unless -L Delayed is given' } ],
    [ 'max-keepalive-connection', 'count', undef, '', { alias => ['max-keepalive-connections'], noop => 'an idle connection occupies no worker; --max-connections limits all connections' } ],
    ( map { [ "$_-readahead-reqs", 'count', undef, '', { noop => 'a worker never waits on one connection' } ] } qw(max min) ),
    ( map { [ "$_-spare-servers", 'count', undef, '', { noop => 'the number of workers follows the load between MIN and MAX of --workers' } ] } qw(min max) ),
    [ 'net-server', 'any', undef, '', { family => 1, typed => '--net-server-*', noop => 'Sirius does not use Net::Server' } ],
    [ 'ssl', 'bool', undef, '', { family => 1, typed => '--enable-ssl, --ssl-*', refused => 'Sirius speaks HTTP only; terminate TLS in a proxy in front of it' } ],
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
    my ($checked)
        = eval { die "$row->{refused}\n" if $row->{refused}; Sirius::Config::Type->check( $row, $value ) };
    return $checked if !$@;
    chomp( my $error = $@ );
    return $class->fail( "--$row->{name}: $error", $from );
}

sub closest {
    my ( $class, $name )  = @_;
    my ( $best,  $least ) = ( undef, 1 + min 3, int( length($name) / 2 ) );
    my @candidates = sort grep { length > 1 && !$BY_NAME{$_}{hidden} } keys %BY_NAME;

    # Its beginning, as other programs take it
    my @longer = grep { index( $_, $name ) == 0 } @candidates;
    return ( sort { length $a <=> length $b } @longer )[0] if length $name >= 3 && @longer;
    for my $candidate (@candidates) {
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

1;

=encoding utf8

=head1 NAME

Sirius::Config::Options - every option, in one table

=head1 SYNOPSIS

  use Sirius::Config::Options;

  my $row = Sirius::Config::Options->row('max-body');
  print Sirius::Config::Options->check( $row, '10m' );    # 10485760

=head1 DESCRIPTION

One table has the name, aliases, type, limits, default and text of every option. The code that reads options
(L<Sirius::Config::Settings>), their checks, C<sirius --help> and the list in L<sirius> use it, so they cannot differ.

=head1 METHODS

=head2 check

  my $value = Sirius::Config::Options->check( $row, $text, $from );

One value in its final form (see L<Sirius::Config::Type>), or L</fail>.

=head2 closest

  my $name = Sirius::Config::Options->closest('wrokers');    # workers

The name that was meant, undefined when none is near.

=head2 fail

  Sirius::Config::Options->fail('--workers: why');
  Sirius::Config::Options->fail( '--workers: why', 'SIRIUS_WORKERS' );

Dies with C<sirius: --workers: why>, or C<sirius: --workers: why (from SIRIUS_WORKERS)>. C<$!> is 2, so that a program that
doesn't catch it exits with 2.

=head2 find

  my ( $row, $sense ) = Sirius::Config::Options->find('disable-keepalive');

The L</row> of a name. For C<enable->, C<disable-> or C<no-> before the name of a yes-or-no option also what that means:
1 or 0.

=head2 key

  my $key = Sirius::Config::Options->key('max-body');    # max_body

=head2 row

  my $row = Sirius::Config::Options->row('max-requests');

A hash with C<name>, C<type>, C<default>, C<text>, C<group> and what the table says.

=head2 rows

  my @rows = Sirius::Config::Options->rows;

All of them, in the table's order.

=head2 unknown

  Sirius::Config::Options->unknown('wrokers');

L</fail>s with C<unknown option --wrokers (did you mean --workers?)>.

=head1 SEE ALSO

L<Sirius>, L<sirius>, L<Sirius::Config::Settings>, L<Sirius::Config::Type>, L<Sirius::Config::Usage>.

=cut
