#include "trouble.h"

#include "../base/decimal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/*
 * Writes "PID trouble" to the pipe that the supervisor reads. A process that serves alone looks at the flag.
 */
void sr_trouble_ring(sr_engine *e)
{
    static const char text[] = " trouble\n";
    sr_scoreboard *board = e->scoreboard;
    if (!board || atomic_load_explicit(&board->shared->watched, memory_order_relaxed) == SR_WATCHED_TROUBLE ||
        atomic_exchange_explicit(&board->shared->watched, SR_WATCHED_TROUBLE, memory_order_seq_cst) ==
            SR_WATCHED_TROUBLE ||
        e->config.report_fd < 0)
        return;
    char line[SR_DECIMAL_MAX + sizeof text], digits[SR_DECIMAL_MAX];
    sr_bytes pid = sr_decimal(digits + sizeof digits, (uint64_t)getpid());
    memcpy(line, pid.at, pid.len);
    memcpy(line + pid.len, text, sizeof text - 1);
    ssize_t n;
    do
        n = write(e->config.report_fd, line, pid.len + sizeof text - 1);
    while (n < 0 && errno == EINTR);
}

void sr_trouble_count(sr_engine *e, sr_trouble what, uint64_t by, int err)
{
    sr_counters_add(&e->row->counters.trouble[what], by);
    if (!e->scoreboard)
        return;
    if (err)
        atomic_store_explicit(&e->scoreboard->shared->trouble_errno[what], err, memory_order_relaxed);
    sr_trouble_ring(e);
}

void sr_trouble_lost(sr_engine *e, int err)
{
    if (err == ENOMEM || err == ENOBUFS)
        sr_trouble_count(e, SR_TROUBLE_RESET, 1, err);
}

void sr_trouble_refused(sr_engine *e, const sr_exchange *x, sr_refusal why)
{
    switch (why) {
    case SR_REFUSED_HEADER_TIMEOUT:
        sr_trouble_count(e, SR_TROUBLE_HEADER_TIMEOUT, 1, 0);
        break;
    case SR_REFUSED_BODY_TIMEOUT:
        sr_trouble_count(e, SR_TROUBLE_BODY_TIMEOUT, 1, 0);
        break;
    case SR_REFUSED_BODY:
        sr_trouble_count(e, SR_TROUBLE_BODY, 1, 0);
        break;
    case SR_REFUSED_REQUEST_LINE:
        sr_trouble_count(e, SR_TROUBLE_REQUEST_LINE, 1, 0);
        break;
    case SR_REFUSED_HEAD:
        sr_trouble_count(e, SR_TROUBLE_HEAD, 1, 0);
        break;
    case SR_REFUSED_TMPDIR:
        if (x->body && x->body->err)
            sr_trouble_count(e, SR_TROUBLE_TEMPFILE, 1, x->body->err);
        break;
    case SR_REFUSED_HOLD:
        sr_trouble_count(e, SR_TROUBLE_HOLD, 1, 0);
        break;
    case SR_REFUSED_MALFORMED:
    case SR_REFUSED_INCOMPLETE:
    case SR_REFUSED_NOT_TLS:
    case SR_REFUSED_EXPECT:
    case SR_REFUSED_UPGRADE:
    case SR_REFUSED_NOT_IMPLEMENTED:
    case SR_REFUSED_VERSION:
        sr_trouble_count(e, SR_TROUBLE_MALFORMED, 1, 0);
        break;
    default:
        break;
    }
}

void sr_trouble_flood(sr_engine *e, const sr_conn *c, sr_flood what, bool end)
{
    sr_counters_add(&e->row->counters.floods[what], 1);
    if (e->flooded)
        e->flooded(e->with, c, what, end);
}

void sr_trouble_handshake(sr_engine *e, const sr_conn *c, sr_failure why, const char *words)
{
    sr_counters_add(&e->row->counters.failed[why], 1);
    if (e->failed)
        e->failed(e->with, c, why, words);
}
