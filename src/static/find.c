#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "find.h"

#include "../http/condition.h"
#include "../http/field.h"
#include "path.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- files --- */

typedef enum { FILE_OPEN, FILE_MISSING, FILE_IS_FOLDER, FILE_CLOSED, FILE_FAILED } opened;

static opened failed(int err)
{
    switch (err) {
    case EACCES:
        return FILE_CLOSED;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN: /* another process holds a lease, and has been asked to give it up (fcntl(2), F_SETLEASE) */
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
        return FILE_FAILED; /* it may be there: not 404, which caches keep */
    default: /* ENOENT, ENOTDIR, ENAMETOOLONG; ELOOP, EXDEV: a link that is not followed; ENXIO: a socket */
        return FILE_MISSING;
    }
}

/* Opens a regular file. With FILE_FAILED errno says why. */
static opened file_open(const sr_mount *m, const char *path, int *fd, struct stat *st)
{
    *fd = sr_beneath_open(m->fd, path, m->links);
    if (*fd < 0)
        return failed(errno);
    bool known = fstat(*fd, st) == 0;
    if (known && S_ISREG(st->st_mode))
        return FILE_OPEN;
    close(*fd);
    *fd = -1;
    return known && S_ISDIR(st->st_mode) ? FILE_IS_FOLDER : FILE_MISSING;
}

/* Writes path, slash (unless there is no path) and name. False: it is too long. */
static bool join(char out[SR_PATH_MAX], const char *path, const char *name)
{
    size_t len = strlen(path), more = strlen(name);
    if (len + 1 + more >= SR_PATH_MAX)
        return false;
    memmove(out, path, len);
    if (len)
        out[len++] = '/';
    memcpy(out + len, name, more + 1);
    return true;
}

/* --- validators --- */

#ifdef __APPLE__
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

static char *put_hex(char *to, uint64_t n)
{
    size_t digits = 1;
    for (uint64_t rest = n >> 4; rest; rest >>= 4)
        digits++;
    for (size_t i = digits; i-- > 0; n >>= 4)
        to[i] = "0123456789abcdef"[n & 15];
    return to + digits;
}

/*
 * Size and time of the file, and its coding. Packages that are built reproducibly give all files the first
 * second of 1970: then the time is that at which the file got here.
 */
static void validators(sr_found *f, const struct stat *st)
{
    bool timeless = st->st_mtim.tv_sec <= 1;
    const struct timespec *t = timeless ? &st->st_ctim : &st->st_mtim;
    char *to = f->etag;
    *to++ = '"';
    to = put_hex(to, (uint64_t)st->st_size);
    *to++ = '-';
    to = put_hex(to, (uint64_t)t->tv_sec);
    *to++ = '.';
    to = put_hex(to, (uint64_t)t->tv_nsec);
    if (f->coding != SR_CODING_NONE) {
        sr_bytes name = sr_coding_name(f->coding);
        *to++ = '-';
        memcpy(to, name.at, name.len);
        to += name.len;
    }
    *to++ = '"';
    f->etag_len = (size_t)(to - f->etag);
    f->modified = timeless ? -1 : st->st_mtim.tv_sec;
}

/* --- what to answer --- */

typedef struct asked {
    const sr_request *request;
    const char *base;
    int64_t now;
    const sr_types *types;
} asked;

enum { ROUNDED = 1000 * 1000 }; /* ns */

/*
 * Programs that give a compressed file the time of its file cut that to seconds (nsec is 0 then), or to
 * something between milliseconds and nanoseconds.
 */
static bool is_older(const struct stat *compressed, const struct stat *file)
{
    const struct timespec *a = &compressed->st_mtim, *b = &file->st_mtim;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec;
    return a->tv_nsec != 0 && a->tv_nsec + ROUNDED < b->tv_nsec;
}

/*
 * Takes the compressed file beside the file if the client prefers it, unless it is older: then it is of what
 * the file was before.
 */
static void compressed(sr_found *f, const asked *q, const char *path, struct stat *st)
{
    sr_coding wanted[SR_CODINGS];
    char beside[SR_PATH_MAX];
    bool none = f->type->is_packed || f->mount->is_webroot;
    size_t len = strlen(path), n = none ? 0 : sr_coding_wanted(q->request, q->base, wanted);
    for (size_t i = 0; i < n; i++) {
        sr_bytes extension = sr_coding_extension(wanted[i]);
        struct stat of;
        int fd;
        if (len + extension.len >= SR_PATH_MAX)
            return;
        memcpy(beside, path, len);
        memcpy(beside + len, extension.at, extension.len + 1);
        if (file_open(f->mount, beside, &fd, &of) != FILE_OPEN)
            continue;
        if (is_older(&of, st)) {
            close(fd);
            continue;
        }
        close(f->fd);
        f->fd = fd;
        f->coding = wanted[i];
        *st = of;
        return;
    }
}

