package Bench::Encrypted;

# What costs over TLS besides requests: connections that are idle, and handshakes that come in a flood.

use strict;
use warnings;

use IPC::Open2  qw(open2);
use List::Util  qw(max);
use Time::HiRes qw(sleep);
use Bench::Load qw(think tlsclient);
use Bench::Server;

my $HANDSHAKES = 128;              # of a flood, at a time
my @NORMAL     = ( 16, 20, 0 );    # clients beside it, ms that they think, slow requests

# Fields of $o: count, pause (seconds in which new clients come). Returns name => { opened, usable, bytes,
# clients, failed, p50, p99, max, request_p99 (without the handshake) }, of which the times are those of new
# clients in ms
sub idle {
    my ( $o, @names ) = @_;
    return _each(
        $o,
        sub {
            my $server  = shift;
            my %figures = %{ tlsclient( fresh => $server->{port}, 0.5 ) };    # warm
            my $before  = $server->memory;
            my $pid     = open2( my $from, my $to, "$Bench::Peer::DIR/tlsclient", 'hold', $server->{port},
                $o->{count} );
            my ($opened) = ( readline($from) // '' ) =~ /opened=(\d+)/;
            my $bytes = $opened ? ( $server->memory - $before ) * 1024 / $opened : undef;
            %figures = %{ tlsclient( fresh => $server->{port}, $o->{pause} ) };
            close $to;
            my ($usable) = ( readline($from) // '' ) =~ /usable=(\d+)/;
            waitpid $pid, 0;
            return { opened => $opened, usable => $usable, bytes => $bytes, %figures };
        },
        workers => 2,
        keep    => 300,
        clients => $o->{count} + 500,
        @names
    );
}

sub idle_plan {
    my ( $o, $count ) = @_;
    return ( $count, $count * ( $o->{pause} + 3 + $o->{count} / 500 ) );
}

# Fields of $o: seconds. Returns name => { calm and flood => { p50, p99, max, fast, errors, reconnects } of
# clients that are kept, new_calm and new_flood => { p50, p99, max, clients, failed } of new ones, rate:
# handshakes a second that the flood had answers to }
sub flood {
    my ( $o, @names ) = @_;
    return _each(
        $o,
        sub {
            my $server = shift;
            my ( $port, $seconds ) = ( $server->{port}, $o->{seconds} );
            my @kept = ( $port, @NORMAL, $seconds, '/', '/', 'tls' );
            tlsclient( fresh => $port, 0.3 );
            my %figures = (
                calm     => think(@kept),
                new_calm => tlsclient( fresh => $port, $seconds )
            );

            # it begins when those that are kept have made their own handshakes
            my @flood = ( 'sh', '-c', 'sleep 0.5; exec "$@"', 'sh' );
            push @flood, "$Bench::Peer::DIR/tlsclient", 'flood', $port, $HANDSHAKES, $seconds + 1;
            my @rate;
            for my $part (qw(flood new_flood)) {
                open my $pipe, '-|', @flood or die "tlsclient: $!\n";
                sleep 0.7 if $part eq 'new_flood';
                $figures{$part} = $part eq 'flood' ? think(@kept) : tlsclient( fresh => $port, $seconds );
                push @rate, ( readline($pipe) // '' ) =~ /rate=(\d+)/;
                close $pipe;
            }
            return { %figures, rate => max(@rate) };
        },
        workers => 2,
        @names
    );
}

sub flood_plan {
    my ( $o, $count ) = @_;
    return ( $count, $count * ( 4 * $o->{seconds} + 5 ) );
}

# Servers one after the other; fields of Bench::Server come before the names
sub _each {
    my ( $o, $code, @rest ) = @_;
    my %field;
    while ( $rest[0] =~ /\A(?:workers|keep|clients)\z/ ) {
        my ( $name, $value ) = splice @rest, 0, 2;
        $field{$name} = $value;
    }
    my %result;
    for my $name (@rest) {
        $o->{tick}->($name);
        my $server = Bench::Server->new( name => $name, app => 'hello', tls => 1, %field );
        my $why    = $server->can_run;
        $result{$name} = $why ? { skipped => $why } : eval { $code->( $server->start ) }
            || { error => $@ =~ s/\s+/ /gr };
        $server->stop;
    }
    return \%result;
}

1;
