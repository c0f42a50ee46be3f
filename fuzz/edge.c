/*
 * edge: the edge as a whole, with clients that send anything and workers that say anything, write anywhere
 * they can, pass any descriptors, end at any moment, while time goes by. After that comes an honest client
 * with an honest worker: it is served as if nothing had been, and the access log says so. At the end no slot,
 * no descriptor and no byte of memory is missing. Responses are held, and WebSockets, which workers answer
 * with events or anything else.
 * Judges: src/websocket/websocket.c src/websocket/wsanswer.c src/websocket/wsaccept.c
 * src/websocket/wsorders.c src/websocket/wscarrier.c src/websocket/wsread.c src/websocket/errand.c
 * src/live/hold.c src/edge/crew.c src/edge/deliver.c src/edge/dispatch.c src/edge/limits.c src/edge/log.c
 * src/edge/mend.c src/share/queue.c
 *
 * Input: operations, a byte each with the bytes that it needs after it; see edge_operation.
 */
#include "edge/edge.h"
#include "share/memory.h"

#include "age.h"
#include "conn/deadline.h"
#include "edge/crew.h"
#include "fuzz.h"
#include "share/door.h"
#include "share/reply.h"
#include "websocket/websocket.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EDGE_ROWS = 4, EDGE_HONEST = 0, EDGE_CLIENTS = 4, EDGE_QUEUE = 40 };

typedef struct edge_worker {
    int line;
    sr_consumer consumer;
    uint64_t number; /* of the request that it has, or speaks of */
    uint32_t slot;
} edge_worker;

typedef struct edge_input {
    const uint8_t *at, *end;
} edge_input;

static sr_edge *edge;
static uint64_t edge_lobby;
static int edge_log;      /* its file */
static int edge_files[3]; /* a file, a pipe, a directory */
static edge_worker edge_workers[EDGE_ROWS];
static int edge_clients[EDGE_CLIENTS];

