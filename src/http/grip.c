#include "grip.h"

#include "../base/base64.h"
#include "token.h"

/* The next line of fields, as name and trimmed value. False: none is left. */
static bool line(sr_bytes *lines, sr_bytes *name, sr_bytes *value)
{
    const char *end = lines->len ? memchr(lines->at, '\n', lines->len) : NULL;
    if (!end)
        return false;
    size_t len = (size_t)(end - lines->at);
    const char *colon = memchr(lines->at, ':', len);
    size_t name_len = colon ? (size_t)(colon - lines->at) : len;
    *name = sr_bytes_of(lines->at, name_len);
    size_t from = name_len + (colon != NULL), to = len - (len > from && lines->at[len - 1] == '\r');
    *value = sr_trim(sr_bytes_of(lines->at + from, to - from));
    *lines = sr_bytes_of(end + 1, lines->len - len - 1);
    return true;
}

static bool is(sr_bytes name, sr_bytes other)
{
    return sr_bytes_equal_nocase(name, other);
}

/* Cuts what comes before the next `c` off, trimmed. False: nothing is left, and at->at is NULL. */
static bool cut(sr_bytes *at, char c, sr_bytes *out)
{
    if (!at->at)
        return false;
    const char *end = at->len ? memchr(at->at, c, at->len) : NULL;
    size_t len = end ? (size_t)(end - at->at) : at->len;
    *out = sr_trim(sr_bytes_of(at->at, len));
    *at = end ? sr_bytes_of(end + 1, at->len - len - 1) : sr_bytes_of(NULL, 0);
    return true;
}

/* "name=value", or a name alone. */
static void parameter(sr_bytes text, sr_bytes *name, sr_bytes *value)
{
    const char *equals = text.len ? memchr(text.at, '=', text.len) : NULL;
    size_t len = equals ? (size_t)(equals - text.at) : text.len;
    *name = sr_trim(sr_bytes_of(text.at, len));
    *value = equals ? sr_trim(sr_bytes_of(equals + 1, text.len - len - 1)) : sr_bytes_of(NULL, 0);
}

static sr_bytes unquoted(sr_bytes value)
{
    bool quoted = value.len > 1 && value.at[0] == '"' && value.at[value.len - 1] == '"';
    return quoted ? sr_bytes_of(value.at + 1, value.len - 2) : value;
}

static bool seconds(sr_bytes value, uint32_t *out)
{
    uint32_t n = 0;
    if (!value.len || value.len > 6 || !sr_all_are(value, SR_CHAR_DIGIT))
        return false;
    for (size_t i = 0; i < value.len; i++)
        n = n * 10 + (uint32_t)(value.at[i] - '0');
    *out = n;
    return n > 0 && n <= SR_GRIP_SECONDS_MAX;
}

bool sr_grip_is(sr_bytes name)
{
    return name.len > 5 && is(sr_bytes_of(name.at, 5), SR_BYTES("grip-"));
}

/* --- channels --- */

/* NULL, or what is wrong. */
static const char *channel(sr_bytes text, sr_grip_channel *out)
{
    sr_bytes part, name, value;
    *out = (sr_grip_channel){0};
    cut(&text, ';', &out->name);
    if (!out->name.len)
        return "Grip-Channel names no channel";
    if (out->name.len > SR_GRIP_CHANNEL_MAX)
        return "the name of a channel in Grip-Channel is longer than 255 bytes";
    while (cut(&text, ';', &part)) {
        parameter(part, &name, &value);
        if (is(name, SR_BYTES("prev-id")))
            out->prev_id = unquoted(value);
        else if (is(name, SR_BYTES("filter")) && sr_bytes_equal(unquoted(value), SR_BYTES("skip-self")))
            out->skips_self = true;
        else if (name.len)
            return "Grip-Channel has a parameter other than prev-id and filter=skip-self";
    }
    return out->prev_id.len > SR_GRIP_CHANNEL_MAX ? "the prev-id in Grip-Channel is longer than 255 bytes"
                                                  : NULL;
}

bool sr_grip_next(sr_bytes *at, sr_bytes *value, sr_grip_channel *out)
{
    sr_bytes name, text;
    while (!cut(value, ',', &text) || !text.len) {
        if (value->at)
            continue;
        do {
            if (!line(at, &name, value))
                return false;
        } while (!is(name, SR_BYTES("grip-channel")));
    }
    return !channel(text, out);
}

/* --- the other fields --- */

static const char *read_hold(sr_bytes value, sr_grip *g)
{
    g->hold = is(value, SR_BYTES("stream"))     ? SR_GRIP_STREAM
              : is(value, SR_BYTES("response")) ? SR_GRIP_RESPONSE
                                                : SR_GRIP_NONE;
    return g->hold ? NULL : "Grip-Hold is neither stream nor response";
}

static const char *read_channels(sr_bytes value, sr_grip *g)
{
    sr_bytes text;
    sr_grip_channel c;
    while (cut(&value, ',', &text)) {
        const char *why = text.len ? channel(text, &c) : NULL;
        if (why)
            return why;
        if (text.len && ++g->channels > SR_GRIP_CHANNELS)
            return "there are more than 128 channels in Grip-Channel";
    }
    return NULL;
}

