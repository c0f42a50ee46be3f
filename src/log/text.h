#ifndef SR_LOGTEXT_H
#define SR_LOGTEXT_H
/*
 * text: escapes values of a request for a line of a log, so that no client can forge or break a line.
 *
 * Appends to the caller's buffer. Failure: lack of memory only; returns false, and the buffer may hold a
 * part. No I/O, no locale; any thread.
 */
#include "../base/buffer.h"

/* Bytes 0x20 to 0x7e as they are, quotes and backslashes too; any other as \xNN. */
bool sr_logtext_add(sr_buffer *out, sr_bytes value);

/*
 * A JSON string with its quotes (RFC 8259 7). Valid UTF-8 (RFC 3629) stays as it is; any other byte becomes
 * the four characters \xNN. NULL at becomes null.
 */
bool sr_logtext_json(sr_buffer *out, sr_bytes value);

bool sr_logtext_number(sr_buffer *out, uint64_t n);

#endif
