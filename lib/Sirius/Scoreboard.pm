package Sirius::Scoreboard;

use strict;
use warnings;

use Carp         ();
use JSON::PP     ();
use Scalar::Util qw(looks_like_number);
use Sirius;
use Sirius::OS::Proc;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime time);

# What was told last, and what it means: JSON::PP takes 2 ms for it, and it seldom changes
my ( $told, $reload ) = ('');

# Of the one with that number, when it runs
sub edge {
    my ( $self, $number, %option ) = @_;
    my %edge = ( %{ $self->edge_row($number) }, number => $number );
    return                                                                           if $edge{pid} <= 0;
    @edge{qw(cpu rss)} = map { Sirius::OS::Proc->$_( $edge{pid} ) } qw(cpu resident) if !$option{quick};
    return \%edge;
}

sub reload {
    my $self = shift;
    my $text = $self->told;
    ( $told, $reload ) = ( $text, _reload($text) ) if !$reload || $told ne $text;
    return {%$reload};
}

sub snapshot {
    my ( $self, %option ) = @_;
    my $board   = ref $self ? $self : $self->current || Carp::croak('this process is of no server');
    my $totals  = $board->totals;
    my %sum     = ( connections => 0, idle => 0, waiting => 0 );
    my @workers = grep { $_->{pid} > 0 }    # it may have gone just now
        map { +{ %{ $board->row($_) }, slot => $_ } } $board->occupied;
    if ( !$option{quick} ) {
        $_->{rss} = Sirius::OS::Proc->resident( $_->{pid} ) for @workers;
    }
    my @edges = map { $board->edge( $_, %option ) } 0 .. $board->edges - 1;
    for my $edge (@edges) {
        $sum{$_} += $edge->{$_} for keys %sum;
    }
    return {
        connections => { open => delete $sum{connections}, %sum },
        edges       => \@edges,
        reload      => $board->reload,
        latency     => delete $totals->{latency},
        now         => clock_gettime(CLOCK_MONOTONIC),
        queue       => delete $totals->{queue},
        stopping    => $board->stopping ? 1 : 0,
        time        => time,
        totals      => $totals,
        wanted      => $board->workers,
        workers     => \@workers,
    };
}

sub _number {
    my $value = shift;
    return looks_like_number($value) ? $value + 0 : 0;
}

# What the supervisor says of its reloads. Workers can write this memory as well: only what is expected is taken. An
# application may ask: its handlers are not to hear of it
sub _reload {
    my $text = shift;
    local ( $@, $SIG{__DIE__} );
    my $said = length $text && eval { JSON::PP->new->decode($text) };
    my %said = ref $said eq 'HASH' ? %$said : ();
    my ( $loading, $last, $count ) = map { ref eq 'HASH' ? $_ : {} } @said{qw(loading last reloads)};
    my %reload = (
        failed        => _number( $count->{failed} ),
        loading       => _number( $loading->{number} ),
        loading_since => _number( $loading->{since} ),
        ok            => _number( $count->{ok} ),
    );
    return \%reload if !_number( $last->{at} );
    my %last     = map  { ( "last_$_" => _number( $last->{$_} ) ) } qw(at ok seconds);
    my ($how)    = grep { defined && !ref && length } @{$last}{qw(error text)}, '';
    my ($output) = grep { defined && !ref } $last->{said}, '';
    utf8::downgrade( $_, 1 ) for $how, $output;    # bytes, as the program wrote them
    return { %reload, %last, last_text => $how, last_said => $output };
}

1;

=encoding utf8

=head1 NAME

Sirius::Scoreboard - what the workers do, and what they have done

=head1 SYNOPSIS

  use Sirius::Scoreboard;

  # in an application
  Sirius::Scoreboard->mark("report $id, page $page");

  # in any process of the server
  my $now = Sirius::Scoreboard->snapshot;
  printf "%d requests, half of them within %.3f s\n", $now->{totals}{requests}, $now->{latency}{p50};
  print "$_->{pid} $_->{state} $_->{line} $_->{mark}\n" for @{ $now->{workers} };

=head1 DESCRIPTION

Memory that all processes of a server share, with a row for each worker. It outlives workers and generations: counters go on where
the last worker of the row has ended. Readers need no lock and stop nobody; numbers that belong together may be apart by what
happens in a microsecond.

All methods but L</snapshot> are written in C and are there as soon as L<Sirius> is loaded.

=head1 METHODS

=head2 adopt

  my $board = Sirius::Scoreboard->adopt($descriptor);

