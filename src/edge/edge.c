#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge.h"

#include "../conn/accept.h"
#include "../conn/capacity.h"
#include "../conn/deadline.h"
#include "../conn/expire.h"
#include "../conn/handshake.h"
#include "../conn/lifetime.h"
#include "../conn/linger.h"
#include "../conn/listener.h"
#include "../conn/parting.h"
#include "../conn/protocol.h"
#include "../conn/relay.h"
#include "../conn/slowest.h"
#include "../conn/trouble.h"
#include "../h1/h1.h"
#include "../h2/h2.h"
#include "../live/hold.h"
#include "../net/bell.h"
#include "../net/pidfd.h"
#include "../net/signalfd.h"
#include "../share/door.h"
#include "../websocket/wscarrier.h"
#include "calls.h"
#include "census.h"
#include "crew.h"
#include "deliver.h"
#include "dispatch.h"
#include "entry.h"
#include "failures.h"
#include "heir.h"
#include "keys.h"
#include "lanes.h"
#include "limits.h"
#include "log.h"
#include "mend.h"
#include "others.h"
#include "plain.h"
#include "publish.h"
#include "report.h"
#include "slots.h"
#include "slow.h"
#include "stop.h"
#include "turns.h"
#include "upgrade.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFERED_PER_STEP = 16,
    ACCEPTS_PER_EVENT = 16,
    SPARE_SLOTS = 64,
    LOOK_AFTER_MS = 1,
    MINUTE_MS = 60000,
    WEBSOCKETS_AHEAD =
        16 /* requests about WebSockets in the queue, and two for each worker: the queue is for all */
};

/* After this time in the queue, the edge checks by a system call whether the client is still there. */
#define LOOK_NS (10 * SR_MILLISECOND)

static sr_link *abandoned(void *with, sr_exchange *x)
{
    return sr_entry_abandon(with, x);
}

static bool expired(void *with, sr_exchange *x, sr_deadline_kind kind)
{
    return sr_limits_expired(with, x, kind);
}

static void drained(void *with, sr_exchange *x)
{
    if (x->slot)
        sr_deliver_writable(with, x);
    else if (sr_websocket_of(x))
        sr_websocket_drained(sr_websocket_of(x));
}

static bool came(void *with, sr_exchange *x, char *at, size_t len, bool ended)
{
    sr_websocket *ws = sr_websocket_of(x);
    (void)with;
    return !ws || sr_websocket_data(ws, at, len, ended);
}

static void released(void *with, sr_exchange *x)
{
    const sr_edge *ed = with;
    sr_websocket *ws = sr_websocket_of(x);
    if (ws)
        sr_wscarrier_over(ws);
    else
        sr_hold_over(ed->live, x);
}

/* --- lifecycle --- */

static int sleepers_map(sr_edge *ed, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return errno;
    if (st.st_size != SR_SLEEPERS_BYTES)
        return EPROTO;
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return errno;
    ed->sleepers = at;
    ed->sleepers_bytes = (size_t)st.st_size;
    ed->rows = ed->sleepers->rows;
    ed->key = atomic_load(&ed->sleepers->key);
    return ed->rows && ed->rows <= SR_SLEEPERS_ROWS ? 0 : EPROTO;
}

static int source_add(sr_edge *ed, sr_source *s, int fd, uint8_t kind, uint32_t events)
{
    *s = (sr_source){.fd = fd, .kind = kind};
    return sr_loop_add(&ed->engine->loop, s, events);
}

/* Has signals delivered as events. */
static int signals_open(sr_edge *ed)
{
    static const int all[] = {SR_EDGE_STOP, SR_EDGE_STOP_NOW, SR_EDGE_CLOSE, SR_DOOR_LEASE,
                              SIGIO}; /* comes in place of a lease's when too many signals wait */
    int fd = sr_signalfd_open(all, sizeof all / sizeof all[0]);
    return fd < 0 ? errno : source_add(ed, &ed->signals, fd, SR_SOURCE_SIGNALS, EPOLLIN);
}

