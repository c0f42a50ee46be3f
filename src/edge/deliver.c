#include "deliver.h"

#include "../conn/account.h"
#include "../conn/deadline.h"
#include "../conn/joined.h"
#include "../conn/protocol.h"
#include "../conn/pump.h"
#include "../conn/relay.h"
#include "../conn/send.h"
#include "../conn/slowest.h"
#include "../conn/spools.h"
#include "../conn/trouble.h"
#include "../http/grip.h"
#include "../http/page.h"
#include "../live/hold.h"
#include "../net/descriptors.h"
#include "../share/door.h"
#include "../share/reply.h"
#include "../websocket/wsanswer.h"
#include "calls.h"
#include "entry.h"
#include "holder.h"
#include "lanes.h"
#include "log.h"
#include "presence.h"
#include "publish.h"
#include "report.h"
#include "turns.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OTHERS = 64, /* notes that may precede that of a file: from forked children, or for abandoned requests */
};
/*
 * of one response, in memory and file: a worker that has not seen it above SR_PENDING_MAX is at most this far
 */
#define PENDING_MAX ((uint64_t)SR_PENDING_MAX + 4 * SR_RING_BYTES)
#define ENDURED_NS (500 * SR_MILLISECOND) /* that requests wait while workers wait for slow clients */

/* --- the end of an entry --- */

static sr_output *output(const sr_exchange *x)
{
    return x->protocol->output(x);
}

static uint64_t pending(const sr_exchange *x)
{
    const sr_output *out = output(x);
    return out ? sr_output_pending(out) : 0;
}

static void backlog(sr_edge *ed, uint32_t slot, const sr_output *out)
{
    sr_entry *en = &ed->entries[slot];
    uint64_t n = out ? sr_output_pending(out) : 0;
    bool held = sr_send_holds(ed->engine, out);
    if (held && !en->held)
        sr_trouble_count(ed->engine, SR_TROUBLE_HELD, 1, 0);
    en->held = held;
    ed->held.some = ed->held.some || held;
    if (held && !ed->held.since)
        ed->held.since = ed->engine->now;
    if (held || (out && out->written > SR_PENDING_MAX)) /* a spool frees nothing before it is sent */
        n = UINT32_MAX;
    atomic_store_explicit(&sr_queue_at(&ed->queue, slot)->backlog, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX,
                          memory_order_release);
}

/* Call after records of a response that will go on: has the loop send what the socket has not accepted. */
static void settle(sr_edge *ed, uint32_t slot)
{
    sr_exchange *x = ed->entries[slot].exchange;
    sr_engine *e = ed->engine;
    if (!x)
        return;
    sr_conn *c = x->conn;
    if (c->gone) {
        sr_conn_close(e, c, c->why); /* this calls sr_entry_abandon */
        return;
    }
    if (output(x) && !x->protocol->settle(e, x) && ed->entries[slot].exchange != x)
        return;
    const sr_output *out = output(x);
    if (!out && !x->interim_pending && ed->entries[slot].phase == SR_ENTRY_BODY && e->config.stream_ns)
        sr_deadline_set_exchange(e, x, SR_DEADLINE_STREAM);
    backlog(ed, slot, out);
}

/* The worker is free, and the exchange goes on or ends without the entry. */
static inline void forget(sr_edge *ed, uint32_t slot, bool failed)
{
    sr_calls_ended(ed, slot, ed->entries[slot].exchange, failed);
    sr_log_offer(ed, slot);
    sr_entry_forget(ed, slot);
}

static void finish(sr_edge *ed, uint32_t slot)
{
    sr_exchange *x = ed->entries[slot].exchange;
    forget(ed, slot, !x && ed->entries[slot].late);
    if (x)
        x->protocol->end(ed->engine, x);
}

/* Answers 502 for a worker that has died. The request was read completely, so the connection can be kept. */
static void bad_gateway(sr_edge *ed, sr_exchange *x)
{
    sr_engine *e = ed->engine;
    const sr_protocol *protocol = x->protocol;
    sr_page page;
    sr_bytes made;
    sr_page_make(&page, 502);
    if (x->interim_pending || protocol->head(e, x, &page.head, &made)) {
        sr_exchange_refuse(e, x, 502, SR_REFUSED_WORKER);
        return;
    }
    sr_deadline_clear_exchange(e, x);
    x->refused = SR_REFUSED_WORKER;
    protocol->piece(e, x, sr_page_text(&page), true);
    protocol->end(e, x);
}

