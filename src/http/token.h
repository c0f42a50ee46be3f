#ifndef SR_TOKEN_H
#define SR_TOKEN_H
/* token: character classes and comma-separated lists (RFC 9110 5.6). Pure; any thread. */
#include "../base/bytes.h"

enum {
    SR_CHAR_TOKEN = 1,  /* tchar, RFC 9110 5.6.2 */
    SR_CHAR_VALUE = 2,  /* field-vchar, SP, HTAB, obs-text: what a field value may hold, RFC 9110 5.5 */
    SR_CHAR_TARGET = 4, /* what is accepted in a request-target: VCHAR without '#', and bytes above 0x7f */
    SR_CHAR_HOST = 8,   /* reg-name and IPv4: unreserved, sub-delims without ',', '%', RFC 3986 3.2.2 */
    SR_CHAR_DIGIT = 16,
    SR_CHAR_HEX = 32,
    SR_CHAR_LOWER = 64, /* a-z */
    SR_CHAR_PATH = 128, /* those of SR_CHAR_TARGET that need no check in a path: not '?', '%', '\\' */
};
extern const uint8_t sr_char_class[256];

static inline bool sr_char_is(unsigned char c, unsigned classes)
{
    return (sr_char_class[c] & classes) != 0;
}

/* 0 to 15, or -1 if c is not a HEXDIG. */
int sr_hex_value(unsigned char c);

/* Whether every byte is of one of the classes; true for no bytes. */
bool sr_all_are(sr_bytes s, unsigned classes);

/*
 * Whether `name`, of `len` tchars, is `lower`, of as many a-z, 0-9 and '-', without regard to case. With
 * these alphabets lower case is a matter of bit 5; with a literal this takes a few instructions, eight bytes
 * at a time.
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

/* Whether it is 1*tchar. */
bool sr_is_token(sr_bytes s);

/* Whether every byte is of SR_CHAR_VALUE; true for no bytes. Faster than sr_all_are for long values. */
bool sr_is_value(sr_bytes s);

/* Without SP and HTAB at both ends (OWS). */
sr_bytes sr_trim(sr_bytes s);

/*
 * Cuts the next element off a comma-separated list and trims it. Empty elements are returned, for the caller
 * to decide about: "" is one empty element, "a," is "a" and an empty one. Commas inside quoted strings do not
 * separate. Returns false at the end of the list, which is list->at == NULL.
 */
bool sr_list_next(sr_bytes *list, sr_bytes *element);

/* Whether `token` is an element of `list`, without regard to case. */
bool sr_list_has(sr_bytes list, sr_bytes token);

#endif
