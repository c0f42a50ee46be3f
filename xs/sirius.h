#ifndef SIRIUS_XS_H
#define SIRIUS_XS_H
/*
 * What the files of xs/ share: the only code that knows both Perl and the engine.
 *
 * Thread: all of it runs on the Perl thread. "With the helm" means e->helm_held; application code (the app
 * itself, overloads, ties, DESTROY, getline) is always called without it, through sirius_call.
 */
#define PERL_NO_GET_CONTEXT /* must precede perl's headers, or every call looks the interpreter up in TLS */
#include "EXTERN.h"
#include "perl.h"

#include "XSUB.h"

#ifndef SvREFCNT_dec_NN /* perl 5.16 */
#define SvREFCNT_dec_NN(sv) SvREFCNT_dec(sv)
#endif
#ifndef SVf_IsCOW /* perl 5.16, where no string that is ours comes to be shared: the flag says nothing */
#define SVf_IsCOW 0
#endif

#include "core/engine.h"
#include "unchunk.h"
#include "worker/worker.h"

typedef struct envpool_env envpool_env;           /* envpool.h */
typedef struct sirius_accesslog sirius_accesslog; /* accesslog.c */

typedef enum sirius_phase {
    SIRIUS_UNANSWERED, /* no byte of a final response is out */
    SIRIUS_STREAMING,  /* the head is out, a writer may follow */
    SIRIUS_ANSWERED,   /* complete */
    SIRIUS_BROKEN,     /* begun and impossible to complete: to be cut */
} sirius_phase;

/* The request at hand. A responder, writer or early-hints callback of an earlier one has another serial and
 * is dead. */
typedef struct sirius_turn {
    UV serial;
    sr_conn *conn;       /* NULL between two requests */
    HV *env;             /* borrowed from the frame that serves */
    envpool_env *pooled; /* where env goes after the request; NULL: nowhere */
    bool forked;    /* the application has forked since the request began: a child may hold what it holds */
    bool untouched; /* pooled, and the application has left it as it was. Known when it has returned */
    bool inert;     /* what the application has returned runs no code when it is freed */
    sirius_phase phase;
    bool writing;        /* to an edge: what waits for the client lets handlers of signals run */
    bool catches;        /* code of the application has called, and is told when such a handler has died */
    SV *died;            /* what it has died of. Counted */
    SSize_t temporaries; /* those above are of this request */
    bool giving_back;    /* pooled is on its way; met again it is no good any more */
    sr_response response;
    SV *trimmed;   /* the name of a field whose value has lost its newline, to be logged. Counted */
    SV *io;        /* the glob of psgix.io, once somebody has looked at it. Counted */
    uint64_t left; /* SR_FRAMING_LENGTH: bytes of the body still owed */
} sirius_turn;

/* All of the response is in the engine's hands. With the helm. */
static inline void sirius_answered(sirius_turn *t)
{
    t->phase = SIRIUS_ANSWERED;
    t->conn->whole = true;
}

/* By its framing the client has, or will have, all of it: whatever follows is no part of this response any more. */
static inline bool sirius_complete(const sirius_turn *t)
{
    return t->conn->status && !t->conn->gone &&
           (t->response.framing == SR_FRAMING_NONE || (t->response.framing == SR_FRAMING_LENGTH && !t->left));
}

/* What all requests of a listener have in common. */
typedef struct sirius_site {
    SV *name, *port, *multiprocess;
    HV *socket; /* class of its connections */
} sirius_site;

enum { ENVPOOL_SHAPES = 4 };

