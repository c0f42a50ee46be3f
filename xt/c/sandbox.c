/* sandbox: what a process cannot do any more, by the system calls themselves, and what it still can */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/sandbox.h"

#include "edge/rights.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_execveat
#define SYS_execveat 322
#endif

enum { TRIES_MAX = 64 };

/* In memory that the child shares: what each try has come to, as errno; 0: it was possible */
static struct shared {
    int calls, files; /* of the sandbox itself */
    int got[TRIES_MAX];
} * shared;

static int tmpdir, folder, pair[2], tcp, terminal;
static char top[] = "/tmp/sirius-c-XXXXXX";

static int errno_of(long result)
{
    int err = result < 0 ? errno : 0;
    return err;
}

static int errno_of_fd(long fd)
{
    int err = errno_of(fd);
    if (fd >= 0)
        close((int)fd);
    return err;
}

/* --- tries --- */

static int open_passwd(void)
{
    return errno_of_fd(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY));
}
#ifdef SYS_open
static int open_old(void)
{
    return errno_of_fd(syscall(SYS_open, "/etc/passwd", O_RDONLY));
}
#endif
static int open_from_folder(void)
{
    return errno_of_fd(syscall(SYS_openat, folder, "/etc/passwd", O_RDONLY));
}
static int open_upwards(void)
{
    return errno_of_fd(syscall(SYS_openat, folder, "../beside", O_RDONLY));
}
static int open2(int at, const char *path)
{
    unsigned long long how[3] = {O_RDONLY, 0, 0};
    return errno_of_fd(syscall(SYS_openat2, at, path, how, sizeof how));
}
static int open2_passwd(void)
{
    return open2(AT_FDCWD, "/etc/passwd");
}
static int open2_from_folder(void)
{
    return open2(folder, "/etc/passwd");
}
static int open2_file(void)
{
    return open2(folder, "file");
}
static int open_file(void)
{
    return errno_of_fd(syscall(SYS_openat, folder, "file", O_RDONLY));
}
static int open_folder(void)
{
    return errno_of_fd(syscall(SYS_openat, folder, ".", O_RDONLY));
}
static int write_file(void)
{
    return errno_of_fd(syscall(SYS_openat, folder, "file", O_WRONLY));
}
static int make_file(void)
{
    return errno_of_fd(syscall(SYS_openat, folder, "new", O_RDWR | O_CREAT, 0600));
}
static int make_temporary(void)
{
    int err = errno_of_fd(syscall(SYS_openat, tmpdir, ".", O_RDWR | O_TMPFILE, 0600));
    return err == EOPNOTSUPP ? 0 : err;
}
static int make_named(void)
{
    int err = errno_of_fd(syscall(SYS_openat, tmpdir, "x", O_RDWR | O_CREAT | O_EXCL, 0600));
    return err ? err : errno_of(syscall(SYS_unlinkat, tmpdir, "x", 0));
}
static int run(void)
{
    char *argv[] = {"true", NULL};
    return errno_of(syscall(SYS_execve, "/bin/true", argv, argv + 1));
}
static int run_at(void)
{
    char *argv[] = {"true", NULL};
    return errno_of(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, argv + 1, 0));
}
static int fork_one(void)
{
    long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!pid)
        _exit(0);
    return errno_of(pid);
}
static int open_socket(void)
{
    return errno_of_fd(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
}
static int connect_out(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return errno_of(syscall(SYS_connect, tcp, &to, sizeof to));
}
static int connect_nowhere(void)
{
    sa_family_t nowhere = AF_UNSPEC;
    return errno_of(syscall(SYS_connect, tcp, &nowhere, sizeof nowhere));
}
static int pair_of(int family)
{
    int ends[2];
    long made = syscall(SYS_socketpair, family, SOCK_STREAM, 0, ends);
    return errno_of(made);
}
static int unix_pair(void)
{
    return pair_of(AF_UNIX);
}
static int inet_pair(void)
{
    return pair_of(AF_INET);
}
static int trace_parent(void)
{
    return errno_of(syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, getppid(), 0, 0));
}
static int read_parent(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {&shared, 1};
    return errno_of(syscall(SYS_process_vm_readv, getppid(), &here, 1, &there, 1, 0));
}
static int signal_parent(void)
{
    return errno_of(syscall(SYS_kill, getppid(), 0));
}
static int signal_thread_of_parent(void)
{
    return errno_of(syscall(SYS_tgkill, getppid(), getppid(), 0));
}
static int signal_self(void)
{
    return errno_of(syscall(SYS_tgkill, getpid(), getpid(), 0));
}
static int take_descriptor(void)
{
    return errno_of(syscall(SYS_pidfd_getfd, 0, 0, 0));
}
static long mapped(int rights)
{
#if defined __s390x__ ||                                                                                     \
    !defined SYS_mmap /* its arguments are a struct, which the C library makes; or it is mmap2 */
    return mmap(NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
#else
    return syscall(SYS_mmap, NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#endif
}
static int map_code(void)
{
    return errno_of(mapped(PROT_READ | PROT_EXEC));
}
static int map_memory(void)
{
    return errno_of(mapped(PROT_READ | PROT_WRITE));
}
static int make_code(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return errno_of(syscall(SYS_mprotect, at, 4096, PROT_READ | PROT_EXEC));
}
static int type_into_terminal(void)
{
    return errno_of(syscall(SYS_ioctl, terminal, TIOCSTI, "x"));
}
static int ask_queue(void)
{
    int n;
    return errno_of(syscall(SYS_ioctl, pair[0], TIOCOUTQ, &n));
}
static int set_limit(void)
{
    struct rlimit same;
    getrlimit(RLIMIT_NOFILE, &same);
    return errno_of(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &same, NULL));
}
static int ask_limit(void)
{
    struct rlimit now;
    return errno_of(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &now));
}
static int memory_file(void)
{
    return errno_of_fd(syscall(SYS_memfd_create, "test", 0));
}
static int rings(void)
{
    return errno_of(syscall(SYS_io_uring_setup, 1, NULL));
}
static int change_root(void)
{
    return errno_of(syscall(SYS_chroot, "/"));
}
static int become_root(void)
{
    return errno_of(syscall(SYS_setuid, 0));
}
static int accept_one(void)
{
    int err = errno_of(syscall(SYS_accept4, pair[0], NULL, NULL, 0)); /* of a socket that does not listen */
    return err == EOPNOTSUPP || err == EINVAL ? 0 : err;
}
static int unknown_call(void)
{
    return errno_of(syscall(1999));
}
static int send_bytes(void)
{
    return errno_of(syscall(SYS_sendto, pair[0], "x", 1, MSG_DONTWAIT, NULL, 0));
}

