package Sirius::Profile::Collector;

use strict;
use warnings;

use List::Util          qw(max min);
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::OS::Proc;
use Sirius::OS::Sampler;
use Sirius::Profile::Samples;

use constant {
    LOOK   => 0.2,     # seconds between two looks whether the server is there
    MANY   => 10,      # failures in a row, after which a process is left alone for a while
    PAUSE  => 1,       # seconds
    STACKS => 3200,    # that are read in a second at most: a tenth of a processor
    TRIES  => 5,
};

my $BELOW = 'Sirius::Worker::run';    # the sub of the server in which a worker runs the application

# What stands for one of many in a path: a number, something long in hexadecimal digits, a UUID
my $ID = qr/\A(?:\d+|[0-9a-f]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\z/i;

sub act {
    my $self = shift;
    return if $self->ended || now() < $self->{due};
    if ( $self->{server} && now() >= $self->{look_at} ) {
        $self->{look_at} = now() + LOOK;
        return $self->{gone} = 1 if !Sirius::OS::Proc->born( $self->{server} );
    }
    if   ( $self->{pid} ) { $self->_take_process }
    else                  { $self->_take_worker($_) for $self->_requests }
    $self->_next;
    return;
}

sub due { return shift->{due} }

sub dump {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $bytes ) = @_;
    my @found
        = $self->{pid}
        ? { pid => $self->{pid}, $self->_stack( $self->{pid}, undef ) }
        : map { $self->_worker(@$_) } $self->_rows;
    my @read = grep { $_->{frames} } @found;
    if ( defined $bytes ) { _shorten( $_->{frames}, $bytes / @read ) for @read }
    return \@found;
}

sub end { return shift->{ended} = now() }

sub ended {
    my $self = shift;
    return $self->{ended} //= $self->{gone} || now() >= $self->{begun} + $self->{seconds} ? now() : undef;
}

sub gone { return shift->{gone} }

sub new {
    my ( $class, %options ) = @_;
    my $self = bless {
        begun    => now(),
        failures => {},
        hz       => 99,
        look_at  => 0,
        only     => sub {1},
        pause    => {},
        samplers => {},
        samples  => undef,
        seconds  => 10,
        seen     => {},
        tick     => 0,
        %options
    }, $class;
    my @pids = $self->{pid} // map { $_->[1]{pid} } $self->_rows;
    $self->{born}    = Sirius::OS::Proc->born( $self->{pid} ) if $self->{pid};
    $self->{hz}      = max 1, min $self->{hz}, int STACKS / max 1, scalar @pids;
    $self->{samples} = Sirius::Profile::Samples->new( hz => $self->{hz}, memory => $self->{memory} );
    $self->_check(@pids);
    $self->_next;
    return $self;
}

