#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
/*
 * nonce: sends requests of random shapes, each with a nonce of its own, and checks that each response carries
 * what its request has sent. Sirius::Soak::Nonces runs it, and has the application for it.
 *
 *   nonce data FILE nonce PORT DATA name=number ...     tls=1 connections=32 requests=1000 seed=1 cancel=10
 *   (per mille) slow=1 dies=1 reuse=1
 *
 * The nonce of 16 hexadecimal digits is in the path. It determines each byte of the request body and of the
 * response: those of DATA, which are random, from an offset on that the nonce says, each in exclusive or with
 * a digit of the nonce. A byte that is another request's, one too few or too many, or a hole is therefore
 * seen, in the moment in which it comes.
 *
 * A response is whole and right; or refused, by a status without a nonce; or it is cut, which must be
 * recognizable; or the client itself has cancelled it. All else is wrong: a line on STDOUT for each of the
 * first few. At the end a line of name=number. The exit status is 1 if anything was wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef NONCE_TLS
#include <openssl/ssl.h>
#endif

enum {
    NONCE = 16,
    OFFSETS = 65536,
    BODY_MAX = 300000,
    DATA_BYTES = OFFSETS + BODY_MAX,
    HEAD_MAX = 64 * 1024,
    READ_MAX = 256 * 1024,
    EVENTS = 256,
    PATIENCE_MS = 40000, /* of a client, without a byte */
    TOLD_MAX = 20,
};

typedef enum state { CLOSED, CONNECTING, SHAKING, ASKING } state;
typedef enum phase { HEAD, LENGTH, UNTIL_CLOSE, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER } phase;

typedef struct conn {
    int fd;
    state state;
    bool lazy;
    char nonce[NONCE + 1];
    char kind;
    bool is_head, ours, closes, heard;
    size_t offset, expected, got;
    uint64_t left; /* of the body, or of a chunk */
    phase phase;
    int status;
    char *head;
    size_t head_len;
    char *out;
    size_t out_len, out_at;
    uint32_t watched;
    int64_t active_at, again_at;
#ifdef NONCE_TLS
    SSL *ssl;
#endif
} conn;

static struct {
    long connections, requests, seed, cancel, slow, dies, reuse, tls;
} option = {.connections = 32, .requests = 1000, .seed = 1};

static struct {
    long whole, cut, unanswered, refused, cancelled, wrong_party, wrong, hung, unconnected;
} count;

static const char *data;
static conn *conns;
static int ep, port;
static long begun;
static uint64_t dice;
static int64_t now;
static volatile sig_atomic_t stopping;
static char input[READ_MAX];
static long refused_by[600];

static uint64_t roll(void)
{
    dice ^= dice >> 12;
    dice ^= dice << 25;
    dice ^= dice >> 27;
    return dice * UINT64_C(2685821657736338717);
}

static size_t below(size_t n)
{
    return (size_t)((roll() >> 16) % n);
}