/*
 * Whether the application, which has the socket (psgix.io), may have written to it: then no response can be
 * told from that.
 */
static bool has_written(sr_edge *ed, const sr_entry *en)
{
    sr_exchange *x = en->exchange;
    if (!x || !x->lent)
        return false;
    if (x->protocol->spoken)
        return x->protocol->spoken(ed->engine, x);
    const sr_conn *c = x->conn;
    return c->pump ? c->pump->spoken : !en->lent_at || sr_send_total(c) != en->lent_at;
}

bool sr_deliver_unanswered(sr_edge *ed, const sr_entry *en)
{
    if (en->exchange && en->exchange->conn->pump)
        sr_relay_drain(ed->engine, en->exchange->conn);
    return en->phase == SR_ENTRY_OPEN && !has_written(ed, en);
}

static void cut(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    sr_exchange *x = en->exchange;
    bool open = sr_deliver_unanswered(ed, en);
    forget(ed, slot, x ? !sr_exchange_whole(x) : en->late);
    if (!x)
        return;
    if (open)
        bad_gateway(ed, x);
    else if (sr_exchange_whole(x))
        x->protocol->end(ed->engine, x);
    else
        x->protocol->cut(ed->engine, x);
}

void sr_deliver_lost(sr_edge *ed, uint32_t slot, int32_t ended)
{
    sr_entry *en = &ed->entries[slot];
    int32_t row = sr_holder(ed, slot);
    bool begun = row < 0 || en->spoken || atomic_load(&ed->workers[row].reader.ring->began) == en->number;
    if (!begun && sr_entry_requeue(ed, slot))
        return;
    bool open = sr_deliver_unanswered(ed, en);
    if (ended && en->exchange && !sr_exchange_whole(en->exchange))
        sr_report_lost(ed, slot, ended,
                       open && sr_presence_lost(en->exchange->conn)
                           ? "the client was gone"
                           : sr_wsanswer_outcome(en->exchange,
                                                 open ? "the client got 502" : "the response was cut off"));
    cut(ed, slot);
}

/*
 * Memory or descriptors are short for this response: the client gets 503, or a response that is cut off. The
 * worker goes on, and is told that the client is gone.
 */
static void short_of(sr_edge *ed, sr_entry *en, int err)
{
    sr_exchange *x = en->exchange;
    if (!x)
        return;
    bool open = sr_deliver_unanswered(ed, en) && !x->interim_pending;
    bool table = err == EMFILE || err == ENFILE;
    sr_trouble_count(ed->engine,
                     open    ? SR_TROUBLE_MEMORY
                     : table ? SR_TROUBLE_DESCRIPTORS
                             : SR_TROUBLE_RESET,
                     1, err);
    if (open) {
        sr_exchange_refuse(ed->engine, x, 503, sr_account_lack(err)); /* this calls sr_entry_abandon */
        return;
    }
    sr_entry_abandon(ed, x);
    x->conn->why = SR_CLOSED_ERROR;
    x->protocol->cut(ed->engine, x);
}

/* --- heads --- */

/* Appends the fields of this record to those of earlier records. */
static bool copied(sr_edge *ed, sr_entry *en, const char *at, size_t len, sr_bytes *out)
{
    sr_buffer *to = sr_buffer_len(&en->fields) ? &en->fields : &ed->copy;
    if (to == &ed->copy)
        sr_buffer_reset(to);
    if (!sr_buffer_add(to, at, len))
        return false;
    *out = sr_buffer_bytes(to);
    return true;
}

/* Has the head made, which is sent with what follows; an interim one at once. */
static inline sr_response_error head_make(sr_edge *ed, sr_entry *en, const sr_reply_head *h, sr_bytes fields,
                                          bool close)
{
    const sr_engine *e = ed->engine;
    sr_exchange *x = en->exchange;
    sr_head head = {h->status, fields, h->length, h->app_length, close};
    sr_bytes made;
    sr_response_error err = x->protocol->head(ed->engine, x, &head, &made);
    if (err || h->status < 200)
        return err;
    sr_log_head(ed, en, made);
    /* limited to what is possible: the worker may have begun after this turn of the loop has */
    x->given_at = h->began < x->ready_at ? x->ready_at : h->began > e->now ? e->now : h->began;
    if (en->turn && en->row)
        sr_turns_begun(ed, &ed->workers[en->row - 1], x->given_at);
    return SR_RESPONSE_OK;
}

