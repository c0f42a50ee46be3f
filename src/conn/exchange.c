#include "exchange.h"

#include "engine.h"

#include <errno.h>
#include <stdlib.h>

enum { FREE_MAX = 1024 }; /* kept for the next requests: 256 KiB */

int sr_exchanges_init(sr_exchanges *all)
{
    all->reserve = malloc(sizeof *all->reserve);
    return all->reserve ? 0 : ENOMEM;
}

/* `conn` of a free one is the next. */
static sr_exchange *next_of(const sr_exchange *x)
{
    return (sr_exchange *)(void *)x->conn;
}

void sr_exchanges_free(sr_exchanges *all)
{
    for (sr_exchange *x = all->free, *next; x; x = next) {
        next = next_of(x);
        free(x);
    }
    free(all->reserve);
}

static sr_exchange *begin(sr_conn *c, sr_exchange *x)
{
    if (!x)
        return NULL;
    *x = (sr_exchange){.conn = c,
                       .protocol = c->protocol,
                       .client = c->peer,
                       .sent_from = c->sent,
                       .version = c->persists ? SR_HTTP_1_1 : SR_HTTP_1_0};
    sr_link_init(&x->deadline.link);
    x->place = &c->exchange;
    if ((x->older = c->exchange))
        x->older->place = &x->older;
    return c->exchange = x;
}

sr_exchange *sr_exchange_begin(sr_engine *e, sr_conn *c)
{
    return c->exchange ? c->exchange : sr_exchange_add(e, c);
}

sr_exchange *sr_exchange_add(sr_engine *e, sr_conn *c)
{
    sr_exchanges *all = &e->exchanges;
    sr_exchange *x = all->free;
    if (!x)
        return begin(c, malloc(sizeof *x));
    all->free = next_of(x);
    all->n_free--;
    return begin(c, x);
}

sr_exchange *sr_exchange_begin_refused(sr_engine *e, sr_conn *c)
{
    sr_exchange *x = sr_exchange_begin(e, c), *last = e->exchanges.reserve;
    if (x)
        return x;
    e->exchanges.reserve = NULL;
    return begin(c, last);
}

void sr_exchange_free_request(sr_exchange *x)
{
    free(x->parse);
    x->parse = NULL;
    sr_body_free(x->body);
    x->body = NULL;
}

sr_link *sr_exchange_abandon(sr_engine *e, sr_exchange *x)
{
    return x->slot && e->abandoned ? e->abandoned(e->with, x) : NULL;
}

void sr_exchange_end(sr_engine *e, sr_exchange *x)
{
    sr_exchanges *all = &e->exchanges;
    if (!x)
        return;
    if ((*x->place = x->older))
        x->older->place = x->place;
    sr_link_remove(&x->deadline.link);
    sr_exchange_drop_request(x);
    if (x->values)
        sr_accesslog_forget(x);
    free(x->named);
    if (x->held)
        e->released(e->with, x);
    if (!all->reserve) {
        all->reserve = x;
    } else if (all->n_free < FREE_MAX) {
        x->conn = (sr_conn *)(void *)all->free;
        all->free = x;
        all->n_free++;
    } else {
        free(x);
    }
}
