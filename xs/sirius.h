#ifndef SIRIUS_XS_H
#define SIRIUS_XS_H
/*
 * What the files of xs/ share. They are the only code that knows both Perl and src/worker.
 *
 * Thread: everything here runs on the thread of perl. Owner: the object Sirius::Worker::Engine, of which a process
 * has one.
 *
 * "Inside" (sirius.inside) means that C code of the server runs, and that no handler of a signal may jump out
 * of it. Code of the application (the app itself, overloads, ties, DESTROY, getline) is always called
 * outside, by sirius_call. "Counted" means that the pointer holds a reference; "mortal" that perl frees the
 * value later.
 */
#define PERL_NO_GET_CONTEXT /* must precede perl's headers, or every call looks the interpreter up in TLS */
#include "EXTERN.h"
#include "perl.h"

#include "XSUB.h"

#ifndef SvREFCNT_dec_NN /* perl 5.16 */
#define SvREFCNT_dec_NN(sv) SvREFCNT_dec(sv)
#endif
#ifndef SVf_IsCOW /* perl 5.16: strings of the server are never shared, so the flag is not needed */
#define SVf_IsCOW 0
#endif

#include "base/resident.h"
#include "http/response.h"
#include "share/scoreboard.h"
#include "unchunk.h"
#include "worker/line.h"

#include <pthread.h>

typedef struct envpool_env envpool_env;           /* envpool.h */
typedef struct sirius_accesslog sirius_accesslog; /* accesslog.c */

typedef enum sirius_phase {
    SIRIUS_UNANSWERED, /* nothing of a final response was sent */
    SIRIUS_STREAMING,  /* the head was sent, and a writer may follow */
    SIRIUS_ANSWERED,   /* the response is complete */
    SIRIUS_BROKEN,     /* begun and impossible to complete: it will be cut */
} sirius_phase;

enum { SIRIUS_LISTENERS_MAX = 64 };

/* What all requests of a listener have in common. */
typedef struct sirius_site {
    SV *name, *port, *multiprocess, *scheme;
    HV *socket; /* class of psgix.io for its connections */
} sirius_site;

/*
 * The turn: the request at hand and its response. Each has a serial. A responder, a writer or a callback for
 * early hints that belongs to another serial does nothing.
 */
typedef struct sirius_turn {
    UV serial;
    const sirius_site *site; /* of its listener */
    bool open;               /* false between two requests, and once the response is complete */
    bool gone;               /* the client is gone, as far as is known */
    bool borrowed;           /* psgix.io: the application has the socket */
    uint32_t status;         /* of the final response; 0: there is none yet */
    HV *env;                 /* of pooled, or alone */
    HV *alone; /* env of a request that fits no shape. Counted: an exit frees temporaries before it answers */
    envpool_env *pooled; /* the entry of the pool that env is from; NULL: none */
    bool untouched;      /* the application has left the pooled env as it was; known once it has returned */
    bool failed;         /* the response is an error of the server's own */
    bool inert;          /* freeing what the application has returned runs no code */
    sirius_phase phase;
    bool writing;        /* something waits for the client: handlers of signals may run */
    bool catches;        /* code of the application waits for that, and is told if such a handler dies */
    SV *died;            /* what the handler died of. Counted */
    SSize_t temporaries; /* values on perl's stack of temporaries above this are of the request */
    bool giving_back; /* pooled is about to return to the pool; seen a second time, it is not used any more */
    sr_response response;
    SV *io;        /* glob of psgix.io, once somebody has read it. Counted */
    uint64_t left; /* SR_FRAMING_LENGTH: bytes of the body still to be sent */
} sirius_turn;

/* Whether the response is complete by its framing: whatever the application sends then is not part of it. */
static inline bool sirius_complete(const sirius_turn *t)
{
    return t->status && !t->gone &&
           (t->response.framing == SR_FRAMING_NONE || (t->response.framing == SR_FRAMING_LENGTH && !t->left));
}

