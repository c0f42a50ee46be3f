#include "path.h"

#include "../http/token.h"

enum { END = -1, NOT_HEX = -2, SLASH = 256 }; /* SLASH: one that was encoded */

/* The byte at *i, decoded; moves *i behind it. */
static int next(sr_bytes s, size_t *i)
{
    if (*i >= s.len)
        return END;
    unsigned char c = (unsigned char)s.at[(*i)++];
    if (c != '%')
        return c;
    if (s.len - *i < 2)
        return NOT_HEX;
    int high = sr_hex_value((unsigned char)s.at[*i]), low = sr_hex_value((unsigned char)s.at[*i + 1]);
    if (high < 0 || low < 0)
        return NOT_HEX;
    *i += 2;
    int byte = high << 4 | low;
    return byte == '/' ? SLASH : byte;
}

size_t sr_path_below(sr_bytes path, sr_bytes prefix)
{
    size_t i = 0;
    for (size_t p = 0; p < prefix.len; p++)
        if (next(path, &i) != (unsigned char)prefix.at[p])
            return SR_PATH_NO_MATCH;
    return i == path.len || path.at[i] == '/' ? i : SR_PATH_NO_MATCH;
}

static bool is_plain(int c)
{
    return c >= ' ' && c != 0x7f && c != '\\' && c != SLASH;
}

sr_path_kind sr_path_decode_rest(char out[SR_PATH_MAX], sr_bytes rest)
{
    size_t i = 0, len = 0;
    bool first = true; /* of a name */
    out[0] = '\0';
    if (!rest.len)
        return SR_PATH_NAME;
    if (*rest.at != '/')
        return SR_PATH_BAD;
    for (i = 1; i < rest.len;) {
        int c = next(rest, &i);
        if (!is_plain(c) || (first && (c == '.' || c == '/')) || len + 1 >= SR_PATH_MAX)
            return SR_PATH_BAD;
        first = c == '/';
        out[len++] = (char)c;
    }
    if (first && len) /* the slash at the end */
        len--;
    out[len] = '\0';
    return first ? SR_PATH_FOLDER : SR_PATH_NAME;
}
