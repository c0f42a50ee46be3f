package Sirius::Profile::Server;

use strict;
use warnings;

use Errno qw(EACCES);
use Fcntl qw(O_NONBLOCK O_RDONLY);
use POSIX ();
use Sirius::OS::Proc;
use Sirius::Scoreboard;

use constant { F_GET_SEALS => 1034, F_SEAL_SHRINK => 2 };    # of linux/fcntl.h

my $BOARD = qr{\A(?:/dev/shm|/tmp)?/memfd:sirius scoreboard};    # src/share/scoreboard.c, src/net/memfile.h
my $NAME  = 'sirius';                                            # of a supervisor: Sirius::OS::Title

sub all {
    my ( %pids, @all );
    for my $pid ( grep { Sirius::OS::Proc->name($_) eq $NAME } map {/(\d+)\z/} glob '/proc/[0-9]*' ) {
        my ($fh) = _board_of($pid) or next;
        my ( $device, $inode ) = stat $fh;
        push @{ $pids{"$device $inode"} }, $pid;
    }
    for my $pid ( map { _first(@$_) } values %pids ) {
        push @all, { pid => $pid, uid => ( stat "/proc/$pid" )[4] // next };
    }
    @all = sort { $a->{pid} <=> $b->{pid} } @all;
    return @all;
}

sub board {
    my ( $class, $pid ) = @_;
    my ($fh) = _board_of($pid);
    my $error = $!;
    return Sirius::Scoreboard->look( POSIX::dup( fileno $fh ) )                     if $fh;
    die "there is no process $pid\n"                                                if !-d "/proc/$pid";
    die "process $pid is not the supervisor of a Sirius server\n"                   if !$error;
    die { forbidden => "cannot look into the Sirius server with PID $pid: $error" } if $error == EACCES;
    die "process $pid: $error\n";
}

sub is_supervisor {
    my ( $class, $pid ) = @_;
    return Sirius::OS::Proc->name($pid) eq $NAME && _board_of($pid) ? 1 : 0;
}

# The scoreboard of that process, opened to read. If there is none, $! says why, or is 0
sub _board_of {
    my $pid = shift;
    opendir my $dir, "/proc/$pid/fd" or return;
    my ( $error, $found ) = (0);
    for my $file ( map {"/proc/$pid/fd/$_"} grep {/\d/} readdir $dir ) {
        my $to = readlink $file;
        if    ( !defined $to )  { $error = $! + 0 }
        elsif ( $to =~ $BOARD ) { $found = _opened( $file, $to ) // $found }
    }
    closedir $dir;
    $! = $error;
    return $found // ();
}

# The process of a server that is below no other of them, and has children: not a command that looks at it
sub _first {
    my @pids = @_;
    return @pids if @pids == 1;
    my @top = grep { !Sirius::OS::Proc->descends( $_, @pids ) } @pids;
    my ($parent) = grep { Sirius::OS::Proc->children($_) } @top;
    return $parent // $top[0] // ();
}

# Undef if it only has that name, which anybody may choose. A FIFO could make us wait, and what can be cut
# could end us with SIGBUS when it is mapped. A portable build has files without seals
sub _opened {
    my ( $file, $to ) = @_;
    return if !-f $file;
    sysopen my $fh, $file, O_RDONLY | O_NONBLOCK or return;
    my $seals = fcntl $fh, F_GET_SEALS, 0;
    return if $to =~ m{\A/memfd:} ? !( ( $seals // 0 ) & F_SEAL_SHRINK ) : ( stat $fh )[4] != $>;
    return if !-f $fh;
    my $read = sysread $fh, my $layout, 4;
    return ( $read || 0 ) == 4 && unpack( 'L', $layout ) ? $fh : undef;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Server - a running server, seen from another process

=head1 SYNOPSIS

  use Sirius::Profile::Server;

  my ($server) = Sirius::Profile::Server->all;
  my $board    = Sirius::Profile::Server->board( $server->{pid} );
  print "worker $_->[1]: $_->[3]\n" for $board->requests;

=head1 DESCRIPTION

Finds servers by the memory that their processes share, in F</proc>. The kernel shows that of processes of the same user, and of all processes to root. Anybody can make memory of that name, so it has
to be sealed as that of a server, and the process to have the name of a supervisor.

=head1 METHODS

=head2 all

  my @servers = Sirius::Profile::Server->all;

Of each server that can be seen in F</proc> the C<pid> of its supervisor and the C<uid> of that.

=head2 board

  my $board = Sirius::Profile::Server->board($pid);

Its L<Sirius::Scoreboard>, to read. Dies with a line that says why if that is impossible, or with a hash whose C<forbidden> says it if the
kernel does not allow it.

=head2 is_supervisor

  if ( Sirius::Profile::Server->is_supervisor($pid) ) { ... }

Whether that process is the supervisor of a server, as far as F</proc> shows it.

=head1 SEE ALSO

L<Sirius::Profile::Collector>, L<Sirius::CLI::Profile>.

=cut
