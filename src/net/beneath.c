#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH */
#endif
#include "beneath.h"

#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#ifdef SR_PORTABLE
#undef O_PATH
#define O_PATH O_RDONLY
#ifndef O_LARGEFILE
#define O_LARGEFILE 0
#endif
#endif

enum {
    TO_READ = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_LARGEFILE,
    STEP = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    TRIES = 4, /* EAGAIN: something was renamed while ".." of a link was followed */
};

static _Atomic bool is_missing;

#ifdef SR_PORTABLE
static int openat2_beneath(int folder, const char *path, int flags, sr_links links)
{
    if (links == SR_LINKS_ALL)
        return openat(folder, path, flags);
    errno = ENOSYS;
    return -1;
}
#else
#include <sys/syscall.h>

/* As in <linux/openat2.h>, which headers before 5.6 do not have. */
typedef struct how {
    uint64_t flags, mode, resolve;
} how;
enum { NO_MAGICLINKS = 2, NO_SYMLINKS = 4, BENEATH = 8 };
#ifdef SYS_openat2
enum { NUMBER = SYS_openat2 };
#else
enum { NUMBER = 437 };
#endif

static int openat2_beneath(int folder, const char *path, int flags, sr_links links)
{
    static const uint64_t resolve[] = {[SR_LINKS_NONE] = BENEATH | NO_MAGICLINKS | NO_SYMLINKS,
                                       [SR_LINKS_BENEATH] = BENEATH | NO_MAGICLINKS,
                                       [SR_LINKS_ALL] = NO_MAGICLINKS};
    how h = {.flags = (uint64_t)flags, .resolve = resolve[links]};
    int fd = -1;
    for (int i = 0; i < TRIES; i++) {
        fd = (int)syscall(NUMBER, folder, path, &h, sizeof h);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd;
}
#endif

bool sr_beneath_whole(int folder)
{
    int fd = openat2_beneath(folder, ".", O_PATH | O_CLOEXEC, SR_LINKS_NONE);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || (errno != ENOSYS && errno != EPERM);
}

int sr_beneath_folder(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && faccessat(fd, ".", X_OK, 0) != 0 ? sr_descriptors_failed(fd) : fd;
}

static bool is_name(const char *at, size_t len)
{
    return len && len <= NAME_MAX && !(len == 1 && *at == '.') && !(len == 2 && memcmp(at, "..", 2) == 0);
}

int sr_beneath_walk(int folder, const char *path)
{
    int at = folder;
    for (;;) {
        char name[NAME_MAX + 1];
        const char *slash = strchr(path, '/');
        size_t len = slash ? (size_t)(slash - path) : strlen(path);
        int fd = -1;
        if (is_name(path, len)) {
            memcpy(name, path, len);
            name[len] = '\0';
            fd = openat(at, name, slash ? STEP : TO_READ | O_NOFOLLOW);
        } else {
            errno = len > NAME_MAX ? ENAMETOOLONG : EINVAL;
        }
        int err = errno;
        if (at != folder)
            close(at);
        errno = err;
        if (fd < 0 || !slash)
            return fd;
        at = fd;
        path = slash + 1;
    }
}

int sr_beneath_open(int folder, const char *path, sr_links links)
{
    if (!atomic_load_explicit(&is_missing, memory_order_relaxed)) {
        int fd = openat2_beneath(folder, path, TO_READ, links);
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return fd;
        if (errno == ENOSYS || !sr_beneath_whole(folder)) /* EPERM may be of the file */
            atomic_store_explicit(&is_missing, true, memory_order_relaxed);
    }
    return sr_beneath_walk(folder, path);
}

void sr_beneath_pretend(bool missing)
{
    atomic_store(&is_missing, missing);
}