static int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die(const char *what)
{
    fprintf(stderr, "nonce: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void derive(char *to, const char *nonce, size_t offset, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(data[offset + i] ^ nonce[i % NONCE]);
}

/* --- what is wrong --- */

__attribute__((format(printf, 3, 4))) static void wrong(const conn *c, long *counter, const char *format, ...)
{
    static int told;
    va_list args;
    if (counter)
        ++*counter;
    if (told++ >= TOLD_MAX)
        return;
    printf("WRONG %s kind %c, %zu bytes, status %d, %zu have come: ", c->nonce, c->kind, c->expected,
           c->status, c->got);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

/* --- requests --- */

static size_t size(void)
{
    size_t of = below(1000);
    if (of < 700)
        return below(500);
    if (of < 930)
        return below(9000);
    if (of < 995)
        return below(40000);
    return below(BODY_MAX);
}

/*
 * The kinds, as the application of Sirius::Soak::Nonces knows them. Those that end a worker or take long are
 * rare, as the others could not show much otherwise.
 */
static char kind(void)
{
    static const char usual[] = "aaaaaaaaaalllmmwgsse";
    size_t of = below(1000);
    if (of < 4)
        return 'f';
    if (of < 8)
        return option.reuse ? 'F' : 'f';
    if (option.dies && of < 12)
        return "dxck"[of - 8];
    if (option.slow && of < 18)
        return of < 15 ? 'p' : 'o';
    return usual[below(sizeof usual - 1)];
}

static void ask(conn *c)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t n = roll() ^ (uint64_t)begun << 20;
    size_t body = below(4) ? 0 : size();
    for (int i = 0; i < NONCE; i++, n >>= 4)
        c->nonce[i] = hex[n & 15];
    c->nonce[NONCE] = 0;
    c->offset = 0;
    for (int i = 0; i < 4; i++)
        c->offset = c->offset * 16 + (size_t)(strchr(hex, c->nonce[i]) - hex);
    c->kind = kind();
    c->expected = size();
    if (c->kind == 'x' || c->kind == 'c' || c->kind == 'k' || c->kind == 'p' || c->kind == 'o')
        c->expected += 100;
    c->is_head = !body && !below(20);
    c->ours = c->closes = c->heard = false;
    c->got = c->head_len = c->out_at = 0;
    c->status = 0;
    c->phase = HEAD;
    c->active_at = now;
    char *to = c->out;
    to += sprintf(to, "%s /%s/%c/%zu HTTP/1.1\r\nHost: a\r\nX-Nonce: %s\r\n",
                  c->is_head ? "HEAD"
                  : body     ? "POST"
                             : "GET",
                  c->nonce, c->kind, c->expected, c->nonce);
    if (!below(30)) { /* a head that does not fit a slot of the queue */
        size_t len = 5000 + below(5000);
        memcpy(to, "X-Large: ", 9);
        memset(to + 9, 'y', len);
        memcpy(to + 9 + len, "\r\n", 2);
        to += len + 11;
    }
    if (!body) {
        to += sprintf(to, "\r\n");
    } else if (below(2)) {
        to += sprintf(to, "Content-Length: %zu\r\n\r\n", body);
        derive(to, c->nonce, c->offset, body);
        to += body;
    } else {
        static char whole[BODY_MAX];
        size_t most = body < 2000 ? 100 : 1 + below(20000);
        derive(whole, c->nonce, c->offset, body);
        to += sprintf(to, "Transfer-Encoding: chunked\r\n\r\n");
        for (size_t at = 0, len; at < body; at += len) {
            len = 1 + below(most < 200 && body > 2000 ? 200 : most);
            len = len < body - at ? len : body - at;
            to += sprintf(to, "%zx\r\n", len);
            memcpy(to, whole + at, len);
            memcpy(to + len, "\r\n", 2);
            to += len + 2;
        }
        to += sprintf(to, "0\r\n\r\n");
    }
    c->out_len = (size_t)(to - c->out);
    begun++;
}

/* --- connections --- */

static void watch(conn *c, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};
    if (c->watched == events)
        return;
    epoll_ctl(ep, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &ev);
    c->watched = events;
}

static void hang_up(conn *c)
{
#ifdef NONCE_TLS
    SSL_free(c->ssl);
    c->ssl = NULL;
#endif
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->watched = 0;
    c->state = CLOSED;
    c->again_at = 0;
}

#ifdef NONCE_TLS
static SSL_CTX *ctx;
#endif

static void dial(conn *c)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int few = 4096, one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        die("socket");
    if (c->lazy)
        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->active_at = now;
    if (connect(c->fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS) {
        count.unconnected++;
        hang_up(c);
        c->again_at = now + 10;
        return;
    }
    c->state = CONNECTING;
    watch(c, EPOLLOUT);
}

