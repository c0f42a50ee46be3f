/* logformat: the object Sirius::LogFormat. */

#include "logformat.h"

#include "base/clock.h"
#include "log/time.h"

#include <unistd.h>

sirius_logformat *sirius_logformat_new(pTHX_ SV *text, HV *char_handlers, HV *block_handlers,
                                       sr_logformat_error *err)
{
    HV *handlers[2] = {char_handlers, block_handlers};
    SV *letters[2];
    for (size_t i = 0; i < 2; i++) {
        letters[i] = sv_2mortal(newSVpvs(""));
        HE *he;
        hv_iterinit(handlers[i]);
        while ((he = hv_iternext(handlers[i]))) {
            STRLEN len;
            const char *key = HePV(he, len);
            if (len == 1)
                sv_catpvn(letters[i], key, 1);
        }
    }
    if (SvUTF8(text)) {
        text = sv_mortalcopy(text);
        sv_utf8_downgrade(text, TRUE);
    }
    STRLEN len;
    const char *at = SvPV_const(text, len);
    sr_logletters own = {.chars = SvPVX(letters[0]), .blocks = SvPVX(letters[1])};
    sr_logformat *program = sr_logformat_new(at, len, &own, err);
    if (!program)
        return NULL;
    sirius_logformat_prepare(aTHX_ program, char_handlers, block_handlers);
    sirius_logformat *f;
    Newxz(f, 1, sirius_logformat);
    f->program = program;
    return f;
}

static void scratch_free(sirius_logscratch *s)
{
    if (!s)
        return;
    sirius_logscratch_clear(s);
    Safefree(s);
}

void sirius_logformat_free(pTHX_ sirius_logformat *f)
{
    sirius_logformat_release(aTHX_ f->program);
    sr_logformat_free(f->program);
    scratch_free(f->scratch);
    Safefree(f);
}

/*
 * A handler may make another line with the same format, or die. So the memory belongs to one line at a time.
 */
static void scratch_put_back(pTHX_ void *arg)
{
    sirius_logscratch *s = arg;
    sirius_logformat *f = s->owner;
    PERL_UNUSED_CONTEXT;
    scratch_free(f->scratch);
    f->scratch = s;
}

static sirius_logscratch *scratch_take(pTHX_ SV *self, sirius_logformat *f)
{
    sirius_logscratch *s = f->scratch;
    if (!s)
        Newxz(s, 1, sirius_logscratch);
    f->scratch = NULL;
    s->owner = f;
    SAVEFREESV(SvREFCNT_inc_simple_NN(SvRV(self)));
    SAVEDESTRUCTOR_X(scratch_put_back, s);
    sr_buffer_reset(&s->out);
    return s;
}

static bool is_known(SV *sv)
{
    return sv && SvOK(sv);
}

/* Converts a number in units of `unit` ns. Returns `unknown` if sv is no number, or too large. */
static int64_t nanoseconds(pTHX_ SV *sv, int64_t unit, int64_t unknown)
{
    const IV max = (IV)(INT64_MAX / unit);
    if (!is_known(sv) || !looks_like_number(sv))
        return unknown;
    if (SvIOK(sv) && !SvIsUV(sv)) {
        IV n = SvIVX(sv);
        return n > -max && n < max ? (int64_t)n * unit : unknown;
    }
    NV n = SvNV(sv);
    return n > (NV)-max && n < (NV)max ? (int64_t)(n * (NV)unit) : unknown;
}

static AV *array_in(pTHX_ SV *sv)
{
    PERL_UNUSED_CONTEXT;
    return sv && SvROK(sv) && SvTYPE(SvRV(sv)) == SVt_PVAV ? (AV *)SvRV(sv) : NULL;
}

static SV *element(pTHX_ AV *av, SSize_t i)
{
    SV **svp = av ? av_fetch(av, i, 0) : NULL;
    if (svp)
        SvGETMAGIC(*svp);
    return svp ? *svp : NULL;
}

static sr_logoutcome outcome(pTHX_ SV *status, SV *length, SV *microseconds)
{
    sr_logoutcome outcome = {.body_bytes = SR_LOG_BYTES_UNKNOWN,
                             .held_ns = -1,
                             .bytes = SR_LOG_BYTES_UNKNOWN,
                             .total_ns = nanoseconds(aTHX_ microseconds, 1000, -1),
                             .queue_ns = -1,
                             .app_ns = -1,
                             .nth = SR_LOG_NTH_UNKNOWN};
    if (is_known(status) && looks_like_number(status))
        outcome.status = (int)SvIV_nomg(status);
    if (is_known(length) && looks_like_number(length) && SvNV(length) >= 0)
        outcome.body_bytes = SvUV(length);
    return outcome;
}

SV *sirius_logformat_line(pTHX_ SV *self, sirius_logformat *f, SV *const args[5])
{
    if (!args[0] || !SvROK(args[0]) || SvTYPE(SvRV(args[0])) != SVt_PVHV)
        croak("Sirius::LogFormat: log_line needs %%env, a reference to a hash");
    ENTER;
    sirius_logscratch *s = scratch_take(aTHX_ self, f);
    AV *res = array_in(aTHX_ args[1]);
    sirius_logview view = {.env = (HV *)SvRV(args[0]),
                           .headers = array_in(aTHX_ element(aTHX_ res, 1)),
                           .scratch = s,
                           .args = {args[0], args[1], args[2], args[3]}};
#ifdef MULTIPLICITY
    view.my_perl = aTHX;
#endif
    sr_logsource source = {.ctx = &view, .get = sirius_logview_get};
    if (sr_logformat_has(f->program, SR_LOG_PID))
        source.pid = (int)getpid();
    if (sr_logformat_has(f->program, SR_LOG_TIME))
        source.wall =
            is_known(args[4]) ? nanoseconds(aTHX_ args[4], SR_SECOND, SR_LOGTIME_UNKNOWN) : sr_clock_wall();
    sr_logoutcome known = outcome(aTHX_ element(aTHX_ res, 0), args[2], args[3]);
    bool done = sr_logformat_line(f->program, &source, &known, &s->out);
    SV *line = done ? newSVpvn(sr_buffer_at(&s->out), sr_buffer_len(&s->out)) : NULL;
    LEAVE;
    if (!line)
        croak("Sirius::LogFormat: out of memory");
    return line;
}
