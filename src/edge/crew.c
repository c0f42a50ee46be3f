#include "crew.h"

#include "../conn/capacity.h"
#include "../conn/protocol.h"
#include "../conn/pump.h"
#include "../conn/relay.h"
#include "../conn/send.h"
#include "../conn/trouble.h"
#include "../live/hold.h"
#include "../net/descriptors.h"
#include "../net/memfile.h"
#include "../net/pidfd.h"
#include "../share/door.h"
#include "deliver.h"
#include "holder.h"
#include "lanes.h"
#include "publish.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { VISITS_PER_EVENT = 64 };
#define PAUSE_NS (100 * SR_MILLISECOND) /* before the next try, when memory or descriptors are short */

/* --- the end of a worker --- */

static void part(sr_edge *ed, sr_edge_worker *m)
{
    if (m->line.fd >= 0) {
        ed->n_workers--;
        sr_loop_remove(&ed->engine->loop, &m->line);
        sr_descriptors_discard(m->line.fd);
    }
    if (m->ended.fd >= 0) {
        sr_loop_remove(&ed->engine->loop, &m->ended);
        close(m->ended.fd);
    }
    if (m->file >= 0)
        sr_descriptors_discard(m->file);
    sr_ring_unmap(m->reader.ring);
    m->reader.ring = NULL;
    m->line.fd = m->ended.fd = m->file = -1;
    m->broken = m->paused = false;
    m->file_number = 0;
    m->bound = 0;
    sr_publish_forget(m);
    if (m->lane)
        sr_lanes_ended(ed, m);
}

void sr_crew_ended(sr_edge *ed, sr_edge_worker *m)
{
    sr_deliver(ed, m); /* complete records still count */
    sr_deliver_end(ed, m, true);
    sr_sleepers_forget(ed->sleepers, m->row);
    part(ed, m);
}

/* --- hello --- */

static bool has_ended(const sr_edge_worker *m)
{
    return sr_pidfd_ended(m->ended.fd, m->pid);
}

/*
 * A row belongs to its worker until that worker has ended, and a worker has one row. Who asks for the row of
 * another gets nothing: the supervisor has assigned the rows.
 */
static bool may_have(sr_edge *ed, const sr_message *hello)
{
    char text[128];
    const sr_edge_worker *m = &ed->workers[hello->row];
    if (!hello->pid)
        return false;
    for (uint32_t row = 0; row < ed->rows; row++) {
        sr_edge_worker *other = &ed->workers[row];
        if (row == hello->row || other->line.fd < 0 || other->pid != hello->pid || has_ended(other))
            continue;
        sr_deliver_broken(ed, other, "asked the edge for a second row");
        return false;
    }
    if (m->line.fd < 0 || m->pid == hello->pid || has_ended(m))
        return true;
    int n = sr_report_begin(ed, text, hello->pid, "broken");
    snprintf(text + n, sizeof text - (size_t)n, "asked the edge for the row of worker %d\n", (int)m->pid);
    sr_report(ed, text);
    return false;
}

/* By a note without descriptors. */
static void refuse(int line)
{
    sr_message note = {.kind = SR_MESSAGE_QUEUE};
    sr_door_send(line, &note, NULL, 0, false);
    sr_descriptors_discard(line);
}

/*
 * A worker asks again until it is taken; until then requests may wait for it, and the operator should know
 * why.
 */
static void not_taken(sr_edge *ed, int err)
{
    if (err != ESRCH && err != EPIPE && err != ECONNRESET &&
        err != EAGAIN) /* it has ended, or does not read */
        sr_trouble_count(ed->engine, SR_TROUBLE_WORKER, 1, err);
}

