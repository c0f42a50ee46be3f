package Sirius::Process::Alerts;

use strict;
use warnings;

use List::Util          qw(min);
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Config::Options;
use Sirius::Config::Usage;
use Sirius::Log ();
use Sirius::OS::Limits;
use Sirius::OS::Proc;
use Sirius::Worker;

use constant {
    LOOK     => 1,      # seconds between two checks while there is something to see
    OVERLOAD => 5,      # seconds of busy workers and waiting requests that make an overload
    OVER     => 3,      # seconds without that after which the overload is over
    PERIOD   => 60,     # seconds between two lines about the same thing
    QUIET    => 5,      # checks that find nothing, after which it rests
    WAITED   => 0.1,    # seconds a request must have waited to be counted as waiting
};

# What workers count, in the order of report, with the level and the text: {request} is a number of requests,
# {max_queue} the value of that option; or a sub that returns the text
my @TROUBLES = (
    [ 'log-lost' => error => '--access-log {access_log}: {error}: {line} lost' ],
    [   tempfile => error =>
            'cannot write request bodies to temporary files in {tmpdir}: {error}: {request} refused; '
            . 'make it writable, or set --tmpdir to another directory'
    ],
    [   spool => error =>
            '{response} cut off: cannot keep what slow clients have not read yet in --tmpdir {tmpdir}: {error}'
    ],
    [ descriptors => error => \&_descriptors ],
    [ memory      => error => \&_memory ],
    [ reset       => error => '{connection} closed before a response was complete because memory ran out' ],
    [ worker      => error => \&_worker ],
    [ held        => warn  => '{room}: {response} kept waiting for a client that reads slowly' ],
    [   slowest => warn =>
            '{room}: {client} cut off or answered with 507 as the slowest one, to make room for others'
    ],
    [ queue           => warn => '--max-queue ({max_queue}) reached: {request} answered with 503' ],
    [ 'queue-timeout' => warn => '--queue-timeout ({queue_timeout}) exceeded: {request} answered with 503' ],
    [ 'lane-queue'   => warn => '{request} answered with 503 because the queue of a lane was full (--lane)' ],
    [ 'lane-timeout' => warn => '{request} answered with 503 because of the timeout of a lane (--lane)' ],
    [   connections => warn => '--max-connections ({max_connections}) reached: {request} answered with 503, '
            . 'because no other connection was idle'
    ],
    [   'hold-per-client' => warn =>
            '--hold-per-client ({hold_per_client}) reached: {request} answered with 503'
    ],
    [ body => info => '--max-body ({max_body}) exceeded: {request} answered with 413' ],
    [   'request-line' => info =>
            '--max-request-line ({max_request_line}) exceeded: {request} answered with 414'
    ],
    [   head => info =>
            '--max-header-bytes ({max_header_bytes}) or --max-header-fields exceeded: {request} answered with 431'
    ],
    [   'header-timeout' => info =>
            '--header-timeout ({header_timeout}) exceeded: {request} answered with 408'
    ],
    [ 'body-timeout' => info => '--body-rate ({body_rate}) not reached: {request} answered with 408' ],
    [ malformed      => info => '{request} answered with 400 because of incomplete or invalid HTTP' ],
);

# What has not been reported yet, and since when
my @STATE = qw(at busy_at busy_since log_back log_lost looked lost_now on overload quiet seen told waited);

sub act {
    my $self = shift;
    return if !defined $self->{at} || now() < $self->{at};
    my $now    = $self->{now} = now();
    my $counts = $self->{board}->troubles;
    my $news   = $self->_overload($counts);
    $news += $self->_tell( $_, $counts ) for @TROUBLES;
    $news += $self->_log_is_back($counts);
    delete $self->{at};
    return $self->_rest($counts) if !$news && ++$self->{quiet} >= QUIET;
    $self->{quiet} = 0           if $news;
    $self->{at}    = $now + LOOK if $self->{on};
    return;
}

# A worker has something to report
sub begin {
    my $self = shift;
    return if $self->{on};
    $self->{on}    = 1;
    $self->{quiet} = 0;
    $self->{at}    = now() + LOOK;
    return;
}

sub due {
    return grep {defined} shift->{at};
}

sub new {
    my ( $class, %args ) = @_;
    return bless { looked => {}, seen => {}, told => {}, %args }, $class;
}

# A new version may count what the old one did not
sub start {
    my $self   = shift;
    my $board  = $self->{board};
    my $counts = $board->troubles;
    for my $since ( @{$self}{qw(looked seen)} ) {
        %$since = ( ( map { $_ => $counts->{$_}[0] } keys %$counts ), %$since );
    }
    $self->begin if $board->watched;
    return;
}

# The state that the next program of this process continues with
sub state {
    my $self = shift;
    return { map { $_ => $self->{$_} } @STATE };
}

