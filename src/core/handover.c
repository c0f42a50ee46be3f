/*
 * handover: connections that change their worker.
 *
 * Only what can move, moves: a connection between two requests, with a part of a head, or with a complete
 * request that nobody has begun to serve; never one with response bytes pending. The bytes read travel along
 * and are parsed again: that costs 0.1 to 1 us and keeps pointers out of messages.
 */
#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- giving --- */

bool sr_handover_can_move(const sr_conn *c)
{
    if (c->out || c->borrowed ||
        (c->state != SR_CONN_IDLE && c->state != SR_CONN_HEAD && c->state != SR_CONN_READY))
        return false;
    size_t bytes = sr_buffer_len(&c->in);
    if (c->body)
        bytes += sr_buffer_len(&c->body->mem);
    return bytes <= SR_PARCEL_BYTES_MAX;
}

static void parcel_fill(sr_parcel *p, const sr_conn *c)
{
    *p = (sr_parcel){.state = c->state,
                     .listener = c->listener,
                     .preface = c->preface,
                     .requests = c->requests,
                     .bytes = (uint32_t)sr_buffer_len(&c->in),
                     .deadline = sr_link_alone(&c->timer) ? 0 : c->deadline,
                     .ready_at = c->ready_at,
                     .peer = c->peer};
    if (!c->body)
        return;
    p->body = c->body->spooled ? SR_PARCEL_FILE : SR_PARCEL_DECODED;
    p->head = c->head_len;
    p->body_length = c->body->length;
    p->bytes += (uint32_t)sr_buffer_len(&c->body->mem);
}

static void count_queued(sr_engine *e, int by)
{
    if (e->scoreboard && by)
        atomic_fetch_add_explicit(&e->scoreboard->queued, by, memory_order_relaxed);
}

/* The other process has it: forget it here, without a word to the peer. */
static void given(sr_engine *e, sr_conn *c)
{
    sr_conn_unwatch(
        e, c); /* by name: the open file lives on elsewhere, so close would not take it out of epoll */
    sr_conn_forget(e, c);
}

sr_given sr_handover_give(sr_engine *e, sr_conn *c)
{
    if (!sr_engine_gives(e) || !sr_handover_can_move(c))
        return SR_GIVEN_NEVER;
    sr_parcel p;
    int fds[2] = {c->source.fd, -1}, n_fds = 1;
    parcel_fill(&p, c);
    sr_bytes in = sr_bytes_of(sr_buffer_len(&c->in) ? sr_buffer_at(&c->in) : "", sr_buffer_len(&c->in));
    sr_bytes parts[3] = {in, {0}, {0}};
    if (c->body) {
        parts[0].len = p.head;
        parts[1] = sr_bytes_of(sr_buffer_at(&c->body->mem), sr_buffer_len(&c->body->mem));
        parts[2] = sr_bytes_of(in.at + p.head, in.len - p.head);
    }
    if (p.body == SR_PARCEL_FILE)
        fds[n_fds++] = c->body->fd;
    count_queued(e, c->state == SR_CONN_READY); /* before: a taker must not count down first */
    sr_exchange_result got = sr_exchange_give(&e->exchange, &p, 1, fds, n_fds, parts, 3);
    if (got != SR_EXCHANGE_OK) {
        count_queued(e, -(c->state == SR_CONN_READY));
        return got == SR_EXCHANGE_FULL ? SR_GIVEN_LATER : SR_GIVEN_NEVER;
    }
    sr_tally_add(&e->row->tally.given, 1);
    given(e, c);
    return SR_GIVEN;
}

/* Oldest first, many in one message: a retiring worker may have thousands. */
bool sr_handover_give_idle(sr_engine *e, int most)
{
    sr_link *idle = &e->deadlines[SR_DEADLINE_IDLE];
    while (most > 0 && !sr_link_alone(idle)) {
        sr_parcel parcels[SR_PARCELS_MAX];
        sr_conn *conns[SR_PARCELS_MAX];
        int fds[SR_PARCELS_MAX], n = 0;
        int room = sr_room_message(e) < most ? sr_room_message(e) : most;
        for (sr_link *l = idle->next; l != idle && n < room; l = l->next) {
            conns[n] = SR_LIST_ENTRY(l, sr_conn, timer);
            fds[n] = conns[n]->source.fd;
            parcel_fill(&parcels[n], conns[n]);
            n++;
        }
        if (sr_exchange_give(&e->exchange, parcels, n, fds, n, NULL, 0) != SR_EXCHANGE_OK)
            return false;
        for (int i = 0; i < n; i++)
            given(e, conns[i]);
        sr_tally_add(&e->row->tally.given, (uint64_t)n);
        most -= n;
    }
    return sr_link_alone(idle);
}

/* Each of a list of connections, linked by a member at `offset`. One that can't move does not hold up those behind it. */
static bool give_list(sr_engine *e, sr_link *head, size_t offset)
{
    bool all = true;
    for (sr_link *l = head->next, *next; l != head; l = next) {
        next = l->next;
        sr_given got = sr_handover_give(e, (sr_conn *)((char *)l - offset));
        all = all && got == SR_GIVEN;
        if (got == SR_GIVEN_LATER)
            break;
    }
    return all;
}

bool sr_handover_give_turns(sr_engine *e)
{
    return give_list(e, &e->turns, offsetof(sr_conn, turn));
}

bool sr_handover_give_heads(sr_engine *e)
{
    return give_list(e, &e->deadlines[SR_DEADLINE_HEAD], offsetof(sr_conn, timer));
}

