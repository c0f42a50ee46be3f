#include "body.h"

#include "../net/tempfile.h"
#include "spools.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    HELD_MAX = 16 * 1024,
};

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

sr_body_result sr_body_refuse(sr_body *b, int status, const char *why)
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
    return sr_body_refuse(b,
                          full  ? 507
                          : few ? 503
                                : 500,
                          "the request body cannot be written to a temporary file");
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
 * To the file. A chunk, a TLS record or a segment may bring a single byte, and a system call for each would
 * be paid by all clients: small pieces are held back until they fill a block.
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

sr_body_result sr_body_store(sr_body *b, const sr_config *config, sr_bytes data)
{
    if (b->length + data.len > config->max_body)
        return sr_body_refuse(b, 413, SR_BODY_TOO_LARGE);
    b->length += data.len;
    b->pieces++;
    if (!b->spooled && !b->crowded && b->length <= config->body_memory)
        return sr_buffer_add_bytes(&b->mem, data)
                   ? SR_BODY_MORE
                   : sr_body_refuse(b, 503, "there is no memory for the request body");
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

bool sr_body_spools(const sr_body *b, const sr_config *config, size_t more)
{
    return b->spooled || b->crowded || b->length + more > config->body_memory;
}

int sr_body_take(sr_body *b)
{
    int fd = b->fd;
    b->fd = -1;
    b->written = 0;
    return fd;
}

sr_body_result sr_body_done(sr_body *b)
{
    if (!b->spooled)
        return SR_BODY_DONE;
    if (settle(b) == SR_BODY_BAD)
        return SR_BODY_BAD;
    sr_buffer_free(&b->mem);
    return SR_BODY_DONE;
}
