/*
 * tls: the handshake, and what follows it where the cipher is none of records.h. Contexts are made in
 * tlsset.c.
 *
 * OpenSSL reads from `raw` and writes to `wire`, buffers in memory, so that several records leave in one
 * system call and no call of OpenSSL waits to be repeated. What the socket does not take stays in `wire`, and
 * the bytes of the caller that are in it count as not taken (`owed`) until it is empty.
 *
 * In the handshake OpenSSL does not read ahead: it takes what it needs, and what has come behind it stays in
 * `raw`. So at the end both sides of the encryption are known: no record of the client was read with the new
 * keys, and those that were written, tickets, are counted in `wire`.
 */
#ifdef SR_TLS

#include "tlsset.h"

#include "../share/facts.h"
#include "records.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

enum {
    RECORD = 16 * 1024, /* RFC 8446 5.1 */
    HEADER = 5,
    BATCH = 4 * RECORD, /* encrypted before they are sent */
    DRY_READS = 16, /* of the socket that bring no bytes for the caller: then the others have their turn */
    HELLO_MAX =
        16 * 1024, /* of a ClientHello: OpenSSL takes 128 KiB, and memory for it when it is announced */
    OWED_MAX = BATCH + BATCH / 2, /* a batch with headers, padding and MACs, in records of 512 bytes too */
};

typedef struct secrets {
    uint8_t in[SR_SECRET_MAX], out[SR_SECRET_MAX];
    size_t in_len, out_len;
} secrets;

typedef struct tls {
    /* must be first; it takes over with the end of the handshake, unless the cipher is none of its */
    sr_records records;
    SSL *ssl;
    secrets *secrets;  /* of TLS 1.3; NULL: none have come */
    uint8_t dry;       /* reads of the socket since the caller got bytes */
    uint8_t idle;      /* records since then: KeyUpdate, renegotiation, alerts */
    uint32_t since[2]; /* in the handshake: records read and written since ChangeCipherSpec */
    bool waits;        /* the last read has found nothing: epoll will report more */
    bool paused;       /* the last call has stopped for the others, not for want of bytes */

    /* where the client's hello begins, the first or that behind HelloRetryRequest: up to its length */
    bool skips;     /* the record at hand has no part of a hello */
    uint8_t header; /* bytes seen of the header of the record at hand */
    uint8_t hello;  /* of the message in it; 4: all that matters was seen */
    uint16_t left;  /* bytes of the record that are to come */
    uint32_t hello_size;
    bool foreign;      /* the first byte is not that of a record */
    sr_failure why;    /* the handshake has failed; see sr_transport_ops.failure */
    const char *words; /* NULL: there are none */
} tls;

static char staging[RECORD];

static tls *of(sr_transport *t)
{
    return (tls *)t;
}

/* --- the socket, as OpenSSL sees it --- */

enum { MESSAGE_HEADER = 4 }; /* RFC 8446 4: type and length; it and that of the record may come in parts */

/*
 * False: the client announces a hello that is too long. An alert or ChangeCipherSpec may precede it; early
 * data, which nobody reads, may precede the second. What is not TLS is left to OpenSSL.
 */
static bool hello_fits(tls *t, const char *at, size_t len)
{
    for (size_t i = 0; i < len && t->hello < MESSAGE_HEADER; i++) {
        unsigned char byte = (unsigned char)at[i];
        if (t->header < HEADER) {
            if (!t->header) {
                t->skips = byte != SSL3_RT_HANDSHAKE;
                if (byte < SSL3_RT_CHANGE_CIPHER_SPEC || byte > SSL3_RT_APPLICATION_DATA) {
                    t->hello = MESSAGE_HEADER;
                    t->foreign = true;
                    return true;
                }
            }
            t->left = (uint16_t)(t->left << 8 | byte); /* the length comes last */
            t->header++;
        } else if (t->skips) {
            size_t some = len - i < t->left ? len - i : t->left;
            t->left -= (uint16_t)some;
            i += some - 1;
        } else {
            t->hello_size = (t->hello_size << 8 | byte) & 0xffffff;
            t->hello++;
            t->left--;
        }
        if (t->header == HEADER && !t->left)
            t->header = 0;
    }
    return t->hello < MESSAGE_HEADER || t->hello_size <= HELLO_MAX;
}

