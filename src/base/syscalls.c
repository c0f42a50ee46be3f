#include "syscalls.h"

#include <stddef.h>
#if __has_include(<sys/syscall.h>)
#include <sys/syscall.h>
#endif

/* An architecture need not have all of them. */
const char *sr_syscall_name(long number)
{
    static const struct {
        long number;
        const char *name;
    } known[] = {
#ifdef SYS_accept
        {SYS_accept, "accept"},
#endif
#ifdef SYS_accept4
        {SYS_accept4, "accept4"},
#endif
#ifdef SYS_clock_nanosleep
        {SYS_clock_nanosleep, "clock_nanosleep"},
#endif
#ifdef SYS_connect
        {SYS_connect, "connect"},
#endif
#ifdef SYS_epoll_pwait
        {SYS_epoll_pwait, "epoll_pwait"},
#endif
#ifdef SYS_epoll_pwait2
        {SYS_epoll_pwait2, "epoll_pwait2"},
#endif
#ifdef SYS_epoll_wait
        {SYS_epoll_wait, "epoll_wait"},
#endif
#ifdef SYS_fcntl
        {SYS_fcntl, "fcntl"},
#endif
#ifdef SYS_fdatasync
        {SYS_fdatasync, "fdatasync"},
#endif
#ifdef SYS_flock
        {SYS_flock, "flock"},
#endif
#ifdef SYS_fsync
        {SYS_fsync, "fsync"},
#endif
#ifdef SYS_futex
        {SYS_futex, "futex"},
#endif
#ifdef SYS_getrandom
        {SYS_getrandom, "getrandom"},
#endif
#ifdef SYS_msgrcv
        {SYS_msgrcv, "msgrcv"},
#endif
#ifdef SYS_nanosleep
        {SYS_nanosleep, "nanosleep"},
#endif
#ifdef SYS_open
        {SYS_open, "open"},
#endif
#ifdef SYS_openat
        {SYS_openat, "openat"},
#endif
#ifdef SYS_pause
        {SYS_pause, "pause"},
#endif
#ifdef SYS_poll
        {SYS_poll, "poll"},
#endif
#ifdef SYS_ppoll
        {SYS_ppoll, "ppoll"},
#endif
#ifdef SYS_pread64
        {SYS_pread64, "pread64"},
#endif
#ifdef SYS_pselect6
        {SYS_pselect6, "pselect6"},
#endif
#ifdef SYS_pwrite64
        {SYS_pwrite64, "pwrite64"},
#endif
#ifdef SYS_read
        {SYS_read, "read"},
#endif
#ifdef SYS_readv
        {SYS_readv, "readv"},
#endif
#ifdef SYS_recvfrom
        {SYS_recvfrom, "recvfrom"},
#endif
#ifdef SYS_recvmmsg
        {SYS_recvmmsg, "recvmmsg"},
#endif
#ifdef SYS_recvmsg
        {SYS_recvmsg, "recvmsg"},
#endif
#ifdef SYS_restart_syscall
        {SYS_restart_syscall, "restart_syscall"},
#endif
#ifdef SYS_rt_sigsuspend
        {SYS_rt_sigsuspend, "rt_sigsuspend"},
#endif
#ifdef SYS_rt_sigtimedwait
        {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
#endif
#ifdef SYS_select
        {SYS_select, "select"},
#endif
#ifdef SYS_semop
        {SYS_semop, "semop"},
#endif
#ifdef SYS_semtimedop
        {SYS_semtimedop, "semtimedop"},
#endif
#ifdef SYS_sendfile
        {SYS_sendfile, "sendfile"},
#endif
#ifdef SYS_sendmsg
        {SYS_sendmsg, "sendmsg"},
#endif
#ifdef SYS_sendto
        {SYS_sendto, "sendto"},
#endif
#ifdef SYS_wait4
        {SYS_wait4, "wait4"},
#endif
#ifdef SYS_waitid
        {SYS_waitid, "waitid"},
#endif
#ifdef SYS_write
        {SYS_write, "write"},
#endif
#ifdef SYS_writev
        {SYS_writev, "writev"},
#endif
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == number)
            return known[i].name;
    return NULL;
}
