#ifndef SR_ACCESSLOG_H
#define SR_ACCESSLOG_H
/*
 * accesslog: writes a line for each request that is over (account.h), in a format (log/format.h), to a
 * sink (log/sink.h).
 *
 * A line has values of the request, which are gone when its last byte is sent, and values that are known only
 * then. So the code that ends a response first offers a source of the values. If everything is sent at once,
 * the line is made from the source directly; otherwise the values are copied and kept with the exchange. A
 * request that the server refuses is logged from its raw bytes, unless somebody has them in a better form and
 * offers a source.
 *
 * Owner: the engine. sr_engine.log is NULL when nothing is logged.
 * Failure: a line that can't be made or written is lost, and counted in the row of the edge.
 */
#include "../http/request.h"
#include "../log/format.h"
#include "../log/sink.h"
#include "../net/loop.h"

typedef struct sr_accesslog {
    sr_logformat *format; /* the caller's; outlives the engine */
    sr_sink *sink;        /* owned */
    int64_t min_ns;       /* requests that took less are left out */
    bool errors_only;     /* log only 4xx, 5xx, and responses that were cut */

    /* private to accesslog.c */
    sr_source timer;              /* fires when the sink is due; kind SR_SOURCE_LOG */
    uint64_t lost;                /* lines, as far as they are counted */
    bool failed;                  /* the last batch was lost, or a part of it */
    const sr_logsource *source;   /* offered for a response that is about to end; NULL: there is none */
    const struct sr_exchange *of; /* the exchange that it was offered for */
    sr_bytes response;            /* a response of the server itself, while its line is made; at NULL: none */
} sr_accesslog;

struct sr_engine;

/*
 * Logs every request from now on. Call it before the first event. `log` was allocated with malloc and has its
 * first four members set; it belongs to the engine from now on. Returns 0 or errno.
 */
int sr_accesslog_begin(struct sr_engine *e, sr_accesslog *log);

/* --- only when there is a log --- */

/*
 * The log file was rotated: writes what is pending to the old descriptor and continues with fd, which is
 * taken over.
 */
void sr_accesslog_replace(struct sr_engine *e, int fd);

/*
 * The response of `x` is about to end, and its values can be asked for by `source` until the call that ends
 * it returns.
 */
void sr_accesslog_offer(struct sr_engine *e, const struct sr_exchange *x, const sr_logsource *source);

/* What is known of a request that is refused before it is one for the edge. */
typedef struct sr_refused {
    const sr_request *request; /* NULL: it has not even a method */
    const char *base;          /* where its spans point */
    sr_bytes line;             /* the first line, as it came; len 0: there is none */
    sr_bytes rule;             /* that it breaks; len 0: it is not known */
    bool trusted;              /* a trusted peer has sent it */
} sr_refused;

/*
 * The server refuses a request with a response, of which `response` is the head. False: no source was
 * offered; call the other one, before the bytes of the request are dropped.
 */
bool sr_accesslog_refuse_offered(struct sr_engine *e, struct sr_exchange *x, sr_bytes response);
void sr_accesslog_refuse(struct sr_engine *e, struct sr_exchange *x, sr_bytes response, const sr_refused *of);

/* The request is over: writes its line. */
void sr_accesslog_over(struct sr_engine *e, struct sr_exchange *x, bool aborted);

/*
 * For a source: the value of SR_LOG_REFUSED_BY, and of SR_LOG_REFUSED unless a rule is known that the request
 * has broken.
 */
sr_bytes sr_accesslog_reason(const struct sr_exchange *x);

/* --- with or without a log --- */

/* Copies the values of an offer that was not used up, as more is to be sent. */
void sr_accesslog_keep(struct sr_engine *e, struct sr_exchange *x);
void sr_accesslog_forget(struct sr_exchange *x); /* frees the copy */
void sr_accesslog_timer(struct sr_engine *e);    /* the timer has fired */
void sr_accesslog_end(struct sr_engine *e);      /* writes what is pending and frees the log */

#endif
