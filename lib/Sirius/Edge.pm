package Sirius::Edge;

use strict;
use warnings;

use Fcntl        qw(FD_CLOEXEC F_SETFD);
use POSIX        ();
use Scalar::Util qw(weaken);
use Sirius::Backoff;
use Sirius::Cause;
use Sirius::Handover;
use Sirius::Log ();
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

# Seconds after which an edge that ends had not failed at its start
use constant STEADY => 5;

# Settings that go to the edge as they are
my @PLAIN = qw(body_memory body_rate body_timeout header_timeout keepalive_timeout max_body max_header_bytes
    max_header_fields max_keepalive_reqs max_queue max_request_line queue_timeout tmpdir write_timeout);
my @SWITCHES = qw(keepalive proxy_protocol);

# As nginx has it (lingering_timeout)
use constant LINGER => 5;

# Empty when nothing is to be done before a signal comes
sub due {
    my $self = shift;
    return $self->{pid} || $self->{stopping} ? () : $self->{backoff}->at;
}

sub ended {
    my ( $self, $pid, $status ) = @_;
    return 0 if $pid != ( $self->{pid} || 0 );
    delete $self->{pid};
    return 1 if $self->{stopping};
    my $steady = _now() - $self->{since} >= STEADY;
    $self->{backoff}->ready if $steady;
    my $delay = $self->{backoff}->ended( { ready => $steady, since => $self->{since} }, 1, 0, 1 );
    my $next  = $delay ? sprintf 'another one starts in %g s', $delay : 'another one starts now';
    Sirius::Log->error( "the edge $pid "
            . Sirius::Cause->words( $status, 'status 0' )
            . ": its connections are closed; $next" );
    return 1;
}

sub new {
    my ( $class, $supervisor, $rows ) = @_;
    my ( $edge, $workers )            = Sirius::Engine->lobby;
    my ( $ours, $theirs )             = Sirius::Engine->lobby;
    my $self = bless {
        backoff    => Sirius::Backoff->new( $supervisor->{conf} ),
        line       => Sirius::Handover->take_handle($ours),
        line_end   => Sirius::Handover->take_handle($theirs),
        lobby      => Sirius::Handover->take_handle($edge),
        workers    => Sirius::Handover->take_handle($workers),
        sleepers   => Sirius::Handover->take_handle( Sirius::Engine->sleepers($rows) ),
        supervisor => $supervisor,
    }, $class;
    weaken( $self->{supervisor} );
    return $self;
}

sub log_to {
    my ( $self, $fd ) = @_;
    Sirius::Engine->pass_log( fileno $self->{line}, $fd );
    return;
}

sub path {
    for my $dir (@INC) {
        my $path = "$dir/auto/Sirius/sirius-edge";
        return $path if !ref $dir && -x $path;
    }
    return Sirius::Log->fail('sirius-edge is not installed beside Sirius.so: install Sirius again');
}

sub pid { return shift->{pid} }

sub start {
    my $self = shift;
    my $path = $self->path;
    my $pid  = fork;
    Sirius::Log->fail("fork: $!") if !defined $pid;
    if ($pid) {
        @{$self}{qw(pid since)} = ( $pid, _now() );
        return;
    }
    eval { $self->_become($path) };
    print {*STDERR} "sirius: $@";
    return POSIX::_exit(1);
}

sub stop {
    my ( $self, $signal ) = @_;
    $self->{stopping} = 1;
    kill $signal => $self->{pid} if $self->{pid};
    return;
}

sub tend {
    my $self = shift;
    return if $self->{pid} || $self->{stopping} || grep { $_ > _now() } $self->{backoff}->at;
    return $self->start;
}

# What workers need to say hello
sub workers {
    my $self = shift;
    return @{$self}{qw(sleepers workers)};
}

