/*
 * stream: callbacks of PSGI for a response in pieces: writer, early hints. Each carries the serial of its
 * request. Once that request is over, it does nothing but complain.
 */
#include "stream.h"

#include "call.h"
#include "report.h"
#include "sirius.h"
#include "text.h"
#include "trim.h"
#include "turn.h"
#include "unchunk.h"
#include "wire.h"

static HV *writer_stash;
static CV *dispatch; /* runs the handlers of signals that have arrived */

XS(sirius_xs_dispatch);
XS(sirius_xs_dispatch)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    PERL_ASYNC_CHECK();
    XSRETURN_YES;
}

void sirius_stream_boot(pTHX)
{
    writer_stash = gv_stashpvs("Sirius::PSGI::Writer", GV_ADD);
    dispatch = newXS(NULL, sirius_xs_dispatch, __FILE__);
}

/*
 * --- writer ---
 *
 * A response is over as soon as its framing says so: for HEAD, 204 and 304 at once, with a Content-Length
 * after the last byte, otherwise when the writer is closed. What is written later is dropped, and write
 * returns false, so that an endless producer can stop.
 */

SV *sirius_writer(pTHX_ sirius *s)
{
    SV *ref = newRV_noinc(newSVuv(s->turn.serial));
    sv_bless(ref, writer_stash);
    return sv_2mortal(ref);
}

typedef struct sink { /* receives the runs of bytes from unchunk */
    sirius *s;
    bool wait;
} sink;

/* Call inside. */
static bool put(void *arg, sr_bytes bytes)
{
    sink *k = arg;
    sirius_turn *t = &k->s->turn;
    sr_response_framing framing = t->wire.response.framing;
    if (framing == SR_FRAMING_LENGTH && bytes.len > t->wire.left) {
        bytes.len = (size_t)t->wire.left;
        t->wire.longer = true;
    }
    if (!bytes.len || framing == SR_FRAMING_NONE)
        return !t->wire.gone;
    t->wire.left -= framing == SR_FRAMING_LENGTH ? bytes.len : 0;
    wire_data(k->s, bytes, k->wait);
    return !t->wire.gone;
}

bool sirius_stream_send(pTHX_ sirius *s, SV *data, sr_bytes bytes, bool wait)
{
    sirius_turn *t = &s->turn;
    if (t->wire.phase != SIRIUS_STREAMING)
        return false;
    sink k = {s, wait};
    bool entered = sirius_enter(&s->inside);
    if (!bytes.len)
        wire_nothing(s);
    t->stream.writing = wait;
    t->stream.sending = data;
    t->stream.sending_at = bytes.at;
    if (!unchunk_feed(&s->unchunk, bytes, put, &k) && s->unchunk.state == UNCHUNK_BAD)
        t->wire.phase = SIRIUS_BROKEN;
    bool ok = !t->wire.gone && t->wire.phase == SIRIUS_STREAMING;
    t->stream.writing = false;
    t->stream.sending = NULL;
    if (t->wire.phase == SIRIUS_STREAMING && sirius_complete(&t->wire))
        sirius_finish(aTHX_ s, true);
    sirius_leave(&s->inside, entered);
    return ok;
}

bool sirius_stream_end(pTHX_ sirius *s)
{
    sirius_turn *t = &s->turn;
    if (t->wire.phase != SIRIUS_STREAMING)
        return false;
    sink k = {s, false};
    bool entered = sirius_enter(&s->inside);
    t->wire.phase = unchunk_end(&s->unchunk, put, &k) || t->wire.gone ? SIRIUS_ANSWERED : SIRIUS_BROKEN;
    if (t->wire.phase == SIRIUS_ANSWERED)
        wire_end(s);
    bool ok = !t->wire.gone;
    if (t->wire.phase == SIRIUS_ANSWERED)
        sirius_finish(aTHX_ s, true);
    sirius_leave(&s->inside, entered);
    return ok;
}

void sirius_signals(pTHX_ sirius *s)
{
    ENTER;
    SAVETMPS;
    if (!sirius_call(aTHX_ s, sv_2mortal(newRV_inc((SV *)dispatch)), &PL_sv_undef, NULL))
        sirius_log(aTHX_ s, "a signal handler died", ERRSV);
    FREETMPS;
    LEAVE;
}

/*
 * Keeps the bytes of a write, which continues after code of the application that may change or free `data`.
 */
