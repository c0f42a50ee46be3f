/*
 * log: a PerlIO layer for STDERR that many processes share. Each line, however long, is written by one
 * write(2), so that lines of several processes do not mix. With the argument "prefix" each begins with
 * "2026-11-21T23:05:01Z PID LEVEL ".
 *
 * The bytes go to the descriptor directly: perl's own buffer below would split them. An unfinished line is
 * held back even if it is flushed, as perl flushes after each piece of a line. It belongs to the process that
 * wrote it. With the argument "plain" everything is written as it comes.
 *
 * Nobody waits for a reader that has stalled (log/outlet.h).
 */
#include "log.h"

#include "perliol.h"
#include "said.h"

#include "base/clock.h"
#include "log/outlet.h"

#include <time.h>
#include <unistd.h>

enum {
    HELD_MAX = 64 * 1024, /* a line that comes in pieces is cut at this length */
    STAMP_MAX = 64,       /* for time, PID and level */
};

typedef struct log_layer {
    struct _PerlIO base;
    char *buf; /* the unfinished line, with its prefix */
    size_t len, cap;
    pid_t owner;             /* of the contents of buf: after a fork they are the parent's */
    bool plain, prefix, cut; /* cut: the last line was cut at HELD_MAX */
} log_layer;

/* Of STDERR, whatever layers it has; what was lost is told by the process that has lost it. */
static struct {
    sr_outlet to;
    pid_t pid;
} outlet;

/*
 * Lines of the server itself begin with "[sirius PID] ". Returns the length of this mark, 0 if it is not
 * there.
 */
static size_t server_mark(const char *at, size_t len, long *pid)
{
    static const char mark[] = "[sirius ";
    size_t i = sizeof mark - 1;
    long number = 0;
    if (len < i || memcmp(at, mark, i) != 0)
        return 0;
    while (i < len && isDIGIT(at[i]) && number < 100000000)
        number = number * 10 + (at[i++] - '0');
    if (!number || len < i + 2 || at[i] != ']' || at[i + 1] != ' ')
        return 0;
    *pid = number;
    return i + 2;
}

/*
 * The level that a line of the server gives after its mark, as in "error: ". NULL: none, so it is a notice.
 */
static const char *server_level(const char *at, size_t len, size_t *taken)
{
    static const char *const levels[] = {"error", "warn", "info"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        size_t n = strlen(levels[i]);
        if (len > n + 2 && memcmp(at, levels[i], n) == 0 && at[n] == ':' && at[n + 1] == ' ') {
            *taken = n + 2;
            return levels[i];
        }
    }
    *taken = 0;
    return NULL;
}

static const char *level_of_put; /* while sirius_log_put writes */

/*
 * The level by the operation that writes: psgi.errors is printed to, and the death of an application is
 * reported from a call. Everything else is a warning.
 */
static const char *level_of_op(pTHX)
{
    if (level_of_put)
        return level_of_put;
    switch (PL_op ? PL_op->op_type : OP_NULL) {
    case OP_PRINT:
    case OP_PRTF:
    case OP_SAY:
    case OP_DIE:
    case OP_ENTERSUB:
        return "error";
    default:
        return "warn";
    }
}

static void append(log_layer *l, const char *at, size_t len)
{
    if (l->cap - l->len < len) {
        l->cap = (l->len + len) * 2;
        Renew(l->buf, l->cap, char);
    }
    memcpy(l->buf + l->len, at, len);
    l->len += len;
}

