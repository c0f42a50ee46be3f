#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall, AT_FDCWD */
#endif
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* What older headers lack. These numbers are the same on all architectures. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SECCOMP_FILTER_FLAG_LOG
#define SECCOMP_FILTER_FLAG_LOG 2
#endif
#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW 4
#endif
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };

/* --- system calls --- */

#if defined __x86_64__ && !defined __ILP32__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__ && !defined __ILP32__
#define ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef ARCH

enum { EDGE = 1, KEEPER = 2, BOTH = EDGE | KEEPER };

typedef struct call {
    int number;
    uint8_t who;
} call;

/*
 * Allowed whatever the arguments are. Since Linux 5.11 the kernel keeps such calls in a bitmap and runs no filter for them. Before, it
 * is run from the top: so what each request needs comes first.
 */
static const call plain[] = {
    {SYS_recvfrom, EDGE},
    {SYS_sendto, EDGE},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, EDGE},
#endif
    {SYS_epoll_pwait, EDGE},
    {SYS_sendmsg, BOTH},
    {SYS_futex, BOTH},
    {SYS_write, BOTH},
    {SYS_read, BOTH},
    {SYS_close, BOTH},
    {SYS_accept4, EDGE},
    {SYS_epoll_ctl, EDGE},
    {SYS_sendfile, EDGE},
    {SYS_pread64, BOTH},
    {SYS_fstat, BOTH},
    {SYS_newfstatat, BOTH}, /* fstat of some C libraries */
    {SYS_recvmsg, BOTH},
    {SYS_setsockopt, BOTH},
    {SYS_getsockopt, BOTH},
    {SYS_shutdown, EDGE},
    {SYS_timerfd_settime, EDGE},
    {SYS_getrandom, BOTH},
    {SYS_munmap, BOTH},
    {SYS_brk, BOTH},
    {SYS_madvise, BOTH},
    {SYS_mremap, BOTH},
    {SYS_lseek, BOTH},
    {SYS_readv, BOTH},
    {SYS_writev, BOTH},
    {SYS_pwrite64, BOTH},
    {SYS_ftruncate, BOTH},
    {SYS_fcntl, BOTH},
    {SYS_dup, BOTH},
    {SYS_dup3, BOTH},
#ifdef SYS_dup2
    {SYS_dup2, BOTH},
#endif
#ifdef SYS_poll
    {SYS_poll, BOTH},
#endif
    {SYS_ppoll, BOTH},
    {SYS_memfd_create, BOTH},
    {SYS_pidfd_open, EDGE},
#ifdef SYS_statx
    {SYS_statx, BOTH},
#endif
    {SYS_getsockname, EDGE},
    {SYS_getpeername, EDGE},
    {SYS_sendmmsg, EDGE},
    {SYS_clock_gettime, BOTH}, /* these are called where the vDSO has no clock */
    {SYS_clock_getres, BOTH},
    {SYS_gettimeofday, BOTH},
#ifdef SYS_time
    {SYS_time, BOTH},
#endif
    {SYS_clock_nanosleep, BOTH},
    {SYS_nanosleep, BOTH},
    {SYS_sched_yield, BOTH},
    {SYS_getpid, BOTH},
    {SYS_getppid, BOTH},
    {SYS_gettid, BOTH},
    {SYS_getuid, BOTH},
    {SYS_geteuid, BOTH},
    {SYS_getgid, BOTH},
    {SYS_getegid, BOTH},
    {SYS_sysinfo, BOTH}, /* qsort */
    {SYS_uname, BOTH},
    {SYS_getrusage, BOTH},
    {SYS_getrlimit, BOTH},
    {SYS_sched_getaffinity, BOTH},
    {SYS_getcpu, BOTH},
    {SYS_membarrier, BOTH},
    {SYS_rt_sigprocmask, BOTH},
    {SYS_rt_sigaction, BOTH},
    {SYS_rt_sigpending, BOTH},
    {SYS_rt_sigtimedwait, BOTH},
    {SYS_rt_sigreturn, BOTH},
    {SYS_sigaltstack, BOTH},
    {SYS_restart_syscall, BOTH},
    {SYS_exit, BOTH},
    {SYS_exit_group, BOTH},
};

