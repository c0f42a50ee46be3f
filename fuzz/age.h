#ifndef AGE_H
#define AGE_H
/*
 * age: an edge as it would be later. For targets whose clock is that of the system; those of moments.h turn
 * their own.
 */
#include "edge/edge.h"
#include "websocket/websocket.h"

/* As if so many ns had gone by for its exchanges and limits. */
static inline void age_edge(sr_edge *ed, int64_t ns)
{
    const sr_link *all = &ed->engine->all;
    for (sr_link *l = all->next; l != all; l = l->next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        c->deadline.at -= ns;
        if (!c->exchange)
            continue;
        c->exchange->deadline.at -= ns;
        c->exchange->ready_at -= ns;
        c->exchange->active_at -= ns;
    }
    for (uint32_t i = 0; i < ed->slots; i++) { /* requests that the edge makes are of no connection there */
        sr_exchange *x = ed->entries[i].exchange;
        if (!x || x->conn->source.fd >= 0)
            continue;
        x->deadline.at -= ns;
        x->ready_at -= ns;
        atomic_fetch_sub(&sr_queue_at(&ed->queue, i)->ready_at, ns);
    }
    for (sr_link *l = ed->abandoned.next; l != &ed->abandoned; l = l->next)
        SR_LIST_ENTRY(l, sr_entry, link)->due_at -= ns;
    ed->mend.at -= ns;
    if (ed->websockets)
        ed->websockets->again_at -= ns;
    ed->engine->deadlines.due_at = 0;
}

#endif
