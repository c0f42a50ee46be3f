#include "chunked.h"

#include "../http/token.h"

enum phase {
    SIZE,    /* 1*16HEXDIG */
    SIZE_LF, /* the LF of the chunk-size line */
    EXT,     /* after ";": the name follows */
    EXT_NAME,
    EXT_NAMED,   /* white space after a name: "=" or ";" must follow */
    EXT_VALUE,   /* after "=": the first byte of the value */
    EXT_TOKEN,   /* the rest of a token value */
    EXT_QUOTED,  /* in a quoted string */
    EXT_ESCAPED, /* after a backslash in a quoted string */
    EXT_END,     /* after the closing quote */
    EXT_GAP,     /* white space after the size or after an extension: ";" must follow */
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER, /* the first byte of a trailer line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    DONE,
    BAD,
};

static sr_chunked_result refuse(sr_chunked *c, int status, const char *why)
{
    c->phase = BAD;
    c->status = status;
    c->why = why;
    return SR_CHUNKED_BAD;
}

static sr_chunked_result enter(sr_chunked *c, enum phase phase)
{
    c->phase = (uint8_t)phase;
    return SR_CHUNKED_MORE;
}

void sr_chunked_init(sr_chunked *c)
{
    memset(c, 0, sizeof *c);
}

static bool is_space(unsigned char b)
{
    return b == ' ' || b == '\t';
}

/* Handles the bytes that may follow a size or a complete extension. */
static sr_chunked_result size_end(sr_chunked *c, unsigned char b, const char *why)
{
    if (is_space(b))
        return enter(c, EXT_GAP);
    if (b == '\r')
        return enter(c, SIZE_LF);
    if (b == ';')
        return enter(c, EXT);
    return refuse(c, 400, why);
}

static sr_chunked_result size(sr_chunked *c, unsigned char b)
{
    int digit = sr_hex_value(b);
    if (digit < 0) {
        if (c->digits == 0)
            return refuse(c, 400, "a chunk has no size in hexadecimal digits");
        return size_end(c, b, "a chunk size is followed by a byte that is not allowed");
    }
    if (++c->digits > 16 || c->left >> 59) /* the size would not fit 63 bits */
        return refuse(c, 400, "a chunk size is too large: more than 16 digits, or not below 2^63");
    c->left = c->left << 4 | (unsigned)digit;
    return SR_CHUNKED_MORE;
}

/*
 * chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] ), RFC 9112 7.1.1. Anything else
 * is refused: TERM.EXT and EXT.TERM smuggling needs one parser that skips to the next LF here, and another
 * that does not.
 */
static sr_chunked_result extension(sr_chunked *c, unsigned char b)
{
    static const char why[] = "a chunk extension contains a byte that is not allowed";
    bool token = sr_char_is(b, SR_CHAR_TOKEN), space = is_space(b);
    switch (c->phase) {
    case EXT:
        if (space)
            return SR_CHUNKED_MORE;
        return token ? enter(c, EXT_NAME) : refuse(c, 400, "a chunk extension has no name");
    case EXT_NAME:
        if (token)
            return SR_CHUNKED_MORE;
        if (space || b == '=')
            return enter(c, space ? EXT_NAMED : EXT_VALUE);
        return size_end(c, b, why);
    case EXT_NAMED:
        if (space)
            return SR_CHUNKED_MORE;
        if (b == '=')
            return enter(c, EXT_VALUE);
        return b == ';' ? enter(c, EXT) : refuse(c, 400, why);
    case EXT_VALUE:
        if (space)
            return SR_CHUNKED_MORE;
        if (b == '"')
            return enter(c, EXT_QUOTED);
        return token ? enter(c, EXT_TOKEN) : refuse(c, 400, why);
    case EXT_TOKEN:
        return token ? SR_CHUNKED_MORE : size_end(c, b, why);
    case EXT_QUOTED:
        if (b == '"' || b == '\\')
            return enter(c, b == '"' ? EXT_END : EXT_ESCAPED);
        return sr_char_is(b, SR_CHAR_VALUE) ? SR_CHUNKED_MORE : refuse(c, 400, why);
    case EXT_ESCAPED:
        return sr_char_is(b, SR_CHAR_VALUE) ? enter(c, EXT_QUOTED) : refuse(c, 400, why);
    case EXT_END:
        return size_end(c, b, why);
    default: /* EXT_GAP */
        if (space)
            return SR_CHUNKED_MORE;
        return b == ';' ? enter(c, EXT)
                        : refuse(c, 400, "white space after a chunk size is not followed by a semicolon");
    }
}

static sr_chunked_result size_line(sr_chunked *c, unsigned char b)
{
    if (++c->line_len > SR_CHUNK_LINE_MAX)
        return refuse(c, 400, "a chunk-size line is too long: more than 4096 bytes");
    if (c->phase == SIZE)
        return size(c, b);
    if (c->phase != SIZE_LF) {
        if (++c->ext_len > SR_CHUNK_EXT_MAX)
            return refuse(c, 400, "the chunk extensions are too long: more than 16384 bytes in all");
        return extension(c, b);
    }
    if (b != '\n')
        return refuse(c, 400, "the CR after a chunk size is not followed by LF");
    return enter(c, c->left ? DATA : TRAILER);
}

/* Reads the CRLF after the data of a chunk. */
static sr_chunked_result data_end(sr_chunked *c, unsigned char b)
{
    if (b != (c->phase == DATA_CR ? '\r' : '\n'))
        return refuse(c, 400, "the data of a chunk is not followed by CRLF");
    if (c->phase == DATA_CR)
        return enter(c, DATA_LF);
    c->line_len = c->digits = 0;
    return enter(c, SIZE);
}

/*
 * The fields for framing, routing, authentication, request modifiers and content (RFC 9110 6.5.1), sorted by
 * length.
 */
static bool is_forbidden(sr_bytes name)
{
    static const sr_bytes forbidden[] = {
        {"te", 2},
        {"host", 4},
        {"range", 5},
        {"cookie", 6},
        {"expect", 6},
        {"trailer", 7},
        {"upgrade", 7},
        {"if-match", 8},
        {"if-range", 8},
        {"connection", 10},
        {"keep-alive", 10},
        {"content-type", 12},
        {"max-forwards", 12},
        {"authorization", 13},
        {"cache-control", 13},
        {"content-range", 13},
        {"if-none-match", 13},
        {"content-length", 14},
        {"content-encoding", 16},
        {"proxy-connection", 16},
        {"if-modified-since", 17},
        {"transfer-encoding", 17},
        {"if-unmodified-since", 19},
        {"proxy-authorization", 19},
    };
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (sr_bytes_equal(forbidden[i], name))
            return true;
    return false;
}

static sr_chunked_result trailer_name(sr_chunked *c, unsigned char b)
{
    if (sr_char_is(b, SR_CHAR_TOKEN)) {
        if (c->name_len < sizeof c->name)
            c->name[c->name_len] = b == '_' ? '-' : (char)sr_lower(b);
        /* stops one past the end, which marks a name longer than any in the list */
        c->name_len += c->name_len <= sizeof c->name;
        return enter(c, TRAILER_NAME);
    }
    if (b != ':' || c->name_len == 0)
        return refuse(c, 400, "a trailer line is not a valid field");
    if (c->name_len <= sizeof c->name && is_forbidden(sr_bytes_of(c->name, c->name_len)))
        return refuse(c, 400, "the field is not allowed in a trailer");
    return enter(c, TRAILER_VALUE);
}

static sr_chunked_result trailer(sr_chunked *c, unsigned char b)
{
    if (++c->trailer_len > SR_CHUNK_TRAILER_MAX)
        return refuse(c, 431, "the trailers are larger than 16384 bytes");
    switch (c->phase) {
    case TRAILER:
        if (b == '\r')
            return enter(c, LAST_LF);
        if (++c->trailers > SR_CHUNK_TRAILERS_MAX)
            return refuse(c, 431, "there are more than 100 trailer fields");
        c->name_len = 0;
        return trailer_name(c, b);
    case TRAILER_NAME:
        return trailer_name(c, b);
    case TRAILER_VALUE:
        if (b == '\r')
            return enter(c, TRAILER_LF);
        return sr_char_is(b, SR_CHAR_VALUE) ? SR_CHUNKED_MORE
                                            : refuse(c, 400, "a trailer line is not a valid field");
    default: /* TRAILER_LF, LAST_LF */
        if (b != '\n')
            return refuse(c, 400, "a CR in the trailers is not followed by LF");
        if (c->phase == TRAILER_LF)
            return enter(c, TRAILER);
        c->phase = DONE;
        return SR_CHUNKED_DONE;
    }
}

static sr_chunked_result step(sr_chunked *c, unsigned char b)
{
    if (c->phase < DATA)
        return size_line(c, b);
    return c->phase < TRAILER ? data_end(c, b) : trailer(c, b);
}

sr_chunked_result sr_chunked_feed(sr_chunked *c, sr_bytes in, size_t *used, sr_bytes *data)
{
    *used = 0;
    *data = sr_bytes_of(NULL, 0);
    if (c->phase >= DONE)
        return c->phase == DONE ? SR_CHUNKED_DONE : SR_CHUNKED_BAD;
    for (size_t i = 0; i < in.len;) {
        if (c->phase == DATA) {
            size_t n = c->left < in.len - i ? (size_t)c->left : in.len - i;
            c->left -= n;
            if (c->left == 0)
                c->phase = DATA_CR;
            *used = i + n;
            *data = sr_bytes_of(in.at + i, n);
            return SR_CHUNKED_DATA;
        }
        sr_chunked_result result = step(c, (unsigned char)in.at[i++]);
        *used = i;
        if (result != SR_CHUNKED_MORE)
            return result;
    }
    return SR_CHUNKED_MORE;
}

uint64_t sr_chunked_announced(const sr_chunked *c)
{
    return c->phase == DATA ? c->left : 0;
}