typedef enum test {
    IS,    /* one of the values */
    ISNT,  /* none of them */
    LACKS, /* these bits */
} test;

enum { VALUES_MAX = 4 };

/* Allowed if the low 32 bits of one argument are right. */
typedef struct checked {
    int number;
    uint8_t who, arg, n;
    test test;
    uint32_t values[VALUES_MAX];
} checked;

enum { CODE_MAX = 512 };

typedef struct code {
    struct sock_filter at[CODE_MAX];
    unsigned short n;
} code;

enum { ALLOW = SECCOMP_RET_ALLOW, REFUSE = SECCOMP_RET_ERRNO | EPERM, UNKNOWN = SECCOMP_RET_ERRNO | ENOSYS };

static void put(code *c, uint16_t what, uint32_t k, uint8_t yes, uint8_t no)
{
    if (c->n < CODE_MAX)
        c->at[c->n++] = (struct sock_filter){what, yes, no, k};
}

static void put_load(code *c, size_t offset)
{
    put(c, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_return(code *c, uint32_t what)
{
    put(c, BPF_RET | BPF_K, what, 0, 0);
}

static size_t low_half(unsigned arg)
{
    size_t at = offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? at + sizeof(uint32_t) : at;
}

/* The number is loaded before and after it. */
static void put_plain(code *c, int number)
{
    put(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
    put_return(c, ALLOW);
}

static void put_checked(code *c, const checked *k)
{
    bool found_is_wrong = k->test != IS;
    uint16_t compare = (k->test == LACKS ? BPF_JSET : BPF_JEQ) | BPF_JMP | BPF_K;
    put(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)k->number, 0, (uint8_t)(k->n + 3));
    put_load(c, low_half(k->arg));
    for (unsigned i = 0; i < k->n; i++) /* to the last of the two returns */
        put(c, compare, k->values[i], (uint8_t)(k->n - i), 0);
    put_return(c, found_is_wrong ? ALLOW : REFUSE);
    put_return(c, found_is_wrong ? REFUSE : ALLOW);
}

static void put_all(code *c, const sr_sandbox *s)
{
    uint8_t who = s->keeper ? KEEPER : EDGE;
    const uint32_t here = (uint32_t)AT_FDCWD, self = (uint32_t)getpid();
    const checked table[] = {
        {SYS_mmap, BOTH, 2, 1, LACKS, {PROT_EXEC}},
        {SYS_mprotect, BOTH, 2, 1, LACKS, {PROT_EXEC}},
        /* below a descriptor: what is not, the C library opens from here */
        {SYS_openat2, EDGE, 0, 1, ISNT, {here}},
        {SYS_openat, EDGE, 0, 1, ISNT, {here}},
        {SYS_unlinkat, EDGE, 0, 1, ISNT, {here}},
        /* AF_UNSPEC alone, which closes by a reset: a socket must not be connected to somebody else */
        {SYS_connect,
         EDGE,
         2,
         2,
         IS,
         {sizeof(sa_family_t), s->reconnect ? s->reconnect : sizeof(sa_family_t)}},
        {SYS_socketpair, EDGE, 0, 1, IS, {AF_UNIX}},
        /* not TIOCSTI, for one, where STDERR is a terminal */
        {SYS_ioctl, BOTH, 1, 4, IS, {TIOCOUTQ, FIONREAD, FIONBIO, TCGETS}},
        {SYS_prlimit64, BOTH, 2, 1, IS, {0}}, /* only to ask */
        {SYS_tgkill, BOTH, 0, 1, IS, {self}}, /* abort */
    };
    put_load(c, offsetof(struct seccomp_data, arch));
    put(c, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    put_return(c, UNKNOWN);
    put_load(c, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (plain[i].who & who)
            put_plain(c, plain[i].number);
    if (s->paths) {
        put_plain(c, SYS_openat);
        put_plain(c, SYS_openat2);
        put_plain(c, SYS_faccessat);
        put_plain(c, SYS_faccessat2);
#ifdef SYS_open
        put_plain(c, SYS_open);
#endif
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].who & who)
            put_checked(c, &table[i]);
    put_return(c, UNKNOWN);
}

int sr_sandbox_calls(const sr_sandbox *s)
{
    /*
     * SPEC_ALLOW: before Linux 5.16 a filter switches speculation off for the process, which slows all of it down. That is
     * meant for programs that run code of strangers.
     */
    static const unsigned flags[] = {SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                                     SECCOMP_FILTER_FLAG_LOG, 0};
    code c = {.n = 0};
    put_all(&c, s);
    struct sock_fprog program = {.len = c.n, .filter = c.at};
    if (c.n == CODE_MAX)
        return E2BIG;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], &program) == 0)
            return 0;
        if (errno != EINVAL) /* a kernel that does not know the flag */
            break;
    }
    return errno;
}

