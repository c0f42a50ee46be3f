/*
 * perl: a whole worker with a real perl, and an edge in a thread of its own. The input is a conversation:
 * requests, pipelined, and for each of them what the application does with %env and how it answers
 * (fuzz/perl.pl reads it so). No use of freed memory; every request sees its own fields and nothing of
 * another; and the worker is free at its end.
 * Judges: xs/env.c xs/envpool.c xs/input.c xs/lazy.c xs/response.c xs/serve.c xs/socket.c xs/stream.c
 * xs/wire.c
 */
#include "sirius.h"

#include "edge/edge.h"
#include "requestloop.h"
#include "serve.h"
#include "stream.h"
#include "turn.h"
#include "work.h"

#include "fuzz.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

EXTERN_C void boot_DynaLoader(pTHX_ CV *cv);
EXTERN_C void boot_Sirius(pTHX_ CV *cv);

/* Perl frees nothing at its end. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static PerlInterpreter *my_perl;
static sirius *s;
static SV *app;

static void xs_init(pTHX)
{
    newXS("DynaLoader::boot_DynaLoader", boot_DynaLoader, __FILE__);
    newXS("Sirius::bootstrap", boot_Sirius, __FILE__); /* XSLoader takes it instead of a file */
}

/* A thread that hears no signal: those are perl's. */
static pthread_t thread_of(void *(*run)(void *), void *with)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    MUST(pthread_create(&thread, NULL, run, with) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return thread;
}

/* --- the edge --- */

static const sr_row *edge_row;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;

static void *run_edge(void *edge)
{
    sr_edge_run(edge);
    return NULL;
}

/* The memory in which its workers sleep, by a descriptor. */
static int start_edge(void)
{
    sr_edge *edge;
    int lobby, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                              (size_t)snprintf(address.sun_path + 1, 50, "sirius-fuzz-%d", (int)getpid()));
    sr_setup settings;
    sr_setup_init(&settings);
    settings.n_listeners = 1;
    settings.sleepers = sirius_sleepers_new(aTHX_ 1);
    settings.config = (sr_config){.request = {.line = 1000, .head = 8192, .fields = 100},
                                  .max_body = 2000,
                                  .body_memory = 200,
                                  .header_ns = 1000 * SR_SECOND,
                                  .idle_ns = 1000 * SR_SECOND,
                                  .body_ns = 1000 * SR_SECOND,
                                  .write_ns = 1000 * SR_SECOND,
                                  .linger_ns = SR_SECOND,
                                  .keepalive = true,
                                  .max_connections = 1000,
                                  .max_queue = 1000,
                                  .report_fd = -1,
                                  .tmpdir = "/tmp",
                                  .server = SR_BYTES("Sirius")};
    MUST(sr_door_lobby(&lobby) == 0 && bind(listener, (struct sockaddr *)&address, address_len) == 0 &&
         listen(listener, 10) == 0);
    settings.lobby = lobby;
    settings.listeners[0].fd = listener;
    settings.listeners[0].is_unix = true;
    MUST(sr_edge_new(&edge, &settings) == 0);
    edge_row = edge->engine->row;
    thread_of(run_edge, edge);
    return settings.sleepers;
}

/* --- the worker --- */

/*
 * fuzz/perl.pl makes it and the application. Its STDERR is closed: what applications say is not for the log.
 */
static void start(void)
{
    static char *argv[] = {(char *)"fuzz", (char *)"-Ilib", (char *)"fuzz/perl.pl", NULL, NULL};
    static char *env[] = {NULL}, sleepers[20];
    char **args = argv, **environment = env;
    int argc = 4, err = dup(2);
    PERL_SYS_INIT3(&argc, &args, &environment);
    my_perl = perl_alloc();
    perl_construct(my_perl);
    snprintf(sleepers, sizeof sleepers, "%d", start_edge());
    argv[3] = sleepers;
    MUST(perl_parse(my_perl, xs_init, argc, argv, env) == 0);
    MUST(perl_run(my_perl) == 0);
    dup2(err, 2);
    close(err);
    SV *engine = get_sv("main::engine", 0);
    app = get_sv("main::app", 0);
    MUST(engine && SvROK(engine) && app && SvROK(app));
    s = INT2PTR(sirius *, SvIV(SvRV(engine)));
    sirius_current = s;
}