sub path_of {
    my ( $class, $line ) = @_;
    return $line =~ /\A\S+ ([^?#]*)/ ? $1 : '';
}

sub request_of {
    my ( $class, $line ) = @_;
    my ($method) = $line =~ /\A(\S+)/;
    my @parts    = split m{/}, $class->path_of($line), -1;
    return ( $method // '-' ) . ' ' . join '/', map { $_ =~ $ID ? q(*) : $_ } @parts;
}

sub samples {
    my $self = shift;
    $self->{samples}->set( seconds => ( $self->{ended} // now() ) - $self->{begun} );
    return $self->{samples};
}

sub server { return shift->{server} }

sub workers { return scalar keys %{ shift->{seen} } }

# Dies where none of these processes can be looked at. One of them may be another program now, or have just
# ended
sub _check {
    my ( $self, @pids ) = @_;
    my $why;
    for my $pid (@pids) {
        return if eval { Sirius::OS::Sampler->new( $pid, $self->{reader} ) };
        $why //= $@;
    }
    die $why if defined $why;
    return;
}

# A sampler has a descriptor and buffers, and there may be a new worker for each request
sub _drop_ended {
    my $self = shift;
    my %is   = map { $self->{board}->row($_)->{pid} => 1 } $self->{board}->occupied;
    for my $kept ( @{$self}{qw(failures pause samplers)} ) {
        delete @{$kept}{ grep { !$is{$_} } keys %$kept };
    }
    return;
}

# The next moment is at random within its period: else it could keep step with what it looks at
sub _next {
    my $self = shift;
    my $late = int( ( now() - $self->{begun} ) * $self->{hz} );
    $self->{tick} = max $self->{tick}, $late;
    $self->{due}  = $self->{begun} + ( $self->{tick}++ + rand ) / $self->{hz};
    return;
}

# Those that run and are wanted: row, PID, when it was complete, request line
sub _requests {
    my $self = shift;
    my ( $worker, $path ) = @{$self}{qw(worker path)};
    return grep {
               ( !defined $worker || $worker == $_->[0] || $worker == $_->[1] )
            && ( !defined $path || index( $self->path_of( $_->[3] ), $path ) == 0 )
    } $self->{board}->requests;
}

sub _rows {
    my $self   = shift;
    my $worker = $self->{worker};
    return grep { $self->{only}->( $_->[1]{pid} ) }
        grep    { $_->[1]{pid} > 0 && ( !defined $worker || $worker == $_->[0] || $worker == $_->[1]{pid} ) }
        map     { [ $_, $self->{board}->row($_) ] } $self->{board}->occupied;
}

# Undef: that process has ended, or cannot be looked at. To find the perl in a process that has mapped much
# takes long
sub _sampler {
    my ( $self, $pid ) = @_;
    return                         if now() < ( $self->{pause}{$pid} // 0 );
    return $self->{samplers}{$pid} if $self->{samplers}{$pid};
    $self->_drop_ended             if $self->{board};
    return                         if !$self->{only}->($pid);
    return $self->{samplers}{$pid} = eval { Sirius::OS::Sampler->new($pid) };
}

# What is further out goes: names have hardly any limit
sub _shorten {
    my ( $frames, $bytes ) = @_;
    my $keep = 0;
    $keep++ while $keep < @$frames && ( $bytes -= length $frames->[ -1 - $keep ] ) >= 0;
    splice @$frames, 0, @$frames - $keep, '...' if $keep < @$frames;
    return;
}

# Its labels and state, for a dump
sub _stack {
    my ( $self, $pid, $below ) = @_;
    my $sampler = $self->_sampler($pid) or return;
    my ( $labels, $state ) = $sampler->stack($below) or return;
    return ( frames => $labels, kind => $state eq 'R' ? 'cpu' : 'wait' );
}

sub _take {
    my ( $self, $pid, $root, $below, $holds ) = @_;
    my $sampler = $self->_sampler($pid);
    my ( $labels, $state, $moved ) = $sampler ? $sampler->stack($below) : ();
    return if !$holds->($labels);    # it has ended, so the stack may be of another one
    if ( !$labels ) {
        delete $self->{samplers}{$pid};
        $self->{pause}{$pid} = now() + PAUSE if ++$self->{failures}{$pid} % MANY == 0;
        return $self->{samples}->count('failed');
    }
    delete $self->{failures}{$pid};
    $self->{samples}->count('taken');
    $self->{samples}->count('cut') if $moved;
    push @$labels, '(server)' if !@$labels;
    return $self->{samples}->add( [ $root, @$labels ], $state eq 'R' ? 'cpu' : 'wait' );
}

# One that has ended has no stack, and is there until its parent waits for it, or another one has its PID
sub _take_process {
    my $self = shift;
    my $pid  = $self->{pid};
    $self->{seen}{$pid} = 1;
    my $holds = sub {
        my $read = shift;
        my $born = $read ? $self->{born} : Sirius::OS::Proc->born($pid);
        $self->{gone} = !defined $born || $born ne ( $self->{born} // '' );
        return !$self->{gone};
    };
    return $self->_take( $pid, "process $pid", undef, $holds );
}

sub _take_worker {
    my ( $self, $request ) = @_;
    my ( $row, $pid, $began, $line ) = @$request;
    $self->{seen}{$pid} = 1;
    my $holds = sub {
        my ($now) = $self->{board}->requests($row);
        return $now && $now->[1] == $pid && $now->[2] == $began;
    };
    return $self->_take( $pid, $self->request_of($line), $BELOW, $holds );
}

# For a dump: its request may end while the stack is read, and the next one begin
sub _worker {
    my ( $self, $slot, $row ) = @_;
    my %said = ( pid => $row->{pid}, state => $row->{state} );
    for ( 1 .. TRIES ) {
        my ($request) = grep { $_->[0] == $slot && $_->[1] == $row->{pid} } $self->{board}->requests;
        return \%said if !$request;
        my ( undef, undef, $began, $line ) = @$request;
        my %stack = $self->_stack( $row->{pid}, $BELOW );
        @said{qw(line seconds state)} = ( $line, now() - $began, 'busy' );
        next                     if !%stack;
        return { %said, %stack } if ( $self->{board}->row($slot)->{began} || 0 ) == $began;
    }
    return \%said;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Collector - takes samples of what the workers of a server run

=head1 SYNOPSIS

  use Sirius::Profile::Collector;

  my $collector = Sirius::Profile::Collector->new( board => $scoreboard, seconds => 10, hz => 99 );
  until ( $collector->ended ) {
      sleep max 0, $collector->due - now();
      $collector->act;
  }
  my $samples = $collector->samples;

=head1 DESCRIPTION

Reads the stacks of the workers that run a request (L<Sirius::OS::Sampler>), and counts them in a L<Sirius::Profile::Samples>. Workers
that are idle are not counted, nor is a stack that may be of the next request. Each sample is taken at a random moment of its period.

It can be in any process that the kernel lets read the memory of the workers.

=head1 METHODS

=head2 act

Takes samples if they are due.

=head2 due

When L</act> has to be called next, in monotonic seconds.

=head2 dump

  for my $worker ( @{ $collector->dump } ) { ... }
  my $workers = $collector->dump($bytes);

What each worker does now: a list of hashes with C<pid> and C<state>; with C<line> and C<seconds> of its request, if it runs one; and with
C<frames> and C<kind> (C<cpu> or C<wait>) if its stack could be read. C<frames> is empty if code of the server runs. With C<$bytes>, the
frames of all have at most that many bytes: C<...> stands for those further out.

=head2 end

Ends it earlier.

=head2 ended

True if the time is over, or the process or server has ended.

=head2 gone

True if the process of C<pid> or C<server> has ended.

=head2 new

  my $collector = Sirius::Profile::Collector->new( board => $board, seconds => 10, hz => 99, worker => 3, path => '/shop/' );
  my $collector = Sirius::Profile::Collector->new( pid => $pid, seconds => 10, hz => 99 );

With C<worker>, only the worker with that row or PID; with C<path>, only requests whose path begins with it; with C<only>, a sub, only
processes whose PID it likes. C<memory> limits the samples (L<Sirius::Profile::Samples/new>), C<reader> is for
L<Sirius::OS::Sampler/new>. With C<server>, the PID of a supervisor, it ends with that. C<pid> is any process of the same perl. C<hz> becomes less where there are many workers: 3200 stacks are read
in a second at most. Dies as L<Sirius::OS::Sampler/new> if the kernel forbids it.

=head2 path_of

  my $path = Sirius::Profile::Collector->path_of('GET /order/4711?print=1');    # /order/4711

The path of a request line.

=head2 request_of

  my $root = Sirius::Profile::Collector->request_of('GET /order/4711?print=1');    # GET /order/*

The root of a stack, of a request line: method and path, without the query, and with C<*> for each part that is a
number, eight or more hexadecimal digits, or a UUID.

=head2 samples

What was collected.

=head2 server

The PID of C<server>, or undef.

=head2 workers

How many processes were looked at.

=head1 SEE ALSO

L<Sirius::CLI::Profile>, L<Sirius::Profile::Server>.

=cut
