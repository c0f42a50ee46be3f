#include "counters.h"

#include <stddef.h>

uint64_t sr_histogram_from(unsigned i)
{
    return i ? (uint64_t)(4 + (i - 1) % 4) << (SR_HISTOGRAM_FIRST - 2 + (i - 1) / 4) : 0;
}

uint64_t sr_histogram_count(const sr_histogram *h)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < SR_HISTOGRAM_BUCKETS; i++)
        count += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
    return count;
}

double sr_histogram_quantile(const sr_histogram *h, double part)
{
    double rank = part * (double)sr_histogram_count(h), before = 0;
    for (unsigned i = 0; i < SR_HISTOGRAM_BUCKETS; i++) {
        double here = (double)atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        double from = (double)sr_histogram_from(i);
        if (here > 0 && before + here >= rank) {
            double to = i + 1 < SR_HISTOGRAM_BUCKETS ? (double)sr_histogram_from(i + 1) : from;
            return from + (to - from) * (rank - before) / here;
        }
        before += here;
    }
    return 0;
}

void sr_counters_sum(sr_counters *sum, const sr_counters *row)
{
    _Static_assert(sizeof(sr_counters) % sizeof(_Atomic uint64_t) == 0, "counters only");
    _Atomic uint64_t *to = (void *)sum;
    const _Atomic uint64_t *from = (const void *)row;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        sr_counters_add(&to[i], atomic_load_explicit(&from[i], memory_order_relaxed));
}

const char *sr_closed_name(sr_closed why)
{
    static const char *const names[SR_CLOSED_REASONS] = {
        [SR_CLOSED_CLIENT] = "client",
        [SR_CLOSED_IDLE] = "keepalive-timeout",
        [SR_CLOSED_HEAD] = "header-timeout",
        [SR_CLOSED_BODY] = "body-timeout",
        [SR_CLOSED_WRITE] = "write-timeout",
        [SR_CLOSED_AFTER] = "after-response",
        [SR_CLOSED_PROXY] = "proxy-protocol",
        [SR_CLOSED_REFUSED] = "refused",
        [SR_CLOSED_ERROR] = "error",
        [SR_CLOSED_ROOM] = "room",
        [SR_CLOSED_STOP] = "stop",
        [SR_CLOSED_APPLICATION] = "application",
        [SR_CLOSED_SPOOL] = "max-temp-file-size",
        [SR_CLOSED_HANDSHAKE] = "tls-handshake",
        [SR_CLOSED_HOLD] = "hold-buffer",
    };
    return names[why];
}

const char *sr_refusal_name(sr_refusal why)
{
    static const char *const names[SR_REFUSALS] = {
        [SR_REFUSED_MALFORMED] = "malformed",
        [SR_REFUSED_INCOMPLETE] = "incomplete",
        [SR_REFUSED_NOT_TLS] = "not-tls",
        [SR_REFUSED_HEADER_TIMEOUT] = "header-timeout",
        [SR_REFUSED_BODY_TIMEOUT] = "body-timeout",
        [SR_REFUSED_BODY] = "max-body",
        [SR_REFUSED_REQUEST_LINE] = "max-request-line",
        [SR_REFUSED_HEAD] = "max-header",
        [SR_REFUSED_EXPECT] = "expect",
        [SR_REFUSED_UPGRADE] = "upgrade",
        [SR_REFUSED_NOT_IMPLEMENTED] = "not-implemented",
        [SR_REFUSED_VERSION] = "http-version",
        [SR_REFUSED_TMPDIR] = "tmpdir",
        [SR_REFUSED_TEMPORARY] = "max-temp-file-size",
        [SR_REFUSED_CONNECTIONS] = "max-connections",
        [SR_REFUSED_QUEUE] = "max-queue",
        [SR_REFUSED_QUEUE_TIMEOUT] = "queue-timeout",
        [SR_REFUSED_HALF_CLOSED] = "half-closed",
        [SR_REFUSED_REQUEST_TIMEOUT] = "request-timeout",
        [SR_REFUSED_WORKER] = "worker-lost",
        [SR_REFUSED_MEMORY] = "memory",
        [SR_REFUSED_DESCRIPTORS] = "descriptors",
        [SR_REFUSED_FILE] = "static-file",
        [SR_REFUSED_STOP] = "stop",
        [SR_REFUSED_LANE] = "lane-queue",
        [SR_REFUSED_LANE_TIMEOUT] = "lane-timeout",
        [SR_REFUSED_HOLD] = "hold-per-client",
    };
    return names[why];
}

