package Sirius::OS::Proc;

use strict;
use warnings;

use List::Util qw(sum);
use POSIX      qw(SIGUSR2);
use Sirius::OS::Syscall;

use constant DEPTH => 4;    # processes between a supervisor and a worker, at most

my $PAGE  = POSIX::sysconf( POSIX::_SC_PAGESIZE() );
my %STATE = (
    D => 'waiting for a disk or another device',
    R => 'running',
    S => 'sleeping',
    T => 'stopped',
    t => 'stopped by a debugger',
    Z => 'ended',
);
my $TICKS = POSIX::sysconf( POSIX::_SC_CLK_TCK() );

sub born {
    my ( $class, $pid )  = @_;
    my ( $state, @more ) = _stat($pid) or return;
    return $state =~ /[ZX]/ ? undef : $more[18];
}

sub children {
    my ( $class, $parent ) = @_;
    opendir my $dir, '/proc' or return;
    my @all = grep {/\A\d+\z/} readdir $dir;
    closedir $dir;
    @all = sort { $a <=> $b } grep { $class->parent($_) == $parent } @all;
    return @all;
}

sub cpu {
    my ( $class, $pid ) = @_;
    my @fields = _stat($pid) or return;
    return ( $fields[11] + $fields[12] ) / $TICKS;
}

# Whether one of these is above it, as the parent of its parent and so on
sub descends {
    my ( $class, $pid, @from ) = @_;
    my %above = map { $_ => 1 } @from;
    for ( 1 .. DEPTH ) {
        $pid = $class->parent($pid);
        return 1 if $above{$pid};
        return 0 if $pid <= 1;
    }
    return 0;
}

sub descriptors {
    my ( $class, $pid ) = @_;
    return Sirius::OS::Proc->text("/proc/$pid/limits") =~ /^Max open files\s+(\d+)/m ? $1 : undef;
}

sub mounted { return -e '/proc/self/stat' }

sub name {
    my ( $class, $pid ) = @_;
    return $class->text("/proc/$pid/comm") =~ s/\n\z//r;
}

# Kills in our own control group, if it can be found: other processes of the machine do not count
sub oom_kills {
    my $groups = Sirius::OS::Proc->text('/proc/self/cgroup');
    my ($two)  = $groups =~ /^0::(.*)$/m;
    my ($one)  = $groups =~ /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m;
    my @files  = '/proc/vmstat';
    unshift @files, "/sys/fs/cgroup/memory$one/memory.oom_control" if defined $one;
    unshift @files, "/sys/fs/cgroup$two/memory.events"             if defined $two;
    for my $file (@files) {
        return $1 if Sirius::OS::Proc->text($file) =~ /^oom_kill (\d+)$/m;
    }
    return 0;
}

sub parent {
    my ( $class, $pid )    = @_;
    my ( undef,  $parent ) = _stat($pid);
    return $parent || 0;
}

# undef: it is gone, or of another user, or the kernel does not know
sub private {
    my ( $class, $pid ) = @_;
    my %kib = Sirius::OS::Proc->text("/proc/$pid/smaps_rollup") =~ /^(Private_\w+):\s+(\d+) kB$/mg;
    return %kib ? 1024 * ( $kib{Private_Clean} + $kib{Private_Dirty} ) : undef;
}

# State, seconds of CPU time, and how often it has been off the CPU; nothing if the kernel does not tell
sub progress {
    my ( $class, $pid ) = @_;
    my @fields   = _stat($pid) or return;
    my $status   = Sirius::OS::Proc->text("/proc/$pid/status");
    my $switches = sum( 0, $status =~ /^(?:non)?voluntary_ctxt_switches:\s*(\d+)$/mg );
    return ( $fields[0], ( $fields[11] + $fields[12] ) / $TICKS, $switches );
}

sub resident {
    my ( $class, $pid ) = @_;
    my ( undef, $pages ) = split ' ', _line("$pid/statm");
    return ( $pages || 0 ) * $PAGE;
}

# State and activity of a process, as far as the kernel shows them: "stopped (state T), wait channel
# do_signal_stop"
sub stands {
    my ( $class, $pid ) = @_;
    my ($state) = _stat($pid) or return 'the kernel does not tell where';
    my $call    = Sirius::OS::Syscall->name( _line("$pid/syscall") =~ /\A(\d+)/ );
    my $channel = _line("$pid/wchan");
    my @words   = ( $STATE{$state} || 'in an unknown state' ) . " (state $state)";
    push @words, "system call $call"     if length $call;
    push @words, "wait channel $channel" if $channel =~ /\A[a-z_]\w*\z/i;
    return join ', ', @words;
}

# '' if there is no such file, or the process is gone, which may happen after the open too
sub text {
    my ( $class, $file ) = @_;
    open my $in, '<:raw', $file or return '';
    local $/ = undef;
    my $text = readline $in;
    close $in or return '';
    return defined $text ? $text : '';
}

