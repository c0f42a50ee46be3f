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
#include "http/forwarded.h"
#include "http/response.h"
#include "share/scoreboard.h"
#include "unchunk.h"
#include "worker/worker.h"

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

/* The request, as %env and the response need it. The pointers are valid until the request is done. */
typedef struct sirius_request {
    const sr_request *head;
    const char *base; /* the bytes that the spans of head point into */
    sr_bytes body;    /* if it is in memory */
    int body_fd;      /* a file, from offset 0, which whoever makes %env takes over; -1: it is in memory */
    uint64_t body_length;
    const sr_forwarded *forwarded; /* what trusted proxies say; NULL: nothing */
    sr_bytes facts; /* about its encrypted connection (share/facts.h); empty: it is not encrypted */
    sr_peer client;
    uint8_t listener; /* index */
    bool is_head;
    int64_t ready_at; /* monotonic ns at which it was complete */

    bool gone;       /* the client is gone, as far as is known */
    bool borrowed;   /* psgix.io: the application has the socket */
    uint32_t status; /* of the final response; 0: there is none yet */
} sirius_request;

/*
 * The turn: the request at hand and its response. Each has a serial. A responder, a writer or a callback for
 * early hints that belongs to another serial does nothing.
 */
typedef struct sirius_turn {
    UV serial;
    sirius_request *request; /* NULL between two requests, and once the response is complete */
    HV *env;                 /* of pooled, or alone */
    HV *alone; /* env of a request that fits no shape. Counted: an exit frees temporaries before it answers */
    envpool_env *pooled; /* the entry of the pool that env is from; NULL: none */
    bool forked;    /* the application has forked since the request began: a child may hold values of it */
    bool untouched; /* the application has left the pooled env as it was; known once it has returned */
    bool failed;    /* the response is an error of the server's own */
    bool inert;     /* freeing what the application has returned runs no code */
    sirius_phase phase;
    bool writing;        /* something waits for the client: handlers of signals may run */
    bool catches;        /* code of the application waits for that, and is told if such a handler dies */
    SV *died;            /* what the handler died of. Counted */
    SSize_t temporaries; /* values on perl's stack of temporaries above this are of the request */
    bool giving_back; /* pooled is about to return to the pool; seen a second time, it is not used any more */
    sr_response response;
    SV *trimmed;   /* name of a field whose value has lost its newline, to be logged. Counted */
    SV *io;        /* glob of psgix.io, once somebody has read it. Counted */
    uint64_t left; /* SR_FRAMING_LENGTH: bytes of the body still to be sent */
} sirius_turn;

/* Whether the response is complete by its framing: whatever the application sends then is not part of it. */
static inline bool sirius_complete(const sirius_turn *t)
{
    return t->request->status && !t->request->gone &&
           (t->response.framing == SR_FRAMING_NONE || (t->response.framing == SR_FRAMING_LENGTH && !t->left));
}

/* What all requests of a listener have in common. */
typedef struct sirius_site {
    SV *name, *port, *multiprocess, *scheme;
    HV *socket; /* class of psgix.io for its connections */
} sirius_site;

enum { ENVPOOL_SHAPES = 4 };