static int open_all(sr_edge *ed, const sr_setup *s)
{
    int err = sleepers_map(ed, s->sleepers);
    if (err)
        return err;
    if (!(ed->name = sr_door_name(s->lobby)))
        return errno;
    uint64_t slots = s->config.max_queue + ed->rows + SPARE_SLOTS;
    for (uint32_t i = 0; i < s->lanes.n; i++)
        slots += s->lanes.at[i].queue;
    ed->slots = (uint32_t)(slots < SR_QUEUE_SLOTS_MAX ? slots : SR_QUEUE_SLOTS_MAX);
    ed->workers = calloc(ed->rows, sizeof *ed->workers);
    ed->entries = calloc(ed->slots, sizeof *ed->entries);
    if (!ed->workers || !ed->entries)
        return ENOMEM;
    for (uint32_t i = 0; i < ed->rows; i++)
        ed->workers[i] = (sr_edge_worker){.row = i, .line = {.fd = -1}, .ended = {.fd = -1}, .file = -1};
    for (uint32_t i = 0; i < ed->slots; i++) {
        ed->entries[i] = (sr_entry){.request_fd = -1, .body_fd = -1};
        sr_link_init(&ed->entries[i].link);
        sr_link_init(&ed->entries[i].runs_on);
    }
    if ((err = sr_queue_new(&ed->queue, ed->slots, ed->rows)))
        return err;
    if ((err = sr_engine_new(&ed->engine, &s->config, s->lifeline)))
        return err;
    ed->queue.requests->nonce = ed->engine->nonce;
    if (s->scoreboard >= 0) {
        if (!(ed->engine->scoreboard = sr_scoreboard_map(s->scoreboard, s->edge, &ed->engine->row)))
            return errno;
        atomic_store_explicit(&ed->engine->row->started, sr_clock_monotonic(), memory_order_relaxed);
        atomic_store_explicit(&ed->engine->row->pid, getpid(), memory_order_relaxed);
    }
    ed->engine->protocol = &sr_h1;
    ed->engine->streams = sr_h2_built() ? &sr_h2 : NULL;
    ed->engine->abandoned = abandoned;
    ed->engine->drained = drained;
    ed->engine->expired = expired;
    ed->engine->released = released;
    ed->engine->came = came;
    ed->engine->with = ed;
    sr_failures_open(ed);
    sr_calls_open(ed);
    if ((err = sr_others_open(ed, s)) || (err = sr_lanes_open(ed, &s->lanes)) ||
        (err = sr_slow_open(ed, s->slow_ns, s->slow_max)))
        return err;
    ed->engine->deadlines.limit[SR_DEADLINE_LOOK] = LOOK_NS;
    ed->engine->deadlines.limit[SR_DEADLINE_CALL] = s->config.request_ns ? s->config.request_ns : SR_NO_LIMIT;
    ed->engine->deadlines.limit[SR_DEADLINE_STREAM] = s->config.stream_ns ? s->config.stream_ns : SR_NO_LIMIT;
    int bell = sr_bell_new();
    if (bell < 0)
        return errno;
    /* edge-triggered: each ring is one event, and nobody has to read it */
    if ((err = source_add(ed, &ed->doorbell, bell, SR_SOURCE_DOORBELL, EPOLLIN | EPOLLET)) ||
        (err = source_add(ed, &ed->lobby.source, s->lobby, SR_SOURCE_LOBBY, EPOLLIN)) ||
        (err = signals_open(ed)))
        return err;
    if (s->owner &&
        (err = source_add(ed, &ed->owner_end, sr_pidfd_open((pid_t)s->owner), SR_SOURCE_OWNER, EPOLLIN)))
        return err;
    if (s->supervisor >= 0 &&
        (err = source_add(ed, &ed->supervisor, s->supervisor, SR_SOURCE_SUPERVISOR, EPOLLIN)))
        return err;
    for (unsigned i = 0; i < s->n_listeners; i++) {
        ed->sites[i] = s->listeners[i].site;
        if ((err = sr_listeners_add(ed->engine, s->listeners[i].fd, s->listeners[i].is_unix)))
            return err;
        ed->engine->listeners.at[i].is_tls = s->listeners[i].is_tls;
        ed->engine->listeners.at[i].is_h2c = s->listeners[i].is_h2c;
    }
    if ((err = sr_keys_open(ed, s)))
        return err;
    if (s->hold && !(ed->live = ed->engine->live = sr_live_new(ed->engine)))
        return ENOMEM;
    if ((err = sr_upgrade_open(ed, s)))
        return err;
    if (ed->websockets) {
        ed->websockets->ask = sr_dispatch_errand;
        ed->websockets->has_room = sr_dispatch_has_room;
    }
    ed->answer.any = ed->answer.any || ed->live;
    if (s->log.fd >= 0 && (err = sr_log_open(ed, s)))
        return err;
    ed->keeps = ed->log || ed->lanes;
    ed->answer.any = ed->answer.any || ed->lanes;
    return 0;
}