/* For whom it is possible: an edge, a keeper, an edge that opens paths */
enum { NOBODY = 0, EDGE = 1, KEEPER = 2, PATHS = 4, BOTH = EDGE | PATHS, ALL = BOTH | KEEPER };

/* `err`: how it fails. FILES: by Landlock, for which the kernel may be too old */
enum { FILES = 1000 };

static const struct {
    const char *name;
    int (*code)(void);
    int who, err;
} tries[] = {
    {"open by path", open_passwd, PATHS, EPERM},
#ifdef SYS_open
    {"open by path, as it was once", open_old, PATHS, ENOSYS},
#endif
    {"open a path from a folder", open_from_folder, PATHS, FILES},
    {"open beside a folder", open_upwards, PATHS, FILES},
    {"openat2 by path", open2_passwd, PATHS, EPERM},
    {"openat2 of a path from a folder", open2_from_folder, PATHS, FILES},
    {"read a file of the folder", open_file, BOTH, ENOSYS},
    {"read it by openat2", open2_file, BOTH, ENOSYS},
    {"see that it is a folder", open_folder, BOTH, ENOSYS},
    {"write a file of the folder", write_file, NOBODY, FILES},
    {"make one there", make_file, NOBODY, FILES},
    {"make a temporary file", make_temporary, BOTH, ENOSYS},
    {"make one by name, and remove the name", make_named, BOTH, ENOSYS},
    {"execve", run, NOBODY, ENOSYS},
    {"execveat", run_at, NOBODY, ENOSYS},
    {"fork", fork_one, NOBODY, ENOSYS},
    {"a new socket", open_socket, NOBODY, ENOSYS},
    {"connect a socket to somebody", connect_out, NOBODY, EPERM},
    {"connect it to nobody", connect_nowhere, BOTH, ENOSYS},
    {"a pair of sockets", unix_pair, BOTH, ENOSYS},
    {"ptrace", trace_parent, NOBODY, ENOSYS},
    {"read the memory of another", read_parent, NOBODY, ENOSYS},
    {"kill", signal_parent, NOBODY, ENOSYS},
    {"tgkill of another", signal_thread_of_parent, NOBODY, EPERM},
    {"tgkill of itself, for abort", signal_self, ALL, 0},
    {"pidfd_getfd", take_descriptor, NOBODY, ENOSYS},
#ifdef __s390x__
    {"map code", map_code, ALL, 0},
#else
    {"map code", map_code, NOBODY, EPERM},
#endif
    {"map memory", map_memory, ALL, 0},
    {"make memory code", make_code, NOBODY, EPERM},
    {"type into a terminal", type_into_terminal, NOBODY, EPERM},
    {"ask what a socket has not sent", ask_queue, ALL, 0},
    {"change a limit", set_limit, NOBODY, EPERM},
    {"ask for a limit", ask_limit, ALL, 0},
    {"a file in memory", memory_file, ALL, 0},
    {"io_uring", rings, NOBODY, ENOSYS},
    {"chroot", change_root, NOBODY, ENOSYS},
    {"setuid", become_root, NOBODY, ENOSYS},
    {"accept", accept_one, BOTH, ENOSYS},
    {"send", send_bytes, BOTH, ENOSYS},
    {"a call of the future", unknown_call, NOBODY, ENOSYS},
    {"a pair of another family", inet_pair, NOBODY, EPERM},
};
enum { TRIES = sizeof tries / sizeof tries[0] };