static uint8_t edge_byte(edge_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Up to 255 bytes of the input */
static sr_bytes edge_bytes(edge_input *in)
{
    size_t len = edge_byte(in);
    if (len > (size_t)(in->end - in->at))
        len = (size_t)(in->end - in->at);
    in->at += len;
    return sr_bytes_of((const char *)in->at - len, len);
}

/* --- once --- */

static void edge_open(void)
{
    int lobby, sleepers, pipes[2];
    sr_setup s;
    sr_setup_init(&s);
    s.report = open("/dev/null", O_WRONLY | O_CLOEXEC);
    s.config = (sr_config){.request = {.line = 200, .head = 20000, .fields = 30},
                           .max_body = 30000,
                           .body_memory = 10000,
                           .header_ns = 30 * SR_SECOND,
                           .idle_ns = 30 * SR_SECOND,
                           .body_ns = 30 * SR_SECOND,
                           .write_ns = 5 * SR_SECOND,
                           .linger_ns = 2 * SR_SECOND,
                           .request_ns = 8 * SR_SECOND,
                           .stream_ns = 8 * SR_SECOND,
                           .queue_ns = 4 * SR_SECOND,
                           .keepalive = true,
                           .max_keepalive_reqs = 20,
                           .max_connections = 100,
                           .max_queue = EDGE_QUEUE,
                           .hold_buffer = 4096,
                           .hold_per_client = 3,
                           .websocket_max = 2000,
                           .websocket_rate = 10,
                           .websocket_ping_ns = 2 * SR_SECOND,
                           .report_fd = -1,
                           .tmpdir = "/tmp"};
    s.hold = true;
    s.log.fd = edge_log = memfd_create("log", MFD_CLOEXEC);
    s.log.kind = SR_SINK_FILE;
    s.log.format = "%m %U %q %s %X %{X-A}o %{X-B}o %{Host}i %{psgi.x}e %u %B";
    MUST(edge_log >= 0 && fcntl(edge_log, F_SETFL, O_APPEND) == 0);
    sr_sleepers *beds = sr_memory_new("sleepers", SR_SLEEPERS_BYTES, &sleepers);
    MUST(beds && sr_door_lobby(&lobby) == 0 && pipe(pipes) == 0);
    sr_sleepers_init(beds, EDGE_ROWS);
    s.sleepers = sleepers;
    s.lobby = lobby;
    s.listeners[0].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* nobody connects */
    s.listeners[0].is_unix = true;
    s.n_listeners = 1;
    MUST(sr_edge_new(&edge, &s) == 0);
    edge_lobby = sr_door_name(lobby);
    edge_files[0] = memfd_create("file", MFD_CLOEXEC);
    edge_files[1] = pipes[0];
    edge_files[2] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MUST(edge_files[0] >= 0 && ftruncate(edge_files[0], 100000) == 0);
    for (int i = 0; i < EDGE_CLIENTS; i++)
        edge_clients[i] = -1;
    for (int i = 0; i < EDGE_ROWS; i++)
        edge_workers[i].line = -1;
}

static void edge_steps(int n)
{
    while (n-- > 0)
        MUST(sr_edge_step(edge, false));
}

/* As if so much time had gone by. */
static void edge_time(int64_t ns)
{
    age_edge(edge, ns);
    if (edge->nudged_at)
        edge->nudged_at -= ns;
    edge_steps(1);
}

/* --- clients --- */

static int edge_connect(void)
{
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    int small = 8192; /* a response is soon larger than what fits */
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    sr_conn *c = sr_conn_new(pair[0], &(sr_peer){0}, 0);
    MUST(c);
    sr_conn_enter(edge->engine, c);
    sr_deadline_set(edge->engine, c, SR_DEADLINE_HEAD);
    MUST(sr_conn_watch(edge->engine, c, EPOLLIN));
    return pair[1];
}

static void edge_request(int client, unsigned which)
{
    static char large[12000];
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /c HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        /* its head is short, its body a file */
        "POST /l HTTP/1.1\r\nHost: a\r\nContent-Length: 12000\r\n\r\n",
        "POST /s HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n", /* it is too large for a slot */
    };
    static const char *const sockets[] = {
        ("GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: "
         "13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
        "\x81\x83....\x4f\x45\x17", /* text */
        "\x02\x83....abc",
        "\x80\x83....def",
        "\x89\x81....p",
        "\x88\x82....\x2d\xc6",
        "\x8a\x81....p",
        "\x82\xfe\x07\x08....",
    };
    if (which >= 240) {
        const char *text = sockets[which % 8];
        size_t len = which % 8 == 7 ? 8 : strlen(text);
        ssize_t n = send(client, text, len, MSG_NOSIGNAL);
        if (n > 0 && which % 8 == 7)
            send(client, large, 1800, MSG_NOSIGNAL);
        return;
    }
    which %= sizeof texts / sizeof *texts;
    ssize_t n = send(client, texts[which], strlen(texts[which]), MSG_NOSIGNAL);
    if (n > 0 && which >= 6)
        n = send(client, large, which == 6 ? 12000 : 9000, MSG_NOSIGNAL);
}

static void edge_client(edge_input *in)
{
    uint8_t what = edge_byte(in);
    int *client = &edge_clients[what % EDGE_CLIENTS];
    char sink[4096];
    if (*client < 0)
        *client = edge_connect();
    switch (what / EDGE_CLIENTS % 6) {
    case 0:
    case 1:
        edge_request(*client, edge_byte(in));
        break;
    case 2: {
        sr_bytes bytes = edge_bytes(in);
        if (send(*client, bytes.at, bytes.len, MSG_NOSIGNAL) < 0)
            break;
        break;
    }
    case 3:
        while (recv(*client, sink, sizeof sink, MSG_DONTWAIT) > 0)
            ;
        break;
    case 4:
        shutdown(*client, SHUT_WR);
        break;
    case 5:
        close(*client);
        *client = -1;
        break;
    }
}

/* --- workers --- */

static void edge_worker_leave(uint32_t row)
{
    edge_worker *w = &edge_workers[row];
    if (w->line >= 0)
        close(w->line);
    sr_consumer_close(&w->consumer);
    *w = (edge_worker){.line = -1};
}

/* All are this process, which may have one row only: so the others are not it for a moment. */
static void edge_hello(uint32_t row, int more, int fd)
{
    edge_worker *w = &edge_workers[row];
    int line, fds[SR_MESSAGE_FDS] = {fd, fd, fd, fd}, n = 0;
    sr_message note = {.kind = SR_MESSAGE_HELLO, .row = row};
    edge_worker_leave(row);
    for (uint32_t i = 0; i < EDGE_ROWS; i++)
        edge->workers[i].pid = i == row ? getpid() : -1;
    MUST(sr_door_enter(edge_lobby, &line) == 0);
    MUST(sr_door_send(line, &note, fds, more, false) == 0);
    edge_steps(1);
    n = 0;
    if (sr_door_receive(line, &note, fds, &n, false) == 0 && n == SR_MESSAGE_FDS) {
        MUST(sr_consumer_open(&w->consumer, fds[0], fds[1], fds[2], row) == 0);
        w->line = line;
    } else {
        close(line);
    }
    while (n > 0)
        close(fds[--n]);
    for (uint32_t i = 0; i < EDGE_ROWS; i++)
        edge->workers[i].pid = getpid();
}

static void edge_say(edge_worker *w, uint16_t kind, uint16_t flags, const void *payload, size_t len)
{
    if (atomic_load(&w->consumer.ring->put) % 8) /* it has spoiled that itself */
        return;
    sr_record *r = sr_ring_reserve(w->consumer.ring, len);
    if (!r)
        return;
    *r = (sr_record){.kind = kind, .flags = flags, .number = w->number, .slot = w->slot};
    memcpy(r + 1, payload, len);
    sr_ring_commit(w->consumer.ring, r, len);
}

static void edge_tell(uint32_t row)
{
    atomic_fetch_or(&edge->queue.replies->replied[0], UINT64_C(1) << row);
}

static void edge_head(edge_worker *w, uint16_t kind, uint16_t flags, uint16_t status, uint64_t length,
                      sr_bytes fields, sr_bytes body)
{
    char payload[2048];
    sr_reply_head h = {.status = status,
                       .length = length,
                       .app_length = SR_REPLY_LENGTH_UNKNOWN,
                       .fields = (uint32_t)fields.len};
    memcpy(payload, &h, sizeof h);
    memcpy(payload + sizeof h, fields.at, fields.len);
    memcpy(payload + sizeof h + fields.len, body.at, body.len);
    edge_say(w, kind, flags, payload, sizeof h + fields.len + body.len);
}

static void edge_take(edge_worker *w)
{
    uint32_t slot;
    const sr_slot *s = sr_consumer_take(&w->consumer, &slot);
    if (!s)
        return;
    w->slot = slot;
    w->number = s->number;
}

static void edge_reply(edge_worker *w, edge_input *in)
{
    static const char large[9000];
    static const uint16_t statuses[] = {200, 204, 304, 404, 500, 103, 99, 1000};
    uint8_t what = edge_byte(in), more = edge_byte(in);
    sr_bytes fields = SR_BYTES("X-A: b\r\n"), body = SR_BYTES("body");
    uint16_t flags = more & 3, status = statuses[what / 16 % 8];
    uint64_t length = more & 4 ? SR_REPLY_LENGTH_UNKNOWN : more & 8 ? 4 : more & 16 ? 50000 : 0;
    sr_reply_file file = {more, more & 32 ? UINT64_MAX : 50000, more & 1};
    if (more & 64)
        fields = edge_bytes(in);
    switch (what % 10) {
    case 0:
    case 1:
        edge_head(w, SR_REPLY_HEAD, flags, status, length, fields, more & 128 ? body : (sr_bytes){"", 0});
        break;
    case 2:
        edge_head(w, SR_REPLY_INTERIM, flags, status, length, fields, (sr_bytes){"", 0});
        break;
    case 3:
        edge_say(w, SR_REPLY_FIELDS, 0, fields.at, fields.len);
        break;
    case 4:
    case 5:
        edge_say(w, SR_REPLY_DATA, 0, large, more & 1 ? sizeof large : 3);
        break;
    case 6:
        edge_say(w, SR_REPLY_FILE, 0, &file, more & 1 ? sizeof file - 1 : sizeof file);
        break;
    case 7:
    case 8:
        edge_say(w, SR_REPLY_END, 0, "", 0);
        break;
    default:
        edge_say(w, more & 1 ? SR_REPLY_CUT : SR_REPLY_TAKEN, 0, "", 0);
        break;
    }
}

/* Events for a WebSocket, or a response that is to be held */
static void edge_hold(edge_worker *w, edge_input *in)
{
    static const char type[] =
        "Content-Type: application/websocket-events\r\nSec-WebSocket-Extensions: grip\r\nSet-Meta-A: b\r\n";
    static const char *const events[] = {
        "OPEN\r\n",
        "OPEN\r\nTEXT 4\r\nm:hi\r\n",
        "OPEN\r\nTEXT 26\r\nc:{\"type\":\"subscribe\",\"channel\":\"a\"}  \r\n",
        "BINARY 3\r\nm:x\r\nPING\r\n",
        "CLOSE 2\r\n\x03\xe8\r\n",
        "DISCONNECT\r\n",
        "TEXT 31\r\nc:{\"type\":\"keep-alive\",\"content\":\"x\",\"timeout\":2}\r\n",
        "TEXT 15\r\nc:{\"type\":\"detach\"}  \r\n",
        "",
    };
    static const char *const lines[] = {
        "Grip-Hold: stream\r\nGrip-Channel: a\r\nGrip-Keep-Alive: x; timeout=2\r\n",
        "Grip-Hold: response\r\nGrip-Channel: a\r\nGrip-Timeout: 2\r\n",
        "Grip-Hold: stream\r\nGrip-Channel: a; prev-id=1\r\n",
    };
    uint8_t what = edge_byte(in);
    const char *text = events[what % 9];
    sr_bytes body = what & 128 ? edge_bytes(in) : sr_bytes_of(text, strlen(text));
    switch (what / 9 % 4) {
    case 0:
    case 1:
        edge_head(w, SR_REPLY_HEAD, SR_REPLY_LAST, 200, body.len, sr_bytes_of(type, sizeof type - 1), body);
        break;
    case 2:
        edge_say(w, SR_REPLY_HOLD, 0, lines[what % 3], strlen(lines[what % 3]));
        break;
    case 3:
        edge_say(w, SR_REPLY_HELD, 0, "", 0);
        break;
    }
}

/* Something is published. */
static void edge_publish(uint8_t what)
{
    static uint64_t number;
    static const uint16_t has[] = {SR_ITEM_STREAM,   SR_ITEM_TEXT,     SR_ITEM_BINARY,
                                   SR_ITEM_WS_CLOSE, SR_ITEM_RESPONSE, SR_ITEM_STREAM_CLOSE};
    char packed[sizeof(sr_item) + 4000];
    uint16_t kind = has[what % 6];
    size_t len = what & 64 ? 3000 : 3;
    bool message = kind & (SR_ITEM_TEXT | SR_ITEM_BINARY);
    sr_item item = {.number = ++number, .channel = 1, .has = kind};
    item.stream = kind == SR_ITEM_STREAM ? (uint32_t)len : 0;
    item.body = kind == SR_ITEM_RESPONSE ? (uint32_t)len : 0;
    item.status = kind == SR_ITEM_RESPONSE ? 200 : 0;
    item.message = message ? (uint32_t)len : 0;
    item.code = kind == SR_ITEM_WS_CLOSE ? 1000 : 0;
    memcpy(packed, &item, sizeof item);
    memset(packed + sizeof item, 'a', 4000);
    sr_live_publish(edge->live,
                    sr_bytes_of(packed, sizeof item + 1 + item.stream + item.body + item.message));
}

/*
 * Values of a line in the log, or what looks like them; or that the request could not be had. `how`: 1 the id
 * of another format, 2 an id, 4 values, else any bytes, 8 not had, 16 as many bytes as there are.
 */
static void edge_values(edge_worker *w, edge_input *in)
{
    static const char zeros[9000];
    char payload[2048];
    size_t len = 0;
    uint8_t how = edge_byte(in);
    uint64_t id = sr_logformat_id(edge->engine->log->format) + (how & 1);
    if (how & 2) {
        memcpy(payload, &id, sizeof id);
        len = sizeof id;
    }
    while (how & 4 && in->at < in->end && *in->at != 255 && len + 300 < sizeof payload) {
        uint8_t item = edge_byte(in);
        sr_bytes value = edge_bytes(in);
        sr_reply_value v = {item % 16, item & 16   ? SR_REPLY_NO_VALUE
                                       : item & 32 ? UINT32_MAX - item
                                       : item & 64 ? (uint32_t)value.len + item
                                                   : (uint32_t)value.len};
        memcpy(payload + len, &v, sizeof v);
        memcpy(payload + len + sizeof v, value.at, value.len);
        len += sizeof v + value.len;
    }
    if (!(how & 4)) {
        sr_bytes any = edge_bytes(in);
        memcpy(payload + len, any.at, any.len);
        len += any.len;
    }
    edge_say(w, how & 8 ? SR_REPLY_UNREAD : SR_REPLY_LOG, 0, payload, len);
    for (int i = 0; how & 16 && i < 6; i++)
        edge_say(w, SR_REPLY_LOG, 0, zeros, sizeof zeros);
}

/* Any header, somewhere after what was written */
static void edge_raw(edge_worker *w, edge_input *in)
{
    sr_ring *r = w->consumer.ring;
    sr_bytes bytes = edge_bytes(in);
    uint32_t at = atomic_load(&r->put) % SR_RING_BYTES;
    if (bytes.len > SR_RING_BYTES - at)
        bytes.len = SR_RING_BYTES - at;
    memcpy(r->data + at, bytes.at, bytes.len);
    atomic_fetch_add(&r->put, (uint32_t)edge_byte(in) << (edge_byte(in) % 16));
}

/* Anything that is writable for a worker */
static void edge_scribble(edge_worker *w, edge_input *in)
{
    sr_replies *replies = w->consumer.replies;
    uint8_t what = edge_byte(in), value = edge_byte(in);
    uint32_t slot = value / 8 % 16;
    const sr_slot *s = sr_queue_at(&edge->queue, slot);
    static const uint64_t owners[] = {SR_OWNER_NOBODY, 1, 2, 3, 4, 77, SR_OWNER_EDGE, 0};
    uint64_t word = (s->number << 16) | owners[value % 8];
    switch (what % 9) {
    case 0:
    case 1:
        atomic_store(&replies->claims[slot].word, word);
        break;
    case 2:
        atomic_store(&replies->claims[slot].word, word * 77);
        break;
    case 3:
        atomic_store(&replies->head, (uint64_t)value << (what / 8));
        break;
    case 4:
        atomic_store(&replies->asleep, value);
        break;
    case 5:
        atomic_store(&replies->replied[0], value);
        break;
    case 6:
        atomic_store(&edge->sleepers->sleeping[what / 9 % SR_SLEEPERS_WORDS], value);
        atomic_store(&edge->sleepers->searching[what / 9 % SR_SLEEPERS_WORDS], UINT64_MAX);
        break;
    case 7:
        atomic_store(&edge->sleepers->rows, (uint32_t)value << (what % 25));
        atomic_store(&edge->sleepers->words, (uint32_t)value << (what % 25));
        break;
    case 8:
        atomic_store(&w->consumer.ring->began, value & 1 ? w->number : s->number);
        atomic_store(&w->consumer.ring->wants, value);
        break;
    }
}

static void edge_note(edge_worker *w, edge_input *in)
{
    uint8_t what = edge_byte(in);
    int fds[SR_MESSAGE_FDS], n = what / 8 % (SR_MESSAGE_FDS + 1);
    sr_message note = {.kind = what % 8, .row = what / 8, .number = w->number, .slot = w->slot};
    if (note.kind == SR_MESSAGE_HELLO)
        note.kind = SR_MESSAGE_FILE;
    for (int i = 0; i < n; i++)
        fds[i] = edge_files[i ? what % 3 : what > 220 ? 1 + what % 2 : 0];
    if (what == 255)
        send(w->line, &note, what % 3, MSG_NOSIGNAL | MSG_DONTWAIT);
    else
        sr_door_send(w->line, &note, fds, n, false);
}

/* What the edge has sent it, with descriptors */
static void edge_listen(edge_worker *w)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0;
    while (sr_door_receive(w->line, &note, fds, &n, false) == 0)
        while (n > 0)
            close(fds[--n]);
}

