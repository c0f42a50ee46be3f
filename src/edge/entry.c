#include "entry.h"

#include "../conn/deadline.h"
#include "../conn/spools.h"
#include "holder.h"
#include "lanes.h"
#include "log.h"
#include "turns.h"

#include <unistd.h>

void sr_entry_forget(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    if (en->turn)
        sr_turns_leave(ed, en);
    if (en->exchange)
        en->exchange->slot = 0;
    else
        sr_link_remove(&en->runs_on);
    sr_edge_worker *m = en->row ? &ed->workers[en->row - 1] : NULL;
    if (m)
        m->bound = 0;
    en->exchange = NULL;
    en->row = 0;
    en->phase = SR_ENTRY_FREE;
    if (ed->keeps) {
        if (en->lane)
            sr_lanes_leave(ed, en, m);
        sr_buffer_free(&en->values);
        sr_buffer_free(&en->outs);
        sr_buffer_free(&en->request); /* log.c may have left memory here */
    }
    en->number = 0;
    en->waits_for = SR_ENTRY_NOTHING;
    sr_buffer_free(&en->fields);
    sr_link_remove(&en->link);
    if (en->request_fd >= 0) {
        sr_buffer_free(&en->request);
        sr_buffer_free(&en->line);
        close(en->request_fd);
    }
    if (en->body_fd >= 0) {
        close(en->body_fd);
        sr_spools_gave(en->spooled);
    }
    en->request_fd = en->body_fd = -1;
    sr_queue_release(&ed->queue, slot);
}

int64_t sr_entry_since(const sr_edge *ed, uint32_t slot)
{
    const sr_entry *en = &ed->entries[slot];
    return en->lane && !sr_lanes_holds(en)
               ? en->due_at
               : atomic_load_explicit(&sr_queue_at(&ed->queue, slot)->ready_at, memory_order_relaxed);
}

/* --- which worker runs it --- */

/*
 * Whether the worker says that it has begun with this request. While it has another request, it is not
 * believed, or it could keep two; but the end of the other one may still be in its ring.
 */
bool sr_entry_begun(const sr_edge *ed, const sr_edge_worker *m, uint32_t slot)
{
    return sr_entry_hears(m) && atomic_load(&m->reader.ring->began) == ed->entries[slot].number &&
           (!m->bound || m->bound == slot + 1 || sr_reader_waits(&m->reader));
}

int32_t sr_entry_runs(const sr_edge *ed, uint32_t slot)
{
    for (uint32_t row = 0; row < ed->rows; row++)
        if (sr_entry_begun(ed, &ed->workers[row], slot))
            return (int32_t)row;
    return -1;
}

bool sr_entry_requeue(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    if (!en->exchange || !sr_queue_again(&ed->queue, slot, en->number))
        return false;
    if (en->row)
        ed->workers[en->row - 1].bound = 0;
    en->row = en->doubts = 0;
    sr_deadline_set_exchange(ed->engine, en->exchange, SR_DEADLINE_LOOK);
    return true;
}

/* --- abandoned requests: their client is gone --- */

void sr_entry_watch(sr_edge *ed, sr_entry *en, int64_t at)
{
    /* from the end: most are due later than those already in the list */
    sr_link *before = ed->abandoned.prev;
    while (before != &ed->abandoned && SR_LIST_ENTRY(before, sr_entry, link)->due_at > at)
        before = before->prev;
    en->due_at = at;
    sr_link_remove(&en->link);
    sr_link_append(before->next, &en->link);
}

/* Keeps an eye on the worker: it may hang, and no client is left that would notice. */
static void watch_on(sr_edge *ed, uint32_t slot, bool begun)
{
    const sr_config *config = &ed->engine->config;
    sr_entry *en = &ed->entries[slot];
    int64_t at = begun ? ed->engine->now + config->stream_ns : sr_entry_since(ed, slot) + config->request_ns;
    en->limit = begun ? SR_LIMIT_STREAM : SR_LIMIT_REQUEST;
    if (!en->late && (begun ? config->stream_ns : config->request_ns))
        sr_entry_watch(ed, en, at);
}

sr_link *sr_entry_abandon(sr_edge *ed, sr_exchange *x)
{
    uint32_t slot = x->slot - 1;
    sr_entry *en = &ed->entries[slot];
    sr_log_offer(ed, slot);
    x->slot = 0;
    en->exchange = NULL;
    if (en->waits_for) {
        sr_entry_forget(ed, slot);
        return NULL;
    }
    /*
     * The slot will be reused, so an unclaimed slot is not enough: no worker may have announced that it has
     * begun, either.
     */
    if (!en->row && sr_entry_runs(ed, slot) < 0 && sr_queue_drop(&ed->queue, slot, en->number)) {
        sr_entry_forget(ed, slot);
        return NULL;
    }
    bool begun = en->phase == SR_ENTRY_BODY;
    en->phase = SR_ENTRY_WHOLE;
    sr_queue_gone(&ed->queue, slot, en->number, SR_GONE_CLIENT | (en->late ? SR_GONE_LATE : 0));
    int32_t row = sr_holder(ed, slot);
    if (row >= 0 && ed->workers[row].line.fd >= 0)
        sr_ring_tell(&ed->workers[row].reader); /* the worker may be waiting for this client */
    watch_on(ed, slot, begun);
    return &en->runs_on;
}