/* --- records --- */

typedef enum took { TOOK, TOOK_BAD } took;

static took head(sr_edge *ed, uint32_t slot, const sr_record *rec, const char *payload, size_t len)
{
    sr_entry *en = &ed->entries[slot];
    sr_reply_head h;
    sr_bytes fields;
    if (en->phase == SR_ENTRY_BODY || len < sizeof h)
        return TOOK_BAD;
    memcpy(&h, payload, sizeof h);
    bool is_interim = rec->kind == SR_REPLY_INTERIM, last = rec->flags & SR_REPLY_LAST;
    if (h.fields > len - sizeof h || is_interim != (h.status < 200))
        return TOOK_BAD;
    if (en->phase == SR_ENTRY_OPEN) {
        bool kept = copied(ed, en, payload + sizeof h, h.fields, &fields);
        if (is_interim) { /* for lack of memory it is dropped */
            sr_response_error err = kept ? head_make(ed, en, &h, fields, false) : SR_RESPONSE_NO_MEMORY;
            sr_buffer_free(&en->fields); /* these fields do not belong to the head that follows */
            return err && err != SR_RESPONSE_NO_MEMORY ? TOOK_BAD : TOOK;
        }
        if (rec->flags & SR_REPLY_OWN && has_written(ed, en)) {
            cut(ed, slot);
            return TOOK;
        }
        sr_deadline_clear_exchange(ed->engine, en->exchange);
        sr_response_error err =
            kept ? head_make(ed, en, &h, fields, rec->flags & SR_REPLY_CLOSE) : SR_RESPONSE_NO_MEMORY;
        if (err && err != SR_RESPONSE_NO_MEMORY)
            return TOOK_BAD;
        sr_buffer_free(&en->fields);
        if (err) {
            short_of(ed, en, ENOMEM);
        } else {
            en->phase = SR_ENTRY_BODY;
            sr_bytes body = sr_bytes_of(payload + sizeof h + h.fields, len - sizeof h - h.fields);
            en->exchange->protocol->piece(ed->engine, en->exchange, body, last);
        }
    }
    if (last)
        finish(ed, slot);
    return TOOK;
}

static took more_fields(sr_edge *ed, sr_entry *en, const char *payload, size_t len)
{
    if (en->phase == SR_ENTRY_BODY || sr_buffer_len(&en->fields) + len > SR_REPLY_FIELDS_MAX)
        return TOOK_BAD;
    if (en->phase == SR_ENTRY_OPEN && !sr_buffer_add(&en->fields, payload, len))
        short_of(ed, en, ENOMEM);
    return TOOK;
}

/* The worker could not read the request. No other worker gets it, as it might fare no better. */
static took unread(sr_edge *ed, uint32_t slot, const char *payload, size_t len)
{
    sr_entry *en = &ed->entries[slot];
    int32_t err;
    if (en->phase == SR_ENTRY_BODY || len != sizeof err)
        return TOOK_BAD;
    memcpy(&err, payload, sizeof err);
    if (en->phase == SR_ENTRY_OPEN)
        short_of(ed, en, err);
    sr_entry_forget(ed, slot);
    return TOOK;
}

/*
 * Returns the descriptor that the worker has passed for the request. -1: none; then *err is 0 if the worker
 * has sent none, EMFILE if the descriptor table of this process was full, and otherwise why it could not be
 * received. If its note comes later after all, it is thrown away then.
 */
static int passed(sr_edge_worker *m, uint64_t number, int *err)
{
    sr_message note = {0};
    int fds[SR_MESSAGE_FDS], n = 0, fd = m->file;
    *err = 0;
    if (m->file_number != number) {
        if (fd >= 0)
            sr_descriptors_discard(fd);
        fd = -1;
        bool it = false;
        for (int i = 0; !it && i < OTHERS; i++) {
            if ((*err = sr_door_receive(m->line.fd, &note, fds, &n, false)))
                break;
            it = note.pid == m->pid && note.kind == SR_MESSAGE_FILE && note.number == number;
            if (it && n > 0)
                fd = fds[--n];
            while (n > 0)
                sr_descriptors_discard(fds[--n]);
        }
        m->file_number = it ? number : 0;
    }
    m->file = -1;
    if (fd < 0 && m->file_number == number)
        *err = EMFILE;
    else if (*err == EAGAIN || *err == EPROTO || *err == EPIPE || *err == ECONNRESET)
        *err = 0;
    m->file_number = 0;
    return fd;
}

