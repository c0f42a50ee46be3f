package Sirius::Edge;

use strict;
use warnings;

use Fcntl        qw(FD_CLOEXEC F_GETFL F_SETFD F_SETFL O_NONBLOCK);
use POSIX        ();
use Scalar::Util qw(weaken);
use Sirius::Backoff;
use Sirius::Cause;
use Sirius::Command;
use Sirius::Handover;
use Sirius::Log ();
use Sirius::Title;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

use constant LATE => 2;    # seconds more than it has to answer what came, that the edge gets to end

# Where the installed files are, before an application can change @INC
my @FOLDERS = Sirius::Command->folders;

# Settings that go to the edge as they are
my @PLAIN
    = qw(body_memory body_rate body_timeout graceful_timeout header_timeout keepalive_timeout max_body max_header_bytes
    max_header_fields max_keepalive_reqs max_queue max_request_line queue_timeout tmpdir write_timeout);
my @SWITCHES = qw(keepalive proxy_protocol);

# As nginx has it (lingering_timeout)
use constant LINGER => 5;

# From now on each response says close
sub close {
    my $self = shift;
    $self->{leaving} = 1;
    kill USR1 => $self->{pid} if $self->{ready} && $self->{pid};
    return;
}

# [name, was, is] of what the edge that runs was told otherwise: it reads its settings once
sub differs {
    my ( $class, $told, $conf ) = @_;
    my ( $was, $is ) = map {
        +{ map { split /=/, $_, 2 } @$_ }
    } $told, [ $class->settings($conf) ];
    my %name = ( %$was, %$is );
    $_ = { map( { $_ => '' } keys %name ), %$_ } for $was, $is;
    return map { [ "--$_", $was->{$_}, $is->{$_} ] } grep { $was->{$_} ne $is->{$_} } sort keys %name;
}

# Empty when nothing is to be done before a signal comes
sub due {
    my $self = shift;
    return grep {defined} $self->{kill_at} if $self->{pid};
    return $self->{stopping} ? () : $self->{backoff}->at;
}

sub ended {
    my ( $self, $pid, $status ) = @_;
    return 0 if $pid != ( $self->{pid} || 0 );
    $self->hear;
    my $ready = delete $self->{ready};
    delete @{$self}{qw(kill_at pid)};
    my $board = $self->{scoreboard};
    $board->release( $board->slots ) if $board;
    if ( $self->{stopping} ) {
        $self->_over;
        return 1;
    }
    my $how = "$self->{said}the edge $pid " . Sirius::Cause->words( $status, 'status 0' );
    if ( !$ready && !$self->{supervisor}{announced} ) {
        $self->_over;
        Sirius::Log->fail("$how: the server does not start");
    }
    my $delay = $ready ? 0 : $self->{backoff}->no_fork;
    Sirius::Log->error( $how
            . ( $ready ? ' and its connections are closed; '          : '; it never got ready; ' )
            . ( $delay ? sprintf 'another one starts in %g s', $delay : 'another one starts now' ) );
    return 1;
}

# What it says of workers: "PID WHAT WHY"
sub hear {
    my $self = shift;
    1 while sysread $self->{news}, $self->{heard}, 4096, length $self->{heard};
    while ( $self->{heard} =~ s/\A([^\n]*)\n// ) {
        my ( $pid, $what, $why ) = $1 =~ /\A(\d+) (\S+) ?(.*)\z/ or next;
        if    ( $what eq 'ready' )                  { $self->_ready }
        elsif ( $what eq 'trouble' )                { $self->{supervisor}{watch}->begin }
        elsif ( $what =~ /\A(?:broken|timeout)\z/ ) { $self->{tell}->( $pid, $what, $why ) }
    }
    return;
}

sub new {
    my ( $class, $supervisor, $rows, %own ) = @_;
    my ( $ours, $theirs ) = Sirius::Engine->line;
    my $self = $class->_of(
        $supervisor,
        line     => Sirius::Handover->take_handle($ours),
        line_end => Sirius::Handover->take_handle($theirs),
        heard    => '',
        lobby    => Sirius::Handover->take_handle( Sirius::Engine->lobby ),
        sleepers => Sirius::Handover->take_handle( Sirius::Engine->sleepers($rows) ),
        %own,
    );
    $self->{settings} = [ $class->settings( $self->{conf} ) ];

    # Both ends stay here: they outlive any edge. One that can't tell at once tells later
    pipe my $news, my $report or Sirius::Log->fail("pipe: $!");
    for my $end ( $news, $report ) {
        fcntl $end, F_SETFL, O_NONBLOCK | fcntl $end, F_GETFL, 0 or Sirius::Log->fail("F_SETFL: $!");
    }
    @{$self}{qw(news report)} = ( $news, $report );
    return $self;
}

sub log_to {
    my ( $self, $fd ) = @_;
    Sirius::Engine->pass_log( fileno $self->{line}, $fd );
    return;
}

sub news { return shift->{news} }

sub path {
    for my $dir (@FOLDERS) {
        my $path = "$dir/auto/Sirius/sirius-edge";
        return $path if -x $path;
    }
    return Sirius::Log->fail('sirius-edge is not installed beside Sirius.so: install Sirius again');
}

