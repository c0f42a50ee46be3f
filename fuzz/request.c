/*
 * request: the parser of heads, whole. What it accepts is read a second time in the simplest way there is.
 * Judges: src/http1/head.c src/http/target.c src/http1/framing.c src/http/token.c src/http/method.c
 */
#include "http1/head.h"

#include "fuzz.h"
#include "http/target.h"
#include "http/token.h"

#include <strings.h>

static bool inside(const sr_request *r, sr_span s)
{
    return s.len == 0 || (s.at >= r->head_start && (uint64_t)s.at + s.len <= r->head_len);
}

/* Every CR has its LF and every LF its CR, and no other control byte but HTAB is there. */
static void no_control(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        MUST(at[i] != '\r' || (i + 1 < len && at[i + 1] == '\n'));
        MUST(at[i] != '\n' || (i > 0 && at[i - 1] == '\r'));
        MUST((unsigned char)at[i] >= ' ' || at[i] == '\r' || at[i] == '\n' || at[i] == '\t');
        MUST(at[i] != 0x7f);
    }
}

/* Lines of the head that begin with this name and a colon; *value is where the last one's value starts. */
static int lines_of(const char *at, size_t len, const char *name, const char **value)
{
    int count = 0;
    size_t n = strlen(name);
    for (size_t i = 0; i + n < len; i++)
        if (i >= 2 && at[i - 1] == '\n' && strncasecmp(at + i, name, n) == 0 && at[i + n] == ':') {
            *value = at + i + n + 1;
            count++;
        }
    return count;
}

static void framing(const sr_request *r, const char *at)
{
    const char *value = NULL, *ignored;
    int codings = lines_of(at, r->head_len, "transfer-encoding", &ignored);
    int lengths = lines_of(at, r->head_len, "content-length", &value);
    MUST(codings + lengths <= 1);
    MUST(r->framing == (codings ? SR_BODY_CHUNKED : lengths ? SR_BODY_LENGTH : SR_BODY_NONE));
    MUST(!lengths || (r->content_length <= INT64_MAX && r->content_length == strtoull(value, NULL, 10)));
    MUST(!codings || r->version == SR_HTTP_1_1);
    int hosts = lines_of(at, r->head_len, "host", &ignored);
    MUST(hosts == 1 || (hosts == 0 && r->version == SR_HTTP_1_0));
}

static bool one_key(sr_bytes a, sr_bytes b)
{
    size_t i = 0;
    while (i < a.len && i < b.len &&
           (a.at[i] == '_' ? '-' : sr_lower((unsigned char)a.at[i])) ==
               (b.at[i] == '_' ? '-' : sr_lower((unsigned char)b.at[i])))
        i++;
    return i == a.len && i == b.len;
}

/* No two spellings of what is one key of an environment. */
static void no_rival(const sr_request *r, const char *at, sr_bytes name)
{
    for (uint32_t i = 0; i < r->n_fields; i++) {
        sr_bytes other = sr_span_in(at, r->fields[i].name);
        MUST(!one_key(name, other) || sr_bytes_equal_nocase(name, other));
    }
}

static void fields(const sr_request *r, const char *at, bool underscores)
{
    MUST(r->n_fields <= SR_REQUEST_FIELDS_MAX);
    for (uint32_t i = 0; i < r->n_fields; i++) {
        sr_field f = r->fields[i];
        MUST(inside(r, f.name) && inside(r, f.value));
        sr_bytes name = sr_span_in(at, f.name), value = sr_span_in(at, f.value);
        MUST(sr_is_token(name) && (underscores || !memchr(name.at, '_', name.len)));
        no_rival(r, at, name);
        MUST(!sr_bytes_equal_nocase(name, SR_BYTES("proxy")));
        MUST(sr_trim(value).len == value.len);
    }
}

static void accepted(const sr_request *r, const char *at, size_t size, bool underscores)
{
    MUST(r->head_start < r->head_len && r->head_len <= size && r->head_start <= 2);
    MUST(memcmp(at + r->head_len - 4, "\r\n\r\n", 4) == 0);
    no_control(at, r->head_len);
    MUST(inside(r, r->method) && inside(r, r->target) && inside(r, r->path) && inside(r, r->query));
    MUST(inside(r, r->host) && inside(r, r->content_type));
    sr_bytes method = sr_span_in(at, r->method), target = sr_span_in(at, r->target);
    MUST(sr_is_token(method) && method.len <= SR_METHOD_MAX && target.len > 0);
    MUST(r->is_head == sr_bytes_equal(method, SR_BYTES("HEAD")));
    MUST((r->version == SR_HTTP_1_0 || r->version == SR_HTTP_1_1) &&
         (r->version == SR_HTTP_1_1 || (!r->upgrade && !r->expect)));
    MUST(!memchr(at + r->path.at, '?', r->path.len) && (r->has_query || r->query.len == 0));
    char *path = malloc(r->path.len + 1u);
    size_t len = sr_path_decode(path, sr_span_in(at, r->path));
    MUST(len <= r->path.len);
    for (size_t i = 0; i < len; i++)
        MUST(path[i] != '\0' && path[i] != '\r' && path[i] != '\n');
    free(path);
    framing(r, at);
    fields(r, at, underscores);
}

FUZZ_TARGET(request)
{
    static const sr_request_limits all[] = {
        {8192, 65536, 100, true}, {64, 200, 3, false}, {30, 30, 0, false}};
    static sr_request r;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sr_request_init(&r);
        switch (sr_request_feed(&r, &all[i], (const char *)data, size)) {
        case SR_PARSE_DONE:
            MUST(r.head_len - r.head_start <= all[i].head && r.n_fields <= all[i].fields);
            accepted(&r, (const char *)data, size, all[i].underscores);
            break;
        case SR_PARSE_MORE: /* never without an end */
            MUST(size <= (size_t)all[i].head + 40);
            break;
        case SR_PARSE_BAD:
            MUST(r.why && *r.why);
            MUST(r.status == 400 || r.status == 414 || r.status == 417 || r.status == 426 ||
                 r.status == 431 || r.status == 501 || r.status == 505);
        }
    }
    return 0;
}
