#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edges.h"

#include "../base/clock.h"
#include "../net/descriptors.h"
#include "../share/door.h"
#include "line.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEET_NS SR_SECOND /* what an edge that has come has to answer, for a publication */

void sr_worker_line_close(sr_worker_line *l)
{
    sr_consumer_close(&l->queue);
    if (sr_worker_has_line(l))
        close(l->line);
    if (l->bell >= 0 && sr_descriptors_what(l->bell) == l->bell_is)
        close(l->bell);
    *l = (sr_worker_line){.line = -1, .bell = -1};
}

/* Whether something has come on the connection, if only its end. */
static bool has_news(const sr_worker_line *l)
{
    char byte;
    return recv(l->line, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

static int hello(sr_worker *w, sr_worker_line *l, uint64_t lobby)
{
    sr_message note = {.kind = SR_MESSAGE_HELLO, .row = w->row, .number = atomic_load(&w->sleepers->key)};
    int err = sr_door_enter(lobby, &l->line);
    if (!err) {
        l->line = sr_descriptors_high(l->line);
        l->line_is = sr_descriptors_what(l->line);
    }
    if (!err)
        err = sr_door_send(l->line, &note, NULL, 0, false);
    l->asked = !err;
    return err;
}

/* Returns 0, or why there is no queue. EAGAIN: no answer has come yet. */
static int answer(sr_worker *w, sr_worker_line *l)
{
    sr_message note = {.layout = 0};
    int fds[SR_MESSAGE_FDS], n = 0;
    int err = sr_door_receive(l->line, &note, fds, &n, false);
    if (err == EAGAIN)
        return err;
    l->asked = false;
    if (err == EPROTO) /* the edge has refused, as it can't know what was said to it */
        w->foreign = note.layout;
    if (!err && (note.kind != SR_MESSAGE_QUEUE || n != SR_MESSAGE_FDS))
        err = n ? EPROTO : EACCES;
    if (!err) {
        l->pid = note.pid;
        l->bell = sr_descriptors_high(fds[--n]);
        l->bell_is = sr_descriptors_what(l->bell);
        err = sr_consumer_open(&l->queue, fds[0], fds[1], fds[2], w->row);
    }
    while (n > 0)
        close(fds[--n]);
    return err;
}

/*
 * Looks at the place of one edge: what has changed since the last look. Returns 0, or why the edge can't be
 * reached.
 */
static int look(sr_worker *w, uint32_t edge, bool news)
{
    sr_worker_line *l = &w->edges[edge];
    uint64_t lobby = atomic_load(&w->sleepers->lobby[edge]);
    int err = 0;
    if (l->line >= 0 && !l->asked &&
        (!sr_worker_has_line(l) || has_news(l))) /* edges say nothing unasked: this is the end */
        sr_worker_line_close(l);
    if (l->line < 0 && lobby && (news || (l->again_at && l->again_at <= w->now))) {
        l->again_at = 0;
        err = hello(w, l, lobby);
    }
    if (l->asked && (err = answer(w, l)) == EAGAIN)
        return 0;
    if (!err)
        return 0;
    sr_worker_line_close(l);
    if (err != EACCES &&
        err != EPROTO) /* it has died, or there was no room: not again and again without a pause */
        l->again_at = w->now + SR_WORKER_AGAIN_NS;
    return err;
}

void sr_worker_leave(sr_worker *w, int how)
{
    if (atomic_load(&w->leaving) < how)
        atomic_store(&w->leaving, how);
    sr_sleepers_wake(w->sleepers, w->row);
}

int sr_worker_look(sr_worker *w)
{
    uint32_t epoch = atomic_load(&w->sleepers->epoch); /* read before the names */
    bool news = epoch != w->epoch || !w->looked;
    int err = 0;
    bool deserted = false, met = false;
    w->looked = true;
    w->epoch = epoch;
    w->unmet = false;
    w->n_open = 0;
    w->now = sr_clock_monotonic();
    for (uint32_t i = 0; i < SR_EDGES_MAX; i++) {
        sr_worker_line *l = &w->edges[i];
        bool at_hand = l == w->from; /* its request is in that memory: looks again when it is done */
        int why = at_hand ? 0 : look(w, i, news);
        err = why ? why : err;
        deserted = deserted || why == ECONNREFUSED;
        met = met || l->line >= 0;
        w->unmet = w->unmet || at_hand || l->asked || l->again_at;
        if (l->queue.requests)
            w->open[w->n_open++] = l;
    }
    /*
     * The supervisor keeps the lobbies open while edges come and go. With neither, no request will ever come.
     */
    if (deserted && !met)
        sr_worker_leave(w, SR_LEAVING_DRAIN);
    return err;
}

int64_t sr_worker_patience(const sr_worker *w)
{
    int64_t ns = -1;
    for (uint32_t i = 0; w->unmet && i < SR_EDGES_MAX; i++) {
        const sr_worker_line *l = &w->edges[i];
        if (l->asked && has_news(l))
            return 0;
        if (l->again_at)
            ns = SR_WORKER_AGAIN_NS;
    }
    return ns;
}

/* Whether an edge that has come has not answered. */
static bool unanswered(const sr_worker *w)
{
    for (uint32_t i = 0; w->unmet && i < SR_EDGES_MAX; i++)
        if ((w->edges[i].asked || w->edges[i].again_at) && atomic_load(&w->sleepers->lobby[i]))
            return true;
    return false;
}

bool sr_worker_meet(sr_worker *w)
{
    for (int64_t since = 0;;) {
        uint32_t word = atomic_load(&w->sleepers->row[w->row].word);
        if (w->unmet || !w->looked || atomic_load(&w->sleepers->epoch) != w->epoch)
            sr_worker_look(w);
        if (!unanswered(w))
            return w->n_open > 0;
        since = since ? since : w->now;
        if (w->now - since > MEET_NS)
            return false;
        sr_sleepers_sleep(w->sleepers, w->row, word, 20 * SR_MILLISECOND); /* woken by the answer */
    }
}
