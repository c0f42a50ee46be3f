package Sirius::Log;

use strict;
use warnings;

use Fcntl qw(F_SETFL O_APPEND);
use POSIX ();
use Sirius::Log::File;

my $LAYER = 'sirius_log';    # xs/log.c

# The file of --error-log, the identity of descriptor 2 once it was opened, and the owner of the file
my ( $path, $place, @owner );

# Is told of errors and warnings too
my $listener;

sub close {
    my @layers = PerlIO::get_layers( *STDERR, output => 1 );
    pop @layers if @layers && $layers[-1] eq 'utf8';
    binmode STDERR, ':pop' if @layers && $layers[-1] =~ /\A$LAYER\b/;
    return;
}

sub error {
    my ( $class, $message ) = @_;
    return $class->_say( error => $message );
}

# perl would exit with the errno of any call before
sub fail {
    my ( $class, $message ) = @_;
    chomp $message;
    $! = 1;
    die "sirius: $message\n";
}

sub info {
    my ( $class, $message ) = @_;
    return $class->_say( info => $message );
}

# Descriptor 2 is the log already. Its file may have been moved, or its directory removed
sub inherit {
    my ( $class, $conf, @ids ) = @_;
    ( $path, @owner ) = ( $conf->{error_log}, @ids );
    $place = _place() if defined $path;
    return $class->_layer($conf);
}

sub note {
    my ( $class, $message ) = @_;
    return $class->_say( notice => $message );
}

sub open {
    my ( $class, $conf, @ids ) = @_;
    ( $path, @owner ) = ( $conf->{error_log}, @ids );
    $class->fail("--error-log $path: $!") if defined $path && !_redirect();
    return $class->_layer($conf);
}

# Writes text of another process unchanged, or text of this one past its log
sub pass {
    my ( $class, $text ) = @_;
    local ( $@, $! );
    require Sirius;    # has _put
    utf8::encode($text) if utf8::is_utf8($text);
    eval { $class->_put( $text, 1 ) };
    return;
}

# Lines of another program
sub relay {
    my ( $class, $text ) = @_;
    local ( $@, $! );
    require Sirius;    # has _put
    eval { $class->_put($text) };
    return;
}

sub reopen {
    my ( $class, $say ) = @_;
    $say ||= sub { $class->error(shift) };

    # An application may have redirected STDERR, or closed it and opened something else under its number
    return 0 if !defined $path || _place() ne $place;
    return 1 if _redirect();
    my $error = "$!";
    $say->("--error-log $path: $error; logging continues in the file that was open before");
    return 0;
}

sub tell {
    my ( $class, $code ) = @_;
    $listener = $code;
    return;
}

sub warn {
    my ( $class, $message ) = @_;
    return $class->_say( warn => $message );
}

sub _layer {
    my ( $class, $conf ) = @_;
    my $prefix = $conf->{log_prefix};
    $prefix = 1 if defined $path && !defined $prefix;
    $class->close;
    return if tied *STDERR;
    if ( defined $path && !defined fileno STDERR ) {    # an application has closed STDERR, but not the log
        CORE::open STDERR, '>>&=', 2 or $class->fail("STDERR: $!");
    }
    require Sirius;                                     # has the layer
    binmode STDERR, $prefix ? ":$LAYER(prefix)" : defined $path ? ":$LAYER" : ":$LAYER(plain)";
    return;
}

# The identity of the file that is descriptor 2
sub _place {
    my ( $device, $inode ) = stat '/proc/self/fd/2';
    return defined $inode ? "$device:$inode" : '';
}

# The new file replaces the old one in one step, so that there is always a log
sub _redirect {
    my $fh = Sirius::Log::File->open( $path, owner => \@owner ) or return 0;

    # Programs of the application write to it too, and may wait, but not for the reader of a FIFO
    if ( !-p $fh ) { fcntl $fh, F_SETFL, O_APPEND or return 0 }
    defined POSIX::dup2( fileno $fh, 2 ) or return 0;
    $place = _place();
    return 1;
}

