#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "files.h"

#include "../base/random.h"
#include "../conn/capacity.h"
#include "../http/page.h"
#include "../net/tempfile.h"
#include "../static/fields.h"
#include "answer.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum {
    COPY_MAX = 32 * 1024
}; /* bytes of a file that are read and sent with the head: one call less than sendfile */

/* What is to be sent behind the head. */
typedef struct content {
    sr_page page;    /* of an answer that is no file */
    uint64_t length; /* of all of it */
    char boundary[SR_BOUNDARY_MAX + 1];
    sr_parts *parts; /* several ranges: owned until they are sent */
} content;

/* Random for each response: who has seen one must not be able to make a file that has the next. */
static bool boundary_make(content *is)
{
    unsigned long long random[2];
    if (!sr_random(random, sizeof random))
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
    sr_page_make(&is->page, f->status);
    if (f->status == 200)
        is->length = f->size;
    else if (f->status == 206 && f->ranges.n == 1)
        is->length = f->ranges.at[0].length;
    else if (f->status == 206)
        return parts_make(f, is);
    else if (f->status != 304)
        is->length = is->page.head.length;
    return true;
}

/* Makes the head. False: there is no memory, and the task is as it was. */
static bool begin(sr_edge *ed, const sr_found *f, sr_task *task, const content *is)
{
    sr_buffer_reset(&ed->text);
    if (!sr_fields_add(f, task->request, task->base, ed->engine->wall, boundary_of(is), &ed->text))
        return false;
    bool empty = f->is_head && !is->length && f->status == 200; /* otherwise 0 counts as unknown with HEAD */
    sr_head head = {.status = f->status,
                    .fields = sr_bytes_of(sr_buffer_at(&ed->text), sr_buffer_len(&ed->text)),
                    .length = is->length,
                    .app_length = empty ? 0 : SR_LENGTH_UNKNOWN};
    return sr_answer_begin(ed, task, &head);
}

/* Reads a file, or a part of it, to ed->text. False: it is too large for that, or cannot be read now. */
static bool copied(sr_edge *ed, int fd, off_t from, uint64_t length)
{
    sr_buffer *to = &ed->text;
    sr_buffer_reset(to);
    if (length > COPY_MAX || !sr_buffer_reserve(to, (size_t)length))
        return false;
    if (sr_tempfile_read(fd, to->data, (size_t)length, from) != (ssize_t)length)
        return false;
    to->end = (size_t)length;
    return true;
}

static off_t first_byte(const sr_found *f)
{
    return f->ranges.n ? (off_t)f->ranges.at[0].first : 0;
}

static void send_body(sr_edge *ed, sr_exchange *x, sr_found *f, content *is)
{
    const sr_protocol *protocol = x->protocol;
    if (!f->is_head && f->fd >= 0 && (is->parts || !copied(ed, f->fd, first_byte(f), is->length))) {
        const sr_content file = {f->fd, first_byte(f), is->parts ? 0 : is->length, is->parts};
        protocol->file(ed->engine, x, &file);
        return;
    }
    sr_bytes body =
        f->fd < 0 ? sr_page_text(&is->page) : sr_bytes_of(sr_buffer_at(&ed->text), sr_buffer_len(&ed->text));
    protocol->piece(ed->engine, x, body, true);
    if (f->fd >= 0)
        close(f->fd);
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

static void count(sr_counters *counters, int status)
{
    sr_counters_add(&counters->files, 1);
    if (status == 304)
        sr_counters_add(&counters->files_unchanged, 1);
    else if (status == 404)
        sr_counters_add(&counters->files_missing, 1);
}

bool sr_files_answer(sr_edge *ed, sr_mounts *mounts, sr_task *task)
{
    sr_exchange *x = task->exchange;
    sr_found f;
    content is;
    if (!find(ed, mounts, task, &f))
        return false;
    if (f.status == 503) {
        refuse(ed, task, &f, f.error);
        return true;
    }
    if (!content_make(&f, &is) || !begin(ed, &f, task, &is)) {
        sr_parts_free(is.parts);
        refuse(ed, task, &f, ENOMEM);
        return true;
    }
    x->is_file = true;
    count(&ed->engine->row->counters, f.status);
    send_body(ed, x, &f, &is);
    x->protocol->end(ed->engine, x);
    return true;
}
