#include "range.h"

#include "token.h"

typedef enum { GOOD, OUTSIDE, BAD } one;

/* Digits only. A number that is too large for a file is as good as any other such number. */
static bool number(sr_bytes s, uint64_t *n)
{
    *n = 0;
    if (!s.len || !sr_all_are(s, SR_CHAR_DIGIT))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        uint64_t digit = (uint64_t)(s.at[i] - '0');
        *n = *n > (INT64_MAX - digit) / 10 ? INT64_MAX : *n * 10 + digit;
    }
    return true;
}

/* "500-999", "500-" or "-500" */
static one range_of(sr_range *out, sr_bytes s, uint64_t size)
{
    const char *dash = memchr(s.at, '-', s.len);
    uint64_t first, last = INT64_MAX;
    if (!dash)
        return BAD;
    sr_bytes from = sr_bytes_of(s.at, (size_t)(dash - s.at));
    sr_bytes to = sr_bytes_of(dash + 1, s.len - from.len - 1);
    if (to.len && !number(to, &last))
        return BAD;
    if (!from.len) {
        if (!to.len)
            return BAD;
        uint64_t length = last < size ? last : size;
        *out = (sr_range){size - length, length};
        return length ? GOOD : OUTSIDE;
    }
    if (!number(from, &first) || first > last)
        return BAD;
    if (first >= size)
        return OUTSIDE;
    *out = (sr_range){first, (last < size ? last + 1 : size) - first};
    return GOOD;
}

static sr_range_result parse(sr_ranges *out, sr_bytes list, uint64_t size)
{
    sr_bytes element;
    size_t given = 0;
    uint64_t sum = 0;
    while (sr_list_next(&list, &element)) {
        if (!element.len)
            continue;
        if (++given > SR_RANGES_MAX)
            return SR_RANGE_IGNORED;
        sr_range *range = &out->at[out->n];
        one result = range_of(range, element, size);
        if (result == BAD)
            return SR_RANGE_IGNORED;
        if (result == OUTSIDE)
            continue;
        if ((sum += range->length) > size)
            return SR_RANGE_IGNORED;
        out->n++;
    }
    if (!given)
        return SR_RANGE_IGNORED;
    return out->n ? SR_RANGE_PARTS : SR_RANGE_OUTSIDE;
}

sr_range_result sr_range_parse(sr_ranges *out, sr_bytes value, uint64_t size)
{
    const char *equal = value.len ? memchr(value.at, '=', value.len) : NULL;
    size_t unit = equal ? (size_t)(equal - value.at) : 0;
    sr_range_result result = SR_RANGE_IGNORED;
    out->n = 0;
    if (size && equal && sr_bytes_equal_nocase(sr_bytes_of(value.at, unit), SR_BYTES("bytes")))
        result = parse(out, sr_bytes_of(equal + 1, value.len - unit - 1), size);
    if (result != SR_RANGE_PARTS)
        out->n = 0;
    return result;
}
