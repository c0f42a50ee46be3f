#include "upgrade.h"

#include "../conn/account.h"
#include "../conn/trouble.h"
#include "../http/forwarded.h"
#include "../http/target.h"
#include "../websocket/eventhead.h"
#include "../websocket/websocket.h"
#include "../websocket/wsevent.h"
#include "log.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Once in a second: each client could have it said. */
static bool may_say(const sr_edge *ed, int64_t *said_at)
{
    if (ed->engine->now - *said_at < SR_SECOND)
        return false;
    *said_at = ed->engine->now;
    return true;
}

/* A response of the application to events can't be understood. */
static void invalid(void *with, const char *why)
{
    char text[256];
    sr_edge *ed = with;
    if (!may_say(ed, &ed->websockets->said_at))
        return;
    int n = sr_report_begin(ed, text, (int32_t)getpid(), "more");
    snprintf(text + n, sizeof text - (size_t)n,
             "a response to events of a WebSocket %s: the connection was closed\n", why);
    sr_report(ed, text);
}

static void crowded(void *with, const sr_websocket *ws)
{
    char text[256], client[SR_PEER_TEXT_MAX];
    sr_edge *ed = with;
    if (!may_say(ed, &ed->websockets->crowded_at))
        return;
    size_t len = sr_peer_text(&ws->client.client, client);
    int n = sr_report_begin(ed, text, (int32_t)getpid(), "more");
    snprintf(
        text + n, sizeof text - (size_t)n,
        "WebSocket messages need more than 256 MiB: the WebSocket of %.*s, which had %zu KiB, was closed\n",
        (int)len, client, ws->memory / 1024);
    sr_report(ed, text);
}

int sr_upgrade_open(sr_edge *ed, const sr_setup *s)
{
    ed->holds_all = s->hold == SR_HOLDS_ALL;
    if (!ed->holds_all || (s->websocket && strcmp(s->websocket, "off") == 0))
        return 0;
    if (!(ed->websockets = sr_websockets_new(ed->engine, ed->live)))
        return ENOMEM;
    ed->websockets->with = ed;
    ed->websockets->invalid = invalid;
    ed->websockets->crowded = crowded;
    ed->paths = s->websocket && *s->websocket ? s->websocket : NULL;
    return 0;
}

void sr_upgrade_stop(sr_edge *ed)
{
    if (ed->websockets)
        sr_websockets_stop(ed->websockets);
}

void sr_upgrade_close(sr_edge *ed)
{
    sr_websockets_free(ed->websockets);
    ed->websockets = NULL;
}

/* The request belongs to who parses it, and is read by nobody else before it is taken. */
static void strip(const sr_task *task)
{
    sr_request *r = (sr_request *)(uintptr_t)task->request;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->n_fields; i++)
        if (!sr_eventhead_own(sr_span_in(task->base, r->fields[i].name)))
            r->fields[kept++] = r->fields[i];
    r->n_fields = kept;
}

/* Whether the path is one of --websocket: a prefix of whole segments. */
static bool is_ours(const sr_edge *ed, sr_bytes path)
{
    const char *at = ed->paths;
    if (!at)
        return true;
    for (size_t len; *at; at += len + (at[len] == ' ')) {
        len = strcspn(at, " ");
        bool begins = path.len >= len && memcmp(path.at, at, len) == 0;
        if (begins && (path.len == len || at[len - 1] == '/' || path.at[len] == '/'))
            return true;
    }
    return false;
}

/* Whether the page that asks for it is of this site, as the edge and trusted proxies know it. */
static bool is_own(const sr_task *task)
{
    const sr_request *r = task->request;
    const sr_forwarded *f = task->forwarded;
    bool is_https = f && f->scheme ? f->scheme == SR_SCHEME_HTTPS : task->exchange->conn->transport != NULL;
    sr_bytes host = f && f->host.at ? f->host : sr_span_in(task->base, r->host);
    char with_port[320];
    sr_authority a;
    if (f && f->server_port && sr_authority_parse(host, &a) && a.port < 0 &&
        a.host_len <= sizeof with_port - sizeof ":65535") {
        int n = snprintf(with_port, sizeof with_port, "%.*s:%u", (int)a.host_len, host.at, f->server_port);
        host = sr_bytes_of(with_port, (size_t)n);
    }
    return sr_opening_is_own(r, task->base, is_https, host);
}

static void refuse(sr_edge *ed, sr_task *task, int status, const char *rule)
{
    sr_log_offer_task(ed, task, sr_bytes_of("", 0));
    sr_intake_refuse(ed->engine, task, status, sr_account_fault(status), rule);
}

bool sr_upgrade_answer(sr_edge *ed, sr_task *task)
{
    sr_engine *e = ed->engine;
    sr_exchange *x = task->exchange;
    const sr_request *r = task->request;
    sr_opening o;
    if (!x->trusted || ed->websockets) /* a proxy passes on what its clients send */
        strip(task);
    if (sr_wsevent_type(sr_span_in(task->base, r->content_type))) {
        refuse(ed, task, 400, "a client sends events of WebSockets");
        return true;
    }
    if (!r->upgrade || !ed->websockets || !sr_opening_asks(r, task->base) ||
        !is_ours(ed, sr_span_in(task->base, r->path)))
        return false;
    if (!ed->paths && !is_own(task)) {
        refuse(ed, task, 403, "a page of another origin asks for a WebSocket: see --websocket");
        return true;
    }
    sr_opening_check(&o, r, task->base);
    if (o.status) {
        refuse(ed, task, o.status, o.why);
        return true;
    }
    sr_log_offer_task(ed, task, sr_bytes_of("", 0));
    sr_accesslog_keep(e, x);
    sr_refusal why =
        e->draining || e->retiring ? SR_REFUSED_STOP : sr_websocket_begin(ed->websockets, task, &o);
    if (why) {
        if (why == SR_REFUSED_MEMORY)
            sr_trouble_count(e, SR_TROUBLE_MEMORY, 1, ENOMEM);
        sr_intake_refuse(e, task, 503, why, NULL);
    }
    return true;
}
