/*
 * split: a conversation of requests and bodies gives the same events whole, byte by byte and in random
 * pieces.
 * Judges: src/http1/head.c src/http/target.c src/http1/framing.c src/http1/chunked.c
 */
#include "http1/chunked.h"
#include "http1/head.h"

#include "fuzz.h"

typedef enum phase { HEAD, LENGTH, CHUNKED, OVER } phase;

typedef struct conversation {
    phase phase;
    sr_request request;
    sr_chunked chunked;
    uint64_t left;   /* of a body with a length */
    size_t start;    /* where the present message starts */
    size_t at;       /* up to here all was used */
    uint64_t events; /* a hash of all that happened */
    int count;
} conversation;

static void event(conversation *c, char kind, const void *at, size_t len)
{
    c->events = fuzz_hash(fuzz_hash(c->events, &kind, 1), at, len);
    c->count++;
}

static void next_message(conversation *c)
{
    c->phase = HEAD;
    c->start = c->at;
    sr_request_init(&c->request);
}

static void refused(conversation *c, int status, const char *why)
{
    event(c, 'R', &status, sizeof status);
    event(c, 'W', why, strlen(why));
    c->phase = OVER;
}

static void head(conversation *c, const char *data, size_t end)
{
    static const sr_request_limits limits = {200, 1000, 10, true};
    sr_request *r = &c->request;
    char *copy = fuzz_copy(data + c->start, end - c->start); /* the bytes may move between two calls */
    sr_parse p = sr_request_feed(r, &limits, copy, end - c->start);
    free(copy);
    c->at = end;
    if (p == SR_PARSE_BAD)
        refused(c, r->status, r->why);
    if (p != SR_PARSE_DONE)
        return;
    c->at = c->start + r->head_len;
    event(c, 'H', r, offsetof(sr_request, phase));
    event(c, 'F', r->fields, r->n_fields * sizeof *r->fields);
    c->left = r->content_length;
    c->phase = r->framing == SR_BODY_CHUNKED ? CHUNKED : LENGTH;
    sr_chunked_init(&c->chunked);
    if (c->phase == LENGTH && !c->left)
        next_message(c);
}

static void length(conversation *c, const char *data, size_t end)
{
    size_t n = c->left < end - c->at ? (size_t)c->left : end - c->at;
    c->events = fuzz_hash(c->events, data + c->at, n);
    c->at += n;
    c->left -= n;
    if (!c->left)
        next_message(c);
}

static void chunked(conversation *c, const char *data, size_t end)
{
    size_t used;
    sr_bytes body;
    sr_chunked_result result =
        sr_chunked_feed(&c->chunked, sr_bytes_of(data + c->at, end - c->at), &used, &body);
    c->events = fuzz_hash(c->events, body.at, body.len);
    c->at += used;
    if (result == SR_CHUNKED_BAD)
        refused(c, c->chunked.status, c->chunked.why);
    if (result != SR_CHUNKED_DONE)
        return;
    event(c, 'D', NULL, 0);
    next_message(c);
}

/* All bytes before `end` are there. */
static void feed(conversation *c, const char *data, size_t end)
{
    while (c->at < end && c->phase != OVER)
        switch (c->phase) {
        case HEAD:
            head(c, data, end);
            break;
        case LENGTH:
            length(c, data, end);
            break;
        default:
            chunked(c, data, end);
        }
}

static void same(const conversation *a, const conversation *b)
{
    MUST(a->phase == b->phase && a->count == b->count && a->events == b->events);
    MUST(a->phase == OVER || (a->at == b->at && a->start == b->start && a->left == b->left));
    MUST(a->phase != CHUNKED || a->chunked.left == b->chunked.left);
}

FUZZ_TARGET(split)
{
    static conversation whole, pieces;
    const char *at = (const char *)data;
    memset(&whole, 0, sizeof whole);
    feed(&whole, at, size);
    if (size <= 300) {
        memset(&pieces, 0, sizeof pieces);
        for (size_t end = 1; end <= size; end++)
            feed(&pieces, at, end);
        same(&whole, &pieces);
    }
    for (uint64_t round = 0; round < 4; round++) {
        fuzz_random random = fuzz_random_of(data, size, round);
        size_t most = 1 + fuzz_below(&random, size + 1);
        memset(&pieces, 0, sizeof pieces);
        for (size_t end = 0; end < size;) {
            end += 1 + fuzz_below(&random, most);
            end = end < size ? end : size;
            feed(&pieces, at, end);
        }
        same(&whole, &pieces);
    }
    return 0;
}
