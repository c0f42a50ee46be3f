package Bench::Load;

# What the servers are loaded with: wrk, ab, and a client of its own that sends an exact number of requests.

use strict;
use warnings;

use Exporter qw(import);
use IO::Socket::INET;

our @EXPORT_OK = qw(ab exactly wrk);

# Returns the number of responses, the seconds it took and the number of errors, as all do
sub wrk {
    my ( $port, $connections, $seconds ) = @_;
    my $out = `wrk -t1 -c$connections -d${seconds}s http://127.0.0.1:$port/ 2>&1`;
    my ( $requests, $taken ) = $out =~ /([0-9]+) requests in ([0-9.]+)s/ or die "wrk: $out\n";
    my $errors = 0;
    $errors += $_
        for $out =~ /Socket errors: connect ([0-9]+), read ([0-9]+), write ([0-9]+), timeout ([0-9]+)/;
    $errors += $1 if $out =~ /Non-2xx or 3xx responses: ([0-9]+)/;
    return ( $requests, $taken, $errors );
}

# One connection for each request
sub ab {
    my ( $port, $connections, $requests ) = @_;
    my $out     = `ab -q -c $connections -n $requests http://127.0.0.1:$port/ 2>&1`;
    my ($taken) = $out =~ /Time taken for tests:\s+([0-9.]+)/ or die "ab: $out\n";
    my ($done)  = $out =~ /Complete requests:\s+([0-9]+)/;
    my $errors  = 0;
    $errors += $1 while $out =~ /(?:Failed requests|Write errors|Non-2xx responses):\s+([0-9]+)/g;
    return ( $done, $taken, $errors );
}

# Option close: a connection for each request. Sends on all connections, then reads from all: no server may starve one.
sub exactly {
    my ( $port, $connections, $requests, %option ) = @_;
    my $request = join "\r\n", 'GET / HTTP/1.1', "Host: 127.0.0.1:$port",
        $option{close} ? 'Connection: close' : (), '', '';
    my @sockets;
    while ( $requests > 0 ) {
        my $turn = $requests < $connections ? $requests : $connections;
        push @sockets, _connect($port) while @sockets < $turn;
        splice @sockets, $turn;
        for my $socket (@sockets) {
            syswrite $socket, $request or die "Cannot send: $!\n";
        }
        @sockets = grep { _read_response($_) && !$option{close} } @sockets;
        $requests -= $turn;
    }
    return;
}

sub _connect {
    my $port = shift;
    return IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 60 )
        || die "Cannot connect: $@\n";
}

# True when the connection may serve another request
sub _read_response {
    my $socket = shift;
    my $got    = '';
    my $kept;
    while ( sysread $socket, $got, 65536, length $got ) {
        my ( $head, $body ) = $got =~ /\A(.*?\r\n)\r\n(.*)\z/s or next;
        $kept = $head =~ m{\AHTTP/1\.1 } && $head !~ /^Connection: close\r$/im;
        next if !$kept;
        last if $head =~ /^Transfer-Encoding: chunked\r$/im && $body =~ /(?:\A|\n)0\r\n\r\n\z/;
        last if $head =~ /^Content-Length: *([0-9]+)\r$/im  && length $body >= $1;
    }
    $got =~ m{\AHTTP/1\.[01] 200} or die "Bad response: $got\n";
    return $kept;
}

1;