static void edge_act(edge_input *in)
{
    uint8_t what = edge_byte(in);
    uint32_t row = 1 + what % (EDGE_ROWS - 1);
    edge_worker *w = &edge_workers[row];
    if (w->line < 0 || edge->workers[row].line.fd < 0)
        edge_hello(row, 0, -1);
    if (w->line < 0)
        return;
    switch (what / 4 % 12) {
    case 0:
    case 1:
        edge_take(w);
        if (what & 128 && w->number)
            sr_consumer_begin(&w->consumer, w->slot, w->number);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        if (what >= 240)
            edge_hold(w, in);
        else
            edge_reply(w, in);
        edge_tell(row);
        break;
    case 6:
        edge_raw(w, in);
        edge_tell(row);
        break;
    case 7:
        edge_scribble(w, in);
        break;
    case 8:
        edge_note(w, in);
        break;
    case 9:
        edge_listen(w);
        break;
    case 10: /* it has ended, as its pidfd says; what holds its line and its ring may go on */
        if (edge->workers[row].line.fd >= 0)
            sr_crew_ended(edge, &edge->workers[row]);
        if (what & 128)
            edge_worker_leave(row);
        break;
    case 11: /* it speaks of another's request */
        w->slot = edge_byte(in) % edge->slots;
        w->number = sr_queue_at(&edge->queue, w->slot)->number;
        break;
    }
}

