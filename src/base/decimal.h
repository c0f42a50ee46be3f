#ifndef SR_DECIMAL_H
#define SR_DECIMAL_H
/* decimal: a number as text. Pure; any thread. */
#include "bytes.h"

enum { SR_DECIMAL_MAX = 20 }; /* digits of a uint64_t */

/*
 * Writes the digits of n in front of `end`, where the caller has SR_DECIMAL_MAX bytes, or as many as n needs.
 */
static inline sr_bytes sr_decimal(char *end, uint64_t n)
{
    char *at = end;
    do
        *--at = (char)('0' + n % 10);
    while (n /= 10);
    return sr_bytes_of(at, (size_t)(end - at));
}

#endif
