package Sirius::Service::Daemon;

use strict;
use warnings;

use IO::Handle  ();
use POSIX       ();
use Fcntl       qw(SEEK_SET);
use Sirius::Log ();
use Sirius::OS::Child;
use Sirius::OS::Signals;

use constant SHOWN => 4096;    # bytes of the log

sub detach {
    my ( $self, %args ) = @_;
    my @streams = $args{keep_stderr} ? 1 : ( 1, 2 );

    # Files stay open, and so does what an application has opened meanwhile, as it wants to write there
    my @old = grep { $self->{places}[$_] && $self->{places}[$_] eq _place($_) } @streams;
    return if !@old;
    STDOUT->flush;
    STDERR->flush;
    open my $null, '>', '/dev/null' or Sirius::Log->fail("--daemonize: /dev/null: $!");
    POSIX::dup2( fileno $null, $_ ) for @old;
    close $null;
    return;
}

sub failed {
    my ( $self, $status ) = @_;
    return $self->_report( $status || 1 );
}

sub ready {
    my ( $self, %args ) = @_;
    $self->detach(%args);
    return $self->_report(0);
}

# For another program of the daemon, which has the streams it was started with
sub restore {
    my $class = shift;
    return bless { pid => 0, places => [ '', _place(1), _place(2) ] }, $class;
}

sub start {
    my ( $class, %args ) = @_;
    my $log    = $args{log};
    my $before = defined $log && -f $log ? -s _ : 0;
    pipe my $news, my $report or Sirius::Log->fail("--daemonize: cannot create a pipe: $!");
    my $child = _fork();
    if ($child) {
        close $report;
        _wait( $news, $child, defined $log ? sub { _show( $log, $before ) } : () );
    }
    close $news;
    POSIX::setsid();    # no terminal, and its child can never get one again
    POSIX::_exit(0) if _fork();
    open STDIN, '<', '/dev/null' or Sirius::Log->fail("--daemonize: /dev/null: $!");
    return bless { pid => $$, places => [ '', _place(1), _place(2) ], report => $report }, $class;
}

# What is in a buffer would be written twice
sub _fork {
    STDOUT->flush;
    STDERR->flush;
    my $pid = fork;
    Sirius::Log->fail( '--daemonize: cannot fork: ' . Sirius::OS::Child->failure ) if !defined $pid;
    return $pid;
}

# The identity of a descriptor, '' if it is a file or closed
sub _place {
    my $fd = shift;
    my ( $device, $inode, undef, undef, undef, undef, $rdev ) = stat "/proc/self/fd/$fd";
    return defined $inode && !-f _ ? "$device:$inode:$rdev" : '';
}

sub _report {
    my ( $self, $status ) = @_;
    my $report = $self->{pid} == $$ && delete $self->{report} or return;
    local $SIG{PIPE} = 'IGNORE';    # nobody may be waiting any more
    syswrite $report, "$status\n";
    close $report;
    return;
}

# What was written to the log since the start, or the end of that
sub _show {
    my ( $log, $from ) = @_;
    my $size = -f $log ? -s _ : 0;
    return if $size <= $from;
    open my $fh, '<:raw', $log or return;
    seek $fh, $size - $from > SHOWN ? $size - SHOWN : $from, SEEK_SET;
    my $read = read $fh, my $text, SHOWN;
    close $fh;
    return        if !$read;
    $text .= "\n" if $text !~ /\n\z/;
    print {*STDERR} $text, "sirius: the server did not start: see $log\n";
    STDERR->flush;
    return;
}

# In the original process. It has nothing to clean up: everything belongs to the daemon now
sub _wait {
    my ( $news, $child, $show ) = @_;
    Sirius::OS::Signals->let_go;    # Ctrl-C ends the command
    waitpid $child, 0;
    local $/ = "\n";
    my $status = readline $news;
    my $exit   = defined $status && $status =~ /\A(\d+)\n\z/ ? $1 : 1;
    $show->() if $show && $exit;
    return POSIX::_exit($exit);
}

1;

=encoding utf8

=head1 NAME

Sirius::Service::Daemon - run in the background, and report how the start went

=head1 SYNOPSIS

  use Sirius::Service::Daemon;

  my $daemon = Sirius::Service::Daemon->start;
  ...                 # load, bind, fork
  $daemon->ready;     # "sirius --daemonize" ends now, with status 0

=head1 DESCRIPTION

The server runs in a session of its own, without a terminal. The command that the operator typed ends when the server
is ready or has failed, with an exit status that says which. Until then the server keeps the STDOUT and STDERR of the
command, so that the operator sees its errors.

=head1 METHODS

=head2 detach

  $daemon->detach;
  $daemon->detach( keep_stderr => 1 );

Makes STDOUT and STDERR, which are those of the command, F</dev/null>. Each process that was forked before L</ready>
must call it; otherwise it keeps the terminal or the pipe open. A plain file stays, as with C<< 2>>error.log >>, and so
does what was put in place of them meanwhile, by C<--error-log> or the application. C<keep_stderr> leaves STDERR alone
in any case.

=head2 failed

  $daemon->failed($status);

Ends the command with this status, by default 1. The command also ends so if the daemon ends without a word.

=head2 ready

  $daemon->ready(%args);

Calls L</detach> and ends the command with status 0. In another process than the one in which L</start> returned, it
only calls L</detach>.

=head2 restore

  Sirius::Service::Daemon->restore->detach;

For the next program, which the daemon has started.

=head2 start

  my $daemon = Sirius::Service::Daemon->start( log => $conf->{error_log} );

Returns only in the daemon. If the start fails, the command prints what was written to this log meanwhile, at most 4 KiB, and its name.
In the daemon STDIN is F</dev/null>. Locks, threads and the PID are those of a new process, so code
that depends on them must run after this call.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Service::PidFile>.

=cut
