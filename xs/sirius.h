#ifndef SIRIUS_XS_H
#define SIRIUS_XS_H
/*
 * What the files of xs/ share: the only code that knows both Perl and src/worker.
 *
 * Thread: all of it runs on the thread of perl. "Inside" (sirius.inside) means that C of the server runs, and that a handler of
 * a signal must not jump out of it; application code (the app itself, overloads, ties, DESTROY, getline) is always called
 * outside, through sirius_call.
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

#include "base/resident.h"
#include "http/forwarded.h"
#include "http/response.h"
#include "share/scoreboard.h"
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

enum { SIRIUS_LISTENERS_MAX = 64 };

/* What %env and the response look at. All pointers die with the request. */
typedef struct sirius_request {
    const sr_request *head;
    const char *base; /* bytes that the spans of head point into */
    sr_bytes body;    /* when it is in memory */
    int body_fd;      /* or -1: a file, from offset 0; whoever makes %env of it owns it */
    uint64_t body_length;
    const sr_forwarded *forwarded; /* what trusted proxies say; NULL: nothing */
    sr_peer client;
    uint8_t listener; /* number of the one that it came through */
    bool is_head;
    int64_t ready_at; /* monotonic ns at which it was complete */

    bool gone;       /* the client is, as far as is known */
    bool borrowed;   /* psgix.io: the application has its hands on the socket */
    uint32_t status; /* of the final response; 0: there is none yet */
} sirius_request;

/* The request at hand. A responder, writer or early-hints callback of an earlier one has another serial and
 * is dead. */
typedef struct sirius_turn {
    UV serial;
    sirius_request *request; /* NULL between two requests, and when its response is complete */
    HV *env;                 /* borrowed from the frame that serves */
    envpool_env *pooled;     /* where env goes after the request; NULL: nowhere */
    bool forked;    /* the application has forked since the request began: a child may hold what it holds */
    bool untouched; /* pooled, and the application has left it as it was. Known when it has returned */
    bool inert;     /* what the application has returned runs no code when it is freed */
    sirius_phase phase;
    bool writing;        /* what waits for the client lets handlers of signals run */
    bool catches;        /* code of the application has called, and is told when such a handler has died */
    SV *died;            /* what it has died of. Counted */
    SSize_t temporaries; /* those above are of this request */
    bool giving_back;    /* pooled is on its way; met again it is no good any more */
    sr_response response;
    SV *trimmed;   /* the name of a field whose value has lost its newline, to be logged. Counted */
    SV *io;        /* the glob of psgix.io, once somebody has looked at it. Counted */
    uint64_t left; /* SR_FRAMING_LENGTH: bytes of the body still owed */
} sirius_turn;

/* By its framing the client has, or will have, all of it: whatever follows is no part of this response any more. */
static inline bool sirius_complete(const sirius_turn *t)
{
    return t->request->status && !t->request->gone &&
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
    sr_worker worker;
    sirius_request request; /* of the turn */
    sr_forwarded forwarded; /* of it */
    sr_row *row;            /* what others see of this worker; never NULL */
    sr_scoreboard *board;   /* or NULL; kept by `scoreboard` */
    sr_row no_row;
    uint64_t known;                /* length of the body, or SR_LENGTH_UNKNOWN */
    bool app_close;                /* the application wants the connection closed */
    bool interim_broken;           /* half of an interim head is out: only a cut can follow */
    bool said;                     /* END, CUT or TAKEN of this request */
    bool returned;                 /* from the application */
    volatile sig_atomic_t logging; /* log.c writes a line of the server's own */
    volatile sig_atomic_t inside;
    bool forked; /* this is a child that the application has forked: nothing may be said or served */
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
    sirius_site site[SIRIUS_LISTENERS_MAX];
    envpool_env *pool; /* ENVPOOL_SHAPES of them */
    unsigned pool_clock;
    sr_buffer head;    /* scratch: the head being made */
    struct iovec *iov; /* scratch, grown to the largest response so far */
    size_t iov_cap;
    SV *scoreboard;        /* what it writes its row of */
    SV *log_format;        /* the Sirius::LogFormat of the access log */
    sirius_accesslog *log; /* NULL: there is none */
} sirius;

