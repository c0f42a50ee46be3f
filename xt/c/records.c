/*
 * records: TLS after the handshake, against a client of OpenSSL: all ciphers, sizes and deliveries;
 * KeyUpdate; what is refused; going on in another process; and the keys of tickets.
 */
#define UPDATE_AFTER 40 /* the records of this program, not those of the library */
#include "transport/records.c"

#include "tap.h"
#include "transport/keyfiles.h"
#include "transport/tls.h"

#ifdef SR_TLS

#include <openssl/ssl.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST = 300 * 1000 };

/* Client and server have a pair of sockets each; what goes from one to the other is carried by `carry`. */
typedef struct line {
    SSL *ssl;
    sr_transport *t;
    int client[2], server[2];
    bool done; /* the handshake of the server */
} line;

static SSL_CTX *clients;
static sr_tls *shared;
static sr_buffer pairs;
static char sent[MOST], got[MOST];
static SSL_SESSION *last;
static uint8_t small; /* max_fragment_length that a client asks for (RFC 6066 4); 0: none */

static size_t carry(int from, int to, size_t most)
{
    char bytes[65536];
    size_t all = 0;
    while (all < most) {
        ssize_t n = recv(from, bytes, most - all < sizeof bytes ? most - all : sizeof bytes, MSG_DONTWAIT);
        if (n <= 0)
            break;
        all += (size_t)n;
        for (ssize_t at = 0; at < n;) { /* there is room, or a test has made it small on purpose */
            ssize_t put = send(to, bytes + at, (size_t)(n - at), 0);
            if (put <= 0)
                return all;
            at += put;
        }
    }
    return all;
}

static void carry_all(line *l)
{
    while (carry(l->client[1], l->server[1], SIZE_MAX) + carry(l->server[1], l->client[1], SIZE_MAX))
        ;
}

static void line_close(line *l)
{
    SSL_free(l->ssl);
    sr_transport_free(l->t);
    for (int i = 0; i < 2; i++) {
        close(l->client[i]);
        close(l->server[i]);
    }
}

