#include "framing.h"

#include "../http/method.h"
#include "../http/target.h"
#include "../http/token.h"

/* The host of an absolute-form target wins: the value of Host is checked, then replaced (RFC 9112 3.2.2). */
static bool host(sr_request *r, const char *at, sr_span *value)
{
    if (r->seen & SR_SEEN_HOST)
        return sr_request_refuse(r, 400, "there is more than one Host field");
    r->seen |= SR_SEEN_HOST;
    sr_authority ignored;
    if (!sr_authority_parse(sr_span_in(at, *value), &ignored))
        return sr_request_refuse(r, 400, "Host is not a host with an optional port");
    if (r->form == SR_FORM_ABSOLUTE)
        *value = r->host;
    else
        r->host = *value;
    return true;
}

/*
 * 1*DIGIT that fits 63 bits. What other parsers could read as octal, signed or a list is refused (RFC 9112
 * 6.3).
 */
static bool content_length(sr_request *r, sr_bytes value)
{
    if (r->seen & SR_SEEN_LENGTH)
        return sr_request_refuse(r, 400, "there is more than one Content-Length field");
    r->seen |= SR_SEEN_LENGTH;
    if (!value.len || value.len > 19 || !sr_all_are(value, SR_CHAR_DIGIT) ||
        (value.len > 1 && *value.at == '0'))
        return sr_request_refuse(r, 400, "Content-Length is not a number without leading zeros, below 2^63");
    uint64_t n = 0;
    for (size_t i = 0; i < value.len; i++) /* 19 digits always fit 64 bits */
        n = n * 10 + (uint64_t)(value.at[i] - '0');
    if (n > INT64_MAX)
        return sr_request_refuse(r, 400, "Content-Length is not a number without leading zeros, below 2^63");
    r->content_length = n;
    return true;
}

static bool transfer_encoding(sr_request *r, sr_bytes list)
{
    if (r->seen & SR_SEEN_CODING)
        return sr_request_refuse(r, 400, "there is more than one Transfer-Encoding field");
    r->seen |= SR_SEEN_CODING;
    unsigned codings = 0, chunked = 0;
    bool last_is_chunked = false;
    sr_bytes coding;
    while (sr_list_next(&list, &coding)) {
        if (!sr_is_token(coding)) /* this refuses parameters and quotes too: no registered coding has any */
            return sr_request_refuse(r, 400, "Transfer-Encoding is not a list of codings");
        last_is_chunked = sr_bytes_equal_nocase(coding, SR_BYTES("chunked"));
        chunked += last_is_chunked;
        codings++;
    }
    if (chunked > 1 || (chunked && !last_is_chunked))
        return sr_request_refuse(r, 400, "chunked is not the last transfer coding, or is given twice");
    if (codings != chunked)
        r->seen |= SR_SEEN_UNKNOWN_CODING;
    return true;
}

static void connection(sr_request *r, sr_bytes list)
{
    sr_bytes option;
    /* sr_token_is serves for values too: only CR would fold to '-', and a value has none */
    if (list.len == 10 && sr_token_is(list.at, "keep-alive", 10)) {
        r->seen |= SR_SEEN_KEEP_ALIVE;
        return;
    }
    while (sr_list_next(&list, &option)) {
        if (sr_bytes_equal_nocase(option, SR_BYTES("keep-alive")))
            r->seen |= SR_SEEN_KEEP_ALIVE;
        else if (sr_bytes_equal_nocase(option, SR_BYTES("close")))
            r->seen |= SR_SEEN_CLOSE;
        else if (sr_bytes_equal_nocase(option, SR_BYTES("upgrade")))
            r->seen |= SR_SEEN_UPGRADE_OPTION;
    }
}

/* Expect is a list (RFC 9110 10.1.1), and may name the same expectation twice. */
static void expect(sr_request *r, sr_bytes list)
{
    sr_bytes expectation;
    while (sr_list_next(&list, &expectation)) {
        if (!expectation.len)
            continue;
        r->seen |= SR_SEEN_EXPECT;
        if (!sr_bytes_equal_nocase(expectation, SR_BYTES("100-continue")))
            r->seen |= SR_SEEN_BAD_EXPECT;
    }
}

static bool content_type(sr_request *r, sr_span value)
{
    if (r->seen & SR_SEEN_TYPE)
        return sr_request_refuse(r, 400, "there is more than one Content-Type field");
    r->seen |= SR_SEEN_TYPE;
    r->content_type = value;
    return true;
}

