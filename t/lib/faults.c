/*
 * faults: a library to preload under a server (LD_PRELOAD) that makes system calls and allocations fail on
 * request.
 *
 * It makes frequent what is rare on real machines: a short read, an interrupted call, a full descriptor
 * table, a lack of memory or disk space, a client that disconnects, a clock that jumps. The server does not
 * know of it: the code that is tested is the code that is shipped.
 *
 * Which calls fail. Only those whose return address lies in Sirius.so or in the program sirius-edge: perl,
 * the application and the C library see no fault, so whatever breaks is the server. Two faults concern
 * everybody: the clock, since Perl code of the server reads it too, and fork. What the kernel never does is
 * not injected: no short read of an eventfd or a datagram, no interruption of a write to an eventfd, which
 * does not sleep, and no reset of a pair of sockets with both ends open.
 *
 * How a test controls it. FAULTS_FILE names a file that all processes of the server and the test map
 * (Sirius::Test::Faults writes it), so faults begin and end while the server runs. For each fault it has
 *   rate      how many of 65,536 calls fail; all faults share one generator, so that they mix in any order
 *   nth       or only that call from now on, so that a test can make each allocation of a request fail in
 *             turn
 *   error     the errno, if there are several
 *   injected  how often it has happened; a test that does not check this could not fail
 * and the process that is meant (0: all), and by how many seconds the clock is wrong.
 *
 * What each test of xt/faults requires: what was answered is complete; what can't be answered is refused or
 * visibly cut off; no process spins; when the fault ends, the server serves again.
 *
 * If a function has two names, the 64-bit one is used (_FILE_OFFSET_BITS), as in Sirius.so. For glibc:
 * __libc_malloc.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef enum which { /* Sirius::Test::Faults has the names in this order */
                     SHORT_READ,
                     SHORT_WRITE,
                     WOULD_BLOCK, /* "eagain" */
                     INTERRUPTED, /* "eintr" */
                     RESET,       /* by the peer, of a stream socket */
                     ACCEPT,
                     GIVE, /* descriptors to another process */
                     TAKE, /* a message from one. EMFILE: it arrives without its descriptors */
                     MEMORY,
                     WATCH, /* epoll_ctl */
                     /*
                      * a new epoll set, eventfd, timerfd, signalfd, pidfd, pair of sockets or file in memory
                      */
                     HANDLE,
                     SPOOL,  /* temporary files */
                     LOG,    /* files that are appended to */
                     UNREAD, /* a file that can't be read */
                     THREAD,
                     FORK,
                     CLOCK,
                     GARBLED, /* memory of another process */
                     FAULTS
} which;

typedef struct fault {
    _Atomic uint32_t rate;
    _Atomic uint32_t error;
    _Atomic uint64_t nth; /* counts down; 0: off */
    _Atomic uint64_t injected;
} fault;

typedef struct control {
    _Atomic uint64_t attached; /* processes that have it */
    _Atomic uint64_t seed;
    _Atomic uint64_t pid;
    _Atomic int64_t clock; /* seconds */
    fault faults[FAULTS];
} control;

static control *shared;
static char program[PATH_MAX]; /* looked up at once: an edge reads no links later */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *at, size_t size);

