package Plack::Handler::Sirius;

use strict;
use warnings;

use Sirius::App::Overrides;    # first: under plackup the application is loaded already
use Errno qw(EMFILE);
use Sirius;
use Sirius::Config::Lane;
use Sirius::Log::Access;
use Sirius::Admin::Port;
use Sirius::Dev::Frames;
use Sirius::Edge::Keeper;
use Sirius::Listen::Listener;
use Sirius::Log ();
use Sirius::Config::Values;
use Sirius::Config::Sources;
use Sirius::Config::Usage;
use Sirius::Service::PidFile;
use Sirius::Service::Privileges;
use Sirius::OS::Limits;
use Sirius::OS::Signals;
use Sirius::Service::Daemon;
use Sirius::Process::Launch;
use Sirius::Process::Succession;
use Sirius::Process::Supervisor;
use Sirius::Service::Activation;

# Bytes of a place in the queue (src/share/queue.h), and how many there are at least besides --max-queue
use constant { SLOT => 8192, SPARE => 64 };

my @streams;    # STDIN, STDOUT and STDERR, if they were closed

sub new {
    my ( $class, @options ) = @_;
    my $conf = Sirius::Config::Values->parse( Sirius::Config::Sources->pairs(@options) );
    _check_file_size($conf);
    $_->check($conf) for qw(Sirius::Log::Access Sirius::Admin::Port);
    warn "$_\n" for @{ delete $conf->{notices} };
    return bless { conf => $conf }, $class;
}

# A signal that comes before anybody waits for it stays pending until somebody does
sub run {
    my ( $self, $app ) = @_;
    Sirius::OS::Signals->hold;
    my $clean = eval { $self->_run($app); 1 };
    my $error = $@;

    # keeps errno, which is the exit status of a program that does not catch this
    Sirius::OS::Signals->let_go;
    return if $clean;
    _fail_for_descriptors($error);

    # errno is left over from some call; messages with "sirius: " have set it
    $! = 1 if ref $error || $error !~ /\Asirius: /;
    die $error;    ## no critic (RequireCarping)
}

# The queue is memory that counts as a file. Said before all else: where STDERR is a file, a line beyond the
# limit is a signal that ends the process
sub _check_file_size {
    my $conf  = shift;
    my $limit = Sirius::OS::Limits->file_size;
    my $least = SLOT * ( $conf->{max_queue} + Sirius::Config::Lane->queues($conf) + SPARE );
    return if $limit < 0 || $limit >= $least;
    $SIG{XFSZ} = 'IGNORE';    ## no critic (RequireLocalizedPunctuationVars)
    return Sirius::Log->fail(
        sprintf
            'the limit of file sizes is %s (ulimit -f, LimitFSIZE=), and memory that the processes share needs %s: raise it',
        map { Sirius::Config::Usage->bytes($_) } $limit,
        $least
    );
}

# For whichever call was the first to get no descriptor
sub _fail_for_descriptors {
    my $error = shift;
    local $! = EMFILE;
    my $reason = "$!";
    return if ref $error || index( $error, $reason ) < 0;
    $error =~ s/\Asirius: //;
    $error =~ s/ at \S+ line \d+\.?\n\z//;
    chomp $error;
    return Sirius::Log->fail("$error: raise the limit of open files (ulimit -n, or LimitNOFILE= of systemd)");
}

# If an application has closed one of these, a socket of the server could take its number, and every program
# that the application starts would inherit it
sub _open_streams {
    while ( open my $null, '+<', '/dev/null' ) {    ## no critic (RequireBriefOpen)
        return if fileno $null > 2;
        push @streams, $null;
    }
    return;
}

# The resources that only one process of the server has, and that outlive each reload
sub _resources {
    my ( $self, $privileges ) = @_;
    my $conf = $self->{conf};
    my %what;
    Sirius::Log->warn($_) for Sirius::Edge::Keeper->check($conf);
    my @inherited
        = Sirius::Service::Activation->descriptors;    # they are for this PID, not for that of a daemon
    $what{daemon} = Sirius::Service::Daemon->start( log => $conf->{error_log} ) if $conf->{daemonize};
    my $succession = $what{succession} = Sirius::Process::Succession->new($conf);
    $what{admin}
        = $succession->open( admin => sub { Sirius::Admin::Port->open( $conf, $privileges, @inherited ) } )
        || Sirius::Admin::Port->new;
    my %admin = map { $_ => 1 } $what{admin}->descriptors;
    $what{listeners}
        = [ Sirius::Listen::Listener->open_all( $conf, grep { !$admin{ $_->{fd} } } @inherited ) ];
    $what{access_log} = $conf->{develop} && $conf->{develop}->request_log
        || Sirius::Log::Access->new( $conf, $privileges->owner );
    $what{pid_file} = $succession->open( pid => sub { Sirius::Service::PidFile->new( $conf->{pid} ) } )
        if defined $conf->{pid};
    return %what;
}

sub _run {
    my ( $self, $app ) = @_;
    my $conf = $self->{conf};
    $conf->{env_values}
        = { %{ $conf->{env_values} || {} }, map { $_ => $ENV{$_} } grep { defined $ENV{$_} } 'PLACK_ENV' };
    _open_streams();
    Sirius::Worker->check_app($app) if !$self->{psgi_app_builder};
    Sirius::Dev::Frames->install    if $INC{'Plack/Middleware/StackTrace.pm'};
    my $privileges = Sirius::Service::Privileges->new($conf);
    my %what
        = ( app => $app, builder => $self->{psgi_app_builder}, conf => $conf, privileges => $privileges );

    # After a reload the supervisor has run the original command again, and listens already
    my $generation = Sirius::Process::Launch->take(%what);
    $privileges = $generation->privileges                   if $generation;
    %what       = ( %what, $self->_resources($privileges) ) if !$generation;
    Sirius::Log->open( $conf, $privileges->owner );
    $generation->tell_unchanged if $generation;
    $privileges->umask_and_chdir;

    # not earlier: looking up a name or opening a FIFO may take forever
    Sirius::OS::Signals->hold(qw(INT QUIT TERM));
    exit $generation->run if $generation;
    Sirius::Process::Supervisor->new(%what)->run;
    return;
}

no Sirius::App::Overrides;    # last, so that it applies to this file too

1;

=encoding utf8

=head1 NAME

Plack::Handler::Sirius - Sirius for plackup and Plack::Loader

=head1 SYNOPSIS

  plackup -s Sirius --workers 4 app.psgi

  use Plack::Loader;
  Plack::Loader->load('Sirius', port => 8080, workers => 4)->run($app);

=head1 DESCRIPTION

Connects L<Plack> with L<Sirius>. It accepts the options of L<sirius>, with dashes or underscores in their names.

With C<-L Delayed> each worker builds the application before it reports that it is ready, not at its first request.

=head1 METHODS

=head2 new

  my $handler = Plack::Handler::Sirius->new(%options);

Checks the options. If one is unknown or has a wrong value, dies with one line that names it; C<$!> is 2, so a program that does
not catch the exception exits with status 2. In addition to the options of the command it accepts C<server_ready>, a sub that is
called for each TCP listener with C<host>, C<port>, C<proto> and C<server_software>, and C<listen_sock>, a socket that is
already listening. An option that may be given several times takes a list, C<< static => [ '/a=a', '/b=b' ] >>, or is repeated,
as by C<plackup>.

=head2 run

  $handler->run($app);

Opens the listening sockets and serves. Returns after the server has stopped.

=head1 SEE ALSO

L<Sirius>, L<sirius>, L<plackup>, L<Plack::Loader>.

=cut