static took file(sr_edge *ed, sr_edge_worker *m, uint32_t slot, const char *payload, size_t len)
{
    sr_entry *en = &ed->entries[slot];
    sr_reply_file f;
    struct stat st;
    int why, fd = passed(m, en->number, &why);
    if (fd < 0 && why && en->phase != SR_ENTRY_OPEN) {
        short_of(ed, en, why);
        return TOOK;
    }
    if (fd < 0)
        return TOOK_BAD;
    if (len == sizeof f)
        memcpy(&f, payload, sizeof f);
    /* reading from anything but a regular file could block, or never end */
    bool sound = len == sizeof f && en->phase != SR_ENTRY_OPEN && f.offset <= INT64_MAX &&
                 f.length <= INT64_MAX - f.offset && !en->filed && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (!sound || en->phase != SR_ENTRY_BODY) {
        sr_descriptors_discard(fd);
        return sound ? TOOK : TOOK_BAD;
    }
    sr_conn *c = en->exchange->conn;
    const sr_content content = {fd, (off_t)f.offset, f.length, NULL};
    en->filed = en->exchange->left && en->exchange->left != SR_LENGTH_UNKNOWN;
    en->exchange->protocol->file(ed->engine, en->exchange, &content);
    sr_output *out = output(en->exchange);
    if (f.leased && out)
        sr_leased_add(ed->engine, out);
    if (out && c->borrowed)
        out->copies = true;
    return TOOK;
}

/* The response is to be held. The edge decides whether it is. */
static took hold(sr_edge *ed, sr_entry *en, const char *payload, size_t len)
{
    if (en->phase == SR_ENTRY_BODY || !ed->live || len > SR_GRIP_LINES_MAX)
        return TOOK_BAD;
    sr_buffer_reset(&ed->copy);
    if (en->phase == SR_ENTRY_OPEN && !has_written(ed, en) && sr_buffer_add(&ed->copy, payload, len))
        sr_hold_begin(ed->live, en->exchange, sr_buffer_bytes(&ed->copy));
    return TOOK;
}

/* The response is complete. */
static took ended(sr_edge *ed, uint32_t slot)
{
    const sr_entry *en = &ed->entries[slot];
    if (en->phase == SR_ENTRY_OPEN)
        return TOOK_BAD;
    if (en->phase == SR_ENTRY_BODY)
        en->exchange->protocol->piece(ed->engine, en->exchange, sr_bytes_of("", 0), true);
    finish(ed, slot);
    return TOOK;
}

/* The worker is free, and the response stays here. */
static took held(sr_edge *ed, uint32_t slot)
{
    sr_exchange *x = ed->entries[slot].exchange;
    if (!x || !sr_hold_has(x) || ed->entries[slot].phase == SR_ENTRY_OPEN)
        return ended(ed, slot);
    forget(ed, slot, false);
    sr_hold_keep(ed->live, x);
    return TOOK;
}

/* The application goes on alone with the socket. */
static took taken(sr_edge *ed, uint32_t slot)
{
    sr_exchange *x = ed->entries[slot].exchange;
    if (x && !x->lent)
        return TOOK_BAD;
    forget(ed, slot, false);
    if (x && x->protocol->detach)
        x->protocol->detach(ed->engine, x);
    else if (x)
        sr_relay_detach(ed->engine, x);
    return TOOK;
}

/*
 * Records that may come between two joined pieces or after the last: they touch the connection only through
 * sr_protocol.piece.
 */
static bool joins(uint16_t kind)
{
    return kind == SR_REPLY_DATA || kind == SR_REPLY_END || kind == SR_REPLY_LOG;
}

/* The application has nothing to send for now. */
static void probe(sr_edge *ed, sr_conn *c)
{
    sr_joined_flush(ed->engine);
    sr_presence_probe(ed, c);
}

/*
 * What a worker publishes. sr_deliver settles the last response that a record was about; here it might not
 * see that any more, as a publication is about none.
 */
static __attribute__((noinline, cold)) took publication(sr_edge *ed, sr_edge_worker *m, const sr_record *rec,
                                                        sr_bytes payload)
{
    if (ed->engine->joined.of)
        sr_joined_flush(ed->engine);
    if (m->bound && ed->entries[m->bound - 1].number)
        settle(ed, m->bound - 1);
    return sr_publish_record(ed, m, rec, payload) ? TOOK : TOOK_BAD;
}

