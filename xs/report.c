/* report: lines of the error log about the request at hand. */
#include "report.h"

#include "call.h"
#include "env.h"
#include "log.h"
#include "log/text.h"
#include "sirius.h"

#include <unistd.h>

/* The text of an exception. Its overload is code of the application, and may die as well. Mortal. */
static SV *error_text(pTHX_ sirius *s, SV *error)
{
    SV *copy = SvGMAGICAL(error) ? error : sv_2mortal(newSVsv(error));
    if (SvGMAGICAL(copy) || (SvROK(copy) && SvAMAGIC(copy)))
        copy = sirius_call_own(aTHX_ s, "Sirius::PSGI::Response::text", copy, NULL);
    return copy ? copy : sv_2mortal(newSVpvs("an exception that cannot be converted to text"));
}

/* Escaped as in the access log: a client must not send control characters to an operator's terminal. */
static void add_request(pTHX_ SV *line, SV *method, SV *uri)
{
    sr_buffer text;
    sr_buffer_init(&text);
    if (sr_logtext_add(&text, sr_bytes_of(SvPVX(method), SvCUR(method))) && sr_buffer_add(&text, " ", 1) &&
        sr_logtext_add(&text, sr_bytes_of(SvPVX(uri), SvCUR(uri))) && sr_buffer_add(&text, ": ", 2))
        sv_catpvn(line, sr_buffer_at(&text), sr_buffer_len(&text));
    sr_buffer_free(&text);
}

static void log_line(pTHX_ sirius *s, const char *level, const char *what, SV *error)
{
    if (error)
        error = error_text(aTHX_ s, error);
    SV *line = sv_2mortal(newSVpvf("[sirius %d] %s: ", (int)getpid(), level));
    if (s->turn.env.hv) {
        SV **method = sirius_env_fetch(aTHX_ s->turn.env.hv, "REQUEST_METHOD");
        SV **uri = sirius_env_fetch(aTHX_ s->turn.env.hv, "REQUEST_URI");
        if (method && uri && SvPOK(*method) && SvPOK(*uri))
            add_request(aTHX_ line, *method, *uri);
    }
    sv_catpv(line, what);
    if (error) {
        STRLEN len;
        const char *text = SvPV(error, len);
        sv_catpvs(line, ": ");
        sv_catpvn(line, text, len);
    }
    if (*(SvEND(line) - 1) != '\n')
        sv_catpvs(line, "\n");
    s->inside.logging = 1;
    sirius_log_put(aTHX_ SvPVX(line), SvCUR(line), level);
    s->inside.logging = 0;
}

void sirius_log(pTHX_ sirius *s, const char *what, SV *error)
{
    log_line(aTHX_ s, "error", what, error);
}

void sirius_warn(pTHX_ sirius *s, const char *what)
{
    log_line(aTHX_ s, "warn", what, NULL);
}