#else

int sr_sandbox_calls(const sr_sandbox *s)
{
    (void)s;
    return EOPNOTSUPP; /* there is no table for this architecture */
}

#endif

/* --- files --- */

/* As in <linux/landlock.h>, which headers before 5.13 do not have, and older ones in part. */
typedef struct ruleset {
    uint64_t fs, net, scoped;
} ruleset;
typedef struct __attribute__((packed)) rule {
    uint64_t allowed;
    int32_t folder;
} rule;
enum { RULESET_VERSION = 1, PATH_BENEATH = 1 };
enum {
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_FILE = 1 << 5,
    MAKE_REG = 1 << 8,
    FIRST_RIGHTS = (1 << 13) - 1,
    REFER = 1 << 13,     /* version 2 */
    TRUNCATE = 1 << 14,  /* 3 */
    IOCTL_DEV = 1 << 15, /* 5 */
    TCP = 3,             /* 4: bind and connect */
    SCOPES = 3,          /* 6: abstract sockets and signals of others */
};

static bool add_rule(int set, int folder, uint64_t allowed)
{
    rule r = {.allowed = allowed, .folder = folder};
    return syscall(LANDLOCK_ADD, set, PATH_BENEATH, &r, 0) == 0;
}

static bool add_rules(int set, const sr_sandbox *s, uint64_t known)
{
    bool added =
        s->tmpdir < 0 ||
        add_rule(set, s->tmpdir, known & (READ_FILE | WRITE_FILE | MAKE_REG | REMOVE_FILE | TRUNCATE));
    for (size_t i = 0; added && i < s->n_folders; i++)
        added = s->folders[i] < 0 || !(known & READ_FILE) ||
                add_rule(set, s->folders[i],
                         READ_FILE | READ_DIR); /* a folder is opened to find out that it is one */
    return added;
}

int sr_sandbox_files(const sr_sandbox *s)
{
    ruleset all = {.fs = FIRST_RIGHTS};
    long version = syscall(LANDLOCK_CREATE, NULL, (size_t)0, RULESET_VERSION);
    if (version < 0)
        return errno; /* ENOSYS: not in this kernel; EOPNOTSUPP: not switched on */
    if (version >= 2)
        all.fs |= REFER;
    if (version >= 3)
        all.fs |= TRUNCATE;
    if (version >= 4)
        all.net = TCP;
    if (version >= 5)
        all.fs |= IOCTL_DEV;
    if (version >= 6)
        all.scoped = SCOPES;
    if (s->paths)
        all.fs &= ~(uint64_t)(READ_FILE | READ_DIR);
    size_t bytes = version >= 6   ? sizeof all
                   : version >= 4 ? offsetof(ruleset, scoped)
                                  : offsetof(ruleset, net);
    int set = (int)syscall(LANDLOCK_CREATE, &all, bytes, 0);
    if (set < 0)
        return errno;
    int err = add_rules(set, s, all.fs) && syscall(LANDLOCK_RESTRICT, set, 0) == 0 ? 0 : errno;
    close(set);
    return err;
}
