#include "values.h"

#include "../base/decimal.h"
#include "../http/response.h"
#include "../http/target.h"
#include "../http/traced.h"
#include "../share/facts.h"

enum { REFUSED_PATH_MAX = 1024 }; /* of a refused request; a longer path is logged as received */

static const sr_bytes none = {NULL, 0};

static sr_bytes number(sr_logvalues *v, uint64_t n)
{
    char digits[SR_DECIMAL_MAX];
    sr_bytes text = sr_decimal(digits + sizeof digits, n);
    sr_buffer_reset(&v->scratch);
    return sr_buffer_add_bytes(&v->scratch, text) ? sr_buffer_bytes(&v->scratch) : none;
}

static sr_bytes span(const sr_logvalues *v, sr_span s)
{
    return sr_span_in(v->base, s);
}

/* --- the request line --- */

static sr_bytes path_of(sr_logvalues *v)
{
    sr_bytes path = span(v, v->request->path);
    if (!path.len || (path.at[0] != '/' && !v->refused))
        return SR_BYTES("/");
    if (!memchr(path.at, '%', path.len) || (v->refused && path.len > REFUSED_PATH_MAX))
        return path;
    sr_buffer *b = &v->scratch;
    sr_buffer_reset(b);
    if (!sr_buffer_reserve(b, path.len))
        return none;
    b->end = sr_path_decode(b->data, path);
    return sr_buffer_bytes(b);
}

/* Returns REQUEST_URI, after what the scratch buffer already holds. */
static bool add_uri(sr_logvalues *v)
{
    const sr_request *q = v->request;
    sr_buffer *b = &v->scratch;
    sr_bytes target = span(v, q->target), path = span(v, q->path);
    if (target.len && (target.at[0] == '/' || target.at[0] == '*'))
        return sr_buffer_add_bytes(b, target);
    if (!path.len && !q->has_query && sr_bytes_equal(span(v, q->method), SR_BYTES("OPTIONS")))
        return sr_buffer_add(b, "*", 1);
    return sr_buffer_add_bytes(b, path.len ? path : SR_BYTES("/")) &&
           (!q->has_query || (sr_buffer_add(b, "?", 1) && sr_buffer_add_bytes(b, span(v, q->query))));
}

static sr_bytes uri_of(sr_logvalues *v)
{
    sr_bytes target = span(v, v->request->target);
    if (target.len && target.at[0] == '/')
        return target;
    sr_buffer_reset(&v->scratch);
    return add_uri(v) ? sr_buffer_bytes(&v->scratch) : none;
}

static sr_bytes protocol_of(const sr_logvalues *v)
{
    return sr_version_text((sr_version)v->request->version);
}

/* Joins method, REQUEST_URI and protocol. For most requests this is the line that was received. */
static sr_bytes line_of(sr_logvalues *v)
{
    const sr_request *q = v->request;
    sr_buffer *b = &v->scratch;
    sr_buffer_reset(b);
    bool whole = sr_buffer_add_bytes(b, span(v, q->method)) && sr_buffer_add(b, " ", 1) && add_uri(v) &&
                 sr_buffer_add(b, " ", 1) && sr_buffer_add_bytes(b, protocol_of(v));
    return whole ? sr_buffer_bytes(b) : none;
}

