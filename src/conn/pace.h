#ifndef SR_PACE_H
#define SR_PACE_H
/*
 * pace: how fast bytes have come or gone of late, for slowest.h. Bytes count half as much after each
 * half-life, so that what was moved quickly at first does not excuse a client that has stalled since.
 *
 * Owner: the body or the output. Thread: one.
 */
#include "../base/clock.h"

/*
 * The half-life. A body is read as it comes. A socket that has filled up says that it takes more only when a
 * third of its buffer is free, which is seconds later if the client is slow.
 */
#define SR_PACE_BODY (150 * SR_MILLISECOND)
#define SR_PACE_OUTPUT (4 * SR_SECOND)

typedef struct sr_pace {
    int64_t began_at;  /* monotonic ns */
    uint32_t after_ms; /* from then until the last bytes */
    float recent;      /* bytes, as they counted at that time */
} sr_pace;

static inline sr_pace sr_pace_begin(int64_t now)
{
    return (sr_pace){.began_at = now};
}

/* Bytes as they count now; between two half-lives along a straight line. */
static inline double sr_pace_recent(const sr_pace *p, int64_t half, int64_t now)
{
    int64_t ns = now - p->began_at - (int64_t)p->after_ms * SR_MILLISECOND;
    if (ns <= 0)
        return (double)p->recent;
    if (ns / half >= 63)
        return 0;
    return (double)p->recent / (double)(UINT64_C(1) << (ns / half)) *
           (1 - (double)(ns % half) / (2 * (double)half));
}

static inline void sr_pace_moved(sr_pace *p, int64_t half, int64_t now, uint64_t bytes)
{
    p->recent = (float)(sr_pace_recent(p, half, now) + (double)bytes);
    p->after_ms = (uint32_t)((now - p->began_at) / SR_MILLISECOND);
}

/* Bytes per second. */
static inline double sr_pace_rate(const sr_pace *p, int64_t half, int64_t now)
{
    static const double ln2 = 0.693147;
    return sr_pace_recent(p, half, now) * ln2 * (double)SR_SECOND / (double)half;
}

#endif
