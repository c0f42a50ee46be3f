#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall, AT_FDCWD */
#endif
#include "sandbox.h"

#include "auditarch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
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
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

/* --- system calls --- */

/* By libseccomp, which may know more machines of 64 bits than auditarch.h does; else it is written here. */
#if defined SR_SECCOMP && defined __LP64__
#include <malloc.h>
#include <seccomp.h>
#endif

#if (defined SR_SECCOMP && defined __LP64__) || defined SR_AUDITARCH

enum { EDGE = 1, KEEPER = 2, BOTH = EDGE | KEEPER };

typedef struct call {
    int number;
    uint8_t who;
} call;

/*
 * Allowed whatever the arguments are. Since Linux 5.11 the kernel keeps such calls in a bitmap and runs no
 * filter for them. Older kernels run the filter from the top, so the calls of the hot path come first.
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
#ifdef SYS_fstat
    {SYS_fstat, BOTH},
#endif
#ifdef SYS_newfstatat
    {SYS_newfstatat, BOTH}, /* fstat of some C libraries */
#endif
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
    {SYS_pwritev, BOTH},
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
#ifdef SYS_getrlimit
    {SYS_getrlimit, BOTH},
#endif
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
#ifdef __s390x__
    {SYS_mmap, BOTH}, /* its arguments are in memory, where no filter sees them */
#endif
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

#ifdef __s390x__
enum { CHECKED = 9 };
#else
enum { CHECKED = 10 };
#endif

/* Without arguments that are known at build time only: a socket of syslog, this process. */
static void checks_of(const sr_sandbox *s, checked to[CHECKED])
{
    const uint32_t here = (uint32_t)AT_FDCWD, self = (uint32_t)getpid();
    const checked table[CHECKED] = {
#ifndef __s390x__
        {SYS_mmap, BOTH, 2, 1, LACKS, {PROT_EXEC}},
#endif
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
    memcpy(to, table, sizeof table);
}

/* Allowed whatever their arguments are where files are opened by path. */
static const int by_path[] = {
    SYS_openat, SYS_openat2, SYS_faccessat, SYS_faccessat2,
#ifdef SYS_open
    SYS_open,
#endif
};

#ifdef SR_SECCOMP

static int allow(scmp_filter_ctx filter, int number)
{
    return -seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

static int check(scmp_filter_ctx filter, uint32_t what, int number, unsigned arg, uint32_t mask,
                 uint32_t value)
{
    return -seccomp_rule_add(filter, what, number, 1, SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, value));
}

/* What no rule allows is not there (ENOSYS), or is forbidden (EPERM) where that can be said in a rule. */
static int add_check(scmp_filter_ctx filter, const checked *k)
{
    enum { DESCRIPTOR = 0x80000000u }; /* AT_FDCWD is negative, as no descriptor is */
    int err = 0;
    switch (k->test) {
    case IS:
        for (unsigned i = 0; !err && i < k->n; i++)
            if (!i || k->values[i] != k->values[0])
                err = check(filter, SCMP_ACT_ALLOW, k->number, k->arg, UINT32_MAX, k->values[i]);
        return err;
    case ISNT:
        err = check(filter, SCMP_ACT_ALLOW, k->number, k->arg, DESCRIPTOR, 0);
        return err ? err : check(filter, SCMP_ACT_ERRNO(EPERM), k->number, k->arg, DESCRIPTOR, DESCRIPTOR);
    case LACKS:
        err = check(filter, SCMP_ACT_ALLOW, k->number, k->arg, k->values[0], 0);
        return err ? err
                   : check(filter, SCMP_ACT_ERRNO(EPERM), k->number, k->arg, k->values[0], k->values[0]);
    }
    return EINVAL;
}

static bool is_by_path(const sr_sandbox *s, int number)
{
    for (size_t i = 0; s->paths && i < sizeof by_path / sizeof *by_path; i++)
        if (by_path[i] == number)
            return true;
    return false;
}

static int add_all(scmp_filter_ctx filter, const sr_sandbox *s)
{
    uint8_t who = s->keeper ? KEEPER : EDGE;
    checked checks[CHECKED];
    int err = 0;
    checks_of(s, checks);
    for (size_t i = 0; !err && i < sizeof plain / sizeof *plain; i++) {
        if (!(plain[i].who & who))
            continue;
        err = allow(filter, plain[i].number);
        /* what each request needs comes first, and is found first by kernels before 5.11 */
        seccomp_syscall_priority(filter, plain[i].number, (uint8_t)(UINT8_MAX - i));
    }
    for (size_t i = 0; !err && s->paths && i < sizeof by_path / sizeof *by_path; i++)
        err = allow(filter, by_path[i]);
    for (size_t i = 0; !err && i < CHECKED; i++)
        if (checks[i].who & who && !is_by_path(s, checks[i].number))
            err = add_check(filter, &checks[i]);
    return err;
}

int sr_sandbox_calls(const sr_sandbox *s)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (!filter)
        return ENOMEM;
    /* sr_rights_guard has done that; what an older library or kernel does not have stays as it is */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
    seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
#if SCMP_VER_MAJOR > 2 || SCMP_VER_MINOR >= 5
    /*
     * Before Linux 5.16 a filter switches speculation off for the process, which slows all of it down. That
     * is meant for programs that run code of strangers.
     */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1); /* tells errno of the kernel, not ECANCELED */
#endif
    int err = add_all(filter, s);
    if (!err)
        err = -seccomp_load(filter);
    seccomp_release(filter);
#ifdef __GLIBC__    /* others have no such call */
    malloc_trim(0); /* it has needed 300 KiB for a moment */
#endif
    if (err == EINVAL && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        return ENOSYS;                  /* a kernel or an emulator without */
    return err == EFAULT ? EPERM : err; /* where a filter refuses the call with which the library asks */
}

#else

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
    checked checks[CHECKED];
    checks_of(s, checks);
    put_load(c, offsetof(struct seccomp_data, arch));
    put(c, BPF_JMP | BPF_JEQ | BPF_K, SR_AUDITARCH, 1, 0);
    put_return(c, UNKNOWN);
    put_load(c, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (plain[i].who & who)
            put_plain(c, plain[i].number);
    for (size_t i = 0; s->paths && i < sizeof by_path / sizeof *by_path; i++)
        put_plain(c, by_path[i]);
    for (size_t i = 0; i < CHECKED; i++)
        if (checks[i].who & who)
            put_checked(c, &checks[i]);
    put_return(c, UNKNOWN);
}

int sr_sandbox_calls(const sr_sandbox *s)
{
    /*
     * SPEC_ALLOW: before Linux 5.16 a filter switches speculation off for the process, which slows all of it
     * down. That is meant for programs that run code of strangers.
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

#endif

#else

int sr_sandbox_calls(const sr_sandbox *s)
{
    (void)s;
    return EOPNOTSUPP;
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
    return syscall(SYS_landlock_add_rule, set, PATH_BENEATH, &r, 0) == 0;
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
    long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, RULESET_VERSION);
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
    int set = (int)syscall(SYS_landlock_create_ruleset, &all, bytes, 0);
    if (set < 0)
        return errno;
    int err = add_rules(set, s, all.fs) && syscall(SYS_landlock_restrict_self, set, 0) == 0 ? 0 : errno;
    close(set);
    return err;
}
#endif
