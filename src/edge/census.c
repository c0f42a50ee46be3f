#include "census.h"

#include "../live/live.h"
#include "../net/tempfile.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct census {
    const sr_channel *most[SR_CENSUS_MAX]; /* a heap: the one with the fewest subscribers first */
    unsigned n;
    uint64_t channels, subscriptions;
} census;

static void sink(census *of, unsigned at)
{
    const sr_channel *c = of->most[at];
    for (unsigned below; (below = 2 * at + 1) < of->n; at = below) {
        if (below + 1 < of->n && of->most[below + 1]->n < of->most[below]->n)
            below++;
        if (c->n <= of->most[below]->n)
            break;
        of->most[at] = of->most[below];
    }
    of->most[at] = c;
}

static bool count(void *with, const sr_channel *c)
{
    census *of = with;
    of->channels++;
    of->subscriptions += c->n;
    if (of->n < SR_CENSUS_MAX) {
        of->most[of->n++] = c;
        for (unsigned i = of->n / 2; of->n == SR_CENSUS_MAX && i-- > 0;)
            sink(of, i);
    } else if (c->n > of->most[0]->n) {
        of->most[0] = c;
        sink(of, 0);
    }
    return true;
}

static void add(sr_buffer *out, const sr_channel *c)
{
    char numbers[64];
    int len = snprintf(numbers, sizeof numbers, "%llu %llu ", (unsigned long long)c->n,
                       (unsigned long long)c->messages);
    if (!sr_buffer_reserve(out, (size_t)len + c->name_len + 1))
        return;
    sr_buffer_add(out, numbers, (size_t)len);
    for (size_t i = 0; i < c->name_len; i++) /* a WebSocket may have subscribed to a name with a line end */
        out->data[out->end++] = (unsigned char)c->name[i] < ' ' ? '?' : c->name[i];
    out->data[out->end++] = '\n';
}

void sr_census_file(sr_edge *ed, int fd)
{
    census all = {.n = 0};
    sr_buffer out = {0};
    char head[64];
    if (ed->live)
        sr_live_channels(ed->live, count, &all);
    snprintf(head, sizeof head, "%llu %llu\n", (unsigned long long)all.channels,
             (unsigned long long)all.subscriptions);
    sr_buffer_add(&out, head, strlen(head));
    for (unsigned i = 0; i < all.n; i++)
        add(&out, all.most[i]);
    if (sr_buffer_len(&out)) {
        struct iovec whole = {sr_buffer_at(&out), sr_buffer_len(&out)}, first = {whole.iov_base, 1};
        if (sr_tempfile_put(fd, &whole, 1, 1, 1) == 0)
            sr_tempfile_put(fd, &first, 1, 0, 0);
    }
    sr_buffer_free(&out);
}
