/* exchange: one for each request at hand, none for an idle connection, and one in reserve */
#include "conn/exchange.h"
#include "conn/lifetime.h"
#include "h1/decode.h"
#include "tap.h"

#include <stdlib.h>

enum { MANY = 1100 }; /* more than are kept */

static const sr_config config = {.max_connections = 100, .body_ns = 100 * SR_MILLISECOND, .tmpdir = "/tmp"};

static sr_conn *conn(void)
{
    sr_peer nobody = {.family = 4, .port = 7};
    return sr_conn_new(-1, &nobody, 0);
}

static void one(sr_engine *e)
{
    sr_conn *c = conn();
    ok(!c->exchange && !sr_conn_slot(c), "a new connection has none");
    sr_exchange *x = sr_exchange_begin(e, c);
    ok(x && c->exchange == x && x->conn == c && x->client.port == 7, "it begins with the peer as client");
    ok(sr_exchange_begin(e, c) == x && sr_exchange_begin_refused(e, c) == x, "and is the only one");
    x->status = 200;
    x->owed = x->broken = true;
    x->slot = 5;
    is_int(sr_conn_slot(c), 5, "the slot of the request");
    x->parse = malloc(sizeof *x->parse);
    x->body = sr_decode_new(&(sr_request){.framing = SR_BODY_LENGTH, .content_length = 1});
    sr_exchange_drop_request(x);
    ok(!x->parse && !x->body && x->status == 200, "the request goes before the response");
    sr_deadline_set_exchange(e, x, SR_DEADLINE_BODY);
    ok(!sr_deadline_none(c), "it has a time limit");
    sr_exchange_end(e, c->exchange);
    sr_exchange_end(e, c->exchange);
    ok(!c->exchange && sr_deadline_none(c), "which ends with it");
    e->now = e->deadlines.due_at; /* its time has come */
    is_int(sr_deadlines_timeout(e), -1, "and is in no list");
    c->persists = true;
    sr_exchange *next = sr_exchange_begin(e, c);
    ok(next == x, "the next takes its memory");
    ok(!next->status && !next->owed && !next->broken && !next->slot && next->version == SR_HTTP_1_1,
       "and nothing else");
    sr_exchange_end(e, c->exchange);
    sr_conn_free(c);
}

static void many(sr_engine *e)
{
    sr_conn *c[MANY];
    for (int i = 0; i < MANY; i++)
        if (!sr_exchange_begin(e, c[i] = conn()))
            ok(false, "no memory");
    for (int i = 0; i < MANY; i++)
        sr_exchange_end(e, c[i]->exchange);
    is_int(e->exchanges.n_free, 1024, "the memory of so many is kept");
    for (int i = 0; i < MANY; i++)
        sr_conn_free(c[i]);
}

/* As after a failure of malloc: nothing is free but the reserve, which is for refusals */
static void reserve(sr_engine *e)
{
    sr_conn *c = conn();
    sr_exchange *kept = e->exchanges.reserve;
    ok(kept, "one is in reserve");
    sr_exchange *x = sr_exchange_begin(e, c);
    ok(x != kept, "which no ordinary request takes");
    e->exchanges.reserve = NULL; /* as if a refusal had it */
    sr_exchange_end(e, c->exchange);
    ok(e->exchanges.reserve == x, "the first that ends is the next reserve");
    free(kept);
    sr_conn_free(c);
}

int main(void)
{
    sr_engine *e;
    is_int(sr_engine_new(&e, &config, -1), 0, "an engine");
    one(e);
    reserve(e);
    many(e);
    sr_engine_free(e);
    return done_testing();
}