static void welcome(sr_edge *ed, const sr_message *hello, int line)
{
    sr_edge_worker *m = &ed->workers[hello->row];
    sr_loop *loop = &ed->engine->loop;
    int ring_fd = -1;
    if (m->line.fd >= 0) /* the end of the previous worker was not noticed yet */
        sr_crew_ended(ed, m);
    sr_ring *ring = sr_ring_new(&ring_fd);
    int pidfd = ring ? sr_pidfd_open(hello->pid) : -1;
    if (pidfd < 0) {
        not_taken(ed, errno);
        sr_ring_unmap(ring);
        if (ring_fd >= 0)
            close(ring_fd);
        sr_descriptors_discard(line); /* the worker will ask again */
        return;
    }
    ed->n_workers++;
    m->pid = hello->pid;
    m->line = (sr_source){.fd = line, .kind = SR_SOURCE_LINE};
    m->ended = (sr_source){.fd = pidfd, .kind = SR_SOURCE_WORKER};
    sr_reader_init(&m->reader, ring);
    sr_message note = {.kind = SR_MESSAGE_QUEUE, .row = m->row};
    int fds[] = {ed->queue.requests_fd, ed->queue.replies_fd, ring_fd, ed->doorbell.fd};
    int err = sr_loop_add(loop, &m->line, EPOLLIN);
    err = err ? err : sr_loop_add(loop, &m->ended, EPOLLIN);
    err = err ? err : sr_door_send(line, &note, fds, SR_MESSAGE_FDS, false);
    if (err) {
        not_taken(ed, err);
        part(ed, m);
    }
    close(ring_fd);
    sr_sleepers_wake(ed->sleepers, m->row); /* the worker may be asleep */
}

/* The first note on a connection to the lobby has come, or failed with `err`. */
static void hello(sr_edge *ed, int line, int err, const sr_message *note)
{
    bool sound = !err && note->kind == SR_MESSAGE_HELLO && note->number == ed->key && note->row < ed->rows;
    if (!sound || !may_have(ed, note)) {
        refuse(line);
        return;
    }
    welcome(ed, note, line);
}

/* Receives the first note. EAGAIN: it has not come yet. */
static int heard(int line, sr_message *note)
{
    int fds[SR_MESSAGE_FDS], n = 0;
    int err = sr_door_receive(line, note, fds, &n, false);
    while (n > 0)
        sr_descriptors_discard(fds[--n]);
    return err;
}

static void show_out(sr_edge *ed, sr_source *visitor)
{
    sr_loop_remove(&ed->engine->loop, visitor);
    visitor->fd = -1;
}

/* Waits for the first note. If no place is free, closes the connection that has been silent for longest. */
static void wait_for(sr_edge *ed, int line)
{
    sr_source *s = &ed->lobby.visitors[ed->lobby.next_visitor++ % SR_VISITORS_MAX];
    if (s->fd >= 0) {
        int fd = s->fd;
        show_out(ed, s);
        close(fd);
    }
    s->fd = line;
    int err = sr_loop_add(&ed->engine->loop, s, EPOLLIN);
    if (err) {
        not_taken(ed, err);
        close(line);
        s->fd = -1;
    }
}

void sr_crew_visitor(sr_edge *ed, sr_source *s)
{
    sr_message note;
    int line = s->fd, err = line < 0 ? EAGAIN : heard(line, &note);
    if (err == EAGAIN)
        return;
    show_out(ed, s);
    hello(ed, line, err, &note);
}

void sr_crew_lobby(sr_edge *ed)
{
    for (int n = 0; n < VISITS_PER_EVENT; n++) {
        sr_message note;
        int line, err = sr_door_admit(ed->lobby.source.fd, &line);
        if (err == EAGAIN)
            return;
        if (err == ECONNABORTED)
            continue;
        if (err) { /* no descriptor or memory: closes an idle connection, or pauses the lobby */
            if (sr_capacity_close_oldest(ed->engine))
                continue;
            not_taken(ed, err);
            sr_loop_remove(&ed->engine->loop, &ed->lobby.source);
            ed->lobby.resume_at = ed->engine->now + PAUSE_NS;
            return;
        }
        err = heard(line, &note);
        if (err == EAGAIN && sr_door_stranger(line))
            close(line); /* a worker of this server asks again */
        else if (err == EAGAIN)
            wait_for(ed, line);
        else
            hello(ed, line, err, &note);
    }
}

