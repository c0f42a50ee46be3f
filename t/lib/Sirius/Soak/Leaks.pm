package Sirius::Soak::Leaks;

# Many requests of all kinds to one server whose workers stay: what do they hold at the end that they did not
# hold after the first tenth?

use strict;
use warnings;
use parent     qw(Sirius::Soak);
use List::Util qw(max);
use Sirius::Soak::Watch;
use Test::More;

use constant {
    FLAT    => 1024,    # KiB of growth that are allowed
    SAMPLES => 100,
};

# Options: requests, and those of Sirius::Soak
sub run {
    my ( $class, %option ) = @_;
    my $requests = delete $option{requests};
    my $self     = $class->new( args => [qw(--workers 2)], %option );
    $self->start;
    $self->_serve( $requests / 10 );
    my $before = $self->look;
    $self->{samples} = [];
    $self->_serve( $requests * 9 / 10 );
    my $after = $self->look;
    $self->table;
    my @failures = map { join q( ), @$_[ 2 .. 5 ] } $self->failures;
    is join( "\n", $self->some(@failures) ), '', 'every answer is right, to the byte';
    is join( q( ), sort keys %$after ),      join( q( ), sort keys %$before ), 'no process has come or gone';
    my @pids = sort { $a <=> $b } keys %$before;
    note sprintf '%-18s %10s %10s %10s %10s %10s %10s', 'KiB', 'at 10 %', 'at 100 %', 'growth', 'private',
        'highest', 'busy';
    $self->_judge( $_, $before->{$_}, $after->{$_} ) for @pids;
    return $self->stop;
}

# Tests of one process
sub _judge {
    my ( $self, $pid, $before, $after ) = @_;
    my $name = "$before->{role} $pid";
    my ( $rss, $private ) = map { $after->{$_} - $before->{$_} } qw(rss private);
    my @curve = map { $_->{$pid}{rss} } @{ $self->{samples} };
    note sprintf '%-18s %10d %10d %10d %10d %10d %10d', $name, $before->{rss}, $after->{rss}, $rss, $private,
        max(@curve), _middle( @curve[ -@curve / 10 .. -1 ] ) - _middle( @curve[ 0 .. $#curve / 10 ] );
    cmp_ok $rss, '<=', FLAT, "$name: memory is flat ($rss KiB)";
    is( Sirius::Soak::Watch->words( $after->{descriptors} ),
        Sirius::Soak::Watch->words( $before->{descriptors} ),
        "$name: the same descriptors"
    );
    return is $after->{threads}, $before->{threads}, "$name: the same threads";
}

sub _middle {
    my @sorted = sort { $a <=> $b } @_;
    return $sorted[ @sorted / 2 ];
}

# Sends so many requests, with checks in between
sub _serve {
    my ( $self, $requests ) = @_;
    my $crowd = $self->crowd( requests => $requests );
    my $next  = 0;
    until ( $crowd->over ) {
        $crowd->hear(0.05);
        next if $crowd->requests < $next;
        push @{ $self->{samples} }, $self->look;
        $next += $requests / SAMPLES;
    }
    return $self->wait_quiet;
}

1;
