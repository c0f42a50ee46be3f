/*
 * h2fields: what a client of HTTP/2 says of a request, as a list of fields. A request that is accepted is
 * written as HTTP/1.1, and the parser of that reads the same: method, target, Host, fields, body. Each field
 * comes from the client. What is refused gets a status with a reason, or is reset; the log has one line for
 * each, without control bytes.
 * Judges: src/h2/request.c src/h2/refuse.c src/http1/framing.c
 *
 * Input: a byte of flags, then fields; see h2fields_list.
 */
#ifdef SR_HTTP2
#include "conn/account.h"
#include "conn/lifetime.h"
#include "conn/protocol.h"
#include "fuzz.h"
#include "h2/h2.h"
#include "h2/session.h"
#include "h2wire.h"
#include "http/token.h"
#include "http1/head.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { H2FIELDS_MAX = 64, H2FIELDS_NAME = 1100 };

enum {
    H2FIELDS_RAW = 1,    /* no pseudo-header but those of the input */
    H2FIELDS_BODY = 2,   /* DATA follows */
    H2FIELDS_TIGHT = 4,  /* low limits */
    H2FIELDS_BARS = 8,   /* fields with '_' are kept */
    H2FIELDS_AGAIN = 16, /* the same on another stream */
    H2FIELDS_MORE = 32,  /* in CONTINUATION frames */
    H2FIELDS_SHORT = 64, /* of the body a byte is missing */
    H2FIELDS_TAIL = 128, /* trailers */
};

typedef struct h2fields_list {
    nghttp2_nv nv[H2FIELDS_MAX];
    size_t n;
} h2fields_list;

static struct {
    sr_engine *engine;
    sr_logformat *format;
    int log;
    size_t lines, more; /* that are expected, at least, and perhaps besides */
} h2fields;

static void h2fields_open(void)
{
    static const sr_config config = {.max_connections = 100,
                                     .max_body = 1000,
                                     .body_memory = 1000,
                                     .body_ns = SR_SECOND,
                                     .keepalive = true,
                                     .report_fd = -1,
                                     .tmpdir = "/tmp"};
    static const char format[] = "%m %U %q %r %s \"%{Host}i\" \"%{Cookie}i\" \"%{X-A}i\" %{refused}x";
    sr_logformat_error why;
    MUST(sr_engine_new(&h2fields.engine, &config, -1) == 0);
    sr_accesslog *log = calloc(1, sizeof *log);
    h2fields.log = memfd_create("log", MFD_CLOEXEC);
    MUST(log && h2fields.log >= 0 && fcntl(h2fields.log, F_SETFL, O_APPEND) == 0);
    log->format = h2fields.format = sr_logformat_new(format, sizeof format - 1, NULL, &why);
    log->sink = sr_sink_new(SR_SINK_FILE, dup(h2fields.log), SR_SINK_BATCH);
    MUST(log->format && log->sink && sr_accesslog_begin(h2fields.engine, log) == 0);
    h2fields.engine->streams = h2fields.engine->protocol = &sr_h2;
}

/* --- the input --- */

static sr_bytes h2fields_bytes(const uint8_t **at, const uint8_t *end, size_t len)
{
    if (len > (size_t)(end - *at))
        len = (size_t)(end - *at);
    *at += len;
    return sr_bytes_of((const char *)*at - len, len);
}

static void h2fields_add(h2fields_list *l, sr_bytes name, sr_bytes value)
{
    if (l->n < H2FIELDS_MAX)
        l->nv[l->n++] = (nghttp2_nv){(uint8_t *)(uintptr_t)name.at, (uint8_t *)(uintptr_t)value.at, name.len,
                                     value.len, 0};
}

/*
 * A byte for the name, one of those below or the length of what follows; a length and the value, or one of
 * those below.
 */
