/*
 * transport: an edge that speaks TLS, with clients of OpenSSL whose bytes reach it in pieces, changed, twice
 * or not at all, and with other bytes between them; that write, end, change keys and stop reading at any
 * moment; while workers answer, stream, send files and use psgix.io, other certificates are loaded, and time
 * goes by.
 *
 * What the edge reads is a prefix of what the client has written, and what the client reads is a prefix of
 * what the edge has written; of connections that nobody has tampered with it is all, once everybody has read.
 * The edge comes to rest when nothing comes. No error of OpenSSL is left for another connection. After that
 * comes an honest client, which is served. At the end no connection, no slot, no descriptor and no byte of
 * memory is missing.
 * Judges: src/transport/records.c src/transport/tls.c src/transport/tlsset.c src/conn/handshake.c
 * src/conn/pump.c src/conn/relay.c
 *
 * Input: operations, a byte each with the bytes that it needs after it; see tls_operation. Random numbers of
 * OpenSSL depend on the input alone.
 */
#ifdef SR_TLS

#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_set_rand_method: for numbers that are the same each time */
#include "edge/edge.h"
#include "share/memory.h"

#include "age.h"
#include "conn/deadline.h"
#include "conn/handshake.h"
#include "conn/pump.h"
#include "edge/crew.h"
#include "forge.h"
#include "share/door.h"
#include "share/reply.h"
#include "transport/records.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TLS_CLIENTS = 3,
    TLS_ROWS = 2, /* workers */
    TLS_TUNNELS = 3,
    TLS_SETS = 4,
    TLS_FILE = 150000,
    TLS_BYTES = 200000, /* that a client has not sent, by operations that make more of them */
    TLS_REST = 3000,    /* steps after which an edge that gets nothing new has to be at rest */
};

#define TLS_CIPHERS_12                                                                                       \
    FORGE_GCM_12 ":" FORGE_CCM_12 ":ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384"
#define TLS_CIPHERS_13 FORGE_GCM_13 ":" FORGE_CCM_13 ":TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"

typedef struct tls_input {
    const uint8_t *at, *end;
} tls_input;

/* One connection, as its client and as the transport in the edge see it. Freed when both have left. */
typedef struct tls_client {
    SSL *ssl;
    forge forge;         /* once it sends records of its own */
    uint64_t records;    /* of application data that OpenSSL has made since the handshake */
    int fd;              /* the client's socket; -1: closed */
    struct tls_spy *spy; /* NULL: the edge has freed the transport */
    sr_buffer bytes;     /* ciphertext that the client has made, not yet sent */
    sr_buffer said;      /* plaintext that the client has written */
    size_t heard;        /* bytes of it that the edge has read */
    sr_buffer written;   /* plaintext that the edge has written */
    sr_buffer offered;   /* what it has offered in its last write beyond that, which may be on its way */
    sr_buffer got;       /* plaintext that the client has read */
    size_t compared;     /* bytes of `written` and `got` that are the same */
    bool updated;        /* it has changed its keys, which forge.h does not know */
    bool tampered;       /* the edge does not get what the client has sent, or time has gone by */
    bool dead;           /* the client has had an error, or has ended its side */
} tls_client;

typedef struct tls_spy {
    sr_transport base; /* must be first */
    sr_transport *inner;
    int socket; /* of the server */
    tls_client *client;
} tls_spy;

/* One end of psgix.io. */
typedef struct tls_tunnel {
    int fd;             /* -1: none */
    tls_client *client; /* NULL: freed */
    size_t up, down;    /* where it begins in what the client said, and in what the edge has written */
    size_t taken;       /* bytes that the application has read */
    sr_buffer sent;     /* what it has written */
    bool mixed;         /* the application has answered as well */
} tls_tunnel;

typedef struct tls_worker {
    int line;
    sr_consumer consumer;
    uint64_t number; /* of the request that it has; 0: none */
    uint32_t slot;
    bool headed;
    tls_tunnel tunnel;
} tls_worker;

static sr_edge *tls_edge;
static uint64_t tls_lobby;
static int tls_file;
static tls_worker tls_workers[TLS_ROWS];
static tls_client *tls_clients[TLS_CLIENTS];
static tls_tunnel tls_tunnels[TLS_TUNNELS];
static sr_buffer tls_sets[TLS_SETS];
static unsigned tls_set;
static SSL_CTX *tls_context;
static EVP_PKEY *tls_key;
static X509 *tls_good, *tls_bad; /* certificates of clients */
static SSL_SESSION *tls_session;
static char tls_pattern[65 * 1024]; /* an application writes up to 64 KiB of it, from anywhere in the first */