static size_t stamp_make(char text[STAMP_MAX], long pid, const char *level)
{
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    size_t n = strftime(text, STAMP_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return n + (size_t)snprintf(text + n, STAMP_MAX - n, " %ld %s ", pid, level);
}

static void stamp(log_layer *l, long pid, const char *level)
{
    char text[STAMP_MAX];
    append(l, text, stamp_make(text, pid, level));
}

/*
 * Adds a line or a part of one. Returns the level for the lines that follow in the same write, as of a stack
 * trace.
 */
static const char *add_line(pTHX_ log_layer *l, const char *at, size_t len, const char *level)
{
    long pid = l->owner;
    size_t mark = server_mark(at, len, &pid);
    bool begins = !l->len || l->buf[l->len - 1] == '\n';
    if (mark && !begins) /* the application has left a line unfinished */
        append(l, "\n", 1);
    if (mark) {
        size_t taken;
        const char *named = server_level(at + mark, len - mark, &taken);
        level = named ? named : "notice";
        if (l->prefix)
            mark += taken;
    }
    if (l->prefix && (mark || begins)) {
        stamp(l, pid, level);
        if (mark)
            append(l, "sirius: ", 8);
        at += mark;
        len -= mark;
    }
    append(l, at, len);
    return level;
}

static void own_outlet(pid_t self)
{
    if (outlet.pid == self)
        return;
    outlet.pid = self;
    outlet.to = (sr_outlet){.shared = outlet.to.shared};
}

void sirius_log_hurry(void)
{
    own_outlet(getpid());
    outlet.to.patience_ns = 10 * SR_MILLISECOND;
}

uint64_t sirius_log_lost(uint64_t more)
{
    own_outlet(getpid());
    return outlet.to.lost += more;
}

/*
 * Writes to the log, or loses it. False: errno says why; otherwise it is kept, as die makes the exit status
 * of it.
 */
static bool write_all(int fd, const char *at, size_t len, bool prefix)
{
    int before = errno;
    pid_t self = getpid();
    own_outlet(self);
    if (sr_outlet_returns(&outlet.to, fd)) {
        char text[STAMP_MAX + 128];
        unsigned long long lost = outlet.to.lost;
        size_t n = prefix ? stamp_make(text, self, "error") : 0;
        n += (size_t)(prefix ? snprintf(text + n, sizeof text - n, "sirius: ")
                             : snprintf(text, sizeof text, "[sirius %ld] error: ", (long)self));
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%llu line%s of this log %s lost: whatever reads it had stalled\n", lost,
                              lost == 1 ? "" : "s", lost == 1 ? "was" : "were");
        if (!sr_outlet_write(&outlet.to, fd, text, n))
            outlet.to.lost -= lost;
        else if (outlet.to.stalled)
            outlet.to.lost = lost;
    }
    int err = sr_outlet_write(&outlet.to, fd, at, len);
    errno = err ? err : before;
    return !err;
}

/* Writes the first n bytes of buf. False: errno says why, and the bytes are lost. */
static bool write_out(pTHX_ PerlIO *f, log_layer *l, size_t n)
{
    bool written = write_all(PerlIO_fileno(f), l->buf, n, l->prefix);
    int err = errno;
    l->len -= n;
    memmove(l->buf, l->buf + n, l->len);
    if (l->cap > 4 * HELD_MAX && l->len <= HELD_MAX) {
        l->cap = 2 * HELD_MAX;
        Renew(l->buf, l->cap, char);
    }
    errno = err;
    return written;
}

static SSize_t log_write(pTHX_ PerlIO *f, const void *data, Size_t count)
{
    log_layer *l = PerlIOSelf(f, log_layer);
    const char *at = data, *end = at + count;
    const char *level = level_of_op(aTHX);
    pid_t self = getpid();
    if (l->owner != self) {
        l->owner = self;
        l->len = 0;
        l->cut = false;
    }
    if (!level_of_put)
        sirius_said_hear(aTHX_ at, count, *level == 'e');
    if (l->plain)
        return write_all(PerlIO_fileno(f), at, count, false) ? (SSize_t)count : -1;
    if (l->cut && count && *at == '\n')
        at++;
    l->cut = l->cut && !count;
    size_t whole = 0;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline + 1 : end;
        level = add_line(aTHX_ l, at, (size_t)(next - at), level);
        if (newline)
            whole = l->len;
        at = next;
    }
    if (l->len - whole > HELD_MAX + STAMP_MAX) {
        append(l, "\n", 1);
        whole = l->len;
        l->cut = true;
    }
    return !whole || write_out(aTHX_ f, l, whole) ? (SSize_t)count : -1;
}

/* Writes the unfinished line when the layer ends. */
static void finish(pTHX_ PerlIO *f)
{
    log_layer *l = PerlIOSelf(f, log_layer);
    if (!l->len || l->owner != getpid())
        return;
    append(l, "\n", 1);
    write_out(aTHX_ f, l, l->len);
}

static IV log_pushed(pTHX_ PerlIO *f, const char *mode, SV *arg, PerlIO_funcs *tab)
{
    log_layer *l = PerlIOSelf(f, log_layer);
    IV code = PerlIOBase_pushed(aTHX_ f, mode, arg, tab);
    const char *how = arg && SvOK(arg) ? SvPV_nolen(arg) : "";
    l->prefix = strEQ(how, "prefix");
    l->plain = strEQ(how, "plain");
    if (code == 0 && PerlIOValid(PerlIONext(f))) {
        PerlIO_flush(PerlIONext(f));
        l->base.flags |= PerlIOBase(PerlIONext(f))->flags & PERLIO_F_UTF8;
    }
    return code;
}