sub pid { return shift->{pid} }

# In a supervisor that has become a new program; what workers need it has already
sub restore {
    my ( $class, $supervisor, $state ) = @_;
    return $class->_of(
        $supervisor, %$state,
        ( map { $_ => Sirius::Handover->take_handle( $state->{$_} ) } qw(line line_end lobby news report) ),
        sleepers => $supervisor->{exchange}[2],
    );
}

# Of the whole server, unless it is told otherwise
sub _of {
    my ( $class, $supervisor, %own ) = @_;
    my $self = bless {
        ( map { $_ => $supervisor->{$_} } qw(access_log alive conf listeners scoreboard) ),
        backoff    => Sirius::Backoff->new( $supervisor->{conf} ),
        role       => 'edge',
        said       => '',
        supervisor => $supervisor,
        tell       => sub { $supervisor->{generations}->tell(@_) },
        %own,
    }, $class;
    weaken( $self->{supervisor} );
    weaken $supervisor;    # of the closure
    return $self;
}

sub start {
    my $self = shift;
    my $path = $self->path;
    my $conf = $self->{supervisor}{conf};
    $self->{title} = $conf->{proctitle} ? Sirius::Title->words( $conf, $self->{role} ) : 'sirius-edge';
    my $pid = fork;
    if ($pid) {
        $self->{pid} = $pid;
        return;
    }
    if ( !defined $pid ) {
        my $error = $!;
        Sirius::Log->fail("fork: $error") if !$self->{supervisor}{announced};
        return Sirius::Log->error( sprintf 'fork: %s; next attempt to start the edge in %g s',
            $error, $self->{backoff}->no_fork );
    }
    eval { $self->_become($path) };
    print {*STDERR} "sirius: $@";
    return POSIX::_exit(1);
}

# What came is answered within $grace seconds
sub state {
    my $self = shift;
    return {
        ( map { $_ => $self->{$_} } grep { defined $self->{$_} } qw(heard pid ready settings) ),
        ( map { $_ => fileno $self->{$_} } qw(line line_end lobby news report) ),
    };
}

sub stop {
    my ( $self, $signal, $grace ) = @_;
    $self->{stopping} = 1;
    return $self->_over if !$self->{pid};
    my $kill_at = _now() + $grace + LATE;
    $self->{kill_at} = $kill_at if !$self->{kill_at} || $kill_at < $self->{kill_at};
    kill $signal => $self->{pid};
    return;
}

sub tend {
    my $self = shift;
    if ( $self->{pid} ) {
        return if !$self->{kill_at} || $self->{kill_at} > _now();
        delete $self->{kill_at};
        Sirius::Log->warn("the edge $self->{pid} did not end in time and was killed");
        kill KILL => $self->{pid};
        return;
    }
    return if $self->{stopping} || grep { $_ > _now() } $self->{backoff}->at;
    return $self->start;
}

# What workers need to say hello
sub workers { return shift->{sleepers} }

sub _become {
    my ( $self, $path ) = @_;
    my $supervisor = $self->{supervisor};
    my @words      = ( @{ $self->{settings} }, $self->_descriptors );
    $supervisor->{signals}->hand_over if $supervisor->{signals};
    my @handles = @{$self}{qw(alive line_end lobby report sleepers)};
    push @handles, map { Sirius::Handover->handle($_) } $self->_board;
    push @handles, grep {defined} map { $_->fh } grep {defined} $self->{access_log};
    fcntl $_, F_SETFD, 0 or die "F_SETFD: $!\n" for @handles;

    for my $listener ( @{ $self->{listeners} } ) {
        open my $fh, '<&=', $listener->fd or die "the listener: $!\n";    ## no critic (RequireBriefOpen)
        fcntl $fh, F_SETFD, 0 or die "F_SETFD: $!\n";
        push @handles, $fh;
    }
    $supervisor->{privileges}->drop if $supervisor->{privileges};
    exec {$path} $self->{title}, @words or die "$path: $!\n";
}

# Nobody brings a request any more
sub _over {
    my $self = shift;
    Sirius::Engine->over( fileno $self->{sleepers} );
    return;
}

sub _ready {
    my $self = shift;
    $self->{ready} = 1;
    $self->{backoff}->ready;
    $self->close if $self->{leaving};
    return;
}

sub _log_settings {
    my $self   = shift;
    my $log    = $self->{access_log} or return;
    my $conf   = $self->{conf};
    my $format = $conf->{access_log_format} || 'combined';
    utf8::encode($format) if utf8::is_utf8($format) && !utf8::downgrade( $format, 1 );
    return (
        access_log             => $log->fd,
        access_log_errors_only => $conf->{access_log_errors_only} ? 1 : 0,
        access_log_format      => $format,
        access_log_kind        => $log->kind,
        access_log_min_time    => $conf->{access_log_min_time} || 0,
        access_log_priority    => $log->priority,
    );
}

# Where it is counted what it does
sub _board {
    my $self = shift;
    return $self->{scoreboard} ? ( $self->{scoreboard}->descriptors )[0] : ();
}

