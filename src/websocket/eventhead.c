#include "eventhead.h"

#include "../base/decimal.h"
#include "../http/response.h"
#include "../http/token.h"
#include "wsevent.h"

/* To an application `_` in a name is `-` (--underscores-in-headers). */
static bool same(const char *name, const char *lower, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((name[i] == '_' ? '-' : name[i] | 0x20) != lower[i])
            return false;
    return true;
}

static bool begins(sr_bytes name, const char *lower, size_t len)
{
    return name.len > len && same(name.at, lower, len);
}

static bool is(sr_bytes name, const char *lower, size_t len)
{
    return name.len == len && same(name.at, lower, len);
}
#define BEGINS(name, lower) begins(name, lower, sizeof(lower) - 1)
#define IS(name, lower) is(name, lower, sizeof(lower) - 1)

bool sr_eventhead_own(sr_bytes name)
{
    return BEGINS(name, "grip-") || BEGINS(name, "meta-") || IS(name, "connection-id");
}

/*
 * The client's subprotocols stay, as the application chooses among them. X-Request-Start was about the
 * opening.
 */
static bool is_left_out(sr_bytes name)
{
    if (BEGINS(name, "sec-websocket-"))
        return !IS(name, "sec-websocket-protocol");
    return sr_eventhead_own(name) || BEGINS(name, "content-") || IS(name, "upgrade") ||
           IS(name, "connection") || IS(name, "keep-alive") || IS(name, "proxy-connection") ||
           IS(name, "http2-settings") || IS(name, "expect") || IS(name, "te") || IS(name, "trailer") ||
           IS(name, "transfer-encoding") || IS(name, "accept") || IS(name, "x-request-start") ||
           IS(name, "x-queue-start");
}

bool sr_eventhead_begin(sr_buffer *out, const sr_request *r, const char *base, sr_bytes id)
{
    bool ok = sr_buffer_add(out, "POST ", 5) && sr_buffer_add_bytes(out, sr_span_in(base, r->target)) &&
              sr_buffer_add(out, " HTTP/1.1\r\n", 11);
    for (uint32_t i = 0; ok && i < r->n_fields; i++) {
        sr_bytes name = sr_span_in(base, r->fields[i].name);
        ok = is_left_out(name) || sr_response_line(out, name, sr_span_in(base, r->fields[i].value));
    }
    return ok && sr_response_line(out, SR_BYTES("Accept"), SR_BYTES(SR_WSEVENT_TYPE)) &&
           sr_response_line(out, SR_BYTES("Content-Type"), SR_BYTES(SR_WSEVENT_TYPE)) &&
           sr_response_line(out, SR_BYTES("Connection-Id"), id) &&
           sr_response_line(out, SR_BYTES("Sec-WebSocket-Extensions"), SR_BYTES("grip"));
}

bool sr_eventhead_end(sr_buffer *out, sr_bytes meta, size_t body)
{
    char digits[SR_DECIMAL_MAX];
    return sr_buffer_add_bytes(out, meta) &&
           sr_response_line(out, SR_BYTES("Content-Length"), sr_decimal(digits + sizeof digits, body)) &&
           sr_buffer_add(out, "\r\n", 2);
}

static const char prefix[] = "Meta-";
enum { PREFIX = sizeof prefix - 1 };

/* The line of this name. at NULL: there is none. */
static sr_bytes find(const sr_buffer *meta, sr_bytes name)
{
    sr_bytes lines = sr_buffer_bytes(meta), of, value;
    while (sr_response_next(&lines, &of, &value))
        if (of.len == PREFIX + name.len && sr_bytes_equal_nocase(sr_bytes_of(of.at + PREFIX, name.len), name))
            return sr_bytes_of(of.at, (size_t)(lines.at - of.at));
    return sr_bytes_of(NULL, 0);
}

sr_bytes sr_eventhead_meta_of(const sr_buffer *meta, sr_bytes name)
{
    sr_bytes line = find(meta, name), of, value = {"", 0};
    return line.at && sr_response_next(&line, &of, &value) ? sr_trim(value) : sr_bytes_of("", 0);
}

bool sr_eventhead_meta(sr_buffer *meta, sr_bytes name, sr_bytes value)
{
    if (!sr_is_token(name) || memchr(name.at, '_', name.len) || !sr_is_value(value))
        return false;
    sr_bytes old = find(meta, name);
    if (old.at) {
        char *at = sr_buffer_at(meta) + (old.at - sr_buffer_at(meta));
        memmove(at, at + old.len, sr_buffer_len(meta) - (size_t)(at - sr_buffer_at(meta)) - old.len);
        meta->end -= old.len;
    }
    if (!value.len)
        return true;
    return sr_buffer_len(meta) + name.len + value.len + 9 <= SR_EVENTHEAD_META_MAX &&
           sr_buffer_add(meta, prefix, PREFIX) && sr_response_line(meta, name, value);
}
