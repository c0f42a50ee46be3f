/*
 * socket: psgix.io, a file handle that owns no descriptor until one is needed.
 *
 * It is a real glob with real PerlIO streams, so that perl and XS code take it for a socket. The lowest layer
 * of the streams is the server's: when asked for its number, or to read or write, it fetches a duplicate of
 * the client's socket, and only then does the connection belong to the application. So copying or dumping
 * %env changes nothing, and needs no code of Perl.
 *
 * As with any socket of perl, there are two streams: one buffer can't be used for reading and writing.
 */
#include "socket.h"

#include "net/tempfile.h"
#include "perliol.h"
#include "sirius.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the streams of one handle share. Freed with the last stream. */
typedef struct claim {
    UV serial; /* of the request that the handle belongs to */
    int fd;    /* the application's descriptor, or -1 */
    unsigned streams;
    bool silent; /* under construction: perl asks whether it is a terminal, which must not fetch the socket */
    char *ahead; /* bytes that the edge has read after the request */
    size_t ahead_at, ahead_len;
} claim;

typedef struct socket_layer {
    struct _PerlIO base;
    claim *claim;
} socket_layer;

/* --- taking the connection --- */

/*
 * Fetches the socket. The edge passes a descriptor; it still sends what this worker replies, but does not
 * keep the connection alive. From now on the socket blocks, as one of IO::Socket does, which the edge can
 * cope with. A child that the application has forked can't fetch it.
 */
