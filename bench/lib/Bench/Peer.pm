package Bench::Peer;

# The servers: what they are called, their versions, and the command line that gives each its best settings.

use strict;
use warnings;

use Cwd      qw(abs_path);
use Exporter qw(import);
use IO::Handle;
use Bench::Program ();

our @EXPORT_OK = qw(command label names peer_env tree version workers);
our $ROOT      = abs_path( __FILE__ =~ s{[^/]*\z}{../../..}r );
our $DIR       = "$ROOT/build/bench";

my $NEVER = 1_000_000_000;
my %TEXT  = (
    hello    => 'Hello World',
    ok       => 'OK',
    body8000 => 'x' x 8000,
    request  => "Hello World\n",
    static   => 'OK'
);

# kind: limit (no server of applications), psgi, other. module: tells the version, if no sub does. reload: the
# signal, and what the manual says it brings. True or not: keeps (it can be told how long to keep an idle
# connection), fixed (it serves constant bytes), single (one process, whatever it is told), nolog (it has no
# access log), retires (a worker can be told to end after so many requests), tls (it speaks TLS), encrypted
# (it is measured with TLS alone).
my %PEER = (
    floor => { label => 'C floor', kind => 'limit', command => \&_floor, fixed => 1 },
    nginx => {
        label   => 'nginx return 200',
        kind    => 'limit',
        command => \&_nginx,
        fixed   => 1,
        keeps   => 1,
        tls     => 1,
        reload  => [ HUP => 'new configuration' ],
        version => \&_nginx_version
    },
    proxied => {
        label     => 'nginx before Sirius',
        kind      => 'other',
        command   => \&_proxied,
        keeps     => 1,
        tls       => 1,
        encrypted => 1,
        version   => \&_nginx_version
    },
    sirius => {
        label   => 'Sirius',
        kind    => 'psgi',
        command => \&_sirius,
        keeps   => 1,
        retires => 1,
        tls     => 1,
        reload  => [ HUP => 'new workers, new code' ],
        module  => 'Sirius'
    },
    feersum => {
        label   => 'Feersum',
        kind    => 'psgi',
        command => \&_feersum,
        keeps   => 1,
        tls     => 1,
        reload  => [ HUP => 'new workers, new code' ],
        module  => 'Feersum'
    },
    gazelle => {
        label   => 'Gazelle',
        kind    => 'psgi',
        command => \&_gazelle,
        retires => 1,
        reload  => [ HUP => 'new workers' ],
        module  => 'Gazelle'
    },
    monoceros => {
        label   => 'Monoceros',
        kind    => 'psgi',
        command => \&_monoceros,
        keeps   => 1,
        retires => 1,
        module  => 'Monoceros'
    },
    starlet => {
        label   => 'Starlet',
        kind    => 'psgi',
        command => \&_starlet,
        keeps   => 1,
        retires => 1,
        reload  => [ HUP => 'new workers' ],
        module  => 'Starlet'
    },
    starman => {
        label   => 'Starman',
        kind    => 'psgi',
        command => \&_starman,
        keeps   => 1,
        retires => 1,
        reload  => [ HUP => 'new workers, new code' ],
        module  => 'Starman'
    },
    twiggy => { label => 'Twiggy', kind => 'psgi', command => \&_twiggy, module => 'Twiggy', single => 1 },
    uwsgi  => {
        label   => 'uWSGI',
        kind    => 'psgi',
        command => \&_uwsgi,
        keeps   => 1,
        retires => 1,
        reload  => [ HUP => 'new workers, new code' ],
        version => sub { `uwsgi --version 2>/dev/null` =~ s/\s+\z//r }
    },
    hypnotoad => {
        label   => 'hypnotoad',
        kind    => 'other',
        command => \&_hypnotoad,
        keeps   => 1,
        nolog   => 1,
        reload  => [ USR2 => 'new workers, new code' ],
        module  => 'Mojolicious'
    },
);
my @ORDER = qw(floor nginx proxied sirius feersum gazelle hypnotoad monoceros starlet starman twiggy uwsgi);

# All that may be measured. Of a peer that is installed and named by SIRIUS_BENCH_INC_... too, NAME-system is
# the former.
sub names {
    return map { $ENV{ 'SIRIUS_BENCH_INC_' . uc } ? ( $_, "$_-system" ) : $_ } @ORDER;
}

# The fields of the table above; sirius@DIR, NAME-system and NAME:WORKERS have those of the name they begin
# with
sub peer {
    my $name = shift;
    return $PEER{ _base($name) } || die "No such server: $name. There are: @{[ names() ]}\n";
}

sub label {
    my ( $name, $version ) = @_;
    my ($dir)   = $name =~ /\@([^:]*)/;
    my $workers = workers($name);
    my $label   = peer($name)->{label} . ( defined $dir ? " in $dir" : '' );
    $label .= " $version" if $version && $version ne '-';
    return !$workers ? $label : $workers == 1 ? "$label, 1 worker" : "$label, $workers workers";
}

# The folder of the files that are served: one of 4,096 bytes, and one of 1 GiB that has a hole in place of
# bytes
sub files {
    my $dir = "$DIR/files";
    return $dir if -e "$dir/1GiB";
    mkdir $dir;
    for ( [ '4096.txt', 4096, 'x' x 4096 ], [ '1GiB', 2**30, '' ] ) {
        my ( $name, $size, $bytes ) = @$_;
        open my $out, '>', "$dir/$name" or die "$dir/$name: $!\n";
        print {$out} $bytes;
        $out->flush;
        truncate $out, $size or die "$dir/$name: $!\n";
        close $out or die "$dir/$name: $!\n";
    }
    return $dir;
}

# The signal that brings new workers, and what they bring; or nothing
sub reload {
    my $name = shift;
    return if $name =~ /\Afeersum/ && version($name) < 1.5;
    return @{ peer($name)->{reload} || [] };
}

# Empty when it is not installed
sub version {
    my $name = shift;
    my $peer = peer($name);
    return $peer->{version}->() if $peer->{version};
    my $module = $peer->{module} or return '-';
    local $ENV{PERL5LIB} = _inc($name);
    my $print = "require $module; print \$${module}::VERSION // $module->VERSION";
    $print = "require Plack::Handler::$module; $print"
        if $peer->{kind} eq 'psgi' && $module ne 'Sirius';
    my $version = `$^X -e '$print' 2>/dev/null`;
    return $? ? '' : $version || '?';
}

# The words that start it. Fields of the run: app, port, workers, edges (of ours); keep (seconds an idle
# connection is kept; else the server's default), log (a file for the access log), clients (at a time), retire
# (requests after which a worker ends); and true or not: close (each connection has one request), tls (it
# speaks TLS), http2 (and HTTP/2), alone (without forking), reload (will be told to)
sub command {
    my ( $name, %run ) = @_;
    return peer($name)->{command}->( { workers => 1, retire => $NEVER, %run, name => $name } );
}

# What its environment has more
sub peer_env {
    my ( $name, %run ) = @_;
    my %env = ( PERL5LIB => _inc($name) );
    if ( _base($name) eq 'hypnotoad' ) {
        $env{SIRIUS_BENCH_APP}       = $run{app};
        $env{SIRIUS_BENCH_HYPNOTOAD} = join ' ', "listen=http://127.0.0.1:$run{port}",
            'workers=' . ( $run{workers} || 1 ), 'accepts=0', 'spare=0', 'clients=20000', "requests=$NEVER",
            $run{keep} ? map {"${_}_timeout=$run{keep}"} qw(inactivity keep_alive) : (),
            "pid_file=$DIR/hypnotoad-$run{port}.pid";
    }
    return %env;
}

# The folder of a build of ours
sub tree {
    my $name = shift;
    return $name =~ /\@([^:]+)/ ? abs_path($1) : $ROOT;
}

# So many in every case, if the name says so
sub workers { return shift =~ /:(\d+)\z/ ? $1 : undef }

sub _base { return shift =~ s/(?:\@.*|(?:-system)?(?::\d+)?)\z//sr }

sub _inc {
    my $name = shift;
    my @inc  = $name =~ /\A(?:sirius|proxied)/ ? map { tree($name) . "/blib/$_" } qw(lib arch) : ();
    my $more = $name =~ /-system(?::\d+)?\z/   ? undef : $ENV{ 'SIRIUS_BENCH_INC_' . uc _base($name) };
    return join ':', @inc, grep {defined} $more, $ENV{PERL5LIB};
}

sub _app { return "$ROOT/bench/$_[0]{app}.psgi" }

# The files for TLS, each behind the beginning of an option
sub _keys {
    my ( $run, @option ) = @_;
    return if !$run->{tls};
    my @files = Bench::Program::certificate();
    return map { $option[$_] =~ /=\z/ ? "$option[$_]$files[$_]" : ( $option[$_], $files[$_] ) } 0, 1;
}

# Option and value; without them the server has its own default
sub _keep {
    my ( $run, $option ) = @_;
    return $run->{keep} ? ( $option, $run->{keep} ) : ();
}

sub _plackup {
    my ( $run, $handler, @options ) = @_;
    return (
        $^X,          '-S', 'plackup', '-s', $handler, qw(-E production --host 127.0.0.1 --port),
        $run->{port}, $run->{log} ? ( '--access-log', $run->{log} ) : (),
        @options,     _app($run)
    );
}

# Its command turns HTTP/2 on
sub has_http2 {
    my $name = shift;
    return _base($name) eq 'feersum'
        ? version($name) >= 1.506
        : _base($name) =~ /\A(?:nginx|proxied|sirius)\z/;
}

sub _feersum {
    my $run     = shift;
    my $workers = $run->{workers};
    return _plackup(
        $run,
        'Feersum',
        '--keepalive=1',
        $run->{keep} ? "--read-timeout=$run->{keep}" : (),
        $workers > 1 ? "--pre-fork=$workers"         : (),
        _keys( $run, '--tls-cert-file=', '--tls-key-file=' ),
        $run->{http2}  ? '--h2=1'                                          : (),
        $run->{reload} ? ( '--hot-restart=1', '--app-file=' . _app($run) ) : ()
    );
}

sub _floor {
    my $run = shift;
    return ( "$DIR/floor", ( $run->{close} ? '-c' : () ), '-b', length $TEXT{ $run->{app} }, $run->{port} );
}

sub _gazelle {
    my $run = shift;
    return _plackup( $run, 'Gazelle', '--max-workers', $run->{workers}, '--max-reqs-per-child',
        $run->{retire} );
}

sub _hypnotoad { return ( $^X, '-S', 'hypnotoad', '-f', "$ROOT/bench/hypnotoad.pl" ) }

sub _monoceros {
    my $run = shift;
    return _plackup(
        $run,                         'Monoceros',
        '--max-workers',              $run->{workers},
        '--max-reqs-per-child',       $run->{retire},
        '--max-keepalive-connection', 20_000,
        _keep( $run, '--keepalive-timeout' )
    );
}

sub _nginx_version { return `nginx -v 2>&1` =~ m{nginx/(\S+)} ? $1 : '' }

# With $upstream, the path of a socket, it passes all requests on
sub _nginx {
    my ( $run, $upstream ) = @_;
    my $file    = "$DIR/nginx-$run->{port}";
    my $body    = ( $run->{app} eq 'reload' ? '$pid 0' : $TEXT{ $run->{app} } ) =~ s/\n/\\n/gr;
    my $half    = length $body > 4000 ? substr $body, 0, 4000, '' : '';    # no word may be longer
    my $keep    = $run->{keep} ? "keepalive_timeout $run->{keep};" : '';
    my $clients = $run->{clients} || 1024;
    my $log     = $run->{log} ? "$run->{log} combined buffer=64k flush=1s" : 'off';
    my $files   = files();
    my ( $crt, $key ) = $run->{tls} ? Bench::Program::certificate() : ();
    my $ssl   = $run->{http2} ? 'ssl http2' : $run->{tls} ? 'ssl' : '';
    my $keys  = $run->{tls}   ? "ssl_certificate $crt; ssl_certificate_key $key; ssl_protocols TLSv1.3;" : '';
    my $there = $upstream     ? 'proxy_pass http://app;' : qq(return 200 "\${half}$body";);
    my $app
        = $upstream
        ? "upstream app { server unix:$upstream; keepalive 64; keepalive_requests $NEVER; }"
        . ' proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;'
        : '';
    my $temp = join ' ', map {"${_}_temp_path $file.tmp;"} qw(client_body proxy fastcgi uwsgi scgi);
    my $head = $run->{alone} ? 'master_process off;' : "worker_processes $run->{workers};";
    $head .= q( user root;) if $upstream && $> == 0;    # for the socket, which belongs to its owner
    my $text = <<"CONF";
daemon off; pid $file.pid; error_log stderr crit; $head
events { worker_connections $clients; }
http {
    $temp
    access_log $log;
    $keep
    keepalive_requests $NEVER;
    default_type text/plain;
    $keys
    $app
    server {
        listen 127.0.0.1:$run->{port} backlog=4096 $ssl;
        set \$half "$half";
        location /files/ { alias $files/; sendfile on; }
        location / { $there }
    }
}
CONF
    open my $conf, '>', "$file.conf" or die "$file.conf: $!\n";
    print {$conf} $text;
    close $conf or die "$file.conf: $!\n";
    return ( 'nginx', '-e', 'stderr', '-c', "$file.conf" );
}

# A shell has both as children, and passes TERM on
sub _proxied {
    my $run    = shift;
    my $socket = "$DIR/proxied-$run->{port}.sock";
    my %behind = ( %$run, name => 'sirius', tls => 0, http2 => 0, unix => $socket );
    my @both   = map {
        join ' ',
            map {qq('$_')}
            @$_
    } [ _sirius( \%behind ) ], [ _nginx( $run, $socket ) ];
    return ( 'sh', '-c', "$both[0] & a=\$!; $both[1] & b=\$!; trap 'kill \$a \$b' TERM; wait; wait" );
}

sub _sirius {
    my $run = shift;
    return (
        $^X,
        tree( $run->{name} ) . '/bin/sirius',
        qw(-E production --listen),
        $run->{unix} ? "unix:$run->{unix}" : "127.0.0.1:$run->{port}" . ( $run->{tls} ? ',tls' : '' ),
        _keys( $run, '--tls-cert', '--tls-key' ),
        '--workers',
        $run->{alone}            ? 0                                          : $run->{workers},
        $run->{retire} != $NEVER ? ( '--max-reqs-per-child', $run->{retire} ) : (),
        $run->{edges}            ? ( '--edges', $run->{edges} )               : (),
        _keep( $run, '--keepalive-timeout' ),
        $run->{log}                ? ( '--access-log', $run->{log} )         : (),
        $run->{app} eq 'static'    ? ( '--static',     '/files=' . files() ) : (),
        $run->{app} eq 'websocket' ? '--hold' : (),
        _app($run)
    );
}

sub _starlet {
    my $run = shift;
    return _plackup( $run, 'Starlet', '--max-workers', $run->{alone} ? 0 : $run->{workers},
        '--max-reqs-per-child', $run->{retire}, '--max-keepalive-reqs', $NEVER,
        _keep( $run, '--keepalive-timeout' ) );
}

# Its own program: plackup has always loaded the application before the fork, so that HUP would bring no new
# code
sub _starman {
    my $run = shift;
    return (
        $^X,             '-S',
        'starman',       qw(-E production --host 127.0.0.1 --port),
        $run->{port},    '--workers',
        $run->{workers}, '--max-requests',
        $run->{retire},  $run->{reload} ? () : '--preload-app',
        $run->{log} ? ( '--access-log', $run->{log} ) : (), _keep( $run, '--keepalive-timeout' ),
        _app($run)
    );
}

sub _twiggy {
    my $run = shift;
    return _plackup( $run, 'Twiggy' );
}

sub _uwsgi {
    my $run    = shift;
    my $format = '%(addr) - %(user) [%(ltime)] "%(method) %(uri) %(proto)" %(status) %(size) "%(referer)"'
        . ' "%(uagent)"';
    return (
        qw(uwsgi --plugin psgi --need-app --die-on-term --listen 1024 --processes),
        $run->{workers},
        $run->{alone}            ? ()                                                  : '--master',
        $run->{retire} != $NEVER ? ( '--max-requests', $run->{retire} )                : (),
        $run->{log}              ? ( '--logto', $run->{log}, '--log-format', $format ) : '--disable-logging',
        _keep( $run, '--socket-timeout' ),
        $run->{close} ? '--http-socket' : '--http11-socket',
        "127.0.0.1:$run->{port}",
        '--psgi',
        _app($run)
    );
}

1;