/* Looked up once: in a signal handler or a forked child, the lock of the loader may be taken. */
#define NEXT(name)                                                                                           \
    ({                                                                                                       \
        static __typeof__(&(name)) found;                                                                    \
        found ? found : (found = (__typeof__(&(name)))next(#name));                                          \
    })
#define CALLER __builtin_return_address(0)

__attribute__((constructor)) static void attach(void)
{
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    program[len > 0 ? len : 0] = '\0';
    const char *path = getenv("FAULTS_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED)
        atomic_fetch_add(&(shared = at)->attached, 1);
}

static void *next(const char *name)
{
    static const char *const large[] = {"open", "openat", "sendfile", "mmap"};
    char name64[32] = "";
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        if (strcmp(large[i], name) == 0)
            strcat(strcpy(name64, name), "64");
    void *found = *name64 ? dlsym(RTLD_NEXT, name64) : NULL;
    return found ? found : dlsym(RTLD_NEXT, name);
}

/* --- whether to --- */

static _Atomic uintptr_t code_from, code_to;

static bool ends_in(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return slash && strcmp(slash, name) == 0;
}

/* The program itself has no name in the list, and its first argument is its title. */
static int look(struct dl_phdr_info *info, size_t size __attribute__((unused)), void *arg)
{
    const char *program = arg, *name = *info->dlpi_name ? info->dlpi_name : program;
    if (!ends_in(name, "/Sirius.so") && !ends_in(name, "/sirius-edge"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            code_from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            code_to = code_from + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static bool ours(const void *caller)
{
    if (!code_to)
        dl_iterate_phdr(look, program);
    return (uintptr_t)caller >= code_from && (uintptr_t)caller < code_to;
}

/* splitmix64: one shared counter, so that processes do not fail in step */
static uint64_t chance(void)
{
    uint64_t z = atomic_fetch_add(&shared->seed, UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool counted_down(fault *f)
{
    uint64_t n = atomic_load(&f->nth);
    while (n && !atomic_compare_exchange_weak(&f->nth, &n, n - 1))
        ;
    return n == 1;
}

/* A NULL caller stands for any. Sets errno to that of the fault if it should happen. */
static bool hit(which w, const void *caller)
{
    if (!shared)
        return false;
    fault *f = &shared->faults[w];
    uint32_t rate = atomic_load_explicit(&f->rate, memory_order_relaxed);
    if ((!rate && !atomic_load_explicit(&f->nth, memory_order_relaxed)) || (caller && !ours(caller)))
        return false;
    uint64_t pid = atomic_load_explicit(&shared->pid, memory_order_relaxed);
    if (pid && pid != (uint64_t)getpid())
        return false;
    if (!counted_down(f) && (chance() & 0xffff) >= rate)
        return false;
    atomic_fetch_add(&f->injected, 1);
    errno = (int)atomic_load(&f->error);
    return true;
}

static size_t some_of(size_t length)
{
    return length > 1 ? 1 + (size_t)(chance() % (length - 1)) : length;
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

static bool fails_any(const which *w, const void *caller)
{
    for (; *w != FAULTS; w++)
        if (hit(*w, caller))
            return true;
    return false;
}

/* --- sockets --- */

static const which on_stream[] = {INTERRUPTED, WOULD_BLOCK, RESET, FAULTS};
static const which on_pair[] = {INTERRUPTED, FAULTS};

static bool fails_socket(int fd, const void *caller)
{
    return fails_any(shared && is_stream(fd) ? on_stream : on_pair, caller);
}

ssize_t recv(int fd, void *at, size_t length, int flags)
{
    if (fails_socket(fd, CALLER))
        return -1;
    if (length > 1 && is_stream(fd) && hit(SHORT_READ, CALLER))
        length = 1 + (size_t)(chance() % (length < 600 ? length - 1 : 600)); /* a request is seldom longer */
    return NEXT(recv)(fd, at, length, flags);
}

ssize_t send(int fd, const void *at, size_t length, int flags)
{
    if (fails_socket(fd, CALLER))
        return -1;
    if (is_stream(fd) && hit(SHORT_WRITE, CALLER))
        length = some_of(length);
    return NEXT(send)(fd, at, length, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    static const which on_message[] = {INTERRUPTED, GIVE, FAULTS};
    bool message = msg->msg_controllen > 0;
    if (message ? fails_any(on_message, CALLER) : fails_socket(fd, CALLER))
        return -1;
    if (!message && msg->msg_iovlen && msg->msg_iov->iov_len && is_stream(fd) && hit(SHORT_WRITE, CALLER))
        return NEXT(send)(fd, msg->msg_iov->iov_base, some_of(msg->msg_iov->iov_len), flags);
    return NEXT(sendmsg)(fd, msg, flags);
}

/* As the kernel does if the descriptor table is full. The descriptors come last. */
static void without_descriptors(struct msghdr *msg)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    while (c && (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS))
        c = CMSG_NXTHDR(msg, c);
    if (!c)
        return;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
        int fd;
        memcpy(&fd, (char *)c + at, sizeof fd);
        close(fd);
    }
    msg->msg_controllen = (size_t)((char *)c - (char *)msg->msg_control);
    msg->msg_flags |= MSG_CTRUNC;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    if (hit(INTERRUPTED, CALLER))
        return -1;
    bool full = shared && atomic_load(&shared->faults[TAKE].error) == EMFILE;
    if (!full && hit(TAKE, CALLER))
        return -1;
    ssize_t n = NEXT(recvmsg)(fd, msg, flags);
    if (full && n > 0 && hit(TAKE, CALLER))
        without_descriptors(msg);
    return n;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t length)
{
    if (fails_any(on_stream, CALLER) || hit(UNREAD, CALLER))
        return -1;
    if (hit(SHORT_WRITE, CALLER))
        length = some_of(length);
    return NEXT(sendfile)(to, from, offset, length);
}

/* Of a file that is copied instead */
ssize_t pread(int fd, void *at, size_t length, off_t offset)
{
    if (shared && ours(CALLER) && hit(UNREAD, CALLER))
        return -1;
    return NEXT(pread)(fd, at, length, offset);
}

int accept4(int fd, struct sockaddr *from, socklen_t *length, int flags)
{
    static const which on_accept[] = {INTERRUPTED, WOULD_BLOCK, ACCEPT, FAULTS};
    return fails_any(on_accept, CALLER) ? -1 : NEXT(accept4)(fd, from, length, flags);
}

/* --- waiting --- */

int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    return hit(INTERRUPTED, CALLER) ? -1 : NEXT(epoll_wait)(fd, events, most, ms);
}

int poll(struct pollfd *of, nfds_t n, int ms)
{
    return hit(INTERRUPTED, CALLER) ? -1 : NEXT(poll)(of, n, ms);
}

int epoll_ctl(int set, int what, int fd, struct epoll_event *event)
{
    return what != EPOLL_CTL_DEL && hit(WATCH, CALLER) ? -1 : NEXT(epoll_ctl)(set, what, fd, event);
}

int epoll_create1(int flags)
{
    return hit(HANDLE, CALLER) ? -1 : NEXT(epoll_create1)(flags);
}

int eventfd(unsigned value, int flags)
{
    return hit(HANDLE, CALLER) ? -1 : NEXT(eventfd)(value, flags);
}

int timerfd_create(int clock, int flags)
{
    return hit(HANDLE, CALLER) ? -1 : NEXT(timerfd_create)(clock, flags);
}

int signalfd(int fd, const sigset_t *set, int flags)
{
    return hit(HANDLE, CALLER) ? -1 : NEXT(signalfd)(fd, set, flags);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    return hit(HANDLE, CALLER) ? -1 : NEXT(socketpair)(domain, type, protocol, fds);
}

int memfd_create(const char *name, unsigned flags)
{
    return hit(HANDLE, CALLER) ? -1 : NEXT(memfd_create)(name, flags);
}

/* pidfd_open has no name in older C libraries */
long syscall(long number, ...)
{
    long arg[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(more, long);
    va_end(more);
    return number == SYS_pidfd_open && hit(HANDLE, CALLER)
               ? -1
               : NEXT(syscall)(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* --- files --- */

ssize_t write(int fd, const void *at, size_t length)
{
    struct stat st;
    if (!shared || !ours(CALLER) || fstat(fd, &st) != 0)
        return NEXT(write)(fd, at, length);
    bool file = S_ISREG(st.st_mode), appends = file && fcntl(fd, F_GETFL) & O_APPEND;
    if (((file || S_ISFIFO(st.st_mode)) && hit(INTERRUPTED, CALLER)) ||
        (file && hit(appends ? LOG : SPOOL, CALLER)))
        return -1;
    if (file && hit(SHORT_WRITE, CALLER))
        length = some_of(length);
    return NEXT(write)(fd, at, length);
}

/* Of temporary files only */
ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
    struct iovec some = iov[0];
    if (!shared || !ours(CALLER))
        return NEXT(pwritev)(fd, iov, n, offset);
    if (hit(INTERRUPTED, CALLER) || hit(SPOOL, CALLER))
        return -1;
    if (!hit(SHORT_WRITE, CALLER))
        return NEXT(pwritev)(fd, iov, n, offset);
    some.iov_len = some_of(some.iov_len);
    return NEXT(pwritev)(fd, &some, 1, offset);
}

int openat(int at, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(more, unsigned) : 0;
    va_end(more);
    return ((flags & O_TMPFILE) == O_TMPFILE || flags & O_CREAT) && hit(SPOOL, CALLER)
               ? -1
               : NEXT(openat)(at, path, flags, mode);
}

/* --- memory of another process --- */

/* One byte, a pointer or all of it is something else than it was */
ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n_to, const struct iovec *from,
                         unsigned long n_from, unsigned long flags)
{
    ssize_t n = NEXT(process_vm_readv)(pid, to, n_to, from, n_from, flags);
    if (n <= 0 || !hit(GARBLED, CALLER))
        return n;
    unsigned char *at = to->iov_base;
    uint64_t kind = chance() % 4, value = chance();
    if (kind == 0)
        at[chance() % (size_t)n] = (unsigned char)value;
    else if (kind < 3 && n >= 8)
        memcpy(at + chance() % (size_t)(n / 8) * 8, &value, kind == 1 ? 8 : 4);
    else
        for (ssize_t i = 0; i < n; i++)
            at[i] = (unsigned char)chance();
    return n;
}

/* --- memory, threads, processes --- */

void *malloc(size_t size)
{
    return hit(MEMORY, CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return hit(MEMORY, CALLER) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *at, size_t size)
{
    return hit(MEMORY, CALLER) ? NULL : __libc_realloc(at, size);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    return hit(MEMORY, CALLER) ? MAP_FAILED : NEXT(mmap)(at, length, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    return hit(THREAD, CALLER) ? errno : NEXT(pthread_create)(thread, attr, run, arg);
}

pid_t fork(void)
{
    return hit(FORK, NULL) ? -1 : NEXT(fork)();
}

/* --- the clock on the wall --- */

static int64_t wrong_by(void)
{
    int64_t seconds = shared ? atomic_load(&shared->clock) : 0;
    if (seconds)
        atomic_fetch_add(&shared->faults[CLOCK].injected, 1);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int err = NEXT(clock_gettime)(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += wrong_by();
    return err;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int err = NEXT(gettimeofday)(now, zone);
    now->tv_sec += wrong_by();
    return err;
}

time_t time(time_t *to)
{
    time_t now = NEXT(time)(NULL) + wrong_by();
    if (to)
        *to = now;
    return now;
}
