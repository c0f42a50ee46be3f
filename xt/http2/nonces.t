use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(time);
use Sirius::Test;
use Sirius::Test::HTTP2;

# Each response belongs to its request, whatever happens to workers and streams meanwhile: bodies both ways
# repeat what is in the path

my $APP = <<'APP';
sub {
    my ( undef, $how, $nonce, $times ) = split m{/}, $_[0]{PATH_INFO};
    my $in = '';
    1 while $_[0]{'psgi.input'}->read( $in, 65536, length $in );
    return [ 500, [], ['another body'] ] if length $in && $in ne $nonce x ( length($in) / length $nonce );
    my $head = [ 'X-Nonce' => $nonce, 'Content-Length' => $times * length $nonce ];
    return [ 200, $head, [ $nonce x $times ] ] if $how eq 'array';
    return sub {
        my $out = shift->( [ 200, $head ] );
        $out->write( $nonce x ( $times / 10 ) ) for 1 .. 10;
        $out->close;
    };
}
APP

my @CONNECTIONS = 1 .. 4;
my $serial      = 0;

# Sends a request on this connection, and returns it
sub send_one {
    my $client = shift;
    my $nonce  = sprintf '%08x', ++$serial * 2_654_435_761 & 0xffffffff;
    my $times  = 10 * ( 1, 100, 3000 )[ rand 3 ];
    my $how    = rand() < 0.5 ? 'array'                            : 'stream';
    my $body   = rand() < 0.3 ? $nonce x ( 1, 50, 2500 )[ rand 3 ] : undef;
    my $answer = $client->begin( ( defined $body ? 'POST' : 'GET' ) . " /$how/$nonce/$times", undef, $body );
    return { answer => $answer, nonce => $nonce, whole => $nonce x $times };
}

# 'whole', 'wrong', a status, or how it was cut
sub result {
    my $one    = shift;
    my $answer = $one->{answer};
    return 'lost'            if !$answer->{done};
    return 'cut'             if !$answer->{status} || defined $answer->{error};
    return $answer->{status} if $answer->{status} ne '200';
    return 'wrong'           if ( $answer->{fields}{'x-nonce'} // '' ) ne $one->{nonce};
    return $answer->{body} eq $one->{whole} ? 'whole' : 'wrong';
}

# Keeps sixteen streams of each connection open until $over; calls $tick every 0.1 s. Returns how often each
# result came
sub drive {
    my ( $server, $tick, $over ) = @_;
    my @client = map { Sirius::Test::HTTP2->new( $server->address ) } @CONNECTIONS;
    my ( %count, %open );
    my ( $next,  $until ) = ( time, time + 60 );
    until ( ( $over->() || time > $until ) && !grep {@$_} values %open ) {
        if ( time >= $next ) { $tick->(); $next = time + 0.1 }
        for my $client (@client) {
            my $open = $open{$client} ||= [];
            push @$open, send_one($client) while @$open < 16 && !$over->() && time < $until;
            my $bytes = $client->receive(0.01);
            if    ( defined $bytes ) { $client->{client}->feed($bytes); $client->flush }
            elsif ( $client->{ended} || time > $until + 30 ) { $_->{answer}{done} = 0 for @$open }
            my @rest = grep { !$_->{answer}{done} } @$open;
            $count{ result($_) }++ for grep { $_->{answer}{done} } @$open;
            @rest = map { $count{lost}++; () } @rest if $client->{ended} || time > $until + 30;
            $open{$client} = \@rest;
        }
    }
    return ( \%count, scalar grep { $_->{ended} } @client );
}

subtest 'workers are killed, replaced and reloaded' => sub {
    my $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [
            @Sirius::Test::HTTP2::LISTEN, qw(--workers 3 --max-reqs-per-child 50 --err-respawn-interval 0.05)
        ],
        may_crash => 1,
    );
    my ( $killed, $reloads, $ticks ) = ( 0, 0, 0 );
    my $tick = sub {
        my @worker = $server->workers;
        $killed += kill KILL => $worker[ rand @worker ] if @worker;
        return if ++$ticks % 10;
        $server->signal('HUP');
        $reloads++;
    };
    my ( $count, $ended ) = drive( $server, $tick, sub { $killed >= 30 && $reloads >= 3 } );
    my $whole = delete $count->{whole} // 0;
    cmp_ok $whole, '>', 100, 'there are answers';
    is $count->{wrong} // 0, 0, 'none is of another request, and none is short and complete';
    is $ended,               0, 'no connection ends';
    my $lost = ( delete $count->{502} // 0 ) + ( delete $count->{cut} // 0 );
    cmp_ok $lost, '<=', $killed, 'each killed worker costs one request at most';
    is_deeply $count, {}, 'and nothing else happens';
    $server->stop;
};

done_testing;
