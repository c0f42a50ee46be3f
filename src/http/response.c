#include "response.h"

#include "status.h"
#include "token.h"

/* Append to memory that was reserved before. `to` is the place; the new end is returned. */
static inline char *put(char *to, sr_bytes s)
{
    memcpy(to, s.at, s.len);
    return to + s.len;
}
#define PUT(to, literal) put((to), SR_BYTES(literal))

static sr_response_error check_field(sr_bytes name, sr_bytes value)
{
    if (!sr_is_token(name))
        return SR_RESPONSE_BAD_NAME;
    return sr_is_value(value) ? SR_RESPONSE_OK : SR_RESPONSE_BAD_VALUE;
}

bool sr_response_line(sr_buffer *out, sr_bytes name, sr_bytes value)
{
    if (!sr_buffer_reserve(out, name.len + value.len + sizeof ": \r\n"))
        return false;
    char *to = put(out->data + out->end, name);
    to = PUT(to, ": ");
    if (value.len)
        to = put(to, value);
    to = PUT(to, "\r\n");
    out->end = (size_t)(to - out->data);
    return true;
}

typedef enum role { OTHER, CODING, CONNECTION, CONTENT_LENGTH, DATE, HOP, HSTS, SERVER, UPGRADE } role;

/*
 * The fields that the server handles itself. HOP: those of one connection, which is the server's. `name` is a
 * token.
 */
static role role_of(sr_bytes name)
{
#define IS(lower) sr_token_is(name.at, lower, sizeof lower - 1)
    switch (name.len) {
    case 4:
        return IS("date") ? DATE : OTHER;
    case 6:
        return IS("server") ? SERVER : OTHER;
    case 7:
        return IS("upgrade") ? UPGRADE : OTHER;
    case 10:
        return IS("connection") ? CONNECTION : IS("keep-alive") ? HOP : OTHER;
    case 14:
        return IS("content-length") ? CONTENT_LENGTH : OTHER;
    case 16:
        return IS("proxy-connection") ? HOP : OTHER;
    case 17:
        return IS("transfer-encoding") ? CODING : OTHER;
    case 25:
        return IS("strict-transport-security") ? HSTS : OTHER;
    default:
        return OTHER;
    }
#undef IS
}

/* Accepts a number; a second field must have the same one (RFC 9110 8.6). */
static sr_response_error app_length(sr_response *r, sr_bytes value)
{
    value = sr_trim(value);
    if (!value.len || value.len > 19 || !sr_all_are(value, SR_CHAR_DIGIT))
        return SR_RESPONSE_BAD_LENGTH;
    uint64_t n = 0;
    for (size_t i = 0; i < value.len; i++)
        n = n * 10 + (uint64_t)(value.at[i] - '0');
    if (n > INT64_MAX || (r->app_length != SR_LENGTH_UNKNOWN && r->app_length != n))
        return SR_RESPONSE_BAD_LENGTH;
    r->app_length = n;
    return SR_RESPONSE_OK;
}

sr_response_error sr_response_field(sr_response *r, sr_buffer *out, sr_bytes name, sr_bytes value)
{
    sr_response_error e = check_field(name, value);
    if (e != SR_RESPONSE_OK)
        return e;
    switch (role_of(name)) {
    case CONNECTION:
        if (sr_list_has(value, SR_BYTES("close")))
            r->keep_alive = false;
        return SR_RESPONSE_OK;
    case CODING:
        r->app_chunked = r->app_chunked || sr_list_has(value, SR_BYTES("chunked"));
        return SR_RESPONSE_OK;
    case HOP:
        return SR_RESPONSE_OK;
    case CONTENT_LENGTH:
        return app_length(r, value);
    case DATE:
        r->has_date = true;
        break;
    case HSTS:
        r->has_hsts = true;
        break;
    case SERVER:
        r->has_server = true;
        break;
    case UPGRADE:
        r->has_upgrade = true;
        break;
    case OTHER:
        break;
    }
    return sr_response_line(out, name, value) ? SR_RESPONSE_OK : SR_RESPONSE_NO_MEMORY;
}

