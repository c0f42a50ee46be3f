package Sirius::Worker;

use strict;
use warnings;

use Carp         ();
use Config       qw(%Config);
use Fcntl        qw(O_CREAT O_EXCL O_RDWR);
use IO::Handle   ();
use Scalar::Util qw(blessed reftype);
use Sirius::App::Forked;
use Sirius::App::Hooks;
use Sirius::App::WarmUp;
use Sirius::Base::Text;
use Sirius::Config::Usage;
use Sirius::Log ();
use Sirius::OS::ExitStatus;
use Sirius::OS::Limits;
use Sirius::OS::Memory;
use Sirius::OS::Signals;
use Sirius::OS::Title;
use Sirius::Worker::RequestLoop;
use overload ();

# characters of a text for another process, so that the pipe does not split the line
use constant TEXT => 600;

my %NUMBER;
@NUMBER{ split q( ), $Config{sig_name} } = split q( ), $Config{sig_num};

# Signals whose handlers restart interrupted system calls. Not USR2, whose trace must come from inside a call
my @RESTARTS = @NUMBER{qw(HUP INT PIPE QUIT TERM TTIN TTOU USR1)};

# The request loop that runs, for an application that calls exit; and the edge that this process has started
my ( $serving, $beside );

# Where a worker tells its generation why it ends
my $report;

# The application is being loaded: a server with a socket in the usual place is another one
my $loads;

# Of --control
my $socket;

# With --hold: this process and those that it starts are of the server with these settings, and publish to no
# other
sub belong {
    my ( $class, $conf, %how ) = @_;
    return if !$conf->{hold};
    my $path = $conf->{workers} ? $conf->{control} // '' : 'none';
    $ENV{SIRIUS_CONTROL} = $path if length $path;    ## no critic (RequireLocalizedPunctuationVars)
    $loads = $how{loads};
    return;
}

# Before anything listens: a file that ends with another value than the application is a common mistake
sub check_app {
    my ( $class, $app ) = @_;
    return $app if ref $app && ( reftype $app eq 'CODE' || blessed $app && overload::Method( $app, '&{}' ) );
    my $what = !defined $app ? 'undef' : ref $app ? 'a reference to ' . ref $app : "'$app'";
    return Sirius::Log->fail(
        "the application is not a code reference but $what: does its file end with the application?");
}

# Checked as the workers' user: a folder that root can write may be closed to others, and a read-only file
# system is closed to all
sub check_tmpdir {
    my ( $class, $conf ) = @_;
    my $dir  = $conf->{tmpdir};
    my $file = sprintf '%s/sirius-%d-%06d', $dir, $$, rand 1e6;
    if ( sysopen my $fh, $file, O_RDWR | O_CREAT | O_EXCL, oct 600 ) {
        unlink $file;
        return;
    }
    my $error = "$!";
    Sirius::Log->warn( "cannot create temporary files in $dir: $error: requests with a body of more than "
            . $conf->{body_memory}
            . ' bytes are answered with 500, and slow clients lose their responses; make it writable, or set --tmpdir to another directory'
    );
    return;
}

# The socket for a child that the application has forked; undef if the server chose it
sub control { return $socket }

sub give_up {
    my ( $self, $why ) = @_;
    $serving->abandon($why) if $serving;
    undef $serving;
    $beside->stop_and_wait if $beside;
    return;
}

sub handlers {
    my $self  = shift;
    my $drain = sub { $self->in_child( $_[0] ) || $self->_ask('drain') };

    # Subs, not 'IGNORE', which programs started by the application would inherit
    return (
        HUP  => sub { $self->in_child('HUP') },
        INT  => sub { $self->in_child('INT') || $self->_ask('stop') },
        PIPE => sub { },
        QUIT => $drain,
        TERM => $drain,
        TTIN => sub { },                                                 # the default would stop it
        TTOU => sub { },
        USR1 => sub { $self->in_child('USR1') || $self->_reopen_logs },
        USR2 => sub { $self->in_child('USR2') || $self->_trace },
    );
}

# True in a child that the application has forked; the child ends by the signal as if there were no handler.
# xs has removed the handlers there, but a `local $SIG{TERM}` brings one back
sub in_child {
    my ( $self, $signal ) = @_;
    return 0 if !$self->{pid} || $self->{pid} == $$;
    $SIG{$signal} = 'DEFAULT';
    kill $signal => $$;
    return 1;
}

# Whether the application is being loaded
sub loads { return $loads }

