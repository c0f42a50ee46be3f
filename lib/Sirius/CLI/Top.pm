package Sirius::CLI::Top;

use strict;
use warnings;
use parent 'Sirius::CLI::Command';

use IO::Handle ();
use JSON::PP   ();
use List::Util qw(max min);
use POSIX      ();
use Sirius::Admin::Verdict;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::CLI::Top::Client;
use Sirius::CLI::Top::Picture;
use Sirius::CLI::Top::Screen;
use Sirius::Control::Client;
use Time::HiRes qw(sleep);

use constant { INTERVAL => 2, PATIENCE => 5 };    # seconds

# Intervals that + and - choose from, in seconds
my @STEPS = ( 0.5, 1, 2, 5, 10, 30, 60 );

my $KEYS = 'q quit  SPACE refresh now  + - every %s  s stack  ? help';
my @HELP = split /\n/, <<'TEXT';
Latency  time from the complete request to the last byte of its response
Queue    part of the latency: the time that requests waited for a free worker
         "< 16 us" and "> 2 min" are the limits of what the server measures
Edge     process that owns the client connections (--edges): its open and its
         idle connections, the requests in it that wait for a worker, and how
         long the first of them has been waiting
Idle     open connections between two requests
Waiting  open connections with a request that waits for a free worker

GEN      generation of the worker; each reload starts a new one
STATE    starting, idle, busy (running the application), draining
FOR      time since the request was complete, or since the worker became idle
REQ/S    requests per second since the last update
RSS      resident memory of the worker
OWN      part of it that no other process shares, on screens of 90 columns
ID       of its request, on screens of 160 columns
DOING    request line; in brackets what the application reports about it

q        quit, as Ctrl-C does
SPACE    update now
s        stack of the worker that is busy for longest, of the next one ...
+ -      lengthen or shorten the interval between two updates
?        return to the figures
TEXT

my @ROWS = (
    {   name  => 'admin',
        type  => 'string',
        value => 'ADDRESS',
        text  =>
            'Connect to the admin port at ADDRESS (default: the first in SIRIUS_ADMIN, or the only server without --control)'
    },
    {   name  => 'control',
        type  => 'string',
        value => 'PATH',
        text  => 'Connect to the control socket at PATH instead'
    },
    {   name  => 'pid',
        type  => 'count',
        min   => 1,
        max   => 2**22,
        value => 'PID',
        text  => 'Watch the server with this PID'
    },
    {   name    => 'interval',
        type    => 'seconds',
        default => INTERVAL,
        min     => 0.1,
        max     => 86_400,
        text    => 'Ask the server again after this time'
    },
    { name => 'once', type => 'bool', text => 'Print the figures once and exit' },
    { name => 'json', type => 'bool', text => 'Print the answer of the server as one line of JSON' },
    {   name  => 'stack',
        type  => 'count',
        min   => 1,
        max   => 2**22,
        value => 'PID',
        text  => 'Print what this worker does now, with its Perl stack, and exit'
    },
);

sub main {
    my ( $self, @words ) = @_;
    $self->no_more(@words);
    $self->{interval} = $self->given('interval') // INTERVAL;
    $self->_find;
    return $self->_print_stack( $self->given('stack') ) if defined $self->given('stack');
    $self->_look_or_fail;
    my ( $once, $json ) = map { $self->given($_) } qw(once json);
    return $self->_watch if !$once && !$json && Sirius::CLI::Top::Screen->is_possible;
    $self->_print;

    while ( !$once ) {
        sleep $self->{interval};
        $self->_look_or_fail;
        print "\n" if !$json;
        $self->_print;
    }
    return $self->DONE;
}

sub name { return 'top' }

sub rows { return @ROWS }

sub summary { return 'Watch a running server' }

