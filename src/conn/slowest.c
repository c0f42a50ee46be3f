#include "slowest.h"

#include "finish.h"
#include "spools.h"
#include "trouble.h"

#define YOUNG_NS SR_SECOND

enum {
    FEW = 64 * 1024, /* bytes in memory: who holds no more, and no file, can free nothing of interest */
    PAYING_MAX = 8,  /* connections that are ended at a time */
};

/* How long the client would need for the rest, in no unit. Negative: it holds next to nothing, or has only just begun. */
static double slowness(const sr_engine *e, const sr_conn *c)
{
    const sr_exchange *x = c->exchange;
    const sr_body *body = x ? x->body : NULL;
    double left, moved;
    int64_t since;
    if (c->out && (c->out->spool || c->out->copy || sr_output_memory(c->out) > FEW)) {
        left = (double)sr_output_pending(c->out);
        moved = (double)x->sent;
        since = x->ready_at;
    } else if (body && body->spooled && c->state == SR_CONN_BODY) {
        left = (double)(body->chunked ? body->length : body->left);
        moved = (double)body->received;
        since = body->began_at;
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

sr_slowest_paid sr_slowest_pays(sr_engine *e, const sr_conn *self)
{
    const sr_conn *slowest = find_slowest(e);
    if (!slowest || slowest == self)
        return slowest ? SR_SLOWEST_SELF : SR_SLOWEST_NOBODY;
    e->spools_due = true;
    return SR_SLOWEST_OTHER;
}

void sr_slowest_collect(sr_engine *e)
{
    e->spools_due = false;
    sr_slowest_make_room(e, 1);
}

bool sr_slowest_make_room(sr_engine *e, uint64_t bytes)
{
    for (int i = 0; i < PAYING_MAX && !sr_spools_room(e, bytes); i++)
        if (sr_slowest_evict(e) != SR_SLOWEST_OTHER)
            break;
    return sr_spools_room(e, bytes);
}

sr_slowest_paid sr_slowest_evict(sr_engine *e)
{
    sr_conn *slowest = find_slowest(e);
    if (!slowest)
        return SR_SLOWEST_NOBODY;
    sr_trouble_count(e, SR_TROUBLE_SLOWEST, 1, 0);
    if (slowest->state == SR_CONN_BODY)
        sr_finish_refuse(e, slowest, 507, SR_REFUSED_TEMPORARY, sr_exchange_parsed_head(slowest->exchange));
    else
        sr_conn_close(e, slowest, SR_CLOSED_SPOOL);
    return SR_SLOWEST_OTHER;
}