sub _now { return clock_gettime(CLOCK_MONOTONIC) }

# What the operator has set, as words that can be compared and handed on
sub settings {
    my ( $class, $conf ) = @_;
    my $trust   = $conf->{trust_proxy} || { networks => [] };
    my %setting = (
        ( map { $_ => $conf->{$_} } @PLAIN ),
        ( map { $_ => $conf->{$_} ? 1 : 0 } @SWITCHES ),
        forwarded           => $trust->{forwarded} ? 1 : 0,
        linger_timeout      => LINGER,
        max_connections     => Sirius::Worker->max_connections($conf),
        request_timeout     => $conf->{request_timeout} || 0,
        server              => $conf->{server_software},
        sheds_unfinished    => $conf->{sheds_unfinished},                # the admin port's
        stream_timeout      => $conf->{stream_timeout} || 0,
        underscores         => $conf->{underscores_in_headers} ne 'off'     ? 1 : 0,
        trusted_underscores => $conf->{underscores_in_headers} eq 'trusted' ? 1 : 0,
        trust_proxy         => join( ',', @{ $trust->{networks} } ),
        x_forwarded_host    => $trust->{'x-forwarded-host'} ? 1 : 0,
    );
    return _words(%setting);
}

sub _descriptors {
    my $self    = shift;
    my ($board) = $self->_board;
    my %number  = (
        $self->_log_settings,
        control    => fileno $self->{alive},
        detach     => $self->{supervisor}{conf}{daemonize} ? 1 : undef,
        name       => $self->{role},
        scoreboard => $board,
        supervisor => fileno $self->{line_end},
        map { $_ => fileno $self->{$_} } qw(lobby report sleepers)
    );
    return _words(%number),
        map { join ':', 'listen=' . $_->fd, $_->is_unix ? 'unix' : 'tcp', $_->port, $_->name }
        @{ $self->{listeners} };
}

sub _words {
    my %setting = @_;
    return map { (tr/_/-/r) . "=$setting{$_}" }
        grep { defined $setting{$_} && length $setting{$_} } sort keys %setting;
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge - the process that owns the connections, as the supervisor sees it

=head1 SYNOPSIS

  my $edge = Sirius::Edge->new( $supervisor, $rows );
  $edge->start;
  my $sleepers = $edge->workers;                # for each worker
  $edge->ended( $pid, $status ) or ...;         # of a child that has ended
  $edge->tend;                                  # starts another one when it is time
  $edge->stop( 'TERM', 30 );

=head1 DESCRIPTION

Starts C<sirius-edge>, which is installed beside the shared library of Sirius, with its settings as words and its descriptors by
their numbers, and starts another one when it ends. The program is in F<src/edge>; it has no Perl in it.

=head1 METHODS

=head2 close

The server will stop soon: each response says that its connection closes.

=head2 differs

  my @options = Sirius::Edge->differs( $settings, $conf );

What the options say otherwise than L</settings> that the running edge was started with: lists of name, old and new value.

=head2 due

When L</tend> has something to do, in monotonic seconds; nothing while the edge runs.

=head2 ended

  my $mine = $edge->ended( $pid, $status );

False when that child is not the edge.

=head2 hear

Reads what the edge has to tell: that a request takes too long, or that a worker says what cannot be. The generation of that worker
is told (L<Sirius::Generations/tell>).

=head2 log_to

  $edge->log_to($fd);

The access log was opened anew: the edge writes to this descriptor from now on.

=head2 new

  my $edge = Sirius::Edge->new( $supervisor, $rows, %own );

For as many workers as there are C<$rows>. Makes what the edge and the workers share, and starts nothing. Where it is not the one of
the whole server, C<%own> has what differs: C<access_log>, C<conf>, C<listeners> and C<scoreboard>, which may be undef; C<alive>, a
handle whose end of file tells it to end; C<role>, its name in F<ps>; C<said>, how its lines in the log begin; C<tell>, called with
the PID of a worker, C<broken> or C<timeout>, and why.

=head2 news

The handle that L</hear> reads.

=head2 path

The program. Dies when it is not installed.

=head2 pid

Of the edge that runs, or undef.

=head2 restore

  my $edge = Sirius::Edge->restore( $supervisor, $state );

In a new program, from what L</state> has said.

=head2 settings

  my @words = Sirius::Edge->settings($conf);

What of the options is the edge's business, as words for its command line.

=head2 start

Starts the program, in a child of this process.

=head2 state

What a new program needs to go on with the same edge: its settings, numbers of descriptors and the PID.

=head2 stop

  $edge->stop( 'TERM', $seconds );

With C<TERM> it takes no more connections, answers what has come, and ends; with C<INT> it ends with the requests that workers have
at that moment. It is killed 2 seconds after the time it has. Workers are let go when it has ended.

=head2 tend

Starts another edge when the last one has ended and L</due> has come.

=head2 workers

The handle that a worker needs to say hello: the memory in which it sleeps, and in which it finds the edges.

=head1 SEE ALSO

L<Sirius::Supervisor>, L<Sirius::Worker>.

=cut
