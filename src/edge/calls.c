#include "calls.h"

#include "holder.h"
#include "text.h"

/* xorshift64 */
static uint64_t random_next(sr_calls *c)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return c->random;
}

void sr_calls_open(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    sr_calls *c = &ed->calls;
    c->random = e->nonce | 1;
    c->exact = SR_CALLS_EXACT;
    c->later = c->at = (int64_t)(random_next(c) % SR_CALLS_EACH_NS);
    if (e->scoreboard)
        sr_paths_open(&c->index, e->scoreboard->paths, e->scoreboard->edges, ed->number, e->nonce);
    else
        c->left = INT64_MAX;
}

/* How many instants of the sample lie in the call that has just ended. */
static uint64_t instants(sr_calls *c)
{
    uint64_t n = 0;
    for (; c->left <= 0; n++) {
        int64_t at = (int64_t)(random_next(c) % SR_CALLS_EACH_NS);
        c->left += SR_CALLS_EACH_NS - c->at + at;
        c->at = at;
    }
    return n;
}

/* For how many calls one counts that took so long. */
static uint64_t units(sr_calls *c, int64_t ns, int64_t now)
{
    bool exact = c->exact;
    uint64_t n = exact ? 0 : instants(c);
    if (!exact)
        c->later = c->left;
    else
        c->exact--;
    if (now - c->second >= SR_SECOND) {
        c->second = now;
        c->exact = SR_CALLS_EXACT;
    }
    c->left = c->exact ? 0 : c->later;
    return exact ? SR_PATHS_UNIT : n * SR_CALLS_EACH_NS * SR_PATHS_UNIT / (uint64_t)(ns + SR_CALLS_LEAST_NS);
}

/* When it was called, limited to what is possible; 0: it was not, as far as is known. */
static int64_t began(const sr_edge *ed, uint32_t slot, int64_t ready_at)
{
    const sr_entry *en = &ed->entries[slot];
    int64_t at = en->exchange ? en->exchange->given_at : 0, now = ed->engine->now;
    if (!at) {
        int32_t row = sr_holder(ed, slot);
        const sr_ring *ring = row < 0 ? NULL : ed->workers[row].reader.ring;
        if (!ring || atomic_load(&ring->began) != en->number)
            return 0;
        at = atomic_load_explicit(&ring->began_at, memory_order_relaxed);
    }
    return at < ready_at ? ready_at : at > now ? now : at;
}

/* As the client has sent it; of a request that is in a file, the first bytes. */
static sr_bytes path_of(const sr_edge *ed, uint32_t slot)
{
    const char *base;
    const sr_request *r = sr_text_request(ed, slot, &base);
    if (r)
        return sr_span_in(base, r->path);
    const sr_buffer *line = &ed->entries[slot].line;
    sr_bytes all = sr_buffer_bytes(line);
    const char *space = all.len ? memchr(all.at, ' ', all.len) : NULL;
    if (!space)
        return SR_BYTES("...");
    sr_bytes path = {space + 1, (size_t)(all.at + all.len - (space + 1))};
    const char *query = path.len ? memchr(path.at, '?', path.len) : NULL;
    return query ? sr_bytes_of(path.at, (size_t)(query - path.at)) : path;
}

void sr_calls_count(sr_edge *ed, uint32_t slot, bool failed)
{
    sr_calls *c = &ed->calls;
    const sr_exchange *x = ed->entries[slot].exchange;
    if (!c->index.shared)
        return;
    int64_t ready_at = atomic_load_explicit(&sr_queue_at(&ed->queue, slot)->ready_at, memory_order_relaxed);
    int64_t at = began(ed, slot, ready_at), ns = ed->engine->now - at;
    bool sampled = !failed && x && x->given_at && x->status < 500 && ns < SR_CALLS_EACH_NS;
    if (!at)
        return;
    sr_path_call call = {.ns = (uint64_t)ns,
                         .waited_ns = (uint64_t)(at - ready_at),
                         .units = SR_PATHS_UNIT,
                         .failed = failed || (x && x->status >= 500)};
    if (sampled)
        call.units = units(c, ns, ed->engine->now);
    sr_paths_add(&c->index, path_of(ed, slot), &call, ed->engine->now);
}
