#include "coding.h"

#include "field.h"

enum { UNSAID = -1, IDENTITY = SR_CODINGS, STAR, NAMES };

static const sr_bytes names[] = {
    [SR_CODING_BR] = {"br", 2},
    [SR_CODING_ZSTD] = {"zstd", 4},
    [SR_CODING_GZIP] = {"gzip", 4},
    [IDENTITY] = {"identity", 8},
    [STAR] = {"*", 1},
};

/* "0.5" is 500. -1: it is no qvalue (RFC 9110 12.4.2). */
static int quality(sr_bytes s)
{
    int value = 0, unit = 1000;
    if (!s.len || s.len > 5 || (s.at[0] != '0' && s.at[0] != '1') || (s.len > 1 && s.at[1] != '.'))
        return UNSAID;
    for (size_t i = 0; i < s.len; i++) {
        if (i == 1)
            continue;
        if (!sr_char_is((unsigned char)s.at[i], SR_CHAR_DIGIT))
            return UNSAID;
        value += (s.at[i] - '0') * unit;
        unit /= 10;
    }
    return value <= 1000 ? value : UNSAID;
}

/* "gzip;q=0.5": the name, and its weight. -1: it is malformed. */
static int element_of(sr_bytes element, sr_bytes *name)
{
    const char *semicolon = element.len ? memchr(element.at, ';', element.len) : NULL;
    *name = element;
    if (!semicolon)
        return element.len ? 1000 : UNSAID;
    *name = sr_trim(sr_bytes_of(element.at, (size_t)(semicolon - element.at)));
    sr_bytes weight = sr_trim(sr_bytes_of(semicolon + 1, element.len - (size_t)(semicolon + 1 - element.at)));
    if (weight.len < 2 || (weight.at[0] | 0x20) != 'q' || weight.at[1] != '=')
        return UNSAID;
    return quality(sr_bytes_of(weight.at + 2, weight.len - 2));
}

static void element(int q[NAMES], sr_bytes text)
{
    sr_bytes name;
    int weight = element_of(text, &name);
    if (weight == UNSAID)
        return;
    if (sr_bytes_equal_nocase(name, SR_BYTES("x-gzip"))) /* RFC 9110 8.4.1.3 */
        name = names[SR_CODING_GZIP];
    for (int i = 0; i < NAMES; i++)
        if (sr_bytes_equal_nocase(name, names[i]))
            q[i] = weight;
}

size_t sr_coding_wanted(const sr_request *r, const char *base, sr_coding out[SR_CODINGS])
{
    int q[NAMES];
    sr_bytes list, text;
    size_t n = 0;
    uint32_t i = 0;
    for (int k = 0; k < NAMES; k++)
        q[k] = UNSAID;
    while (sr_field_next(r, base, SR_BYTES("accept-encoding"), &i, &list))
        while (sr_list_next(&list, &text))
            element(q, text);
    for (int k = 0; k < SR_CODINGS; k++) {
        int weight = q[k] == UNSAID ? q[STAR] : q[k];
        if (weight <= 0 || weight < q[IDENTITY])
            continue;
        size_t at = n++;
        q[k] = weight;
        for (; at > 0 && q[out[at - 1]] < weight; at--)
            out[at] = out[at - 1];
        out[at] = (sr_coding)k;
    }
    return n;
}

sr_bytes sr_coding_name(sr_coding coding)
{
    return coding < SR_CODINGS ? names[coding] : SR_BYTES("");
}

sr_bytes sr_coding_extension(sr_coding coding)
{
    static const sr_bytes extensions[] = {
        [SR_CODING_BR] = {".br", 3}, [SR_CODING_ZSTD] = {".zst", 4}, [SR_CODING_GZIP] = {".gz", 3}};
    return coding < SR_CODINGS ? extensions[coding] : SR_BYTES("");
}
