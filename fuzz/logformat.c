/*
 * logformat: any format over any values. The line is one line, the same in one go and in two, and without
 * control bytes but those that the format has itself.
 * Judges: src/log/format.c src/log/parse.c src/log/text.c src/log/time.c
 *
 * Input: the format, a zero byte, then the bytes that every value is made of.
 */
#include "http/response.h"
#include "log/format.h"

#include "fuzz.h"

#define SECOND 1000000000LL

typedef struct values {
    sr_bytes all;
    unsigned asked;
} values;

/* None, some or all of the bytes. */
static sr_bytes get(void *ctx, const sr_logitem *item)
{
    values *v = ctx;
    MUST(item->kind <= SR_LOG_CUSTOM);
    unsigned n = v->asked++ % 4;
    return n == 0 ? (sr_bytes){NULL, 0} : sr_bytes_of(v->all.at, v->all.len / n);
}

static void lines(sr_logformat *f, values *v, bool plain, sr_logoutcome outcome, int64_t wall)
{
    static sr_buffer one, pieces, two;
    sr_logsource source = {.ctx = v, .get = get, .wall = wall, .pid = 4711};
    sr_buffer_reset(&one);
    sr_buffer_reset(&pieces);
    sr_buffer_reset(&two);
    v->asked = 0;
    MUST(sr_logformat_line(f, &source, &outcome, &one));
    v->asked = 0;
    MUST(sr_logformat_early(f, &source, &pieces));
    MUST(sr_logformat_late(f, sr_bytes_of(sr_buffer_at(&pieces), sr_buffer_len(&pieces)), &outcome, &two));
    size_t len = sr_buffer_len(&one);
    MUST(len > 0 && len == sr_buffer_len(&two) && memcmp(sr_buffer_at(&one), sr_buffer_at(&two), len) == 0);
    MUST(sr_buffer_at(&one)[len - 1] == '\n');
    for (size_t i = 0; plain && i + 1 < len; i++)
        MUST((unsigned char)sr_buffer_at(&one)[i] >= ' ' && sr_buffer_at(&one)[i] != 0x7f);
}

FUZZ_TARGET(logformat)
{
    static const sr_logletters own = {.chars = "z", .blocks = "z"};
    const char *at = (const char *)data;
    const char *zero = size ? memchr(at, '\0', size) : NULL;
    size_t len = zero ? (size_t)(zero - at) : size;
    values v = {zero ? sr_bytes_of(zero + 1, size - len - 1) : sr_bytes_of("", 0), 0};
    sr_logformat_error err = {.offset = SIZE_MAX};
    sr_logformat *f = sr_logformat_new(at, len, &own, &err);
    if (!f) {
        MUST(err.offset <= len && memchr(err.message, '\0', sizeof err.message) && *err.message);
        return 0;
    }
    bool plain = !memchr(at, '\\', len) && !memmem(at, len, "}t", 2) && /* strftime has a %t of its own */
                 !(len == 4 && memcmp(at, "ltsv", 4) == 0);
    for (size_t i = 0; i < len; i++)
        plain = plain && (unsigned char)at[i] >= ' ' && at[i] != 0x7f;
    size_t count;
    sr_logitem *items = sr_logformat_items(f, &count);
    for (size_t i = 0; i < count; i++)
        MUST(sr_logformat_has(f, items[i].kind));
    lines(f, &v, plain,
          (sr_logoutcome){.status = 200,
                          .body_bytes = 5,
                          .bytes = 300,
                          .total_ns = SECOND,
                          .queue_ns = 0,
                          .app_ns = -1,
                          .kept = true,
                          .nth = 1,
                          .stream = 3,
                          .held_ns = -1},
          1700000000 * SECOND);
    lines(f, &v, plain,
          (sr_logoutcome){.body_bytes = SR_LOG_BYTES_UNKNOWN,
                          .bytes = SR_LOG_BYTES_UNKNOWN,
                          .total_ns = -1,
                          .queue_ns = INT64_MAX,
                          .app_ns = 1,
                          .aborted = true,
                          .broken = true,
                          .nth = SR_LOG_NTH_UNKNOWN,
                          .held_ns = INT64_MAX,
                          .messages = 9},
          -1);
    sr_response_value(v.all, SR_BYTES("Host"));
    sr_logformat_free(f);
    return 0;
}
