#include "wsframe.h"

enum phase { HEAD, PAYLOAD, BAD };

enum {
    FIN = 0x80,
    RESERVED = 0x70,
    OPCODE = 0x0f,
    MASKED = 0x80,
    LENGTH = 0x7f,
    TWO_BYTES = 126,
    CONTROL = 8
};

void sr_wsframe_init(sr_wsframe *f)
{
    *f = (sr_wsframe){0};
}

void sr_wsframe_free(sr_wsframe *f)
{
    sr_buffer_free(&f->kept);
}

bool sr_wsframe_idle(const sr_wsframe *f)
{
    return f->phase == HEAD && !f->n_head && !f->of;
}

static sr_wsframe_result bad(sr_wsframe *f, unsigned code)
{
    f->phase = BAD;
    f->code = (uint16_t)code;
    sr_buffer_free(&f->kept);
    return SR_WSFRAME_BAD;
}

static bool is_control(const sr_wsframe *f)
{
    return f->head[0] & CONTROL;
}

/* --- bytes --- */

uint32_t sr_wsframe_unmask(char *at, size_t len, uint32_t mask)
{
    uint64_t wide, word;
    unsigned char byte[sizeof mask], next[sizeof mask];
    memcpy(byte, &mask, sizeof byte);
    memcpy(&wide, byte, sizeof byte);
    memcpy((char *)&wide + sizeof byte, byte, sizeof byte);
    size_t i = 0;
    for (; i + sizeof word <= len; i += sizeof word) {
        memcpy(&word, at + i, sizeof word);
        word ^= wide;
        memcpy(at + i, &word, sizeof word);
    }
    for (; i < len; i++)
        at[i] = (char)(at[i] ^ byte[i % 4]);
    for (size_t k = 0; k < sizeof next; k++)
        next[k] = byte[(len + k) % 4];
    memcpy(&mask, next, sizeof mask);
    return mask;
}

bool sr_wsframe_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

size_t sr_wsframe_head(char to[SR_WSFRAME_HEAD_MAX], sr_wsframe_kind kind, uint64_t len)
{
    unsigned wide = len < TWO_BYTES ? 0 : len <= UINT16_MAX ? 2 : 8;
    to[0] = (char)(FIN | kind);
    to[1] = (char)(!wide ? (unsigned)len : wide == 2 ? TWO_BYTES : TWO_BYTES + 1u);
    for (unsigned i = 0; i < wide; i++)
        to[2 + i] = (char)(len >> (8 * (wide - 1 - i)));
    return 2 + wide;
}

bool sr_wsframe_add(sr_buffer *out, sr_wsframe_kind kind, sr_bytes bytes)
{
    char head[SR_WSFRAME_HEAD_MAX];
    return sr_buffer_add(out, head, sr_wsframe_head(head, kind, bytes.len)) &&
           sr_buffer_add_bytes(out, bytes);
}

size_t sr_wsframe_close(char to[2 + SR_WSFRAME_CONTROL_MAX], unsigned code, sr_bytes reason)
{
    size_t most = SR_WSFRAME_CONTROL_MAX - 2;
    if (code == SR_CLOSE_NONE)
        return sr_wsframe_head(to, SR_WSFRAME_CLOSE, 0);
    if (reason.len > most) {
        reason.len = most;
        while (reason.len && !sr_is_utf8(reason)) /* no character is cut in two */
            reason.len--;
    }
    size_t n = sr_wsframe_head(to, SR_WSFRAME_CLOSE, 2 + reason.len);
    to[n++] = (char)(code >> 8);
    to[n++] = (char)code;
    if (reason.len)
        memcpy(to + n, reason.at, reason.len);
    return n + reason.len;
}

/* --- heads --- */

static size_t head_bytes(const sr_wsframe *f)
{
    unsigned len = f->head[1] & LENGTH;
    return f->n_head < 2 ? 2 : 2u + 4u + (len < TWO_BYTES ? 0 : len == TWO_BYTES ? 2 : 8);
}

/*
 * The length of the payload. UINT64_MAX: it has more bytes than it needs (RFC 6455 5.2), or is 2^63 or more.
 */
static uint64_t payload(const sr_wsframe *f)
{
    unsigned first = f->head[1] & LENGTH;
    size_t wide = head_bytes(f) - 6;
    uint64_t len = wide ? 0 : first;
    for (size_t i = 0; i < wide; i++)
        len = len << 8 | f->head[2 + i];
    bool minimal = !wide || len > (wide == 2 ? TWO_BYTES - 1u : UINT16_MAX);
    return minimal && len <= INT64_MAX ? len : UINT64_MAX;
}

/* Whether the first two bytes of a head break a rule. */
static bool wrong(const sr_wsframe *f)
{
    unsigned kind = f->head[0] & OPCODE;
    if (f->head[0] & RESERVED || !(f->head[1] & MASKED))
        return true;
    if (kind & CONTROL)
        return kind > SR_WSFRAME_PONG || !(f->head[0] & FIN) ||
               (f->head[1] & LENGTH) > SR_WSFRAME_CONTROL_MAX;
    return kind > SR_WSFRAME_BINARY || (kind == SR_WSFRAME_MORE_OF_IT) == !f->of;
}

