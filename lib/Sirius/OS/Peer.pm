package Sirius::OS::Peer;

use strict;
use warnings;

use Socket qw(SOL_SOCKET SO_PEERCRED);

# Of macOS and FreeBSD, where perl knows the names of neither
use constant { SOL_LOCAL => 0, LOCAL_PEERCRED => 1, LOCAL_PEERPID => 2 };

# How to ask a system: PID and user ID
my %ASK = (
    darwin => sub {
        my $fh   = shift;
        my $cred = getsockopt( $fh, SOL_LOCAL, LOCAL_PEERCRED ) // return;
        my $pid  = getsockopt $fh, SOL_LOCAL, LOCAL_PEERPID;
        return defined $pid ? unpack 'l', $pid : 0, unpack 'x4 L', $cred;    # struct xucred: version, uid
    },
    freebsd => sub {
        my $cred = getsockopt( shift, SOL_LOCAL, LOCAL_PEERCRED ) // return;
        my ( $uid, $pid ) = unpack 'x4 L x72 l', $cred;    # the same, groups, pid since FreeBSD 13
        return $pid // 0, $uid;
    },
    linux => sub {
        my $cred = getsockopt( shift, SOL_SOCKET, SO_PEERCRED ) // return;
        return ( unpack 'L3', $cred )[ 0, 1 ];             # struct ucred: pid, uid, gid
    },
);

sub of {
    my ( $class, $fh ) = @_;
    return $ASK{$^O} ? $ASK{$^O}->($fh) : ();
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Peer - who has the other end of a unix socket

=head1 SYNOPSIS

  use Sirius::OS::Peer;

  my ( $pid, $uid ) = Sirius::OS::Peer->of($socket);

=head1 METHODS

=head2 of

  my ( $pid, $uid ) = Sirius::OS::Peer->of($socket);

PID and user ID of the process that has connected, or that listens, as the kernel knows them. The PID is 0 for a process that is not
visible, as from another container. The empty list if the kernel does not say.

=head1 SEE ALSO

L<Sirius::OS::Origin>, unix(7) and unix(4).

=cut
