package Sirius::Test::Snippets;

# Runs configurations of proxies, as the documentation and deploy/ have them, before a server under test:
# addresses, ports and users are replaced, and nothing else. See xt/proxy/hostile.t.

use strict;
use warnings;
use Sirius::Test::Proxy;
use Sirius::Test::Server;

my $MODULES = '/usr/lib/apache2/modules';
my %PROGRAM = (
    apache  => 'apache2',
    caddy   => 'caddy',
    haproxy => 'haproxy',
    nginx   => 'nginx',
    varnish => 'varnishd'
);
my %RUN = (
    apache  => \&_apache,
    caddy   => \&_caddy,
    haproxy => \&_haproxy,
    nginx   => \&_nginx,
    varnish => \&_varnish
);

# The program of this kind, undef if it is not installed
sub available {
    my ( $class, $kind ) = @_;
    my $program = Sirius::Test::Server::program( $PROGRAM{$kind} );
    return $kind ne 'apache' || -e "$MODULES/mod_proxy_http.so" ? $program : undef;
}

# Options: kind, text, server (its address), admin (likewise). Returns the Sirius::Test::Proxy, listening;
# dies with its log
sub start {
    my ( $class, %option ) = @_;
    my $log;
    for ( 1 .. 3 ) {    # somebody else may have been faster to take the port
        my $proxy = Sirius::Test::Proxy->new;
        chmod 0755, $proxy->dir;
        $proxy->{port} = Sirius::Test::Server::free_port();
        my ($admin) = $option{admin} =~ /(\d+)\z/;
        my $text
            = $option{text}
            =~ s/\b(?:127[.]0[.]0[.]1|10[.]0[.]0[.]1[1-3]|app):(?:5000|8080|8443)\b/$option{server}/gr
            =~ s/\b9090\b/$admin/gr;
        $proxy->spawn( sub { }, $RUN{ $option{kind} }->( $class, $proxy, $text, \%option ) );
        my $up = Sirius::Test::Server::until_true(
            20,
            sub {
                return -1 if $proxy->ended;
                return eval { $proxy->connect->close };
            }
        );
        return $proxy if $up && $up > 0;
        $log = $proxy->log;
        $proxy->stop;
    }
    die "$option{kind} did not start:\n$log";
}

sub _apache {
    my ( $class, $proxy, $text ) = @_;
    my ( $dir, $port ) = ( $proxy->dir, $proxy->port );
    my $main = join '',
        map {"LoadModule ${_}_module $MODULES/mod_$_.so\n"} qw(mpm_event authz_core headers proxy proxy_http);
    $main .= "User nobody\nGroup nogroup\n" if $> == 0;
    $text =~ s/[*]:8080/127.0.0.1:$port/;
    return ( $class->available('apache'), '-DFOREGROUND', '-f', $proxy->configure(<<"CONF") );
ServerRoot $dir
ServerName localhost
PidFile $dir/pid
DefaultRuntimeDir $dir
ErrorLog $dir/log
Mutex file:$dir
Listen 127.0.0.1:$port
$main$text
CONF
}

sub _caddy {
    my ( $class, $proxy, $text ) = @_;
    my $port = $proxy->port;
    $text =~ s/^(?::80|shop[.]example[.]org) \{/:$port {\n\tbind 127.0.0.1/m;
    my $file = $proxy->configure("{\nadmin off\nauto_https off\n}\n$text");
    return (
        'env',
        'HOME=' . $proxy->dir,
        'XDG_DATA_HOME=' . $proxy->dir,
        $class->available('caddy'),
        qw(run --adapter caddyfile --config), $file
    );
}

sub _haproxy {
    my ( $class, $proxy, $text ) = @_;
    my $port = $proxy->port;
    $text =~ s/^ +(?:user|group) .*\n//mg;
    $text =~ s/bind :80(?:80)?\n/bind 127.0.0.1:$port\n/;
    $text =~ s/bind :443\n/bind 127.0.0.1:@{[ Sirius::Test::Server::free_port() ]}\n/;
    return ( $class->available('haproxy'), '-db', '-f', $proxy->configure($text) );
}

sub _nginx {
    my ( $class, $proxy, $text ) = @_;
    my ( $dir, $port ) = ( $proxy->dir, $proxy->port );
    my $user  = $> == 0 ? 'user root root;' : '';
    my $paths = join ' ', map {"${_}_temp_path $dir/$_;"} qw(client_body proxy fastcgi uwsgi scgi);
    $text =~ s/\blisten 80(?:80)?;/listen 127.0.0.1:$port;/;
    return ( $class->available('nginx'), '-e', "$dir/log", '-c', $proxy->configure(<<"CONF") );
$user daemon off; worker_processes 1; pid $dir/pid; error_log $dir/log warn; events { worker_connections 64; }
http { access_log off; $paths
$text
}
CONF
}

sub _varnish {
    my ( $class, $proxy, $text, $option ) = @_;
    my ( $host, $port ) = split /:/, $option->{server};
    $text =~ s/"5000"/"$port"/;
    my $dir = $proxy->dir;
    return (
        $class->available('varnish'),
        '-F',           '-n', "$dir/work", '-a', '127.0.0.1:' . $proxy->port,
        '-f',           $proxy->configure($text),
        qw(-j none -s), 'malloc,8m'
    );
}

1;
