/*
 * tls: connections of TLS with clients that break off, change bytes, and keep the server busy: what they cost
 * is bounded, nothing is lost (the sanitizer looks for leaks), and no error of one reaches another.
 */
#include "tap.h"

#ifndef SR_TLS

int main(void)
{
    printf("1..0 # SKIP no OpenSSL\n");
    return 0;
}

#else

#include "../../fuzz/forge.h"
#include "transport/tls.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64 * 1024 };

/* A client and the server's end, joined by sockets that are never full unless a test wants it. */
typedef struct pair {
    SSL *ssl;
    forge forge;
    sr_transport *t;
    int server, client;
} pair;

static sr_tls *tls;
static SSL_CTX *context;
static sr_buffer plain_set, required_set;
static EVP_PKEY *client_key;
static X509 *client_cert;
static bool by_openssl; /* the cipher is none of records.c, so OpenSSL encrypts */
static char scratch[128 * 1024];

/* --- certificates --- */

static X509 *certificate(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *with)
{
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    X509_set_version(cert, X509_VERSION_3);
    X509_set_pubkey(cert, key);
    X509_gmtime_adj(X509_getm_notBefore(cert), -86400);
    X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : subject);
    X509_EXTENSION *ca =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
    X509_add_ext(cert, ca, -1);
    X509_EXTENSION_free(ca);
    MUST(X509_sign(cert, with, EVP_sha256()));
    return cert;
}

static void add(sr_buffer *set, sr_keyset_kind kind, X509 *cert, EVP_PKEY *key)
{
    BIO *to = BIO_new(BIO_s_mem());
    char *at;
    MUST(key ? PEM_write_bio_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) : PEM_write_bio_X509(to, cert));
    long n = BIO_get_mem_data(to, &at);
    MUST(sr_keyset_add(set, kind, sr_bytes_of(at, (size_t)n)));
    BIO_free(to);
}

static void make(void)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *ca = certificate(ca_key, "ca", NULL, ca_key), *cert = certificate(key, "a.test", ca, ca_key);
    sr_ticket_key ticket = {.since = time(NULL) - 1, .name = "name", .cipher = "cipher", .mac = "mac"};
    client_key = EVP_EC_gen("P-256");
    client_cert = certificate(client_key, "client", ca, ca_key);
    for (int i = 0; i < 2; i++) {
        sr_buffer *set = i ? &required_set : &plain_set;
        MUST(sr_keyset_begin(set));
        add(set, SR_KEYSET_CERT, cert, NULL);
        add(set, SR_KEYSET_KEY, NULL, key);
        MUST(sr_keyset_add(set, SR_KEYSET_TICKET, sr_bytes_of((const char *)&ticket, sizeof ticket)));
        if (i)
            add(set, SR_KEYSET_CA, ca, NULL);
        MUST(!i || sr_keyset_add(set, SR_KEYSET_VERIFY, SR_BYTES("required")));
        MUST(sr_keyset_add(set, SR_KEYSET_CIPHERS,
                           SR_BYTES(FORGE_GCM_12 ":" FORGE_CCM_12 ":" FORGE_GCM_13 ":" FORGE_CCM_13)));
    }
    X509_free(ca);
    X509_free(cert);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_keylog_callback(context, forge_keylog);
}

static bool load(sr_buffer *set)
{
    char why[SR_KEYSET_WHY];
    return sr_tls_load(tls, sr_bytes_of(sr_buffer_at(set), sr_buffer_len(set)), why);
}

/* --- a connection --- */

