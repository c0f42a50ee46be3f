#include "edge.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define GAVE_UP_NS                                                                                           \
    (10 * SR_MILLISECOND) /* a client that has shut its side down by then does not wait for an answer */

void sr_edge_leave(sr_edge *ed, sr_conn *c)
{
    uint32_t slot = c->slot - 1;
    sr_entry *en = &ed->entries[slot];
    sr_edge_log_offer(ed, slot);
    c->slot = 0;
    en->conn = NULL;
    if (sr_queue_drop(&ed->queue, slot, en->number)) {
        sr_edge_forget(ed, slot);
        return;
    }
    en->phase = SR_ENTRY_WHOLE;
    atomic_store(&sr_queue_at(&ed->queue, slot)->gone, 1);
    int32_t row = sr_queue_owner(&ed->queue, slot, en->number);
    if (row >= 0 && ed->mates[row].line.fd >= 0)
        sr_ring_tell(&ed->mates[row].reader); /* a writer may wait for this client */
}

static bool waits(const sr_edge *ed, const sr_conn *c)
{
    uint32_t slot = c->slot - 1;
    return sr_queue_owner(&ed->queue, slot, ed->entries[slot].number) < 0;
}

/* 0: the client is there; 1: it has shut its side down; -1: it is gone. */
static int peer_state(const sr_conn *c)
{
    char byte;
    ssize_t n = recv(c->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0)
        return 1;
    return n > 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

/* True: it was closed. */
static bool dropped(sr_edge *ed, sr_conn *c)
{
    sr_engine *e = ed->engine;
    int state = peer_state(c);
    bool nobody = state < 0 || (state > 0 && waits(ed, c) && e->now - c->ready_at >= GAVE_UP_NS);
    if (nobody)
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
    return nobody;
}

void sr_edge_peer_event(sr_edge *ed, sr_conn *c, uint32_t events)
{
    sr_engine *e = ed->engine;
    if (events & EPOLLOUT && c->out) {
        sr_edge_writable(ed, c);
        return;
    }
    if (dropped(ed, c))
        return;
    if (c->out)
        sr_conn_watch(e, c, EPOLLOUT);
    else
        sr_conn_unwatch(
            e, c); /* bytes of the next request: level-triggered, it would be reported again and again */
}

/* The line of the supervisor: "row 3 pid 4711 timeout 60.0" */
static void tell(sr_edge *ed, int32_t row, int64_t ns)
{
    char text[96];
    int32_t pid = row >= 0 ? ed->mates[row].pid : 0;
    snprintf(text, sizeof text, "%d timeout %.1f\n", (int)pid, (double)ns / 1e9);
    sr_edge_report(ed, text);
}

bool sr_edge_overdue(sr_edge *ed, sr_conn *c)
{
    sr_engine *e = ed->engine;
    sr_entry *en = &ed->entries[c->slot - 1];
    uint32_t slot = c->slot - 1;
    const sr_config *config = &e->config;
    if (en->phase == SR_ENTRY_BODY) { /* its stream stands still */
        int32_t row = sr_queue_owner(&ed->queue, slot, en->number);
        tell(ed, row, config->stream_ns);
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return true;
    }
    if (dropped(ed, c))
        return true;
    int64_t waited = e->now - c->ready_at;
    if (waits(ed, c)) {
        int64_t limit = e->limit[SR_DEADLINE_QUEUE];
        if (waited >= limit && sr_queue_drop(&ed->queue, slot, en->number)) {
            sr_edge_forget(ed, slot);
            return false;
        }
        sr_conn_watch(e, c, EPOLLIN | EPOLLRDHUP); /* from now on its end is noticed */
        if (c->slot)
            sr_deadline_keep(e, c, SR_DEADLINE_QUEUE, c->ready_at + limit);
        return true;
    }
    if (!config->request_ns)
        return true;
    if (waited < config->request_ns) {
        sr_deadline_keep(e, c, SR_DEADLINE_QUEUE, c->ready_at + config->request_ns);
        return true;
    }
    tell(ed, sr_queue_owner(&ed->queue, slot, en->number), waited);
    en->late = true;
    sr_outflow_refuse(e, c, 504, c->is_head);
    return true;
}
