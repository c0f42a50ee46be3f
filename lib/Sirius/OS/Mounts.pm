package Sirius::OS::Mounts;

use strict;
use warnings;

use Sirius::OS::Proc;

# Where another machine, or the host of a virtual one, can change files without this kernel
my $REMOTE
    = qr/\A(?:nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|fakeowner|gluster\w*|ncpfs|prl_fs|vboxsf|virtiofs|vmhgfs|fuse[.]\S+|fuse)\z/;

# The type of the file system if it is a remote one
sub remote {
    my ( $class, $path, $table ) = @_;
    my ( $best, $type ) = ( '', '' );
    for my $line ( split /\n/, $table // Sirius::OS::Proc->text('/proc/self/mountinfo') ) {
        my ( $at, $rest ) = $line =~ /\A\S+ \S+ \S+ \S+ (\S+) .*? - (\S+)/ or next;
        $at = _path($at);
        next if length $at < length $best;
        next if $at ne '/' && $path ne $at && index( $path, "$at/" ) != 0;
        ( $best, $type ) = ( $at, $rest );
    }
    return $type =~ $REMOTE ? $type : undef;
}

# Fields of a path, "\040" for a blank
sub _path {
    my $text = shift;
    return $text =~ s/\\([0-7]{3})/chr oct $1/ger;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Mounts - which file system a path is on

=head1 SYNOPSIS

  my $type = Sirius::OS::Mounts->remote('/srv/app');    # "nfs4", or undef

=head1 METHODS

=head2 remote

  my $type = Sirius::OS::Mounts->remote($path);

The type of the file system if files in it can change without this kernel being told: NFS, SMB, and what virtual machines, Docker
Desktop (C<fakeowner>) and FUSE mount. Else undef. C<$path> is absolute and without symbolic links.

=head1 SEE ALSO

proc(5), F</proc/self/mountinfo>.

=cut