In a new program: the scoreboard that it was given, see L</descriptor>. Dies when that is none, or one of another version of Sirius
with another layout.

=head2 ask_place

  $board->ask_place($slot);

Forgets what L</place> knows of a worker, before C<USR2> asks it again.

=head2 claim

  my $slot = $board->claim($generation);

A free row for a worker that is about to be forked, -1 when there is no room.

=head2 occupy

  $board->occupy( $slot, $pid ) or die;

By that worker, before all else; C<$pid> is the process that has claimed the row for it. False when that was killed, and its claim
released: another may have the row by now.

=head2 current

  my $board = Sirius::Scoreboard->current;

The one of this process, which it has made, adopted or inherited; undef when this process is of no server.

=head2 descriptor

The number of its descriptor, for a new program to L</adopt>.

=head2 edge

  my $edge = $board->edge($number);

A hash of the edge process with that number, counted from 0; nothing when it does not run. C<number>, C<pid>, C<state>; C<started>
(monotonic seconds); C<connections> that are open and how many of them are C<idle>; C<waiting>, the requests that wait for a
worker, and C<waiting_since>, when the first of them was complete (monotonic seconds; 0: none waits); C<accepted> connections and
C<bytes> sent, of all edges that had this number; C<cpu>, seconds of a processor, and C<rss>, bytes of memory.

=head2 edge_exited

  $board->edge_exited($cause);

Counts the end of an edge, by a cause as L</exited> has it.

=head2 edge_row

  my $row = $board->edge_row($number);

What L</edge> has, but for C<number>, C<cpu> and C<rss>. Its C<pid> is 0 when it does not run.

=head2 edges

How many edge processes there may be.

=head2 keep

  my $fits = $board->keep($bytes);

For the admin port: what its successor is to have, at most 8192 bytes. False when that is too long; then nothing changes.

=head2 kept

  my $bytes = $board->kept;

What was given last to L</keep>, '' if nothing.

=head2 layout

A text that is another one when versions of Sirius can't share a scoreboard.

=head2 exited

  $board->exited($cause);

Counts the end of a worker: C<stop>, C<fewer-workers>, C<max-requests>, C<max-rss>, C<max-lifetime>, C<harakiri>,
C<request-timeout>, C<load-timeout>, C<exit> (the application has called it), C<crash> (a signal of a fault, such as SEGV),
C<out-of-memory>, C<killed> (by any other signal), C<graceful-timeout>. Dies when the cause is none of these.

=head2 leave

Load balancers are to find other servers: each response says close.

=head2 longest_wait

  my $seconds = $board->longest_wait;

The longest time that a request has waited for a worker since this was called last.

=head2 mark

  Sirius::Scoreboard->mark('exporting customers');
  Sirius::Scoreboard->mark('');

What the application says about the request it serves: the operator sees it beside the request line. The first 63 bytes (as UTF-8) are
kept, without control characters. It costs less than a microsecond and is gone at the end of the request. It does nothing where
no request is served: in a hook, or in a child that the application has forked.

An application that runs under other servers too asks first: C<< Sirius::Scoreboard->can('mark') >>.

=head2 new

  my $board = Sirius::Scoreboard->new( $slots, $edges );

=head2 occupied

The numbers of the rows that have a worker.

=head2 place

  my ( $file, $line ) = $board->place($slot);

Where perl is in that worker, which this process has forked: the file and line of the statement that it runs. It is read from the
memory of the worker, which may be stopped or stand in C code. Where the kernel does not allow that, it is what the handler of
C<USR2> has noted since L</ask_place>, the last 128 bytes of the name. Empty when there is neither.

=head2 release

  $board->release($slot);

The worker or edge of that row has gone. Connections that an edge still had were closed by the kernel and count as closed by an
C<error>.

=head2 row

  my $row = $board->row($slot);

The row of a worker, as a hash: C<pid>; C<generation>; C<state>: C<starting>, C<idle>, C<busy>, C<draining> or C<free>, C<since>
when (monotonic seconds). What belongs to connections is in the row of an edge: see L</edge>.

Of the request that is being served: C<began>, when it was complete (monotonic seconds; 0: there is none); C<line>, method and target,
where anything but printable ASCII is C<\xNN>; C<client>, C<127.0.0.1:5555>, C<[::1]:5555> or C<unix>; C<mark>.

Of the request before, while there is none: C<last_line>, C<last_client> and C<last_status>, 0 when no response was made. It ended
at C<since>, if the worker is idle.

Of all workers that had this row: C<requests>.

