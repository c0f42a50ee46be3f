#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "companion.h"

#include "../net/descriptors.h"
#include "parts.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    RETRY_MS = 5,   /* requests are in hand and the exchange was full */
    SWEEP_MAX = 64, /* messages looked through at once */
    SWEEP_MS = 200, /* between two sweeps of the exchange */
    STACK_BYTES = 256 * 1024,
};

#define SWEEP_NS (SWEEP_MS * SR_MILLISECOND)
#define OVERRUN_NS SR_MILLISECOND /* a call that is longer; found by the next look */
#define WATCH_NS SR_MILLISECOND   /* between two looks while calls are slow */
/* And while none is: a timer costs 10 to 40 us where clocks are virtual. ALONE: nobody could take over what waits */
#define GLANCE_NS (4 * SR_MILLISECOND)
#define ALONE_NS (10 * SR_MILLISECOND)
#define SLOW_KEPT_NS (10 * SR_SECOND) /* how long slow calls keep all looking more often */
/* Calls from one overrun to the next, below which calls are slow. A machine with other work on its processors makes
 * some of 10,000 overrun: with looks every ms they cost 3 to 10 % of a hello. */
#define OFTEN 100
#define QUIET_NS (20 * SR_MILLISECOND) /* without a turn: then park */

/* --- sleeping --- */

