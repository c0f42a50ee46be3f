#ifndef SR_EVENTHEAD_H
#define SR_EVENTHEAD_H
/*
 * eventhead: heads of the requests that tell an application of events, made of that of the request which has
 * opened the WebSocket: the same URI and fields, but those that are about the opening itself, and those that
 * only the edge may set. Kept as a head of HTTP/1.1 as it would be on the wire, so that the parser makes a
 * request of it. Pure; any thread.
 */
#include "../base/buffer.h"
#include "../http/request.h"

enum { SR_EVENTHEAD_META_MAX = 8192 }; /* bytes of all meta fields as lines */

/* Whether only the edge sets a field of this name in requests of events: Grip-*, Meta-*, Connection-Id. */
bool sr_eventhead_own(sr_bytes name);

/*
 * Appends what is the same in all of them: all but meta fields, the length, and the empty line. False: no
 * memory.
 */
bool sr_eventhead_begin(sr_buffer *out, const sr_request *r, const char *base, sr_bytes id);

/* Appends the rest. */
bool sr_eventhead_end(sr_buffer *out, sr_bytes meta, size_t body);

/* The value of a meta field among the lines. len 0: it is not set. */
sr_bytes sr_eventhead_meta_of(const sr_buffer *meta, sr_bytes name);

/* Sets a meta field among the lines, or removes it if the value is empty. False: no memory, or too many. */
bool sr_eventhead_meta(sr_buffer *meta, sr_bytes name, sr_bytes value);

#endif