static int bio_read(BIO *bio, char *to, size_t len, size_t *got)
{
    tls *t = BIO_get_data(bio);
    sr_buffer *raw = &t->records.raw;
    *got = 0;
    BIO_clear_retry_flags(bio);
    if (!sr_buffer_len(raw)) {
        if (t->dry >= DRY_READS) {
            t->paused = true;
            BIO_set_retry_read(bio);
            return 0;
        }
        ssize_t n;
        do
            n = recv(t->records.socket, staging, sizeof staging, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n <= 0) {
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
                BIO_set_retry_read(bio);
            else
                t->records.closed = n == 0;
            return 0;
        }
        t->dry++;
        *got = (size_t)n < len ? (size_t)n : len;
        memcpy(to, staging, *got);
        if (!sr_buffer_add(raw, staging + *got, (size_t)n - *got)) {
            errno = ENOMEM;
            return 0;
        }
    } else {
        *got = sr_buffer_len(raw) < len ? sr_buffer_len(raw) : len;
        memcpy(to, sr_buffer_at(raw), *got);
        sr_buffer_take(raw, *got);
    }
    if (t->hello < MESSAGE_HEADER && !hello_fits(t, to, *got)) {
        static const uint8_t alert[] = {SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_FATAL, SSL_AD_DECODE_ERROR};
        sr_records_put(&t->records, alert, sizeof alert); /* its length is out of range (RFC 8446 6.2) */
        t->why = SR_FAILURE_OTHER;
        t->words = "the client's hello is longer than 16 KiB";
        errno = EPROTO;
        return 0;
    }
    return 1;
}

static int bio_write(BIO *bio, const char *at, size_t len, size_t *put)
{
    tls *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *put = 0;
    if (!sr_records_put(&t->records, at, len)) {
        errno = ENOMEM;
        return 0;
    }
    *put = len;
    return 1;
}

static long bio_ctrl(BIO *bio, int what, long n, void *with)
{
    (void)bio;
    (void)n;
    (void)with;
    return what == BIO_CTRL_FLUSH || what == BIO_CTRL_PUSH || what == BIO_CTRL_POP;
}

