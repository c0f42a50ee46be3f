package Sirius::Scoreboard;

use strict;
use warnings;

use Carp         ();
use Errno        qw(ESRCH);
use JSON::PP     ();
use Scalar::Util qw(looks_like_number);
use Sirius;
use Sirius::OS::Proc;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime time);

# The last text and its meaning: JSON::PP needs 2 ms for it, and it seldom changes
my ( $told, $reload ) = ('');

# Killed between the claim of a row and the fork, or between waiting for the worker and the release of its row
sub clear {
    my ( $self, $generation ) = @_;
    for my $row ( grep { $_->{pid} && $_->{generation} == $generation } $self->table ) {
        $self->release( $row->{row} ) if $row->{pid} < 0 || !kill( 0, $row->{pid} ) && $! == ESRCH;
    }
    return;
}

# The edge with that number, if it runs
sub edge {
    my ( $self, $number, %option ) = @_;
    my %edge = ( %{ $self->edge_row($number) }, number => $number );
    return if $edge{pid} <= 0;
    $edge{state}       = 'starting' if $edge{state} eq 'free';
    $edge{state}       = 'hanging'  if $edge{hangs_since};
    @edge{qw(cpu rss)} = map { scalar Sirius::OS::Proc->$_( $edge{pid} ) } qw(cpu resident)
        if !$option{quick};
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
    my $board = ref $self ? $self : $self->current || Carp::croak('this process does not belong to a server');
    my $totals  = $board->totals;
    my $reload  = $board->reload;
    my %sum     = map  { $_ => 0 } qw(connections http2 idle spooled streams waiting);
    my @workers = grep { $_->{pid} > 0 }    # it may have ended just now
        map { +{ %{ $board->row($_) }, slot => $_ } } $board->occupied;
    if ( !$option{quick} ) {
        for my $worker (@workers) {
            @{$worker}{qw(cpu rss)} = map { scalar Sirius::OS::Proc->$_( $worker->{pid} ) } qw(cpu resident);
        }
    }
    my @edges = map { $board->edge( $_, %option ) } 0 .. $board->edges - 1;
    my %held  = map { $_ => 0 } qw(response stream websocket);
    for my $edge (@edges) {
        $sum{$_}  += $edge->{$_}       for keys %sum;
        $held{$_} += $edge->{held}{$_} for keys %{ $edge->{held} };
    }
    return {
        beside       => delete $reload->{beside},
        calls        => $board->calls,
        connections  => { open => delete $sum{connections}, %sum },
        edges        => \@edges,
        edges_wanted => $board->edges / 2,               # each has a second row, for the one that replaces it
        exceptions   => $board->exceptions,
        held         => \%held,
        lanes        => $board->lanes,
        reload       => $reload,
        latency      => delete $totals->{latency},
        limits       => delete $totals->{allowed},
        now          => clock_gettime(CLOCK_MONOTONIC),
        queue        => delete $totals->{queue},
        stopping     => $board->stopping ? 1 : 0,
        time         => time,
        totals       => $totals,
        wanted       => $board->workers,
        workers      => \@workers,
    };
}

sub table {
    my $self = shift;
    return map { +{ %{ $self->row($_) }, row => $_ } } 0 .. $self->rows - 1;
}

