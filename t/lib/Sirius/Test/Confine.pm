package Sirius::Test::Confine;

# Allows a command no system calls but those named (seccomp): any other one kills the process, which the log
# of a server reports as signal 31.
#
#   my $confine = Sirius::Test::Confine->new(qw(read write ...)) or skip ...;
#   Sirius::Test::Server->start( command => [ $confine->path, $^X, 'bin/sirius' ], ... );
#
# Or one that takes some away, as an older kernel does:
#
#   my $old = Sirius::Test::Confine->without( ENOSYS => 'openat2', 'PR_SET_DUMPABLE' );    # the last by prctl

use strict;
use warnings;
use File::Temp;
use Sirius::Test::Server;

# Names of other architectures are left out. Jumps have 8 bits and can't reach the end of a long list, so each
# call has two instructions of its own.
my $SOURCE = <<'SOURCE';
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
#define FAIL(n, err) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member)),
#define FAIL_PRCTL(what, err) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_prctl, 0, 4), LOAD(args[0]) FAIL(what, err) LOAD(nr)
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
CALLS
        BPF_STMT(BPF_RET | BPF_K, OTHERS),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 125;
    execvp(argv[1], argv + 1);
    return 127;
}
SOURCE

# Returns nothing if it can't be compiled, or the kernel has no filters
sub new {
    my ( $class, @calls ) = @_;
    return $class->_compile( SECCOMP_RET_KILL_PROCESS => map {"#ifdef __NR_$_\nALLOW(__NR_$_)\n#endif\n"}
            @calls );
}

sub without {
    my ( $class, $error, @calls ) = @_;
    return $class->_compile( SECCOMP_RET_ALLOW =>
            map { /\APR_/ ? "FAIL_PRCTL($_, $error)\n" : "#ifdef __NR_$_\nFAIL(__NR_$_, $error)\n#endif\n" }
            @calls );
}

sub _compile {
    my ( $class, $others, @rules ) = @_;
    my $self = bless { dir => File::Temp->newdir }, $class;
    my $text = $SOURCE =~ s/\bOTHERS\b/$others/r =~ s/^CALLS\n/join '', @rules/mer;
    my $file = Sirius::Test::Server::spew( "$self->{dir}/confine.c", $text );
    return if system "cc -o $self->{dir}/confine $file 2>$self->{dir}/log";
    return if system( $self->path, 'true' );
    return $self;
}

sub path { return shift->{dir} . '/confine' }

1;
