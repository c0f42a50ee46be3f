package Bench::Load;

# The load generators: wrk, ab, bench/think, bench/tlsclient, and a client that sends an exact number of
# requests.

use strict;
use warnings;

use Exporter qw(import);
use IO::Socket::INET;
use Bench::Peer ();

our @EXPORT_OK = qw(ab ab_result dial exactly h2load output start_ab think tlsclient wrk);

# Returns the number of responses, the seconds and the number of failures, as ab does. Options path, tls.
sub wrk {
    my ( $port, $connections, $seconds, %option ) = @_;
    my $url = ( $option{tls} ? 'https' : 'http' ) . "://127.0.0.1:$port" . ( $option{path} || '/' );
    my $out = output( $seconds + 20, 'wrk', '-t1', "-c$connections", "-d${seconds}s", $url );
    my ( $requests, $taken ) = $out =~ /([0-9]+) requests in ([0-9.]+)s/ or die "wrk: $out\n";
    my $failed = 0;
    $failed += $_
        for $out =~ /Socket errors: connect ([0-9]+), read ([0-9]+), write ([0-9]+), timeout ([0-9]+)/;
    $failed += $1 if $out =~ /Non-2xx or 3xx responses: ([0-9]+)/;
    return ( $requests, $taken, $failed );
}

# The same over TLS and HTTP/2, with so many streams of each connection at a time
sub h2load {
    my ( $port, $connections, $streams, $seconds ) = @_;
    my $out = output( $seconds + 20,
        'h2load', "-c$connections", "-m$streams", '-D', $seconds, "https://127.0.0.1:$port/" );
    my ($done)   = $out =~ /^requests: .* ([0-9]+) done,/m or die "h2load: $out\n";
    my ($failed) = $out =~ /^status codes: ([0-9]+) 2xx/m;
    return ( $done, $seconds, $done - $failed );
}

# A connection for each request, or kept connections with option keep. Option path.
sub ab {
    my ( $port, $connections, $requests, %option ) = @_;
    my @keep = $option{keep} ? '-k' : ();
    my $path = $option{path} || '/';
    return ab_result( output(
        120, qw(ab -q -r -s 20 -c),
        $connections, '-n', $requests, @keep, "http://127.0.0.1:$port$path"
    ) );
}

# Numbers that ab prints
sub ab_result {
    my $out     = shift;
    my ($taken) = $out =~ /Time taken for tests:\s+([0-9.]+)/ or die "ab: $out\n";
    my ($done)  = $out =~ /Complete requests:\s+([0-9]+)/;
    my $failed  = 0;
    $failed += $1 while $out =~ /(?:Failed requests|Write errors|Non-2xx responses):\s+([0-9]+)/g;
    return ( $done, $taken, $failed );
}

# Runs ab in the background for so many seconds; its output can be read from the handle that is returned
sub start_ab {
    my ( $port, $connections, $seconds, %option ) = @_;
    my @keep    = $option{keep} ? '-k' : ();
    my @command = (
        'timeout',
        $seconds + 20,
        qw(ab -q -r -l -s 10 -c),
        $connections, '-t', $seconds, '-n', 500_000, @keep
    );
    open my $pipe, '-|', "@command http://127.0.0.1:$port/ 2>&1" or die "ab: $!\n";
    return $pipe;
}

# name => value of bench/think
sub think {
    my ( $port, @args ) = @_;
    my $out   = output( $args[3] + 20, "$Bench::Peer::DIR/think", $port, @args );
    my %value = $out =~ /(\S+)=(\S+)/g or die "think: $out\n";
    return \%value;
}

# The same of bench/tlsclient: mode, port, and what the mode takes
sub tlsclient {
    my @args  = @_;
    my $out   = output( 120, "$Bench::Peer::DIR/tlsclient", @args );
    my %value = $out =~ /(\S+)=(\S+)/g or die "tlsclient: $out\n";
    return \%value;
}

# The output of a command, with STDERR; it is killed after so many seconds
sub output {
    my ( $seconds, @command ) = @_;
    my $pid = open my $pipe, '-|';
    defined $pid or die "fork: $!\n";
    if ( !$pid ) {
        open STDERR, '>&', \*STDOUT or die $!;
        exec 'timeout', $seconds, @command or die "$command[0]: $!\n";
    }
    my $out = do { local $/ = undef; readline $pipe };
    close $pipe;
    return $out // '';
}

# Option close: a connection for each request. Sends on all connections, then reads from all: no server may
# starve one.
sub exactly {
    my ( $port, $connections, $requests, %option ) = @_;
    my $request = join "\r\n", 'GET / HTTP/1.1', "Host: 127.0.0.1:$port",
        $option{close} ? 'Connection: close' : (), '', '';
    my @sockets;
    while ( $requests > 0 ) {
        my $turn = $requests < $connections ? $requests : $connections;
        push @sockets, dial($port) while @sockets < $turn;
        splice @sockets, $turn;
        for my $socket (@sockets) {
            syswrite $socket, $request or die "Cannot send: $!\n";
        }
        @sockets = grep { _read_response($_) && !$option{close} } @sockets;
        $requests -= $turn;
    }
    return;
}

sub dial {
    my $port   = shift;
    my $socket = IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 60 )
        or die "Cannot connect: $@\n";
    setsockopt $socket, SOL_SOCKET, SO_RCVTIMEO, pack 'l!l!', 30,
        0;    # a server that does not end a response is left out
    return $socket;
}

# True if the connection may serve another request
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