/* >0: bytes; 0: the end; -1: wait; -2: reset */
static ssize_t take(conn *c, char *to, size_t len)
{
#ifdef NONCE_TLS
    if (c->ssl) {
        size_t n = 0;
        if (SSL_read_ex(c->ssl, to, len, &n) == 1)
            return (ssize_t)n;
        int err = SSL_get_error(c->ssl, 0);
        return err == SSL_ERROR_WANT_READ || err == SSL_ERROR_WANT_WRITE ? -1
               : err == SSL_ERROR_ZERO_RETURN                            ? 0
                                                                         : -2;
    }
#endif
    ssize_t n = recv(c->fd, to, len, 0);
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? -1 : -2;
}

static ssize_t give(conn *c, const char *from, size_t len)
{
#ifdef NONCE_TLS
    if (c->ssl) {
        size_t n = 0;
        if (SSL_write_ex(c->ssl, from, len, &n) == 1)
            return (ssize_t)n;
        int err = SSL_get_error(c->ssl, 0);
        return err == SSL_ERROR_WANT_READ || err == SSL_ERROR_WANT_WRITE ? -1 : -2;
    }
#endif
    ssize_t n = send(c->fd, from, len, MSG_NOSIGNAL);
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? -1 : -2;
}

static bool over(void)
{
    return stopping || begun >= option.requests;
}

static void next(conn *c);

/* The connection has ended within a response, or before one. */
static void ended(conn *c)
{
    if (c->phase == UNTIL_CLOSE && c->ours && c->got == c->expected)
        count.whole++;
    else if (c->phase == UNTIL_CLOSE && c->ours)
        wrong(c, &count.wrong, "without a length, it ends like a whole one");
    else if (c->heard)
        count.cut++;
    else
        count.unanswered++;
    hang_up(c);
}

/* --- responses --- */

static bool is_field(const char *line, size_t len, const char *name)
{
    size_t n = strlen(name);
    return len > n && line[n] == ':' && strncasecmp(line, name, n) == 0;
}

/* False: the connection was hung up. */
static bool complete(conn *c)
{
    if (c->ours && !c->is_head && c->status != 204 && c->got != c->expected) {
        wrong(c, &count.wrong, "it is complete without being whole");
    } else if (c->ours) {
        count.whole++;
    } else {
        count.refused++;
        refused_by[c->status < 600 ? c->status : 0]++;
    }
    if (c->closes) {
        hang_up(c);
        return false;
    }
    next(c);
    return c->state == ASKING;
}

typedef enum { HEAD_BAD, HEAD_INTERIM, HEAD_OVER, HEAD_BODY } headed;

static headed head(conn *c)
{
    bool chunked = false, length = false, alien = false;
    c->head[c->head_len] = 0;
    if (sscanf(c->head, "HTTP/1.1 %d", &c->status) != 1) {
        wrong(c, &count.wrong, "no status line: %.60s", c->head);
        return HEAD_BAD;
    }
    if (c->status < 200)
        return HEAD_INTERIM;
    c->ours = c->closes = false;
    for (char *at = strstr(c->head, "\r\n") + 2, *end; (end = strstr(at, "\r\n")) && end > at; at = end + 2) {
        size_t len = (size_t)(end - at);
        const char *value = memchr(at, ':', len);
        value = value ? value + 1 + (value[1] == ' ') : end;
        if (is_field(at, len, "X-Nonce")) {
            c->ours = true;
            alien = (size_t)(end - value) != NONCE || memcmp(value, c->nonce, NONCE);
            if (alien)
                wrong(c, &count.wrong_party, "the nonce in its head is %.*s", (int)(end - value), value);
        } else if (is_field(at, len, "Content-Length")) {
            length = true;
            c->left = strtoull(value, NULL, 10);
        } else if (is_field(at, len, "Transfer-Encoding")) {
            chunked = true;
        } else if (is_field(at, len, "Connection")) {
            c->closes = strncasecmp(value, "close", 5) == 0;
        }
    }
    if (alien)
        return HEAD_BAD;
    if (c->ours ? c->status != 200 : c->status < 400) {
        wrong(c, &count.wrong,
              c->ours ? "the application did not get what was sent" : "a status without a nonce");
        return HEAD_BAD;
    }
    if (c->ours && length && c->left != c->expected) {
        wrong(c, &count.wrong, "its Content-Length is %llu", (unsigned long long)c->left);
        return HEAD_BAD;
    }
    if (c->is_head)
        return HEAD_OVER;
    c->phase = chunked ? CHUNK_SIZE : length ? LENGTH : UNTIL_CLOSE;
    if (c->phase == UNTIL_CLOSE)
        c->closes = true;
    c->head_len = 0;
    return c->phase == LENGTH && !c->left ? HEAD_OVER : HEAD_BODY;
}

