package Sirius::Soak::Crowd;

# Many Sirius::Soak::Client, each in a process of its own, until they are stopped or have done their share.
#
#   my $crowd = Sirius::Soak::Crowd->start( addresses => [...], clients => 8, dir => $dir, requests => 1000, seed => 1 );
#   $crowd->hear(0.1) until $crowd->over;

use strict;
use warnings;
use POSIX ();
use Sirius::Soak::Client;
use Sirius::Soak::Kinds;
use Sirius::Test::Server;
use Time::HiRes qw(time);

# Options: addresses (given to the clients in turn), clients, first (number of the first one), dir (for what
# they leave), ends (requests that end workers: one of each kind in so many decks), file_size, requests (in
# all; none: until stop), seed
sub start {
    my ( $class, %option ) = @_;
    my $self = bless {
        %option,
        failures => [],
        kinds    => {},
        owner    => $$,
        partial  => '',
        pids     => {},
        requests => 0,
        share    => $option{requests} ? POSIX::ceil( $option{requests} / $option{clients} ) : 9**15,
    }, $class;
    pipe my $stop,      $self->{go_on} or die "pipe: $!";
    pipe $self->{news}, my $tell       or die "pipe: $!";
    for my $number ( $option{first} .. $option{first} + $option{clients} - 1 ) {
        my $pid = fork;
        die "fork: $!" if !defined $pid;
        if ( !$pid ) {
            close $self->{go_on};
            my $clean = eval { $self->_drive( $number, $stop, $tell ); 1 };
            print {*STDERR} "client $number: $@" if !$clean;
            POSIX::_exit( $clean ? 0 : 1 );
        }
        $self->{pids}{$pid} = $number;
    }
    return $self;
}

# For each client a string with 32 bits for each request: the PID of the worker that has answered it; 0: not
# answered
sub answered {
    my ( $self, $number ) = @_;
    return Sirius::Test::Server::slurp("$self->{dir}/answered.$number");
}

# What has gone wrong: arrays in the form of Sirius::Soak::Client
sub failures { return @{ shift->{failures} } }

# Reads the reports of the clients, for so many seconds
sub hear {
    my ( $self, $seconds ) = @_;
    my $until = time + $seconds;
    while ( ( my $left = $until - time ) > 0 ) {
        vec( my $read = '', fileno $self->{news}, 1 ) = 1;
        next if select( $read, undef, undef, $left ) < 1;
        my $got = sysread $self->{news}, $self->{partial}, 65_536, length $self->{partial};
        last if !$got;
        while ( $self->{partial} =~ s/\A(.*)\n// ) { $self->_heed( split /\t/, $1 ) }
    }
    return;
}

# Name => [ count, right ]
sub kinds { return %{ shift->{kinds} } }

# PIDs of its clients
sub numbers {
    my $self = shift;
    return $self->{first} .. $self->{first} + $self->{clients} - 1;
}

# True if all clients have ended
sub over {
    my $self = shift;
    local $?;
    for my $pid ( keys %{ $self->{pids} } ) {
        next if !waitpid $pid, POSIX::WNOHANG;
        my $number = delete $self->{pids}{$pid};
        push @{ $self->{failures} }, [ 0, 0, 'client', 'died', 0, $number ] if $?;
    }
    return 0 if %{ $self->{pids} };
    $self->hear(0.01);
    return 1;
}

# So far
sub requests { return shift->{requests} }

# Ends each client after its current request
sub stop {
    my $self = shift;
    close delete $self->{go_on} if $self->{go_on};
    return;
}

sub _drive {
    my ( $self, $number, $stop, $tell ) = @_;
    srand $self->{seed} + $number;
    my $client = Sirius::Soak::Client->new(
        address   => $self->{addresses}[ $number % @{ $self->{addresses} } ],
        file_size => $self->{file_size},
        number    => $number,
        tell      => $tell,
    );
    my @deck;
    vec( my $stops = '', fileno $stop, 1 ) = 1;
    while ( $client->done < $self->{share} && !select my $now = $stops, undef, undef, 0 ) {
        @deck = Sirius::Soak::Kinds->deck( $self->{ends} ) if !@deck;
        shift(@deck)->($client);
    }
    Sirius::Test::Server::spew( "$self->{dir}/answered.$number", $client->finish );
    return;
}

sub _heed {
    my ( $self, $what, @words ) = @_;
    if    ( $what eq 'requests' ) { $self->{requests} += $words[0] }
    elsif ( $what eq 'failure' )  { push @{ $self->{failures} }, \@words }
    else {
        my ( $count, $right, $kind ) = @words;
        $self->{kinds}{$kind}[0] += $count;
        $self->{kinds}{$kind}[1] += $right;
    }
    return;
}

# In case the listening process dies
sub DESTROY {
    my $self = shift;
    local ( $?, $!, $@ );
    return if $self->{owner} != $$;
    $self->stop;
    kill KILL => keys %{ $self->{pids} };
    waitpid $_, 0 for keys %{ $self->{pids} };
    return;
}

1;
