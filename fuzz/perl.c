/*
 * perl: a whole worker with a real perl. The input is a conversation: requests, pipelined, and for each of them what the
 * application does with %env and how it answers (fuzz/perl.pl reads it so). No use of freed memory; every request sees its own
 * fields and nothing of another; and nothing is left of a connection at its end.
 * Judges: xs/env.c xs/envpool.c xs/input.c xs/lazy.c xs/response.c xs/serve.c xs/socket.c xs/stream.c
 */
#include "envpool.h"

#include "core/parts.h"

#include "fuzz.h"

#include <sys/socket.h>
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

/* fuzz/perl.pl makes the engine and the application. Its STDERR is closed: what applications say is not for the log. */
static void start(void)
{
    static char *argv[] = {(char *)"fuzz", (char *)"-Ilib", (char *)"fuzz/perl.pl", NULL};
    static char *env[] = {NULL};
    char **args = argv, **environment = env;
    int argc = 3, err = dup(2);
    PERL_SYS_INIT3(&argc, &args, &environment);
    my_perl = perl_alloc();
    perl_construct(my_perl);
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

/* All that can be done now: see fuzz/engine.c. */
static void work(sr_engine *e)
{
    sr_task task;
    for (int wakes = 0; wakes < 2 || !sr_link_alone(&e->turns);) {
        if (PL_sig_pending)
            sirius_signals(aTHX_ s);
        sr_engine_wake(e);
        sr_next what = sr_engine_next(e, &task);
        wakes += what != SR_NEXT_REQUEST;
        if (what == SR_NEXT_REQUEST)
            sirius_serve_one(aTHX_ s, &task, app);
        if (e->helm_held)
            MUST(!sr_helm_try(&e->helm));
        e->retiring = s->leave = false; /* psgix.harakiri.commit */
    }
}

/*
 * Perl's stacks only ever grow, and code that is wrong about one that moves is right with one that need not. So each input
 * begins with small ones.
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

static void converse(const sr_buffer *wire)
{
    static char thrown[65536];
    sr_engine *e = s->engine;
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    sr_conn *c = sr_conn_new(pair[0], &(sr_peer){0}, 0);
    MUST(c);
    if (!e->helm_held)
        sr_engine_return(e);
    sr_conn_enter(e, c);
    sr_deadline_set(e, c, SR_DEADLINE_HEAD);
    MUST(sr_conn_watch(e, c, EPOLLIN));
    if (sr_buffer_len(wire))
        send(pair[1], sr_buffer_at(wire), sr_buffer_len(wire), MSG_NOSIGNAL);
    shutdown(pair[1], SHUT_WR); /* an application that reads from psgix.io must come to an end */
    work(e);
    while (recv(pair[1], thrown, sizeof thrown, 0) > 0)
        work(e);
    close(pair[1]);
    work(e);
    MUST(e->n_conns == 0 && sr_link_alone(&e->all) && e->pending == 0 && !s->turn.conn);
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
