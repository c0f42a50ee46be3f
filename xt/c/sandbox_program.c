/*
 * sandbox_program: what the filter that sandbox.c writes answers, by an interpreter of its program: also on
 * machines whose kernel is not there, under an emulator that has no seccomp.
 */
#undef SR_SECCOMP
#include "edge/sandbox.c"

#include "tap.h"

#ifdef SR_PORTABLE

int main(void)
{
    on_linux("all of it", "a sandbox");
    return done_testing();
}

#elif defined SR_AUDITARCH

/* The only instructions that it has. */
static uint32_t answer(const code *c, const struct seccomp_data *call)
{
    uint32_t a = 0;
    for (unsigned at = 0; at < c->n; at++) {
        const struct sock_filter *f = &c->at[at];
        bool jumps = false;
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (f->k > sizeof *call - sizeof a || f->k % sizeof a)
                return UINT32_MAX;
            memcpy(&a, (const char *)call + f->k, sizeof a);
            continue;
        case BPF_RET | BPF_K:
            return f->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            jumps = a == f->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            jumps = (a & f->k) != 0;
            break;
        default:
            return UINT32_MAX;
        }
        at += jumps ? f->jt : f->jf;
    }
    return UINT32_MAX; /* it has run past its end */
}

static struct seccomp_data called(int number, unsigned arg, uint64_t value)
{
    struct seccomp_data call = {.nr = number, .arch = SR_AUDITARCH};
    call.args[arg] = value;
    return call;
}

static code edge, keeper, paths;

static void is(const code *c, int number, unsigned arg, uint64_t value, uint32_t want, const char *name)
{
    struct seccomp_data call = called(number, arg, value);
    is_int(answer(c, &call), want, name);
}

static void programs(void)
{
    const sr_sandbox boxes[] = {{.tmpdir = -1, .reconnect = 110}, {.keeper = true}, {.paths = true}};
    put_all(&edge, &boxes[0]);
    put_all(&keeper, &boxes[1]);
    put_all(&paths, &boxes[2]);
    ok(edge.n < CODE_MAX && keeper.n < edge.n && paths.n > edge.n, "programs of %d, %d and %d instructions",
       edge.n, keeper.n, paths.n);
}

int main(void)
{
    const uint64_t high = UINT64_C(0xdeadbeef) << 32;
    programs();
    struct seccomp_data other = called(SYS_read, 0, 0);
    other.arch ^= 1;
    is_int(answer(&edge, &other), UNKNOWN, "a call of another machine");
    is(&edge, SYS_recvfrom, 0, 0, ALLOW, "the first of the list");
    is(&edge, SYS_exit_group, 0, 0, ALLOW, "its last");
    is(&keeper, SYS_accept4, 0, 0, UNKNOWN, "a keeper accepts nothing");
    is(&keeper, SYS_read, 0, 0, ALLOW, "and reads");
    is(&edge, SYS_execve, 0, 0, UNKNOWN, "execve");
    is(&edge, SYS_ptrace, 0, 0, UNKNOWN, "ptrace");
    is(&edge, 1999, 0, 0, UNKNOWN, "a call of the future");

    is(&edge, SYS_mprotect, 2, PROT_READ | PROT_WRITE, ALLOW, "memory");
    is(&edge, SYS_mprotect, 2, PROT_READ | PROT_EXEC, REFUSE, "memory becomes code");
#ifndef __s390x__
    is(&edge, SYS_mmap, 2, PROT_READ, ALLOW, "memory is mapped");
    is(&edge, SYS_mmap, 2, PROT_EXEC, REFUSE, "code is mapped");
#endif
    is(&edge, SYS_openat, 0, 7, ALLOW, "below a folder");
    is(&edge, SYS_openat, 0, (uint64_t)(int64_t)AT_FDCWD, REFUSE, "from here");
    is(&edge, SYS_openat, 0, high | (uint32_t)AT_FDCWD, REFUSE,
       "the kernel looks at half of the word: so do we");
    is(&paths, SYS_openat, 0, (uint64_t)(int64_t)AT_FDCWD, ALLOW, "from here, where paths are opened");
    is(&keeper, SYS_openat, 0, 7, UNKNOWN, "a keeper opens nothing");

    is(&edge, SYS_connect, 2, sizeof(sa_family_t), ALLOW, "connect to nobody");
    is(&edge, SYS_connect, 2, 110, ALLOW, "to syslog");
    is(&edge, SYS_connect, 2, 16, REFUSE, "to somebody");
    is(&edge, SYS_ioctl, 1, TIOCOUTQ, ALLOW, "the first value of four");
    is(&edge, SYS_ioctl, 1, TCGETS, ALLOW, "the last");
    is(&edge, SYS_ioctl, 1, TIOCSTI, REFUSE, "none of them");
    is(&edge, SYS_tgkill, 0, (uint64_t)getpid(), ALLOW, "a signal to this process");
    is(&edge, SYS_tgkill, 0, 1, REFUSE, "to another");
    return done_testing();
}

#else

int main(void)
{
    ok(sr_sandbox_calls(&(sr_sandbox){.tmpdir = -1}) == EOPNOTSUPP, "no filter for this kind of machine");
    return done_testing();
}

#endif