static void pair_open(pair *p, int version)
{
    int fds[2], room = 1 << 20; /* each small record takes a kilobyte */
    memset(p, 0, sizeof *p);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    p->server = fds[0];
    p->client = fds[1];
    setsockopt(p->client, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    p->t = sr_tls_accept(tls, p->server);
    MUST(p->t);
    p->ssl = SSL_new(context);
    SSL_set_app_data(p->ssl, &p->forge);
    SSL_set_min_proto_version(p->ssl, version);
    SSL_set_max_proto_version(p->ssl, version);
    SSL_set_bio(p->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(p->ssl);
    MUST(SSL_set_cipher_list(p->ssl, by_openssl ? FORGE_CCM_12 : FORGE_GCM_12));
    MUST(SSL_set_ciphersuites(p->ssl, by_openssl ? FORGE_CCM_13 : FORGE_GCM_13));
}

static void pair_close(pair *p)
{
    sr_transport_free(p->t);
    SSL_free(p->ssl);
    close(p->server);
    close(p->client);
}

/* What the client's OpenSSL has made. */
static size_t made(pair *p, char *to)
{
    int n = BIO_read(SSL_get_wbio(p->ssl), to, BYTES);
    ERR_clear_error();
    return n > 0 ? (size_t)n : 0;
}

static size_t hello(pair *p, char *to)
{
    SSL_do_handshake(p->ssl);
    return made(p, to);
}

static void give(pair *p, const void *bytes, size_t len)
{
    MUST(send(p->client, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static void hear(pair *p)
{
    ssize_t n = recv(p->client, scratch, sizeof scratch, MSG_DONTWAIT);
    if (n > 0)
        BIO_write(SSL_get_rbio(p->ssl), scratch, (int)n);
}

static int server_step(pair *p)
{
    int err = p->t->ops->handshake(p->t, p->server);
    MUST(!ERR_peek_error());
    return err;
}

/* Both go on until the server is done, `piece` bytes at a time. Returns what the server says at the end. */
static int shake(pair *p, size_t piece)
{
    char bytes[BYTES];
    int err = EAGAIN;
    for (int i = 0; i < 10 && err == EAGAIN; i++) {
        hear(p);
        SSL_do_handshake(p->ssl);
        size_t len = made(p, bytes);
        for (size_t at = 0; at < len && err == EAGAIN; at += piece) {
            give(p, bytes + at, len - at < piece ? len - at : piece);
            err = server_step(p);
            if (err == EAGAIN && sr_transport_holds(p->t))
                return -1; /* nothing but more bytes can help */
        }
    }
    hear(p);
    return err;
}

/*
 * Opens a pair. What the client has to say at the end of its handshake, which the server does not have yet.
 */
static size_t last_flight(pair *p, int version, char to[BYTES])
{
    pair_open(p, version);
    give(p, to, hello(p, to));
    MUST(server_step(p) == EAGAIN);
    hear(p);
    SSL_do_handshake(p->ssl);
    return made(p, to);
}

static bool opened(pair *p, int version)
{
    pair_open(p, version);
    return shake(p, BYTES) == 0 && SSL_do_handshake(p->ssl) == 1;
}

static ssize_t server_read(pair *p, size_t len)
{
    ssize_t n = sr_transport_read(p->t, p->server, scratch, len);
    int err = errno;
    MUST(!ERR_peek_error());
    errno = err;
    return n;
}

/* --- tests --- */

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static const char *name_of(int version)
{
    return version == TLS1_2_VERSION ? "TLS 1.2" : "TLS 1.3";
}

static void cut(int version)
{
    char bytes[BYTES];
    size_t len = 1, wrong = 0, busy = 0, n = 0;
    for (size_t at = 0; at < len; at++, n++) {
        pair p;
        pair_open(&p, version);
        len = hello(&p, bytes);
        if (at)
            give(&p, bytes, at);
        wrong += server_step(&p) != EAGAIN;
        busy += sr_transport_holds(p.t);
        shutdown(p.client, SHUT_WR);
        wrong += server_step(&p) != ECONNRESET;
        pair_close(&p);
    }
    ok(n > 100 && !wrong, "%s: a hello cut at each of %zu bytes waits for more, and ends", name_of(version),
       n);
    ok(!busy, "%s: and asks for no turn meanwhile (%zu)", name_of(version), busy);
}

/* The socket takes no tickets any more; what was complete stays so, and has no reason why it has failed. */
static void gone(int version)
{
    char bytes[BYTES];
    pair p;
    give(&p, bytes, last_flight(&p, version, bytes));
    shutdown(p.client, SHUT_RDWR);
    ok(server_step(&p) == 0, "%s: a client that ends right behind its last message was let in",
       name_of(version));
    ok(server_read(&p, 10) < 0 && errno != EAGAIN, "%s: the first read fails", name_of(version));
    pair_close(&p);
}

static void changed(int version)
{
    char bytes[BYTES];
    size_t len = 1, wrong = 0, n = 0;
    for (size_t at = 0; at < len; at++, n++) {
        pair p;
        pair_open(&p, version);
        len = hello(&p, bytes);
        bytes[at] ^= (char)(1 + at % 255);
        give(&p, bytes, len);
        for (int i = 0; i < 3; i++)
            wrong += server_step(&p) == 0;
        shutdown(p.client, SHUT_WR);
        int err = server_step(&p);
        wrong += err == 0 || err == EAGAIN;
        pair_close(&p);
    }
    ok(n > 100 && !wrong, "%s: a hello changed at each byte never opens a connection", name_of(version));
}

/* OpenSSL reserves what is announced. Whole records, then one byte in each. */
static void announced(size_t size, bool fits)
{
    char whole[] = {22, 3, 1, 0, 4, 1, (char)(size >> 16), (char)(size >> 8), (char)size}, parts[4 * 6];
    pair p, q;
    for (int i = 0; i < 4; i++) {
        memcpy(parts + 6 * (size_t)i, "\x16\3\1\0\1", 5);
        parts[6 * i + 5] = whole[5 + i];
    }
    pair_open(&p, TLS1_3_VERSION);
    pair_open(&q, TLS1_3_VERSION);
    give(&p, whole, sizeof whole);
    ok((server_step(&p) == EAGAIN) == fits, "a hello of %zu bytes is %s", size, fits ? "awaited" : "refused");
    int err = EAGAIN;
    for (size_t i = 0; i < sizeof parts && err == EAGAIN; i++) {
        give(&q, parts + i, 1);
        err = server_step(&q);
    }
    ok((err == EAGAIN) == fits, "likewise if that comes byte by byte, in records of their own");
    pair_close(&p);
    pair_close(&q);
}

/*
 * Likewise the second hello, which HelloRetryRequest asks for: alone, and from a client that knows that it
 * will be asked.
 */
static void announced_again(size_t size, bool fits)
{
    const char whole[] = {20,        3, 3, 0, 1, 1, 22, 3, 3, 0, 4, 1, (char)(size >> 16), (char)(size >> 8),
                          (char)size};
    for (int at_once = 0; at_once < 2; at_once++) {
        char bytes[BYTES];
        pair p;
        pair_open(&p, TLS1_3_VERSION);
        MUST(
            SSL_set1_groups_list(p.ssl, "P-521:P-256")); /* it has a key for the first, which we don't take */
        size_t len = hello(&p, bytes);
        memcpy(bytes + len, whole, sizeof whole);
        give(&p, bytes, at_once ? len + sizeof whole : len);
        int err = server_step(&p);
        if (!at_once && err == EAGAIN) {
            give(&p, whole, sizeof whole);
            err = server_step(&p);
        }
        ok((err == EAGAIN) == fits, "a second hello of %zu bytes is %s%s", size, fits ? "awaited" : "refused",
           at_once ? ", though it is here already" : "");
        pair_close(&p);
    }
}

/* A second hello is read like the first. */
static void retried(void)
{
    pair p;
    pair_open(&p, TLS1_3_VERSION);
    MUST(SSL_set1_groups_list(p.ssl, "P-521:P-256"));
    is_int(shake(&p, 7), 0, "a handshake with HelloRetryRequest, in pieces, is completed");
    pair_close(&p);
}

static void in_bytes(int version)
{
    pair p;
    pair_open(&p, version);
    is_int(shake(&p, 1), 0, "a handshake byte by byte is completed, without a needless turn");
    pair_close(&p);
}

static void forged(pair *p, unsigned char type, const char *at, size_t len, int times)
{
    unsigned char records[BYTES];
    size_t all = 0;
    if (!p->forge.ready)
        forge_begin(&p->forge, p->ssl, 0);
    for (int i = 0; i < times && all + len + FORGE_MORE < sizeof records; i++)
        all += forge_record(&p->forge, type, at, len, records + all);
    give(p, records, all);
}

/* Records that carry nothing: a few are fine, also again and again between data; many are not. */
static void idle_records(int version, unsigned char type, const char *at, size_t len, const char *what)
{
    pair p;
    bool fine = opened(&p, version);
    for (int i = 0; i < 10; i++) {
        forged(&p, type, at, len, 10);
        fine = fine && server_read(&p, 100) == -1 && errno == EAGAIN;
        forged(&p, SSL3_RT_APPLICATION_DATA, "data", 4, 1);
        fine = fine && server_read(&p, 100) == 4;
    }
    ok(fine, "%s: ten at a time", what);
    while (recv(p.client, scratch, sizeof scratch, MSG_DONTWAIT) > 0)
        ;
    forged(&p, type, at, len, 500);
    ssize_t n = server_read(&p, 100);
    ok(n == -1 && errno == EPROTO, "%s: not hundreds", what);
    n = server_read(&p, 100);
    ok(n == -1 && errno == ECONNRESET, "%s: nothing is read any more", what);
    n = recv(p.client, scratch, sizeof scratch, MSG_DONTWAIT);
    ok(n < 2000, "%s: and not each was answered (%zd bytes)", what, n);
    pair_close(&p);
}

static void tiny_records(void)
{
    enum { TIMES = 4000 };
    pair p;
    bool fine = opened(&p, TLS1_3_VERSION);
    size_t all = 0, turns = 0, most = 0;
    for (int sent = 0; sent < TIMES; sent += 400) {
        forged(&p, SSL3_RT_APPLICATION_DATA, "x", 1, 400);
        for (ssize_t n; (n = server_read(&p, sizeof scratch)) > 0;) {
            turns++;
            all += (size_t)n;
            most = (size_t)n > most ? (size_t)n : most;
            if (!sr_transport_holds(p.t))
                break;
        }
    }
    ok(fine && all == TIMES, "records of one byte: all come (%zu in %zu turns)", all, turns);
    ok(most <= 128, "records of one byte: 128 at most in one turn (%zu)", most);
    pair_close(&p);
}

/* What stands for Finished is cut, or has empty records before it, as OpenSSL would take it (TLS 1.2). */
static void finished(const unsigned *cuts, unsigned n_cuts, const char *what)
{
    unsigned char message[4 + 12] = {SSL3_MT_FINISHED, 0, 0, 12}, flight[BYTES];
    char bytes[BYTES];
    pair p;
    size_t len = last_flight(&p, TLS1_2_VERSION, (char *)flight), record = 0, at = 0;
    while (record < len && flight[record] != SSL3_RT_CHANGE_CIPHER_SPEC)
        record += 5 + ((size_t)flight[record + 3] << 8 | flight[record + 4]);
    MUST(record + 6 < len && SSL_get_finished(p.ssl, message + 4, 12) == 12);
    give(&p, flight, record + 6);
    forge_begin(&p.forge, p.ssl, 0);
    p.forge.sequence = 0;
    for (unsigned i = 0; i < n_cuts; at += cuts[i++])
        forged(&p, SSL3_RT_HANDSHAKE, (char *)message + at, cuts[i], 1);
    forged(&p, SSL3_RT_HANDSHAKE, (char *)message + at, sizeof message - at, 1);
    ok(server_step(&p) == 0, "%s: completes the handshake", what);
    ok(sr_transport_moves(p.t) == !by_openssl, "%s: the keys are taken out of OpenSSL, if they can be", what);
    forged(&p, SSL3_RT_APPLICATION_DATA, "data", 4, 1);
    ok(server_read(&p, 100) == 4, "%s: the record behind it is read", what);
    ok(sr_transport_send(p.t, p.server, "back", 4, 0) == 4, "%s: and answered", what);
    hear(&p);
    ok(SSL_read(p.ssl, bytes, 100) == 4, "%s: as the client can read", what);
    ERR_clear_error();
    pair_close(&p);
}

/* Another edge goes on with it. */
static bool moved(pair *p)
{
    sr_buffer packed = {0};
    MUST(sr_transport_pack(p->t, &packed));
    sr_transport_free(p->t);
    p->t = sr_tls_adopt(sr_bytes_of(sr_buffer_at(&packed), sr_buffer_len(&packed)), p->server);
    sr_keyset_wipe(&packed);
    return p->t;
}

/*
 * A KeyUpdate in several records. `between`: what comes before the last of them, -1: nothing; the alert that
 * ends it
 */
static void parted(const char *message, size_t len, size_t first, int between, int end)
{
    pair p;
    bool fine = opened(&p, TLS1_3_VERSION);
    while (recv(p.client, scratch, sizeof scratch, MSG_DONTWAIT) > 0)
        ;
    for (size_t at = 0, some = first; at < len; at += some, some = 1) {
        if (between >= 0 && at + some >= len)
            forged(&p, (unsigned char)between, "\1\x5a", 2, 1);
        forged(&p, SSL3_RT_HANDSHAKE, message + at, some, 1);
        if (!at && some < len && !by_openssl)
            fine = fine && server_read(&p, 100) < 0 && errno == EAGAIN && moved(&p);
    }
    forge_expand(p.forge.secret, "traffic upd", p.forge.secret, sizeof p.forge.secret);
    forge_keys_13(&p.forge);
    forged(&p, SSL3_RT_APPLICATION_DATA, "data", 4, 1);
    ssize_t n = server_read(&p, 100);
    if (end)
        ok(fine && n < 0, "KeyUpdate in parts (%zu, %d, %d): is refused", first, between, end);
    else
        ok(fine && n == 4, "KeyUpdate in parts (%zu first): the next record is read", first);
    hear(&p);
    bool read = SSL_read(p.ssl, scratch, 100) > 0;
    int alert = read ? 0 : ERR_GET_REASON(ERR_peek_error()) - SSL_AD_REASON_OFFSET;
    if (end && !by_openssl) /* which has a different opinion of some */
        ok(alert == end, "KeyUpdate in parts (%zu, %d): the alert says why (%d)", first, between, alert);
    ok(end || SSL_get_error(p.ssl, -1) == SSL_ERROR_WANT_READ, "KeyUpdate in parts: no alert otherwise");
    if (!end)
        ok(sr_transport_send(p.t, p.server, "back", 4, 0) == 4, "KeyUpdate in parts: is answered");
    ERR_clear_error();
    pair_close(&p);
}

/*
 * A client that has its KeyUpdates answered and does not read: it is not read either, and no needless turn is
 * asked for.
 */
static void unread(void)
{
    pair p;
    bool fine = opened(&p, TLS1_3_VERSION);
    int little = 1, n = 0;
    ssize_t got = 0;
    setsockopt(p.server, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    for (; n < 10000 && got >= 0; n++) {
        forged(&p, SSL3_RT_HANDSHAKE, "\x18\0\0\1\1", 5, 1);
        forged(&p, SSL3_RT_APPLICATION_DATA, "x", 1, 3);
        got = server_read(&p, 1);
        for (int i = 0; i < 2 && got == 1; i++)
            got = server_read(&p, 1);
    }
    ok(fine && got < 0 && errno == EAGAIN && n < 10000,
       "replies that nobody reads: then nothing is read (%d)", n);
    is_int((int)sr_transport_events(p.t, EPOLLIN), EPOLLOUT,
           "and only a socket that takes them is waited for");
    ok(!sr_transport_holds(p.t), "though records are here");
    bool there = false;
    for (int i = 0; i < 1000 && !there; i++) {
        while (recv(p.client, scratch, sizeof scratch, MSG_DONTWAIT) > 0)
            ;
        there = server_read(&p, 1) == 1;
    }
    ok(there, "once the client reads, it is read");
    ok(sr_transport_events(p.t, EPOLLIN) & EPOLLIN, "and waited for");
    pair_close(&p);
}

static void large(int version)
{
    pair p;
    static char sent[900000], got[900000];
    size_t at = 0, in = 0, most = 0;
    bool fine = opened(&p, version);
    int small = 4096;
    setsockopt(p.server, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 31 + i / 251);
    for (int i = 0; i < 100000 && in < sizeof sent; i++) {
        ssize_t n = sr_transport_send(p.t, p.server, sent + at, sizeof sent - at, 0);
        fine = fine && (n >= 0 || errno == EAGAIN);
        at += n > 0 ? (size_t)n : 0;
        if (i % 3)
            continue;
        size_t some;
        hear(&p);
        while (SSL_read_ex(p.ssl, got + in, sizeof got - in, &some) == 1)
            in += some;
        most = in > at && in - at > most ? in - at : most;
        ERR_clear_error();
    }
    ok(fine && in == sizeof sent && memcmp(sent, got, in) == 0, "%s: 900,000 bytes to a slow reader",
       name_of(version));
    ok(most <= 65536, "%s: at most 64 KiB are encrypted before the socket takes them (%zu)", name_of(version),
       most);
    ok(at == in && !(sr_transport_events(p.t, 0) & EPOLLOUT), "%s: and then nothing waits", name_of(version));
    pair_close(&p);
}

/* A client that began before a reload, and asks for a name after it, gets tickets of the new set. */
static void reloaded(int version, bool certificate)
{
    char bytes[BYTES];
    pair p;
    MUST(load(&plain_set));
    pair_open(&p, version);
    SSL_set_tlsext_host_name(p.ssl, "a.test");
    if (certificate)
        MUST(SSL_use_certificate(p.ssl, client_cert) && SSL_use_PrivateKey(p.ssl, client_key));
    size_t len = hello(&p, bytes);
    give(&p, bytes, 40);
    MUST(server_step(&p) == EAGAIN);
    MUST(load(&required_set));
    give(&p, bytes + 40, len - 40);
    MUST(server_step(&p) == EAGAIN);
    int err = shake(&p, BYTES);
    SSL_do_handshake(p.ssl);
    ERR_clear_error();
    if (certificate)
        ok(!err, "%s: a reload that requires certificates, one that has it", name_of(version));
    else
        ok(err && err != EAGAIN, "%s: a reload that requires certificates, one that has none",
           name_of(version));
    pair_close(&p);
    MUST(load(&plain_set));
}

static void strangers(int version)
{
    pair good, bad;
    bool fine = opened(&good, version) && opened(&bad, version);
    give(&bad, "\x17\x03\x03\x00\x40", 5);
    memset(scratch, 0, 64);
    give(&bad, scratch, 64);
    ssize_t n = server_read(&bad, 100);
    ok(fine && n == -1 && errno != EAGAIN, "%s: a forged record ends its connection", name_of(version));
    n = server_read(&good, 100);
    ok(n == -1 && errno == EAGAIN, "%s: and no other", name_of(version));
    pair_close(&bad);
    pair_close(&good);
}

int main(void)
{
    tls = sr_tls_new(false);
    make();
    MUST(load(&plain_set));
    for (int i = 0; i < 2; i++) {
        cut(versions[i]);
        changed(versions[i]);
        in_bytes(versions[i]);
        reloaded(versions[i], false);
        reloaded(versions[i], true);
    }
    for (int i = 0; i < 2; i++) {
        by_openssl = i;
        printf("# %s\n", by_openssl ? "encrypted by OpenSSL" : "encrypted by records.c");
        gone(TLS1_2_VERSION);
        gone(TLS1_3_VERSION);
        large(TLS1_2_VERSION);
        large(TLS1_3_VERSION);
        strangers(TLS1_2_VERSION);
        strangers(TLS1_3_VERSION);
        idle_records(TLS1_3_VERSION, SSL3_RT_HANDSHAKE, "\x18\0\0\1\1", 5, "KeyUpdates that want another");
        idle_records(TLS1_3_VERSION, SSL3_RT_HANDSHAKE, "\x18\0\0\1\0", 5, "KeyUpdates");
        idle_records(TLS1_2_VERSION, SSL3_RT_HANDSHAKE, "\1\0\0\0", 4, "attempts to renegotiate");
        idle_records(TLS1_3_VERSION, SSL3_RT_APPLICATION_DATA, "", 0, "empty records");
        idle_records(TLS1_2_VERSION, SSL3_RT_APPLICATION_DATA, "", 0, "empty records");
        tiny_records();
        finished(NULL, 0, "Finished in one record");
        finished((const unsigned[]){7}, 1, "Finished in two records");
        finished((const unsigned[]){1, 1, 1, 1, 5}, 5, "Finished in six records");
        finished((const unsigned[]){0, 0, 0}, 3, "Finished behind empty records");
        parted("\x18\0\0\1\1", 5, 1, -1, 0);
        parted("\x18\0\0\1\1", 5, 4, -1, 0);
        parted("\x18\0\0\1\0", 5, 2, SSL3_RT_APPLICATION_DATA, SSL_AD_UNEXPECTED_MESSAGE);
        if (!by_openssl) /* which reads on behind a warning */
            parted("\x18\0\0\1\0", 5, 2, SSL3_RT_ALERT, SSL_AD_UNEXPECTED_MESSAGE);
        parted("\x18\0\0\1\2", 5, 2, -1, SSL_AD_ILLEGAL_PARAMETER);
        parted("\x18\0\0\1\2", 5, 5, -1, SSL_AD_ILLEGAL_PARAMETER);
        parted("\x18\0\0\2\0\0", 6, 3, -1, SSL_AD_DECODE_ERROR);
    }
    by_openssl = false;
    announced(16 * 1024, true);
    announced(16 * 1024 + 1, false);
    announced(131072, false);
    announced_again(16 * 1024, true);
    announced_again(16 * 1024 + 1, false);
    retried();
    unread();
    sr_tls_free(tls);
    sr_keyset_wipe(&plain_set);
    sr_keyset_wipe(&required_set);
    SSL_CTX_free(context);
    EVP_PKEY_free(client_key);
    X509_free(client_cert);
    return done_testing();
}

#endif