static uint8_t tls_byte(tls_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static sr_bytes tls_bytes(tls_input *in)
{
    size_t len = tls_byte(in);
    if (len > (size_t)(in->end - in->at))
        len = (size_t)(in->end - in->at);
    in->at += len;
    return sr_bytes_of((const char *)in->at - len, len);
}

/* 0 to 255, then in steps of 256 */
static size_t tls_size(tls_input *in)
{
    uint8_t byte = tls_byte(in);
    return byte < 128 ? byte : (size_t)(byte - 127) * 512;
}

/* --- numbers that are the same each time --- */

static fuzz_random tls_random;

static int tls_random_bytes(unsigned char *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (unsigned char)fuzz_below(&tls_random, 256);
    return 1;
}

static int tls_random_status(void)
{
    return 1;
}

/* --- the transport between connection and TLS, which remembers what goes through --- */

/* What both have of the stream has to be the same. */
static void tls_compare(tls_client *k)
{
    size_t n = sr_buffer_len(&k->written), got = sr_buffer_len(&k->got);
    size_t both = n < got ? n : got, from = k->compared;
    if (both > from)
        MUST(memcmp(sr_buffer_at(&k->written) + from, sr_buffer_at(&k->got) + from, both - from) == 0);
    k->compared = both;
    if (got > n) { /* encrypted, and not counted as written */
        MUST(got - n <= sr_buffer_len(&k->offered));
        MUST(memcmp(sr_buffer_at(&k->got) + n, sr_buffer_at(&k->offered), got - n) == 0);
    }
}

static void tls_client_free(tls_client *k)
{
    for (unsigned i = 0; i < TLS_TUNNELS; i++)
        if (tls_tunnels[i].client == k)
            tls_tunnels[i].client = NULL;
    for (unsigned i = 0; i < TLS_ROWS; i++)
        if (tls_workers[i].tunnel.client == k)
            tls_workers[i].tunnel.client = NULL;
    SSL_free(k->ssl);
    sr_buffer_free(&k->bytes);
    sr_buffer_free(&k->said);
    sr_buffer_free(&k->written);
    sr_buffer_free(&k->offered);
    sr_buffer_free(&k->got);
    free(k);
}

static tls_spy *tls_spy_of(sr_transport *t)
{
    return (tls_spy *)t;
}

static int tls_spy_handshake(sr_transport *t, int socket)
{
    return tls_spy_of(t)->inner->ops->handshake(tls_spy_of(t)->inner, socket);
}

static sr_failure tls_spy_failure(const sr_transport *t, const char **words)
{
    const tls_spy *s = (const tls_spy *)t;
    sr_failure why = s->inner->ops->failure(s->inner, words);
    MUST(why < SR_FAILURES && **words);
    return why;
}

static ssize_t tls_spy_read(sr_transport *t, int socket, void *to, size_t len)
{
    tls_client *k = tls_spy_of(t)->client;
    ssize_t n = tls_spy_of(t)->inner->ops->read(tls_spy_of(t)->inner, socket, to, len);
    if (n > 0) {
        MUST((size_t)n <= sr_buffer_len(&k->said) - k->heard);
        MUST(memcmp(to, sr_buffer_at(&k->said) + k->heard, (size_t)n) == 0);
        k->heard += (size_t)n;
    }
    return n;
}

static ssize_t tls_spy_write(sr_transport *t, int socket, const struct iovec *iov, int n, int flags)
{
    tls_client *k = tls_spy_of(t)->client;
    ssize_t put = tls_spy_of(t)->inner->ops->write(tls_spy_of(t)->inner, socket, iov, n, flags);
    int err = errno;
    size_t taken = put > 0 ? (size_t)put : 0;
    sr_buffer_reset(&k->offered);
    for (int i = 0; i < n; i++) {
        size_t some = taken < iov[i].iov_len ? taken : iov[i].iov_len;
        if (some)
            sr_buffer_add(&k->written, iov[i].iov_base, some);
        if (some < iov[i].iov_len)
            sr_buffer_add(&k->offered, (const char *)iov[i].iov_base + some, iov[i].iov_len - some);
        taken -= some;
    }
    MUST(!taken);
    tls_compare(k);
    errno = err;
    return put;
}

static bool tls_spy_holds(const sr_transport *t)
{
    const tls_spy *s = (const tls_spy *)t;
    return s->inner->ops->holds(s->inner);
}

static bool tls_spy_unsent(const sr_transport *t)
{
    const tls_spy *s = (const tls_spy *)t;
    return s->inner->ops->unsent(s->inner);
}

static bool tls_spy_clogged(const sr_transport *t)
{
    const tls_spy *s = (const tls_spy *)t;
    return s->inner->ops->clogged(s->inner);
}

static ssize_t tls_spy_peek(sr_transport *t, int socket)
{
    return tls_spy_of(t)->inner->ops->peek(tls_spy_of(t)->inner, socket);
}

static int tls_spy_end(sr_transport *t, int socket)
{
    return tls_spy_of(t)->inner->ops->end(tls_spy_of(t)->inner, socket);
}

static sr_bytes tls_spy_facts(const sr_transport *t)
{
    const tls_spy *s = (const tls_spy *)t;
    return s->inner->ops->facts(s->inner);
}

static bool tls_spy_pack(const sr_transport *t, sr_buffer *to)
{
    const tls_spy *s = (const tls_spy *)t;
    return s->inner->ops->pack && s->inner->ops->pack(s->inner, to);
}

/* As if another edge went on with the connection. */
static void tls_spy_move(tls_spy *s)
{
    sr_buffer packed = {0};
    if (tls_spy_pack(&s->base, &packed)) {
        s->inner->ops->free(s->inner);
        s->inner = sr_records_unpack(sr_bytes_of(sr_buffer_at(&packed), sr_buffer_len(&packed)), s->socket);
        MUST(s->inner);
    }
    sr_buffer_free(&packed);
}

static void tls_spy_free(sr_transport *t)
{
    tls_spy *s = tls_spy_of(t);
    s->client->spy = NULL;
    if (s->client->fd < 0)
        tls_client_free(s->client);
    s->inner->ops->free(s->inner);
    free(s);
}

static bool tls_spy_ends(const sr_transport *t)
{
    const tls_spy *s = (const tls_spy *)t;
    return s->inner->ops->ends && s->inner->ops->ends(s->inner);
}

static const sr_transport_ops tls_spy_ops = {
    .handshake = tls_spy_handshake,
    .failure = tls_spy_failure,
    .ends = tls_spy_ends,
    .read = tls_spy_read,
    .write = tls_spy_write,
    .holds = tls_spy_holds,
    .unsent = tls_spy_unsent,
    .clogged = tls_spy_clogged,
    .peek = tls_spy_peek,
    .end = tls_spy_end,
    .facts = tls_spy_facts,
    .pack = tls_spy_pack,
    .free = tls_spy_free,
};

/* --- once --- */

static X509 *tls_certificate(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *with)
{
    X509 *cert = X509_new();
    static long serial;
    MUST(cert && X509_set_version(cert, X509_VERSION_3) && X509_set_pubkey(cert, key));
    MUST(ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial));
    MUST(X509_gmtime_adj(X509_getm_notBefore(cert), -86400));
    MUST(X509_gmtime_adj(X509_getm_notAfter(cert), 86400 * 30));
    X509_NAME *subject = X509_NAME_new();
    MUST(subject &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0));
    MUST(X509_set_subject_name(cert, subject));
    MUST(X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : subject));
    X509_NAME_free(subject);
    if (!issuer) {
        X509_EXTENSION *ca = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
        MUST(ca && X509_add_ext(cert, ca, -1));
        X509_EXTENSION_free(ca);
    }
    MUST(X509_sign(cert, with, EVP_sha256()));
    return cert;
}

