#include "forwarded.h"

#include "target.h"
#include "token.h"

/* --- reading a list from its end, across all fields of a name --- */

typedef struct list {
    const sr_request *request;
    const char *base;
    sr_bytes name;
    bool quotes;     /* commas inside quoted strings do not separate */
    uint32_t fields; /* fields still to be searched, from the first one on */
    sr_bytes rest;   /* what is left of the current field; at is NULL when there is none */
} list;

static list list_of(const sr_request *r, const char *base, sr_bytes name, bool quotes)
{
    return (list){.request = r, .base = base, .name = name, .quotes = quotes, .fields = r->n_fields};
}

/*
 * Finds the start of the quoted string that ends just before `end`. Returns `end` if there is no opening
 * quote.
 */
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
 * Finds the start of the last element of s. It reads from the right, since a proxy has written that end: a
 * quote that a client has left open must not swallow it. A closing quote without an opening one makes all
 * that is left a single element, which is then invalid.
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

/* Returns the next element to the left, skipping empty ones (RFC 9110 5.6.1.2). False: none is left. */
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

/* Parses 0 to 65535; -1: s is no port. An obfuscated port (RFC 7239 6.3) counts as unknown, 0. */
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

/*
 * Parses "192.0.2.1", "192.0.2.1:80", "[2001:db8::1]" and "[2001:db8::1]:80"; with `bare` also "2001:db8::1".
 */
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

/* Asks the judge about an address. Any valid address becomes the client, until the next hop replaces it. */
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

static sr_scheme scheme_of(sr_bytes s)
{
    if (sr_bytes_equal_nocase(s, SR_BYTES("https")))
        return SR_SCHEME_HTTPS;
    return sr_bytes_equal_nocase(s, SR_BYTES("http")) ? SR_SCHEME_HTTP : SR_SCHEME_UNSAID;
}

const char *sr_scheme_name(sr_scheme scheme)
{
    return scheme == SR_SCHEME_HTTPS ? "https" : scheme == SR_SCHEME_HTTP ? "http" : NULL;
}

static sr_bytes host_of(sr_bytes s)
{
    sr_authority a;
    /* port 0 is no port that anybody listens on */
    return sr_authority_parse(s, &a) && a.port ? s : sr_bytes_of(NULL, 0);
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
 * Takes the value at the start of s: a token, or a quoted string without its quotes. Moves s past it. Escapes
 * are left as they are: no value that is used here needs one, so a value with an escape will not be
 * recognized.
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

/*
 * [ pair ] *( ";" [ pair ] ), with white space allowed around a pair; for, proto and host at most once each.
 */
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

/* Takes scheme and host from the leftmost trusted proxy, which saw what the client has sent. */
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

/*
 * Returns the element at that place from the right, or the first if there are fewer. at is NULL if there is
 * none.
 */
static sr_bytes counted(const sr_request *r, const char *base, sr_bytes name, unsigned count)
{
    list l = list_of(r, base, name, false);
    sr_bytes element = {0}, last = {0};
    while (count-- && list_previous(&l, &element))
        last = element;
    return last;
}

/*
 * Proxies append to the other three fields, or replace their value; then one value serves all hops. So the
 * value to trust is the one at the place of the address, or the first one.
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
    return f->scheme == SR_SCHEME_HTTPS ? 443 : 80;
}
