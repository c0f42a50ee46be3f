#include "fold.h"

enum {
    HEX = 8,      /* digits that make an id, if one is decimal */
    HEX_ANY = 16, /* likewise, whatever they are */
    RANDOM = 16,  /* characters of a random word */
    CHANGES =
        5, /* from upper case, lower case or digits to another of these, in a random word with two numbers */
    LOOKED_AT = 128,  /* characters of a segment: its client chooses how long it is */
    EXTENSION_MAX = 5 /* characters behind the dot */
};

typedef enum class { OTHER, SIGN, UPPER, LOWER, DIGIT } class;

static class class_of(char c)
{
    if (c >= '0' && c <= '9')
        return DIGIT;
    if (c >= 'a' && c <= 'z')
        return LOWER;
    if (c >= 'A' && c <= 'Z')
        return UPPER;
    return c != '\0' && strchr("-_.~=", c) ? SIGN : OTHER;
}

static bool is_hex(char c)
{
    return class_of(c) == DIGIT || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* "42", "2024-01-31", "1.5" */
static bool is_number(sr_bytes s)
{
    size_t digits = 0;
    for (size_t i = 0; i < s.len; i++) {
        digits += class_of(s.at[i]) == DIGIT;
        if (class_of(s.at[i]) != DIGIT && (s.at[i] == '\0' || !strchr("-_.,:+~", s.at[i])))
            return false;
    }
    return digits > 0;
}

/* 8-4-4-4-12 */
static bool is_uuid(sr_bytes s)
{
    for (size_t i = 0; i < s.len; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? s.at[i] != '-' : !is_hex(s.at[i]))
            return false;
    return s.len == 36;
}

static bool is_long_hex(sr_bytes s)
{
    size_t digits = 0;
    for (size_t i = 0; i < s.len; i++) {
        digits += class_of(s.at[i]) == DIGIT;
        if (!is_hex(s.at[i]))
            return false;
    }
    return s.len >= HEX_ANY || (s.len >= HEX && digits);
}

/*
 * In a random word, upper case, lower case and digits take turns: in base64 about two of three characters
 * differ in kind from the one before. In words that people have made, "10-ways-to-use-perl5" or
 * "iPhone15Pro", fewer do, and digits stand together.
 */
static bool is_random(sr_bytes s)
{
    class last = OTHER;
    size_t changes = 0, numbers = 0;
    for (size_t i = 0; i < s.len; i++) {
        class now = class_of(s.at[i]);
        if (now == OTHER)
            return false;
        changes += last > SIGN && now > SIGN && now != last;
        numbers += now == DIGIT && last != DIGIT;
        last = now;
    }
    return s.len >= RANDOM && numbers &&
           (changes * 2 > s.len || (numbers > 1 && changes >= CHANGES && changes * 6 >= s.len));
}

bool sr_fold_is_id(sr_bytes s)
{
    if (s.len > LOOKED_AT)
        s.len = LOOKED_AT;
    return is_number(s) || is_uuid(s) || is_long_hex(s) || is_random(s);
}

/* The length of ".json" at the end; 0: there is none. */
static size_t extension(sr_bytes s)
{
    for (size_t n = 1; n <= EXTENSION_MAX + 1 && n < s.len; n++) {
        char c = s.at[s.len - n];
        if (c == '.')
            return n > 1 && class_of(s.at[s.len - n + 1]) != DIGIT ? n : 0;
        if (class_of(c) <= SIGN)
            return 0;
    }
    return 0;
}

/* False: it does not fit, and the rest does not either. */
static bool add(char out[SR_FOLD_MAX], size_t *len, sr_bytes s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (*len == SR_FOLD_MAX) {
            memcpy(out + SR_FOLD_MAX - 3, "...", 3);
            return false;
        }
        out[(*len)++] = s.at[i] > ' ' && s.at[i] < 0x7f ? s.at[i] : '?';
    }
    return true;
}

static bool add_segment(char out[SR_FOLD_MAX], size_t *len, sr_bytes s)
{
    size_t n = extension(s);
    sr_bytes stem = {s.at, s.len - n};
    if (n && sr_fold_is_id(stem))
        return add(out, len, SR_BYTES(":id")) && add(out, len, sr_bytes_of(s.at + stem.len, n));
    return add(out, len, sr_fold_is_id(s) ? SR_BYTES(":id") : s);
}

size_t sr_fold(sr_bytes path, char out[SR_FOLD_MAX])
{
    size_t len = 0;
    if (!path.len)
        path = SR_BYTES("/");
    for (size_t i = 0; i < path.len;) {
        const char *slash = memchr(path.at + i, '/', path.len - i);
        size_t end = slash ? (size_t)(slash - path.at) : path.len;
        if (end > i && !add_segment(out, &len, sr_bytes_of(path.at + i, end - i)))
            break;
        if (slash && !add(out, &len, SR_BYTES("/")))
            break;
        i = end + (slash != NULL);
    }
    return len;
}