/* The part of a line before its first space, or (target) the part after it. */
static sr_bytes part_of(sr_bytes line, bool target)
{
    const char *space = line.len ? memchr(line.at, ' ', line.len) : NULL;
    if (!space)
        return target ? none : line;
    size_t n = (size_t)(space - line.at);
    return target ? sr_bytes_of(space + 1, line.len - n - 1) : sr_bytes_of(line.at, n);
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

static sr_bytes host_of(sr_logvalues *v), id_of(sr_logvalues *v);

static sr_bytes field_of(sr_logvalues *v, sr_bytes name)
{
    const sr_request *q = v->request;
    sr_bytes found = none;
    bool is_type = one_key(name, SR_BYTES("content-type")), cookie = one_key(name, SR_BYTES("cookie"));
    if (one_key(name, SR_BYTES("content-length")))
        return q->framing == SR_BODY_NONE ? none : number(v, v->body_length);
    if (one_key(name, SR_BYTES("host")))
        return host_of(v);
    if (one_key(name, SR_BYTES("x-request-id")))
        return id_of(v);
    for (uint32_t i = 0; i < q->n_fields; i++) {
        sr_bytes value = span(v, q->fields[i].value);
        if (!belongs(span(v, q->fields[i].name), name, is_type))
            continue;
        if (!found.at) {
            found = value;
            continue;
        }
        sr_buffer *b = &v->scratch;
        bool joined = b->end && found.at == sr_buffer_at(b);
        if (!joined) {
            sr_buffer_reset(b);
            if (!add_field(b, found, true, cookie))
                return none;
        }
        if (!add_field(b, value, false, cookie))
            return none;
        found = sr_buffer_bytes(b);
    }
    return found;
}

/*
 * The value of HTTP_HOST. The authority of an absolute-form target has taken its place already (sr_request).
 */
static sr_bytes host_of(sr_logvalues *v)
{
    const sr_request *q = v->request;
    if (v->said && v->forwarded.host.at)
        return v->forwarded.host;
    for (uint32_t i = 0; i < q->n_fields; i++)
        if (is(span(v, q->fields[i].name), SR_BYTES("host")))
            return span(v, q->fields[i].value);
    return q->host_added ? span(v, q->host) : none;
}

/* The first field of that name, as received. */
static sr_bytes received_of(const sr_logvalues *v, sr_bytes name)
{
    const sr_request *q = v->request;
    for (uint32_t i = 0; i < q->n_fields; i++)
        if (is(span(v, q->fields[i].name), name))
            return span(v, q->fields[i].value);
    return none;
}

/* --- items --- */

static sr_bytes port_of(sr_logvalues *v)
{
    if (!v->said)
        return v->server_port;
    sr_bytes host = v->forwarded.host.at ? v->forwarded.host : span(v, v->request->host);
    return number(v, sr_forwarded_server_port(&v->forwarded, host));
}

static sr_bytes id_of(sr_logvalues *v)
{
    char made[SR_REQUEST_ID_MADE];
    sr_bytes id = v->trusted && v->request ? sr_traced_id(v->request, v->base) : none;
    if (id.at || !v->number)
        return id;
    sr_buffer_reset(&v->scratch);
    return sr_buffer_add_bytes(&v->scratch, sr_traced_make(made, v->nonce, v->number))
               ? sr_buffer_bytes(&v->scratch)
               : none;
}

/* What was received of a request that was refused, most often before it was complete. */
static sr_bytes refused_get(sr_logvalues *v, const sr_logitem *item)
{
    const sr_request *q = v->request;
    switch (item->kind) {
    case SR_LOG_REQUEST_LINE:
        return v->line;
    case SR_LOG_METHOD:
        return q ? span(v, q->method) : part_of(v->line, false);
    case SR_LOG_URI:
        return q ? span(v, q->target) : part_of(v->line, true);
    case SR_LOG_QUERY:
        return q && q->has_query ? span(v, q->query) : none;
    case SR_LOG_HOST:
        return q && q->host.len ? span(v, q->host) : none;
    case SR_LOG_IN:
        return q ? received_of(v, item->name) : none;
    case SR_LOG_PROTOCOL:
        return q ? protocol_of(v) : none;
    case SR_LOG_PATH:
        return q ? path_of(v) : none;
    case SR_LOG_TRACEPARENT:
        return q ? sr_traced_parent(q, v->base) : none;
    default:
        return none;
    }
}

/* As the application sees it. */
static sr_bytes complete_get(sr_logvalues *v, const sr_logitem *item)
{
    switch (item->kind) {
    case SR_LOG_REQUEST_LINE:
        return line_of(v);
    case SR_LOG_METHOD:
        return span(v, v->request->method);
    case SR_LOG_URI:
        return uri_of(v);
    case SR_LOG_PROTOCOL:
        return protocol_of(v);
    case SR_LOG_PATH:
        return path_of(v);
    case SR_LOG_QUERY:
        return span(v, v->request->query);
    case SR_LOG_SERVER_NAME:
        return v->server_name;
    case SR_LOG_HOST: {
        sr_bytes host = host_of(v);
        return host.len ? host : v->server_name;
    }
    case SR_LOG_PORT:
        return port_of(v);
    case SR_LOG_IN:
        return field_of(v, item->name);
    case SR_LOG_TRACEPARENT:
        return sr_traced_parent(v->request, v->base);
    default:
        return none;
    }
}

sr_bytes sr_logvalues_get(sr_logvalues *v, const sr_logitem *item)
{
    sr_fact fact;
    switch (item->kind) {
    case SR_LOG_REMOTE_ADDR:
        return v->address;
    case SR_LOG_REQUEST_ID:
        return id_of(v);
    case SR_LOG_TLS:
        return sr_fact_find(item->name, &fact) ? sr_facts_get(v->tls, fact) : none;
    case SR_LOG_OUT:
        return sr_response_value(v->response, item->name);
    case SR_LOG_REFUSED:
        return v->rule.at ? v->rule : v->reason;
    case SR_LOG_REFUSED_BY:
        return v->reason;
    default:
        return v->refused ? refused_get(v, item) : v->request ? complete_get(v, item) : none;
    }
}

void sr_logvalues_free(sr_logvalues *v)
{
    sr_buffer_free(&v->scratch);
}
