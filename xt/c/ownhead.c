/* ownhead: heads that applications write to psgix.io by themselves. */
#include "../../src/http1/ownhead.h"
#include "guard.h"
#include "tap.h"

static sr_buffer fields;
static sr_ownhead a;

static sr_ownhead_result read_all(const char *text, size_t len)
{
    return sr_ownhead_read(&a, sr_bytes_of(guarded(text, len), len), &fields);
}

/* Each part of it is not complete. */
static void good(const char *text, size_t behind, int status, const char *want)
{
    size_t len = strlen(text);
    for (size_t n = 0; n < len - behind; n++)
        if (read_all(text, n) != SR_OWNHEAD_MORE)
            ok(false, "%zu bytes of %s", n, text);
    ok(read_all(text, len) == SR_OWNHEAD_DONE, "complete: %.20s", text);
    is_int(a.status, status, "status");
    is_int((long)a.len, (long)(len - behind), "length");
    bool same = sr_buffer_len(&fields) == strlen(want) &&
                (!*want || memcmp(sr_buffer_at(&fields), want, strlen(want)) == 0);
    ok(same, "fields");
}

static void bad(const char *text)
{
    ok(read_all(text, strlen(text)) == SR_OWNHEAD_BAD, "bad: %.40s", text);
}

int main(void)
{
    good("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n"
         "Sec-WebSocket-Protocol:  chat \r\n\r\n\x81\x02hi",
         4, 101, "Upgrade: websocket\r\nSec-WebSocket-Protocol: chat\r\n");
    good("HTTP/1.1 101\nA: 1\n\n", 0, 101, "A: 1\r\n");
    good("HTTP/1.0 404 Not Found\r\nA:\r\n\r\nbody", 4, 404, "A: \r\n");
    good("HTTP/1.1 200 \r\n\r\n", 0, 200, "");
    bad("HTTP/2.0 101 x\r\n");
    bad("HTTP/1.1 100 Continue\r\n\r\n");
    bad("HTTP/1.1 1000 x\r\n");
    bad("HTTP/1.1 10x x\r\n");
    bad("\r\nHTTP/1.1 101 x\r\n\r\n");
    bad("HTTP/1.1 101 x\r\nA B: 1\r\n");
    bad("HTTP/1.1 101 x\r\n A: 1\r\n");
    bad("HTTP/1.1 101 x\r\nA\r\n");
    bad("HTTP/1.1 101 x\r\nA: 1\rB: 2\r\n");
    bad("HTTP/1.1 101 x\r\nTransfer-Encoding: chunked\r\n\r\n");
    static char large[SR_OWNHEAD_MAX + 40];
    memset(large, 'x', sizeof large);
    ok(read_all(large, SR_OWNHEAD_MAX - 1) == SR_OWNHEAD_MORE, "a long line that is not complete");
    ok(read_all(large, SR_OWNHEAD_MAX) == SR_OWNHEAD_BAD, "one too long");
    memcpy(large, "HTTP/1.1 101 x\r\nA: ", 19);
    memcpy(large + SR_OWNHEAD_MAX, "\r\n\r\n", 4);
    ok(read_all(large, SR_OWNHEAD_MAX + 4) == SR_OWNHEAD_BAD, "a head too long, though it is complete");
    sr_buffer_free(&fields);
    return done_testing();
}
