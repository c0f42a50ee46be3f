#ifndef SR_ACCESSLOG_H
#define SR_ACCESSLOG_H
/*
 * accesslog: a line for each request that is over (account.c), in a format (http/logformat.h), to a sink (net/sink.h).
 *
 * A line has values of the request, which are gone when its last byte is out, and of the end. So whoever ends a response offers
 * the values first: when all is out by then, the line is made in one go; else their part of it is kept with the connection. A
 * request that the server refuses is logged from its raw bytes, unless somebody else has them and offers their values.
 *
 * Owner: the engine; NULL there: nothing is logged. Failure: a line that can't be made or written is lost, and counted in the
 * counters of the row.
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
    uint64_t lost;   /* lines, as far as they are counted */
    bool failed;     /* the last batch was lost, or a part of it */
    const sr_logsource
        *source;              /* offered for a response that is being ended; NULL: its line is made or kept */
    const struct sr_conn *of; /* whose it is */
    sr_bytes response;        /* the server's own, while its line is made or kept; at NULL: it is none */
} sr_accesslog;

struct sr_engine;

/*
 * Before the first event: log each request there. `log` is malloc'ed, its first four members are set, and it is the engine's
 * from now on. 0 or errno.
 */
int sr_accesslog_begin(struct sr_engine *e, sr_accesslog *log);

/* With a log: its file was moved away. What waits goes to the old descriptor; fd is the log's from now on. */
void sr_accesslog_replace(struct sr_engine *e, int fd);
/* With a log, before the end of a response: where the values of its line are. Good until that returns. */
void sr_accesslog_offer(struct sr_engine *e, const struct sr_conn *c, const sr_logsource *source);
void sr_accesslog_refuse(struct sr_engine *e, struct sr_conn *c,
                         sr_bytes response); /* before its bytes are forgotten */
void sr_accesslog_over(struct sr_engine *e, struct sr_conn *c, bool aborted); /* its line */

/* With or without: */
void sr_accesslog_keep(struct sr_engine *e,
                       struct sr_conn *c); /* what was offered is not used up: for later */
void sr_accesslog_forget(struct sr_conn *c);
void sr_accesslog_timer(struct sr_engine *e); /* its timer has run down */
void sr_accesslog_end(struct sr_engine *e);

#endif
