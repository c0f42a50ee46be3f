/* needed: nothing is missing here; in a child with a filter it is what that refuses. */
#include "net/needed.h"

#include "tap.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child which a filter refuses this call: whether its name and the error are told. */
static bool told(int number, int error, const char *name)
{
    int status = 0, err = 0;
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof code / sizeof *code, code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
            _exit(2);
        const char *missing = sr_needed_missing(&err);
        _exit(missing && strcmp(missing, name) == 0 && err == error ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* An emulator of programs, such as qemu-user, has no filters. */
static bool has_filters(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

int main(void)
{
    if (!on_linux("all of it", "a list of needed calls"))
        return done_testing();
    int err = 0;
    ok(!sr_needed_missing(&err) && !err, "nothing is missing");
    if (!has_filters()) {
        ok(true, "skipped: there are no filters of system calls here (%s)", strerror(errno));
        return done_testing();
    }
    ok(told(SYS_recvmsg, EPERM, "recvmsg"), "a call that a container forbids");
#ifdef __GLIBC__ /* musl would do without it */
    ok(told(SYS_accept4, ENOSYS, "accept4"), "one that the kernel does not have");
#endif
    ok(told(SYS_sendmsg, EACCES, "sendmsg"), "one with another error");
    ok(!sr_needed_missing(&err), "nothing is missing here still");
    return done_testing();
}
