package Sirius::Config::Options;

use strict;
use warnings;

use File::Spec ();
use List::Util qw(max min);
use Sirius::Config::Foreign;
use Sirius::Config::Type;

my $MANY = 0x7fff_ffff;
my $WEEK = 7 * 86400;

# A string opens a group; an array is an option: name, type, default, properties, and help text. Properties:
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
#   noop      has no effect here: the text says why
#   passed    frameworks pass it on to the handler, where it says nothing
#   plackup   what only Plack::Runner can do; "flag" when it takes no value
#   runner    what only the command sirius can do, before the application is loaded
#   short     letter
#   socket    the path is that of a unix socket
#   suggest   some of the values that are possible, for completion
#   typed     how the name is shown when that is not --name
#   value     word for the value in the list of options
#<<< a table: its columns mean more than the tidier's
my @TABLE = (
    'Application',
    [ 'app', 'string', undef, { short => 'a', plackup => 1, passed => 1, value => 'FILE' },
        'Load the application from FILE (default: the first argument, or app.psgi)' ],
    [ 'e', 'string', undef, { alias => ['eval'], plackup => 1, value => 'CODE' },
        'Evaluate CODE to get the application, instead of loading a file' ],
    [ 'I', 'string', undef, { alias => ['include'], many => 1, plackup => 1, value => 'DIR' },
        'Search DIR for modules before all other directories; may be given several times' ],
    [ 'M', 'string', undef, { alias => ['module'], many => 1, plackup => 1, value => 'MODULE' },
        'Load MODULE before the application; may be given several times' ],
    [ 'env', 'string', 'deployment', { short => 'E', plackup => 1, passed => 1, suggest => [qw(deployment development test)], value => 'NAME' },
        'Set PLACK_ENV; "development" adds the middleware Lint, StackTrace and AccessLog' ],
    [ 'path', 'mount', undef, { plackup => 1, value => 'PATH' }, 'Mount the application at this URL path (default: /)' ],
    [ 'loader', 'string', undef, { short => 'L', plackup => 1, suggest => [qw(Delayed Restarter Shotgun)], value => 'NAME' },
        'Load the application with this Plack loader: Delayed loads it in each worker, Shotgun for each request; Restarter is the
        same as --reload (default: load it once, before the workers are forked)' ],
    [ 'reload', 'bool', undef, { short => 'r', plackup => 'flag' },
        'Load the application again whenever one of its files changes, as "sirius dev" does' ],
    [ 'Reload', 'string', undef, { alias => ['reload-dirs'], short => 'R', plackup => 1, value => 'DIRS' },
        'The same, and watch these comma-separated files and directories as well' ],
    [ 'default-middleware', 'bool', undef, { typed => '--no-default-middleware', plackup => 'flag' },
        'Do not add the middleware of the development environment' ],
    [ 'server', 'string', 'Sirius', { short => 's', plackup => 1, value => 'NAME' },
        'Serve the application with this Plack handler' ],
    [ 'version', 'bool', undef, { command => 1, short => 'v', plackup => 'flag' }, 'Print the version and exit' ],
    [ 'help', 'bool', undef, { command => 1, short => 'h', plackup => 'flag' }, 'Print this help and exit; -h: the options of a day alone' ],
    [ 'show-config', 'bool', undef, { command => 1, runner => 1 },
        'Print the value of each option and where it comes from, and exit' ],
    [ 'completion', 'choice', undef, { command => 1, of => [qw(bash fish zsh)], runner => 1, value => 'bash|fish|zsh' },
        'Print a script that completes the commands and options of sirius in this shell, and exit' ],

    'Development (with sirius dev or --reload)',
    [ 'watch', 'string', undef, { many => 1, value => 'PATH' },
        'Watch this file or directory as well; may be given several times. By default, the directory of the application file and all
        loaded files that are not in a library directory of perl are watched' ],
    [ 'watch-exclude', 'string', undef, { many => 1, value => 'PATH' },
        'Do not watch this file or directory, because the application itself writes there; may be given several times' ],
    [ 'watch-scan', 'bool', 0, {},
        'Look at all watched files twice a second, instead of being told by inotify: for network file systems' ],
    [ 'preload-modules', 'bool', 1, { typed => '--enable-preload-modules, --disable-preload-modules' },
        'Load modules from library directories of perl once, and fork from there for each reload, or load everything each time
        (default: enabled)' ],
    [ 'live-reload', 'bool', 0, {},
        'Add a script to HTML pages that loads the page again in the browser after each reload; style sheets are replaced without
        that' ],
    [ 'open', 'bool', 0, {},
        'Open the application in a browser once it is ready, by the program in the variable BROWSER, or xdg-open' ],
    [ 'editor', 'string', undef, { suggest => [qw(vscode vscodium cursor idea zed sublime emacs none)], value => 'URL' },
        'Set what the file names in error pages lead to: an editor by its name, or a URL with %f for the file and %l for the line,
        such as vscode://file/%f:%l (default: by VISUAL, EDITOR and TERM_PROGRAM; none: no links)' ],

    'Listening',
    [ 'listen', 'listen', ':5000', { short => 'l', many => 1 },
        'Listen on ADDRESS: HOST:PORT, :PORT, *:PORT or [IPV6]:PORT; the path of a unix socket, with a slash in it, or
        unix:PATH?mode=0660&group=NAME; @NAME for an abstract unix socket; fd:N or systemd:NAME for a socket that is already open;
        with ",tls" at its end, as in 0.0.0.0:443,tls, it speaks TLS; with ",h2c", HTTP/2 without TLS beside HTTP/1.1; may be given
        several times' ],
    [ 'host', 'string', undef, { short => 'o', value => 'HOST' },
        'Listen on this host, on the port that --port sets (default: all IPv4 addresses)' ],
    [ 'port', 'port', undef, { short => 'p' },
        'Listen on this TCP port; 0 lets the system choose one (default: the variable PORT, or 5000)' ],
    [ 'socket', 'string', undef, { short => 'S', alias => ['socket-path'], value => 'PATH' }, 'Listen on a unix socket at PATH' ],
    [ 'backlog', 'count', 4096, { min => 1, max => 65535 },
        'Let up to N new connections wait in the kernel until they are accepted; the kernel limits N to net.core.somaxconn' ],
    [ 'socket-mode', 'octal', undef, {},
        'Set the file mode of unix sockets whose address has no ?mode= (default: 0777 less the umask)' ],
    [ 'socket-owner', 'user', undef, {}, 'Set the owner of unix sockets whose address has no ?owner=' ],
    [ 'socket-group', 'group', undef, {}, 'Set the group of unix sockets whose address has no ?group=' ],

    'TLS',
    [ 'tls-cert', 'paths', undef, { alias => ['ssl-cert'], many => 1 },
        'Read a certificate and its chain from FILE (PEM), for the addresses of --listen that end with ",tls"; may be given several
        times: SNI chooses among the certificates, and the first one is the default' ],
    [ 'tls-key', 'paths', undef, { alias => ['ssl-key'], many => 1 },
        'Read the private key of the --tls-cert at the same position from FILE (default: the file of --tls-cert)' ],
    [ 'tls-dir', 'dir', undef, {},
        'Read all certificates below DIR, a directory of certbot such as /etc/letsencrypt: DIR/live/NAME/fullchain.pem and
        privkey.pem' ],
    [ 'tls-self-signed', 'bool', 0, {},
        'Make a self-signed certificate for localhost, for development; it is kept in $XDG_STATE_HOME/sirius/self-signed.pem
        (default: ~/.local/state) with its key, and used by later starts' ],
    [ 'tls-min', 'choice', '1.2', { of => [qw(1.2 1.3)], value => '1.2|1.3' }, 'Refuse TLS versions below this one' ],
    [ 'tls-ciphers', 'string', undef, { value => 'LIST' },
        q(Accept only these ciphers, separated by colons, with OpenSSL's names; names that begin with TLS_ are for TLS 1.3, all
        others for TLS 1.2. A version of which LIST has no cipher keeps its default (default: those that Mozilla recommends as
        "intermediate")) ],
    [ 'tls-client-ca', 'path', undef, {}, 'Ask clients for a certificate, and accept those that a CA in FILE (PEM) has issued' ],
    [ 'tls-client-crl', 'paths', undef, { alias => ['ssl-crl'], many => 1 },
        'Refuse certificates of clients that a CRL in FILE (PEM) has revoked; may be given several times. Each CA that has issued a
        certificate needs a CRL that has not expired. CRLs in the file of --tls-client-ca count likewise' ],
    [ 'tls-client-verify', 'choice', 'required', { of => [qw(required optional)], value => 'required|optional' },
        'With --tls-client-ca: refuse clients without a certificate (required), or accept them (optional)' ],
    [ 'tls-handshake-timeout', 'seconds', 10, { min => 0.01, max => 3600 },
        'Limit the time in which a client must complete the TLS handshake; after that the connection is closed' ],
    [ 'https-redirect', 'redirect', undef, { bare => 'yes', value => 'PORT' },
        'Redirect requests that come without TLS to the same URL with https (status 308), except those on unix sockets and those
        that a proxy in --trust-proxy has received over https; PORT is the port in the URL (default: that of --listen ADDRESS,tls)' ],
    [ 'hsts', 'hsts', undef, { value => 'SECONDS[,includeSubDomains][,preload]' },
        'Add Strict-Transport-Security with this max-age, such as 31536000 or 365d, to all responses over TLS, so that browsers use
        https only; includeSubDomains and preload may follow after commas; 0: browsers forget it' ],
    [ 'acme-webroot', 'dir', undef, {},
        'Serve the challenges that "certbot certonly --webroot -w DIR" writes, DIR/.well-known/acme-challenge/TOKEN, on all
        addresses without TLS, before any redirect' ],
    [ 'ssl', 'bool', 0, { typed => '--enable-ssl' }, 'Speak TLS on all addresses of --listen, as with Starman' ],

    'Workers',
    [ 'workers', 'workers', 10, { alias => ['max-workers'], max => 4096, suggest => ['auto'], value => 'N' },
        'Run N worker processes; auto: one for each CPU; auto*4: four; MIN:MAX or MIN:auto: between MIN and MAX, depending on the load; 0: none,
        the main process runs the application itself' ],
    [ 'edges', 'edges', 1, { min => 1, max => 32, suggest => ['auto'], value => 'N' },
        'Run N edge processes, which own the client connections and pass requests to the workers; auto: one for every 8 CPUs' ],
    [ 'min-servers', 'count', undef, { min => 1, max => 4096 }, 'Set the minimum number of workers, MIN of --workers MIN:MAX' ],
    [ 'max-servers', 'count', undef, { min => 1, max => 4096 }, 'Set the maximum number of workers, MAX of --workers MIN:MAX' ],
    [ 'max-reqs-per-child', 'count', 0, { alias => ['max-requests'], min => 0, max => $MANY },
        'Replace a worker after it has served N requests; 0: never' ],
    [ 'min-reqs-per-child', 'count', undef, { min => 1, max => $MANY },
        'Replace each worker after a random number of requests between N and --max-reqs-per-child (default: 90% of that)' ],
    [ 'max-rss', 'bytes', 0, { min => 0, max => 1 << 50, least => 8 << 20, why => 'less than any worker needs' },
        'Replace a worker whose resident memory exceeds this size; 0: no limit' ],
    [ 'max-lifetime', 'seconds', 0, { min => 0, max => 52 * $WEEK },
        'Replace a worker after this time, less a random part of up to 10%; 0: never' ],
    [ 'drain-delay', 'seconds', 0, { min => 0, max => $WEEK },
        'After TERM, keep serving for this time while /readyz answers 503, so that load balancers stop sending requests before the
        server closes its sockets' ],
    [ 'graceful-timeout', 'seconds', 30, { min => 0, max => $WEEK },
        'After TERM or a reload, let requests run for this time, then kill the workers that have not finished' ],
    [ 'load-timeout', 'seconds', 300, { min => 0, max => $WEEK },
        'Limit the time for loading the application, for --warm-up and for each hook. When it is over, a start fails; a reload
        fails, and the old code keeps serving; a worker is killed and replaced. 0: no limit' ],
    [ 'warm-up', 'warm-up', undef, { many => 1, value => 'PATHS|CODE' },
        q(Let the application answer requests before the first worker is forked, so that the workers share what these leave in
        memory: PATHS, separated by commas, are requested by GET; CODE, a 'sub {...}', is called with the application; may be given
        several times) ],
    [ 'warm-up-required', 'bool', 0, {},
        'Fail the start, or the reload, if a request of --warm-up gets a 5xx status or its code dies' ],
    [ 'warm-up-workers', 'bool', undef, { typed => '--enable-warm-up-workers, --disable-warm-up-workers' },
        'Repeat the whole warm-up, code included, in each new worker before it is ready; or disable the repetition (default: repeat
        only its GET requests, so that the first request of a worker is not slower than later ones)' ],
    [ 'spawn-interval', 'seconds', 0, { min => 0, max => 3600 }, 'Wait this time between the starts of two workers' ],
    [ 'err-respawn-interval', 'seconds', 1, { min => 0.01, max => 3600 },
        'Wait this time before restarting a worker that failed to start; the time doubles with each failure, up to 30 seconds' ],
    [ 'before-fork', 'code', undef, {}, q(Call CODE, a 'sub {...}', in the parent process before each worker is forked) ],
    [ 'after-fork', 'code', undef, {}, q(Call CODE, a 'sub {...}', in each worker before it serves requests) ],
    [ 'child-exit', 'code', undef, {}, q(Call CODE, a 'sub {...}', in each worker before it exits) ],
    [ 'on-reload', 'code', undef, {}, q(Call CODE, a 'sub {...}', in the parent process of the old workers after a reload) ],

    [ 'beside', 'beside', undef, { many => 1, value => '[NAME=]COMMAND' },
        q(Run COMMAND beside the workers, such as a job worker: --beside 'jobs=perl bin/jobs.pl'. It is started when the first worker is
        ready, started again when it ends, at a reload too, and stopped with the server; what it prints goes to the error log; may be given
        several times) ],

    'HTTP/2',
    [ 'http2', 'bool', undef, { typed => '--enable-http2, --disable-http2' },
        'Let clients speak HTTP/2 over TLS if they ask for it (ALPN); without TLS see --listen (default: enabled where the build has
        libnghttp2)' ],

    'Keep-alive',
    [ 'keepalive', 'bool', 1, { typed => '--enable-keepalive, --disable-keepalive' },
        'Keep connections open for more requests, or close each one after its response (default: enabled)' ],
    [ 'keepalive-timeout', 'seconds', 75, { min => 0, max => $WEEK },
        'Close an idle connection after this time; 0: disable keep-alive' ],
    [ 'max-keepalive-reqs', 'count', 0, { min => 0, max => $MANY },
        'Close a connection after N requests; 0: no limit, 1: disable keep-alive' ],

    'Connections and queue',
    [ 'max-connections', 'count', 0, { min => 0, max => $MANY },
        'Limit the number of open connections. At the limit, the server closes the connection that has been idle longest to accept a
        new one; if none is idle, it answers the new one with 503. 0: as many as the limit of file descriptors allows' ],
    [ 'max-queue', 'count', 1000, { min => 1, max => 50_000 },
        'Limit the number of complete requests that wait for a worker; further ones are answered with 503' ],
    [ 'queue-timeout', 'seconds', 30, { min => 0, max => $WEEK },
        'Limit the time that a complete request may wait for a worker; after that it is answered with 503; 0: no limit' ],
    [ 'lane', 'lane', undef, { many => 1, value => 'PREFIX=N' },
        q(Let at most N workers at a time run requests whose path begins with PREFIX; the others wait in their own order, and hold
        up nobody else: --lane /report=2. 'POST /import=1' is for a method, 'X-Class: batch=2' for a field that a proxy in
        --trust-proxy has set. Options follow after commas: queue=N limits how many may wait and timeout=SECONDS how long; after
        that they are answered with 503 (default: as --max-queue and --queue-timeout). May be given several times) ],
    [ 'half-closed', 'choice', 'refuse', { of => [qw(refuse serve)], value => 'refuse|serve' },
        'Handle requests that wait for a worker and whose client has shut down its sending side over TCP, which most clients do only
        when they close the connection: refuse answers 503 and does not call the application, serve lets them wait on' ],

    'Time limits',
    [ 'header-timeout', 'seconds', 30, { alias => ['read-timeout'], min => 0.01, max => $WEEK },
        'Limit the time in which a client must send a complete request head; after that it is answered with 408' ],
    [ 'body-timeout', 'seconds', 30, { min => 0.01, max => $WEEK },
        'Answer with 408 when a request body arrives more slowly than --body-rate over this time' ],
    [ 'body-rate', 'bytes', 100, { min => 0, max => $MANY },
        'Set the minimum rate of a request body, in bytes per second; 0: no minimum' ],
    [ 'write-timeout', 'seconds', 60, { min => 0.01, max => $WEEK },
        'Close a connection when its client has accepted no data of a response for this time' ],
    [ 'request-timeout', 'seconds', 0, { min => 0, max => $WEEK },
        'Limit the time from the complete request to the start of its response, including the wait for a worker; after that the
        request is answered with 504 and its worker is replaced; 0: no limit' ],
    [ 'stream-timeout', 'seconds', 0, { min => 0, max => $WEEK },
        'Limit the time that the application may pause within a response; after that the response is cut off and the worker is
        replaced; 0: no limit' ],
    [ 'timeout', 'seconds', undef, { min => 0.01, max => $WEEK },
        'Set both --write-timeout and --body-timeout, unless they are given themselves' ],

    'Size limits',
    [ 'max-request-line', 'bytes', 16384, { min => 16, max => 1 << 24 },
        'Limit the size of the request line; longer ones are answered with 414' ],
    [ 'max-header-bytes', 'bytes', 65536, { min => 64, max => 1 << 24 },
        'Limit the size of the request head; larger ones are answered with 431' ],
    [ 'max-header-fields', 'count', 100, { min => 1, max => 256 },
        'Limit the number of header fields of a request; more are answered with 431' ],
    [ 'max-body', 'bytes', 1 << 30, { min => 0, max => 1 << 50, few => 1024 },
        'Limit the size of a request body; larger ones are answered with 413' ],
    [ 'body-memory', 'bytes', 65536, { min => 0, max => 1 << 30 },
        'Keep request bodies of up to this size in memory; larger ones go to a file in --tmpdir' ],
    [ 'max-temp-file-size', 'bytes', 4 << 30, { min => 0, max => 1 << 50, few => 1 << 20 },
        'Limit the size of all temporary files in --tmpdir together. At the limit, or when the disk is full, a worker waits for a
        client that reads slowly, and while requests wait for workers, the slowest clients are cut off; the slowest upload is
        answered with 507. 0: no limit' ],
    [ 'tmpdir', 'dir', File::Spec->tmpdir, { writable => 1 },
        'Write temporary files to DIR: large request bodies, and responses that clients read slowly (default: TMPDIR, or /tmp)' ],

    'Static files',
    [ 'static', 'static', undef, { many => 1, value => 'PREFIX=DIR' },
        'Serve the files below DIR under the path PREFIX without the application: --static /assets=public. Options follow after
        commas: immutable or max-age=SECONDS sets Cache-Control; index=FILE is served for a directory (index alone: index.html);
        pass-through leaves to the application what is not there; follow-links follows symbolic links within DIR, follow-links=all
        all of them; charset=NAME is that of text files (default: utf-8; none: none). May be given several times' ],

    'Process',
    [ 'config', 'path', undef, { command => 1 }, 'Read options from FILE, one "name = value" on each line' ],
    [ 'env-file', 'paths', undef, { many => 1, runner => 1, value => 'FILE' },
        'Set the environment variables in FILE, one NAME=VALUE on each line, before loading the application, and read FILE again at
        each reload; variables that are already set keep their value; may be given several times' ],
    [ 'control', 'path', undef, { socket => 1, value => 'PATH' },
        'Accept the commands of "sirius ctl" on a unix socket at PATH; none: nowhere (default: in RUNTIME_DIRECTORY, XDG_RUNTIME_DIR, /run
        for root, or TMPDIR, where "sirius ctl" finds it)' ],
    [ 'pid', 'path', undef, { alias => [qw(pid-file pidfile)] }, 'Write the PID of the supervisor to FILE' ],
    [ 'user', 'user', undef, {}, 'Run as USER once the sockets are open; the server must be started as root' ],
    [ 'group', 'group', undef, { list => 1 },
        'Run as GROUP; supplementary groups follow after commas (default: the groups of --user)' ],
    [ 'sandbox', 'bool', 1, { typed => '--enable-sandbox, --disable-sandbox' },
        'Restrict the processes that own connections and private keys to the system calls and files that they need (seccomp and
        Landlock of Linux), or let them do all that their user may (default: enabled)' ],
    [ 'umask', 'octal', undef, {}, 'Set the file mode creation mask' ],
    [ 'chdir', 'dir', undef, {},
        'Change to DIR before loading the application; the paths of the application file, -I, -R and --static are relative to DIR' ],
    [ 'daemonize', 'bool', undef, { short => 'D' }, 'Run in the background once the server is ready' ],
    [ 'error-log', 'path', undef, { alias => ['log-file'] },
        'Append everything that is printed to STDERR to FILE; the signal USR1 reopens it' ],
    [ 'log-prefix', 'bool', undef, { typed => '--enable-log-prefix, --disable-log-prefix' },
        'Start each line of the error log with the time, PID and level, or leave lines as they are (default: enabled with
        --error-log)' ],
    [ 'proctitle', 'bool', 1, { typed => '--enable-proctitle, --disable-proctitle' },
        'Show in ps what each process does and which application it serves, or leave the command line as it is (default: enabled)' ],

    'Logging and monitoring',
    [ 'access-log', 'string', undef, { value => 'FILE' },
        'Log each request to FILE, to STDOUT (-), to syslog:FACILITY or to a command ("|COMMAND")' ],
    [ 'access-log-format', 'string', 'combined', { suggest => [qw(combined common json ltsv)], value => 'FORMAT' },
        q(Format the access log as common, combined, ltsv or json, or with a format string as in Apache's LogFormat) ],
    [ 'access-log-min-time', 'seconds', 0, { min => 0, max => $WEEK }, 'Log only requests that took at least this time' ],
    [ 'access-log-errors-only', 'bool', 0, {}, 'Log only responses with a status of 4xx or 5xx, and responses that were cut off' ],
    [ 'slow-log', 'seconds', 0, { min => 0, max => $WEEK },
        'Write each request that runs in the application for longer than this to the error log, with its Perl stack; the request
        goes on; at most 20 of them a minute are logged; 0: none' ],
    [ 'admin', 'listen', undef, { many => 1 },
        'Serve the status page, metrics and health checks on ADDRESS, a loopback address or a unix socket; may be given several
        times' ],
    [ 'admin-public', 'bool', 0, {}, 'Allow --admin to listen on addresses that other machines can reach' ],

    'Held connections',
    [ 'hold', 'bool', 0, {},
        'Let the application leave its connections with the server: with the fields Grip-Hold and Grip-Channel a response goes on with
        what is published to its channels, and no worker has it' ],
    [ 'hold-buffer', 'bytes', 64 << 10, { min => 0, max => 1 << 30 },
        'Close a held connection whose client is further behind with reading' ],
    [ 'hold-per-client', 'count', 0, { min => 0, max => 1_000_000 },
        'Limit the number of held connections of one client address, in each edge (--edges); others are answered with 503. 0: no limit' ],
    [ 'websocket', 'websocket', undef, { many => 1, value => 'PREFIX' },
        'With --hold, hold the WebSockets of requests whose path begins with PREFIX: the application is told of events by requests
        (default: any path, but only for pages of the same origin; with PREFIX, / too, the application looks at Origin). Other requests
        for WebSockets go to the application. off: all do. May be given several times' ],
    [ 'websocket-max-message', 'bytes', 1 << 20, { min => 1, max => 1 << 30 },
        'Close a WebSocket, with code 1009, whose client sends a larger message' ],
    [ 'websocket-rate', 'count', 0, { min => 0, max => 1_000_000_000 },
        'Close a WebSocket, with code 1008, whose client sends more messages in a second. 0: no limit' ],
    [ 'websocket-ping', 'seconds', 30, { min => 0, least => 1, max => 86400 },
        'Send a ping on a WebSocket whose client has been silent for so long; the second without an answer ends it. 0: never' ],

    'Proxies',
    [ 'trust-proxy', 'proxies', undef, { value => 'CIDR,...' },
        'Trust X-Forwarded-For and X-Forwarded-Proto from proxies in these networks, separated by commas, such as 10.0.0.0/8,::1;
        "unix" stands for unix sockets. Add "x-forwarded-host" or "x-forwarded-port" to trust these fields as well, or "forwarded"
        to trust only the Forwarded field' ],
    [ 'underscores-in-headers', 'choice', 'off', { of => [qw(off on trusted)], value => 'off|on|trusted' },
        'Handle header fields with an underscore in their name: off drops them, on passes them to the application, trusted passes
        only those from peers in --trust-proxy' ],
    [ 'proxy-protocol', 'bool', 0, {},
        'Expect a PROXY protocol header, version 1 or 2, at the start of each connection; with --trust-proxy only from these
        networks' ],

    [ 'informational', 'choice', 'direct', { of => [qw(direct on off)], value => 'direct|on|off' },
        'Send the informational responses (1xx) of applications, such as 103 Early Hints: direct, not to trusted proxies, to peers
        on unix sockets or with --proxy-protocol, since not every proxy can read them; on, to these as well; off, to nobody. They
        are never sent in response to HEAD or HTTP/1.0' ],

    'Other',
    [ 'request-id-header', 'header', undef, { suggest => ['X-Request-Id'], value => 'NAME' },
        'Add this field with the id of the request to all responses, as the logs have it; X-Request-Id of a proxy in --trust-proxy is
        that id, else the server makes one' ],
    [ 'server-software', 'token', 'Sirius', {}, 'Set the Server field of responses; an empty value removes it' ],
    [ 'server-ready', 'code', undef, { hidden => 1 }, 'called for each TCP listener once it is served' ],
    [ 'develop', 'any', undef, { hidden => 1 }, 'what sirius dev changes' ],
    [ 'env-values', 'any', undef, { hidden => 1 }, 'variables of --env-file' ],
    [ 'request-log', 'any', undef, { hidden => 1 }, 'the supervisor prints the access log' ],
    [ 'listen-sock', 'any', undef, { hidden => 1 }, 'a socket that listens already' ],
    [ 'sources', 'any', undef, { hidden => 1 }, 'what other sources say, read already' ],
    ( map { [ $_, 'any', undef, { hidden => 1 }, 'what frameworks pass to every handler' ] } qw(argv extra-argv) ),

    'Options of other servers',
    [ 'preload-app', 'bool', undef, { noop => 1 },
        'the application is always loaded before the workers are forked, unless -L Delayed is given' ],
    [ 'max-keepalive-connection', 'count', undef, { alias => ['max-keepalive-connections'], noop => 1 },
        'an idle connection occupies no worker; --max-connections limits all connections' ],
    ( map { [ "$_-readahead-reqs", 'count', undef, { noop => 1 }, 'a worker never waits on one connection' ] } qw(max min) ),
    ( map { [ "$_-spare-servers", 'count', undef, { noop => 1 },
        'the number of workers follows the load between MIN and MAX of --workers' ] } qw(min max) ),
    [ 'net-server', 'any', undef, { family => 1, typed => '--net-server-*', noop => 1 }, 'Sirius does not use Net::Server' ],
);
#>>>

my ( @ROWS, %BY_NAME, $group );
for my $entry (@TABLE) {
    if ( !ref $entry ) { $group = $entry; next }
    my ( $name, $type, $default, $more, $text ) = @$entry;
    $text =~ s/\n +/ /g;
    ( $more->{noop}, $text ) = ( $text, "No effect: $text" ) if $more->{noop};
    push @ROWS, { name => $name, type => $type, default => $default, text => $text, group => $group, %$more };
    $BY_NAME{$_} ||= $ROWS[-1] for $name, @{ $more->{alias} || [] }, grep {defined} $more->{short};
}

sub check {
    my ( $class, $row, $value, $from ) = @_;
    local $SIG{__DIE__};
    my ($checked) = eval { Sirius::Config::Type->check( $row, $value ) };
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