=head2 slots

How many rows there are.

=head2 reload

  my $reload = $board->reload;

What the supervisor says of its reloads (see L</tell>). A hash: C<ok> and C<failed>, how many there have been; C<loading>, the
number of the generation that is being loaded, and C<loading_since> (0: there is none). After the first reload also
C<last_at> (seconds since 1970), C<last_ok>, C<last_seconds>, C<last_text> and C<last_said>: the first 2000 characters at
most of what the program wrote to STDERR when it failed.

=head2 snapshot

  my $snapshot = Sirius::Scoreboard->snapshot;
  my $snapshot = $board->snapshot;
  my $snapshot = $board->snapshot( quick => 1 );

With C<quick> the memory of the workers is not looked up in F</proc>. A hash:

=over 4

=item C<time>, C<now>

Seconds since 1970, and of the monotonic clock that the rows speak of.

=item C<workers>

The rows of all workers as L</row> has them, with C<slot> and C<rss>, the bytes of memory of that process.

=item C<totals>, C<latency>, C<queue>

See L</totals>.

=item C<connections>

C<open>, C<idle>, and C<waiting>: with a complete request for which no worker is free.

=item C<edges>

The edge processes that run, as L</edge> has them.

=item C<reload>

See L</reload>.

=item C<wanted>, C<stopping>

See L</workers>; 1 when the server is about to end.

=back

Dies when this process is of no server.

=head2 stop

The whole server ends. A generation that is still loading ends as well.

=head2 stopped

True after L</stop>.

=head2 stopping

True after L</leave> or L</stop>.

=head2 tell

  my $fits = $board->tell($bytes);

For the supervisor: what it says of itself, at most 8192 bytes. False when that is too long; then nothing changes.

=head2 told

  my $bytes = $board->told;

What was said last with L</tell>, '' if nothing.

=head2 totals

  my $totals = $board->totals;

What all workers have done since the server was started. Never goes down, also over reloads. A hash:

=over 4

=item C<requests>

Handed to the application.

=item C<responses>

By the first digit of their status: C<< { 1 => 0, 2 => 17, ... } >>. Those with 1 are interim responses; the others are counted when they
are over. 5 stands for what is above as well.

=item C<refused>

Of these, what the server itself has answered: bad requests, timeouts, overload. Most of them were never handed to the application.

=item C<aborted>

Requests whose client did not get all of the response: it went away, or the application failed in the middle.

=item C<bytes>

That the kernel has taken, heads included, of responses that are over. Interim responses are not in it.

=item C<accepted>, C<closed>

Connections; C<closed> is a hash by the reason: C<client>, C<after-response>, C<keepalive-timeout>, C<header-timeout>, C<body-timeout>,
C<write-timeout>, C<refused>, C<room> (the oldest idle one gave way to a new one), C<stop>, C<application> (it has taken the
socket, psgix.io) and C<error>.

=item C<given>, C<taken>

Connections that an edge has passed to the one that took its place, and those that such a one has received.

=item C<lost>

Requests that ended with their worker, which was killed or crashed: those that the application had and those that waited.

=item C<log_lost>

Lines of the access log that could not be written.

=item C<limits>

How often a time limit was over: C<header>, C<body>, C<write>, C<keepalive>, C<queue>, C<request> and C<stream>. The first four
are in C<closed> as well.

=item C<edge_exits>

Edges that have ended, by cause. Not there when the server has no edges.

=item C<exits>

Workers that have ended, by cause (see L</exited>).

=item C<latency>, C<queue>

How long it took: from a complete request to the last byte of its response in the kernel's hands, and from a complete request to
the call of the application. A request that was aborted, or refused before it was complete, is not in C<latency>.

Each is a hash: C<count>; C<sum>, seconds; C<buckets>, pairs of seconds and how many took less, from 16 microseconds to 137
seconds, 4 for each doubling; C<p50>, C<p90>, C<p99> and C<p999>, seconds that so many did not take longer.

=back

=head2 troubles

  my ( $count, $errno ) = @{ $board->troubles->{tempfile} };

What L<Sirius::Process::Alerts> tells the operator, by name: how often it has happened, and the last errno, or 0.

=head2 waiting

How many complete requests no worker has begun to serve.

=head2 watched

  my $watched = $board->watched;
  $board->watched(1);

The supervisor looks at L</troubles>; while it does not, the next worker that counts one wakes it.

=head2 workers

  my $number = $board->workers;
  $board->workers($number);

How many the operator wants.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Worker>.

=cut
