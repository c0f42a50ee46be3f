package Bench::Throughput;

# CPU time for each request, and requests a second: in rounds, every server in turn, so that a change of the
# weather hits all of them.

use strict;
use warnings;

use Bench::Load qw(ab exactly h2load tlsclient wrk);
use Bench::Server;

use constant STREAMS => 16;    # of a connection of HTTP/2

# Fields of $o: app, connections, workers, client (wrk; ab: a connection for each request; ab -k; h2load: over
# HTTP/2; tlsclient: with handshakes or resume, which count handshakes, or download, which counts MiB), log,
# path, rounds, seconds, tls. Calls $o->{tick} after each measurement. Returns name => { us, rate, requests,
# failed }, a value for each round, or { skipped } or { error }.
sub measure {
    my ( $o, @names ) = @_;
    my ( %result, %load );
    my @servers = grep {$_} map { _start( $o, $_, \%result ) } @names;
    for my $round ( 1 .. $o->{rounds} ) {
        for my $server ( $round % 2 ? @servers : reverse @servers ) {
            my $result = $result{ $server->{name} } ||= {};
            $o->{tick}->( $server->{name} );
            next if $result->{error};
            eval { _once( $o, $server, $load{ $server->{name} } ||= _load( $o, $server ), $result ); 1 }
                or $result->{error} = _line($@);
        }
    }
    $_->stop for @servers;
    return \%result;
}

# Steps, and seconds in all
sub plan {
    my ( $o, $count ) = @_;
    return ( $count * $o->{rounds}, $count * ( 0.7 + $o->{rounds} * ( $o->{seconds} + 0.1 ) ) );
}

sub _start {
    my ( $o, $name, $result ) = @_;
    my $server = Bench::Server->new(
        name    => $name,
        app     => $o->{app},
        workers => $o->{workers} || 1,
        close   => $o->{client} eq 'ab',
        tls     => $o->{tls},
        http2   => $o->{http2},
        log     => $o->{log} ? "$Bench::Peer::DIR/access.log" : undef
    );
    if ( my $why = $server->can_run ) {
        $result->{$name} = { skipped => $why };
        return;
    }
    return $server if eval { $server->start };
    $result->{$name} = { error => _line($@) };
    return;
}

# A sub that brings the load of one round
sub _load {
    my ( $o, $server ) = @_;
    my ( $port, $connections, @path ) = ( $server->{port}, $o->{connections}, path => $o->{path} );
    return _encrypted_load( $o, $port ) if $o->{tls};
    exactly( $port, 1, 300, close => 1 );    # warm
    if ( $o->{client} eq 'wrk' ) {
        return sub { return wrk( $port, $connections, $o->{seconds}, @path ) };
    }
    my @keep = ( keep => $o->{client} eq 'ab -k' );
    my ( $requests, $seconds ) = ab( $port, $connections, 1000, @path, @keep );
    my $total = int( $requests / $seconds * $o->{seconds} / 100 + 1 ) * 100;
    return sub { return ab( $port, $connections, $total, @path, @keep ) };
}

sub _encrypted_load {
    my ( $o,      $port )        = @_;
    my ( $client, $connections ) = @$o{qw(client connections)};
    tlsclient( fresh => $port, 0.5 );    # warm
    return sub { return wrk( $port, $connections, $o->{seconds}, path => $o->{path}, tls => 1 ) }
        if $client eq 'wrk';
    return sub { return h2load( $port, $connections, STREAMS, $o->{seconds} ) }
        if $client eq 'h2load';
    if ( $client =~ /download/ ) {
        return sub {
            my $got = tlsclient( download => $port, $o->{path} );
            return ( $got->{bytes} / 2**20, $got->{seconds}, 0 );
        };
    }
    my @resume = $client =~ /(resume)/;
    return sub {
        my $got = tlsclient( handshakes => $port, $connections, $o->{seconds}, @resume );
        return ( @$got{ @resume ? 'resumed' : 'handshakes', qw(seconds failed) } );
    };
}

sub _once {
    my ( $o, $server, $load, $result ) = @_;
    truncate "$Bench::Peer::DIR/access.log", 0 if $o->{log};
    my $before = $server->cpu_seconds;
    my ( $requests, $seconds, $failed ) = $load->();
    my $cpu = $server->cpu_seconds - $before;
    die "no request was answered\n" if !$requests;
    push @{ $result->{us} },       $cpu / $requests * 1e6;
    push @{ $result->{rate} },     $requests / $seconds;
    push @{ $result->{requests} }, $requests;
    push @{ $result->{failed} },   $failed;
    return;
}

sub _line { return shift =~ s/\s+/ /gr =~ s/ \z//r }

1;
