package Sirius::Log;

use strict;
use warnings;

use IO::Handle ();
use POSIX      ();
use Sirius::LogFile;

my $LAYER = 'sirius_log';    # xs/log.c

# The file of --error-log, what descriptor 2 was when we had opened it, and who is to have it
my ( $path, $place, @owner );

sub close {
    my @layers = PerlIO::get_layers( *STDERR, output => 1 );
    pop @layers if @layers && $layers[-1] eq 'utf8';
    binmode STDERR, ':pop' if @layers && $layers[-1] =~ /\A$LAYER\b/;
    return;
}

# Whatever errno is: perl would exit with it
sub fail {
    my ( $class, $message ) = @_;
    chomp $message;
    $! = 1;
    die "sirius: $message\n";
}

sub note {
    my ( $class, $message ) = @_;
    warn "[sirius $$] $message\n";
    STDERR->flush;    # it may have a layer of the application's
    return;
}

sub open {
    my ( $class, $conf, @ids ) = @_;
    my $prefix = $conf->{log_prefix};
    ( $path, @owner ) = ( $conf->{error_log}, @ids );
    if ( defined $path ) {
        $prefix = 1 if !defined $prefix;
        _redirect() or $class->fail("--error-log $path: $!");
    }
    $class->close;
    return if tied *STDERR || !defined $path && !$prefix;
    require Sirius;    # has the layer
    binmode STDERR, $prefix ? ":$LAYER(prefix)" : ":$LAYER";
    return;
}

sub reopen {
    my $class = shift;

    # An application may have sent STDERR somewhere else, or closed it and has something else there now
    return if !defined $path || _place() ne $place;
    return if _redirect();
    my $error = "$!";
    return $class->note("--error-log $path: $error; the log stays in the file it was in");
}

# Which file descriptor 2 is
sub _place {
    my ( $device, $inode ) = stat '/proc/self/fd/2';
    return defined $inode ? "$device:$inode" : '';
}

# No moment without a log: the new file takes the place of the old one in one step
sub _redirect {
    my $fh = Sirius::LogFile->open( $path, owner => \@owner ) or return 0;
    defined POSIX::dup2( fileno $fh, 2 )                      or return 0;
    $place = _place();
    return 1;
}

1;

=encoding utf8

=head1 NAME

Sirius::Log - what the server says about itself, and where that and all of STDERR goes

=head1 SYNOPSIS

  use Sirius::Log;

  Sirius::Log->open($conf);
  Sirius::Log->note('worker 4711 was killed by signal 11 (SEGV), replaced');
  local $SIG{USR1} = sub { Sirius::Log->reopen };

=head1 DESCRIPTION

One line on STDERR for each event of the server: C<[sirius PID] message>.

With C<--error-log> STDERR is a file, to which all processes append. Each line of C<warn>, C<print STDERR> and
C<psgi.errors> gets there in one system call, however long it is, so that lines of two processes never mix. Text without a
newline is held until that comes, up to 64 KiB, or until the process ends.

With C<--log-prefix>, which C<--error-log> implies, each line begins with time (UTC), process and level:

  2026-11-21T23:05:01Z 4712 error cannot connect to the database
  2026-11-21T23:05:01Z 4712 warn Use of uninitialized value $id in concatenation at app.psgi line 12.
  2026-11-21T23:05:02Z 4711 notice sirius: worker 4712 ended: max-requests (1000)

C<error> is what was printed to STDERR or C<psgi.errors>, and the death of an application; C<warn> what C<warn> or perl
itself warned of; C<notice> what the server says. What an application or a program that it starts writes to descriptor 2
past perl has no prefix.

=head1 METHODS

=head2 close

  Sirius::Log->close;

STDERR has whole lines and prefixes no more; it stays the file that it is. For a process that sends STDERR to another one
which has them.

=head2 fail

  Sirius::Log->fail($message);

Dies with "sirius: " and the message, and with exit status 1, whatever C<$!> is.

=head2 note

  Sirius::Log->note($message);

Writes one line. It goes through C<warn>, so an application's C<$SIG{__WARN__}> sees it.

=head2 open

  Sirius::Log->open($conf);
  Sirius::Log->open( $conf, $uid, $gid );

Begins the log that C<error_log> and C<log_prefix> in the configuration ask for. A file that is not there is made, with mode
0640 less the umask; when root makes it, now or later, it belongs to C<$uid> and C<$gid>, so that the workers can reopen it.
Dies with one line when the file can't be opened.

=head2 reopen

  Sirius::Log->reopen;

Opens the same path again, after it was moved away. No line is lost meanwhile, and when it fails, the log goes on in the
old file, which is told there. Does nothing when STDERR is something else by now.

=head1 SEE ALSO

L<Sirius>.

=cut
