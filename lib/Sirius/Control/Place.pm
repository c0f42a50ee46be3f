package Sirius::Control::Place;

use strict;
use warnings;

use Cwd            qw(realpath);
use Errno          qw(ECONNREFUSED);
use Fcntl          qw(F_SETFL O_NONBLOCK);
use File::Basename qw(dirname);
use File::Spec     ();
use Sirius::Base::Text;
use Sirius::Listen::Unix;
use Sirius::OS::Peer;
use Sirius::OS::Proc;
use Socket qw(AF_UNIX SOCK_STREAM pack_sockaddr_un);

use constant {
    ACCEPTS    => 0x10000,    # of linux/net.h
    FOLDER_MAX => 76,         # bytes, so that the path of a socket is short enough, also before a rename
    NONE       => 'none',     # instead of a path: no socket
    PATH_MAX   => Sirius::Listen::Unix->PATH_MAX,    # bytes of sun_path without its NUL
    STALE_MAX  => 64,    # sockets that servers which were killed have left behind, removed at a start
};

# Servers that this user may control, by their sockets in the usual places: of each the path, the PID and the
# user. Anybody may have paths of his own that lead to the socket of another server
sub all {
    my ( %seen, %found );
    for my $path ( map { _real($_) } _listening(), map { _left_in($_) } _folders() ) {
        my ( $device, $inode, $uid ) = ( lstat $path )[ 0, 1, 4 ];
        next if !defined $uid || !-S _ || $seen{"$device $inode"}++ || $> && $uid != $>;
        next if !_is_of_user( dirname($path), $uid );
        my ($named) = $path =~ /${\ _name() }\z/;
        my ( $fault, $pid, $peer ) = _asked($path);
        next if $fault || !( defined $pid ? _may_listen( $peer, $uid ) : _is_of( $named, $uid ) );
        my $server
            = { known => $pid ? 1 : 0, path => $path, pid => ( $pid || $named ) + 0, uid => $peer // $uid };
        $found{ $pid || $path } //= $server;
    }
    my @all = sort { $a->{pid} <=> $b->{pid} || $a->{path} cmp $b->{path} } values %found;
    return @all;
}

sub choose {
    my ( $class, @given ) = @_;
    return $class->find(@given)->{path};
}

# The server that is meant. Dies with what to do if there is none, or several
sub find {
    my ( $class, %given ) = @_;
    my $path = $given{path} // $ENV{SIRIUS_CONTROL};
    return { path => $path } if !defined $given{pid} && length( $path // '' ) && $path ne NONE;
    my @all = $class->all;
    my @its = defined $given{pid} ? grep { $_->{pid} == $given{pid} } @all : _ours( $given{own}, @all );
    return $class->only( ' with --pid, or by --control PATH', @its ) if @its;
    my $list = join ', ', map { $class->words($_) } @all;
    die "no server with the PID $given{pid} was found"
        . ( @all ? " (there is $list)" : '' )
        . "; if it was started with --control PATH, use that\n"
        if defined $given{pid};
    die "no server found: use --control PATH or set SIRIUS_CONTROL, as the user of the server or as root\n";
}

# Whether a value of --control asks for none
sub is_none {
    my ( $class, $path ) = @_;
    return defined $path && $path eq NONE ? 1 : 0;
}

# One of several: this user's, if he has one. Dies with how to choose
sub only {
    my ( $class, $how, @servers ) = @_;
    my @own = grep { $_->{uid} == $> } @servers;
    @servers = @own if @own;
    return $servers[0] if @servers == 1;
    my $list = join ', ', map { $class->words($_) } @servers;
    die "there are @{[ scalar @servers ]} servers ($list): choose one$how\n";
}

# Where a server without --control listens. Dies with the reason if there is no safe place
sub own {
    my $class = shift;
    my ($folder) = _folders();
    if ( !defined $folder ) {
        $folder = _fallback();
        my $error = mkdir( $folder, oct 700 ) ? '' : "$!";
        die "$folder: $error\n"                                           if !-e $folder && !-l $folder;
        die "$folder is not a directory that this user alone may enter\n" if !_is_private($folder);
    }
    _tidy($folder);
    return "$folder/sirius-$$.control";
}

# As a user knows it: PID and application, which the title of the process has
sub words {
    my ( $class, $server ) = @_;
    my ( $title, $user )   = ( Sirius::OS::Proc->text("/proc/$server->{pid}/cmdline"), '' );
    my ($app) = Sirius::Base::Text->harmless( $title =~ s/\0.*//sr ) =~ /\Asirius: supervisor (.+)/;
    my $uid = $server->{uid} // $>;
    $user = ', user ' . ( getpwuid($uid) // $uid ) if $uid != $>;
    return "PID $server->{pid}" . ( defined $app ? " $app" : '' ) . $user;
}

# Why nobody can be asked there; else 0 and who would answer, PID and user, as far as the kernel knows:
# anybody may choose a name
sub _asked {
    my $path = shift;
    return 'the path is too long' if length $path > PATH_MAX;
    socket my $fh, AF_UNIX, SOCK_STREAM, 0 or return $! + 0;
    fcntl $fh, F_SETFL, O_NONBLOCK;
    connect $fh, pack_sockaddr_un($path)
        or return $!{EAGAIN} ? 0 : $! + 0;    # its queue may be full
    my ( $pid, $uid ) = Sirius::OS::Peer->of($fh);
    return 0, $pid // 0, $uid;
}

# For users without a folder of their own that lasts as long as the machine runs
sub _fallback { return File::Spec->catdir( File::Spec->tmpdir, "sirius-$>" ) }

# Folders of this user, the first of which a server uses: that of the unit, of the session, of the machine
sub _folders {
    my ($unit) = split /:/, $ENV{RUNTIME_DIRECTORY} // '';
    my @own    = grep { length( $_ // '' ) && length $_ <= FOLDER_MAX && m{\A/} && _is_own($_) } $unit,
        $ENV{XDG_RUNTIME_DIR},
        $> ? () : '/run';
    return @own, grep { _is_private($_) } _fallback();
}

# When its queue is full, the kernel does not say who it is
sub _is_of {
    my ( $pid, $uid ) = @_;
    return ( ( stat "/proc/$pid" )[4] // -1 ) == $uid;
}

# Somebody else could put the socket of another server there
sub _is_of_user {
    my ( $folder, $uid ) = @_;
    my $owner = ( lstat $folder )[4] // return 0;
    return $owner == $uid || !$owner;
}

# Nobody else may put something there
sub _is_own {
    my $folder = shift;
    my @stat   = lstat $folder;
    return @stat && -d _ && $stat[4] == $> && !( $stat[2] & oct 22 ) ? 1 : 0;
}

sub _is_private {
    my $folder = shift;
    return _is_own($folder) && !( ( lstat $folder )[2] & oct 77 );
}

# By their names
sub _left_in {
    my $folder = shift;
    opendir my $dir, $folder or return;
    my $name  = _name();
    my @names = grep {/\A$name\z/} readdir $dir;
    closedir $dir;
    return map {"$folder/$_"} @names;
}

# Wherever they are, in this network: the folder of a unit is known to nobody else. A socket that took its
# path by a rename (Sirius::Listen::Unix) has the name from before here
sub _listening {
    my ( $name, @paths ) = _name();
    for my $row ( map { [ split ' ', $_, 8 ] } split /\n/, Sirius::OS::Proc->text('/proc/net/unix') ) {
        next if @$row < 8 || $row->[3] !~ /\A[0-9A-Fa-f]+\z/ || !( hex $row->[3] & ACCEPTS );
        push @paths, $1 if $row->[7] =~ m{\A(/.*/$name)(?:[.]\d+)?\z}s;
    }
    return @paths;
}

# A socket of root may belong to the user who may publish
sub _may_listen {
    my ( $peer, $owner ) = @_;
    return !$peer || $peer == $owner;
}

# A sub, as something may be published while perl destroys what is left
sub _name { return qr{sirius-([1-9]\d{0,9})[.]control} }

# Of several, the one that this process descends from: a job of --beside, or a child of the application
sub _ours {
    my ( $only, @all ) = @_;
    return @all if @all < 2 && !$only;
    my ( $pid, %above ) = ($$);
    $above{$pid} = 1 while ( $pid = Sirius::OS::Proc->parent($pid) ) > 1 && !$above{$pid};
    my @ours = grep { $above{ $_->{pid} } } @all;
    return @ours || $only ? @ours : @all;
}

# Where it is without links
sub _real {
    my $path   = shift;
    my $folder = realpath( dirname($path) ) // return;
    return $folder eq '/' ? "/$1" : "$folder/$1" if $path =~ m{([^/]+)\z};
    return;
}

# Servers that were killed leave theirs behind
sub _tidy {
    my $folder = shift;
    my @left   = _left_in($folder);
    $#left = STALE_MAX - 1 if @left > STALE_MAX;
    for my $path ( grep { ( lstat $_ )[4] == $> && -S _ } @left ) {
        my ($fault) = _asked($path);
        unlink $path if $fault eq ECONNREFUSED;
    }
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Control::Place - where servers listen that were given no control socket, and how they are found

=head1 SYNOPSIS

  my $path = Sirius::Control::Place->own;
  my $path = Sirius::Control::Place->choose( pid => 4711 );

=head1 DESCRIPTION

L<Sirius::CLI::Ctl> says in which directory the socket of a server without C<--control> is.

Sockets are found by F</proc/net/unix>, wherever they are, and by the names in these directories. A user sees those of his own servers, and
root all. The PID is that of the process that listens, whatever the name of its socket; it has to be of the owner of the socket, or of root, and
the directory as well. A server that was killed leaves its socket behind: nobody listens there, so it is not found, and a later start removes it.

=head1 METHODS

=head2 all

  my @servers = Sirius::Control::Place->all;

Of each server its C<path>, C<pid> and C<uid>, the user that it runs as, and C<known>: whether the kernel has told the PID, so that it is
one of this PID namespace. A server is there once, whatever paths lead to it.

=head2 choose

  my $path = Sirius::Control::Place->choose( path => $option, pid => $pid );

The path that was given, or is in C<SIRIUS_CONTROL>; else that of the server that L</find> finds.

=head2 find

  my $server = Sirius::Control::Place->find( path => $option, pid => $pid );

Nothing but the C<path> if that was given, or is in C<SIRIUS_CONTROL>; else what L</all> says of the only server, of the one that this
process descends from, or of the one with this PID; if there are several, of the only one of this user. With C<own> it is only one that this process
descends from. Dies with a text otherwise.

=head2 is_none

  Sirius::Control::Place->is_none('none');

Whether C<--control> says that there is to be no socket.

=head2 only

  my $server = Sirius::Control::Place->only( ' with --pid', @servers );

The only one of these, or the only one of this user. Dies with a text that lists them, and says how to choose one.

=head2 own

  my $path = Sirius::Control::Place->own;

The path for this process. Dies with the reason if there is no safe directory.

=head2 words

  print Sirius::Control::Place->words($server);    # PID 4711 app.psgi, user shop

=head1 SEE ALSO

L<Sirius::Control::Server>, L<Sirius::Control::Client>.

=cut
