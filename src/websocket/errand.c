#include "errand.h"

#include <stdlib.h>

/* A transport of which nothing is left but what is known of it. */
typedef struct kept {
    sr_transport transport; /* must be first */
    size_t len;
    char facts[];
} kept;

static sr_bytes facts(const sr_transport *t)
{
    const kept *k = (const kept *)(const void *)t;
    return sr_bytes_of(k->facts, k->len);
}

static void forget(sr_transport *t)
{
    free(t);
}

static const sr_transport_ops ops = {.facts = facts, .free = forget};

bool sr_errand_of(sr_errand_for *f, const sr_exchange *x)
{
    const sr_conn *c = x->conn;
    *f = (sr_errand_for){.peer = c->peer,
                         .client = x->client,
                         .listener = c->listener,
                         .version = x->version,
                         .trusted = x->trusted,
                         .proxied = x->proxied};
    if (!c->transport)
        return true;
    sr_bytes of = sr_transport_facts(c->transport);
    kept *k = malloc(sizeof *k + of.len);
    if (!k)
        return false;
    *k = (kept){.transport = {.ops = &ops, .h2 = c->transport->h2}, .len = of.len};
    if (of.len)
        memcpy(k->facts, of.at, of.len);
    f->facts = &k->transport;
    return true;
}

void sr_errand_forget(sr_errand_for *f)
{
    sr_transport_free(f->facts);
    f->facts = NULL;
}

sr_exchange *sr_errand_new(sr_engine *e, const sr_errand_for *f, const sr_protocol *protocol)
{
    sr_conn *c = sr_conn_new(-1, &f->peer, f->listener);
    sr_exchange *x = NULL;
    if (!c)
        return NULL;
    c->state = SR_CONN_STREAMS;
    c->protocol = protocol;
    c->transport = f->facts;
    if ((x = sr_exchange_add(e, c))) {
        x->client = f->client;
        x->version = f->version;
        x->trusted = f->trusted;
        x->proxied = f->proxied;
        x->ready_at = e->now;
        return x;
    }
    c->transport = NULL;
    sr_conn_free(c);
    return NULL;
}

void sr_errand_end(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    sr_exchange_abandon(e, x);
    x->held = NULL;
    sr_exchange_end(e, x);
    c->transport = NULL;
    sr_conn_free(c);
}

bool sr_errand_take_back(sr_engine *e, sr_exchange *x)
{
    return x->slot && !e->expired(e->with, x, SR_DEADLINE_QUEUE);
}
