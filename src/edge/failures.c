#include "failures.h"

#include "report.h"
#include "text.h"

#include <stdio.h>
#include <unistd.h>

enum { REPORT_MAX = 512 }; /* below PIPE_BUF */

static bool is_logged(sr_failure why)
{
    return why != SR_FAILURE_CLOSED && why != SR_FAILURE_TIMEOUT;
}

/* "4720 more TLS handshake with 192.0.2.7:33330 failed: ..." */
static bool tell(sr_edge *ed, const sr_conn *c, sr_failure why, const char *words)
{
    const sr_untold *u = &ed->untold[why];
    bool alone = ed->report < 0;
    char client[SR_TEXT_CLIENT_MAX], more[80] = "", out[REPORT_MAX];
    sr_text_client(&c->peer, client);
    if (u->left_out)
        snprintf(more, sizeof more, "; %llu more with this reason (%s) since the last line",
                 (unsigned long long)u->left_out, sr_failure_name(why));
    snprintf(out, sizeof out, "%s%d%sTLS handshake with %s failed: %s%s%s\n", alone ? "[sirius " : "",
             (int)getpid(), alone ? "] warn: " : " more ",
             c->peer.family ? client : "a client of a unix socket",
             why == SR_FAILURE_ALERT ? "the client has refused with the alert: " : "", words, more);
    return sr_report(ed, out);
}

static void failed(void *with, const sr_conn *c, sr_failure why, const char *words)
{
    sr_edge *ed = with;
    sr_untold *u = &ed->untold[why];
    if (!is_logged(why))
        return;
    if (ed->engine->now < u->quiet_until || !tell(ed, c, why, words)) {
        u->left_out++;
        return;
    }
    u->left_out = 0;
    u->quiet_until = ed->engine->now + SR_FAILURE_QUIET_NS;
}

void sr_failures_open(sr_edge *ed)
{
    ed->engine->failed = failed;
}
