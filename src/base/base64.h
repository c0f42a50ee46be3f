#ifndef SR_BASE64_H
#define SR_BASE64_H
/* base64: RFC 4648 4, with padding and nothing else between. Pure; any thread. */
#include "bytes.h"

#define SR_BASE64_LEN(bytes) (((bytes) + 2) / 3 * 4)

/* What a digit stands for, 0 to 63; -1: it is none. */
int sr_base64_value(char c);

/* Writes SR_BASE64_LEN(s.len) bytes. */
void sr_base64_write(char *to, sr_bytes s);

/*
 * Writes less than s.len bytes to `to`, which may be where they are. Returns how many; SIZE_MAX: it is not
 * base64.
 */
size_t sr_base64_read(char *to, sr_bytes s);

#endif
