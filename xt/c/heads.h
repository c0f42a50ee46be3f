#ifndef HEADS_H
#define HEADS_H
/* heads: tables of request heads and what is to become of each, whole and in every split. */
#include "feed.h"

enum { DONE = 0, MORE = -1 }; /* or the status of the refusal */

typedef struct head {
    const char *name;
    int want;
    const char *at;
    size_t len;
} head;
#define HEAD(name, want, bytes)                                                                              \
    {                                                                                                        \
        name, want, bytes, sizeof(bytes) - 1                                                                 \
    }
#define H "Host: a\r\n"
#define GET(name, want, fields) HEAD(name, want, "GET / HTTP/1.1\r\n" H fields "\r\n")
#define LINE(name, want, line) HEAD(name, want, line "\r\n" H "\r\n")
#define TARGET(name, want, target) HEAD(name, want, "GET " target " HTTP/1.1\r\n" H "\r\n")
#define HOST(name, want, host) HEAD(name, want, "GET / HTTP/1.1\r\nHost: " host "\r\n\r\n")

typedef struct group {
    const char *name;
    const head *heads;
    size_t count;
} group;
#define GROUP(heads)                                                                                         \
    {                                                                                                        \
#heads, heads, sizeof heads / sizeof *heads                                                          \
    }

static inline void check(const char *group, const head *h)
{
    static sr_request r;
    sr_parse p;
    bool agree = splits_agree(&r, &p, &feed_limits, h->at, h->len);
    int got = p == SR_PARSE_BAD ? r.status : p == SR_PARSE_DONE ? DONE : MORE;
    bool whole = p != SR_PARSE_DONE || r.head_len == h->len;
    if (!ok(got == h->want && agree && whole, "%s: %s: %d", group, h->name, h->want))
        printf("# got %d (%s), splits %s\n", got, r.why ? r.why : "", agree ? "agree" : "differ");
}

static inline void check_groups(const group *groups, size_t count)
{
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            check(groups[g].name, &groups[g].heads[i]);
}

#endif
