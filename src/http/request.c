#include "request.h"

#include "framing.h"
#include "method.h"
#include "target.h"
#include "token.h"

enum { BLANK_MAX = 16 }; /* empty lines before a request line */

enum phase { PHASE_START, PHASE_LINE, PHASE_FIELDS };

static const char bare_cr[] = "CR without LF";

void sr_request_init(sr_request *r)
{
    memset(r, 0, offsetof(sr_request, fields));
}

static inline size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The longest request line: one that would not fit the head is too long as well. */
static size_t line_max(const sr_request_limits *limits)
{
    return min(min(limits->line, limits->head), SR_HEAD_MAX);
}

/* Where the head must have ended. */
static size_t head_end(const sr_request *r, const sr_request_limits *limits)
{
    return r->head_start + min(limits->head, SR_HEAD_MAX);
}

static size_t fields_max(const sr_request_limits *limits)
{
    return min(limits->fields, SR_REQUEST_FIELDS_MAX);
}

/* A CR in at[from, end). Where this is asked, the byte after any such CR is there and is no LF. */
static bool has_cr(const char *at, size_t from, size_t end)
{
    return from < end && memchr(at + from, '\r', end - from) != NULL;
}

/* Neither SP nor CR among the first bytes of a line: the method is longer than any. */
static bool method_too_long(const char *at)
{
    for (unsigned i = 0; i <= SR_METHOD_MAX; i++)
        if (at[i] == ' ' || at[i] == '\r')
            return false;
    return true;
}

/*
 * What a request line shows before its LF is there: at[r->line, end) are its bytes, without a CR at their end
 * and at most two past the limit. What is before `from` was looked at. Judged in the order of the offset
 * where it shows, so that every split agrees.
 */
static bool early_line(sr_request *r, const sr_request_limits *limits, const char *at, size_t from,
                       size_t end)
{
    size_t start = r->line, max = line_max(limits);
    if (end - start > SR_METHOD_MAX && max >= SR_METHOD_MAX && from <= start + SR_METHOD_MAX &&
        method_too_long(at + start))
        return sr_request_refuse(r, 400, "method too long");
    if (has_cr(at, from, end))
        return sr_request_refuse(r, 400, bare_cr);
    if (end - start > max)
        return sr_request_refuse(r, 414, "request line too long");
    return true;
}

/* The same for a field line, none of whose bytes is past the limit. `lf`: where the LF is or could be next.
 */
static bool early_field(sr_request *r, const sr_request_limits *limits, const char *at, size_t from,
                        size_t end, size_t lf)
{
    size_t start = r->line, stop = head_end(r, limits);
    if (lf > start && at[start] != '\r' && r->lines >= fields_max(limits))
        return sr_request_refuse(r, 431, "too many fields");
    if (has_cr(at, from, end))
        return sr_request_refuse(r, 400, bare_cr);
    if (lf >= stop)
        return sr_request_refuse(r, 431, "head too large");
    return true;
}

static bool early(sr_request *r, const sr_request_limits *limits, const char *at, size_t from, size_t lf)
{
    size_t end = lf > r->line && at[lf - 1] == '\r' ? lf - 1 : lf;
    return r->phase == PHASE_LINE ? early_line(r, limits, at, from, end)
                                  : early_field(r, limits, at, from, end, lf);
}

/* The line up to the LF was refused: had the same bytes come one by one, would it have been for this? */
static sr_parse refused(sr_request *r, const sr_request_limits *limits, const char *at, size_t lf)
{
    early(r, limits, at, r->line, lf);
    return SR_PARSE_BAD;
}

/* No LF up to `end`: refuse what can be refused, remember how far we looked. */
static sr_parse partial(sr_request *r, const sr_request_limits *limits, const char *at, size_t end)
{
    size_t from = r->scanned > r->line ? r->scanned - 1 : r->line; /* the last byte may have been a CR */
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
 * Empty lines, then the first byte of the request line. One empty line is skipped: some clients send CRLF
 * after a body (RFC 9112 2.2). More are no client's but an attack's, and worth an answer once a request
 * comes.
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
            return bad(r, "too many empty lines");
    }
    r->head_start = r->line = r->scanned = (uint32_t)i;
    if (i >= len)
        return SR_PARSE_MORE;
    if (!sr_char_is((unsigned char)at[i], SR_CHAR_TOKEN)) /* TLS to a plain port ends here, without an LF */
        return bad(r, "no method");
    if (r->blank > 1)
        return bad(r, "empty lines before the request");
    r->phase = PHASE_LINE;
    return SR_PARSE_DONE;
}