static void take(pTHX_ claim *k)
{
    sirius *s = sirius_alive(aTHX_ k->serial);
    int fd, file;
    uint32_t bytes;
    if (!s || sirius_forked(s) || !sr_worker_socket(&s->worker, &fd, &file, &bytes))
        return;
    if (file >= 0) {
        k->ahead = malloc(bytes ? bytes : 1);
        ssize_t n = k->ahead ? sr_tempfile_read(file, k->ahead, bytes, 0) : -1;
        k->ahead_len = n > 0 ? (size_t)n : 0;
        close(file);
        if (k->ahead_len != bytes) { /* no memory: without the first bytes the handle would be of no use */
            free(k->ahead);
            k->ahead = NULL;
            k->ahead_len = 0;
            close(fd);
            return;
        }
    }
    k->fd = fd;
    s->turn.io.taken = true;
    /* perl's own count of streams on a descriptor: open(my $fh, '+<&=', $io) makes another one on this */
    PerlIOUnix_refcnt_inc(fd);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

/* Perl frees no layer while its handle is locked, by a count in the head (PerlIO_lockcnt in perlio.c). */
static void unlock(pTHX_ void *head)
{
    PERL_UNUSED_CONTEXT;
    ((PerlIOl *)head)->flags--;
}

static void lock(pTHX_ PerlIOl *layer)
{
    SAVEDESTRUCTOR_X(unlock, layer->head);
    layer->head->flags++;
}

static int descriptor(pTHX_ PerlIO *f)
{
    claim *k = PerlIOSelf(f, socket_layer)->claim;
    if (k && k->fd < 0 && !k->silent) {
        PerlIOl *layer = PerlIOBase(f);
        /* this may wait for the client, and a signal handler may close the handle meanwhile */
        ENTER;
        lock(aTHX_ layer);
        take(aTHX_ k);
        k = layer->flags & PERLIO_F_CLEARED ? NULL : PerlIOSelf(f, socket_layer)->claim;
        LEAVE;
    }
    if (!k || k->fd < 0) {
        errno = EBADF;
        return -1;
    }
    return k->fd;
}

/* --- the layer --- */

static claim *making; /* passes the claim to socket_pushed, whose only argument is an SV */

static IV socket_pushed(pTHX_ PerlIO *f, const char *mode, SV *arg, PerlIO_funcs *tab)
{
    IV code = PerlIOBase_pushed(aTHX_ f, mode, arg, tab);
    claim *k = PerlIOSelf(f, socket_layer)->claim = making;
    if (k)
        k->streams++;
    PerlIOBase(f)->flags |= PERLIO_F_OPEN;
    return code;
}

static IV socket_popped(pTHX_ PerlIO *f)
{
    socket_layer *l = PerlIOSelf(f, socket_layer);
    claim *k = l->claim;
    PERL_UNUSED_CONTEXT;
    l->claim = NULL;
    if (k && --k->streams == 0) {
        if (k->fd >= 0 && PerlIOUnix_refcnt_dec(k->fd) <= 0)
            close(k->fd);
        free(k->ahead);
        free(k);
    }
    return 0;
}

static IV socket_close(pTHX_ PerlIO *f)
{
    PerlIOBase(f)->flags &= ~(U32)PERLIO_F_OPEN;
    return socket_popped(aTHX_ f);
}

static IV socket_fileno(pTHX_ PerlIO *f)
{
    return descriptor(aTHX_ f);
}

/*
 * Runs signal handlers, which are the application's, and may die or close this very handle. False: it was
 * closed.
 */
static bool interrupted(pTHX_ PerlIO *f)
{
    PerlIOl *layer = PerlIOBase(f);
    ENTER;
    lock(aTHX_ layer);
    PERL_ASYNC_CHECK();
    bool closed = layer->flags & PERLIO_F_CLEARED || !PerlIOSelf(f, socket_layer)->claim;
    LEAVE;
    if (closed)
        errno = EBADF;
    return !closed;
}

static SSize_t ended(PerlIO *f, SSize_t n, bool reading)
{
    if (n == 0 && reading)
        PerlIOBase(f)->flags |= PERLIO_F_EOF;
    if (n < 0 && errno != EAGAIN)
        PerlIOBase(f)->flags |= PERLIO_F_ERROR;
    return n;
}

static SSize_t socket_read(pTHX_ PerlIO *f, void *to, Size_t count)
{
    int fd = descriptor(aTHX_ f);
    if (fd < 0)
        return ended(f, -1, true);
    claim *k = PerlIOSelf(f, socket_layer)->claim;
    if (k->ahead_len > k->ahead_at) {
        size_t left = k->ahead_len - k->ahead_at, n = left < count ? left : count;
        memcpy(to, k->ahead + k->ahead_at, n);
        k->ahead_at += n;
        return (SSize_t)n;
    }
    for (;;) {
        ssize_t n = read(fd, to, count);
        if (n >= 0 || errno != EINTR)
            return count ? ended(f, n, true) : n;
        if (PL_sig_pending && !interrupted(aTHX_ f))
            return -1;
    }
}

static SSize_t socket_write(pTHX_ PerlIO *f, const void *from, Size_t count)
{
    int fd = descriptor(aTHX_ f);
    if (fd < 0)
        return ended(f, -1, false);
    for (;;) {
        ssize_t n = write(fd, from, count);
        if (n >= 0 || errno != EINTR)
            return ended(f, n, false);
        if (PL_sig_pending && !interrupted(aTHX_ f))
            return -1;
    }
}

static IV socket_seek(pTHX_ PerlIO *f, Off_t offset, int whence)
{
    PERL_UNUSED_CONTEXT;
    PERL_UNUSED_ARG(f);
    PERL_UNUSED_ARG(offset);
    PERL_UNUSED_ARG(whence);
    errno = ESPIPE;
    return -1;
}

static Off_t socket_tell(pTHX_ PerlIO *f)
{
    PERL_UNUSED_CONTEXT;
    PERL_UNUSED_ARG(f);
    errno = ESPIPE;
    return -1;
}

static IV socket_flush(pTHX_ PerlIO *f)
{
    PERL_UNUSED_CONTEXT;
    PERL_UNUSED_ARG(f);
    return 0;
}

static PerlIO *push(pTHX_ PerlIO *f, PerlIO_funcs *layer, const char *mode, claim *k)
{
    making = k;
    f = PerlIO_push(aTHX_ f, layer, mode, NULL);
    making = NULL;
    return f;
}

/*
 * open with "&" and "&=" duplicates or shares the descriptor. In a new thread, the copy is a handle on
 * nothing: the connection stays with the interpreter that serves it.
 */
static PerlIO *socket_dup(pTHX_ PerlIO *f, PerlIO *o, CLONE_PARAMS *param, int flags)
{
    char mode[8];
    claim *k = NULL;
    PERL_UNUSED_ARG(param);
    PerlIO_modestr(o, mode);
    if (!(flags & PERLIO_DUP_CLONE)) {
        int fd = descriptor(aTHX_ o);
        if (fd >= 0 && flags & PERLIO_DUP_FD)
            fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0 || !(k = calloc(1, sizeof *k)))
            return NULL;
        k->fd = fd;
        PerlIOUnix_refcnt_inc(fd);
    }
    return push(aTHX_ f, PerlIOBase(o)->tab, mode, k);
}