static bool body(conn *c, const char *at, size_t len)
{
    if (!c->ours)
        return true;
    if (len > c->expected - c->got) {
        wrong(c, &count.wrong, "it is too long");
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if ((char)(data[c->offset + c->got + i] ^ c->nonce[(c->got + i) % NONCE]) == at[i])
            continue;
        wrong(c, &count.wrong, "byte %zu is another one", c->got + i);
        return false;
    }
    c->got += len;
    return true;
}

/* A line of the chunked coding, in c->head. NULL: it is not complete. */
static const char *line(conn *c, const char **at, size_t *len)
{
    while (*len) {
        char byte = **at;
        ++*at;
        --*len;
        if (byte == '\n') {
            c->head[c->head_len] = 0;
            c->head_len = 0;
            return c->head;
        }
        if (c->head_len + 1 < HEAD_MAX)
            c->head[c->head_len++] = byte;
    }
    return NULL;
}

/* False: the connection was hung up. */
static bool feed(conn *c, const char *at, size_t len)
{
    while (len) {
        size_t some;
        const char *text, *end;
        if (!c->out_len) {
            wrong(c, &count.wrong, "bytes without a request: %.*s", (int)(len < 60 ? len : 60), at);
            return false;
        }
        c->heard = true;
        switch (c->phase) {
        case HEAD:
            some = len < HEAD_MAX - 1 - c->head_len ? len : HEAD_MAX - 1 - c->head_len;
            memcpy(c->head + c->head_len, at, some);
            size_t before = c->head_len, from = before > 3 ? before - 3 : 0;
            c->head_len += some;
            end = memmem(c->head + from, c->head_len - from, "\r\n\r\n", 4);
            if (!end && c->head_len == HEAD_MAX - 1) {
                wrong(c, &count.wrong, "an endless head");
                return false;
            }
            if (!end)
                return true;
            some = (size_t)(end + 4 - c->head) - before;
            c->head_len = before + some;
            at += some;
            len -= some;
            switch (head(c)) {
            case HEAD_BAD:
                return false;
            case HEAD_INTERIM:
                c->head_len = 0;
                break;
            case HEAD_BODY:
                break;
            case HEAD_OVER:
                if (len && !c->closes) {
                    wrong(c, &count.wrong, "bytes behind it: %.*s", (int)(len < 60 ? len : 60), at);
                    return false;
                }
                return complete(c);
            }
            break;
        case LENGTH:
        case CHUNK_DATA:
        case UNTIL_CLOSE:
            some = c->phase != UNTIL_CLOSE && c->left < len ? (size_t)c->left : len;
            if (!body(c, at, some))
                return false;
            c->left -= some;
            at += some;
            len -= some;
            if (c->phase == LENGTH && !c->left) {
                if (len) {
                    wrong(c, &count.wrong, "bytes behind it: %.*s", (int)(len < 60 ? len : 60), at);
                    return false;
                }
                return complete(c);
            }
            if (c->phase == CHUNK_DATA && !c->left)
                c->phase = CHUNK_END;
            break;
        case CHUNK_END:
            if ((text = line(c, &at, &len)))
                c->phase = CHUNK_SIZE;
            if (text && strcmp(text, "\r") != 0) {
                wrong(c, &count.wrong, "a chunk does not end");
                return false;
            }
            break;
        case CHUNK_SIZE:
            if (!(text = line(c, &at, &len)))
                break;
            char *rest;
            c->left = strtoull(text, &rest, 16);
            if (rest == text || strcmp(rest, "\r") != 0) {
                wrong(c, &count.wrong, "no size of a chunk: %.60s", text);
                return false;
            }
            c->phase = c->left ? CHUNK_DATA : TRAILER;
            break;
        case TRAILER:
            if (!(text = line(c, &at, &len)) || strcmp(text, "\r") != 0)
                break;
            if (len) {
                wrong(c, &count.wrong, "bytes behind it: %.*s", (int)(len < 60 ? len : 60), at);
                return false;
            }
            return complete(c);
        }
    }
    return true;
}

