#include "leased.h"

#include "../net/lease.h"
#include "../net/tempfile.h"
#include "../share/door.h"
#include "engine.h"
#include "slowest.h"
#include "spools.h"
#include "trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STEP = 1024 * 1024, /* bytes copied in one step of the loop */
    PIECE = 64 * 1024,
    TIME = 40, /* s for a copy, as the kernel waits for 45 */
    NINTH = 9, /* the part of its time that is left to it */
};

void sr_leased_init(sr_leased *l)
{
    int64_t patience = sr_lease_patience();
    sr_link_init(&l->all);
    l->time = patience > 0 && patience < TIME + TIME / NINTH ? patience * SR_SECOND / NINTH * (NINTH - 1)
                                                             : TIME * SR_SECOND;
    l->from = l->to = -1;
}

static void close_both(sr_leased *l)
{
    if (l->from >= 0)
        close(l->from);
    if (l->to >= 0)
        close(l->to);
    l->from = l->to = -1;
    sr_copy_release(l->copy);
    l->copy = NULL;
}

void sr_leased_free(sr_leased *l)
{
    close_both(l);
}

/* The leased file of an output may still wait behind a spool. */
static int file_of(const sr_output *o)
{
    return o->next >= 0 ? o->next : o->fd;
}

static off_t begin_of(const sr_output *o)
{
    return o->next >= 0 ? o->next_offset : o->offset;
}

static off_t end_of(const sr_output *o)
{
    return begin_of(o) + (off_t)(o->next >= 0 ? o->next_left : o->file_left);
}

void sr_leased_add(sr_engine *e, sr_output *o)
{
    sr_link_append(&e->leased.all, &o->leased);
    /* sendfile does not copy: what the socket holds would be the pages of the file, which change with it */
    o->copies = true;
    if (!sr_lease_claim(file_of(o), SR_DOOR_LEASE)) /* it was broken on the way here */
        e->leased.asked = true;
}

static bool is_it(const sr_leased *l, const sr_output *o)
{
    struct stat st;
    return fstat(file_of(o), &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

/* Notes of whose file somebody waits for, and since when. */
static void look(sr_engine *e)
{
    sr_leased *l = &e->leased;
    l->asked = false;
    for (sr_link *at = l->all.next; at != &l->all; at = at->next) {
        sr_output *o = SR_LIST_ENTRY(at, sr_output, leased);
        if (o->broken_at || sr_lease_holds(file_of(o)))
            continue;
        o->broken_at = e->now;
        l->broken = true;
    }
}

/* The lease of this output is to be given back. Without a descriptor its response is cut. */
static void take(sr_engine *e, sr_output *o)
{
    sr_leased *l = &e->leased;
    struct stat st;
    /* a duplicate, since the output may be over before the copy is */
    int fd = file_of(o), from = fstat(fd, &st) == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    if (from < 0) {
        sr_trouble_count(e, SR_TROUBLE_DESCRIPTORS, 1, errno);
        sr_output_replace(o, -1, 0, NULL);
        return;
    }
    l->from = from;
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    l->at = l->base = begin_of(o);
    l->end = end_of(o);
    l->since = o->broken_at;
}

/* Takes the file whose time is over first, and all that is to be sent of it. */
static void begin(sr_engine *e)
{
    sr_leased *l = &e->leased;
    sr_output *first = NULL;
    for (sr_link *at = l->all.next; at != &l->all; at = at->next) {
        sr_output *o = SR_LIST_ENTRY(at, sr_output, leased);
        if (o->broken_at && (!first || o->broken_at < first->broken_at))
            first = o;
    }
    if (!first)
        l->broken = false;
    else
        take(e, first);
    if (l->from < 0)
        return;
    for (sr_link *at = l->all.next; at != &l->all; at = at->next) {
        const sr_output *o = SR_LIST_ENTRY(at, sr_output, leased);
        if (!is_it(l, o))
            continue;
        l->at = l->base = begin_of(o) < l->base ? begin_of(o) : l->base;
        l->end = end_of(o) > l->end ? end_of(o) : l->end;
    }
}

/* Gives each output of the file its own descriptor of the copy, or, if there is none, cuts it. */
static void end(sr_engine *e, int err)
{
    sr_leased *l = &e->leased;
    for (sr_link *at = l->all.next, *next; at != &l->all; at = next) {
        sr_output *o = SR_LIST_ENTRY(at, sr_output, leased);
        next = at->next;
        if (!is_it(l, o))
            continue;
        if (!err && (begin_of(o) < l->base || end_of(o) > l->end)) {
            o->broken_at = l->since; /* it has come later, and is next */
            l->broken = true;
            continue;
        }
        int why = err ? err : sr_lease_give_back(file_of(o)) == SR_LEASE_LOST ? ETIMEDOUT : 0;
        int fd = why ? -1 : fcntl(l->to, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (fd < 0)
            sr_trouble_count(e, SR_TROUBLE_SPOOL, 1, why ? why : errno);
        sr_output_replace(o, fd, l->base, fd < 0 ? NULL : l->copy);
    }
    close_both(l);
    for (sr_link *at = e->all.next; at != &e->all;
         at = at->next) { /* which look for streams that may go on */
        sr_conn *c = SR_LIST_ENTRY(at, sr_conn, all);
        if (c->state == SR_CONN_STREAMS)
            sr_link_append(&e->due, &c->due);
    }
}

/* Copies some bytes. Returns 0 or errno. */
static int copy(sr_leased *l)
{
    char piece[PIECE];
    off_t left = l->end - l->at;
    ssize_t n;
    do
        n = pread(l->from, piece, left < PIECE ? (size_t)left : PIECE, l->at);
    while (n < 0 && errno == EINTR);
    if (n <= 0) /* 0: it is shorter than it was */
        return n < 0 ? errno : EIO;
    l->at += n;
    if (sr_tempfile_write(l->to, piece, (size_t)n))
        return errno;
    l->copy->bytes += (uint64_t)n;
    sr_spools_took((uint64_t)n);
    return 0;
}

/*
 * Returns 0 or errno. If there is no room, the slowest clients pay, which may be those that the copy is for;
 * nobody pays for one that is larger than all that there may be.
 */
static int copy_begin(sr_engine *e)
{
    sr_leased *l = &e->leased;
    uint64_t bytes = (uint64_t)(l->end - l->base);
    if (e->config.max_temp && bytes > e->config.max_temp)
        return ENOSPC;
    if (!sr_slowest_make_room(e, bytes))
        return ENOSPC;
    if (!(l->copy = calloc(1, sizeof *l->copy)))
        return ENOMEM;
    l->copy->users = 1;
    return (l->to = sr_tempfile_open(e->config.tmpdir)) < 0 ? errno : 0;
}

void sr_leased_step(sr_engine *e)
{
    sr_leased *l = &e->leased;
    if (l->asked)
        look(e);
    if (l->from < 0)
        begin(e);
    if (l->from < 0)
        return;
    int err = e->now - l->since > l->time ? ETIMEDOUT : 0;
    if (!err && l->to < 0)
        err = copy_begin(e);
    for (int i = 0; i < STEP / PIECE && !err && l->at < l->end; i++)
        err = copy(l);
    if (err || l->at >= l->end)
        end(e, err);
}