static BIO_METHOD *method(void)
{
    static BIO_METHOD *made;
    if (!made && (made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sirius"))) {
        BIO_meth_set_read_ex(made, bio_read);
        BIO_meth_set_write_ex(made, bio_write);
        BIO_meth_set_ctrl(made, bio_ctrl);
    }
    return made;
}

/* The memory of raw goes back when it is empty. */
static void raw_rest(tls *t)
{
    if (t->records.raw.data && !sr_buffer_len(&t->records.raw))
        sr_buffer_free(&t->records.raw);
}

static int flush(tls *t, int flags)
{
    return sr_records_flush(&t->records, flags);
}

/* What a call of OpenSSL has ended with. 0: it waits for bytes, or the peer has ended; else errno. */
static int error_of(tls *t, int result)
{
    int why = SSL_get_error(t->ssl, result);
    if (t->idle > SR_CONTROLS_MAX) {
        ERR_clear_error();
        t->records.failed = true;
        return EPROTO;
    }
    if (why == SSL_ERROR_ZERO_RETURN)
        t->records.closed = true;
    if (why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_WANT_READ)
        return 0;
    ERR_clear_error();
    if (why == SSL_ERROR_SYSCALL && t->records.closed)
        return 0;
    t->records.failed = true;
    return why == SSL_ERROR_SYSCALL && errno ? errno : EPROTO;
}

/* --- handshake --- */

/*
 * Counts records without application data, whose type TLS 1.3 has inside. Each KeyUpdate costs three
 * derivations of keys, each attempt to renegotiate an alert. OpenSSL limits neither; its reading ends when it
 * believes that the peer has said close_notify.
 */
static void on_message(int sent, int version, int type, const void *at, size_t len, SSL *ssl, void *arg)
{
    tls *t = arg;
    (void)version;
    if (sent || !len || (type != SSL3_RT_HEADER && type != SSL3_RT_INNER_CONTENT_TYPE) ||
        *(const unsigned char *)at == SSL3_RT_APPLICATION_DATA)
        return;
    if (t->idle <= SR_CONTROLS_MAX && ++t->idle > SR_CONTROLS_MAX)
        SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

/* A copy of what was printed there, which is freed. NULL: nothing was, or there is no memory. */
static char *printed(BIO *to, bool done, size_t *len)
{
    char *at, *copy = NULL;
    long n = done ? BIO_get_mem_data(to, &at) : -1;
    if (n >= 0 && (copy = malloc((size_t)n + 1))) {
        memcpy(copy, at, (size_t)n);
        *len = (size_t)n;
    }
    BIO_free(to);
    return copy;
}

/* "C = DE, CN = x" of OpenSSL as RFC 4514 has it: "CN=x,C=DE". */
static char *name_text(const X509_NAME *name, size_t *len)
{
    BIO *to = BIO_new(BIO_s_mem());
    unsigned long how = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
    return printed(to, to && X509_NAME_print_ex(to, name, 0, how) >= 0, len);
}

static char *pem_text(X509 *cert, size_t *len)
{
    BIO *to = BIO_new(BIO_s_mem());
    return printed(to, to && PEM_write_bio_X509(to, cert), len);
}

static char *serial_text(X509 *cert)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
    char *text = number ? BN_bn2hex(number) : NULL;
    BN_free(number);
    return text;
}

static sr_bytes text_of(const char *s)
{
    return s ? sr_bytes_of(s, strlen(s)) : (sr_bytes){0};
}

static bool facts_make(tls *t)
{
    sr_bytes values[SR_FACTS] = {
        [SR_FACT_PROTOCOL] = text_of(SSL_get_version(t->ssl)),
        [SR_FACT_CIPHER] = text_of(SSL_get_cipher_name(t->ssl)),
        [SR_FACT_SNI] = text_of(SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name)),
        [SR_FACT_VERIFY] = SR_BYTES("NONE"),
    };
    X509 *cert = SSL_get0_peer_certificate(t->ssl);
    char *subject = NULL, *issuer = NULL, *pem = NULL, *serial = NULL;
    bool made = true;
    if (cert) {
        size_t subject_len = 0, issuer_len = 0, pem_len = 0;
        subject = name_text(X509_get_subject_name(cert), &subject_len);
        issuer = name_text(X509_get_issuer_name(cert), &issuer_len);
        pem = pem_text(cert, &pem_len);
        serial = serial_text(cert);
        made = subject && issuer && pem && serial && SSL_get_verify_result(t->ssl) == X509_V_OK;
        values[SR_FACT_VERIFY] = SR_BYTES("SUCCESS");
        values[SR_FACT_S_DN] = sr_bytes_of(subject, subject_len);
        values[SR_FACT_I_DN] = sr_bytes_of(issuer, issuer_len);
        values[SR_FACT_CERT] = sr_bytes_of(pem, pem_len);
        values[SR_FACT_SERIAL] = text_of(serial);
    }
    made = made && sr_facts_make(&t->records.facts, values);
    free(subject);
    free(issuer);
    free(pem);
    OPENSSL_free(serial);
    return made;
}

/* A secret as the line of a key log has it: LABEL RANDOM SECRET. */
static size_t secret_read(const char *hex, uint8_t to[SR_SECRET_MAX])
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (; n < SR_SECRET_MAX && hex[0] && hex[1]; n++, hex += 2) {
        const char *high = strchr(digits, hex[0]), *low = strchr(digits, hex[1]);
        if (!high || !low)
            return 0;
        to[n] = (uint8_t)((high - digits) << 4 | (low - digits));
    }
    return *hex ? 0 : n;
}

/* Keeps the traffic secrets of TLS 1.3 for the records. */
static void secret(const SSL *ssl, const char *line)
{
    tls *t = SSL_get_app_data(ssl);
    const char *label = "XXXXXX_TRAFFIC_SECRET_0 ", *rest = strchr(line, ' ');
    const char *hex = rest ? strchr(rest + 1, ' ') : NULL;
    bool traffic = hex && strncmp(line + 6, label + 6, strlen(label + 6)) == 0;
    if (!t || !traffic || (!t->secrets && !(t->secrets = calloc(1, sizeof *t->secrets))))
        return;
    if (line[0] == 'C')
        t->secrets->in_len = secret_read(hex + 1, t->secrets->in);
    else
        t->secrets->out_len = secret_read(hex + 1, t->secrets->out);
}

/*
 * A line costs OpenSSL 80 calls of sprintf, 2 % of a handshake, and it has five of them. So they are asked
 * for from our Finished on: without those of the handshake itself, which are made before.
 */
static void secrets_ask(const SSL *ssl, bool on)
{
    SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(ssl), on ? secret : NULL);
}

