#include "slow.h"

#include "../http/traced.h"
#include "../net/timerfd.h"
#include "presence.h"
#include "report.h"
#include "slots.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define MINUTE_NS (60 * SR_SECOND)
#define LOOK_NS (10 * SR_MILLISECOND) /* no more frequent looks */

enum { REPORT_MAX = 2048 }; /* below PIPE_BUF */

/* --- how many --- */

/*
 * One report each 6 s, and 10 at once if there was none for a minute: so there are at most 20 in any minute,
 * and they are of all of it.
 */
static bool may_report(sr_edge *ed)
{
    sr_slow_log *s = &ed->slow;
    int64_t now = ed->engine->now, earliest = now - s->burst * s->each_ns;
    if (s->spent_to < earliest)
        s->spent_to = earliest;
    if (s->spent_to + s->each_ns > now)
        return false;
    s->spent_to += s->each_ns;
    return true;
}

static void leave_out(sr_edge *ed)
{
    sr_slow_log *s = &ed->slow;
    if (!s->left_out++)
        s->sum_at = ed->engine->now + MINUTE_NS;
}

static void tell_left_out(sr_edge *ed)
{
    sr_slow_log *s = &ed->slow;
    char line[256];
    if (!s->left_out)
        return;
    int n = sr_report_begin(ed, line, (int32_t)getpid(), "more");
    snprintf(line + n, sizeof line - (size_t)n,
             "%llu more request%s ran for longer than %g s; not all of them are logged (--slow-log)\n",
             (unsigned long long)s->left_out, s->left_out == 1 ? "" : "s",
             (double)s->limit_ns / (double)SR_SECOND);
    if (sr_report(ed, line))
        s->left_out = 0;
    else
        s->sum_at = ed->engine->now + SR_SECOND;
}

/* --- a report --- */

/* What keeps the request, apart from the application. */
static const char *state(const sr_edge *ed, uint32_t slot, const sr_edge_worker *m)
{
    const sr_entry *en = &ed->entries[slot];
    const sr_ring *ring = m->reader.ring;
    uint64_t ahead = atomic_load(&sr_queue_at(&ed->queue, slot)->backlog) +
                     (atomic_load_explicit(&ring->put, memory_order_relaxed) - m->reader.taken);
    const sr_conn *c = en->exchange ? en->exchange->conn : NULL;
    if (c && en->exchange->lent)
        return ", it has the connection (psgix.io)";
    if (!c || sr_presence(c) < 0)
        return ", its client is gone";
    if (ahead > SR_BACKLOG_MAX) /* no write of a stream returns before it is less */
        return ", it waits for its client to read the response";
    return en->phase == SR_ENTRY_BODY ? ", its response has begun" : "";
}

static double seconds(int64_t ns)
{
    return (double)(ns / (100 * SR_MILLISECOND)) / 10;
}

/* "4720 slow 1234567890 slow request: GET /path from 192.0.2.7:33330 has run for 2.0 s ..." */
static bool report(sr_edge *ed, uint32_t slot, const sr_edge_worker *m, int64_t began_at)
{
    const sr_slot *s = sr_queue_at(&ed->queue, slot);
    int64_t ready_at = atomic_load_explicit(&s->ready_at, memory_order_relaxed);
    char line[SR_TEXT_LINE_MAX], client[SR_TEXT_CLIENT_MAX], made[SR_REQUEST_ID_MADE], out[REPORT_MAX];
    const char *base;
    const sr_request *r = sr_text_request(ed, slot, &base);
    sr_bytes parent = r ? sr_traced_parent(r, base) : (sr_bytes){NULL, 0};
    sr_bytes id = sr_text_id(ed, slot, made);
    int len = (int)sr_text_line(ed, slot, line);
    if (!parent.at)
        parent = SR_BYTES("-");
    sr_text_client(&s->client, client);
    int n = sr_report_begin(ed, out, m->pid, "slow");
    if (ed->report >= 0)
        n += snprintf(out + n, sizeof out - (size_t)n, "%lld ", (long long)ready_at);
    snprintf(out + n, sizeof out - (size_t)n,
             "slow request: %.*s from %s has run for %.1f s after waiting %.1f s%s; request id %.*s, "
             "traceparent %.*s%s\n",
             len, line, client, seconds(ed->engine->now - began_at),
             seconds(began_at - ready_at + s->before_ns), state(ed, slot, m), (int)id.len, id.at,
             (int)parent.len, parent.at, ed->report < 0 ? "; with --workers 0 its stack is not read" : "");
    return sr_report(ed, out);
}

