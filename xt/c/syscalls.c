/* syscalls: names by numbers, and nothing for calls in which nobody waits. */
#include "base/syscalls.h"

#include "tap.h"

#include <stdbool.h>
#include <sys/syscall.h>

static bool is(long number, const char *name)
{
    const char *got = sr_syscall_name(number);
    return got && strcmp(got, name) == 0;
}

int main(void)
{
    ok(is(SYS_read, "read"), "read");
    ok(is(SYS_flock, "flock"), "flock");
    ok(is(SYS_futex, "futex"), "futex");
    ok(is(SYS_epoll_pwait, "epoll_pwait"), "epoll_pwait");
    ok(is(SYS_clock_nanosleep, "clock_nanosleep"), "clock_nanosleep");
    ok(!sr_syscall_name(SYS_getpid), "one that does not wait");
    ok(!sr_syscall_name(-1) && !sr_syscall_name(100000), "none");
    return done_testing();
}