sub _draw {
    my ( $self,  $screen ) = @_;
    my ( $width, $height ) = $screen->size;
    my $keys    = substr sprintf( $KEYS, Sirius::Base::Text->duration( $self->{interval} ) ), 0, $width;
    my @note    = defined $self->{error} ? substr "$self->{error}; trying again", 0, $width : ();
    my $picture = Sirius::CLI::Top::Picture->new( @{$self}{qw(now before)} );
    my $room    = max 0, $height - @note - 1;
    my @lines
        = $self->{explains}         ? map { substr $_, 0, $width } @HELP
        : defined $self->{stack_of} ? $self->_stack( $width, $room )
        :                             $picture->lines( $width, $room );
    $#lines = $room - 1 if @lines != $room;    # the keys stay on the last line of the screen
    my @all = ( @note, map( { defined $_ ? $_ : '' } @lines ), $keys );
    return $screen->show( $picture->header($width), @all );
}

# What the control socket has to say: status, and why there is none
sub _figures {
    my $self   = shift;
    my $answer = eval {
        ( Sirius::Control::Client->new( $self->{control}, PATIENCE )->ask( { command => 'figures' } ) )[0];
    };
    my $error = $@;
    die $error if ref $error && ref $error ne 'HASH';    # it comes from a signal
    return ( undef, ref $error ? $error->{text} =~ s/\A\Q$self->{control}\E: //r : $error ) if !$answer;
    my $status = $answer->{status};
    $status->{verdict} = eval { Sirius::Admin::Verdict->new($status)->worst } if ref $status eq 'HASH';
    return ( $status, $answer->{error} );
}

# The admin port, or the control socket of a server that need not have one
sub _find {
    my $self  = shift;
    my $given = $self->given('admin');
    my $other = defined $self->given('control') ? 'control' : defined $self->given('pid') ? 'pid' : undef;
    $self->wrong("--admin: cannot be combined with --$other") if defined $given && defined $other;
    my $admin = defined $other ? undef : $given
        // ( grep {length} split /[\s,]+/, $ENV{SIRIUS_ADMIN} || '' )[0];
    if ( !defined $admin ) {
        $self->{control} = $self->{admin} = $self->server;
        return;
    }
    $self->{admin}  = $admin;
    $self->{client} = eval { Sirius::CLI::Top::Client->new($admin) };
    chomp( my $error = $@ );
    $self->wrong( defined $given ? "--admin: $error" : "--admin: $error (from SIRIUS_ADMIN)" )
        if !$self->{client};
    return;
}

# Asks the server once more. False, with the reason, if it does not answer
sub _look {
    my $self = shift;
    my ( $status, $error ) = defined $self->{control} ? $self->_figures : $self->_status;
    $status = undef if defined $status && ref $status ne 'HASH';
    if ( ref $status eq 'HASH' && ref $status->{workers} eq 'ARRAY' ) {
        @{$self}{qw(before now error)} = ( $self->{now}, $status, undef );
        return 1;
    }
    $self->{error} = Sirius::Base::Text->harmless("$self->{admin}: $error");
    return 0;
}

sub _look_or_fail {
    my $self = shift;
    return $self->_look || $self->fail( $self->FAILED, $self->{error} );
}

# The busy worker after the one whose stack is shown, in the order of the picture; undef after the last
sub _next_worker {
    my $self = shift;
    my @pids = Sirius::CLI::Top::Picture->new( @{$self}{qw(now before)} )->busy;
    return $pids[0] if !defined $self->{stack_of};
    my ($at) = grep { $pids[$_] == $self->{stack_of} } 0 .. $#pids;
    return defined $at ? $pids[ $at + 1 ] : undef;
}

sub _print {
    my $self = shift;
    if ( $self->given('json') ) {    # in other words than the server's: one line, of ASCII only
        print JSON::PP->new->canonical->ascii->encode( $self->{now} ), "\n";
    } else {
        my ($width) = POSIX::isatty(1) ? Sirius::CLI::Top::Screen->size : undef;
        my @lines = Sirius::CLI::Top::Picture->new( @{$self}{qw(now before)} )->lines($width);
        utf8::encode($_) for @lines;
        print map {"$_\n"} @lines;
    }
    STDOUT->flush;
    return;
}

sub _print_stack {
    my ( $self, $pid ) = @_;
    my $stack = eval { $self->_stack_of($pid) };
    my $error = ref $@ eq 'HASH' ? $@->{text} : $@;
    chomp $error;
    $self->fail( $self->FAILED, Sirius::Base::Text->harmless("$self->{admin}: $error") ) if !$stack;
    print $self->given('json')
        ? JSON::PP->new->canonical->ascii->encode($stack) . "\n"
        : map {"$_\n"} Sirius::CLI::Top::Picture->stack($stack);
    return $self->DONE;
}

# Shows the last answer until the next one is due. True: the user has pressed q
sub _quits {
    my ( $self, $screen ) = @_;
    my $next = now() + $self->{interval};
    while ( ( my $left = $next - now() ) > 0 ) {
        $self->_draw($screen);
        my $key = $screen->key($left);
        next     if !defined $key;
        return 1 if $key =~ /\A[qQ]\z/;
        return 0 if $key eq q{ };
        $self->{explains} = !$self->{explains}  if $key eq q{?};
        $self->{stack_of} = $self->_next_worker if $key eq q{s};
        next if $key !~ /\A[-+]\z/;
        my @other = grep { $key eq q{+} ? $_ > $self->{interval} : $_ < $self->{interval} } @STEPS;
        $self->{interval} = $key eq q{+} ? $other[0] : $other[-1] if @other;
        $next = min $next, now() + $self->{interval};
    }
    return 0;
}

# The lines of the worker that was asked for
sub _stack {
    my ( $self, $width, $room ) = @_;
    my $stack = eval { $self->_stack_of( $self->{stack_of} ) };
    my $error = $@;
    return Sirius::CLI::Top::Picture->stack( $stack, $width, $room ) if $stack;
    die $error              if ref $error && ref $error ne 'HASH';    # it comes from a signal
    $error = $error->{text} if ref $error;
    chomp $error;
    return substr Sirius::Base::Text->harmless("worker $self->{stack_of}: $error"), 0, $width;
}

# What a worker does now; dies with why it is not known
sub _stack_of {
    my ( $self, $pid ) = @_;
    my $stack;
    if ( defined $self->{control} ) {
        my $client = Sirius::Control::Client->new( $self->{control}, PATIENCE );
        my ($answer) = $client->ask( { command => 'profile', dump => 1, worker => $pid } );
        die "$answer->{error}\n" if !$answer->{ok};
        ($stack) = @{ $answer->{workers} };
        die "there is no worker $pid\n" if !$stack;
    } else {
        $stack = eval { JSON::PP->new->utf8->decode( $self->{client}->stack($pid) ) };
        die $@ if !$stack;
    }
    die "not an admin port of Sirius\n" if ref $stack ne 'HASH';
    return $stack;
}

# What the admin port has to say
sub _status {
    my $self = shift;
    my $text = eval { $self->{client}->get('/status.json') };
    die $@ if ref $@;    # it comes from a signal
    chomp( my $error = defined $text ? 'not an admin port of Sirius'                      : $@ );
    return ( defined $text           ? scalar eval { JSON::PP->new->utf8->decode($text) } : undef, $error );
}

# Ctrl-Z: the shell gets its screen, and fg brings ours back
sub _suspend {
    my $screen = shift;
    $screen->close;
    kill STOP => $$;     # TSTP itself is blocked while its handler runs
    $screen->open;
    $screen->wake;
    return;
}

# Shows the server on the screen. Asks again if the server does not answer, as it may come back
sub _watch {
    my $self   = shift;
    my $screen = Sirius::CLI::Top::Screen->new;
    local @SIG{qw(HUP INT TERM)} = ( sub { $self->fail( $self->DONE ) } ) x 3;
    local $SIG{TSTP}             = sub { _suspend($screen) };
    local $SIG{WINCH}            = sub { $screen->wake };
    $screen->open;
    $self->_look until $self->_quits($screen);
    return $self->DONE;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Top - sirius top: watch a running server in a terminal

=head1 SYNOPSIS

  sirius --admin 127.0.0.1:9090 --workers 4 app.psgi

  sirius top --admin 127.0.0.1:9090
  sirius top --admin /run/shop/admin --once

  export SIRIUS_ADMIN=127.0.0.1:9090
  sirius top --interval 0.5
  sirius top --once --json

  use Sirius::CLI::Top;
  exit Sirius::CLI::Top->run(@ARGV);

=head1 DESCRIPTION

Shows the figures of the status page, updated every 2 seconds, until C<q> or Ctrl-C is pressed. Without an
address it asks the only server of the user, at its control socket; that need not have an admin port.

  Sirius 0.01, shop.psgi on web1, PID 4711, up 66 min, 14:02:11, rates over 2.0 s
  State        Serving, one request has been running for 12 s
  Address      http://127.0.0.1:5000/
  Workers      4 wanted, 2 busy, 2 idle
  Requests     812/s, 2xx 800, 4xx 12.0, 3.1 MB/s sent
  Edge         PID 4710, up 66 min, 120 open, 110 idle, 0 waiting, 4 % CPU, 14 MB
  Connections  120 open, 110 idle, 0 waiting
  Latency      p50 1.2 ms, p90 3.4 ms, p99 12 ms, p99.9 101 ms
  Queue        p50 < 16 us, p90 < 16 us, p99 220 us, p99.9 1.1 ms, 0 in it

      PID GEN STATE          FOR  REQ/S    RSS DOING
     4713   1 busy         12 s     0.0  34 MB GET /report?year=2024 [query 3 of 8]
     4714   1 busy        0.0 s   270.5  33 MB GET /
     4712   1 idle        0.0 s   268.0  33 MB
     4715   1 idle        0.0 s   271.5  33 MB

  q quit  SPACE refresh now  + - every 2.0 s  s stack  ? help

There is a line C<Edge> for each edge process (C<--edges>), a line C<Lane> for each lane, and C<Files> for those of C<--static>.

Workers that have been busy with one request for longest come first. Latency is the time from the complete request to the last
byte of its response. Queue is the part of it in which no worker was free. The first update has nothing to compare with: its rates
and times cover the time since the start of the server.

Further lines say where the time goes, as soon as there is something to say: C<Time> how many workers were in a call of the application in
the mean, and how much of that they have computed; C<Paths> the five paths with the most time of late; C<Exceptions> how many there were,
and the last. L<Sirius::Scoreboard/calls> explains them.

The server counts times in buckets: C<< < 16 us >> is the first bucket, and C<< > 2 min >> is everything beyond the last one.

=head1 KEYS

=over 4

=item C<q>

Quit, as Ctrl-C does.

=item Space

Update now.

=item C<+>, C<->

Lengthen or shorten the interval between two updates: 0.5, 1, 2, 5, 10, 30 or 60 seconds.

=item C<s>

Show the stack of the worker that has been busy for longest, then of the next one, and after the last one the figures.

=item C<?>

Explain the figures; press it again to return to them.

=back

=head1 WITHOUT A SCREEN

If STDOUT is not a terminal, or the terminal is C<dumb>, the updates are printed one after the other. In text that comes from
clients of the server, everything but printable ASCII is escaped; in what the application says, where the locale is of UTF-8, control
characters are.

=head1 OPTIONS

=over 4

=item B<--admin> I<ADDRESS>

Connect to the address or the URL of the server's C<--admin> (default: the first address in the environment variable
C<SIRIUS_ADMIN>, or the only server without --control).

=item B<--control> I<PATH>

Connect to the control socket at I<PATH> instead. It has all figures but the memory that a worker shares with no other process.

=item B<--pid> I<PID>

Watch the server with this PID, if several run.

=item B<--interval> I<SECONDS>

Ask the server again after this time (default: 2). Units are accepted as by L<sirius>: C<500ms>, C<1m>.

=item B<--once>

Print the figures once and exit.

=item B<--json>

Print the answer of the server as one line of JSON.

=item B<--stack> I<PID>

Print what this worker does now, with its Perl stack, innermost first, and exit; with C<--json> as JSON.

=item B<-h>, B<--help>

Print a summary of the options, and exit.

=back

=head1 EXIT STATUS

  0   done: --once, q, or Ctrl-C on the screen
  1   no server was found, no admin port answers at the address, or it stopped answering
  2   wrong usage

While the figures are on the screen, a server that stops answering is asked again, because it may come back.

=head1 METHODS

=head2 run

  exit Sirius::CLI::Top->run(@ARGV);

Runs the command with these words, and returns its exit status.

=head1 SEE ALSO

L<sirius>, L<Sirius::CLI::Ctl>.

=cut