/*
 * Counts the records behind ChangeCipherSpec, which in TLS 1.2 are the first with the keys of the connection.
 * Most often that is Finished alone; a client may cut it into several, or send empty ones before it.
 */
static void on_step(int sent, int version, int type, const void *at, size_t len, SSL *ssl, void *arg)
{
    tls *t = arg;
    uint32_t *since = &t->since[sent != 0];
    uint8_t first = len ? *(const uint8_t *)at : 0;
    (void)version;
    if (type == SSL3_RT_HEADER)
        *since = first == SSL3_RT_CHANGE_CIPHER_SPEC ? 0 : *since + 1;
    if (!sent || type != SSL3_RT_HANDSHAKE || SSL_version(ssl) != TLS1_3_VERSION)
        return;
    if (first == SSL3_MT_FINISHED)
        secrets_ask(ssl, true);
    if (first == SSL3_MT_SERVER_HELLO) { /* or HelloRetryRequest, which has its type (RFC 8446 4.1.4) */
        t->header = t->hello = 0;
        t->left = 0;
        t->hello_size = 0;
    }
}

static void secrets_forget(tls *t)
{
    if (t->secrets)
        OPENSSL_cleanse(t->secrets, sizeof *t->secrets);
    free(t->secrets);
    t->secrets = NULL;
}

/* Tickets of TLS 1.3: all that wire has when the handshake is complete. */
static uint64_t written(const tls *t)
{
    const uint8_t *at = (const uint8_t *)sr_buffer_at(&t->records.wire);
    size_t left = sr_buffer_len(&t->records.wire);
    uint64_t n = 0;
    while (left >= HEADER) {
        size_t record = HEADER + ((size_t)at[3] << 8 | at[4]);
        if (record > left)
            break;
        at += record;
        left -= record;
        n++;
    }
    return n;
}

static bool keys13(const tls *t, sr_record_keys *k)
{
    size_t len = k->sha384 ? 48 : 32;
    if (!t->secrets || t->secrets->in_len != len || t->secrets->out_len != len)
        return false;
    memcpy(k->in.secret, t->secrets->in, len);
    memcpy(k->out.secret, t->secrets->out, len);
    k->out.seq = written(t);
    return true;
}

static bool keys12(const tls *t, sr_record_keys *k)
{
    uint8_t master[SSL_MAX_MASTER_KEY_LENGTH], client[SSL3_RANDOM_SIZE], server[SSL3_RANDOM_SIZE];
    size_t len = SSL_SESSION_get_master_key(SSL_get_session(t->ssl), master, sizeof master);
    bool made = len && SSL_get_client_random(t->ssl, client, sizeof client) == sizeof client &&
                SSL_get_server_random(t->ssl, server, sizeof server) == sizeof server &&
                sr_records_derive12(k, master, len, client, server);
    k->in.seq = t->since[0];
    k->out.seq = t->since[1];
    OPENSSL_cleanse(master, sizeof master);
    return made;
}

/* What a record to this client may have: 2^14 bytes, or fewer if it has asked for that (RFC 6066 4). */
static uint16_t most_of(const tls *t)
{
    unsigned code = SSL_SESSION_get_max_fragment_length(SSL_get_session(t->ssl));
    bool asked = code >= TLSEXT_max_fragment_length_512 && code <= TLSEXT_max_fragment_length_4096;
    return asked ? (uint16_t)(512 << (code - 1)) : SR_PLAIN_MAX;
}

/* The handshake is complete: takes the keys out of OpenSSL. False: it goes on with OpenSSL. */
static bool take_over(tls *t)
{
    sr_record_keys k = {.tls13 = SSL_version(t->ssl) == TLS1_3_VERSION, .most = most_of(t)};
    const SSL_CIPHER *cipher = SSL_get_current_cipher(t->ssl);
    const EVP_MD *md = SSL_CIPHER_get_handshake_digest(cipher);
    int type = SSL_CIPHER_get_cipher_nid(cipher), hash = md ? EVP_MD_get_type(md) : NID_undef;
    bool known = type == NID_aes_128_gcm || type == NID_aes_256_gcm || type == NID_chacha20_poly1305;
    k.aead = type == NID_aes_128_gcm   ? SR_AEAD_AES128
             : type == NID_aes_256_gcm ? SR_AEAD_AES256
                                       : SR_AEAD_CHACHA;
    k.sha384 = hash == NID_sha384;
    bool taken = known && (k.sha384 || hash == NID_sha256) && !SSL_has_pending(t->ssl) &&
                 (k.tls13 ? keys13(t, &k) : keys12(t, &k)) && sr_records_begin(&t->records, &k);
    OPENSSL_cleanse(&k, sizeof k);
    secrets_forget(t);
    if (taken) {
        SSL_free(t->ssl);
        t->ssl = NULL;
    }
    ERR_clear_error();
    return taken;
}