static const char *read_keep_alive(sr_bytes value, sr_grip *g)
{
    sr_bytes part, name, of;
    cut(&value, ';', &g->content);
    g->keep_alive = SR_GRIP_KEEP_ALIVE;
    while (cut(&value, ';', &part)) {
        parameter(part, &name, &of);
        if (is(name, SR_BYTES("timeout"))) {
            if (!seconds(of, &g->keep_alive))
                return "the timeout in Grip-Keep-Alive is not a number of seconds from 1 to 86400";
        } else if (is(name, SR_BYTES("format"))) {
            if (is(of, SR_BYTES("raw")))
                g->format = SR_GRIP_RAW;
            else if (is(of, SR_BYTES("cstring")))
                g->format = SR_GRIP_CSTRING;
            else if (is(of, SR_BYTES("base64")))
                g->format = SR_GRIP_BASE64;
            else
                return "the format in Grip-Keep-Alive is neither raw, cstring nor base64";
        } else if (is(name, SR_BYTES("mode"))) {
            g->interval = is(of, SR_BYTES("interval"));
            if (!g->interval && !is(of, SR_BYTES("idle")))
                return "the mode in Grip-Keep-Alive is neither idle nor interval";
        }
    }
    sr_buffer text = {0};
    bool ok = g->content.len <= SR_GRIP_CONTENT_MAX && sr_grip_content(g, &text);
    sr_buffer_free(&text);
    return ok ? NULL : "the content in Grip-Keep-Alive is not of its format, or is longer than 4096 bytes";
}

/* Of "user=NAME, other=VALUE" the user. NULL, or what is wrong. */
static const char *read_meta(sr_bytes value, sr_grip *g)
{
    sr_bytes text, name, of;
    while (cut(&value, ',', &text)) {
        parameter(text, &name, &of);
        if (of.len && of.at[0] == '"' && (of.len == 1 || of.at[of.len - 1] != '"'))
            return "a value in Grip-Set-Meta begins with a quote and ends without one";
        if (sr_bytes_equal(name, SR_BYTES("user")))
            g->user = unquoted(of);
    }
    return g->user.len > SR_GRIP_CHANNEL_MAX ? "the user in Grip-Set-Meta is longer than 255 bytes" : NULL;
}

const char *sr_grip_read(sr_bytes lines, sr_grip *out)
{
    sr_bytes name, value;
    const char *why = NULL;
    bool has_status = false;
    *out = (sr_grip){.timeout = SR_GRIP_TIMEOUT, .lines = lines};
    if (lines.len > SR_GRIP_LINES_MAX)
        return "the Grip fields have more than 12 KiB";
    while (!why && line(&lines, &name, &value)) {
        if (is(name, SR_BYTES("grip-hold")))
            why = read_hold(value, out);
        else if (is(name, SR_BYTES("grip-channel")))
            why = read_channels(value, out);
        else if (is(name, SR_BYTES("grip-keep-alive")))
            why = read_keep_alive(value, out);
        else if (is(name, SR_BYTES("grip-set-meta")))
            why = read_meta(value, out);
        else if (is(name, SR_BYTES("grip-status")))
            has_status = true;
        else if (is(name, SR_BYTES("grip-timeout")) && !seconds(value, &out->timeout))
            why = "Grip-Timeout is not a number of seconds from 1 to 86400";
    }
    if (!why && out->hold && has_status)
        why = "Grip-Status is not supported: set the status of the response";
    if (!why && out->hold && !out->channels)
        why = "Grip-Hold comes without Grip-Channel";
    return why;
}

/* --- content --- */

/* With padding or without it. */
static bool base64(sr_bytes s, char *to, size_t *n)
{
    uint32_t bits = 0;
    int have = 0;
    while (s.len && s.at[s.len - 1] == '=')
        s.len--;
    for (size_t i = 0; i < s.len; i++) {
        int v = sr_base64_value(s.at[i]);
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        if ((have += 6) >= 8)
            to[(*n)++] = (char)(bits >> (have -= 8));
    }
    return true;
}

static bool cstring(sr_bytes s, char *to, size_t *n)
{
    int high, low;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (c == '\\') {
            if (++i == s.len)
                return false;
            switch (s.at[i]) {
            case 'n':
                c = '\n';
                break;
            case 'r':
                c = '\r';
                break;
            case 't':
                c = '\t';
                break;
            case '0':
                c = '\0';
                break;
            case '\\':
                break;
            case 'x':
                if (s.len - i < 3 || (high = sr_hex_value((unsigned char)s.at[i + 1])) < 0 ||
                    (low = sr_hex_value((unsigned char)s.at[i + 2])) < 0)
                    return false;
                c = (char)(high << 4 | low);
                i += 2;
                break;
            default:
                return false;
            }
        }
        to[(*n)++] = c;
    }
    return true;
}

bool sr_grip_content(const sr_grip *g, sr_buffer *out)
{
    size_t n = 0;
    if (!sr_buffer_reserve(out, g->content.len + 1))
        return false;
    char *to = out->data + out->end;
    bool ok = true;
    if (g->format == SR_GRIP_BASE64)
        ok = base64(g->content, to, &n);
    else if (g->format == SR_GRIP_CSTRING)
        ok = cstring(g->content, to, &n);
    else if ((n = g->content.len))
        memcpy(to, g->content.at, n);
    out->end += n;
    return ok;
}