static took record(sr_edge *ed, sr_edge_worker *m, const sr_record *rec, const char *payload)
{
    size_t len = rec->bytes - sizeof *rec;
    if (rec->slot >= ed->slots || !rec->number || rec->number >= ed->queue.put)
        return rec->slot == SR_REPLY_NO_SLOT ? publication(ed, m, rec, sr_bytes_of(payload, len)) : TOOK_BAD;
    if (!sr_holder_bind(ed, m, rec->slot, rec->number))
        return TOOK; /* not believed, but perhaps another worker has spoiled the claim: nobody is blamed */
    sr_entry *en = &ed->entries[rec->slot];
    sr_conn *c = en->exchange ? en->exchange->conn : NULL;
    en->spoken = true;
    const sr_conn *joined = ed->engine->joined.of;
    if (joined && (c != joined || !joins(rec->kind) || c->pump))
        sr_joined_flush(ed->engine);
    if (c && c->pump && !ed->engine->joined.of)
        sr_relay_drain(ed->engine, c);
    switch (rec->kind) {
    case SR_REPLY_INTERIM:
    case SR_REPLY_HEAD:
        return head(ed, rec->slot, rec, payload, len);
    case SR_REPLY_FIELDS:
        return more_fields(ed, en, payload, len);
    case SR_REPLY_DATA:
        if (en->phase == SR_ENTRY_OPEN || en->filed)
            return TOOK_BAD;
        if (c && pending(en->exchange) > PENDING_MAX) /* it does not wait */
            return TOOK_BAD;
        if (en->phase == SR_ENTRY_BODY && len)
            en->exchange->protocol->piece(ed->engine, en->exchange, sr_bytes_of(payload, len), false);
        else if (en->phase == SR_ENTRY_BODY)
            probe(ed, c);
        return TOOK;
    case SR_REPLY_FILE:
        return file(ed, m, rec->slot, payload, len);
    case SR_REPLY_END:
        return ended(ed, rec->slot);
    case SR_REPLY_LOG:
        return sr_log_values(ed, en, payload, len) ? TOOK : TOOK_BAD;
    case SR_REPLY_CUT:
        cut(ed, rec->slot);
        return TOOK;
    case SR_REPLY_UNREAD:
        return unread(ed, rec->slot, payload, len);
    case SR_REPLY_TAKEN:
        return taken(ed, rec->slot);
    case SR_REPLY_HOLD:
        return hold(ed, en, payload, len);
    case SR_REPLY_HELD:
        return held(ed, rec->slot);
    default:
        return TOOK_BAD;
    }
}

/* --- a worker that is gone, or broken --- */

/*
 * A worker that is not heard any more runs on: until it has ended, it keeps the place of its request in a
 * lane.
 */
static void lost_to(sr_edge *ed, uint32_t slot, sr_edge_worker *m)
{
    sr_entry *en = &ed->entries[slot];
    uint8_t lane = en->lane;
    uint64_t number = en->number;
    bool keeps = lane && !m->lane;
    if (keeps)
        en->lane = 0;
    sr_deliver_lost(ed, slot, 0);
    if (keeps && en->number == number)
        en->lane = lane; /* it goes to another worker */
    else if (keeps)
        m->lane = lane;
}

/* Ends the requests that the worker holds. */
void sr_deliver_end(sr_edge *ed, sr_edge_worker *m, bool ended)
{
    for (uint32_t slot = 0; slot < ed->slots; slot++) {
        if (!ed->entries[slot].number || sr_holder(ed, slot) != (int32_t)m->row)
            continue;
        if (ended)
            sr_deliver_lost(ed, slot, m->pid);
        else
            lost_to(ed, slot, m);
    }
}

void sr_deliver_broken(sr_edge *ed, sr_edge_worker *m, const char *why)
{
    char text[128];
    if (m->broken)
        return;
    if (m->lane)
        sr_lanes_heard(ed, m);
    m->broken = true;
    m->paused = false;
    sr_loop_remove(&ed->engine->loop, &m->line);
    int n = sr_report_begin(ed, text, m->pid, "broken");
    snprintf(text + n, sizeof text - (size_t)n, "%s\n", why);
    sr_report(ed, text);
    sr_deliver_end(ed, m, false);
}

/*
 * Reads at most one ring's worth: a worker that writes all the time must not hold up the loop. The rest is
 * read after the other workers had their turn. No record is left for later, as replies to others lie behind
 * it: what a client does not read is kept here, and above SR_PENDING_MAX its worker waits, which has no
 * other.
 */
