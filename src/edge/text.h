#ifndef SR_TEXT_H
#define SR_TEXT_H
/* text: how messages of the edge name a request and its client. For all files of the edge. */
#include "../http/traced.h"
#include "edge.h"

enum {
    SR_TEXT_LINE_MAX = 400, /* of a request line, escaped; what does not fit is left out */
    SR_TEXT_CLIENT_MAX = SR_PEER_TEXT_MAX + 16,
};

/* "GET /path". Returns its length; not NUL-terminated. */
size_t sr_text_line(const sr_edge *ed, uint32_t slot, char out[SR_TEXT_LINE_MAX]);

/* "127.0.0.1:5555", "[::1]:5555", "unix" */
void sr_text_client(const sr_peer *peer, char out[SR_TEXT_CLIENT_MAX]);

/*
 * The request of a slot, for as long as it has the slot; `base` is where its spans point. NULL: it is in a
 * file, and there was no memory for a copy, or nobody has asked for one (sr_text_copies).
 */
const sr_request *sr_text_request(const sr_edge *ed, uint32_t slot, const char **base);

/*
 * The id of the request of a slot. Of one that is in a file, without a copy, it is the one that the server
 * makes.
 */
sr_bytes sr_text_id(const sr_edge *ed, uint32_t slot, char made[SR_REQUEST_ID_MADE]);

/* Whether copies are kept of requests that are in a file. */
static inline bool sr_text_copies(const sr_edge *ed)
{
    return ed->log || ed->slow.limit_ns;
}

/*
 * Method and target of a request, as the client has sent them: "GET /path". Returns its length; what does not
 * fit is left out.
 */
size_t sr_text_request_line(const sr_request *r, const char *base, char out[SR_LINE_MAX]);

#endif
