#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "worker.h"

#include "../base/clock.h"
#include "../share/door.h"
#include "edges.h"
#include "line.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DOUBTS_MAX = 10000 };        /* one second; by then the edge is stopped or gone */
#define WORTH_A_WAKE_NS (50 * 1000) /* a wake-up takes about 20 us on an idle core, less on a busy one */
#define PATIENCE_NS (30 * 1000)     /* how long a reply may wait for others before the edge is told */
#define ALONE_NS (10 * SR_SECOND)   /* how often a worker that nobody wakes checks for edges */

static bool called_away(const sr_worker *w)
{
    return atomic_load(&w->woken) || atomic_load(&w->leaving) || atomic_load(&w->sleepers->over);
}

/*
 * A page that the kernel clears in a child, so that no system call is needed to know. Where it can't (before
 * Linux 4.14, on other systems), a child is known by sr_worker_forked alone.
 */
static const _Atomic uint32_t always = 1, never = 0;

static const _Atomic uint32_t *mine_new(void)
{
    _Atomic uint32_t *mine =
        mmap(NULL, sizeof *mine, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mine == MAP_FAILED)
        return &always;
    atomic_store(mine, 1);
#ifdef MADV_WIPEONFORK
    if (madvise(mine, sizeof *mine, MADV_WIPEONFORK) == 0)
        return mine;
#endif
    munmap(mine, sizeof *mine);
    return &always;
}

void sr_worker_forked(sr_worker *w)
{
    w->mine = &never;
}

int sr_worker_open(sr_worker *w, const sr_worker_config *config)
{
    *w = (sr_worker){.sleepers = config->sleepers,
                     .row = config->row,
                     .generation = config->generation,
                     .look_ns = config->look_ns};
    for (uint32_t i = 0; i < SR_EDGES_MAX; i++)
        w->edges[i] = (sr_worker_line){.line = -1, .bell = -1};
    if (config->row >= config->sleepers->rows) {
        *w = (sr_worker){0};
        return EINVAL;
    }
    w->mine = mine_new();
    for (;;) {
        uint32_t word = atomic_load(&w->sleepers->row[w->row].word);
        int err = sr_worker_look(w);
        if (w->n_open || called_away(w))
            break;
        if (err && !w->unmet) {
            uint32_t foreign = w->foreign;
            sr_worker_close(w);
            w->foreign = foreign;
            return err;
        }
        if (sr_worker_patience(w))
            sr_sleepers_sleep(w->sleepers, w->row, word,
                              SR_WORKER_AGAIN_NS); /* woken by an answer or an arrival */
        if (w->look_ns)
            break;
    }
    sr_sleepers_search(w->sleepers, w->row);
    return 0;
}

void sr_worker_close(sr_worker *w)
{
    if (w->sleepers && !sr_worker_is_child(w))
        sr_sleepers_forget(w->sleepers, w->row);
    if (w->mine && w->mine != &always && w->mine != &never)
        munmap((void *)(uintptr_t)w->mine, sizeof *w->mine);
    for (uint32_t i = 0; w->sleepers && i < SR_EDGES_MAX; i++)
        sr_worker_line_close(&w->edges[i]);
    if (w->spilled)
        munmap(w->spilled, w->spilled_bytes);
    *w = (sr_worker){0};
}

/* --- telling --- */

static void mark(sr_worker *w, sr_worker_line *l)
{
    atomic_fetch_or(&l->queue.replies->replied[w->row / 64], UINT64_C(1) << (w->row % 64));
    l->silent = true;
}

/*
 * The application has closed descriptors of the worker. The edge still finds its replies, but large requests
 * can no longer be received.
 */
static void cut_off(sr_worker *w)
{
    w->cut_off = true;
    sr_worker_leave(w, SR_LEAVING_DRAIN);
}

static void ring_bell(sr_worker *w, sr_worker_line *l)
{
    uint64_t one = 1;
    l->silent = false;
    l->told_at = w->now;
    if (!atomic_load(&l->queue.replies->asleep) || !atomic_exchange(&l->queue.replies->asleep, 0))
        return;
    if (write(l->bell, &one, sizeof one) < 0 && errno == EBADF) /* EAGAIN: the bell is set already */
        cut_off(w);
}

void sr_worker_flush_all(sr_worker *w)
{
    for (unsigned i = 0; i < w->n_open; i++)
        if (w->open[i]->silent)
            ring_bell(w, w->open[i]);
}

