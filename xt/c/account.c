/* account: each request and each connection is counted once, under what became of it */
#include "driver.h"
#include "tap.h"

static site s;

static sr_counters base; /* the last counts that were looked at */
static uint64_t bytes;   /* that came between the last two looks */

static char *put_count(char *to, const char *name, const _Atomic uint64_t *now,
                       const _Atomic uint64_t *before)
{
    uint64_t n = *now - *before;
    return n ? to + sprintf(to, " %s %llu", name, (unsigned long long)n) : to;
}

/* " accepted 1 requests 1 2xx 1": what has changed */
static const char *changes(const sr_counters *now)
{
    static char out[1000];
    char *to = out;
    *to = '\0';
    to = put_count(to, "accepted", &now->accepted, &base.accepted);
    to = put_count(to, "requests", &now->requests, &base.requests);
    for (int i = 0; i < 5; i++) {
        char name[] = {(char)('1' + i), 'x', 'x', '\0'};
        to = put_count(to, name, &now->responses[i], &base.responses[i]);
    }
    to = put_count(to, "aborted", &now->aborted, &base.aborted);
    for (int i = SR_REFUSED_NOT + 1; i < SR_REFUSALS; i++) {
        char name[50];
        snprintf(name, sizeof name, "refused:%s", sr_refusal_name((sr_refusal)i));
        to = put_count(to, name, &now->refused[i], &base.refused[i]);
    }
    _Atomic uint64_t timed[2] = {sr_histogram_count(&base.latency), sr_histogram_count(&now->latency)};
    to = put_count(to, "timed", &timed[1], &timed[0]);
    for (int i = 0; i < SR_CLOSED_REASONS; i++) {
        char name[50];
        snprintf(name, sizeof name, "closed:%s", sr_closed_name((sr_closed)i));
        to = put_count(to, name, &now->closed[i], &base.closed[i]);
    }
    return out;
}

/* The counts become so, or so. What is counted too much and later spoils the next look */
static void counts_either(const char *want, const char *or_want, const char *name)
{
    sr_counters now;
    bool right = false;
    for (int i = 0; i < 2000 && !right; i++) {
        if (i)
            sleep_ms(5);
        sr_scoreboard_totals(s.board, &now);
        right = strcmp(changes(&now), want) == 0 || strcmp(changes(&now), or_want) == 0;
    }
    if (!ok(right, "%s", name))
        printf("# got %s\n# want%s\n", changes(&now), want);
    ok(sr_histogram_count(&now.queue) == now.requests, "each request has waited once");
    bytes = now.bytes - base.bytes;
    base = now;
}

static void counts(const char *want, const char *name)
{
    counts_either(want, want, name);
}

static void begin(const sr_config *config)
{
    memset(&base, 0, sizeof base);
    site_open(&s, config, 1);
}

static void go_on(void)
{
    atomic_store(&s.common->go_on, 1);
}

static client sends(const char *text)
{
    client c = client_open(&s, 0);
    client_send(&c, text, strlen(text));
    return c;
}

static void read_all(client *c)
{
    while (client_read(c))
        ;
}

/* --- whole ones --- */