/* False: it is refused, and `code` is set. */
static bool head_done(sr_wsframe *f, size_t max)
{
    f->left = payload(f);
    memcpy(&f->mask, f->head + head_bytes(f) - sizeof f->mask, sizeof f->mask);
    if (f->left == UINT64_MAX)
        return bad(f, SR_CLOSE_PROTOCOL), false;
    if (!is_control(f)) {
        if (f->message > max || f->left > max - f->message)
            return bad(f, SR_CLOSE_TOO_LARGE), false;
        if (f->head[0] & OPCODE) {
            f->of = f->head[0] & OPCODE;
            f->text = (sr_utf8){0};
        }
    }
    f->phase = PAYLOAD;
    return true;
}

/* True: the head is complete. */
static bool take_head(sr_wsframe *f, const char *at, size_t len, size_t max, size_t *used)
{
    for (size_t i = 0; i < len; i++) {
        f->head[f->n_head++] = (uint8_t)at[i];
        *used += 1;
        if (f->n_head == 2 && wrong(f)) {
            bad(f, SR_CLOSE_PROTOCOL);
            return false;
        }
        if (f->n_head > 2 && f->n_head == head_bytes(f))
            return head_done(f, max);
    }
    return false;
}

/* --- payloads --- */

static sr_wsframe_result close_done(sr_wsframe *f)
{
    const unsigned char *at = (const unsigned char *)f->bytes.at;
    f->code = SR_CLOSE_NONE;
    if (!f->bytes.len)
        return SR_WSFRAME_MESSAGE;
    if (f->bytes.len < 2 || !sr_wsframe_code((unsigned)(at[0] << 8 | at[1])))
        return bad(f, SR_CLOSE_PROTOCOL);
    f->code = (uint16_t)(at[0] << 8 | at[1]);
    f->bytes = sr_bytes_of(f->bytes.at + 2, f->bytes.len - 2);
    return sr_is_utf8(f->bytes) ? SR_WSFRAME_MESSAGE : bad(f, SR_CLOSE_UTF8);
}

/* The frame is complete; if its message is, that is in `bytes`. */
static sr_wsframe_result frame_done(sr_wsframe *f, sr_bytes bytes)
{
    bool control = is_control(f);
    f->phase = HEAD;
    f->n_head = 0;
    if (!(f->head[0] & FIN))
        return SR_WSFRAME_WAIT;
    if (!control && f->of == SR_WSFRAME_TEXT && !sr_utf8_whole(&f->text))
        return bad(f, SR_CLOSE_UTF8);
    f->bytes = bytes;
    f->kind = control ? f->head[0] & OPCODE : f->of;
    f->taken = true;
    if (control)
        return f->kind == SR_WSFRAME_CLOSE ? close_done(f) : SR_WSFRAME_MESSAGE;
    f->of = SR_WSFRAME_MORE_OF_IT;
    f->message = 0;
    return SR_WSFRAME_MESSAGE;
}

void sr_wsframe_forget(sr_wsframe *f)
{
    if (!f->taken)
        return;
    f->taken = false; /* what is behind the message that is being read belongs to nobody any more */
    if (f->message)
        f->kept.end = f->kept.from + f->message;
    else
        sr_buffer_free(&f->kept);
}

static sr_wsframe_result take_payload(sr_wsframe *f, char *at, size_t len, size_t *used)
{
    size_t some = f->left < len ? (size_t)f->left : len;
    sr_bytes bytes = sr_bytes_of(at, some);
    bool control = is_control(f);
    f->mask = sr_wsframe_unmask(at, some, f->mask);
    f->left -= some;
    *used += some;
    if (!control && f->of == SR_WSFRAME_TEXT && !sr_utf8_feed(&f->text, bytes))
        return bad(f, SR_CLOSE_UTF8);
    size_t from = control ? f->message : 0;
    if (!f->left && sr_buffer_len(&f->kept) == from && f->head[0] & FIN)
        return frame_done(f, bytes); /* most are: nothing is copied */
    if (!sr_buffer_add_bytes(&f->kept, bytes))
        return bad(f, SR_CLOSE_ERROR);
    size_t end = sr_buffer_len(&f->kept);
    if (!control)
        f->message = end;
    if (f->left)
        return SR_WSFRAME_WAIT;
    return frame_done(f, end > from ? sr_bytes_of(sr_buffer_at(&f->kept) + from, end - from)
                                    : sr_bytes_of("", 0));
}

sr_wsframe_result sr_wsframe_feed(sr_wsframe *f, char *at, size_t len, size_t max, size_t *used)
{
    *used = 0;
    if (f->phase == BAD)
        return SR_WSFRAME_BAD;
    sr_wsframe_forget(f);
    if (f->phase == HEAD && !take_head(f, at, len, max, used))
        return f->phase == BAD ? SR_WSFRAME_BAD : SR_WSFRAME_WAIT;
    if (*used == len && f->left)
        return SR_WSFRAME_WAIT;
    return take_payload(f, at + *used, len - *used, used);
}
