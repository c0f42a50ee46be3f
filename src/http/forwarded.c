#include "forwarded.h"

#include "target.h"
#include "token.h"

/* --- a list from its end, over all fields of a name --- */

typedef struct list {
    const sr_request *request;
    const char *base;
    sr_bytes name;
    bool quotes;     /* commas inside quoted strings do not separate */
    uint32_t fields; /* still to be looked at: the first ones */
    sr_bytes rest;   /* of the field at hand; at NULL: none */
} list;

static list list_of(const sr_request *r, const char *base, sr_bytes name, bool quotes)
{
    return (list){.request = r, .base = base, .name = name, .quotes = quotes, .fields = r->n_fields};
}

/* Where the quoted string starts that ends in front of `end`; `end` itself when it starts nowhere. */
static size_t quote_start(sr_bytes s, size_t end)
{
    for (size_t i = end - 1; i-- > 0;) {
        size_t backslashes = 0;
        while (s.at[i] == '"' && backslashes < i && s.at[i - 1 - backslashes] == '\\')
            backslashes++;
        if (s.at[i] == '"' && backslashes % 2 == 0)
            return i;
        i -= backslashes;
    }
    return end;
}

/*
 * Where the last element of s starts. From the right, since that end is the one a proxy has written: an open quote
 * that a client has sent must not swallow it. A quote that starts nowhere makes one element of all that is left, which
 * then is no valid one.
 */
static size_t last_start(const list *l, sr_bytes s)
{
    size_t i = s.len;
    while (i > 0 && s.at[i - 1] != ',') {
        size_t start = l->quotes && s.at[i - 1] == '"' ? quote_start(s, i) : i - 1;
        if (start == i)
            return 0;
        i = start;
    }
    return i;
}

/* The next to the left; empty ones are passed over (RFC 9110 5.6.1.2). False: there is none any more. */
static bool list_previous(list *l, sr_bytes *element)
{
    for (;;) {
        while (!l->rest.at && l->fields) {
            const sr_field *f = &l->request->fields[--l->fields];
            if (sr_bytes_equal_nocase(sr_span_in(l->base, f->name), l->name))
                l->rest = sr_span_in(l->base, f->value);
        }
        if (!l->rest.at)
            return false;
        size_t start = last_start(l, l->rest);
        *element = sr_trim(sr_bytes_of(l->rest.at + start, l->rest.len - start));
        l->rest = start ? sr_bytes_of(l->rest.at, start - 1) : sr_bytes_of(NULL, 0);
        if (element->len)
            return true;
    }
}

/* --- elements --- */

/* 0 to 65535; -1: it is none. A port that hides behind a name (RFC 7239 6.3) is not said. */
static int node_port(sr_bytes s)
{
    int n = 0;
    if (s.len > 1 && *s.at == '_')
        return 0;
    if (!s.len || s.len > 5 || !sr_all_are(s, SR_CHAR_DIGIT))
        return -1;
    for (size_t i = 0; i < s.len; i++)
        n = n * 10 + (s.at[i] - '0');
    return n <= 65535 ? n : -1;
}

/* "192.0.2.1", "192.0.2.1:80", "[2001:db8::1]", "[2001:db8::1]:80"; where `bare`, "2001:db8::1" as well. */
static bool node_parse(sr_bytes s, bool bare, sr_bytes *address, uint16_t *port)
{
    *port = 0;
    *address = s;
    if (!s.len)
        return false;
    bool bracket = *s.at == '[';
    const char *end = memchr(s.at, bracket ? ']' : ':', s.len), *stop = s.at + s.len;
    if (bracket) {
        if (!end)
            return false;
        *address = sr_bytes_of(s.at + 1, (size_t)(end++ - s.at) - 1);
        if (!address->len || !memchr(address->at, ':', address->len))
            return false;
    } else if (end && memchr(end + 1, ':', (size_t)(stop - end) - 1)) {
        return bare;
    } else if (end) {
        address->len = (size_t)(end - s.at);
    }
    if (!end || end == stop)
        return true;
    int n = *end == ':' ? node_port(sr_bytes_of(end + 1, (size_t)(stop - end) - 1)) : -1;
    *port = (uint16_t)n;
    return n >= 0;
}

/* Judges an address. If it is one, it is the client as far as is known. */
static sr_hop step(sr_forwarded *out, sr_bytes node, bool bare, sr_hop_judge *judge, void *with)
{
    sr_bytes address;
    uint16_t port;
    sr_hop hop = node_parse(node, bare, &address, &port) ? judge(with, address) : SR_HOP_NONE;
    if (hop != SR_HOP_NONE) {
        out->client = address;
        out->port = port;
    }
    return hop;
}

static const char *scheme_of(sr_bytes s)
{
    if (sr_bytes_equal_nocase(s, SR_BYTES("https")))
        return "https";
    return sr_bytes_equal_nocase(s, SR_BYTES("http")) ? "http" : NULL;
}

static sr_bytes host_of(sr_bytes s)
{
    sr_authority a;
    return sr_authority_parse(s, &a) && a.port ? s : sr_bytes_of(NULL, 0); /* nobody listens at port 0 */
}

