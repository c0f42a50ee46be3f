#include "failures.h"

#include "report.h"
#include "text.h"

#include <stdio.h>
#include <unistd.h>

enum { REPORT_MAX = 512 }; /* below PIPE_BUF */

/*
 * Tells what a client has done, unless a line with this reason was written just now. `before` and `after`
 * stand around its address.
 */
static void tell(sr_edge *ed, sr_untold *u, const sr_conn *c, const char *reason, const char *before,
                 const char *after)
{
    char client[SR_TEXT_CLIENT_MAX], more[80] = "", out[REPORT_MAX];
    if (ed->engine->now < u->quiet_until) {
        u->left_out++;
        return;
    }
    sr_text_client(&c->peer, client);
    if (u->left_out)
        snprintf(more, sizeof more, "; %llu more with this reason (%s) since the last line",
                 (unsigned long long)u->left_out, reason);
    int n = sr_report_begin(ed, out, (int32_t)getpid(), "more");
    snprintf(out + n, sizeof out - (size_t)n, "%s%s%s%s\n", before,
             c->peer.family ? client : "a client of a unix socket", after, more);
    if (!sr_report(ed, out)) {
        u->left_out++;
        return;
    }
    u->left_out = 0;
    u->quiet_until = ed->engine->now + SR_FAILURE_QUIET_NS;
}

/* "4720 more TLS handshake with 192.0.2.7:33330 failed: ..." */
static void failed(void *with, const sr_conn *c, sr_failure why, const char *words)
{
    sr_edge *ed = with;
    char after[REPORT_MAX];
    if (why == SR_FAILURE_CLOSED || why == SR_FAILURE_TIMEOUT)
        return;
    snprintf(after, sizeof after, " failed: %s%s",
             why == SR_FAILURE_ALERT ? "the client has refused with the alert: " : "", words);
    tell(ed, &ed->untold[why], c, sr_failure_name(why), "TLS handshake with ", after);
}

/* "4720 more connection of 192.0.2.7:33330 ended: ..." */
static void flooded(void *with, const sr_conn *c, sr_flood what, bool end)
{
    static const char *const names[SR_FLOODS] = {
        [SR_FLOOD_RESETS] = "too many cancelled requests",
        [SR_FLOOD_ERRORS] = "too many errors for which streams were reset",
        [SR_FLOOD_STREAMS] = "too many requests while cancelled ones still run",
        [SR_FLOOD_HEAD] = "a head far larger than --max-header-bytes",
        [SR_FLOOD_CONTINUATION] = "a head in too many CONTINUATION frames",
        [SR_FLOOD_SETTINGS] = "too many SETTINGS frames",
        [SR_FLOOD_PING] = "too many PING frames",
        [SR_FLOOD_PRIORITY] = "too many PRIORITY frames",
        [SR_FLOOD_WINDOW] = "too many WINDOW_UPDATE frames",
        [SR_FLOOD_EMPTY] = "too many empty DATA frames",
        [SR_FLOOD_OTHER] = "too many frames without an effect",
        [SR_FLOOD_UNREAD] = "answers to PING or SETTINGS frames are not read",
    };
    sr_edge *ed = with;
    char after[REPORT_MAX];
    snprintf(after, sizeof after, " %s: %s", end ? "ended" : "has requests refused", names[what]);
    tell(ed, &ed->floods[what], c, sr_flood_name(what), "HTTP/2 connection of ", after);
}

void sr_failures_open(sr_edge *ed)
{
    ed->engine->failed = failed;
    ed->engine->flooded = flooded;
}
