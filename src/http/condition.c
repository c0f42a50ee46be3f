#include "condition.h"

#include "date.h"
#include "field.h"

enum { SETTLED = 2 }; /* s after which a file can't change within the second of its Last-Modified any more */

typedef enum { ABSENT, NO, YES } answer;

/* Cuts the next entity-tag off a list; false at its end, or where it is malformed. */
static bool tag_next(sr_bytes *list, sr_bytes *tag, bool *weak)
{
    const char *at = list->at, *end = at + list->len;
    while (at < end && (*at == ' ' || *at == '\t' || *at == ','))
        at++;
    *weak = end - at >= 2 && at[0] == 'W' && at[1] == '/';
    at += *weak ? 2 : 0;
    const char *from = at;
    if (at == end || *at != '"')
        return false;
    const char *close = memchr(at + 1, '"', (size_t)(end - at) - 1);
    if (!close)
        return false;
    *tag = sr_bytes_of(from, (size_t)(close + 1 - from));
    *list = sr_bytes_of(close + 1, (size_t)(end - close) - 1);
    return true;
}

/* If-Match, which compares strongly, or If-None-Match, which does not (RFC 9110 8.8.3.2). */
static answer lists(const sr_request *r, const char *base, sr_bytes name, sr_bytes etag, bool weakly)
{
    sr_bytes list, tag;
    bool weak;
    answer result = ABSENT;
    for (uint32_t i = 0; sr_field_next(r, base, name, &i, &list);) {
        result = NO;
        if (sr_bytes_equal(list, SR_BYTES("*")))
            return YES;
        while (tag_next(&list, &tag, &weak))
            if ((weakly || !weak) && sr_bytes_equal(tag, etag))
                return YES;
    }
    return result;
}

/* YES: modified after the date of the field. What is no date is as good as absent (RFC 9110 13.1.3). */
static answer newer(const sr_request *r, const char *base, sr_bytes name, const sr_validators *v)
{
    sr_bytes value;
    int64_t date;
    if (v->modified < 0 || !sr_field_only(r, base, name, &value) || !sr_date_parse(value, v->now, &date))
        return ABSENT;
    return v->modified > date ? YES : NO;
}

sr_condition sr_condition_of(const sr_request *r, const char *base, const sr_validators *v)
{
    answer match = lists(r, base, SR_BYTES("if-match"), v->etag, false);
    if (match == NO)
        return SR_CONDITION_FAILED;
    if (match == ABSENT && newer(r, base, SR_BYTES("if-unmodified-since"), v) == YES)
        return SR_CONDITION_FAILED;
    answer none = lists(r, base, SR_BYTES("if-none-match"), v->etag, true);
    if (none == ABSENT)
        return newer(r, base, SR_BYTES("if-modified-since"), v) == NO ? SR_CONDITION_NOT_MODIFIED
                                                                      : SR_CONDITION_NONE;
    return none == YES ? SR_CONDITION_NOT_MODIFIED : SR_CONDITION_NONE;
}

bool sr_condition_if_range(const sr_request *r, const char *base, const sr_validators *v)
{
    sr_bytes value;
    uint32_t i = 0;
    int64_t date;
    if (!sr_field_next(r, base, SR_BYTES("if-range"), &i, &value))
        return true;
    if (!sr_field_only(r, base, SR_BYTES("if-range"), &value) || !value.len)
        return false;
    if (*value.at == '"')
        return sr_bytes_equal(value, v->etag);
    return v->modified >= 0 && sr_date_parse(value, v->now, &date) && date == v->modified &&
           v->now - date >= SETTLED;
}
