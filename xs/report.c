/* report: lines of the error log about the request at hand. */
#include "report.h"

#include "call.h"
#include "env.h"
#include "log.h"
#include "log/text.h"
#include "requestid.h"
#include "said.h"
#include "sirius.h"

#include <time.h>
#include <unistd.h>

/* The text of an exception. Its overload is code of the application, and may die as well. Mortal. */
static SV *error_text(pTHX_ sirius *s, SV *error)
{
    SV *copy = SvGMAGICAL(error) ? error : sv_2mortal(newSVsv(error));
    if (SvGMAGICAL(copy) || (SvROK(copy) && SvAMAGIC(copy)))
        copy = sirius_call_own(aTHX_ s, "Sirius::PSGI::Response::text", copy, NULL);
    return copy ? copy : sv_2mortal(newSVpvs("an exception that cannot be converted to text"));
}

/*
 * A text of %env after `before`, escaped as in the access log: a client must not send control characters to
 * an operator's terminal.
 */
static bool add_text(pTHX_ sirius *s, SV *line, const char *before, const char *key)
{
    SV **sv = sirius_env_fetch(aTHX_ s->turn.env.hv, key);
    sr_buffer text;
    if (!sv || !SvPOK(*sv) || !SvCUR(*sv))
        return false;
    sr_buffer_init(&text);
    bool made = sr_logtext_add(&text, sr_bytes_of(SvPVX(*sv), SvCUR(*sv)));
    if (made) {
        sv_catpv(line, before);
        sv_catpvn(line, sr_buffer_at(&text), sr_buffer_len(&text));
    }
    sr_buffer_free(&text);
    return made;
}

/* "GET /path from 192.0.2.7 at 2026-11-21T23:05:01Z, request id 5b1f0c6e9d3a4e7700000000000003e9: " */
static void add_request(pTHX_ sirius *s, SV *line)
{
    char made[SR_REQUEST_ID_MADE], stamp[sizeof " at 2026-11-21T23:05:01Z"];
    time_t now = time(NULL);
    struct tm utc;
    if (!add_text(aTHX_ s, line, "", "REQUEST_METHOD") || !add_text(aTHX_ s, line, " ", "REQUEST_URI"))
        return;
    add_text(aTHX_ s, line, " from ", "REMOTE_ADDR");
    if (!sirius_log_has_time(aTHX) &&
        strftime(stamp, sizeof stamp, " at %Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc)))
        sv_catpv(line, stamp);
    sr_bytes id = sirius_requestid(s, made);
    sv_catpvs(line, ", request id ");
    sv_catpvn(line, id.at, id.len);
    sv_catpvs(line, ": ");
}

/*
 * Of the request at hand, without its query. From %env, as the slot may be another request's once the
 * response is complete.
 */
static sr_bytes path_of(pTHX_ sirius *s)
{
    SV **sv = s->turn.env.hv ? sirius_env_fetch(aTHX_ s->turn.env.hv, "REQUEST_URI") : NULL;
    if (!sv || !SvPOK(*sv))
        return sr_bytes_of(NULL, 0);
    const char *query = memchr(SvPVX(*sv), '?', SvCUR(*sv));
    return sr_bytes_of(SvPVX(*sv), query ? (size_t)(query - SvPVX(*sv)) : SvCUR(*sv));
}

/* Counts an exception. */
static void record(pTHX_ sirius *s, sr_bytes text)
{
    sr_scoreboard *board = s->row.board;
    if (board && s->row.of != &s->row.none && !sirius_forked(s))
        sr_scoreboard_failed(board, (uint32_t)(s->row.of - board->rows), text, path_of(aTHX_ s),
                             (int64_t)time(NULL));
}

static void log_line(pTHX_ sirius *s, const char *level, const char *what, SV *error)
{
    if (error)
        error = error_text(aTHX_ s, error);
    SV *line = sv_2mortal(newSVpvf("[sirius %d] %s: ", (int)getpid(), level));
    if (s->turn.env.hv)
        add_request(aTHX_ s, line);
    sv_catpv(line, what);
    if (error) {
        STRLEN len;
        const char *text = SvPV(error, len);
        record(aTHX_ s, sr_bytes_of(text, len));
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
    if (!error)
        record(aTHX_ s, sr_bytes_of(what, strlen(what)));
    log_line(aTHX_ s, "error", what, error);
}

void sirius_warn(pTHX_ sirius *s, const char *what)
{
    log_line(aTHX_ s, "warn", what, NULL);
}

void sirius_report_error(pTHX_ sirius *s)
{
    sr_bytes text = sirius_said(s);
    if (text.len)
        record(aTHX_ s, text);
}
