#include "opening.h"

#include "../base/base64.h"
#include "../http/method.h"
#include "../http/target.h"
#include "../http/token.h"
#include "sha1.h"

enum { KEY = 24 }; /* bytes: 16 of them in base64 */

static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/* The value of the first field of this name from *i on, which goes behind it. at NULL: there is none. */
static sr_bytes field(const sr_request *r, const char *base, const char *lower, uint32_t *i)
{
    size_t len = strlen(lower);
    while (*i < r->n_fields) {
        const sr_field *f = &r->fields[(*i)++];
        if (f->name.len == len && sr_token_is(base + f->name.at, lower, len))
            return sr_span_in(base, f->value);
    }
    return sr_bytes_of(NULL, 0);
}

bool sr_opening_asks(const sr_request *r, const char *base)
{
    uint32_t i = 0;
    if (!r->upgrade || r->method_id != SR_METHOD_GET || !(r->extended || r->version == SR_HTTP_1_1))
        return false;
    for (sr_bytes v; (v = field(r, base, "upgrade", &i)).at;)
        if (sr_list_has(v, SR_BYTES("websocket")))
            return true;
    return false;
}

static void refuse(sr_opening *o, int status, const char *why)
{
    o->status = status;
    o->why = why;
}

static bool is_key(sr_bytes key)
{
    char bytes[KEY];
    return key.len == KEY && sr_base64_read(bytes, key) == 16;
}

void sr_opening_check(sr_opening *o, const sr_request *r, const char *base)
{
    uint32_t version = 0, key = 0, again;
    *o = (sr_opening){0};
    sr_bytes v = field(r, base, "sec-websocket-version", &version);
    o->key = field(r, base, "sec-websocket-key", &key);
    again = key;
    if (r->framing != SR_BODY_NONE && (r->framing != SR_BODY_LENGTH || r->content_length) && !r->extended)
        refuse(o, 400, "a request for a WebSocket has a body");
    else if (!v.at || !sr_bytes_equal(v, SR_BYTES("13")) ||
             field(r, base, "sec-websocket-version", &version).at)
        refuse(o, 426, "Sec-WebSocket-Version is not 13");
    else if (!r->extended && (!is_key(o->key) || field(r, base, "sec-websocket-key", &again).at))
        refuse(o, 400, "Sec-WebSocket-Key is not one value of 16 bytes in base64");
}

bool sr_opening_is_own(const sr_request *r, const char *base, bool is_https, sr_bytes host)
{
    sr_bytes scheme = is_https ? SR_BYTES("https://") : SR_BYTES("http://");
    sr_authority ours, theirs;
    uint32_t i = 0;
    sr_bytes origin = field(r, base, "origin", &i);
    if (!origin.at)
        return true;
    if (field(r, base, "origin", &i).at || origin.len <= scheme.len ||
        !sr_bytes_equal_nocase(sr_bytes_of(origin.at, scheme.len), scheme))
        return false;
    origin = sr_bytes_of(origin.at + scheme.len, origin.len - scheme.len);
    if (!sr_authority_parse(origin, &theirs) || !sr_authority_parse(host, &ours))
        return false;
    int port = is_https ? 443 : 80;
    return (theirs.port < 0 ? port : theirs.port) == (ours.port < 0 ? port : ours.port) &&
           sr_bytes_equal_nocase(sr_bytes_of(origin.at, theirs.host_len),
                                 sr_bytes_of(host.at, ours.host_len));
}

void sr_opening_accept(char to[SR_OPENING_ACCEPT], sr_bytes key)
{
    char text[KEY + sizeof guid - 1], digest[SR_SHA1_LEN];
    memcpy(text, key.at, KEY);
    memcpy(text + KEY, guid, sizeof guid - 1);
    sr_sha1(digest, sr_bytes_of(text, sizeof text));
    sr_base64_write(to, sr_bytes_of(digest, sizeof digest));
}
