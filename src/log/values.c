#include "values.h"

#include "../base/decimal.h"
#include "../http/traced.h"

static const sr_bytes none = {NULL, 0};

static sr_bytes all_of(const sr_buffer *b)
{
    return sr_bytes_of(b->data ? sr_buffer_at(b) : "", sr_buffer_len(b));
}

static sr_bytes number(sr_logrequest *r, uint64_t n)
{
    char digits[SR_DECIMAL_MAX];
    sr_bytes text = sr_decimal(digits + sizeof digits, n);
    sr_buffer_reset(&r->scratch);
    return sr_buffer_add_bytes(&r->scratch, text) ? all_of(&r->scratch) : none;
}

static sr_bytes span(const sr_logrequest *r, sr_span s)
{
    return sr_span_in(r->base, s);
}

/* --- the request line --- */

static sr_bytes path_of(sr_logrequest *r)
{
    sr_bytes path = span(r, r->request->path);
    if (!path.len || path.at[0] != '/')
        return SR_BYTES("/");
    if (!memchr(path.at, '%', path.len))
        return path;
    sr_buffer *b = &r->scratch;
    sr_buffer_reset(b);
    if (!sr_buffer_reserve(b, path.len))
        return none;
    b->end = sr_path_decode(b->data, path);
    return all_of(b);
}

/* Returns REQUEST_URI, after what the scratch buffer already holds. */
static bool add_uri(sr_logrequest *r)
{
    const sr_request *q = r->request;
    sr_buffer *b = &r->scratch;
    sr_bytes target = span(r, q->target), path = span(r, q->path);
    if (target.len && (target.at[0] == '/' || target.at[0] == '*'))
        return sr_buffer_add_bytes(b, target);
    if (!path.len && !q->has_query && sr_bytes_equal(span(r, q->method), SR_BYTES("OPTIONS")))
        return sr_buffer_add(b, "*", 1);
    return sr_buffer_add_bytes(b, path.len ? path : SR_BYTES("/")) &&
           (!q->has_query || (sr_buffer_add(b, "?", 1) && sr_buffer_add_bytes(b, span(r, q->query))));
}

static sr_bytes uri_of(sr_logrequest *r)
{
    sr_bytes target = span(r, r->request->target);
    if (target.len && target.at[0] == '/')
        return target;
    sr_buffer_reset(&r->scratch);
    return add_uri(r) ? all_of(&r->scratch) : none;
}

static sr_bytes protocol_of(const sr_logrequest *r)
{
    return r->request->minor ? SR_BYTES("HTTP/1.1") : SR_BYTES("HTTP/1.0");
}

/* Joins method, REQUEST_URI and protocol. For most requests this is the line that was received. */
static sr_bytes line_of(sr_logrequest *r)
{
    const sr_request *q = r->request;
    sr_buffer *b = &r->scratch;
    sr_buffer_reset(b);
    bool whole = sr_buffer_add_bytes(b, span(r, q->method)) && sr_buffer_add(b, " ", 1) && add_uri(r) &&
                 sr_buffer_add(b, " ", 1) && sr_buffer_add_bytes(b, protocol_of(r));
    return whole ? all_of(b) : none;
}

/* --- fields --- */