/* --- Forwarded, RFC 7239 4 --- */

enum { FOR, PROTO, HOST, PARAMETERS };

static int parameter(sr_bytes name)
{
    static const char *const names[PARAMETERS] = {"for", "proto", "host"};
    for (int i = 0; i < PARAMETERS; i++)
        if (sr_bytes_equal_nocase(name, sr_bytes_of(names[i], strlen(names[i]))))
            return i;
    return -1;
}

/*
 * The value at the start of s, a token or a quoted string without its quotes; s goes on after it. An escape in it is
 * not undone: nothing that is read here needs one, so it makes the value one that says nothing.
 */
static bool value_take(sr_bytes *s, sr_bytes *value)
{
    size_t i = 0, quote = s->len && *s->at == '"';
    if (quote) {
        for (i = 1; i < s->len && s->at[i] != '"'; i++)
            i += s->at[i] == '\\';
        if (i >= s->len)
            return false;
        *value = sr_bytes_of(s->at + 1, i++ - 1);
    } else {
        while (i < s->len && sr_char_is((unsigned char)s->at[i], SR_CHAR_TOKEN))
            i++;
        *value = sr_bytes_of(s->at, i);
    }
    *s = sr_bytes_of(s->at + i, s->len - i);
    return quote || i;
}

/* [ pair ] *( ";" [ pair ] ), with spaces around a pair allowed; none of the three twice. */
static bool element_parse(sr_bytes s, sr_bytes values[PARAMETERS])
{
    memset(values, 0, PARAMETERS * sizeof *values);
    for (;;) {
        sr_bytes name, value;
        s = sr_trim(s);
        if (s.len && *s.at != ';') {
            const char *equals = memchr(s.at, '=', s.len);
            if (!equals)
                return false;
            name = sr_bytes_of(s.at, (size_t)(equals - s.at));
            s = sr_bytes_of(equals + 1, s.len - name.len - 1);
            int which = parameter(name);
            if (!sr_is_token(name) || !value_take(&s, &value) || (which >= 0 && values[which].at))
                return false;
            if (which >= 0)
                values[which] = value;
            s = sr_trim(s);
        }
        if (!s.len)
            return true;
        if (*s.at != ';')
            return false;
        s = sr_bytes_of(s.at + 1, s.len - 1);
    }
}

/* Scheme and host are those that the leftmost trusted proxy has seen. */
static void read_rfc7239(sr_forwarded *out, const sr_request *r, const char *base, sr_hop_judge *judge,
                         void *with)
{
    list l = list_of(r, base, SR_BYTES("forwarded"), true);
    sr_bytes element, values[PARAMETERS];
    sr_hop hop = SR_HOP_PROXY;
    while (hop == SR_HOP_PROXY && list_previous(&l, &element) && element_parse(element, values)) {
        out->scheme = scheme_of(values[PROTO]);
        out->host = host_of(values[HOST]);
        hop = step(out, values[FOR], false, judge, with);
    }
}

/* --- X-Forwarded-* --- */

/* The element that stands as far from the right, or the first when there are not so many. at NULL: there is none. */
static sr_bytes counted(const sr_request *r, const char *base, sr_bytes name, unsigned count)
{
    list l = list_of(r, base, name, false);
    sr_bytes element = {0}, last = {0};
    while (count-- && list_previous(&l, &element))
        last = element;
    return last;
}

/*
 * The other three are lists as well where proxies add to them. Where they replace the value there is one for all. So
 * the one to believe stands where the address does, or is the first.
 */
static void read_x(sr_forwarded *out, const sr_request *r, const char *base, sr_hop_judge *judge, void *with)
{
    list l = list_of(r, base, SR_BYTES("x-forwarded-for"), false);
    sr_bytes element;
    unsigned steps = 0;
    sr_hop hop = SR_HOP_PROXY;
    for (; hop == SR_HOP_PROXY && list_previous(&l, &element); steps++)
        hop = step(out, element, true, judge, with);
    unsigned at = steps ? steps : 1;
    out->scheme = scheme_of(counted(r, base, SR_BYTES("x-forwarded-proto"), at));
    out->host = host_of(counted(r, base, SR_BYTES("x-forwarded-host"), at));
    int port = node_port(counted(r, base, SR_BYTES("x-forwarded-port"), at));
    out->server_port = (uint16_t)(port > 0 ? port : 0);
}

void sr_forwarded_read(sr_forwarded *out, const sr_request *r, const char *base, sr_forwarded_kind kind,
                       sr_hop_judge *judge, void *with)
{
    memset(out, 0, sizeof *out);
    (kind == SR_FORWARDED_RFC7239 ? read_rfc7239 : read_x)(out, r, base, judge, with);
}

uint16_t sr_forwarded_server_port(const sr_forwarded *f, sr_bytes host)
{
    sr_authority a;
    if (f->server_port)
        return f->server_port;
    if (sr_authority_parse(host, &a) && a.port > 0)
        return (uint16_t)a.port;
    return f->scheme && strcmp(f->scheme, "https") == 0 ? 443 : 80;
}
