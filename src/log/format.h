#ifndef SR_LOGFORMAT_H
#define SR_LOGFORMAT_H
/*
 * format: lines of an access log. A format in the language of Apache's LogFormat is compiled once. A line
 * is made in one step, or in two: early, while the bytes of the request exist, and late, when the last byte
 * was sent.
 *
 * Owner: the caller of sr_logformat_new, who frees the program. Thread: one at a time, as the program keeps
 * the text of the present second. No I/O but a look at the time zone, no clock. Memory: new allocates; lines
 * need only what the caller's buffer needs.
 *
 * The language, the presets and the items are documented in lib/Sirius/LogFormat.pm.
 */
#include "../base/buffer.h"

/* Kinds of items. The values of those up to CUSTOM come from the source, as raw bytes. */
typedef enum sr_logkind {
    SR_LOG_REMOTE_ADDR,  /* %h %a */
    SR_LOG_USER,         /* %u */
    SR_LOG_REQUEST_LINE, /* %r, in one piece */
    SR_LOG_METHOD,       /* %m */
    SR_LOG_URI,          /* %{uri}r, the target as the client sent it */
    SR_LOG_PROTOCOL,     /* %H */
    SR_LOG_PATH,         /* %U */
    SR_LOG_QUERY,        /* %q, without its question mark */
    SR_LOG_SERVER_NAME,  /* %v */
    SR_LOG_HOST,         /* %V, the name that the client gave, else SERVER_NAME */
    SR_LOG_PORT,         /* %p */
    SR_LOG_IN,           /* %{name}i, a field of the request */
    SR_LOG_OUT,          /* %{name}o, a field of the response */
    SR_LOG_ENV,          /* %{name}e */
    SR_LOG_TLS,          /* %{name}x: SSL_PROTOCOL and the like (share/facts.h) */
    SR_LOG_REQUEST_ID,   /* %{request-id}x */
    SR_LOG_TRACEPARENT,  /* %{traceparent}x */
    SR_LOG_REFUSED,      /* %{refused}x, the rule that a refused request has broken, or the next one */
    SR_LOG_REFUSED_BY,   /* %{refused-by}x, the name of the reason (share/counters.h) */
    SR_LOG_CUSTOM,       /* %z or %{name}z of the caller: `letter`, and `name` unless its at is NULL */
    SR_LOG_TEXT,         /* from here on without the source, early */
    SR_LOG_TIME,         /* %t %{format}t */
    SR_LOG_PID,          /* %P */
    SR_LOG_STATUS,       /* from here on late. %s */
    SR_LOG_SIZE,         /* %b: - when it is unknown */
    SR_LOG_BODY_BYTES,   /* %B: 0 when it is unknown */
    SR_LOG_BYTES,        /* %O */
    SR_LOG_DURATION,     /* %D %T %{unit}T: since the request began, in `unit` ns */
    SR_LOG_QUEUE,        /* %{queue}D */
    SR_LOG_APP,          /* %{app}D */
    SR_LOG_CONNECTION,   /* %X: X cut, + kept, - closed */
    SR_LOG_NTH,          /* %k */
    SR_LOG_CUT_BY,       /* %{cut-by}x: whose doing it is that the response is not whole */
    SR_LOG_STREAM,       /* %{stream}x, of HTTP/2 */
    SR_LOG_HELD,         /* %{held}D */
    SR_LOG_MESSAGES,     /* %{messages}x */
} sr_logkind;

typedef struct sr_logitem {
    sr_logkind kind;
    char letter;   /* SR_LOG_CUSTOM */
    sr_bytes name; /* as the format has it; lives as long as the program */
    int64_t unit;  /* SR_LOG_DURATION, _QUEUE, _APP, _HELD */
    void *aux;     /* the caller's, for a fast `get`; NULL at first, never freed here */
    struct sr_logtime *time;
} sr_logitem;

typedef struct sr_logformat sr_logformat;

typedef struct sr_logformat_error {
    char message[96]; /* without the place: "unknown item %Z" */
    size_t offset;    /* of the first byte of what is wrong */
} sr_logformat_error;

/* Letters to which the caller gives a meaning, where the language has none for them: strings, or NULL. */
typedef struct sr_logletters {
    const char *chars;  /* %z */
    const char *blocks; /* %{name}z */
} sr_logletters;

/*
 * Compiles a format, or one of the presets common, combined, ltsv, json. NULL: *err says why, also for lack
 * of memory. `own` may be NULL.
 */
sr_logformat *sr_logformat_new(const char *text, size_t len, const sr_logletters *own,
                               sr_logformat_error *err);
void sr_logformat_free(sr_logformat *f); /* may be NULL */

/* The items in the order of the format: to set aux, and to know what the format asks for. */
sr_logitem *sr_logformat_items(const sr_logformat *f, size_t *count);
bool sr_logformat_has(const sr_logformat *f, sr_logkind kind);
uint64_t sr_logformat_id(const sr_logformat *f); /* a hash of its items, which tells formats apart */

typedef struct sr_logsource {
    void *ctx;
    /* Returns raw bytes, valid until the next call; NULL at: there is no value. */
    sr_bytes (*get)(void *ctx, const sr_logitem *item);
    int64_t wall; /* ns since 1970 when the request came; SR_LOGTIME_UNKNOWN: "-" */
    int pid;
} sr_logsource;

#define SR_LOG_BYTES_UNKNOWN UINT64_MAX
#define SR_LOG_NTH_UNKNOWN UINT32_MAX

typedef struct sr_logoutcome {
    int status;                         /* 0: none was sent */
    uint64_t body_bytes, bytes;         /* SR_LOG_BYTES_UNKNOWN */
    int64_t total_ns, queue_ns, app_ns; /* below 0: unknown */
    bool aborted, kept;
    bool broken;       /* aborted: because the response is incomplete, and not because the client is gone */
    uint32_t nth;      /* request of its connection, from 0; SR_LOG_NTH_UNKNOWN */
    uint32_t stream;   /* 0: there is none */
    int64_t held_ns;   /* below 0: it was not held */
    uint32_t messages; /* that it was sent while it was held */
} sr_logoutcome;

/*
 * All three append, and return false for lack of memory, with what they append to as it was. Pieces can be
 * read only by the program that wrote them. Their size is that of the line without the late items. Lines end
 * with "\n".
 */
bool sr_logformat_early(sr_logformat *f, const sr_logsource *source, sr_buffer *pieces);
bool sr_logformat_late(const sr_logformat *f, sr_bytes pieces, const sr_logoutcome *outcome, sr_buffer *out);
bool sr_logformat_line(sr_logformat *f, const sr_logsource *source, const sr_logoutcome *outcome,
                       sr_buffer *out);

#endif
