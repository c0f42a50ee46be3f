#include "shared.h"

#include "base/clock.h"
#include "base/random.h"
#include "share/common.h"
#include "share/memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int sirius_sleepers_new(pTHX_ uint32_t rows)
{
    int fd;
    if (!rows || rows > SR_SLEEPERS_ROWS)
        croak("Sirius::Edge::Shared: %lu is not a number of rows from 1 to %d", (unsigned long)rows,
              (int)SR_SLEEPERS_ROWS);
    void *at = sr_memory_new("sirius-sleepers", SR_SLEEPERS_BYTES, &fd);
    if (!at)
        croak("cannot create shared memory: %s\n", Strerror(errno));
    sr_memory_seal(fd, false);
    sr_sleepers_init(at, rows);
    uint64_t key;
    if (!sr_random(&key, sizeof key))
        key = (uint64_t)sr_clock_monotonic() ^ (uint64_t)getpid()
                                                   << 40; /* EINTR, ENOSYS: good enough, the key is a hint */
    atomic_store(&((sr_sleepers *)at)->key, key);
    munmap(at, SR_SLEEPERS_BYTES);
    return fd;
}

sr_sleepers *sirius_sleepers_map(pTHX_ int fd)
{
    struct stat st;
    void *at = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size == SR_SLEEPERS_BYTES)
        at = mmap(NULL, SR_SLEEPERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        croak("Sirius::Worker::RequestLoop->new: sleepers: %s\n", Strerror(errno));
    return at;
}

void sirius_sleepers_over(pTHX_ int fd)
{
    sr_sleepers *s = sirius_sleepers_map(aTHX_ fd);
    sr_sleepers_end_all(s);
    munmap(s, SR_SLEEPERS_BYTES);
}

void sirius_sleepers_hold(pTHX_ int fd, uint32_t generation)
{
    sr_sleepers *s = sirius_sleepers_map(aTHX_ fd);
    sr_sleepers_hold(s, generation);
    munmap(s, SR_SLEEPERS_BYTES);
}

int sirius_common_new(pTHX)
{
    int fd;
    void *at = sr_memory_new("sirius-common", sizeof(sr_common), &fd);
    if (!at)
        croak("cannot create shared memory: %s\n", Strerror(errno));
    sr_memory_seal(fd, false);
    munmap(at, sizeof(sr_common));
    return fd;
}

void sirius_common_clear(pTHX_ int fd, uint32_t edge)
{
    void *at = mmap(NULL, sizeof(sr_common), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        croak("Sirius::Edge::Shared->part: %s\n", Strerror(errno));
    sr_common_clear(at, edge);
    munmap(at, sizeof(sr_common));
}

void sirius_sleepers_part(pTHX_ int fd, uint32_t edge)
{
    sr_sleepers *s = sirius_sleepers_map(aTHX_ fd);
    if (edge < SR_EDGES_MAX)
        sr_sleepers_part(s, edge);
    munmap(s, SR_SLEEPERS_BYTES);
}
