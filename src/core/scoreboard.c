#include "scoreboard.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

sr_scoreboard *sr_scoreboard_new(uint32_t slots)
{
    if (slots < 1 || slots > SR_SLOTS_MAX) {
        errno = EINVAL;
        return NULL;
    }
    size_t size = sizeof(sr_scoreboard) + slots * sizeof(sr_row);
    sr_scoreboard *s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    s->size = size;
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

void sr_scoreboard_free(sr_scoreboard *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->slots; i++)
        close(s->rows[i].bell);
    munmap(s, s->size);
}

void sr_scoreboard_ring(sr_row *row)
{
    uint64_t one = 1;
    ssize_t n = write(row->bell, &one, sizeof one);
    (void)n; /* EAGAIN: it rings already */
}

const char *sr_worker_state_name(uint32_t state)
{
    static const char *const names[] = {"free", "starting", "idle", "busy", "draining"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}
