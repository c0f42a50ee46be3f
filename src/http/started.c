#include "started.h"

#include "token.h"

/* Seconds up to the year 5138; a larger number is in milliseconds, and so on. */
static int64_t unit_of(uint64_t whole)
{
    return whole < UINT64_C(100000000000)         ? 1000000000
           : whole < UINT64_C(100000000000000)    ? 1000000
           : whole < UINT64_C(100000000000000000) ? 1000
                                                  : 1;
}

static size_t digits_of(sr_bytes s, size_t i)
{
    size_t from = i;
    while (i < s.len && sr_char_is((unsigned char)s.at[i], SR_CHAR_DIGIT))
        i++;
    return i - from;
}

/* [ "t=" ] 1*DIGIT [ "." 1*DIGIT ], in ns since 1970; -1: it is something else. */
static int64_t parse(sr_bytes s)
{
    uint64_t whole = 0, part = 0;
    int64_t scale = 1;
    if (s.len > 2 && s.at[0] == 't' && s.at[1] == '=')
        s = sr_bytes_of(s.at + 2, s.len - 2);
    size_t n = digits_of(s, 0);
    if (!n || n > 19)
        return -1;
    for (size_t i = 0; i < n; i++)
        whole = whole * 10 + (uint64_t)(s.at[i] - '0');
    int64_t unit = unit_of(whole);
    if (whole > (uint64_t)(INT64_MAX / unit) - 1)
        return -1;
    if (n < s.len) {
        size_t more = s.at[n] == '.' ? digits_of(s, n + 1) : 0;
        if (!more || n + 1 + more != s.len)
            return -1;
        for (size_t i = 0; i < more && scale < unit; i++, scale *= 10)
            part = part * 10 + (uint64_t)(s.at[n + 1 + i] - '0');
    }
    return (int64_t)whole * unit + (int64_t)part * (unit / scale);
}

static sr_bytes last_element(sr_bytes s)
{
    const char *comma = sr_bytes_last(s, ',');
    return sr_trim(comma ? sr_bytes_of(comma + 1, (size_t)(s.at + s.len - comma) - 1) : s);
}

static int64_t before(sr_bytes value, int64_t wall)
{
    int64_t start = value.at ? parse(last_element(value)) : -1;
    int64_t ns = start >= 0 ? wall - start : -1;
    return ns > 0 && ns <= SR_STARTED_MAX ? ns : 0;
}

int64_t sr_started_before(const sr_request *r, const char *base, int64_t wall)
{
    static const sr_bytes names[] = {SR_BYTES("x-request-start"), SR_BYTES("x-queue-start")};
    sr_bytes values[2] = {{NULL, 0}, {NULL, 0}};
    for (uint32_t i = 0; i < r->n_fields; i++)
        for (size_t k = 0; k < 2; k++)
            if (r->fields[i].name.len == names[k].len &&
                sr_bytes_equal_nocase(sr_span_in(base, r->fields[i].name), names[k]))
                values[k] = sr_span_in(base, r->fields[i].value);
    int64_t ns = before(values[0], wall);
    return ns ? ns : before(values[1], wall);
}
