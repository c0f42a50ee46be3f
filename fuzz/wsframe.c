/*
 * wsframe: the reader of frames, given the bytes in random pieces, against a second one that has them all.
 * Judges: src/websocket/wsframe.c src/websocket/utf8.c
 */
#include "websocket/wsframe.h"

#include "fuzz.h"

enum { WSFRAME_LIMIT = 600 }; /* bytes of a message */

/* What a reader has found. */
typedef struct wsframe_found {
    uint64_t sum;
    unsigned n, code; /* 0: it waits */
} wsframe_found;

static void wsframe_note(wsframe_found *to, unsigned kind, unsigned code, const char *at, size_t len)
{
    uint32_t what[] = {kind, code, (uint32_t)len};
    to->n++;
    to->sum = fuzz_hash(fuzz_hash(to->sum, what, sizeof what), at, len);
}

static wsframe_found wsframe_pieces(const uint8_t *data, size_t size)
{
    fuzz_random random = fuzz_random_of(data, size, 1);
    wsframe_found got = {0};
    sr_wsframe f;
    sr_wsframe_init(&f);
    for (size_t from = 0; from < size;) {
        size_t some = 1 + fuzz_below(&random, 40), used, taken = 0;
        some = some < size - from ? some : size - from;
        char *piece = fuzz_copy(data + from, some);
        sr_wsframe_result r;
        while ((r = sr_wsframe_feed(&f, piece + taken, some - taken, WSFRAME_LIMIT, &used)) !=
               SR_WSFRAME_BAD) {
            taken += used;
            if (r == SR_WSFRAME_WAIT && taken == some)
                break;
            MUST(used);
            if (r == SR_WSFRAME_WAIT)
                continue;
            MUST(taken <= some && f.bytes.len <= WSFRAME_LIMIT);
            MUST(f.kind != SR_WSFRAME_TEXT || sr_is_utf8(f.bytes));
            wsframe_note(&got, f.kind, f.kind == SR_WSFRAME_CLOSE ? f.code : 0, f.bytes.at, f.bytes.len);
        }
        MUST(sr_wsframe_memory(&f) <= 4096);
        free(piece);
        if (r == SR_WSFRAME_BAD) {
            got.code = f.code;
            break;
        }
        from += some;
    }
    sr_wsframe_free(&f);
    return got;
}

/* Whether a character can begin like that: some bytes that follow make it whole. */
static bool wsframe_begins(const char *at, size_t len)
{
    static const char *const more[] = {"", "\x80", "\x80\x80", "\x80\x80\x80", "\xa0\x80", "\x90\x80\x80"};
    char text[8];
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        size_t n = strlen(more[i]);
        if (len > 3)
            return false;
        memcpy(text, at, len);
        memcpy(text + len, more[i], n);
        if (sr_is_utf8(sr_bytes_of(text, len + n)))
            return true;
    }
    return false;
}

/* Whether it is UTF-8, or may become it. */
static bool wsframe_text(const char *at, size_t len)
{
    for (size_t cut = 0; cut <= 3 && cut <= len; cut++)
        if (sr_is_utf8(sr_bytes_of(at, len - cut)) && wsframe_begins(at + len - cut, cut))
            return true;
    return false;
}

static wsframe_found wsframe_whole(const uint8_t *in, size_t size)
{
    static char text[WSFRAME_LIMIT + 130];
    wsframe_found got = {0};
    size_t n = 0;
    unsigned of = 0;
    for (size_t i = 0; size - i >= 2;) {
        unsigned first = in[i], kind = first & 15, len7 = in[i + 1] & 127;
        size_t wide = len7 == 126 ? 2 : len7 == 127 ? 8 : 0;
        bool control = kind >= 8, fin = first & 128;
        got.code = SR_CLOSE_PROTOCOL;
        if (first & 0x70 || !(in[i + 1] & 128) || (kind > 2 && kind < 8) || kind > 10)
            return got;
        if (control ? !fin || len7 > 125 : (kind == 0) != (of != 0))
            return got;
        if (size - i < 6 + wide)
            return got.code = 0, got;
        uint64_t len = wide ? 0 : len7;
        for (size_t k = 0; k < wide; k++)
            len = len << 8 | in[i + 2 + k];
        if ((wide == 2 && len < 126) || (wide == 8 && (len < 65536 || len >> 63)))
            return got;
        got.code = SR_CLOSE_TOO_LARGE;
        if (!control && len > WSFRAME_LIMIT - n)
            return got;
        const uint8_t *mask = in + i + 2 + wide, *at = mask + 4;
        size_t here = size - (i + 6 + wide), some = len < here ? (size_t)len : here;
        i += 6 + wide + some;
        for (size_t k = 0; k < some; k++)
            text[n + k] = (char)(at[k] ^ mask[k % 4]);
        of = control ? of : kind ? kind : of;
        got.code = SR_CLOSE_UTF8;
        if (!control && of == SR_WSFRAME_TEXT && !wsframe_text(text, n + some))
            return got;
        got.code = 0;
        if (some < len)
            return got;
        if (kind == SR_WSFRAME_CLOSE) {
            const unsigned char *c = (unsigned char *)text + n;
            unsigned code = len ? len > 1 ? (unsigned)(c[0] << 8 | c[1]) : 0 : SR_CLOSE_NONE;
            got.code = len && !sr_wsframe_code(code)                             ? SR_CLOSE_PROTOCOL
                       : len && !sr_is_utf8(sr_bytes_of((char *)c + 2, len - 2)) ? SR_CLOSE_UTF8
                                                                                 : 0;
            if (got.code)
                return got;
            wsframe_note(&got, kind, code, (char *)c + (len ? 2 : 0), len ? len - 2 : 0);
        } else if (control) {
            wsframe_note(&got, kind, 0, text + n, len);
        } else {
            n += len;
            if (!fin)
                continue;
            got.code = of == SR_WSFRAME_TEXT && !sr_is_utf8(sr_bytes_of(text, n)) ? SR_CLOSE_UTF8 : 0;
            if (got.code)
                return got;
            wsframe_note(&got, of, 0, text, n);
            n = of = 0;
        }
    }
    return got;
}

FUZZ_TARGET(wsframe)
{
    wsframe_found pieces = wsframe_pieces(data, size), whole = wsframe_whole(data, size);
    MUST(pieces.n == whole.n && pieces.sum == whole.sum && pieces.code == whole.code);
    return 0;
}
