#include "ownhead.h"

#include "../http/response.h"
#include "../http/token.h"

/* The next line without its end. False: it is not complete. */
static bool line_of(sr_bytes *rest, sr_bytes *line)
{
    const char *end = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
    if (!end)
        return false;
    size_t len = (size_t)(end - rest->at);
    *line = sr_bytes_of(rest->at, len - (len && end[-1] == '\r'));
    *rest = sr_bytes_of(end + 1, rest->len - len - 1);
    return true;
}

/* "HTTP/1.1 101 Switching Protocols". 0: it is none. */
static int status_of(sr_bytes line)
{
    static const char begin[] = "HTTP/1.";
    enum { BEGIN = sizeof begin - 1, CODE = BEGIN + 2, LEN = CODE + 3 };
    if (line.len < LEN || memcmp(line.at, begin, BEGIN) != 0 || line.at[BEGIN + 1] != ' ' ||
        (line.len > LEN && line.at[LEN] != ' ') || !sr_all_are(sr_bytes_of(line.at + CODE, 3), SR_CHAR_DIGIT))
        return 0;
    int status = (line.at[CODE] - '0') * 100 + (line.at[CODE + 1] - '0') * 10 + line.at[CODE + 2] - '0';
    return status == 101 || status >= 200 ? status : 0;
}

static bool is(sr_bytes name, const char *lower)
{
    size_t len = strlen(lower);
    return name.len == len && sr_token_is(name.at, lower, len);
}

static bool field(sr_bytes line, sr_buffer *fields)
{
    const char *colon = memchr(line.at, ':', line.len);
    sr_bytes name = sr_bytes_of(line.at, colon ? (size_t)(colon - line.at) : 0);
    if (!colon || !sr_is_token(name))
        return false;
    sr_bytes value = sr_trim(sr_bytes_of(colon + 1, line.len - name.len - 1));
    if (!sr_is_value(value) || is(name, "transfer-encoding"))
        return false;
    return is(name, "sec-websocket-accept") || sr_response_line(fields, name, value);
}

sr_ownhead_result sr_ownhead_read(sr_ownhead *a, sr_bytes in, sr_buffer *fields)
{
    sr_bytes rest = in, line;
    sr_ownhead_result more = in.len < SR_OWNHEAD_MAX ? SR_OWNHEAD_MORE : SR_OWNHEAD_BAD;
    sr_buffer_reset(fields);
    if (!line_of(&rest, &line))
        return more;
    if (!(a->status = status_of(line)))
        return SR_OWNHEAD_BAD;
    while (line_of(&rest, &line)) {
        a->len = in.len - rest.len;
        if (!line.len)
            return a->len <= SR_OWNHEAD_MAX ? SR_OWNHEAD_DONE : SR_OWNHEAD_BAD;
        if (!field(line, fields))
            return SR_OWNHEAD_BAD;
    }
    return more;
}
