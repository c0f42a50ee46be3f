/* work: the loop of a worker, which takes requests from the edges, calls the application and replies. */
#include "work.h"

#include "accesslog.h"
#include "call.h"
#include "hold.h"
#include "memory.h"
#include "response.h"
#include "serve.h"
#include "shared.h"
#include "sirius.h"
#include "stream.h"
#include "turn.h"
#include "wire.h"

#include "base/clock.h"
#include "share/layout.h"

#include <sys/mman.h>
#include <unistd.h>

#define WAITED_NS (10 * SR_MILLISECOND) /* shorter waits are not reported to the operator */

/* Serves s->worker.request. */
static void one(pTHX_ sirius *s, const sirius_app *app)
{
    const sr_worker_request *r = &s->worker.request;
    const sr_request *q = r->request;
    int64_t ready_at = r->slot->ready_at;
    sirius_row_state(&s->row, SR_WORKER_BUSY, s->worker.now);
    if (s->log)
        sirius_accesslog_begin(s);
    sr_counters_add(&s->row.of->counters.requests, 1);
    sr_histogram_add(&s->row.of->counters.queue,
                     (uint64_t)(s->worker.now > ready_at ? s->worker.now - ready_at : 0) +
                         (uint64_t)r->slot->before_ns);
    if (s->row.board && s->worker.now - ready_at >= WAITED_NS)
        sr_scoreboard_waited(s->row.board, s->worker.now - ready_at);
    sr_row_number(s->row.of, s->worker.from->queue.requests->nonce, s->worker.number);
    sr_row_begin(s->row.of, sr_span_in(r->base, q->method), sr_span_in(r->base, q->target), &r->slot->client,
                 ready_at);
    s->inside.now = 1;
    if (sirius_serve_one(aTHX_ s, app))
        s->ending.why = "harakiri";
    s->inside.now = 1;
    sr_row_end(s->row.of);
    sr_worker_done(&s->worker);
    sirius_row_state(&s->row, SR_WORKER_IDLE, s->worker.now);
}

static const char *ends(sirius *s, const char *why)
{
    s->inside.now = 0;
    sirius_current = NULL;
    return sirius_ending_reason(&s->ending, why);
}

sr_worker_what sirius_work_one(pTHX_ sirius *s, const sirius_app *app)
{
    if (PL_sig_pending)
        sirius_signals(aTHX_ s);
    sr_worker_what what = sr_worker_next(&s->worker);
    if (what == SR_WORKER_REQUEST)
        one(aTHX_ s, app);
    return what;
}

/* To Perl, which serves again soon. */
static const char *aside(pTHX_ sirius *s, const char *why)
{
    sirius_hold(aTHX_ & s->inside);
    s->inside.now = 0;
    sirius_current = NULL;
    return why;
}

static const char *work(pTHX_ sirius *s, const sirius_app *app)
{
    s->inside.now = 1;
    sirius_current = s;
    sirius_let_go(aTHX_ & s->inside);
    if (s->ending.why && s->ending.told)
        return ends(s, s->ending.why);
    sirius_row_state(&s->row, SR_WORKER_IDLE, sr_clock_monotonic());
    for (;;) {
        switch (sirius_work_one(aTHX_ s, app)) {
        case SR_WORKER_REQUEST:
            break;
        case SR_WORKER_WAKE:
            if (sirius_alone_ended(&s->alone)) {
                s->inside.now = 0;
                sirius_current = NULL;
                return "edge";
            }
            s->worker.now = sr_clock_monotonic();
            if (!sirius_alone_troubled(&s->alone, s->row.board, s->worker.now))
                continue;
            return aside(aTHX_ s, "trouble");
        case SR_WORKER_DONE:
            sirius_row_state(&s->row, SR_WORKER_DRAINING, s->worker.now);
            if (atomic_load(&s->worker.sleepers->over)) {
                sirius_current = NULL;
                return "over";
            }
            if (atomic_load(&s->worker.leaving) == SR_LEAVING_STOP) {
                s->inside.now = 0;
                sirius_current = NULL;
                return "stopped";
            }
            return ends(s, s->worker.cut_off ? "closed" : s->worker.timed_out ? "timeout" : "drained");
        }
        const char *soon = sirius_ending_served(&s->ending);
        if (!soon && sirius_alone_troubled(&s->alone, s->row.board, s->worker.now))
            soon = "trouble";
        if (s->ending.why) {
            sr_worker_flush_all(&s->worker);
            return ends(s, s->ending.why);
        }
        if (soon) {
            sr_worker_flush_all(&s->worker);
            return aside(aTHX_ s, soon);
        }
    }
}

const char *sirius_work(pTHX_ sirius *s, SV *code)
{
    sirius_app app = sirius_app_of(aTHX_ code);
    ENTER;
    SAVEDESTRUCTOR_X(sirius_memory_look, NULL);
    const char *why = work(aTHX_ s, &app);
    LEAVE;
    return why;
}

void sirius_abandon(pTHX_ sirius *s, const char *why)
{
    if (sirius_forked(s) || !sirius_current)
        return;
    s->inside.now = 1;
    if (s->turn.open) {
        sirius_fail(aTHX_ s, why, NULL);
        sirius_finish(aTHX_ s, true);
    }
    sr_worker_done(&s->worker);
    sr_worker_flush_all(&s->worker);
    sirius_current = NULL;
}

/* --- starting --- */

void sirius_work_watch(sirius *s, int edge)
{
    s->alone.edge = edge;
    s->worker.look_ns = sirius_alone_look_ns(&s->alone);
}

void sirius_work_open(pTHX_ sirius *s, int sleepers, uint32_t row, uint32_t generation)
{
    sr_worker_config config = {.sleepers = sirius_sleepers_map(aTHX_ sleepers),
                               .row = row,
                               .generation = generation,
                               .look_ns = sirius_alone_look_ns(&s->alone)};
    int err = sr_worker_open(&s->worker, &config);
    if (err)
        munmap(config.sleepers, SR_SLEEPERS_BYTES);
    s->worker.interrupted = sirius_interrupted;
    if (err == EPROTO && s->worker.foreign) {
        char theirs[24], ours[24];
        sr_layout_number(s->worker.foreign, theirs);
        sr_layout_number(SR_QUEUE_LAYOUT, ours);
        croak("the queue of this server has layout %s, and the installed version of Sirius layout %s; a "
              "reload is not enough, restart the server\n",
              theirs, ours);
    }
    if (err)
        croak("Sirius::Worker::RequestLoop->new: the edge does not answer: %s\n", Strerror(err));
    atomic_store_explicit(&s->row.of->pid, getpid(), memory_order_relaxed);
    sirius_row_state(&s->row, SR_WORKER_STARTING, sr_clock_monotonic()); /* --after-fork has not run yet */
}

void sirius_work_close(pTHX_ sirius *s)
{
    sr_sleepers *sleepers = s->worker.sleepers;
    PERL_UNUSED_CONTEXT;
    if (!sleepers)
        return;
    if (!sirius_forked(s))
        sr_worker_close(&s->worker);
    munmap(sleepers, SR_SLEEPERS_BYTES);
}