# The number for --max-connections. By default all descriptors, except some for the application, its log,
# database and temporary files
sub max_connections {
    my ( $class, $conf ) = @_;
    return $conf->{max_connections} if $conf->{max_connections};
    my $all = Sirius::OS::Limits->descriptors;
    return $all > 256 ? $all - 128 : int( $all / 2 ) + 1;
}

sub new {
    my ( $class, %args ) = @_;
    return bless {%args}, $class;
}

sub prepare {
    my $self = shift;
    $self->{loop_conf} = $self->_loop_conf;
    $self->_flush_errors if !$self->{builder};
    return
        if !$self->{multiprocess} || defined $self->{conf}{warm_up_workers} || !@{ $self->{repeats} || [] };
    $self->{warm_up} = $self->_new_warm_up( $self->{app} );
    return;
}

sub run {
    my $self = shift;
    $self->{pid} = $$;
    $beside      = $self->{beside};
    $report      = $self->{report};
    $socket      = $self->{conf}{control};
    $self->belong( $self->{conf} );
    my $memory = Sirius::OS::Memory->watch;

    # empty as while the application is loaded: CGI.pm, for one, takes them for parameters of a request
    local @ARGV;
    srand;
    _flush_stdout();
    local $self->{loading} = $self->{multiprocess};
    return 'drained' if $self->{loading} && $self->{asked};
    my $builder = $self->{builder};
    my $app     = $builder ? $self->_load($builder) : $self->{app};

    if ( $self->{multiprocess} ) {
        $self->_arm if $builder;    # the application may have replaced handlers while it was loaded
        Sirius::OS::Signals->restart(@RESTARTS);
    }
    my $conf = delete $self->{loop_conf};
    $self->_flush_errors if $builder || !$conf;
    my $loop = $self->{loop} = Sirius::Worker::RequestLoop->new( $conf || $self->_loop_conf );
    {
        no warnings 'once';         ## no critic (ProhibitNoWarnings)
        $Sirius::WebSocket::is_held = $self->{conf}{hold};
    }
    die "--after-fork failed\n"
        if $self->{multiprocess} && $self->{conf}{after_fork} && !$self->_run_hook( after_fork => $self );

    $self->_warm_up($app) if $self->{warm_up} || $self->{multiprocess} && $self->_warms_up_itself;

    # Its generation was killed while it loaded, and another one was started
    my $heard = $self->{tell}->('ready');
    $self->{loading} = 0;
    $self->{asked} ||= 'drain' if defined $heard && $heard eq 'unheard';

    # A signal that came before there was a loop
    my $asked = $self->{asked};
    $serving = $loop;
    my $why = !$asked ? $loop->serve($app) : $asked eq 'drain' ? 'drained' : 'stopped';
    while ( $why =~ /\A(edge|retiring|soon|trouble)\b *(.*)/ ) {
        my ( $what, $more ) = ( $1, $2 );
        $self->{tell}->( $what, $more );
        if ( $what eq 'edge' ) {
            last if $self->{beside}->gone;    # the server ends
            $loop->watch_edge( $self->{beside}->pidfd );
        }
        $why = $loop->serve($app);
    }
    undef $serving;

    $self->_run_hook( child_exit => $self, $app );
    undef $beside;
    delete $self->{loop};
    die "the application has closed descriptors that the server needs\n" if $why eq 'closed';
    return $why;
}

sub _arm {
    my $self     = shift;
    my %handlers = $self->handlers;
    for my $name ( sort keys %handlers ) {
        $SIG{$name} = $handlers{$name};
    }
    return;
}

# A second request to drain is a request to stop
sub _ask {
    my ( $self, $what ) = @_;
    $what = 'stop' if $self->{asked};
    $self->{asked} = $what;
    $self->_exit_loading if $self->{loading};
    $self->{loop}->$what if $self->{loop};
    return;
}

# While the application is being loaded or --after-fork runs: they may never return, and nothing is served
# yet. What they have registered for the end still runs, unless another signal comes
sub _exit_loading {
    my $self = shift;
    $SIG{$_} = 'DEFAULT' for qw(INT QUIT TERM);    ## no critic (RequireLocalizedPunctuationVars)
    Sirius::App::WarmUp->abandon;
    $self->{tell}->( done => $self->{asked} eq 'stop' ? 'stopped' : 'drained' );
    Sirius::OS::Signals->shut( inside => 1 );
    exit 0;
}

# The application may have put a buffering layer on it, even one whose code dies
sub _flush_errors {
    local $@;
    return eval { STDERR->autoflush(1) };
}

# Otherwise what the application prints to a pipe or a file is seen when this process ends. It may have closed
# STDOUT
sub _flush_stdout {
    my $stdout = *STDOUT{IO} or return;
    $stdout->autoflush;
    return;
}