static void tls_set_add(sr_buffer *set, sr_keyset_kind kind, X509 *cert, EVP_PKEY *key)
{
    BIO *to = BIO_new(BIO_s_mem());
    char *at;
    MUST(to &&
         (key ? PEM_write_bio_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) : PEM_write_bio_X509(to, cert)));
    long n = BIO_get_mem_data(to, &at);
    MUST(sr_keyset_add(set, kind, sr_bytes_of(at, (size_t)n)));
    BIO_free(to);
}

/* Of one certificate; with two and a CA of clients; with that CA required; TLS 1.3 only. */
static void tls_sets_make(void)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    MUST(ca_key && key && (tls_key = EVP_EC_gen("P-256")));
    X509 *ca = tls_certificate(ca_key, "ca", NULL, ca_key);
    X509 *a = tls_certificate(key, "a.test", ca, ca_key), *b = tls_certificate(key, "*.b.test", ca, ca_key);
    sr_ticket_key ticket = {.since = 1, .name = "ticket", .cipher = "cipher", .mac = "mac"};
    ticket.since = time(NULL) - 1;
    tls_good = tls_certificate(tls_key, "client", ca, ca_key);
    tls_bad = tls_certificate(tls_key, "nobody", NULL, tls_key);
    for (unsigned i = 0; i < TLS_SETS; i++) {
        sr_buffer *set = &tls_sets[i];
        MUST(sr_keyset_begin(set));
        tls_set_add(set, SR_KEYSET_CERT, a, NULL);
        tls_set_add(set, SR_KEYSET_KEY, NULL, key);
        if (i) {
            tls_set_add(set, SR_KEYSET_CERT, b, NULL);
            tls_set_add(set, SR_KEYSET_KEY, NULL, key);
        }
        if (i == 1 || i == 2) {
            tls_set_add(set, SR_KEYSET_CA, ca, NULL);
            MUST(sr_keyset_add(set, SR_KEYSET_VERIFY, i == 1 ? SR_BYTES("optional") : SR_BYTES("required")));
        }
        MUST(i != 3 || sr_keyset_add(set, SR_KEYSET_MIN, SR_BYTES("1.3")));
        MUST(sr_keyset_add(set, SR_KEYSET_CIPHERS, SR_BYTES(TLS_CIPHERS_12 ":" TLS_CIPHERS_13)));
        MUST(sr_keyset_add(set, SR_KEYSET_TICKET, sr_bytes_of((const char *)&ticket, sizeof ticket)));
    }
    X509_free(ca);
    X509_free(a);
    X509_free(b);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
}

static void tls_load(unsigned which)
{
    char why[SR_KEYSET_WHY];
    sr_buffer *set = &tls_sets[which % TLS_SETS];
    MUST(sr_tls_load(tls_edge->engine->tls, sr_bytes_of(sr_buffer_at(set), sr_buffer_len(set)), why));
    tls_set = which % TLS_SETS;
}

static void tls_settings(sr_setup *s)
{
    sr_setup_init(s);
    s->report = open("/dev/null", O_WRONLY | O_CLOEXEC);
    s->config = (sr_config){.request = {.line = 200, .head = 20000, .fields = 30},
                            .max_body = 30000,
                            .body_memory = 10000,
                            .header_ns = 30 * SR_SECOND,
                            .idle_ns = 30 * SR_SECOND,
                            .body_ns = 30 * SR_SECOND,
                            .write_ns = 5 * SR_SECOND,
                            .linger_ns = 2 * SR_SECOND,
                            .handshake_ns = 5 * SR_SECOND,
                            .request_ns = 8 * SR_SECOND,
                            .stream_ns = 8 * SR_SECOND,
                            .queue_ns = 4 * SR_SECOND,
                            .keepalive = true,
                            .max_connections = 100,
                            .max_queue = 20,
                            .report_fd = -1,
                            .tmpdir = "/tmp"};
}

static void tls_steps(int n)
{
    while (n-- > 0) {
        MUST(sr_edge_step(tls_edge, false));
        MUST(!ERR_peek_error());
    }
}

/* All are this process, which may have one row only: so the others are not it for a moment. */
static void tls_hello(uint32_t row)
{
    tls_worker *w = &tls_workers[row];
    int fds[SR_MESSAGE_FDS], n = 0;
    sr_message note = {.kind = SR_MESSAGE_HELLO, .row = row};
    for (uint32_t i = 0; i < TLS_ROWS; i++)
        tls_edge->workers[i].pid = i == row ? getpid() : -1;
    *w = (tls_worker){.tunnel.fd = -1};
    MUST(sr_door_enter(tls_lobby, &w->line) == 0);
    MUST(sr_door_send(w->line, &note, fds, 0, false) == 0);
    tls_steps(1);
    MUST(sr_door_receive(w->line, &note, fds, &n, false) == 0 && n == SR_MESSAGE_FDS);
    MUST(sr_consumer_open(&w->consumer, fds[0], fds[1], fds[2], row) == 0);
    while (n > 0)
        close(fds[--n]);
    for (uint32_t i = 0; i < TLS_ROWS; i++)
        tls_edge->workers[i].pid = getpid();
}

