package Sirius::Soak::Faults;

# Faults that happen to a server at times that a seed decides. What a client misses must be explained by
# faults that happened while it waited.

use strict;
use warnings;
use Sirius::Soak::Client;
use Sirius::Test::Client;
use Test::More;

my $PARTS = 30;    # connections of a crowd that disconnects

# Name => how often, and what it does
my %FAULT = (
    'descriptors'     => [ 3, \&_descriptors ],
    'disk full'       => [ 3, \&_disk ],
    'kill generation' => [ 1, \&_kill_generation ],
    'kill worker'     => [ 4, \&_kill ],
    'one less'        => [ 2, \&_less ],
    'one more'        => [ 2, \&_more ],
    'reload'          => [ 3, sub { shift->{server}->signal('HUP') } ],
    'retire'          => [ 2, \&_retire ],
    'rotate'          => [ 4, \&_rotate ],
    'stop worker'     => [ 4, \&_stop ],
    'time limit'      => [ 1, \&_stuck ],
    'vanish'          => [ 3, \&_vanish ],
);

# Options: soak (a Sirius::Soak), seconds, each (seconds from one to the next, on average), seed, log (the
# access log), disk (a Sirius::Soak::Disk), limit (--request-timeout)
sub new {
    my ( $class, %option ) = @_;
    my $self = bless {
        begun   => Sirius::Soak::Client->now,
        count   => {},
        heard   => Sirius::Soak::Client->now,
        later   => [],
        plan    => [],
        read    => 0,
        server  => $option{soak}->server,
        stuck   => [],
        windows => [],
        %option,
    }, $class;
    my @names = grep { $_ ne 'disk full' || $self->{disk} } sort keys %FAULT;
    my @cards = map  { my $name = $_; ($name) x $FAULT{$name}[0] } @names;
    srand $self->{seed};
    my $at = $self->{each};
    while ( $at < $self->{seconds} ) {
        push @{ $self->{plan} }, [ $at, $cards[ rand @cards ], rand ];
        $at += $self->{each} * ( 0.5 + rand );
    }
    return $self;
}

# Name => how often
sub count { return %{ shift->{count} } }

# Explains a failure that a client has reported (see Sirius::Soak::Client); '' if nothing does
sub reason {
    my ( $self, $since, $until, $kind, $what, $pid ) = @_;
    my @at = grep { $_->{from} <= $until && ( !defined $_->{until} || $_->{until} >= $since ) }
        @{ $self->{windows} };
    my @end = grep { $_->{what} eq 'kill' } @at;
    if ( $what eq 'cut' ) {
        @at = grep { $_->{pid} == $pid } @end;
    } elsif ( $what eq 'unanswered' ) {
        @at = ( @end, grep { $_->{what} eq 'descriptors' } @at );
    } elsif ( $what eq 'error 502' ) {    # from an edge, whose connections outlive a worker
        @at = @end;
    } elsif ( $what eq 'error 504' ) {
        return $until - $since >= $self->{limit} ? 'time limit' : '';
    } elsif ( $what =~ /\Aerror 50[037]\z/ ) {
        @at = grep { $_->{what} ne 'kill' } @at;
    } else {
        return '';
    }
    return @at ? $at[0]{what} : '';
}

# When the fault began
sub begun { return shift->{begun} }

# Ends all faults
sub finish {
    my $self = shift;
    $self->{plan} = [];
    $self->turn(1);
    my %status;
    for my $connection ( splice @{ $self->{stuck} } ) {    # closes it, if the server has not
        $status{ $connection->response( patience => 60 )->status }++;
    }
    Sirius::Test::Server::until_true(
        60,
        sub {
            $self->turn;
            !grep { !defined $_->{until} } @{ $self->{windows} };
        }
    );
    return %status;
}

# PIDs of workers that were killed
sub killed {
    my $self = shift;
    return map { $_->{pid} => 1 } grep { $_->{what} eq 'kill' } @{ $self->{windows} };
}

# Lets the faults happen that are due
sub turn {
    my ( $self, $all ) = @_;
    my $now   = Sirius::Soak::Client->now;
    my @later = splice @{ $self->{later} };
    for my $later (@later) {
        if   ( $all || $later->[0] <= $now ) { $later->[1]->() }
        else                                 { push @{ $self->{later} }, $later }
    }
    while ( @{ $self->{plan} } && $self->{plan}[0][0] <= $now - $self->{begun} ) {
        my ( $at, $name, $chance ) = @{ shift @{ $self->{plan} } };
        my $done = $FAULT{$name}[1]->( $self, $chance );
        note sprintf '%6.1f s %s%s', $at, $name, $done ? '' : ': not now';
        $self->{count}{$name}++ if $done;
    }
    $self->_hear;
    for my $window ( grep { $_->{what} eq 'kill' && !defined $_->{until} } @{ $self->{windows} } ) {
        $window->{until} = Sirius::Soak::Client->now
            if Sirius::Test::Server::slurp("/proc/$window->{pid}/stat") !~ /\A\d+ \(.*\) [^Z]/s;
    }
    return;
}