/* " HTTP/" DIGIT "." DIGIT, nine bytes. */
static bool version(sr_request *r, const char *v)
{
    if (memcmp(v, " HTTP/", 6) != 0 || !sr_char_is((unsigned char)v[6], SR_CHAR_DIGIT) || v[7] != '.' ||
        !sr_char_is((unsigned char)v[8], SR_CHAR_DIGIT))
        return sr_request_refuse(r, 400, "no valid HTTP version");
    if (v[6] != '1')
        return sr_request_refuse(r, 505, "HTTP version not supported");
    r->minor = v[8] != '0';
    return true;
}

/* method SP target SP version in at[s, e) */
static bool request_line(sr_request *r, const char *at, size_t s, size_t e)
{
    size_t i = s;
    while (sr_char_is((unsigned char)at[i], SR_CHAR_TOKEN)) /* the CR at e is none */
        i++;
    if (at[i] != ' ' || i - s > SR_METHOD_MAX)
        return sr_request_refuse(r, 400, "no method and one space");
    if (e - i < sizeof " x HTTP/1.1" - 1)
        return sr_request_refuse(r, 400, "no request target or no HTTP version");
    if (!version(r, at + e - 9))
        return false;
    r->method = (sr_span){(uint32_t)s, (uint32_t)(i - s)};
    r->method_id = (uint8_t)sr_method_of(sr_span_in(at, r->method));
    r->is_head = r->method_id == SR_METHOD_HEAD;
    r->target = (sr_span){(uint32_t)i + 1, (uint32_t)(e - 9 - (i + 1))};
    const char *why = sr_target_parse(r, at);
    return !why || sr_request_refuse(r, 400, why);
}

/* What is wrong with a field name that ends at i, not with a colon. */
static bool bad_name(sr_request *r, const char *at, size_t s, size_t i, size_t e)
{
    bool space = at[i] == ' ' || at[i] == '\t';
    if (i == e)
        return sr_request_refuse(r, 400, "field line without a colon");
    if (i == s)
        return sr_request_refuse(r, 400,
                                 space          ? "folded field line"
                                 : at[i] == ':' ? "empty field name"
                                                : "byte not allowed in a field name");
    return sr_request_refuse(r, 400,
                             space ? "white space in a field name" : "byte not allowed in a field name");
}

/* name ":" OWS value OWS in at[s, e) */
static bool field_line(sr_request *r, const sr_request_limits *limits, const char *at, size_t s, size_t e)
{
    size_t i = s;
    bool underscore = false;
    for (; sr_char_is((unsigned char)at[i], SR_CHAR_TOKEN); i++) /* the CR at e is none */
        underscore |= at[i] == '_';
    if (at[i] != ':' || i == s)
        return bad_name(r, at, s, i, e);
    if (i - s > SR_FIELD_NAME_MAX)
        return sr_request_refuse(r, 431, "field name too long");
    sr_bytes value = sr_trim(sr_bytes_of(at + i + 1, e - i - 1));
    if (!sr_is_value(value))
        return sr_request_refuse(r, 400, "control byte in a field value");
    r->lines++;
    sr_field f = {{(uint32_t)s, (uint32_t)(i - s)}, {(uint32_t)(value.at - at), (uint32_t)value.len}};
    sr_field_use use = underscore ? sr_framing_underscored(r, limits, at, &f) : sr_framing_field(r, at, &f);
    if (use == SR_FIELD_KEEP)
        r->fields[r->n_fields++] = f;
    return use != SR_FIELD_REFUSED;
}

/* One whole line, its LF at lf. DONE: the head is complete; MORE: go on. */
static sr_parse whole_line(sr_request *r, const sr_request_limits *limits, const char *at, size_t lf)
{
    size_t s = r->line;
    if (lf == s || at[lf - 1] != '\r') {
        sr_request_refuse(r, 400, "LF without CR");
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
        /* An LF beyond the limit is as good as none: the line is refused for its length. */
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
