package Sirius::Test::Nginx;

# nginx. Its configuration is the text of an http block in which PORT is the port to listen on

use strict;
use warnings;
use IO::Socket::INET;
use Sirius::Test::Server;
use parent 'Sirius::Test::Proxy';

sub available { return Sirius::Test::Server::program('nginx') }

# nginx can't choose a free port: tries one that is free, and another one if somebody else was faster
sub start {
    my ( $class, $http ) = @_;
    my $log;
    for ( 1 .. 5 ) {
        my $free = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 1 ) or die "listen: $!";
        my $self = $class->new;
        $self->{port} = $free->sockport;
        close $free;
        return $self if $self->_run($http);
        $log = $self->log;
    }
    die "nginx did not start:\n$log";
}

sub _run {
    my ( $self, $http ) = @_;
    my ( $dir, $port )  = ( $self->dir, $self->port );
    my $user = $> == 0 ? 'user root root;' : '';
    my $conf = $self->configure( <<"CONF" . $http =~ s/\bPORT\b/$port/gr . "}\n" );
$user
daemon off;
worker_processes 1;
pid $dir/pid;
error_log $dir/log warn;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path $dir/body; proxy_temp_path $dir/proxy;
    fastcgi_temp_path $dir/fastcgi; uwsgi_temp_path $dir/uwsgi; scgi_temp_path $dir/scgi;
CONF
    $self->spawn( sub { }, $self->available, '-p', $dir, '-e', "$dir/log", '-c', $conf );
    my $up = Sirius::Test::Server::until_true(
        10,
        sub {
            return -1 if $self->ended;
            return -s "$dir/pid" && eval { $self->connect->close };
        }
    );
    return $up && $up > 0;
}

1;