static bool line_open(line *l, int version, const char *cipher, SSL_SESSION *session)
{
    *l = (line){0};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, l->client) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, l->server) != 0)
        return false;
    int room = 1 << 20;
    for (int i = 0; i < 2; i++) {
        setsockopt(l->client[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        setsockopt(l->server[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    }
    l->t = sr_tls_accept(shared, l->server[0]);
    l->ssl = SSL_new(clients);
    SSL_set_fd(l->ssl, l->client[0]);
    if (small)
        SSL_set_tlsext_max_fragment_length(l->ssl, small);
    SSL_set_min_proto_version(l->ssl, version);
    SSL_set_max_proto_version(l->ssl, version);
    if (cipher && version == TLS1_3_VERSION)
        SSL_set_ciphersuites(l->ssl, cipher);
    else if (cipher)
        SSL_set_cipher_list(l->ssl, cipher);
    SSL_SESSION *copy = session ? SSL_SESSION_dup(session) : NULL; /* OpenSSL uses one of TLS 1.3 once */
    if (copy)
        SSL_set_session(l->ssl, copy);
    SSL_SESSION_free(copy);
    for (int i = 0; i < 100; i++) {
        struct timeval soon = {0, 1000};
        setsockopt(l->client[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
        int r = SSL_connect(l->ssl);
        carry_all(l);
        int err = l->done ? 0 : l->t->ops->handshake(l->t, l->server[0]);
        l->done = !err;
        carry_all(l);
        if (err && err != EAGAIN)
            return false;
        if (r == 1 && l->done)
            return true;
    }
    return false;
}

/* Bytes of the client reach the server, when they are carried so many at a time, and it reads so many. */
static bool up(line *l, size_t len, size_t carried, size_t room)
{
    size_t put, at = 0;
    if (SSL_write_ex(l->ssl, sent, len, &put) != 1 || put != len)
        return false;
    for (int idle = 0; at < len && idle < 3;) {
        ssize_t n = sr_transport_read(l->t, l->server[0], got + at, room < MOST - at ? room : MOST - at);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n > 0) {
            at += (size_t)n;
            idle = 0;
        } else if (sr_transport_holds(l->t) || !carry(l->client[1], l->server[1], carried)) {
            idle++;
        }
    }
    return at == len && memcmp(sent, got, len) == 0 && !sr_transport_holds(l->t);
}

/* And the other way; the server offers what it has in pieces of different sizes. */
static bool down(line *l, size_t len)
{
    size_t in = 0, out = 0, n;
    for (int idle = 0; in < len && idle < 10; idle++) {
        size_t left = len - out, one = left / 3;
        struct iovec iov[3] = {
            {sent + out, one}, {sent + out + one, one}, {sent + out + 2 * one, left - 2 * one}};
        ssize_t put =
            left || sr_transport_events(l->t, 0) ? sr_transport_write(l->t, l->server[0], iov, 3, 0) : 0;
        if (put < 0 && errno != EAGAIN)
            return false;
        out += put > 0 ? (size_t)put : 0;
        carry(l->server[1], l->client[1], SIZE_MAX);
        while (in < len && SSL_read_ex(l->ssl, got + in, len - in, &n) == 1) {
            in += n;
            idle = 0;
        }
    }
    return in == len && out == len && memcmp(sent, got, len) == 0;
}

static bool passes_on(line *l)
{
    sr_buffer packed = {0};
    if (!sr_transport_pack(l->t, &packed))
        return false;
    sr_transport_free(l->t);
    l->t = sr_tls_adopt(sr_bytes_of(sr_buffer_at(&packed), sr_buffer_len(&packed)), l->server[0]);
    sr_buffer_free(&packed);
    return l->t;
}

static void cipher(int version, const char *name)
{
    static const size_t sizes[] = {1, 2, 100, 4096, 16383, 16384, 16385, 40000, 250000};
    line l;
    bool fine = true;
    if (!ok(line_open(&l, version, name, NULL), "%s: a handshake", name)) {
        line_close(&l);
        return;
    }
    ok(strcmp(SSL_get_cipher_name(l.ssl), name) == 0, "%s: this cipher", name);
    ok(sr_transport_moves(l.t), "%s: it can be passed on", name);
    ok(sr_transport_facts(l.t).len > 0, "%s: facts", name);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        fine = fine && up(&l, sizes[i], SIZE_MAX, MOST) && down(&l, sizes[i]);
    ok(fine, "%s: bytes go up and down", name);
    ok(up(&l, 1000, 1, MOST), "%s: a byte at a time", name);
    ok(up(&l, 50000, 7000, 100), "%s: into little room", name);
    ok(up(&l, 50000, SIZE_MAX, 16384), "%s: into as much as a record", name);
    ok(passes_on(&l), "%s: passed on", name);
    ok(up(&l, 30000, SIZE_MAX, MOST) && down(&l, 30000), "%s: and it goes on", name);
    ok(sr_transport_facts(l.t).len > 0, "%s: with its facts", name);

    size_t put; /* a part of a record, one that is looked at, and what is behind it */
    SSL_write_ex(l.ssl, sent, 100, &put);
    SSL_write_ex(l.ssl, sent + 100, 200, &put);
    carry(l.client[1], l.server[1], 150);
    ok(sr_transport_peek(l.t, l.server[0]) == 1, "%s: a look", name);
    ok(sr_transport_peek(l.t, l.server[0]) == 1 && sr_transport_holds(l.t), "%s: takes nothing", name);
    ok(passes_on(&l) && sr_transport_holds(l.t), "%s: what it has is passed on, too", name);
    carry(l.client[1], l.server[1], SIZE_MAX);
    ssize_t a = sr_transport_read(l.t, l.server[0], got, 30),
            b = sr_transport_read(l.t, l.server[0], got + 30, 500),
            c = sr_transport_read(l.t, l.server[0], got + 100, 500);
    ok(a == 30 && b == 70 && c == 200 && memcmp(sent, got, 300) == 0, "%s: in order", name);
    ok(sr_transport_peek(l.t, l.server[0]) == -1 && errno == EAGAIN, "%s: and nothing more", name);

    ok(sr_transport_end(l.t, l.server[0]) == 0, "%s: the end", name);
    carry_all(&l);
    ok(SSL_read_ex(l.ssl, got, 1, &put) != 1 && SSL_get_shutdown(l.ssl) & SSL_RECEIVED_SHUTDOWN,
       "%s: close_notify", name);
    ok(sr_transport_send(l.t, l.server[0], "x", 1, 0) < 0 && errno == EPIPE,
       "%s: nothing is written behind it", name);
    SSL_shutdown(l.ssl);
    carry_all(&l);
    ok(sr_transport_read(l.t, l.server[0], got, 1) == 0, "%s: that of the client", name);
    ok(!sr_transport_holds(l.t), "%s: is told once", name);
    line_close(&l);
}

/* It was used so many seconds earlier, before all others. */
static void age(sr_records *r, int64_t by)
{
    r->used_at -= by;
    sr_link_remove(&r->keyed);
    sr_link_append(keyed.next, &r->keyed);
}

/* A silent connection has no contexts; it gets others, which go on where those before have ended. */
static void rests(int version, const char *name)
{
    line quiet, busy;
    bool fine = line_open(&quiet, version, name, NULL) && line_open(&busy, version, name, NULL) &&
                up(&quiet, 3000, SIZE_MAX, MOST) && down(&quiet, 3000);
    sr_records *r = of(quiet.t);
    ok(fine && r->in.ctx && r->out.ctx, "%s: two connections", name);
    for (int i = 0; i < 3; i++) {
        age(r, i ? RESTS + 1 : RESTS - 1);
        fine = up(&busy, 1, SIZE_MAX, MOST);
        ok(fine && !r->in.ctx == (i > 0) && !r->out.ctx == (i > 0), "%s: %s", name,
           i ? "it is silent, and its contexts go" : "silent for a while, it keeps them");
        ok(i == 1 ? down(&quiet, 70000) && up(&quiet, 70000, 777, MOST)
                  : up(&quiet, 5, 1, MOST) && down(&quiet, 5),
           "%s: it goes on", name);
        ok(r->in.ctx && r->out.ctx, "%s: with contexts", name);
    }
    age(r, RESTS + 1);
    ok(up(&busy, 1, SIZE_MAX, MOST) && !r->in.ctx && passes_on(&quiet) && up(&quiet, 9, 2, MOST) &&
           down(&quiet, 9),
       "%s: passed on without", name);
    age(of(quiet.t), RESTS + 1);
    ok(up(&busy, 1, SIZE_MAX, MOST) && sr_transport_end(quiet.t, quiet.server[0]) == 0, "%s: it ends", name);
    carry_all(&quiet);
    size_t n;
    ok(SSL_read_ex(quiet.ssl, got, 1, &n) != 1 && SSL_get_shutdown(quiet.ssl) & SSL_RECEIVED_SHUTDOWN,
       "%s: and says so", name);
    line_close(&quiet);
    ok(up(&busy, 100, SIZE_MAX, MOST), "%s: the other goes on", name);
    line_close(&busy);
    ok(sr_link_alone(&keyed), "%s: nothing is left in the list", name);
}

static void updates(void)
{
    line l;
    bool fine = line_open(&l, TLS1_3_VERSION, NULL, NULL);
    for (int i = 0; i < 10; i++) {
        SSL_key_update(l.ssl, i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        fine = fine && up(&l, 5000, i % 3 ? SIZE_MAX : 1, MOST) && down(&l, 5000);
        if (i == 5)
            fine = fine && passes_on(&l);
    }
    ok(fine, "KeyUpdate of the client, with an answer and without");
    for (int i = 0; i < 200; i++)
        fine = fine && down(&l, 10);
    ok(fine, "KeyUpdate of the server");
    ok(up(&l, 100, SIZE_MAX, MOST), "the other side has its own");
    errno = 0;
    for (int i = 0; i < 100; i++) {
        SSL_key_update(l.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        SSL_do_handshake(l.ssl);
    }
    carry_all(&l);
    ok(sr_transport_read(l.t, l.server[0], got, 1) < 0 && errno == EPROTO, "a flood of them is refused");
    line_close(&l);
}

/* The size of the largest record that the server has sent to the client, and not yet been read. */
static size_t largest(const line *l)
{
    static unsigned char bytes[MOST * 2];
    ssize_t n = recv(l->client[0], bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    size_t most = 0;
    for (ssize_t at = 0; at + 5 <= n;) {
        size_t body = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
        most = body > most ? body : most;
        at += (ssize_t)(5 + body);
    }
    return most;
}

/* A client with little memory asks for small records, and gets no others. */
static void small_records(int version, const char *cipher)
{
    for (uint8_t code = 1; code <= 4; code++) {
        line l;
        size_t most = (size_t)512 << (code - 1);
        small = code;
        bool fine = line_open(&l, version, cipher, NULL);
        small = 0;
        ok(fine && down(&l, 1) && sr_transport_send(l.t, l.server[0], sent, 40000, 0) == 40000,
           "%s: to a client that takes %zu bytes", cipher, most);
        carry_all(&l);
        size_t body = largest(&l), over = body > most ? body - most : 0, n, in = 0;
        ok(body >= most && over <= 8 + 16 + 1, "%s: no record has more (%zu)", cipher, over);
        while (in < 40000 && SSL_read_ex(l.ssl, got + in, 40000 - in, &n) == 1)
            in += n;
        ok(in == 40000 && memcmp(sent, got, in) == 0, "%s: and all come", cipher);
        ok(passes_on(&l), "%s: passed on", cipher);
        ok(down(&l, 5000), "%s: nor when passed on", cipher);
        line_close(&l);
    }
}

/* Many small records, and a part of one, which stays. */
static void little_stays(void)
{
    line l;
    size_t all = 0, put;
    ssize_t n;
    bool fine = line_open(&l, TLS1_3_VERSION, NULL, NULL);
    for (int i = 0; i < 3000; i++) {
        fine = fine && SSL_write_ex(l.ssl, sent, 1, &put) == 1;
        if (i % 100 == 99) /* each takes a kilobyte in the socket */
            carry(l.client[1], l.server[1], SIZE_MAX);
    }
    SSL_write_ex(l.ssl, sent, 100, &put);
    carry(l.client[1], l.server[1], 30);
    while ((n = sr_transport_read(l.t, l.server[0], got, sizeof got)) > 0)
        all += (size_t)n;
    ok(fine && all == 3000, "many small records are read (%zu)", all);
    ok(((sr_records *)l.t)->raw.cap <= 1024, "a part of one takes no more than it needs (%zu)",
       ((sr_records *)l.t)->raw.cap);
    carry(l.client[1], l.server[1], SIZE_MAX);
    ok(sr_transport_read(l.t, l.server[0], got, sizeof got) == 100, "and is completed");
    line_close(&l);
}

/* Records without bytes for the caller count before a connection is passed on and behind that. */
static void counted(void)
{
    line l;
    bool fine = line_open(&l, TLS1_3_VERSION, NULL, NULL);
    for (int i = 0; i < 33; i++) { /* one more than may come in a row */
        if (i == 20)
            ok(sr_transport_read(l.t, l.server[0], got, 100) < 0 && errno == EAGAIN && passes_on(&l),
               "passed on between KeyUpdates");
        fine = fine && SSL_key_update(l.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) && SSL_do_handshake(l.ssl) == 1;
        carry(l.client[1], l.server[1], SIZE_MAX);
    }
    ok(fine && sr_transport_read(l.t, l.server[0], got, 100) < 0 && errno == EPROTO,
       "a flood of them is refused: those before it count");
    line_close(&l);
}

/* The end of the peer, which was seen before a connection is passed on. */
static void ended(int version)
{
    line l;
    size_t put;
    bool fine = line_open(&l, version, NULL, NULL) && SSL_write_ex(l.ssl, sent, 100, &put) == 1;
    SSL_shutdown(l.ssl);
    carry(l.client[1], l.server[1], SIZE_MAX);
    ok(fine && sr_transport_peek(l.t, l.server[0]) == 1 && passes_on(&l), "%x: passed on behind close_notify",
       version);
    ok(sr_transport_read(l.t, l.server[0], got, 1000) == 100, "%x: what came before it is read", version);
    ok(sr_transport_holds(l.t), "%x: the end is there", version);
    ok(sr_transport_read(l.t, l.server[0], got, 1000) == 0, "%x: and read", version);
    line_close(&l);
}

static void renegotiates(void)
{
    line l;
    bool fine = line_open(&l, TLS1_2_VERSION, NULL, NULL);
    SSL_renegotiate(l.ssl);
    SSL_do_handshake(l.ssl);
    carry_all(&l);
    ok(fine && sr_transport_read(l.t, l.server[0], got, 1) < 0 && errno == EAGAIN,
       "renegotiation is not begun");
    carry_all(&l);
    ok(SSL_do_handshake(l.ssl) != 1, "the client is told so");
    ok(sr_transport_send(l.t, l.server[0], "x", 1, 0) == 1, "and the server could go on");
    line_close(&l);

    fine = line_open(&l, TLS1_2_VERSION, NULL, NULL);
    ok(fine && sr_transport_end(l.t, l.server[0]) == 0, "the server has ended its side");
    SSL_renegotiate(l.ssl);
    SSL_do_handshake(l.ssl);
    carry(l.client[1], l.server[1], SIZE_MAX);
    ok(sr_transport_read(l.t, l.server[0], got, 1) < 0 && errno == EAGAIN, "renegotiation is read then");
    shutdown(l.server[1], SHUT_WR);
    ok(sr_transport_read(l.t, l.server[0], got, 1) == 0, "and has no answer, which could not be sent");
    line_close(&l);
}

static void other_version(int version)
{
    line l;
    bool fine = line_open(&l, version, NULL, NULL) && write(l.server[1], "\x17\2\0\0\1x", 6) == 6;
    ok(fine && sr_transport_read(l.t, l.server[0], got, 1) < 0 && errno == EPROTO,
       "%x: a record of version 2 is refused", version);
    carry_all(&l);
    SSL_read(l.ssl, got, 1);
    ok(ERR_GET_REASON(ERR_peek_error()) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "%x: the alert says why",
       version);
    ERR_clear_error();
    line_close(&l);
}

/* Takes the record that the client has just made from its socket. */
static size_t record(line *l, unsigned char *to, size_t room, size_t len)
{
    size_t put;
    SSL_write_ex(l->ssl, sent, len, &put);
    ssize_t n = recv(l->client[1], to, room, MSG_DONTWAIT);
    return n > 0 ? (size_t)n : 0;
}

/*
 * What a client seals that follows no rule, and the alert that it gets: RFC 8446 5.1, 5.4, 6; RFC 5246 6.2.1,
 * 7.2.
 */
static void told(int version)
{
    static const struct {
        const char *what, *bytes;
        size_t len;
        uint8_t type;
        int alert, alert12; /* 0: none, the connection goes on */
    } cases[] = {
        {"an empty alert", "", 0, ALERT, UNEXPECTED, UNEXPECTED},
        {"half an alert", "\2", 1, ALERT, DECODE, DECODE},
        {"an alert and a half", "\1\0\1", 3, ALERT, DECODE, DECODE},
        {"an empty part of a handshake", "", 0, HANDSHAKE, UNEXPECTED, UNEXPECTED},
        {"Finished", "\x14\0\0\4abcd", 8, HANDSHAKE, UNEXPECTED, UNEXPECTED},
        {"ChangeCipherSpec", "\1", 1, CHANGE_CIPHER_SPEC, UNEXPECTED, UNEXPECTED},
        {"a type that nobody knows", "abc", 3, 99, UNEXPECTED, UNEXPECTED},
        {"nothing but zeros", "\0\0\0\0", 4, 0, UNEXPECTED, UNEXPECTED},
        {"an empty record", "", 0, APPLICATION, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        line l;
        size_t n;
        sr_record_keys keys;
        sr_records client = {0};
        int right = version == TLS1_3_VERSION ? cases[i].alert : cases[i].alert12;
        line_open(&l, version, NULL, NULL);
        keys = of(l.t)->keys;
        keys.out = of(l.t)->keys.in;
        keys.in = of(l.t)->keys.out;
        ok(sr_records_begin(&client, &keys), "TLS %x, %s", version, cases[i].what);
        seal_bytes(&client, cases[i].type, cases[i].bytes, cases[i].len);
        n = sr_buffer_len(&client.wire);
        ok(send(l.server[1], sr_buffer_at(&client.wire), n, 0) == (ssize_t)n, "sent");
        ssize_t r = sr_transport_read(l.t, l.server[0], got, sizeof got);
        ok(r < 0 && errno == (right ? EPROTO : EAGAIN), right ? "refused" : "taken");
        carry_all(&l);
        ERR_clear_error();
        ok(SSL_read_ex(l.ssl, got, 1, &n) != 1, "nothing comes back for it");
        is_int(ERR_GET_REASON(ERR_peek_error()), right ? SSL_AD_REASON_OFFSET + right : 0, "but this alert");
        ERR_clear_error();
        sr_records_wipe(&client);
        line_close(&l);
    }
}

static void refused(int version)
{
    const char *name = version == TLS1_3_VERSION ? "1.3" : "1.2";
    static const char *const how[] = {"a changed byte",   "a changed tag", "twice",
                                      "a changed length", "too long",      "cut"};
    for (int i = 0; i < 6; i++) {
        unsigned char bytes[1000];
        line l;
        line_open(&l, version, NULL, NULL);
        size_t n = record(&l, bytes, sizeof bytes, 100), times = 1, dummy;
        bytes[30] ^= i == 0;
        bytes[n - 1] ^= i == 1;
        times += i == 2;
        bytes[4] -= i == 3 ? 3 : 0;
        bytes[3] = i == 4 ? 0x60 : bytes[3];
        n -= i == 5;
        for (size_t k = 0; k < times; k++)
            ok(send(l.server[1], bytes, n, 0) == (ssize_t)n, "TLS %s, %s: sent", name, how[i]);
        if (i == 5)
            shutdown(l.server[1], SHUT_WR);
        ssize_t first = sr_transport_read(l.t, l.server[0], got, sizeof got);
        int err = errno;
        if (i == 5 && ok(first < 0 && err == EAGAIN, "a part of it is nothing"))
            first = sr_transport_read(l.t, l.server[0], got, sizeof got);
        if (i == 2 && ok(first == 100, "the first is fine")) {
            first = sr_transport_read(l.t, l.server[0], got, sizeof got);
            err = errno;
        }
        if (i == 5) {
            ok(first == 0, "TLS %s, %s: the end, without a part of it", name, how[i]);
        } else {
            ok(first < 0 && (err == EPROTO || (i == 2 && err == ECONNRESET)), "TLS %s, %s: refused", name,
               how[i]);
            carry(l.server[1], l.client[1], SIZE_MAX);
            ok(SSL_read_ex(l.ssl, got, 1, &dummy) != 1 && SSL_get_error(l.ssl, 0) == SSL_ERROR_SSL,
               "TLS %s, %s: the client gets an alert", name, how[i]);
            ok(sr_transport_send(l.t, l.server[0], "x", 1, 0) < 0, "TLS %s, %s: nothing is written", name,
               how[i]);
        }
        ERR_clear_error();
        line_close(&l);
    }
}

/* The socket takes little: what is not taken is offered again, in another place and with more behind it. */
static void slow(void)
{
    line l;
    int little = 1;
    line_open(&l, TLS1_3_VERSION, NULL, NULL);
    carry_all(&l);
    setsockopt(l.server[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    size_t in = 0, out = 0, n, waits = 0, offered = 50000;
    sr_buffer packed = {0};
    for (int turns = 0; in < MOST && turns < 100000; turns++) {
        size_t left = offered - out;
        ssize_t put = left ? sr_transport_send(l.t, l.server[0], sent + out, left, 0) : 0;
        if (put < 0 && errno == EAGAIN) {
            waits++;
            if (waits == 1)
                ok(sr_transport_events(l.t, EPOLLIN) == (EPOLLIN | EPOLLOUT), "it waits for the socket");
            if (waits == 1)
                ok(!sr_transport_pack(l.t, &packed), "and cannot be passed on meanwhile");
            offered = offered + 1000 < MOST ? offered + 1000 : MOST;
        }
        out += put > 0 ? (size_t)put : 0;
        if (out == offered)
            offered = MOST;
        carry(l.server[1], l.client[1], 3000);
        while (in < MOST && SSL_read_ex(l.ssl, got + in, MOST - in, &n) == 1)
            in += n;
    }
    ok(in == MOST && memcmp(sent, got, MOST) == 0, "all of it comes");
    ok(waits > 5, "after many waits");
    sr_buffer_free(&packed);
    line_close(&l);
}

static void not_whole(void)
{
    line l;
    sr_buffer packed = {0};
    line_open(&l, TLS1_3_VERSION, NULL, NULL);
    carry_all(&l);
    ok(sr_transport_pack(l.t, &packed), "packed");
    size_t len = sr_buffer_len(&packed);
    bool none = true;
    for (size_t cut = 0; cut < len; cut++)
        none = none && !sr_tls_adopt(sr_bytes_of(sr_buffer_at(&packed), cut), l.server[0]);
    ok(none, "a part of that is refused");
    sr_buffer_free(&packed);
    line_close(&l);
}

/* --- tickets --- */

static int keep(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    SSL_SESSION_free(last);
    last = session;
    return 1;
}

static void load(const sr_ticket_key *keys, int n)
{
    sr_buffer set = {0};
    char why[SR_KEYSET_WHY];
    sr_keyset_begin(&set);
    for (int i = 0; i < n; i++)
        sr_keyset_add(&set, SR_KEYSET_TICKET, sr_bytes_of((const char *)&keys[i], sizeof keys[i]));
    sr_keyset_copy(&set, sr_bytes_of(sr_buffer_at(&pairs), sr_buffer_len(&pairs)));
    if (!sr_tls_load(shared, sr_bytes_of(sr_buffer_at(&set), sr_buffer_len(&set)), why))
        printf("# %s\n", why);
    sr_keyset_wipe(&set);
}

/* A connection with that session; its own is in `last` afterwards. -1: none; 0: a new session; 1: resumed */
static int visit(int version, SSL_SESSION *with)
{
    line l;
    int how = -1;
    if (line_open(&l, version, NULL, with) && up(&l, 10, SIZE_MAX, MOST) && down(&l, 10)) {
        how = SSL_session_reused(l.ssl);
        if (!sr_transport_moves(l.t))
            how = -1;
    }
    if (version == TLS1_2_VERSION)
        keep(l.ssl, SSL_get1_session(l.ssl));
    SSL_shutdown(l.ssl);
    line_close(&l);
    return how;
}

static bool made_with(const SSL_SESSION *session, const sr_ticket_key *key)
{
    const unsigned char *ticket;
    size_t len;
    SSL_SESSION_get0_ticket(session, &ticket, &len);
    return len > 16 && memcmp(ticket, key->name, 16) == 0;
}

static void tickets(int version)
{
    const char *name = version == TLS1_3_VERSION ? "1.3" : "1.2";
    const int64_t hour = 3600, now = time(NULL);
    sr_ticket_key k[4];
    for (int i = 0; i < 4; i++)
        sr_keyfiles_ticket(&k[i], now + (12 * i - 13) * hour); /* the second is an hour old */
    load(k, 3);
    ok(visit(version, NULL) == 0, "TLS %s: a session", name);
    ok(made_with(last, &k[1]), "TLS %s: its ticket is of the newest key that is valid", name);
    SSL_SESSION *session = last;
    SSL_SESSION_up_ref(session);
    ok(visit(version, session) == 1, "TLS %s: is resumed", name);
    for (int i = 0; i < 4; i++)
        k[i].since -= 12 * hour;
    load(k + 1, 3);
    ok(visit(version, session) == 1, "TLS %s: a turn later, too", name);
    ok(made_with(last, &k[2]), "TLS %s: and the client gets a ticket of the key of now", name);
    SSL_SESSION *next = last;
    SSL_SESSION_up_ref(next);
    for (int i = 0; i < 4; i++)
        k[i].since -= 12 * hour;
    load(k + 1, 3);
    ok(visit(version, session) == 0, "TLS %s: another turn later, its key is too old", name);
    ok(visit(version, next) == 1, "TLS %s: that of the ticket from between is not", name);
    load(k + 2, 2);
    ok(visit(version, session) == 0, "TLS %s: nor is a key known that has gone", name);
    sr_ticket_key other = k[2];
    other.mac[0] ^= 1;
    load(&other, 1);
    ok(visit(version, next) == 0, "TLS %s: a ticket that was changed is none", name);
    for (int i = 0; i < 4; i++)
        k[i].since += 48 * hour;
    load(k + 1, 3);
    ok(visit(version, NULL) == 0, "TLS %s: a clock that was put back two days", name);
    ok(made_with(last, &k[1]), "TLS %s: the oldest key has to do", name);
    SSL_SESSION_free(session);
    SSL_SESSION_free(next);
}

int main(void)
{
    char why[SR_KEYSET_WHY];
    sr_keyfiles from = {.self_signed = true};
    sr_ticket_key key;
    for (size_t i = 0; i < MOST; i++)
        sent[i] = (char)(i * 31 + i / 251);
    sr_keyset_begin(&pairs);
    ok(sr_keyfiles_read(&from, &pairs, NULL, NULL, why), "a certificate");
    shared = sr_tls_new(false);
    clients = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(clients, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(clients, keep);
    sr_keyfiles_ticket(&key, time(NULL) - 10);
    load(&key, 1);
    cipher(TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256");
    cipher(TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384");
    cipher(TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256");
    cipher(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256");
    cipher(TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384");
    cipher(TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305");
    rests(TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384");
    rests(TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305");
    updates();
    small_records(TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256");
    small_records(TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384");
    small_records(TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305");
    little_stays();
    counted();
    ended(TLS1_3_VERSION);
    ended(TLS1_2_VERSION);
    renegotiates();
    other_version(TLS1_3_VERSION);
    other_version(TLS1_2_VERSION);
    told(TLS1_3_VERSION);
    told(TLS1_2_VERSION);
    refused(TLS1_3_VERSION);
    refused(TLS1_2_VERSION);
    slow();
    not_whole();
    tickets(TLS1_3_VERSION);
    tickets(TLS1_2_VERSION);
    SSL_SESSION_free(last);
    SSL_CTX_free(clients);
    sr_tls_free(shared);
    sr_keyset_wipe(&pairs);
    return done_testing();
}

#else

int main(void)
{
    printf("1..0 # SKIP this build has no TLS\n");
    return 0;
}

#endif