void sr_deliver(sr_edge *ed, sr_edge_worker *m)
{
    sr_record rec;
    const char *payload;
    uint32_t last = UINT32_MAX, from = m->reader.taken;
    while (!m->broken) {
        if (m->reader.taken - from >= SR_RING_BYTES) {
            atomic_fetch_or(&ed->queue.replies->replied[m->row / 64], UINT64_C(1) << (m->row % 64));
            break;
        }
        sr_ring_result r = sr_ring_next(&m->reader, &rec, &payload);
        if (r == SR_RING_NONE)
            break;
        took t = r == SR_RING_RECORD ? record(ed, m, &rec, payload) : TOOK_BAD;
        if (t == TOOK_BAD) {
            sr_joined_flush(ed->engine);
            sr_deliver_broken(ed, m, "sent an invalid message to the edge");
            break;
        }
        last = rec.slot;
        sr_ring_done(&m->reader);
    }
    if (ed->engine->joined.of)
        sr_joined_flush(ed->engine);
    if (last != UINT32_MAX && ed->entries[last].number)
        settle(ed, last);
    sr_ring_tell(&m->reader);
    if (m->lane)
        sr_lanes_heard(ed, m);
}

bool sr_deliver_pending(const sr_edge *ed)
{
    for (uint32_t w = 0; w * 64 < ed->rows; w++)
        if (atomic_load(&ed->queue.replies->replied[w]))
            return true;
    return false;
}

void sr_deliver_all(sr_edge *ed)
{
    for (uint32_t w = 0; w * 64 < ed->rows; w++) {
        if (!atomic_load_explicit(&ed->queue.replies->replied[w], memory_order_relaxed))
            continue;
        uint64_t rows = atomic_exchange(&ed->queue.replies->replied[w], 0);
        for (; rows; rows &= rows - 1) {
            uint32_t row = w * 64 + (uint32_t)__builtin_ctzll(rows);
            if (row < ed->rows && ed->workers[row].line.fd >= 0)
                sr_deliver(ed, &ed->workers[row]);
        }
    }
}

void sr_deliver_published(sr_edge *ed)
{
    uint64_t last, all;
    if (!sr_publish_waits(ed, &last))
        return;
    sr_deliver_all(ed); /* what was made before these is there by now */
    if (ed->engine->retiring && sr_publish_waits(ed, &all))
        last = all; /* none stays behind when connections are passed on */
    sr_publish_until(ed, last);
}

void sr_deliver_writable(sr_edge *ed, sr_exchange *x)
{
    uint32_t slot = x->slot - 1;
    int32_t row = sr_holder(ed, slot);
    settle(ed, slot);
    if (row >= 0 && ed->workers[row].line.fd >= 0)
        sr_deliver(ed, &ed->workers[row]); /* the worker may have waited for this */
}

/*
 * Workers wait for room, and requests for workers, so that the slowest client pays. Or memory is short, and
 * nobody waits.
 */
static bool must_pay(sr_edge *ed)
{
    const sr_engine *e = ed->engine;
    /* those that wait in another edge have to wait for the workers that are held here as well */
    int64_t since = sr_queue_waiting(&ed->queue)           ? sr_queue_since(&ed->queue)
                    : ed->others.waiting && ed->held.since ? ed->held.since
                                                           : e->now;
    bool waiting = e->now - since >= ENDURED_NS && !sr_sleepers_sleeping(ed->sleepers);
    return e->now >= ed->held.pays_at && (waiting || e->pending > SR_OUTPUT_TOTAL + SR_OUTPUT_TOTAL / 2);
}

void sr_deliver_held(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    if (sr_spools_room(e, SR_OUTPUT_MEMORY)) {
        if (!ed->held.some)
            return;
    } else if (must_pay(ed)) {
        ed->held.pays_at = e->now + SR_DELIVER_HELD_NS;
        if (!sr_slowest_evict(e))
            return;
    }
    ed->held.some = false;
    for (uint32_t row = 0; row < ed->rows; row++) {
        uint32_t bound = ed->workers[row].bound;
        sr_entry *en = bound ? &ed->entries[bound - 1] : NULL;
        if (!en || !en->held || !en->exchange)
            continue;
        backlog(ed, bound - 1, output(en->exchange));
        if (!en->held)
            sr_ring_tell(&ed->workers[row].reader);
    }
    if (!ed->held.some)
        ed->held.since = 0;
}