# What happened during the stop is reported in any case
sub stop {
    my $self   = shift;
    my $counts = $self->{board}->troubles;
    $self->{now}  = now();
    $self->{told} = {};
    $self->_over if $self->{overload};
    $self->_tell( $_, $counts ) for @TROUBLES;
    return;
}

sub _answered {
    my ( $number, $status, $why ) = @_;
    return _many( $number, 'request' ) . " answered with $status $why";
}

sub _descriptors {
    my ( $self, $number, $error ) = @_;
    my $limit = min map { Sirius::OS::Proc->descriptors($_) || () } $self->_edges;
    $limit = Sirius::OS::Limits->descriptors if !$limit;
    return "new connections must wait: $error; a process may have $limit descriptors open: "
        . 'raise the limit (ulimit -n, LimitNOFILE=)';
}

# The limit is theirs, and may have been changed since the start
sub _edges {
    my $board = shift->{board};
    return map { $_->{pid} } map { $board->edge( $_, quick => 1 ) } 0 .. $board->edges - 1;
}

# Reports that lines are written again after a loss. Workers find out one by one; true as long as some may not
# have
sub _log_is_back {
    my ( $self, $counts ) = @_;
    my $back = $counts->{'log-back'}[0];
    my $news = $back - $self->{seen}{'log-back'};
    $self->{seen}{'log-back'} = $back;
    return 0 if !$self->{log_lost};
    if ( $self->{lost_now} ) {    # in the same second, before it or after it
        $self->{log_back} = $news;
        return 1;
    }
    return 0 if !$news && !$self->{log_back};
    my ( $since, $number ) = @{ delete $self->{log_lost} };
    delete $self->{log_back};
    my $seconds = Sirius::Base::Text->age( $self->{now} - $since );
    Sirius::Log->note( "--access-log: writing again after $seconds; " . _many( $number, 'line' ) . ' lost' );
    return 0;
}

sub _many {
    my ( $number, $what ) = @_;
    return "1 $what was" if $number == 1;
    return "$number ${what}s were";
}

sub _memory {
    my ( $self, $number ) = @_;
    return _answered( $number, 503, "because a file of --static could not be opened: $!" )
        if grep { $!{$_} } qw(EAGAIN EIO ESTALE ETIMEDOUT);
    return _answered( $number, 503, 'because memory ran out' ) if !$!{EMFILE} && !$!{ENFILE};
    return _answered( $number, 503, "because no descriptor was free: $!" )
        . '; raise the limit (ulimit -n, LimitNOFILE=)';
}

sub _no_room {
    my $self  = shift;
    my $conf  = $self->{conf};
    my $limit = $conf->{max_temp_file_size};
    my $full  = "the file system of --tmpdir $conf->{tmpdir} is full";
    return $full if !$limit;
    return '--max-temp-file-size (' . $self->_value('max_temp_file_size') . ") is reached, or $full";
}

sub _over {
    my $self    = shift;
    my $counts  = $self->{board}->troubles;
    my @before  = @{ delete $self->{waited} };
    my @after   = @{ $self->_waited($counts) };
    my $longest = $self->{board}->longest_wait;
    my $refused = $after[1] - $before[1];
    my $served  = $after[0] - $before[0];
    $longest = $self->{conf}->{queue_timeout} if $after[2] > $before[2];
    Sirius::Log->note(
        sprintf 'overload ended after %.0f s: %s delayed, the longest wait was %.1f s; %s answered with 503',
        $self->{busy_at} + LOOK - $self->{busy_since},
        _many( $served, 'request' ),
        $longest,
        _many( $refused, 'request' )
    );
    delete @{$self}{qw(overload busy_since)};
    return;
}

# True while requests wait and no worker is free
sub _overload {
    my ( $self, $counts ) = @_;
    my $board   = $self->{board};
    my $waiting = $board->waiting;
    my %states  = ( idle => 0, busy => 0 );
    $states{ $_->{state} }++ for $waiting ? map { $board->row($_) } $board->occupied : ();
    if ( !$waiting || $states{idle} || !$states{busy} ) {
        $self->_over               if $self->{overload} && $self->{now} - $self->{busy_at} >= OVER;
        delete $self->{busy_since} if !$self->{overload};
        return $self->{overload} ? 1 : 0;
    }
    $self->{busy_at} = $self->{now};
    if ( !$self->{busy_since} ) {
        $self->{busy_since} = $self->{now};
        $self->{waited}     = $self->_waited($counts);
        $board->longest_wait;
    }
    my $seconds = $self->{now} - $self->{busy_since};
    return 1 if $self->{overload} || $seconds < OVERLOAD - LOOK / 2;
    $self->{overload} = 1;
    Sirius::Log->warn(
        sprintf 'overload: %s busy for %.0f s, %s waiting: raise --workers, or find the slow requests '
            . '(sirius top, --access-log-format with %%{app}D)',
        $states{busy} == 1 ? 'the only worker has been' : "all $states{busy} workers have been",
        $seconds,
        $waiting == 1 ? '1 request is' : "$waiting requests are"
    );
    return 1;
}