static void answered(void)
{
    sr_config config = config_default();
    begin(&config);
    client c = client_open(&s, 0);
    is_int(client_ask(&c, "/"), 200, "a request");
    counts(" accepted 1 requests 1 2xx 1 timed 1", "is counted");
    is_int((long long)bytes, (long long)c.len, "with its bytes");
    client_ask(&c, "/big/100000");
    counts(" requests 1 2xx 1 timed 1", "another on the same connection");
    is_int((long long)bytes, (long long)c.len, "with its bytes");
    client_close(&c);
    counts(" closed:client 1", "the client closes it");
    c = sends("HEAD / HTTP/1.0\r\n\r\n");
    read_all(&c);
    counts(" accepted 1 requests 1 2xx 1 timed 1 closed:after-response 1", "HEAD, and not kept");
    is_int((long long)bytes, (long long)c.len, "the head alone");
    client_close(&c);
    c = sends("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    is_int(client_response(&c), 100, "an interim response");
    counts(" accepted 1 1xx 1", "is counted as such");
    client_send(&c, "hi", 2);
    is_int(client_response(&c), 200, "the response");
    counts(" requests 1 2xx 1 timed 1", "too");
    go_on();
    client_get(&c, "/held/hint");
    ok(client_response(&c) == 103 && client_response(&c) == 200, "an interim response of the application");
    counts(" requests 1 1xx 1 2xx 1 timed 1", "both are counted");
    is_int((long long)bytes, (long long)c.len, "but the bytes of the other only");
    for (int i = 0; i < 3; i++)
        client_get(&c, "/");
    for (int i = 0; i < 3; i++)
        client_response(&c);
    counts(" requests 3 2xx 3 timed 3", "three at once");
    client_get(&c, "/io");
    counts(" requests 1 closed:application 1", "the application takes the socket");
    client_close(&c);
    c = client_open(&s, 0);
    client_ask(&c, "/");
    counts(" accepted 1 requests 1 2xx 1 timed 1", "one that is open");
    site_drain(&s);
    ok(client_ends(&c), "when the server stops");
    client_close(&c);
    ok(site_ended(&s), "is closed before it ends");
    counts(" closed:stop 1", "and counted");
    site_close(&s);
}

/* A response is over when the kernel has all of it, not when the application has done its part */
static void slow_reader(void)
{
    sr_config config = config_default();
    begin(&config);
    client c = client_open(&s, 65536), other = client_open(&s, 0);
    client_get(&c, "/big/9000000");
    ok(called(&s, 1), "a large response to a slow reader");
    int64_t since = sr_clock_monotonic();
    client_ask(&other, "/"); /* behind it: what the first one's call has sent is sent */
    counts(" accepted 2 requests 2 2xx 1 timed 1", "is not over while it waits");
    sleep_ms(100);
    int64_t least = sr_clock_monotonic() - since;
    uint64_t sum = base.latency.sum;
    is_int(client_response(&c), 200, "until it is read");
    counts(" 2xx 1 timed 1", "now it is");
    is_int((long long)bytes, (long long)c.len, "all bytes");
    ok((int64_t)(base.latency.sum - sum) >= least, "and all the time");
    client_close(&c);
    client_close(&other);
    counts(" closed:client 2", "both leave");
    site_close(&s);
}

/* --- those that end early --- */

static void aborted(void)
{
    sr_config config = config_default();
    struct linger reset = {.l_onoff = 1};
    config.write_ns = 300 * SR_MILLISECOND;
    begin(&config);
    client c = sends("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n");
    read_all(&c);
    counts(" accepted 1 requests 1 2xx 1 aborted 1 closed:error 1", "a response that breaks off");
    is_int((long long)bytes, (long long)c.len, "the bytes that were sent");
    client_close(&c);
    c = sends("GET /cut HTTP/1.0\r\n\r\n");
    read_all(&c);
    counts(" accepted 1 requests 1 2xx 1 aborted 1 closed:error 1", "and for 1.0");
    client_close(&c);
    c = client_open(&s, 4096);
    client_get(&c, "/big/9000000");
    counts(" accepted 1 requests 1 2xx 1 aborted 1 closed:write-timeout 1", "a client that does not read");
    client_close(&c);
    c = client_open(&s, 4096);
    client_get(&c, "/stream/9000000");
    counts(" accepted 1 requests 1 2xx 1 aborted 1 closed:write-timeout 1", "nor a stream");
    client_close(&c);
    c = client_open(&s, 0);
    client_get(&c, "/held");
    counts(" accepted 1 requests 1", "a request with the application");
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    client_close(&c);
    go_on();
    /*
     * the edge looks once, 10 ms after the request; a loss after that is seen when the answer cannot be sent
     */
    counts_either(" aborted 1 closed:client 1", " 2xx 1 aborted 1 closed:client 1", "whose client goes");
    is_int((long long)bytes, 0, "no byte of it was sent");
    site_close(&s);
}

static void overdue(void)
{
    sr_config config = config_default();
    config.request_ns = 300 * SR_MILLISECOND;
    begin(&config);
    client c = client_open(&s, 0);
    client_get(&c, "/held");
    is_int(client_response(&c), 504, "a request that takes too long");
    counts(" accepted 1 requests 1 5xx 1 refused:request-timeout 1 timed 1",
           "is over with its 504, while the call goes on");
    is_int((long long)bytes, (long long)c.len, "with its bytes");
    client_close(&c);
    counts(" closed:refused 1", "and its connection, too");
    site_close(&s);
}

/* --- refusals --- */

typedef struct refusal {
    const char *name, *request, *want;
} refusal;

static void each(const sr_config *config, const refusal *list, size_t n)
{
    begin(config);
    for (const refusal *r = list; r < list + n; r++) {
        client c = sends(r->request);
        read_all(&c);
        counts(r->want, r->name);
        is_int((long long)bytes, (long long)c.len, "its bytes");
        client_close(&c);
    }
    site_close(&s);
}

static void refused(void)
{
    sr_config config = config_default();
    static const refusal list[] = {
        {"no request at all", "BAD\r\n\r\n", " accepted 1 4xx 1 refused:malformed 1 closed:refused 1"},
        {"a body that is too large", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n",
         " accepted 1 4xx 1 refused:max-body 1 closed:refused 1"},
        {"an unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
         " accepted 1 5xx 1 refused:not-implemented 1 closed:refused 1"},
        {"a second one, refused", "GET / HTTP/1.1\r\nHost: a\r\n\r\nBAD\r\n\r\n",
         " accepted 1 requests 1 2xx 1 4xx 1 refused:malformed 1 timed 1 closed:refused 1"},
    };
    config.linger_ns = 100 * SR_MILLISECOND;
    config.max_body = 100;
    each(&config, list, sizeof list / sizeof *list);
}

/*
 * The header of the PROXY protocol: none, a wrong one, one that does not come, and a right one; then of a
 * stranger
 */
static void prefaced(void)
{
    sr_config config = config_default();
    sr_bytes wrong;
    static const refusal list[] = {
        {"no PROXY header", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", " accepted 1 closed:proxy-protocol 1"},
        {"a wrong one", "PROXY TCP4 1 2 3 4\r\n", " accepted 1 closed:proxy-protocol 1"},
        {"a part of one", "PROXY TC", " accepted 1 closed:header-timeout 1"},
        {"a right one, and no more", "PROXY UNKNOWN\r\n", " accepted 1 closed:header-timeout 1"},
        {"a right one, then no request", "PROXY UNKNOWN\r\n@",
         " accepted 1 4xx 1 refused:malformed 1 closed:refused 1"},
    };
    static const refusal strangers[] = {{"of a stranger", "", " accepted 1 closed:proxy-protocol 1"}};
    config.header_ns = SR_SECOND;
    config.linger_ns = 100 * SR_MILLISECOND;
    config.proxy_protocol = true;
    each(&config, list, sizeof list / sizeof *list);
    sr_cidrs_parse(&config.trusted, SR_BYTES("10.0.0.0/8,::/0,unix"), &wrong);
    each(&config, strangers, sizeof strangers / sizeof *strangers);
}

static void late(void)
{
    sr_config config = config_default();
    static const refusal list[] = {
        {"408 of a head", "GET / HT", " accepted 1 4xx 1 refused:header-timeout 1 closed:header-timeout 1"},
        {"408 of a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
         " accepted 1 4xx 1 refused:body-timeout 1 closed:body-timeout 1"},
        {"nothing at all", "", " accepted 1 closed:header-timeout 1"},
        {"an empty line", "\r\n", " accepted 1 closed:header-timeout 1"},
        {"a part of one", "\r", " accepted 1 closed:header-timeout 1"},
        {"an empty line behind a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na\r\n",
         " accepted 1 requests 1 2xx 1 timed 1 closed:keepalive-timeout 1"},
        {"idle for too long", "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
         " accepted 1 requests 1 2xx 1 timed 1 closed:keepalive-timeout 1"},
    };
    config.header_ns = config.body_ns = config.idle_ns = SR_SECOND;
    config.linger_ns = 100 * SR_MILLISECOND;
    each(&config, list, sizeof list / sizeof *list);
}

/* Complete requests that nobody has begun to serve */
static void waited(void)
{
    sr_config config = config_default();
    config.queue_ns = 2 * SR_SECOND;
    begin(&config);
    client busy = client_open(&s, 0), c, gone;
    client_get(&busy, "/held");
    ok(called(&s, 1), "the worker is busy");
    counts(" accepted 1 requests 1", "with one");
    c = sends("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    is_int(client_response(&c), 503, "another waits for too long");
    counts(" accepted 1 5xx 1 refused:queue-timeout 1 timed 1", "refused, with the time that it has waited");
    client_close(&c);
    counts(" closed:refused 1", "and closed");
    gone = sends("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    counts(" accepted 1", "a third one");
    for (int i = 0; i < 2000 && atomic_load(&edge_row(&s)->waiting) != 1; i++)
        sleep_ms(5);
    client_close(&gone);
    sleep_ms(50); /* its client is looked at only when it has waited */
    go_on();
    counts(" 2xx 1 5xx 1 refused:half-closed 1 timed 2 closed:refused 1",
           "its client has gone before its turn: refused, never a request");
    client_close(&busy);
    counts(" closed:client 1", "all are gone");
    site_close(&s);
}

/* --- connections --- */

static void room(void)
{
    sr_config config = config_default();
    config.max_connections = 1;
    begin(&config);
    client first = client_open(&s, 0), second;
    client_ask(&first, "/");
    second = client_open(&s, 0);
    is_int(client_ask(&second, "/"), 200, "one too many");
    counts(" accepted 2 requests 2 2xx 2 timed 2 closed:room 1", "the oldest idle one gives way");
    client_close(&first);
    client_get(&second, "/held");
    ok(called(&s, 3), "one that is not idle");
    counts(" requests 1", "does not");
    first = client_open(&s, 0);
    is_int(client_response(&first), 503, "so the new one is refused");
    counts(" accepted 1 5xx 1 refused:max-connections 1", "before it has said anything");
    client_close(&first);
    counts(" closed:refused 1", "and closed");
    go_on();
    is_int(client_response(&second), 200, "whose answer comes");
    client_close(&second);
    counts(" 2xx 1 timed 1 closed:client 1", "all are gone");
    site_close(&s);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    answered();
    slow_reader();
    aborted();
    overdue();
    refused();
    late();
    prefaced();
    waited();
    room();
    return done_testing();
}
