#include "traced.h"

#include "token.h"

static const sr_bytes none = {NULL, 0};

static sr_bytes only(const sr_request *r, const char *base, sr_bytes name)
{
    sr_bytes found = none;
    for (uint32_t i = 0; i < r->n_fields; i++) {
        if (r->fields[i].name.len != name.len ||
            !sr_bytes_equal_nocase(sr_span_in(base, r->fields[i].name), name))
            continue;
        if (found.at)
            return none;
        found = sr_span_in(base, r->fields[i].value);
    }
    return found;
}

static bool is_letter(char c)
{
    return (unsigned)((c | 0x20) - 'a') < 26;
}

bool sr_traced_is_id(sr_bytes value)
{
    for (size_t i = 0; i < value.len; i++)
        if (!is_letter(value.at[i]) && !sr_char_is((unsigned char)value.at[i], SR_CHAR_DIGIT) &&
            !memchr("-_.~+/=:@", value.at[i], 9))
            return false;
    return value.len && value.len <= SR_REQUEST_ID_MAX;
}

sr_bytes sr_traced_id(const sr_request *r, const char *base)
{
    sr_bytes id = only(r, base, SR_BYTES("x-request-id"));
    return sr_traced_is_id(id) ? id : none;
}

/* 2 digits of version, 32 of the trace, 16 of the span, 2 of flags: Trace Context, 3.2.2. */
enum { TRACE = 3, SPAN = 36, FLAGS = 53, END = 55 };

static bool is_hex(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!sr_char_is((unsigned char)at[i], SR_CHAR_DIGIT) && (unsigned)(at[i] - 'a') >= 6)
            return false;
    return true;
}

static bool is_zero(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (at[i] != '0')
            return false;
    return true;
}

/* What a later version has behind the flags is unknown, but separated. */
static bool ends_well(sr_bytes s)
{
    if (memcmp(s.at, "00", 2) == 0 || s.len == END)
        return s.len == END;
    for (size_t i = END; i < s.len; i++)
        if (s.at[i] <= ' ' || s.at[i] > '~' || s.at[i] == '"' || s.at[i] == '\\')
            return false;
    return s.at[END] == '-';
}

sr_bytes sr_traced_parent(const sr_request *r, const char *base)
{
    sr_bytes s = only(r, base, SR_BYTES("traceparent"));
    bool valid = s.len >= END && s.len <= SR_TRACEPARENT_MAX && is_hex(s.at, 2) &&
                 memcmp(s.at, "ff", 2) != 0 && s.at[TRACE - 1] == '-' && is_hex(s.at + TRACE, 32) &&
                 !is_zero(s.at + TRACE, 32) && s.at[SPAN - 1] == '-' && is_hex(s.at + SPAN, 16) &&
                 !is_zero(s.at + SPAN, 16) && s.at[FLAGS - 1] == '-' && is_hex(s.at + FLAGS, 2) &&
                 ends_well(s);
    return valid ? s : none;
}

sr_bytes sr_traced_make(char out[SR_REQUEST_ID_MADE], uint64_t nonce, uint64_t number)
{
    for (size_t i = 0; i < SR_REQUEST_ID_MADE; i++) {
        uint64_t half = i < SR_REQUEST_ID_MADE / 2 ? nonce : number;
        out[i] = "0123456789abcdef"[half >> (60 - 4 * (i % 16)) & 15];
    }
    return sr_bytes_of(out, SR_REQUEST_ID_MADE);
}