/* Handlers of signals have to wait: code runs that they must not jump out of, or the server writes a line of its own log. */
static inline bool sirius_busy(const sirius *s)
{
    return (s->inside || s->logging) && !s->forked;
}

static inline bool sirius_enter(sirius *s) /* true: it was outside, and the caller has to leave again */
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

/* engine.c */
SV *sirius_new(pTHX_ HV *conf); /* a mortal Sirius::Engine; croaks */
void sirius_free(pTHX_ sirius *s);

/* serve.c */
/* Before 5.24 perl left the temporaries of a sub to its caller. A copy of %env among them would still hold psgix.io. */
enum { SIRIUS_FREES_TEMPORARIES = PERL_VERSION >= 24 };
void sirius_serve_boot(pTHX);
/* The one of this process that is inside serve, or NULL: what callbacks of PSGI talk to. */
extern sirius *sirius_current;
sirius *sirius_own(pTHX); /* the same, but NULL for the interpreter of a thread of the application */
/* It, when it serves the request of this serial now, for this interpreter; also in a child that was forked meanwhile. */
sirius *sirius_alive(pTHX_ UV serial);
void sirius_serve_one(pTHX_ sirius *s, SV *app); /* s->request, whole */
/*
 * Inside: the response is over, and the edge may go on with the connection, while the application may go on with something
 * else. Does nothing when that was done before.
 */
void sirius_finish(pTHX_ sirius *s);

/* Application code, outside, in its own stack so that last, next and goto can't leave it. NULL: it
 * died, $@. */
SV *sirius_call(pTHX_ sirius *s, SV *code, SV *arg1, SV *arg2);
void sirius_signals(
    pTHX_ sirius *s); /* stream.c: runs the handlers of signals that have come; one that dies is logged */
void sirius_log(pTHX_ sirius *s, const char *what, SV *error); /* error may be NULL; names the request */
void sirius_warn(pTHX_ sirius *s, const char *what);

/* work.c */
const char *sirius_work(pTHX_ sirius *s, SV *app);        /* why it ended: static text */
sr_worker_what sirius_work_one(pTHX_ sirius *s, SV *app); /* the next request, whole, or none */
void sirius_abandon(pTHX_ sirius *s, const char *why);    /* exit in application code: answers 500 */
void sirius_work_watch(sirius *s, int edge);              /* serve returns "edge" when that has ended */
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
void sirius_env_boot(pTHX);
sirius_site sirius_site_new(pTHX_ const char *name, const char *port, bool multiprocess);
/* Inside: the environment of the turn, and a reference to it that is a mortal or the pool's. */
SV *sirius_env(pTHX_ sirius *s, const sirius_request *r);
void sirius_env_forwarded(pTHX_ HV *env, const sirius_request *r); /* forwarded.c: r->forwarded is not NULL */
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
void sirius_socket_forks(pTHX_ sirius *s); /* the application is about to fork */
void sirius_socket_drop(pTHX_ sirius *s);  /* at the end of the turn; outside */

void sirius_log_boot(pTHX); /* log.c: the layer :sirius_log */
/* One line of the server with its "\n", as bytes; level is static. Calls code of the application only where a layer is one. */
void sirius_log_put(pTHX_ const char *at, size_t len, const char *level);

/* accesslog.c */
void sirius_accesslog_open(pTHX_ sirius *s, HV *conf); /* croaks */
void sirius_accesslog_free(pTHX_ sirius *s);
void sirius_accesslog_begin(sirius *s);     /* the request, before the application has it */
void sirius_accesslog_say(pTHX_ sirius *s); /* what is another in %env now, to the edge */

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

/* response.c: inside */
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
bool sirius_interrupted(void); /* sr_worker.interrupted */
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
void sirius_catch_end(pTHX_ sirius *s, bool outer); /* outside. Croaks */

/* Bytes of a scalar; false when it has characters above 0xff. A downgraded copy is a mortal. */
bool sirius_bytes(pTHX_ SV *sv, sr_bytes *out);

#endif