typedef struct sirius {
#ifdef MULTIPLICITY
    PerlInterpreter *owner; /* no other is served: threads of the application get nothing */
#endif
    pthread_t thread;
    sr_worker worker;
    sirius_request request; /* of the turn */
    sr_forwarded forwarded; /* of the request */
    sr_row *row;            /* of this worker in the scoreboard; without one no_row */
    sr_scoreboard *board;   /* NULL: there is none; kept alive by `scoreboard` */
    sr_row no_row;
    uint64_t known;                /* length of the body, or SR_LENGTH_UNKNOWN */
    bool app_close;                /* the application wants the connection closed */
    bool interim_broken;           /* half of an interim head was sent: the response can only be cut */
    bool said;                     /* END, CUT or TAKEN of this request was sent */
    bool returned;                 /* the application has returned */
    volatile sig_atomic_t logging; /* log.c writes a line of the server */
    volatile sig_atomic_t inside;
    const void *outer, *frame; /* of perl, around the innermost sirius_call: see sirius_crossing */
    bool forked;               /* pthread_atfork says so: see sirius_forked */
    bool soon_said;            /* a successor was asked for */
    const char *why;           /* why this worker has to end; NULL: it has not */
    uint64_t served, soon_requests, max_requests, max_rss, rss;
    sr_resident resident;
    int64_t wall_offset; /* ns, wall clock minus monotonic clock */
    sr_sleepers *sleepers;
    size_t sleepers_bytes;
    int64_t looked_at; /* monotonic ns, for trouble of that edge */
    int report;        /* pipe to the generation; -1: there is none */
    int edge; /* pidfd of the edge that this process has started (--workers 0); -1: there is a supervisor */

    sirius_turn turn;
    UV serial;       /* of the last turn */
    unchunk unchunk; /* of the response that is being sent */
    SV *sending;     /* the scalar whose bytes a writer sends; NULL: none, or they can't change */
    const char *sending_at;
    bool retiring;  /* sirius_work has returned "retiring" */
    bool leave;     /* psgix.harakiri: end after this response */
    bool plain_app; /* the application is a sub of Perl, which frees its temporaries when it returns */
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

/* --- engine.c --- */

SV *sirius_new(pTHX_ HV *conf); /* a mortal Sirius::Worker::Engine; croaks */
void sirius_free(pTHX_ sirius *s);

/* --- serve.c: one request --- */

/*
 * Before 5.24 perl left the temporaries of a sub to its caller. A copy of %env among them would still hold
 * psgix.io.
 */
enum { SIRIUS_FREES_TEMPORARIES = PERL_VERSION >= 24 };
void sirius_serve_boot(pTHX);

/* The engine of this process while it serves, else NULL: what callbacks of PSGI use. */
extern sirius *sirius_current;
sirius *sirius_own(pTHX); /* the same, but NULL in a thread of the application */
/*
 * The same, but NULL unless the request of this serial is being served; also in a child that was forked
 * meanwhile.
 */
sirius *sirius_alive(pTHX_ UV serial);

/* Serves s->request, which is complete. */
void sirius_serve_one(pTHX_ sirius *s, SV *app);

/*
 * Inside: the response is over, and the edge can go on with the connection, even if the application goes on
 * with something else. Does nothing the second time.
 */
void sirius_finish(pTHX_ sirius *s);

/*
 * Calls code of the application, outside, on a stack of its own, so that last, next and goto can't leave it.
 * NULL: it died, and $@ says of what.
 */
SV *sirius_call(pTHX_ sirius *s, SV *code, SV *arg1, SV *arg2);

/* Runs the handlers of signals that have come. One that dies is logged. In stream.c. */
void sirius_signals(pTHX_ sirius *s);

/* Log an error, or a warning, with the name of the request. `error` may be NULL. */
void sirius_log(pTHX_ sirius *s, const char *what, SV *error);
void sirius_warn(pTHX_ sirius *s, const char *what);

/* --- work.c: the loop of a worker, and memory that the supervisor shares --- */

/* Serves until something is to be done. Returns what, a static text; see Sirius::Worker. */
const char *sirius_work(pTHX_ sirius *s, SV *app);
sr_worker_what sirius_work_one(pTHX_ sirius *s, SV *app); /* serves the next request, if there is one */

/*
 * Called when a scope is left: finds out whether perl exits because it gets no memory ("Out of memory!", status 1), and tells the
 * generation. sirius_memory_over: what it has found, for END blocks.
 */
void sirius_memory_look(pTHX_ void *unused);
bool sirius_memory_over(void);
/* The application has called exit: answers 500. */
void sirius_abandon(pTHX_ sirius *s, const char *why);

void sirius_work_watch(
    sirius *s, int edge); /* return "edge" when that pidfd is readable, "trouble" when it has counted some */
void sirius_work_open(pTHX_ sirius *s, int sleepers, uint32_t row, uint32_t generation); /* croaks */
void sirius_work_close(pTHX_ sirius *s);

/* Shared memory for the edges, or for all. The descriptor is the caller's. Croak. */
int sirius_common_new(pTHX);
int sirius_sleepers_new(pTHX_ uint32_t rows);

/* An edge has ended without a word: clears what it has written there. Croak. */
void sirius_common_clear(pTHX_ int fd, uint32_t edge);
void sirius_sleepers_part(pTHX_ int fd, uint32_t edge);

/* No request will ever come: all workers end. Croaks. */
void sirius_sleepers_over(pTHX_ int fd);

/* Workers of this generation, and of those before, begin no request any more. Croaks. */
void sirius_sleepers_hold(pTHX_ int fd, uint32_t generation);

/* --- pass.c: notes with descriptors, over a socket that keeps them apart (SOCK_SEQPACKET) --- */

enum { SIRIUS_PASSED_MAX = 4, SIRIUS_PASSED_BYTES = 192 * 1024 };

/* False with errno: it was not sent. Does not wait for room where the socket does not block. */
bool sirius_send(pTHX_ int line, SV *bytes, const int *fds, int n);

/*
 * The next note and its descriptors, which are the caller's and close-on-exec. NULL: there is none (errno), or
 * the other end is closed (errno 0).
 */
SV *sirius_receive(pTHX_ int line, int fds[SIRIUS_PASSED_MAX], int *n);

/* --- poll.c --- */

/*
 * Sleeps until a descriptor has one of its events (of poll(2); POLLHUP and POLLERR always count), one of the
 * signals comes, which are blocked otherwise, or the seconds are over; a negative number is no limit. The
 * handlers of these signals have been called when it returns.
 */
void sirius_poll(pTHX_ AV *descriptors, AV *events, NV seconds, AV *signals);

/* --- spawn.c --- */

/*
 * Starts a program in a child, with these words, the first of which is its name. It has no handlers, no
 * signal is blocked, and these descriptors are open besides those that all programs get. Returns its PID;
 * croaks with the reason.
 */
int sirius_spawn(pTHX_ const char *path, AV *words, AV *descriptors);

/* --- env.c and forwarded.c --- */

void sirius_env_boot(pTHX);
sirius_site sirius_site_new(pTHX_ const char *name, const char *port, bool is_tls, bool multiprocess);

/* Inside: makes the environment of the turn. Returns a reference to it, which is mortal or the pool's. */
SV *sirius_env(pTHX_ sirius *s, const sirius_request *r);
void sirius_env_forwarded(pTHX_ HV *env, const sirius_request *r); /* r->forwarded is not NULL */

/* A value; NULL also if the application has tied or locked the hash, so that a look would run code or die. */
SV **sirius_env_fetch(pTHX_ HV *env, const char *key);
HE *sirius_env_fetch_ent(pTHX_ HV *env, SV *key); /* the same for a shared key */

/* True: there is certainly no cleanup handler and no harakiri in it. */
bool sirius_env_nothing_left(pTHX_ HV *env);

/* --- lazy.c: values of %env that are made when they are first read --- */

typedef enum sirius_lazy { SIRIUS_LAZY_IO, SIRIUS_LAZY_INFORMATIONAL } sirius_lazy;
SV *sirius_lazy_new(pTHX_ sirius_lazy kind);
void sirius_lazy_arm(pTHX_ SV *sv, UV serial);                    /* sets the request that it belongs to */
bool sirius_lazy_untouched(pTHX_ const SV *sv, sirius_lazy kind); /* neither read nor assigned */

/* --- socket.c: psgix.io. Nothing but drop runs code of Perl --- */

HV *sirius_socket_class(pTHX_ int family, bool is_tls); /* class for connections of a listener. Not counted */

/* A new reference to the handle of this request; undef when that is over. */
SV *sirius_socket(pTHX_ UV serial);
void sirius_socket_forks(pTHX_ sirius *s); /* the application is about to fork */
void sirius_socket_drop(pTHX_ sirius *s);  /* at the end of the turn; outside */

/* --- log.c: the layer :sirius_log --- */

void sirius_log_boot(pTHX);

/*
 * Writes one line of the server with its "\n", as bytes. `level` is static. Runs code of the application only
 * in a layer.
 */
void sirius_log_put(pTHX_ const char *at, size_t len, const char *level);

/* From now on this process waits for a slow reader for 10 ms at most. */
void sirius_log_hurry(void);

/* How many lines this process has lost and not said so, after `more` that it has to answer for. */
uint64_t sirius_log_lost(uint64_t more);

/* --- accesslog.c --- */

void sirius_accesslog_open(pTHX_ sirius *s, HV *conf); /* croaks */
void sirius_accesslog_free(pTHX_ sirius *s);
void sirius_accesslog_begin(sirius *s);     /* before the application is called: notes the request */
void sirius_accesslog_say(pTHX_ sirius *s); /* sends the edge the values that differ in %env now */

/* --- place.c: where perl is --- */

/*
 * The file that a worker forked by this process executes, and the line. NULL: the kernel does not allow to
 * look.
 */
SV *sirius_place(pTHX_ IV pid, UV *line);

/*
 * The same into `name`; returns the length, or 0. Calls nothing of perl: for any thread, and for this process
 * too.
 */
size_t sirius_place_copy(pTHX_ pid_t pid, char *name, size_t cap, UV *line);

/* --- stack.c --- */

/*
 * The subs of Perl in which a worker forked by this process is, innermost first: "main::handler at app.psgi line 12". A new
 * array. NULL with errno: its memory is not readable, or makes no sense.
 */
AV *sirius_stack(pTHX_ IV pid);

/* --- loading.c --- */

/*
 * Between begin and end the application is loaded. After `limit` seconds (0: no limit) the process ends with
 * status 1 and a line on STDERR; after `soon` seconds a line says that loading takes long. A signal that asks
 * for a stop ends the process with stopped_status. `end` returns a new array of the numbers of other signals
 * that came; also in a child that was forked.
 */
void sirius_loading_begin(pTHX_ double limit, double soon, int stopped_status);
AV *sirius_loading_end(pTHX);

/* --- response.c: inside --- */

/* Removes newlines at the end of a value, and notes the field in the turn. False: there are none. */
bool sirius_trim(pTHX_ sirius *s, sr_bytes name, sr_bytes *value);
void sirius_trim_log(
    pTHX_ sirius *s); /* logs that. Not while a head is half made: the log may run code of Perl */

/* What is wrong with a header, with its name or value, as a mortal text. NULL: there is no error. */
const char *sirius_header_error(pTHX_ sr_response_error err, sr_bytes name, sr_bytes value);

/* Sends what the application has returned, which may be any value. *writer is set if it is a stream. */
void sirius_respond(pTHX_ sirius *s, SV *res, bool may_stream, SV **writer);

/* Logs an error, then answers 500, or cuts the response if its head was sent. */
void sirius_fail(pTHX_ sirius *s, const char *what, SV *error);

/* --- file.c --- */

enum { SIRIUS_SMALL_FILE = 64 * 1024 }; /* files up to this size are read at once */

void sirius_file_boot(pTHX);

/* How the body of a response is closed, which PSGI asks of a server. */
typedef enum sirius_close {
    SIRIUS_CLOSE_PLAIN, /* as by IO::Handle, which runs no code of the application */
    SIRIUS_CLOSE_OWN,   /* by its method */
    SIRIUS_CLOSE_NONE,  /* it has no such method */
} sirius_close;

typedef struct sirius_handle {
    HV *class; /* of a blessed handle that leaves getline to IO::Handle, else NULL */
    sirius_close close;
} sirius_handle;

/*
 * Before a head is begun: looks at a blessed handle. May run code of the application. False: that died, and $@ says of what.
 */
bool sirius_file_class(pTHX_ sirius *s, SV *handle, sirius_handle *out);

/*
 * Descriptor, position and remaining bytes of the regular file behind a handle without a class, or with the
 * one that sirius_file_class has found. False: it has to be read by getline. Runs no code of the application.
 * The descriptor is that of the handle, and stays the application's.
 */
bool sirius_file(pTHX_ SV *body, const sirius_handle *h, int *fd, off_t *offset, uint64_t *length);

/* --- stream.c --- */

void sirius_stream_boot(pTHX);
SV *sirius_responder(pTHX_ sirius *s);
SV *sirius_writer(pTHX_ sirius *s);
SV *sirius_informational(pTHX_ UV serial);

/* Sends `bytes`, which are those of `data`. False: the client is gone. */
bool sirius_stream_send(pTHX_ sirius *s, SV *data, sr_bytes bytes, bool wait);
bool sirius_stream_end(pTHX_ sirius *s);
bool sirius_interrupted(void); /* for sr_worker.interrupted */

/*
 * Around a call by the application that may wait for the client: a handler of a signal that dies meanwhile
 * dies in `end`, when there is nothing of the server left to jump over. Elsewhere that is logged, and the
 * wait goes on. `end` gets the result of the first.
 */
static inline bool sirius_catch(sirius *s)
{
    bool outer = s->turn.catches;
    s->turn.catches = true;
    return outer;
}
void sirius_catch_end(pTHX_ sirius *s, bool outer); /* outside. Croaks */

/* Bytes of a scalar. False: it has characters above 0xff. A copy that is needed for that is mortal. */
bool sirius_bytes(pTHX_ SV *sv, sr_bytes *out);

#endif
