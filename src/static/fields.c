#include "fields.h"

#include "../base/decimal.h"
#include "../http/date.h"

enum { TEXT_MAX = 128, TYPE_MAX = SR_TYPE_MAX + SR_CHARSET_MAX + 64 };

typedef struct writer {
    sr_buffer *out;
    bool failed; /* no memory */
} writer;

static char *put(char *to, sr_bytes s)
{
    memcpy(to, s.at, s.len);
    return to + s.len;
}

static void field(writer *w, sr_bytes name, sr_bytes value)
{
    if (!value.len || w->failed)
        return;
    w->failed = !sr_buffer_reserve(w->out, name.len + value.len + sizeof ": \r\n");
    if (w->failed)
        return;
    char *to = put(w->out->data + w->out->end, name);
    to = put(to, SR_BYTES(": "));
    to = put(put(to, value), SR_BYTES("\r\n"));
    w->out->end = (size_t)(to - w->out->data);
}

static char *put_number(char *to, uint64_t n)
{
    char digits[SR_DECIMAL_MAX];
    return put(to, sr_decimal(digits + sizeof digits, n));
}

/* "bytes 0-99/1234"; with an asterisk in place of the range where there is none */
static sr_bytes content_range(char text[TEXT_MAX], const sr_range *range, uint64_t size)
{
    char *to = put(text, SR_BYTES("bytes "));
    if (range) {
        to = put_number(to, range->first);
        *to++ = '-';
        to = put_number(to, range->first + range->length - 1);
    } else {
        *to++ = '*';
    }
    *to++ = '/';
    to = put_number(to, size);
    return sr_bytes_of(text, (size_t)(to - text));
}

/* The type of the file, with a charset if it is text. Both are bounded when they are read. */
static sr_bytes type_of(char text[TYPE_MAX], const sr_found *f)
{
    sr_bytes charset = f->type->is_text ? f->mount->charset : SR_BYTES("");
    char *to = put(text, f->type->name);
    if (charset.len)
        to = put(put(to, SR_BYTES("; charset=")), charset);
    return sr_bytes_of(text, (size_t)(to - text));
}

static void content_type(writer *w, const sr_found *f, sr_bytes boundary)
{
    char text[TYPE_MAX];
    sr_bytes type = SR_BYTES("multipart/byteranges; boundary=");
    if (f->ranges.n > 1) {
        char *to = put(put(text, type), boundary);
        type = sr_bytes_of(text, (size_t)(to - text));
    } else {
        type = type_of(text, f);
    }
    field(w, SR_BYTES("Content-Type"), type);
}

/*
 * Path and query as they came, with the slash that was missing. It begins with one slash, as an empty name is
 * not served.
 */
static void location(writer *w, const sr_request *r, const char *base)
{
    sr_buffer to = {0};
    if (!sr_buffer_add_bytes(&to, sr_span_in(base, r->path)) || !sr_buffer_add(&to, "/", 1) ||
        (r->has_query &&
         !(sr_buffer_add(&to, "?", 1) && sr_buffer_add_bytes(&to, sr_span_in(base, r->query)))))
        w->failed = true;
    else
        field(w, SR_BYTES("Location"), sr_bytes_of(sr_buffer_at(&to), sr_buffer_len(&to)));
    sr_buffer_free(&to);
}

/* A file must not seem to be newer than the response (RFC 9110 8.8.2.1). */
static void last_modified(writer *w, const sr_found *f, int64_t now)
{
    char date[SR_DATE_LEN];
    if (f->modified < 0)
        return;
    sr_date_format(date, f->modified < now ? f->modified : now);
    field(w, SR_BYTES("Last-Modified"), sr_bytes_of(date, sizeof date));
}

/* What a 304 says as well as a 200 (RFC 9110 15.4.5). */
static void representation(writer *w, const sr_found *f)
{
    field(w, SR_BYTES("ETag"), sr_bytes_of(f->etag, f->etag_len));
    field(w, SR_BYTES("Cache-Control"), sr_mount_cache(f->mount));
    if (!f->type->is_packed && !f->mount->is_webroot)
        field(w, SR_BYTES("Vary"), SR_BYTES("Accept-Encoding"));
}

static void content(writer *w, const sr_found *f, int64_t now, sr_bytes boundary)
{
    char text[TEXT_MAX];
    content_type(w, f, boundary);
    field(w, SR_BYTES("Content-Encoding"), sr_coding_name(f->coding));
    last_modified(w, f, now);
    representation(w, f);
    field(w, SR_BYTES("Accept-Ranges"), SR_BYTES("bytes"));
    if (f->ranges.n == 1)
        field(w, SR_BYTES("Content-Range"), content_range(text, f->ranges.at, f->size));
}

bool sr_fields_add(const sr_found *f, const sr_request *r, const char *base, int64_t now, sr_bytes boundary,
                   sr_buffer *out)
{
    writer w = {.out = out};
    char text[TEXT_MAX];
    if (f->status == 200 || f->status == 206) {
        content(&w, f, now, boundary);
        return !w.failed;
    }
    if (f->status == 304) {
        representation(&w, f);
        return !w.failed;
    }
    field(&w, SR_BYTES("Content-Type"), SR_BYTES("text/plain"));
    if (f->status == 301)
        location(&w, r, base);
    if (f->status == 405)
        field(&w, SR_BYTES("Allow"), SR_BYTES("GET, HEAD"));
    if (f->status == 416)
        field(&w, SR_BYTES("Content-Range"), content_range(text, NULL, f->size));
    return !w.failed;
}

bool sr_fields_part(const sr_found *f, size_t i, sr_bytes boundary, sr_buffer *out)
{
    char text[TEXT_MAX], type[TYPE_MAX];
    if (!(sr_buffer_add_bytes(out, i ? SR_BYTES("\r\n--") : SR_BYTES("--")) &&
          sr_buffer_add_bytes(out, boundary)))
        return false;
    if (i == f->ranges.n)
        return sr_buffer_add_bytes(out, SR_BYTES("--\r\n"));
    return sr_buffer_add_bytes(out, SR_BYTES("\r\nContent-Type: ")) &&
           sr_buffer_add_bytes(out, type_of(type, f)) &&
           sr_buffer_add_bytes(out, SR_BYTES("\r\nContent-Range: ")) &&
           sr_buffer_add_bytes(out, content_range(text, &f->ranges.at[i], f->size)) &&
           sr_buffer_add_bytes(out, SR_BYTES("\r\n\r\n"));
}