/* --- why it fails --- */

/* Of the certificate of a client. The most frequent cases as the manual of this server says them. */
static const char *certificate_words(long result)
{
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "the client's certificate, or one of its chain, has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "the client's certificate, or one of its chain, is not valid yet";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return "the client's certificate is not by a CA of --tls-client-ca, or its chain is not complete";
    case X509_V_ERR_CERT_REVOKED:
        return "the client's certificate, or one of its chain, is revoked";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
        return "there is no CRL of the CA that has issued the client's certificate, or one of its chain "
               "(--tls-client-crl)";
    case X509_V_ERR_CRL_HAS_EXPIRED:
        return "the CRL of the CA that has issued the client's certificate, or one of its chain, has expired "
               "(--tls-client-crl)";
    case X509_V_ERR_INVALID_PURPOSE:
        return "the client's certificate is not for clients (extendedKeyUsage)";
    default:
        return X509_verify_cert_error_string(result);
    }
}

static sr_failure failure_is(tls *t, sr_failure why, const char *words)
{
    t->words = words;
    return why;
}

/* Of the first error of OpenSSL's queue: those behind it are its consequences. */
static sr_failure failure_of(tls *t, unsigned long error)
{
    int reason = ERR_GET_REASON(error);
    bool ours = ERR_GET_LIB(error) == ERR_LIB_SSL;
    long result = SSL_get_verify_result(t->ssl);
    if (ours && (reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST))
        return failure_is(t, SR_FAILURE_NOT_TLS, "the client speaks plain HTTP");
    if (ours && reason > SSL_AD_REASON_OFFSET) {
        int alert = reason - SSL_AD_REASON_OFFSET;
        return failure_is(t, SR_FAILURE_ALERT, SSL_alert_desc_string_long(alert));
    }
    if (ours)
        switch (reason) {
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_VERSION_TOO_LOW:
        case SSL_R_VERSION_TOO_HIGH:
        case SSL_R_INAPPROPRIATE_FALLBACK:
        case SSL_R_BAD_LEGACY_VERSION:
            return failure_is(t, SR_FAILURE_VERSION, "no TLS version in common with the client (--tls-min)");
        case SSL_R_NO_SHARED_CIPHER:
            return failure_is(
                t, SR_FAILURE_CIPHER,
                "the client knows no cipher that fits --tls-ciphers and the kind of our certificate");
        case SSL_R_NO_SHARED_GROUPS:
        case SSL_R_NO_SUITABLE_GROUPS:
        case SSL_R_NO_SUITABLE_KEY_SHARE:
            return failure_is(t, SR_FAILURE_CIPHER, "no key exchange group in common with the client");
        case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
        case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
            return failure_is(
                t, SR_FAILURE_CIPHER,
                "the client knows no signature algorithm that fits the kind of our certificate");
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return failure_is(t, SR_FAILURE_CERTIFICATE,
                              "the client has sent no certificate (--tls-client-ca)");
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            return failure_is(t, SR_FAILURE_CERTIFICATE, certificate_words(result));
        default:
            break;
        }
    if (t->foreign || (ours && reason == SSL_R_WRONG_VERSION_NUMBER && t->hello < MESSAGE_HEADER))
        return failure_is(t, SR_FAILURE_NOT_TLS, "what the client has sent is not TLS");
    return failure_is(t, SR_FAILURE_OTHER, ERR_reason_error_string(error));
}

/* SSL_do_handshake has returned `result`. Before the queue of errors is cleared. */
static void failure_note(tls *t, int result)
{
    unsigned long error = ERR_peek_error();
    if (error && SSL_get_error(t->ssl, result) == SSL_ERROR_SSL)
        t->why = failure_of(t, error);
}

static sr_failure tls_failure(const sr_transport *base, const char **words)
{
    const tls *t = (const tls *)base;
    *words = t->words ? t->words : "OpenSSL does not say why";
    return t->why;
}

