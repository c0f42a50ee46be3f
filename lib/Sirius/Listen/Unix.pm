package Sirius::Listen::Unix;

use strict;
use warnings;

use Errno      qw(EAGAIN ECONNREFUSED ENOENT EWOULDBLOCK);
use Fcntl      qw(F_SETFL LOCK_EX LOCK_NB O_NONBLOCK);
use File::Spec ();
use POSIX      ();
use Sirius::Config::Address;
use Sirius::OS::SocketOwner;
use Socket      qw(AF_UNIX SOCK_STREAM pack_sockaddr_un);
use Time::HiRes qw(sleep);

use constant {
    LOCK_PATIENCE => 2,                             # seconds; the lock is held for less than a millisecond
    PATH_MAX      => $^O eq 'linux' ? 107 : 103,    # bytes of sun_path without its NUL
};

sub handle { return shift->{fh} }

sub open {
    my ( $class, $path, $backlog, %want ) = @_;
    my $self   = bless { path => $path }, $class;
    my $length = length $path;
    die "the path has $length bytes, the maximum is ${\ PATH_MAX}\n"
        if $length > PATH_MAX + ( $path =~ /\A\0/ ? 1 : 0 );
    socket $self->{fh}, AF_UNIX, SOCK_STREAM, 0 or die "$!\n";
    if ( $path !~ /\A\0/ ) { $self->_open_file( $backlog, \%want ) }
    else {
        bind $self->{fh}, pack_sockaddr_un($path) or die "$!\n";
        listen $self->{fh}, $backlog or die "$!\n";
    }
    return $self;
}

# Dies if a server listens there, or if the path is something else than a socket
sub probe {
    my ( $class, $path ) = @_;
    return _stale($path);
}

sub remove {
    my $self = shift;
    my $pid  = delete $self->{pid};
    return if !$pid || $pid != $$;
    my $there = _identity( $self->{file} );
    unlink $self->{file} if defined $there && $there eq $self->{identity};
    return;
}

sub restore {
    my ( $class, $state, $fh ) = @_;
    return bless { %$state, fh => $fh }, $class;
}

sub state {
    my $self = shift;
    return { map { $_ => $self->{$_} } grep { !ref $self->{$_} } keys %$self };
}

# The umask sets the mode of the file: a chmod afterwards would be too late, and could be redirected to
# another file
sub _bind {
    my ( $fh, $path, $mode ) = @_;
    my $umask = umask;
    umask( 0777 & ~$mode ) if defined $mode;
    my $error = bind( $fh, pack_sockaddr_un($path) ) ? undef : "$!";
    umask $umask;
    die "$error\n" if defined $error;
    return;
}

sub _identity {
    my $path = shift;
    my ( $device, $inode ) = lstat $path or return;
    return "$device:$inode";
}

# Servers that start at the same moment must not both find the path unused. Does without the lock if the
# directory can't be read, or another process holds the lock
sub _lock {
    my $path = shift;
    my ($dir) = $path =~ m{\A(.*/)}s;
    CORE::open my $fh, '<', defined $dir ? $dir : '.' or return;
    for ( 1 .. LOCK_PATIENCE * 50 ) {
        last if flock( $fh, LOCK_EX | LOCK_NB ) || $! != EWOULDBLOCK;
        sleep 0.02;
    }
    return $fh;
}

sub _named {
    my $want = shift;
    return [ map {"$_ $want->{$_}"} grep { defined $want->{$_} } qw(owner group) ];
}

sub _open_file {
    my ( $self, $backlog, $want ) = @_;
    my ( $fh, $path ) = @{$self}{qw(fh path)};
    my @ids   = Sirius::Config::Address->ids(%$want);
    my $lock  = _lock($path);
    my $stale = _stale($path);

    # What is stale goes when its successor listens; where no other name is short enough, a moment before.
    # With `late` nobody meets it before it listens, nor thinks that it was left behind
    my $name = ( $stale || $want->{late} ) && length "$path.$$" <= PATH_MAX ? "$path.$$" : $path;
    unlink $name if ( $stale || $name ne $path ) && -S $name;
    _bind( $fh, $name, $want->{mode} );
    @{$self}{qw(file identity pid)} = ( File::Spec->rel2abs($path), _identity($name), $$ );
    my $ok = eval {

        # Nobody can connect before the socket listens, so nobody connects before its owner is set
        POSIX::lchown( @ids, $name ) or die "@{ _named($want) }: $!\n" if "@ids" ne '-1 -1';
        listen $fh, $backlog or die "$!\n";
        rename $name, $path or die "$!\n" if $name ne $path;
        1;
    };
    return if $ok;
    my $error = $@;
    unlink $name;
    die $error;
}

# True if a process that was killed has left the socket behind. Dies if a server listens there, or if it is no
# socket
sub _stale {
    my $path = shift;
    return 0                                    if !-e $path && !-l $path;
    die "the path exists and is not a socket\n" if !-S $path;
    socket my $probe, AF_UNIX, SOCK_STREAM, 0 or die "$!\n";

    # A listener with a full queue must not block us here: it is enough to know that there is one
    fcntl $probe, F_SETFL, O_NONBLOCK;
    die _taken($path) if connect $probe, pack_sockaddr_un($path);
    return 1          if $! == ECONNREFUSED;
    return 0          if $! == ENOENT;
    die( $! == EAGAIN ? _taken($path) : "cannot check the socket that is there: $!\n" );
}

sub _taken {
    my $path  = shift;
    my $owner = Sirius::OS::SocketOwner->path($path);
    return 'already in use' . Sirius::OS::SocketOwner->by($owner) . "\n";
}

1;

=encoding utf8

=head1 NAME

Sirius::Listen::Unix - a listening unix socket and its file

=head1 SYNOPSIS

  use Sirius::Listen::Unix;

  my $unix = Sirius::Listen::Unix->open( '/run/app.sock', 1024, mode => 0660, group => 'www-data' );
  accept my $client, $unix->handle;
  $unix->remove;

=head1 DESCRIPTION

Binds and listens so that others see either no new socket or one that serves, with its final rights: the mode holds
from the first moment, owner and group before anybody can connect.

A socket file on which nobody listens was left by a killed process. It is replaced by C<rename> when the new socket
listens already, so a client finds the path at any time. (The kernel keeps the name from before the rename: C<ss -xl>
shows the path with a process number after it.) A socket on which somebody listens, or a file of another kind, is an
error. The directory is locked (flock) meanwhile, so that of two servers that start at the same moment one finds the
other.

A path that begins with a NUL byte is a name in the abstract namespace of Linux. It has no file, mode or owner, and is
free when its socket is closed.

=head1 METHODS

=head2 handle

  my $fh = $unix->handle;

The listening socket.

=head2 open

  my $unix = Sirius::Listen::Unix->open( $path, $backlog, mode => 0660, owner => 'www', group => 'www-data' );

All but the path is optional. Without C<mode> the umask decides. C<owner> and C<group> are names or numbers. With C<< late => 1 >> the
path appears when the socket listens already, also if nothing was there before. Dies with the reason.

=head2 remove

  $unix->remove;

Removes the file if this process has bound it and it is still the same file.

=head2 restore

  my $unix = Sirius::Listen::Unix->restore( $state, $fh );

In the next program of the same process, from L</state> and the listening socket.

=head2 state

The state as plain data, for the next program.

=head1 SEE ALSO

L<Sirius::Listen::Listener>.

=cut
