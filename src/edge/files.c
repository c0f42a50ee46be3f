#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "files.h"

#include "../conn/capacity.h"
#include "../conn/hsts.h"
#include "../conn/send.h"
#include "../http/status.h"
#include "../http1/write.h"
#include "../net/tempfile.h"
#include "../static/fields.h"
#include "answer.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    COPY_MAX =
        32 * 1024, /* bytes of a file that are read and sent with the head: one call less than sendfile */
    TEXT_MAX = 64, /* "405 Method Not Allowed\n" */
};

/* What is to be sent behind the head. */
typedef struct content {
    char text[TEXT_MAX]; /* of an answer that is no file */
    uint64_t length;     /* of all of it */
    char boundary[SR_BOUNDARY_MAX + 1];
    sr_parts *parts; /* several ranges: owned until they are sent */
} content;

/* Random for each response: who has seen one must not be able to make a file that has the next. */
static bool boundary_make(content *is)
{
    unsigned long long random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    snprintf(is->boundary, sizeof is->boundary, "sirius-%016llx%016llx", random[0], random[1]);
    return true;
}

static sr_bytes boundary_of(const content *is)
{
    return sr_bytes_of(is->boundary, strlen(is->boundary));
}

static bool parts_make(const sr_found *f, content *is)
{
    size_t n = f->ranges.n;
    sr_parts *p = is->parts = sr_parts_new((unsigned)n + 1);
    if (!p || !boundary_make(is))
        return false;
    for (size_t i = 0; i <= n; i++) { /* the last one is the end of the message, and no part of the file */
        size_t before = sr_buffer_len(&p->text);
        if (!sr_fields_part(f, i, boundary_of(is), &p->text))
            return false;
        p->at[i].text = sr_buffer_len(&p->text) - before;
        p->at[i].offset = i < n ? (off_t)f->ranges.at[i].first : 0;
        p->at[i].length = i < n ? f->ranges.at[i].length : 0;
        is->length += p->at[i].text + p->at[i].length;
    }
    return true;
}

static bool content_make(const sr_found *f, content *is)
{
    *is = (content){0};
    if (f->status == 200)
        is->length = f->size;
    else if (f->status == 206 && f->ranges.n == 1)
        is->length = f->ranges.at[0].length;
    else if (f->status == 206)
        return parts_make(f, is);
    else if (f->status != 304)
        is->length = (uint64_t)snprintf(is->text, sizeof is->text, "%d %s\n", f->status,
                                        sr_status_reason(f->status).at);
    return true;
}

/* Makes the head in ed->head. */
static bool head_make(sr_edge *ed, const sr_found *f, const sr_task *task, const content *is, sr_response *r)
{
    sr_engine *e = ed->engine;
    const sr_exchange *x = task->exchange;
    sr_buffer_reset(&ed->head);
    if (sr_response_begin(r, f->status, x->is_head, sr_engine_keeps(e, x)) ||
        !sr_write_status(&ed->head, f->status) ||
        sr_fields_add(f, task->request, task->base, e->wall, boundary_of(is), r, &ed->head))
        return false;
    if (x->is_head && !is->length && f->status == 200 && /* otherwise 0 counts as unknown with HEAD */
        sr_response_field(r, &ed->head, SR_BYTES("Content-Length"), SR_BYTES("0")))
        return false;
    return !sr_hsts_add(e, x->conn, r, &ed->head) &&
           !sr_write_end(r, (sr_version)x->version, &ed->head, is->length, e->date, e->config.server);
}

/* Appends a file, or a part of it, to the head. False: it is too large for that, or cannot be read now. */
static bool appended(sr_edge *ed, int fd, off_t from, uint64_t length)
{
    if (length > COPY_MAX || !sr_buffer_reserve(&ed->head, (size_t)length))
        return false;
    if (sr_tempfile_read(fd, ed->head.data + ed->head.end, (size_t)length, from) != (ssize_t)length)
        return false;
    ed->head.end += (size_t)length;
    return true;
}

static off_t first_byte(const sr_found *f)
{
    return f->ranges.n ? (off_t)f->ranges.at[0].first : 0;
}

/* Appends all that belongs behind the head. False: a file has to be sent by itself. */
static bool body_append(sr_edge *ed, const sr_found *f, const content *is)
{
    if (f->is_head)
        return true;
    if (f->fd < 0)
        return sr_buffer_add(&ed->head, is->text, strlen(is->text));
    return !is->parts && appended(ed, f->fd, first_byte(f), is->length);
}

/* Sends what is in ed->head, and the file if that is not in it. */
static void send_all(sr_edge *ed, sr_conn *c, sr_found *f, content *is, bool all)
{
    struct iovec iov = {sr_buffer_at(&ed->head), sr_buffer_len(&ed->head)};
    if (all) {
        sr_send_last(ed->engine, c, &iov, 1);
        if (f->fd >= 0)
            close(f->fd);
        return;
    }
    sr_send_head_and_file(ed->engine, c, sr_bytes_of(iov.iov_base, iov.iov_len), f->fd, first_byte(f),
                          is->parts ? 0 : is->length, is->parts);
}

/* Looks for it; if no descriptor is free, once more when an idle connection was closed for it. */
static bool find(sr_edge *ed, sr_mounts *mounts, const sr_task *task, sr_found *f)
{
    sr_engine *e = ed->engine;
    bool ours = sr_find(mounts, task->request, task->base, e->wall, f);
    if (ours && f->status == 503 && f->error == EMFILE && sr_capacity_close_oldest(e))
        ours = sr_find(mounts, task->request, task->base, e->wall, f);
    return ours;
}

static void refuse(sr_edge *ed, sr_task *task, const sr_found *f, int err)
{
    if (f->fd >= 0)
        close(f->fd);
    sr_answer_refuse(ed, task, err);
}

bool sr_files_answer(sr_edge *ed, sr_mounts *mounts, sr_task *task)
{
    sr_exchange *x = task->exchange;
    sr_response r;
    sr_found f;
    content is;
    if (!find(ed, mounts, task, &f))
        return false;
    if (f.status == 503) {
        refuse(ed, task, &f, f.error);
        return true;
    }
    if (!content_make(&f, &is) || !head_make(ed, &f, task, &is, &r)) {
        sr_parts_free(is.parts);
        refuse(ed, task, &f, ENOMEM);
        return true;
    }
    size_t len = sr_buffer_len(&ed->head);
    bool all = body_append(ed, &f, &is);
    if (!all && f.fd < 0) {
        refuse(ed, task, &f, ENOMEM);
        return true;
    }
    sr_answer_begin(ed, task, &r, len);
    sr_counters_add(&ed->engine->row->counters.files, 1);
    send_all(ed, x->conn, &f, &is, all);
    sr_answer_end(ed, x);
    return true;
}