int sr_edge_new(sr_edge **out, const sr_setup *setup)
{
    sr_edge *ed = calloc(1, sizeof *ed);
    if (!ed)
        return ENOMEM;
    for (unsigned i = 0; i < SR_VISITORS_MAX; i++)
        ed->lobby.visitors[i] = (sr_source){.fd = -1, .kind = SR_SOURCE_VISITOR};
    ed->number = setup->edge;
    ed->lobby.source.fd = ed->doorbell.fd = ed->signals.fd = ed->supervisor.fd = -1;
    ed->heir.pair.fd = ed->heir.legacy.fd = ed->owner_end.fd = ed->keys.fd = ed->slow.timer.fd = -1;
    ed->owner = (int32_t)setup->owner;
    ed->queue.requests_fd = ed->queue.replies_fd = -1;
    ed->report = setup->report;
    ed->answer.mounts = setup->mounts && setup->mounts->n ? setup->mounts : NULL;
    ed->answer.webroot = setup->webroot;
    ed->answer.redirects = setup->redirects;
    ed->answer.https_port = sr_plain_https_port(setup);
    ed->answer.any = ed->answer.mounts || ed->answer.webroot || ed->answer.redirects;
    ed->stop.graceful_ns = setup->graceful_ns;
    sr_link_init(&ed->abandoned);
    sr_link_init(&ed->turns.line);
    sr_link_init(&ed->published);
    int err = open_all(ed, setup);
    if (err) {
        sr_edge_free(ed);
        return err;
    }
    *out = ed;
    return 0;
}