static IV log_popped(pTHX_ PerlIO *f)
{
    log_layer *l = PerlIOSelf(f, log_layer);
    finish(aTHX_ f);
    Safefree(l->buf);
    l->buf = NULL;
    l->len = l->cap = 0;
    return PerlIOBase_popped(aTHX_ f);
}

static IV log_close(pTHX_ PerlIO *f)
{
    finish(aTHX_ f);
    return PerlIOBase_close(aTHX_ f);
}

static IV log_flush(pTHX_ PerlIO *f)
{
    return PerlIOValid(PerlIONext(f)) ? PerlIO_flush(PerlIONext(f)) : 0;
}

static SV *log_getarg(pTHX_ PerlIO *f, CLONE_PARAMS *param, int flags)
{
    PERL_UNUSED_ARG(param);
    PERL_UNUSED_ARG(flags);
    const log_layer *l = PerlIOSelf(f, log_layer);
    return l->prefix ? newSVpvs("prefix") : l->plain ? newSVpvs("plain") : newSV(0);
}

/*
 * PERLIO_K_RAW: binmode leaves the layer in place. PERLIO_K_DESTRUCT: perl pops it at its end, which writes
 * an unfinished line.
 */
static PERLIO_FUNCS_DECL(log_funcs) = {
    .fsize = sizeof(PerlIO_funcs),
    .name = "sirius_log",
    .size = sizeof(log_layer),
    .kind = PERLIO_K_RAW | PERLIO_K_DESTRUCT,
    .Pushed = log_pushed,
    .Popped = log_popped,
    .Binmode = PerlIOBase_binmode,
    .Getarg = log_getarg,
    .Fileno = PerlIOBase_fileno,
    .Dup = PerlIOBase_dup,
    .Write = log_write,
    .Close = log_close,
    .Flush = log_flush,
    .Eof = PerlIOBase_eof,
    .Error = PerlIOBase_error,
    .Clearerr = PerlIOBase_clearerr,
    .Setlinebuf = PerlIOBase_setlinebuf,
};

/*
 * The descriptor of the lowest layer, if that is perl's own: others may be code of the application. -1: none.
 */
static int plain_descriptor(pTHX_ PerlIO *f)
{
    for (; PerlIOValid(f); f = PerlIONext(f))
        if (PerlIOBase(f)->tab && strEQ(PerlIOBase(f)->tab->name, "unix"))
            return PerlIOBase(f)->tab->Fileno(aTHX_ f);
    return -1;
}

/* This layer among those of a handle. Not valid: it has none. */
static PerlIO *own_layer(PerlIO *f)
{
    while (PerlIOValid(f) && PerlIOBase(f)->tab != PERLIO_FUNCS_CAST(&log_funcs))
        f = PerlIONext(f);
    return f;
}

bool sirius_log_has_time(pTHX)
{
    IO *io = PL_stderrgv && isGV_with_GP(PL_stderrgv) ? GvIO(PL_stderrgv) : NULL;
    PerlIO *own = own_layer(io ? IoOFP(io) : NULL);
    return PerlIOValid(own) && PerlIOSelf(own, log_layer)->prefix;
}

/*
 * Writes to the file of STDERR, past whatever the application has put before it: a tie, $SIG{__WARN__}, $,
 * and $\, layers. PerlIO_stderr() is no help: once STDERR was closed, another file may have its place.
 */
void sirius_log_put(pTHX_ const char *at, size_t len, const char *level)
{
    IO *io = PL_stderrgv && isGV_with_GP(PL_stderrgv) ? GvIO(PL_stderrgv) : NULL;
    PerlIO *f = io ? IoOFP(io) : NULL, *own = own_layer(f);
    const char *outer = level_of_put;
    level_of_put = level;
    int fd = PerlIOValid(own) ? -1 : plain_descriptor(aTHX_ f);
    if (PerlIOValid(own))
        log_write(aTHX_ own, at, len);
    else if (fd >= 0)
        write_all(fd, at, len, false);
    level_of_put = outer;
}

void sirius_log_boot(pTHX)
{
    if (!outlet.to.shared) /* before any process is forked that writes to the same log */
        outlet.to.shared = sr_outlet_share();
    PerlIO_define_layer(aTHX_ PERLIO_FUNCS_CAST(&log_funcs));
}
