#include "target.h"

#include "method.h"
#include "token.h"

/* The length of a reg-name or IPv4 address at the start of s, or 0. */
static size_t name_length(sr_bytes s)
{
    size_t i = 0;
    while (i < s.len && sr_char_is((unsigned char)s.at[i], SR_CHAR_HOST)) {
        if (s.at[i] == '%') { /* pct-encoded, RFC 3986 3.2.2 */
            if (s.len - i < 3 || !sr_all_are(sr_bytes_of(s.at + i + 1, 2), SR_CHAR_HEX))
                return 0;
            i += 2;
        }
        i++;
    }
    return i;
}

/*
 * The length of "[" IPv6address "]" at the start of s, checked for its bytes and two colons. IPvFuture is
 * refused: nobody uses it.
 */
static size_t literal_length(sr_bytes s)
{
    size_t i = 1, colons = 0;
    for (; i < s.len && s.at[i] != ']'; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (!sr_char_is(c, SR_CHAR_HEX) && c != ':' && c != '.')
            return 0;
        colons += c == ':';
    }
    return i < s.len && colons >= 2 ? i + 1 : 0;
}

bool sr_authority_parse(sr_bytes s, sr_authority *out)
{
    size_t i = s.len && *s.at == '[' ? literal_length(s) : name_length(s);
    *out = (sr_authority){i, -1};
    if (i == 0)
        return false;
    if (i == s.len)
        return true;
    if (s.at[i] != ':' || s.len - ++i > 5)
        return false;
    int port = 0;
    for (size_t d = i; d < s.len; d++) {
        if (!sr_char_is((unsigned char)s.at[d], SR_CHAR_DIGIT))
            return false;
        port = port * 10 + (s.at[d] - '0');
    }
    if (i < s.len)
        out->port = port;
    return port <= 65535;
}

/*
 * Requires "%" and two hex digits. NUL, CR and LF are refused: they end strings and lines wherever the path
 * is passed on.
 */
static const char *judge_escape(const char *at, size_t i, size_t end)
{
    if (end - i < 3)
        return "'%' in the path is not followed by two hexadecimal digits";
    int high = sr_hex_value((unsigned char)at[i + 1]), low = sr_hex_value((unsigned char)at[i + 2]);
    if (high < 0 || low < 0)
        return "'%' in the path is not followed by two hexadecimal digits";
    if (high == 0 && (low == 0 || low == 0xa || low == 0xd))
        return "the path contains an encoded NUL, CR or LF";
    return NULL;
}

/* Parses [path] ["?" query] in at[i, end). */
static const char *path_and_query(sr_request *r, const char *at, size_t i, size_t end)
{
    size_t start = i;
    for (; i < end; i++) {
        unsigned char c = (unsigned char)at[i];
        if (sr_char_is(c, SR_CHAR_PATH))
            continue;
        if (c == '?')
            break;
        if (c != '%')
            return c == '\\' ? "the path contains a backslash"
                             : "the request target contains a byte that is not allowed";
        const char *why = judge_escape(at, i, end);
        if (why)
            return why;
        i += 2;
    }
    r->path = (sr_span){(uint32_t)start, (uint32_t)(i - start)};
    if (i == end)
        return NULL;
    r->has_query = true;
    r->query = (sr_span){(uint32_t)i + 1, (uint32_t)(end - i - 1)};
    return sr_all_are(sr_span_in(at, r->query), SR_CHAR_TARGET)
               ? NULL
               : "the request target contains a byte that is not allowed";
}

static const char *authority_form(sr_request *r, sr_bytes target)
{
    sr_authority a;
    r->form = SR_FORM_AUTHORITY;
    if (!sr_authority_parse(target, &a) || a.port < 0) /* CONNECT requires a port (RFC 9110 9.3.6) */
        return "the target of CONNECT is not HOST:PORT";
    return NULL;
}

static bool has_scheme(sr_bytes target, sr_bytes scheme)
{
    return target.len >= scheme.len && sr_bytes_equal_nocase(sr_bytes_of(target.at, scheme.len), scheme);
}

/* The scheme does not set psgi.url_scheme: only the connection and trusted proxies do. */
static const char *absolute_form(sr_request *r, const char *at, sr_bytes target)
{
    sr_bytes http = SR_BYTES("http://"), https = SR_BYTES("https://");
    if (!has_scheme(target, http) && !has_scheme(target, https))
        return "the request target is neither a path nor an http or https URL";
    r->form = SR_FORM_ABSOLUTE;
    size_t i = has_scheme(target, http) ? http.len : https.len, end = target.len, start = i;
    while (i < end && target.at[i] != '/' && target.at[i] != '?')
        i++;
    sr_authority a;
    if (!sr_authority_parse(sr_bytes_of(target.at + start, i - start), &a))
        return "the URL in the request target has no valid host";
    r->host = (sr_span){r->target.at + (uint32_t)start, (uint32_t)(i - start)};
    return path_and_query(r, at, r->target.at + i, r->target.at + end);
}

const char *sr_target_parse(sr_request *r, const char *at)
{
    sr_bytes target = sr_span_in(at, r->target);
    if (r->method_id == SR_METHOD_CONNECT)
        return authority_form(r, target);
    if (*target.at == '/') {
        r->form = SR_FORM_ORIGIN;
        return path_and_query(r, at, r->target.at, (size_t)r->target.at + r->target.len);
    }
    if (target.len == 1 && *target.at == '*') {
        r->form = SR_FORM_ASTERISK;
        r->path = r->target;
        return r->method_id == SR_METHOD_OPTIONS ? NULL : "the request target '*' is only valid with OPTIONS";
    }
    return absolute_form(r, at, target);
}

size_t sr_path_decode(char *out, sr_bytes path)
{
    char *to = out;
    for (size_t i = 0; i < path.len; i++) {
        char c = path.at[i];
        if (c == '%') {
            c = (char)(sr_hex_value((unsigned char)path.at[i + 1]) << 4 |
                       sr_hex_value((unsigned char)path.at[i + 2]));
            i += 2;
        }
        *to++ = c;
    }
    return (size_t)(to - out);
}
