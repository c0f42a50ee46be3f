#include "scoreboard.h"

#include <errno.h>
#include <sys/mman.h>

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
    s->slots = slots;
    s->size = size;
    return s;
}

void sr_scoreboard_free(sr_scoreboard *s)
{
    if (s)
        munmap(s, s->size);
}

const char *sr_worker_state_name(uint32_t state)
{
    static const char *const names[] = {"free", "starting", "idle", "busy", "draining"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}