static void h2fields_read(h2fields_list *l, const uint8_t *at, const uint8_t *end)
{
    static const char *const names[] = {":method",
                                        ":scheme",
                                        ":path",
                                        ":authority",
                                        "host",
                                        "content-length",
                                        "cookie",
                                        "expect",
                                        "content-type",
                                        "te",
                                        "upgrade",
                                        "connection",
                                        "trailer",
                                        "transfer-encoding",
                                        "proxy",
                                        "x-a",
                                        "x_a",
                                        "X-B",
                                        ":status",
                                        ":protocol",
                                        "via",
                                        "x-forwarded-for",
                                        "",
                                        "priority"};
    static const char *const values[] = {"GET", "POST", "HEAD",         "CONNECT", "OPTIONS", "*",
                                         "/",   "http", "https",        "a",       "a:80",    "[::1]",
                                         "0",   "5",    "100-continue", "trailers"};
    static char zeros[2048];
    enum { NAMES = sizeof names / sizeof *names, VALUES = sizeof values / sizeof *values };
    memset(zeros, 'a', sizeof zeros);
    while (at < end) {
        uint8_t what = *at++, len = at < end ? *at++ : 0;
        sr_bytes name, value;
        if (what < 2 * NAMES)
            name = sr_bytes_of(names[what % NAMES], strlen(names[what % NAMES]));
        else if (what == 255)
            name = sr_bytes_of(zeros, H2FIELDS_NAME);
        else
            name = h2fields_bytes(&at, end, what % 64);
        if (len >= 256 - VALUES)
            value = sr_bytes_of(values[len - (256 - VALUES)], strlen(values[len - (256 - VALUES)]));
        else if (len >= 200 && len < 210)
            value = sr_bytes_of(zeros, 200u * (len - 199u));
        else
            value = h2fields_bytes(&at, end, len);
        h2fields_add(l, name, value);
    }
}

/* --- what must hold of a request --- */

static bool h2fields_same(const nghttp2_nv *nv, const char *name)
{
    return nv->namelen == strlen(name) && memcmp(nv->name, name, nv->namelen) == 0;
}

static const nghttp2_nv *h2fields_find(const h2fields_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (h2fields_same(&l->nv[i], name))
            return &l->nv[i];
    return NULL;
}

static sr_bytes h2fields_value(const nghttp2_nv *nv)
{
    return sr_trim(sr_bytes_of((const char *)nv->value, nv->valuelen));
}

/* The client has sent this field. */
static bool h2fields_sent(const h2fields_list *l, sr_bytes name, sr_bytes value)
{
    char cookie[H2FIELDS_MAX * 2048];
    size_t len = 0;
    if (sr_bytes_equal(name, SR_BYTES("host")) && h2fields_find(l, ":authority") &&
        sr_bytes_equal(value, h2fields_value(h2fields_find(l, ":authority"))))
        return true;
    for (size_t i = 0; i < l->n; i++) {
        const nghttp2_nv *nv = &l->nv[i];
        if (!h2fields_same(nv, "cookie")) {
            if (sr_bytes_equal(name, sr_bytes_of((const char *)nv->name, nv->namelen)) &&
                sr_bytes_equal(value, h2fields_value(nv)))
                return true;
            continue;
        }
        if (len)
            len += (size_t)sprintf(cookie + len, "; ");
        memcpy(cookie + len, nv->value, nv->valuelen);
        len += nv->valuelen;
    }
    return sr_bytes_equal(name, SR_BYTES("cookie")) &&
           sr_bytes_equal(value, sr_trim(sr_bytes_of(cookie, len)));
}

static void h2fields_append(char **to, sr_bytes s)
{
    if (s.len)
        memcpy(*to, s.at, s.len);
    *to += s.len;
}

static void h2fields_equal(const char *a, sr_span in_a, const char *b, sr_span in_b)
{
    MUST(sr_bytes_equal(sr_span_in(a, in_a), sr_span_in(b, in_b)));
}

/* The same as HTTP/1.1 */
static void h2fields_in_1(const sr_request *r, const char *base, const sr_request_limits *limits)
{
    static sr_request again;
    sr_request_limits wide = {limits->line + 100, limits->head + 4096, SR_REQUEST_FIELDS_MAX,
                              limits->underscores};
    char *text = malloc(r->head_len + 4 * (r->n_fields + 4u)), *at = text;
    MUST(text);
    h2fields_append(&at, sr_span_in(base, r->method));
    h2fields_append(&at, SR_BYTES(" "));
    h2fields_append(&at, sr_span_in(base, r->target));
    h2fields_append(&at, SR_BYTES(" HTTP/1.1\r\n"));
    for (uint32_t i = 0; i < r->n_fields; i++) {
        h2fields_append(&at, sr_span_in(base, r->fields[i].name));
        h2fields_append(&at, SR_BYTES(": "));
        h2fields_append(&at, sr_span_in(base, r->fields[i].value));
        h2fields_append(&at, SR_BYTES("\r\n"));
    }
    h2fields_append(&at, SR_BYTES("\r\n"));
    sr_request_init(&again);
    MUST(sr_request_feed(&again, &wide, text, (size_t)(at - text)) == SR_PARSE_DONE);
    MUST(again.head_len == (uint32_t)(at - text) && again.n_fields == r->n_fields);
    h2fields_equal(base, r->method, text, again.method);
    h2fields_equal(base, r->target, text, again.target);
    h2fields_equal(base, r->path, text, again.path);
    h2fields_equal(base, r->query, text, again.query);
    h2fields_equal(base, r->host, text, again.host);
    h2fields_equal(base, r->content_type, text, again.content_type);
    MUST(again.has_query == r->has_query && again.is_head == r->is_head && again.form == r->form &&
         again.method_id == r->method_id && again.expect == r->expect && again.proxied == r->proxied);
    MUST(again.content_length == r->content_length && again.framing != SR_BODY_CHUNKED);
    for (uint32_t i = 0; i < r->n_fields; i++) {
        h2fields_equal(base, r->fields[i].name, text, again.fields[i].name);
        h2fields_equal(base, r->fields[i].value, text, again.fields[i].value);
    }
    free(text);
}