static void answer(sr_found *f, int status)
{
    f->status = status;
    if (status == 200 || status == 206 || f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
}

/* The file is there: whether the client wants it, and what of it. */
static void decide(sr_found *f, const asked *q)
{
    sr_validators v = {sr_bytes_of(f->etag, f->etag_len), f->modified, q->now};
    sr_condition condition = sr_condition_of(q->request, q->base, &v);
    sr_bytes range;
    if (condition != SR_CONDITION_NONE) {
        answer(f, condition == SR_CONDITION_FAILED ? 412 : 304);
        return;
    }
    answer(f, 200);
    if (f->is_head || !sr_field_only(q->request, q->base, SR_BYTES("range"), &range) ||
        !sr_condition_if_range(q->request, q->base, &v)) /* RFC 9110 14.2: Range is for GET alone */
        return;
    sr_range_result result = sr_range_parse(&f->ranges, range, f->size);
    if (result != SR_RANGE_IGNORED)
        answer(f, result == SR_RANGE_PARTS ? 206 : 416);
}

static bool has_index(const sr_mount *m, const char *path)
{
    char index[SR_PATH_MAX];
    struct stat st;
    int fd;
    if (!m->index || !join(index, path, m->index) || file_open(m, index, &fd, &st) != FILE_OPEN)
        return false;
    close(fd);
    return true;
}

/* There is nothing of that name. False: the application may have something. */
static bool missing(sr_found *f)
{
    answer(f, 404);
    return !f->mount->passes;
}

static bool short_of(sr_found *f, int err)
{
    f->error = err;
    answer(f, 503);
    return true;
}

static bool look(sr_found *f, const asked *q, sr_path_kind kind, char path[SR_PATH_MAX])
{
    const sr_mount *m = f->mount;
    struct stat st;
    if (kind == SR_PATH_BAD || (kind == SR_PATH_FOLDER && (!m->index || !join(path, path, m->index))))
        return missing(f);
    switch (*path ? file_open(m, path, &f->fd, &st) : FILE_IS_FOLDER) {
    case FILE_OPEN:
        break;
    case FILE_MISSING:
        return missing(f);
    case FILE_IS_FOLDER: /* whose index has relative links, for which the slash must be there */
        if (kind == SR_PATH_FOLDER || !has_index(m, path))
            return missing(f);
        answer(f, 301);
        return true;
    case FILE_CLOSED:
        answer(f, 403);
        return true;
    case FILE_FAILED:
        return short_of(f, errno);
    }
    f->type = sr_types_of(q->types, path);
    compressed(f, q, path, &st);
    f->size = (uint64_t)st.st_size;
    validators(f, &st);
    decide(f, q);
    return true;
}

static bool is_token(const char *name)
{
    static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return *name && !name[strspn(name, base64url)];
}

/*
 * Where an ACME client puts the answer to a challenge: the name of the file is the token, in the alphabet of
 * base64url (RFC 8555 8.3). Only the webroot itself stays open, as certbot makes and removes the folders
 * below it each time.
 */
static sr_path_kind challenge(sr_path_kind kind, char path[SR_PATH_MAX])
{
    char token[SR_PATH_MAX];
    if (kind != SR_PATH_NAME || !is_token(path))
        return SR_PATH_BAD;
    memcpy(token, path, strlen(path) + 1);
    return join(path, ".well-known/acme-challenge", token) ? SR_PATH_NAME : SR_PATH_BAD;
}

bool sr_find(sr_mounts *mounts, const sr_request *r, const char *base, int64_t now, sr_found *out)
{
    sr_bytes path = sr_span_in(base, r->path);
    bool asks = r->is_head || sr_bytes_equal(sr_span_in(base, r->method), SR_BYTES("GET"));
    char name[SR_PATH_MAX];
    size_t used;
    if (!path.len && asks) /* absolute-form without a path */
        path = SR_BYTES("/");
    sr_mount *m = path.len && *path.at == '/' ? sr_mounts_find(mounts, path, &used) : NULL;
    if (!m)
        return false;
    *out = (sr_found){
        .status = 405, .fd = -1, .is_head = r->is_head, .mount = m, .modified = -1, .coding = SR_CODING_NONE};
    if (!asks)
        return !m->passes;
    if (sr_mount_folder(m) < 0)
        return failed(errno) == FILE_FAILED ? short_of(out, errno) : missing(out);
    sr_path_kind kind = sr_path_decode_rest(name, sr_bytes_of(path.at + used, path.len - used));
    if (m->is_webroot)
        kind = challenge(kind, name);
    return look(out, &(asked){r, base, now, &mounts->types}, kind, name);
}
