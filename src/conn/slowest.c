#include "slowest.h"

#include "protocol.h"
#include "spools.h"
#include "trouble.h"

#define YOUNG_NS SR_SECOND
#define ENDURED 15.0 /* seconds: who needs no longer for what it holds is not slow */
#define FOREVER 1e9  /* seconds */

enum {
    FEW = 64 * 1024, /* bytes in memory: who holds no more, and no file, can free nothing of interest */
    PAYING_MAX = 8,  /* connections that are ended at a time */
};

typedef struct cost {
    double seconds; /* for as many bytes as it holds, at its pace of late; negative: it does not pay */
    uint64_t held;  /* bytes */
} cost;

static const cost nothing = {.seconds = -1};

/* Of what there is to be more: temporary files, or memory as well. */
typedef enum wanted { FILES, FILES_OR_MEMORY } wanted;

/*
 * What a connection holds, of those of its exchanges that are no longer young, and how fast it gives that
 * back.
 */
typedef struct sum {
    uint64_t held;
    double rate; /* bytes per second */
} sum;

static void add(const sr_engine *e, sum *s, const sr_pace *pace, int64_t half, uint64_t held, bool young_too)
{
    if (!young_too && e->now - pace->began_at < YOUNG_NS)
        return;
    s->held += held;
    s->rate += sr_pace_rate(pace, half, e->now);
}

static void add_output(const sr_engine *e, sum *s, const sr_output *out, bool young_too, wanted what)
{
    size_t memory = out && what == FILES_OR_MEMORY ? sr_output_memory(out) : 0;
    if (out && (out->spool || out->copy || memory > FEW))
        add(e, s, &out->pace, SR_PACE_OUTPUT,
            (out->spool ? out->written : 0) + (out->copy ? out->copy->bytes : 0) + memory, young_too);
}

static void add_body(const sr_engine *e, sum *s, const sr_body *body, bool young_too)
{
    if (body && body->spooled)
        add(e, s, &body->pace, SR_PACE_BODY, body->length, young_too);
}

static cost cost_of(const sr_engine *e, const sr_conn *c, const sr_conn *self, wanted what)
{
    sum s = {0, 0};
    add_output(e, &s, c->out, c == self, what);
    if (c->state == SR_CONN_STREAMS)
        for (const sr_exchange *x = c->exchange; x; x = x->older) {
            add_output(e, &s, x->protocol->output(x), c == self, what);
            add_body(e, &s, x->body, c == self);
        }
    else if (!s.held && c->state == SR_CONN_BODY && c->exchange)
        add_body(e, &s, c->exchange->body, c == self);
    if (!s.held)
        return nothing;
    double seconds = s.rate * FOREVER > (double)s.held ? (double)s.held / s.rate : FOREVER;
    return (cost){seconds > ENDURED ? seconds : ENDURED, s.held};
}

/* `self` wants more, so that it counts in its first second as well; NULL: nobody does. */
static sr_conn *find_slowest(const sr_engine *e, const sr_conn *self, wanted what)
{
    sr_conn *slowest = NULL;
    cost most = nothing;
    for (sr_link *l = e->all.next; l != &e->all; l = l->next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        cost its = cost_of(e, c, self, what);
        if (its.seconds > most.seconds || (its.seconds >= most.seconds && its.held > most.held)) {
            slowest = c;
            most = its;
        }
    }
    return slowest;
}

/*
 * Whether another one than `self` is to pay: sr_slowest_collect will end it, as this may be in the middle of
 * a connection.
 */
static bool other_pays(sr_engine *e, const sr_conn *self)
{
    const sr_conn *slowest = find_slowest(e, self, FILES);
    if (!slowest || slowest == self)
        return false;
    e->spools.due = true;
    return true;
}

bool sr_slowest_has_room(sr_engine *e, const sr_conn *self, sr_body *body, size_t len)
{
    sr_pace_moved(&body->pace, SR_PACE_BODY, e->now, len);
    if (!sr_body_spools(body, &e->config, len))
        return true;
    if (sr_spools_room(e, len) || (other_pays(e, self) && sr_spools_allowed_above(e, len)))
        return true;
    return sr_spools_allowed(e, len); /* if the disk is full, the write will say so */
}

/* The upload of which a connection holds most; NULL: it holds responses. */
static sr_exchange *largest_upload(const sr_engine *e, const sr_conn *c)
{
    sr_exchange *largest = c->state == SR_CONN_BODY ? c->exchange : NULL;
    if (c->state != SR_CONN_STREAMS)
        return largest;
    for (sr_exchange *x = c->exchange; x; x = x->older)
        if (x->body && x->body->spooled && e->now - x->body->pace.began_at >= YOUNG_NS &&
            (!largest || x->body->length > largest->body->length))
            largest = x;
    return largest;
}

/* False: there is nobody. */
static bool evict(sr_engine *e, wanted what)
{
    sr_conn *slowest = find_slowest(e, NULL, what);
    if (!slowest)
        return false;
    sr_trouble_count(e, SR_TROUBLE_SLOWEST, 1, 0);
    sr_exchange *upload = largest_upload(e, slowest);
    if (upload)
        sr_exchange_refuse(e, upload, 507, SR_REFUSED_TEMPORARY);
    else
        sr_conn_close(e, slowest, SR_CLOSED_SPOOL);
    return true;
}

void sr_slowest_collect(sr_engine *e)
{
    e->spools.due = false;
    sr_slowest_make_room(e, 1);
}

bool sr_slowest_make_room(sr_engine *e, uint64_t bytes)
{
    for (int i = 0; i < PAYING_MAX && !sr_spools_room(e, bytes); i++)
        if (!evict(e, FILES))
            break;
    return sr_spools_room(e, bytes);
}

bool sr_slowest_evict(sr_engine *e)
{
    return evict(e, FILES_OR_MEMORY);
}