typedef struct sirius {
#ifdef MULTIPLICITY
    PerlInterpreter *owner; /* no other is served: threads of the application get nothing of it */
#endif
    sr_engine *engine; /* NULL where an edge has the connections */

    /* with an edge: */
    sr_worker worker;     /* sleepers NULL: there is none */
    sr_conn facade;       /* what of the connection %env and the response look at */
    sr_forwarded hearsay; /* of the request at hand */
    sr_row *row;          /* what others see of this worker; never NULL */
    sr_scoreboard *board; /* or NULL; kept by `scoreboard` */
    sr_row no_row;
    uint64_t known;                /* length of the body, or SR_LENGTH_UNKNOWN */
    bool app_close;                /* the application wants the connection closed */
    bool torn;                     /* half of an interim head is out: only a cut can follow */
    bool said;                     /* END, CUT or TAKEN of this request */
    bool returned;                 /* from the application */
    volatile sig_atomic_t logging; /* log.c writes a line of the server's own */
    volatile sig_atomic_t inside;  /* as with the helm: no application code runs, and none may jump out */
    bool forked;
    bool soon_said;
    const char *why; /* this worker has to go; NULL: it has not */
    uint64_t served, soon_requests, max_requests, max_rss, rss;
    sr_resident resident;
    int64_t wall_offset;
    sr_sleepers *sleepers;
    size_t sleepers_bytes;
    int edge; /* pidfd of the one that this process has started and looks after; -1: others do */

    sirius_turn turn;
    UV serial;
    unchunk unchunk; /* of the response being sent */
    SV *sending;     /* the scalar whose bytes a writer sends; NULL: none, or they are safe from it */
    const char *sending_at;
    bool retiring;  /* serve has said so */
    bool leave;     /* psgix.harakiri: end this worker after the response */
    bool plain_app; /* a sub of Perl: it has freed its temporaries when it returns */
    sirius_site site[SR_LISTENERS_MAX];
    envpool_env *pool; /* ENVPOOL_SHAPES of them */
    unsigned pool_clock;
    sr_buffer head;    /* scratch: the head being made */
    struct iovec *iov; /* scratch, grown to the largest response so far */
    size_t iov_cap;
    SV *scoreboard;        /* what the engine writes its row of */
    SV *tmpdir, *server;   /* strings that the engine's config points into */
    SV *log_format;        /* the Sirius::LogFormat of the engine's log */
    sirius_accesslog *log; /* NULL: there is none */
} sirius;

/* engine.c */
SV *sirius_new(pTHX_ HV *conf); /* a mortal Sirius::Engine; croaks */
void sirius_free(pTHX_ sirius *s);

/* serve.c */
void sirius_serve_boot(pTHX);
/* The one engine of this process that is inside serve, or NULL: what callbacks of PSGI talk to. */
extern sirius *sirius_current;
sirius *sirius_own(pTHX); /* the same, but NULL for the interpreter of a thread of the application */
/* It, when it serves the request of this serial now, for this interpreter; also in a child that was forked meanwhile. */
sirius *sirius_alive(pTHX_ UV serial);
const char *sirius_serve(pTHX_ sirius *s, SV *app); /* why it ended: static text */
/*
 * With the helm: the engine gets its connection back, to send what is left of the response and to go on with it, while
 * the application may go on with something else. Does nothing when that was done before.
 */
void sirius_finish(pTHX_ sirius *s);
void sirius_serve_one(pTHX_ sirius *s, const sr_task *task, SV *app); /* one request, whole */
void sirius_abandon(pTHX_ sirius *s,
                    const char *why); /* exit in application code: answer 500, end politely */

/* Application code, without the helm, in its own stack so that last, next and goto can't leave it. NULL: it
 * died, $@. */
SV *sirius_call(pTHX_ sirius *s, SV *code, SV *arg1, SV *arg2);
void sirius_signals(
    pTHX_ sirius *s); /* stream.c: runs the handlers of signals that have come; one that dies is logged */
bool sirius_helm_take(sirius *s); /* true: it was not held and the caller has to let it go again */
void sirius_helm_leave(sirius *s, bool taken);
void sirius_log(pTHX_ sirius *s, const char *what, SV *error); /* error may be NULL; names the request */
void sirius_warn(pTHX_ sirius *s, const char *what);