/*
 * The same bytes, but for the version, which is what goes into a slot and into logs; unless Host is there
 * twice.
 */
static void h2fields_head(const sr_request *r, const char *base, const sr_request_limits *limits)
{
    static sr_request again;
    sr_request_limits wide = {limits->line + 100, limits->head + 4096, SR_REQUEST_FIELDS_MAX,
                              limits->underscores};
    char *text = fuzz_copy(base, r->head_len);
    char *version = text + r->target.at + r->target.len;
    int hosts = 0;
    MUST(memcmp(version, " HTTP/2.0\r\n", 11) == 0);
    memcpy(version, " HTTP/1.1\r\n", 11);
    MUST(memcmp(text + r->head_len - 4, "\r\n\r\n", 4) == 0);
    for (uint32_t i = 0; i + 7 < r->head_len; i++)
        hosts += strncasecmp(text + i, "\r\nhost:", 7) == 0;
    sr_request_init(&again);
    sr_parse done = sr_request_feed(&again, &wide, text, r->head_len);
    MUST(hosts > 1 ||
         (done == SR_PARSE_DONE && again.head_len == r->head_len && again.n_fields == r->n_fields));
    free(text);
}

static void h2fields_accepted(const sr_task *task, const h2fields_list *l, const sr_request_limits *limits,
                              size_t body)
{
    const sr_request *r = task->request;
    const char *base = task->base;
    const nghttp2_nv *authority = h2fields_find(l, ":authority"), *host = h2fields_find(l, "host");
    MUST(r->version == SR_HTTP_2 && r->n_fields <= limits->fields && r->head_start == 0);
    MUST(sr_bytes_equal(sr_span_in(base, r->method), h2fields_value(h2fields_find(l, ":method"))));
    MUST(sr_bytes_equal(sr_span_in(base, r->target), h2fields_value(h2fields_find(l, ":path"))));
    MUST(r->host.len && (!authority || !authority->valuelen ||
                         sr_bytes_equal(sr_span_in(base, r->host), h2fields_value(authority))));
    MUST(!host || sr_bytes_equal_nocase(sr_span_in(base, r->host), h2fields_value(host)));
    for (uint32_t i = 0; i < r->n_fields; i++)
        MUST(h2fields_sent(l, sr_span_in(base, r->fields[i].name), sr_span_in(base, r->fields[i].value)));
    MUST(task->body_length == body && task->body.len == body);
    MUST(r->framing != SR_BODY_LENGTH || r->content_length == body);
    h2fields_in_1(r, base, limits);
    h2fields_head(r, base, limits);
}

/* --- a connection --- */

static size_t h2fields_lines(void)
{
    static char text[1 << 20];
    size_t lines = 0;
    sr_sink_flush(h2fields.engine->log->sink);
    ssize_t n = pread(h2fields.log, text, sizeof text, 0);
    MUST(n >= 0 && n < (ssize_t)sizeof text && ftruncate(h2fields.log, 0) == 0);
    MUST(!n || text[n - 1] == '\n');
    for (ssize_t i = 0; i < n; i++) {
        lines += text[i] == '\n';
        MUST(text[i] != '\n' || (i > 2 && memcmp(text + i - 2, " -", 2) != 0)); /* there is a reason */
        MUST(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f));
    }
    return lines;
}