# Why a process makes no progress, as a list of words
sub waits {
    my ( $class, $pid ) = @_;
    my $status    = Sirius::OS::Proc->text("/proc/$pid/status");
    my $call      = Sirius::OS::Syscall->name( _line("$pid/syscall") =~ /\A(\d+)/ );
    my $running   = _line("$pid/syscall") =~ /\Arunning/;
    my $channel   = _line("$pid/wchan");
    my ($blocked) = $status =~ /^SigBlk:\s*([0-9a-f]+)$/m;
    my @words;
    push @words, 'it is stopped'                                   if $status =~ /^State:\s*T/m;
    push @words, 'it is running C code outside of any system call' if $running;
    push @words, "it is in the system call $call"                  if length $call;
    push @words, "wait channel $channel"                           if $channel =~ /\A[a-z_]\w*\z/i;
    push @words, 'the signal USR2 is blocked'
        if defined $blocked && hex( substr $blocked, -4 ) & 1 << SIGUSR2 - 1;
    return @words;
}

sub _line {
    my $file = shift;
    return Sirius::OS::Proc->text("/proc/$file") =~ s/\n.*//sr;
}

# State, parent and so on: the fields of proc_pid_stat(5) from the third. The second field may contain
# anything, line feeds as well
sub _stat {
    my $pid = shift;
    my ($fields) = Sirius::OS::Proc->text("/proc/$pid/stat") =~ /\A.*\) (.*)/s or return;
    return split ' ', $fields;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Proc - what the kernel says about a process

=head1 SYNOPSIS

  use Sirius::OS::Proc;

  my $bytes = Sirius::OS::Proc->resident($pid);

=head1 DESCRIPTION

Reads F</proc>. If it is not mounted, every process counts as gone.

=head1 METHODS

=head2 born

  my $ticks = Sirius::OS::Proc->born($pid);

The start of the process, in clock ticks since the boot; together with the PID it identifies the process. Undefined if
it is gone or a zombie.

=head2 children

  my @pids = Sirius::OS::Proc->children($pid);

The processes whose parent it is.

=head2 cpu

  my $seconds = Sirius::OS::Proc->cpu($pid);

The processor time that the process has used, in user and system mode, in seconds; undef if it is gone.

=head2 descends

  if ( Sirius::OS::Proc->descends( $pid, @from ) ) { ... }

True if one of the processes C<@from> is the parent of the process, or the parent of its parent, and so on up to four.

=head2 descriptors

  my $limit = Sirius::OS::Proc->descriptors($pid);

How many descriptors the process may have open; undef if that can't be read.

=head2 mounted

  my $there = Sirius::OS::Proc->mounted;

True if F</proc> is mounted. Without it the server serves, but does not know the memory and the names of processes.

=head2 name

  my $name = Sirius::OS::Proc->name($pid);

The first 15 bytes of the name of its program; '' when it is gone.

=head2 oom_kills

  my $count = Sirius::OS::Proc->oom_kills;

How many processes of our control group (else of the machine) the kernel has killed because memory ran out. Who was killed by
signal 9 when this has grown, was one of them.

=head2 parent

  my $pid = Sirius::OS::Proc->parent($pid);

PID of its parent; 0 when it is gone.

=head2 private

  my $bytes = Sirius::OS::Proc->private($pid);

The memory that the process shares with no other, in bytes: the private pages of F</proc/PID/smaps_rollup>. Undef if the process is gone, or if the
kernel does not tell us: it does so for processes of the same user that have not changed their user, and to root. It takes the kernel
some 0.3 ms for 21 MB, 0.9 ms for 56 MB.

=head2 progress

  my ( $state, $cpu, $switches ) = Sirius::OS::Proc->progress($pid);

Its state, a letter as in proc_pid_stat(5), its CPU time in seconds, and how often it has lost the CPU: what changes while it does
something. Nothing if it is gone or the kernel does not tell.

=head2 resident

  my $bytes = Sirius::OS::Proc->resident($pid);

The resident memory of the process, in bytes; 0 if it is gone.

=head2 stands

  my $text = Sirius::OS::Proc->stands($pid);

Its state and, as far as the kernel tells, what it waits for: C<stopped (state T), wait channel do_signal_stop>.

=head2 text

  my $text = Sirius::OS::Proc->text('/proc/self/limits');

What is in a file, as bytes; '' if it cannot be read.

=head2 waits

  my @words = Sirius::OS::Proc->waits($pid);    # 'it is in the system call flock', 'wait channel locks_lock_inode_wait'

Where the process waits, for a log. Empty if the kernel does not say, which it does only to root and to processes that
may debug it.

=head1 SEE ALSO

proc_pid_stat(5), proc_pid_statm(5).

=cut
