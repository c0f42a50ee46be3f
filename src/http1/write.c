#include "write.h"

#include "../base/decimal.h"
#include "../http/date.h"
#include "../http/status.h"

/* Append to memory that was reserved before. `to` is the place; the new end is returned. */
static inline char *put(char *to, sr_bytes s)
{
    memcpy(to, s.at, s.len);
    return to + s.len;
}
#define PUT(to, literal) put((to), SR_BYTES(literal))

static char *put_number(char *to, uint64_t n)
{
    char digits[SR_DECIMAL_MAX];
    return put(to, sr_decimal(digits + sizeof digits, n));
}

bool sr_write_status(sr_buffer *out, int status)
{
    if (status == 200) /* nearly always */
        return sr_buffer_add_bytes(out, SR_BYTES("HTTP/1.1 200 OK\r\n"));
    sr_bytes reason = sr_status_reason(status);
    if (!sr_buffer_reserve(out, sizeof "HTTP/1.1 200 \r\n" + reason.len))
        return false;
    char *to = PUT(out->data + out->end, "HTTP/1.1 ");
    to = put_number(to, (unsigned)status);
    *to++ = ' ';
    to = put(to, reason);
    to = PUT(to, "\r\n");
    out->end = (size_t)(to - out->data);
    return true;
}

static sr_bytes connection(const sr_response *r, sr_version version)
{
    if (!r->keep_alive)
        return r->has_upgrade ? SR_BYTES("Connection: close, Upgrade\r\n")
                              : SR_BYTES("Connection: close\r\n");
    if (version == SR_HTTP_1_0)
        return r->has_upgrade ? SR_BYTES("Connection: keep-alive, Upgrade\r\n")
                              : SR_BYTES("Connection: keep-alive\r\n");
    return r->has_upgrade ? SR_BYTES("Connection: Upgrade\r\n") : SR_BYTES("");
}

static char *put_date(char *to, const char *date)
{
    to = PUT(to, "Date: ");
    to = put(to, sr_bytes_of(date, SR_DATE_LEN));
    return PUT(to, "\r\n");
}

static char *put_server(char *to, sr_bytes server)
{
    if (!server.len)
        return to;
    to = PUT(to, "Server: ");
    to = put(to, server);
    return PUT(to, "\r\n");
}

static char *put_length(char *to, uint64_t length)
{
    to = PUT(to, "Content-Length: ");
    to = put_number(to, length);
    return PUT(to, "\r\n");
}

sr_response_error sr_write_end(sr_response *r, sr_version version, sr_buffer *out, uint64_t known,
                               const char *date, sr_bytes server)
{
    uint64_t length = sr_response_decide(r, known);
    if (r->framing == SR_FRAMING_OPEN && version == SR_HTTP_1_0)
        r->keep_alive = false; /* the close ends it (RFC 9112 6.3) */
    static const char longest[] = "Content-Length: 18446744073709551615\r\nDate: \r\nServer: \r\n"
                                  "Connection: keep-alive, Upgrade\r\n\r\n";
    if (!sr_buffer_reserve(out, sizeof longest + SR_DATE_LEN + server.len))
        return SR_RESPONSE_NO_MEMORY;
    char *to = out->data + out->end;
    if (length != SR_LENGTH_UNKNOWN)
        to = put_length(to, length);
    else if (sr_write_chunked(r, version))
        to = PUT(to, "Transfer-Encoding: chunked\r\n");
    if (!r->has_date)
        to = put_date(to, date);
    if (!r->has_server)
        to = put_server(to, server);
    to = put(to, connection(r, version));
    to = PUT(to, "\r\n");
    out->end = (size_t)(to - out->data);
    return SR_RESPONSE_OK;
}

size_t sr_write_chunk_head(char out[18], uint64_t length)
{
    size_t digits = 1;
    for (uint64_t rest = length >> 4; rest; rest >>= 4)
        digits++;
    for (size_t i = digits; i-- > 0; length >>= 4)
        out[i] = "0123456789abcdef"[length & 15];
    memcpy(out + digits, "\r\n", 2);
    return digits + 2;
}