/* Another request is about to run, and may take long. */
static void flush_late(sr_worker *w)
{
    for (unsigned i = 0; i < w->n_open; i++)
        if (w->open[i]->silent && w->now - w->open[i]->told_at > PATIENCE_NS)
            ring_bell(w, w->open[i]);
}

/* --- taking --- */

static sr_worker_line *oldest(sr_worker *w)
{
    sr_worker_line *best = NULL;
    int64_t first = INT64_MAX;
    for (unsigned i = 0; i < w->n_open; i++) {
        int64_t at = sr_consumer_oldest(&w->open[i]->queue);
        if (at < first) {
            first = at;
            best = w->open[i];
        }
    }
    return best;
}

static const sr_slot *take(sr_worker *w)
{
    sr_worker_line *from = w->n_open == 1 ? w->open[0] : oldest(w);
    w->request.slot = from ? sr_consumer_take(&from->queue, &w->index) : NULL;
    if (w->request.slot)
        w->from = from;
    return w->request.slot;
}

static uint64_t waiting(const sr_worker *w)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < w->n_open; i++)
        n += sr_consumer_waiting(&w->open[i]->queue);
    return n;
}

/*
 * Maps the file that holds the request, for as long as the request runs. Returns 0 or errno; also EMFILE if
 * the descriptor table of this process was full, since the kernel then drops descriptors silently.
 */
static int fetch(sr_worker *w, uint32_t files, int *body_fd)
{
    sr_message note = {.kind = SR_MESSAGE_ASK, .row = w->row, .number = w->number, .slot = w->index};
    int fds[SR_MESSAGE_FDS], n = 0, i = 0;
    int err = sr_worker_has_line(w->from) ? sr_door_send(w->from->line, &note, NULL, 0, true) : EBADF;
    if (!err)
        err = sr_worker_answer(w, SR_MESSAGE_FILES, &note, fds, &n);
    if (err)
        return err;
    if (n != !!(files & SR_FILE_REQUEST) + !!(files & SR_FILE_BODY))
        err = EMFILE;
    if (!err && files & SR_FILE_REQUEST) {
        const sr_slot *s = w->request.slot;
        w->spilled_bytes = (size_t)s->parse + s->head + s->body + s->facts;
        void *at = mmap(NULL, w->spilled_bytes, PROT_READ, MAP_PRIVATE, fds[i], 0);
        err = at == MAP_FAILED ? errno : 0;
        close(fds[i++]);
        w->spilled = at == MAP_FAILED ? NULL : at;
    }
    if (!err && files & SR_FILE_BODY)
        *body_fd = fds[i++];
    while (i < n)
        close(fds[i++]);
    return err;
}

/*
 * False: this process was stopped after it had taken the request, and the edge has given it to another
 * worker.
 */
static bool still_mine(sr_worker *w)
{
    static const struct timespec moment = {.tv_nsec = 100 * 1000};
    sr_claim_result claim;
    for (int n = 0; (claim = sr_consumer_begin(&w->from->queue, w->index, w->number)) == SR_CLAIM_DOUBTED;
         n++) {
        if (n >= DOUBTS_MAX && sr_consumer_forgo(&w->from->queue, w->index, w->number))
            return false;
        nanosleep(&moment, NULL); /* the edge decides within microseconds, unless it is stopped itself */
    }
    return claim == SR_CLAIM_MINE;
}

/* Not begun: the edge gives it to the next worker when this one has ended. */
static bool leave_for_others(sr_worker *w)
{
    w->from = NULL;
    w->request.slot = NULL;
    return false;
}

static bool begin(sr_worker *w)
{
    const sr_slot *s = w->request.slot;
    int body_fd = -1;
    /* after it was taken: a hold that was asked for before the request was queued has effect */
    if (sr_sleepers_holds(w->sleepers, w->generation)) {
        sr_worker_leave(w, SR_LEAVING_DRAIN);
        return leave_for_others(w);
    }
    w->number = w->from->queue.number;
    w->lost = w->dropped = false;
    w->began = w->now;
    uint32_t files = atomic_load_explicit(&s->files, memory_order_relaxed);
    int err = files ? fetch(w, files, &body_fd) : 0;
    if (err == EBADF || err == ENOTSOCK) {
        cut_off(w);
        return leave_for_others(w);
    }
    if (err) {
        sr_worker_unread(w, err);
        sr_worker_done(w);
        return false;
    }
    w->in_lane = s->in_lane;
    atomic_store_explicit(&w->from->queue.ring->began_at, w->began, memory_order_relaxed);
    if (!still_mine(w)) {
        if (body_fd >= 0)
            close(body_fd);
        sr_worker_done(w);
        return false;
    }
    const char *data = w->spilled ? w->spilled : s->data;
    w->request = (sr_worker_request){
        .slot = s,
        .request = (const sr_request *)(const void *)data,
        .base = data + s->parse,
        .body = sr_bytes_of(data + s->parse + s->head, s->body),
        .body_fd = body_fd,
        .facts = sr_bytes_of(data + s->parse + s->head + s->body, s->facts),
    };
    return true;
}