# With -L Delayed
sub _load {
    my ( $self, $builder ) = @_;
    my $app;
    my $watch = sub { my $memory = Sirius::OS::Memory->watch; $builder->() };
    my $clean = eval { $app = Sirius::OS::Title->load($watch); 1 };
    my $error = $@;
    Sirius::App::Forked->exit_child( $self->{pid}, 'while it was loaded' );
    die $error if !$clean;    ## no critic (RequireCarping)
    return $self->check_app($app);
}

sub _loop_conf {
    my $self = shift;
    return {
        access_log => $self->{access_log} && $self->{access_log}->for_worker,
        edge       => $self->{beside}     && defined $self->{beside}->pidfd ? $self->{beside}->pidfd : -1,
        ( map { $_ => $self->{conf}{$_} } qw(hold hold_channel) ),
        listeners => [ map { [ $_->family, $_->name, $_->port, $_->is_tls ] } @{ $self->{listeners} } ],
        $self->_max_requests,
        generation   => $self->{generation}                             || 0,
        max_rss      => $self->{multiprocess} && $self->{conf}{max_rss} || 0,
        multiprocess => $self->{multiprocess} ? 1                      : 0,
        report       => $self->{report}       ? fileno $self->{report} : -1,
        scoreboard   => $self->{scoreboard},
        sleepers     => fileno $self->{sleepers},
        row          => $self->{row},
    };
}

# After how many requests it asks for a successor, spread so that workers of one age do not retire at once;
# and after how many it ends, ready or not. Requests in between are served while the successor starts
sub _max_requests {
    my $self = shift;
    my ( $min, $max ) = @{ $self->{conf} }{qw(min_reqs_per_child max_reqs_per_child)};
    return ( soon_requests => 0, max_requests => 0 ) if !$self->{multiprocess} || !$max;
    $min = int( 0.9 * $max ) || 1 if !$min;
    my $last = $max - int $max / 20;
    $last = $min if $last < $min;
    return ( soon_requests => $min + int rand( $last - $min + 1 ), max_requests => $max );
}

sub _new_warm_up {
    my ( $self, $app ) = @_;
    return Sirius::App::WarmUp->new(
        app          => $app,
        conf         => $self->{conf},
        listener     => $self->{listeners}[0],
        multiprocess => 1,
        quiet        => 1,
    );
}

sub _reopen_logs {
    my $self = shift;

# All processes fail in the same way, so the supervisor says it for them. Workers whose generation is gone say
# it themselves
    my $say = sub {
        my $text  = substr Sirius::Base::Text->harmless(shift), 0, TEXT;
        my $heard = $self->{tell} && $self->{tell}->( unopened => $text );
        Sirius::Log->error($text) if !defined $heard || $heard eq 'unheard';
    };
    Sirius::Log->reopen($say);
    $self->{access_log}->reopen($say)
        if $self->{access_log};    # for the edge of --workers 0
    return;
}

# Tells the generation which hook runs, as it may never return
sub _run_hook {
    my ( $self, $name, @args ) = @_;
    return 1 if !$self->{conf}{$name};
    $self->{tell}->( hook => $name );
    my $done = Sirius::App::Hooks->run( $self->{conf}, $name, @args );
    $self->{tell}->( hook => 'none' );
    return $done;
}

