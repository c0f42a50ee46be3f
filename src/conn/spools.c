#include "spools.h"

#include "finish.h"
#include "trouble.h"

#include <errno.h>

#define YOUNG_NS SR_SECOND
#define FULL_NS SR_SECOND /* after a write that has failed, until the next try */

enum {
    FEW = 64 * 1024,     /* bytes in memory: who holds no more, and no file, can free nothing of interest */
    PAYING_MAX = 8,      /* connections that are ended in a turn of the loop */
    ABOVE = 1024 * 1024, /* bytes that bodies may be above the limit until the turn of the loop ends */
};

uint64_t sr_spools_taken;
static uint64_t frees; /* how often some were freed */

void sr_spools_took(uint64_t bytes)
{
    sr_spools_taken += bytes;
}

void sr_spools_gave(uint64_t bytes)
{
    sr_spools_taken -= bytes;
    frees += bytes > 0;
}

/* Of other edges, those that retire included. */
static uint64_t elsewhere(const sr_engine *e)
{
    uint64_t sum = 0;
    const sr_scoreboard *s = e->scoreboard;
    for (uint32_t i = 0; s && i < s->edges; i++)
        if (&s->rows[s->slots + i] != e->row)
            sum += atomic_load_explicit(&s->rows[s->slots + i].spooled, memory_order_relaxed);
    return sum;
}

static bool allowed(const sr_engine *e, uint64_t more, uint64_t above)
{
    uint64_t most = e->config.max_temp + above;
    return !e->config.max_temp ||
           (sr_spools_taken + more <= most && sr_spools_taken + more + elsewhere(e) <= most);
}

bool sr_spools_allowed(const sr_engine *e, uint64_t more)
{
    return allowed(e, more, 0);
}

bool sr_spools_allowed_above(const sr_engine *e, uint64_t more)
{
    return allowed(e, more, ABOVE);
}

bool sr_spools_room(const sr_engine *e, uint64_t more)
{
    bool full = e->disk_full_until > e->now && e->disk_full_frees == frees;
    return !full && sr_spools_allowed(e, more);
}

void sr_spools_failed(sr_engine *e, int err)
{
    if (err != ENOSPC && err != EDQUOT && err != EFBIG)
        return;
    e->disk_full_until = e->now + FULL_NS;
    e->disk_full_frees = frees;
}

/* How long the client would need for the rest, in no unit. Negative: it holds next to nothing, or has only just begun. */
static double slowness(const sr_engine *e, const sr_conn *c)
{
    double left, moved;
    int64_t since;
    if (c->out && (c->out->spool || c->out->copy || sr_output_memory(c->out) > FEW)) {
        left = (double)sr_output_pending(c->out);
        moved = (double)c->sent;
        since = c->ready_at;
    } else if (c->body && c->body->spooled && c->state == SR_CONN_BODY) {
        left = (double)(c->body->chunked ? c->body->length : c->body->left);
        moved = (double)c->body->received;
        since = c->body->began_at;
    } else {
        return -1;
    }
    return e->now - since < YOUNG_NS ? -1 : (left + 1) * (double)(e->now - since) / (moved + 1);
}

static sr_conn *find_slowest(const sr_engine *e)
{
    sr_conn *slowest = NULL;
    double most = -1;
    for (sr_link *l = e->all.next; l != &e->all; l = l->next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        double slow = slowness(e, c);
        if (slow > most) {
            slowest = c;
            most = slow;
        }
    }
    return slowest;
}

sr_spools_paid sr_spools_slowest(sr_engine *e, const sr_conn *self)
{
    const sr_conn *slowest = find_slowest(e);
    if (!slowest || slowest == self)
        return slowest ? SR_SPOOLS_SELF : SR_SPOOLS_NOBODY;
    e->spools_due = true;
    return SR_SPOOLS_OTHER;
}

void sr_spools_collect(sr_engine *e)
{
    e->spools_due = false;
    for (int i = 0; i < PAYING_MAX && !sr_spools_room(e, 1); i++)
        if (sr_spools_evict(e) != SR_SPOOLS_OTHER)
            break;
}

sr_spools_paid sr_spools_evict(sr_engine *e)
{
    sr_conn *slowest = find_slowest(e);
    if (!slowest)
        return SR_SPOOLS_NOBODY;
    sr_trouble_count(e, SR_TROUBLE_SLOWEST, 1, 0);
    if (slowest->state == SR_CONN_BODY)
        sr_finish_refuse(e, slowest, 507, SR_REFUSED_TEMPORARY, slowest->parse && slowest->parse->is_head);
    else
        sr_conn_close(e, slowest, SR_CLOSED_SPOOL);
    return SR_SPOOLS_OTHER;
}