# Commands of --beside
sub _beside {
    my $told = shift;
    return [
        map {
            my $one = $_;
            +{  name  => $one->{name},
                state => $one->{state},
                map { $_ => _number( $one->{$_} ) } qw(pid restarts since)
            }
        } grep {
                   ref eq 'HASH'
                && ( $_->{name}  // q() ) =~ /\A[a-z][\w-]{0,31}\z/a
                && ( $_->{state} // q() )
                =~ /\A(?:running|stopping|waiting)\z/
        } ref $told eq 'ARRAY' ? @$told : ()
    ];
}

# Of certificates or CRLs
sub _expiring {
    my $told = shift;
    return [
        map {
            utf8::downgrade( my $name = $_->{name}, 1 );
            +{ expires => _number( $_->{expires} ), name => $name }
            }
            grep { ref eq 'HASH' && defined $_->{name} && !ref $_->{name} } ref $told eq 'ARRAY' ? @$told : ()
    ];
}

sub _number {
    my $value = shift;
    return looks_like_number($value) ? $value + 0 : 0;
}

# What the supervisor reports of its reloads. Workers can write this memory too, so only expected values are
# taken. An application may call this: its handlers must not see our errors
sub _reload {
    my $text = shift;
    local ( $@, $SIG{__DIE__} );
    my $said = length $text && eval { JSON::PP->new->decode($text) };
    my %said = ref $said eq 'HASH' ? %$said : ();
    my ( $loading, $last, $count ) = map { ref eq 'HASH' ? $_ : {} } @said{qw(loading last reloads)};
    my %reload = (
        beside        => _beside( $said{beside} ),
        failed        => _number( $count->{failed} ),
        loading       => _number( $loading->{number} ),
        loading_since => _number( $loading->{since} ),
        certificates  => _expiring( $said{certificates} ),
        crls          => _expiring( $said{crls} ),
        ok            => _number( $count->{ok} ),
    );
    return \%reload if !_number( $last->{at} );
    my %last     = map  { ( "last_$_" => _number( $last->{$_} ) ) } qw(at ok seconds);
    my ($how)    = grep { defined && !ref && length } @{$last}{qw(error text)}, '';
    my ($output) = grep { defined && !ref } $last->{said}, '';
    utf8::downgrade( $_, 1 ) for $how, $output;    # bytes, as the program has written them
    return { %reload, %last, last_text => $how, last_said => $output };
}

1;

=encoding utf8

=head1 NAME

Sirius::Scoreboard - what the processes of the server do, and what they have done

=head1 SYNOPSIS

  use Sirius::Scoreboard;

  # in an application
  Sirius::Scoreboard->mark("report $id, page $page");

  # in any process of the server
  my $now = Sirius::Scoreboard->snapshot;
  printf "%d requests, half of them within %.3f s\n", $now->{totals}{requests}, $now->{latency}{p50};
  print "$_->{pid} $_->{state} $_->{line} $_->{mark}\n" for @{ $now->{workers} };

=head1 DESCRIPTION

Memory that all processes of a server share, with a row for each worker and each edge. It outlives workers, edges and
generations: a new worker continues the counters of its row. Reading takes no lock and stops no process; values that belong
together may differ by what happens within a microsecond.

All methods except L</snapshot> are written in C and available as soon as L<Sirius> is loaded. Applications use L</mark> and
L</snapshot>; the other methods are for the server itself.

=head1 METHODS

=head2 adopt

  my $board = Sirius::Scoreboard->adopt($descriptor);

Returns, in a new program, the scoreboard behind an inherited descriptor (see L</descriptor>). Dies if the descriptor is not a
scoreboard, or one of a version of Sirius with another layout.

=head2 ask_place

  $board->ask_place($row);

Forgets what L</place> knows about a worker. Call it before sending C<USR2> to the worker.

=head2 calls

  my $calls = $board->calls;

Returns a hash about the calls of the application that have ended: C<calls>, how many; C<seconds>, how long they took altogether;
C<paths>, a list of the paths that an edge has a row for, at most 64 for each place of an edge, those that took most of the time of late first; and C<other>,
all other paths together. What is counted of each, and of C<other>, never falls. Each is a hash:

C<path>, without ids, such as C</user/:id/edit>; C<calls>, C<seconds> and C<errors>, those that were answered with 5xx or cut off;
C<waited>, the seconds that these requests have waited for a worker; C<share>, its part of all the time of late, from 0 to 1; C<p50> and C<p99>
of late, in seconds. "Of late" counts half for every five minutes ago.

Of calls below 4 ms, those beyond 64 a second are counted by a sample. When more than 64 paths take turns in an edge, those with the
least time are counted together, as C</article/*>, or with C<other>.

=head2 claim

  my $row = $board->claim($generation);

Returns a free row for a worker that is about to be forked, or -1 if there is none.

=head2 clear

  $board->clear($generation);

Frees the rows that a generation which was killed has left behind: those claimed for a worker that it has not forked, and those of
workers that it has waited for.

=head2 current

  my $board = Sirius::Scoreboard->current;

Returns the scoreboard that this process has created, adopted or inherited, or undef if the process does not belong to a server.

=head2 descriptor

Returns the number of the descriptor, which a new program can L</adopt>.

=head2 edge

  my $edge = $board->edge($number);

Returns a hash about the edge process with that number, counted from 0, or nothing if it is not running:

C<number>, C<pid>, C<state>, which is C<starting>, C<idle>, C<busy>, C<draining> or C<hanging>; C<hangs_since> (monotonic seconds; 0
if it does not hang); C<started> (monotonic seconds); C<connections>, how many are open, and C<idle>, how many of them are
idle; C<http2>, how many speak HTTP/2, with how many C<streams>; C<spooled>, the bytes of its temporary files; C<waiting>, how many requests are waiting for a worker, and C<waiting_since>, when the first of them was complete (monotonic
seconds; 0 if none is waiting); C<accepted> connections and C<bytes> sent, by all edges with this number so far; C<cpu>, CPU time in
seconds; C<rss>, resident memory in bytes.

=head2 edge_exited

  $board->edge_exited($cause);

Counts the exit of an edge, with a cause as for L</exited>.

=head2 edge_hangs

  $board->edge_hangs( $number, $since );

Called by the supervisor: the edge with that number has not responded since that time (monotonic seconds), or, with 0, does so again.

=head2 edge_row

  my $row = $board->edge_row($number);

Returns what L</edge> returns, without C<number>, C<cpu> and C<rss>. C<pid> is 0 if the edge is not running.

=head2 edges

Returns the maximum number of edge processes.

=head2 exceptions

  my $exceptions = $board->exceptions;

Returns a hash: C<count>, of all exceptions of the application, and C<last>, a list of the at most 20 kinds that have occurred last, the last first. Each
is a hash: C<text>, the first line without addresses, numbers and ids, with its place; C<count>; C<first> and C<at>, when it has
occurred first and last (seconds since 1970); C<path> of the last request, without ids, or an empty string. Exceptions are what the error log has
of the application, and what it has written there in a request that it has answered with 500.

=head2 exited

  $board->exited($cause);

Counts the exit of a worker. The causes are C<stop>, C<fewer-workers>, C<max-requests>, C<max-rss>, C<max-lifetime>, C<harakiri>,
C<request-timeout>, C<load-timeout>, C<exit> (called by the application), C<crash> (a signal such as SEGV), C<out-of-memory>,
C<killed> (by any other signal) and C<graceful-timeout>. Dies if the cause is none of these.

=head2 keep

  my $fits = $board->keep($bytes);

Stores up to 8192 bytes that the admin process leaves to its successor. Returns false, and changes nothing, if they do not fit.

=head2 kept

  my $bytes = $board->kept;

Returns what was last given to L</keep>, or an empty string.

=head2 lanes

  my $lanes = $board->lanes;

Returns a list of hashes about the lanes of C<--lane>: C<name>, such as C</report>; C<limit>, how many of its requests may run;
C<queue_limit>, how many may wait, and C<timeout>, how long, in seconds (0: no limit); C<running>, how many have a place now, C<waiting>,
how many wait for one, and C<waiting_since>, when the first of them was complete (monotonic seconds; 0 if none waits); C<requests>,
how many have had a place, and C<waited>, for how many seconds they have waited for it altogether; C<refused>, for which the queue was full; C<timed_out>,
those that have waited too long. A lane that a reload has changed begins with 0.

=head2 layout

Returns a text that differs between versions of Sirius that cannot share a scoreboard.

=head2 longest_wait

  my $seconds = $board->longest_wait;

Returns the longest time that a request has waited for a worker since the last call of this method.

=head2 look

  my $board = Sirius::Scoreboard->look($descriptor);

The same as L</adopt>, in a process that is not of the server: only to read. The descriptor can have any number.

=head2 mark

  Sirius::Scoreboard->mark('exporting customers');
  Sirius::Scoreboard->mark('');

Sets a text about the current request, which the operator sees beside the request line. The first 63 bytes (as UTF-8) are kept,
without control characters. A call takes less than a microsecond. The text is removed at the end of the request. Outside of a
request, in a hook or in a child that the application has forked, the method does nothing.

An application that also runs under other servers checks C<< Sirius::Scoreboard->can('mark') >> first.

=head2 new

  my $board = Sirius::Scoreboard->new( $rows, $edges );

Creates a scoreboard with that many rows for workers and for edges.

=head2 occupied

Returns the numbers of the rows that have a worker.

=head2 occupy

  $board->occupy( $row, $pid ) or die;

Called by the worker before anything else. C<$pid> is the process that claimed the row for it. Returns false if that process was
killed and its claim was released, because another worker may have the row by now.

=head2 place

  my ( $file, $line ) = $board->place($row);

Returns the file and line of the Perl statement that a worker, forked by this process, is running. They are read from the memory
of the worker, which may be stopped or running C code. If the kernel does not allow that, they are what the handler of C<USR2> has
stored since L</ask_place>, with the last 128 bytes of the file name. Returns nothing if neither is available.

=head2 release

  $board->release($row);

Frees the row of a worker or edge that has exited. Connections that an edge still had count as closed by an C<error>.

=head2 reload

  my $reload = $board->reload;

Returns a hash about the reloads of the server (see L</tell>): C<ok> and C<failed>, how many there were; C<loading>, the number of
the generation that is being loaded, and C<loading_since> (0 if there is none); C<certificates>, a list of hashes with C<name> and
C<expires>, seconds since 1970 (with TLS; of many, the 16 that expire first); C<crls>, the same of CRLs. After the first reload also C<last_at> (seconds
since 1970), C<last_ok>, C<last_seconds>, C<last_text> and, if it failed, C<last_said>: up to 2000 characters of what the program
wrote to STDERR. C<beside> is as in L</snapshot>.

=head2 requests

  for my $request ( $board->requests ) {
      my ( $row, $pid, $began, $line ) = @$request;
  }
  my ($request) = $board->requests($row);

The requests that run, as in the hashes of L</row>, or only the one of that row.

=head2 row

  my $values = $board->row($row);

Returns a hash: C<pid>; C<generation>; C<state>, which is C<starting>, C<idle>, C<busy>, C<draining> or C<free>; C<since>, when the
state began (monotonic seconds). The figures of connections are in the rows of the edges: see L</edge>.

About the current request: C<began>, when it was complete (monotonic seconds; 0 if there is none); C<line>, its method and target,
in which everything but printable ASCII is C<\xNN>; C<client>, such as C<127.0.0.1:5555>, C<[::1]:5555> or C<unix>; C<id>, its request id; C<mark>.

About the previous request, while there is no current one: C<last_line>, C<last_client> and C<last_status>, which is 0 if there was
no response. If the worker is idle, that request ended at C<since>.

About all workers that had this row: C<requests>, how many they have served.

=head2 rows

Returns the number of rows for workers.

=head2 snapshot

  my $snapshot = Sirius::Scoreboard->snapshot;
  my $snapshot = $board->snapshot;
  my $snapshot = $board->snapshot( quick => 1 );

Returns a hash of everything. With C<quick> CPU time and memory of processes are not looked up in F</proc>. Dies if this process does not
belong to a server.

=over 4

=item C<time>, C<now>

The time in seconds since 1970, and of the monotonic clock that the rows use.

=item C<workers>

The rows of all workers as returned by L</row>, with C<slot>, the number of the row, C<cpu>, the CPU time of the process in seconds, and C<rss>, its resident memory in bytes.

=item C<calls>, C<exceptions>

See L</calls> and L</exceptions>.

=item C<totals>, C<latency>, C<queue>

See L</totals>.

=item C<beside>

A hash for each command of C<--beside>: C<name>; C<state>, C<running>, C<stopping> or C<waiting>; C<pid>, 0 while there is none; C<since>,
when that began; and C<restarts>, how often it was started again after it had ended by itself.

=item C<held>

Connections that are held for the application (C<--hold>): C<stream>, C<response> and C<websocket>.

=item C<limits>

What the server allows: C<max_connections>, C<max_queue>, C<queue_timeout> and C<request_timeout>, in seconds; 0: there is no limit.

=item C<lanes>

See L</lanes>.

=item C<connections>

How many are C<open>, C<idle>, and C<waiting>, that is with a complete request that waits for a worker. How many speak C<http2>, and how
many requests of these, C<streams>, are not over. C<spooled> is the size of all temporary files.

=item C<edges>

The edge processes that are running, as returned by L</edge>.

=item C<reload>

See L</reload>.

=item C<wanted>, C<stopping>

The number of workers that the server is to have, and 1 if the server is about to stop.

=back

=head2 stop

Announces that the whole server stops. A generation that is still loading exits as well.

=head2 stop_soon

Announces that the server is about to stop: from now on each response closes its connection, and L</stopping> is true.

=head2 stopped

Returns true after L</stop>.

=head2 stopping

Returns true after L</stop_soon> or L</stop>.

=head2 table

  my @rows = $board->table;

Returns the hashes of all rows for workers, as L</row> does, each with C<row>, its number.

=head2 tell

  my $fits = $board->tell($bytes);

Stores up to 8192 bytes that the supervisor publishes about itself. Returns false, and changes nothing, if they do not fit.

=head2 told

  my $bytes = $board->told;

Returns what was last given to L</tell>, or an empty string.

=head2 totals

  my $totals = $board->totals;

Returns a hash of counters since the start of the server. They continue over reloads and never decrease.

=over 4

=item C<requests>

Requests passed to the application.

=item C<responses>

Responses by the first digit of their status: C<< { 1 => 0, 2 => 17, ... } >>. Those with 1 are interim responses; the others are
counted when they end. 5 includes higher digits.

=item C<refused>

Requests that the server has refused itself: for bad requests, timeouts and overload.

=item C<refusals>

The same by reason: F<docs/PROTOCOL.md> has the names.

=item C<files>

Requests answered from the directories of C<--static>. They are not in C<requests> and not in C<latency>.

=item C<files_bytes>, C<files_unchanged>, C<files_missing>

The bytes of these responses, how many of them had the status 304, and how many 404.

=item C<aborted>

Requests whose client did not receive the whole response, because it closed the connection or the application failed.

=item C<bytes>

Bytes of finished responses that the kernel has accepted, including their heads. Interim responses are not counted.

=item C<accepted>, C<closed>

Connections. C<closed> is a hash by reason: C<client>, C<after-response>, C<keepalive-timeout>, C<header-timeout>, C<body-timeout>,
C<write-timeout>, C<refused>, C<room> (closed while idle to make room for a new connection), C<stop>, C<application> (taken over
by the application, psgix.io), C<proxy-protocol>, C<tls-handshake> (it has failed or taken too long), C<hold-buffer>, C<max-temp-file-size> (it was the slowest when there was no room for files)
and C<error>.

=item C<floods>

Times that a client of HTTP/2 was stopped because it did something too often, a hash by reason: C<resets> (it cancelled requests),
C<errors> (the server had to reset streams), C<streams> (it opened more while cancelled requests still ran; only these are refused, unless
it goes on), C<head> (far larger than C<--max-header-bytes>), C<continuation>, C<settings>, C<ping>, C<priority>, C<window-update>,
C<empty-data>, C<other> (frames without an effect) and C<unread> (it does not read what answers C<PING> and C<SETTINGS>).

=item C<paused>

Times that an edge has accepted no connection for a tenth of a second because descriptors or memory were short.

=item C<http2>, C<goaways>

Connections that have spoken HTTP/2, and those of them that were told to end (GOAWAY).

=item C<streams>, C<streams_cancelled>, C<streams_reset>

Requests of these, and how many were reset by the client, or by the server for an error.

=item C<published>, C<unpublished>, C<delivered>

Items published to channels, those that were dropped for lack of memory, and deliveries, each to one connection.

=item C<hold_slow>, C<hold_gaps>

Held connections that were closed because their client was too far behind (C<--hold-buffer>), and held responses that were ended because an
item was lost (C<prev-id>).

=item C<handshakes>

TLS handshakes that have succeeded.

=item C<handshakes_failed>

TLS handshakes that have failed, a hash by reason: C<version> (no TLS version in common), C<cipher> (no cipher, group or signature
algorithm in common), C<certificate> (the certificate of the client is missing or not accepted), C<alert> (the client has refused),
C<not_tls> (plain HTTP or rubbish), C<timeout>, C<closed> (the client has gone away) and C<other>.

=item C<given>, C<taken>

Connections that an edge has passed to the edge that replaced it, and those that such an edge has received.

=item C<lost>

Requests lost because their worker was killed, crashed or exited.

=item C<slow>

Requests that ran in the application for longer than C<--slow-log>.

=item C<log_lost>

Lines of the access log that could not be written.

=item C<limits>

Expired time limits: C<header>, C<body>, C<write>, C<keepalive>, C<queue>, C<request> and C<stream>. The first four are in C<closed>
as well, but for the C<write> of a single stream of HTTP/2.

=item C<edge_exits>

Edges that have exited, by cause. Missing if the server has no edges.

=item C<exits>

Workers that have exited, by cause (see L</exited>).

=item C<latency>, C<queue>

The time from a complete request until the kernel has accepted the last byte of its response, and the time from a complete request
until the application is called. C<latency> does not include requests that were aborted, or refused before they were complete.

Each is a hash: C<count>; C<sum> in seconds; C<buckets>, pairs of seconds and the number of requests that took less, from 16
microseconds to 137 seconds, with 4 buckets for each doubling; C<p50>, C<p90>, C<p99> and C<p999> in seconds.

=back

=head2 troubles

  my ( $count, $errno ) = @{ $board->troubles->{tempfile} };

Returns the events that the error log reports to the operator, by name: how often each has happened, and the last errno, or 0.

=head2 waiting

Returns the number of complete requests that no worker has begun to serve.

=head2 watched

  my $watched = $board->watched;
  $board->watched(1);

1 while the supervisor watches L</troubles>. While it does not (0), the next process that counts one wakes it. 2, in a process that
serves alone: nothing is new, but there is something to report later.

=head2 workers

  my $number = $board->workers;
  $board->workers($number);

Returns or sets the number of workers that the server is to have.

=head1 SEE ALSO

L<Sirius::Manual>.

=cut