void sr_crew_resume_lobby(sr_edge *ed)
{
    if (ed->lobby.resume_at > ed->engine->now)
        return;
    ed->lobby.resume_at = 0;
    if (sr_loop_add(&ed->engine->loop, &ed->lobby.source, EPOLLIN))
        ed->lobby.resume_at = ed->engine->now + PAUSE_NS;
}

/* --- notes --- */

void sr_crew_pause(sr_edge *ed, sr_source *line, bool *paused)
{
    *paused = sr_loop_remove(&ed->engine->loop, line) == 0;
    ed->lines_resume_at = ed->engine->now + PAUSE_NS;
}

/* False: the line is still not watched. */
static bool resume(sr_edge *ed, sr_source *line, bool *paused)
{
    *paused = *paused && sr_loop_add(&ed->engine->loop, line, EPOLLIN) != 0;
    return !*paused;
}

void sr_crew_resume_lines(sr_edge *ed)
{
    if (ed->engine->now < ed->lines_resume_at)
        return;
    bool all = resume(ed, &ed->supervisor, &ed->supervisor_paused);
    all &= resume(ed, &ed->keys, &ed->keys_paused);
    for (uint32_t row = 0; row < ed->rows; row++)
        all &= resume(ed, &ed->workers[row].line, &ed->workers[row].paused);
    ed->lines_resume_at = all ? 0 : ed->engine->now + PAUSE_NS;
}

static sr_entry *asked(sr_edge *ed, sr_edge_worker *m, const sr_message *note)
{
    bool sound = !m->broken && note->slot < ed->slots && note->number;
    return sound && sr_holder_bind(ed, m, note->slot, note->number) ? &ed->entries[note->slot] : NULL;
}

/*
 * Answers. If the descriptors can't be sent, since the kernel has no memory or too many are in flight,
 * answers without them.
 */
static void answer(sr_edge *ed, sr_edge_worker *m, sr_message *note, const int *fds, int n)
{
    int err = sr_door_send(m->line.fd, note, fds, n, false);
    if (err && err != EAGAIN && n > 0)
        err = sr_door_send(m->line.fd, note, NULL, 0, false);
    if (err == EPIPE || err == ECONNRESET) /* the worker is gone, which its pidfd will report */
        sr_loop_remove(&ed->engine->loop, &m->line);
    else if (err)
        sr_deliver_broken(ed, m, "does not read the answers of the edge");
}

/*
 * Sends the files of a request. They stay open here for the next worker, in case this one dies before it
 * begins.
 */
static void files(sr_edge *ed, sr_edge_worker *m, sr_message *note, const sr_entry *en)
{
    int fds[2], n = 0;
    if (en && en->request_fd >= 0)
        fds[n++] = en->request_fd;
    if (en && en->body_fd >= 0)
        fds[n++] = en->body_fd;
    note->kind = SR_MESSAGE_FILES;
    answer(ed, m, note, fds, n);
}

/* Makes a file with the bytes that were read after the request. -1: no memory or no descriptor. */
static int ahead_of(const sr_conn *c)
{
    struct iovec iov = {sr_buffer_at(&c->in), sr_buffer_len(&c->in)};
    return sr_memfile("sirius-ahead", &iov, 1, false);
}

/* The same for one request of a connection that has others as well. */
static void lend_stream(sr_edge *ed, sr_edge_worker *m, sr_message *note, sr_exchange *x)
{
    int end, n = x->protocol->lend(ed->engine, x, &end) == 0;
    note->kind = SR_MESSAGE_SOCKET;
    note->bytes = 0;
    x->lent = x->lent || n;
    answer(ed, m, note, &end, n);
    if (n)
        close(end);
    if (n && !m->broken)
        x->protocol->pumped(ed->engine, x);
}

/*
 * Gives the worker a descriptor of the socket, for psgix.io. The edge still sends the response, if there is
 * one, but reads nothing more; SR_REPLY_TAKEN says that no response will come. If bytes that were already
 * read can't be passed, the socket is not passed either: the application would wait for these bytes, or take
 * later ones for them.
 */
