package Sirius::Log::Access;

use strict;
use warnings;

use Fcntl      qw(FD_CLOEXEC F_SETFD O_NOCTTY O_NONBLOCK O_WRONLY);
use File::Spec ();
use POSIX      ();
use Sirius::Config::Options;
use Sirius::Log ();
use Sirius::Log::File;
use Sirius::Log::Pipe;
use Sirius::LogFormat;
use Sirius::OS::Inherit;
use Socket qw(AF_UNIX SOCK_DGRAM pack_sockaddr_un);

our $SYSLOG = '/dev/log';    # tests replace it

# RFC 3164 4.1.1; the names are those of syslog.conf(5)
my ( %FACILITY, %SEVERITY );
@FACILITY{qw(kern user mail daemon auth syslog lpr news uucp cron authpriv ftp)} = 0 .. 11;
$FACILITY{"local$_"}                                                             = 16 + $_ for 0 .. 7;
@SEVERITY{qw(emerg alert crit err warning notice info debug)}                    = 0 .. 7;

sub adopt {
    my ( $class, $conf, $fd, @ids ) = @_;
    my $self = $class->_parse( $conf, @ids ) or return;
    return $self->_open if $self->{kind} ne 'pipe';
    $self->_fail('a reload cannot change the access log to a command; restart the server')
        if !defined $fd;
    $self->{fh} = Sirius::OS::Inherit->take_handle($fd);
    return $self;
}

sub check {
    my ( $class, $conf ) = @_;
    return $class->_parse($conf) ? 1 : 0;
}

sub fd { my $fh = shift->{fh}; return $fh && fileno $fh }

sub fh { return shift->{fh} }

# The renewed supervisor writes no line, but if it is root and the workers are not, only it can create the new
# file
sub for_reopen {
    my ( $class, $conf, @ids ) = @_;
    local $@;
    my $self = eval { $class->_parse( $conf, @ids ) };
    return $self && defined $self->{path} ? $self : undef;
}

sub for_worker {
    my $self = shift;
    my $conf = $self->{conf};
    return {
        errors_only => $conf->{access_log_errors_only} ? 1 : 0,
        fd          => $self->fd,
        format      => $self->{format},
        kind        => $self->{kind},
        min_time    => $conf->{access_log_min_time} || 0,
        priority    => $self->{priority},
    };
}

# When the edge has the log, workers only know its format
sub forget {
    my $self = shift;
    $self->release;
    delete @{$self}{qw(fh path)};
    return;
}

sub kind { return shift->{kind} }

sub new {
    my ( $class, $conf, @ids ) = @_;
    my $self = $class->_parse( $conf, @ids ) or return;
    return $self->_open;
}

sub pipe     { return shift->{pipe} }
sub priority { return shift->{priority} }

sub release {
    my $self = shift;
    my $pipe = delete $self->{pipe} or return;
    return $pipe->release;
}

sub reopen {
    my ( $self, $say ) = @_;
    return 0 if !defined $self->{path};

    # The descriptor keeps its number, which somebody may be about to use
    my $fh = $self->_file;
    return 1 if $fh && !$self->{fh};    # for_reopen only makes sure that the file exists
    if ( $fh && defined POSIX::dup2( fileno $fh, $self->fd ) ) {
        fcntl $self->{fh}, F_SETFD, FD_CLOEXEC;
        return 1;
    }
    my $text = "--access-log $self->{path}: $!; logging continues in the file that was open before";
    if   ($say) { $say->($text) }
    else        { Sirius::Log->error($text) }
    return 0;
}

# In the renewed supervisor of an edge, which passes the file on when an edge starts or the log is reopened
sub restore {
    my ( $class, $conf, $fh, @ids ) = @_;
    local $@;
    my $self = eval { $class->_parse( $conf, @ids ) } or return;
    $self->{fh} = $fh;
    return $self;
}

sub _fail {
    my ( $self, $error ) = @_;
    return Sirius::Log->fail("--access-log $self->{spec}: $error");
}

sub _file {
    my $self = shift;
    return Sirius::Log::File->open( $self->{path}, owner => $self->{owner} );
}

sub _format {
    my $text = shift;
    Sirius::Config::Options->fail('--access-log-format: the format contains a NUL byte')
        if defined $text && $text =~ /\0/;
    local $SIG{__DIE__};
    my $format = eval { Sirius::LogFormat->new($text) };
    return $format if $format;

    # without the format itself, which is on the command line
    my ($error) = $@ =~ /\A(?:access log format: )?(.*)/;
    return Sirius::Config::Options->fail("--access-log-format: $error");
}

sub _open {
    my $self = shift;
    my $how  = "_open_$self->{how}";
    $self->{fh} = eval { $self->$how || die "$!\n" } or $self->_fail($@);
    return $self;
}

sub _open_file { return shift->_file }

sub _open_pipe {
    my $self = shift;
    $self->{pipe} = Sirius::Log::Pipe->new( $self->{conf}, $self->{command} );
    return $self->{pipe}->fh;
}

# A terminal or a pipe is opened again: waiting can then be switched off without doing so for other holders. A
# file is shared, for its position; a socket can't be opened
sub _open_stdout {
    open my $stdout, '>&', 1 or return;    ## no critic (RequireBriefOpen)
    return Sirius::Log::File->high($stdout)
        if -f $stdout || !sysopen my $own, '/proc/self/fd/1', O_WRONLY | O_NOCTTY | O_NONBLOCK;
    return Sirius::Log::File->high($own);
}