static void found(sr_worker *w)
{
    sr_sleepers_found(w->sleepers, w->row);
    uint64_t n = waiting(w);
    if (n && (int64_t)n * w->service_ns > WORTH_A_WAKE_NS && !sr_sleepers_searching(w->sleepers))
        sr_sleepers_wake_one(w->sleepers);
}

static void sleep_well(sr_worker *w)
{
    uint32_t word = sr_sleepers_begin(w->sleepers, w->row);
    if (!waiting(w) && !called_away(w) && atomic_load(&w->sleepers->epoch) == w->epoch) {
        int64_t ns = sr_worker_patience(w);
        if (w->look_ns && (ns < 0 || ns > w->look_ns))
            ns = w->look_ns;
        bool alone = ns < 0;
        if (ns && !sr_sleepers_sleep(w->sleepers, w->row, word, alone ? ALONE_NS : ns) && alone) {
            w->looked = false;
            w->unmet = true;
        }
        if (w->look_ns && sr_clock_monotonic() - w->now >= w->look_ns)
            atomic_store(&w->woken, 1);
    }
    sr_sleepers_end(w->sleepers, w->row);
}

sr_worker_what sr_worker_next(sr_worker *w)
{
    for (;;) {
        if (sr_worker_is_child(w))
            return SR_WORKER_DONE;
        if (atomic_load_explicit(&w->leaving, memory_order_relaxed) || atomic_load(&w->sleepers->over)) {
            sr_worker_flush_all(w);
            sr_sleepers_found(w->sleepers, w->row); /* requests that wait need another worker */
            if (waiting(w))
                sr_sleepers_wake_one(w->sleepers);
            return SR_WORKER_DONE;
        }
        if (atomic_exchange_explicit(&w->woken, 0, memory_order_relaxed)) {
            sr_worker_flush_all(w);
            return SR_WORKER_WAKE;
        }
        if (w->unmet || atomic_load_explicit(&w->sleepers->epoch, memory_order_relaxed) != w->epoch)
            sr_worker_look(w);
        w->now = sr_clock_monotonic();
        if (take(w)) {
            flush_late(w);
            found(w);
            if (begin(w))
                return SR_WORKER_REQUEST;
            continue;
        }
        sr_worker_flush_all(w);
        sleep_well(w);
    }
}

void sr_worker_wake(sr_worker *w)
{
    atomic_store(&w->woken, 1);
    sr_sleepers_wake(w->sleepers, w->row);
}

void sr_worker_drain(sr_worker *w)
{
    sr_worker_leave(w, SR_LEAVING_DRAIN);
}

void sr_worker_stop(sr_worker *w)
{
    sr_worker_leave(w, SR_LEAVING_STOP);
}

sr_bytes sr_worker_made_id(const sr_worker *w, char out[SR_REQUEST_ID_MADE])
{
    return sr_traced_make(out, w->from ? w->from->queue.requests->nonce : 0, w->number);
}

void sr_worker_done(sr_worker *w)
{
    if (w->spilled)
        munmap(w->spilled, w->spilled_bytes);
    w->spilled = NULL;
    if (!w->from || sr_worker_is_child(w))
        return;
    if (w->in_lane)
        atomic_store(&w->from->queue.ring->done, w->number);
    w->in_lane = false;
    mark(w, w->from);
    /* the slot may be another request's by now */
    if (sr_slot_gone(w->request.slot, w->number) & SR_GONE_LATE) {
        w->timed_out = true;
        sr_worker_leave(w, SR_LEAVING_DRAIN);
    }
    w->from = NULL;
    w->request.slot = NULL;
    w->now = sr_clock_monotonic();
    w->service_ns += (w->now - w->began - w->service_ns) / 8;
    sr_sleepers_search(w->sleepers, w->row);
}
