/*
 * chunked: the decoder against a second one that knows the whole message and is written straight from RFC
 * 9112 7.1.
 * Judges: src/http1/chunked.c
 */
#include "http1/chunked.h"

#include "fuzz.h"
#include "http/token.h"

typedef struct reading { /* by the second decoder */
    const char *at, *end;
    uint64_t sum;
} reading;

static bool skip(reading *r, const char *literal)
{
    size_t len = strlen(literal);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, literal, len) != 0)
        return false;
    r->at += len;
    return true;
}

static size_t run_of(reading *r, unsigned classes)
{
    const char *from = r->at;
    while (r->at < r->end && sr_char_is((unsigned char)*r->at, classes))
        r->at++;
    return (size_t)(r->at - from);
}

static void spaces(reading *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

/* BWS literal BWS, or nothing of it. */
static bool skip_spaced(reading *r, const char *literal)
{
    const char *from = r->at;
    spaces(r);
    if (!skip(r, literal)) {
        r->at = from;
        return false;
    }
    spaces(r);
    return true;
}

static bool quoted(reading *r)
{
    if (!skip(r, "\""))
        return false;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\')
            r->at++;
        if (r->at == r->end || !sr_char_is((unsigned char)*r->at, SR_CHAR_VALUE))
            return false;
        r->at++;
    }
    return skip(r, "\"");
}

static bool size_line(reading *r, uint64_t *left)
{
    const char *digits = r->at;
    size_t n = run_of(r, SR_CHAR_HEX);
    *left = 0;
    for (size_t i = 0; i < n; i++)
        *left = *left << 4 | (unsigned)sr_hex_value((unsigned char)digits[i]);
    if (n < 1 || n > 16 || *left > INT64_MAX)
        return false;
    while (skip_spaced(r, ";")) {
        if (!run_of(r, SR_CHAR_TOKEN))
            return false;
        if (skip_spaced(r, "=") && !quoted(r) && !run_of(r, SR_CHAR_TOKEN))
            return false;
    }
    return skip(r, "\r\n");
}

static bool trailers(reading *r)
{
    while (!skip(r, "\r\n")) {
        if (!run_of(r, SR_CHAR_TOKEN) || !skip(r, ":"))
            return false;
        run_of(r, SR_CHAR_VALUE);
        if (!skip(r, "\r\n"))
            return false;
    }
    return true;
}

static bool message(reading *r)
{
    for (uint64_t left;;) {
        if (!size_line(r, &left))
            return false;
        if (left == 0)
            return trailers(r);
        if (left > (uint64_t)(r->end - r->at))
            return false;
        r->sum = fuzz_hash(r->sum, r->at, (size_t)left);
        r->at += left;
        if (!skip(r, "\r\n"))
            return false;
    }
}

FUZZ_TARGET(chunked)
{
    const char *at = (const char *)data;
    sr_chunked c;
    sr_chunked_result result;
    size_t from = 0, used;
    reading second = {at, at + size, 0};
    uint64_t sum = 0;
    sr_chunked_init(&c);
    do {
        sr_bytes body;
        result = sr_chunked_feed(&c, sr_bytes_of(at + from, size - from), &used, &body);
        MUST(used <= size - from && body.len <= used);
        MUST(result == SR_CHUNKED_DATA ? body.len && body.at + body.len == at + from + used : body.len == 0);
        sum = fuzz_hash(sum, body.at, body.len);
        from += used;
    } while (result == SR_CHUNKED_DATA);
    bool whole = message(&second);
    if (result == SR_CHUNKED_DONE)
        MUST(whole && second.at == at + from && second.sum == sum);
    if (result == SR_CHUNKED_MORE)
        MUST(from == size && !whole && sr_chunked_announced(&c) <= INT64_MAX);
    if (result ==
        SR_CHUNKED_BAD) { /* what is refused for its grammar is no message to the second one either */
        MUST(c.why && (c.status == 400 || c.status == 431));
        MUST(!whole || c.status == 431 || strstr(c.why, "too") || strstr(c.why, "not allowed in a trailer"));
    }
    return 0;
}