/* A request, and what becomes of it. False: the connection has ended. */
static bool h2fields_one(sr_conn *c, h2wire *w, int client, const h2fields_list *l, uint8_t flags, int32_t id)
{
    static const char body[] = "hello";
    static char in[1 << 16];
    sr_engine *e = h2fields.engine;
    sr_session *s = sr_session_of(c);
    sr_request_limits limits = e->config.request;
    bool has_body = flags & H2FIELDS_BODY;
    size_t n = !has_body ? 0 : sizeof body - 1 - !!(flags & H2FIELDS_SHORT);
    sr_task task;
    h2wire_head(w, id, has_body ? 0 : NGHTTP2_FLAG_END_STREAM, l->nv, l->n, flags & H2FIELDS_MORE ? 7 : 0);
    if (has_body)
        h2wire_frame(w, NGHTTP2_DATA, flags & H2FIELDS_TAIL ? 0 : NGHTTP2_FLAG_END_STREAM, id, body, n);
    if (has_body && flags & H2FIELDS_TAIL) {
        const nghttp2_nv tail = h2wire_field("x-a", "b");
        h2wire_head(w, id, NGHTTP2_FLAG_END_STREAM, &tail, 1, 0);
    }
    MUST(sr_buffer_add(&c->in, w->out, w->out_len));
    w->out_len = 0;
    sr_intake got = SR_INTAKE_WAIT;
    for (int i = 0; i < 9 && got != SR_INTAKE_READY && sr_buffer_len(&c->in) && !s->over; i++)
        got = sr_h2.read(e, c, &task);
    if (got == SR_INTAKE_READY) {
        h2fields_accepted(&task, l, &limits, n);
        sr_intake_refuse(e, &task, 503, SR_REFUSED_QUEUE, NULL);
        h2fields.lines++;
    }
    sr_due_send(e);
    ssize_t len = recv(client, in, sizeof in, MSG_DONTWAIT);
    MUST(len > 0 && h2wire_feed(w, in, (size_t)len) == (size_t)len && !w->wrong);
    bool ended = !e->n_conns || c->state != SR_CONN_STREAMS;
    MUST(ended || !c->exchange);
    const h2wire_reply *r = h2wire_find(w, id);
    if (got == SR_INTAKE_READY) {
        MUST(r && r->status == 503 && r->ended);
    } else if (r && r->status) { /* by us, with a reason */
        MUST(r->ended && r->status >= 400 && r->status < 600 && r->len > 0);
        h2fields.lines++;
    } else { /* by nghttp2 */
        MUST((r && r->reset) || w->goaways || ended);
        h2fields.more++; /* it may come after a refusal, as for a body of the wrong length */
    }
    return !w->goaways && !ended;
}

FUZZ_TARGET(h2fields)
{
    static const sr_request_limits limits[] = {{8192, 65536, 100, false}, {20, 100, 4, false}};
    if (!size)
        return 0;
    if (!h2fields.engine)
        h2fields_open();
    sr_engine *e = h2fields.engine;
    uint8_t flags = *data;
    char *copy = fuzz_copy(data + 1, size - 1);
    h2fields_list l = {.n = 0};
    h2wire w;
    int pair[2];
    if (!(flags & H2FIELDS_RAW)) {
        h2fields_add(&l, SR_BYTES(":method"), flags & H2FIELDS_BODY ? SR_BYTES("POST") : SR_BYTES("GET"));
        h2fields_add(&l, SR_BYTES(":scheme"), SR_BYTES("https"));
        h2fields_add(&l, SR_BYTES(":path"), SR_BYTES("/p?q"));
        h2fields_add(&l, SR_BYTES(":authority"), SR_BYTES("a"));
    }
    h2fields_read(&l, (const uint8_t *)copy, (const uint8_t *)copy + size - 1);
    e->config.request = limits[!!(flags & H2FIELDS_TIGHT)];
    e->config.request.underscores = flags & H2FIELDS_BARS;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    sr_conn *c = sr_conn_new(pair[0], &(sr_peer){0}, 0);
    MUST(c);
    sr_conn_enter(e, c);
    h2fields.lines = h2fields.more = 0;
    h2wire_begin(&w, true);
    MUST(sr_h2.begin(e, c));
    if (h2fields_one(c, &w, pair[1], &l, flags, 1) && flags & H2FIELDS_AGAIN)
        h2fields_one(c, &w, pair[1], &l, flags, 3);
    while (!sr_link_alone(&e->all))
        sr_conn_close(e, SR_LIST_ENTRY(e->all.next, sr_conn, all), SR_CLOSED_ERROR);
    close(pair[1]);
    h2wire_free(&w);
    free(copy);
    size_t lines = h2fields_lines();
    MUST(lines >= h2fields.lines && lines <= h2fields.lines + h2fields.more);
    MUST(e->n_conns == 0 && e->pending == 0 && !e->intake.current);
    return 0;
}
#else
#include "fuzz.h"
FUZZ_TARGET(h2fields)
{
    (void)data, (void)size;
    return 0;
}
#endif
