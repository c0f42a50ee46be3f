#include "dispatch.h"

#include "../conn/account.h"
#include "../conn/protocol.h"
#include "../conn/trouble.h"
#include "../net/memfile.h"
#include "files.h"
#include "lanes.h"
#include "plain.h"
#include "text.h"
#include "turns.h"
#include "upgrade.h"

#include <errno.h>
#include <unistd.h>

static size_t parse_bytes(const sr_request *r)
{
    return (sr_request_bytes(r) + 15) & ~(size_t)15;
}

/* Writes a request that is too large for a slot to a file in memory. -1 with errno. */
static int spill(const sr_task *t, size_t parse, size_t head, size_t body, sr_bytes facts)
{
    static char zero[16];
    size_t used = sr_request_bytes(t->request);
    struct iovec iov[] = {{(void *)t->request, used},
                          {zero, parse - used},
                          {(char *)t->base, head},
                          {(char *)t->body.at, body},
                          {(char *)facts.at, facts.len}};
    return sr_memfile("sirius-request", iov, sizeof iov / sizeof *iov, false);
}

static void forwarded(sr_slot *s, const sr_task *t)
{
    const sr_forwarded *f = t->forwarded;
    s->forwarded = f != NULL;
    s->scheme = SR_SCHEME_UNSAID;
    s->server_port = 0;
    s->host_at = s->host_len = 0;
    if (!f)
        return;
    s->scheme = (uint8_t)f->scheme;
    s->server_port = f->server_port;
    if (f->host.at) {
        s->host_at = (uint32_t)(f->host.at - t->base);
        s->host_len = (uint32_t)f->host.len;
    }
}

/* For messages about a request whose head is not in its slot. */
__attribute__((noinline)) static void keep_line(sr_entry *en, const sr_task *t)
{
    char line[SR_LINE_MAX];
    sr_buffer_add(&en->line, line, sr_text_request_line(t->request, t->base, line));
}

/* Inline, as `filled`: with lanes it has two callers, and a call costs 20 instructions of each request. */
static inline __attribute__((always_inline)) bool fill(sr_edge *ed, sr_slot *s, sr_entry *en,
                                                       const sr_task *t)
{
    size_t parse = parse_bytes(t->request), head = t->request->head_len;
    size_t body = t->body_fd >= 0 ? 0 : t->body.len;
    const sr_exchange *x = t->exchange;
    atomic_store_explicit(&s->ready_at, x->ready_at, memory_order_relaxed);
    atomic_store_explicit(&s->placed_at, x->ready_at, memory_order_relaxed);
    s->ready_wall = x->ready_at + ed->engine->wall_offset;
    s->before_ns = x->before_ns;
    s->body_length = t->body_length;
    s->client = x->client;
    s->trusted = x->trusted;
    s->in_lane = false;
    s->listener = x->conn->listener;
    s->parse = (uint32_t)parse;
    s->head = (uint32_t)head;
    s->body = (uint32_t)body;
    sr_bytes facts = sr_transport_facts(x->conn->transport);
    s->facts = (uint32_t)facts.len;
    uint32_t files = t->body_fd >= 0 ? SR_FILE_BODY : 0;
    forwarded(s, t);
    atomic_store_explicit(&s->backlog, 0, memory_order_relaxed);
    if (parse + head + body + facts.len > SR_SLOT_DATA) {
        if ((en->request_fd = spill(t, parse, head, body, facts)) < 0)
            return false;
        if (sr_text_copies(ed) &&
            !(sr_buffer_add(&en->request, t->request, parse) && sr_buffer_add(&en->request, t->base, head)))
            sr_buffer_free(&en->request); /* its log line will lack values */
        keep_line(en, t);
        files |= SR_FILE_REQUEST;
    } else {
        memcpy(s->data, t->request, sr_request_bytes(t->request));
        memcpy(s->data + parse, t->base, head);
        if (body)
            memcpy(s->data + parse + head, t->body.at, body);
        if (facts.len)
            memcpy(s->data + parse + head + body, facts.at, facts.len);
    }
    atomic_store_explicit(&s->files, files, memory_order_relaxed);
    en->body_fd = t->body_fd;
    en->spooled = t->body_fd >= 0 ? t->body_length : 0;
    return true;
}