/* Inline: the edge checks each field of each response. */
static inline bool next(sr_bytes *lines, sr_bytes *name, sr_bytes *value)
{
    const char *colon = lines->len ? memchr(lines->at, ':', lines->len) : NULL;
    const char *end = colon ? memchr(colon, '\r', lines->len - (size_t)(colon - lines->at)) : NULL;
    size_t left = end ? lines->len - (size_t)(end - lines->at) : 0;
    if (left < 2 || end[1] != '\n' || end < colon + 2 || colon[1] != ' ')
        return false;
    *name = sr_bytes_of(lines->at, (size_t)(colon - lines->at));
    *value = sr_bytes_of(colon + 2, (size_t)(end - colon) - 2);
    *lines = sr_bytes_of(end + 2, left - 2);
    return true;
}

bool sr_response_next(sr_bytes *lines, sr_bytes *name, sr_bytes *value)
{
    return next(lines, name, value);
}

/* `r` of a final response; NULL: it is an interim one. */
static inline sr_response_error add_lines(sr_response *r, sr_buffer *out, sr_bytes lines)
{
    sr_bytes name, value;
    while (next(&lines, &name, &value)) {
        sr_response_error err =
            r ? sr_response_field(r, out, name, value) : sr_informational_field(out, name, value);
        if (err)
            return err;
    }
    return lines.len ? SR_RESPONSE_BAD_NAME : SR_RESPONSE_OK;
}

sr_response_error sr_response_fields(sr_response *r, sr_buffer *out, sr_bytes lines)
{
    return add_lines(r, out, lines);
}

sr_response_error sr_informational_fields(sr_buffer *out, sr_bytes lines)
{
    return add_lines(NULL, out, lines);
}

sr_response_error sr_informational_field(sr_buffer *out, sr_bytes name, sr_bytes value)
{
    sr_response_error e = check_field(name, value);
    if (e != SR_RESPONSE_OK)
        return e;
    switch (role_of(name)) {
    case CONNECTION:
    case CONTENT_LENGTH:
    case CODING:
    case HOP:
    case UPGRADE:
        return SR_RESPONSE_OK;
    default:
        return sr_response_line(out, name, value) ? SR_RESPONSE_OK : SR_RESPONSE_NO_MEMORY;
    }
}

sr_bytes sr_response_value(sr_bytes head, sr_bytes name)
{
    while (head.len) {
        const char *newline = memchr(head.at, '\n', head.len);
        size_t len = newline ? (size_t)(newline - head.at) : head.len;
        if (len > name.len && head.at[name.len] == ':' &&
            sr_bytes_equal_nocase(sr_bytes_of(head.at, name.len), name)) {
            size_t end = len - (len > 0 && head.at[len - 1] == '\r'), from = name.len + 1;
            while (from < end && (head.at[from] == ' ' || head.at[from] == '\t'))
                from++;
            return sr_bytes_of(head.at + from, end - from);
        }
        len += newline != NULL;
        head = sr_bytes_of(head.at + len, head.len - len);
    }
    return sr_bytes_of(NULL, 0);
}

const char *sr_response_error_text(sr_response_error e)
{
    switch (e) {
    case SR_RESPONSE_OK:
        return "no error";
    case SR_RESPONSE_BAD_STATUS:
        return "the status is not a number from 200 to 999";
    case SR_RESPONSE_BAD_NAME:
        return "a header name contains a character that is not allowed, or is empty";
    case SR_RESPONSE_BAD_VALUE:
        return "a header value contains a control character";
    case SR_RESPONSE_BAD_LENGTH:
        return "Content-Length is not a number, or is given twice with different values";
    case SR_RESPONSE_NO_MEMORY:
        return "out of memory";
    }
    return "unknown error";
}