static void edge_operation(edge_input *in)
{
    static const int64_t times[] = {SR_MILLISECOND, 25 * SR_MILLISECOND, 700 * SR_MILLISECOND, 3 * SR_SECOND,
                                    9 * SR_SECOND};
    uint8_t op = edge_byte(in);
    switch (op % 8) {
    case 0:
    case 1:
        edge_client(in);
        break;
    case 6:
        edge_time(times[op / 8 % 5]);
        break;
    case 7:
        if (op > 200 && op < 250 && edge_workers[1 + op / 8 % 3].line >= 0) {
            edge_values(&edge_workers[1 + op / 8 % 3], in);
            edge_tell(1 + op / 8 % 3);
        }
        if (op > 170 && op < 190)
            edge_publish(edge_byte(in));
        if (op > 250)
            edge_hello(1 + op % 3, op % 3, edge_files[1]);
        edge_steps(1);
        break;
    default:
        edge_act(in);
        if (op & 64)
            edge_steps(1);
        break;
    }
}

/* --- what must hold --- */

/*
 * Lines of requests before may be in front, and behind it those that end in the same step. Its line is whole,
 * there once, and has nothing of theirs in its items.
 */
static void edge_logged(void)
{
    static const char line[] = "\nGET /honest  200 + - - a - - 4\n";
    static char text[1 << 20] = "\n";
    sr_sink_flush(edge->engine->log->sink);
    ssize_t n = pread(edge_log, text + 1, sizeof text - 2, 0);
    MUST(n >= 0);
    text[n + 1] = '\0';
    const char *found = memmem(text, (size_t)n + 1, line, sizeof line - 1);
    MUST(found);
    size_t left = (size_t)(text + n + 1 - found) - 1;
    MUST(!memmem(found + 1, left, line, sizeof line - 1));
    MUST(ftruncate(edge_log, 0) == 0);
}

