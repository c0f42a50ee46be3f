package Sirius::Config::Options;

use strict;
use warnings;

use File::Spec ();
use List::Util qw(max min);
use Sirius::Config::Foreign;
use Sirius::Config::Type;

my $MANY = 0x7fff_ffff;
my $WEEK = 7 * 86400;

# A string opens a group; an array is an option: name, type, default, help text, and properties:
#   alias     other names
#   bare      the value that it has without one, which "=" has to introduce
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
#   runner    what only the command sirius can do, before the application is loaded
#   short     letter
#   socket    the path is that of a unix socket
#   suggest   some of the values that are possible, for completion
#   typed     how the name is shown when that is not --name
#   value     word for the value in the list of options
#<<< a table: its columns mean more than the tidier's
my @TABLE = (
    'Application',
    [ 'app', 'string', undef, 'Load the application from FILE (default: the first argument, or app.psgi)', { short => 'a', plackup => 1, passed => 1, value => 'FILE' } ],
    [ 'e', 'string', undef, 'Evaluate CODE to get the application, instead of loading a file', { alias => ['eval'], plackup => 1, value => 'CODE' } ],
    [ 'I', 'string', undef, 'Search DIR for modules before all other directories; may be given several times', { alias => ['include'], many => 1, plackup => 1, value => 'DIR' } ],
    [ 'M', 'string', undef, 'Load MODULE before the application; may be given several times', { alias => ['module'], many => 1, plackup => 1, value => 'MODULE' } ],
    [ 'env', 'string', 'deployment', 'Set PLACK_ENV; "development" adds the middleware Lint, StackTrace and AccessLog', { short => 'E', plackup => 1, passed => 1, suggest => [qw(deployment development test)], value => 'NAME' } ],
    [ 'path', 'string', undef, 'Mount the application at this URL path (default: /)', { plackup => 1, value => 'PATH' } ],
    [ 'loader', 'string', undef, 'Load the application with this Plack loader: Delayed loads it in each worker, Shotgun for each request; Restarter is the same as --reload (default: load it once, before the workers are forked)', { short => 'L', plackup => 1, suggest => [qw(Delayed Restarter Shotgun)], value => 'NAME' } ],
    [ 'reload', 'bool', undef, 'Load the application again whenever one of its files changes, as "sirius dev" does', { short => 'r', plackup => 'flag' } ],
    [ 'Reload', 'string', undef, 'The same, and watch these comma-separated files and directories as well', { alias => ['reload-dirs'], short => 'R', plackup => 1, value => 'DIRS' } ],
    [ 'default-middleware', 'bool', undef, 'Do not add the middleware of the development environment', { typed => '--no-default-middleware', plackup => 'flag' } ],
    [ 'server', 'string', 'Sirius', 'Serve the application with this Plack handler', { short => 's', plackup => 1, value => 'NAME' } ],
    [ 'version', 'bool', undef, 'Print the version and exit', { command => 1, short => 'v', plackup => 'flag' } ],
    [ 'help', 'bool', undef, 'Print this help and exit', { command => 1, short => 'h', plackup => 'flag' } ],
    [ 'show-config', 'bool', undef, 'Print the value of each option and where it comes from, and exit', { command => 1, runner => 1 } ],
    [ 'completion', 'choice', undef, 'Print a script that completes the commands and options of sirius in this shell, and exit', { command => 1, of => [qw(bash fish zsh)], runner => 1, value => 'bash|fish|zsh' } ],

    'Development (with sirius dev or --reload)',
    [ 'watch', 'string', undef, 'Watch this file or directory as well; may be given several times. By default, the directory of the application file and all loaded files that are not in a library directory of perl are watched', { many => 1, value => 'PATH' } ],
    [ 'watch-exclude', 'string', undef, 'Do not watch this file or directory, because the application itself writes there; may be given several times', { many => 1, value => 'PATH' } ],
    [ 'watch-scan', 'bool', 0, 'Look at all watched files twice a second, instead of being told by inotify: for network file systems', {} ],
    [ 'preload-modules', 'bool', 1, 'Load modules from library directories of perl once, and fork from there for each reload, or load everything each time (default: enabled)', { typed => '--enable-preload-modules, --disable-preload-modules' } ],
    [ 'live-reload', 'bool', 0, 'Add a script to HTML pages that loads the page again in the browser after each reload', {} ],

    'Listening',
    [ 'listen', 'listen', ':5000', 'Listen on ADDRESS: HOST:PORT, :PORT, *:PORT or [IPV6]:PORT; the path of a unix socket, with a slash in it, or unix:PATH?mode=0660&group=NAME; @NAME for an abstract unix socket; fd:N or systemd:NAME for a socket that is already open; with ",tls" at its end, as in 0.0.0.0:443,tls, it speaks TLS; may be given several times', { short => 'l', many => 1 } ],
    [ 'host', 'string', undef, 'Listen on this host, on the port that --port sets (default: all IPv4 addresses)', { short => 'o', value => 'HOST' } ],
    [ 'port', 'port', undef, 'Listen on this TCP port; 0 lets the system choose one (default: the variable PORT, or 5000)', { short => 'p' } ],
    [ 'socket', 'string', undef, 'Listen on a unix socket at PATH', { short => 'S', alias => ['socket-path'], value => 'PATH' } ],
    [ 'backlog', 'count', 4096, 'Let up to N new connections wait in the kernel until they are accepted; the kernel limits N to net.core.somaxconn', { min => 1, max => 65535 } ],
    [ 'socket-mode', 'octal', undef, 'Set the file mode of unix sockets whose address has no ?mode= (default: 0777 less the umask)', {} ],
    [ 'socket-owner', 'user', undef, 'Set the owner of unix sockets whose address has no ?owner=', {} ],
    [ 'socket-group', 'group', undef, 'Set the group of unix sockets whose address has no ?group=', {} ],

    'TLS',
    [ 'tls-cert', 'paths', undef, 'Read a certificate and its chain from FILE (PEM), for the addresses of --listen that end with ",tls"; may be given several times: SNI chooses among the certificates, and the first one is the default', { alias => ['ssl-cert'], many => 1 } ],
    [ 'tls-key', 'paths', undef, 'Read the private key of the --tls-cert at the same position from FILE (default: the file of --tls-cert)', { alias => ['ssl-key'], many => 1 } ],
    [ 'tls-dir', 'dir', undef, 'Read all certificates below DIR, a directory of certbot such as /etc/letsencrypt: DIR/live/NAME/fullchain.pem and privkey.pem', {} ],
    [ 'tls-self-signed', 'bool', 0, 'Make a self-signed certificate for localhost, for development; it is kept in $XDG_STATE_HOME/sirius/self-signed.pem (default: ~/.local/state) with its key, and used by later starts', {} ],
    [ 'tls-min', 'choice', '1.2', 'Refuse TLS versions below this one', { of => [qw(1.2 1.3)], value => '1.2|1.3' } ],
    [ 'tls-ciphers', 'string', undef, q(Accept only these ciphers, separated by colons, with OpenSSL's names; names that begin with TLS_ are for TLS 1.3, all others for TLS 1.2. A version of which LIST has no cipher keeps its default (default: those that Mozilla recommends as "intermediate")), { value => 'LIST' } ],
    [ 'tls-client-ca', 'path', undef, 'Ask clients for a certificate, and accept those that a CA in FILE (PEM) has issued', {} ],
    [ 'tls-client-crl', 'paths', undef, 'Refuse certificates of clients that a CRL in FILE (PEM) has revoked; may be given several times. Each CA that has issued a certificate needs a CRL that has not expired. CRLs in the file of --tls-client-ca count likewise', { alias => ['ssl-crl'], many => 1 } ],
    [ 'tls-client-verify', 'choice', 'required', 'With --tls-client-ca: refuse clients without a certificate (required), or accept them (optional)', { of => [qw(required optional)], value => 'required|optional' } ],
    [ 'tls-handshake-timeout', 'seconds', 10, 'Limit the time in which a client must complete the TLS handshake; after that the connection is closed', { min => 0.01, max => 3600 } ],
    [ 'https-redirect', 'redirect', undef, 'Redirect requests that come without TLS to the same URL with https (status 308), except those on unix sockets and those that a proxy in --trust-proxy has received over https; PORT is the port in the URL (default: that of --listen ADDRESS,tls)', { bare => 'yes', value => 'PORT' } ],
    [ 'hsts', 'hsts', undef, 'Add Strict-Transport-Security with this max-age, such as 31536000 or 365d, to all responses over TLS, so that browsers use https only; includeSubDomains and preload may follow after commas; 0: browsers forget it', { value => 'SECONDS[,includeSubDomains][,preload]' } ],
    [ 'acme-webroot', 'dir', undef, 'Serve the challenges that "certbot certonly --webroot -w DIR" writes, DIR/.well-known/acme-challenge/TOKEN, on all addresses without TLS, before any redirect', {} ],
    [ 'ssl', 'bool', 0, 'Speak TLS on all addresses of --listen, as with Starman', { typed => '--enable-ssl' } ],

    'Workers',
    [ 'workers', 'workers', 10, 'Run N worker processes; auto: one for each CPU; MIN:MAX or MIN:auto: between MIN and MAX, depending on the load; 0: none, the main process runs the application itself', { alias => ['max-workers'], max => 4096, suggest => ['auto'], value => 'N' } ],
    [ 'edges', 'edges', 1, 'Run N edge processes, which own the client connections and pass requests to the workers; auto: one for every 8 CPUs', { min => 1, max => 32, suggest => ['auto'], value => 'N' } ],
    [ 'min-servers', 'count', undef, 'Set the minimum number of workers, MIN of --workers MIN:MAX', { min => 1, max => 4096 } ],
    [ 'max-servers', 'count', undef, 'Set the maximum number of workers, MAX of --workers MIN:MAX', { min => 1, max => 4096 } ],
    [ 'max-reqs-per-child', 'count', 0, 'Replace a worker after it has served N requests; 0: never', { alias => ['max-requests'], min => 0, max => $MANY } ],
    [ 'min-reqs-per-child', 'count', undef, 'Replace each worker after a random number of requests between N and --max-reqs-per-child (default: 90% of that)', { min => 1, max => $MANY } ],
    [ 'max-rss', 'bytes', 0, 'Replace a worker whose resident memory exceeds this size; 0: no limit', { min => 0, max => 1 << 50, least => 8 << 20, why => 'less than any worker needs' } ],
    [ 'max-lifetime', 'seconds', 0, 'Replace a worker after this time, less a random part of up to 10%; 0: never', { min => 0, max => 52 * $WEEK } ],
    [ 'drain-delay', 'seconds', 0, 'After TERM, keep serving for this time while /readyz answers 503, so that load balancers stop sending requests before the server closes its sockets', { min => 0, max => $WEEK } ],
    [ 'graceful-timeout', 'seconds', 30, 'After TERM or a reload, let requests run for this time, then kill the workers that have not finished', { min => 0, max => $WEEK } ],
    [ 'load-timeout', 'seconds', 300, 'Limit the time for loading the application, for --warm-up and for each hook. When it is over, a start fails; a reload fails, and the old code keeps serving; a worker is killed and replaced. 0: no limit', { min => 0, max => $WEEK } ],
    [ 'warm-up', 'warm-up', undef, q(Let the application answer requests before the first worker is forked, so that the workers share what these leave in memory: PATHS, separated by commas, are requested by GET; CODE, a 'sub {...}', is called with the application; may be given several times), { many => 1, value => 'PATHS|CODE' } ],
    [ 'warm-up-required', 'bool', 0, 'Fail the start, or the reload, if a request of --warm-up gets a 5xx status or its code dies', {} ],
    [ 'warm-up-workers', 'bool', undef, 'Repeat the whole warm-up, code included, in each new worker before it is ready; or disable the repetition (default: repeat only its GET requests, so that the first request of a worker is not slower than later ones)', { typed => '--enable-warm-up-workers, --disable-warm-up-workers' } ],
    [ 'spawn-interval', 'seconds', 0, 'Wait this time between the starts of two workers', { min => 0, max => 3600 } ],
    [ 'err-respawn-interval', 'seconds', 1, 'Wait this time before restarting a worker that failed to start; the time doubles with each failure, up to 30 seconds', { min => 0.01, max => 3600 } ],
    [ 'before-fork', 'code', undef, q(Call CODE, a 'sub {...}', in the parent process before each worker is forked), {} ],
    [ 'after-fork', 'code', undef, q(Call CODE, a 'sub {...}', in each worker before it serves requests), {} ],
    [ 'child-exit', 'code', undef, q(Call CODE, a 'sub {...}', in each worker before it exits), {} ],
    [ 'on-reload', 'code', undef, q(Call CODE, a 'sub {...}', in the parent process of the old workers after a reload), {} ],

    'Keep-alive',
    [ 'keepalive', 'bool', 1, 'Keep connections open for more requests, or close each one after its response (default: enabled)', { typed => '--enable-keepalive, --disable-keepalive' } ],
    [ 'keepalive-timeout', 'seconds', 75, 'Close an idle connection after this time; 0: disable keep-alive', { min => 0, max => $WEEK } ],
    [ 'max-keepalive-reqs', 'count', 0, 'Close a connection after N requests; 0: no limit, 1: disable keep-alive', { min => 0, max => $MANY } ],

    'Connections and queue',
    [ 'max-connections', 'count', 0, 'Limit the number of open connections. At the limit, the server closes the connection that has been idle longest to accept a new one; if none is idle, it answers the new one with 503. 0: as many as the limit of file descriptors allows', { min => 0, max => $MANY } ],
    [ 'max-queue', 'count', 1000, 'Limit the number of complete requests that wait for a worker; further ones are answered with 503', { min => 1, max => 50_000 } ],
    [ 'queue-timeout', 'seconds', 30, 'Limit the time that a complete request may wait for a worker; after that it is answered with 503; 0: no limit', { min => 0, max => $WEEK } ],
    [ 'half-closed', 'choice', 'refuse', 'Handle requests that wait for a worker and whose client has shut down its sending side over TCP, which most clients do only when they close the connection: refuse answers 503 and does not call the application, serve lets them wait on', { of => [qw(refuse serve)], value => 'refuse|serve' } ],

    'Time limits',
    [ 'header-timeout', 'seconds', 30, 'Limit the time in which a client must send a complete request head; after that it is answered with 408', { alias => ['read-timeout'], min => 0.01, max => $WEEK } ],
    [ 'body-timeout', 'seconds', 30, 'Answer with 408 when a request body arrives more slowly than --body-rate over this time', { min => 0.01, max => $WEEK } ],
    [ 'body-rate', 'bytes', 100, 'Set the minimum rate of a request body, in bytes per second; 0: no minimum', { min => 0, max => $MANY } ],
    [ 'write-timeout', 'seconds', 60, 'Close a connection when its client has accepted no data of a response for this time', { min => 0.01, max => $WEEK } ],
    [ 'request-timeout', 'seconds', 0, 'Limit the time from the complete request to the start of its response, including the wait for a worker; after that the request is answered with 504 and its worker is replaced; 0: no limit', { min => 0, max => $WEEK } ],
    [ 'stream-timeout', 'seconds', 0, 'Limit the time that the application may pause within a response; after that the response is cut off and the worker is replaced; 0: no limit', { min => 0, max => $WEEK } ],
    [ 'timeout', 'seconds', undef, 'Set both --write-timeout and --body-timeout, unless they are given themselves', { min => 0.01, max => $WEEK } ],

    'Size limits',
    [ 'max-request-line', 'bytes', 16384, 'Limit the size of the request line; longer ones are answered with 414', { min => 16, max => 1 << 24 } ],
    [ 'max-header-bytes', 'bytes', 65536, 'Limit the size of the request head; larger ones are answered with 431', { min => 64, max => 1 << 24 } ],
    [ 'max-header-fields', 'count', 100, 'Limit the number of header fields of a request; more are answered with 431', { min => 1, max => 256 } ],
    [ 'max-body', 'bytes', 1 << 30, 'Limit the size of a request body; larger ones are answered with 413', { min => 0, max => 1 << 50, few => 1024 } ],
    [ 'body-memory', 'bytes', 65536, 'Keep request bodies of up to this size in memory; larger ones go to a file in --tmpdir', { min => 0, max => 1 << 30 } ],
    [ 'max-temp-file-size', 'bytes', 4 << 30, 'Limit the size of all temporary files in --tmpdir together. At the limit, or when the disk is full, a worker waits for a client that reads slowly, and while requests wait for workers, the slowest clients are cut off; the slowest upload is answered with 507. 0: no limit', { min => 0, max => 1 << 50, few => 1 << 20 } ],
    [ 'tmpdir', 'dir', File::Spec->tmpdir, 'Write temporary files to DIR: large request bodies, and responses that clients read slowly (default: TMPDIR, or /tmp)', { writable => 1 } ],

    'Static files',
    [ 'static', 'static', undef, 'Serve the files below DIR under the path PREFIX without the application: --static /assets=public. Options follow after commas: immutable or max-age=SECONDS sets Cache-Control; index=FILE is served for a directory (index alone: index.html); pass-through leaves to the application what is not there; follow-links follows symbolic links within DIR, follow-links=all all of them; charset=NAME is that of text files (default: utf-8; none: none). May be given several times', { many => 1, value => 'PREFIX=DIR' } ],

    'Process',
    [ 'config', 'path', undef, 'Read options from FILE, one "name = value" on each line', { command => 1 } ],
    [ 'env-file', 'paths', undef, 'Set the environment variables in FILE, one NAME=VALUE on each line, before loading the application, and read FILE again at each reload; variables that are already set keep their value; may be given several times', { many => 1, runner => 1, value => 'FILE' } ],
    [ 'control', 'path', undef, 'Accept the commands of "sirius ctl" on a unix socket at PATH', { socket => 1, value => 'PATH' } ],
    [ 'pid', 'path', undef, 'Write the PID of the supervisor to FILE', { alias => [qw(pid-file pidfile)] } ],
    [ 'user', 'user', undef, 'Run as USER once the sockets are open; the server must be started as root', {} ],
    [ 'group', 'group', undef, 'Run as GROUP; supplementary groups follow after commas (default: the groups of --user)', { list => 1 } ],
    [ 'sandbox', 'bool', 1, 'Restrict the processes that own connections and private keys to the system calls and files that they need (seccomp and Landlock of Linux), or let them do all that their user may (default: enabled)', { typed => '--enable-sandbox, --disable-sandbox' } ],
    [ 'umask', 'octal', undef, 'Set the file mode creation mask', {} ],
    [ 'chdir', 'dir', undef, 'Change to DIR before loading the application; the paths of the application file, -I, -R and --static are relative to DIR', {} ],
    [ 'daemonize', 'bool', undef, 'Run in the background once the server is ready', { short => 'D' } ],
    [ 'error-log', 'path', undef, 'Append everything that is printed to STDERR to FILE; the signal USR1 reopens it', { alias => ['log-file'] } ],
    [ 'log-prefix', 'bool', undef, 'Start each line of the error log with the time, PID and level, or leave lines as they are (default: enabled with --error-log)', { typed => '--enable-log-prefix, --disable-log-prefix' } ],
    [ 'proctitle', 'bool', 1, 'Show in ps what each process does and which application it serves, or leave the command line as it is (default: enabled)', { typed => '--enable-proctitle, --disable-proctitle' } ],

    'Logging and monitoring',
    [ 'access-log', 'string', undef, 'Log each request to FILE, to STDOUT (-), to syslog:FACILITY or to a command ("|COMMAND")', { value => 'FILE' } ],
    [ 'access-log-format', 'string', 'combined', q(Format the access log as common, combined, ltsv or json, or with a format string as in Apache's LogFormat), { suggest => [qw(combined common json ltsv)], value => 'FORMAT' } ],
    [ 'access-log-min-time', 'seconds', 0, 'Log only requests that took at least this time', { min => 0, max => $WEEK } ],
    [ 'access-log-errors-only', 'bool', 0, 'Log only responses with a status of 4xx or 5xx, and responses that were cut off', {} ],
    [ 'slow-log', 'seconds', 0, 'Write each request that runs in the application for longer than this to the error log, with its Perl stack; the request goes on; at most 20 of them a minute are logged; 0: none', { min => 0, max => $WEEK } ],
    [ 'admin', 'listen', undef, 'Serve the status page, metrics and health checks on ADDRESS, a loopback address or a unix socket; may be given several times', { many => 1 } ],
    [ 'admin-public', 'bool', 0, 'Allow --admin to listen on addresses that other machines can reach', {} ],

    'Proxies',
    [ 'trust-proxy', 'proxies', undef, 'Trust X-Forwarded-For and X-Forwarded-Proto from proxies in these networks, separated by commas, such as 10.0.0.0/8,::1; "unix" stands for unix sockets. Add "x-forwarded-host" or "x-forwarded-port" to trust these fields as well, or "forwarded" to trust only the Forwarded field', { value => 'CIDR,...' } ],
    [ 'underscores-in-headers', 'choice', 'off', 'Handle header fields with an underscore in their name: off drops them, on passes them to the application, trusted passes only those from peers in --trust-proxy', { of => [qw(off on trusted)], value => 'off|on|trusted' } ],
    [ 'proxy-protocol', 'bool', 0, 'Expect a PROXY protocol header, version 1 or 2, at the start of each connection; with --trust-proxy only from these networks', {} ],

    [ 'informational', 'choice', 'direct', 'Send the informational responses (1xx) of applications, such as 103 Early Hints: direct, not to trusted proxies, to peers on unix sockets or with --proxy-protocol, since not every proxy can read them; on, to these as well; off, to nobody. They are never sent in response to HEAD or HTTP/1.0', { of => [qw(direct on off)], value => 'direct|on|off' } ],

    'Other',
    [ 'server-software', 'token', 'Sirius', 'Set the Server field of responses; an empty value removes it', {} ],
    [ 'server-ready', 'code', undef, 'called for each TCP listener once it is served', { hidden => 1 } ],
    [ 'develop', 'any', undef, 'what sirius dev changes', { hidden => 1 } ],
    [ 'request-log', 'any', undef, 'the supervisor prints the access log', { hidden => 1 } ],
    [ 'listen-sock', 'any', undef, 'a socket that listens already', { hidden => 1 } ],
    [ 'sources', 'any', undef, 'what other sources say, read already', { hidden => 1 } ],
    ( map { [ $_, 'any', undef, 'what frameworks pass to every handler', { hidden => 1 } ] } qw(argv extra-argv) ),

    'Options of other servers',
    [ 'preload-app', 'bool', undef, '', { noop => 'the application is always loaded before the workers are forked, unless -L Delayed is given' } ],
    [ 'max-keepalive-connection', 'count', undef, '', { alias => ['max-keepalive-connections'], noop => 'an idle connection occupies no worker; --max-connections limits all connections' } ],
    ( map { [ "$_-readahead-reqs", 'count', undef, '', { noop => 'a worker never waits on one connection' } ] } qw(max min) ),
    ( map { [ "$_-spare-servers", 'count', undef, '', { noop => 'the number of workers follows the load between MIN and MAX of --workers' } ] } qw(min max) ),
    [ 'net-server', 'any', undef, '', { family => 1, typed => '--net-server-*', noop => 'Sirius does not use Net::Server' } ],
);
#>>>

my ( @ROWS, %BY_NAME, $group );
for my $entry (@TABLE) {
    if ( !ref $entry ) { $group = $entry; next }
    my ( $name, $type, $default, $text, $more ) = @$entry;
    $text = "No effect: $more->{noop}"       if $more->{noop};
    $text = "Not accepted: $more->{refused}" if $more->{refused};
    push @ROWS, { name => $name, type => $type, default => $default, text => $text, group => $group, %$more };
    $BY_NAME{$_} ||= $ROWS[-1] for $name, @{ $more->{alias} || [] }, grep {defined} $more->{short};
}

sub check {
    my ( $class, $row, $value, $from ) = @_;
    return if $row->{refused} && $value =~ /\A0?\z/;    # plackup passes this for --disable-ssl
    local $SIG{__DIE__};
    my ($checked)
        = eval { die "$row->{refused}\n" if $row->{refused}; Sirius::Config::Type->check( $row, $value ) };
    return $checked if !$@;
    chomp( my $error = $@ );
    return $class->fail( "--$row->{name}: $error", $from );
}

sub closest {
    my ( $class, $name ) = @_;
    return $class->nearest( $name, sort grep { length > 1 && !$BY_NAME{$_}{hidden} } keys %BY_NAME );
}

sub fail {
    my ( $class, $message, $from ) = @_;
    $message .= " (from $from)" if defined $from;
    $! = 2;    # perl exits with this if nobody catches the error
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

sub hint {
    my ( $class, $name, $dashes, @allowed ) = @_;
    my $foreign = Sirius::Config::Foreign->advice($name);
    return $foreign =~ /\A:/ ? $foreign : " $foreign" if defined $foreign;
    my $closest = $class->closest($name);
    return '' if !defined $closest || @allowed && !$allowed[0]->($closest);
    return " (did you mean $dashes$closest?)";
}

sub key {
    my ( $class, $name ) = @_;
    return $name =~ tr/-/_/r;
}

sub nearest {
    my ( $class, $name, @candidates ) = @_;
    my ( $best, $least ) = ( undef, 1 + min 3, int( length($name) / 2 ) );

    # An option that begins with it, which other programs would accept as an abbreviation
    my @longer = grep { index( $_, $name ) == 0 } @candidates;
    return ( sort { length $a <=> length $b } @longer )[0] if length $name >= 3 && @longer;
    for my $candidate (@candidates) {
        my $distance = _distance( $name, $candidate );
        ( $best, $least ) = ( $candidate, $distance ) if $distance < $least;
    }
    return $best;
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
    return $class->fail( "unknown option --$name" . $class->hint( $name, '--' ) );
}

# The Levenshtein distance
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
(L<Sirius::Config::Values>), their checks, C<sirius --help> and the list in L<sirius> use it, so they cannot differ.

=head1 METHODS

=head2 check

  my $value = Sirius::Config::Options->check( $row, $text, $from );

Returns one value in its final form (see L<Sirius::Config::Type>), or calls L</fail>.

=head2 closest

  my $name = Sirius::Config::Options->closest('wrokers');    # workers

The most similar name, undefined if none is similar.

=head2 fail

  Sirius::Config::Options->fail('--workers: why');
  Sirius::Config::Options->fail( '--workers: why', 'SIRIUS_WORKERS' );

Dies with C<sirius: --workers: why>, or C<sirius: --workers: why (from SIRIUS_WORKERS)>. C<$!> is 2, so that a program that
doesn't catch it exits with 2.

=head2 find

  my ( $row, $sense ) = Sirius::Config::Options->find('disable-keepalive');

The L</row> of a name. For C<enable->, C<disable-> or C<no-> before the name of a yes-or-no option also what that means:
1 or 0.

=head2 hint

  my $text = Sirius::Config::Options->hint( 'wrokers', '--' );    # (did you mean --workers?)
  my $text = Sirius::Config::Options->hint( $name, '', $allowed );

What may be meant by a name that is no option, with a space before it: an option that is similar, or what replaces an option of another
server (L<Sirius::Config::Foreign>); '' if nothing is known. The dashes go before a similar name; C<$allowed> is a sub that tells
whether that name may be proposed.

=head2 key

  my $key = Sirius::Config::Options->key('max-body');    # max_body

=head2 nearest

  my $name = Sirius::Config::Options->nearest( 'chekc', 'check', 'ctl' );    # check

The most similar one of these words, undefined if none is similar.

=head2 row

  my $row = Sirius::Config::Options->row('max-requests');

A hash with C<name>, C<type>, C<default>, C<text>, C<group> and the other entries of the table.

=head2 rows

  my @rows = Sirius::Config::Options->rows;

All rows, in the order of the table.

=head2 unknown

  Sirius::Config::Options->unknown('wrokers');

L</fail>s with C<unknown option --wrokers (did you mean --workers?)>.

=head1 SEE ALSO

L<Sirius>, L<sirius>, L<Sirius::Config::Values>, L<Sirius::Config::Type>, L<Sirius::Config::Usage>.

=cut
