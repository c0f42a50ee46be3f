#include "decode.h"

#include "../http1/chunked.h"

#include <stdlib.h>

enum {
    CHEAP = 64, /* bytes on the wire for each piece: with fewer, the work is in the pieces */
    FEW = 16,
};

typedef struct decoded {
    sr_body body; /* must be first */
    bool chunked;
    sr_chunked decoder; /* if chunked */
    uint64_t left;      /* if not chunked: bytes still to come */
} decoded;

sr_body *sr_decode_new(const sr_request *r)
{
    decoded *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->body.fd = -1;
    d->chunked = r->framing == SR_BODY_CHUNKED;
    d->left = r->content_length;
    sr_chunked_init(&d->decoder);
    return &d->body;
}

static sr_body_result feed_length(decoded *d, const sr_config *config, sr_bytes in, size_t *used)
{
    if (in.len > d->left)
        in.len = (size_t)d->left;
    *used = in.len;
    d->left -= in.len;
    if (sr_body_store(&d->body, config, in) == SR_BODY_BAD)
        return SR_BODY_BAD;
    return d->left ? SR_BODY_MORE : SR_BODY_DONE;
}

static sr_body_result feed_chunked(decoded *d, const sr_config *config, sr_bytes in, size_t *used)
{
    *used = 0;
    for (;;) {
        size_t n = 0;
        sr_bytes data = {0};
        sr_chunked_result r =
            sr_chunked_feed(&d->decoder, sr_bytes_of(in.at + *used, in.len - *used), &n, &data);
        *used += n;
        switch (r) {
        case SR_CHUNKED_DATA:
            if (sr_body_store(&d->body, config, data) == SR_BODY_BAD)
                return SR_BODY_BAD;
            break;
        case SR_CHUNKED_MORE:
            if (sr_chunked_announced(&d->decoder) > config->max_body - d->body.length)
                return sr_body_refuse(&d->body, 413, "the size of a chunk is above max-body");
            return SR_BODY_MORE;
        case SR_CHUNKED_DONE:
            return SR_BODY_DONE;
        case SR_CHUNKED_BAD:
            return sr_body_refuse(&d->body, d->decoder.status, d->decoder.why);
        }
    }
}

sr_body_result sr_decode(sr_body *b, const sr_config *config, sr_bytes in, size_t *used)
{
    decoded *d = (decoded *)b;
    uint64_t before = b->pieces;
    sr_body_result r = d->chunked ? feed_chunked(d, config, in, used) : feed_length(d, config, in, used);
    b->received += *used;
    b->dear = b->pieces - before > FEW && (b->pieces - before) * CHEAP > *used;
    return r == SR_BODY_DONE ? sr_body_done(b) : r;
}