static const char edge_question[] = "GET /honest HTTP/1.1\r\nHost: a\r\n\r\n";

/* A worker answers what it finds. */
static void edge_answer(edge_worker *w)
{
    edge_steps(1);
    edge_take(w);
    if (w->number && sr_consumer_begin(&w->consumer, w->slot, w->number) == SR_CLAIM_MINE) {
        const sr_slot *s = sr_queue_at(&edge->queue, w->slot);
        const char *base = s->data + s->parse;
        bool ours = s->head == sizeof edge_question - 1 && memcmp(base, edge_question, s->head) == 0;
        edge_head(w, SR_REPLY_HEAD, SR_REPLY_LAST, 200, 4, SR_BYTES(""),
                  ours ? SR_BYTES("yes!") : SR_BYTES("none"));
        edge_tell(EDGE_HONEST);
    }
    w->number = 0;
    edge_steps(1);
}

/* Earlier requests may be in front. */
static void edge_honest(void)
{
    edge_worker *w = &edge_workers[EDGE_HONEST];
    char answer[1024];
    ssize_t n = -1;
    int client = edge_connect();
    edge_hello(EDGE_HONEST, 0, -1);
    MUST(w->line >= 0);
    MUST(send(client, edge_question, sizeof edge_question - 1, MSG_NOSIGNAL) == sizeof edge_question - 1);
    for (int i = 0; i < 100 && n < 0; i++) {
        edge_answer(w);
        n = recv(client, answer, sizeof answer, MSG_DONTWAIT);
        if (n < 0)
            edge_time(22 * SR_MILLISECOND);
    }
    MUST(n > 40 && memcmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0 && memcmp(answer + n - 4, "yes!", 4) == 0);
    edge_logged();
    close(client);
    edge_steps(2);
}