static char folded(char c)
{
    return c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Whether both names make the same key of %env: "X-Foo", "x_foo". */
static bool one_key(sr_bytes a, sr_bytes b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (folded(a.at[i]) != folded(b.at[i]))
            return false;
    return true;
}

static bool is(sr_bytes name, sr_bytes what)
{
    return sr_bytes_equal_nocase(name, what);
}

/*
 * Whether this field is the value of that key. Not for fields that the decoded body has made untrue, nor for
 * CONTENT_TYPE as HTTP_CONTENT_TYPE.
 */
static bool belongs(sr_bytes field, sr_bytes wanted, bool is_type)
{
    if (is(field, SR_BYTES("content-type")))
        return is_type;
    if (is_type || is(field, SR_BYTES("content-length")) || is(field, SR_BYTES("transfer-encoding")))
        return false;
    return one_key(field, wanted);
}

/* Appends a second field of the same name to the first, as in %env. */
static bool add_field(sr_buffer *b, sr_bytes value, bool first, bool cookie)
{
    return (first || sr_buffer_add(b, cookie ? "; " : ", ", 2)) && sr_buffer_add_bytes(b, value);
}

static sr_bytes host_of(sr_logrequest *r);

static sr_bytes field_of(sr_logrequest *r, sr_bytes name)
{
    const sr_request *q = r->request;
    sr_bytes found = none;
    bool is_type = one_key(name, SR_BYTES("content-type")), cookie = one_key(name, SR_BYTES("cookie"));
    if (one_key(name, SR_BYTES("content-length")))
        return q->framing == SR_BODY_NONE ? none : number(r, r->body_length);
    if (one_key(name, SR_BYTES("host")))
        return host_of(r);
    for (uint32_t i = 0; i < q->n_fields; i++) {
        sr_bytes value = span(r, q->fields[i].value);
        if (!belongs(span(r, q->fields[i].name), name, is_type))
            continue;
        if (!found.at) {
            found = value;
            continue;
        }
        sr_buffer *b = &r->scratch;
        bool joined = b->end && found.at == sr_buffer_at(b);
        if (!joined) {
            sr_buffer_reset(b);
            if (!add_field(b, found, true, cookie))
                return none;
        }
        if (!add_field(b, value, false, cookie))
            return none;
        found = all_of(b);
    }
    return found;
}

/*
 * The value of HTTP_HOST. The authority of an absolute-form target has taken its place already (sr_request).
 */
static sr_bytes host_of(sr_logrequest *r)
{
    const sr_request *q = r->request;
    if (r->said && r->forwarded.host.at)
        return r->forwarded.host;
    for (uint32_t i = 0; i < q->n_fields; i++)
        if (is(span(r, q->fields[i].name), SR_BYTES("host")))
            return span(r, q->fields[i].value);
    return q->host_added ? span(r, q->host) : none;
}

/* --- items --- */

static sr_bytes port_of(sr_logrequest *r)
{
    if (!r->said)
        return r->server_port;
    sr_bytes host = r->forwarded.host.at ? r->forwarded.host : span(r, r->request->host);
    return number(r, sr_forwarded_server_port(&r->forwarded, host));
}

static sr_bytes id_of(sr_logrequest *r)
{
    char made[SR_REQUEST_ID_MADE];
    sr_bytes id = r->trusted ? sr_traced_id(r->request, r->base) : none;
    if (id.at || !r->number)
        return id;
    sr_buffer_reset(&r->scratch);
    return sr_buffer_add_bytes(&r->scratch, sr_traced_make(made, r->nonce, r->number)) ? all_of(&r->scratch)
                                                                                       : none;
}

sr_bytes sr_logrequest_get(sr_logrequest *r, const sr_logitem *item)
{
    switch (item->kind) {
    case SR_LOG_REMOTE_ADDR:
        return r->address;
    case SR_LOG_REQUEST_LINE:
        return line_of(r);
    case SR_LOG_METHOD:
        return span(r, r->request->method);
    case SR_LOG_URI:
        return uri_of(r);
    case SR_LOG_PROTOCOL:
        return protocol_of(r);
    case SR_LOG_PATH:
        return path_of(r);
    case SR_LOG_QUERY:
        return span(r, r->request->query);
    case SR_LOG_SERVER_NAME:
        return r->server_name;
    case SR_LOG_HOST: {
        sr_bytes host = host_of(r);
        return host.len ? host : r->server_name;
    }
    case SR_LOG_PORT:
        return port_of(r);
    case SR_LOG_IN:
        return field_of(r, item->name);
    case SR_LOG_REQUEST_ID:
        return id_of(r);
    case SR_LOG_TRACEPARENT:
        return sr_traced_parent(r->request, r->base);
    default:
        return none;
    }
}

void sr_logrequest_free(sr_logrequest *r)
{
    sr_buffer_free(&r->scratch);
}
