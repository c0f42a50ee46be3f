#ifndef SR_EXTRA_H
#define SR_EXTRA_H
/*
 * extra: the fields of a final response but those that every version of HTTP frames with: of the application, and what options of the
 * server add to them, --hsts and --request-id-header.
 */
#include "../http/response.h"
#include "engine.h"

/* Appends them as lines, for a response that was begun (sr_response_begin). The application's win. */
sr_response_error sr_extra_fields(sr_engine *e, sr_exchange *x, sr_response *r, const sr_head *h,
                                  sr_buffer *out);

#endif