# The calls of the application, innermost first. What has called it is always the same
sub _trace {
    my $self   = shift;
    my @frames = split /\n\t/, Carp::longmess('') =~ s/\s+\z//r;
    shift @frames while @frames && $frames[0] !~ /\ASirius::Worker::__ANON__\(/;
    my ($own) = grep { $frames[$_] =~ /\ASirius::Worker::run\(/ } 0 .. $#frames;
    $#frames = defined $own ? $own - 1 : -1;
    $self->{tell}->('traced') if $self->{tell};
    my ($where) = ( shift(@frames) || '' ) =~ /called( at .*)/;
    return Sirius::Log->note('this worker is not running any application code')
        if !@frames || !defined $where || $where =~ m{/Sirius/\w+\.pm line};
    shift @frames if $frames[0]                 =~ /\Aeval/;    # perl's own eval around a handler
    pop @frames   if @frames > 1 && $frames[-1] =~ /\Aeval/;
    Sirius::Log->note( join "\n\t", "this worker is$where", @frames );
    return;
}

# What the generation has warmed up is shared until it is written to: the copies are made now, and connections
# opened
sub _warm_up {
    my ( $self, $app ) = @_;
    my $repeats = $self->{warm_up};    # not freed, which would write to ten pages
    $self->{tell}->( hook => 'warm_up' );
    if   ($repeats) { $repeats->repeat( @{ $self->{repeats} } ) }
    else            { $self->_new_warm_up($app)->run or die "--warm-up failed\n" }
    $self->{tell}->( hook => 'none' );
    return;
}

# --warm-up-workers
sub _warms_up_itself {
    my $conf = shift->{conf};
    return $conf->{warm_up_workers} && $conf->{warm_up};
}

END {
    my $why = Sirius::OS::ExitStatus->exiting($?);
    local $?;
    if    ( $why ne Sirius::OS::ExitStatus->NO_MEMORY ) { $why = 'the application called exit' }
    elsif ( $report && -p $report )                     { syswrite $report, "$$ done $why\n" }
    $serving->abandon($why) if $serving;
    $beside->stop_and_wait  if $beside;
}

1;

=encoding utf8

=head1 NAME

Sirius::Worker - a worker: takes requests, calls the application, handles signals

=head1 SYNOPSIS

  use Sirius::Worker;

  my $worker = Sirius::Worker->new(
      app        => $app,
      conf       => Sirius::Config::Values->parse({}),
      listeners  => \@listeners,
      tell       => sub {...},
      scoreboard => Sirius::Scoreboard->new(1),
      row        => 0,
  );
  my %handlers = $worker->handlers;
  local @SIG{ keys %handlers } = values %handlers;
  my $why = $worker->run;

=head1 DESCRIPTION

Makes a L<Sirius::Worker::RequestLoop>, which takes requests and calls the application until the worker has to end, and runs
the C<child_exit> hook. The same object serves in a forked worker and, with C<--workers 0>, in the process itself.

=head1 SIGNALS

C<INT>, C<QUIT> and C<TERM> end a worker that is not ready yet at once. Later C<TERM> and C<QUIT> let it finish its
request. C<INT>, or any of them a second time, stops it as soon as no application call is running. C<HUP>, C<TTIN> and
C<TTOU> are for the supervisor and do nothing here.

An application that calls C<exit> ends the process; its client gets a 500 first.

=head1 METHODS

=head2 belong

  Sirius::Worker->belong( $conf, loads => 1 );

With C<--hold>: this process is one of the server with these settings. C<SIRIUS_CONTROL> is set, also for what it starts, to the path of
C<--control> if that is given, and to C<none> with C<--workers 0>. C<loads>: until the next call the application is being loaded.

=head2 check_app

  my $app = Sirius::Worker->check_app($app);

Returns what can be called as an application, and dies with one line about anything else.

=head2 check_tmpdir

  Sirius::Worker->check_tmpdir($conf);

Warns in the log when no file can be made in the folder of C<--tmpdir>.

=head2 control

The path of C<--control>, if it was given, in a worker and in the children of its application.

=head2 give_up

  $worker->give_up($why);

Answers the present request with an error, in the middle of its call. The process must exit after this.

=head2 handlers

  my %handlers = $worker->handlers;

The C<%SIG> handlers for L</SIGNALS>. They may be installed before L</run>: what comes early is not forgotten.

=head2 in_child

  return if $worker->in_child($signal);

For handlers of signals: false in the process that runs the worker. A child that the application has forked is ended by the
signal.

=head2 loads

Whether the application is being loaded, as L</belong> was told.

=head2 max_connections

  my $number = Sirius::Worker->max_connections($conf);

The connections that may be open: C<--max-connections>, or what the limit of descriptors allows.

=head2 new

  my $worker = Sirius::Worker->new(%args);

C<app>, or C<builder> (a sub that returns the application, called in L</run>); C<beside>, a L<Sirius::Edge::Beside> that this process has
started itself and L<Sirius::Process::Single> looks after; C<conf>, a hash from L<Sirius::Config::Options>;
C<listeners>, L<Sirius::Listen::Listener> objects;
C<multiprocess>; C<repeats>, requests of the warm-up (L<Sirius::App::WarmUp/repeats>);
C<report>, a handle for the lines of the request loop; C<scoreboard> and C<row>, the number of its row there; C<tell>, called with
C<ready> when connections are served from now on, with C<soon> and a reason when a successor should be made ready,
with C<retiring> when no more are taken, and with C<edge> when that of C<beside> has ended.

=head2 prepare

  $worker->prepare;

Before the fork: does what can be done there for L</run>. Each page that a worker writes to is a page that it does not share.

=head2 run

  my $why = $worker->run;

Serves, and returns why it ended: C<drained>, C<stopped>, C<max-requests>, C<max-rss>, C<timeout> or C<harakiri>; or C<over>,
when the edge has ended with the server.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Process::Supervisor>.

=cut