static void tls_open(void)
{
    static const RAND_METHOD method = {
        .bytes = tls_random_bytes, .pseudorand = tls_random_bytes, .status = tls_random_status};
    int lobby, sleepers;
    sr_setup s;
    MUST(RAND_set_rand_method(&method));
    tls_sets_make();
    tls_settings(&s);
    sr_sleepers *beds = sr_memory_new("sleepers", SR_SLEEPERS_BYTES, &sleepers);
    MUST(beds && sr_door_lobby(&lobby) == 0);
    sr_sleepers_init(beds, TLS_ROWS);
    s.sleepers = sleepers;
    s.lobby = lobby;
    s.listeners[0].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* nobody connects */
    s.listeners[0].is_unix = true;
    s.n_listeners = 1;
    MUST(sr_edge_new(&tls_edge, &s) == 0);
    MUST(tls_edge->engine->tls || (tls_edge->engine->tls = sr_tls_new(false)));
    tls_lobby = sr_door_name(lobby);
    tls_load(0);
    tls_context = SSL_CTX_new(TLS_client_method());
    MUST(tls_context);
    SSL_CTX_set_mode(tls_context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(tls_context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_keylog_callback(tls_context, forge_keylog);
    for (size_t i = 0; i < sizeof tls_pattern; i++)
        tls_pattern[i] = (char)(i * 31 + i / 251);
    tls_file = memfd_create("file", MFD_CLOEXEC);
    MUST(tls_file >= 0);
    for (int left = TLS_FILE; left > 0; left -= (int)sizeof tls_pattern)
        MUST(write(tls_file, tls_pattern, sizeof tls_pattern) == (ssize_t)sizeof tls_pattern);
    for (int i = 0; i < TLS_TUNNELS; i++)
        tls_tunnels[i].fd = -1;
    tls_steps(1);
    for (uint32_t i = 0; i < TLS_ROWS; i++)
        tls_hello(i);
}

/* --- clients --- */

/* Moves what the client's OpenSSL has made to `bytes`. */
static void tls_collect(tls_client *k)
{
    char *at;
    long n = BIO_get_mem_data(SSL_get_wbio(k->ssl), &at);
    if (n > 0)
        sr_buffer_add(&k->bytes, at, (size_t)n);
    (void)BIO_reset(SSL_get_wbio(k->ssl));
    ERR_clear_error();
}

static void tls_client_close(tls_client **at)
{
    tls_client *k = *at;
    *at = NULL;
    if (!k)
        return;
    close(k->fd);
    k->fd = -1;
    if (!k->spy)
        tls_client_free(k);
}

static void tls_names(SSL *ssl, unsigned which, tls_input *in)
{
    static const unsigned char http[] = "\x08http/1.1", h2[] = "\x02h2\x08http/1.1", none[] = "\x02h2";
    switch (which % 8) {
    case 0:
        break;
    case 1:
        SSL_set_tlsext_host_name(ssl, "a.test");
        SSL_set_alpn_protos(ssl, http, sizeof http - 1);
        break;
    case 2:
        SSL_set_tlsext_host_name(ssl, "X.b.test.");
        break;
    case 3: {
        char name[256];
        sr_bytes bytes = tls_bytes(in);
        memcpy(name, bytes.at, bytes.len);
        name[bytes.len] = '\0';
        SSL_set_tlsext_host_name(ssl, name);
        break;
    }
    case 4:
        SSL_set_alpn_protos(ssl, h2, sizeof h2 - 1);
        break;
    case 5:
        SSL_set_alpn_protos(ssl, none, sizeof none - 1);
        break;
    case 6: {
        sr_bytes bytes = tls_bytes(in);
        SSL_set_alpn_protos(ssl, (const unsigned char *)bytes.at, (unsigned)bytes.len);
        break;
    }
    default:
        SSL_set_tlsext_host_name(ssl, ".b.test");
        break;
    }
}

static void tls_ciphers(SSL *ssl, unsigned which)
{
    static const char *const ciphers[][2] = {
        {FORGE_GCM_12, FORGE_GCM_13},
        {FORGE_CCM_12, FORGE_CCM_13}, /* which stays with OpenSSL */
        {"ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_CHACHA20_POLY1305_SHA256"},
        {"ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_AES_256_GCM_SHA384"},
    };
    MUST(SSL_set_cipher_list(ssl, ciphers[which % 4][0]) && SSL_set_ciphersuites(ssl, ciphers[which % 4][1]));
}

/*
 * `how`: 1 TLS 1.2, 2 TLS 1.3, 4 a good certificate, 8 one that nobody knows, 16 the last session, 32 the
 * PROXY protocol, 64 and 128 the cipher
 */
static tls_client *tls_connect(unsigned how, unsigned names, tls_input *in)
{
    sr_engine *e = tls_edge->engine;
    tls_client *k = calloc(1, sizeof *k);
    tls_spy *spy = calloc(1, sizeof *spy);
    int pair[2], small = 8192; /* a response is soon larger than what fits */
    MUST(k && spy && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    k->fd = pair[1];
    k->ssl = SSL_new(tls_context);
    MUST(k->ssl);
    SSL_set_bio(k->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(k->ssl);
    SSL_set_app_data(k->ssl, &k->forge);
    SSL_set_min_proto_version(k->ssl, how & 2 ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_set_max_proto_version(k->ssl, how & 1 ? TLS1_2_VERSION : TLS1_3_VERSION);
    if (how & 12)
        MUST(SSL_use_certificate(k->ssl, how & 4 ? tls_good : tls_bad) &&
             SSL_use_PrivateKey(k->ssl, tls_key));
    if (how & 16 && tls_session)
        SSL_set_session(k->ssl, tls_session);
    tls_ciphers(k->ssl, how / 64);
    tls_names(k->ssl, names, in);
    ERR_clear_error();
    SSL_do_handshake(k->ssl);
    tls_collect(k);

    sr_conn *c = sr_conn_new(pair[0], &(sr_peer){0}, 0);
    MUST(c);
    sr_conn_enter(e, c);
    c->proxy_header = how & 32;
    spy->inner = sr_tls_accept(e->tls, pair[0]);
    MUST(spy->inner);
    spy->base.ops = &tls_spy_ops;
    spy->socket = pair[0];
    spy->client = k;
    k->spy = spy;
    c->transport = &spy->base;
    sr_handshake_begin(e, c);
    if (how & 32)
        MUST(send(k->fd, "PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n", 33, MSG_NOSIGNAL) == 33);
    return k;
}

/* Sends up to n bytes of what the client has made. */
static size_t tls_give(tls_client *k, size_t n)
{
    size_t len = sr_buffer_len(&k->bytes);
    ssize_t put = len ? send(k->fd, sr_buffer_at(&k->bytes), n < len ? n : len, MSG_NOSIGNAL) : 0;
    if (put <= 0)
        return 0;
    sr_buffer_take(&k->bytes, (size_t)put);
    return (size_t)put;
}

/* Lets the client read up to n bytes from its socket. */
static size_t tls_get(tls_client *k, size_t n)
{
    static char bytes[65536];
    ssize_t some = recv(k->fd, bytes, n < sizeof bytes ? n : sizeof bytes, MSG_DONTWAIT);
    if (some > 0)
        BIO_write(SSL_get_rbio(k->ssl), bytes, (int)some);
    size_t len;
    while (!k->dead) {
        bool begun = SSL_is_init_finished(k->ssl);
        int r = begun ? SSL_read_ex(k->ssl, bytes, sizeof bytes, &len) : SSL_do_handshake(k->ssl);
        if (r == 1 && begun) {
            sr_buffer_add(&k->got, bytes, len);
            tls_compare(k);
        } else if (r != 1) {
            k->dead = SSL_get_error(k->ssl, r) != SSL_ERROR_WANT_READ;
            if (k->dead && SSL_get_shutdown(k->ssl) & SSL_RECEIVED_SHUTDOWN && !k->tampered)
                MUST(sr_buffer_len(&k->got) >= sr_buffer_len(&k->written)); /* close_notify comes last */
            break;
        }
    }
    tls_collect(k);
    return some > 0 ? (size_t)some : 0;
}

static void tls_write(tls_client *k, const char *at, size_t len)
{
    size_t put;
    if (k->dead || k->forge.ready || !SSL_is_init_finished(k->ssl) ||
        SSL_get_shutdown(k->ssl) & SSL_SENT_SHUTDOWN)
        return;
    while (len && SSL_write_ex(k->ssl, at, len, &put) == 1) {
        k->records++;
        sr_buffer_add(&k->said, at, put);
        at += put;
        len -= put;
    }
    tls_collect(k);
}

static void tls_request(tls_client *k, unsigned which)
{
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /c HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /l HTTP/1.1\r\nHost: a\r\nContent-Length: 12000\r\n\r\n",
        "GET /bad\r\n\r\n",
    };
    which %= sizeof texts / sizeof *texts;
    tls_write(k, texts[which], strlen(texts[which]));
    if (which == 6)
        tls_write(k, tls_pattern, 12000);
}

static void tls_control(tls_client **at, tls_input *in)
{
    tls_client *k = *at;
    bool begun = !k->dead && !k->forge.ready && SSL_is_init_finished(k->ssl) && !SSL_get_shutdown(k->ssl);
    switch (tls_byte(in) % 10) {
    case 0:
        if (begun) {
            SSL_shutdown(k->ssl);
            tls_collect(k);
        }
        break;
    case 1:
        shutdown(k->fd, SHUT_WR);
        k->tampered = true;
        break;
    case 2:
    case 3:
        if (begun) {
            if (tls_session)
                SSL_SESSION_free(tls_session);
            tls_session = SSL_get1_session(k->ssl);
        }
        if (!k->dead && SSL_get_shutdown(k->ssl) == 0 && begun)
            SSL_set_shutdown(k->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* or it cannot be resumed */
        tls_client_close(at);
        break;
    case 4:
    case 5:
        if (begun && SSL_version(k->ssl) == TLS1_3_VERSION) {
            bool asks = tls_byte(in) & 1;
            SSL_key_update(k->ssl, asks ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
            SSL_do_handshake(k->ssl);
            tls_collect(k);
            k->updated = true;
        }
        break;
    case 6:
        if (begun && SSL_version(k->ssl) == TLS1_2_VERSION) {
            SSL_renegotiate(k->ssl);
            SSL_do_handshake(k->ssl);
            tls_collect(k);
            k->tampered = true;
        }
        break;
    case 7: /* lost */
        k->tampered = k->tampered || sr_buffer_len(&k->bytes);
        sr_buffer_reset(&k->bytes);
        break;
    case 8: { /* twice */
        size_t len = sr_buffer_len(&k->bytes);
        char *copy = len ? fuzz_copy(sr_buffer_at(&k->bytes), len) : NULL;
        if (len && len < TLS_BYTES)
            sr_buffer_add(&k->bytes, copy, len);
        free(copy);
        k->tampered = true;
        break;
    }
    default:
        shutdown(k->fd, SHUT_RD);
        k->tampered = true;
        break;
    }
    ERR_clear_error();
}

static void tls_flip(tls_client *k, tls_input *in)
{
    size_t len = sr_buffer_len(&k->bytes), at = tls_size(in);
    uint8_t with = tls_byte(in);
    if (at >= len || !with)
        return;
    sr_buffer_at(&k->bytes)[at] ^= (char)with;
    k->tampered = true;
}

static void tls_raw(tls_client *k, tls_input *in)
{
    sr_bytes bytes = tls_bytes(in);
    if (bytes.len && send(k->fd, bytes.at, bytes.len, MSG_NOSIGNAL) > 0)
        k->tampered = true;
}

/* Records of any type, of a client whose handshake is complete. The same one up to 64 times. */
static void tls_forge(tls_client *k, tls_input *in)
{
    static const unsigned char types[] = {SSL3_RT_APPLICATION_DATA, SSL3_RT_HANDSHAKE, SSL3_RT_ALERT,
                                          SSL3_RT_CHANGE_CIPHER_SPEC};
    static unsigned char record[FORGE_RECORD + FORGE_MORE];
    uint8_t what = tls_byte(in);
    unsigned char type = what % 8 < 7 ? types[what % 8 % 4] : tls_byte(in);
    sr_bytes bytes = tls_bytes(in);
    if (what % 8 == 5)
        bytes = SR_BYTES("\x18\0\0\1\1"); /* KeyUpdate */
    if (k->dead || k->updated || !SSL_is_init_finished(k->ssl) || SSL_get_shutdown(k->ssl))
        return;
    if (!forge_can(k->ssl))
        return;
    if (!k->forge.ready)
        forge_begin(&k->forge, k->ssl, k->records);
    for (int n = what / 8 * 2; n >= 0 && sr_buffer_len(&k->bytes) < TLS_BYTES; n--) {
        sr_buffer_add(&k->bytes, record, forge_record(&k->forge, type, bytes.at, bytes.len, record));
        size_t len = bytes.len;
        if (forge_meaning(&k->forge, type, bytes.at, &len) == SSL3_RT_APPLICATION_DATA && len)
            sr_buffer_add(&k->said, bytes.at, len);
    }
    k->tampered = true;
    ERR_clear_error();
}

/* --- workers --- */

static bool tls_say(tls_worker *w, uint16_t kind, uint16_t flags, const void *payload, size_t len)
{
    sr_record *r = sr_ring_reserve(w->consumer.ring, len);
    if (!r)
        return false;
    *r = (sr_record){.kind = kind, .flags = flags, .number = w->number, .slot = w->slot};
    memcpy(r + 1, payload, len);
    sr_ring_commit(w->consumer.ring, r, len);
    atomic_fetch_or(&tls_edge->queue.replies->replied[0], UINT64_C(1) << (w - tls_workers));
    return true;
}

static bool tls_head(tls_worker *w, uint16_t kind, uint16_t status, uint64_t length, sr_bytes body,
                     uint16_t flags)
{
    char payload[12000];
    sr_reply_head h = {.status = status, .length = length, .app_length = SR_REPLY_LENGTH_UNKNOWN};
    memcpy(payload, &h, sizeof h);
    if (body.len)
        memcpy(payload + sizeof h, body.at, body.len);
    return tls_say(w, kind, flags, payload, sizeof h + body.len);
}

static void tls_take(tls_worker *w)
{
    uint32_t slot;
    const sr_slot *s = w->number ? NULL : sr_consumer_take(&w->consumer, &slot);
    if (!s)
        return;
    w->slot = slot;
    w->number = s->number;
    w->headed = false;
    if (sr_consumer_begin(&w->consumer, slot, s->number) != SR_CLAIM_MINE)
        w->number = 0;
}

static void tls_tunnel_close(tls_tunnel *t)
{
    if (t->fd >= 0)
        close(t->fd);
    sr_buffer_free(&t->sent);
    *t = (tls_tunnel){.fd = -1};
}

/* Ends its request by this record. */
static bool tls_over(tls_worker *w, uint16_t kind)
{
    if (!tls_say(w, kind, 0, "", 0))
        return false;
    w->number = 0;
    if (kind != SR_REPLY_TAKEN)
        tls_tunnel_close(&w->tunnel);
    return true;
}

static void tls_send_file(tls_worker *w, unsigned large)
{
    sr_message note = {.kind = SR_MESSAGE_FILE, .number = w->number, .slot = w->slot};
    sr_reply_file f = {large & 1, large & 2 ? TLS_FILE : 20000, 0};
    if (!w->headed && tls_head(w, SR_REPLY_HEAD, 200, f.length, (sr_bytes){"", 0}, 0) &&
        sr_door_send(w->line, &note, &tls_file, 1, false) == 0 && tls_say(w, SR_REPLY_FILE, 0, &f, sizeof f))
        w->headed = true;
    w->tunnel.mixed = true;
    while (w->number && !tls_over(w, SR_REPLY_END))
        tls_steps(1);
}

/* The application asks for the socket. */
static void tls_lend(tls_worker *w)
{
    sr_message note = {.kind = SR_MESSAGE_TAKE, .number = w->number, .slot = w->slot};
    int fds[SR_MESSAGE_FDS], n = 0;
    tls_steps(1);
    if (w->tunnel.fd >= 0 || sr_ring_waiting(w->consumer.ring)) /* a file waits for its client */
        return;
    const sr_entry *en = &tls_edge->entries[w->slot];
    sr_conn *c = en->number == w->number && en->exchange ? en->exchange->conn : NULL;
    tls_client *k = c && c->transport ? tls_spy_of(c->transport)->client : NULL;
    size_t up = k ? k->heard - sr_buffer_len(&c->in) : 0;
    size_t down = k ? sr_buffer_len(&k->written) : 0;
    if (c && c->out)
        down += sr_buffer_len(&c->out->mem) + c->out->file_left;
    MUST(sr_door_send(w->line, &note, NULL, 0, false) == 0);
    tls_steps(1);
    MUST(sr_door_receive(w->line, &note, fds, &n, false) == 0);
    MUST(note.kind == SR_MESSAGE_SOCKET);
    if (!n)
        return;
    MUST(n == 1 && k);
    w->tunnel = (tls_tunnel){.fd = fds[0], .client = k, .up = up, .down = down, .mixed = w->headed};
}

static void tls_tunnel_act(tls_tunnel *t, tls_input *in)
{
    static char bytes[40000];
    uint8_t what = tls_byte(in);
    size_t len = tls_size(in);
    if (t->fd < 0)
        return;
    if (what % 8 < 4) {
        size_t at = sr_buffer_len(&t->sent) * 7 % 997;
        ssize_t n = send(t->fd, tls_pattern + at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            sr_buffer_add(&t->sent, tls_pattern + at, (size_t)n);
    } else if (what % 8 < 6) {
        ssize_t n = recv(t->fd, bytes, len < sizeof bytes ? len : sizeof bytes, MSG_DONTWAIT);
        if (n > 0 && t->client) {
            size_t from = t->up + t->taken;
            MUST(from + (size_t)n <= sr_buffer_len(&t->client->said));
            MUST(memcmp(bytes, sr_buffer_at(&t->client->said) + from, (size_t)n) == 0);
            t->taken += (size_t)n;
        }
    } else if (what % 8 == 6) {
        shutdown(t->fd, SHUT_WR);
    } else {
        tls_tunnel_close(t);
    }
}

static void tls_act(tls_input *in)
{
    uint8_t what = tls_byte(in);
    tls_worker *w = &tls_workers[what % TLS_ROWS];
    tls_take(w);
    if (!w->number)
        return;
    switch (what / 2 % 12) {
    case 0:
    case 1: /* a whole response */
        w->tunnel.mixed = true;
        if (!w->headed &&
            tls_head(w, SR_REPLY_HEAD, what & 128 ? 204 : 200, 5, SR_BYTES("hello"), SR_REPLY_LAST)) {
            w->number = 0;
            tls_tunnel_close(&w->tunnel);
        }
        break;
    case 2: /* the beginning of one */
    case 3:
        w->tunnel.mixed = true;
        if (!w->headed)
            w->headed = tls_head(w, SR_REPLY_HEAD, 200, what & 128 ? 30000 : SR_REPLY_LENGTH_UNKNOWN,
                                 SR_BYTES("begin"), 0);
        break;
    case 4:
    case 5:
    case 6: {
        size_t len = tls_size(in);
        if (w->headed)
            tls_say(w, SR_REPLY_DATA, 0, tls_pattern, len < 12000 ? len : 12000);
        break;
    }
    case 7:
        if (w->headed)
            tls_over(w, SR_REPLY_END);
        break;
    case 8:
        tls_over(w, SR_REPLY_CUT);
        break;
    case 9:
        tls_send_file(w, what / 64);
        break;
    case 10:
        tls_lend(w);
        break;
    case 11:
        if (w->tunnel.fd < 0 || w->headed) { /* 103 */
            w->tunnel.mixed = true;
            if (!w->headed)
                tls_head(w, SR_REPLY_INTERIM, 103, 0, (sr_bytes){"", 0}, 0);
        } else if (tls_over(w, SR_REPLY_TAKEN)) { /* it goes on alone */
            tls_tunnel *t = &tls_tunnels[what / 64 % TLS_TUNNELS];
            tls_tunnel_close(t);
            *t = w->tunnel;
            w->tunnel = (tls_tunnel){.fd = -1};
        }
        break;
    }
}

/* --- what must hold --- */

/* As if so much time had gone by. */
static void tls_time(int64_t ns)
{
    age_edge(tls_edge, ns);
    for (unsigned i = 0; i < TLS_CLIENTS; i++)
        if (tls_clients[i])
            tls_clients[i]->tampered = true;
    tls_steps(1);
}

/* Nothing comes any more, so there is soon nothing to do. */
static void tls_rest(void)
{
    sr_engine *e = tls_edge->engine;
    int steps = 0;
    do {
        MUST(++steps < TLS_REST);
        tls_steps(1);
    } while (e->loop.n || sr_handshake_waits(&e->handshakes) || !sr_link_alone(&e->intake.buffered));
}

/* Everybody reads and sends all there is, as long as that brings something. */
static void tls_exchange(int rounds)
{
    bool more = true;
    for (int i = 0; i < rounds && more; i++) {
        more = false;
        for (unsigned n = 0; n < TLS_CLIENTS; n++)
            if (tls_clients[n])
                more |= tls_give(tls_clients[n], SIZE_MAX) > 0;
        tls_steps(2);
        for (unsigned n = 0; n < TLS_CLIENTS; n++)
            if (tls_clients[n])
                more |= tls_get(tls_clients[n], SIZE_MAX) > 0;
    }
}

static void tls_settle(void)
{
    for (int i = 0; i < 3; i++) {
        tls_exchange(2000);
        tls_rest();
    }
    for (unsigned i = 0; i < TLS_CLIENTS; i++) {
        tls_client *k = tls_clients[i];
        if (k && !k->tampered && !k->dead && k->spy && SSL_is_init_finished(k->ssl))
            MUST(sr_buffer_len(&k->got) == sr_buffer_len(&k->written));
    }
    for (unsigned i = 0; i < TLS_TUNNELS; i++) { /* what the application has written has gone through */
        const tls_tunnel *t = &tls_tunnels[i];
        const tls_client *k = t->client;
        if (t->fd < 0 || !k || t->mixed || k->tampered || k->dead || k->fd < 0 || !k->spy)
            continue;
        size_t len = sr_buffer_len(&t->sent);
        MUST(sr_buffer_len(&k->written) == t->down + len);
        if (len)
            MUST(memcmp(sr_buffer_at(&k->written) + t->down, sr_buffer_at(&t->sent), len) == 0);
    }
}

static void tls_operation(tls_input *in)
{
    static const int64_t times[] = {SR_MILLISECOND, 700 * SR_MILLISECOND, 3 * SR_SECOND, 9 * SR_SECOND};
    uint8_t op = tls_byte(in);
    tls_client **at = &tls_clients[op / 16 % TLS_CLIENTS];
    unsigned what = op % 16;
    if (!*at && what > 0 && what < 10) /* a usual client, so that an input need not say so */
        *at = tls_connect(op / 64, 0, in);
    switch (what) {
    case 0: {
        unsigned how = tls_byte(in), names = tls_byte(in);
        tls_client_close(at);
        *at = tls_connect(how, names, in);
        break;
    }
    case 1:
        tls_exchange(1 + op / 64);
        break;
    case 2:
        tls_request(*at, tls_byte(in));
        break;
    case 3: {
        size_t len = tls_size(in);
        tls_write(*at, tls_pattern, len);
        break;
    }
    case 4:
        tls_give(*at, tls_size(in));
        break;
    case 5:
        tls_flip(*at, in);
        break;
    case 6:
        tls_raw(*at, in);
        break;
    case 7:
        tls_get(*at, tls_size(in));
        break;
    case 8:
        tls_control(at, in);
        break;
    case 9:
        tls_forge(*at, in);
        break;
    case 10:
    case 11:
        tls_act(in);
        tls_steps(1);
        break;
    case 12:
        tls_tunnel_act(
            op & 128 ? &tls_workers[op / 16 % TLS_ROWS].tunnel : &tls_tunnels[op / 16 % TLS_TUNNELS], in);
        break;
    case 13:
        if (op < 128)
            tls_load(op / 16);
        else if (*at && (*at)->spy)
            tls_spy_move((*at)->spy);
        break;
    case 14:
        if (op < 192)
            tls_steps(1);
        else
            tls_time(times[op / 16 % 4]);
        break;
    default:
        if (op & 128)
            tls_settle();
        else
            tls_rest();
        break;
    }
}

/* Earlier requests may be in front. */
static void tls_honest(void)
{
    static const char request[] = "GET /honest HTTP/1.1\r\nHost: a\r\n\r\n";
    tls_input none = {0};
    tls_worker *w = &tls_workers[0];
    tls_client_close(&tls_clients[0]);
    tls_client *k = tls_clients[0] = tls_connect(0, 1, &none);
    tls_exchange(20);
    MUST(SSL_is_init_finished(k->ssl));
    tls_write(k, request, sizeof request - 1);
    for (int i = 0; i < 100 && !sr_buffer_len(&k->got); i++) {
        tls_exchange(2);
        tls_take(w);
        if (w->number) {
            const sr_slot *s = sr_queue_at(&tls_edge->queue, w->slot);
            bool ours = s->head == sizeof request - 1 && memcmp(s->data + s->parse, request, s->head) == 0;
            MUST(tls_head(w, SR_REPLY_HEAD, 200, 4, ours ? SR_BYTES("yes!") : SR_BYTES("none"),
                          SR_REPLY_LAST));
            w->number = 0;
        }
        tls_exchange(2);
    }
    size_t n = sr_buffer_len(&k->got);
    MUST(n > 40 && memcmp(sr_buffer_at(&k->got), "HTTP/1.1 200 OK\r\n", 17) == 0);
    MUST(memcmp(sr_buffer_at(&k->got) + n - 4, "yes!", 4) == 0);
}

/* The workers give up what they have. */
static void tls_give_up(void)
{
    for (uint32_t i = 0; i < TLS_ROWS; i++) {
        tls_worker *w = &tls_workers[i];
        for (int n = 0; w->number && !tls_over(w, SR_REPLY_CUT); n++) {
            MUST(n < 100);
            tls_steps(1);
        }
    }
    tls_steps(2);
}

static void tls_clear(void)
{
    sr_engine *e = tls_edge->engine;
    for (int i = 0; i < TLS_CLIENTS; i++)
        tls_client_close(&tls_clients[i]);
    for (int i = 0; i < TLS_TUNNELS; i++)
        tls_tunnel_close(&tls_tunnels[i]);
    while (!sr_link_alone(&e->all))
        sr_conn_close(e, SR_LIST_ENTRY(e->all.next, sr_conn, all), SR_CLOSED_ERROR);
    tls_give_up();
    for (int i = 0; i < 4; i++)
        tls_time(700 * SR_MILLISECOND);
    SSL_SESSION_free(tls_session);
    tls_session = NULL;
    if (tls_set)
        tls_load(0);
    MUST(e->n_conns == 0 && e->handshakes.n == 0 && e->pending == 0);
    MUST(sr_link_alone(&e->intake.buffered) && sr_link_alone(&e->handshakes.ready));
    MUST(tls_edge->queue.n_free == tls_edge->slots && sr_queue_waiting(&tls_edge->queue) == 0);
    MUST(sr_link_alone(&tls_edge->abandoned));
}

FUZZ_TARGET(transport)
{
    tls_input in = {data, data + size};
    if (!tls_edge) {
        tls_random = fuzz_random_of(data, 0, 1);
        tls_open();
    }
    tls_random = fuzz_random_of(data, size, 1);
    int before = fuzz_descriptors();
    while (in.at < in.end)
        tls_operation(&in);
    tls_settle();
    if (tls_set)
        tls_load(0);
    tls_give_up();
    tls_honest();
    tls_clear();
    MUST(fuzz_descriptors_again(before) == before);
    return 0;
}

#else

#include "fuzz.h"

FUZZ_TARGET(transport)
{
    (void)data;
    (void)size;
    return 0;
}

#endif