/* --- events --- */

static bool cancels(void)
{
    return option.cancel && below(2000) < (size_t)option.cancel;
}

static void write_some(conn *c)
{
    while (c->out_at < c->out_len) {
        ssize_t n = give(c, c->out + c->out_at, c->out_len - c->out_at);
        if (n == -1) {
            watch(c, EPOLLIN | EPOLLOUT);
            return;
        }
        if (n < 0) { /* it may have been answered before */
            c->out_at = c->out_len;
            break;
        }
        c->out_at += (size_t)n;
    }
    watch(c, EPOLLIN);
}

static void next(conn *c)
{
    c->out_len = 0;
    if (over()) {
        hang_up(c);
        return;
    }
    ask(c);
    write_some(c);
    if (c->state == ASKING && cancels()) {
        count.cancelled++;
        hang_up(c);
    }
}

static void read_some(conn *c)
{
    size_t room = c->lazy ? 1 + below(3000) : READ_MAX;
    if (c->lazy && below(4))
        return;
    for (int turns = 0; turns < 8 && c->state == ASKING; turns++) {
        ssize_t n = take(c, input, room);
        if (n == -1)
            return;
        if (n <= 0) {
            if (n == 0 && !c->out_len)
                hang_up(c);
            else if (n < 0 && c->phase == UNTIL_CLOSE) { /* a reset says that it is cut */
                count.cut++;
                hang_up(c);
            } else
                ended(c);
            return;
        }
        c->active_at = now;
        if (!feed(c, input, (size_t)n)) {
            if (c->state != CLOSED)
                hang_up(c);
            return;
        }
        if (cancels()) {
            count.cancelled++;
            hang_up(c);
            return;
        }
        if (c->lazy)
            return;
#ifdef NONCE_TLS
        if (c->ssl && SSL_pending(c->ssl))
            continue;
#endif
        if ((size_t)n < room)
            return;
    }
}

static void shake(conn *c)
{
#ifdef NONCE_TLS
    if (option.tls) {
        if (!c->ssl) {
            c->ssl = SSL_new(ctx);
            if (!c->ssl || !SSL_set_fd(c->ssl, c->fd))
                die("SSL_new");
            SSL_set_connect_state(c->ssl);
        }
        c->state = SHAKING;
        int r = SSL_do_handshake(c->ssl), err = r == 1 ? 0 : SSL_get_error(c->ssl, r);
        if (err == SSL_ERROR_WANT_READ || err == SSL_ERROR_WANT_WRITE) {
            watch(c, err == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT);
            return;
        }
        if (err) {
            count.unconnected++;
            hang_up(c);
            c->again_at = now + 10;
            return;
        }
    }
#endif
    c->state = ASKING;
    next(c);
}

