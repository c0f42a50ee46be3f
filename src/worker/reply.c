#include "worker.h"

#include "../base/clock.h"
#include "../base/cursor.h"
#include "../net/lease.h"
#include "../share/door.h"
#include "line.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ASK_NS (100 * SR_MILLISECOND) /* between two questions for the client */

/* If the connection to the edge is closed, the edge has died: nobody else holds the other end. */
static bool edge_lives(sr_worker *w)
{
    char byte;
    ssize_t n = recv(w->from->line, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    w->lost = w->lost || n == 0;
    return !w->lost;
}

/*
 * Sleeps once while a reply has to wait. False: a signal handler has ended the wait. Waiting for the edge
 * takes a moment; only waiting for the client takes so long that handlers should run meanwhile. A handler
 * that dies leaves a reply that can only be cut off.
 */
static bool nap(sr_worker *w, uint32_t seen, int64_t *since)
{
    int64_t now = sr_clock_monotonic();
    if (!*since)
        *since = now;
    sr_ring_wait(w->from->queue.ring, seen, SR_WORKER_LOOK_NS);
    edge_lives(w);
    return now - *since < SR_WORKER_LOOK_NS || !w->interrupted || w->interrupted();
}

static sr_ring *ring(const sr_worker *w)
{
    return w->from->queue.ring;
}

void sr_worker_flush(sr_worker *w)
{
    if (w->from && !w->lost)
        sr_worker_tell(w, w->from);
}

static bool gone(const sr_worker *w)
{
    return !w->from || w->lost || sr_slot_gone(w->request.slot, w->number) & SR_GONE_CLIENT;
}

/* Nothing that follows is sent, so that the reply has no hole. For `return`. */
static bool drop(sr_worker *w)
{
    w->dropped = true;
    return false;
}

/*
 * Returns room for a record. NULL: the edge is gone, or a signal handler has ended the wait, which it does
 * not for the end of a reply.
 */
static sr_record *room(sr_worker *w, size_t payload, bool is_end)
{
    sr_record *r;
    int64_t since = 0;
    while (!w->lost) {
        uint32_t seen = sr_ring_want(ring(w));
        if ((r = sr_ring_reserve(ring(w), payload)) != NULL)
            return r;
        sr_worker_flush(w);
        if (!nap(w, seen, &since) && !is_end)
            return NULL;
    }
    return NULL;
}

/* Whether the reply is over with this record, so that the edge must get it. */
static bool is_end(sr_reply_kind kind)
{
    return kind == SR_REPLY_END || kind == SR_REPLY_HELD || kind == SR_REPLY_CUT || kind == SR_REPLY_TAKEN ||
           kind == SR_REPLY_UNREAD;
}

static sr_record *record(sr_worker *w, sr_reply_kind kind, size_t payload)
{
    w->lost = w->lost || sr_worker_is_child(w); /* it must not write to the ring beside its parent */
    if (!w->from || w->lost)
        return NULL;
    sr_record *r = sr_ring_reserve(ring(w), payload);
    if (!r && !(r = room(w, payload, is_end(kind))))
        return NULL;
    *r = (sr_record){.kind = (uint16_t)kind, .number = w->number, .slot = w->index};
    return r;
}

static bool near(const sr_worker *w, uint64_t most)
{
    return sr_ring_waiting(ring(w)) + (uint64_t)atomic_load(&w->request.slot->backlog) <= most;
}

/*
 * Waits until the client has taken all but `most` bytes of what was written. False: it is gone, or a signal
 * handler has ended the wait.
 */
static bool caught_up(sr_worker *w, uint64_t most)
{
    int64_t since = 0;
    while (!gone(w)) {
        if (near(w, most))
            return true;
        uint32_t seen = sr_ring_want(ring(w)); /* then look again */
        if (gone(w) || near(w, most))
            continue;
        sr_worker_flush(w);
        if (!nap(w, seen, &since))
            return false;
    }
    return false;
}

static bool data(sr_worker *w, sr_cursor *c)
{
    size_t left = sr_cursor_left(c, SIZE_MAX);
    while (left) {
        size_t some = left < SR_WORKER_PIECE ? left : SR_WORKER_PIECE;
        sr_record *r;
        /* waits for as much room as is needed, not for more */
        if (!caught_up(w, SR_PENDING_MAX) || !(r = record(w, SR_REPLY_DATA, some)))
            return drop(w);
        sr_ring_commit(ring(w), r, sr_cursor_copy(c, r + 1, some));
        left -= some;
    }
    return true;
}

bool sr_worker_reply(sr_worker *w, const sr_reply_head *head, sr_bytes fields, const struct iovec *body,
                     int n, uint16_t flags)
{
    sr_record *r;
    sr_cursor c = {body, n, 0};
    if (w->dropped || fields.len > SR_REPLY_FIELDS_MAX)
        return drop(w);
    while (fields.len > SR_WORKER_PIECE / 2) {
        if (!(r = record(w, SR_REPLY_FIELDS, SR_WORKER_PIECE / 2)))
            return drop(w);
        memcpy(r + 1, fields.at, SR_WORKER_PIECE / 2);
        sr_ring_commit(ring(w), r, SR_WORKER_PIECE / 2);
        fields = sr_bytes_of(fields.at + SR_WORKER_PIECE / 2, fields.len - SR_WORKER_PIECE / 2);
    }
    size_t before = sizeof *head + fields.len, all = sr_cursor_left(&c, SIZE_MAX);
    size_t first = all < SR_WORKER_PIECE - before ? all : SR_WORKER_PIECE - before;
    if (!(r = record(w, head->status < 200 ? SR_REPLY_INTERIM : SR_REPLY_HEAD, before + first)))
        return drop(w);
    sr_reply_head h = *head;
    h.fields = (uint32_t)fields.len;
    h.began = w->began;
    memcpy(r + 1, &h, sizeof h);
    if (fields.len)
        memcpy((char *)(r + 1) + sizeof h, fields.at, fields.len);
    sr_cursor_copy(&c, (char *)(r + 1) + before, first);
    r->flags = first < all ? flags & (uint16_t)~SR_REPLY_LAST : flags;
    sr_ring_commit(ring(w), r, before + first);
    if (first == all)
        return true;
    bool ok = data(w, &c);
    if (flags & SR_REPLY_LAST)
        sr_worker_say(w, SR_REPLY_END);
    return ok;
}

void sr_worker_hold(sr_worker *w, sr_bytes lines)
{
    sr_record *r = w->dropped ? NULL : record(w, SR_REPLY_HOLD, lines.len);
    if (!r)
        return;
    memcpy(r + 1, lines.at, lines.len);
    sr_ring_commit(ring(w), r, lines.len);
}

void sr_worker_log(sr_worker *w, sr_bytes run)
{
    while (run.len) {
        size_t some = run.len < SR_WORKER_PIECE / 2 ? run.len : SR_WORKER_PIECE / 2;
        sr_record *r = record(w, SR_REPLY_LOG, some);
        if (!r)
            return;
        memcpy(r + 1, run.at, some);
        sr_ring_commit(ring(w), r, some);
        run = sr_bytes_of(run.at + some, run.len - some);
    }
}

bool sr_worker_write(sr_worker *w, const struct iovec *body, int n, bool paced)
{
    sr_cursor c = {body, n, 0};
    if (w->dropped || gone(w))
        return drop(w);
    if (!data(w, &c))
        return false;
    if (!paced)
        return true;
    sr_worker_flush(w);
    return caught_up(w, SR_BACKLOG_MAX);
}

bool sr_worker_ask(sr_worker *w)
{
    if (w->dropped || gone(w))
        return drop(w);
    int64_t now = sr_clock_monotonic();
    if (now < w->ask_at)
        return true;
    w->ask_at = now + ASK_NS;
    sr_worker_say(w, SR_REPLY_DATA);
    sr_worker_flush(w);
    return edge_lives(w) || drop(w);
}

bool sr_worker_file(sr_worker *w, int fd, uint64_t offset, uint64_t length)
{
    sr_message note = {.kind = SR_MESSAGE_FILE, .row = w->row, .number = w->number, .slot = w->index};
    sr_reply_file file = {.offset = offset, .length = length};
    if (!w->from || w->lost || w->dropped)
        return drop(w);
    if (sr_lease_needed(fd)) {
        if ((fd = sr_lease_take(fd, w->from->pid, SR_DOOR_LEASE)) <
            0) /* the caller may send its bytes instead */
            return false;
        file.leased = 1;
    }
    int err = sr_worker_has_line(w->from) ? sr_door_send(w->from->line, &note, &fd, 1, true) : EBADF;
    if (file.leased)
        close(fd);
    if (err)
        return false;
    sr_record *r = record(w, SR_REPLY_FILE, sizeof file);
    if (!r)
        return drop(w);
    memcpy(r + 1, &file, sizeof file);
    sr_ring_commit(ring(w), r, sizeof file);
    return true;
}

void sr_worker_unread(sr_worker *w, int why)
{
    int32_t value = why;
    sr_record *r = record(w, SR_REPLY_UNREAD, sizeof value);
    if (!r)
        return;
    memcpy(r + 1, &value, sizeof value);
    sr_ring_commit(ring(w), r, sizeof value);
}

void sr_worker_say(sr_worker *w, sr_reply_kind kind)
{
    if ((kind == SR_REPLY_END || kind == SR_REPLY_HELD) && w->dropped)
        kind = SR_REPLY_CUT;
    sr_record *r = record(w, kind, 0);
    if (r)
        sr_ring_commit(ring(w), r, 0);
}

bool sr_worker_socket(sr_worker *w, int *socket, int *ahead, uint32_t *bytes)
{
    sr_message note = {.kind = SR_MESSAGE_TAKE, .row = w->row, .number = w->number, .slot = w->index};
    int fds[SR_MESSAGE_FDS], n = 0;
    if (gone(w))
        return false;
    sr_worker_flush(w); /* what was replied before is sent first */
    if (!sr_worker_has_line(w->from) || sr_door_send(w->from->line, &note, NULL, 0, true) != 0 ||
        sr_worker_answer(w, SR_MESSAGE_SOCKET, &note, fds, &n) != 0)
        return false;
    *socket = n > 0 ? fds[0] : -1;
    *ahead = n > 1 ? fds[1] : -1;
    *bytes = note.bytes;
    for (int i = 2; i < n; i++)
        close(fds[i]);
    if (n == 1 && note.bytes) { /* no descriptor was free for the second one */
        close(fds[0]);
        return false;
    }
    return n > 0;
}