static int tls_handshake(sr_transport *base, int socket)
{
    tls *t = of(base);
    (void)socket;
    int err = flush(t, 0);
    if (err)
        return err;
    t->dry = 0;
    t->waits = t->paused = false;
    if (t->secrets)
        secrets_ask(t->ssl, true);
    int r = SSL_do_handshake(t->ssl);
    secrets_ask(t->ssl, false);
    if (r != 1) {
        bool http = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
        failure_note(t, r);
        t->waits = true; /* a part of a record may be here: only more of it makes a difference */
        err = error_of(t, r);
        if (http) { /* no alert, which the client would not understand */
            sr_buffer_reset(&t->records.wire);
            return EPROTONOSUPPORT;
        }
        int sent = flush(t, 0); /* an alert, or our part of the handshake */
        if (!err && t->records.closed)
            return ECONNRESET;
        return err ? err : sent && sent != EAGAIN ? sent : EAGAIN;
    }
    if (!facts_make(t)) {
        t->why = failure_is(t, SR_FAILURE_OTHER, "no memory");
        return ENOMEM;
    }
    t->hello = MESSAGE_HEADER; /* none is awaited any more */
    const unsigned char *chosen;
    unsigned chosen_len;
    SSL_get0_alpn_selected(t->ssl, &chosen, &chosen_len);
    base->h2 = chosen_len == 2 && memcmp(chosen, "h2", 2) == 0;
    if (!take_over(t)) {
        SSL_set_read_ahead(t->ssl, 1);
        SSL_set_msg_callback(t->ssl, on_message);
    }
    raw_rest(t);
    /*
     * Tickets: what the socket does not take goes before the first response. If the client has gone, the
     * handshake is complete nevertheless, and the first read fails.
     */
    flush(t, 0);
    return 0;
}

/*
 * TLS 1.3: our Finished was made. What the client has to say costs little to check, and it has done its part.
 */
static bool tls_ends(const sr_transport *base)
{
    const tls *t = (const tls *)base;
    return t->ssl && t->secrets && t->secrets->out_len;
}

/* --- reading --- */

static bool tls_clogged(const sr_transport *base)
{
    const sr_records *r = &((const tls *)base)->records;
    return sr_buffer_len(&r->wire) > SR_WIRE_MAX + (r->owed ? OWED_MAX : 0);
}

static ssize_t tls_read(sr_transport *base, int socket, void *to, size_t len)
{
    tls *t = of(base);
    size_t got = 0, n;
    int err = 0;
    (void)socket;
    if (sr_buffer_len(&t->records.wire))
        err = flush(t, 0);
    if (err && (err != EAGAIN || tls_clogged(base))) {
        t->waits = true;
        errno = err;
        return -1;
    }
    if (t->records.failed) {
        errno = ECONNRESET;
        return -1;
    }
    t->dry = 0;
    t->waits = t->paused = false;
    err = 0;
    for (int records = 0; got < len && !t->records.closed && records < SR_RECORDS_MAX; records++) {
        int r = SSL_read_ex(t->ssl, (char *)to + got, len - got, &n);
        if (r != 1) {
            err = error_of(t, r);
            t->waits = true;
            break;
        }
        got += n;
        t->dry = t->idle = 0;
        if (!SSL_has_pending(t->ssl) &&
            !sr_buffer_len(&t->records.raw)) { /* epoll reports what is in the socket */
            t->waits = true;
            break;
        }
    }
    raw_rest(t);
    flush(t, 0); /* what OpenSSL has replied, to a KeyUpdate for example */
    if (got)
        return (ssize_t)got;
    if (err) {
        errno = err;
        return -1;
    }
    if (t->records.closed) {
        t->records.told = true;
        return 0;
    }
    errno = EAGAIN;
    return -1;
}

/* A part of a record counts as nothing: OpenSSL has read all there was of it. */
static bool tls_holds(const sr_transport *base)
{
    const tls *t = (const tls *)base;
    return !tls_clogged(base) && ((t->records.closed && !t->records.told) || t->paused ||
                                  (!t->waits && (SSL_has_pending(t->ssl) || sr_buffer_len(&t->records.raw))));
}