static void event(conn *c, uint32_t events)
{
    int err = 0;
    socklen_t len = sizeof err;
    switch (c->state) {
    case CLOSED:
        return;
    case CONNECTING:
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
        if (err) {
            count.unconnected++;
            hang_up(c);
            c->again_at = now + 10;
            return;
        }
        shake(c);
        return;
    case SHAKING:
        shake(c);
        return;
    case ASKING:
        if (events & EPOLLOUT)
            write_some(c);
        if (c->state == ASKING && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            read_some(c);
        return;
    }
}

/* Opens what is closed, and gives up what stands still. True: some are open. */
static bool look(void)
{
    bool any = false;
    for (long i = 0; i < option.connections; i++) {
        conn *c = &conns[i];
        if (c->state == CLOSED && !over() && now >= c->again_at)
            dial(c);
        if (c->state != CLOSED && now - c->active_at > PATIENCE_MS) {
            if (c->state == ASKING && c->out_len)
                wrong(c, &count.hung, "nothing has come for %d s", PATIENCE_MS / 1000);
            hang_up(c);
        }
        any = any || c->state != CLOSED || !over();
    }
    return any;
}

static void stop(int signal)
{
    (void)signal;
    stopping = 1;
}

static void options(int argc, char **argv)
{
    const struct {
        const char *name;
        long *to;
    } names[] = {{"connections", &option.connections},
                 {"requests", &option.requests},
                 {"seed", &option.seed},
                 {"cancel", &option.cancel},
                 {"slow", &option.slow},
                 {"dies", &option.dies},
                 {"reuse", &option.reuse},
                 {"tls", &option.tls}};
    for (int i = 3; i < argc; i++) {
        const char *equal = strchr(argv[i], '=');
        bool known = false;
        for (size_t k = 0; equal && k < sizeof names / sizeof *names; k++)
            if (strlen(names[k].name) == (size_t)(equal - argv[i]) &&
                strncmp(names[k].name, argv[i], (size_t)(equal - argv[i])) == 0) {
                *names[k].to = atol(equal + 1);
                known = true;
            }
        if (!known) {
            fprintf(stderr, "nonce: %s is unknown\n", argv[i]);
            exit(2);
        }
    }
}

static int make_data(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        die(path);
    dice = UINT64_C(88172645463325252);
    for (size_t i = 0; i < DATA_BYTES; i += 8) {
        uint64_t n = roll();
        size_t some = DATA_BYTES - i < 8 ? DATA_BYTES - i : 8;
        fwrite(&n, 1, some, file);
    }
    return fclose(file) ? 2 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "data") == 0)
        return make_data(argv[2]);
    if (argc < 3) {
        fprintf(stderr, "usage: nonce PORT DATA [name=number ...]\n");
        return 2;
    }
    port = atoi(argv[1]);
    options(argc, argv);
    int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size != DATA_BYTES)
        die(argv[2]);
    data = mmap(NULL, DATA_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        die("mmap");
    close(fd);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    dice = (uint64_t)option.seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < 16; i++)
        roll();
#ifdef NONCE_TLS
    if (option.tls && (!(ctx = SSL_CTX_new(TLS_client_method()))))
        die("SSL_CTX_new");
    if (ctx)
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
#else
    if (option.tls) {
        fprintf(stderr, "nonce: built without TLS\n");
        return 2;
    }
#endif
    ep = epoll_create1(EPOLL_CLOEXEC);
    conns = calloc((size_t)option.connections, sizeof *conns);
    for (long i = 0; conns && i < option.connections; i++) {
        conns[i].fd = -1;
        conns[i].lazy = i % 8 == 7;
        /* in chunks of a byte a body is six times as long */
        if (!(conns[i].head = malloc(HEAD_MAX)) || !(conns[i].out = malloc(HEAD_MAX + 6 * (size_t)BODY_MAX)))
            die("memory");
    }
    now = clock_ms();
    int64_t began = now, looked = 0;
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(ep, events, EVENTS, 10);
        now = clock_ms();
        for (int i = 0; i < n; i++)
            event(events[i].data.ptr, events[i].events);
        if (now != looked && !look())
            break;
        looked = now;
    }
    long all = count.wrong_party + count.wrong + count.hung;
    printf("requests=%ld whole=%ld cut=%ld unanswered=%ld refused=%ld cancelled=%ld wrong_party=%ld "
           "wrong=%ld hung=%ld "
           "unconnected=%ld seconds=%.1f",
           begun, count.whole, count.cut, count.unanswered, count.refused, count.cancelled, count.wrong_party,
           count.wrong, count.hung, count.unconnected, (double)(now - began) / 1000);
    for (int i = 0; i < 600; i++)
        if (refused_by[i])
            printf(" status_%d=%ld", i, refused_by[i]);
    printf("\n");
    return all ? 1 : 0;
}
