package Bench::Idle;

# Connections that were served once and now are silent: how many can be open, while a new client is still
# served?

use strict;
use warnings;

use IO::Poll    qw(POLLERR POLLHUP POLLIN);
use Socket      qw(AF_INET INADDR_LOOPBACK MSG_DONTWAIT MSG_PEEK SOCK_STREAM pack_sockaddr_in);
use Time::HiRes qw(sleep time);
use Bench::Server;

my $WORKERS = 2;
my $ANSWER  = 1;                                             # seconds within which an answer must come
my $PROBES  = 0.2;                                           # seconds between two new clients
my $REQUEST = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

# Fields of $o: count, pause (seconds of silence). Returns name => { own => FIGURES, 75 => FIGURES }, which is
# the server's own time limit for idle connections and one of 75 s, where it can be set.
sub measure {
    my ( $o, @names ) = @_;
    my %result;
    for my $name (@names) {
        my $peer = Bench::Peer::peer($name);
        for my $keep ( 0, $peer->{keeps} ? 75 : () ) {
            my $server = Bench::Server->new(
                name    => $name,
                app     => 'hello',
                workers => $WORKERS,
                keep    => $keep,
                clients => $o->{count} + 500
            );
            my $figures = eval { _idle( $o, $server->start ) } || { error => $@ =~ s/\s+/ /gr };
            $result{$name}{ $keep || 'own' } = $figures;
            $server->stop;
        }
        $o->{tick}->($name);
    }
    return \%result;
}

sub plan {
    my ( $o, $count ) = @_;
    return ( $count, $count * 2 * ( $o->{pause} + 1 + $o->{count} / 4000 ) );
}

# opened: had an answer. usable: had another one after the silence. new_ms: the slowest of the new clients
# that were served; new_failed: those that were not. bytes: memory of the server for each.
sub _idle {
    my ( $o, $server ) = @_;
    my $port = $server->{port};
    _ask( _connect($port) ) for 1 .. 200;
    sleep 0.2;
    my ( $memory, @open ) = ( $server->memory );
    my $until = time + 30;
    while ( @open < $o->{count} && time < $until ) {
        my $socket = _connect($port) or last;
        defined _ask($socket)        or last;
        push @open, $socket;
    }
    my %figures = ( opened => scalar @open, new_ms => 0, new_failed => 0, new_clients => 0 );
    $figures{bytes} = ( $server->memory - $memory ) * 1024 / @open if @open >= 100;
    $until = time + $o->{pause};
    while ( time < $until ) {
        my $began = time;
        $figures{new_clients}++;
        my $socket = _connect($port);
        my $took   = $socket ? _ask( $socket, close => 1 ) : undef;
        if ( defined $took ) { $figures{new_ms} = 1000 * $took if 1000 * $took > $figures{new_ms} }
        else                 { $figures{new_failed}++ }
        sleep $PROBES if time - $began < $PROBES;
    }
    $figures{usable} = _still_usable(@open);
    return \%figures;
}

# Those that the server has closed are not; the others are asked, 200 at a time
sub _still_usable {
    my @all    = @_;
    my @open   = grep { !_has_ended($_) } @all;
    my $usable = 0;
    while ( my @some = splice @open, 0, 200 ) {
        my $poll = IO::Poll->new;
        local $SIG{PIPE} = 'IGNORE';
        for my $socket (@some) {
            $poll->mask( $socket => POLLIN ) if syswrite $socket, $REQUEST;
        }
        my $until = time + $ANSWER;
        while ( $poll->handles && time < $until && $poll->poll( $until - time ) > 0 ) {
            for my $socket ( $poll->handles( POLLIN | POLLHUP | POLLERR ) ) {
                my $bytes = '';
                $usable++ if sysread( $socket, $bytes, 4096 ) && $bytes =~ m{\AHTTP/1\.1 200};
                $poll->remove($socket);
            }
        }
    }
    return $usable;
}

sub _has_ended {
    my $socket = shift;
    my $bytes  = '';
    return defined recv( $socket, $bytes, 1, MSG_PEEK | MSG_DONTWAIT ) && $bytes eq '';
}

sub _connect {
    my $port = shift;
    socket my $socket, AF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
    local $SIG{ALRM} = sub { die "slow\n" };
    my $done = eval {
        alarm $ANSWER;
        my $ok = connect $socket, pack_sockaddr_in( $port, INADDR_LOOPBACK );
        alarm 0;
        $ok;
    };
    alarm 0;
    return $done ? $socket : undef;
}

# Seconds until the answer, or undef
sub _ask {
    my ( $socket, %option ) = @_;
    my $began = time;
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, $option{close} ? $REQUEST =~ s/\r\n\r\n/\r\nConnection: close\r\n\r\n/r : $REQUEST
        or return;
    my $in = '';
    vec( $in, fileno $socket, 1 ) = 1;
    select $in, undef, undef, $ANSWER or return;
    sysread $socket, my $bytes, 4096 or return;
    return $bytes =~ m{\AHTTP/1\.[01] 200} ? time - $began : undef;
}

1;
