/*
 * memory: of zeros, as large as asked for, shared by its descriptor; once it is sealed nobody changes its
 * size
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "share/memory.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 10000 };

static off_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_size : -1;
}

static bool all_zeros(const char *at)
{
    for (size_t i = 0; i < BYTES; i++)
        if (at[i])
            return false;
    return true;
}

static bool writable(int fd)
{
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return false;
    munmap(at, BYTES);
    return true;
}

static void test_sealed(bool ours)
{
    int fd;
    char *at = sr_memory_new("test", BYTES, &fd);
    if (!ok(at && fd >= 0, "memory"))
        return;
    ok(all_zeros(at), "of zeros");
    is_int(size_of(fd), BYTES, "as large as asked for");
    is_int(fcntl(fd, F_GETFD), FD_CLOEXEC, "not for programs that are started");
    sr_memory_seal(fd, ours);
    if (on_linux("nobody changes its size", "seals")) {
        is_int(ftruncate(fd, BYTES - 1), -1, "not shorter");
        is_int(errno, EPERM, "since it is sealed");
        is_int(ftruncate(fd, BYTES + 1), -1, "nor longer");
        is_int(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1, "no further seal");
    }
    at[BYTES - 1] = 'x';
    char *other = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    ok(other != MAP_FAILED && other[BYTES - 1] == 'x', "who made it writes on, and others see it");
    if (other != MAP_FAILED)
        munmap(other, BYTES);
    if (!ours)
        ok(writable(fd), "others may write");
    else if (ON_LINUX && fcntl(fd, F_GET_SEALS) & 0x0010) /* F_SEAL_FUTURE_WRITE, Linux 5.1 */
        ok(!writable(fd), "others may not write");
    munmap(at, BYTES);
    close(fd);
}

static void test_failure(void)
{
    int fd = 7;
    struct rlimit none = {1, 1}, before;
    getrlimit(RLIMIT_FSIZE, &before);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &none);
    void *at = sr_memory_new("test", BYTES, &fd);
    int err = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    ok(!at, "no file may be as large: no memory, and no SIGXFSZ");
    is_int(err, EFBIG, "errno says why");
    is_int(fd, -1, "and no descriptor");
}

#ifdef SR_PORTABLE
enum { LARGE = 1024 * 1024 };

/*
 * Its status: bits of what holds where there is no room in /dev/shm, then in /tmp neither. 0: nothing can be
 * mounted here
 */
static int without_room(void)
{
    int fd, status = 1;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, "size=64k") != 0)
        return 0;
    char *at = sr_memory_new("test", LARGE, &fd);
    if (at && memset(at, 1, LARGE))
        status |= 2;
    if (mount("none", "/tmp", "tmpfs", 0, "size=64k") != 0)
        return 0;
    at = sr_memory_new("test", LARGE, &fd);
    if (!at && errno == ENOSPC && fd == -1)
        status |= 4;
    return status;
}

static void test_without_room(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(without_room());
    waitpid(child, &status, 0);
    if (status == 0) {
        ok(true, "no room # SKIP no file systems can be mounted here");
        return;
    }
    ok(WIFEXITED(status), "no room: no SIGBUS");
    ok(WEXITSTATUS(status) & 2, "in /dev/shm: memory of /tmp, all of it");
    ok(WEXITSTATUS(status) & 4, "nor there: no memory, ENOSPC");
}
#endif

int main(void)
{
    test_sealed(false);
    test_sealed(true);
    test_failure();
#ifdef SR_PORTABLE
    test_without_room();
#endif
    return done_testing();
}
