package Sirius::Service::PidFile;

use strict;
use warnings;

use Errno       qw(ELOOP EWOULDBLOCK);
use Fcntl       qw(LOCK_EX LOCK_NB LOCK_SH O_CREAT O_NOFOLLOW O_NONBLOCK O_RDONLY O_RDWR SEEK_SET);
use File::Spec  ();
use Sirius::Log ();
use Sirius::OS::Inherit;

# PID in a file that a running server has
sub holder {
    my ( $class, $path ) = @_;
    sysopen my $fh, $path, O_RDONLY | O_NONBLOCK or return;    # a FIFO would be waited for
    my $locked = -f $fh && !flock( $fh, LOCK_SH | LOCK_NB ) && $! == EWOULDBLOCK;
    local $/ = "\n";
    my $text = $locked ? readline $fh : undef;
    close $fh;
    return defined $text && $text =~ /\A\s*(\d+)\s*\z/ ? $1 : undef;
}

sub new {
    my ( $class, $path ) = @_;
    $path = File::Spec->rel2abs($path);    # absolute, as the server may change its directory
    my $self = bless { path => $path, pid => $$ }, $class;

    # Its owner may have removed it before we had the lock, and yet another server may have made a new one
    my $fh = $self->_lock;
    $fh = $self->_lock while _identity($fh) ne _identity( $self->{path} );
    $self->{fh} = $fh;
    my $text = "$$\n";
    sysseek $fh, 0, SEEK_SET or $self->_fail($!);
    truncate $fh, 0 or $self->_fail($!);
    my $written = syswrite $fh, $text;
    return $self if defined $written && $written == length $text;
    my $error = defined $written ? 'not enough space' : "$!";
    $self->remove;    # an empty file, or half a PID, must not be read
    return $self->_fail($error);
}

sub release {
    my $self = shift;
    delete $self->{fh};
    return;
}

sub remove {
    my $self = shift;
    my $fh   = $self->{fh} or return;
    if ( $$ == $self->{pid} && _identity($fh) eq _identity( $self->{path} ) ) {

        # After a change of the user, unlink may be impossible. The next process with this PID must not be
        # killed by mistake
        unlink $self->{path} or truncate $fh, 0;
    }
    return $self->release;
}

sub restore {
    my ( $class, $state ) = @_;
    my $fh = Sirius::OS::Inherit->take_handle( $state->{fd} );
    return bless { fh => $fh, map { $_ => $state->{$_} } qw(path pid) }, $class;
}

sub state {
    my $self = shift;
    return { fd => fileno $self->{fh}, map { $_ => $self->{$_} } qw(path pid) };
}

sub _fail {
    my ( $self, $error ) = @_;
    return Sirius::Log->fail("--pid $self->{path}: $error");
}

sub _identity {
    my $file = shift;
    my ( $device, $inode ) = stat $file or return '';
    return "$device:$inode";
}

sub _lock {
    my $self = shift;
    sysopen my $fh, $self->{path}, O_RDWR | O_CREAT | O_NOFOLLOW, oct 644
        or $self->_fail( $! == ELOOP ? 'the file is a symbolic link, which is not followed' : $! );
    my $text = '';
    sysread $fh, $text, 64 if -f $fh;
    $self->_fail('the file exists and is not a PID file') if !-f _ || $text !~ /\A\s*\d*\s*\z/;
    if ( !flock $fh, LOCK_EX | LOCK_NB ) {
        $self->_fail($!) if $! != EWOULDBLOCK;
        my ($pid) = $text =~ /(\d+)/;
        $self->_fail( 'a server' . ( $pid ? " with PID $pid" : '' ) . ' is running' );
    }
    return $fh;
}

1;

=encoding utf8

=head1 NAME

Sirius::Service::PidFile - the file with the PID of the server

=head1 SYNOPSIS

  use Sirius::Service::PidFile;

  my $file = Sirius::Service::PidFile->new('/run/app.pid');
  if ( my $pid = fork ) {
      ...
      $file->remove;
  } else {
      $file->release;
      ...
  }

=head1 DESCRIPTION

The file is locked (C<flock>) as long as the server lives; the lock ends with the server, however that ends. So a file
that was left behind never prevents a start, even if another process has its PID by now, and two servers never have the
same file.

=head1 METHODS

=head2 holder

  my $pid = Sirius::Service::PidFile->holder($path);

The PID in the file, if a running server has locked it; otherwise undef.

=head2 new

  my $file = Sirius::Service::PidFile->new($path);

Makes or takes over the file, locks it, and writes the PID of this process. Dies with one line if another server holds
it, if it is not a PID file, if it is a symbolic link, or if it cannot be written. Its descriptor is closed on exec.

=head2 release

  $file->release;

In a child: drops the child's share of the lock, so that the lock ends with the process that made it. In that process
it would unlock the file.

=head2 remove

  $file->remove;

At the end of the server: deletes the file, or empties it where that is not allowed, and unlocks it. A file that another
server has made at the same path stays, and in another process than the one that made it, this is L</release>.

=head2 restore

  my $file = Sirius::Service::PidFile->restore($state);

In the next program of the same process, from L</state>, with its descriptors open.

=head2 state

The state as plain data, for the next program; C<fd> is a descriptor to keep open.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Service::Daemon>.

=cut
