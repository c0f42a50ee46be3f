#include "others.h"

#include "../conn/capacity.h"
#include "../conn/deadline.h"
#include "../conn/listener.h"
#include "slots.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static sr_common_row *own(const sr_edge *ed)
{
    return &ed->others.common->row[ed->number];
}

static uint64_t connections(void *with)
{
    const sr_edge *ed = with;
    uint64_t sum = 0;
    atomic_store_explicit(&own(ed)->connections, ed->engine->n_conns, memory_order_relaxed);
    for (uint32_t i = 0; i < ed->others.n_bells; i++)
        if (i != ed->number)
            sum += atomic_load_explicit(&ed->others.common->row[i].connections, memory_order_relaxed);
    return sum;
}

void sr_others_passed(sr_edge *ed, uint32_t n)
{
    if (ed->others.common)
        atomic_store_explicit(&own(ed)->connections, ed->engine->n_conns - n, memory_order_relaxed);
}

void sr_others_ring(const sr_edge *ed, uint32_t edge)
{
    uint64_t one = 1;
    ssize_t n = write(ed->others.bells[edge], &one, sizeof one);
    (void)n; /* EAGAIN: the bell is set already */
}

/* Asks the edge with the oldest idle connection to close it, if it is older than `ours`. */
static bool shed(void *with, int64_t ours)
{
    const sr_edge *ed = with;
    uint32_t found = SR_EDGES_MAX;
    int64_t first = ours ? ours : INT64_MAX;
    for (uint32_t i = 0; i < ed->others.n_bells; i++) {
        const sr_common_row *row = &ed->others.common->row[i];
        int64_t oldest = atomic_load_explicit(&row->oldest, memory_order_relaxed);
        if (i == ed->number || !oldest || oldest >= first ||
            atomic_load_explicit(&row->idle, memory_order_relaxed) <=
                atomic_load_explicit(&row->shed, memory_order_relaxed))
            continue;
        found = i;
        first = oldest;
    }
    if (found == SR_EDGES_MAX)
        return false;
    atomic_fetch_add(&ed->others.common->row[found].shed, 1);
    sr_others_ring(ed, found);
    return true;
}

/* EPOLLEXCLUSIVE has woken only this edge for a connection that it can't accept: makes all others look. */
static void stuck(void *with)
{
    const sr_edge *ed = with;
    for (uint32_t i = 0; i < ed->others.n_bells; i++)
        if (i != ed->number)
            sr_others_ring(ed, i);
}

int sr_others_open(sr_edge *ed, const sr_setup *s)
{
    struct stat st;
    if (s->common < 0)
        return 0;
    if (s->edge >= s->n_bells || fstat(s->common, &st) != 0 || st.st_size != (off_t)sizeof(sr_common))
        return EINVAL;
    void *at = mmap(NULL, sizeof(sr_common), PROT_READ | PROT_WRITE, MAP_SHARED, s->common, 0);
    if (at == MAP_FAILED)
        return errno;
    ed->others.common = at;
    ed->others.n_bells = s->n_bells;
    memcpy(ed->others.bells, s->bells, sizeof ed->others.bells);
    sr_common_clear(ed->others.common, ed->number);
    atomic_fetch_or(&ed->others.common->active, UINT64_C(1) << ed->number);
    ed->engine->others = connections;
    ed->engine->shed = shed;
    ed->engine->stuck = stuck;
    ed->others.bell = (sr_source){.fd = ed->others.bells[ed->number], .kind = SR_SOURCE_ASKED};
    return sr_loop_add(&ed->engine->loop, &ed->others.bell, EPOLLIN | EPOLLET);
}

void sr_others_close(sr_edge *ed)
{
    if (!ed->others.common)
        return;
    sr_common_clear(ed->others.common, ed->number);
    munmap(ed->others.common, sizeof(sr_common));
}

void sr_others_publish(sr_edge *ed, uint64_t queued)
{
    const sr_engine *e = ed->engine;
    sr_common_row *row = own(ed);
    atomic_store_explicit(&row->connections, e->n_conns, memory_order_relaxed);
    atomic_store_explicit(&row->idle, e->deadlines.n_idle, memory_order_relaxed);
    atomic_store_explicit(&row->oldest, sr_deadline_first(&e->deadlines, SR_DEADLINE_IDLE),
                          memory_order_relaxed);
    atomic_store_explicit(&row->waiting, queued + ed->turns.n, memory_order_relaxed);
    atomic_store_explicit(&row->running, sr_slots_given(ed) - queued, memory_order_relaxed);
}

void sr_others_look(sr_edge *ed)
{
    const sr_common *common = ed->others.common;
    ed->others.waiting = ed->others.running = 0;
    if (!common)
        return;
    atomic_store_explicit(&own(ed)->turned, ed->engine->now, memory_order_relaxed);
    ed->others.some = atomic_load_explicit(&common->active, memory_order_relaxed) != UINT64_C(1)
                                                                                         << ed->number;
    for (uint32_t i = 0; ed->others.some && i < ed->others.n_bells; i++)
        if (i != ed->number) {
            ed->others.waiting += atomic_load_explicit(&common->row[i].waiting, memory_order_relaxed);
            ed->others.running += atomic_load_explicit(&common->row[i].running, memory_order_relaxed);
        }
}

void sr_others_asked(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    uint32_t n = atomic_exchange(&own(ed)->shed, 0);
    while (n-- && sr_capacity_close_oldest(e))
        ;
    /* another edge could not accept: adding the listeners again makes epoll report them again */
    if (e->listeners.watched) {
        sr_listeners_watch(e, false);
        sr_listeners_watch(e, true);
    }
}
