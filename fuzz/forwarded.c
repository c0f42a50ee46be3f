/*
 * forwarded: what proxies say of the client, in heads that the parser has accepted. The answer lies in the
 * request, is well-formed, and nobody who is not trusted has a say in it: what stands left of the client
 * changes nothing.
 * Judges: src/http/forwarded.c
 */
#include "http/forwarded.h"
#include "http1/head.h"

#include "fuzz.h"
#include "http/target.h"

/* Addresses that begin with 1 are proxies. */
static sr_hop hop_of(void *with, sr_bytes address)
{
    ++*(int *)with;
    MUST(address.len == 0 || address.at);
    for (size_t i = 0; i < address.len; i++)
        if (!memchr("0123456789abcdefABCDEF:.", address.at[i], 24))
            return SR_HOP_NONE;
    return address.len == 0 ? SR_HOP_NONE : *address.at == '1' ? SR_HOP_PROXY : SR_HOP_CLIENT;
}

static bool lies_in(sr_bytes s, const char *at, size_t size)
{
    return !s.at || (s.at >= at && s.at + s.len <= at + size);
}

static void said(const sr_request *r, const char *at, size_t size, sr_forwarded_kind kind)
{
    sr_forwarded f;
    sr_authority ignored;
    int asked = 0;
    sr_forwarded_read(&f, r, at, kind, hop_of, &asked);
    MUST(lies_in(f.client, at, size) && lies_in(f.host, at, size));
    MUST(!f.client.at || hop_of(&asked, f.client) != SR_HOP_NONE);
    MUST(!f.scheme || sr_scheme_name(f.scheme));
    MUST(!f.host.at || sr_authority_parse(f.host, &ignored));
    MUST(f.client.at || f.port == 0);
}

FUZZ_TARGET(forwarded)
{
    static const sr_request_limits limits = {8192, 65536, 100, false};
    static const char begin[] = "GET / HTTP/1.1\r\nHost: a\r\n";
    static sr_request r;
    size_t head = sizeof begin - 1;
    char *at = malloc(head + size + 4);
    memcpy(at, begin, head);
    if (size)
        memcpy(at + head, data, size);
    memcpy(at + head + size, "\r\n\r\n", 4);
    sr_request_init(&r);
    if (sr_request_feed(&r, &limits, at, head + size + 4) == SR_PARSE_DONE) {
        said(&r, at, r.head_len, SR_FORWARDED_X);
        said(&r, at, r.head_len, SR_FORWARDED_RFC7239);
    }
    free(at);
    return 0;
}
