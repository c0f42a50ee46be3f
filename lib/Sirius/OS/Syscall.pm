package Sirius::OS::Syscall;

use strict;
use warnings;

use Config qw(%Config);

# System calls in which a process may stay for long; from asm/unistd_64.h and asm-generic/unistd.h
my %NAMES = (
    x86_64 => {
        0   => 'read',
        1   => 'write',
        2   => 'open',
        7   => 'poll',
        17  => 'pread64',
        18  => 'pwrite64',
        19  => 'readv',
        20  => 'writev',
        23  => 'select',
        34  => 'pause',
        35  => 'nanosleep',
        40  => 'sendfile',
        42  => 'connect',
        43  => 'accept',
        44  => 'sendto',
        45  => 'recvfrom',
        46  => 'sendmsg',
        47  => 'recvmsg',
        61  => 'wait4',
        65  => 'semop',
        70  => 'msgrcv',
        72  => 'fcntl',
        73  => 'flock',
        74  => 'fsync',
        75  => 'fdatasync',
        128 => 'rt_sigtimedwait',
        130 => 'rt_sigsuspend',
        202 => 'futex',
        219 => 'restart_syscall',
        220 => 'semtimedop',
        230 => 'clock_nanosleep',
        232 => 'epoll_wait',
        247 => 'waitid',
        257 => 'openat',
        270 => 'pselect6',
        271 => 'ppoll',
        281 => 'epoll_pwait',
        288 => 'accept4',
        299 => 'recvmmsg',
        318 => 'getrandom',
        441 => 'epoll_pwait2',
    },
    aarch64 => {
        22  => 'epoll_pwait',
        25  => 'fcntl',
        32  => 'flock',
        56  => 'openat',
        63  => 'read',
        64  => 'write',
        65  => 'readv',
        66  => 'writev',
        67  => 'pread64',
        68  => 'pwrite64',
        71  => 'sendfile',
        72  => 'pselect6',
        73  => 'ppoll',
        82  => 'fsync',
        83  => 'fdatasync',
        95  => 'waitid',
        98  => 'futex',
        101 => 'nanosleep',
        115 => 'clock_nanosleep',
        128 => 'restart_syscall',
        133 => 'rt_sigsuspend',
        137 => 'rt_sigtimedwait',
        188 => 'msgrcv',
        192 => 'semtimedop',
        193 => 'semop',
        202 => 'accept',
        203 => 'connect',
        206 => 'sendto',
        207 => 'recvfrom',
        211 => 'sendmsg',
        212 => 'recvmsg',
        242 => 'accept4',
        243 => 'recvmmsg',
        260 => 'wait4',
        278 => 'getrandom',
        441 => 'epoll_pwait2',
    },
);

my ($machine) = $Config{archname} =~ /\A(x86_64|aarch64)(?!.*x32)/;
my $names = $NAMES{ $machine || '' } || {};

sub name {
    my ( $class, $number ) = @_;
    return '' if !defined $number;
    return $names->{$number} || "number $number";
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Syscall - names of system calls

=head1 SYNOPSIS

  use Sirius::OS::Syscall;

  my $name = Sirius::OS::Syscall->name(73);    # flock, on x86_64

=head1 METHODS

=head2 name

  my $name = Sirius::OS::Syscall->name($number);

The name of a system call in which a process may wait for long, on the processor that perl was built for: x86_64 and aarch64 are
known. C<number 73> for any other, '' for undef.

=head1 SEE ALSO

L<Sirius::OS::Proc>.

=cut
