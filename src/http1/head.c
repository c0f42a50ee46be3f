#include "head.h"

#include "../http/method.h"
#include "../http/target.h"
#include "../http/token.h"
#include "framing.h"

enum { BLANK_MAX = 16 }; /* how many empty lines may precede a request line */

enum phase { PHASE_START, PHASE_LINE, PHASE_FIELDS };

static const char bare_cr[] = "a CR is not followed by LF";

void sr_request_init(sr_request *r)
{
    memset(r, 0, offsetof(sr_request, fields));
}

static inline size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The limit of a request line, which must fit the head as well. */
static size_t line_max(const sr_request_limits *limits)
{
    return min(min(limits->line, limits->head), SR_HEAD_MAX);
}

/* The offset where the head must have ended. */
static size_t head_end(const sr_request *r, const sr_request_limits *limits)
{
    return r->head_start + min(limits->head, SR_HEAD_MAX);
}

static size_t fields_max(const sr_request_limits *limits)
{
    return min(limits->fields, SR_REQUEST_FIELDS_MAX);
}

/* Whether at[from, end) has a CR. Callers make sure that the byte after it is known, and is no LF. */
static bool has_cr(const char *at, size_t from, size_t end)
{
    return from < end && memchr(at + from, '\r', end - from) != NULL;
}

/* Whether the first bytes of a line have neither SP nor CR, so that the method is too long. */
static bool method_too_long(const char *at)
{
    for (unsigned i = 0; i <= SR_METHOD_MAX; i++)
        if (at[i] == ' ' || at[i] == '\r')
            return false;
    return true;
}

/*
 * Checks what is known of a request line before its LF has come: at[r->line, end) holds its bytes, without a
 * CR at the end, and at most two bytes past the limit. Bytes before `from` were checked already. The checks
 * run in the order of the offsets at which errors show, so that the result is the same however the bytes are
 * split.
 */
static bool early_line(sr_request *r, const sr_request_limits *limits, const char *at, size_t from,
                       size_t end)
{
    size_t start = r->line, max = line_max(limits);
    if (end - start > SR_METHOD_MAX && max >= SR_METHOD_MAX && from <= start + SR_METHOD_MAX &&
        method_too_long(at + start))
        return sr_request_refuse(r, 400, "the method is longer than 64 bytes");
    if (has_cr(at, from, end))
        return sr_request_refuse(r, 400, bare_cr);
    if (end - start > max)
        return sr_request_refuse(r, 414, "the request line is longer than max-request-line");
    return true;
}

/*
 * Does the same for a field line whose bytes are all within the limit. `lf` is where the LF is or could come
 * next.
 */
static bool early_field(sr_request *r, const sr_request_limits *limits, const char *at, size_t from,
                        size_t end, size_t lf)
{
    size_t start = r->line, stop = head_end(r, limits);
    if (lf > start && at[start] != '\r' && r->lines >= fields_max(limits))
        return sr_request_refuse(r, 431, "there are more header fields than max-header-fields");
    if (has_cr(at, from, end))
        return sr_request_refuse(r, 400, bare_cr);
    if (lf >= stop)
        return sr_request_refuse(r, 431, "the head is larger than max-header-bytes");
    return true;
}

static bool early(sr_request *r, const sr_request_limits *limits, const char *at, size_t from, size_t lf)
{
    size_t end = lf > r->line && at[lf - 1] == '\r' ? lf - 1 : lf;
    return r->phase == PHASE_LINE ? early_line(r, limits, at, from, end)
                                  : early_field(r, limits, at, from, end, lf);
}

/*
 * The line up to the LF was refused. Replaces the reason by the one that would have come first if the same
 * bytes had come one by one.
 */
static sr_parse refused(sr_request *r, const sr_request_limits *limits, const char *at, size_t lf)
{
    early(r, limits, at, r->line, lf);
    return SR_PARSE_BAD;
}

/* There is no LF before `end`: refuses what can be refused now, and notes how far it was searched. */
static sr_parse partial(sr_request *r, const sr_request_limits *limits, const char *at, size_t end)
{
    /* the last byte searched may have been a CR */
    size_t from = r->scanned > r->line ? r->scanned - 1 : r->line;
    if (!early(r, limits, at, from, end))
        return SR_PARSE_BAD;
    r->scanned = (uint32_t)end;
    return SR_PARSE_MORE;
}

static sr_parse bad(sr_request *r, const char *why)
{
    sr_request_refuse(r, 400, why);
    return SR_PARSE_BAD;
}

/*
 * Reads empty lines and the first byte of the request line. One empty line is skipped: some clients send CRLF
 * after a body (RFC 9112 2.2). More are a sign of an attack; they are answered, but only once a request
 * follows.
 */
static sr_parse start(sr_request *r, const char *at, size_t len)
{
    size_t i = r->line;
    for (; i < len && at[i] == '\r'; i += 2) {
        r->line = (uint32_t)i;
        if (i + 1 == len)
            return SR_PARSE_MORE;
        if (at[i + 1] != '\n')
            return bad(r, bare_cr);
        if (++r->blank > BLANK_MAX)
            return bad(r, "there are more than 16 empty lines before the request line");
    }
    r->head_start = r->line = r->scanned = (uint32_t)i;
    if (i >= len)
        return SR_PARSE_MORE;
    /* TLS sent to a plain port ends here: no LF may ever come */
    if (!sr_char_is((unsigned char)at[i], SR_CHAR_TOKEN))
        return bad(r, "the request line does not begin with a method");
    if (r->blank > 1)
        return bad(r, "there is more than one empty line before the request line");
    r->phase = PHASE_LINE;
    return SR_PARSE_DONE;
}

