#ifndef SR_PROXYHEAD_H
#define SR_PROXYHEAD_H
/*
 * proxyhead: the header of the PROXY protocol (--proxy-protocol), which comes before all else on a
 * connection.
 */
#include "engine.h"

typedef enum sr_proxyhead {
    /* the header is not complete and what came is kept; or it is, and nothing follows yet */
    SR_PROXYHEAD_MORE,
    SR_PROXYHEAD_DONE, /* the header was read; the view is now what follows it */
    SR_PROXYHEAD_BAD,  /* close the connection without an answer */
} sr_proxyhead;

/*
 * Reads the header of the PROXY protocol, for a connection with c->proxy_header, and sets its peer.
 * `in_scratch`: the view lies in the scratch buffer, not in c->in.
 */
sr_proxyhead sr_proxyhead_take(sr_conn *c, sr_bytes *view, bool in_scratch);

#endif