static PERLIO_FUNCS_DECL(socket_funcs) = {
    .fsize = sizeof(PerlIO_funcs),
    .name = "sirius_socket",
    .size = sizeof(socket_layer),
    .kind = PERLIO_K_RAW,
    .Pushed = socket_pushed,
    .Popped = socket_popped,
    .Binmode = PerlIOBase_binmode,
    .Fileno = socket_fileno,
    .Dup = socket_dup,
    .Read = socket_read,
    .Write = socket_write,
    .Seek = socket_seek,
    .Tell = socket_tell,
    .Close = socket_close,
    .Flush = socket_flush,
    .Eof = PerlIOBase_eof,
    .Error = PerlIOBase_error,
    .Clearerr = PerlIOBase_clearerr,
    .Setlinebuf = PerlIOBase_setlinebuf,
};

/* --- the handle --- */

/* A stream with perl's own buffer on top, as on every handle. NULL: no memory, or no such layer. */
static PerlIO *stream(pTHX_ claim *k, const char *mode)
{
    PerlIO_funcs *buffer = PerlIO_find_layer(aTHX_ "perlio", 6, 0);
    PerlIO *f = buffer ? PerlIO_allocate(aTHX) : NULL;
    if (!f)
        return NULL;
    f = push(aTHX_ f, PERLIO_FUNCS_CAST(&socket_funcs), mode, k);
    return f ? PerlIO_push(aTHX_ f, buffer, mode, NULL) : NULL;
}

HV *sirius_socket_class(pTHX_ int family, bool is_tls)
{
    if (is_tls) /* one end of a pair */
        family = AF_UNIX;
    return gv_stashpv(family == AF_UNIX   ? "IO::Socket::UNIX"
                      : family == AF_INET ? "IO::Socket::INET"
                                          : "IO::Socket::IP",
                      GV_ADD);
}

SV *sirius_socket(pTHX_ UV serial)
{
    sirius *s = sirius_alive(aTHX_ serial);
    if (!s)
        return newSV(0);
    if (s->turn.io.glob)
        return newRV_inc(s->turn.io.glob);
    claim *k = calloc(1, sizeof *k);
    if (!k)
        return newSV(0);
    *k = (claim){.serial = serial, .fd = -1, .silent = true};
    GV *gv = (GV *)newSV(0);
    gv_init(gv, gv_stashpvs("Sirius", GV_ADD), "io", 2, 0);
    IO *io = GvIOn(gv);
    IoTYPE(io) = IoTYPE_SOCKET;
    IoIFP(io) = stream(aTHX_ k, "r");
    IoOFP(io) = stream(aTHX_ k, "w");
    IoFLAGS(io) |= IOf_FLUSH;
    if (!k->streams)
        free(k);
    else
        k->silent = false;
    s->turn.io.glob = SvREFCNT_inc_simple_NN((SV *)gv);
    bool is_stream = s->worker.request.request->version == SR_HTTP_2;
    HV *class = is_stream ? gv_stashpvs("IO::Socket::UNIX", GV_ADD) : s->turn.site->socket;
    return sv_bless(newRV_noinc((SV *)gv), class);
}

/* Whether anybody but the turn and %env holds the handle. */
static bool held(pTHX_ const sirius_turn *t)
{
    SV **in_env = t->env.hv && !SvRMAGICAL(t->env.hv) && !SvREADONLY(t->env.hv)
                      ? hv_fetchs(t->env.hv, "psgix.io", 0)
                      : NULL;
    U32 ours = 1 + (in_env && SvROK(*in_env) && SvRV(*in_env) == t->io.glob);
    return SvREFCNT(t->io.glob) > ours;
}

/*
 * A child can't fetch the socket from the edge, so it is fetched before the fork if the application holds the
 * handle.
 */
void sirius_socket_forks(pTHX_ sirius *s)
{
    sirius_turn *t = &s->turn;
    if (!t->io.glob || !t->open || t->io.taken || !held(aTHX_ t))
        return;
    PerlIO *f = IoIFP(GvIOp((GV *)t->io.glob));
    if (f)
        PerlIO_fileno(f);
}

void sirius_socket_drop(pTHX_ sirius *s)
{
    SV *io = s->turn.io.glob;
    s->turn.io.glob = NULL;
    SvREFCNT_dec(io);
}