/* A sub of fuzz/perl.pl; its string is put into out. */
static void call(const char *name, const void *at, size_t len, sr_buffer *out)
{
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    mXPUSHp(at, len);
    PUTBACK;
    MUST(call_pv(name, G_SCALAR) == 1);
    SPAGAIN;
    STRLEN n;
    const char *text = SvPV(TOPs, n);
    sr_buffer_reset(out);
    MUST(sr_buffer_add(out, text, n));
    POPs;
    PUTBACK;
    FREETMPS;
    LEAVE;
}

/*
 * Perl's stacks only ever grow, and code that is wrong about one that moves is right with one that need not.
 * So each input begins with small ones.
 */
static void forget_stacks(void)
{
    PERL_SI *next, *si = PL_curstackinfo->si_next;
    PL_curstackinfo->si_next = NULL;
    for (; si; si = next) {
        next = si->si_next;
        SvREFCNT_dec_NN((SV *)si->si_stack);
        Safefree(si->si_cxstack);
        Safefree(si);
    }
}

/* --- a conversation --- */

typedef struct client {
    int fd;
    _Atomic bool over;
} client;

static bool idle(void)
{
    return atomic_load(&s->row.of->state) == SR_WORKER_IDLE;
}

static uint64_t connections_closed(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < SR_CLOSED_REASONS; i++)
        sum += atomic_load(&edge_row->counters.closed[i]);
    return sum;
}

/* The edge has had this connection, and no longer has it: no request of it is left. */
static bool forgotten(void)
{
    static uint64_t conversations;
    conversations++;
    for (int i = 0; i < 20000 && connections_closed() != conversations; i++)
        usleep(i < 100 ? 50 : 1000);
    return connections_closed() == conversations;
}

/* Until the connection is closed; or, if the application keeps the socket, until nothing happens any more. */
static void *read_all(void *arg)
{
    static char thrown[65536];
    client *c = arg;
    for (int quiet = 0; quiet < 2;) {
        ssize_t n = recv(c->fd, thrown, sizeof thrown, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            break;
        quiet = n < 0 && idle() ? quiet + 1 : 0;
    }
    close(c->fd);
    MUST(forgotten());
    atomic_store(&c->over, true);
    sr_worker_wake(&s->worker);
    return NULL;
}

static void converse(const sr_buffer *wire)
{
    client c = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const struct timeval patience = {.tv_usec = 10000};
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    MUST(connect(c.fd, (struct sockaddr *)&address, address_len) == 0);
    if (sr_buffer_len(wire))
        send(c.fd, sr_buffer_at(wire), sr_buffer_len(wire), MSG_NOSIGNAL);
    shutdown(c.fd, SHUT_WR); /* an application that reads from psgix.io must come to an end */
    pthread_t reader = thread_of(read_all, &c);
    sirius_app called = sirius_app_of(aTHX_ app);
    while (sirius_work_one(aTHX_ s, &called) == SR_WORKER_REQUEST || !atomic_load(&c.over))
        ; /* also after psgix.harakiri.commit */
    pthread_join(reader, NULL);
    MUST(!s->turn.open && !s->turn.io.glob && !s->turn.env.hv);
}

FUZZ_TARGET(perl)
{
    static sr_buffer text;
    if (!my_perl)
        start();
    if (size > 4096)
        return 0;
    call("main::begin", data, size, &text);
    forget_stacks();
    converse(&text);
    forget_stacks();
    call("main::wrong", "", 0, &text);
    if (sr_buffer_len(&text))
        fprintf(stderr, "%.*s\n", (int)sr_buffer_len(&text), sr_buffer_at(&text));
    MUST(sr_buffer_len(&text) == 0);
    return 0;
}
