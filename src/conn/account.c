#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "account.h"

#include "trouble.h"

void sr_account_refuse(sr_conn *c, int status, sr_bytes response)
{
    static const char end[] = "\r\n\r\n";
    if (c->state != SR_CONN_SERVING) { /* otherwise this is a timeout of a request that a worker has */
        c->owed = true;
        c->broken = false;
        c->requests++;
        c->given_at = 0;
        c->sent = 0;
    }
    if (c->state != SR_CONN_SERVING && c->state != SR_CONN_READY) {
        c->ready_at = 0;
        c->client = c->peer;
    }
    const char *body = memmem(response.at, response.len, end, sizeof end - 1);
    sr_account_head(c, status, body ? (size_t)(body - response.at) + sizeof end - 1 : response.len);
    c->refused = true;
    c->why = status != 408 ? SR_CLOSED_REFUSED : c->state == SR_CONN_BODY ? SR_CLOSED_BODY : SR_CLOSED_HEAD;
}

int sr_account_waited(sr_engine *e)
{
    bool queue = e->waited_too_long == 503;
    if (queue)
        sr_trouble_count(e, SR_TROUBLE_QUEUE_TIMEOUT, 1, 0);
    sr_counters_add(&e->row->counters.limited[queue ? SR_LIMIT_QUEUE : SR_LIMIT_REQUEST], 1);
    return e->waited_too_long;
}

void sr_account_over(sr_engine *e, sr_conn *c, sr_over how)
{
    sr_counters *counters = &e->row->counters;
    if (!c->owed)
        return;
    c->owed = false;
    if (c->status)
        sr_counters_add(&counters->responses[c->status < 600 ? c->status / 100 - 1 : 4], 1);
    sr_counters_add(&counters->bytes, c->sent);
    if (c->refused)
        sr_counters_add(&counters->refused, 1);
    if (how == SR_OVER_ABORTED)
        sr_counters_add(&counters->aborted, 1);
    if (how == SR_OVER_WHOLE && c->ready_at && !c->is_own)
        sr_histogram_add(&counters->latency, (uint64_t)(e->now - c->ready_at));
    if (e->log)
        sr_accesslog_over(e, c, how == SR_OVER_ABORTED);
}
