#ifndef SR_H2_PRIORITY_H
#define SR_H2_PRIORITY_H
/*
 * priority: whose bytes go first on a connection (RFC 9218), as the client says in the field Priority or in a
 * PRIORITY_UPDATE frame, and the application in the same field of its response. nghttp2 does what it says,
 * from 1.50 on; with an older one all streams are equal.
 */
#include "state.h"

void sr_h2_priority_options(nghttp2_option *option);
size_t sr_h2_priority_settings(nghttp2_settings_entry *to); /* how many: at most one */

/*
 * The head of the request is complete. One that says nothing shares the connection with others, in place of
 * going before or after them.
 */
void sr_h2_priority_request(sr_h2_stream *st);

/* A frame that is no part of a stream has come. */
void sr_h2_priority_update(sr_session *s, const nghttp2_frame *f);

/* The head of the response, of which st->priority is, was given to nghttp2. */
void sr_h2_priority_response(const sr_h2_stream *st);

#endif
