#ifndef SR_TOKEN_H
#define SR_TOKEN_H
/* token: character classes and comma-separated lists (RFC 9110 5.6). Pure; any thread. */
#include "../base/bytes.h"

enum {
    SR_CHAR_TOKEN = 1,  /* tchar, RFC 9110 5.6.2 */
    SR_CHAR_VALUE = 2,  /* field-vchar, SP, HTAB, obs-text: what a field value may hold, RFC 9110 5.5 */
    SR_CHAR_TARGET = 4, /* what we take in a request-target: VCHAR without '#', and the bytes above 0x7f */
    SR_CHAR_HOST = 8,   /* reg-name and IPv4: unreserved, sub-delims without ',', '%', RFC 3986 3.2.2 */
    SR_CHAR_DIGIT = 16,
    SR_CHAR_HEX = 32,
    SR_CHAR_LOWER = 64, /* a-z */
    SR_CHAR_PATH = 128, /* of SR_CHAR_TARGET what needs no second look in a path: not '?', '%', '\\' */
};
extern const uint8_t sr_char_class[256];

static inline bool sr_char_is(unsigned char c, unsigned classes)
{
    return (sr_char_class[c] & classes) != 0;
}

/* 0-15, or -1 when c is no HEXDIG. */
int sr_hex_value(unsigned char c);

/* Every byte is of one of the classes; true for no bytes at all. */
bool sr_all_are(sr_bytes s, unsigned classes);

/*
 * `name` has `len` tchars, `lower` as many of a-z, 0-9 and '-': then setting bit 5 is all there is to lower case. With
 * a literal this is a few instructions, eight bytes at a time.
 */
static inline bool sr_token_is(const char *name, const char *lower, size_t len)
{
    const uint64_t fold = 0x2020202020202020;
    uint64_t a, b, differ = 0;
    if (len < sizeof a) {
        for (size_t i = 0; i < len; i++)
            differ |= (unsigned char)((name[i] | 0x20) ^ lower[i]);
        return !differ;
    }
    for (size_t i = 0; i < len; i += sizeof a) {
        size_t at = i + sizeof a <= len ? i : len - sizeof a; /* the last may overlap */
        memcpy(&a, name + at, sizeof a);
        memcpy(&b, lower + at, sizeof b);
        differ |= (a | fold) ^ b;
    }
    return !differ;
}

/* 1*tchar. */
bool sr_is_token(sr_bytes s);

/* Every byte is of SR_CHAR_VALUE; true for no bytes at all. Faster than sr_all_are on long values. */
bool sr_is_value(sr_bytes s);

/* Without SP and HTAB at both ends (OWS). */
sr_bytes sr_trim(sr_bytes s);

/*
 * Cuts the next element off a comma-separated list and trims it; empty elements are returned as empty, so the
 * caller decides about them: "" is one empty element, "a," is "a" and an empty one. Returns false when the
 * list is at its end, which list->at == NULL tells. Commas inside quoted strings do not separate.
 */
bool sr_list_next(sr_bytes *list, sr_bytes *element);

/* `token` is an element of `list`, without regard to case. */
bool sr_list_has(sr_bytes list, sr_bytes token);

#endif
