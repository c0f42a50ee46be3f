package Sirius::OS::Sampler;

use strict;
use warnings;

use Errno  qw(ENOEXEC ENOSYS ENOTSUP ESRCH);
use Sirius ();                                 # xs/Sirius.xs has _at, of_child, permit and stack
use Sirius::OS::Proc;

use constant CAP_SYS_PTRACE => 19;

# Programs and libraries that have the code of perl
my $PERL = qr{/(?:lib)?perl[-\w.]*\z};

# Where it is not the fault of the process or of its user: a machine on which nobody can do that. Else undef
sub impossible {
    my ( $class, $error ) = @_;
    return
        'this kernel has no process_vm_readv (CONFIG_CROSS_MEMORY_ATTACH), or this is an emulator such as qemu-user'
        if $error == ENOSYS;
    return 'that takes Linux, with /proc'                                         if $error == ENOTSUP;
    return 'the code of this perl is not where it can be found (dl_iterate_phdr)' if $error == ENOEXEC;
    return;
}

sub new {
    my ( $class, $pid, $reader ) = @_;
    $reader //= 'this command';
    if ( !Sirius::OS::Proc->mounted ) {
        local $! = ENOTSUP;
        die _why( $pid, $reader, $! ) . "\n";
    }
    my @files = _files( $pid, $reader );
    for my $file (@files) {
        my @found = $class->_at( $pid, $file->[0] ) or next;
        return $found[0]                     if $found[0];
        die _why( $pid, $reader, $! ) . "\n" if $! != ESRCH;
        die "there is no process $pid\n";
    }
    my ($other) = grep { $_->[1] =~ $PERL } @files;
    die "process $pid runs another perl than $reader: $other->[1], not the one of $^X; run "
        . "the sirius that is installed for that perl\n"
        if $other;
    my $program = readlink "/proc/$pid/exe";
    die "process $pid does not run perl" . ( defined $program ? ", but $program" : '' ) . "\n";
}

# Where each file that it has mapped begins: address and path. Perl itself first: there may be hundreds
sub _files {
    my ( $pid, $reader ) = @_;
    if ( !-e "/proc/$pid" ) { die "there is no process $pid\n" }
    open my $in, '<:raw', "/proc/$pid/maps" or die _why( $pid, $reader, $! ) . "\n";
    my ( @files, %seen );
    while ( defined( my $line = readline $in ) ) {
        my ( $from, $path ) = $line =~ m{\A([0-9a-f]+)-\S+ \S+ 0+ \S+ \d+ +(/.*)\n} or next;
        $path =~ s/ [(]deleted[)]\z//;
        push @files, [ _number($from), $path ] if !$seen{$path}++;
    }
    close $in or die _why( $pid, $reader, $! ) . "\n";
    return ( grep { $_->[1] =~ $PERL } @files ), grep { $_->[1] !~ $PERL } @files;
}

# Of 64 bits, about which hex would complain
sub _number {
    my $hex = shift;
    return hex( substr $hex, -8 ) + ( length $hex > 8 ? hex( substr $hex, 0, -8 ) << 32 : 0 );
}