static sr_field_use keep_if(bool ok)
{
    return ok ? SR_FIELD_KEEP : SR_FIELD_REFUSED;
}

sr_field_use sr_framing_field(sr_request *r, const char *at, sr_field *field)
{
    const char *name = at + field->name.at;
    sr_bytes value = sr_span_in(at, field->value);
    switch (field->name.len) {
    case 3:
        r->proxied |= sr_token_is(name, "via", 3);
        return SR_FIELD_KEEP;
    case 4:
        return sr_token_is(name, "host", 4) ? keep_if(host(r, at, &field->value)) : SR_FIELD_KEEP;
    /* in %env it would be HTTP_PROXY, which libraries take for the proxy to use (httpoxy, CVE-2016-5385) */
    case 5:
        return sr_token_is(name, "proxy", 5) ? SR_FIELD_DROP : SR_FIELD_KEEP;
    case 6:
        if (sr_token_is(name, "expect", 6))
            expect(r, value);
        return SR_FIELD_KEEP;
    case 7:
        if (sr_token_is(name, "upgrade", 7))
            r->seen |= SR_SEEN_UPGRADE | (sr_list_has(value, SR_BYTES("websocket")) ? SR_SEEN_WEBSOCKET : 0u);
        return SR_FIELD_KEEP;
    case 9:
        r->proxied |= sr_token_is(name, "forwarded", 9) || sr_token_is(name, "x-real-ip", 9);
        return SR_FIELD_KEEP;
    case 10:
        if (sr_token_is(name, "connection", 10))
            connection(r, value);
        return SR_FIELD_KEEP;
    case 12:
        return sr_token_is(name, "content-type", 12) ? keep_if(content_type(r, field->value)) : SR_FIELD_KEEP;
    case 14:
        return sr_token_is(name, "content-length", 14) ? keep_if(content_length(r, value)) : SR_FIELD_KEEP;
    case 15:
        r->proxied |= sr_token_is(name, "x-forwarded-for", 15);
        return SR_FIELD_KEEP;
    case 17:
        r->proxied |= sr_token_is(name, "x-forwarded-proto", 17);
        return sr_token_is(name, "transfer-encoding", 17) ? keep_if(transfer_encoding(r, value))
                                                          : SR_FIELD_KEEP;
    case 21:
        if (sr_token_is(name, "sec-websocket-version", 21) && !sr_bytes_equal(value, SR_BYTES("13")))
            r->seen |= SR_SEEN_BAD_WEBSOCKET;
        return SR_FIELD_KEEP;
    default:
        return SR_FIELD_KEEP;
    }
}

/* --- names with '_' --- */

/* Folds case and '_' to '-': names that fold alike are easily confused, though %env may hold both. */
static inline char folded(char c)
{
    return c == '_' ? '-' : (char)sr_lower((unsigned char)c);
}

static bool folds_alike(sr_bytes a, sr_bytes b)
{
    size_t i = 0;
    while (i < a.len && folded(a.at[i]) == folded(b.at[i]))
        i++;
    return i == a.len;
}

/* `start` is in lower case, with dashes. */
static bool folds_to(sr_bytes name, sr_bytes start)
{
    return name.len >= start.len && folds_alike(sr_bytes_of(name.at, start.len), start);
}

sr_field_use sr_framing_underscored(sr_request *r, const sr_request_limits *limits, const char *at,
                                    const sr_field *field)
{
    /*
     * Proxies set and delete these fields under the names with dashes only. And Content_Type would become the
     * Content-Type of Plack::Request.
     */
    static const sr_bytes framing[] = {{"content-length", 14}, {"transfer-encoding", 17}},
                          others[] = {{"content-type", 12}, {"x-real-ip", 9}};
    sr_bytes name = sr_span_in(at, field->name);
    for (size_t i = 0; i < 2; i++) {
        if (name.len == framing[i].len && folds_to(name, framing[i])) {
            sr_request_refuse(r, 400, "Content_Length or Transfer_Encoding is spelled with '_'");
            return SR_FIELD_REFUSED;
        }
        if (name.len == others[i].len && folds_to(name, others[i]))
            return SR_FIELD_DROP;
    }
    if (!limits->underscores || folds_to(name, SR_BYTES("x-forwarded-")))
        return SR_FIELD_DROP;
    r->seen |= SR_SEEN_UNDERSCORE;
    return SR_FIELD_KEEP;
}

