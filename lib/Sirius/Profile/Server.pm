package Sirius::Profile::Server;

use strict;
use warnings;

use Errno qw(EACCES);
use Fcntl qw(O_RDONLY);
use POSIX ();
use Sirius::OS::Proc;
use Sirius::Scoreboard;

my $BOARD = qr{\A(?:/dev/shm|/tmp)?/memfd:sirius scoreboard};    # src/share/scoreboard.c, src/net/memfile.h

sub all {
    my %pids;
    for my $pid ( map {/(\d+)\z/} glob '/proc/[0-9]*' ) {
        my ($file) = _board_of($pid) or next;
        my ( $device, $inode ) = stat $file or next;
        push @{ $pids{"$device $inode"} }, $pid;
    }
    my @first = sort { $a <=> $b } map { _first(@$_) } values %pids;
    return @first;
}

sub board {
    my ( $class, $pid ) = @_;
    my ($file) = _board_of($pid);
    my $error  = $!;
    my $fd     = defined $file ? POSIX::open( $file, O_RDONLY ) : undef;
    return Sirius::Scoreboard->look($fd)                                            if defined $fd;
    die "there is no process $pid\n"                                                if !-d "/proc/$pid";
    die "process $pid is not the supervisor of a Sirius server\n"                   if !$error;
    die { forbidden => "cannot look into the Sirius server with PID $pid: $error" } if $error == EACCES;
    die "process $pid: $error\n";
}

# A file of /proc that is the scoreboard of that process. If there is none, $! says why, or is 0
sub _board_of {
    my $pid = shift;
    opendir my $dir, "/proc/$pid/fd" or return;
    my ( $error, $found ) = (0);
    for my $file ( map {"/proc/$pid/fd/$_"} grep {/\d/} readdir $dir ) {
        my $to = readlink $file;
        $error = $! + 0 if !defined $to;
        $found = $file  if defined $to && $to =~ $BOARD;
    }
    closedir $dir;
    $! = $error;
    return defined $found ? $found : ();
}

# The process of a server that no other of them has started
sub _first {
    my @pids = @_;
    my %is   = map  { $_ => 1 } @pids;
    my @top  = grep { !$is{ Sirius::OS::Proc->parent($_) } } @pids;
    return @top ? $top[0] : ();
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Server - a running server, seen from another process

=head1 SYNOPSIS

  use Sirius::Profile::Server;

  my ($pid) = Sirius::Profile::Server->all;
  my $board = Sirius::Profile::Server->board($pid);
  print "worker $_->[1]: $_->[3]\n" for $board->requests;

=head1 DESCRIPTION

Finds servers by the memory that their processes share, in F</proc>. The kernel shows that of processes of the same user, and of all
processes to root.

=head1 METHODS

=head2 all

  my @pids = Sirius::Profile::Server->all;

The PIDs of the supervisors of all servers that can be seen.

=head2 board

  my $board = Sirius::Profile::Server->board($pid);

Its L<Sirius::Scoreboard>, to read. Dies with a line that says why if that is impossible, or with a hash whose C<forbidden> says it if the
kernel does not allow it.

=head1 SEE ALSO

L<Sirius::Profile::Collector>, L<Sirius::CLI::Profile>.

=cut