/* work.c: with an edge */
const char *sirius_work(pTHX_ sirius *s, SV *app); /* as sirius_serve */
void sirius_work_abandon(pTHX_ sirius *s, const char *why);
void sirius_work_watch(sirius *s, int edge); /* serve returns "edge" when that has ended */
void sirius_work_open(pTHX_ sirius *s, int sleepers, uint32_t row); /* croaks */
void sirius_work_close(pTHX_ sirius *s);
int sirius_common_new(pTHX); /* shared memory of the edges; the caller's descriptor. Croaks */
void sirius_common_clear(pTHX_ int fd, uint32_t edge);
void sirius_sleepers_part(pTHX_ int fd, uint32_t edge); /* it has ended. Croaks */
void sirius_sleepers_over(
    pTHX_ int fd); /* every worker leaves: nobody will bring a request any more. Croaks */
int sirius_sleepers_new(pTHX_ uint32_t rows); /* shared memory; the caller's descriptor. Croaks */

/* spawn.c: the PID of a child that runs this program with these words (the first is its name), without handlers, with no signal
 * blocked, and with these descriptors open beside those that all programs get. Croaks: why not. */
int sirius_spawn(pTHX_ const char *path, AV *words, AV *descriptors);

/* env.c */
static inline int64_t sirius_wall_offset(const sirius *s) /* wall clock minus monotonic, ns */
{
    return s->engine ? s->engine->wall_offset : s->wall_offset;
}
void sirius_env_boot(pTHX);
sirius_site sirius_site_new(pTHX_ const char *name, const char *port, bool multiprocess);
/* With the helm: the environment of the turn, and a reference to it that is a mortal or the pool's. */
SV *sirius_env(pTHX_ sirius *s, const sr_task *task);
void sirius_env_forwarded(pTHX_ HV *env, const sr_task *task); /* forwarded.c: task->forwarded is not NULL */
/* A value, unless the application has tied or restricted the hash so that looking runs its code, or dies. */
SV **sirius_env_fetch(pTHX_ HV *env, const char *key);
HE *sirius_env_fetch_ent(pTHX_ HV *env, SV *key); /* the same of a shared key */
bool sirius_env_nothing_left(pTHX_ HV *env);      /* surely neither cleanup handler nor harakiri */

/* lazy.c: values of %env that are made when they are first read */
typedef enum sirius_lazy { SIRIUS_LAZY_IO, SIRIUS_LAZY_INFORMATIONAL } sirius_lazy;
SV *sirius_lazy_new(pTHX_ sirius_lazy kind);
void sirius_lazy_arm(pTHX_ SV *sv, UV serial);                    /* the request they speak for */
bool sirius_lazy_untouched(pTHX_ const SV *sv, sirius_lazy kind); /* neither read nor assigned */

/* socket.c: psgix.io. None of it runs code of Perl, but for drop */
HV *sirius_socket_class(pTHX_ int listener); /* the class of its connections. Not counted */
/* A new reference to the handle of this request; undef when that is over. Making and copying it changes nothing. */
SV *sirius_socket(pTHX_ UV serial);
/*
 * With the helm, when the application has returned without an answer: is the connection its own? It is when the handle was used,
 * or is still held and a child was forked, which may use it.
 */
bool sirius_socket_taken(pTHX_ sirius *s);
void sirius_socket_forks(pTHX_ sirius *s); /* of an edge: the application is about to fork */
void sirius_socket_drop(pTHX_ sirius *s);  /* at the end of the turn; without the helm */

void sirius_log_boot(pTHX); /* log.c: the layer :sirius_log */
/* One line of the server with its "\n", as bytes; level is static. Calls code of the application only where a layer is one. */
void sirius_log_put(pTHX_ const char *at, size_t len, const char *level);

