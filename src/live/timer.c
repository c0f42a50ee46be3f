#include "timer.h"

enum { PER_STEP = 64 }; /* timers that fire in a step of the loop */

void sr_timer_set(sr_live *live, sr_subscriber *s, uint32_t seconds)
{
    if (!sr_link_alone(&s->timer)) {
        sr_link_remove(&s->timer);
        live->wheel.n--;
    }
    if (!seconds)
        return;
    if (!live->wheel.n)
        live->wheel.second = sr_live_second(live);
    s->due = sr_live_second(live) + seconds + 1; /* not earlier */
    sr_link_append(&live->wheel.slot[s->due % SR_LIVE_WHEEL], &s->timer);
    live->wheel.n++;
}

/*
 * One step looks at a part of the seconds that have passed. What is due in a later turn of the wheel goes
 * back to its list, which is gone through as far as it was when the second came.
 */
void sr_timers_step(sr_live *live)
{
    uint32_t now = sr_live_second(live);
    int fired = 0;
    while (live->wheel.n && live->wheel.second <= now) {
        sr_link *list = &live->wheel.slot[live->wheel.second % SR_LIVE_WHEEL], later, *next;
        sr_link_init(&later);
        while ((next = list->next) != list && fired < PER_STEP) {
            sr_subscriber *s = SR_LIST_ENTRY(next, sr_subscriber, timer);
            if (s->due > now) {
                sr_link_append(&later, &s->timer);
                continue;
            }
            sr_timer_set(live, s, 0);
            fired++;
            s->ops->due(live, s);
        }
        bool through = sr_link_alone(list);
        while (!sr_link_alone(&later))
            sr_link_append(list, later.next);
        if (!through)
            return;
        live->wheel.second++;
    }
}

bool sr_timers_wait(const sr_live *live)
{
    return live->wheel.n && live->wheel.second <= sr_live_second(live);
}