void sr_edge_free(sr_edge *ed)
{
    sr_scoreboard *board = ed->engine ? ed->engine->scoreboard : NULL;
    sr_upgrade_stop(ed);
    /* this writes the last lines of the log, for which entries, workers and queue are needed */
    sr_engine_free(ed->engine);
    sr_scoreboard_free(board);
    sr_upgrade_close(ed);
    sr_publish_end(ed);
    sr_live_free(ed->live);
    sr_log_close(ed);
    sr_lanes_close(ed);
    sr_others_close(ed);
    for (uint32_t i = 0; ed->workers && i < ed->rows; i++) {
        if (ed->workers[i].line.fd >= 0)
            close(ed->workers[i].line.fd);
        if (ed->workers[i].ended.fd >= 0)
            close(ed->workers[i].ended.fd);
        if (ed->workers[i].file >= 0)
            close(ed->workers[i].file);
        sr_ring_unmap(ed->workers[i].reader.ring);
        sr_publish_forget(&ed->workers[i]);
    }
    for (uint32_t i = 0; ed->entries && i < ed->slots; i++) {
        sr_buffer_free(&ed->entries[i].fields);
        sr_buffer_free(&ed->entries[i].values);
        sr_buffer_free(&ed->entries[i].outs);
        sr_buffer_free(&ed->entries[i].request);
        sr_buffer_free(&ed->entries[i].line);
        sr_turn_drop(ed->entries[i].turn);
        if (ed->entries[i].request_fd >= 0)
            close(ed->entries[i].request_fd);
        if (ed->entries[i].body_fd >= 0)
            close(ed->entries[i].body_fd);
    }
    for (unsigned i = 0; i < SR_VISITORS_MAX; i++)
        if (ed->lobby.visitors[i].fd >= 0)
            close(ed->lobby.visitors[i].fd);
    if (ed->heir.pair.fd >= 0)
        close(ed->heir.pair.fd);
    if (ed->heir.legacy.fd >= 0)
        close(ed->heir.legacy.fd);
    if (ed->keys.fd >= 0)
        close(ed->keys.fd);
    sr_queue_free(&ed->queue);
    sr_buffer_free(&ed->text);
    sr_buffer_free(&ed->copy);
    if (ed->doorbell.fd >= 0)
        close(ed->doorbell.fd);
    if (ed->signals.fd >= 0)
        close(ed->signals.fd);
    if (ed->owner_end.fd >= 0)
        close(ed->owner_end.fd);
    if (ed->slow.timer.fd >= 0)
        close(ed->slow.timer.fd);
    if (ed->sleepers)
        munmap(ed->sleepers, ed->sleepers_bytes);
    free(ed->workers);
    free(ed->entries);
    free(ed);
}

/* --- the loop --- */

/* Obeys only the supervisor, or the owner: a terminal sends its signals to the whole process group. */
static void signals_read(sr_edge *ed)
{
    int signal;
    pid_t pid, master = ed->owner ? ed->owner : getppid();
    /* 0: the kernel could not record the sender (RLIMIT_SIGPENDING); a terminal never sends these signals */
    while (sr_signalfd_next(ed->signals.fd, &signal, &pid))
        if (signal == SR_DOOR_LEASE || signal == SIGIO)
            ed->engine->leased.asked = true;
        else if (pid && pid != master)
            continue;
        else if (signal == SR_EDGE_CLOSE)
            ed->engine->says_close = true;
        else
            sr_stop_begin(ed, signal == SR_EDGE_STOP_NOW);
}

/* Each note of the supervisor has a descriptor: if it has not come, the table of this process was full. */
static void without_descriptor(sr_edge *ed, uint32_t kind)
{
    char text[192];
    int n = sr_report_begin(ed, text, (int32_t)getpid(), "more");
    snprintf(
        text + n, sizeof text - (size_t)n,
        "an edge had no descriptor left for what it was sent%s; raise the limit of open files (ulimit -n)\n",
        kind == SR_MESSAGE_LOG      ? ", and still writes to the previous access log"
        : kind == SR_MESSAGE_ERRORS ? ", and still writes to the previous error log"
                                    : "");
    sr_report(ed, text);
}

/* Receives a note from the supervisor. */
static void order(sr_edge *ed)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0;
    int err = sr_door_receive(ed->supervisor.fd, &note, fds, &n, false);
    if (err == EAGAIN)
        return;
    if (sr_door_is_over(
            err)) /* the supervisor is gone, which the lifeline will report, or is of another build */
        sr_loop_remove(&ed->engine->loop, &ed->supervisor);
    else if (err)
        sr_crew_pause(ed, &ed->supervisor, &ed->supervisor_paused);
    else if (n == 0)
        without_descriptor(ed, note.kind);
    else if (note.kind == SR_MESSAGE_LOG && n > 0)
        sr_log_replace(ed, fds[--n]);
    else if (note.kind == SR_MESSAGE_RETIRE && n > 0 && !ed->engine->retiring && !ed->stop.begun)
        sr_heir_begin(ed, fds[--n]);
    else if (note.kind == SR_MESSAGE_LEGACY && n > 0)
        sr_heir_inherit(ed, fds[--n]);
    else if (note.kind == SR_MESSAGE_ERRORS && n > 0)
        dup2(fds[0], STDERR_FILENO);
    else if (note.kind == SR_MESSAGE_KEYS && n > 0)
        sr_keys_line(ed, fds[--n]);
    else if (note.kind == SR_MESSAGE_PUBLISH && n > 0)
        sr_publish_file(ed, fds[0]);
    else if (note.kind == SR_MESSAGE_CHANNELS && n > 0)
        sr_census_file(ed, fds[0]);
    while (n > 0)
        close(fds[--n]);
}