static void keep(pTHX_ SV *data, const char *at)
{
    sv_2mortal(SvREFCNT_inc_simple_NN(data));
    if (SvTYPE(data) < SVt_PV || SvTYPE(data) > SVt_PVLV || isGV_with_GP(data) || SvROK(data) ||
        SvPVX_const(data) != at || (!SvLEN(data) && !SvIsCOW(data)))
        return; /* not the buffer of `data` but a temporary string */
    SV *ours = newSV(0);
    if (!SVf_IsCOW && SvIsCOW(data)) {
        sv_setsv_flags(ours, data, 0); /* shares the string, which nobody writes to */
    } else {
        /* the write goes on from this buffer: takes it over, and gives `data` the copy */
        sv_setpvn(ours, at, SvCUR(data));
        SvUPGRADE(ours, SVt_PVIV);
        char *copy = SvPVX(ours);
        STRLEN len = SvLEN(ours);
        U32 how = SvFLAGS(data) & (SVf_OOK | SVf_IsCOW);
        SvPV_set(ours, SvPVX(data));
        SvLEN_set(ours, SvLEN(data));
        SvFLAGS(ours) |= how;
        SvFLAGS(data) &= ~how;
        SvPV_set(data, copy);
        SvLEN_set(data, len);
    }
    sv_2mortal(ours);
}

void sirius_catch_end(pTHX_ sirius *s, bool outer)
{
    sirius_turn *t = &s->turn;
    t->stream.catches = outer;
    if (t->stream.died) {
        SV *died = sv_2mortal(t->stream.died);
        t->stream.died = NULL;
        croak_sv(died);
    }
}

/*
 * Waiting for a slow client may take a minute, and a time limit of the application must be able to end that.
 * Handlers run in an eval, as one that dies must not jump over the server: the call dies once it has
 * returned. No handler finds a writer in the middle of a write.
 */
bool sirius_interrupted(void)
{
    sirius *s = sirius_current;
    dTHX;
    if (!s || !s->turn.open || !s->turn.stream.writing || !PL_sig_pending)
        return true;
    sirius_turn *t = &s->turn;
    if (t->stream.sending)
        keep(aTHX_ t->stream.sending, t->stream.sending_at);
    t->stream.sending = NULL;
    /*
     * $@ is replaced meanwhile, not copied, as it may be tied. What handlers leave in it is freed with the
     * current statement of the application or with the request, where code that this runs does no harm.
     */
    SV *error = sv_2mortal(newSVpvs(""));
    SvTEMP_off(error); /* nobody may steal its buffer while it serves as $@ */
    sirius_phase phase = t->wire.phase;
    t->inert = false;
    ENTER;
    SAVETMPS;
    SAVEGENERICSV(GvSV(PL_errgv));
    GvSV(PL_errgv) = SvREFCNT_inc_simple_NN(error);
    t->wire.phase = SIRIUS_BROKEN;
    bool lived = sirius_call(aTHX_ s, sv_2mortal(newRV_inc((SV *)dispatch)), &PL_sv_undef, NULL) != NULL;
    if (lived || !t->stream.catches || phase == SIRIUS_UNANSWERED)
        t->wire.phase = phase;
    if (!lived && t->stream.catches) {
        t->stream.died = SvREFCNT_inc(ERRSV);
    } else if (!lived) {
        sirius_log(aTHX_ s, "a signal handler died", ERRSV);
        lived = true;
    }
    FREETMPS;
    LEAVE;
    return lived;
}

static UV writer_serial(pTHX_ SV *self)
{
    if (!SvROK(self) || !SvOBJECT(SvRV(self)) || SvSTASH(SvRV(self)) != writer_stash || !SvIOK(SvRV(self)))
        croak("the object is not a Sirius::PSGI::Writer");
    return SvUVX(SvRV(self));
}

/*
 * Whether the memory of a string can't be kept: for example a mapped file, or the text of a regular
 * expression.
 */
static bool foreign(const SV *sv)
{
    return SvTYPE(sv) == SVt_REGEXP ||
           (SvTYPE(sv) >= SVt_PV && SvTYPE(sv) <= SVt_PVLV && SvPOK(sv) && !SvLEN(sv) && !SvIsCOW(sv));
}

XS(sirius_xs_writer_write);
XS(sirius_xs_writer_write)
{
    dXSARGS;
    if (items != 2)
        croak("usage: $writer->write($bytes)");
    SV *data = ST(1);
    UV serial = writer_serial(aTHX_ ST(0));
    sr_bytes bytes = {0};
    bool ok = false, wait = XSANY.any_i32 == 0;
    if (sirius_serving(aTHX_ serial)) {
        if (SvROK(data) || SvGMAGICAL(data)) /* converting it to text may free it */
            sv_2mortal(SvREFCNT_inc_simple_NN(data));
        SvGETMAGIC(data);
        if (!sirius_bytes(aTHX_ data, &bytes))
            croak("the body contains characters above 0xff: encode it, for example as UTF-8");
    }
    sirius *s = sirius_serving(aTHX_ serial); /* an overload may have forked, or closed the writer */
    if (s) {
        if (foreign(data)) {
            data = sv_2mortal(newSVpvn(bytes.at, bytes.len));
            bytes.at = SvPVX_const(data);
        }
        bool outer = sirius_catch(&s->turn.stream);
        ok = sirius_stream_send(aTHX_ s, data, bytes, wait);
        sirius_catch_end(aTHX_ s, outer);
    }
    ST(0) = boolSV(ok);
    XSRETURN(1);
}

