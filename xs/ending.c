#include "ending.h"

#include <stdio.h>

void sirius_ending_open(sirius_ending *e, uint64_t max_requests, uint64_t soon_requests, uint64_t max_rss)
{
    *e = (sirius_ending){.max_requests = max_requests, .soon_requests = soon_requests, .max_rss = max_rss};
    if (max_rss)
        sr_resident_open(&e->resident);
}

void sirius_ending_close(sirius_ending *e)
{
    if (e->max_rss)
        sr_resident_close(&e->resident);
}

const char *sirius_ending_reason(sirius_ending *e, const char *why)
{
    if (e->told)
        return why;
    e->told = true;
    return "retiring";
}

static const char *size_said(const sirius_ending *e, char *to, size_t cap, const char *what)
{
    snprintf(to, cap, "%s (%.1f MiB, the limit is %g MiB)", what, (double)e->rss / (1 << 20),
             (double)e->max_rss / (1 << 20));
    return to;
}

const char *sirius_ending_served(sirius_ending *e)
{
    static char text[96], over[96]; /* what they say is kept for the end */
    e->served++;
    if (e->max_rss) {
        e->rss = sr_resident_bytes(&e->resident);
        if (e->rss > e->max_rss && !e->why)
            e->why = size_said(e, over, sizeof over, "max-rss");
        if (e->rss > e->max_rss - e->max_rss / 10 && !e->soon_said) {
            e->soon_said = true;
            return size_said(e, text, sizeof text, "soon max-rss");
        }
    }
    if (e->max_requests && e->served >= e->max_requests && !e->why)
        e->why = "max-requests";
    if (e->soon_requests && e->served >= e->soon_requests && !e->soon_said) {
        e->soon_said = true;
        snprintf(text, sizeof text, "soon max-requests (%llu requests)", (unsigned long long)e->served);
        return text;
    }
    return NULL;
}
