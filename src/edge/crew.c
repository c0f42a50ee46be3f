#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "edge.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../net/tempfile.h"

static void part(sr_edge *ed, sr_mate *m)
{
    if (m->line.fd >= 0) {
        sr_loop_remove(&ed->engine->loop, &m->line);
        close(m->line.fd);
    }
    if (m->ended.fd >= 0) {
        sr_loop_remove(&ed->engine->loop, &m->ended);
        close(m->ended.fd);
    }
    sr_engine *e = ed->engine;
    for (int i = e->event; i < e->n_events; i++)
        if (e->events[i].data.ptr == &m->line || e->events[i].data.ptr == &m->ended)
            e->events[i].data.ptr = NULL;
    if (m->file >= 0)
        close(m->file);
    m->line.fd = m->ended.fd = m->file = -1;
    m->broken = false;
}

/* The requests that it had. */
static void orphans(sr_edge *ed, sr_mate *m)
{
    for (uint32_t slot = 0; slot < ed->slots; slot++)
        if (ed->entries[slot].number &&
            sr_queue_owner(&ed->queue, slot, ed->entries[slot].number) == (int32_t)m->row)
            sr_edge_orphan(ed, slot);
}

void sr_edge_ended(sr_edge *ed, sr_mate *m)
{
    sr_edge_deliver(ed, m); /* what it said whole counts */
    orphans(ed, m);
    sr_sleepers_forget(ed->sleepers, m->row);
    part(ed, m);
}

void sr_edge_broken(sr_edge *ed, sr_mate *m, const char *why)
{
    char text[128];
    m->broken = true;
    snprintf(text, sizeof text, "%d broken %s\n", (int)m->pid, why);
    sr_edge_report(ed, text);
    orphans(ed, m);
}

static void welcome(sr_edge *ed, const sr_message *hello, int line, int pidfd)
{
    sr_mate *m = &ed->mates[hello->row];
    if (m->line.fd >= 0) /* its last worker's end is still to be noticed */
        sr_edge_ended(ed, m);
    m->pid = hello->pid;
    m->line = (sr_source){.fd = line, .kind = SR_SOURCE_LINE};
    m->ended = (sr_source){.fd = pidfd, .kind = SR_SOURCE_WORKER};
    sr_reader_init(&m->reader, sr_queue_ring(&ed->queue, m->row));
    sr_message note = {.kind = SR_MESSAGE_QUEUE, .row = m->row};
    int fds[] = {ed->queue.requests_fd, ed->queue.replies_fd, ed->doorbell.fd};
    if (sr_loop_add(&ed->engine->loop, &m->line, EPOLLIN) ||
        sr_loop_add(&ed->engine->loop, &m->ended, EPOLLIN) || sr_door_send(line, &note, fds, 3, false))
        part(ed, m);
}

void sr_edge_hello(sr_edge *ed)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0;
    if (sr_door_receive(ed->lobby.fd, &note, fds, &n, false) != 0)
        return;
    if (note.kind == SR_MESSAGE_HELLO && note.row < ed->rows && n == 2) {
        welcome(ed, &note, fds[0], fds[1]);
        return;
    }
    while (n > 0)
        close(fds[--n]);
}

static sr_entry *asked(sr_edge *ed, const sr_mate *m, const sr_message *note)
{
    if (note->slot >= ed->slots || !note->number || ed->entries[note->slot].number != note->number ||
        sr_queue_owner(&ed->queue, note->slot, note->number) != (int32_t)m->row)
        return NULL;
    return &ed->entries[note->slot];
}

static void files(sr_edge *ed, sr_mate *m, sr_message *note, sr_entry *en)
{
    int fds[2], n = 0;
    if (en && en->request_fd >= 0)
        fds[n++] = en->request_fd;
    if (en && en->body_fd >= 0)
        fds[n++] = en->body_fd;
    note->kind = SR_MESSAGE_FILES;
    if (sr_door_send(m->line.fd, note, fds, n, false) != 0)
        sr_edge_broken(ed, m, "does not read what it has asked for");
    while (n > 0)
        close(fds[--n]);
    if (en)
        en->request_fd = en->body_fd = -1;
}

/* Bytes that were read ahead, in a file. -1: there are none, or no memory. */
static int ahead_of(const sr_conn *c, uint32_t *bytes)
{
    size_t len = sr_buffer_len(&c->in);
    int fd = len ? memfd_create("sirius-ahead", MFD_CLOEXEC) : -1;
    *bytes = 0;
    if (fd < 0)
        return -1;
    if (sr_tempfile_write(fd, sr_buffer_at(&c->in), len) != 0) {
        close(fd);
        return -1;
    }
    *bytes = (uint32_t)len;
    return fd;
}

/*
 * The application uses the socket. It gets a descriptor of it; the response, if there will be one, goes out here as ever, and
 * nothing more is read. SR_REPLY_TAKEN says that there will be none.
 */
static void lend(sr_edge *ed, sr_mate *m, sr_message *note)
{
    int fds[2], n = 0;
    sr_edge_deliver(ed, m); /* what was replied comes first */
    sr_entry *en = asked(ed, m, note);
    sr_conn *c = en ? en->conn : NULL;
    note->kind = SR_MESSAGE_SOCKET;
    note->bytes = 0;
    if (c && !c->gone) {
        fds[n++] = c->source.fd;
        int ahead = ahead_of(c, &note->bytes);
        if (ahead >= 0)
            fds[n++] = ahead;
        c->borrowed = true;
        c->keep_alive = false;
        sr_buffer_reset(&c->in);
        if (!c->out)
            sr_conn_unwatch(ed->engine, c);
    }
    int err = sr_door_send(m->line.fd, note, fds, n, false);
    if (n > 1)
        close(fds[1]);
    if (err)
        sr_edge_broken(ed, m, "does not read what it has asked for");
}

void sr_edge_line(sr_edge *ed, sr_mate *m)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0;
    int err = sr_door_receive(m->line.fd, &note, fds, &n, false);
    if (err == EAGAIN)
        return;
    if (err) { /* its end is gone, which its pidfd will tell, or what it says is no note */
        sr_loop_remove(&ed->engine->loop, &m->line);
        return;
    }
    if (note.kind == SR_MESSAGE_FILE) { /* the record that speaks of it is there already, or is just coming */
        if (m->file >= 0)
            close(m->file);
        m->file = n > 0 ? fds[--n] : -1;
        m->file_number = note.number;
    }
    while (n > 0)
        close(fds[--n]);
    if (note.kind == SR_MESSAGE_ASK)
        files(ed, m, &note, asked(ed, m, &note));
    else if (note.kind == SR_MESSAGE_TAKE)
        lend(ed, m, &note);
    else if (note.kind != SR_MESSAGE_FILE)
        sr_edge_broken(ed, m, "sent a note that cannot be");
}