XS(sirius_xs_writer_close);
XS(sirius_xs_writer_close)
{
    dXSARGS;
    if (items < 1)
        croak("usage: $writer->close");
    UV serial = writer_serial(aTHX_ ST(0));
    sirius *s = sirius_serving(aTHX_ serial);
    bool ok;
    if (s) {
        bool outer = sirius_catch(&s->turn.stream);
        ok = sirius_stream_end(aTHX_ s);
        sirius_catch_end(aTHX_ s, outer);
    } else {
        ok = sirius_answered(aTHX_ serial);
    }
    ST(0) = boolSV(ok);
    XSRETURN(1);
}

/* --- psgix.informational --- */

/*
 * Copies the headers to plain values. Magic and overloads are code of the application: it must run here, not
 * while a head is made from values that it may free. Mortal.
 */
static AV *plain_copy(pTHX_ AV *headers)
{
    AV *copy = (AV *)sv_2mortal((SV *)newAV());
    for (SSize_t i = 0; i <= av_len(headers); i++) {
        SV **svp = av_fetch(headers, i, 0);
        SV *value = svp ? sv_mortalcopy(sv_2mortal(SvREFCNT_inc_simple_NN(*svp))) : &PL_sv_undef;
        if (SvROK(value)) {
            SV *text = sv_newmortal();
            sv_copypv(text, value);
            value = text;
        }
        av_push(copy, SvREFCNT_inc_simple_NN(value));
    }
    return copy;
}

/* Appends the fields to `out`. Returns NULL, or what is wrong. */
static const char *interim(pTHX_ sr_buffer *out, AV *headers, SV **trimmed)
{
    if (av_len(headers) % 2 == 0)
        return "the headers are not names and values in pairs";
    sr_response_error err = SR_RESPONSE_OK;
    sr_bytes n = SR_BYTES(""), v = n;
    for (SSize_t i = 0; !err && i < av_len(headers); i += 2) {
        if (!sirius_bytes(aTHX_ * av_fetch(headers, i, 0), &n) ||
            !sirius_bytes(aTHX_ * av_fetch(headers, i + 1, 0), &v))
            return "a header contains characters above 0xff: encode it, for example as UTF-8";
        err = sr_informational_field(out, n, v);
        if (err == SR_RESPONSE_BAD_VALUE && sirius_trim(aTHX_ trimmed, n, &v))
            err = sr_informational_field(out, n, v);
    }
    return sirius_header_error(aTHX_ err, n, v);
}

XS(sirius_xs_informational);
XS(sirius_xs_informational)
{
    dXSARGS;
    if (items != 2 || !SvROK(ST(1)) || SvTYPE(SvRV(ST(1))) != SVt_PVAV)
        croak("usage: $env->{'psgix.informational'}->($status, \\@headers)");
    UV serial = (UV)XSANY.any_iv; /* read now: code of the application may free this sub and the array */
    AV *given = (AV *)sv_2mortal(SvREFCNT_inc_simple_NN(SvRV(ST(1))));
    AV *headers = plain_copy(aTHX_ given);
    int status = (int)SvIV(ST(0));
    sirius *s = sirius_serving(aTHX_ serial);
    if (!s || s->turn.wire.phase != SIRIUS_UNANSWERED) {
        warn("psgix.informational was called after the final response had begun");
        XSRETURN_EMPTY;
    }
    /* the server has sent 100 itself if the client asked for it, and the body is complete */
    if (status == 100)
        XSRETURN_EMPTY;
    if (!sr_informational_status(status))
        croak("psgix.informational: the status is %d, expected 102 to 199", status);
    SV *scratch = sv_2mortal(newSV(0)), *trimmed = NULL;
    sr_buffer out;
    sr_buffer_init(&out);
    ENTER;
    const char *why = interim(aTHX_ & out, headers, &trimmed);
    LEAVE;
    if (trimmed)
        sirius_trim_log(aTHX_ s, trimmed);
    if (!why)
        sv_setpvn(scratch, out.data ? sr_buffer_at(&out) : "", sr_buffer_len(&out));
    sr_buffer_free(&out); /* before croak, which does not return */
    if (why)
        croak("psgix.informational: %s", why);
    bool outer = sirius_catch(&s->turn.stream), entered = sirius_enter(&s->inside);
    wire_interim(s, status, sr_bytes_of(SvPVX(scratch), SvCUR(scratch)));
    sirius_leave(&s->inside, entered);
    sirius_catch_end(aTHX_ s, outer);
    XSRETURN_EMPTY;
}

SV *sirius_informational(pTHX_ UV serial)
{
    return sirius_closure(aTHX_ sirius_xs_informational, serial);
}