# The highest number that the worker has is the highest possible
sub _descriptors {
    my ( $self, $chance ) = @_;
    my $pid       = $self->_one( 'worker', $chance ) or return 0;
    my ($highest) = sort { $b <=> $a } Sirius::Test::Server->descriptors($pid);
    my ($limit) = Sirius::Test::Server::slurp("/proc/$pid/limits") =~ /^Max open files\s+(\d+)/m or return 0;
    my $window  = $self->_window( 'descriptors', $pid );
    my $done    = $highest && _limit( $pid, $highest + 1 );
    return $self->_later( $done ? 1 : 0,
        sub { _limit( $pid, $limit ); $window->{until} = Sirius::Soak::Client->now } )
        && $done;
}

sub _disk {
    my $self   = shift;
    my $disk   = $self->{disk};
    my $window = $self->_window('disk');
    my $full   = $disk->fill;
    return $self->_later( $full ? 1 : 0, sub { $disk->free; $window->{until} = Sirius::Soak::Client->now } )
        && $full;
}

# What the server reports of requests that took too long: their workers were killed, after the last call of
# this at the earliest
sub _hear {
    my $self = shift;
    my $file = $self->{server}->dir . '/stderr';
    my $last = $self->{heard};
    $self->{heard} = Sirius::Soak::Client->now;
    return if -s $file <= $self->{read};
    open my $in, '<:raw', $file or die "$file: $!\n";
    seek $in, $self->{read}, 0;
    my $text = do { local $/ = undef; readline $in };
    $text =~ s/[^\n]*\z//;
    $self->{read} += length $text;
    $self->_window( 'kill', $_ )->{from} = $last for $text =~ /worker (\d+): .* ran for /g;
    return;
}

sub _kill {
    my ( $self, $chance ) = @_;
    my $pid = $self->_one( 'worker', $chance ) or return 0;
    $self->_window( 'kill', $pid );
    return kill KILL => $pid;
}

sub _kill_generation {
    my ( $self, $chance ) = @_;
    my $pid = $self->_one( 'generation', $chance ) or return 0;
    return kill KILL => $pid;
}

sub _later {
    my ( $self, $seconds, $code ) = @_;
    push @{ $self->{later} }, [ Sirius::Soak::Client->now + $seconds, $code ];
    return 1;
}

sub _less { return $_[0]->_workers > 2 && $_[0]{server}->signal('TTOU') }
sub _more { return $_[0]->_workers < 6 && $_[0]{server}->signal('TTIN') }

sub _limit {
    my ( $pid, $limit ) = @_;
    local $?;
    return system("prlimit --pid $pid --nofile=$limit: 2>/dev/null") == 0;
}

# A random process of a kind
sub _one {
    my ( $self, $role, $chance ) = @_;
    my %role = $self->{soak}->roles;
    my @pids = sort { $a <=> $b } grep { $role{$_} eq $role } keys %role;
    return @pids ? $pids[ $chance * @pids ] : undef;
}

sub _retire {
    my ( $self, $chance ) = @_;
    my $pid = $self->_one( 'worker', $chance ) or return 0;
    return kill TERM => $pid;
}

sub _rotate {
    my $self = shift;
    rename $self->{log}, sprintf '%s.%d', $self->{log}, ++$self->{rotated} or return 0;
    return $self->{server}->signal('USR1');
}

sub _stop {
    my ( $self, $chance ) = @_;
    my $pid = $self->_one( 'worker', $chance ) or return 0;
    kill STOP => $pid or return 0;
    return $self->_later( 0.2, sub { kill CONT => $pid } );
}

sub _stuck {
    my $self       = shift;
    my $connection = Sirius::Test::Client->new( $self->{server}->address );
    my $seconds    = 4 * $self->{limit};
    push @{ $self->{stuck} }, $connection;
    return $connection->send(
        Sirius::Test::Client::request( sprintf "GET /stuck/0-%d?$seconds", scalar @{ $self->{stuck} } ) );
}

# Clients that have sent a part of something and disconnect
sub _vanish {
    my $self  = shift;
    my $bytes = "POST /post/gone HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" . 'x' x 90_000;
    my @crowd = map { Sirius::Test::Client->new( $self->{server}->address ) } 1 .. $PARTS;
    $crowd[$_]->send( substr( $bytes, 0, $_ * 3000 ), 0.1 ) for 0 .. $#crowd;
    $_->abort for @crowd;
    return 1;
}

sub _window {
    my ( $self, $what, $pid ) = @_;
    my $window = { what => $what, pid => $pid || 0, from => Sirius::Soak::Client->now, until => undef };
    push @{ $self->{windows} }, $window;
    return $window;
}

# How many there should be
sub _workers { return shift->{soak}->status->{wanted} }

1;