/* Runs all tries in a child, confined or not. How it ended, as of waitpid */
static int tried(const sr_sandbox *s)
{
    int status = -1;
    memset(shared, 0, sizeof *shared);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        sr_rights_guard();
        if (s) {
            shared->files = sr_sandbox_files(s);
            shared->calls = sr_sandbox_calls(s);
        }
        for (int i = 0; i < TRIES; i++)
            if (s || tries[i].code == open_passwd || tries[i].code == open_socket)
                shared->got[i] = tries[i].code();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

/*
 * In a keeper calls with checked arguments are missing as a whole, but for those of memory, limits, signals
 * and ioctl
 */
static int wanted(int i, int who, bool files)
{
    if (tries[i].who & who)
        return 0;
    if (who == KEEPER &&
        (tries[i].err == FILES || tries[i].code == open_passwd || tries[i].code == open2_passwd ||
         tries[i].code == connect_out || tries[i].code == inet_pair))
        return ENOSYS;
    return tries[i].err == FILES ? files ? EACCES : 0 : tries[i].err;
}

static void check(const char *name, int who, const sr_sandbox *s)
{
    int status = tried(s);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: nothing kills it", name);
    if (shared->calls == EOPNOTSUPP || shared->calls == ENOSYS || shared->calls == EPERM) {
        ok(true, "skipped: %s: no seccomp here (%s)", name, strerror(shared->calls));
        return;
    }
    is_int(shared->calls, 0, "the filter");
    ok(!shared->files || shared->files == ENOSYS || shared->files == EOPNOTSUPP || shared->files == EPERM,
       "Landlock, or a kernel without (errno %d)", shared->files);
    for (int i = 0; i < TRIES; i++) {
        int want = wanted(i, who, shared->files == 0);
        /* a kernel without openat2 or execveat says ENOSYS, too */
        bool right =
            shared->got[i] == want || (want != 0 && shared->got[i] == ENOSYS && tries[i].err == EPERM);
        ok(right, "%s: %s%s", name, tries[i].name, want ? " is not possible" : "");
        if (!right)
            printf("# errno %d (%s), want %d\n", shared->got[i], strerror(shared->got[i]), want);
    }
}

static int opened(const char *name, int flags)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", top, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

static void removed(const char *name, int flags)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", top, name);
    unlinkat(AT_FDCWD, path, flags);
}

int main(void)
{
    if (!on_linux("all of it", "a sandbox"))
        return done_testing();
    char path[100];
    if (!mkdtemp(top))
        return 1;
    snprintf(path, sizeof path, "%s/folder", top);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/tmp", top);
    mkdir(path, 0700);
    close(opened("beside", O_CREAT | O_WRONLY));
    close(opened("folder/file", O_CREAT | O_WRONLY));
    folder = opened("folder", O_PATH | O_DIRECTORY);
    tmpdir = opened("tmp", O_PATH | O_DIRECTORY);
    tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (folder < 0 || tmpdir < 0 || tcp < 0 || shared == MAP_FAILED ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;

    tried(NULL);
    ok(shared->got[0] == 0, "without a sandbox all of it is possible");
    sr_sandbox edge = {.tmpdir = tmpdir, .folders = &folder, .n_folders = 1};
    check("an edge", EDGE, &edge);
    sr_sandbox paths = edge;
    paths.paths = true;
    check("an edge that follows links", PATHS, &paths);
    sr_sandbox keeper = {.keeper = true, .tmpdir = -1};
    check("a keeper", KEEPER, &keeper);
    sr_sandbox nothing = {.tmpdir = -1};
    tried(&nothing);
    ok(shared->calls || shared->files || shared->got[0] == EPERM, "one without folders");

    removed("folder/new", 0); /* where there is no Landlock */
    removed("folder/file", 0);
    removed("folder", AT_REMOVEDIR);
    removed("tmp", AT_REMOVEDIR);
    removed("beside", 0);
    rmdir(top);
    return done_testing();
}
