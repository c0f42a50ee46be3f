#include "alone.h"

#include "base/clock.h"

#include <poll.h>

#define LOOK_NS (200 * SR_MILLISECOND)

int64_t sirius_alone_look_ns(const sirius_alone *a)
{
    return a->edge >= 0 ? LOOK_NS : 0;
}

bool sirius_alone_ended(const sirius_alone *a)
{
    struct pollfd p = {.fd = a->edge, .events = POLLIN};
    return a->edge >= 0 && poll(&p, 1, 0) > 0;
}

bool sirius_alone_look(sirius_alone *a, const sr_scoreboard *board, int64_t now)
{
    if (!board || now - a->looked_at < LOOK_NS)
        return false;
    a->looked_at = now;
    return atomic_load_explicit(&board->shared->watched, memory_order_relaxed);
}