/*
 * Whether these are two spellings, with '_' and '-', of one key of %env. A difference in case does not count.
 */
static bool rivals(sr_bytes a, sr_bytes b)
{
    return a.len == b.len && !sr_bytes_equal_nocase(a, b) && folds_alike(a, b);
}

/*
 * Of several spellings, the one with dashes is kept, as proxies know it. If all have a '_', all are dropped,
 * since nobody can tell which of them a proxy has written. They are never joined.
 */
__attribute__((noinline)) static void drop_rivals(sr_request *r, const char *at)
{
    bool drop[SR_REQUEST_FIELDS_MAX] = {false};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->n_fields; i++) {
        sr_bytes name = sr_span_in(at, r->fields[i].name);
        if (!memchr(name.at, '_', name.len))
            continue;
        for (uint32_t j = 0; j < r->n_fields && !drop[i]; j++)
            drop[i] = rivals(name, sr_span_in(at, r->fields[j].name));
    }
    for (uint32_t i = 0; i < r->n_fields; i++)
        if (!drop[i])
            r->fields[kept++] = r->fields[i];
    r->n_fields = kept;
}

/* Refusals that depend on several fields; RFC 9112 6.1, 6.3. */
static bool consistent(sr_request *r)
{
    if (r->version != SR_HTTP_1_0 && !(r->seen & SR_SEEN_HOST))
        return sr_request_refuse(r, 400, "the request has no Host field");
    if (r->seen & SR_SEEN_CODING) {
        if (r->version == SR_HTTP_1_0)
            return sr_request_refuse(r, 400, "an HTTP/1.0 request has a Transfer-Encoding field");
        if (r->seen & SR_SEEN_LENGTH)
            return sr_request_refuse(r, 400, "the request has both Transfer-Encoding and Content-Length");
        if (r->seen & SR_SEEN_UNKNOWN_CODING)
            return sr_request_refuse(r, 501, "the request has a transfer coding other than chunked");
    }
    if (r->method_id == SR_METHOD_TRACE || r->method_id == SR_METHOD_CONNECT)
        return sr_request_refuse(r, 501, "CONNECT and TRACE are not supported");
    return true;
}

bool sr_framing_decide(sr_request *r, const char *at)
{
    if (!consistent(r))
        return false;
    if (r->seen & SR_SEEN_UNDERSCORE)
        drop_rivals(r, at);
    r->host_added = r->host.len && !(r->seen & SR_SEEN_HOST);
    if (r->seen & SR_SEEN_CODING)
        r->framing = SR_BODY_CHUNKED;
    else if (r->seen & SR_SEEN_LENGTH)
        r->framing = SR_BODY_LENGTH;
    r->keep_alive =
        !(r->seen & SR_SEEN_CLOSE) && (r->version != SR_HTTP_1_0 || (r->seen & SR_SEEN_KEEP_ALIVE));
    if (r->version == SR_HTTP_1_0) /* HTTP/1.0 has no expectations or upgrades (RFC 9110 7.8, 10.1.1) */
        return true;

    const uint32_t upgrade = SR_SEEN_UPGRADE_OPTION | SR_SEEN_UPGRADE;
    const uint32_t bad_websocket = upgrade | SR_SEEN_WEBSOCKET | SR_SEEN_BAD_WEBSOCKET;
    if (r->seen & SR_SEEN_BAD_EXPECT)
        return sr_request_refuse(r, 417, "Expect asks for something other than 100-continue");
    /*
     * 100 (Continue) would have to be the answer, or a final status (RFC 9110 10.1.1). But there are proxies
     * that take any response to HEAD for the final one, and the one that follows for that of the next client.
     */
    if (r->is_head && (r->seen & SR_SEEN_EXPECT) && (r->framing == SR_BODY_CHUNKED || r->content_length))
        return sr_request_refuse(r, 417, "a HEAD request with content asks for 100-continue");
    if ((r->seen & bad_websocket) == bad_websocket)
        return sr_request_refuse(r, 426, "Sec-WebSocket-Version is not 13");
    r->upgrade = (r->seen & upgrade) == upgrade;
    if (r->seen & SR_SEEN_EXPECT)
        r->expect = SR_EXPECT_CONTINUE;
    return true;
}
