/*
 * lazy: values of %env that cost something and are seldom read: psgix.io, psgix.informational.
 * Each is a scalar with magic that makes the value when it is first read and then goes; an assignment makes
 * it go as well.
 */
#include "sirius.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int lazy_get(pTHX_ SV *sv, MAGIC *mg);
static int lazy_set(pTHX_ SV *sv, MAGIC *mg);

static const MGVTBL lazy_vtbl = {.svt_get = lazy_get, .svt_set = lazy_set};

/* mg_private: the kind. mg_ptr, with mg_len 0 so that perl does not free it: descriptor + 1, or the serial of
 * a turn. */
SV *sirius_lazy_new(pTHX_ sirius_lazy kind)
{
    SV *sv = newSV(0);
    sv_magicext(sv, NULL, PERL_MAGIC_ext, &lazy_vtbl, NULL, 0)->mg_private = (U16)kind;
    return sv;
}

void sirius_lazy_arm(pTHX_ SV *sv, UV serial)
{
    PERL_UNUSED_CONTEXT;
    SvMAGIC(sv)->mg_ptr = INT2PTR(char *, serial);
}

bool sirius_lazy_untouched(pTHX_ const SV *sv)
{
    PERL_UNUSED_CONTEXT;
    if (SvTYPE(sv) != SVt_PVMG || SvROK(sv) || SvOK(sv) || SvREADONLY(sv))
        return false;
    const MAGIC *mg = SvMAGIC(sv);
    return mg && mg->mg_virtual == &lazy_vtbl && !mg->mg_moremagic && !mg->mg_obj;
}

/* Bytes written to a TCP socket and read from it so far. False: the kernel does not say (unix sockets). */
static bool counters(int fd, uint64_t *written, uint64_t *taken)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    int out = 0, in = 0;
    *written = *taken = 0;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_segs_out) || ioctl(fd, SIOCOUTQ, &out) != 0 ||
        ioctl(fd, SIOCINQ, &in) != 0)
        return false;
    *written = info.tcpi_bytes_acked + (uint64_t)out;
    *taken = info.tcpi_bytes_received - (uint64_t)in;
    return true;
}

/*
 * The helper that makes an IO::Socket is Perl: it runs once in a lifetime of few connections. The op that reads the scalar may
 * have values on the stack and go on with its own copy of the stack pointer (a copy of a hash, a list of arguments), so
 * the call gets a stack of its own, as perl's own magic does: the other must neither move nor change.
 */
static SV *io(pTHX_ UV serial)
{
    sirius *s = sirius_current;
    if (!s || s->turn.serial != serial || !s->turn.conn)
        return newSV(0);
    sr_conn *c = s->turn.conn;
    int fd = fcntl(c->source.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return newSV(0);
    bool taken = sirius_helm_take(s); /* from here on no 504 of the companion's may come in between */
    c->borrowed = true;
    sirius_helm_leave(s, taken);
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK); /* as a socket of IO::Socket is */
    counters(fd, &s->turn.io_written, &s->turn.io_read);
    dSP;
    ENTER;
    SAVETMPS;
    PUSHSTACKi(PERLSI_MAGIC);
    PUSHMARK(SP);
    mXPUSHi(fd);
    mXPUSHp(c->in.data ? sr_buffer_at(&c->in) : "",
            sr_buffer_len(&c->in)); /* bytes read ahead, given over once */
    PUTBACK;
    int n = call_pv("Sirius::Socket::adopt", G_SCALAR);
    SPAGAIN;
    SV *socket = n == 1 ? SvREFCNT_inc(POPs) : newSV(0);
    PUTBACK;
    POPSTACK;
    FREETMPS;
    LEAVE;
    if (SvROK(socket))
        s->turn.io = SvREFCNT_inc(SvRV(socket));
    return socket;
}

void sirius_lazy_io_settle(pTHX_ sirius *s)
{
    sirius_turn *t = &s->turn;
    uint64_t written, taken;
    PERL_UNUSED_CONTEXT;
    if (SvREFCNT(t->io) > 2 ||
        !counters(t->conn->source.fd, &written, &taken)) /* 2: that in %env, and ours */
        return;
    if (written != t->io_written || taken != t->io_read)
        return;
    int flags = fcntl(t->conn->source.fd, F_GETFL);
    if (fcntl(t->conn->source.fd, F_SETFL, flags | O_NONBLOCK) == 0)
        t->conn->borrowed = false;
}

void sirius_lazy_io_drop(pTHX_ sirius *s)
{
    SvREFCNT_dec(s->turn.io);
    s->turn.io = NULL;
}

static int lazy_get(pTHX_ SV *sv, MAGIC *mg)
{
    SV *value = NULL;
    UV number = PTR2UV(mg->mg_ptr);
    switch ((sirius_lazy)mg->mg_private) {
    case SIRIUS_LAZY_IO:
        value = io(aTHX_ number);
        break;
    case SIRIUS_LAZY_INFORMATIONAL:
        value = sirius_informational(aTHX_ number);
        break;
    }
    sv_unmagicext(sv, PERL_MAGIC_ext, (MGVTBL *)&lazy_vtbl);
    sv_setsv_nomg(sv, value);
    SvREFCNT_dec(value);
    return 0;
}

static int lazy_set(pTHX_ SV *sv, MAGIC *mg)
{
    PERL_UNUSED_ARG(mg);
    sv_unmagicext(sv, PERL_MAGIC_ext, (MGVTBL *)&lazy_vtbl);
    return 0;
}
