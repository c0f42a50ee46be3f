#include "account.h"

#include "trouble.h"

#include <errno.h>

void sr_account_refuse(sr_exchange *x, int status, sr_refusal why, size_t head)
{
    sr_conn *c = x->conn;
    if (c->state != SR_CONN_SERVING) { /* otherwise this is a timeout of a request that a worker has */
        x->owed = true;
        x->broken = false;
        c->requests++;
        x->given_at = 0;
        x->sent_from = c->sent;
    }
    if (c->state != SR_CONN_SERVING && c->state != SR_CONN_READY) {
        x->ready_at = 0;
        x->client = c->peer;
    }
    sr_account_head(x, status, head);
    x->refused = (uint8_t)why;
    c->why = why == SR_REFUSED_HEADER_TIMEOUT ? SR_CLOSED_HEAD
             : why == SR_REFUSED_BODY_TIMEOUT ? SR_CLOSED_BODY
                                              : SR_CLOSED_REFUSED;
}

sr_refusal sr_account_fault(int status)
{
    switch (status) {
    case 413:
        return SR_REFUSED_BODY;
    case 414:
        return SR_REFUSED_REQUEST_LINE;
    case 417:
        return SR_REFUSED_EXPECT;
    case 426:
        return SR_REFUSED_UPGRADE;
    case 431:
        return SR_REFUSED_HEAD;
    case 500:
    case 507:
        return SR_REFUSED_TMPDIR;
    case 501:
        return SR_REFUSED_NOT_IMPLEMENTED;
    case 503:
        return SR_REFUSED_MEMORY;
    case 505:
        return SR_REFUSED_VERSION;
    default:
        return SR_REFUSED_MALFORMED;
    }
}

sr_refusal sr_account_lack(int err)
{
    return err == EMFILE || err == ENFILE ? SR_REFUSED_DESCRIPTORS : SR_REFUSED_MEMORY;
}

sr_refusal sr_account_waited(sr_engine *e)
{
    bool queue = e->deadlines.waited_too_long == 503;
    if (queue)
        sr_trouble_count(e, SR_TROUBLE_QUEUE_TIMEOUT, 1, 0);
    sr_counters_add(&e->row->counters.limited[queue ? SR_LIMIT_QUEUE : SR_LIMIT_REQUEST], 1);
    return queue ? SR_REFUSED_QUEUE_TIMEOUT : SR_REFUSED_REQUEST_TIMEOUT;
}

void sr_account_over(sr_engine *e, sr_exchange *x, sr_over how)
{
    sr_counters *counters = &e->row->counters;
    if (!x || !x->owed)
        return;
    x->owed = false;
    if (x->status)
        sr_counters_add(&counters->responses[x->status < 600 ? x->status / 100 - 1 : 4], 1);
    sr_counters_add(&counters->bytes, x->conn->sent - x->sent_from);
    if (x->refused)
        sr_counters_add(&counters->refused[x->refused], 1);
    if (how == SR_OVER_ABORTED)
        sr_counters_add(&counters->aborted, 1);
    if (how == SR_OVER_WHOLE && x->ready_at && !x->is_own)
        sr_histogram_add(&counters->latency, (uint64_t)(e->now - x->ready_at));
    else if (x->is_file)
        sr_counters_add(&counters->files_bytes, x->conn->sent - x->sent_from);
    if (e->log)
        sr_accesslog_over(e, x, how == SR_OVER_ABORTED);
}