static void lend(sr_edge *ed, sr_edge_worker *m, sr_message *note)
{
    int fds[2], n = 0;
    sr_entry *en = asked(ed, m, note);
    sr_conn *c = en && en->exchange ? en->exchange->conn : NULL;
    if (c && en->exchange->protocol->lend) {
        lend_stream(ed, m, note, en->exchange);
        return;
    }
    if (c && (c->state == SR_CONN_STREAMS ||
              sr_hold_has(en->exchange))) /* an event of a WebSocket, or what is to be held: it has none */
        c = NULL;
    note->kind = SR_MESSAGE_SOCKET;
    note->bytes = 0;
    size_t bytes = c && !c->transport ? sr_buffer_len(&c->in) : 0; /* into a pair they can be written */
    int ahead = bytes && !c->gone ? ahead_of(c) : -1;
    bool lends = c && !c->gone && (!bytes || ahead >= 0);
    int socket = lends ? c->source.fd : -1, end = -1;
    if (lends && c->transport) { /* one end of a pair; once, and not without a descriptor */
        lends = !c->pump && (c->pump = sr_pump_new(c)) && sr_pump_pair(c->pump, &end) == 0;
        if (c->pump && c->pump->source.fd < 0) {
            sr_pump_free(ed->engine, c->pump);
            c->pump = NULL;
        }
        socket = end;
    }
    if (lends) {
        sr_conn_release(c);
        fds[n++] = socket;
        if (bytes)
            fds[n++] = ahead;
        note->bytes = (uint32_t)bytes;
        if (!c->borrowed)
            en->lent_at = sr_send_total(c);
        c->borrowed = c->exchange->lent = true;
        c->exchange->keep_alive = false;
        if (c->out)
            c->out->copies = true;
        if (c->pump) {
            c->pump->up = c->in;
            c->in = (sr_buffer){0};
        }
        sr_buffer_reset(&c->in);
        if (!c->out)
            sr_conn_unwatch(ed->engine, c);
    }
    answer(ed, m, note, fds, n);
    if (ahead >= 0)
        close(ahead);
    if (end >= 0)
        close(end);
    if (end >= 0 && !m->broken) /* otherwise the connection may be closed */
        sr_relay_step(ed->engine, c);
}

void sr_crew_line(sr_edge *ed, sr_edge_worker *m)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0;
    /*
     * A worker writes the record that refers to a file before it sends its next note, so when the next note
     * is here, the record is too. Reads that record first, so that the next file does not take the place of
     * this one.
     */
    if (m->file_number)
        sr_deliver(ed, m);
    if (m->broken)
        return;
    int err = sr_door_receive(m->line.fd, &note, fds, &n, false);
    if (err == EPIPE || err == ECONNRESET) /* the worker is gone, which its pidfd will report */
        sr_loop_remove(&ed->engine->loop, &m->line);
    else if (err == EPROTO)
        sr_deliver_broken(ed, m, "sent an invalid note to the edge");
    else if (err && err != EAGAIN)
        sr_crew_pause(ed, &m->line, &m->paused);
    if (err)
        return;
    bool its_own = note.pid == m->pid; /* otherwise a child that the application has forked has sent it */
    if (its_own && note.kind == SR_MESSAGE_FILE) { /* the record that refers to it has come, or is about to */
        if (m->file >= 0)
            sr_descriptors_discard(m->file);
        m->file = n > 0 ? fds[--n] : -1;
        m->file_number = note.number;
    }
    while (n > 0)
        sr_descriptors_discard(fds[--n]);
    if (!its_own || note.kind == SR_MESSAGE_FILE)
        return;
    sr_deliver(ed, m); /* records from before the note come first, for this request or the previous one */
    if (note.kind == SR_MESSAGE_ASK)
        files(ed, m, &note, asked(ed, m, &note));
    else if (note.kind == SR_MESSAGE_TAKE)
        lend(ed, m, &note);
    else
        sr_deliver_broken(ed, m, "sent an invalid note to the edge");
}
