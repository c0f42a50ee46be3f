package Sirius::Soak::Storm;

# All kinds of requests for some time, while faults happen: is every response complete that a client was
# promised?

use strict;
use warnings;
use parent     qw(Sirius::Soak);
use List::Util qw(sum);
use Sirius::Soak::Disk;
use Sirius::Soak::Faults;
use Sirius::Soak::Watch;
use Test::More;

use constant {
    ENDS  => 20,    # decks in which there is one request of each kind that ends a worker
    LIMIT => 5,     # --request-timeout
};

# Options: seconds, each (seconds between two faults, on average), and those of Sirius::Soak
sub run {
    my ( $class, %option ) = @_;
    my ( $seconds, $each ) = delete @option{qw(seconds each)};
    my $disk = Sirius::Soak::Disk->new;
    my $self = $class->new(
        args      => [ qw(--workers 3 --max-reqs-per-child 3000), '--request-timeout', LIMIT ],
        may_crash => 1,
        $disk ? ( log_dir => $disk->dir ) : (),
        %option,
    );
    note "seed $self->{seed}", $disk ? '' : '; without a disk that can be full: that needs root';
    $self->start;
    my $before = $self->_supervisor;
    my $faults = Sirius::Soak::Faults->new(
        disk    => $disk,
        each    => $each,
        limit   => LIMIT,
        log     => "$self->{log_dir}/access",
        seconds => $seconds,
        seed    => $self->{seed},
        soak    => $self,
    );
    my $crowd = $self->crowd( ends => ENDS );
    my $until = time + $seconds;

    while ( time < $until ) {
        $crowd->hear(0.05);
        $faults->turn;
    }
    my %stuck = $faults->finish;
    $crowd->stop;
    $crowd->hear(0.1) until $crowd->over;
    $self->table;
    $self->_judge( $faults, %stuck );
    $self->_judge_supervisor($before);
    return $self->stop( $faults->killed );
}

# Every failure is explained by a fault
sub _judge {
    my ( $self, $faults, %stuck ) = @_;
    my ( @unexplained, %explained );
    for my $failure ( $self->failures ) {
        my $why = $faults->reason(@$failure);
        my ( $since, $until, @words ) = @$failure;
        if ($why) { $explained{"$words[1]: $why"}++ }
        else {
            push @unexplained, sprintf '%.3f to %.3f s: %s, %s (PID %d, %s)',
                map( { $_ - $faults->begun } $since, $until ), @words;
        }
    }
    my %count = $faults->count;
    note 'faults: ',                         join ', ', map {"$count{$_} $_"} sort keys %count;
    note 'of requests that take too long: ', join ', ', map {"$stuck{$_} $_"} sort keys %stuck if %stuck;
    note 'killed: ',                         scalar( keys %{ { $faults->killed } } ), ' workers';
    note 'missed, and why: ',                join ', ', map {"$explained{$_} $_"} sort keys %explained;
    return is( join( "\n", $self->some(@unexplained) ),
        '', 'every response is whole, but where its worker was killed' )
        || diag $self->server->log;
}

# A test, after a reload by which the supervisor becomes a new program: it has no more descriptors than these
sub _judge_supervisor {
    my ( $self, $before ) = @_;
    $self->wait_quiet;
    my $number = $self->_generation;
    $self->server->signal('HUP');
    ok( Sirius::Test::Server::until_true( 60, sub { $self->_generation > $number && $self->quiet } ),
        'a reload' );
    my $after;
    my $no_more = sub { $after = $self->_supervisor; return sum( values %$after ) <= sum values %$before };
    return ok( Sirius::Test::Server::until_true( 30, $no_more ), 'the supervisor has no descriptor more' )
        || diag join "\n", map { Sirius::Soak::Watch->words($_) } $before, $after;
}

# The highest number
sub _generation {
    my ($status) = eval { shift->status } or return 0;
    my ($number) = sort { $b <=> $a } map { $_->{generation} } @{ $status->{workers} };
    return $number || 0;
}

# Its descriptors, by kind
sub _supervisor {
    my $self = shift;
    return $self->look->{ $self->server->pid }{descriptors};
}

1;
