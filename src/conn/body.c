#include "body.h"

#include "../net/tempfile.h"
#include "spools.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    HELD_MAX = 16 * 1024,
    CHEAP = 64, /* bytes on the wire for each piece: with fewer, the work is in the pieces */
    FEW = 16,
};

sr_body *sr_body_new(const sr_request *r)
{
    sr_body *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->fd = -1;
    b->chunked = r->framing == SR_BODY_CHUNKED;
    b->left = r->content_length;
    sr_chunked_init(&b->decoder);
    return b;
}

void sr_body_free(sr_body *b)
{
    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    sr_spools_gave(b->written);
    sr_buffer_free(&b->mem);
    free(b);
}

static sr_body_result bad(sr_body *b, int status, const char *why)
{
    b->status = status;
    b->why = why;
    return SR_BODY_BAD;
}

static sr_body_result disk_failed(sr_body *b)
{
    b->err = errno;
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    bool few = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return bad(b, full ? 507 : few ? 503 : 500, "the request body cannot be written to a temporary file");
}

static void wrote(sr_body *b, size_t len)
{
    b->written += len;
    sr_spools_took(len);
}

/* Writes the bytes that were held back. */
static sr_body_result settle(sr_body *b)
{
    size_t len = sr_buffer_len(&b->mem);
    if (len && sr_tempfile_write(b->fd, sr_buffer_at(&b->mem), len) < 0)
        return disk_failed(b);
    wrote(b, len);
    sr_buffer_reset(&b->mem);
    return SR_BODY_MORE;
}

/*
 * To the file. A chunk, a TLS record or a segment may bring a single byte, and a system call for each would be
 * paid by all clients: small pieces are held back until they fill a block.
 */
static sr_body_result spool(sr_body *b, sr_bytes data)
{
    if (sr_buffer_len(&b->mem) + data.len > HELD_MAX && settle(b) == SR_BODY_BAD)
        return SR_BODY_BAD;
    if (data.len < HELD_MAX && sr_buffer_add_bytes(&b->mem, data))
        return SR_BODY_MORE;
    if (settle(b) == SR_BODY_BAD)
        return SR_BODY_BAD;
    if (sr_tempfile_write(b->fd, data.at, data.len) < 0)
        return disk_failed(b);
    wrote(b, data.len);
    return SR_BODY_MORE;
}

static sr_body_result store(sr_body *b, const sr_config *config, sr_bytes data)
{
    if (b->length + data.len > config->max_body)
        return bad(b, 413, SR_BODY_TOO_LARGE);
    b->length += data.len;
    b->pieces++;
    if (!b->spooled && b->length <= config->body_memory)
        return sr_buffer_add_bytes(&b->mem, data) ? SR_BODY_MORE
                                                  : bad(b, 503, "there is no memory for the request body");
    if (!b->spooled) {
        b->fd = sr_tempfile_open(config->tmpdir);
        if (b->fd < 0)
            return disk_failed(b);
        if (settle(b) == SR_BODY_BAD)
            return SR_BODY_BAD;
        sr_buffer_free(&b->mem);
        b->spooled = true;
    }
    return spool(b, data);
}

static sr_body_result feed_length(sr_body *b, const sr_config *config, sr_bytes in, size_t *used)
{
    if (in.len > b->left)
        in.len = (size_t)b->left;
    *used = in.len;
    b->left -= in.len;
    if (store(b, config, in) == SR_BODY_BAD)
        return SR_BODY_BAD;
    return b->left ? SR_BODY_MORE : SR_BODY_DONE;
}

static sr_body_result feed_chunked(sr_body *b, const sr_config *config, sr_bytes in, size_t *used)
{
    *used = 0;
    for (;;) {
        size_t n = 0;
        sr_bytes data = {0};
        sr_chunked_result r =
            sr_chunked_feed(&b->decoder, sr_bytes_of(in.at + *used, in.len - *used), &n, &data);
        *used += n;
        switch (r) {
        case SR_CHUNKED_DATA:
            if (store(b, config, data) == SR_BODY_BAD)
                return SR_BODY_BAD;
            break;
        case SR_CHUNKED_MORE:
            if (sr_chunked_announced(&b->decoder) > config->max_body - b->length)
                return bad(b, 413, "the size of a chunk is above max-body");
            return SR_BODY_MORE;
        case SR_CHUNKED_DONE:
            return SR_BODY_DONE;
        case SR_CHUNKED_BAD:
            return bad(b, b->decoder.status, b->decoder.why);
        }
    }
}

bool sr_body_spools(const sr_body *b, const sr_config *config, size_t more)
{
    return b->spooled || b->length + more > config->body_memory;
}

int sr_body_take(sr_body *b)
{
    int fd = b->fd;
    b->fd = -1;
    b->written = 0;
    return fd;
}

sr_body_result sr_body_feed(sr_body *b, const sr_config *config, sr_bytes in, size_t *used)
{
    uint64_t before = b->pieces;
    sr_body_result r = b->chunked ? feed_chunked(b, config, in, used) : feed_length(b, config, in, used);
    b->received += *used;
    b->dear = b->pieces - before > FEW && (b->pieces - before) * CHEAP > *used;
    if (r == SR_BODY_DONE && b->spooled) {
        if (settle(b) == SR_BODY_BAD)
            return SR_BODY_BAD;
        sr_buffer_free(&b->mem);
    }
    return r;
}