enum { ENVPOOL_SHAPES = 4 };

typedef struct sirius {
#ifdef MULTIPLICITY
    PerlInterpreter *owner; /* no other is served: threads of the application get nothing */
#endif
    pthread_t thread;
    sr_worker worker;
    sr_worker_request request; /* of the turn */
    sr_row *row;               /* of this worker in the scoreboard; without one no_row */
    sr_scoreboard *board;      /* NULL: there is none; kept alive by `scoreboard` */
    sr_row no_row;
    bool app_close;                /* the application wants the connection closed */
    bool interim_broken;           /* half of an interim head was sent: the response can only be cut */
    bool said;                     /* END, CUT or TAKEN of this request was sent */
    volatile sig_atomic_t logging; /* log.c writes a line of the server */
    volatile sig_atomic_t inside;
    const void *outer, *frame; /* of perl, around the innermost sirius_call: see sirius_crossing */
    bool forked;               /* pthread_atfork says so: see sirius_forked */
    bool soon_said;            /* a successor was asked for */
    const char *why;           /* why this worker has to end; NULL: it has not */
    uint64_t served, soon_requests, max_requests, max_rss, rss;
    sr_resident resident;
    sr_sleepers *sleepers;
    size_t sleepers_bytes;
    int64_t looked_at; /* monotonic ns, for trouble of that edge */
    int report;        /* pipe to the generation; -1: there is none */
    int edge; /* pidfd of the edge that this process has started (--workers 0); -1: there is a supervisor */

    sirius_turn turn;
    unchunk unchunk; /* of the response that is being sent */
    SV *sending;     /* the scalar whose bytes a writer sends; NULL: none, or they can't change */
    const char *sending_at;
    bool retiring; /* sirius_work has returned "retiring" */
    sirius_site site[SIRIUS_LISTENERS_MAX];
    envpool_env *pool; /* ENVPOOL_SHAPES of them */
    unsigned pool_clock;
    sr_buffer head;    /* scratch: fields of the head that is being made */
    struct iovec *iov; /* scratch, as large as the largest response so far has needed */
    size_t iov_cap;
    char *piece;           /* scratch: a small file; NULL: there was none yet. Owned */
    SV *scoreboard;        /* the object that owns `board`. Counted */
    SV *log_format;        /* the Sirius::LogFormat of the access log. Counted */
    sirius_accesslog *log; /* NULL: there is none */
} sirius;

/*
 * Whether this is a child that the application has forked: it serves nothing. Also one that was made by the system call itself, of which
 * pthread_atfork does not hear.
 */
static inline bool sirius_forked(const sirius *s)
{
    return s->forked ||
           (s->worker.mine && sr_worker_is_child(&s->worker)); /* NULL: it has no edge yet, or no more */
}

/*
 * Handlers of signals have to wait: code runs that they must not jump out of, or the server writes a line of
 * its own log.
 */
static inline bool sirius_busy(const sirius *s)
{
    return (s->inside || s->logging) && !sirius_forked(s);
}

/*
 * Perl is on the way into code of the application, or out of it: the eval around that is not there yet, or not any more. A
 * handler that dies now would jump over the server.
 */
static inline bool sirius_crossing(pTHX_ const sirius *s)
{
#ifdef MULTIPLICITY
    if (aTHX != s->owner) /* also a thread that is not perl's */
        return false;
#endif
    return s->outer && !sirius_forked(s) &&
           (PL_top_env == s->outer || (PL_curstackinfo == s->frame && cxstack_ix < 0));
}

/* Goes inside. True: it was outside before, and the caller has to leave. */
static inline bool sirius_enter(sirius *s)
{
    bool was = s->inside;
    s->inside = 1;
    return !was;
}

static inline void sirius_leave(sirius *s, bool entered)
{
    if (entered)
        s->inside = 0;
}

#endif
