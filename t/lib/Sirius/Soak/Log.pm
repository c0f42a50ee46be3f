package Sirius::Soak::Log;

# The access log of a server under soak, from all its files

use strict;
use warnings;

# A line that a full disk has cut has another end
use constant FORMAT => '%s %X %P %r end';

sub new { return bless { lines => 0, responses => 0, seen => {}, twice => [], odd => [] }, shift }

sub read {
    my ( $self, @files ) = @_;
    for my $file (@files) {
        open my $in, '<', $file or die "$file: $!\n";
        while ( defined( my $line = readline $in ) ) { $self->_line($line) }
        close $in or die "$file: $!\n";
    }
    return $self;
}

sub lines { return shift->{lines} }

# Lines that are not valid
sub odd { return @{ shift->{odd} } }

# Requests that a client has seen answered (Sirius::Soak::Crowd->answered) and that have no line: the PID of
# their worker => how many
sub missing {
    my ( $self, $client, $answered ) = @_;
    my $seen = $self->{seen}{$client};
    $seen = '' if !defined $seen;
    my ( $number, %missing ) = (0);
    for my $pid ( unpack 'N*', $answered ) {
        $missing{$pid}++ if $pid && !vec $seen, $number, 1;
        $number++;
    }
    return %missing;
}

# Lines with a status; a client that leaves early has none
sub responses { return shift->{responses} }

# Numbers of requests with two lines
sub twice { return @{ shift->{twice} } }

sub _line {
    my ( $self, $line ) = @_;
    my ( $status, $client, $number ) = $line =~ m{\A(\d+|-) [-+X] \d+ [^\n]*?(?:/(\d+)-(\d+)[^\n]*)? end\n\z};
    return push @{ $self->{odd} }, $line if !defined $status;
    $self->{lines}++;
    $self->{responses}++        if $status =~ /\A[2-9]/;
    return                      if !defined $number;
    $self->{seen}{$client} = '' if !defined $self->{seen}{$client};
    push @{ $self->{twice} }, "$client-$number" if vec $self->{seen}{$client}, $number, 1;
    vec( $self->{seen}{$client}, $number, 1 ) = 1;
    return;
}

1;