const char *sr_failure_name(sr_failure why)
{
    static const char *const names[SR_FAILURES] = {
        [SR_FAILURE_CLOSED] = "closed",   [SR_FAILURE_TIMEOUT] = "timeout",
        [SR_FAILURE_VERSION] = "version", [SR_FAILURE_CIPHER] = "cipher",
        [SR_FAILURE_ALERT] = "alert",     [SR_FAILURE_CERTIFICATE] = "certificate",
        [SR_FAILURE_OTHER] = "other",     [SR_FAILURE_NOT_TLS] = "not_tls",
    };
    return names[why];
}

const char *sr_flood_name(sr_flood what)
{
    static const char *const names[SR_FLOODS] = {
        [SR_FLOOD_RESETS] = "resets",     [SR_FLOOD_ERRORS] = "errors",
        [SR_FLOOD_STREAMS] = "streams",   [SR_FLOOD_HEAD] = "head",
        [SR_FLOOD_SETTINGS] = "settings", [SR_FLOOD_CONTINUATION] = "continuation",
        [SR_FLOOD_PING] = "ping",         [SR_FLOOD_PRIORITY] = "priority",
        [SR_FLOOD_EMPTY] = "empty-data",  [SR_FLOOD_WINDOW] = "window-update",
        [SR_FLOOD_OTHER] = "other",       [SR_FLOOD_UNREAD] = "unread",
    };
    return names[what];
}

const char *sr_trouble_name(sr_trouble what)
{
    static const char *const names[SR_TROUBLES] = {
        [SR_TROUBLE_QUEUE] = "queue",
        [SR_TROUBLE_QUEUE_TIMEOUT] = "queue-timeout",
        [SR_TROUBLE_LANE] = "lane-queue",
        [SR_TROUBLE_LANE_TIMEOUT] = "lane-timeout",
        [SR_TROUBLE_CONNECTIONS] = "connections",
        [SR_TROUBLE_HOLD] = "hold-per-client",
        [SR_TROUBLE_MEMORY] = "memory",
        [SR_TROUBLE_DESCRIPTORS] = "descriptors",
        [SR_TROUBLE_TEMPFILE] = "tempfile",
        [SR_TROUBLE_SPOOL] = "spool",
        [SR_TROUBLE_HELD] = "held",
        [SR_TROUBLE_SLOWEST] = "slowest",
        [SR_TROUBLE_WORKER] = "worker",
        [SR_TROUBLE_RESET] = "reset",
        [SR_TROUBLE_LOG_LOST] = "log-lost",
        [SR_TROUBLE_LOG_BACK] = "log-back",
        [SR_TROUBLE_BODY] = "body",
        [SR_TROUBLE_REQUEST_LINE] = "request-line",
        [SR_TROUBLE_HEAD] = "head",
        [SR_TROUBLE_HEADER_TIMEOUT] = "header-timeout",
        [SR_TROUBLE_BODY_TIMEOUT] = "body-timeout",
        [SR_TROUBLE_MALFORMED] = "malformed",
    };
    return names[what];
}

const char *sr_limit_name(sr_limit which)
{
    static const char *const names[SR_LIMITS] = {
        [SR_LIMIT_QUEUE] = "queue",
        [SR_LIMIT_REQUEST] = "request",
        [SR_LIMIT_STREAM] = "stream",
        [SR_LIMIT_WRITE] = "write",
    };
    return names[which];
}