/* " HTTP/" DIGIT "." DIGIT, nine bytes. */
static bool version(sr_request *r, const char *v)
{
    if (memcmp(v, " HTTP/", 6) != 0 || !sr_char_is((unsigned char)v[6], SR_CHAR_DIGIT) || v[7] != '.' ||
        !sr_char_is((unsigned char)v[8], SR_CHAR_DIGIT))
        return sr_request_refuse(r, 400, "the request line does not end with an HTTP version");
    if (v[6] != '1')
        return sr_request_refuse(r, 505, "the HTTP version is not 1.x");
    r->version = v[8] == '0' ? SR_HTTP_1_0 : SR_HTTP_1_1;
    return true;
}

/* Parses method SP target SP version in at[s, e). */
static bool request_line(sr_request *r, const char *at, size_t s, size_t e)
{
    size_t i = s;
    while (sr_char_is((unsigned char)at[i], SR_CHAR_TOKEN)) /* stops at the CR at e at the latest */
        i++;
    if (at[i] != ' ' || i - s > SR_METHOD_MAX)
        return sr_request_refuse(r, 400, "the method is not a token followed by one space");
    if (e - i < sizeof " x HTTP/1.1" - 1)
        return sr_request_refuse(r, 400, "the request target or the HTTP version is missing");
    if (!version(r, at + e - 9))
        return false;
    r->method = (sr_span){(uint32_t)s, (uint32_t)(i - s)};
    r->method_id = (uint8_t)sr_method_of(sr_span_in(at, r->method));
    r->is_head = r->method_id == SR_METHOD_HEAD;
    r->target = (sr_span){(uint32_t)i + 1, (uint32_t)(e - 9 - (i + 1))};
    const char *why = sr_target_parse(r, at);
    return !why || sr_request_refuse(r, 400, why);
}

/* Refuses a field name whose first bad byte is at i. */
static bool bad_name(sr_request *r, const char *at, size_t s, size_t i, size_t e)
{
    bool space = at[i] == ' ' || at[i] == '\t';
    if (i == e)
        return sr_request_refuse(r, 400, "a header line has no colon");
    if (i == s)
        return sr_request_refuse(r, 400,
                                 space          ? "a header line begins with white space (obsolete folding)"
                                 : at[i] == ':' ? "a header name is empty"
                                                : "a header name contains a byte that is not allowed");
    return sr_request_refuse(r, 400,
                             space ? "a header name contains white space"
                                   : "a header name contains a byte that is not allowed");
}

/* Parses name ":" OWS value OWS in at[s, e). */
static bool field_line(sr_request *r, const sr_request_limits *limits, const char *at, size_t s, size_t e)
{
    size_t i = s;
    bool underscore = false;
    for (; sr_char_is((unsigned char)at[i], SR_CHAR_TOKEN); i++) /* stops at the CR at e at the latest */
        underscore |= at[i] == '_';
    if (at[i] != ':' || i == s)
        return bad_name(r, at, s, i, e);
    if (i - s > SR_FIELD_NAME_MAX)
        return sr_request_refuse(r, 431, "a header name is longer than 1024 bytes");
    sr_bytes value = sr_trim(sr_bytes_of(at + i + 1, e - i - 1));
    if (!sr_is_value(value))
        return sr_request_refuse(r, 400, "a header value contains a control character");
    r->lines++;
    sr_field f = {{(uint32_t)s, (uint32_t)(i - s)}, {(uint32_t)(value.at - at), (uint32_t)value.len}};
    sr_field_use use = underscore ? sr_framing_underscored(r, limits, at, &f) : sr_framing_field(r, at, &f);
    if (use == SR_FIELD_KEEP)
        r->fields[r->n_fields++] = f;
    return use != SR_FIELD_REFUSED;
}

/* Parses one complete line, with its LF at lf. DONE: the head is complete; MORE: continue. */
static sr_parse whole_line(sr_request *r, const sr_request_limits *limits, const char *at, size_t lf)
{
    size_t s = r->line;
    if (lf == s || at[lf - 1] != '\r') {
        sr_request_refuse(r, 400, "a line ends with LF without CR");
        return refused(r, limits, at, lf);
    }
    size_t e = lf - 1;
    if (r->phase == PHASE_LINE) {
        if (e - s > line_max(limits) || !request_line(r, at, s, e))
            return refused(r, limits, at, lf);
        r->phase = PHASE_FIELDS;
    } else if (e == s) {
        r->head_len = (uint32_t)lf + 1;
        return sr_framing_decide(r, at) ? SR_PARSE_DONE : SR_PARSE_BAD;
    } else if (r->lines >= fields_max(limits) || !field_line(r, limits, at, s, e)) {
        return refused(r, limits, at, lf);
    }
    r->line = r->scanned = (uint32_t)lf + 1;
    return SR_PARSE_MORE;
}

sr_parse sr_request_feed(sr_request *r, const sr_request_limits *limits, const char *at, size_t len)
{
    if (r->phase == PHASE_START) {
        sr_parse p = start(r, at, len);
        if (p != SR_PARSE_DONE)
            return p;
    }
    for (;;) {
        /* An LF beyond the limit does not count: the line is refused as too long. */
        size_t end = r->phase == PHASE_LINE ? r->line + line_max(limits) + 2 : head_end(r, limits);
        end = min(end, len);
        const char *lf = r->scanned < end ? memchr(at + r->scanned, '\n', end - r->scanned) : NULL;
        if (!lf)
            return partial(r, limits, at, end);
        sr_parse p = whole_line(r, limits, at, (size_t)(lf - at));
        if (p != SR_PARSE_MORE)
            return p;
    }
}
