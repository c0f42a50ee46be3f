#include "refuse.h"

#include "../conn/account.h"
#include "../conn/client.h"
#include "../conn/identity.h"
#include "../conn/joined.h"
#include "../conn/trouble.h"
#include "../http/page.h"
#include "../http1/head.h"
#include "end.h"
#include "put.h"

#include <errno.h>
#include <string.h>

enum { RAW_LINE_MAX = 1024 }; /* how much of a first line is logged that is not a request line */

static const sr_bytes none = {NULL, 0};

/* --- what was asked --- */

/*
 * The bytes of the request. One that was complete has had its bytes dropped: those that are here are of the
 * next one.
 */
static sr_bytes at_hand(const sr_engine *e, const sr_conn *c)
{
    return c->state == SR_CONN_SERVING ? none
           : sr_buffer_len(&c->in)     ? sr_bytes_of(sr_buffer_at(&c->in), sr_buffer_len(&c->in))
           : e->intake.fresh_of == c   ? e->intake.fresh
                                       : none;
}

/*
 * Whether this is a HEAD request, perhaps not yet complete: then even a refusal has no body (RFC 9110 9.3.2).
 */
static bool is_head(sr_bytes view)
{
    /* the parser skips one empty line, and refuses more */
    if (view.len >= 2 && memcmp(view.at, "\r\n", 2) == 0)
        view = sr_bytes_of(view.at + 2, view.len - 2);
    return view.len >= 5 && memcmp(view.at, "HEAD ", 5) == 0;
}

/* What is behind the empty lines that precede a request line. */
static sr_bytes behind_blanks(sr_bytes head)
{
    size_t n = 0;
    while (n < head.len && (head.at[n] == '\r' || head.at[n] == '\n'))
        n++;
    return n < head.len ? sr_bytes_of(head.at + n, head.len - n) : none;
}

/* The line is logged to its LF: a CR within it is one of its characters, which is escaped. */
static sr_bytes first_line(sr_bytes head)
{
    sr_bytes from = behind_blanks(head);
    size_t n = 0;
    while (n < from.len && n < RAW_LINE_MAX && from.at[n] != '\n')
        n++;
    while (n && from.at[n - 1] == '\r')
        n--;
    return n ? sr_bytes_of(from.at, n) : none;
}

/*
 * Parses the head again, as the first result was not kept, and finds out whose request it is, if the head is
 * complete. NULL: it has not even a method.
 */
static const sr_request *parse_again(sr_engine *e, sr_exchange *x, sr_bytes head)
{
    const sr_conn *c = x->conn;
    sr_request_limits limits = sr_client_limits(e, c);
    sr_request_init(&e->intake.request);
    bool whole = sr_request_feed(&e->intake.request, &limits, head.at, head.len) == SR_PARSE_DONE;
    if (whole && c->state != SR_CONN_READY && e->config.trusted.n)
        sr_client_forwarded(e, x, &e->intake.request, head.at);
    return e->intake.request.method.len ? &e->intake.request : NULL;
}

/* The rule that its head or its body has broken, after parse_again. */
static sr_bytes rule_of(const sr_engine *e, const sr_exchange *x, const char *why)
{
    const sr_request *q = &e->intake.request;
    if (!why && x->body && x->body->status)
        why = x->body->why;
    else if (!why && q->status)
        why = q->why;
    else if (!why && q->framing == SR_BODY_LENGTH && q->content_length > e->config.max_body)
        why = SR_BODY_TOO_LARGE;
    return why ? sr_bytes_of(why, strlen(why)) : none;
}

/* Also finds the id that the response has. */
static sr_refused find_out(sr_engine *e, sr_exchange *x, sr_bytes head, const char *rule)
{
    sr_refused of = {.line = first_line(head), .request = parse_again(e, x, head)};
    of.rule = rule_of(e, x, rule); /* of what was parsed just now */
    if (!of.request &&
        (head.len && (*head.at == '\r' || *head.at == '\n'))) { /* refused for its empty lines */
        head = behind_blanks(head);
        of.request = parse_again(e, x, head);
    }
    of.base = head.at;
    of.trusted = sr_cidrs_have(&e->config.trusted, &x->conn->peer);
    if (of.request && of.trusted)
        sr_identity_keep(e, x, of.request, of.base);
    return of;
}

/* --- the answer --- */

/* A complete request that nobody has taken. It will be counted as refused. */
static void give_back(sr_engine *e, sr_conn *c)
{
    e->intake.current = NULL;
    e->intake.view = none;
    c->requests--;
    c->state = SR_CONN_READY;
}

void sr_h1_refuse(sr_engine *e, sr_exchange *x, int status, sr_refusal why, const char *rule)
{
    sr_conn *c = x->conn;
    sr_page page;
    sr_bytes made;
    if (e->intake.current == c)
        give_back(e, c);
    sr_exchange_abandon(e, x);
    sr_bytes asked = at_hand(e, c);
    if (c->state != SR_CONN_SERVING && c->state != SR_CONN_READY)
        x->is_head = (x->parse && x->parse->is_head) || is_head(asked);
    c->linger = true;
    c->gone = false;
    sr_link_remove(&c->buffered);
    sr_trouble_refused(e, x, why);
    sr_page_make(&page, status);
    page.head.close = true;
    bool known = e->config.id_field.len && asked.len;
    sr_refused of = known ? find_out(e, x, asked, rule) : (sr_refused){0};
    if (sr_h1_head(e, x, &page.head, &made)) {
        sr_trouble_lost(e, ENOMEM);
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return;
    }
    sr_account_refuse(x, status, why, made.len);
    if (e->log && !sr_accesslog_refuse_offered(e, x, made)) {
        of = known ? of : find_out(e, x, asked, rule);
        sr_accesslog_refuse(e, x, made, &of);
    }
    sr_conn_used(c, sr_buffer_len(&c->in));
    sr_exchange_drop_request(x);
    sr_h1_piece(e, x, sr_page_text(&page), false);
    sr_joined_flush(e);
    if (c->gone)
        sr_conn_close(e, c, c->why);
    else
        sr_h1_finish(e, c, true);
}
