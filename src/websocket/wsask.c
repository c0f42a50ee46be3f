#include "wsask.h"

#include "../conn/client.h"
#include "../http1/head.h"
#include "eventhead.h"
#include "wsanswer.h"
#include "wscarrier.h"

enum { MORE = 16 * 1024 }; /* bytes of meta fields, and those of the edge */

static void fail(sr_websocket *ws)
{
    sr_buffer_free(&ws->events);
    ws->n_events = 0;
    ws->end_at = 0;
    ws->told = true;
    if (ws->carrier)
        sr_wscarrier_fail(ws, SR_CLOSE_ERROR, sr_bytes_of("", 0));
    else
        sr_websocket_ask(ws); /* to be freed */
}

/* Makes the request, in scratch memory. */
static bool make(sr_websocket *ws, sr_buffer *text, sr_request *r)
{
    const sr_config *config = &ws->all->engine->config;
    const sr_request_limits limits = {config->request.line + MORE, config->request.head + MORE,
                                      SR_REQUEST_FIELDS_MAX, true};
    sr_buffer_reset(text);
    if (!sr_buffer_add_bytes(text, sr_buffer_bytes(&ws->head)) ||
        !sr_eventhead_end(text, sr_buffer_bytes(&ws->meta), ws->asked))
        return false;
    sr_request_init(r);
    if (sr_request_feed(r, &limits, sr_buffer_at(text), sr_buffer_len(text)) != SR_PARSE_DONE)
        return false;
    r->version = ws->client.version;
    r->shared = true;
    return true;
}

void sr_wsask(sr_websocket *ws)
{
    sr_websockets *all = ws->all;
    sr_engine *e = all->engine;
    sr_request *r = &e->intake.request;
    /* What is before its end may fail, and the application has to hear of that all the same. */
    ws->asked = ws->end_at ? ws->end_at : sr_buffer_len(&ws->events);
    sr_exchange *x = make(ws, &all->text, r) ? sr_errand_new(e, &ws->client, &sr_wsanswer) : NULL;
    if (!x) {
        fail(ws);
        return;
    }
    x->held = ws;
    ws->errand = x;
    ws->entering = true;
    sr_bytes body = sr_bytes_of(sr_buffer_at(&ws->events), ws->asked);
    sr_task task = {.exchange = x,
                    .request = r,
                    .base = sr_buffer_at(&all->text),
                    .body = body,
                    .body_fd = -1,
                    .body_length = body.len};
    if (e->config.trusted.n)
        task.forwarded = sr_client_forwarded(e, x, r, task.base);
    if (ws->accepted &&
        !all->has_room(all->with, &task)) { /* who opens it is refused as other requests are */
        sr_websocket_errand_over(ws);
        sr_websocket_ask_later(ws);
        return;
    }
    all->ask(all->with, &task);
    ws->given = ws->errand && ws->errand->number; /* others wait in a lane, or were refused */
    all->given += ws->given;
}