# Why the kernel does not let us read the memory of a process, and what to do
sub _why {
    my ( $pid, $reader, $error ) = @_;
    my ($theirs) = Sirius::OS::Proc->text("/proc/$pid/status")                  =~ /^Uid:\s+(\d+)/m;
    my ($rights) = Sirius::OS::Proc->text('/proc/self/status')                  =~ /^CapEff:\s+([0-9a-f]+)/m;
    my ($scope)  = Sirius::OS::Proc->text('/proc/sys/kernel/yama/ptrace_scope') =~ /\A(\d+)/;
    my $may      = defined $rights && hex( substr $rights, -8 ) & 1 << CAP_SYS_PTRACE;
    my $what     = "cannot read the memory of process $pid: $error; ";
    my $never    = __PACKAGE__->impossible($error);
    return $what . $never if defined $never;
    return $what . 'the kernel allows it to nobody (kernel.yama.ptrace_scope is 3 until the next boot)'
        if defined $scope && $scope == 3;
    return $what . "it runs as user $theirs: run $reader as that user or as root"
        if defined $theirs && $theirs != $> && $> != 0;
    return
          $what
        . "$reader has no capability SYS_PTRACE, as in a container that is run without --cap-add SYS_PTRACE: add it, or "
        . "run $reader outside of the container"
        if $> == 0 && !$may;
    return $what
        . "the kernel allows it only to root (kernel.yama.ptrace_scope is $scope): use sudo, or set it to 0"
        if $scope && !$may;
    return $what . "it has changed its user, or has gained rights by its program: run $reader as root"
        if !$may;
    return $what . 'a security module such as AppArmor or SELinux may forbid it';
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Sampler - the Perl stack of a running process, again and again

=head1 SYNOPSIS

  use Sirius::OS::Sampler;

  my $sampler = Sirius::OS::Sampler->new($pid);
  my ( $labels, $state, $moved ) = $sampler->stack or warn $!;
  print "$_\n" for @$labels;

=head1 DESCRIPTION

Reads the memory of a process that runs the same perl as this one. It need not be a child; it is neither stopped nor interrupted,
and has nothing to do for it. A stack takes 20 to 200 microseconds.

It has subs, the eval of strings, C<require>, blocks of C<sort>, code in regular expressions, and what perl calls by itself: signal
handlers, overloaded operators, tied variables, C<DESTROY>. A sub without a name has where it begins, as C<main::__ANON__[app.psgi:12]>.
So have subs that are given their names while the program runs, as by L<Sub::Util/set_subname>: closures until it is known which name
their code has, for some 16 samples; and those that are given different names one after the other.
The innermost label may be a sub in C or a function of perl. A sub in C that has called a sub of Perl is not seen. Of a perl with threads,
the main one is read.

A frame is there only if it is certain (F<xs/judge.c>); one of a sub that is over within microseconds may have no line. If inner frames are over
before they are known, the outer ones are there, so that their time is not counted for other code. That happens to code that is compiled
each time that it runs and takes less than 100 microseconds, as that of some strings, and mostly to code in patterns that are compiled at
run time.

=head1 METHODS

=head2 new

  my $sampler = Sirius::OS::Sampler->new($pid);

Dies with a line that says why when it is impossible: there is no such process, it does not run perl, or not the same one; or the
kernel forbids it, then with what to do. The second argument is the name of this process in that line (default: C<this command>).

=head2 impossible

  my $why = Sirius::OS::Sampler->impossible($error);

Why no process of this machine can be read, if that is what the error means: C<ENOSYS>. Else undef.

=head2 of_child

  my $sampler = Sirius::OS::Sampler->of_child($pid) or warn $!;

Of a child of this process that has executed no other program: its interpreter lies where ours does. Nothing is checked.

=head2 permit

  Sirius::OS::Sampler->permit;

Lets processes of the same user read the memory of this one, also after a change of the user, when the kernel forbids it
(prctl(2), C<PR_SET_DUMPABLE>).

=head2 stack

  my ( $labels, $state, $moved ) = $sampler->stack;
  my ( $labels, $state, $moved ) = $sampler->stack('Sirius::Worker::run');

The stack now, outermost first, as labels of L<Sirius::Profile::Samples>. The sub that is named, and whatever has called it, is left
out; without that sub the list is empty. C<$state> is a letter as in proc_pid_stat(5). C<$moved> is true if the inner frames changed too
fast; then C<(moved)> is the last label. An empty list if the process has ended, or if its stack makes no sense at the moment;
C<$!> says why.

=head1 SEE ALSO

L<Sirius::Profile::Samples>, L<Sirius::Process::SlowLog>, process_vm_readv(2).

=cut
