#include "token.h"

/* The classes as RFC 9110 and RFC 3986 define them; the compiler makes a table of them. */
#define BETWEEN(c, lo, hi) ((c) >= (lo) && (c) <= (hi))
#define DIGIT(c) BETWEEN(c, '0', '9')
#define LOWER(c) BETWEEN(c, 'a', 'z')
#define ALNUM(c) (DIGIT(c) || LOWER(c) || BETWEEN(c, 'A', 'Z'))
#define HEX(c) (DIGIT(c) || BETWEEN(c, 'a', 'f') || BETWEEN(c, 'A', 'F'))
/* In both tchar and sub-delims, except the comma: ! $ & ' * + */
#define SHARED(c) ((c) == '!' || (c) == '$' || BETWEEN(c, '&', '\'') || BETWEEN(c, '*', '+'))
#define TCHAR(c)                                                                                             \
    (ALNUM(c) || SHARED(c) || (c) == '#' || (c) == '%' || BETWEEN(c, '-', '.') || BETWEEN(c, '^', '`') ||    \
     (c) == '|' || (c) == '~')
#define VALUE(c) (((c) >= 0x20 && (c) != 0x7f) || (c) == '\t')
/*
 * RFC 3986 has no bytes above 0x7f, but browsers and scripts send them, and all parsers agree on where such a
 * target ends.
 */
#define TARGET(c) ((BETWEEN(c, 0x21, 0x7e) && (c) != '#') || (c) >= 0x80)
#define PATH(c) (TARGET(c) && (c) != '?' && (c) != '%' && (c) != '\\')
#define HOST(c)                                                                                              \
    (ALNUM(c) || SHARED(c) || BETWEEN(c, '-', '.') || BETWEEN(c, '(', ')') || (c) == '_' || (c) == '~' ||    \
     (c) == ';' || (c) == '=' || (c) == '%')

#define CLASSES(c)                                                                                           \
    ((TCHAR(c) ? SR_CHAR_TOKEN : 0) | (VALUE(c) ? SR_CHAR_VALUE : 0) | (TARGET(c) ? SR_CHAR_TARGET : 0) |    \
     (HOST(c) ? SR_CHAR_HOST : 0) | (DIGIT(c) ? SR_CHAR_DIGIT : 0) | (HEX(c) ? SR_CHAR_HEX : 0) |            \
     (LOWER(c) ? SR_CHAR_LOWER : 0) | (PATH(c) ? SR_CHAR_PATH : 0))
#define FOUR(c) CLASSES(c), CLASSES((c) + 1), CLASSES((c) + 2), CLASSES((c) + 3)
#define SIXTEEN(c) FOUR(c), FOUR((c) + 4), FOUR((c) + 8), FOUR((c) + 12)
#define SIXTY_FOUR(c) SIXTEEN(c), SIXTEEN((c) + 16), SIXTEEN((c) + 32), SIXTEEN((c) + 48)

const uint8_t sr_char_class[256] = {SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192)};

int sr_hex_value(unsigned char c)
{
    if (!sr_char_is(c, SR_CHAR_HEX))
        return -1;
    return sr_char_is(c, SR_CHAR_DIGIT) ? c - '0' : (c | 0x20) - 'a' + 10;
}

bool sr_all_are(sr_bytes s, unsigned classes)
{
    for (size_t i = 0; i < s.len; i++)
        if (!sr_char_is((unsigned char)s.at[i], classes))
            return false;
    return true;
}

/* Compares eight bytes at once if all of them are letters or '-', as in nearly all field names. */
static inline bool all_plain(const char *at)
{
    const uint64_t ones = 0x0101010101010101, high = ones * 0x80;
    uint64_t w;
    memcpy(&w, at, sizeof w);
    uint64_t low = w & ~high, lower = low | ones * 0x20; /* no sum below carries into the next byte */
    uint64_t letter = (lower + ones * (0x80 - 'a')) & ~(lower + ones * (0x80 - 'z' - 1));
    uint64_t dash = ~((low ^ ones * '-') + ones * 0x7f);
    return ((letter | dash) & ~w & high) == high;
}

bool sr_is_token(sr_bytes s)
{
    if (s.len >= 8) {
        size_t i = 0;
        while (i + 8 < s.len && all_plain(s.at + i))
            i += 8;
        if (i + 8 >= s.len && all_plain(s.at + s.len - 8)) /* the last eight may overlap those before */
            return true;
    }
    unsigned classes = SR_CHAR_TOKEN; /* no branch for each byte: nearly all of them are token bytes */
    for (size_t i = 0; i < s.len; i++)
        classes &= sr_char_class[(unsigned char)s.at[i]];
    return s.len > 0 && classes;
}

/* Whether any of these eight bytes is below 0x20, or is 0x7f. Field values are most of a head. */
static inline bool has_control(const char *at)
{
    const uint64_t ones = 0x0101010101010101, high = ones * 0x80;
    uint64_t w;
    memcpy(&w, at, sizeof w);
    uint64_t del = w ^ (ones * 0x7f);
    return ((((w - ones * 0x20) & ~w) | ((del - ones) & ~del)) & high) != 0;
}

bool sr_is_value(sr_bytes s)
{
    if (s.len < 8)
        return sr_all_are(s, SR_CHAR_VALUE);
    for (size_t i = 0; i < s.len; i += 8) {
        /* the last eight may overlap those before */
        const char *at = s.at + (i + 8 <= s.len ? i : s.len - 8);
        if (has_control(at) && !sr_all_are(sr_bytes_of(at, 8), SR_CHAR_VALUE)) /* HTAB is allowed */
            return false;
    }
    return true;
}

sr_bytes sr_trim(sr_bytes s)
{
    while (s.len && (*s.at == ' ' || *s.at == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* The offset after the quoted string that starts at i. s.len if it does not end. */
static size_t skip_quoted(sr_bytes s, size_t i)
{
    for (i++; i < s.len && s.at[i] != '"'; i++)
        if (s.at[i] == '\\' && i + 1 < s.len)
            i++;
    return i < s.len ? i + 1 : i;
}

bool sr_list_next(sr_bytes *list, sr_bytes *element)
{
    if (!list->at)
        return false;
    size_t i = 0;
    while (i < list->len && list->at[i] != ',')
        i = list->at[i] == '"' ? skip_quoted(*list, i) : i + 1;
    *element = sr_trim(sr_bytes_of(list->at, i));
    *list = i < list->len ? sr_bytes_of(list->at + i + 1, list->len - i - 1) : sr_bytes_of(NULL, 0);
    return true;
}

bool sr_list_has(sr_bytes list, sr_bytes token)
{
    sr_bytes element;
    while (sr_list_next(&list, &element))
        if (sr_bytes_equal_nocase(element, token))
            return true;
    return false;
}
