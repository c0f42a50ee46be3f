/*
 * response: heads from whatever an application says, read again as a strict client would.
 * Judges: src/http/response.c src/http1/write.c src/http/page.c src/http/status.c src/base/buffer.c
 *
 * Input: two bytes of status, one of flags, eight of the known length, then lines "name:value".
 */
#include "http/page.h"
#include "http1/write.h"

#include "fuzz.h"
#include "http/status.h"
#include "http/token.h"

static const char date[] = "Sun, 06 Nov 1994 08:49:37 GMT";

typedef struct seen {
    int date, server, connection, length, coding, hop, close, fields;
    uint64_t content_length;
} seen;

static bool named(sr_bytes name, const char *want)
{
    return sr_bytes_equal_nocase(name, sr_bytes_of(want, strlen(want)));
}

/* One line of the head without its CRLF. */
static void field(seen *s, const char *at, size_t len)
{
    const char *colon = memchr(at, ':', len);
    MUST(colon && colon > at && colon + 1 < at + len && colon[1] == ' ');
    sr_bytes name = {at, (size_t)(colon - at)}, value = {colon + 2, len - name.len - 2};
    MUST(sr_is_token(name) && sr_is_value(value));
    s->fields++;
    s->date += named(name, "Date");
    s->server += named(name, "Server");
    s->hop += named(name, "Keep-Alive") || named(name, "Proxy-Connection");
    s->coding += named(name, "Transfer-Encoding");
    if (named(name, "Connection")) {
        s->connection++;
        s->close += sr_list_has(value, SR_BYTES("close"));
    }
    if (named(name, "Content-Length")) {
        char text[32] = "";
        MUST(value.len > 0 && value.len <= 20 && sr_all_are(value, SR_CHAR_DIGIT));
        memcpy(text, value.at, value.len);
        s->content_length = strtoull(text, NULL, 10);
        s->length++;
    }
}

/* A whole head, status line and empty line included. */
static seen read_head(const sr_buffer *out, int status)
{
    const char *at = sr_buffer_at(out), *end = at + sr_buffer_len(out), *cr;
    char line[16];
    seen s = {0};
    snprintf(line, sizeof line, "HTTP/1.1 %03d ", status);
    MUST(sr_buffer_len(out) > 13 && memcmp(at, line, 13) == 0);
    for (bool first = true;; first = false, at = cr + 2) {
        MUST((cr = memchr(at, '\r', (size_t)(end - at))) && cr + 1 < end && cr[1] == '\n');
        if (cr == at)
            break;
        if (!first)
            field(&s, at, (size_t)(cr - at));
    }
    MUST(cr + 2 == end);
    return s;
}

static void judge(const sr_response *r, sr_version version, const seen *s, uint64_t known)
{
    bool bodiless = r->is_head || sr_status_bodiless(r->status);
    MUST(s->date >= 1 && s->server >= 1 && s->hop == 0 && s->connection <= 1);
    MUST(s->length + s->coding <= 1);
    MUST((s->close > 0) == !r->keep_alive);
    MUST(s->coding == sr_write_chunked(r, version) && (!s->coding || version == SR_HTTP_1_1));
    MUST(r->status != 204 || s->length == 0);
    switch (r->framing) {
    case SR_FRAMING_NONE:
        MUST(bodiless);
        break;
    case SR_FRAMING_LENGTH:
        MUST(!bodiless && s->length == 1 && s->content_length == r->body_length);
        MUST(!r->keep_alive || known == SR_LENGTH_UNKNOWN || known >= r->body_length || r->status == 205);
        break;
    case SR_FRAMING_OPEN:
        MUST(!bodiless && known == SR_LENGTH_UNKNOWN && (version == SR_HTTP_1_1 || !r->keep_alive));
    }
}

/* Calls `add` with each "name:value" line; false when one was refused. */
typedef sr_response_error adder(sr_response *, sr_buffer *, sr_bytes, sr_bytes);

static sr_response_error add_interim(sr_response *r, sr_buffer *out, sr_bytes name, sr_bytes value)
{
    (void)r;
    return sr_informational_field(out, name, value);
}

static bool add_lines(adder *add, sr_response *r, sr_buffer *out, const char *at, size_t size)
{
    for (const char *end = at + size, *lf; at < end; at = lf + 1) {
        if (!(lf = memchr(at, '\n', (size_t)(end - at))))
            lf = end;
        const char *colon = memchr(at, ':', (size_t)(lf - at));
        sr_bytes name = {at, (size_t)((colon ? colon : lf) - at)}, value = {"", 0};
        if (colon)
            value = sr_bytes_of(colon + 1, (size_t)(lf - colon - 1));
        sr_response_error e = add(r, out, name, value);
        MUST(*sr_response_error_text(e));
        if (e != SR_RESPONSE_OK)
            return false;
        if (lf == end)
            break;
    }
    return true;
}

static void interim(sr_buffer *out, int status, const char *at, size_t size)
{
    sr_buffer_reset(out);
    MUST(sr_informational_status(status) == (status >= 102 && status <= 199));
    if (!sr_informational_status(status) || !sr_write_status(out, status) ||
        !add_lines(add_interim, NULL, out, at, size) || !sr_buffer_add(out, "\r\n", 2))
        return;
    seen s = read_head(out, status);
    MUST(s.length + s.coding + s.connection + s.hop == 0);
}

static void chunk_head(uint64_t length)
{
    char line[18];
    size_t len = sr_write_chunk_head(line, length);
    MUST(len >= 3 && len <= 18 && memcmp(line + len - 2, "\r\n", 2) == 0);
    line[len - 2] = '\0';
    MUST(strtoull(line, NULL, 16) == length);
}

static void page(sr_buffer *out, int status, bool is_head)
{
    sr_response r;
    sr_page p;
    sr_page_make(&p, status);
    sr_buffer_reset(out);
    MUST(!sr_response_begin(&r, status, is_head, false) && sr_write_status(out, status));
    MUST(!sr_response_fields(&r, out, p.head.fields));
    MUST(!sr_write_end(&r, SR_HTTP_1_1, out, p.head.length, date, SR_BYTES("s")));
    seen s = read_head(out, status);
    MUST(s.close == 1 && s.length == 1 && s.date == 1 && s.content_length == p.text_len);
}

FUZZ_TARGET(response)
{
    static sr_buffer out; /* grows to what the largest input needs */
    sr_response r;
    uint64_t known;
    if (size < 11)
        return 0;
    int status = (data[0] << 8 | data[1]) % 1010;
    uint8_t flags = data[2];
    memcpy(&known, data + 3, sizeof known);
    if (flags & 16)
        known = SR_LENGTH_UNKNOWN;
    const char *lines = (const char *)data + 11;
    sr_buffer_reset(&out);
    sr_version version = flags & 1 ? SR_HTTP_1_1 : SR_HTTP_1_0;
    sr_response_error e = sr_response_begin(&r, status, flags & 2, flags & 4);
    MUST((e == SR_RESPONSE_BAD_STATUS) == (status < 200 || status > 999));
    if (e == SR_RESPONSE_OK && sr_write_status(&out, status) &&
        add_lines(sr_response_field, &r, &out, lines, size - 11) &&
        sr_write_end(&r, version, &out, known, date, SR_BYTES("Sirius")) == SR_RESPONSE_OK) {
        seen s = read_head(&out, status);
        judge(&r, version, &s, known);
    }
    interim(&out, status, lines, size - 11);
    if (known)
        chunk_head(known);
    if (status >= 400 && status <= 999)
        page(&out, status, flags & 2);
    return 0;
}