static void no_room(sr_edge *ed, sr_task *task, uint8_t lane)
{
    if (lane)
        sr_lanes_refused(ed, lane);
    else
        sr_trouble_count(ed->engine, SR_TROUBLE_QUEUE, 1, 0);
    sr_intake_refuse(ed->engine, task, 503, lane ? SR_REFUSED_LANE : SR_REFUSED_QUEUE, NULL);
}

/*
 * Fills a slot, which is not in the queue yet, if there is room. NULL: there is no slot, or no memory, and
 * the client was told. `full`: the lane that has no room; 0: it is the queue. Inline: that saves 30
 * instructions for each request.
 */
static inline __attribute__((always_inline)) sr_entry *filled(sr_edge *ed, sr_task *task, bool room,
                                                              uint8_t full, uint32_t *index)
{
    sr_engine *e = ed->engine;
    sr_exchange *x = task->exchange;
    sr_slot *s = room ? sr_queue_slot(&ed->queue, index) : NULL;
    if (!s) {
        no_room(ed, task, full);
        return NULL;
    }
    sr_entry *en = &ed->entries[*index];
    if (!fill(ed, s, en, task)) {
        int err = errno;
        sr_trouble_count(e, SR_TROUBLE_MEMORY, 1, err);
        sr_queue_release(&ed->queue, *index);
        sr_intake_refuse(e, task, 503, sr_account_lack(err), NULL);
        return NULL;
    }
    x->protocol->taken(e, x);
    x->given_at = 0;
    x->slot = *index + 1;
    if (x->stream)
        en->turn = sr_turns_of(x->conn);
    en->exchange = x;
    en->phase = SR_ENTRY_OPEN;
    en->late = en->overdue = en->slow = en->spoken = en->filed = en->held = false;
    en->trusted = x->trusted;
    en->row = en->doubts = 0;
    return en;
}

static inline bool has_room(sr_edge *ed)
{
    return sr_queue_waiting(&ed->queue) + ed->turns.n + ed->others.waiting < ed->engine->config.max_queue;
}

/* Not inlined either: it is not on the path that has to be fast. */
static __attribute__((noinline)) void enter(sr_edge *ed, sr_task *task)
{
    uint32_t index;
    if (filled(ed, task, has_room(ed), 0, &index))
        sr_turns_enter(ed, index);
}

/* False: it belongs to no lane. Not inline, for the sake of those that have none. */
static __attribute__((noinline)) bool in_lane(sr_edge *ed, sr_task *task)
{
    uint8_t lane = sr_lanes_find(ed, task);
    uint32_t index;
    if (!lane)
        return false;
    sr_lane_state state = sr_lanes_state(ed, lane);
    bool full = state == SR_LANE_FULL, room = state == SR_LANE_BUSY || (!full && has_room(ed));
    sr_entry *en = filled(ed, task, room, full ? lane : 0, &index);
    if (en) {
        en->lane = lane;
        sr_lanes_hold(ed, index);
    }
    return true;
}

/* A challenge comes before a redirect, as the certificate for https may be missing; a file comes after it. */
static bool answered(sr_edge *ed, sr_task *task)
{
    return (!task->exchange->conn->transport && sr_plain_answer(ed, task)) ||
           (ed->holds_all && sr_upgrade_answer(ed, task)) ||
           (ed->answer.mounts && sr_files_answer(ed, ed->answer.mounts, task)) ||
           (ed->lanes && in_lane(ed, task));
}

void sr_dispatch(sr_edge *ed, sr_task *task)
{
    uint32_t index;
    if (ed->answer.any && answered(ed, task))
        return;
    if (filled(ed, task, has_room(ed), 0, &index))
        sr_turns_enter(ed, index);
}

bool sr_dispatch_has_room(void *with, const sr_task *task)
{
    sr_edge *ed = with;
    uint8_t lane = ed->lanes ? sr_lanes_find(ed, task) : 0;
    sr_lane_state state = lane ? sr_lanes_state(ed, lane) : SR_LANE_FREE;
    return state != SR_LANE_FULL && (state == SR_LANE_BUSY || has_room(ed));
}

void sr_dispatch_errand(void *with, sr_task *task)
{
    sr_edge *ed = with;
    if (!ed->lanes || !in_lane(ed, task))
        enter(ed, task);
}
