#ifndef SR_ACCESSLOG_H
#define SR_ACCESSLOG_H
/*
 * accesslog: a line for each request that is over (account.c), in a format (http/logformat.h), to a sink (net/sink.h).
 *
 * A line has values of the request, which are gone when its last byte is out, and of the end. So whoever ends a
 * response offers the values first: when all is out by then, the line is made in one go; else their part of it is kept
 * with the connection. A request that the server refuses is logged from its raw bytes, unless somebody else has them and
 * offers their values, and one that is cut while the application has it from its row in the scoreboard.
 *
 * Owner: the engine; NULL there: nothing is logged. Lock: the helm. Failure: a line that can't be made or written is lost,
 * and counted in the tally of the row.
 */
#include "../http/logformat.h"
#include "../net/loop.h"
#include "../net/sink.h"

typedef struct sr_accesslog {
    sr_logformat *format; /* the embedder's; outlives the engine */
    sr_sink *sink;        /* owned */
    int64_t min_ns;       /* requests that took less are left out */
    bool errors_only;     /* only 4xx and 5xx, and what was cut */

    /* private to accesslog.c */
    sr_source timer; /* of the sink's due time; kind SR_SOURCE_LOG */
    uint64_t lost;   /* lines, as far as the tally has them */
    bool failed;     /* the last batch was lost, or a part of it */
    const sr_logsource
        *source;              /* offered for a response that is being ended; NULL: its line is made or kept */
    const struct sr_conn *of; /* whose it is */
    sr_bytes response;        /* the server's own, while its line is made or kept; at NULL: it is none */
} sr_accesslog;

#endif