static void park(sr_engine *e, uint32_t seen)
{
    atomic_store_explicit(&e->parked, 1,
                          memory_order_seq_cst); /* then look: turn_change does it the other way round */
    while (atomic_load_explicit(&e->turn, memory_order_seq_cst) == seen &&
           !atomic_load_explicit(&e->leaving, memory_order_relaxed))
        syscall(SYS_futex, &e->turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_store_explicit(&e->parked, 0, memory_order_relaxed);
}

void sr_companion_unpark(sr_engine *e)
{
    syscall(SYS_futex, &e->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void sr_companion_nudge(sr_engine *e)
{
    uint64_t one = 1;
    ssize_t n = write(e->nudge, &one, sizeof one);
    (void)n;
}

static void nudged(sr_engine *e)
{
    uint64_t count;
    ssize_t n = read(e->nudge, &count, sizeof count);
    (void)n;
}

/* --- driving --- */

static bool same_turn(sr_engine *e, uint32_t turn)
{
    return atomic_load_explicit(&e->turn, memory_order_seq_cst) == turn;
}

static bool wanted(sr_engine *e)
{
    return atomic_load_explicit(&e->wants, memory_order_relaxed) != 0;
}

/* The Perl thread, which may come back for the helm at once and again and again, lets it go first. */
static void helm_take(sr_engine *e)
{
    atomic_store_explicit(&e->asks, 1, memory_order_relaxed);
    sr_helm_take(&e->helm);
    atomic_store_explicit(&e->asks, 0, memory_order_relaxed);
}

/* Nobody takes from the exchange, so nobody sees that the first request in it has waited too long, or that the
 * connections in front of it send theirs. */
static void sweep(sr_engine *e)
{
    e->swept_at = e->now;
    for (int i = 0; i < SWEEP_MAX && !e->queues_again && sr_handover_take_due(e, false); i++)
        ;
    sr_deadlines_expire(e);
}

/* Pipelined bytes: is there a complete request in them, which has to wait and to be counted? */
static void look_at_turns(sr_engine *e)
{
    sr_task task;
    for (sr_link *l = e->turns.next, *next; l != &e->turns; l = next) {
        next = l->next;
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, turn);
        if (c->state == SR_CONN_READY)
            continue;
        sr_link_remove(l);
        if (sr_intake_turn(e, c, &task) == SR_INTAKE_READY)
            sr_intake_park(e, &task);
    }
}

/*
 * One round of what is there, broken off as soon as the Perl thread waits for the helm. Returns the bytes of `line`
 * that are to be told.
 */
static size_t step(sr_engine *e, uint32_t turn, char line[SR_OVERDUE_LINE])
{
    sr_task task;
    e->event = 0;
    e->n_events = sr_loop_wait(&e->loop, e->events, 0);
    if (e->n_events < 0)
        e->n_events = 0;
    sr_engine_tick(e);
    e->stepping = true;
    /* one at least: a stream of small pieces wants the helm all the time */
    while (e->event < e->n_events && same_turn(e, turn) && (!e->event || !wanted(e))) {
        sr_source *s = e->events[e->event++].data.ptr;
        bool wake; /* a signal: the Perl thread looks for those by itself when the call is over */
        if (s && sr_engine_event(e, s, &task, &wake) == SR_INTAKE_READY)
            sr_intake_park(e, &task);
    }
    e->stepping = false;
    e->event = e->n_events = 0; /* level-triggered: what is dropped is reported again */
    look_at_turns(e);
    sr_deadlines_expire(e);
    sr_engine_resume(e);
    size_t overdue = sr_overdue_look(e, line);
    if (sr_engine_draining(e)) {
        sr_drain_step(e);
        sr_row_publish(e, SR_WORKER_DRAINING);
        return overdue;
    }
    bool alone = !sr_surplus_colleagues(e, e->now);
    sr_engine_listeners(e, alone);
    if (alone && e->limit[SR_DEADLINE_QUEUE] != SR_NO_LIMIT && e->now - e->swept_at > SWEEP_NS &&
        sr_engine_gives(e))
        sweep(e);
    sr_handover_give_turns(e);
    return overdue;
}

static int patience_ms(sr_engine *e)
{
    int ms = sr_deadlines_timeout(e);
    bool sweeps = e->listening && e->limit[SR_DEADLINE_QUEUE] != SR_NO_LIMIT;
    int most = !sr_link_alone(&e->turns) ? RETRY_MS : sweeps ? SWEEP_MS : INT_MAX;
    return ms >= 0 && ms < most ? ms : most == INT_MAX ? -1 : most;
}

/*
 * The turn `turn` overruns: drive until it ends, whenever the Perl thread does not need the helm itself (to
 * write). The worker's epoll set is waited for by poll, from outside, so that it has no waiter of ours when the
 * Perl thread waits in it again.
 */
static void drive(sr_engine *e, uint32_t turn)
{
    static const struct timespec courtesy = {
        .tv_nsec = 50 * 1000}; /* a mutex does not wait for the one it has woken */
    struct pollfd p[2] = {{.fd = e->loop.epoll, .events = POLLIN}, {.fd = e->nudge, .events = POLLIN}};
    helm_take(e);
    if (same_turn(e, turn)) {
        sr_engine_queues(e, false);
        atomic_store_explicit(&e->driving, 1, memory_order_seq_cst);
        while (same_turn(e, turn) && !atomic_load_explicit(&e->leaving, memory_order_relaxed)) {
            char line[SR_OVERDUE_LINE];
            size_t len = step(e, turn, line);
            int ms = patience_ms(e);
            sr_helm_leave(&e->helm);
            if (len)
                sr_overdue_tell(e, line, len);
            poll(p, 2, ms);
            if (p[1].revents)
                nudged(e);
            if (wanted(e))
                nanosleep(&courtesy, NULL);
            helm_take(e);
        }
        atomic_store_explicit(&e->driving, 0, memory_order_seq_cst);
    }
    sr_helm_leave(&e->helm);
}

/* --- looking --- */

/* One worker's slow calls make all look more often: the next one may be anywhere. */
static _Atomic int64_t *slow_at(sr_engine *e)
{
    return e->scoreboard ? &e->scoreboard->slow_at : &e->no_slow_at;
}

/* The call of an odd turn has gone on for so long; of a turn that is over, the answer is that of the next. */
static int64_t age(const sr_engine *e, int64_t now)
{
    return now - atomic_load_explicit(&e->lent_at, memory_order_relaxed);
}

static bool alone(const sr_engine *e)
{
    for (uint32_t i = 0; e->scoreboard && i < e->scoreboard->slots; i++)
        if (&e->scoreboard->rows[i] != e->row &&
            atomic_load_explicit(&e->scoreboard->rows[i].pid, memory_order_relaxed) != 0)
            return false;
    return true;
}

static long pause_ns(sr_engine *e, int64_t now)
{
    if (now - atomic_load_explicit(slow_at(e), memory_order_relaxed) < SLOW_KEPT_NS)
        return WATCH_NS;
    return alone(e) ? ALONE_NS : GLANCE_NS;
}

static void *companion(void *arg)
{
    sr_engine *e = arg;
    uint32_t seen = atomic_load_explicit(&e->turn, memory_order_relaxed);
    uint32_t overran = seen - 2 * OFTEN; /* the turn that did last: until now, none */
    int64_t now = sr_clock_monotonic(), changed_at = now;
    while (!atomic_load_explicit(&e->leaving, memory_order_relaxed)) {
        struct timespec pause = {.tv_nsec = pause_ns(e, now)};
        nanosleep(&pause, NULL);
        now = sr_clock_monotonic();
        uint32_t turn = atomic_load_explicit(&e->turn, memory_order_seq_cst);
        bool same = turn == seen;
        if (!same)
            changed_at = now;
        seen = turn;
        if (turn & 1) {
            if (!same && age(e, now) < OVERRUN_NS)
                continue;
            if (turn - overran < 2 * OFTEN) /* a call is two turns */
                atomic_store_explicit(slow_at(e), now, memory_order_relaxed);
            overran = turn;
            drive(e, turn);
            now = changed_at = sr_clock_monotonic();
        } else if (now - changed_at >= QUIET_NS) {
            park(e, turn);
        }
    }
    return NULL;
}

/* --- start and stop --- */

int sr_companion_start(sr_engine *e)
{
    sigset_t all, before;
    pthread_attr_t attr;
    e->nudge = sr_descriptors_above(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (e->nudge < 0)
        return errno;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all); /* a thread inherits the mask: no handler of the application may ever run on it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&e->companion, &attr, companion, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    e->has_companion = err == 0;
    if (err)
        close(e->nudge);
    return err;
}

void sr_companion_stop(sr_engine *e)
{
    if (!e->has_companion)
        return;
    atomic_store_explicit(&e->leaving, 1, memory_order_seq_cst);
    /* Another value, as odd as it was: one that is about to park has seen no leaving, and must not sleep on the old one */
    atomic_fetch_add_explicit(&e->turn, 2, memory_order_seq_cst);
    sr_companion_unpark(e);
    sr_companion_nudge(e);
    pthread_join(e->companion, NULL);
    e->has_companion = false;
    close(e->nudge);
}
