#include "plain.h"

#include "../http/page.h"
#include "../http/target.h"
#include "answer.h"
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { HTTPS = 443 };

/* 0: it has none, being a unix socket. */
static uint16_t port_of(const sr_site *site)
{
    char text[8] = "";
    if (site->port.len < sizeof text)
        memcpy(text, site->port.at, site->port.len);
    return (uint16_t)strtoul(text, NULL, 10);
}

/* If several speak TLS, the one that a URL need not name is what clients expect. */
uint16_t sr_plain_https_port(const sr_setup *s)
{
    uint16_t first = s->https_port;
    for (unsigned i = 0; !s->https_port && i < s->n_listeners; i++) {
        uint16_t port = s->listeners[i].is_tls ? port_of(&s->listeners[i].site) : 0;
        if (port == HTTPS || !first)
            first = port;
        if (port == HTTPS)
            break;
    }
    return first ? first : HTTPS;
}

/*
 * Requests on a unix socket come from a proxy, which redirects by itself; so does a trusted proxy whose
 * client has used https.
 */
static bool redirects(const sr_edge *ed, const sr_task *task)
{
    return ed->answer.redirects && !ed->engine->listeners.at[task->exchange->conn->listener].is_unix &&
           !(task->forwarded && task->forwarded->scheme == SR_SCHEME_HTTPS);
}

/*
 * The same URL with https: host without its port, and the target as it came. ENOENT: nobody says which host,
 * as HTTP/1.0 need not.
 */
static int location(const sr_edge *ed, const sr_task *task, sr_buffer *out)
{
    const sr_request *r = task->request;
    const sr_forwarded *f = task->forwarded;
    sr_bytes host = f && f->host.at ? f->host : sr_span_in(task->base, r->host);
    sr_bytes path = sr_span_in(task->base, r->path);
    sr_authority authority;
    char port[8] = "";
    if (!sr_authority_parse(host, &authority))
        return ENOENT;
    if (ed->answer.https_port != HTTPS)
        snprintf(port, sizeof port, ":%u", ed->answer.https_port);
    if (!path.len)
        path = SR_BYTES("/");
    else if (*path.at != '/') /* OPTIONS *, whose URL has no path (RFC 9112 3.3) */
        path.len = 0;
    bool whole = sr_buffer_add_bytes(out, SR_BYTES("https://")) &&
                 sr_buffer_add(out, host.at, authority.host_len) && sr_buffer_add(out, port, strlen(port)) &&
                 sr_buffer_add_bytes(out, path) &&
                 (!r->has_query ||
                  (sr_buffer_add(out, "?", 1) && sr_buffer_add_bytes(out, sr_span_in(task->base, r->query))));
    return whole ? 0 : ENOMEM;
}

/* 308, not 301: that one lets a client turn POST into GET (RFC 9110 15.4.2). 0, or why there is no answer. */
static int answer(sr_edge *ed, sr_task *task, sr_page *page)
{
    sr_buffer *fields = &ed->text;
    sr_page_make(page, 308);
    sr_buffer_reset(fields);
    if (!sr_buffer_add_bytes(fields, page->head.fields) ||
        !sr_buffer_add_bytes(fields, SR_BYTES("Location: ")))
        return ENOMEM;
    int err = location(ed, task, fields);
    if (err)
        return err;
    if (!sr_buffer_add_bytes(fields, SR_BYTES("\r\n")))
        return ENOMEM;
    page->head.fields = sr_bytes_of(sr_buffer_at(fields), sr_buffer_len(fields));
    return sr_answer_begin(ed, task, &page->head) ? 0 : ENOMEM;
}

static void redirect(sr_edge *ed, sr_task *task)
{
    sr_engine *e = ed->engine;
    sr_exchange *x = task->exchange;
    sr_page page;
    int err = answer(ed, task, &page);
    if (err == ENOENT) {
        sr_intake_refuse(e, task, 400, SR_REFUSED_MALFORMED,
                         "the request has no Host, so there is no URL to redirect it to");
        return;
    }
    if (err) {
        sr_answer_refuse(ed, task, err);
        return;
    }
    x->protocol->piece(e, x, sr_page_text(&page), true);
    x->protocol->end(e, x);
}

bool sr_plain_answer(sr_edge *ed, sr_task *task)
{
    if (ed->answer.webroot && sr_files_answer(ed, ed->answer.webroot, task))
        return true;
    if (!redirects(ed, task))
        return false;
    redirect(ed, task);
    return true;
}
