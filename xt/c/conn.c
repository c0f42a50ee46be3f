/* conn: requests, bodies, large responses, time limits, draining; an edge with one worker */
#include "driver.h"
#include "tap.h"

static bool ask_is(client *c, const char *path, const char *body)
{
    return client_ask(c, path) == 200 && c->body_len == strlen(body) &&
           memcmp(c->body, body, c->body_len) == 0;
}

static bool post_is(client *c, size_t size, size_t piece, bool chunked)
{
    char *body = malloc(size + 1), head[200], *wire = malloc(size + 300);
    fill_pattern(body, size);
    int n = snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nHost: a\r\n");
    if (chunked)
        n += sprintf(head + n, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", size);
    else
        n += sprintf(head + n, "Content-Length: %zu\r\n\r\n", size);
    memcpy(wire, head, (size_t)n);
    memcpy(wire + n, body, size);
    size_t len = (size_t)n + size;
    if (chunked) {
        memcpy(wire + len, "\r\n0\r\n\r\n", 7);
        len += 7;
    }
    bool sent = true;
    for (size_t at = 0; at < len && sent; at += piece) {
        sent = client_send(c, wire + at, len - at < piece ? len - at : piece);
        if (piece < len)
            sleep_ms(1);
    }
    bool good = sent && client_response(c) == 200 && c->body_len == size && memcmp(c->body, body, size) == 0;
    free(body);
    free(wire);
    return good;
}

static void requests(void)
{
    site s = {0};
    sr_config config = config_default();
    site_open(&s, &config, 1);
    client c = client_open(&s, 0);
    bool all = true;
    for (int i = 0; i < 100; i++)
        all = all && ask_is(&c, "/", "0");
    ok(all, "a hundred requests on one connection");
    for (int i = 0; i < 100; i++)
        client_get(&c, "/");
    for (int i = 0; i < 100; i++)
        all = all && client_response(&c) == 200;
    ok(all, "a hundred pipelined ones");
    client_send(&c, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHo", 47);
    sleep_ms(30);
    client_send(&c, "st: a\r\n\r\n", 9);
    ok(client_read(&c), "a HEAD and a split GET");
    client_close(&c);

    c = client_open(&s, 0);
    ok(post_is(&c, 1, 1000, false) && post_is(&c, 30000, 100000, false) && post_is(&c, 65536, 9999, false),
       "bodies in memory");
    ok(post_is(&c, 65537, 1000000, false) && post_is(&c, 1000000, 1000000, false) &&
           post_is(&c, 300000, 30000, false),
       "bodies in files");
    ok(post_is(&c, 1, 10, true) && post_is(&c, 65536, 1000000, true) && post_is(&c, 300000, 30000, true),
       "in chunks");
    static const char two[] =
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    client_send(&c, two, sizeof two - 1);
    ok(client_response(&c) == 200 && memcmp(c.body, "abc", 3) == 0 && client_response(&c) == 200 &&
           *c.body == '0',
       "a body and a request behind it");
    ok(client_ask(&c, "/big/3000000") == 200 && c.body_len == 3000000 && has_pattern(c.body, c.body_len),
       "3 MB at once");
    ok(client_ask(&c, "/stream/3000000") == 200 && c.body_len == 3000000 && has_pattern(c.body, c.body_len),
       "streamed");
    ok(client_ask(&c, "/file/3000000") == 200 && c.body_len == 3000000 && has_pattern(c.body, c.body_len),
       "from a file");
    ok(ask_is(&c, "/", "0"), "the connection is kept");
    ok(client_ask(&c, "/cut") == -1 && c.ended && !c.reset,
       "a response that is cut ends with the connection");
    client_close(&c);
    c = client_open(&s, 0);
    client_send(&c, "GET /cut HTTP/1.0\r\n\r\n", 21);
    ok(client_response(&c) <= 0 && c.reset, "by a reset for HTTP/1.0");
    client_close(&c);
    c = client_open(&s, 0);
    client_send(&c, "GET / HTTP/1.1\r\n\r\n", 18);
    ok(client_response(&c) == 400 && c.closes && client_ends(&c) && !c.reset, "a bad request: 400, closed");
    client_close(&c);
    site_close(&s);
}

/* Readers that take nothing cost the worker nothing. */
static void slow_readers(const char *path)
{
    site s = {0};
    sr_config config = config_default();
    site_open(&s, &config, 1);
    client slow[10], c = client_open(&s, 0);
    for (int i = 0; i < 10; i++) {
        slow[i] = client_open(&s, 65536);
        client_get(&slow[i], path);
    }
    bool all = true;
    int64_t start = sr_clock_monotonic();
    for (int i = 0; i < 50; i++)
        all = all && ask_is(&c, "/", "0");
    ok(all && ms_since(start) < 20000, "%s to ten who do not read: others are served (%.0f ms for 50)", path,
       ms_since(start));
    for (int i = 0; i < 10; i++)
        all = all && client_response(&slow[i]) == 200 && slow[i].body_len == 8000000 &&
              has_pattern(slow[i].body, slow[i].body_len);
    ok(all, "when they read, each gets all of it");
    for (int i = 0; i < 10; i++) {
        all = all && ask_is(&slow[i], "/", "0");
        client_close(&slow[i]);
    }
    ok(all, "and their connections go on");
    client_close(&c);
    site_close(&s);
    ok(all, "stopped");
}

/* A file when the memory for responses is used up: its bytes must come nevertheless. */
static void file_without_memory(void)
{
    site s = {0};
    sr_config config = config_default();
    s.pending = SR_OUTPUT_TOTAL + 1; /* as 257 slow readers of 256 KiB each would make it */
    site_open(&s, &config, 1);
    client c = client_open(&s, 0);
    struct timeval patience = {.tv_sec = 2};
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int status = client_ask(&c, "/file/100000");
    if (!ok(status == 200 && has_pattern(c.body, c.body_len), "a file while SR_OUTPUT_TOTAL is used up"))
        printf("# status %d, %zu bytes with the head, connection %s\n", status, c.len,
               c.ended ? "ended" : "kept");
    client_close(&c);
    site_close(&s);
}

static void time_limits(void)
{
    site s = {0};
    sr_config config = config_default();
    config.header_ns = config.idle_ns = config.body_ns = config.write_ns = 200 * SR_MILLISECOND;
    config.body_rate = 10000;
    site_open(&s, &config, 1);
    client silent = client_open(&s, 0), half = client_open(&s, 0), idle = client_open(&s, 0),
           body = client_open(&s, 0), reader = client_open(&s, 4096);
    int64_t start = sr_clock_monotonic();
    client_send(&half, "GET / HT", 8);
    client_ask(&idle, "/");
    client_send(&body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nabc", 50);
    client_get(&reader, "/big/8000000");
    ok(client_response(&half) == 408 && half.closes, "half a head: 408");
    ok(client_response(&body) == 408 && body.closes, "half a body: 408");
    ok(client_ends(&silent) && !silent.reset && silent.len == 0, "nothing: closed without a word");
    ok(client_ends(&idle) && !idle.reset, "idle: closed");
    ok(ms_since(start) > 150 && ms_since(start) < 30000, "all after %.0f ms", ms_since(start));
    for (int i = 0; i < PATIENCE_S * 200 && atomic_load(&edge_row(&s)->connections); i++)
        sleep_ms(5);
    is_int(client_response(&reader), -1, "who does not read gets no more");
    client *all[] = {&silent, &half, &idle, &body, &reader};
    for (int i = 0; i < 5; i++)
        client_close(all[i]);
    sleep_ms(50);
    is_int((long long)atomic_load(&edge_row(&s)->connections), 0, "none is left");
    site_close(&s);
}

static void draining(void)
{
    site s = {0};
    sr_config config = config_default();
    site_open(&s, &config, 1);
    client idle = client_open(&s, 0), busy = client_open(&s, 0), waits = client_open(&s, 0),
           late = client_open(&s, 0);
    client_ask(&idle, "/");
    client_ask(&late, "/");
    client_get(&busy, "/sleep/300");
    sleep_ms(50);
    client_get(&waits, "/");
    sleep_ms(50);
    int64_t start = sr_clock_monotonic();
    site_drain(&s);
    sleep_ms(50);
    client_get(&late, "/");
    ok(client_response(&busy) == 200 && busy.closes && client_ends(&busy),
       "the request that runs is answered, closed");
    ok(client_response(&waits) == 200 && waits.closes && client_ends(&waits), "so is the one that waits");
    ok(client_response(&late) == 200 && late.closes, "and one that comes a moment later");
    ok(client_ends(&idle) && !idle.reset, "the idle connection is closed");
    ok(site_ended(&s), "then it ends (%.0f ms)", ms_since(start));
    client_close(&idle);
    client_close(&busy);
    client_close(&waits);
    client_close(&late);
    site_close(&s);
}

static void crowd(void)
{
    site s = {0};
    sr_config config = config_default();
    config.max_connections = 10;
    site_open(&s, &config, 1);
    client c[30];
    for (int i = 0; i < 30; i++) {
        c[i] = client_open(&s, 0);
        if (client_ask(&c[i], "/") != 200)
            printf("# number %d is not served\n", i);
    }
    int alive = 0;
    for (int i = 29; i >= 0; i--) {
        char byte;
        alive += recv(c[i].fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && i >= 20;
    }
    is_int(alive, 10, "max_connections: the ten newest are kept");
    for (int i = 0; i < 30; i++)
        client_close(&c[i]);
    sleep_ms(50);
    for (int i = 0; i < 10; i++) {
        c[i] = client_open(&s, 0);
        client_send(&c[i], "G", 1);
    }
    sleep_ms(50);
    client one = client_open(&s, 0);
    ok(client_ask(&one, "/") == 503 && strstr(one.in, "Retry-After") && client_ends(&one), "none idle: 503");
    for (int i = 0; i < 10; i++)
        client_close(&c[i]);
    client_close(&one);
    site_close(&s);
}

/* Who has gone away while the response is made, or while it goes out */
static void gone(void)
{
    site s = {0};
    sr_config config = config_default();
    site_open(&s, &config, 1);
    static const char *const paths[] = {"/sleep/5", "/big/3000000", "/stream/3000000", "/file/3000000",
                                        "/echo"};
    struct linger reset = {.l_onoff = 1};
    for (int i = 0; i < 100; i++) {
        client c = client_open(&s, 4096);
        client_get(&c, paths[i % 5]);
        if (i % 3)
            sleep_ms(i % 7);
        if (i % 2)
            setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        client_close(&c);
    }
    client c = client_open(&s, 0);
    ok(ask_is(&c, "/", "0"), "a hundred who left early: the next is served");
    client_close(&c);
    sleep_ms(100);
    is_int((long long)atomic_load(&edge_row(&s)->connections), 0, "none of their connections is left");
    site_close(&s);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    requests();
    slow_readers("/big/8000000");
    slow_readers("/file/8000000");
    file_without_memory();
    time_limits();
    draining();
    crowd();
    gone();
    return done_testing();
}