sub _open_syslog {
    socket my $socket, AF_UNIX, SOCK_DGRAM, 0 or return;
    connect $socket, pack_sockaddr_un($SYSLOG) or die "$SYSLOG: $!\n";
    return Sirius::Log::File->high($socket);
}

sub _parse {
    my ( $class, $conf, @ids ) = @_;
    my $spec = $conf->{access_log};
    return
        if !defined $spec || !length $spec || $conf->{request_log};   # the supervisor of sirius dev prints it
    my $self = bless { conf => $conf, kind => 'file', owner => \@ids, spec => $spec }, $class;
    $self->{format} = _format( $conf->{access_log_format} );
    if ( $spec =~ /\A[|]\s*(.*)\z/s ) {
        @{$self}{qw(how kind command)} = ( 'pipe', 'pipe', $1 );
        Sirius::Config::Options->fail("--access-log $spec: no command follows the |") if !length $1;
    } elsif ( $spec =~ /\Asyslog:(.*)\z/s ) {
        @{$self}{qw(how kind priority)} = ( 'syslog', 'syslog', _priority($1) );
    } elsif ( $spec eq '-' ) {
        $self->{how} = 'stdout';
        Sirius::Config::Options->fail(
            '--access-log -: --daemonize closes STDOUT unless it is a file; log to a file')
            if $conf->{daemonize} && !-f '/proc/self/fd/1';
    } else {
        $self->{how} = 'file';

        # absolute, as the server may change its directory
        $self->{path} = $self->{spec} = File::Spec->rel2abs($spec);
    }
    return $self;
}

sub _priority {
    my $name = shift;
    my ( $facility, $severity ) = $name =~ /\A([^.]*)(?:[.](.*))?\z/s;
    $facility = 'local7' if !length $facility;
    $severity = 'info'   if !defined $severity;
    my $fail = sub { Sirius::Config::Options->fail("--access-log syslog:$name: $_[0]") };
    $fail->("'$facility' is not a syslog facility") if !defined $FACILITY{$facility};
    $fail->("'$severity' is not a syslog severity") if !defined $SEVERITY{$severity};
    return 8 * $FACILITY{$facility} + $SEVERITY{$severity};
}

1;

=encoding utf8

=head1 NAME

Sirius::Log::Access - the destination of --access-log

=head1 SYNOPSIS

  use Sirius::Log::Access;

  my $log = Sirius::Log::Access->new( $conf, $uid, $gid );
  if ($log) {
      $log->pipe->act if $log->pipe;
      ... $log->kind, $log->fd ...
      local $SIG{USR1} = sub { ... $log->fd ... if $log->reopen };
  }

=head1 DESCRIPTION

Opens what C<access_log> in the configuration names. The edges write to it (F<src/log/sink.h>), each of them whole
lines, so lines do not mix.

=over 4

=item FILE

A file that does not exist is made with mode 0640 less the umask. If root makes it, it belongs to the user of
C<--user>. A FIFO needs no reader at the start; what it cannot hold is lost.

=item -

STDOUT.

=item syslog:FACILITY, syslog:FACILITY.SEVERITY, syslog:

F</dev/log>; the defaults are C<local7> and C<info>.

=item |COMMAND

See L<Sirius::Log::Pipe>.

=back

The descriptor is closed on exec and more than 2. A write to it never waits, except on a file system that does.

=head1 METHODS

=head2 adopt

  my $log = Sirius::Log::Access->adopt( $conf, $fd, @ids );

As L</new> in another program of the same server. The command of a pipe runs already: C<$fd> is the write end, which is taken over;
for all others it says nothing.

=head2 check

  Sirius::Log::Access->check($conf);

True if there is to be a log. Dies like L</new> if the options are wrong; opens nothing.

=head2 fd

The descriptor, which belongs to this object. Its number stays the same when the file is reopened.

=head2 fh

The handle of L</fd>.

=head2 for_reopen

  my $log = Sirius::Log::Access->for_reopen( $conf, $uid, $gid );

For a process that only has to L</reopen> it: with a path but without a descriptor. Undefined when there is no path.

=head2 for_worker

  my $conf = $log->for_worker;

What C<< Sirius::Worker::RequestLoop->new >> is told of it: a hash with C<fd> and C<format>, a L<Sirius::LogFormat>.

=head2 forget

  $log->forget;

For a process that writes no lines: closes the log, and makes L</reopen> do nothing.

=head2 kind

C<file>, C<pipe> or C<syslog>: the kind of sink. A file may be anything that has a path, STDOUT anything.

=head2 new

  my $log = Sirius::Log::Access->new( $conf, $uid, $gid );

Returns nothing if there is to be no log. Dies with one line that names the option: with C<$!> 2 if its value is wrong,
else 1.

=head2 pipe

The L<Sirius::Log::Pipe> of a command, in the process that has made it.

=head2 priority

For syslog: facility * 8 + severity.

=head2 release

  $log->release;

In a child after C<fork>: leaves the command to the parent. Descriptors stay open.

=head2 reopen

  my $changed = $log->reopen;

Opens the same path again, after the file was moved away; true when there is a new descriptor. When that fails, the
old one stays, and the reason is logged. Does nothing for what has no path.

=head2 restore

  my $log = Sirius::Log::Access->restore( $conf, $handle, $uid, $gid );

As L</for_reopen>, with the handle that the program before had.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Log>, L<Sirius::Log::File>, L<Sirius::Log::Pipe>.

=cut