/* accesslog.c: with the helm */
void sirius_accesslog_new(pTHX_ sirius *s, HV *conf);     /* croaks */
void sirius_accesslog_free(pTHX_ sirius *s);              /* after the engine */
void sirius_accesslog_offer(pTHX_ sirius *s, sr_conn *c); /* its line can be made from now on */
/* In the generation: the line of the request that a worker of this row had when it was killed, if it had one. Croaks */
void sirius_accesslog_lost(pTHX_ HV *conf, const sr_row *row);
/* With an edge: as _new; the request, before the application has it; and what is another in %env, to the edge */
void sirius_accesslog_view(pTHX_ sirius *s, HV *conf);
void sirius_accesslog_begin(sirius *s, const sr_task *task);
void sirius_accesslog_say(pTHX_ sirius *s);
void sirius_accesslog_to(pTHX_ sirius *s, int fd); /* a descriptor that is copied. Without the helm, too */

/* place.c: the Perl file that a worker forked by this process is in, and the line; NULL: the kernel does not tell */
SV *sirius_place(pTHX_ IV pid, UV *line);
/* The same into `name`; its length, 0 when it is not known. Calls nothing of perl: for any thread, and for this process too */
size_t sirius_place_copy(pTHX_ pid_t pid, char *name, size_t cap, UV *line);

/*
 * loading.c: between them the application is loaded, within `limit` seconds (0: any time), or the process ends with status 1 and
 * a line on STDERR; after `soon` seconds another line says that it takes that long. A signal that asks for a stop ends it with
 * stopped_status. `end` returns a new array of the numbers of other signals that have come; also in a child that was forked.
 */
void sirius_loading_begin(pTHX_ double limit, double soon, int stopped_status);
AV *sirius_loading_end(pTHX);

/* response.c: with the helm */
/* A value that ends with newlines loses them, and the turn notes its field. False: it does not end so. */
bool sirius_trim(pTHX_ sirius *s, sr_bytes name, sr_bytes *value);
void sirius_trim_log(pTHX_ sirius *s); /* without a head half made: the log is code of Perl */
void sirius_respond(pTHX_ sirius *s, SV *res, bool may_stream,
                    SV **writer);                               /* any value an application returns */
void sirius_fail(pTHX_ sirius *s, const char *what, SV *error); /* log; 500, or a cut when the head is out */

/* file.c */
void sirius_file_boot(pTHX);
/*
 * Before a head is begun: the class of a blessed handle, if it leaves getline to IO::Handle, else NULL. Code of the application
 * may run. False: that died, $@.
 */
bool sirius_file_class(pTHX_ sirius *s, SV *handle, HV **class);
/*
 * Descriptor, position and rest of the regular file behind a handle without a class, or of this one, which leaves getline to
 * IO::Handle. False: it must be read by getline. Runs no code of the application.
 */
bool sirius_file(pTHX_ SV *body, const HV *class, int *fd, off_t *offset, uint64_t *length);

/* stream.c */
void sirius_stream_boot(pTHX);
SV *sirius_responder(pTHX_ sirius *s);
SV *sirius_writer(pTHX_ sirius *s);
SV *sirius_informational(pTHX_ UV serial);
/* `bytes` are those of data. False: the peer is gone. */
bool sirius_stream_send(pTHX_ sirius *s, SV *data, sr_bytes bytes, bool wait);
bool sirius_stream_end(pTHX_ sirius *s);
bool sirius_interrupted(void); /* sr_engine.interrupted */
/*
 * Around what may wait for the client and was called by code of the application: a handler of a signal that dies meanwhile
 * dies there, in `end`, when nothing of the server is left to jump over. Elsewhere that is logged, and the wait goes on.
 */
static inline bool sirius_catch(sirius *s) /* what `end` is to be given */
{
    bool outer = s->turn.catches;
    s->turn.catches = true;
    return outer;
}
void sirius_catch_end(pTHX_ sirius *s, bool outer); /* without the helm. Croaks */

/* Bytes of a scalar; false when it has characters above 0xff. A downgraded copy is a mortal. */
bool sirius_bytes(pTHX_ SV *sv, sr_bytes *out);

#endif
