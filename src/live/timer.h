#ifndef SR_TIMER_H
#define SR_TIMER_H
/* timer: of subscribers, by the second: a wheel of lists. Called by the files of this folder. */
#include "live.h"

/* The second of the loop's clock, from 1. */
static inline uint32_t sr_live_second(const sr_live *live)
{
    return (uint32_t)(live->engine->now / SR_SECOND) + 1;
}

void sr_timers_step(sr_live *live);       /* calls those that are due, some of them in each step */
bool sr_timers_wait(const sr_live *live); /* some are due */

#endif