/*
 * Accepts all that wait, up to a limit. Each further one saves an epoll_wait and the wake-up of a worker; the
 * price is one needless accept.
 */
static void newcomers(sr_edge *ed, sr_listener *l)
{
    sr_engine *e = ed->engine;
    const _Atomic uint64_t *accepted = &e->row->counters.accepted;
    uint64_t before;
    int n = 0;
    do {
        sr_task task;
        before = atomic_load_explicit(accepted, memory_order_relaxed);
        if (sr_accept(e, l, &task) == SR_INTAKE_READY)
            sr_dispatch(ed, &task);
    } while (++n < ACCEPTS_PER_EVENT && atomic_load_explicit(accepted, memory_order_relaxed) != before &&
             l->registered);
}

/* An end of file means that the supervisor is gone. */
static void lifeline_readable(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    char byte;
    ssize_t n = read(e->lifeline.fd, &byte, 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    sr_loop_remove(&e->loop, &e->lifeline);
    sr_stop_begin(ed, false);
}

static void conn_event(sr_edge *ed, sr_conn *c, uint32_t events)
{
    sr_engine *e = ed->engine;
    sr_task task;
    bool has_slot = c->state == SR_CONN_SERVING && sr_conn_slot(c);
    if (has_slot && c->pump && !(events & EPOLLOUT && c->out && c->exchange->status)) {
        sr_relay_step(e, c);
        return;
    }
    if (has_slot) {
        sr_limits_peer_event(ed, c->exchange, events);
        return;
    }
    switch ((sr_conn_state)c->state) {
    case SR_CONN_IDLE:
    case SR_CONN_HEAD:
    case SR_CONN_BODY:
        if (sr_link_alone(&c->buffered) && c->protocol->read(e, c, &task) == SR_INTAKE_READY)
            sr_dispatch(ed, &task);
        return;
    case SR_CONN_FLUSH:
        c->protocol->writable(e, c);
        return;
    case SR_CONN_LINGER:
        sr_linger_read(e, c);
        return;
    case SR_CONN_HANDSHAKE:
        sr_handshake_event(e, c);
        return;
    case SR_CONN_TUNNEL:
        sr_relay_step(e, c);
        return;
    case SR_CONN_STREAMS:
        if (events & EPOLLOUT && !c->protocol->writable(e, c))
            return;
        if (events & ~(uint32_t)EPOLLOUT && sr_link_alone(&c->buffered) &&
            c->protocol->read(e, c, &task) == SR_INTAKE_READY)
            sr_dispatch(ed, &task);
        return;
    case SR_CONN_HELD:
        if (sr_websocket_of(c->exchange))
            sr_websocket_event(sr_websocket_of(c->exchange), events);
        else
            sr_hold_event(e, c, events);
        return;
    case SR_CONN_READY:
    case SR_CONN_SERVING:
        return;
    }
}

static void pump_event(sr_engine *e, sr_pump *p)
{
    if (!p->conn)
        sr_parting_step(e, p);
    else if (p->exchange)
        p->exchange->protocol->pumped(e, p->exchange);
    else
        sr_relay_step(e, p->conn);
}

static void event(sr_edge *ed, const struct epoll_event *ev)
{
    sr_source *s = ev->data.ptr;
    switch (s->kind) {
    case SR_SOURCE_LISTENER:
        if (((sr_listener *)s)->registered)
            newcomers(ed, (sr_listener *)s);
        return;
    case SR_SOURCE_CONN:
        conn_event(ed, (sr_conn *)s, ev->events);
        return;
    case SR_SOURCE_LOG:
        sr_accesslog_timer(ed->engine);
        return;
    case SR_SOURCE_PUMP:
        pump_event(ed->engine, (sr_pump *)s);
        return;
    case SR_SOURCE_LIFELINE:
        lifeline_readable(ed);
        return;
    case SR_SOURCE_LOBBY:
        sr_crew_lobby(ed);
        return;
    case SR_SOURCE_VISITOR:
        sr_crew_visitor(ed, s);
        return;
    case SR_SOURCE_SIGNALS:
        signals_read(ed);
        return;
    case SR_SOURCE_OWNER:
        sr_stop_owner_ended(ed);
        return;
    case SR_SOURCE_SUPERVISOR:
        order(ed);
        return;
    case SR_SOURCE_ASKED:
        sr_bell_heard(s->fd);
        sr_others_asked(ed);
        if (ed->lanes)
            sr_lanes_look(ed);
        return;
    case SR_SOURCE_SLOW:
        sr_slow_timer(ed);
        return;
    case SR_SOURCE_HEIR:
        sr_heir_heard(ed);
        return;
    case SR_SOURCE_LEGACY:
        sr_heir_receive(ed);
        return;
    case SR_SOURCE_KEYS:
        sr_keys_receive(ed);
        return;
    case SR_SOURCE_LINE:
        sr_crew_line(ed, (sr_edge_worker *)((char *)s - offsetof(sr_edge_worker, line)));
        return;
    case SR_SOURCE_WORKER:
        sr_crew_ended(ed, (sr_edge_worker *)((char *)s - offsetof(sr_edge_worker, ended)));
        return;
    default: /* SR_SOURCE_DOORBELL: replies are read after each batch */
        sr_bell_heard(s->fd);
        return;
    }
}

/* Handles connections whose next request, or a part of it, was already read. */
static void buffered(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    sr_link later;
    sr_link_init(&later);
    for (int n = 0; n < BUFFERED_PER_STEP && !sr_link_alone(&e->intake.buffered); n++) {
        sr_conn *c = SR_LIST_ENTRY(e->intake.buffered.next, sr_conn, buffered);
        sr_task task;
        sr_link_remove(&c->buffered);
        sr_intake got = SR_INTAKE_WAIT;
        if (c->pump)
            sr_relay_step(e, c);
        else
            got = c->protocol->read(e, c, &task);
        if (got == SR_INTAKE_READY)
            sr_dispatch(ed, &task);
        else if (got == SR_INTAKE_LATER)
            sr_link_append(&later, &c->buffered);
    }
    while (!sr_link_alone(&later))
        sr_link_append(&e->intake.buffered, later.next);
}

/* Lets handshakes go on for a while, after all that others wait for. */
static void handshakes(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    int64_t now = sr_clock_monotonic(), end = now + sr_handshake_turn(now - e->now);
    do {
        sr_task task;
        if (sr_handshake_next(e, &task) == SR_INTAKE_READY)
            sr_dispatch(ed, &task);
    } while (sr_handshake_waits(&e->handshakes) && sr_clock_monotonic() < end);
}

/*
 * No complete request waits longer than a millisecond while a worker sleeps. A worker that is searching will
 * find it, but may have been stopped or killed just now; so after a millisecond another one is woken.
 */
static void look_after(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    uint64_t queued = sr_queue_waiting(&ed->queue), waiting = queued + ed->turns.n;
    atomic_store_explicit(&e->row->waiting, waiting, memory_order_relaxed);
    atomic_store_explicit(&e->row->waiting_since, queued ? sr_queue_since(&ed->queue) : 0,
                          memory_order_relaxed);
    if (ed->others.some)
        sr_others_publish(ed, queued);
    if (!waiting) {
        ed->nudged_at = 0;
        return;
    }
    if (!sr_sleepers_sleeping(ed->sleepers))
        sr_trouble_ring(e); /* all workers are busy */
    bool late = ed->nudged_at && e->now - ed->nudged_at >= LOOK_AFTER_MS * SR_MILLISECOND;
    if (!ed->nudged_at || late)
        ed->nudged_at = e->now;
    if (late)
        sr_queue_mend(&ed->queue);
    if (late || !sr_sleepers_searching(ed->sleepers))
        sr_sleepers_wake_one(ed->sleepers);
}

static int sooner(int ms, int64_t ns)
{
    int64_t other = ns > 0 ? (ns + SR_MILLISECOND - 1) / SR_MILLISECOND : 0;
    return ms >= 0 && ms < other ? ms : other < MINUTE_MS ? (int)other : MINUTE_MS;
}

/* `ms`, or less. */
static int live_timeout(const sr_edge *ed, int ms)
{
    bool more = !sr_link_alone(&ed->published) || (ed->websockets && sr_websockets_wait(ed->websockets));
    int64_t again = ed->websockets ? sr_websockets_at(ed->websockets) : INT64_MAX;
    int live = more ? 0 : sr_live_timeout(ed->live);
    if (again != INT64_MAX)
        ms = sooner(ms, again - ed->engine->now);
    return live >= 0 && (ms < 0 || live < ms) ? live : ms;
}

/* `first`, or what an edge that ends has to do sooner. */
static int64_t end_at(const sr_edge *ed, int64_t first)
{
    const sr_engine *e = ed->engine;
    int64_t heir = e->retiring ? sr_heir_at(ed) : INT64_MAX;
    int64_t tunnels = e->draining && e->tunnels_until ? e->tunnels_until : INT64_MAX;
    first = heir < first ? heir : first;
    return tunnels < first ? tunnels : first;
}

static int patience(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    if (!sr_link_alone(&e->intake.buffered) || !sr_link_alone(&e->due) ||
        sr_handshake_waits(&e->handshakes) || sr_leased_waits(&e->leased))
        return 0;
    bool ends = e->draining | e->retiring;
    /* the last connection was closed when its frames were sent, or by a time limit */
    if (ends && (e->draining ? sr_stop_done(ed) : sr_heir_done(ed)))
        return 0;
    int ms = sr_deadlines_timeout(e);
    if (ed->live)
        ms = live_timeout(ed, ms);
    int64_t abandoned = sr_limits_abandoned_at(ed), mend = sr_mend_at(ed);
    int64_t end = ed->stop.end_at ? ed->stop.end_at : INT64_MAX;
    int64_t first = abandoned < mend ? abandoned : mend;
    first = first < end ? first : end;
    if (ends)
        first = end_at(ed, first);
    if (!sr_link_alone(&e->partings) && sr_partings_at(e) < first)
        first = sr_partings_at(e);
    if (ed->lobby.resume_at && ed->lobby.resume_at < first)
        first = ed->lobby.resume_at;
    if (ed->lines_resume_at && ed->lines_resume_at < first)
        first = ed->lines_resume_at;
    if ((ed->held.some || e->pending > SR_OUTPUT_TOTAL) && first > e->now + SR_DELIVER_HELD_NS)
        first = e->now + SR_DELIVER_HELD_NS;
    if (first != INT64_MAX)
        ms = sooner(ms, first - e->now);
    if (!sr_link_alone(&e->holding))
        return LOOK_AFTER_MS;
    bool watch = ed->nudged_at && sr_sleepers_sleeping(ed->sleepers);
    return watch && (ms < 0 || ms > LOOK_AFTER_MS) ? LOOK_AFTER_MS : ms;
}

/*
 * Waits for events, unless a worker has replied meanwhile. A worker that replies after this check rings the
 * bell.
 */
static void wait_events(sr_edge *ed, bool wait)
{
    sr_engine *e = ed->engine;
    int ms = wait ? patience(ed) : 0;
    sr_engine_publish(e, e->draining || e->retiring ? SR_WORKER_DRAINING
                         : ms                       ? SR_WORKER_IDLE
                                                    : SR_WORKER_BUSY);
    if (ms) {
        atomic_store(&ed->queue.replies->asleep, 1);
        if (sr_deliver_pending(ed))
            ms = 0;
    }
    sr_loop_wait(&e->loop, ms);
    atomic_store_explicit(&ed->queue.replies->asleep, 0, memory_order_relaxed);
    sr_engine_tick(e);
}

/* Before connections are passed on, which have to have all that was published here. */
static void live(sr_edge *ed)
{
    sr_deliver_published(ed);
    sr_live_step(ed->live);
    if (ed->websockets) {
        ed->websockets->most = WEBSOCKETS_AHEAD + 2 * ed->n_workers;
        sr_websockets_step(ed->websockets);
    }
}

bool sr_edge_step(sr_edge *ed, bool wait)
{
    sr_engine *e = ed->engine;
    sr_expire(e);
    if (!sr_link_alone(&ed->abandoned))
        sr_limits_expire_abandoned(ed);
    if (ed->lines_resume_at)
        sr_crew_resume_lines(ed);
    if (ed->lobby.resume_at)
        sr_crew_resume_lobby(ed);
    if (e->listeners.again)
        sr_capacity_resume(e);
    if (!sr_link_alone(&e->partings))
        sr_partings_expire(e);
    if (e->draining) {
        if (sr_stop_step(ed))
            return false;
    } else if (!e->listeners.watched && !e->retiring) {
        sr_listeners_watch(e, true);
    }
    if (sr_slots_used(ed))
        sr_mend(ed);
    if (ed->turns.n)
        sr_turns_feed(ed);
    look_after(ed);
    if (ed->held.some || e->pending > SR_OUTPUT_TOTAL)
        sr_deliver_held(ed);
    sr_due_send(e);
    wait_events(ed, wait);
    sr_others_look(ed);
    for (const struct epoll_event *ev; (ev = sr_loop_next(&e->loop));)
        event(ed, ev);
    sr_deliver_all(ed);
    if (ed->live)
        live(ed);
    if (e->retiring && !e->draining && sr_heir_step(ed))
        return false;
    buffered(ed);
    if (e->spools.due)
        sr_slowest_collect(e);
    if (sr_leased_waits(&e->leased))
        sr_leased_step(e);
    if (sr_handshake_waits(&e->handshakes))
        handshakes(ed);
    return true;
}

static void ready(sr_edge *ed)
{
    char text[32];
    snprintf(text, sizeof text, "%d ready\n", (int)getpid());
    if (ed->report >= 0)
        sr_report(ed, text);
    if (ed->owner && ed->report >= 0) { /* the owner no longer reads this pipe once it runs the application */
        close(ed->report);
        ed->report = -1;
    }
}

/* For metrics: how near the server is to a limit. */
static void publish_limits(const sr_engine *e)
{
    sr_board *board = e->scoreboard ? e->scoreboard->shared : NULL;
    if (!board)
        return;
    atomic_store_explicit(&board->max_connections, e->config.max_connections, memory_order_relaxed);
    atomic_store_explicit(&board->max_queue, e->config.max_queue, memory_order_relaxed);
    atomic_store_explicit(&board->queue_ns, (uint64_t)e->config.queue_ns, memory_order_relaxed);
    atomic_store_explicit(&board->request_ns, (uint64_t)e->config.request_ns, memory_order_relaxed);
}

void sr_edge_run(sr_edge *ed)
{
    sr_sleepers_arrive(ed->sleepers, ed->number, ed->name);
    publish_limits(ed->engine);
    ready(ed);
    while (sr_edge_step(ed, true))
        ;
    sr_slow_end(ed);
    sr_stop_end(ed);
}