static void edge_clear(void)
{
    sr_engine *e = edge->engine;
    for (int i = 0; i < EDGE_CLIENTS; i++) {
        if (edge_clients[i] >= 0)
            close(edge_clients[i]);
        edge_clients[i] = -1;
    }
    while (!sr_link_alone(&e->all))
        sr_conn_close(e, SR_LIST_ENTRY(e->all.next, sr_conn, all), SR_CLOSED_ERROR);
    for (uint32_t row = 0; row < EDGE_ROWS; row++)
        if (row != EDGE_HONEST) {
            edge_worker_leave(row);
            if (edge->workers[row].line.fd >= 0)
                sr_crew_ended(edge, &edge->workers[row]);
        }
    edge->sleepers->rows = EDGE_ROWS;
    edge->sleepers->words = 1;
    /* the ends of WebSockets are told until somebody has heard them */
    for (int i = 0; i < 100 && !sr_link_alone(&edge->websockets->list); i++) {
        edge_answer(&edge_workers[EDGE_HONEST]);
        edge_time(i % 2 ? 700 * SR_MILLISECOND : 22 * SR_MILLISECOND);
    }
    edge_worker_leave(EDGE_HONEST);
    if (edge->workers[EDGE_HONEST].line.fd >= 0)
        sr_crew_ended(edge, &edge->workers[EDGE_HONEST]);
    /* what seems to be with somebody is doubted for a while */
    for (int i = 0; i < 12 || (i < 60 && edge->queue.n_free < edge->slots); i++)
        edge_time(700 * SR_MILLISECOND);
    MUST(e->n_conns == 0 && sr_link_alone(&e->intake.buffered) && e->pending == 0);
    MUST(edge->queue.n_free == edge->slots && sr_queue_waiting(&edge->queue) == 0);
    MUST(sr_link_alone(&edge->abandoned));
    MUST(sr_link_alone(&edge->websockets->list) && !edge->websockets->memory &&
         !edge->live->held[SR_HELD_STREAM] && !edge->live->held[SR_HELD_RESPONSE] &&
         !edge->live->held[SR_HELD_WEBSOCKET]);
}

FUZZ_TARGET(edge)
{
    edge_input in = {data, data + size};
    if (!edge)
        edge_open();
    edge_steps(1);
    int before = fuzz_descriptors();
    while (in.at < in.end)
        edge_operation(&in);
    edge_honest();
    edge_clear();
    MUST(fuzz_descriptors_again(before) == before);
    return 0;
}
