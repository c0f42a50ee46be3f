package Sirius::Test::Pushpin;

# Pushpin with the files of deploy/pushpin, in front of a server: only ports and directories are others. All
# its processes are its own, zurl too, which is a service of its own in Debian's package

use strict;
use warnings;
use Time::HiRes qw(sleep);
use Sirius::Test::Server;
use parent 'Sirius::Test::Proxy';

sub available {
    return !grep { !Sirius::Test::Server::program($_) }
        qw(condure pushpin pushpin-handler pushpin-proxy zurl);
}

# Where it publishes
sub control { return Sirius::Test::Client->new( '127.0.0.1:' . shift->{control} ) }

# Before the server with this address. It can't choose free ports: tries two that are free, and others if
# somebody else was faster. Options: control, the port where it publishes
sub start {
    my ( $class, $address, %option ) = @_;
    my $log;
    for ( 1 .. 5 ) {
        my $self = $class->new;
        $self->{port}    = Sirius::Test::Server::free_port();
        $self->{control} = $option{control} || Sirius::Test::Server::free_port();
        return $self if $self->_run($address);
        $log = $self->log;
    }
    die "pushpin did not start:\n$log";
}

sub _deployed {
    my ( $name, @change ) = @_;
    my $text = Sirius::Test::Server::slurp("$Sirius::Test::Server::ROOT/deploy/pushpin/$name");
    while ( my ( $from, $to ) = splice @change, 0, 2 ) {
        $text =~ s/\Q$from\E/$to/g or die "deploy/pushpin/$name has no $from";
    }
    return $text;
}

sub _run {
    my ( $self, $address ) = @_;
    my $dir = $self->dir;
    Sirius::Test::Server::spew( "$dir/routes", _deployed( 'routes', 'localhost:5000' => $address ) );
    my $zurl = join q(), map {"zurl_$_->[0]_specs=ipc://{rundir}/{ipc_prefix}zurl-$_->[1]\n"} [ out => 'in' ],
        [ out_stream => 'in-stream' ], [ in => 'out' ];
    my $conf = _deployed(
        'pushpin.conf',
        'rundir=/var/run/pushpin' => "rundir=$dir",
        'logdir=/var/log/pushpin' => "logdir=$dir",
        'services='               => 'services=zurl,',
        'http_port=7999'          => "http_port=127.0.0.1:$self->{port}",
        'push_in_http_port=5561'  => "push_in_http_port=$self->{control}",
        "\n[proxy]\n"             => "\n[proxy]\n$zurl",
        map { ( "tcp://127.0.0.1:$_" => "ipc://$dir/$_" ) } 5560, 5562, 5563
    );
    $self->spawn( sub { }, 'pushpin', '-m', '--config',
        Sirius::Test::Server::spew( "$dir/pushpin.conf", $conf ) );
    my $up = Sirius::Test::Server::until_true(
        20,
        sub {
            return -1 if $self->ended;
            my $log = $self->log;
            return !grep { $log !~ /\[\Q$_\E\] (?:\[condure\] )?started/ } qw(condure handler proxy zurl);
        }
    );
    sleep 0.5 if $up && $up > 0;    # they connect to each other, and try again each 100 ms
    return $up && $up > 0;
}

1;
