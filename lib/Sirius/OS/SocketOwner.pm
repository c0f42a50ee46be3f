package Sirius::OS::SocketOwner;

use strict;
use warnings;

use File::Spec ();
use Sirius::Base::Text;
use Sirius::OS::Proc;

use constant { ACCEPTS => 0x10000, LISTEN => 0x0A };    # of linux/net.h and net/tcp_states.h

sub by {
    my ( $class, $owner ) = @_;
    return '' if !$owner || !$owner->{pid};
    return $owner->{pid} == $$ ? ' by this server: it is given twice' : " by $owner->{text}";
}

# Relative or not, or in the abstract namespace, where it begins with a NUL byte
sub path {
    my ( $class, $path ) = @_;
    return $class->unix( $path =~ s/\A\0/\@/r, $path =~ /\A\0/ ? () : File::Spec->rel2abs($path) );
}

sub tcp {
    my ( $class, $port ) = @_;
    for my $table (qw(tcp tcp6)) {
        for my $row ( map { [split] } split /\n/, Sirius::OS::Proc->text("/proc/net/$table") ) {
            next                       if @$row < 10 || $row->[1] !~ /:([0-9A-F]{4})\z/ || hex $1 != $port;
            return _owner( $row->[9] ) if hex $row->[3] == LISTEN;
        }
    }
    return;
}

# Without a connection to it, which a running server would see
sub unix {
    my ( $class, @paths ) = @_;
    my %path = map { $_ => 1 } @paths;
    for my $row ( map { [ split ' ', $_, 8 ] } split /\n/, Sirius::OS::Proc->text('/proc/net/unix') ) {
        next if @$row < 8 || $row->[3] !~ /\A[0-9A-Fa-f]+\z/ || !( hex $row->[3] & ACCEPTS );
        my $name = $row->[7];
        return _owner( $row->[6] ) if $path{$name};

        # A socket that took its path by a rename (Sirius::Listen::Unix) has the name from before here
        my ( $renamed, $pid ) = $name =~ /\A(.+)[.](\d+)\z/s or next;
        my $owner = $path{$renamed} ? _owner( $row->[6] ) : {};
        return $owner if $owner->{pid} && $owner->{pid} == $pid;
    }
    return;
}

# A child has the sockets of its parent: the parent is named
sub _owner {
    my $inode   = shift;
    my %pid     = map  { $_ => 1 } _pids($inode);
    my @names   = map  { [ $_, Sirius::OS::Proc->name($_) ] } sort { $a <=> $b } keys %pid;
    my $sirius  = grep { $_->[1] =~ /\Asirius\b/ } @names;
    my ($first) = ( grep( { !$pid{ Sirius::OS::Proc->parent( $_->[0] ) } } @names ), @names );
    return {} if !$first;
    return {
        pid    => $first->[0],
        sirius => $sirius,
        text   => Sirius::Base::Text->harmless("$first->[1] (PID $first->[0])")
    };
}

# Only root can know it of all processes
sub _pids {
    my $inode = shift;
    my @pids;
    for my $dir ( glob '/proc/[0-9]*/fd' ) {
        opendir my $fds, $dir or next;
        my $has = grep { ( readlink("$dir/$_") || '' ) eq "socket:[$inode]" } readdir $fds;
        closedir $fds;
        push @pids, $dir =~ /(\d+)/ if $has;
    }
    return @pids;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::SocketOwner - the process that listens on an address

=head1 SYNOPSIS

  use Sirius::OS::SocketOwner;

  my $owner = Sirius::OS::SocketOwner->tcp(5000);
  print "in use by $owner->{text}\n" if $owner && $owner->{pid};

=head1 DESCRIPTION

Reads F</proc>, and connects to nothing.

=head1 METHODS

=head2 by

  die 'in use' . Sirius::OS::SocketOwner->by($owner) . "\n";

The end of an error message: C< by nginx (PID 4711)>, or nothing if the process is not known.

=head2 path, tcp, unix

  my $owner = Sirius::OS::SocketOwner->path($path);
  my $owner = Sirius::OS::SocketOwner->tcp($port);
  my $other = Sirius::OS::SocketOwner->unix( $path, ... );

Returns undef if nobody listens on this path, as it was bound or absolute, on this port, or on one of these paths as the kernel has
them, where that of an abstract socket begins with C<@>; for C<path> it begins with a NUL byte.
Otherwise a hash with the C<pid> of the process, a C<text> with its name and its PID, and C<sirius>, which is true for a server of
Sirius. The hash is empty if the process may not be seen: that of another user, or of another container.

=head1 SEE ALSO

L<Sirius::OS::Proc>, L<Sirius::CLI::Check::Addresses>, L<Sirius::Listen::Listener>.

=cut
