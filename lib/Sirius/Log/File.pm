package Sirius::Log::File;

use strict;
use warnings;

use Errno qw(EACCES EEXIST ELOOP ENOENT);
use Fcntl qw(F_DUPFD O_APPEND O_CREAT O_EXCL O_NOCTTY O_NOFOLLOW O_NONBLOCK O_RDWR O_WRONLY);
use POSIX ();
use Sirius::OS::Inherit;

sub high {
    my ( $class, $fh ) = @_;
    my $low = fileno $fh;
    my $fd  = fcntl $fh, F_DUPFD, 3 or return;
    POSIX::close($low) if $low < 3;    # perl would not close it for STDIN, STDOUT and STDERR
    return Sirius::OS::Inherit->take_handle($fd);
}

# Only a new file gets the owner: an existing one may belong to anybody. The file may come or go between two
# calls
sub open {
    my ( $class, $path, %how ) = @_;
    my $flags = O_APPEND | O_NOCTTY | O_NONBLOCK;
    my @owner = @{ $how{owner} || [] };
    for ( 1 .. 10 ) {

        # A FIFO that is opened for reading too needs no reader
        my $fh = -p $path && _open( $path, $flags | O_RDWR ) || _open( $path, $flags | O_WRONLY );
        return $class->high($fh) if $fh;
        return                   if $! != ENOENT;
        if ( sysopen $fh, $path, $flags | O_WRONLY | O_CREAT | O_EXCL, oct 640 ) {
            chown @owner, $fh if @owner && !$>;
            return $class->high($fh);
        }
        return if $! != EEXIST;
    }
    $! = ENOENT if -l $path && !-e $path;    ## no critic (RequireLocalizedPunctuationVars)
    return;
}

# If workers may write to the directory, an attacker in one of them may put a link there, to a file that only
# root can write. So a link must belong to root, or to the user who opens it
sub _may_follow {
    my $path  = shift;
    my $owner = ( lstat $path )[4];
    return 1 if defined $owner && -l _ && ( !$owner || $owner == $> );
    $! = EACCES;    ## no critic (RequireLocalizedPunctuationVars)
    return 0;
}

sub _open {
    my ( $path, $flags ) = @_;
    my $fh;
    return $fh if sysopen $fh, $path, $flags | O_NOFOLLOW;
    return if $! != ELOOP || !_may_follow($path);
    return sysopen( $fh, $path, $flags ) ? $fh : undef;
}

1;

=encoding utf8

=head1 NAME

Sirius::Log::File - opens the files of the logs

=head1 SYNOPSIS

  use Sirius::Log::File;

  my $fh = Sirius::Log::File->open( '/var/log/app.log', owner => [ $uid, $gid ] ) or die $!;

=head1 DESCRIPTION

What L<Sirius::Log> and L<Sirius::Log::Access> have in common.

=head1 METHODS

=head2 high

  $fh = Sirius::Log::File->high($fh) or die $!;

The same under a descriptor that is closed on exec and more than 2: when a server is started with STDIN, STDOUT or STDERR closed,
what it opens next would get that number, and all that programs print.

=head2 open

  my $fh = Sirius::Log::File->open( $path, owner => [ $uid, $gid ] ) or die $!;

Opens for appending, and never waits: the handle has O_NONBLOCK. A FIFO is opened for reading and writing, so that it needs no reader. A
user who may not read it cannot open it while it has none (C<ENXIO>).

A file that is not there is made, with mode 0640 less the umask; when root makes it, it belongs to C<owner>, so that workers which are
somebody else can open it again. Nothing, with C<$!>, when it can't.

No file is made through a symbolic link. One to a file that is there is followed when it belongs to root or to the user of this
process, else the error is C<EACCES>, as where the kernel protects links (C<fs.protected_symlinks>).

=head1 SEE ALSO

L<Sirius::Log>, L<Sirius::Log::Access>.

=cut
