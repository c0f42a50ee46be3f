package Sirius::App::WarmUp;

use strict;
use warnings;

use IO::Socket::INET ();
use POSIX            ();
use Scalar::Util     qw(reftype);
use Sirius           ();
use Sirius::App::Forked;
use Sirius::App::Discard;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Log ();
use Sirius::OS::ExitStatus;
use Sirius::OS::Memory;
use Sirius::PSGI::Cleanup;
use Sirius::PSGI::Response;
use Time::HiRes qw(time);

# Characters of an exception in the log; requests that workers repeat
use constant { ERROR_MAX => 1000, REPEATS_MAX => 100 };

# The process that warms up, otherwise undef. Not a local, which would be restored before END runs
my $runs;

my $ids = 0;

# From here on the application is no longer the reason if the process ends
sub abandon {
    undef $runs;
    return;
}

sub env {
    my ( $self, $target, %more ) = @_;
    my ( $scheme, $host, $uri ) = $target =~ m{\A(?:(https?)://([^/?]+))?(.*)\z}is;
    $uri = "/$uri" if $uri !~ m{\A/};
    my ( $path, $query ) = split /[?]/, $uri, 2;
    $path =~ s/%([[:xdigit:]]{2})/chr hex $1/ge;
    open my $input, '<', \( my $content = '' ) or die "psgi.input: $!\n";    ## no critic (RequireBriefOpen)
    my $listener = $self->{listener};
    $scheme = defined $scheme ? lc $scheme : $listener->is_tls ? 'https' : 'http';
    my $id = join '-', 'warm-up', POSIX::getpid(), ++$ids;
    return {
        HTTP_ACCEPT       => '*/*',
        HTTP_HOST         => defined $host ? $host : $self->_host,
        HTTP_USER_AGENT   => 'Sirius/' . Sirius->VERSION . ' (warm-up)',
        HTTP_X_REQUEST_ID => $id,
        $scheme eq 'https' ? ( HTTPS => 'on' ) : (),
        PATH_INFO                => $path,
        QUERY_STRING             => defined $query ? $query : '',
        REMOTE_ADDR              => '127.0.0.1',
        REMOTE_HOST              => '127.0.0.1',
        REMOTE_PORT              => '0',
        REQUEST_METHOD           => 'GET',
        REQUEST_URI              => $uri,
        SCRIPT_NAME              => '',
        SERVER_NAME              => $listener->name,
        SERVER_PORT              => $listener->port,
        SERVER_PROTOCOL          => 'HTTP/1.1',
        'psgi.errors'            => \*STDERR,
        'psgi.input'             => $input,
        'psgi.multiprocess'      => $self->{multiprocess} ? 1 : 0,
        'psgi.multithread'       => 0,
        'psgi.nonblocking'       => 0,
        'psgi.run_once'          => 0,
        'psgi.streaming'         => 1,
        'psgi.url_scheme'        => $scheme,
        'psgi.version'           => [ 1, 1 ],
        'psgix.cleanup'          => 1,
        'psgix.cleanup.handlers' => [],
        'psgix.harakiri'         => 1,
        'psgix.informational'    => sub { },
        'psgix.input.buffered'   => 1,
        'psgix.io'               => $self->{socket},
        'psgix.queue_time'       => 0,
        'psgix.request_id'       => $id,
        'psgix.request_start'    => time,
        %more,
    };
}

sub new {
    my ( $class, %args ) = @_;

    # A closed one for all requests, made before the fork: to make one writes to 15 pages
    return bless { failed => 0, made => [], requests => 0, socket => IO::Socket::INET->new, %args }, $class;
}

# In a worker: without all that is not needed, as whatever runs here makes memory private
sub repeat {
    my ( $self, @requests ) = @_;
    $self->{pid} = $runs = POSIX::getpid();
    $self->_request(@$_) for @requests;
    undef $runs;
    return;
}

# What a worker may ask for again: it changes nothing, and has not failed
sub repeats { return @{ shift->{made} } }

sub run {
    my $self = shift;
    local @ARGV;    # as in a worker
    my $memory = Sirius::OS::Memory->watch;
    my $began  = now();
    $self->{pid} = $runs = POSIX::getpid();
    for my $what ( @{ $self->{conf}{warm_up} } ) {
        if   ( ref $what ) { $self->_call($what) }
        else               { $self->_request($what) }
        $self->_exit_child;    # of a destructor
    }
    undef $runs;
    my ( $number, $failed ) = @{$self}{qw(requests failed)};
    my $level = $self->{quiet} ? 'info' : 'note';
    Sirius::Log->$level( 'warmed up '
            . ( $number ? "with $number request" . ( $number == 1 ? '' : 's' ) . q( ) : '' ) . 'in '
            . Sirius::Base::Text->duration( now() - $began )
            . ( $failed ? ", $failed failed" : '' ) );
    return !$failed || !$self->{conf}{warm_up_required};
}

# Status, and an error or undef
sub _answer {
    my ( $self,  $env )      = @_;
    my ( $lived, $response ) = $self->_try( sub { $self->{app}->($env) } );
    return ( 500, "the application died: $response" ) if !$lived;
    my ( $status, $error )
        = ref $response && reftype $response eq 'CODE' ? $self->_delayed($response) : $self->_take($response);
    $self->_clean_up($env);
    return ( $status, $error );
}

sub _call {
    my ( $self, $code ) = @_;
    my $app = $self->{app};    # it may assign to $_[0]
    my ( $lived, $error ) = $self->_try( sub {
        $code->( $app, sub { $self->_request(@_) } );
    } );
    return if $lived;
    $self->{failed}++;
    Sirius::Log->error("warm-up: the code of --warm-up died: $error");
    return;
}

# As a worker does after the response; if the application asks for the end of the process (harakiri), that is
# ignored
sub _clean_up {
    my ( $self,  $env )  = @_;
    my ( $found, $list ) = $self->_try( sub { Sirius::PSGI::Cleanup::handlers($env) } );
    for ( my $i = 0; $found && ref $list; $i++ ) {    ## no critic (ProhibitCStyleForLoops): it may grow
        my ( $had, $handler ) = $self->_try( sub { Sirius::PSGI::Cleanup::handler( $list, $i ) } );
        last if !$had || !$handler;
        my ( $lived, $error ) = $self->_try( sub { $handler->[0]->($env) } );
        Sirius::Log->error("warm-up: a cleanup handler died: $error") if !$lived;
    }
    return;
}

# Reads a response that comes through a callback, complete or piece by piece
sub _delayed {
    my ( $self, $code ) = @_;
    my ( $calls, $status, $error, $writer ) = (0);
    my $responder = sub {
        my $response = shift;
        die "the responder was called twice\n" if $calls++;
        ( $status, $error ) = $self->_take( $response, 1 );
        die $error if defined $error;     ## no critic (RequireCarping)
        return     if @{$response} > 2;
        return $writer = Sirius::App::Discard->new;
    };
    my ( $lived, $why ) = $self->_try( sub { $code->($responder) } );
    return ( $status, $error )                                                   if defined $error;
    return ( 500,     "the application died: $why" )                             if !$lived;
    return ( 500,     'the application returned without calling the responder' ) if !$calls;
    return ( 500,     'the application returned without closing the writer' )
        if $writer && !$writer->is_closed;
    return $status;
}

# Makes one line of any text
sub _error {
    my ( $self, $error ) = @_;
    my $text = eval { Sirius::PSGI::Response::text($error) };
    $self->_exit_child;
    $text = 'an exception that cannot be converted to text' if !defined $text;
    $text =~ s/\s+\z//;
    $text =~ s/\s*\n\s*/; /g;
    return length $text ? substr $text, 0, ERROR_MAX : 'for no reason';
}

# A child that the application has forked came back here: it must not go on as another server
sub _exit_child {
    my $self = shift;
    return if $self->{pid} == POSIX::getpid();
    undef $runs;
    return Sirius::App::Forked->exit_child( $self->{pid}, 'during the warm-up' );
}

sub _host {
    my $listener = shift->{listener};
    my $usual    = $listener->is_tls ? 443 : 80;
    return $listener->name
        . ( $listener->is_unix || $listener->port == $usual ? '' : q(:) . $listener->port );
}

# Values that are references, such as a body, have been used up
sub _remember {
    my ( $self, $target, %more ) = @_;
    return if @{ $self->{made} } >= REPEATS_MAX || ( $more{REQUEST_METHOD} || 'GET' ) ne 'GET';
    return if grep {ref} values %more;
    my $key = join "\0", $target, map { ( $_, $more{$_} // q() ) } sort keys %more;
    push @{ $self->{made} }, [ $target, %more ] if !$self->{knows}{$key}++;
    return;
}

# Makes one request; returns its status
sub _request {
    my ( $self, $target, %more ) = @_;
    my $began = now();
    my $env   = $self->env( $target, %more );
    my ( $status, $error ) = $self->_answer($env);
    my $failed = defined $error || $status >= 500;
    $self->{requests}++;
    $self->{failed}++                  if $failed;
    $self->_remember( $target, %more ) if !$failed && !$self->{quiet};
    return $status                     if !$failed && $status < 400;
    my $text = sprintf 'warm-up: %s: status %s after %s',
        Sirius::Base::Text->harmless("$env->{REQUEST_METHOD} $env->{REQUEST_URI}"), $status,
        Sirius::Base::Text->duration( now() - $began );
    my $level = $failed ? 'error' : $self->{quiet} ? 'info' : 'note';
    Sirius::Log->$level( defined $error ? "$text: $error" : $text );
    return $status;
}

# Reads a response to its end. One that comes through a callback may have no body
sub _take {
    my ( $self, $response, $delayed ) = @_;
    my ( $lived, $plain ) = $self->_try( sub {
        my $copy = Sirius::PSGI::Response::plain($response);
        die "it has no body\n"                           if @{$copy} < 3 && !$delayed;
        die "'$copy->[0]' is not a status\n"             if $copy->[0] !~ /\A[1-9]\d\d\z/;
        die "the headers have an odd number of values\n" if @{ $copy->[1] } % 2;
        my $writer = Sirius::App::Discard->new;
        if    ( ref $copy->[2] eq 'ARRAY' ) { $writer->write($_) for @{ $copy->[2] } }
        elsif ( @{$copy} > 2 )              { Sirius::PSGI::Response::send_body( $copy->[2], $writer ) }
        return $copy;
    } );
    return ( 500, "invalid response: $plain" ) if !$lived;
    return $plain->[0];
}

# Calls code of the application. Returns true and its result, or false and the reason
sub _try {
    my ( $self, $code ) = @_;
    my ( $calls, $value, $returned );
    my $lived = eval {
        {    # what last and next of the application leave, and redo begins again: no loop of ours
            die "it called redo outside of a loop\n" if $calls++;
            $value    = $code->();
            $returned = 1;
        }
        1;
    };
    my $error = $@;
    $self->_exit_child;
    return ( 1, $value ) if $lived && $returned;
    return ( 0, $lived ? 'it called last or next outside of a loop' : $self->_error($error) );
}

END {
    if ( defined $runs && $runs == POSIX::getpid() ) {
        my $status = $?;
        Sirius::Log->error( Sirius::OS::ExitStatus->exiting($status) . ' during the warm-up' );
        $? = $status || 1;
    }
}

1;

=encoding utf8

=head1 NAME

Sirius::App::WarmUp - requests that the application answers before the first worker is forked

=head1 SYNOPSIS

  use Sirius::App::WarmUp;

  my $fine = Sirius::App::WarmUp->new(
      app          => $app,
      conf         => $conf,
      listener     => $listeners[0],
      multiprocess => 1,
  )->run;

=head1 DESCRIPTION

Much of what an application keeps in memory is made by its first requests: compiled templates, routes, method caches. If that
happens before the fork, all workers share it, and no client waits for it. F<docs/TUNING.md> has figures.

C<--warm-up> has paths, and code. A path is requested by GET. The code is called with two arguments: the application, and a sub that
makes one request and returns the status. That sub takes a path and values for C<%env>:

  sirius --warm-up 'sub {
      my ( $app, $request ) = @_;
      $request->( "/account", HTTP_COOKIE => "session=0" );
  }' app.psgi

The requests have the same keys in C<%env> as those of a worker. C<REMOTE_ADDR> is 127.0.0.1, C<HTTP_HOST>, C<SERVER_NAME> and
C<SERVER_PORT> are those of the first address, C<HTTP_USER_AGENT> is C<Sirius/0.01 (warm-up)>, and C<psgix.io> is a closed socket.
In place of a path there may be a URL, which sets C<HTTP_HOST> and C<psgi.url_scheme>. The body is read and thrown away. The
cleanup handlers are called; C<psgix.harakiri.commit> does nothing.

An exception, an invalid response, or a status of 5xx is an error in the log, with the path, the status and the time. A status of 4xx
is a line without a level: it may be meant.

Each worker repeats the GET requests before it is ready: each once, those that the code has made included, up to 100 of them, unless
they had failed or a value of C<%env> was a reference. It then has its own copy of the memory that a request writes to, and
connections of its own. A failure is only told. With C<--warm-up-workers> each worker does all of it again, the code
included, and with C<--warm-up-required> it has to succeed. With C<--disable-warm-up-workers> workers repeat nothing.

If the application calls C<exit>, the process ends, and a line in the log says so. A child that it forks, and that comes back
from the call, ends without one.

=head1 METHODS

=head2 abandon

  Sirius::App::WarmUp->abandon;

Before the server itself ends the process in the middle of a warm-up.

=head2 env

  my $env = $warm_up->env( '/path?query', %more );

The environment of a request.

=head2 new

C<app>, the application; C<conf>, of which C<warm_up> and C<warm_up_required> matter; C<listener>, the first
L<Sirius::Listen::Listener>; C<multiprocess>, for C<%env>; C<quiet>, in a worker, which others have done before.

=head2 repeat

  $warm_up->repeat(@requests);

Makes these requests, and tells of those that fail.

=head2 repeats

  my @requests = $warm_up->repeats;    # [ '/path', HTTP_COOKIE => '...' ], ...

After L</run>: the requests that workers may repeat.

=head2 run

  my $fine = $warm_up->run;

False if something has failed and C<--warm-up-required> is set.

=head1 SEE ALSO

L<Sirius::Process::Pool>, L<Sirius::Process::Single>, L<Sirius::Worker>, L<Sirius::App::Loading>.

=cut