static ssize_t tls_peek(sr_transport *base, int socket)
{
    tls *t = of(base);
    char byte;
    size_t n;
    (void)socket;
    if (t->records.failed) {
        errno = ECONNRESET;
        return -1;
    }
    if (t->records.closed)
        return 0;
    t->dry = 0;
    t->paused = false;
    int r = SSL_peek_ex(t->ssl, &byte, 1, &n);
    if (r == 1) {
        t->waits = false;
        return 1;
    }
    int err = error_of(t, r);
    flush(t, 0);
    if (!err && t->records.closed)
        return 0;
    errno = err ? err : EAGAIN;
    return -1;
}

/* --- writing --- */

/* The bytes of the next record: where they lie if they are in one piece, else a copy of them. */
static sr_bytes next_record(sr_cursor *c)
{
    sr_bytes here;
    while (!(here = sr_cursor_here(c)).len && c->n)
        sr_cursor_skip(c, 0);
    if (here.len >= RECORD || c->n <= 1)
        return sr_bytes_of(here.at, here.len < RECORD ? here.len : RECORD);
    sr_cursor look = *c;
    return sr_bytes_of(staging, sr_cursor_copy(&look, staging, RECORD));
}

static ssize_t tls_write(sr_transport *base, int socket, const struct iovec *iov, int n, int flags)
{
    tls *t = of(base);
    sr_cursor c = {iov, n, 0};
    size_t taken = 0;
    int err = t->records.failed ? EPIPE : flush(t, flags);
    (void)socket;
    if (!err && t->records.owed)
        taken = sr_records_repeated(&t->records, &c);
    while (!err) {
        size_t batch = 0;
        sr_bytes record;
        while (batch < BATCH && (record = next_record(&c)).len > 0) {
            size_t put;
            int r = SSL_write_ex(t->ssl, record.at, record.len, &put);
            if (r != 1) {
                err = error_of(t, r);
                err = err ? err : EPROTO; /* it waits for nothing, as wire takes all */
                break;
            }
            sr_cursor_skip(&c, put);
            batch += put;
        }
        if (err || !batch)
            break;
        err = flush(t, flags);
        if (err)
            t->records.owed = batch;
        else
            taken += batch;
    }
    if (!err || (err == EAGAIN && taken))
        return (ssize_t)taken;
    errno = err;
    return -1;
}

static int tls_end(sr_transport *base, int socket)
{
    tls *t = of(base);
    (void)socket;
    if (t->records.failed)
        return 0;
    if (!t->records.ended && SSL_is_init_finished(t->ssl)) {
        SSL_shutdown(t->ssl);
        ERR_clear_error();
    }
    t->records.ended = true;
    return flush(t, 0);
}

static void tls_free(sr_transport *base)
{
    tls *t = of(base);
    SSL_free(t->ssl);
    ERR_clear_error();
    secrets_forget(t);
    sr_records_wipe(&t->records);
    free(t);
}

static const sr_transport_ops ops = {
    .handshake = tls_handshake,
    .failure = tls_failure,
    .ends = tls_ends,
    .read = tls_read,
    .write = tls_write,
    .holds = tls_holds,
    .unsent = sr_records_unsent,
    .clogged = tls_clogged,
    .peek = tls_peek,
    .end = tls_end,
    .facts = sr_records_facts,
    .free = tls_free,
};

sr_transport *sr_tls_accept(sr_tls *shared, int socket)
{
    tls *t = calloc(1, sizeof *t);
    SSL_CTX *ctx = sr_tls_context(shared);
    BIO *bio = t && ctx && method() ? BIO_new(method()) : NULL;
    if (!bio || !(t->ssl = SSL_new(ctx))) {
        BIO_free(bio);
        free(t);
        ERR_clear_error();
        return NULL;
    }
    t->records.base.ops = &ops;
    t->records.socket = socket;
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_accept_state(t->ssl);
    SSL_set_app_data(t->ssl, t);
    SSL_set_msg_callback(t->ssl, on_step);
    SSL_set_msg_callback_arg(t->ssl, t);
    return &t->records.base;
}

sr_transport *sr_tls_adopt(sr_bytes packed, int socket)
{
    return sr_records_unpack(packed, socket);
}

#else

#include "tls.h"

sr_transport *sr_tls_accept(sr_tls *shared, int socket)
{
    (void)shared;
    (void)socket;
    return NULL;
}

sr_transport *sr_tls_adopt(sr_bytes packed, int socket)
{
    (void)packed;
    (void)socket;
    return NULL;
}

#endif
