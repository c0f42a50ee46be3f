#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "scoreboard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_TRIES = 100 }; /* it takes 20 ns to write, unless the writer loses its CPU meanwhile */

static void close_keeping_errno(int fd)
{
    int err = errno;
    close(fd);
    errno = err;
}

static sr_scoreboard *map(int fd, size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

sr_scoreboard *sr_scoreboard_new(uint32_t slots)
{
    if (slots < 1 || slots > SR_SLOTS_MAX) {
        errno = EINVAL;
        return NULL;
    }
    size_t size = sizeof(sr_scoreboard) + slots * sizeof(sr_row);
    int fd =
        (int)syscall(SYS_memfd_create, "sirius scoreboard", MFD_CLOEXEC); /* glibc has it since 2.27 only */
    if (fd < 0)
        return NULL;
    sr_scoreboard *s = ftruncate(fd, (off_t)size) == 0 ? map(fd, size) : NULL;
    if (!s) {
        close_keeping_errno(fd);
        return NULL;
    }
    s->size = size;
    s->memfd = fd;
    while (s->slots < slots) {
        int bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (bell < 0) {
            int err = errno;
            sr_scoreboard_free(s);
            errno = err;
            return NULL;
        }
        s->rows[s->slots++].bell = bell;
    }
    return s;
}

sr_scoreboard *sr_scoreboard_adopt(int memfd)
{
    struct stat st;
    if (fstat(memfd, &st) != 0)
        return NULL;
    size_t size = (size_t)st.st_size;
    sr_scoreboard *s = size >= sizeof *s ? map(memfd, size) : NULL;
    if (!s || s->size != size || s->memfd != memfd ||
        size != sizeof *s + s->slots * sizeof(sr_row)) { /* of a version whose rows are others, too */
        if (s)
            munmap(s, size);
        errno = EINVAL;
        return NULL;
    }
    fcntl(memfd, F_SETFD, FD_CLOEXEC);
    for (uint32_t i = 0; i < s->slots; i++)
        fcntl(s->rows[i].bell, F_SETFD, FD_CLOEXEC);
    return s;
}

void sr_scoreboard_free(sr_scoreboard *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->slots; i++)
        close(s->rows[i].bell);
    close(s->memfd);
    munmap(s, s->size);
}

bool sr_scoreboard_room(const sr_scoreboard *s, uint32_t generation)
{
    uint32_t workers = atomic_load_explicit(&s->workers, memory_order_relaxed), taken = 0, vacant = 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (atomic_load_explicit(&s->rows[i].pid, memory_order_relaxed) == 0)
            vacant++;
        else
            taken += atomic_load_explicit(&s->rows[i].generation, memory_order_relaxed) == generation;
    return vacant && (!workers || taken < workers + (workers > 8 ? workers : 8));
}

uint64_t sr_scoreboard_waiting(const sr_scoreboard *s, const sr_row *but)
{
    int32_t queued = atomic_load_explicit(&s->queued, memory_order_relaxed);
    uint64_t sum = queued > 0 ? (uint64_t)queued : 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (&s->rows[i] != but)
            sum += atomic_load_explicit(&s->rows[i].waiting, memory_order_relaxed);
    return sum;
}

int32_t sr_scoreboard_claim(sr_scoreboard *s, uint32_t generation)
{
    if (!sr_scoreboard_room(s, generation))
        return -1;
    for (uint32_t i = 0; i < s->slots; i++) {
        int32_t free_row = 0;
        if (!atomic_compare_exchange_strong(&s->rows[i].pid, &free_row, SR_CLAIMED))
            continue;
        atomic_store_explicit(&s->rows[i].generation, generation, memory_order_relaxed);
        return (int32_t)i;
    }
    return -1;
}

void sr_scoreboard_release(sr_scoreboard *s, uint32_t slot)
{
    sr_row *r = &s->rows[slot];
    atomic_store_explicit(&r->state, SR_WORKER_FREE, memory_order_relaxed);
    atomic_store_explicit(&r->connections, 0, memory_order_relaxed);
    atomic_store_explicit(&r->idle, 0, memory_order_relaxed);
    atomic_store_explicit(&r->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&r->oldest, 0, memory_order_relaxed);
    atomic_store_explicit(&r->shed, 0, memory_order_relaxed);
    atomic_store_explicit(&r->began, 0, memory_order_relaxed);
    atomic_store_explicit(&r->pid, 0, memory_order_release); /* last: then another may claim it */
}

void sr_scoreboard_ring(sr_row *row)
{
    uint64_t one = 1;
    ssize_t n = write(row->bell, &one, sizeof one);
    (void)n; /* EAGAIN: it rings already */
}

/* --- the request line --- */

void sr_row_set_line(sr_row *row, const char *at, size_t len)
{
    if (len > SR_LINE_MAX)
        len = SR_LINE_MAX;
    /* odd already: the row's last worker was killed right here */
    uint32_t sequence = atomic_load_explicit(&row->line_sequence, memory_order_relaxed) | 1;
    atomic_store_explicit(&row->line_sequence, sequence, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&row->line_len, (uint32_t)len, memory_order_relaxed);
    for (size_t i = 0; i * sizeof(uint64_t) < len; i++) {
        uint64_t word;
        memcpy(&word, at + i * sizeof word, sizeof word);
        atomic_store_explicit(&row->line[i], word, memory_order_relaxed);
    }
    atomic_store_explicit(&row->line_sequence, sequence + 1, memory_order_release);
}

/* False: it was being written. */
static bool read_line(const sr_row *row, uint64_t *line, size_t *len)
{
    uint32_t sequence = atomic_load_explicit(&row->line_sequence, memory_order_acquire);
    *len = atomic_load_explicit(&row->line_len, memory_order_relaxed);
    if (sequence & 1 || *len > SR_LINE_MAX)
        return false;
    for (size_t i = 0; i * sizeof *line < *len; i++)
        line[i] = atomic_load_explicit(&row->line[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&row->line_sequence, memory_order_relaxed) == sequence;
}

size_t sr_row_line(const sr_row *row, char *out, size_t cap)
{
    uint64_t line[SR_LINE_MAX / sizeof(uint64_t)];
    size_t len = 0;
    for (int i = 0; i < LINE_TRIES; i++) {
        if (!read_line(row, line, &len))
            continue;
        if (len > cap)
            len = cap;
        memcpy(out, line, len);
        return len;
    }
    return 0;
}

size_t sr_row_text(const sr_row *row, char *out, size_t cap)
{
    char line[SR_LINE_MAX];
    size_t len = sr_row_line(row, line, sizeof line), used = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line[i];
        bool plain = c >= 0x20 && c <= 0x7e;
        if (cap - used < (plain ? 1 : 4))
            break;
        if (plain) {
            out[used++] = (char)c;
            continue;
        }
        const char escape[4] = {'\\', 'x', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
        memcpy(out + used, escape, sizeof escape);
        used += sizeof escape;
    }
    return used;
}

const char *sr_worker_state_name(uint32_t state)
{
    static const char *const names[] = {"free", "starting", "idle", "busy", "draining"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}
