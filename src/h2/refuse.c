#ifdef SR_HTTP2

#include "refuse.h"

#include "../conn/account.h"
#include "../conn/client.h"
#include "../conn/deadline.h"
#include "../conn/identity.h"
#include "../conn/trouble.h"
#include "../http/page.h"
#include "put.h"

static sr_bytes first_line(sr_bytes head)
{
    const char *end = head.len ? memchr(head.at, '\r', head.len) : NULL;
    return end ? sr_bytes_of(head.at, (size_t)(end - head.at)) : (sr_bytes){NULL, 0};
}

/* What the log line says of a request that the edge does not have. */
static sr_refused asked(const sr_engine *e, const sr_h2_stream *st, const char *rule)
{
    const sr_session *s = st->session;
    const sr_exchange *x = st->exchange;
    const sr_buffer *head = x->parse ? &st->head : &e->intake.head;
    sr_bytes text = sr_bytes_of(sr_buffer_at(head), st->taken ? 0 : sr_buffer_len(head));
    return (sr_refused){.request = !text.len   ? NULL
                                   : x->parse  ? x->parse
                                   : s->parsed ? &e->intake.request
                                               : NULL,
                        .base = text.at,
                        .line = first_line(text),
                        .rule = sr_bytes_of(rule, rule ? strlen(rule) : 0),
                        .trusted = sr_cidrs_have(&e->config.trusted, &x->conn->peer)};
}

/* What a trusted proxy says of it: whose request it is, and the id that the response has. */
static void identify(sr_engine *e, sr_exchange *x, const sr_refused *of)
{
    if (!of->request || !of->trusted)
        return;
    if (!of->request->status)
        sr_client_forwarded(e, x, of->request, of->base);
    sr_identity_keep(e, x, of->request, of->base);
}

void sr_h2_refuse(sr_engine *e, sr_exchange *x, int status, sr_refusal why, const char *rule)
{
    sr_h2_stream *st = x->stream;
    sr_session *s = st->session;
    sr_conn *c = x->conn;
    sr_page page;
    sr_bytes made;
    bool complete = e->intake.current == c && x->owed && !st->taken;
    if (complete)
        e->intake.current = NULL;
    if (s->complete == st)
        s->complete = NULL;
    sr_stream_abandon(s, x);
    sr_deadline_clear_exchange(e, x); /* of the body, which nobody waits for any more, or of the queue */
    if (st->answered) {
        sr_h2_cut(e, x);
        return;
    }
    sr_stream_drop_pump(st);
    sr_refused of = asked(e, st, rule);
    identify(e, x, &of);
    sr_trouble_refused(e, x, why);
    sr_page_make(&page, status);
    if (sr_h2_head(e, x, &page.head, &made)) {
        sr_h2_cut(e, x);
        return;
    }
    if (!x->owed) {
        c->requests++;
        x->owed = true;
    }
    x->refused = (uint8_t)why;
    if (e->log && !sr_accesslog_refuse_offered(e, x, made))
        sr_accesslog_refuse(e, x, made, &of);
    sr_exchange_drop_request(x);
    sr_h2_piece(e, x, sr_page_text(&page), true);
    sr_h2_end(e, x);
}

#endif