/* --- looks --- */

/* Since when the worker runs the request that it has begun with last, limited to what is possible. */
static int64_t began_at(const sr_edge *ed, const sr_edge_worker *m)
{
    int64_t at = atomic_load_explicit(&m->reader.ring->began_at, memory_order_relaxed);
    return at > ed->engine->now ? ed->engine->now : at;
}

/* Whether the worker still runs what it began long ago. */
static void look_at(sr_edge *ed, const sr_edge_worker *m, int64_t at)
{
    uint32_t slot = m->bound - 1;
    sr_entry *en = &ed->entries[slot];
    if (en->slow || atomic_load(&m->reader.ring->began) != en->number)
        return;
    int64_t ready_at = atomic_load_explicit(&sr_queue_at(&ed->queue, slot)->ready_at, memory_order_relaxed);
    en->slow = true;
    sr_counters_add(&ed->engine->row->counters.slow, 1);
    if (!may_report(ed) || !report(ed, slot, m, at < ready_at ? ready_at : at))
        leave_out(ed);
}

static void look(sr_edge *ed)
{
    sr_slow_log *s = &ed->slow;
    int64_t now = ed->engine->now;
    s->look_at = now + s->limit_ns;
    for (uint32_t row = 0; row < ed->rows; row++) {
        const sr_edge_worker *m = &ed->workers[row];
        if (m->line.fd < 0 || m->broken)
            continue;
        int64_t at = began_at(ed, m), due = at > now - s->limit_ns ? at + s->limit_ns : now;
        if (due > now && due < s->look_at)
            s->look_at = due;
        if (due <= now && m->bound)
            look_at(ed, m, at);
    }
    if (s->look_at < now + LOOK_NS)
        s->look_at = now + LOOK_NS;
}

/* For the next look, or to tell what was left out. */
static void timer_set(const sr_edge *ed)
{
    const sr_slow_log *s = &ed->slow;
    int64_t at = s->left_out && s->sum_at < s->look_at ? s->sum_at : s->look_at;
    sr_timerfd_set(s->timer.fd, at == INT64_MAX ? 0 : at);
}

/* --- what the others call --- */

int sr_slow_open(sr_edge *ed, int64_t limit_ns, uint32_t per_minute)
{
    sr_slow_log *s = &ed->slow;
    if (!limit_ns)
        return 0;
    if (per_minute < 2)
        per_minute = 2;
    s->limit_ns = limit_ns;
    s->look_at = INT64_MAX;
    s->burst = per_minute / 2;
    s->each_ns = MINUTE_NS / (per_minute - s->burst);
    s->timer = (sr_source){.fd = sr_timerfd_open(), .kind = SR_SOURCE_SLOW};
    return s->timer.fd < 0 ? errno : sr_loop_add(&ed->engine->loop, &s->timer, EPOLLIN);
}

void sr_slow_begin(sr_edge *ed)
{
    if (!ed->slow.limit_ns || ed->slow.look_at != INT64_MAX)
        return;
    look(ed);
    timer_set(ed);
}

void sr_slow_timer(sr_edge *ed)
{
    sr_slow_log *s = &ed->slow;
    sr_timerfd_heard(s->timer.fd);
    if (s->left_out && s->sum_at <= ed->engine->now)
        tell_left_out(ed);
    if (!sr_slots_used(ed))
        s->look_at = INT64_MAX;
    else if (s->look_at <= ed->engine->now)
        look(ed);
    timer_set(ed);
}

void sr_slow_end(sr_edge *ed)
{
    tell_left_out(ed);
}