/* --- taking --- */

/* This build could have given it. After an update, workers of two builds share the exchange while one replaces the other. */
static bool plausible(const sr_engine *e, const sr_parcel *p)
{
    bool waits = p->state == SR_CONN_IDLE || p->state == SR_CONN_HEAD;
    bool whole = p->state == SR_CONN_READY && p->bytes > 0;
    return (whole || (waits && p->body == SR_PARCEL_RAW)) && p->listener < e->n_listeners &&
           p->deadline >= 0 && p->ready_at >= 0 && p->ready_at <= e->now + SR_SECOND;
}

static sr_conn *unpack(sr_engine *e, const sr_parcel *p, const int *fds, const char *bytes)
{
    sr_conn *c = plausible(e, p) ? sr_conn_new(fds[0], &p->peer, p->listener) : NULL;
    if (!c) {
        close(fds[0]);
        if (p->body == SR_PARCEL_FILE)
            close(fds[1]);
        return NULL;
    }
    sr_conn_enter(e, c);
    c->preface = p->preface;
    c->requests = p->requests;
    c->ready_at = p->ready_at < e->now ? p->ready_at : e->now; /* the giver may have read the clock later */
    c->head_len = p->head;
    c->state = p->state;
    c->owed = p->state == SR_CONN_READY;
    c->is_head = sr_intake_is_head(sr_bytes_of(bytes, p->bytes));
    size_t body = p->body == SR_PARCEL_DECODED ? (size_t)p->body_length : 0;
    size_t head = p->body == SR_PARCEL_RAW ? p->bytes : p->head;
    bool ok = p->bytes == 0 || (sr_buffer_add(&c->in, bytes, head) &&
                                sr_buffer_add(&c->in, bytes + head + body, p->bytes - head - body));
    if (p->body != SR_PARCEL_RAW) {
        c->body = calloc(1, sizeof *c->body);
        ok = ok && c->body;
        if (c->body) {
            c->body->fd = p->body == SR_PARCEL_FILE ? fds[1] : -1;
            c->body->spooled = p->body == SR_PARCEL_FILE;
            c->body->length = p->body_length;
            ok = ok && sr_buffer_add(&c->body->mem, bytes + head, body);
        } else if (p->body == SR_PARCEL_FILE) {
            close(fds[1]);
        }
    }
    if (ok)
        return c;
    sr_conn_close(e, c, SR_CLOSED_ERROR);
    return NULL;
}

static void settle(sr_engine *e, sr_conn *c, int64_t deadline)
{
    bool bytes = sr_buffer_len(&c->in) > 0;
    sr_deadline_kind kind = c->state == SR_CONN_READY                           ? SR_DEADLINE_QUEUE
                            : c->state == SR_CONN_IDLE && c->requests && !bytes ? SR_DEADLINE_IDLE
                                                                                : SR_DEADLINE_HEAD;
    if (kind == SR_DEADLINE_QUEUE)
        deadline = c->ready_at + e->limit[kind];
    sr_deadline_keep(e, c, kind, deadline ? deadline : INT64_MAX);
    if (c->state == SR_CONN_READY)
        sr_intake_queue(e, c);
    else if (bytes)
        sr_link_append(&e->turns, &c->turn);
    else
        sr_conn_watch(e, c, EPOLLIN);
}

bool sr_handover_others_wait(const sr_engine *e)
{
    return e->scoreboard && atomic_load_explicit(&e->scoreboard->queued, memory_order_relaxed) > 0 &&
           sr_engine_gives(e);
}

bool sr_handover_take_due(sr_engine *e, bool serving)
{
    sr_parcel p;
    if (e->exchange.take >= 0 && sr_exchange_peek(&e->exchange, &p) && p.state == SR_CONN_READY) {
        const sr_conn *first = sr_link_alone(&e->turns) ? NULL : SR_LIST_ENTRY(e->turns.next, sr_conn, turn);
        bool before = serving && (!first || (first->state == SR_CONN_READY && p.ready_at < first->ready_at));
        if (!before && p.ready_at + e->limit[SR_DEADLINE_QUEUE] > e->now)
            return false;
    }
    return sr_handover_take(e);
}

bool sr_handover_take(sr_engine *e)
{
    sr_parcel parcels[SR_PARCELS_MAX];
    int fds[SR_PARCELS_MAX + 1], n = 0, n_fds = 0;
    size_t n_bytes;
    if (e->exchange.take < 0)
        return false;
    sr_exchange_result got = sr_exchange_take(&e->exchange, parcels, &n, fds, &n_fds, e->scratch, &n_bytes);
    if (got == SR_EXCHANGE_FULL && e->scoreboard) /* that is: found empty */
        atomic_store_explicit(&e->scoreboard->queued, 0, memory_order_relaxed);
    if (got == SR_EXCHANGE_FAILED && errno != EBADMSG) /* out of descriptors or memory: leave it to others */
        sr_engine_pause(e);
    if (got != SR_EXCHANGE_OK)
        return false;
    sr_tally_add(&e->row->tally.taken, (uint64_t)n);
    for (int i = 0, fd = 0; i < n; i++) {
        sr_conn *c = unpack(e, &parcels[i], fds + fd, e->scratch);
        fd += parcels[i].body == SR_PARCEL_FILE ? 2 : 1;
        count_queued(e, -(parcels[i].state == SR_CONN_READY));
        if (c)
            settle(e, c, parcels[i].deadline);
    }
    return true;
}