# Rests until a worker wakes it, or the counts of a period can be reported
sub _rest {
    my ( $self, $counts ) = @_;
    $self->{on} = 0;
    $self->{board}->watched(0);
    my @pending = grep { $counts->{$_}[0] > $self->{seen}{$_} } keys %{ $self->{told} };
    $self->{at} = min map { $self->{told}{$_} + PERIOD } @pending if @pending;

    # What was counted between the check and the rest has woken nobody
    my $after = $self->{board}->troubles;
    $self->begin if $self->{board}->waiting || grep { $after->{$_}[0] != $counts->{$_}[0] } keys %$counts;
    return;
}

# How often it has happened since the last check
sub _tell {
    my ( $self, $trouble, $counts ) = @_;
    my ( $name, $level, $words )    = @$trouble;
    my ( $count, $errno )           = @{ $counts->{$name} };
    my $new = $count - $self->{looked}{$name};
    $self->{looked}{$name} = $count;
    if ( $name eq 'log-lost' ) {
        $self->{lost_now} = $new;
        $self->{log_lost} ||= [ $self->{now}, 0 ] if $new;
        $self->{log_lost}[1] += $new              if $new;
    }
    my $number = $count - $self->{seen}{$name};
    my $told   = $self->{told}{$name};
    return $new if !$number || defined $told && $self->{now} < $told + PERIOD;
    my $since = defined $told ? $self->{now} - $told : 0;
    my $period = $since && $since < PERIOD + QUIET * LOOK ? sprintf ' in the last %.0f s', $since : '';
    $self->{seen}{$name} = $count;
    $self->{told}{$name} = $self->{now};
    local $! = $errno;
    my $text = ref $words ? $words->( $self, $number, "$!" ) : $self->_words( $words, $number, "$!" );
    Sirius::Log->$level( $text . $period );
    return $new;
}

sub _value {
    my ( $self, $key ) = @_;
    my $conf  = $self->{conf};
    my $value = $key eq 'max_connections' ? Sirius::Worker->max_connections($conf) : $conf->{$key};
    my $type  = Sirius::Config::Options->row($key)->{type};
    return $type eq 'bytes' ? Sirius::Config::Usage->bytes($value) : $type eq 'seconds' ? "$value s" : $value;
}

# Requests that waited and were served; requests that were refused; how many of the refused ones had reached
# their time limit
sub _waited {
    my ( $self, $counts ) = @_;
    my $queue   = $self->{board}->totals->{queue};
    my ($short) = map { $_->[1] } grep { $_->[0] >= WAITED } @{ $queue->{buckets} };
    my ( $full, $late ) = map { $counts->{$_}[0] } qw(queue queue-timeout);
    return [ $queue->{count} - $short, $full + $late, $late ];
}

sub _words {
    my ( $self, $text, $number, $error ) = @_;
    my %value = ( error => $error, room => $self->_no_room );
    return $text =~ s{\{(\w+)\}}{
        $value{$1} // ( exists $self->{conf}{$1} ? $self->_value($1) : _many( $number, $1 ) )
    }gexr;
}

sub _worker {
    my ( $self, $number, $error ) = @_;
    return
          "an edge cannot take a new worker, and requests may wait for it: $error: $number "
        . ( $number == 1 ? 'attempt' : 'attempts' )
        . ' failed';
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Alerts - logs overload, limits that are reached and disks that fail

=head1 SYNOPSIS

  my $alerts = Sirius::Process::Alerts->new( board => $scoreboard, conf => $conf );
  $alerts->start;
  $alerts->begin;     # a worker has said "trouble"
  $alerts->act;       # when $alerts->due has come

=head1 DESCRIPTION

The edges count in the scoreboard what goes wrong. When one of them counts something, or lets a request wait because no
worker is free, it wakes the supervisor, which then checks once a second until nothing has happened for five seconds.
An idle server wakes nobody.

Each kind of trouble is logged once a minute, with the number since the last line: a flood of requests does not become
a flood of lines. F<docs/OBSERVABILITY.md> lists them.

B<Overload> means that at each check of five seconds all workers are busy and requests wait. It ends when this was not
the case for three seconds.

=head1 METHODS

=head2 act

  $alerts->act;

Checks if it is due, and logs what there is to log.

=head2 begin

  $alerts->begin;

Starts checking once a second.

=head2 due

  my @when = $alerts->due;

When L</act> is to be called next (monotonic seconds); empty: not before L</begin>.

=head2 new

  my $alerts = Sirius::Process::Alerts->new( board => $scoreboard, conf => $conf, %$state );

C<%$state> is what L</state> has returned in the program before this one.

=head2 start

  $alerts->start;

What stands in it was told already, as far as the state of L</new> says nothing else.

=head2 state

  my $state = $alerts->state;

For L</new> in another program of this process: what was told, and what was not yet.

=head2 stop

  $alerts->stop;

The server ends: tells what has not been told.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Scoreboard>, L<Sirius::Log>.

=cut