# The layer takes the level from the line
sub _say {
    my ( $class, $level, $message ) = @_;
    local ( $@, $! );
    require Sirius;                  # has _put
    my $line = "[sirius $$] " . ( $level eq 'notice' ? '' : "$level: " ) . "$message\n";
    utf8::encode($line) if utf8::is_utf8($line);
    eval { $class->_put($line) };    # a layer of the application may die
    $listener->($line) if $listener && $level =~ /\A(?:error|warn)\z/;
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Log - the error log of the server

=head1 SYNOPSIS

  use Sirius::Log;

  Sirius::Log->open($conf);
  Sirius::Log->note('stopping');
  Sirius::Log->error('worker 4711 was killed by signal 11 (SEGV); starting another');
  local $SIG{USR1} = sub { Sirius::Log->reopen };

=head1 DESCRIPTION

Writes one line to STDERR for each event of the server: C<[sirius PID] message> at the level C<notice>, and C<[sirius
PID] LEVEL: message> at every other level:

=over 4

=item C<error>

Something failed or was lost, and somebody has to act: a worker crashed, a request was answered 504, a reload failed,
the application died.

=item C<warn>

The server works, but at a limit: it is overloaded, refuses requests, or had to kill a process that did not end in
time.

=item C<notice>

What an operator did, or asked for: start, ready, reload, another number of workers, stop.

=item C<info>

What happens by itself in normal operation: a worker was replaced for its age, clients were too slow.

=back

F<docs/OBSERVABILITY.md> lists the lines, their levels and what to do about them.

With C<--error-log> STDERR is a file, to which all processes append. Each line of C<warn>, C<print STDERR> and
C<psgi.errors> is written in one system call, however long it is, so that lines of two processes never mix. Text
without a newline is kept until the newline comes, up to 64 KiB, or until the process ends.

Nobody waits for a reader of the log that has stalled, such as the other end of a pipe. When it has taken nothing for 100 ms,
lines are lost until it reads again, and the next line of the process that has lost them says how many. What programs and libraries in
C write to descriptor 2 is not seen here, and may wait. A FIFO needs no reader when the log is opened, at the start or after C<USR1>: it
keeps what it can hold for the next one, and what else is written is lost, that of programs and libraries in C too.

With C<--log-prefix>, which C<--error-log> turns on, each line begins with time (UTC), process and level:

  2026-11-21T23:05:01Z 4712 error cannot connect to the database
  2026-11-21T23:05:01Z 4712 warn Use of uninitialized value $id in concatenation at app.psgi line 12.
  2026-11-21T23:05:02Z 4711 info sirius: worker 4712 exited: max-requests (1000)

Lines of the application have a level too: C<error> for what was printed to STDERR or C<psgi.errors>, C<warn> for what C<warn> or
perl itself warned of. What an application or a program that it starts writes to descriptor 2
past perl has no prefix.

=head1 METHODS

=head2 close

  Sirius::Log->close;

STDERR has no whole lines and prefixes any more, but stays the same file. For a process that sends STDERR to another
process, which adds them.

=head2 error

  Sirius::Log->error($message);

Writes one line at the level C<error>. Like lines of all levels, it goes to the file that STDERR is at that moment, and
no handler, tie or variable of an application affects it.

=head2 fail

  Sirius::Log->fail($message);

Dies with "sirius: " and the message, and exit status 1, whatever C<$!> is.

=head2 hurry

  Sirius::Log->hurry;

This process, in which all others depend on what it does next, waits for a slow reader of the log for 10 ms at most.

=head2 info

  Sirius::Log->info($message);

The same at the level C<info>.

=head2 inherit

  Sirius::Log->inherit($conf);

For a program that one of the server has become or has started: like L</open>, but the log stays the file that descriptor 2 is.

=head2 lost

  my $lines = Sirius::Log->lost;
  Sirius::Log->lost($more);

How many lines this process could not write, since whatever reads the log takes nothing, and has not said so yet. With a
number, so many more: those of the program before this one in the same process.

=head2 note

  Sirius::Log->note($message);

The same at the level C<notice>.

=head2 open

  Sirius::Log->open($conf);
  Sirius::Log->open( $conf, $uid, $gid );

Opens the log as C<error_log> and C<log_prefix> of the configuration say. A missing file is made with mode 0640 less
the umask; if root makes it, now or later, it belongs to C<$uid> and C<$gid>, so that the workers can reopen it. Dies
with one line if the file cannot be opened.

=head2 pass

  Sirius::Log->pass($text);

Writes text unchanged: output of another process, or lines of the start.

=head2 relay

  Sirius::Log->relay("jobs[4711]: done\n");

Writes lines of another program; their level is C<notice>.

=head2 reopen

  Sirius::Log->reopen;
  Sirius::Log->reopen( sub { my $text = shift; ... } );

Opens the same path again, after it was moved away, and returns true when STDERR is the new file. No line is lost meanwhile.
When it fails, the log goes on in the old file, and the code is called with a text that says so; without code that is logged. Does
nothing when STDERR is something else by now.

=head2 tell

  Sirius::Log->tell( sub { my $line = shift; ... } );

Also passes each line of L</error> and L</warn> to the code from now on, as bytes; C<undef> ends this.

=head2 warn

  Sirius::Log->warn($message);

Writes one line at the level C<warn>.

=head1 SEE ALSO

L<Sirius>.

=cut
