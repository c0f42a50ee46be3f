package Bench::Memory;

# What a server and one more worker cost in memory.

use strict;
use warnings;

use Bench::Load qw(think);
use Bench::Server;

my @WORKERS = ( 2, 8 );

# Returns name => { total => { 2 => kB, 8 => kB }, worker => kB that one more costs }: Pss after some thousand
# requests
sub measure {
    my ( $o, @names ) = @_;
    my %result;
    for my $name (@names) {
        my $peer = Bench::Peer::peer($name);
        $o->{tick}->($name);
        my %total;
        for my $workers ( $name eq 'floor' || $peer->{single} ? 1 : @WORKERS ) {
            my $server = Bench::Server->new( name => $name, app => 'hello', workers => $workers );
            eval {
                $server->start;
                think( $server->{port}, 16, 0, 0, 0.5, '/', '/', 'close' );
                $total{$workers} = $server->memory;
                1;
            } or $result{$name}{error} = $@ =~ s/\s+/ /gr;
            $server->stop;
        }
        $result{$name}{total} = \%total;
        next if grep { !$total{$_} } @WORKERS;
        $result{$name}{worker} = ( $total{8} - $total{2} ) / 6;
    }
    return \%result;
}

sub plan {
    my ( undef, $count ) = @_;
    return ( $count, $count * 3 );
}

1;
