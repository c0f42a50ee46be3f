#ifndef SR_EXTRA_H
#define SR_EXTRA_H
/* extra: the fields that options of the server add to each final response: --hsts, --request-id-header. */
#include "../http/response.h"
#include "engine.h"

/* Appends them; `fields` are those of the application, which win. */
sr_response_error sr_extra_fields(sr_engine *e, sr_exchange *x, sr_response *r, sr_bytes fields,
                                  sr_buffer *out);

#endif