sub _become {
    my ( $self, $path ) = @_;
    my $supervisor = $self->{supervisor};
    my @words      = $self->_settings;
    $supervisor->{signals}->hand_over if $supervisor->{signals};
    my @handles = ( @{$self}{qw(line_end lobby sleepers)}, $supervisor->{alive} );
    push @handles, $supervisor->{access_log}->fh if $supervisor->{access_log};
    fcntl $_, F_SETFD, 0 or die "F_SETFD: $!\n" for @handles;
    for my $listener ( @{ $supervisor->{listeners} } ) {
        open my $fh, '<&=', $listener->fd or die "the listener: $!\n";    ## no critic (RequireBriefOpen)
        fcntl $fh, F_SETFD, 0 or die "F_SETFD: $!\n";
        push @handles, $fh;
    }
    $supervisor->{privileges}->drop if $supervisor->{privileges};
    exec {$path} 'sirius-edge', @words or die "$path: $!\n";
}

sub _log_settings {
    my $self       = shift;
    my $supervisor = $self->{supervisor};
    my $log        = $supervisor->{access_log} or return;
    my $conf       = $supervisor->{conf};
    my $format     = $conf->{access_log_format} || 'combined';
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

sub _now { return clock_gettime(CLOCK_MONOTONIC) }

sub _settings {
    my $self       = shift;
    my $supervisor = $self->{supervisor};
    my $conf       = $supervisor->{conf};
    my $trust      = $conf->{trust_proxy} || { networks => [] };
    my %setting    = (
        $self->_log_settings,
        ( map { $_ => $conf->{$_} } @PLAIN ),
        ( map { $_ => $conf->{$_} ? 1 : 0 } @SWITCHES ),
        control             => fileno $supervisor->{alive},
        forwarded           => $trust->{forwarded} ? 1 : 0,
        linger_timeout      => LINGER,
        lobby               => fileno $self->{lobby},
        max_connections     => Sirius::Worker->max_connections($conf),
        request_timeout     => $conf->{request_timeout} || 0,
        server              => $conf->{server_software},
        sleepers            => fileno $self->{sleepers},
        stream_timeout      => $conf->{stream_timeout} || 0,
        supervisor          => fileno $self->{line_end},
        underscores         => $conf->{underscores_in_headers} ne 'off'     ? 1 : 0,
        trusted_underscores => $conf->{underscores_in_headers} eq 'trusted' ? 1 : 0,
        trust_proxy         => join( ',', @{ $trust->{networks} } ),
        x_forwarded_host    => $trust->{'x-forwarded-host'} ? 1 : 0,
    );
    my @words = map { (tr/_/-/r) . "=$setting{$_}" }
        grep { defined $setting{$_} && length $setting{$_} } sort keys %setting;
    return @words,
        map { join ':', 'listen=' . $_->fd, $_->is_unix ? 'unix' : 'tcp', $_->port, $_->name }
        @{ $supervisor->{listeners} };
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge - the process that owns the connections, as the supervisor sees it

=head1 SYNOPSIS

  my $edge = Sirius::Edge->new( $supervisor, $rows );
  $edge->start;
  my ( $sleepers, $lobby ) = $edge->workers;    # for each worker
  $edge->ended( $pid, $status ) or ...;         # of a child that has ended
  $edge->tend;                                  # starts another one when it is time
  $edge->stop('TERM');

=head1 DESCRIPTION

Starts C<sirius-edge>, which is installed beside the shared library of Sirius, with its settings as words and its descriptors by
their numbers, and starts another one when it ends. The program is in F<src/edge>; it has no Perl in it.

=head1 METHODS

=head2 due

When L</tend> has something to do, in monotonic seconds; nothing while the edge runs.

=head2 ended

  my $mine = $edge->ended( $pid, $status );

False when that child is not the edge.

=head2 log_to

  $edge->log_to($fd);

The access log was opened anew: the edge writes to this descriptor from now on.

=head2 new

  my $edge = Sirius::Edge->new( $supervisor, $rows );

For so many rows of the scoreboard. Makes what the edge and the workers share, and starts nothing.

=head2 path

The program. Dies when it is not installed.

=head2 pid

Of the edge that runs, or undef.

=head2 start

Starts the program, in a child of this process.

=head2 stop

  $edge->stop('TERM');

With C<TERM> it takes no more connections, answers what has come, and ends; with C<INT> it ends at once.

=head2 tend

Starts another edge when the last one has ended and L</due> has come.

=head2 workers

The handles that a worker needs to say hello: the memory in which it sleeps, and the edge's lobby.

=head1 SEE ALSO

L<Sirius::Supervisor>, L<Sirius::Worker>.

=cut
